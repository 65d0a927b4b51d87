"""Kinds of columns, requirements of corruptions, and affected shares."""

import functools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.core.dataset import MODALITIES, Dataset
from karat.core.registry import corruptions
from karat.corruptions.applicability import (
    CATEGORY,
    DATE,
    FLAG,
    NEEDS,
    NUMBER,
    OTHER,
    TEXT,
    affected_cells,
    affected_places,
    by_row,
    check_severity,
    column_generators,
    corrupts,
    count,
    count_up,
    floats,
    from_rows,
    kind,
    levels,
    places,
    spread,
    unmet_reason,
    with_columns,
    with_values,
)
from karat.corruptions.table_noise import outliers
from karat.errors import DataError, DefinitionError


def test_the_kind_depends_only_on_the_dtype(table):
    X = table(5)
    found = {name: kind(column) for name, column in X.items()}
    other = {
        **dict.fromkeys(["bool", "boolean"], FLAG),
        **dict.fromkeys(["category", "ordered", "codes"], CATEGORY),
        **dict.fromkeys(["object", "string", "text"], TEXT),
        **dict.fromkeys(["date", "day", "zone"], DATE),
        "duration": OTHER,
    }
    assert found == {**dict.fromkeys(list(X)[:21], NUMBER), **other}
    # the cells are not looked at: every fold says the same
    assert {name: kind(column) for name, column in X[:0].items()} == found


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series([1, 2], dtype=object), TEXT),
        (pd.Series([None, None], dtype=object), TEXT),
        (pd.Series([np.nan, np.nan]), NUMBER),
        (pd.Series([1 + 2j]), OTHER),
        (pd.Series(pd.period_range("2020", periods=2)), OTHER),
        (pd.Series(pd.interval_range(0, 2)), OTHER),
        (pd.Series(pd.arrays.SparseArray([0, 1])), NUMBER),
        (pd.Series(pd.arrays.SparseArray([True, False])), FLAG),
        ("int8[pyarrow]", NUMBER),
        ("double[pyarrow]", NUMBER),
        ("bool[pyarrow]", FLAG),
        ("large_string[pyarrow]", TEXT),
        ("timestamp[us][pyarrow]", DATE),
        ("string", TEXT),
    ],
)
def test_kinds_of_odd_columns(column, expected):
    if isinstance(column, str):
        pytest.importorskip("pyarrow")
        column = pd.Series([None, None], dtype=column)
    assert kind(column) == expected


def test_places_are_positions_whatever_the_names():
    X = pd.DataFrame([[1, "a", 0.5, "b"]])
    X.columns = pd.Index([("a", 1), None, 7, 7], tupleize_cols=False)
    assert places(X, NUMBER) == [0, 2]
    assert places(X, TEXT) == [1, 3]
    changed = with_columns(X, {3: pd.Series(["new"])})
    assert changed.iloc[0].tolist() == [1, "a", 0.5, "new"]
    assert X.iloc[0, 3] == "b"


@pytest.mark.parametrize(
    ("dtype", "new", "expected"),
    [
        ("int8", 100.0, "int8"),
        ("int8", 200.0, "int16"),
        ("int8", 0.5, "float64"),
        ("int64", 2.0**62, "int64"),
        ("int64", 2.0**63, "float64"),
        ("uint8", 300.0, "uint16"),
        ("uint8", -1.0, "int16"),
        ("uint32", -1.0, "int64"),
        ("uint64", -1.0, "float64"),
        ("uint64", 2.0**63, "uint64"),
        ("float16", 65504.0, "float16"),
        ("float16", 65505.0, "float32"),
        ("float16", 1e300, "float64"),
        ("float32", 1e39, "float64"),
        ("Int8", 200.0, "Int16"),
        ("Int64", 0.5, "Float64"),
        ("UInt8", -1.0, "Int16"),
        ("Float32", 1.5, "Float32"),
        ("Float32", 1e39, "Float64"),
        ("int8[pyarrow]", 200.0, "int16[pyarrow]"),
        ("int64[pyarrow]", 0.5, "double[pyarrow]"),
        ("float[pyarrow]", 0.5, "float[pyarrow]"),
    ],
)
def test_numbers_go_into_the_narrowest_type_that_holds_them(dtype, new, expected):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    column = pd.Series([1, 2, 3], dtype=dtype, index=list("abc"), name="n")
    found = with_values(column, np.array([1]), np.array([new]))
    assert found.dtype == expected
    assert found.tolist() == [1, new, 3]
    assert (found.name, found.index.tolist()) == ("n", list("abc"))
    assert column.tolist() == [1, 2, 3]


def test_missing_infinite_and_sparse_values():
    found = with_values(pd.Series([1, None], dtype="Int8"), np.array([0]), np.array([0.5]))
    assert found.isna().tolist() == [False, True]
    assert floats(found)[0] == 0.5
    found = with_values(pd.Series([1.0, np.inf]), np.array([0]), np.array([np.inf]))
    assert found.tolist() == [np.finfo(float).max, np.inf]
    found = with_values(pd.Series(pd.arrays.SparseArray([0, 0, 1])), np.array([0]), np.array([5.0]))
    assert found.dtype == "int64" and found.tolist() == [5, 0, 1]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 3.0], 1.0),
        ([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], 2.0),
        ([1.0, 3.0, np.nan, np.inf, -np.inf], 1.0),
        ([0.1] * 7, 0.0),
        ([np.nan], 0.0),
        ([], 0.0),
        ([1e308, -1e308], 1e308),
    ],
)
def test_the_spread_is_the_standard_deviation_of_what_is_there(values, expected):
    assert spread(np.array(values)) == pytest.approx(expected)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", "a", None, "b"], dtype=object),
        pd.Series(["b", "a", None, "b"], dtype="string"),
        pd.Series(pd.Categorical(["b", "a", None, "b"], list("cba"))),
        pd.Series([True, False, None, True], dtype="boolean"),
        pd.Series([5, "x", np.nan, 5], dtype=object),
    ],
)
def test_levels_are_those_that_are_there(column):
    codes, rows = levels(column)
    assert codes[2] == -1
    assert codes[0] == codes[3] != codes[1]
    assert sorted(codes) == [-1, 0, *([0, 1] if codes[0] == 0 else [1, 1])]
    assert [codes[row] for row in rows] == [0, 1]
    codes, rows = levels(pd.Series([[1], [2]], dtype=object))  # lists have no level
    assert codes.tolist() == [-1, -1] and len(rows) == 0


def test_cells_of_other_rows_keep_index_name_and_type(table):
    X = table(4).set_axis(list("wxyz"))
    for name, column in X.items():
        found = from_rows(column, np.array([3, 3, 0, 1]))
        assert found.dtype == column.dtype and found.name == name
        assert found.index.tolist() == list("wxyz")
        assert found.tolist() == [column.iloc[i] for i in (3, 3, 0, 1)]


OURS = [name for name in corruptions if corruptions.origin(name).startswith("karat.")]
MINE = [name for name in OURS if {"table", "text"} & set(corruptions.get(name).takes)]


def table(kind="classification", **columns):
    truth = ["a", "b", "b"] if kind == "classification" else [0.5, 1.5, 2.5]
    return Dataset.from_table(pd.DataFrame({**columns, "y": truth}), "y", name="t", kind=kind)


def texts(modality="text", kind="classification"):
    frame = pd.DataFrame({"t": ["one", "two", "three"], "y": ["a", "b", "b"]})
    return Dataset.from_columns(frame, ["t"], "y", name="t", modality=modality)


def pairs():
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["z", "x"], "y": ["same", "other"]})
    return Dataset.from_columns(frame, ["a", "b"], "y", name="pairs")


def test_the_page_has_all_names():
    page = Path(__file__).parents[2] / "docs" / "corruptions.md"
    told = page.read_text(encoding="utf-8")
    assert [name for name in OURS if f"| `{name}` |" not in told] == []
    needs = told.partition("Needs are")[2].partition("##")[0]
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


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        (table(**NUMBERS), REFUSED["numbers"]),
        (table("regression", **NUMBERS, **WORDS, **DAYS), REFUSED["regression"]),
        (table(**WORDS), REFUSED["words"]),
        (table(**NUMBERS, **WORDS, **DAYS), {}),
        (table(x=[1, 2, 3]), REFUSED["one"]),
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
        assert bool(unmet_reason(name, texts())) == (name in tables_only)
        # an entity is found by its id, so it cannot be repeated
        refused = name in tables_only or name == "duplicate_rows"
        assert ("entities" in unmet_reason(name, texts("entity"))) == refused


def test_where_questions_are_about_several_items_rows_stay():
    assert by_row(texts()) and not by_row(pairs())
    for name in ("rare_class_dilution", "duplicate_rows", "label_noise"):
        assert "rows" in unmet_reason(name, pairs())
    assert unmet_reason("typos", pairs()) == ""
    frame = pd.DataFrame({"t": ["one", "two", "one"], "y": ["a", "b", "b"]})
    twice = Dataset.from_columns(frame, ["t"], "y", name="t", modality="entity")
    assert by_row(texts("entity")) and not by_row(twice)


def test_hidden_and_other_truths():
    assert "target" in unmet_reason("rare_class_dilution", texts().blind())
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
    assert unmet_reason("mine", pairs()) == unmet_reason("mine", table(**NUMBERS)) == ""
    check_severity("mine", 17.0)
    declared = karat.corruption("dated", takes="table", needs=["dates"], range=(0, 3))(mine)
    assert (declared.takes, declared.needs, declared.range) == (("table",), ("dates",), (0, 3))
    assert "texts" in unmet_reason("dated", texts())
    assert "dates" in unmet_reason("dated", table(**NUMBERS))
    assert unmet_reason("dated", table(**DAYS)) == ""
    with pytest.raises(DefinitionError, match="0 to 3.*4"):
        check_severity("dated", 4)


def test_a_partial_of_a_built_in_corruption(clean_registry, rng):
    near = functools.partial(outliers, far=3.0)
    karat.corruption("near")(near)
    assert "numbers" in unmet_reason("near", table(**WORDS))
    found = corruptions.get("near")(pd.DataFrame({"x": [0.0, 2.0]}), None, 1.0, rng())[0]
    assert set((found["x"] - [0.0, 2.0]).abs()) == {3.0}


def test_an_unknown_need_is_refused(clean_registry):
    karat.corruption("mine", needs=("nmbers",))(lambda X, y, severity, rng: (X, y))
    with pytest.raises(DefinitionError, match='"mine".*"nmbers".*"numbers"'):
        unmet_reason("mine", table(**NUMBERS))


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


steady = settings(deadline=None, derandomize=True, max_examples=200)
severities = st.floats(0, 1)


@pytest.mark.parametrize(
    ("size", "severity", "down", "up"),
    [
        (10, 0.0, 0, 0),
        (10, 0.1, 1, 1),
        (30, 0.1, 3, 3),  # 0.1 * 30 is 3.0000000000000004
        (100, 0.29, 29, 29),  # 0.29 * 100 is 28.999999999999996
        (7, 0.2, 1, 2),
        (7, 0.4, 2, 3),
        (3, 1e-12, 0, 1),
        (5, 1.0, 5, 5),
        (0, 0.5, 0, 0),
    ],
)
def test_shares_by_hand(size, severity, down, up):
    assert count(size, severity) == down
    assert count_up(size, severity) == up


@steady
@given(st.integers(0, 10**6), severities, severities)
def test_more_severity_is_never_less(size, one, other):
    low, high = sorted([one, other])
    assert 0 <= count(size, low) <= count(size, high) <= size
    assert 0 <= count_up(size, low) <= count_up(size, high) <= size
    assert count(size, low) <= count_up(size, low) <= count(size, low) + 1


@steady
@given(st.integers(0, 50), st.integers(0, 5), severities, severities, st.integers(0, 9))
def test_less_is_the_beginning_of_more(rows, columns, one, other, seed):
    low, high = sorted([one, other])
    few, many = (affected_places(rows, s, np.random.default_rng(seed)) for s in (low, high))
    assert many[: len(few)].tolist() == few.tolist()
    assert len(set(many.tolist())) == len(many) == count(rows, high)
    few, many = (affected_cells(rows, columns, s, np.random.default_rng(seed)) for s in (low, high))
    assert few.shape == (columns, rows)
    assert few.sum() == count(rows * columns, low)
    assert (few <= many).all()


def test_a_column_draws_alone():
    one, two = column_generators(np.random.default_rng(1), 2)
    expected = two.random(3)
    one, two = column_generators(np.random.default_rng(1), 2)
    one.random(50)
    assert two.random(3).tolist() == expected.tolist()
    assert one.random() != two.random()
