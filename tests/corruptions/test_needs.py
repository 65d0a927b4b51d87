"""What corruptions say of themselves, and what a plan can ask before it runs."""

import functools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import karat
from karat.corruptions.needs import NEEDS, by_row, check_severity, corrupts, reason_not
from karat.corruptions.numbers import outliers
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.registry import corruptions

OURS = [name for name in corruptions if corruptions.origin(name).startswith("karat.")]
MINE = [name for name in OURS if {"table", "text"} & set(corruptions.get(name).takes)]
DOCUMENT = [
    *("missingness_mcar", "missingness_mnar", "scaling_error", "categorical_remap"),
    *("noise_gaussian", "noise_uniform", "rare_class_dilution"),
]


def table(kind="classes", **columns):
    truth = ["a", "b", "b"] if kind == "classes" else [0.5, 1.5, 2.5]
    return Dataset.from_table(pd.DataFrame({**columns, "y": truth}), "y", name="t", kind=kind)


def texts(modality="text", kind="classes"):
    frame = pd.DataFrame({"t": ["one", "two", "three"], "y": ["a", "b", "b"]})
    return Dataset.from_columns(frame, ["t"], "y", name="t", modality=modality)


def pairs():
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["z", "x"], "y": ["same", "other"]})
    return Dataset.from_columns(frame, ["a", "b"], "y", name="pairs")


def test_the_names_of_the_document_are_there():
    assert set(DOCUMENT) <= set(OURS)


def test_the_page_has_all_names():
    page = Path(__file__).parents[2] / "docs" / "corruptions.md"
    told = page.read_text(encoding="utf-8")
    assert [name for name in OURS if f"| `{name}` |" not in told] == []
    needs = told.partition("Needs are")[2].partition("##")[0]
    assert [need for need in NEEDS if f"`{need}`" not in needs] == []


@pytest.mark.parametrize("name", MINE)
def test_each_corruption_declares_its_requirements(name):
    part = corruptions.get(name)
    assert set(part.takes) <= {"table", "text", "entity"}
    assert set(part.needs) <= set(NEEDS)
    assert part.range[0] == 0 and part.range[1] in (1, np.inf)


# -- severities -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", MINE)
@pytest.mark.parametrize("severity", [-0.1, np.nan, np.inf, "0.1", True, None])
def test_a_severity_out_of_range_is_refused(name, severity, rng):
    for ask in (
        lambda: check_severity(name, severity),
        lambda: corruptions.get(name)(pd.DataFrame({"x": [1]}), None, severity, rng()),
    ):
        with pytest.raises(DefinitionError, match=f"{name}: severity"):
            ask()


@pytest.mark.parametrize("name", MINE)
def test_only_noise_goes_beyond_one(name):
    if name.startswith("noise"):
        check_severity(name, 9.0)
    else:
        check_severity(name, 1)
        check_severity(name, np.float32(0.25))
        with pytest.raises(DefinitionError, match="0 to 1.*1.5"):
            check_severity(name, 1.5)


# -- reasons --------------------------------------------------------------------------------

NUMBERS = {"x": [1, 2, 3], "z": [0.5, 1.5, 2.5]}
WORDS = {"w": ["u", "v", "w"], "v": ["x", "y", "z"]}
DAYS = {"d": pd.to_datetime(["2020-01-01"] * 3)}


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        (
            table(**NUMBERS),
            {
                "categorical_remap": "categories, text or booleans",
                "unseen_category": "categories or text",
                "date_shift": "dates",
                **dict.fromkeys(
                    [
                        *("typos", "case", "accents", "whitespace"),
                        *("word_drop", "word_swap", "truncation"),
                    ],
                    "text",
                ),
            },
        ),
        (
            table("numbers", **NUMBERS, **WORDS, **DAYS),
            {
                "missingness_mnar": "numbers, not classes",
                "rare_class_dilution": "numbers, not classes",
            },
        ),
        (
            table(**WORDS),
            {
                **dict.fromkeys(
                    [
                        *("noise_gaussian", "noise_uniform", "scaling_error", "outliers"),
                        *("rounding", "sign_flip", "stuck_sensor"),
                    ],
                    "numbers",
                ),
                "date_shift": "dates",
                "missingness_value": "numbers or dates",
                "missingness_mar": "numbers or dates",
            },
        ),
        (table(**NUMBERS, **WORDS, **DAYS), {}),
        (
            table(x=[1, 2, 3]),
            {
                "column_swap": "no two columns",
                "missingness_mar": "only one column",
            },
        ),
    ],
)
def test_the_reason_is_the_same_in_a_plan_and_in_a_call(data, refused, rng):
    for name in MINE:
        if len(data.items.columns) < 2 and name not in refused:
            continue
        reason = reason_not(name, data)
        assert refused.get(name, "") in reason and bool(reason) == (name in refused), name
        y = pd.Series(data.truth)
        if name in refused:
            with pytest.raises(DefinitionError, match=f"corruption {name}: {reason}[.]"):
                corruptions.get(name)(data.items, y, 0.5, rng())
        else:
            corruptions.get(name)(data.items, y, 0.5, rng())


def test_texts_and_entities():
    tables_only = [name for name in MINE if "text" not in corruptions.get(name).takes]
    assert {"noise_gaussian", "missingness_mcar", "date_shift"} <= set(tables_only)
    for name in MINE:
        assert bool(reason_not(name, texts())) == (name in tables_only)
        # an entity is found by its id, so it cannot be repeated
        refused = name in tables_only or name == "duplicate_rows"
        assert ("entities" in reason_not(name, texts("entity"))) == refused


def test_where_questions_are_about_several_items_rows_stay():
    assert by_row(texts()) and not by_row(pairs())
    for name in ("rare_class_dilution", "duplicate_rows", "label_noise"):
        assert "rows" in reason_not(name, pairs())
    assert reason_not("typos", pairs()) == ""


def test_an_entity_asked_about_twice_keeps_its_row():
    frame = pd.DataFrame({"t": ["one", "two", "one"], "y": ["a", "b", "b"]})
    twice = Dataset.from_columns(frame, ["t"], "y", name="t", modality="entity")
    assert by_row(texts("entity")) and not by_row(twice)


def test_hidden_and_other_truths():
    assert "target" in reason_not("rare_class_dilution", texts().blind())
    frame = pd.DataFrame({"t": ["one", "two"], "y": ["two", "one"]})
    items = Dataset.from_columns(frame, ["t"], "y", kind="items")
    assert "items" in reason_not("label_noise", items)
    assert "items" in reason_not("rare_class_dilution", items)
    assert "rows" in reason_not("duplicate_rows", items)


# -- users' own -----------------------------------------------------------------------------


def test_a_plain_function_takes_everything(clean_registry):
    @karat.corruption("mine")
    def mine(X, y, severity, rng):
        return X, y

    assert mine.__dict__ == {} and mine(1, 2, 3, 4) == (1, 2)
    assert reason_not("mine", pairs()) == reason_not("mine", table(**NUMBERS)) == ""
    check_severity("mine", 17.0)


def test_a_custom_corruption_may_declare_requirements(clean_registry):
    @karat.corruption("mine", takes="table", needs=["dates"], range=(0, 3))
    def mine(X, y, severity, rng):
        return X, y

    assert (mine.takes, mine.needs, mine.range) == (("table",), ("dates",), (0, 3))
    assert "texts" in reason_not("mine", texts())
    assert "dates" in reason_not("mine", table(**NUMBERS))
    assert reason_not("mine", table(**DAYS)) == ""
    with pytest.raises(DefinitionError, match="0 to 3.*4"):
        check_severity("mine", 4)


def test_a_partial_of_a_built_in_corruption(clean_registry, rng):
    near = functools.partial(outliers, far=3.0)
    karat.corruption("near")(near)
    assert "numbers" in reason_not("near", table(**WORDS))
    found = corruptions.get("near")(pd.DataFrame({"x": [0.0, 2.0]}), None, 1.0, rng())[0]
    assert set((found["x"] - [0.0, 2.0]).abs()) == {3.0}


def test_an_unknown_need_is_refused(clean_registry):
    karat.corruption("mine", needs=("nmbers",))(lambda X, y, severity, rng: (X, y))
    with pytest.raises(DefinitionError, match='"mine".*"nmbers".*"numbers"'):
        reason_not("mine", table(**NUMBERS))


# -- what is handed in ----------------------------------------------------------------------


def test_arrays_and_seeds_will_do():
    corrupt = corruptions.get("noise_gaussian")
    matrix = np.arange(12.0).reshape(6, 2)
    found, y = corrupt(matrix, [0, 1] * 3, 0.5, 7)
    assert isinstance(found, pd.DataFrame) and y.tolist() == [0, 1] * 3
    again, _ = corrupt(pd.DataFrame(matrix), None, 0.5, np.random.default_rng(7))
    pd.testing.assert_frame_equal(found, again)
    usual, fixed = corrupt(matrix, None, 0.5)[0], corrupt(matrix, None, 0.5, 42)[0]
    pd.testing.assert_frame_equal(usual, fixed)


def test_wrong_lengths_and_types_are_refused(rng):
    corrupt = corruptions.get("missingness_mcar")
    with pytest.raises(DataError, match="3 .*2"):
        corrupt(pd.DataFrame({"x": [1, 2, 3]}), [0, 1], 0.5, rng())
    with pytest.raises(DataError, match="list"):
        corrupt([1, 2], None, 0.5, rng())


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
