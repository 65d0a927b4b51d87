"""Min-hashes, against skrub."""

import numpy as np
import pandas as pd
import pytest

from karat.models.tables.min_hash_table import MinHashes, MinHashTable, min_hashes

PLACES = pd.DataFrame({"w": ["London, UK", "London", "Paris, FR", "Paris", "a", ""]})
TEXTS = ["", "a", "ab", "abc", "abcd", "abcde", "London, UK", "Größe 数 🙂", "long " * 300, " "]


def test_minhash_is_scaled():
    found = MinHashTable(5).fit_transform(PLACES)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(found.std(axis=0), 1)


def test_the_numbers_are_skrubs():
    skrub = pytest.importorskip("skrub", minversion="0.11")
    texts = pd.Series([*TEXTS, *TEXTS[::-1]], name="w")
    expected = skrub.MinHashEncoder(n_components=7).fit_transform(texts).to_numpy()
    found = MinHashes(7).fit_transform(texts.to_frame())
    np.testing.assert_allclose(found, expected, rtol=1e-6)  # skrub rounds to 32 bits


def test_hashes_do_not_depend_on_other_texts():
    together = min_hashes(TEXTS)
    for row, text in enumerate(TEXTS):
        assert min_hashes([text]).tolist() == [together[row].tolist()]
