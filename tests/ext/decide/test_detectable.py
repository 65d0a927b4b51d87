"""karat plan --detect: needs earlier runs, or a retrieval task."""

import json

import pytest

from ...score_data import write_run


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("x,y\n" + "".join(f"{i % 7},{'ab'[i % 2]}\n" for i in range(40)))
    return file


def test_earlier_runs_tell_what_is_needed(cli, table, tmp_path):
    for name, score in (("dummy", 0.5), ("onehot", 0.7)):
        scores = {"t": [score, score + 0.02, score - 0.03]}
        write_run(tmp_path / "runs", name, scores, record={"questions": 13, "train_questions": 27})
    plan = ("plan", table, "--target", "y", "-m", "dummy", "-m", "onehot", "--detect", "0.1")
    done = cli(*plan, "--runs", tmp_path / "runs", "--format", "json")
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert facts["difference"] == 0.1 and facts["queries"] == []


def test_without_runs_it_says_what_to_do(cli, table, tmp_path):
    plan = ("plan", table, "--target", "y", "-m", "dummy", "--detect", "0.1")
    done = cli(*plan, "--runs", tmp_path / "none")
    assert done.code == 2 and "run two models first" in done.err
