from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.data.related import related


def test_unrelated_rows_are_groups_of_one():
    assert related(pd.DataFrame({"a": list("xyz")})).tolist() == [0, 1, 2]
    assert related(pd.DataFrame({"a": list("xyx")})).tolist() == [0, 1, 0]


def test_three_fields_and_chains():
    frame = pd.DataFrame({"a": list("acx"), "b": list("bdy"), "c": list("cez")})
    assert related(frame).tolist() == [0, 0, 1]


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=15))
def test_groups_equal_a_graph_search(pairs):
    found = related(pd.DataFrame(pairs).astype(str))
    groups = [{i} for i in range(len(pairs))]
    for i, one in enumerate(pairs):
        for j, other in enumerate(pairs):
            if set(one) & set(other):
                joined = groups[i] | groups[j]
                for k in joined:
                    groups[k] = joined
    alike = np.array([[j in groups[i] for j in range(len(pairs))] for i in range(len(pairs))])
    assert ((found[:, None] == found) == alike).all()
