"""skrub's table vectorizer."""

import numpy as np
import pandas as pd
import pytest

from karat.models.tables.skrub_table import SkrubTable


def table(rows=300):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghij "), 20)) for _ in range(rows)]
    return pd.DataFrame({"words": words, "n": np.arange(rows, dtype=float)})


def test_skrub_gives_the_same_numbers_for_the_same_seed():
    pytest.importorskip("skrub")
    one, same, other = (SkrubTable(random_state=s).fit_transform(table()) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert one.shape == (300, 31)
    assert np.abs(one - other).max() > 0


def test_skrub_leaves_nothing_empty():
    pytest.importorskip("skrub")
    encoder = SkrubTable(random_state=0).fit(table())
    holes = table().assign(n=np.nan, words=None)
    assert np.isfinite(encoder.transform(holes)).all()
