"""The command line: verbs, streams, exit codes, and what Ctrl-C and worse leave behind."""

import csv
import importlib
import io
import json
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

from karat import Dataset, Task, evaluate
from karat.cli import karat as group
from karat.results.run import Run

TABLE = "x,y\n" + "".join(f"{i},{'low' if i < 10 else 'high'}\n" for i in range(20))
YAML = """
datasets:
  halves: {path: halves.csv, target: y, kind: classes}
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
  one: {folds: 1}
"""
MODELS = """
    import os, time
    import karat

    @karat.encoder("gate")
    class Gate:
        '''From the third fold on, wait until somebody opens.'''
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


# -- help -----------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [None, *group.commands])
def test_every_help_has_an_example(cli, verb):
    said = cli(*([verb] if verb else []), "--help")
    assert said.code == 0
    assert "karat " in said.out
    if verb:
        assert re.search(rf"Examples?:\n +karat {verb}", said.out)


def test_the_verbs_are_those_of_the_documents():
    verbs = {"run", "plan", "list", "show", "check", "leaderboard", "cache"}
    assert verbs <= set(group.commands)


def test_the_version(cli):
    assert cli("--version").out == "karat 0.1.0\n"


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["runn"], "No such command 'runn'"),
        (["run"], "Missing argument 'SUITE'"),
        (["run", "quickstart", "--fold", "x"], "'x' is not a valid integer"),
        (["run", "quickstart", "--sed", "1"], "No such option"),
        (["list", "model"], "'model' is not one of"),
        (["leaderboard"], "Missing argument"),
    ],
)
def test_bad_usage_is_told(cli, arguments, said):
    ended = cli(*arguments)
    assert ended.code == 2
    assert said in ended.err
    assert ended.out == ""


# -- run ------------------------------------------------------------------------------------


def test_a_run_prints_the_board_and_says_where_it_is(cli, here):
    said = cli("run", "mine", *DEFINED, "-w", 1)
    assert said.code == 0
    title, _, runs, following, page = said.err.splitlines()
    assert title.startswith(
        "karat 0.1.0   suite mine · 1 model · 2 tasks · 10 jobs   seed 42 · 1 w"
    )
    assert runs.startswith(" runs    results/onehot.mine.default.local.")
    assert following.startswith(" next    karat report results")
    assert page.startswith("         karat leaderboard results")
    assert "acc ↑" in said.out and "onehot" in said.out
    (run,) = Path("results").iterdir()
    assert len(Run.open(run).records()) == 10


@pytest.mark.parametrize("option", ["--csv", "--json"])
def test_machines_get_nothing_but_the_board(cli, here, option):
    said = cli("run", "mine", *DEFINED, "-m", "onehot", "-m", "dummy", "-w", 1, option)
    assert said.code == 0
    if option == "--json":
        rows = json.loads(said.out)
    else:
        rows = list(csv.DictReader(io.StringIO(said.out)))
    assert [row["model"] for row in rows] == ["onehot", "dummy"]
    assert float(rows[1]["halves"]) == 0.5


def test_quiet_is_quiet_and_verbose_tells_every_job(cli, here):
    said = cli("run", "mine", *DEFINED, "-w", 1, "-q", "-c", "one")
    assert said.err == ""
    assert "onehot" in said.out
    said = cli("run", "mine", *DEFINED, "-w", 1, "-v", "-c", "one")
    assert re.search(
        r"^2 of 2  onehot · again · fold 0   acc [\d.]+   [\d.]+ s   ok$", said.err, re.M
    )


def test_tasks_folds_rows_and_seed_can_be_chosen(cli, here, monkeypatch):
    monkeypatch.setattr("karat.execute.cores", lambda: 1)
    chosen = ("-t", "again", "-f", 0, "-f", 3, "--seed", 7, "--max-rows", 15)
    said = cli("run", "mine", *DEFINED, *chosen)
    assert "seed 7 · 1 worker" in said.err, "as many workers as there are cores"
    (run,) = (Run.open(path) for path in Path("results").iterdir())
    assert [(r["task"], r["fold"], r["seed"]) for r in run.records()] == [
        ("again", 0, 7),
        ("again", 3, 10),
    ]
    assert run.records()[0]["train_questions"] + run.records()[0]["questions"] == 15


def test_failed_jobs_are_exit_code_1_and_told_with_their_log(cli, here):
    said = cli("run", "mine", *DEFINED, "-m", "broken", "-m", "onehot", "-c", "one", "-w", 1)
    assert said.code == 1
    told = [line for line in said.err.splitlines() if "✗" in line]
    assert len(told) == 2
    assert "✗ broken · halves · fold 0   ValueError: out of order   (log: " in told[0]
    log = Path(re.search(r"\(log: (.*)\)", told[0])[1])
    assert 'raise ValueError("out of order")' in log.read_text()
    assert "2 jobs failed" in said.out


def test_a_decline_is_no_failure(cli, here):
    said = cli("run", "with-texts", *DEFINED, "-m", "onehot", "-m", "tfidf", "-c", "one", "-w", 1)
    assert said.code == 0
    assert "2 declined (karat plan shows why)" in said.err
    assert "not applicable" in said.out
    said = cli("plan", "with-texts", *DEFINED, "-m", "onehot", "-m", "tfidf")
    assert "2 declined" in said.out
    assert "it takes tables, not texts\n     onehot · texts\n" in said.out
    assert said.err == ""


def test_resume_runs_what_is_left(cli, here):
    cli("run", "mine", *DEFINED, "-t", "halves", "-f", 0, "-w", 1)
    said = cli("run", "mine", *DEFINED, "-w", 1, "--resume", "-v")
    assert "10 jobs, 9 left" in said.err
    assert "9 of 9" in said.err
    assert len(list(Path("results").iterdir())) == 1
    said = cli("run", "mine", *DEFINED, "-w", 1, "--resume")
    assert "10 jobs, 0 left" in said.err


def test_no_cache_neither_reads_nor_keeps_vectors(cli, here, monkeypatch):
    monkeypatch.setenv("KARAT_CACHE", str(here / "cache"))
    cli("run", "mine", *DEFINED, "-m", "random", "-c", "one", "-w", 1, "--no-cache")
    assert not list((here / "cache").rglob("vectors.npy"))
    cli("run", "mine", *DEFINED, "-m", "random", "-c", "one", "-w", 1)
    assert len(list((here / "cache").rglob("vectors.npy"))) == 1
    said = cli("cache")
    assert "random" in said.out and "1 entry" in said.out
    assert "removed from" in cli("cache", "--clear").out
    assert "0 entries" in cli("cache").out


def test_an_output_that_cannot_be_written_is_one_message(cli, here):
    said = cli("run", "mine", *DEFINED, "-o", "halves.csv/results")
    assert said.code == 2
    assert said.err.splitlines() == [
        "error: cannot write into halves.csv/results: Not a directory; "
        "choose another with --output."
    ]


def test_a_disk_that_fails_is_one_message(cli, here, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "results/x")

    monkeypatch.setattr("karat.results.run.write_atomic", full)
    said = cli("run", "mine", *DEFINED, "-w", 1)
    assert said.code == 2
    assert "error: [Errno 28] No space left on device: 'results/x'" in said.err
    assert "Traceback" not in said.err


def test_ctrl_c_before_the_first_job_is_exit_code_130(cli, here, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    # karat.evaluate is the function, so the module is asked for by its name
    monkeypatch.setattr(importlib.import_module("karat.evaluate"), "plan_suite", stop)
    monkeypatch.setattr("karat.cli.os._exit", sys.exit)
    said = cli("run", "mine", *DEFINED)
    assert said.code == 130
    assert said.err.strip() == "stopped."
    assert not Path("results").exists()


# -- the other verbs ------------------------------------------------------------------------


def test_list_and_show(cli, here):
    assert "karat list models" in cli("list").out
    listed = cli("list", "models").out.splitlines()
    assert any(line.split()[:1] == ["onehot"] for line in listed)
    assert any(
        line.split()[:1] == ["mine"] for line in cli("list", "suites", *DEFINED).out.splitlines()
    )
    shown = cli("show", "again", *DEFINED)
    assert shown.code == 0
    assert "my.yaml:" in shown.out and "tasks.yaml:" in shown.out
    limited = cli("show", "again", "-c", "tiny", *DEFINED)
    assert "under tiny:" in limited.out and "folds: 1   # tiny" in limited.out
    missed = cli("show", "agian", *DEFINED)
    assert (missed.code, missed.out) == (2, "")
    assert 'there is no name "agian". Did you mean "again"?   (karat list)' in missed.err


def test_check(cli, here):
    assert cli("check", "onehot").code == 0
    said = cli("check", "broken", *DEFINED)
    assert said.code == 2
    assert "✗" in said.out and "out of order" in said.out
    assert cli("check", "onehott").code == 2


def test_boards_of_folders_globs_and_runs(cli, here):
    cli("run", "mine", *DEFINED, "-m", "onehot", "-m", "dummy", "-c", "one", "-w", 1)
    runs = sorted(str(path) for path in Path("results").iterdir())
    for given in (["results"], runs, [runs[1], "results"]):
        said = cli("leaderboard", *given, "--csv")
        assert (said.code, said.err) == (0, "")
        assert [row["model"] for row in csv.DictReader(io.StringIO(said.out))] == [
            "onehot",
            "dummy",
        ]


class Broken:
    def transform(self, items):
        raise ValueError("out of order")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Runs of three models on two tasks; one fails everywhere, none takes the texts."""
    frame = pd.read_csv(io.StringIO(TABLE))
    halves = Dataset.from_table(frame, target="y", name="halves")
    texts = Dataset.from_columns(frame.astype(str), ["x"], "y", name="texts")
    tasks = [Task(data.name, data, metrics=["acc", "logloss"]) for data in (halves, texts)]
    models = {"onehot": "onehot", "dummy": "dummy", "broken": Broken()}
    output = tmp_path_factory.mktemp("results")
    evaluate(models, tasks, output=output, folds=0, cache=False)
    return output


def board(cli, *options):
    said = cli("leaderboard", *options, "--format", "csv")
    assert (said.code, said.err) == (0, "")
    return list(csv.DictReader(io.StringIO(said.out)))


def test_views_rules_and_orders_of_a_board(cli, results):
    rows = board(cli, results, "--by", "task", "--normalise", "range")
    halves = {row["model"]: row for row in rows if row["task"] == "halves"}
    assert [halves[m]["status"] for m in ("onehot", "dummy", "broken")] == ["ok", "ok", "failed"]
    assert [float(halves[m]["rank"]) for m in ("onehot", "dummy", "broken")] == [1, 2, 3]
    assert [float(halves[m]["normalised"]) for m in ("onehot", "dummy", "broken")] == [1, 0, 0]
    kinds = board(cli, results, "--by", "kind", "--sort", "model")
    assert [row["model"] for row in kinds] == ["broken", "dummy", "onehot"] * (len(kinds) // 3)
    ranks = {
        row["model"]: row["rank"] for row in board(cli, results, "--missing", "baseline:dummy")
    }
    assert ranks["broken"] == ranks["dummy"]
    assert board(cli, results, "--sort", "model")[0]["model"] == "broken"
    assert float(board(cli, results, "--sort", "score")[0]["score"]) == 1


def test_another_metric_on_the_command_line(cli, results):
    (first, *_) = board(cli, results, "--by", "task", "--metric", "halves=logloss")
    assert (first["model"], first["metric"]) == ("onehot", "logloss")


@pytest.mark.parametrize("shape", ["markdown", "latex", "table"])
def test_the_board_for_documents(cli, results, shape):
    said = cli("leaderboard", results, "--format", shape)
    assert (said.code, said.err) == (0, "")
    sign = {"markdown": "| ---: |", "latex": r"\\begin{tabular}", "table": " rank "}[shape]
    assert re.search(sign, said.out)
    assert "failed" in said.out


def test_a_run_prints_its_board_in_any_format(cli, here):
    said = cli("run", "mine", *DEFINED, "-c", "one", "-w", 1, "--format", "markdown", "-q")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("1 model by mean rank over 0 of 2 tasks, 1 is best.")
    assert said.out.count("Seed 42.") == 1
    said = cli("run", "mine", *DEFINED, "-c", "one", "-w", 1, "--format", "table")
    assert " next    karat report" in said.err


@pytest.mark.parametrize(
    "options, first",
    [
        (["--format", "csv", "--json"], "["),
        (["--json", "--format", "csv"], "m"),
        (["--csv"], "m"),
        (["--json"], "["),
    ],
)
def test_the_last_of_several_formats_counts(cli, results, options, first):
    assert cli("leaderboard", results, *options).out[0] == first


@pytest.mark.parametrize(
    "options, said",
    [
        (["--sort", "secnds"], 'sort: the board has no column "secnds". Did you mean "seconds"?'),
        (["--missing", "exlude"], 'Did you mean "exclude"?'),
        (["--missing", "baseline:dumy"], 'Did you mean "dummy"?'),
        (["--normalise", "baseline:x"], 'normalise: the board has no model "x".'),
        (["--metric", "halves"], '--metric is TASK=METRIC, not "halves".'),
        (["--metric", "halves=ac"], 'Did you mean "acc"?'),
        (["--by", "taks"], "'taks' is not one of 'task', 'kind', 'dataset'"),
        (["--format", "htm"], "'htm' is not one of"),
    ],
)
def test_wrong_options_of_a_board_are_exit_code_2(cli, results, options, said):
    ended = cli("leaderboard", results, *options)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "path, said",
    [
        ("nowhere", "nowhere does not exist; karat run makes one."),
        ("halves.csv", "halves.csv is no folder; karat run makes one."),
        (".", ". holds no run folder; karat run makes one."),
    ],
)
def test_what_is_no_run_is_told(cli, here, path, said):
    ended = cli("leaderboard", path)
    assert (ended.code, ended.out, ended.err) == (2, "", f"error: {said}\n")


# -- processes ------------------------------------------------------------------------------


def karat(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "karat", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def until(true, process=None, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def waiting(count):
    """Whether two jobs are finished, and so many wait at the gate."""
    records = list(Path("results").glob("*/jobs/*.json"))
    return len(records) == 2 and len(list(Path().glob("waiting-*"))) == count


def kept(folder):
    return {
        str(path.relative_to(run)): path.read_bytes()
        for run in Path(folder).iterdir()
        for path in run.rglob("*.csv")
        if path.name in ("scores.csv", "predictions.csv")
    }


RUN = ("run", "halves", *DEFINED, "-m", "gate")


@pytest.mark.slow
@pytest.mark.parametrize(
    "workers, polite", [(1, signal.SIGINT), (2, signal.SIGINT), (1, signal.SIGTERM)]
)
def test_ctrl_c_keeps_what_is_finished(here, workers, polite):
    if len(os.sched_getaffinity(0)) < workers:
        pytest.skip("too few cores")
    process = karat(*RUN, "-w", workers, start_new_session=True)
    try:
        until(lambda: waiting(workers), process)
        children = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, polite)  # a terminal tells the whole group
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == (
        "stopped: 2 of 5 jobs are kept; karat run halves --define my.yaml --define models.py "
        f"-m gate -w {workers} --resume finishes the rest."
    )
    assert "Traceback" not in err
    assert len(children) == (workers if workers > 1 else 0)
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
    board = cli("leaderboard", "results", "--json")
    assert board.code == 0
    assert json.loads(board.out)[0]["model"] == "gate"
    Path("open").touch()
    resumed = cli(*RUN, "-w", 1, "--resume")
    assert "5 jobs, 3 left" in resumed.err
    whole = cli(*RUN, "-w", 1, "-o", "whole")
    assert (resumed.code, whole.code) == (0, 0)
    assert kept("results") == kept("whole")
    assert len(kept("whole")) == 6


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
    said = cli("run", "halves", *DEFINED, "--define", "dies.py", "-m", "dies", "-w", 2)
    assert said.code == 1
    assert said.err.count("the worker ended with exit code 3") == 1
    (run,) = (Run.open(path) for path in Path("results").iterdir())
    assert sorted(r["status"] for r in run.records()) == ["failed"] + ["ok"] * 4


def test_a_reader_that_goes_away_is_no_trouble(here):
    process = karat("list", "metrics")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) in (0, 1)


def test_a_terminal_without_signs_shows_something_else(here):
    done = subprocess.run(
        [sys.executable, "-m", "karat", "list", "tasks"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=120,
    )
    assert done.returncode == 0
    assert b"UnicodeEncodeError" not in done.stderr
    assert b"regression ? rmse, mae, r2" in done.stdout


def test_modules_of_the_current_folder_hide_nothing_installed(here):
    for name in ("random", "statistics", "numpy", "tokenize"):
        Path(f"{name}.py").write_text("raise RuntimeError('the wrong module')")
    Path("mine_here.py").write_text("class Mine:\n    def transform(self, items): return items\n")
    script = Path(sys.executable).parent / "karat"
    done = subprocess.run(
        [script, "plan", "halves", "--define", "my.yaml", "-m", "mine_here:Mine"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Mine" in done.stdout
