"""One-hot words are scikit-learn's, to the bit."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.preprocessing import OneHotEncoder

from karat.models.one_hot import OneHotWords

WORDS = st.sampled_from(["", "a", "A", "b", "é", "数", "🙂", "a b", "zz", "0"])


def frame(cells, dtype):
    return pd.DataFrame(cells, columns=["one", "two"]).astype(dtype)


def theirs(least):
    return OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=least, sparse_output=False
    )


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=30),
    st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=10),
    st.sampled_from([None, 1, 2, 5, 0.01, 0.1, 0.3, 0.9]),
    st.sampled_from(["str", object, "string"]),
)
def test_it_is_scikit_learns(train, test, least, dtype):
    train, test = frame(train, dtype), frame(test, dtype)
    ours = OneHotWords(least).fit(train)
    wanted = theirs(least).fit(train)
    for rows in (train, test):
        assert np.array_equal(ours.transform(rows), wanted.transform(rows))


def test_a_new_word_is_a_rare_one_or_none():
    train = pd.DataFrame({"w": ["a"] * 5 + ["b"] * 5 + ["c"]})
    new = pd.DataFrame({"w": ["new", "c", "a"]})
    assert OneHotWords(2).fit(train).transform(new).tolist() == [[0, 0, 1], [0, 0, 1], [1, 0, 0]]
    assert OneHotWords().fit(train).transform(new).tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("least", [None, 3, 0.5])
def test_no_rows_have_no_ones(least):
    train = pd.DataFrame({"w": ["a", "b"]})
    assert clone(OneHotWords(least)).fit(train).transform(train[:0]).shape[0] == 0
