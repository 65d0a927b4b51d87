"""The seven corruptions of the document, and the errors of its code."""

import warnings

import numpy as np
import pandas as pd
import pytest

from karat.core.registry import corruptions
from karat.corruptions.changed_cells import changed_share

SEVEN = [
    *("missingness_mcar", "missingness_mnar", "scaling_error", "categorical_remap"),
    *("noise_gaussian", "noise_uniform", "rare_class_dilution"),
]


@pytest.mark.parametrize("name", [name for name in SEVEN if name != "categorical_remap"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_one_block_of_floats_is_no_special_case(name, dtype, order, rng):
    """A frame over one array may be read only, and a flat view of it may be a copy."""
    values = np.asarray(np.random.default_rng(0).random((90, 4)), dtype=dtype, order=order)
    values.setflags(write=False)
    X, y = pd.DataFrame(values), pd.Series([0, 0, 1] * 30)
    assert changed_share((X, y), corruptions.get(name)(X, y, 0.4, rng())) > 0.09


@pytest.mark.parametrize("name", SEVEN[:-1])
def test_every_type_of_number_or_with_levels_is_changed(name, table, rng):
    X = table(60)
    numbers, levels = list(X)[:21], list(X)[21:-4]
    able = {"scaling_error": numbers, "noise_gaussian": numbers, "noise_uniform": numbers}
    for column in able.get(name, levels if name == "categorical_remap" else numbers + levels):
        one = X[[column]]
        found = corruptions.get(name)(one, pd.Series([0, 0, 1] * 20), 0.4, rng())[0]
        assert changed_share(one, found) > 0.1, column


def test_a_remap_of_two_levels_is_never_the_identity_and_texts_give_no_warning(rng):
    X = pd.DataFrame({"c": ["a", "b"] * 5, "w": pd.Series(["a", "b"] * 5, dtype="str")})
    for seed in range(50):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = corruptions.get("categorical_remap")(X, None, 1.0, rng(seed))[0]
        assert found["c"].tolist() == found["w"].tolist() == ["b", "a"] * 5


@pytest.mark.parametrize("name", ["missingness_mnar", "rare_class_dilution"])
def test_positives_need_not_be_one_nor_rare(name, rng):
    X = pd.DataFrame({"x": np.arange(100.0)})
    for rare, common in ((0, 1), (1, 0), ("<30", "NO"), (True, False), (2.0, 1.0)):
        y = pd.Series([rare] * 20 + [common] * 80)
        found = corruptions.get(name)(X, y, 0.5, rng())[0]
        hit = set(X.index) - set(found.dropna().index)
        assert len(hit) == 10 and max(hit) < 20
