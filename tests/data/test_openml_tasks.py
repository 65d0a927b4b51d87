"""Tasks of OpenML and their folds, from a local server."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path
from typing import Any

import pytest

from karat.catalogue import Catalogue
from karat.data.openml_tasks import openml_folds, openml_task, read_splits, splits, tasks_named
from karat.errors import DataError, DefinitionError, Unavailable
from karat.evaluate import evaluate
from karat.splits import split

_spec = importlib.util.spec_from_file_location(
    "openml_server", Path(__file__).with_name("test_openml.py")
)
assert _spec is not None and _spec.loader is not None
_module: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)

HEAD = """@RELATION toy_splits
@ATTRIBUTE type {TRAIN,TEST}
@ATTRIBUTE rowid NUMERIC
@ATTRIBUTE repeat NUMERIC
@ATTRIBUTE fold NUMERIC
@DATA
"""
ROWS = 12
ARFF = b"""@relation toy
@attribute id integer
@attribute x real
@attribute colour {red, blue}
@attribute grade integer
@attribute class {yes, no}
@data
""" + "".join(
    f"{i},{i / 2},{'red' if i % 3 else 'blue'},{i * 10},{'yes' if i % 2 else 'no'}\n"
    for i in range(ROWS)
).encode()


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
def server(stub, monkeypatch):
    _module.point_at(stub.address + _module.API, monkeypatch)
    made = _module.Server(stub)
    made.table(arff=ARFF)
    return made


def serve_task(server: Any, number: int = 59, text: str | None = None, **changes: Any) -> None:
    path = f"/api_splits/get/{number}/Task_{number}_splits.arff"
    address = server.stub.put(path, server.stub.body((text or two_repeats()).encode()))
    procedure = {"id": "1", "type": "crossvalidation", "data_splits_url": address}
    source = {"data_set_id": "7", "target_feature": changes.pop("target", "class")}
    inputs = [
        {"name": "source_data", "data_set": source},
        {"name": "cost_matrix", "cost_matrix": []},
        {"name": "estimation_procedure", "estimation_procedure": procedure},
        {"name": "evaluation_measures", "evaluation_measures": {"evaluation_measure": ""}},
    ]
    facts = {"task_id": str(number), "task_type_id": "1", "task_type": "Supervised Classification"}
    server.says(f"task/{number}", {"task": {**facts, "input": inputs, **changes}})
    listed = [{"did": 7, "name": "toy"}]
    server.says("data/list/data_id/7/status/all", {"data": {"dataset": listed}})


def test_folds_are_those_of_openml(server):
    serve_task(server)
    data = openml_task("toy", 59)
    folds = split(data, {"use": "karat.data.openml_tasks:openml_folds", "task_id": 59}, 42)
    assert [fold.repeat for fold in folds] == [0, 0, 1, 1]
    assert sorted(folds[0].test) == [0, 1, 2, 3, 4, 5]
    assert sorted(folds[2].test) == [0, 1, 4, 5, 8, 9]
    for fold in folds:
        assert sorted([*fold.train, *fold.test]) == list(range(ROWS))
    assert data.about["openml_task"] == "59" and data.kind == "classes"


def test_second_call_uses_the_cache(server, monkeypatch):
    serve_task(server)
    openml_task("toy", 59)
    splits(59)
    asked = len(server.stub.asked)
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    assert len(openml_task("toy", 59)) == ROWS and len(splits(59)) == 4 * ROWS
    assert len(server.stub.asked) == asked


def test_offline_without_a_cache(server, monkeypatch):
    serve_task(server)
    openml_task("toy", 59)
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    with pytest.raises(Unavailable, match="59"):
        splits(59)
    with pytest.raises(Unavailable, match="60"):
        openml_task("toy", 60)


def test_learning_curves_have_samples(server):
    text = HEAD.replace("@DATA", "@ATTRIBUTE sample NUMERIC\n@DATA")
    lines = [
        f"{part},{row},0,0,{sample}"
        for sample, size in enumerate((4, 8))
        for part, rows in (("TRAIN", range(size)), ("TEST", range(8, 12)))
        for row in rows
    ]
    serve_task(server, text=text + "\n".join(lines))
    folds = list(openml_folds(openml_task("toy", 59), 59))
    assert [(len(train), len(test), repeat) for train, test, repeat in folds] == [
        (4, 4, 0),
        (8, 4, 0),
    ]


def test_rows_not_in_the_dataset_are_ignored(server):
    import numpy as np

    serve_task(server)
    few = openml_task("toy", 59).sample(8, np.random.default_rng(0))
    for train, test, _ in openml_folds(few, 59):
        assert sorted([*train, *test]) == list(range(8))


def test_task_and_a_suite_by_their_names(server):
    serve_task(server)
    serve_task(server, 60, task_type_id="2", target="grade")
    server.says("study/271", {"study": {"tasks": {"task_id": ["59", "60"]}}})
    (only,) = tasks_named("openml/t/59")
    assert only["name"] == "toy" and len(pickle.loads(pickle.dumps(only["dataset"]))()) == ROWS
    suite = Catalogue().suite("openml/s/271")
    assert [task.name for task in suite] == ["toy-59", "toy-60"]
    assert [task.dataset().kind for task in suite] == ["classes", "numbers"]


def test_task_is_run_by_its_name(server, tmp_path):
    serve_task(server)
    (run,) = evaluate("constantpredictor", "openml/t/59", output=tmp_path, constraint="test")
    table = run.results()
    assert table["metric"].tolist() == ["auc", "auc"]  # as the AutoML Benchmark has it
    assert table["fold"].tolist() == [0, 1] and table["auc"].tolist() == [0.5, 0.5]
    (run,) = evaluate("constantpredictor", "openml/t/59", output=tmp_path)
    assert run.results()["repeat"].tolist() == [0, 0, 1, 1]


def test_benchmark_definition_limits_the_folds(server, tmp_path):
    serve_task(server)
    file = tmp_path / "mine.yaml"
    file.write_text("[{name: toys, openml_task_id: 59, folds: 3, metric: acc}]")
    (run,) = evaluate(
        "constantpredictor", "mine", define=file, output=tmp_path / "r", constraint="test"
    )
    assert run.results()["fold"].tolist() == [0, 1, 2]  # the task goes before the constraint


def test_invalid_name(server):
    for name in ("openml/x/3", "openml/t/", "openml/t/3x"):
        with pytest.raises(DefinitionError, match="openml/t/NUMBER"):
            tasks_named(name)


def test_task_of_another_type(server):
    serve_task(server, task_type_id="5", task_type="Clustering")
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
