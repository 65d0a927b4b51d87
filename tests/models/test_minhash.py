"""Min-hashes against skrub's, one text at a time."""

import numpy as np
import pandas as pd
import pytest

from karat.models.minhash import MinHashes, min_hashes

TEXTS = ["", "a", "ab", "abc", "abcd", "abcde", "London, UK", "Größe 数 🙂", "long " * 300, " "]


def test_the_numbers_are_skrubs():
    skrub = pytest.importorskip("skrub", minversion="0.11")
    texts = pd.Series([*TEXTS, *TEXTS[::-1]], name="w")
    expected = skrub.MinHashEncoder(n_components=7).fit_transform(texts).to_numpy()
    found = MinHashes(7).fit_transform(texts.to_frame())
    np.testing.assert_allclose(found, expected, rtol=1e-6)  # skrub rounds to 32 bits


def test_a_text_is_hashed_the_same_whatever_stands_beside_it():
    together = min_hashes(TEXTS)
    for row, text in enumerate(TEXTS):
        assert min_hashes([text]).tolist() == [together[row].tolist()]


def test_the_smallest_hash_is_that_of_one_of_the_n_grams():
    """The hash of "abc" is the least of its own and those of "ab" and "bc"."""
    from sklearn.utils import check_random_state

    low = np.iinfo(np.int32).max
    hashes = []
    for gram in (b"ab", b"bc", b"abc"):
        weights = check_random_state(0).randint(-low, low, size=len(gram), dtype=np.int32)
        hashes.append((np.frombuffer(gram, np.int8) * weights).sum(dtype=np.int32))
    # three letters stand at two places of a 4-gram
    weights = check_random_state(0).randint(-low, low, size=4, dtype=np.int32)
    letters = np.frombuffer(b"abc", np.int8)
    hashes += [(letters * weights[place : place + 3]).sum(dtype=np.int32) for place in (0, 1)]
    assert min_hashes(["abc"], 1)[0, 0] == min(hashes)
