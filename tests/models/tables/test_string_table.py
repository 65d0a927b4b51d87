"""skrub's string encoder per column."""

import sys

import numpy as np
import pandas as pd
import pytest

from karat.errors import MissingExtra
from karat.models.tables.string_table import StringTable

from .test_min_hash_table import PLACES
from .test_target_table import scaled


def test_string_is_skrubs_string_encoder():
    skrub = pytest.importorskip("skrub")
    rng = np.random.default_rng(0)
    words = pd.Series(["".join(rng.choice(list("abcdefgh "), 20)) for _ in range(99)], name="w")
    expected = skrub.StringEncoder(5, random_state=2).fit_transform(words).to_numpy()
    table = pd.DataFrame({"w": words, "n": np.arange(99)})
    found = StringTable(5, random_state=2).fit_transform(table)
    np.testing.assert_allclose(found, np.column_stack([scaled(table[["n"]]), expected]), atol=1e-6)


def test_string_of_columns_without_letters_is_zero():
    pytest.importorskip("skrub")
    table = pd.DataFrame({"empty": [None, "", " "], "w": ["some", "words", "here"]})
    encoder = StringTable().fit(table)
    assert (encoder.transform(table)[:, 0] == 0).all()
    later = pd.DataFrame({"empty": ["now", "there", "is"], "w": [None, "?", "words"]})
    assert np.isfinite(encoder.transform(later)).all()


def test_string_without_skrub_raises(monkeypatch):
    monkeypatch.setitem(sys.modules, "skrub", None)
    with pytest.raises(MissingExtra, match=r"karat\[tables\]"):
        StringTable().fit(PLACES)
