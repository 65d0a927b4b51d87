"""Table-row encoders on rows that can be encoded by hand."""

import numpy as np
import pandas as pd
import pytest

from karat.models.tables import OneHotTable, SkrubTable, number_columns


def test_numbers_are_scaled_and_words_one_hot():
    table = pd.DataFrame({"n": [1.0, 3.0], "w": ["a", "b"]})
    assert OneHotTable(None).fit_transform(table).tolist() == [[-1, 1, 0], [1, 0, 1]]


def test_a_missing_number_is_the_median_and_a_missing_word_a_category():
    train = pd.DataFrame({"n": [0.0, 10.0, 20.0, np.nan], "w": ["a", None, "a", "a"]})
    encoder = OneHotTable(None).fit(train)
    seen = encoder.transform(train)
    assert seen[3, 0] == seen[1, 0] == 0.0
    assert seen[:, 1:].tolist() == [[0, 1], [1, 0], [0, 1], [0, 1]]


def test_a_word_seen_only_in_test_is_all_zeros():
    train = pd.DataFrame({"w": ["a", "b"]})
    assert OneHotTable(None).fit(train).transform(pd.DataFrame({"w": ["c"]})).tolist() == [[0, 0]]


def test_rare_words_are_lumped_together():
    train = pd.DataFrame({"w": ["a"] * 8 + ["b", "c"]})
    assert OneHotTable(0.2).fit_transform(train).shape == (10, 2)


def test_truth_values_are_words_and_an_empty_column_stays():
    table = pd.DataFrame({"b": [True, False], "e": [np.nan, np.nan], "n": [1, 2]})
    assert number_columns(table) == ["e", "n"]
    assert OneHotTable(None).fit_transform(table).shape == (2, 4)


def test_a_column_that_loses_its_type_in_test_is_still_read():
    train = pd.DataFrame({"n": [0, 10], "b": [True, False]})
    encoder = OneHotTable(None).fit(train)
    masked = train.mask(np.array([[True, False], [False, True]]))
    assert encoder.transform(masked).tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]


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
