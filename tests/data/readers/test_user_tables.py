"""User's tables: one convention per file, units, dates, codes, row numbers, labels."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.core.dataset import Dataset
from karat.data.load_dataset import DataSpec
from karat.data.readers.table_files import read_frame, read_table
from karat.errors import DataError, DefinitionError


def table(columns: dict[str, list[str]], separator: str = ",") -> str:
    rows = [
        separator.join(columns),
        *(separator.join(row) for row in zip(*columns.values(), strict=True)),
    ]
    return "\n".join(rows) + "\n"


def read(folder: Path, text: str, target: str = "y", **options: object):
    """Return the dataset of a table, and the notes about it."""
    path = folder / "t.csv"
    path.write_text(text, encoding="utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = Dataset.from_csv(path, target, **options)
    return data, [str(each.message) for each in caught]


def with_labels(rows: int) -> list[str]:
    return ["yes" if i % 2 else "no" for i in range(rows)]


# -- one convention per file ------------------------------------------------------------------

GERMAN = "km;preis;y\n56.664;0,95;yes\n656;0,61;no\n"


def test_points_are_thousands_marks_if_another_column_has_decimal_commas(tmp_path):
    data, notes = read(tmp_path, GERMAN)
    assert data.items["km"].tolist() == [56664, 656]
    assert data.items["preis"].tolist() == [0.95, 0.61]
    assert data.about["reading"] == 'the separator ";", decimal commas, thousands points'
    assert notes == [f"t: read with {data.about['reading']}."]


def test_two_files_have_one_convention(tmp_path):
    (tmp_path / "test.csv").write_text("km;preis;y\n1.234;2;yes\n77;3;no\n")
    data, _ = read(tmp_path, GERMAN, test=tmp_path / "test.csv")
    assert data.items["km"].tolist() == [56664, 656, 1234, 77]


@pytest.mark.parametrize("target", ["km", "preis"])
def test_the_target_has_the_convention_of_the_file(tmp_path, target):
    rows = "".join(f"{i}.{i % 10}00;{i},5;{i % 2}\n" for i in range(100, 140))
    data, _ = read(tmp_path, "km;preis;x\n" + rows, target)
    assert data.kind == "regression"
    assert data.target[1] == {"km": 101100, "preis": 101.5}[target]


def test_a_column_with_other_marks_is_read_with_them_and_noted(tmp_path):
    text = "km;preis;rating;y\n56.664;0,95;4.5;yes\n656;0,61;3.25;no\n"
    data, notes = read(tmp_path, text)
    assert data.items["km"].tolist() == [56664, 656]
    assert data.items["rating"].tolist() == [4.5, 3.25]
    assert any('"rating"' in note for note in notes)


@pytest.mark.parametrize(
    ("options", "first", "noted"),
    [({}, 7.057, True), ({"thousands": "."}, 7057, False), ({"decimal": ","}, 7057, False)],
)
def test_what_stays_ambiguous_is_noted(tmp_path, options, first, noted):
    data, notes = read(tmp_path, "km;y\n7.057;yes\n123.400;no\n", **options)
    assert data.items["km"].iloc[0] == first
    assert any('"km"' in note and "7.057" in note for note in notes) == noted


def test_semicolons_with_decimal_points_are_no_doubt(tmp_path):
    data, notes = read(tmp_path, "a;b;y\n1.234;0.5;yes\n2.345;7.25;no\n")
    assert data.items["a"].tolist() == [1.234, 2.345]
    assert notes == ['t: read with the separator ";".']


def test_marks_that_are_set_are_not_guessed(tmp_path):
    data, notes = read(tmp_path, GERMAN, decimal=".")
    assert data.items["km"].tolist() == [56.664, 656] and '"preis"' in notes[-1]
    with pytest.raises(DefinitionError, match="same mark"):
        read(tmp_path, GERMAN, decimal=",", thousands=",")


CONVENTIONS = {"de": (",", "."), "en": (".", ","), "fr": (",", "\u202f"), "ch": (".", "'")}


@given(
    st.lists(st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 99)), min_size=2, max_size=8),
    st.sampled_from(sorted(CONVENTIONS)),
)
@settings(max_examples=40, deadline=None)
def test_numbers_of_a_convention_are_read_back(tmp_path_factory, numbers, name):
    decimal, thousands = CONVENTIONS[name]
    grouped = [f"{n:,}".replace(",", thousands) for n, _ in numbers]
    # one value shows the convention; the counts alone may be ambiguous
    prices = ["1" + thousands + "234" + decimal + "50"]
    prices += [
        f"{g}{decimal}{cents:02d}" for g, (_, cents) in zip(grouped[1:], numbers[1:], strict=True)
    ]
    labels = with_labels(len(numbers))
    text = table({"count": grouped, "price": prices, "y": labels}, separator=";")
    data, _ = read(tmp_path_factory.mktemp("table"), text)
    assert data.items["count"].tolist() == [n for n, _ in numbers]
    expected = [1234.5, *(float(f"{g}.{c:02d}") for (g, c) in numbers[1:])]
    assert data.items["price"].tolist() == expected


@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), min_size=3, max_size=8))
@settings(max_examples=20, deadline=None)
def test_ordinary_numbers_are_read_back_without_a_note(tmp_path_factory, numbers):
    text = table({"x": list(map(repr, numbers)), "y": with_labels(len(numbers))})
    data, notes = read(tmp_path_factory.mktemp("table"), text)
    assert data.items["x"].tolist() == numbers and notes == []


# -- columns ----------------------------------------------------------------------------------

SURPRISING = table(
    {
        "price": [f'"${1000 + i:,}.50"' for i in range(30)],
        "share": [f"{i % 7}%" for i in range(30)],
        "weight": [f"{40 + i % 9} kg" for i in range(30)],
        "age": ["?" if i % 5 else str(20 + i) for i in range(30)],
        "day": [f"2024-01-{i + 1:02d}" if i % 2 else f"{i + 1}.2.2024" for i in range(30)],
        "y": with_labels(30),
    }
).replace("30.2.2024", "28.2.2024")


def test_units_missing_marks_and_mixed_dates_are_read_with_a_note_each(tmp_path):
    data, notes = read(tmp_path, SURPRISING.replace("29.2.2024", "27.2.2024"))
    items = data.items
    assert items["price"].iloc[0] == 1000.5 and items["share"].tolist()[:2] == [0, 1]
    assert items["weight"].iloc[1] == 41 and items["age"].isna().sum() == 24
    assert items["day"].tolist()[:2] == [pd.Timestamp(2024, 2, 1), pd.Timestamp(2024, 1, 2)]
    for name in items.columns:
        (note,) = [note for note in notes if f'"{name}"' in note]
        assert f"--texts {name}" in note
        assert read(tmp_path, SURPRISING, texts=name)[0].items[name].dtype.kind not in "ifM"


def test_codes_with_leading_zeros_stay_text(tmp_path):
    text = "plz,x,y\n00123,1,yes\n99999,2,no\n"
    data, (note,) = read(tmp_path, text)
    assert data.items["plz"].tolist() == ["00123", "99999"] and "--numbers plz" in note
    data, notes = read(tmp_path, text, numbers=["plz"])
    assert data.items["plz"].tolist() == [123, 99999] and notes == []
    (tmp_path / "test.csv").write_text("plz,x,y\n12345,1,yes\n")
    data, _ = read(tmp_path, text, test=tmp_path / "test.csv")
    assert data.items["plz"].tolist() == ["00123", "99999", "12345"]


@pytest.mark.parametrize(
    ("header", "cells", "dropped"),
    [
        ("", [str(i) for i in range(30)], True),
        ("nothing", [str(i + 1) for i in range(30)], True),
        ("id", [str(i * 7 + 1000) for i in range(30)], True),
        ("customerId", [f"C-{i * 7}" for i in range(30)], True),
        ("hash", [f"{i * 0x1234567 + 2**40:x}" for i in range(30)], True),
        ("people", [str(i * 7 + 1000) for i in range(30)], False),
        ("plz", [f"0{i * 7 + 1000}" for i in range(30)], False),
        ("name", [f"Mr {i}" for i in range(30)], False),
        ("id", ["5"] * 2 + [str(i) for i in range(28)], False),
        ("smiles", [f"C{i}(=O)" for i in range(30)], False),
    ],
)
def test_columns_that_only_name_the_rows_are_no_features(tmp_path, header, cells, dropped):
    columns = {header: cells, "x": [str(i % 7) for i in range(30)], "y": with_labels(30)}
    name = header or "Unnamed: 0"
    data, notes = read(tmp_path, table(columns))
    assert (name not in data.items.columns) == dropped
    assert any("--keep" in note for note in notes) == dropped
    data, _ = read(tmp_path, table(columns), keep=[name])
    assert name in data.items.columns


def test_a_table_of_nothing_but_a_name_keeps_it(tmp_path):
    data, _ = read(tmp_path, table({"id": [f"w{i}" for i in range(30)], "y": with_labels(30)}))
    assert list(data.items.columns) == ["id"]
    with pytest.raises(DataError, match='"idd"'):
        read(tmp_path, "id,x,y\n1,2,a\n2,3,b\n", keep=["idd"])


def test_columns_that_stay_text_for_one_reason_are_noted(tmp_path):
    rows = range(30)
    columns = {
        "age": ["unknown", *map(str, rows[1:])],
        "weight": [f"{i} {'kg' if i % 2 else 'lb'}" for i in rows],
        "y": with_labels(30),
    }
    _, notes = read(tmp_path, table(columns))
    assert ["--missing unknown" in notes[0], '"kg"' in notes[1], len(notes)] == [True, True, 2]
    data, notes = read(tmp_path, table(columns), missing="unknown", texts="weight")
    assert data.items["age"].isna().sum() == 1 and notes == []
    with pytest.raises(DataError, match='"unknown"'):
        read(tmp_path, table(columns), numbers=["age"])


def test_infinite_cells_are_an_error_with_the_line(tmp_path):
    for cell in ("inf", "-Infinity", "1e999"):
        text = f'x,t,y\n1,"a\nb",yes\n{cell},c,no\n'
        for infer in (True, False):
            (tmp_path / "t.csv").write_text(text)
            with pytest.raises(DataError, match=f'line 4: "{cell}" in "x"'):
                if infer:
                    read(tmp_path, text)
                else:
                    read_frame(tmp_path / "t.csv", DataSpec("t"))
        assert np.isnan(read(tmp_path, text, missing=[cell])[0].items["x"].iloc[1])
        assert read(tmp_path, text, texts=["x"])[0].items["x"].iloc[1] == cell
    (tmp_path / "t.jsonl").write_text('{"x": 1.5}\n{"x": Infinity}\n')
    with pytest.raises(DataError, match="row 1"):
        read_frame(tmp_path / "t.jsonl", DataSpec("t"))


# -- labels -----------------------------------------------------------------------------------


def test_labels_that_differ_in_case_or_blanks_are_one_class(tmp_path):
    columns = {"x": list("1234567"), "y": ["yes", "yes", "Yes ", "no", "no", "NO", "A"]}
    data, (note,) = read(tmp_path, table(columns))
    assert data.classes == ("A", "no", "yes") and "--texts y" in note
    assert len(read(tmp_path, table(columns), texts=["y"])[0].classes) == 5
    letters = {"x": list("1234"), "y": ["a", "A", "b", "B"]}
    assert len(read(tmp_path, table(letters))[0].classes) == 4


@pytest.mark.parametrize("mark", ["|", ";", ","])
def test_lists_of_labels_are_named_as_what_they_are(tmp_path, mark):
    columns = {"x": list("123456"), "y": ["a", "b", f'"a{mark}b"'] * 2}
    with pytest.raises(DataError, match="[Mm]ulti-label") as caught:
        read(tmp_path, table(columns))
    assert caught.value.value == "y"
    assert len(read(tmp_path, table(columns), texts=["y"])[0].classes) == 3
    places = {"x": list("1234"), "y": ['"Doe, John"', '"Roe, Ann"'] * 2}
    assert len(read(tmp_path, table(places))[0].classes) == 2


def test_a_target_with_another_text_in_each_row_is_refused(tmp_path):
    with pytest.raises(DataError, match='"some text 0"'):
        columns = {"x": list("1234") * 10, "y": [f"some text {i}" for i in range(40)]}
        read(tmp_path, table(columns))


def test_amounts_of_money_are_a_regression_target(tmp_path):
    columns = {"x": list("1234") * 10, "y": [f'"${1000 + i:,}.25"' for i in range(40)]}
    data, notes = read(tmp_path, table(columns))
    assert data.kind == "regression" and data.target[0] == 1000.25
    assert any("--texts y" in note for note in notes)
    stars = {"x": list("1234") * 10, "y": ["5 stars", "4 stars"] * 20}
    assert read(tmp_path, table(stars))[0].classes == ("4 stars", "5 stars")


# -- where the line is ------------------------------------------------------------------------


def test_defined_sources_and_data_frames_are_read_as_they_are(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(SURPRISING.replace('"$', '"').replace(".50", ""))
    frame = read_frame(path, DataSpec("t", target="y"))
    assert frame["weight"].iloc[0] == "40 kg" and frame["age"].iloc[1] == "?"
    data = Dataset.from_table(frame, "y")
    assert data.items["weight"].iloc[0] == "40 kg"
    with pytest.raises(DefinitionError, match='"keep"'):
        read_table(path, DataSpec("t", target="y", options={"keep": ["age"]}))


# -- what was silent --------------------------------------------------------------------------


def test_a_cell_that_is_no_number_in_any_way_is_named(tmp_path):
    cells = [f"0.{i}" for i in range(40)]
    cells[7] = "1.5.2"
    data, notes = read(tmp_path, table({"x": cells, "y": with_labels(40)}))
    assert notes == ['t: "x" stays text: "1.5.2" among numbers (--missing 1.5.2 reads numbers)']
    data, notes = read(tmp_path, table({"x": cells, "y": with_labels(40)}), missing=["1.5.2"])
    assert data.items["x"].isna().sum() == 1 and data.items["x"].dtype.kind == "f" and not notes
    versions = ["1.2.3" if i % 2 else "1.4" for i in range(40)]
    assert read(tmp_path, table({"v": versions, "y": with_labels(40)}))[1] == []


def test_a_target_of_few_amounts_is_classes_with_a_note(tmp_path):
    text = table({"x": list("abcd") * 10, "y": ["$1", "$2"] * 20})
    data, notes = read(tmp_path, text)
    assert data.classes == ("$1", "$2")
    assert notes == ['t: "y" is taken as 2 classes, such as "$1" (--kind regression reads numbers)']
    assert read(tmp_path, text, kind="classification")[1] == []
    assert read(tmp_path, text, kind="regression")[0].target.tolist()[:2] == [1, 2]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_by_its_mark(tmp_path, encoding):
    text = table({"größe": ["00123", "7"] * 20, "y": with_labels(40)}, "\t")
    mark = "" if encoding == "utf-16" else "\ufeff"
    (tmp_path / "t.csv").write_bytes((mark + text).encode(encoding))
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        data = Dataset.from_csv(tmp_path / "t.csv", "y")
    assert data.items["größe"].tolist()[:2] == ["00123", "7"]


def test_rows_without_a_target_are_dropped_on_request(tmp_path):
    text = table({"x": ["1.5"] * 40, "y": ["", *with_labels(39)]})
    with pytest.raises(DataError, match="--unanswered drop"):
        read(tmp_path, text)
    assert len(read(tmp_path, text, unanswered="drop")[0]) == 39


def test_a_warning_names_the_line_of_the_caller(tmp_path):
    (tmp_path / "t.csv").write_text(table({"x": ["65 kg"] * 40, "y": with_labels(40)}))
    with pytest.warns(UserWarning, match="65 kg") as caught:
        Dataset.from_csv(tmp_path / "t.csv", "y")
    assert {each.filename for each in caught} == {__file__}
