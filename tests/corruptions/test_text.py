"""Typos: letters change places, none is lost, and more slip with more severity."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.corruptions.text import typos

steady = settings(deadline=None, derandomize=True, max_examples=60)


def rng(seed=3):
    return np.random.default_rng(seed)


def slipped(texts, severity, seed=3):
    return typos(pd.Series(texts, dtype=object), None, severity, rng(seed))[0].tolist()


def test_certain_slips_swap_every_pair():
    assert slipped(["abcdef", "abc", "a", "", "xy"], 1.0) == ["badcfe", "bac", "a", "", "yx"]


@steady
@given(st.lists(st.text(max_size=12), min_size=1, max_size=5), st.floats(0, 1), st.floats(0, 1))
def test_no_letter_is_lost_and_what_slips_slips_again(texts, one, other):
    low, high = sorted([one, other])
    few, many = slipped(texts, low), slipped(texts, high)
    for text, less, more in zip(texts, few, many, strict=True):
        assert sorted(text) == sorted(less) == sorted(more)
        for i in range(0, len(text) - 1, 2):
            if less[i : i + 2] != text[i : i + 2]:
                assert more[i : i + 2] == less[i : i + 2]
    assert slipped(texts, 0.0) == texts


def test_the_share_of_pairs_is_the_severity():
    texts = ["ab" * 50] * 100
    for severity in (0.1, 0.4):
        found = "".join(slipped(texts, severity))
        share = sum(found[i : i + 2] == "ba" for i in range(0, len(found), 2)) / 5000
        assert share == pytest.approx(severity, abs=5 * np.sqrt(severity * 0.9 / 5000))


def test_index_name_type_and_missing_texts_stay():
    texts = pd.Series(["abcd", None, "efgh"], index=[7, 8, 9], name="title", dtype=object)
    found, y = typos(texts, pd.Series([1, 2, 3]), 1.0, rng())
    assert found.index.tolist() == [7, 8, 9]
    assert found.name == "title"
    assert found.tolist() == ["badc", None, "fehg"]
    assert y.tolist() == [1, 2, 3]
    assert texts.tolist() == ["abcd", None, "efgh"]
    strings = texts.astype("str")
    assert typos(strings, None, 1.0, rng())[0].dtype == strings.dtype


def test_in_a_table_only_words_have_letters():
    X = pd.DataFrame(
        {
            "word": ["abcd", "ef"],
            5: [1, 2],
            "kind": pd.Categorical(["ab", "cd"]),
            "mixed": pd.Series(["ab", 3], dtype=object),
        }
    )
    before = X.copy(deep=True)
    found, _ = typos(X, None, 1.0, rng())
    assert found["word"].tolist() == ["badc", "fe"]
    assert found["mixed"].tolist() == ["ba", 3]
    pd.testing.assert_frame_equal(found[[5, "kind"]], X[[5, "kind"]])
    pd.testing.assert_frame_equal(X, before)
