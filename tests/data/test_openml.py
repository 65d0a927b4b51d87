"""OpenML tables, suites, tasks and folds, from a local server."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.datasets import _openml as theirs

from karat.config.catalog import Catalog
from karat.core.files import cache_folder
from karat.data import openml
from karat.data.load_dataset import load_dataset
from karat.data.openml import (
    OpenMLTable,
    openml_folds,
    openml_suite,
    openml_table,
    openml_task,
    openml_tasks_by_name,
    read_splits,
    splits,
)
from karat.errors import DataError, DefinitionError, Unavailable
from karat.execution.arguments import Machines
from karat.execution.evaluation import evaluate
from karat.execution.splits import split

HEADER = b"""@relation toy
@attribute id integer
@attribute x real
@attribute colour {red, blue}
@attribute grade integer
@attribute class {yes, no}
@data
"""
ARFF = (
    HEADER
    + b"""1,0.5,red,10,yes
2,?,blue,20,no
3,1.5,?,30,yes
4,2.5,red,40,no
"""
)
#: name, type, whether it is OpenML's target, whether it is no feature
FEATURES = [
    ("id", "numeric", False, True),
    ("x", "numeric", False, False),
    ("colour", "nominal", False, False),
    ("grade", "numeric", False, False),
    ("class", "nominal", True, False),
]
API = "/api/v1/json"


class Server:
    """A local OpenML server with prepared answers."""

    def __init__(self, stub: Any) -> None:
        self.stub = stub

    def says(self, path: str, answer: Any) -> None:
        self.stub.put(f"{API}/{path}", self.stub.body(json.dumps(answer).encode()))

    def table(self, data_id: int = 7, arff: bytes = ARFF, **changes: Any) -> None:
        """Serve a data set: description, features, qualities and file."""
        path = f"/data/v1/download/{data_id}/toy.arff"
        facts = {
            "id": str(data_id),
            "name": "Toy-Data",
            "version": "2",
            "description": "made up",
            "format": "ARFF",
            "licence": "CC0",
            "citation": "Nobody (2020)",
            "status": "active",
            "default_target_attribute": "class",
            "md5_checksum": hashlib.md5(arff).hexdigest(),
            "url": self.stub.put(path, self.stub.body(arff)),
            **changes,
        }
        facts["file_id"] = facts["url"]
        features = [
            {
                "index": str(i),
                "name": name,
                "data_type": kind,
                "is_target": str(target).lower(),
                "is_ignore": "false",
                "is_row_identifier": str(ignored).lower(),
                "number_of_missing_values": "0",
            }
            for i, (name, kind, target, ignored) in enumerate(FEATURES)
        ]
        qualities = [{"name": "NumberOfInstances", "value": "4"}]
        self.says(f"data/{data_id}", {"data_set_description": facts})
        self.says(f"data/features/{data_id}", {"data_features": {"feature": features}})
        self.says(f"data/qualities/{data_id}", {"data_qualities": {"quality": qualities}})


def point_at(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openml, "API", address)
    monkeypatch.setattr(theirs, "_DATA_INFO", f"{address}/data/{{}}")
    monkeypatch.setattr(theirs, "_DATA_FEATURES", f"{address}/data/features/{{}}")
    monkeypatch.setattr(theirs, "_DATA_QUALITIES", f"{address}/data/qualities/{{}}")
    # old versions of scikit-learn make the address of the file from its id
    monkeypatch.setattr(theirs, "_OPENML_PREFIX", "", raising=False)
    monkeypatch.setattr(theirs, "_DATA_FILE", "{}", raising=False)


@pytest.fixture
def server(stub, monkeypatch) -> Server:
    point_at(stub.address + API, monkeypatch)
    return Server(stub)


def test_table_by_its_id(server):
    server.table()
    data = openml_table("toy", 7)
    assert list(data.items.columns) == ["x", "colour", "grade"]  # the row's number is no feature
    assert data.items["x"].tolist()[::3] == [0.5, 2.5] and pd.isna(data.items["x"][1])
    assert data.items["colour"].tolist()[:2] == ["red", "blue"] and pd.isna(data.items["colour"][2])
    assert not isinstance(data.items["colour"].dtype, pd.CategoricalDtype)
    assert data.target.tolist() == ["yes", "no", "yes", "no"]
    assert (data.name, data.kind, data.classes) == ("toy", "classification", ("no", "yes"))
    assert data.about == {
        "source": "OpenML, data set 7 (Toy-Data, version 2)",
        "version": "2",
        "md5": hashlib.md5(ARFF).hexdigest(),
        "license": "CC0",
        "openml_license": "CC0",
        "citation": "Nobody (2020)",
    }
    data = openml_table("toy", 7, group="grade")
    assert list(data.items.columns) == ["x", "colour"]
    assert len(data.group) == 4


def test_settings_of_a_definition(server):
    server.table()
    load = {
        "use": "karat.data.openml:openml_table",
        "data_id": 7,
        "target": "grade",
        "called": "toy_data",
        "drop": ["colour"],
    }
    data = load_dataset("grades", {"load": load, "license": "mine"})
    assert data.kind == "regression" and data.target.tolist() == [10, 20, 30, 40]
    assert list(data.items.columns) == ["x", "class"]
    assert data.about["license"] == "mine" and data.about["openml_license"] == "CC0"
    assert openml_table("grades", 7, target="grade", kind="classification").kind == "classification"


def test_second_call_uses_the_cache_and_offline_sends_no_request(server, monkeypatch):
    server.table()
    first = openml_table("toy", 7)
    asked = len(server.stub.asked)
    assert asked == 5  # the description twice: once before anything large is fetched
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    assert openml_table("toy", 7).fingerprint == first.fingerprint
    with pytest.raises(Unavailable, match="KARAT_OFFLINE"):
        openml_table("toy", 8)
    with pytest.raises(Unavailable, match='"99"'):
        openml_suite(99)
    assert len(server.stub.asked) == asked


def test_wrong_id_is_detected_before_the_download(server):
    server.table()
    with pytest.raises(DataError, match='"Toy-Data"'):
        openml_table("iris", 7, called="iris")
    assert server.stub.asked == [f"{API}/data/7"]


def test_unreachable_server(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    point_at(address, monkeypatch)
    with pytest.raises(Unavailable, match=f"dataset 7: {address}/data/7"):
        openml_table("toy", 7)
    with pytest.raises(Unavailable, match='"99"'):
        openml_suite(99)


@pytest.mark.parametrize(
    ("changes", "kind", "word"),
    [
        ({"url": "{server}/gone.arff"}, Unavailable, "404"),
        ({"md5_checksum": "0" * 32}, DataError, "checksum"),
        ({"format": "Sparse_ARFF"}, DataError, "sparse"),
        ({"default_target_attribute": ""}, DefinitionError, "target: NAME"),
        ({"default_target_attribute": "class,grade"}, DefinitionError, "target: NAME"),
        ({"default_target_attribute": "clas"}, DataError, '"class"'),
    ],
)
def test_unusable_dataset(server, changes, kind, word):
    address = server.stub.address
    server.table(**{key: value.format(server=address) for key, value in changes.items()})
    with pytest.raises(kind, match=word) as caught:
        openml_table("toy", 7)
    assert caught.type is kind


def test_cache_that_cannot_be_written(server, monkeypatch, tmp_path):
    server.table()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="KARAT_C"):
        openml_table("toy", 7)


def damage(how: str) -> None:
    home = cache_folder() / "openml" / "7"
    file = next(home.rglob("*toy.arff.gz"))
    if how == "gone":
        file.unlink()
    elif how == "changed":
        file.write_bytes(gzip.compress(b"@relation other"))
    elif how == "unmarked":
        (home / "files.json").unlink()
    else:
        (home / "files.json").write_text("[1")


@pytest.mark.parametrize("how", ["gone", "changed", "unmarked", "nonsense"])
def test_damaged_cache_is_repaired_online_and_refused_offline(server, monkeypatch, how):
    server.table()
    whole = openml_table("toy", 7).fingerprint
    damage(how)
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    asked = len(server.stub.asked)
    with pytest.raises(Unavailable, match="is not in the cache"):
        openml_table("toy", 7)
    assert len(server.stub.asked) == asked
    monkeypatch.delenv("KARAT_OFFLINE")
    assert openml_table("toy", 7).fingerprint == whole


def task(task_id: int, data_id: int, target: str, type_id: int = 1) -> dict[str, Any]:
    source = {"data_set_id": str(data_id), "target_feature": target}
    inputs = [{"name": "cost_matrix"}, {"name": "source_data", "data_set": source}]
    return {"task": {"task_id": str(task_id), "task_type_id": str(type_id), "input": inputs}}


def test_suite_is_a_list_of_loaders(server):
    server.table()
    server.says("study/99", {"study": {"tasks": {"task_id": ["31", "32", "33", "34"]}}})
    server.says("task/31", task(31, 7, "class"))
    server.says("task/32", task(32, 8, "price", 2))
    server.says("task/33", task(33, 7, "grade", 2))
    server.says("task/34", task(34, 9, "cluster", 5))  # a clustering: no answer per row
    listed = [{"did": 7, "name": "toy"}]
    server.says("data/list/data_id/7,8/status/all", {"data": {"dataset": listed}})
    found = openml_suite(99)
    assert found == [
        OpenMLTable("toy-31", 31, 7, "class", "classification"),
        OpenMLTable("openml-8", 32, 8, "price", "regression"),
        OpenMLTable("toy-33", 33, 7, "grade", "regression"),
    ]
    data = pickle.loads(pickle.dumps(found[2]))()
    assert data.name == "toy-33" and data.target.tolist() == [10, 20, 30, 40]


def test_suite_by_its_alias_with_one_task(server):
    server.says("study/tiny", {"study": {"tasks": {"task_id": "31"}}})
    server.says("task/31", task(31, 7, "class"))
    listed = {"data": {"dataset": [{"did": 7, "name": "toy"}]}}
    server.says("data/list/data_id/7/status/all", listed)
    assert openml_suite("tiny") == [OpenMLTable("toy", 31, 7, "class", "classification")]


def test_invalid_suites(server):
    server.stub.put(f"{API}/study/1", server.stub.status(412))
    server.says("study/2", {"study": {}})
    server.says("study/3", {"study": {"tasks": {"task_id": ["31"]}}})
    server.says("task/31", {"task": {"task_id": "31", "task_type_id": "1", "input": []}})
    for number, word in ((1, '"1"'), (2, '"2"'), (3, "31")):
        with pytest.raises(DataError, match=word):
            openml_suite(number)


REAL = Path(sklearn.__file__).parent / "datasets/tests/data/openml/id_40945"


@pytest.mark.skipif(not REAL.is_dir(), reason="scikit-learn came without its tests")
def test_real_titanic(server):
    def unpacked(pattern: str) -> bytes:
        with gzip.open(next(REAL.glob(pattern))) as file:
            return file.read()

    arff = unpacked("data-v1-*.arff.gz")
    facts = json.loads(unpacked("api-v1-jd-40945.json.gz"))
    described = facts["data_set_description"]
    address = server.stub.put("/titanic.arff", server.stub.body(arff))
    described["url"] = described["file_id"] = address
    described["md5_checksum"] = hashlib.md5(arff).hexdigest()
    server.says("data/40945", facts)
    for part, short in (("features", "jdf"), ("qualities", "jdq")):
        answer = json.loads(unpacked(f"api-v1-{short}-40945.json.gz"))
        server.says(f"data/{part}/40945", answer)
    data = openml_table("titanic", 40945, called="titanic")
    assert len(data) == 1309 and data.target.tolist().count("1") == 500
    assert data.items["name"][0] == "Allen, Miss. Elisabeth Walton"
    assert data.about["source"] == "OpenML, data set 40945 (Titanic, version 1)"


HEAD = """@RELATION toy_splits
@ATTRIBUTE type {TRAIN,TEST}
@ATTRIBUTE rowid NUMERIC
@ATTRIBUTE repeat NUMERIC
@ATTRIBUTE fold NUMERIC
@DATA
"""
ROWS = 12
TASK_ARFF = HEADER + b"".join(
    f"{i},{i / 2},{'red' if i % 3 else 'blue'},{i * 10},{'yes' if i % 2 else 'no'}\n".encode()
    for i in range(ROWS)
)


def two_repeats() -> str:
    """Return 2 repeats of 2 folds: repeat 0 cuts in halves, repeat 1 by odd and even pairs."""
    lines = []
    for repeat in range(2):
        for fold in range(2):
            for row in range(ROWS):
                side = row // 6 if repeat == 0 else row // 2 % 2
                part = "TEST" if side == fold else "TRAIN"
                lines.append(f"{part},{row},{repeat},{fold}")
    return HEAD + "\n".join(reversed(lines)) + "\n"


@pytest.fixture
def tasks_server(server):
    server.table(arff=TASK_ARFF)
    return server


def serve_task(
    tasks_server: Any, number: int = 59, text: str | None = None, **changes: Any
) -> None:
    path = f"/api_splits/get/{number}/Task_{number}_splits.arff"
    address = tasks_server.stub.put(path, tasks_server.stub.body((text or two_repeats()).encode()))
    procedure = {"id": "1", "type": "crossvalidation", "data_splits_url": address}
    source = {"data_set_id": "7", "target_feature": changes.pop("target", "class")}
    inputs = [
        {"name": "source_data", "data_set": source},
        {"name": "cost_matrix", "cost_matrix": []},
        {"name": "estimation_procedure", "estimation_procedure": procedure},
        {"name": "evaluation_measures", "evaluation_measures": {"evaluation_measure": ""}},
    ]
    facts = {"task_id": str(number), "task_type_id": "1", "task_type": "Supervised Classification"}
    tasks_server.says(f"task/{number}", {"task": {**facts, "input": inputs, **changes}})
    listed = [{"did": 7, "name": "toy"}]
    tasks_server.says("data/list/data_id/7/status/all", {"data": {"dataset": listed}})


def test_folds_are_those_of_openml(tasks_server):
    serve_task(tasks_server)
    data = openml_task("toy", 59)
    folds = split(data, {"use": "karat.data.openml:openml_folds", "task_id": 59}, 42)
    assert [fold.repeat for fold in folds] == [0, 0, 1, 1]
    assert sorted(folds[0].test) == [0, 1, 2, 3, 4, 5]
    assert sorted(folds[2].test) == [0, 1, 4, 5, 8, 9]
    for fold in folds:
        assert sorted([*fold.train, *fold.test]) == list(range(ROWS))
    assert data.about["openml_task"] == "59" and data.kind == "classification"
    few = data.sample(8, np.random.default_rng(0))  # rows not in the dataset are ignored
    for train, test, _ in openml_folds(few, 59):
        assert sorted([*train, *test]) == list(range(8))


def test_task_and_splits_are_cached(tasks_server, monkeypatch):
    serve_task(tasks_server)
    openml_task("toy", 59)
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    with pytest.raises(Unavailable, match="59"):
        splits(59)
    with pytest.raises(Unavailable, match="60"):
        openml_task("toy", 60)
    monkeypatch.delenv("KARAT_OFFLINE")
    splits(59)
    asked = len(tasks_server.stub.asked)
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    assert len(openml_task("toy", 59)) == ROWS and len(splits(59)) == 4 * ROWS
    assert len(tasks_server.stub.asked) == asked


def test_learning_curves_have_samples(tasks_server):
    text = HEAD.replace("@DATA", "@ATTRIBUTE sample NUMERIC\n@DATA")
    lines = [
        f"{part},{row},0,0,{sample}"
        for sample, size in enumerate((4, 8))
        for part, rows in (("TRAIN", range(size)), ("TEST", range(8, 12)))
        for row in rows
    ]
    serve_task(tasks_server, text=text + "\n".join(lines))
    folds = list(openml_folds(openml_task("toy", 59), 59))
    sizes = [(len(train), len(test), repeat) for train, test, repeat in folds]
    assert sizes == [(4, 4, 0), (8, 4, 0)]


def test_task_and_a_suite_by_their_names(tasks_server):
    serve_task(tasks_server)
    serve_task(tasks_server, 60, task_type_id="2", target="grade")
    tasks_server.says("study/271", {"study": {"tasks": {"task_id": ["59", "60"]}}})
    (only,) = openml_tasks_by_name("openml/t/59")
    assert only["name"] == "toy" and len(pickle.loads(pickle.dumps(only["dataset"]))()) == ROWS
    suite = Catalog().suite("openml/s/271")
    assert [task.name for task in suite] == ["toy-59", "toy-60"]
    assert [task.dataset().kind for task in suite] == ["classification", "regression"]


def test_task_is_run_by_its_name(tasks_server, tmp_path):
    serve_task(tasks_server)
    (run,) = evaluate(
        "constantpredictor", "openml/t/59", output=tmp_path, workers=Machines(constraint="test")
    )
    table = run.results()
    assert table["metric"].tolist() == ["auc", "auc"]  # as the AutoML Benchmark has it
    assert table["fold"].tolist() == [0, 1] and table["auc"].tolist() == [0.5, 0.5]
    (run,) = evaluate("constantpredictor", "openml/t/59", output=tmp_path)
    assert run.results()["repeat"].tolist() == [0, 0, 1, 1]


def test_benchmark_definition_limits_the_folds(tasks_server, tmp_path):
    serve_task(tasks_server)
    file = tmp_path / "mine.yaml"
    file.write_text("[{name: toys, openml_task_id: 59, folds: 3, metric: acc}]")
    (run,) = evaluate(
        "constantpredictor",
        "mine",
        define=file,
        output=tmp_path / "r",
        workers=Machines(constraint="test"),
    )
    assert run.results()["fold"].tolist() == [0, 1, 2]  # the task goes before the constraint


def test_invalid_name_and_task_of_another_type(tasks_server):
    for name in ("openml/x/3", "openml/t/", "openml/t/3x"):
        with pytest.raises(DefinitionError, match="openml/t/NUMBER"):
            openml_tasks_by_name(name)
    serve_task(tasks_server, task_type_id="5", task_type="Clustering")
    with pytest.raises(DataError, match="59"):
        openml_task("toy", 59)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "none"),
        ("<html>sorry</html>", "none"),
        (HEAD, "cannot"),
        (HEAD.replace("rowid", "row") + "TRAIN,1,0,0", "repeat"),
        (HEAD + "TRAIN,x,0,0", "cannot"),
        (HEAD + "BOTH,1,0,0", '"BOTH"'),
    ],
)
def test_folds_that_cannot_be_read(text, word):
    with pytest.raises(DataError, match=word):
        read_splits(text, "OpenML's task 59")
