"""Composers: numbers worked out by hand."""

import numpy as np
import pytest

from karat.compose import concat, interaction, single
from karat.errors import DefinitionError

a = np.array([[1.0, -2.0], [0.0, 4.0]], dtype=np.float32)
b = np.array([[3.0, 5.0], [-1.0, 4.0]], dtype=np.float32)
c = np.array([[7.0], [8.0]], dtype=np.float32)


def test_single_is_the_vector_itself():
    assert single(a) is a


def test_interaction_is_a_b_distance_and_product():
    assert interaction(a, b).tolist() == [
        [1, -2, 3, 5, 2, 7, 3, -10],
        [0, 4, -1, 4, 1, 0, 0, 16],
    ]


def test_concat_takes_any_number_of_fields_of_any_width():
    assert concat(a, b, c).tolist() == [[1, -2, 3, 5, 7], [0, 4, -1, 4, 8]]
    assert concat(c).tolist() == [[7], [8]]


def test_composers_keep_single_precision():
    assert {f.dtype for f in (interaction(a, b), concat(a, b))} == {np.dtype("float32")}


@pytest.mark.parametrize(("compose", "fields"), [(single, 2), (interaction, 1), (interaction, 3)])
def test_a_wrong_number_of_fields_says_what_to_write(compose, fields):
    with pytest.raises(DefinitionError, match=f"the questions have {fields}"):
        compose(*[a] * fields)
