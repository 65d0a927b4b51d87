"""The tables of a run: columns in order, one golden table each; and damaged run folders."""

import contextlib
import csv
import functools
import gzip
import io
import json
import operator
import random
import shutil

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.analysis.checks import check_runs
from karat.core.dataset import Dataset
from karat.errors import ContractError, DataError, DefinitionError
from karat.execution.arguments import Output
from karat.models.tables.one_hot_table import OneHotTable
from karat.results.load import status
from karat.results.run import Run, collect_artifacts, open_runs
from karat.results.tables import (
    AMLB_COLUMNS,
    KARAT_COLUMNS,
    SCORE_COLUMNS,
    TEXT_LENGTH,
    check_record,
    copying_forbidden,
    csv_text,
    describe_item,
    item_keys,
    make_item_table,
    read_item_table,
    results_table,
    scores_table,
)

ABOUT = {
    **{"model": "forest", "constraint": "test", "mode": "local", "version": "1.0"},
    **{"params": {"trees": 2}, "karat": "0.1.0"},
    "tasks": [
        {"name": "iris", "dataset": "iris", "metrics": ["acc", "logloss"]},
        {"name": "far", "dataset": "far-away", "metrics": ["?"]},
    ],
}


def record(**changes):
    return {
        **{"spec": "s", "model": "forest", "task": "iris", "kind": "", "fold": 0, "repeat": 0},
        **{"seed": 42, "metric": "acc", "status": "ok", "info": "", "views": [], "notes": []},
        **{"history": [], "utc": "2026-01-02T03:04:05", **changes},
    }


def view(corruption="", severity=0.0, **changes):
    return {
        **{"corruption": corruption, "severity": severity, "coverage": 1.0},
        **{"scores": {"acc": 0.9, "logloss": 0.1 + 0.2}, "reasons": {}, "status": "ok"},
        **{"info": "", **changes},
    }


FULL = record(
    views=[view(), view("noise", 0.5, scores={"acc": 0.5, "logloss": None})],
    history=[{"epoch": 1, "metric": "loss", "value": 0.75}],
    notes=["slow", "late"],
    dimensions=4,
    train_questions=100,
    questions=50,
    embed_seconds=0.75,
    load_seconds=0.5,
    fit_seconds=1.5,
    predict_seconds=0.25,
    score_seconds=0.125,
    seconds=2.5,
    cpu_seconds=2.25,
    peak_memory_mb=128.0,
)
FAILED = record(fold=1, seed=43, status="failed", info='ValueError: "a", b')
DECLINED = record(task="far", fold=None, repeat=None, seed=None, metric="?", status="declined")
DECLINED["info"] = "offline"

GOLDEN_RESULTS = """\
id,task,framework,constraint,fold,result,metric,mode,version,params,tag,utc,duration,models,seed,\
info,acc,logloss,status,repeat,corruption,severity,draw,affected,coverage,dimensions,\
vector_precision,vector_bytes,train_questions,questions,\
embed_seconds,load_seconds,fit_seconds,predict_seconds,score_seconds,seconds,cpu_seconds,\
peak_memory_mb,notes
iris,iris,forest,test,0,0.9,acc,local,1.0,"{""trees"": 2}",karat-0.1.0,2026-01-02T03:04:05,1.5,,42,\
,0.9,0.30000000000000004,ok,0,,0.0,0,,1.0,4,float32,16,100,50,0.75,0.5,1.5,0.25,0.125,2.5,\
2.25,128.0,slow; late
iris,iris,forest,test,0,0.5,acc,local,1.0,"{""trees"": 2}",karat-0.1.0,2026-01-02T03:04:05,1.5,,42,\
,0.5,,ok,0,noise,0.5,0,,1.0,4,float32,16,100,50,0.75,0.5,1.5,0.25,0.125,2.5,2.25,128.0,slow; late
iris,iris,forest,test,1,,acc,local,1.0,"{""trees"": 2}",karat-0.1.0,2026-01-02T03:04:05,,,43,\
"ValueError: ""a"", b",,,failed,0,,0.0,0,,,,,,,,,,,,,,,,
far-away,far,forest,test,,,?,local,1.0,"{""trees"": 2}",karat-0.1.0,2026-01-02T03:04:05,,,,\
offline,,,declined,,,0.0,0,,,,,,,,,,,,,,,,
"""

GOLDEN_SCORES = """\
task,model,repeat,fold,corruption,severity,draw,epoch,metric,value
iris,forest,0,0,,0.0,0,1,loss,0.75
iris,forest,0,0,,0.0,0,-1,acc,0.9
iris,forest,0,0,,0.0,0,-1,logloss,0.30000000000000004
iris,forest,0,0,noise,0.5,0,-1,acc,0.5
iris,forest,0,0,noise,0.5,0,-1,logloss,
"""


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, ""),
        ({"value": None}, ""),
        ({"value": 1}, ""),
        ({"metric": "größe"}, ""),
        ({"epoch": True}, "history.epoch"),
        ({"epoch": 1.0}, "history.epoch"),
        ({"epoch": 2**63}, "history.epoch"),
        ({"metric": ["loss"]}, "history.metric"),
        ({"metric": "\ud800"}, "history.metric"),
        ({"value": float("inf")}, "history.value"),
        ({"value": "0.5"}, "history.value"),
    ],
)
def test_a_wrong_step_of_the_history_is_named(changes, wrong):
    step = {"epoch": 1, "metric": "loss", "value": 0.75}
    assert check_record(record(history=[step, {**step, **changes}])) == wrong
    assert check_record(record(history=[{"epoch": 1, "value": 0.5}])) == "history.metric"


def test_golden_results():
    table = results_table(ABOUT, [FULL, FAILED, DECLINED])
    assert table.to_csv(index=False) == GOLDEN_RESULTS


def test_golden_scores():
    assert scores_table([FULL, FAILED, DECLINED]).to_csv(index=False) == GOLDEN_SCORES


TEXTS = st.text(st.characters(exclude_characters="\r"), max_size=4)  # pandas does not quote it
CELLS = st.none() | TEXTS | st.sampled_from(["a,b", 'say "x"', "two\nlines", ""])


@given(
    st.lists(CELLS, min_size=1, max_size=5),
    st.lists(st.none() | st.floats(), min_size=1, max_size=5),
    st.lists(st.none() | st.integers(-5, 5), min_size=1, max_size=5),
)
def test_csv_text_is_that_of_pandas(texts, numbers, integers):
    count = max(len(texts), len(numbers), len(integers))
    columns = {
        name: [values[row % len(values)] for row in range(count)]
        for name, values in {"a, b": texts, "n": numbers, "i": integers, "whole": integers}.items()
    }
    table = pd.DataFrame(columns).astype({"a, b": object, "n": float, "whole": "Int64"})
    assert csv_text(columns, ["whole"]) == table.to_csv(index=False)


@pytest.mark.parametrize("cells", [["a\rb", "\r"], ["a\rb", None], ["\r\n", 1.5]])
def test_carriage_returns_can_be_read_again(cells):
    text = csv_text({"a": cells, "b": ["x", "y"]})
    rows = list(csv.reader(io.StringIO(text, newline="")))
    expected = ["" if cell is None else str(cell) for cell in cells]
    assert rows == [["a", "b"], [expected[0], "x"], [expected[1], "y"]]


def test_order_of_columns():
    scored = record(views=[view(scores={"rmse": 1.0, "auc": 0.5, "Brier": 0.1})])
    columns = list(results_table(ABOUT, [scored]).columns)
    assert columns == [*AMLB_COLUMNS, "Brier", "acc", "auc", "logloss", "rmse", *KARAT_COLUMNS]


def test_tables_without_records():
    columns = list(results_table(ABOUT, []).columns)
    assert columns == [*AMLB_COLUMNS, "acc", "logloss", *KARAT_COLUMNS]
    empty = scores_table([])
    assert list(empty.columns) == list(SCORE_COLUMNS)
    assert empty["value"].dtype == float


def test_info_of_each_view():
    failing = view("missing", 0.1, scores={}, status="failed", info="ValueError: NaN")
    odd = view("noise", 0.5, scores={"acc": None}, reasons={"acc": "Scoring acc: no rows"})
    job = record(status="failed", info="missing@0.1: ValueError: NaN", views=[view(), failing, odd])
    table = results_table(ABOUT, [job])
    assert table["status"].tolist() == ["ok", "failed", "ok"]
    assert table["info"].tolist() == ["", "ValueError: NaN", "Scoring acc: no rows"]
    # the failure of a job without failed views is in each row
    late = record(status="failed", info="KeyError: 'epoch'", views=[view()])
    assert results_table(ABOUT, [late])["info"].tolist() == ["KeyError: 'epoch'"]


# -- damaged folders ----------------------------------------------------------------------------

WRONG = [None, True, -1, 2**40, 10**30, 1e308, "", "\udc80", [], [None], {}, {"a": None}, 1.5]
#: texts in place of a value, or of the whole file
NUMBERS = ["1e999", "-1e999", "NaN", "9" * 400, "9" * 5000]
FILES = ["null", "[]", "{}", "0", "", "\0" * 20, "[" * 100_000, '{"a":' * 50_000]


def places(value, path=()):
    """Yield the keys that lead to each value inside a JSON value."""
    value = dict(enumerate(value)) if isinstance(value, list) else value
    for key, each in value.items() if isinstance(value, dict) else ():
        yield (*path, key)
        yield from places(each, (*path, key))


def damage(text, rng):
    how = rng.choice(["cut", "file", "letter", "missing", "number", "value", "value", "value"])
    at = rng.randrange(len(text))
    if how in ("cut", "letter"):
        return text[:at] + ("" if how == "cut" else chr(rng.randrange(32, 127)) + text[at + 1 :])
    if how == "file":
        return rng.choice(FILES)
    value = json.loads(text)
    *path, last = rng.choice(list(places(value)))
    inner = functools.reduce(operator.getitem, path, value)
    if how == "missing":
        del inner[last]
    else:
        inner[last] = rng.choice(WRONG) if how == "value" else "a number"
    return json.dumps(value).replace('"a number"', rng.choice(NUMBERS))


@pytest.fixture(scope="module")
def two_runs(two_classes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    task = two_classes(corruptions={"noise_gaussian": [0.5]})
    karat.evaluate({"good": OneHotTable(), "bad": OneHotTable()}, task, output=folder)
    return folder, task


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_run_is_left_out_and_the_others_are_shown(two_runs, tmp_path, seed):
    rng = random.Random(seed)
    folder, task = shutil.copytree(two_runs[0], tmp_path / "results"), two_runs[1]
    (run,) = folder.glob("bad.*")
    records = sorted((run / "jobs").iterdir())
    file = rng.choice([run / "run.json"] * len(records) + records)
    text = damage(file.read_text(encoding="utf-8"), rng)
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    assert "good" in status(folder)["model"].tolist()
    with contextlib.suppress(DefinitionError):  # the name of a metric is no longer one
        assert "good" in karat.leaderboard(folder).index
        check_runs(folder)
    for each in open_runs(folder):
        each.finish()
        with contextlib.suppress(DataError):
            karat.rescore(each)
    (resumed,) = karat.evaluate({"bad": OneHotTable()}, task, output=folder, resume=True)
    assert resumed.results()["status"].tolist() == ["ok"] * 4


@pytest.mark.parametrize("text", ["null", '{"model": "m"}', '{"model": "m", "tasks": null}'])
def test_a_damaged_plan_has_one_message(two_runs, tmp_path, text):
    folder = shutil.copytree(two_runs[0], tmp_path / "results")
    (run,) = folder.glob("bad.*")
    (run / "run.json").write_text(text)
    with pytest.warns(UserWarning) as caught:
        assert karat.leaderboard(folder).index.tolist() == ["good"]
    assert [run.name in str(each.message) for each in caught] == [True]
    with pytest.raises(DataError, match=r"run\.json"):
        Run.open(run).about  # noqa: B018


# -- item tables ----------------------------------------------------------------------------


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


def evaluate(folder, **options) -> Run:
    data = Dataset.from_table(people(40, x=np.arange(40) % 7), "y", name="people")
    task = karat.Task("t", data, split={"use": "kfold", "folds": 2}, metrics=["acc"])
    (run,) = karat.evaluate("dummy", task, output=folder, **options)
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
    run = evaluate(Output(tmp_path, items=False))
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
