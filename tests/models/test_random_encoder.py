"""Random vectors by id."""

import numpy as np
import pandas as pd

from karat.models.random_encoder import RandomEncoder

ITEMS = pd.Series(["same text"] * 500, index=[f"id{i}" for i in range(500)])


def test_every_item_has_a_vector_of_its_own_even_if_its_text_is_not():
    vectors = RandomEncoder(16, random_state=0).transform(ITEMS)
    assert vectors.shape == (500, 16)
    assert len(np.unique(vectors, axis=0)) == 500
    part = RandomEncoder(16, random_state=0).transform(ITEMS.iloc[[7, 3]])
    np.testing.assert_array_equal(part, vectors[[7, 3]])


def test_the_seed_decides():
    one, same, other = (RandomEncoder(4, random_state=s).transform(ITEMS) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not (one == other).any()


def test_the_numbers_are_standard_normal():
    vectors = RandomEncoder(64, random_state=0).transform(ITEMS)
    # 32,000 draws: the mean's error is 0.0056, that of the variance 0.0079
    assert abs(vectors.mean()) < 4 * 0.0056
    assert abs(vectors.var() - 1) < 4 * 0.0079
    nearest = np.corrcoef(vectors.T) - np.eye(64)
    assert np.abs(nearest).max() < 0.25


def test_a_list_is_numbered_as_a_range():
    encoder = RandomEncoder(4, random_state=0)
    np.testing.assert_array_equal(
        encoder.transform(["a", "b"]), encoder.transform(pd.Series(["x", "y"]))
    )
