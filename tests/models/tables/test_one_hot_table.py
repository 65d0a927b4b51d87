"""One-hot words, against scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from karat.errors import DefinitionError
from karat.models.tables.one_hot_table import OneHotTable, OneHotWords

ONE_HOT_WORDS = st.sampled_from(["", "a", "A", "b", "é", "数", "🙂", "a b", "zz", "0"])


def frame(cells, dtype):
    return pd.DataFrame(cells, columns=["one", "two"]).astype(dtype)


def theirs(least):
    return OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=least, sparse_output=False
    )


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(ONE_HOT_WORDS, ONE_HOT_WORDS), min_size=1, max_size=30),
    st.lists(st.tuples(ONE_HOT_WORDS, ONE_HOT_WORDS), min_size=1, max_size=10),
    st.sampled_from([None, 1, 2, 5, 0.01, 0.1, 0.3, 0.9]),
    st.sampled_from(["str", object, "string"]),
)
def test_it_is_scikit_learns(train, test, least, dtype):
    train, test = frame(train, dtype), frame(test, dtype)
    ours = OneHotWords(least).fit(train)
    wanted = theirs(least).fit(train)
    for rows in (train, test):
        assert np.array_equal(ours.transform(rows), wanted.transform(rows))


def test_a_missing_category_is_a_level_or_the_most_frequent_one():
    train = pd.DataFrame({"w": ["b", None, "a", "b", "a", None, None]})
    test = pd.DataFrame({"w": [None, "a", "c"]})
    level = OneHotTable(None).fit(train)
    assert level.transform(test).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    # "a" and "b" are equally frequent: scikit-learn's imputer takes the first of them too
    frequent = OneHotTable(None, missing_category="most_frequent").fit(train)
    assert frequent.transform(test).tolist() == [[1, 0], [1, 0], [0, 0]]
    imputer = SimpleImputer(strategy="most_frequent")
    objects = train.astype(object).where(train.notna(), np.nan)
    assert imputer.fit(objects).statistics_.tolist() == ["a"]
    empty = OneHotTable(None, missing_category="most_frequent")
    assert empty.fit_transform(pd.DataFrame({"w": [None, None], "n": [1.0, 2.0]})).shape == (2, 2)
    with pytest.raises(DefinitionError, match="missing_category"):
        OneHotTable(missing_category="median").fit(train)
