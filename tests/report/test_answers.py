import json

import numpy as np
import pytest

from karat.predictions import Predictions
from karat.report import answers
from karat.report.bundle import make_bundle
from karat.report.compact import size


def files(predictions, truth, chances=None):
    given = Predictions(
        predictions=np.array(list(predictions), dtype=object),
        truth=np.array(list(truth), dtype=object),
        answers="classes",
        truths="classes",
        classes=("a", "b"),
        probabilities=None if chances is None else np.array(chances),
    )
    facts = {"answers": "classes", "truths": "classes", "classes": ["a", "b"]}
    return {"predictions.csv": given.to_csv(), "metadata.json": json.dumps(facts)}


@pytest.fixture
def run(make_run):
    chances = [[0.9, 0.1], [0.8, 0.2]]
    return make_run(
        "m",
        {"t": [0.5, 1.0], "u": [0.5]},
        files={
            ("t", 0): files("aa", "ab", chances),
            ("t", 1): files("bb", "bb", [[0.25, 0.75], [0.25, 0.75]]),
            ("u", 0): files("ab", "bb"),
        },
    )


def test_details_are_of_all_folds_of_a_task(run):
    found = make_bundle(run)
    assert list(found["details"]) == ["0", "1"]
    (entry,) = found["details"]["0"]
    assert entry["model"] == 0
    assert entry["confusion"] == {"classes": ["a", "b"], "counts": [[1, 0], [1, 2]]}
    assert entry["calibration"] == [
        {"confidence": 0.75, "accuracy": 1, "count": 2},
        {"confidence": 0.8, "accuracy": 0, "count": 1},
        {"confidence": 0.9, "accuracy": 1, "count": 1},
    ]
    assert entry["rows"][0] == [0, 1, "b", "a", 0.8]
    assert found["details"]["1"][0]["calibration"] is None
    assert found["cut"] == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "predictions.csv").write_text('a,b,predictions,truth\n"0.9'),
        lambda folder: (folder / "predictions.csv").write_bytes(b"\xff\xfe\x00"),
        lambda folder: (folder / "predictions.csv").write_text(""),
        lambda folder: (folder / "predictions.csv").write_text("predictions,truth\na,b,c\n"),
        lambda folder: (folder / "metadata.json").write_text("{"),
        lambda folder: (folder / "metadata.json").write_text("[]"),
        lambda folder: (folder / "metadata.json").unlink(),
    ],
)
def test_a_damaged_fold_is_left_out_with_a_note(run, damage):
    damage(run.folder / "predictions" / "t" / "0")
    found = make_bundle(run)
    (entry,) = found["details"]["0"]
    assert entry["confusion"] == {"classes": ["a", "b"], "counts": [[0, 0], [0, 2]]}
    (note,) = found["cut"]
    assert note.startswith("m on t, fold 0")


def test_a_run_without_predictions_has_no_details(make_run):
    found = make_bundle(make_run("m", {"t": [0.5]}))
    assert (found["details"], found["cut"]) == ({}, [])


def test_room_is_shared_the_best_model_of_every_task_first(make_run, monkeypatch):
    stored = {(task, 0): files("ab", "bb") for task in "tuv"}
    runs = [make_run(f"m{i}", dict.fromkeys("tuv", [1 - i / 10]), files=stored) for i in range(4)]
    whole = make_bundle(runs)
    assert {task: len(each) for task, each in whole["details"].items()} == {"0": 4, "1": 4, "2": 4}
    one = size(whole["details"]["0"][0])
    monkeypatch.setattr(answers.make_details, "__defaults__", (5 * one,))
    found = make_bundle(runs)
    shown = {task: [each["model"] for each in rows] for task, rows in found["details"].items()}
    assert shown == {"0": [0, 1], "1": [0, 1], "2": [0]}
    assert any("7 pairs" in note for note in found["cut"])


def test_the_number_of_bytes_read_is_limited(run, monkeypatch):
    big = (run.folder / "predictions" / "t" / "0" / "predictions.csv").stat().st_size
    monkeypatch.setattr(answers, "READ_EACH", big)
    found = make_bundle(run)
    assert found["details"]["0"][0]["confusion"]["counts"] == [[1, 0], [1, 0]]
    assert any("m on t" in note and "1 fold" in note for note in found["cut"])
