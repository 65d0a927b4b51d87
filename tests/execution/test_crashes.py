"""A run that is killed forty times ends with the same tables as an undisturbed one."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import karat
from karat.results import run as runs_module

KILLS = 40
#: a process with all libraries imported forks the processes that are killed
ZYGOTE = """
import json, os, random, signal, sys, time
import numpy as np
import pandas as pd
import psutil
from sklearn.linear_model import LogisticRegression, Ridge
import karat
import karat.execution.runner, karat.execution.evaluation

def tasks():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    numbers = karat.Dataset.from_table(
        frame.assign(y=frame["a"]), target="y", name="numbers", kind="regression"
    )
    signs = frame.assign(y=np.where(frame["b"] > 0, "yes", "no"))
    classes = karat.Dataset.from_table(signs, target="y", name="classes", kind="classification")
    split = {"use": "kfold", "folds": 8}
    return [
        karat.Task("numbers", numbers, metrics=["rmse", "r2"], split=split),
        karat.Task("classes", classes, metrics=["acc", "logloss"], split=split),
    ]

def go(output, workers):
    models = ["onehot", "random", "dummy"]
    karat.evaluate(models, tasks(), output=output, resume=True, workers=workers)

def forked(output, workers=1, cpu_seconds=None):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if cpu_seconds is not None:
                # SIGPROF ends a process like SIGKILL; CPU time does not depend on the load
                signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
            go(output, workers)
            code = 0
        finally:
            os._exit(code)
    return pid

whole, broken, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
usage = os.wait4(forked(whole), 0)[2]
longest = usage.ru_utime + usage.ru_stime
draw = random.Random(7)
unfinished = 0
# some are ended early, in the plan or while folders are made, most while jobs run: one in each of
# as many equal parts of the time, in random order
moments = [0.001 + 0.25 * longest * (part + draw.random()) / kills for part in range(kills)]
draw.shuffle(moments)
for kill, moment in enumerate(moments):
    _, how = os.waitpid(forked(broken, 2 if kill % 10 == 9 else 1, moment), 0)
    unfinished += os.WIFSIGNALED(how)
    for path in __import__("pathlib").Path(broken).glob("*/jobs/*.json"):
        json.loads(path.read_text())  # whatever is there is whole

def workers():
    for process in psutil.process_iter():
        try:
            parent = process.pid == os.getpid()
            if not parent and process.environ().get("KARAT_CACHE") == os.environ["KARAT_CACHE"]:
                yield process
        except psutil.Error:
            pass

while any(workers()):  # they end after their killed parents
    time.sleep(0.2)
_, how = os.waitpid(forked(broken), 0)
print(json.dumps({"unfinished": unfinished, "last": os.waitstatus_to_exitcode(how)}))
"""
TIMES = ("utc", "duration", "seconds", "memory")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    if not hasattr(os, "fork"):
        pytest.skip("processes cannot be forked here")
    place = tmp_path_factory.mktemp("crashes")
    (place / "zygote.py").write_text(ZYGOTE)
    environment = {**os.environ, "KARAT_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1"}
    paths = [str(place / name) for name in ("zygote.py", "whole", "broken")]
    command = [sys.executable, *paths, str(KILLS)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return place, json.loads(done.stdout)


def newest(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(
        folder.glob("*/run.json"), key=lambda p: len(list(p.parent.glob("jobs/*.json")))
    ):
        found[json.loads(path.read_text())["model"]] = path.parent
    return found


def timeless(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return table[[name for name in table if not any(word in name for word in TIMES)]]


def test_most_were_killed_on_the_way(runs):
    assert runs[1]["last"] == 0
    assert runs[1]["unfinished"] > KILLS // 10


@pytest.mark.parametrize("table", ["results.csv", "scores.csv"])
def test_the_tables_are_those_of_an_undisturbed_run(runs, table):
    whole, broken = newest(runs[0] / "whole"), newest(runs[0] / "broken")
    assert whole.keys() == broken.keys() == {"onehot", "random", "dummy"}
    for model in whole:
        one, other = (timeless(run / "scores" / table) for run in (whole[model], broken[model]))
        pd.testing.assert_frame_equal(one, other)


def test_the_predictions_are_those_of_an_undisturbed_run(runs):
    whole, broken = newest(runs[0] / "whole"), newest(runs[0] / "broken")
    for model in whole:
        hashes = [
            {
                path.relative_to(run).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in (run / "predictions").rglob("*.*")
                if path.is_file() and path.suffix != ".tmp"
            }
            for run in (whole[model], broken[model])
        ]
        assert hashes[0] == hashes[1]
        assert sum(not name.endswith("sample.csv") for name in hashes[0]) == 48


def test_nothing_half_written_is_left(runs):
    for run in newest(runs[0] / "broken").values():
        assert not list(run.rglob(".*.tmp"))
        assert not list(run.rglob("*.running"))


# -- disks that take no more ----------------------------------------------------------------


def test_a_full_disk_keeps_what_is_finished(line, tmp_path, monkeypatch):
    task = line(split={"use": "kfold", "folds": 5})
    write, wrote = runs_module.write_atomic, []

    def full(path, content, *, durable=False):
        if path.suffix == ".json" and path.parent.name == "jobs":
            wrote.append(path)
        if len(wrote) > 2:
            raise OSError(28, "No space left on device", str(path))
        write(path, content, durable=durable)

    monkeypatch.setattr(runs_module, "write_atomic", full)
    with pytest.raises(OSError, match="No space left"):
        karat.evaluate("dummy", [task], output=tmp_path / "out")
    monkeypatch.undo()
    (run,) = karat.open_runs([tmp_path / "out"])
    assert [record["fold"] for record in run.records()] == [0, 1]
    assert len(run.results()) == 2
    (run,) = karat.evaluate("dummy", [task], output=tmp_path / "out", resume=True)
    assert [record["fold"] for record in run.records()] == [0, 1, 2, 3, 4]


def test_two_processes_on_one_folder_leave_two_whole_runs(tmp_path):
    code = (
        "import numpy as np, pandas as pd, karat\n"
        "frame = pd.DataFrame({'a': np.arange(40.0), 'y': np.arange(40.0)})\n"
        "data = karat.Dataset.from_table(frame, target='y', name='line', kind='regression')\n"
        "task = karat.Task('line', data, split={'use': 'kfold', 'folds': 20})\n"
        "karat.evaluate(['dummy', 'ridge'], [task], output='out')\n"
    )
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, cwd=tmp_path) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    runs = karat.open_runs([tmp_path / "out"])
    assert sorted(run.model for run in runs) == ["dummy", "dummy", "ridge", "ridge"]
    assert [len(run.records()) for run in runs] == [20] * 4
