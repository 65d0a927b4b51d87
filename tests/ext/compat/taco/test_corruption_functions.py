"""The arguments of TACO's current code: ``inplace``, ``col_idx`` and ``precomputed_stds``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from karat.errors import DataError, DefinitionError
from karat.ext.compat.taco import (
    CORRUPTION_FUNCS,
    apply_categorical_remap,
    apply_missingness,
    apply_noise_injection,
    apply_rare_class_dilution,
    apply_scaling_errors,
)

POSITIONS = {"num": [0, 1], "cat": [2]}


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    words = rng.choice(["x", "y", "z"], 200)
    return pd.DataFrame({"a": rng.normal(0, 2, 200), "b": rng.normal(9, 1, 200), "c": words})


@pytest.fixture
def labels() -> pd.Series:
    return pd.Series([0, 0, 0, 1] * 50)


@pytest.mark.parametrize("name", CORRUPTION_FUNCS)
def test_all_columns_by_position_is_the_plain_call_for_those_it_can_change(name, table, labels):
    before = table.copy()
    changed, _ = CORRUPTION_FUNCS[name](table, labels, 0.4, rng=3, col_idx=POSITIONS)
    assert table.equals(before), "the input changed"
    differs = [column for column in table if not changed[column].equals(table[column])]
    if name == "rare_class_dilution":
        assert len(changed) == 180
    else:
        numbers, categories = {"a", "b"}, {"c"}
        reach = {"scaling_error": numbers, "categorical_remap": categories}
        reach |= dict.fromkeys(("noise_gaussian", "noise_uniform"), numbers)
        assert differs and set(differs) <= reach.get(name, numbers | categories)


def test_columns_that_are_not_listed_do_not_change(table, labels):
    only = {"num": [1], "cat": []}
    noisy, _ = CORRUPTION_FUNCS["noise_gaussian"](table, labels, 0.4, col_idx=only)
    assert noisy["a"].equals(table["a"]) and noisy["c"].equals(table["c"])
    assert not np.isclose(noisy["b"], table["b"]).any()
    nothing, _ = apply_scaling_errors(table, labels, 0.4, col_idx={"num": [], "cat": [2]})
    assert nothing.equals(table)
    with pytest.raises(DefinitionError, match="no column 7, X has 3 columns"):
        apply_missingness(table, labels, col_idx={"num": [7]})


@pytest.mark.parametrize("name", CORRUPTION_FUNCS)
def test_inplace_changes_what_is_passed_to_what_is_returned_otherwise(name, table, labels):
    wanted = CORRUPTION_FUNCS[name](table, labels, 0.4, rng=5)
    own, own_labels = table.copy(), labels.copy()
    changed, changed_labels = CORRUPTION_FUNCS[name](own, own_labels, 0.4, rng=5, inplace=True)
    assert changed.equals(wanted[0]) and changed_labels.equals(wanted[1])
    assert (changed is own) == (name != "rare_class_dilution")  # rows are not dropped in place


def test_inplace_needs_a_table(table, labels):
    with pytest.raises(DataError, match="needs a table"):
        apply_noise_injection(table[["a"]].to_numpy(), labels, inplace=True)


def test_given_standard_deviations_are_the_size_of_the_noise(table, labels):
    own = table[["a", "b"]].std(ddof=0)
    plain, _ = apply_noise_injection(table, labels, 0.3, rng=2)
    for given in (own, own.to_numpy(), own.tolist()):
        noisy, _ = apply_noise_injection(table, labels, 0.3, rng=2, precomputed_stds=given)
        assert np.allclose(noisy["a"], plain["a"])
    one = {"num": [0]}
    wide, _ = apply_noise_injection(table, labels, 0.3, rng=2, precomputed_stds=[50], col_idx=one)
    assert (wide["a"] - table["a"]).std() == pytest.approx(15, rel=0.15)
    constant = table.assign(a=1.0)  # its own standard deviation is 0
    noisy, _ = apply_noise_injection(constant, labels, 0.5, gaussian=False, precomputed_stds=own)
    assert 0.5 < (noisy["a"] - 1).abs().max() <= 1.01
    with pytest.raises(DefinitionError, match="3 values for 2 columns of numbers"):
        apply_noise_injection(table, labels, precomputed_stds=[1, 2, 3])


def test_functions_are_those_of_the_table_of_corruptions(table, labels):
    pairs = [
        (apply_missingness(table, labels, 0.3), "missingness_mcar"),
        (apply_missingness(table, labels, 0.3, mnar=True), "missingness_mnar"),
        (apply_scaling_errors(table, labels, 0.3), "scaling_error"),
        (apply_categorical_remap(table, labels, 0.3), "categorical_remap"),
        (apply_noise_injection(table, labels, 0.3), "noise_gaussian"),
        (apply_noise_injection(table, labels, 0.3, gaussian=False), "noise_uniform"),
        (apply_rare_class_dilution(table, labels, 0.3), "rare_class_dilution"),
    ]
    for (changed, _), name in pairs:
        wanted, _ = CORRUPTION_FUNCS[name](table, labels, 0.3)
        assert changed.equals(wanted), name


def test_the_class_to_dilute_can_be_named(table, labels):
    rest, kept = apply_rare_class_dilution(table, labels, 0.4, minority_label=0)
    assert kept.value_counts().to_dict() == {0: 90, 1: 50} and len(rest) == 140
