"""``karat race``: exit codes, formats, resuming, replays and bad input."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from ...races import MODELS, write_suite

REGISTERED = (
    MODELS.replace("import zlib", "import zlib\nimport karat")
    + """
@karat.predictor("good")
class Good(Guess):
    def __init__(self):
        super().__init__(0.97)

@karat.predictor("poor")
class Poor(Guess):
    def __init__(self):
        super().__init__(0.5)

@karat.predictor("worst")
class Worst(Guess):
    def __init__(self):
        super().__init__(0.2)
"""
)


LACKING = """
@karat.predictor("lacking")
class Lacking(Guess):
    def __init__(self):
        super().__init__(0.5)

    def unavailable(self):
        return "no license file"
"""


@pytest.fixture
def suite(tmp_path, monkeypatch, clean_registry):
    write_suite(tmp_path, 14)
    (tmp_path / "guessing.py").write_text(REGISTERED)
    monkeypatch.chdir(tmp_path)
    models = [word for name in ("good", "poor", "worst") for word in ("-m", name)]
    return ["race", "many", "--define", "many.yaml", "--define", "guessing.py", *models, "-w", 0]


def test_a_race_without_a_named_model(cli, suite, tmp_path):
    (tmp_path / "guessing.py").write_text(REGISTERED + LACKING)
    assert cli(*suite, "-q").code == 0
    done = cli(*suite, "-q", "-m", "lacking")
    assert done.code == 1 and "lacking ran on no task: no license file" in done.err


def test_a_race_is_decided(cli, suite):
    done = cli(*suite, "-q", "--format", "json")
    found = json.loads(done.out)
    assert done.code == 0 and found["outcome"] == "decided" and found["remaining"] == ["good"]
    assert found["jobs"] < found["full_jobs"] == 3 * 14 * 2
    text = cli(*suite, "--resume")
    assert text.code == 0 and "good is the best of 3 models" in " ".join(text.out.split())
    board = cli("leaderboard", "results")
    assert board.code == 0 and board.out.count("Not ranked:") == 2
    rows = json.loads(cli("leaderboard", "results", "--format", "json").out)
    assert [(row["model"], row["rank"] is None) for row in rows] == [
        *[("good", True)],  # one model has no rank
        *[("poor", True), ("worst", True)],
    ]
    assert rows[0]["eliminated"] == "" and "e-value" in rows[1]["eliminated"]
    csv = cli("leaderboard", "results", "--format", "csv").out
    assert "eliminated after" in csv
    assert cli("status", "results").code == 0


def test_progress_names_the_models_that_leave(cli, suite):
    done = cli(*suite)
    assert "at most 42 jobs" in done.err
    assert done.err.count("eliminated after") == 2


def test_a_budget_leaves_it_undecided(cli, suite):
    done = cli(*suite, "--budget", "7")
    assert done.code == 3 and "--resume" in done.err and "Undecided" in done.out
    assert cli(*suite, "--resume", "-q").code == 0


def test_confidence_cannot_change(cli, suite):
    cli(*suite, "-q", "--budget", "7")
    done = cli(*suite, "--resume", "--confidence", "0.9")
    assert done.code == 2 and "confidence 0.95, got 0.9" in done.err


@pytest.mark.parametrize("shape", ["table", "csv", "markdown", "latex", "html"])
def test_formats(cli, suite, shape):
    cli(*suite, "-q", "--budget", "7")
    done = cli("race", "--replay", "results", "--format", shape)
    assert done.code == 2  # too few tasks were run
    done = cli(*suite, "-q", "--resume", "--format", shape)
    assert done.code == 0 and "worst" in done.out


def test_a_replay(cli, suite, tmp_path):
    cli("run", *suite[1:], "-q", "-o", "full")
    done = cli("race", "--replay", "full", "--orders", 5, "--format", "json")
    assert done.code == 0
    found = json.loads(done.out)
    assert len(found["orders"]) == 5 and found["models"][0]["model"] == "good"
    text = " ".join(cli("race", "--replay", "full", "--orders", 2).out.split())
    assert "times fewer" in text


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (["--goal", "fastest"], "fastest"),
        (["--confidence", "95"], "95"),
        (["--budget", "4 weeks"], "4 weeks"),
        (["--margin", "0"], "margin"),
        (["--folds-per-task", "0"], "folds_per_task"),
        (["--orders", "3"], "--replay"),
        (["-t", "t1"], "1 task of"),
        (["another"], "one suite"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(cli, suite, tmp_path, more, word):
    done = cli(*suite, *more)
    assert done.code == 2 and word in done.err and "Traceback" not in done.err
    assert not (tmp_path / "results").exists()


def test_one_model_is_no_race(cli, suite, tmp_path):
    done = cli(*suite[:6], "-m", "good", "-w", 0)
    assert done.code == 2 and "at least two models" in done.err


def test_options_of_runs_do_not_apply_to_replays(cli, tmp_path):
    done = cli("race", "--replay", tmp_path, "-m", "good", "--budget", "4h")
    assert done.code == 2 and "--model" in done.err and "--budget" in done.err
    done = cli("race", "--replay", tmp_path / "nothing")
    assert done.code == 2 and "does not exist" in done.err


def test_records_of_a_race_in_jobs_csv(cli, suite, tmp_path):
    cli(*suite, "-q")
    (folder,) = (tmp_path / "results").glob("worst.*")
    table = pd.read_csv(folder / "scores" / "jobs.csv")
    assert set(table["status"]) == {"ok", "eliminated"}
