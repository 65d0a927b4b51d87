"""Missing numbers are the median of their column, as in scikit-learn."""

import warnings

import numpy as np
import pytest
from sklearn.impute import SimpleImputer

from karat.models.tables.median_imputer import MedianImputer


@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("rows", [1, 2, 9, 50])
def test_medians_are_those_of_scikit_learns_imputer(missing, rows):
    rng = np.random.default_rng(rows)
    numbers = rng.normal(size=(rows, 4)).round(1) * 10.0 ** np.arange(-3, 5, 2)
    numbers[rng.random(numbers.shape) < missing] = np.nan
    theirs = SimpleImputer(strategy="median", keep_empty_features=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        imputed = MedianImputer().fit_transform(numbers)
    assert imputed.tolist() == theirs.fit_transform(numbers).tolist()
