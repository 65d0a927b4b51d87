"""Item tables: keys, cells as they were, limits, and damaged files."""

import csv
import gzip
import io
import json

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.dataset import Dataset
from karat.errors import ContractError, DataError
from karat.execution.arguments import Output
from karat.results.item_tables import (
    TEXT_LENGTH,
    copying_forbidden,
    describe_item,
    item_keys,
    make_item_table,
    read_item_table,
)
from karat.results.run import Run, collect_artifacts


def people(rows: int = 6, **more) -> pd.DataFrame:
    answers = ["yes", "no"] * (rows // 2)
    return pd.DataFrame({"age": range(20, 20 + rows), "name": "Ann, B.", "y": answers, **more})


def table_of(data: Dataset, folder, **options) -> tuple[dict, pd.DataFrame]:
    made = make_item_table(data, np.arange(len(data)), **options)
    (folder / "items").mkdir(exist_ok=True)
    (folder / made.file).write_bytes(made.content)
    return made.facts, read_item_table(folder, {"name": "t", "item_table": made.facts})


# -- keys -----------------------------------------------------------------------------------


def test_a_row_without_a_name_has_its_number_in_the_original_data():
    data = Dataset.from_table(people(), "y")
    assert item_keys(data).tolist() == ["0", "1", "2", "3", "4", "5"]
    sampled = data.sample(3, np.random.default_rng(0))
    names = [int(key) for key in item_keys(sampled)]
    assert [20 + name for name in names] == sampled.frame()["age"].tolist()


def test_row_names_are_keys_if_they_are_unique():
    frame = people()
    named = Dataset.from_table(frame.set_index(pd.Index(list("abcdef"))), "y")
    assert item_keys(named).tolist() == list("abcdef")
    kept = Dataset.from_table(frame[frame["age"] > 22], "y")
    assert item_keys(kept).tolist() == ["3", "4", "5"]
    twice = Dataset.from_table(frame.set_index(pd.Index(list("aacdef"))), "y")
    assert item_keys(twice).tolist() == ["0", "1", "2", "3", "4", "5"]


def test_names_do_not_change_the_fingerprint_of_data():
    frame = people()
    named = Dataset.from_table(frame.set_index(pd.Index(list("abcdef"))), "y")
    assert named.fingerprint == Dataset.from_table(frame, "y").fingerprint


def test_the_key_of_an_entity_is_its_id_unless_it_occurs_twice():
    frame = pd.DataFrame({"city": list("stu"), "big": ["yes", "no", "no"]})
    data = Dataset.from_columns(frame, ["city"], "big", modality="entity")
    assert item_keys(data).tolist() == ["s", "t", "u"]
    twice = pd.concat([frame, frame], ignore_index=True)
    data = Dataset.from_columns(twice, ["city"], "big", modality="entity")
    assert item_keys(data).tolist() == ["0", "1", "2", "3", "4", "5"]


def test_texts_are_numbered_by_row_or_named_by_the_index():
    frame = pd.DataFrame({"text": ["a b", "c", "a b"], "y": ["p", "q", "p"]})
    assert item_keys(Dataset.from_columns(frame, ["text"], "y")).tolist() == ["0", "1", "2"]
    named = frame.set_index(pd.Index(["x1", "x2", "x3"]))
    assert item_keys(Dataset.from_columns(named, ["text"], "y")).tolist() == ["x1", "x2", "x3"]


# -- cells ----------------------------------------------------------------------------------


def test_cells_of_a_table_are_read_as_they_were(tmp_path):
    frame = people(tall=[1.5, None, 2.25, 1.0, 1.0, 1.0], note=["a\nb", "", None, "NA", '"', "é"])
    facts, table = table_of(Dataset.from_table(frame, "y", name="people"), tmp_path)
    assert (facts["rows"], facts["of"]) == (6, 6)
    assert table.index.tolist() == ["0", "1", "2", "3", "4", "5"]
    assert table["age"].tolist() == ["20", "21", "22", "23", "24", "25"]
    assert table["name"].unique().tolist() == ["Ann, B."]
    assert table["tall"].tolist() == ["1.5", "", "2.25", "1", "1", "1"]
    assert table["note"].tolist() == ["a\nb", "", "", "NA", '"', "é"]
    assert "y" not in table


def test_texts_are_cut_and_their_length_is_kept(tmp_path):
    frame = pd.DataFrame({"text": ["x" * 2000, "short"], "y": ["p", "q"]})
    _, table = table_of(Dataset.from_columns(frame, ["text"], "y"), tmp_path)
    assert [len(text) for text in table["text"]] == [TEXT_LENGTH, 5]
    assert table["characters"].tolist() == ["2000", "5"]


def test_pairs_bags_and_groups(tmp_path):
    frame = pd.DataFrame(
        {"a": ["hi", "yes"], "b": ["hello", "no"], "y": [0.9, 0.1], "g": ["u", "v"]}
    )
    data = Dataset.from_columns(frame, ["a", "b"], "y", kind="regression", group="g")
    _, table = table_of(data, tmp_path)
    assert table[["a", "b", "group"]].to_numpy().tolist() == [
        ["hi", "hello", "u"],
        ["yes", "no", "v"],
    ]
    bags = pd.DataFrame({"a": [{"r": 1.0, "s": 2.0}, {"t": 1.0}], "y": ["p", "q"]})
    _, table = table_of(Dataset.from_columns(bags, ["a"], "y", modality="entity"), tmp_path)
    assert table["a"].tolist() == ["r; s", "t"]


def test_a_column_called_key_keeps_its_name(tmp_path):
    _, table = table_of(Dataset.from_table(people(key=list("uvwxyz")), "y"), tmp_path)
    assert table.index.tolist() == ["0", "1", "2", "3", "4", "5"]
    assert table["key"].tolist() == list("uvwxyz")


def test_lone_surrogates_do_not_stop_a_run(tmp_path):
    _, table = table_of(
        Dataset.from_table(people(odd=pd.Series(["\ud800", *"bcdef"], dtype=object)), "y"), tmp_path
    )
    assert table["odd"].tolist() == ["\\ud800", *"bcdef"]


def test_an_item_in_one_line():
    assert describe_item(pd.Series({"text": "a\n b", "characters": "4"}), 20) == "a b"
    assert describe_item(pd.Series({"a": "x", "b": "", "group": "g"}), 20) == "a: x"
    assert describe_item(pd.Series({"a": "xyz", "b": "uvw"}), 8) == "a: xyz …"


# -- limits ---------------------------------------------------------------------------------


def test_a_large_table_keeps_evenly_spaced_rows_within_the_limit():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=5000), "y": rng.integers(2, size=5000).astype(str)})
    data = Dataset.from_table(frame, "y")
    made = make_item_table(data, np.arange(5000), max_bytes=10_000)
    assert len(made.content) <= 10_000 and 500 < made.rows < 5000 and made.of == 5000
    text = gzip.decompress(made.content).decode().splitlines()[1:]
    keys = [int(line.partition(",")[0]) for line in text]
    assert (keys[0], keys[-1], len(keys)) == (0, 4999, made.rows)
    gaps = np.diff(keys)
    assert gaps.max() - gaps.min() <= 1


def test_a_column_may_be_called_key_and_texts_are_quoted():
    frame = pd.DataFrame({"key": ['a,"b"', "c\rd"], "number": [10, 2], "y": ["u", "v"]})
    data = Dataset.from_table(frame, "y")
    text = gzip.decompress(make_item_table(data, np.arange(2)).content).decode()
    expected = [["key", "key", "number"], ["0", 'a,"b"', "10"], ["1", "c\rd", "2"]]
    assert list(csv.reader(io.StringIO(text, newline=""))) == expected


def test_a_row_that_does_not_fit_leaves_no_table():
    data = Dataset.from_table(people(), "y")
    made = make_item_table(data, np.arange(6), max_bytes=5)
    assert (made.file, made.rows, made.of) == ("", 0, 6) and made.reason


def test_the_bytes_are_the_same_each_time():
    data = Dataset.from_table(people(), "y")
    assert make_item_table(data, np.arange(6)) == make_item_table(data, np.arange(6))


@pytest.mark.parametrize(
    ("license", "forbidden"),
    [
        ("", False),
        ("CC-BY-4.0", False),
        ("not stated", False),
        ("research use; the texts keep the terms of their sources", False),
        ("non-commercial research use; the copyright of the articles is the BBC's", True),
        ("Proprietary", True),
        ("may not be redistributed", True),
        ("CC-BY-4.0; all rights reserved by the BBC", True),
    ],
)
def test_licenses_that_forbid_copies(license, forbidden):
    assert copying_forbidden({"license": license}) is forbidden
    data = Dataset.from_table(people(), "y", about={"license": license})
    made = make_item_table(data, np.arange(6))
    assert bool(made.content) is not forbidden
    assert bool(made.reason) is forbidden


# -- in a run -------------------------------------------------------------------------------


def evaluate(folder, items: bool = True, **options) -> Run:
    data = Dataset.from_table(people(40, x=np.arange(40) % 7), "y", name="people")
    task = karat.Task("t", data, split={"use": "kfold", "folds": 2}, metrics=["acc"])
    (run,) = karat.evaluate("dummy", task, output=Output(folder, items=items), **options)
    return run


def test_a_run_keeps_its_items_by_the_keys_of_its_predictions(tmp_path):
    run = evaluate(tmp_path)
    items = run.items("t")
    keys = [key for fold in (0, 1) for key in run.predictions("t", fold).key]
    assert sorted(keys, key=int) == items.index.tolist() == [str(i) for i in range(40)]
    answers = run.predictions("t", 1)
    expected = ["no" if int(key) % 2 else "yes" for key in answers.key]
    assert answers.target.tolist() == expected
    (file,) = (run.folder / "items").iterdir()
    facts = json.loads((run.folder / "run.json").read_text())["tasks"][0]["item_table"]
    assert facts == {"file": f"items/{file.name}", "rows": 40, "of": 40}


def test_workers_write_the_same_bytes(tmp_path):
    runs = [evaluate(tmp_path / str(workers), workers=workers) for workers in (0, 2)]
    for pattern in ("items/*", "predictions/t/*/predictions.csv"):
        one, other = (sorted(run.folder.glob(pattern)) for run in runs)
        assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other] != []


def test_items_can_be_left_out_and_a_resumed_run_adds_them(tmp_path):
    run = evaluate(tmp_path, items=False)
    assert not (run.folder / "items").exists()
    assert run.predictions("t", 0).key is not None
    with pytest.raises(DataError):
        run.items("t")
    again = evaluate(tmp_path, resume=True)
    assert again.folder == run.folder and len(again.items("t")) == 40


def test_a_rescored_run_keeps_the_items(tmp_path):
    run = evaluate(tmp_path / "a")
    karat.rescore(run, ["f1_macro"], output=tmp_path / "b")
    (copy,) = karat.open_runs(tmp_path / "b")
    assert copy.items("t").equals(run.items("t"))


def test_an_unknown_task_a_damaged_file_and_a_path_outside(tmp_path):
    run = evaluate(tmp_path)
    with pytest.raises(DataError, match='"t"'):
        run.items("tt")
    (file,) = (run.folder / "items").iterdir()
    file.write_bytes(b"no gzip")
    with pytest.raises(DataError):
        run.items("t")
    file.unlink()
    with pytest.raises(DataError):
        run.items("t")
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"key,a\n0,1\n"))
    for name in ("../x.csv.gz", "items/../../x.csv.gz", 3):
        with pytest.raises(DataError):
            read_item_table(run.folder, {"name": "t", "item_table": {"file": name}})
    file.symlink_to(tmp_path / "x.csv.gz")
    with pytest.raises(DataError):
        run.items("t")


def test_no_artifact_is_written_among_the_items():
    class Model:
        def artifacts(self, names):
            return {"items/a.txt": "x"}

    with pytest.raises(ContractError):
        collect_artifacts(Model(), ["items"])


def test_cells_are_written_as_pandas_writes_them():
    frame = pd.DataFrame(
        {
            "tall": [1.5, np.nan, 123456.789012, 1e-12, 3.0, -np.inf],
            "small": np.arange(6, dtype="float32") / 3,
            "count": pd.array([1, pd.NA, 3, 4, 5, 6], dtype="Int64"),
            "text": ["a,b", None, 'say "x"', "", "two\nlines", "é"],
            "known": [True, False] * 3,
            "y": ["u", "v"] * 3,
        }
    )
    data = Dataset.from_table(frame, "y")
    made = make_item_table(data, np.arange(6))
    texts = {name: data.frame()[name].astype(object) for name in ("text", "known")}
    shown = data.frame().assign(**texts)
    shown.insert(0, "key", list("012345"))
    expected = shown.to_csv(index=False, float_format="%.8g", lineterminator="\n")
    assert gzip.decompress(made.content).decode() == expected
