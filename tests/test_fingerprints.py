"""Fingerprints: equal content, equal hash; anything else, another one."""

import subprocess
import sys
from itertools import combinations

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.fingerprints import fingerprint

steady = settings(deadline=None, derandomize=True, max_examples=60)

LONG = np.arange(5000)
DIFFERENT = {
    "ints": pd.Series([1, 2]),
    "other ints": pd.Series([1, 3]),
    "order": pd.Series([2, 1]),
    "floats": pd.Series([1.0, 2.0]),
    "small ints": pd.Series([1, 2], dtype="int8"),
    "nullable": pd.Series([1, 2], dtype="Int64"),
    "text": pd.Series(["1", "2"]),
    "mixed": pd.Series([1, "2"], dtype=object),
    "mixed the other way": pd.Series(["1", 2], dtype=object),
    "objects": pd.Series([1, 2], dtype=object),
    "truth values": pd.Series([True, False]),
    "true as object": pd.Series([True, 2], dtype=object),
    "none": pd.Series([1, None], dtype=object),
    "nan": pd.Series([1, np.nan], dtype=object),
    "index": pd.Series([1, 2], index=[5, 6]),
    "index of text": pd.Series([1, 2], index=["0", "1"]),
    "index of floats": pd.Series([1, 2], index=[0.0, 1.0]),
    "category": pd.Series(["1", "2"], dtype="category"),
    "category with a spare": pd.Series(pd.Categorical(["1", "2"], ["1", "2", "3"])),
    "category in order": pd.Series(pd.Categorical(["1", "2"], ["1", "2"], ordered=True)),
    "category turned": pd.Series(pd.Categorical(["1", "2"], ["2", "1"])),
    "frame": pd.DataFrame({"a": [1, 2]}),
    "other name": pd.DataFrame({"b": [1, 2]}),
    "name of a number": pd.DataFrame({0: [1, 2]}),
    "name of that digit": pd.DataFrame({"0": [1, 2]}),
    "two columns": pd.DataFrame({"a": [1, 2], "b": [1, 2]}),
    "columns turned": pd.DataFrame({"b": [1, 2], "a": [1, 2]}),
    "dates": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"])),
    "zone": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"], utc=True)),
    "arrays": pd.Series([LONG, LONG]),
    "other arrays": pd.Series([LONG, np.where(LONG == 2500, 0, LONG)]),
    "lists": pd.Series([[1], [2]]),
    "tuples": pd.Series([(1,), (2,)]),
    "half a letter": pd.Series(["\ud83d", "x"], dtype=object),
    "another half": pd.Series(["\ud83e", "x"], dtype=object),
    "empty": pd.Series([], dtype=float),
}


def test_no_two_different_things_share_a_fingerprint():
    marks = {name: fingerprint(values) for name, values in DIFFERENT.items()}
    alike = [(a, b) for a, b in combinations(marks, 2) if marks[a] == marks[b]]
    assert alike == []


def test_equal_things_share_one():
    for name, values in DIFFERENT.items():
        assert fingerprint(values) == fingerprint(values.copy(deep=True)), name


def test_it_is_the_same_in_another_process():
    code = (
        "import pandas as pd; from karat.fingerprints import fingerprint;"
        "print(fingerprint(pd.DataFrame({'a': ['x', None, 3], 'b': [1.5, 2, 3]})))"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = fingerprint(pd.DataFrame({"a": ["x", None, 3], "b": [1.5, 2, 3]}))
    assert there.stdout.strip() == here


cells = st.one_of(st.text(), st.integers(), st.floats(allow_nan=False), st.booleans(), st.none())


@steady
@given(st.lists(cells, min_size=1, max_size=4), st.lists(cells, min_size=1, max_size=4))
def test_cells_of_any_type_are_told_apart(one, other):
    def written(values):
        return [(type(value).__name__, repr(value)) for value in values]

    same = written(one) == written(other)
    marks = [fingerprint(pd.Series(values, dtype=object)) for values in (one, other)]
    assert (marks[0] == marks[1]) == same
