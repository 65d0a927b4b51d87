"""Tables from files: CSV, Arrow, JSON and ARFF, their targets, and datasets made of them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from karat.config.loading import Definitions
from karat.core import files
from karat.core.columns import parse_numbers
from karat.core.dataset import Dataset
from karat.data.load_dataset import DataSpec, load_dataset
from karat.data.readers.table_files import (
    ask,
    ask_rows,
    one_file,
    read_frame,
    read_parts,
    read_table,
    sklearn_table,
)
from karat.data.readers.user_tables import parse_dates
from karat.errors import DataError, DefinitionError, MissingExtra

NEW = pytest.mark.skipif(pd.__version__ < "3", reason="older pandas reads huge numbers as text")
SPEC = DataSpec("toy")
# Without the time of day in them: test names must be the same in every process.
GZIPPED = gzip.compress(b"a,b\n1,x\n2,\n", mtime=0)
GZIPPED_JSON = gzip.compress(b'{"a": 1, "b": "NA"}\n{"a": 2, "b": null}', mtime=0)
LABELS = "x,y\n1,NA\n2,None\n3,null\n4,nan\n5,yes\n"
FRAME = pd.DataFrame({"id": [1, 2, 3], "text": ["a", "b", "a"], "y": ["odd", "usual", "usual"]})
GAPS = pd.DataFrame({"id": [1, 2, 3, 4], "text": list("abca"), "y": ["odd", None, "usual", None]})
EUROPEAN = "price;day;y\n" + "".join(f"{i},5;{1 + i}.02.2024;{i % 2}\n" for i in range(20))
CSV = "id,age,city,fold,churn\n1,31,Oslo,train,NA\n2,,Rome,test,no\n3,45,Oslo,test,NA\n"
YEARS = {"files": ["first.csv", "later.csv"], "answers": "targets.csv", "key": "id"}


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows(frame: pd.DataFrame) -> list[list[object]]:
    """Return the cells, a missing one as None."""
    return [[None if pd.isna(cell) else cell for cell in row] for row in frame.to_numpy(object)]


def spec(**options: object) -> DataSpec:
    return DataSpec("toy", options=options)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "a,b\n1,x\n2,\n"),
        ("t.tsv", "a\tb\n1\tx\n2\t\n"),
        ("t.tab", "a\tb\n1\tx\n2\tNA\n"),
        ("t.csv.gz", GZIPPED),
        ("T.CSV", "\ufeffa,b\r\n1,x\r\n2,\r\n"),
    ],
)
def test_separator_follows_from_the_suffix(tmp_path, name, content):
    frame = read_frame(write(tmp_path, name, content), SPEC)
    assert list(frame.columns) == ["a", "b"]
    assert rows(frame) == [[1, "x"], [2, None]]


@pytest.mark.parametrize(
    ("options", "content"),
    [
        ({"separator": ";"}, "a;b\n1;x\n"),
        ({"separator": r"\s+"}, "a   b\n1 x\n"),
        ({"separator": "::"}, "a::b\n1::x\n"),
        ({"separator": ",", "names": ["a", "b"]}, "1,x\n"),
        ({"separator": ",", "names": ["a", "b"], "header": True}, "A,B\n1,x\n"),
        ({"separator": ",", "rows_from": 3}, "made by\nsomeone\na,b\n1,x\n"),
        ({"separator": ",", "encoding": "utf-16"}, "a,b\n1,x\n".encode("utf-16")),
        ({"separator": ",", "strip": True}, "a, b\n1, x \n"),
    ],
)
def test_csv_options(tmp_path, options, content):
    frame = read_frame(write(tmp_path, "t.data", content), spec(**options))
    assert frame.to_dict("list") == {"a": [1], "b": ["x"]}


@pytest.mark.parametrize(
    ("options", "content", "expected"),
    [
        ({"missing": ["?"], "strip": True}, "a,b\n ?,x\n1, ?\n", [[None, "x"], [1, None]]),
        ({"quoting": "none"}, 'a,b\n"one,two"\n', [['"one', 'two"']]),
        ({"strip": True}, "a,b\nTrue,1\n,2\n", [[True, 1], [None, 2]]),  # as they were
        ({"thousands": ","}, 'a,b\n"1,250","1,250 w"\n80,x\n', [[1250, "1,250 w"], [80, "x"]]),
        ({"names": ["a", "b", "c"]}, "1,x\n2,y,more\n", [[1, "x", None], [2, "y", "more"]]),
    ],
)
def test_csv_options_and_cells(tmp_path, options, content, expected):
    assert rows(read_frame(write(tmp_path, "t.csv", content), spec(**options))) == expected


def test_text_columns_are_not_converted(tmp_path):
    path = write(tmp_path, "t.csv", "a,b\nNA,NA\n007,007\n,\n")
    assert rows(read_frame(path, SPEC, ["a"])) == [["NA", None], ["007", 7], [None, None]]
    frame = read_frame(path, spec(texts=["a"]))
    assert rows(frame) == [["NA", None], ["007", 7], [None, None]]
    assert frame["a"].dtype == pd.Series(["a", None]).dtype  # as pandas itself reads texts
    with pytest.raises(DataError, match='"a"'):
        read_frame(path, spec(texts=["aa"]))


@pytest.mark.parametrize(
    ("content", "kind", "options", "expected"),
    [
        (LABELS, "classification", {}, ["NA", "None", "null", "nan", "yes"]),
        (LABELS, None, {}, ["NA", "None", "null", "nan", "yes"]),
        ("x,y\n1,01\n2,1\n", "classification", {}, ["01", "1"]),
        ("x,y\n1,a\n2,\n3,?\n4,  \n", "classification", {"missing": ["?"]}, ["a", *[None] * 3]),
        (
            "x,y\n1,0\n2,1\n3,\n",
            "classification",
            {"labels": {0: "no", "1": "b"}},
            ["no", "b", None],
        ),
    ],
)
def test_labels_stay_as_written_or_are_renamed(tmp_path, content, kind, options, expected):
    given = DataSpec("toy", target="y", kind=kind, options=options)
    frame = read_frame(write(tmp_path, "t.csv", content), given)
    assert rows(frame[["y"]]) == [[label] for label in expected]


def test_labels_are_renamed_in_any_format(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    pd.DataFrame({"x": [1, 2], "y": [0, 1]}).to_parquet(path)
    options = {"labels": {"0": "no", "1": "yes"}}
    frame = read_frame(path, DataSpec("toy", target="y", kind="classification", options=options))
    assert frame["y"].tolist() == ["no", "yes"]


def test_label_missing_in_the_renaming(tmp_path):
    path = write(tmp_path, "t.csv", "x,y\n1,a\n2,c\n")
    options = {"labels": {"a": "A", "b": "B"}}
    with pytest.raises(DataError, match='"y".*"c".* a, b'):
        read_frame(path, DataSpec("toy", target="y", kind="classification", options=options))
    for kind, labels in (("regression", {"a": "A"}), ("classification", ["A"])):
        given = DataSpec("toy", target="y", kind=kind, options={"labels": labels})
        with pytest.raises(DefinitionError, match='"labels"'):
            read_frame(path, given)


def test_target_is_numeric_if_declared_or_if_all_cells_are(tmp_path):
    given = DataSpec("toy", target="y")
    whole = read_frame(write(tmp_path, "a.csv", "x,y\n1,1\n2,20\n"), given)["y"]
    assert whole.tolist() == [1, 20] and whole.dtype.kind == "i"
    gaps = read_frame(write(tmp_path, "b.csv", "x,y\n1,1.5\n2,NA\n"), given)["y"]
    assert gaps.iloc[0] == 1.5 and pd.isna(gaps.iloc[1])
    mixed = read_frame(write(tmp_path, "c.csv", "x,y\n1,1\n2,one\n"), given)["y"]
    assert mixed.tolist() == ["1", "one"]
    given = DataSpec("toy", target="y", kind="regression")
    assert read_frame(write(tmp_path, "a.csv", "x,y\n1,2.5\n"), given)["y"].tolist() == [2.5]
    with pytest.raises(DataError, match='"cheap".*row 1'):
        read_frame(write(tmp_path, "b.csv", "x,y\n1,2.5\n2,cheap\n"), given)


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("t.csv", "", "t.csv is empty"),
        ("t.csv", " \n\n", "t.csv is empty"),
        ("t.csv", "a,b\n", "header"),
        ("t.csv", "a,b\n1,2\n3,4,5\n", "line 3"),
        ("t.csv", "a,b\n1,2,3\n4,5,6\n", "header"),
        ("t.csv", 'a,b\n1,"x\n2,y\n', r"t\.csv"),
        ("t.csv", "a,b,a\n1,2,3\n", '"a"'),
        ("t.csv", "a,b\n1,x\n2,é\n".encode("latin-1"), "line 3"),
        ("t.csv", b"\x89PNG\r\n\0\0\0\rIHDR", r"t\.csv"),
        ("t.csv.gz", b"no gzip at all", r"t\.csv\.gz"),
        ("t.csv.gz", GZIPPED[:-9], r"t\.csv\.gz"),
        ("t.xlsx", "a", r'"\.xlsx"'),
        ("t.cvs", "a", 'Did you mean ".csv"'),
        ("t", "a", '"separator"'),
        ("t.parquet", "a,b\n", "parquet"),
        ("t.feather", "a,b\n", "feather"),
        ("t.json", '[{"a": 1},\n{"a": }]', "line 2"),
        ("t.json", '{"a": 1}', "neither a list of rows"),
        ("t.json", '{"a": [1], "b": [1, 2]}', "length"),
        ("t.jsonl", '{"a": 1}\n\n{"a": \n', "line 3"),
        ("t.jsonl", "[1]\n", "neither a list of rows"),
        ("t.arff", "", "t.arff is empty"),
        ("t.json", "[" * 100_000, "line 1"),
        ("t.jsonl", '{"a": 1}\n{"a": ' + "1" * 5_000 + "}", "line 2"),
        pytest.param("t.json", '[{"a": ' + "1" * 400 + "}]", '"a".*row 0', marks=NEW),
        pytest.param("t.csv", "a,b\n1,2\n3," + "1" * 400 + "\n", '"b".*row 1', marks=NEW),
        ("t.jsonl", "\n".join(f'{{"a{i}": 1}}' for i in range(5_000)), "bytes"),
    ],
)
def test_broken_files(tmp_path, name, content, word):
    with pytest.raises(DataError, match=word):
        read_frame(write(tmp_path, name, content), SPEC)


def test_folders_and_wrong_options_are_refused(tmp_path):
    (tmp_path / "f.csv").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        read_frame(tmp_path / "f.csv", SPEC)
    path = write(tmp_path, "t.csv", "a\n1\n")
    for options, word in (
        ({"header": False}, '"names"'),
        ({"quoting": "all"}, "can only be none"),
        ({"encoding": "klingon"}, '"klingon"'),
    ):
        with pytest.raises(DefinitionError, match=word):
            read_frame(path, spec(**options))


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_arrow_files(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    path = tmp_path / f"t.{suffix}"
    getattr(pd.DataFrame({"a": [1, 2, 3], "b": ["NA", None, "?"]}), f"to_{suffix}")(path)
    assert rows(read_frame(path, SPEC)) == [[1, "NA"], [2, None], [3, "?"]]
    frame = read_frame(path, spec(missing=["?"]))
    assert rows(frame) == [[1, "NA"], [2, None], [3, None]]
    assert frame["a"].dtype == "int64"


@pytest.mark.parametrize("pack", [gzip, bz2, lzma])
def test_compressed_files_that_expand_too_much(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(files, "FREE_BYTES", 10_000)
    suffix = {gzip: "gz", bz2: "bz2", lzma: "xz"}[pack]
    path = write(tmp_path, f"t.csv.{suffix}", pack.compress(b"a\n" + b"1\n" * 10_000))
    assert len(read_frame(path, SPEC)) == 10_000
    monkeypatch.setattr(files, "MAX_RATIO", 10)
    with pytest.raises(DataError, match="bytes"):
        read_frame(path, SPEC)


def test_parquet_that_declares_too_much(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(files, "FREE_BYTES", 100_000)
    path = tmp_path / "t.parquet"
    for column in (np.zeros(1_000_000, "f4"), ["a" * 10_000] * 1_000):
        pd.DataFrame({"a": column}).to_parquet(path, compression="zstd")
        with pytest.raises(DataError, match="bytes"):
            read_frame(path, SPEC)


def test_feather_that_declares_too_much(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.feather"
    frame = pd.DataFrame({"a": np.zeros(100_000, "f4"), "b": pd.Categorical(["x", "y"] * 50_000)})
    for options in ({"compression": "zstd"}, {"compression": "uncompressed"}, {"chunksize": 1_000}):
        frame.to_feather(path, **options)
        assert len(read_frame(path, SPEC)) == 100_000
    monkeypatch.setattr(files, "FREE_BYTES", 100_000)
    monkeypatch.setattr(files, "MAX_RATIO", 10)
    frame.to_feather(path, compression="zstd")
    with pytest.raises(DataError, match="bytes"):
        read_frame(path, SPEC)


@pytest.mark.parametrize(
    "found", [(b"\2\0\0\0\4\0\0\0", b"\2\0\0\0\xff\xff\xff\x7f"), (b"abcd", b"ab\xff\xff")]
)
def test_invalid_texts_of_feather(tmp_path, found):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather

    path = tmp_path / "t.feather"
    feather.write_feather(pyarrow.table({"a": ["ab", "cd"]}), path, compression="uncompressed")
    content = path.read_bytes()
    assert content.count(found[0]) == 1
    path.write_bytes(content.replace(*found))
    with pytest.raises(DataError):
        read_frame(path, SPEC)


def test_parquet_that_names_its_compression(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet.brotli"
    pd.DataFrame({"a": [1, 2]}).to_parquet(path, compression="brotli")
    assert rows(read_frame(path, SPEC)) == [[1], [2]]
    path.write_bytes(b"PAR1 cut short")
    with pytest.raises(DataError, match=r"t\.parquet\.brotli"):
        read_frame(path, SPEC)


def test_missing_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="install"):
        read_frame(write(tmp_path, "t.parquet", b""), SPEC)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.json", '[{"a": 1, "b": "NA"}, {"a": 2}]'),
        ("t.json", '{"a": [1, 2], "b": ["NA", null]}'),
        ("t.jsonl", '{"a": 1, "b": "NA"}\n{"a": 2, "b": null}\n'),
        ("t.ndjson.gz", GZIPPED_JSON),
    ],
)
def test_json_files(tmp_path, name, content):
    assert rows(read_frame(write(tmp_path, name, content), SPEC)) == [[1, "NA"], [2, None]]
    path = write(tmp_path, "separator.jsonl", '{"a": "x\u2028y"}\n')
    assert rows(read_frame(path, SPEC)) == [["x\u2028y"]]


def parts(folder: Path, train: str, test: str, given: DataSpec = SPEC):
    files = {"train": write(folder, "a.csv", train), "test": write(folder, "b.csv", test)}
    return read_parts(files, given, lambda path: read_frame(path, given))


def test_train_and_test_are_concatenated(tmp_path):
    frame, found = parts(tmp_path, "a,b\n1,x\n", "b,a\ny,2\n")
    assert rows(frame) == [[1, "x", "train"], [2, "y", "test"]]
    assert found.part == "part"
    frame, found = parts(tmp_path, "part\n1\n", "part\n2\n", DataSpec("toy", part="side"))
    assert list(frame.columns) == ["part", "side"] and found.part == "side"
    for train, test, word in (
        ("a,b\n1,x\n", "a\n2\n", '"b"'),
        ("a\n1\n", "a,b\n2,x\n", '"b"'),
        ("part\n1\n", "part\n2\n", '"part"'),
    ):
        with pytest.raises(DataError, match=word):
            parts(tmp_path, train, test)


def question_spec(**changes: object) -> DataSpec:
    return DataSpec("toy", **{"target": "y", "kind": "classification", **changes})


def test_classes_have_the_order_of_the_option_labels():
    assert ask_rows(FRAME, question_spec()).classes == ("odd", "usual")
    labels = {"u": "usual", "v": "usual", "w": "never", "o": "odd"}
    data = ask_rows(FRAME, question_spec(options={"labels": labels}))
    assert data.classes == ("usual", "odd")
    assert data.target.tolist() == ["odd", "usual", "usual"]
    asked = ask(FRAME, question_spec(fields=("text",), options={"labels": labels}), None)
    assert asked.classes == ("usual", "odd")


def test_groups_features_and_files():
    data = ask_rows(FRAME, question_spec(group="id", drop=("id",)))
    assert list(data.items.columns) == ["text"]
    assert data.group.tolist() == [1, 2, 3]
    assert list(ask_rows(FRAME, question_spec(fields=("id",))).items.columns) == ["id"]
    with pytest.raises(DataError, match='"text"'):
        ask_rows(FRAME, question_spec(fields=("texd",)))
    assert one_file(Path("a"), question_spec()) == Path("a")
    with pytest.raises(DefinitionError, match="reader"):
        one_file({"train": Path("a"), "test": Path("b")}, question_spec())


@pytest.mark.parametrize("rows", [True, False])
def test_rows_without_an_answer_can_be_dropped(rows):
    given = question_spec(options={"unanswered": "drop"}, **({} if rows else {"fields": ("text",)}))
    data = ask_rows(GAPS, given) if rows else ask(GAPS, given, None)
    assert data.target.tolist() == ["odd", "usual"]
    texts_left = data.frame()["text"].tolist() if rows else data.frame().tolist()
    assert texts_left == ["a", "c"]


def test_rows_without_a_target_are_refused_by_default():
    for options in ({}, {"unanswered": "refuse"}):
        with pytest.raises(DataError, match="missing"):
            ask_rows(GAPS, question_spec(options=options))
    with pytest.raises(DefinitionError, match='"unanswered"'):
        ask_rows(GAPS, question_spec(options={"unanswered": "keep"}))
    with pytest.raises(DataError, match="toy is empty: 0 rows"):
        ask_rows(GAPS.assign(y=None), question_spec(options={"unanswered": "drop"}))


def test_groups_and_parts_stay_with_their_rows():
    frame = GAPS.assign(g=list("pqrs"), p=["train", "test", "test", "train"])
    data = ask_rows(frame, question_spec(options={"unanswered": "drop"}, group="g", part="p"))
    assert data.group.tolist() == ["p", "r"] and data.part.tolist() == ["train", "test"]


def load(tmp_path, text, target="y", name="t.csv", **settings):
    return Dataset.from_csv(write(tmp_path, name, text), target, **settings)


def test_separator_decimal_commas_and_dates_are_inferred_with_a_warning(tmp_path):
    with pytest.warns(UserWarning) as caught:
        data = load(tmp_path, EUROPEAN, kind="classification")
    assert data.items["price"].tolist() == [i + 0.5 for i in range(20)]
    assert data.items["day"].iloc[1] == pd.Timestamp(2024, 2, 2)
    printed = " ".join(str(each.message) for each in caught)
    assert all(word in printed for word in ('";"', "decimal commas", '"day"'))


def test_inferred_and_given_options_read_the_same_table(tmp_path):
    with pytest.warns(UserWarning):
        inferred = load(tmp_path, EUROPEAN, kind="classification")
    options = {"separator": ";", "decimal": ",", "dates": {"day": "%d.%m.%Y"}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = load(tmp_path, EUROPEAN, kind="classification", **options)
    pd.testing.assert_frame_equal(inferred.items, given.items)


def test_a_target_with_decimal_commas_is_numbers(tmp_path):
    text = "x;y\n" + "".join(f"{i};{i},25\n" for i in range(30))
    for kind in (None, "regression"):
        with pytest.warns(UserWarning, match="decimal commas"):
            data = load(tmp_path, text, kind=kind)
        assert data.kind == "regression" and data.target[1] == 1.25
    data = load(tmp_path, text, separator=";", decimal=",")
    assert data.kind == "regression" and data.target[1] == 1.25


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1,5", "2"], [1.5, 2.0]),
        (["1.234,5", "-2,0"], [1234.5, -2.0]),
        (["1,234", "5,678,901"], [1234, 5678901]),
        (["1,234.5", "7"], [1234.5, 7.0]),
        (["0,123", "0,456"], [0.123, 0.456]),
        (["a,b", "1,5"], None),
        (["1.5", "2"], None),
        (["1,2,3", "4"], None),
    ],
)
def test_commas_in_numbers(cells, numbers):
    found, _ = parse_numbers(pd.Series(cells))
    assert (None if found is None else found.tolist()) == numbers


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["2024-01-31", None], "2024-01-31"),
        (["2024-01-31 10:00", "2024-02-01"], "2024-01-31 10:00"),
        (["2024-01-31T10:00:00Z", "2024-02-01T10:00:00+02:00"], "2024-01-31 10:00+00:00"),
        (["31.1.2024", "1.2.2024"], "2024-01-31"),
        (["31/1/2024", "1/2/2024"], "2024-01-31"),
        (["1/31/2024", "2/1/2024"], "2024-01-31"),
        (["2024/1/31"], "2024-01-31"),
        (["1/2/2024", "3/4/2024"], None),
        (["2024-13-01"], None),
        (["20240131"], None),
        (["2024-01-31", "soon"], None),
    ],
)
def test_only_dates_with_one_meaning_are_dates(cells, first):
    found = parse_dates(pd.Series(cells, dtype=object))
    assert (None if found is None else found.iloc[0]) == (first and pd.Timestamp(first))


def test_ambiguous_dates_stay_text_with_a_warning(tmp_path):
    text = "day,y\n1/2/2024,a\n3/4/2024,b\n"
    with pytest.warns(UserWarning, match="day"):
        data = load(tmp_path, text)
    assert data.items["day"].tolist() == ["1/2/2024", "3/4/2024"]
    data = load(tmp_path, text, dates={"day": "%d/%m/%Y"})
    assert data.items["day"].iloc[0] == pd.Timestamp(2024, 2, 1)
    with pytest.raises(DataError, match='"3/14/2024"'):
        load(tmp_path, "day,y\n1/2/2024,a\n3/14/2024,b\n", dates={"day": "%d/%m/%Y"})
    assert load(tmp_path, "day,y\n2024-01-01,a\n2024-01-02,b\n", dates=[]).items["day"].iloc[0] == (
        "2024-01-01"
    )


def test_a_file_without_a_doubt_gives_no_warning(tmp_path):
    text = 'x,text,y\n1.5,"a;b, c",p\n2.5,d;e,q\n'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = load(tmp_path, text)
    assert data.items["text"].tolist() == ["a;b, c", "d;e"]
    assert data.items["x"].tolist() == [1.5, 2.5]


def test_a_second_file_is_the_test_part(tmp_path):
    test = write(tmp_path, "test.csv", "x,y\n3,a\n")
    data = load(tmp_path, "x,y\n1,a\n2,b\n", test=test, positive="a")
    assert data.part.tolist() == ["train", "train", "test"] and data.positive == "a"


@pytest.mark.parametrize("option", ["decimal", "thousands"])
def test_a_mark_in_numbers_is_one_character(tmp_path, option):
    with pytest.raises(DefinitionError, match=option):
        load(tmp_path, "x,y\n1,a\n2,b\n", **{option: "::"})


def test_a_comma_before_three_digits_depends_on_the_separator(tmp_path):
    rows = [("1,234", "a"), ("5,678", "b")]
    for separator, first in ((";", 1.234), (",", 1234)):
        text = "x{0}y\n" + "".join(f'"{x}"{{0}}{y}\n' for x, y in rows)
        with pytest.warns(UserWarning, match='"x"'):
            data = load(tmp_path, text.format(separator))
        assert data.items["x"].iloc[0] == first and not data.items.attrs


def test_a_cell_longer_than_the_limit_of_the_csv_module(tmp_path):
    text = "x;text;y\n" + f"1;{'a' * 140_000};p\n" + "2;b;q\n"
    with pytest.warns(UserWarning, match='";"'):
        data = load(tmp_path, text)
    assert data.items["x"].tolist() == [1, 2]


def test_class_names_match_their_codes():
    cancer = sklearn_table("cancer", "load_breast_cancer", target="y")
    assert cancer.items.shape == (569, 30) and "y" not in cancer.items
    assert cancer.classes == ("benign", "malignant")
    assert cancer.target.tolist().count("malignant") == 212
    assert cancer.about["source"] == "scikit-learn, load_breast_cancer"
    assert sklearn_table("digits", "load_digits").target[:3].tolist() == ["0", "1", "2"]
    diabetes = sklearn_table("diabetes", "load_diabetes")
    assert diabetes.kind == "regression" and diabetes.target[:2].tolist() == [151.0, 75.0]
    with pytest.raises(DefinitionError, match='"load_iris"'):
        sklearn_table("iris", "load_irs")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "churn.csv"
    path.write_text(CSV)
    return path


def test_rows_are_items_and_one_column_is_the_target(path):
    given = {"path": path, "target": "churn", "kind": "classification", "drop": ["id"]}
    data = load_dataset("churn", {**given, "group": "city", "part": "fold"})
    assert list(data.items.columns) == ["age"]
    assert data.items["age"].tolist()[::2] == [31.0, 45.0]
    assert data.target.tolist() == ["NA", "no", "NA"]
    assert data.classes == ("NA", "no")
    assert data.group.tolist() == ["Oslo", "Rome", "Oslo"]
    assert data.part.tolist() == ["train", "test", "test"]
    assert (data.kind, data.modality, data.fields) == ("classification", "table", ["row"])


def years(folder: Path, answers: str = "id,y\n3,1\n4,0\n") -> Path:
    (folder / "first.csv").write_text("id,x,year,y\n1,a,2015,0\n2,b,2015,1\n")
    (folder / "later.csv").write_text("id,x,year\n4,c,2016\n3,a,2016\n")
    (folder / "targets.csv").write_text(answers)
    return folder


def test_rows_of_several_files_with_targets_of_another(tmp_path):
    spec = DataSpec("years", target="y", kind="classification", group="year", drop=("id",))
    data = read_table(years(tmp_path), replace(spec, options=YEARS))
    assert data.items["x"].tolist() == ["a", "b", "c", "a"] and list(data.items) == ["x"]
    assert list(map(int, data.target)) == [0, 1, 0, 1]
    assert data.group.tolist() == [2015, 2015, 2016, 2016]


@pytest.mark.parametrize(
    ("options", "answers", "word"),
    [
        ({**YEARS, "files": "first.csv"}, None, "list"),
        ({**YEARS, "files": ["frist.csv"]}, None, '"first.csv"'),
        ({**YEARS, "key": None}, None, '"key"'),
        (YEARS, "id,y\n3,1\n", '"4"'),
        (YEARS, "id,y\n3,1\n3,0\n", "duplicate"),
    ],
)
def test_wrong_files_of_a_folder(tmp_path, options, answers, word):
    folder = years(tmp_path, answers) if answers else years(tmp_path)
    with pytest.raises((DataError, DefinitionError), match=word):
        read_table(folder, DataSpec("years", target="y", kind="classification", options=options))


def test_levels_that_not_all_files_have(tmp_path):
    pytest.importorskip("pyarrow")
    for name, levels in (("one", ["a", "b"]), ("two", ["b", "c"])):
        table = pd.DataFrame({"x": pd.Categorical(levels), "y": ["no", "yes"]})
        table.to_parquet(tmp_path / f"{name}.pq")
    options = {"files": ["one.pq", "two.pq"]}
    data = read_table(tmp_path, DataSpec("levels", target="y", options=options))
    assert data.items["x"].cat.categories.tolist() == ["a", "b", "c"]


def test_numbers_and_texts_in_a_table(path):
    data = read_table(path, DataSpec("ids", target="id", kind="regression"))
    assert data.target.tolist() == [1, 2, 3]
    data = read_table(path, DataSpec("c", target="churn", fields=("city",), modality="text"))
    assert data.modality == "text"
    assert data.items.tolist() == ["Oslo", "Rome"]


def test_missing_settings_and_columns(path):
    with pytest.raises(DefinitionError, match='"target: NAME"'):
        read_table(path, DataSpec("churn"))
    with pytest.raises(DataError, match='"churn"'):
        read_table(path, DataSpec("churn", target="chrun", kind="classification"))
    with pytest.raises(DataError, match='"age"'):
        read_table(path, DataSpec("churn", target="churn", fields=("agee",)))
    with pytest.raises(DefinitionError, match='no option "delimiter"'):
        read_table(path, DataSpec("churn", target="churn", options={"delimiter": ","}))


def test_all_eight_and_all_of_carte_are_defined():
    names = Definitions.load().names("datasets")
    assert sum(name.startswith("tabred_") for name in names) == 8
    # 51 less the four that the package carries
    assert sum(name.startswith("carte_") for name in names) == 47
