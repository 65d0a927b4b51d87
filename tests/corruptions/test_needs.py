"""What corruptions need of data, and why data are refused."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.dataset import MODALITIES, Dataset
from karat.core.registry import corruptions
from karat.corruptions.cell_noise import outliers
from karat.corruptions.needs import NEEDS, check_severity, corrupts, has_items_by_row, unmet_reason
from karat.errors import DataError, DefinitionError

OURS = [name for name in corruptions if corruptions.origin(name).startswith("karat.")]
MINE = [name for name in OURS if {"table", "text"} & set(corruptions.get(name).takes)]
NUMBERS = {"x": [1, 2, 3], "z": [0.5, 1.5, 2.5]}
WORDS = {"w": ["u", "v", "w"], "v": ["x", "y", "z"]}
DAYS = {"d": pd.to_datetime(["2020-01-01"] * 3)}
TEXTS = ["typos", "case", "accents", "whitespace", "word_drop", "word_swap", "truncation"]
TEXTS += ["misspellings"]
NUMERIC = ["noise_gaussian", "noise_uniform", "scaling_error", "outliers"]
NUMERIC += ["rounding", "sign_flip", "stuck_sensor"]
#: why corruptions are refused, by table
REFUSED = {
    "numbers": {
        "categorical_remap": "categories, text or booleans",
        "unseen_category": "categories or text",
        "date_shift": "dates",
        **dict.fromkeys(TEXTS, "text"),
    },
    "regression": dict.fromkeys(["missingness_mnar", "rare_class_dilution"], "not classes"),
    "words": {
        **dict.fromkeys(NUMERIC, "numbers"),
        "date_shift": "dates",
        **dict.fromkeys(["missingness_value", "missingness_mar"], "numbers or dates"),
    },
    "one": {"column_swap": "no two columns", "missingness_mar": "only one column"},
}


def some_table(kind="classification", **columns):
    truth = ["a", "b", "b"] if kind == "classification" else [0.5, 1.5, 2.5]
    return Dataset.from_table(pd.DataFrame({**columns, "y": truth}), "y", name="t", kind=kind)


def some_texts(modality="text", kind="classification"):
    frame = pd.DataFrame({"t": ["one", "two", "three"], "y": ["a", "b", "b"]})
    return Dataset.from_columns(frame, ["t"], "y", name="t", modality=modality)


def some_pairs():
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["z", "x"], "y": ["same", "other"]})
    return Dataset.from_columns(frame, ["a", "b"], "y", name="pairs")


def test_the_page_has_all_names():
    page = Path(__file__).parents[2] / "docs" / "corruptions.md"
    text = page.read_text(encoding="utf-8")
    assert [name for name in OURS if f"| `{name}` |" not in text] == []
    needs = text.partition("Needs are")[2].partition("##")[0]
    assert [need for need in NEEDS if f"`{need}`" not in needs] == []


@pytest.mark.parametrize("name", MINE)
def test_each_corruption_declares_its_requirements(name):
    part = corruptions.get(name)
    assert set(part.takes) <= set(MODALITIES)
    assert set(part.needs) <= set(NEEDS)
    assert part.range == (0, np.inf if name.startswith("noise") else 1)
    check_severity(name, np.float32(0.25))
    if name.startswith("noise"):
        check_severity(name, 9.0)
    else:
        check_severity(name, 1)
        with pytest.raises(DefinitionError, match="0 to 1.*1.5"):
            check_severity(name, 1.5)


@pytest.mark.parametrize("name", MINE)
@pytest.mark.parametrize("severity", [-0.1, np.nan, np.inf, "0.1", True, None])
def test_a_severity_out_of_range_is_refused(name, severity, rng):
    for ask in (
        lambda: check_severity(name, severity),
        lambda: corruptions.get(name)(pd.DataFrame({"x": [1]}), None, severity, rng()),
    ):
        with pytest.raises(DefinitionError, match=f"{name}: severity"):
            ask()


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        (some_table(**NUMBERS), REFUSED["numbers"]),
        (some_table("regression", **NUMBERS, **WORDS, **DAYS), REFUSED["regression"]),
        (some_table(**WORDS), REFUSED["words"]),
        (some_table(**NUMBERS, **WORDS, **DAYS), {}),
        (some_table(x=[1, 2, 3]), REFUSED["one"]),
    ],
)
def test_the_reason_is_the_same_in_a_plan_and_in_a_call(data, refused, rng):
    for name in MINE:
        if len(data.items.columns) < 2 and name not in refused:
            continue
        reason = unmet_reason(name, data)
        assert refused.get(name, "") in reason and bool(reason) == (name in refused), name
        y = pd.Series(data.target)
        if name in refused:
            with pytest.raises(DefinitionError, match=f"corruption {name}: {reason}[.]"):
                corruptions.get(name)(data.items, y, 0.5, rng())
        else:
            corruptions.get(name)(data.items, y, 0.5, rng())


def test_texts_and_entities():
    tables_only = [name for name in MINE if "text" not in corruptions.get(name).takes]
    assert {"noise_gaussian", "missingness_mcar", "date_shift"} <= set(tables_only)
    for name in MINE:
        assert bool(unmet_reason(name, some_texts())) == (name in tables_only)
        # an entity is found by its id, so it cannot be repeated
        refused = name in tables_only or name == "duplicate_rows"
        assert ("entities" in unmet_reason(name, some_texts("entity"))) == refused


def test_where_questions_are_about_several_items_rows_stay():
    assert has_items_by_row(some_texts()) and not has_items_by_row(some_pairs())
    for name in ("rare_class_dilution", "duplicate_rows", "label_noise"):
        assert "rows" in unmet_reason(name, some_pairs())
    assert unmet_reason("typos", some_pairs()) == ""
    frame = pd.DataFrame({"t": ["one", "two", "one"], "y": ["a", "b", "b"]})
    twice = Dataset.from_columns(frame, ["t"], "y", name="t", modality="entity")
    assert has_items_by_row(some_texts("entity")) and not has_items_by_row(twice)


def test_hidden_and_other_truths():
    assert "target" in unmet_reason("rare_class_dilution", some_texts().blind())
    frame = pd.DataFrame({"t": ["one", "two"], "y": ["two", "one"]})
    items = Dataset.from_columns(frame, ["t"], "y", kind="items")
    assert "items" in unmet_reason("label_noise", items)
    assert "items" in unmet_reason("rare_class_dilution", items)
    assert "rows" in unmet_reason("duplicate_rows", items)


def test_a_plain_function_takes_everything_or_declares_requirements(clean_registry):
    def mine(X, y, severity, rng):
        return X, y

    karat.corruption("mine")(mine)
    assert mine.__dict__ == {} and mine(1, 2, 3, 4) == (1, 2)
    assert unmet_reason("mine", some_pairs()) == unmet_reason("mine", some_table(**NUMBERS)) == ""
    check_severity("mine", 17.0)
    declared = karat.corruption("dated", takes="table", needs=["dates"], range=(0, 3))(mine)
    assert (declared.takes, declared.needs, declared.range) == (("table",), ("dates",), (0, 3))
    assert "texts" in unmet_reason("dated", some_texts())
    assert "dates" in unmet_reason("dated", some_table(**NUMBERS))
    assert unmet_reason("dated", some_table(**DAYS)) == ""
    with pytest.raises(DefinitionError, match="0 to 3.*4"):
        check_severity("dated", 4)


def test_a_partial_of_a_built_in_corruption(clean_registry, rng):
    near = functools.partial(outliers, far=3.0)
    karat.corruption("near")(near)
    assert "numbers" in unmet_reason("near", some_table(**WORDS))
    found = corruptions.get("near")(pd.DataFrame({"x": [0.0, 2.0]}), None, 1.0, rng())[0]
    assert set((found["x"] - [0.0, 2.0]).abs()) == {3.0}


def test_an_unknown_need_is_refused(clean_registry):
    karat.corruption("mine", needs=("nmbers",))(lambda X, y, severity, rng: (X, y))
    with pytest.raises(DefinitionError, match='"mine".*"nmbers".*"numbers"'):
        unmet_reason("mine", some_table(**NUMBERS))


def test_arrays_and_seeds_will_do_and_wrong_lengths_and_types_are_refused():
    corrupt = corruptions.get("noise_gaussian")
    matrix = np.arange(12.0).reshape(6, 2)
    found, y = corrupt(matrix, [0, 1] * 3, 0.5, 7)
    assert isinstance(found, pd.DataFrame) and y.tolist() == [0, 1] * 3
    again, _ = corrupt(pd.DataFrame(matrix), None, 0.5, np.random.default_rng(7))
    pd.testing.assert_frame_equal(found, again)
    usual, fixed = corrupt(matrix, None, 0.5)[0], corrupt(matrix, None, 0.5, 42)[0]
    pd.testing.assert_frame_equal(usual, fixed)
    with pytest.raises(DataError, match="6 .*2"):
        corrupt(matrix, [0, 1], 0.5)
    with pytest.raises(DataError, match="list"):
        corrupt([1, 2], None, 0.5)


def test_severity_zero_does_not_call_the_corruption(clean_registry, rng):
    @corrupts("never", needs=("dates",))
    def never(X, y, severity, rng):
        """Be asked."""
        raise AssertionError

    X = pd.DataFrame({"x": [1]})
    found, y = never(X, None, 0, rng())
    assert found is not X and found.equals(X) and y is None
    with pytest.raises(DefinitionError, match="never: .*dates"):
        never(X, None, 0.1, rng())
