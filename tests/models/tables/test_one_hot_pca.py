"""Principal components of the one-hot table."""

import numpy as np
import pandas as pd
import pytest

from karat.models.tables.one_hot_pca import OneHotPca
from karat.models.tables.one_hot_table import OneHotTable


@pytest.mark.parametrize("rows", [60, 8])
def test_pca_is_that_of_the_one_hot_table(rows):
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.normal(size=(rows, 12))).assign(w=rng.choice(["x", "y", "z"], rows))
    found = OneHotPca(3).fit_transform(table)
    expected = PCA(3, svd_solver="full").fit_transform(OneHotTable().fit_transform(table))
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)


def test_pca_signs_do_not_depend_on_rounding():
    """The two dimensions of a truth value weigh the same: the first of them is positive."""
    table = pd.DataFrame({"b": [True, False, True, True]})
    encoder = OneHotPca().fit(table)
    np.testing.assert_allclose(encoder.components_, [[np.sqrt(0.5), -np.sqrt(0.5)]])
    np.testing.assert_allclose(encoder.transform(table)[:, 0] * np.sqrt(8), [-1, 3, -1, -1])


def test_pca_drops_components_of_rounding_errors():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]})
    table = table.assign(b=table["a"] * 2, c=1.0)
    assert OneHotPca(3).fit_transform(table).shape == (4, 1)
    assert OneHotPca(3).fit_transform(table[["c"]]).tolist() == [[0.0]] * 4
