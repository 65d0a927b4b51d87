"""The command line: commands, streams, exit codes, logging, and interrupted runs."""

import csv
import importlib
import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest

from karat.core.dataset import Dataset
from karat.core.task import Task
from karat.execution.arguments import Only, Output
from karat.execution.evaluation import evaluate
from karat.results.run import Run

TABLE = "x,y\n" + "".join(f"{i},{'low' if i < 10 else 'high'}\n" for i in range(20))
YAML = """
datasets:
  halves: {path: halves.csv, target: y, kind: classification}
tasks:
  halves: {extends: classification, dataset: halves, metrics: [acc], split: {folds: 5}}
  again: {extends: halves}
  texts:
    extends: classification
    dataset: {path: halves.csv, fields: [x], target: y, modality: text}
    metrics: [acc]
suites:
  mine: {tasks: [halves, again], models: [onehot]}
  with-texts: {tasks: [halves, texts]}
constraints:
  one: {max_folds: 1}
"""
MODELS = """
    import os, time
    import karat

    @karat.encoder("gate")
    class Gate:
        '''From the third fold on, wait until the file "open" exists.'''
        def __init__(self):
            self.random_state = None
        def fit(self, items, y=None):
            fold = self.random_state - 42
            if fold >= 2 and not os.path.exists("open"):
                open(f"waiting-{os.getpid()}", "w").close()
                while not os.path.exists("open"):
                    time.sleep(0.05)
            return self
        def transform(self, items):
            return items.to_numpy(dtype=float)

    @karat.encoder("broken")
    class Broken:
        def fit(self, items, y=None):
            raise ValueError("out of order")
        def transform(self, items):
            return items
    """


@pytest.fixture
def here(tmp_path, monkeypatch, clean_registry):
    monkeypatch.chdir(tmp_path)
    Path("halves.csv").write_text(TABLE)
    Path("my.yaml").write_text(YAML)
    Path("models.py").write_text(textwrap.dedent(MODELS))
    return tmp_path


DEFINED = ("--define", "my.yaml", "--define", "models.py")


def test_version(cli):
    assert cli("--version").out == "karat 0.1.0\n"


@pytest.mark.parametrize("options, level", [([], None), (["-v"], "INFO"), (["-vv"], "DEBUG")])
def test_verbose_sets_the_level_of_the_logger(cli, options, level, monkeypatch):
    names = importlib.import_module("karat.reporting.terminal")
    found = logging.getLogger("karat.x")
    monkeypatch.setattr(names, "list_kinds", lambda *_: found.debug("found"))
    code, _, err = cli(*options, "list")
    assert code == 0
    assert ("INFO karat" in err) == (level is not None)
    assert ("DEBUG karat.x: found" in err) == (level == "DEBUG")


def test_log_file(cli, tmp_path):
    for _ in range(2):
        code, _, err = cli("--log-file", tmp_path / "log.txt", "list", "heads")
        assert (code, err) == (0, "")
    assert (tmp_path / "log.txt").read_text().count("list heads") == 2
    assert cli("--log-file", tmp_path / "none" / "log.txt", "list").code == 2
    cli("list", "heads")  # closes the file


def test_run_prints_the_leaderboard_and_the_folders(cli, here):
    code, out, err = cli("run", "mine", *DEFINED, "-w", 1)
    assert code == 0
    assert "mine" in err.splitlines()[0] and "seed 42" in err
    assert " runs    results/onehot.mine.default.local." in err
    assert " next    karat report results" in err
    assert "acc ↑" in out and "onehot" in out
    (run,) = Path("results").iterdir()
    assert len(Run.open(run).records()) == 10


def test_after_a_single_fit_the_next_command_has_more_seeds(cli, here):
    Path("many.csv").write_text("x,y\n" + "".join(f"{i},{'ab'[i > 30]}\n" for i in range(60)))
    given = ("run", "many.csv", "--target", "y", "-m", "random-forest", "-m", "dummy", "-w", 0)
    one = cli(*given, "--only-fold", 0).err
    assert "next    karat run many.csv" in one and "-w 0 --only-fold 0 --resume --seeds 3 " in one
    assert "--seeds 3" not in cli(*given).err


def test_show_and_check_of_runs_are_what_status_and_lint_were(cli, here):
    Path("t.csv").write_text("x,y\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(40)))
    assert cli("run", "t.csv", "--target", "y", "-m", "dummy", "-w", 0, "-q").code == 0
    for new, old in (("show", "status"), ("check", "lint")):
        done, before = (cli(name, "results", "--format", "json") for name in (new, old))
        assert (done.code, done.out) == (before.code, before.out) == (0, done.out) and done.out
    assert cli("show", "cache").out == cli("cache").out
    assert cli("check", "dummy").code == 0


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("show", "penguins", "--clear"), "--clear is for the cache"),
        (("show", "penguins", "--format", "json"), "--format is for runs"),
        (("show", "penguins", "--decimal", ","), "--decimal is for a table file"),
        (("show", "cache", "--constraint", "1h8c"), "--constraint is for a name"),
        (("check", "onehot", "--fail-on", "error"), "--fail-on is for runs"),
        (("check",), "--explain"),
        (("report", "results", "--site", "--umap"), "--umap cannot be used with --site"),
    ],
)
def test_an_option_of_something_else_is_refused(cli, here, words, named):
    done = cli(*words)
    assert done.code == 2 and named in done.err


def test_show_says_how_a_file_is_read(cli, here):
    Path("eu.csv").write_text("x;day;y\n1,5;2024-01-31;no\n;2024-02-01;churned\n")
    with pytest.warns(UserWarning) as caught:
        code, out, _ = cli("show", "eu.csv")
    assert code == 0
    printed = " ".join(str(each.message) for each in caught)
    assert '";"' in printed and "decimal commas" in printed and '"day"' in printed
    assert cli("inspect", "eu.csv").out == out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert rows["x"][:4] == ["numbers", "1", "1", "1.5"]
    assert rows["day"][:3] == ["dates", "0", "2"]
    assert rows["y"] == ["text", "0", "2", "no", "feature"]
    options = ("--separator", ";", "--decimal", ",", "--dates", "day", "--drop", "day")
    code, out, _ = cli("show", "eu.csv", "--target", "y", *options)
    assert code == 0 and "positive class: no" in out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert rows["y"][-1] == "target" and rows["day"][-1] == "dropped"
    chosen = cli("show", "eu.csv", "--target", "y", *options, "--positive", "churned")
    assert "positive class: churned" in chosen.out
    assert cli("show", "eu.csv", "--target", "z", *options).code == 2
    assert cli("show", "none.csv").code == 2


def test_run_of_a_file_says_what_it_holds_and_uses_the_given_split(cli, here):
    rows = [
        f"{i},{'no' if i % 2 else 'churned'},{'test' if i > 30 else 'train'}" for i in range(40)
    ]
    Path("churn.csv").write_text("\n".join(["x,y,side", *rows]))
    given = ("churn.csv", "--target", "y", "--part", "side", "--positive", "churned")
    code, out, err = cli("run", *given, "-m", "onehot", "-w", 0, "-X", "t.metrics=['f1']")
    assert code == 0
    assert "1 feature: numbers 1" in err and "positive class: churned" in err
    assert "split: the given train and test parts, 31 train and 9 test rows" in err
    assert "the positive class of f1 is churned" in " ".join(out.split())
    run = Run.open(next(Path("results").iterdir()))
    assert run.about["tasks"][0]["positive"] == "churned"
    (metadata,) = run.folder.rglob("metadata.json")
    facts = json.loads(metadata.read_text())
    assert facts["positive"] == "churned" and facts["classes"] == ["no", "churned"]
    assert len(run.records()) == 1
    code, out, _ = cli("plan", *given, "-m", "onehot")
    assert code == 0 and "split: the given train and test parts" in out


def test_options_of_a_table_file_need_a_target(cli, here):
    for option in (("--positive", "low"), ("--decimal", ","), ("--dates", "x"), ("--like", "taco")):
        code, _, err = cli("run", "mine", *DEFINED, *option)
        assert code == 2 and f"{option[0]} requires --target" in err


@pytest.mark.parametrize("shape", ["csv", "json", "markdown"])
def test_machine_formats_contain_only_the_leaderboard(cli, here, shape):
    options = ("-m", "onehot", "-m", "dummy", "-w", 1, "--format", shape)
    code, out, _ = cli("run", "mine", *DEFINED, *options)
    assert code == 0
    if shape == "markdown":
        assert "| onehot |" in out and "| ---: |" in out
        return
    rows = json.loads(out) if shape == "json" else list(csv.DictReader(io.StringIO(out)))
    assert [row["model"] for row in rows] == ["onehot", "dummy"]
    assert float(rows[1]["halves"]) == 0.5


def test_quiet_and_verbose(cli, here):
    result = cli("run", "mine", *DEFINED, "-w", 1, "-q", "-c", "one")
    assert result.err == "" and "onehot" in result.out
    result = cli("run", "mine", *DEFINED, "-w", 1, "-v", "-c", "one")
    assert re.search(r"^2 of 2  onehot · again · fold 0   acc [\d.]+", result.err, re.M)


def test_tasks_folds_rows_and_seed_can_be_chosen(cli, here, monkeypatch):
    monkeypatch.setattr("karat.execution.workers.available_cores", lambda: 1)
    chosen = ("-t", "again", "--only-fold", 0, "--only-fold", 3, "--seed", 7, "--max-rows", 15)
    assert "seed 7 · 1 worker" in cli("run", "mine", *DEFINED, *chosen).err
    (run,) = (Run.open(path) for path in Path("results").iterdir())
    assert [(r["task"], r["fold"], r["seed"]) for r in run.records()] == [
        ("again", 0, 7),
        ("again", 3, 10),
    ]
    assert run.records()[0]["train_questions"] + run.records()[0]["questions"] == 15


def test_the_number_of_folds_and_metrics_can_be_chosen(cli, here):
    options = ("--folds", 4, "--metric", "f1,acc", "--metric", "logloss", "-w", 0)
    assert cli("run", "mine", *DEFINED, "-t", "again", *options).code == 0
    (run,) = (Run.open(path) for path in Path("results").iterdir())
    table = run.scores()
    assert sorted(set(table["fold"])) == [0, 1, 2, 3]
    assert list(dict.fromkeys(table["metric"])) == ["f1", "acc", "logloss"]


@pytest.mark.parametrize("option", ["--fold", "-f"])
def test_which_folds_and_how_many_are_not_confused(cli, here, option):
    code, _, err = cli("run", "mine", *DEFINED, option, 1)
    assert code == 2 and option in err
    code, _, err = cli("run", "mine", *DEFINED, "--folds", 1)
    assert code == 2 and "karat.Only(folds=1)" in err


def test_more_dimensions_than_an_encoder_is_known_to_have_are_exit_code_2(cli, here):
    code, _, err = cli("run", "mine", *DEFINED, "-m", "random", "--dimensions", "65")
    assert code == 2 and "random" in err and "65" in err and "64" in err
    assert not (here / "results").exists()


def test_failed_jobs_are_exit_code_1_and_name_their_log(cli, here):
    result = cli("run", "mine", *DEFINED, "-m", "broken", "-m", "onehot", "-c", "one", "-w", 1)
    assert result.code == 1
    failures = [line for line in result.err.splitlines() if "✗" in line]
    assert len(failures) == 2
    assert "broken · halves · fold 0   ValueError: out of order" in failures[0]
    log = Path(re.search(r"\(log: (.*)\)", failures[0])[1])
    assert 'raise ValueError("out of order")' in log.read_text()


def test_a_declined_task_is_not_a_failure(cli, here):
    models = ("-m", "onehot", "-m", "tfidf")
    result = cli("run", "with-texts", *DEFINED, *models, "-c", "one", "-w", 1)
    assert result.code == 0
    assert "2 declined" in result.err
    result = cli("plan", "with-texts", *DEFINED, *models)
    assert "2 declined" in result.out and "     onehot · texts\n" in result.out
    assert result.err == ""


LACKING = """
models:
  absent: {use: onehot, requires: [no_such_library], extra: xgb}
tasks:
  nowhere:
    extends: classification
    dataset: {sources: [{folder: none.csv}], target: y}
    metrics: [acc]
suites:
  lost: {tasks: [nowhere], models: [onehot]}
  both: {tasks: [halves, nowhere], models: [onehot, absent]}
"""


@pytest.fixture
def lacking(here):
    Path("lacking.yaml").write_text(LACKING)
    return (*DEFINED, "--define", "lacking.yaml", "-c", "one", "-w", 0)


def test_a_missing_library_or_missing_data_is_told_below_the_leaderboard(cli, lacking):
    result = cli("run", "both", *lacking)
    assert result.code == 0  # nobody named the model
    text = " ".join(result.out.split())
    assert 'absent: no_such_library is not installed: pip install "karat[xgb]"' in text
    assert "nowhere: data not available: " in text and "$KARAT_DATA/none.csv" in text
    assert "not applicable" not in text
    runs = [Run.open(path) for path in sorted(Path("results").iterdir())]
    lacks = {(r["model"], r["task"]): r.get("lacks") for run in runs for r in run.records()}
    assert lacks == {
        ("absent", "halves"): "library",
        ("absent", "nowhere"): "library",
        ("onehot", "halves"): None,
        ("onehot", "nowhere"): "data",
    }


@pytest.mark.parametrize(
    "suite, models, code",
    [
        ("both", ["onehot"], 0),
        ("both", ["absent"], 1),
        ("both", ["onehot", "absent"], 1),
        ("with-texts", ["onehot", "tfidf"], 0),
        ("lost", [], 1),  # nothing ran at all
        ("lost", ["onehot"], 1),
    ],
)
def test_a_named_model_that_ran_nowhere_is_exit_code_1(cli, lacking, suite, models, code):
    named = [word for model in models for word in ("-m", model)]
    result = cli("run", suite, *lacking, *named)
    assert result.code == code
    assert ("ran on no task" in result.err) == bool(code)


def test_a_vector_file_whose_names_match_nothing_is_exit_code_1(cli, here):
    names = [f"City_{i}" for i in range(12)]
    rows = "".join(f"http://x.org/{name},{i % 2}\n" for i, name in enumerate(names))
    Path("places.csv").write_text("place,y\n" + rows)
    Path("v.txt").write_text("".join(f"{n.lower().replace('_', ' ')}\t1 {len(n)}\n" for n in names))
    entities = "fields: [place], target: y, modality: entity, kind: classification"
    dataset = f"{{path: places.csv, {entities}}}"
    Path("places.yaml").write_text(
        "models:\n  words: {use: 'karat.models.vector_files:VectorFile', params: {path: v.txt}}\n"
        f"tasks:\n  places: {{extends: classification, dataset: {dataset}, metrics: [acc]}}\n"
        f"suites:\n  p: {{tasks: [places], models: [random, words]}}\n"
    )
    for named in (("-m", "v.txt"), ("-m", "v.txt", "-m", "random"), ()):
        result = cli("run", "p", "--define", "places.yaml", "--only-fold", 0, "-w", 0, *named)
        assert result.code == 1
        text = " ".join(result.out.split())
        assert "KRT107" in text and "prefix, case and underscores" in text
        for i in range(3):
            assert f'"http://x.org/City_{i}"' in text and f'"city {i}"' in text
    assert (
        cli("run", "p", "--define", "places.yaml", "--only-fold", 0, "-m", "random", "-w", 0).code
        == 0
    )


def test_resume_runs_what_is_left(cli, here):
    cli("run", "mine", *DEFINED, "-t", "halves", "--only-fold", 0, "-w", 1)
    result = cli("run", "mine", *DEFINED, "-w", 1, "--resume", "-v")
    assert "10 jobs, 9 left" in result.err and "9 of 9" in result.err
    assert len(list(Path("results").iterdir())) == 1
    assert "10 jobs, 0 left" in cli("run", "mine", *DEFINED, "-w", 1, "--resume").err


def test_no_cache_neither_reads_nor_keeps_vectors(cli, here, monkeypatch):
    monkeypatch.setenv("KARAT_CACHE", str(here / "cache"))
    cli("run", "mine", *DEFINED, "-m", "random", "-c", "one", "-w", 1, "--no-cache")
    assert not list((here / "cache").rglob("vectors.npy"))
    cli("run", "mine", *DEFINED, "-m", "random", "-c", "one", "-w", 1)
    assert len(list((here / "cache").rglob("vectors.npy"))) == 1
    listed = cli("cache").out
    assert "random" in listed and "1 entry" in listed
    cli("cache", "--clear")
    assert "0 entries" in cli("cache").out


def test_output_that_cannot_be_written(cli, here):
    code, _, err = cli("run", "mine", *DEFINED, "-o", "halves.csv/results")
    (line,) = err.splitlines()
    assert code == 2 and "halves.csv/results" in line and "--output" in line


def test_disk_full(cli, here, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "results/x")

    monkeypatch.setattr("karat.results.run.write_atomic", full)
    code, _, err = cli("run", "mine", *DEFINED, "-w", 1)
    assert code == 2
    assert "cannot write results/x: No space left on device" in err and "Traceback" not in err


def test_ctrl_c_before_the_first_job(cli, here, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    # the attribute karat.evaluate is the function, not the module
    monkeypatch.setattr(importlib.import_module("karat.execution.evaluation"), "plan_suite", stop)
    monkeypatch.setattr("karat.cli.app.os._exit", sys.exit)
    assert cli("run", "mine", *DEFINED).code == 130
    assert not Path("results").exists()


def test_list_and_show(cli, here):
    assert "karat list models" in cli("list").out
    for kind, name in (("models", "onehot"), ("suites", "mine")):
        listed = cli("list", kind, *DEFINED).out.splitlines()
        assert any(line.split()[:1] == [name] for line in listed)
    code, out, _ = cli("show", "again", *DEFINED)
    assert code == 0
    assert "my.yaml:" in out and "tasks.yaml:" in out
    assert "folds: 1   # tiny" in cli("show", "again", "-c", "tiny", *DEFINED).out
    code, out, err = cli("show", "agian", *DEFINED)
    assert (code, out) == (2, "")
    assert '"agian"' in err and '"again"' in err


def test_check(cli, here):
    assert cli("check", "onehot").code == 0
    code, out, _ = cli("check", "broken", *DEFINED)
    assert code == 2
    assert "✗" in out and "out of order" in out
    assert cli("check", "onehott").code == 2


def test_leaderboard_of_folders_and_runs(cli, here):
    cli("run", "mine", *DEFINED, "-m", "onehot", "-m", "dummy", "-c", "one", "-w", 1)
    runs = sorted(str(path) for path in Path("results").iterdir())
    for paths in (["results"], runs, [runs[1], "results"]):
        assert [row["model"] for row in board(cli, *paths)] == ["onehot", "dummy"]


@pytest.mark.parametrize("shape", ["table", "csv", "json", "markdown", "latex", "html"])
def test_status_and_lint_in_every_format(cli, here, shape):
    cli("run", "mine", *DEFINED, "-c", "one", "-w", 1)
    for verb in ("status", "lint"):
        code, out, err = cli(verb, "results", "--format", shape)
        assert (code, err) == (0, ""), verb
        assert "finished" in out or verb == "lint"


class Broken:
    takes = ("table", "text")

    def transform(self, items):
        raise ValueError("out of order")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Run three models on two tasks; one fails everywhere, none supports texts."""
    frame = pd.read_csv(io.StringIO(TABLE))
    halves = Dataset.from_table(frame, target="y", name="halves")
    texts = Dataset.from_columns(frame.astype(str), ["x"], "y", name="texts")
    tasks = [Task(data.name, data, metrics=["acc", "logloss"]) for data in (halves, texts)]
    models = {"onehot": "onehot", "dummy": "dummy", "broken": Broken()}
    output = tmp_path_factory.mktemp("results")
    evaluate(models, tasks, output=Output(output, cache=False), only=Only(folds=0))
    return output


def board(cli, *options):
    code, out, err = cli("leaderboard", *options, "--format", "csv")
    assert (code, err) == (0, "")
    return list(csv.DictReader(io.StringIO(out)))


def test_views_rules_and_orders_of_a_leaderboard(cli, results):
    rows = board(cli, results, "--by", "task", "--normalize", "range")
    halves = {row["model"]: row for row in rows if row["task"] == "halves"}
    assert [halves[m]["status"] for m in ("onehot", "dummy", "broken")] == ["ok", "ok", "failed"]
    assert [float(halves[m]["rank"]) for m in ("onehot", "dummy", "broken")] == [1, 2, 3]
    assert [float(halves[m]["normalized"]) for m in ("onehot", "dummy", "broken")] == [1, 0, 0]
    kinds = board(cli, results, "--by", "kind", "--sort", "model")
    assert [row["model"] for row in kinds] == ["broken", "dummy", "onehot"] * (len(kinds) // 3)
    ranks = {
        row["model"]: row["rank"] for row in board(cli, results, "--missing", "baseline:dummy")
    }
    assert ranks["broken"] == ranks["dummy"]
    assert board(cli, results, "--sort", "model")[0]["model"] == "broken"
    assert float(board(cli, results, "--sort", "score")[0]["score"]) == 1
    (first, *_) = board(cli, results, "--by", "task", "--metric", "halves=logloss")
    assert (first["model"], first["metric"]) == ("onehot", "logloss")
    result = cli("leaderboard", results, "--metric", "halves=mcc")
    assert result.code == 2 and "karat rescore RUN... --metric mcc -o" in result.err
    result = cli("leaderboard", results, "--metric", "halves=loglos")
    assert result.code == 2 and "rescore" not in result.err and '"logloss"' in result.err


def test_a_metric_is_added_to_finished_runs(cli, results, tmp_path):
    assert cli("rescore", results, "--metric", "mcc", "-o", tmp_path / "again").code == 0
    result = cli("leaderboard", tmp_path / "again", "--metric", "halves=mcc")
    assert result.code == 0 and "mcc ↑" in result.out


@pytest.mark.parametrize(
    "options, word",
    [
        (["--sort", "secnds"], '"seconds"'),
        (["--missing", "exlude"], '"exclude"'),
        (["--missing", "baseline:dumy"], '"dummy"'),
        (["--normalize", "baseline:x"], '"x"'),
        (["--metric", "halves"], "TASK=METRIC"),
        (["--metric", "halves=ac"], '"acc"'),
        (["--by", "taks"], "'taks'"),
        (["--columns", "brda"], '"borda"'),
        (["--format", "htm"], "'htm'"),
    ],
)
def test_invalid_options_of_a_leaderboard(cli, results, options, word):
    code, out, err = cli("leaderboard", results, *options)
    assert (code, out) == (2, "")
    assert word in err and "Traceback" not in err


@pytest.mark.parametrize("path", ["nowhere", "halves.csv", "."])
def test_paths_without_runs(cli, here, path):
    code, out, err = cli("leaderboard", path)
    assert (code, out) == (2, "")
    assert path in err and err.count("\n") == 1


def karat(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "karat", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell ignores interrupts in the background jobs that it starts
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


def until(true, process=None):
    while not true():
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)


def waiting(count):
    """Return whether two jobs are finished and ``count`` jobs wait at the gate."""
    records = list(Path("results").glob("*/jobs/*.json"))
    return len(records) == 2 and len(list(Path().glob("waiting-*"))) == count


def stored(folder):
    return {
        str(path.relative_to(run)): path.read_bytes()
        for run in Path(folder).iterdir()
        for path in run.rglob("*.csv")
        if path.name in ("scores.csv", "predictions.csv")
    }


RUN = ("run", "halves", *DEFINED, "-m", "gate")


@pytest.mark.slow
@pytest.mark.parametrize(
    "workers, sent", [(1, signal.SIGINT), (2, signal.SIGINT), (1, signal.SIGTERM)]
)
def test_interrupts_keep_finished_jobs(here, workers, sent):
    if len(os.sched_getaffinity(0)) < workers:
        pytest.skip("too few cores")
    process = karat(*RUN, "-w", workers, start_new_session=True)
    try:
        until(lambda: waiting(workers), process)
        children = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, sent)  # a terminal signals the whole group
        out, err = process.communicate()
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == ""
    command = f"karat run halves --define my.yaml --define models.py -m gate -w {workers} --resume"
    assert "2 of 5" in err.splitlines()[-1] and command in err.splitlines()[-1]
    assert "Traceback" not in err
    assert len(children) == workers + (sys.platform == "linux")  # and the template
    until(lambda: not any(child.is_running() for child in children))
    (run,) = (Run.open(path) for path in Path("results").iterdir())
    assert [r["fold"] for r in run.records()] == [0, 1]
    assert (run.folder / "scores" / "results.csv").is_file()


@pytest.mark.slow
def test_a_killed_run_is_readable_and_completed_to_the_same_bytes(cli, here):
    workers = min(2, len(os.sched_getaffinity(0)))
    process = karat(*RUN, "-w", workers)
    try:
        until(lambda: waiting(workers), process)
        children = psutil.Process(process.pid).children(recursive=True)
    finally:
        process.kill()
        process.communicate()
    until(lambda: not any(child.is_running() for child in children))
    board = cli("leaderboard", "results", "--format", "json")
    assert board.code == 0
    assert json.loads(board.out)[0]["model"] == "gate"
    Path("open").touch()
    resumed = cli(*RUN, "-w", 1, "--resume")
    assert "5 jobs, 3 left" in resumed.err
    whole = cli(*RUN, "-w", 1, "-o", "whole")
    assert (resumed.code, whole.code) == (0, 0)
    assert stored("results") == stored("whole")
    assert len(stored("whole")) == 6


@pytest.mark.slow
def test_workers_that_die_are_exit_code_1(cli, here):
    Path("dies.py").write_text(
        "import os, karat\n"
        "@karat.encoder('dies')\n"
        "class Dies:\n"
        "    def fit(self, items, y=None):\n"
        "        if 0 not in items.index: os._exit(3)\n"
        "        return self\n"
        "    def transform(self, items): return items.to_numpy(dtype=float)\n"
    )
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("too few cores")
    result = cli("run", "halves", *DEFINED, "--define", "dies.py", "-m", "dies", "-w", 2)
    assert result.code == 1
    assert "exit code 3" in result.err
    (run,) = (Run.open(path) for path in Path("results").iterdir())
    assert sorted(r["status"] for r in run.records()) == ["failed"] + ["ok"] * 4


def test_closed_standard_output(here):
    process = karat("list", "metrics")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() in (0, 1)


def test_terminal_without_unicode(here):
    done = subprocess.run(
        [sys.executable, "-m", "karat", "list", "tasks"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0
    assert b"UnicodeEncodeError" not in done.stderr
    assert b" ? rmse, mae" in done.stdout


def test_modules_of_the_current_folder_do_not_hide_installed_ones(here):
    for name in ("random", "statistics", "numpy", "tokenize"):
        Path(f"{name}.py").write_text("raise RuntimeError('the wrong module')")
    Path("mine_here.py").write_text("class Mine:\n    def transform(self, items): return items\n")
    script = Path(sys.executable).parent / "karat"
    done = subprocess.run(
        [script, "plan", "halves", "--define", "my.yaml", "-m", "mine_here:Mine"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Mine" in done.stdout


def test_models_that_use_a_seed_run_with_several(cli, here):
    given = ("mine", *DEFINED, "-m", "random", "-m", "onehot", "--seeds", 3)
    code, out, err = cli("run", *given, "-w", 1, "-o", "results")
    assert code == 0 and "40 jobs" in err and "3 seeds from 42" in err
    assert "4 folders" in err and re.search(r"results/\*\.[0-9T]+\*", err)
    assert "random: standard deviation over seeds" in out
    code, out, _ = cli("status", "results")
    assert code == 0 and "random (seed 3)" in out
    code, out, _ = cli("plan", *given)
    assert code == 0 and "40 jobs" in out  # 2 tasks of 5 folds, 3 + 1 fits
    assert re.search(r"random +halves +5 × 3 seeds", out)
    assert re.search(r"onehot +halves +5 *$", out, re.MULTILINE)


@pytest.mark.parametrize("seeds", [0, -1, 1001, "x", 2.5])
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_wrong_number_of_seeds_is_one_message(cli, here, command, seeds):
    code, out, err = cli(command, "mine", *DEFINED, f"--seeds={seeds}")
    assert code == 2 and not out
    assert err.count("seeds") == 1 and str(seeds) in err
    assert not (here / "results").exists()
