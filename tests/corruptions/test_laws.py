"""Properties of all corruptions, on tables and texts of every shape."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.core.registry import corruptions
from karat.corruptions.changed_cells import changed_share
from karat.corruptions.table_columns import kind_of

OURS = [name for name in corruptions if corruptions.origin(name).startswith("karat.")]
TABLES = [name for name in OURS if "table" in corruptions.get(name).takes]
TEXTS = [name for name in OURS if "text" in corruptions.get(name).takes]

steady = settings(deadline=None, derandomize=True, max_examples=8)

NUMBERS = [
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "Int8", "Int64", "UInt16", "Float32", "Float64"),
]
LETTERS = st.text(st.sampled_from("aB é\u0301🙂ß数\t\n?-1"), max_size=8)
#: names that are no text, or hardly
LABELS = [0, 1.5, ("a", 1), "", "é", None, True, pd.Timestamp("2024-01-01"), *range(10, 30)]


def gaps(column, where):
    """Empty some cells of a column, all of them, or none."""
    return column.mask(np.resize(where, len(column)))


def number(draw, rows):
    dtype = draw(st.sampled_from(NUMBERS))
    low, high = (0, 100) if dtype.lower().startswith("u") else (-100, 100)
    values = pd.Series(draw(st.lists(st.integers(low, high), min_size=rows, max_size=rows)))
    column = values.astype(dtype)
    if dtype == "float16" and draw(st.booleans()):
        column = column * 600  # near the end of its range
    if dtype == "float64" and draw(st.booleans()):
        column.iloc[0] = draw(st.sampled_from([np.inf, -np.inf, 1e308, 5e-324]))
    return column


def text(draw, rows):
    dtype = draw(st.sampled_from([object, "string", "str"]))
    return pd.Series(draw(st.lists(LETTERS, min_size=rows, max_size=rows)), dtype=dtype)


def category(draw, rows):
    levels = draw(st.sampled_from([list("abc"), ["only"], [3, 1, 2], [True, False]]))
    cells = draw(st.lists(st.sampled_from(levels), min_size=rows, max_size=rows))
    unused = [*levels, *([] if True in levels else ["unused"] if "a" in levels else [99])]
    return pd.Series(pd.Categorical(cells, unused, ordered=draw(st.booleans())))


def flag(draw, rows):
    cells = draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
    return pd.Series(cells, dtype=draw(st.sampled_from(["bool", "boolean"])))


def date(draw, rows):
    years = st.sampled_from(["1677-12-31", "1999-12-31", "2024-02-29", "2262-01-02"])
    column = pd.Series(pd.to_datetime(draw(st.lists(years, min_size=rows, max_size=rows))))
    column = column.dt.as_unit(draw(st.sampled_from(["s", "ms", "us", "ns"])))
    return column.dt.tz_localize(draw(st.sampled_from([None, "UTC", "Asia/Kathmandu"])))


def other(draw, rows):
    columns = [
        pd.Series(pd.to_timedelta(np.arange(rows), unit="h")),
        pd.Series(pd.period_range("2020", periods=rows)),
        pd.Series([[i] for i in range(rows)], dtype=object),
        pd.Series([1, "a", None] * rows, dtype=object)[:rows],
        pd.Series(np.arange(rows) * 1j),
        pd.Series(pd.arrays.SparseArray(np.arange(rows) % 3)),
        pd.Series([7] * rows),
    ]
    return draw(st.sampled_from(columns))


@st.composite
def tables(draw):
    """Draw a table of any types, with two columns at least of each kind, and its classes."""
    rows = draw(st.integers(1, 12))
    makers = [number, number, text, text, category, category, flag, date, date, other]
    kinds = draw(st.permutations(makers))
    columns = []
    for maker in kinds:
        where = draw(st.sampled_from([[False], [False], [False, True], [True]]))
        column = maker(draw, rows)
        columns.append(gaps(column, where) if any(where) and maker is not other else column)
    X = pd.concat(columns, axis=1)
    X.columns = pd.Index(draw(st.permutations(LABELS))[: len(columns)], tupleize_cols=False)
    y = pd.Series(draw(st.lists(st.sampled_from("ab🙂"), min_size=rows, max_size=rows)))
    y = y.astype(draw(st.sampled_from([object, "category", "str"])))
    labels = draw(st.sampled_from([list(range(rows)), [f"r{i}" for i in range(rows)]]))
    return X.set_axis(labels), y.set_axis(labels)


@st.composite
def sentences(draw):
    """Draw a series of texts, some of them missing, and its classes."""
    rows = draw(st.integers(1, 8))
    cell = st.one_of(LETTERS, st.just("one two  three"), st.none())
    texts = draw(st.lists(cell, min_size=rows, max_size=rows))
    dtype = draw(st.sampled_from([object, "string"]))
    y = pd.Series(draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows)))
    return pd.Series(texts, dtype=dtype, name="text"), y


def same(one, other):
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other)
    else:
        pd.testing.assert_series_equal(one, other)


def cells(items):
    """Return the cells as objects, an empty one as None."""
    frame = items.to_frame() if isinstance(items, pd.Series) else items
    found = np.empty(frame.shape, dtype=object)
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        found[:, place] = column.to_numpy(dtype=object)
        found[column.isna().to_numpy(), place] = None
    return found.reshape(items.shape)


def differ(a, b):
    """Which of these cells differ; the test's own eyes."""
    pairs = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    return np.array(
        [x is not y and repr(x) != repr(y) and x != y for x, y in pairs], dtype=bool
    ).reshape(a.shape)


def unlike(one, other):
    return differ(cells(one), cells(other))


def counts(X):
    return X.index.value_counts()


def survives(before, after):
    """Whether a type is the one it was, or one that holds what came in, as the page says."""
    if before == after:
        return True
    if isinstance(before, pd.CategoricalDtype):
        return isinstance(after, pd.CategoricalDtype) and before.ordered == after.ordered
    if isinstance(before, pd.SparseDtype):
        return survives(before.subtype, after)
    was, now = kind_of(before), kind_of(after)
    nullable, still = (
        isinstance(each, pd.api.extensions.ExtensionDtype) for each in (before, after)
    )
    if was == "flag" and not nullable:
        return now == "text"  # truth values and gaps are objects
    if was != "number" or now != "number" or nullable != still:
        return False
    wide, wider = (np.dtype(str(each).lower()) for each in (before, after))
    return wider.itemsize >= wide.itemsize and (wide.kind != "f" or wider.kind == "f")


def check(name, X, y, low, high, seed):
    corrupt = corruptions.get(name)
    before = X.copy(deep=True), y.copy(deep=True)
    seen = {s: corrupt(X, y, s, np.random.default_rng(seed)) for s in (0.0, low, high)}
    # nothing is changed in place
    same(X, before[0])
    same(y, before[1])
    # severity 0 is the identity, types and all
    same(seen[0.0][0], X)
    same(seen[0.0][1], y)
    assert changed_share((X, y), seen[0.0]) == 0
    for items, truth in seen.values():
        # X and y stay together
        assert type(items) is type(X)
        assert items.index.equals(truth.index)
        assert items.index.isin(X.index).all()
        assert truth.dtype == y.dtype
        # names stay, and types as far as they can hold what is there
        if isinstance(X, pd.Series):
            assert items.dtype == X.dtype
        else:
            assert items.columns.equals(X.columns)
        if isinstance(X, pd.DataFrame) and name != "column_swap":
            for was, now in zip(X.dtypes, items.dtypes, strict=True):
                assert survives(was, now), (was, now)
    # the same generator, the same data
    again = corrupt(X, y, high, np.random.default_rng(seed))
    same(seen[high][0], again[0])
    same(seen[high][1], again[1])
    # a higher severity contains the lower one
    few, many = seen[low], seen[high]
    if few[0].index.equals(X.index) and many[0].index.equals(X.index):
        shares = []
        for clean, less, more in zip((X, y), few, many, strict=True):
            before = cells(clean)
            changed = differ(before, cells(more))
            assert (differ(before, cells(less)) <= changed).all()
            shares.append(changed.mean() if changed.size else 0.0)
        most = changed_share((X, y), many)
        assert 0 <= changed_share((X, y), few) <= most <= 1
        assert most == pytest.approx(shares[0] or shares[1])
    else:
        moved = [(counts(part[0]).reindex(X.index, fill_value=0) - 1) for part in (few, many)]
        assert (moved[0].abs() <= moved[1].abs()).all()
        assert changed_share(X, many[0]) == pytest.approx(moved[1].abs().sum() / len(X))
        for items, truth in (few, many):
            same(items, X.loc[items.index])
            same(truth, y.loc[items.index])


def check_all(names, given, one, other, seed):
    """Check all corruptions on what was drawn: drawing takes as long as checking one."""
    for name in names:
        try:
            check(name, *given, *sorted([one, other]), seed)
        except Exception as error:
            error.add_note(f"by the corruption {name}")
            raise


@steady
@given(tables(), st.floats(0.01, 1), st.floats(0.01, 1), st.integers(0, 99))
def test_tables(given, one, other, seed):
    check_all(TABLES, given, one, other, seed)


@steady
@given(sentences(), st.floats(0.01, 1), st.floats(0.01, 1), st.integers(0, 99))
def test_texts(given, one, other, seed):
    check_all(TEXTS, given, one, other, seed)


@pytest.mark.parametrize("name", TABLES)
def test_empty_and_single_rows_survive(name, table, rng):
    for rows in (0, 1):
        X = table(1)[:rows]
        y = pd.Series(["a"] * rows, dtype=object)
        items, truth = corruptions.get(name)(X, y, 1.0, rng())
        assert items.columns.equals(X.columns)
        assert len(items) == len(truth)
        assert set(items.index) == set(X.index)


def nothing(rows):
    """Return columns that are all missing, constant, or of one level, and two classes."""
    X = pd.DataFrame(
        {
            "no number": np.full(rows, np.nan),
            "no text": pd.Series([None] * rows, dtype="str"),
            "no level": pd.Categorical([None] * rows, ["a"]),
            "no date": pd.Series([pd.NaT] * rows, dtype="datetime64[ns]"),
            "one number": np.full(rows, 7),
            "one level": pd.Categorical(["only"] * rows),
            "one text": pd.Series(["w"] * rows, dtype="str"),
            "one date": pd.to_datetime(["2024-02-29"] * rows),
        }
    )
    return X, pd.Series(np.resize(["b", "a", "a"], rows))


#: what can still happen to columns in which nothing differs
HITS = {
    **dict.fromkeys(["missingness_mcar", "missingness_mnar"], {"number", "level", "text", "date"}),
    "missingness_value": {"number", "date"},
    "missingness_mar": {"number", "level", "text", "date"},
    "scaling_error": {"number"},
    "sign_flip": {"number"},
    "unseen_category": {"level", "text"},
    "date_shift": {"date"},
    **dict.fromkeys(["case", "whitespace"], {"text"}),
}


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize(
    "name", [name for name in TABLES if name not in ("column_swap", "sentinel")]
)
@settings(steady, max_examples=4)
@given(severity=st.floats(0.01, 1), seed=st.integers(0, 99))
def test_missing_constant_and_single_level_columns(name, rows, severity, seed):
    X, y = nothing(rows)
    items, truth = corruptions.get(name)(X, y, severity, np.random.default_rng(seed))
    assert items.index.equals(truth.index) and set(items.index) <= set(X.index)
    able = {f"one {kind}" for kind in HITS.get(name, ())}
    for column in X:
        if column not in able:
            was = X[column].loc[items.index]
            assert survives(was.dtype, items[column].dtype)
            assert not unlike(was, items[column]).any(), column


@pytest.mark.parametrize("name", TABLES)
def test_duplicate_names_of_columns_and_rows(name, table, rng):
    """Dropping by label would take all rows of that label with it."""
    X, y = table(60), pd.Series(["a", "b", "b"] * 20)
    both = pd.concat([X, X], axis=1)
    items, _ = corruptions.get(name)(both, y, 0.5, rng())
    assert items.columns.equals(both.columns)
    assert len(items) == len(counts(items)) or name == "duplicate_rows"
    plain = corruptions.get(name)(X, y, 0.5, rng())
    twins = corruptions.get(name)(X.set_axis([7] * 60), y.set_axis([7] * 60), 0.5, rng())
    for one, other in zip(plain, twins, strict=True):
        assert len(one) == len(other)
        assert not unlike(one, other.set_axis(one.index)).any()


def test_columns_have_independent_draws(table, rng):
    """No column of one generator is the twin of another's."""
    X = table(200)[["float64"]].assign(again=table(200)["float64"])
    for name in ("noise_gaussian", "noise_uniform", "stuck_sensor", "outliers"):
        found = corruptions.get(name)(X, None, 0.4, rng())[0]
        assert found["float64"].tolist() != found["again"].tolist(), name


ROWS = 1000
#: columns of which the severity is the share of changed cells, or so much of that share
CELLS = {
    "missingness_mcar": (["int16", "float32", "bool", "category", "text", "zone"], 1),
    "missingness_mnar": (["int16", "float32", "bool", "category", "text", "zone"], 1 / 4),
    "missingness_value": (["int16", "float32", "Int8", "date"], 1),
    "missingness_mar": (["float64", "bool", "category", "text"], 3 / 4),
    "outliers": (["int8", "uint16", "Int64", "float16", "Float64"], 1),
    "sign_flip": (["int8", "uint16", "Int64", "float16", "Float64"], 1),
    "rounding": (["float64", "Float64"], 1),
    "sentinel": (["int8", "float64", "category", "text", "date"], 1),
    "unseen_category": (["category", "codes", "text", "string"], 1),
    "date_shift": (["date", "day", "zone"], 1),
    "stuck_sensor": (["float64", "Float64"], 1),
}
#: columns, and how many of them, or pairs of them, can change
COLUMNS = {
    "scaling_error": (["int8", "uint16", "Int64", "float16", "Float64", "bool"], 5),
    "categorical_remap": (["category", "codes", "text", "bool", "string", "float64"], 5),
    "column_swap": (["int8", "float64", "text", "string", "date", "zone"], 3),
}
#: a text with one place at which something can happen
PLACES = {
    **{"typos": "ab", "case": "Word", "accents": "é", "whitespace": "", "word_swap": "a b"},
    "misspellings": "Green",
}
#: those whose tests count by hand
COUNTED = {
    *("noise_gaussian", "noise_uniform", "rare_class_dilution", "duplicate_rows", "label_noise"),
    *("word_drop", "truncation"),
}


def counted(name, severity, X, rng):
    y = pd.Series(np.resize(["a", "b", "b", "b"], len(X)))
    found, truth = corruptions.get(name)(X, y, severity, rng())
    return unlike(X, found), unlike(y, truth)


def test_every_corruption_has_a_test_of_its_share():
    assert {*CELLS, *COLUMNS, *PLACES, *COUNTED} == {*TABLES, *TEXTS}


@pytest.mark.parametrize("name", CELLS)
@settings(steady, max_examples=6)
@given(severity=st.floats(0, 1), seed=st.integers(0, 999), rows=st.integers(40, 400))
def test_the_share_of_changed_cells_is_the_severity(name, severity, seed, rows, table):
    X = table(ROWS)[CELLS[name][0]][: 4 * (rows // 4)]
    changed, answers = counted(name, severity, X, lambda: np.random.default_rng(seed))
    assert changed.mean() == pytest.approx(severity * CELLS[name][1], abs=1.5 / len(X))
    assert not answers.any()


@pytest.mark.parametrize("severity", [0.1, 0.2, 0.4, 1.0])
@pytest.mark.parametrize("name", COLUMNS)
def test_the_share_of_changed_columns_is_the_severity(name, severity, table, rng):
    columns, able = COLUMNS[name]
    changed, _ = counted(name, severity, table(ROWS)[columns], rng)
    each = 2 if name == "column_swap" else 1
    assert changed.any(axis=0).sum() == each * int(np.ceil(severity * able))


@pytest.mark.parametrize("severity", [0.1, 0.2, 0.4])
@pytest.mark.parametrize("name", PLACES)
def test_the_share_of_changed_places_is_the_severity(name, severity, rng):
    X = pd.DataFrame({"t": [PLACES[name]] * ROWS, "n": range(ROWS)})
    changed, _ = counted(name, severity, X, rng)
    spread = np.sqrt(severity * (1 - severity) / ROWS)
    assert changed[:, 0].mean() == pytest.approx(severity, abs=5 * spread)
    assert not changed[:, 1].any()
