"""Limits: a misbehaving model fails its own job with the right status; and costs of jobs."""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest

import karat
from karat.core.dataset import Dataset
from karat.errors import DefinitionError
from karat.execution import resources as measure
from karat.execution.captured_output import OutputLog
from karat.execution.resources import (
    VISIBLE,
    Limits,
    Meter,
    container_cores,
    limits_enforced,
    peak_memory,
    visible_gpus,
)
from karat.models.model import Model

NASTY = '''
import os, signal, subprocess, sys, time
import numpy as np
from sklearn.base import BaseEstimator

class Base(BaseEstimator):
    def fit(self, X, y=None):
        self.y_ = y
        self.act()
        return self
    def act(self): pass
    def predict(self, X): return np.full(len(X), self.y_[0])
class Fine(Base): pass
class Spin(Base):
    def act(self):
        while True: pass
class Deaf(Base):
    """Hears no signal: only a kill ends it."""
    def act(self):
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        time.sleep(600)
class Hog(Base):
    def act(self):
        kept = []
        while True:
            kept.append(np.empty(4_000_000))
class Wants(Base):
    def act(self): np.ones(10**10)
class ChildHog(Base):
    def act(self):
        code = "x = []" + chr(10) + "while True: x.append(bytearray(20_000_000))"
        subprocess.run([sys.executable, "-c", code])
class Segfault(Base):
    def act(self): os.kill(os.getpid(), signal.SIGSEGV)
class Exits(Base):
    def act(self): os._exit(3)
class Forks(Base):
    def act(self):
        one = subprocess.Popen(["sleep", "617"])
        two = subprocess.Popen(["sleep", "617"], start_new_session=True)
        with open(os.environ["KARAT_TEST_PIDS"], "a") as file:
            print(one.pid, two.pid, file=file)
class Mute(Base):
    def act(self):
        sys.stdout.close()
        os.close(1)
class Talks(Base):
    def act(self):
        for _ in range(1000): print("x" * 1_000_000)
class Shouts(Base):
    def act(self):
        for _ in range(1000): os.write(1, b"x" * 100_000)
class Quits(Base):
    def act(self): raise SystemExit(4)
class Interrupts(Base):
    def act(self): raise KeyboardInterrupt
class Shape(Base):
    def predict(self, X): return np.zeros((len(X), 3))
class Nan(Base):
    def predict(self, X): return np.full(len(X), np.nan)
class Told(Base):
    def __init__(self, max_runtime_seconds=None, max_mem_size_mb=None, cores=None):
        self.max_runtime_seconds = max_runtime_seconds
        self.max_mem_size_mb = max_mem_size_mb
        self.cores = cores
    def act(self):
        given = (self.max_runtime_seconds, self.max_mem_size_mb, self.cores)
        allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        assert (given, allowed) == ((900, 900, 1), 1), (given, allowed)
'''
#: the status of each model and a part of its message
WANTED = {
    **dict.fromkeys(("Fine", "Forks", "Mute", "Talks", "Shouts", "Told"), ("ok", "")),
    "Spin": ("timeout", "3 s"),
    "Deaf": ("timeout", "killed"),
    "Hog": ("memory", ""),
    "Wants": ("memory", "MemoryError"),
    "ChildHog": ("memory", "900 MB"),
    "Segfault": ("failed", "SIGSEGV"),
    "Exits": ("failed", "exit code 3"),
    "Quits": ("failed", "SystemExit: 4"),
    "Interrupts": ("failed", "KeyboardInterrupt"),
    "Shape": ("failed", "shape"),
    "Nan": ("failed", "NaN"),
}
ENDLESS = {"Spin", "Deaf"}
linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="limits of memory: Linux")


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nasty")
    (folder / "karat_nasty.py").write_text(NASTY)
    sys.path.insert(0, str(folder))
    yield __import__("karat_nasty")
    sys.path.remove(str(folder))


def task(**limits):
    frame = pd.DataFrame({"a": np.arange(30.0), "y": np.arange(30.0) * 2})
    data = Dataset.from_table(frame, target="y", name="line", kind="regression")
    split = {"use": "kfold", "folds": 2}
    return karat.Task("line", data, metrics=["rmse"], split=split, **limits)


@pytest.fixture(scope="module")
def rows(nasty, tmp_path_factory):
    """The records of all models, run with two workers."""
    place = tmp_path_factory.mktemp("limits")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KARAT_TEST_PIDS", str(place / "pids"))
        patch.setattr("karat.execution.resources.GRACE", 1.0)
        runs = []
        # only models that never end have little time: on a busy machine the others may be slow
        for seconds, names in ((3, ENDLESS), (900, WANTED.keys() - ENDLESS)):
            limited = task(max_runtime_seconds=seconds, max_mem_size_mb=900, cores=1)
            models = {name: getattr(nasty, name)() for name in sorted(names)}
            runs += karat.evaluate(
                models, [limited], output=place / "out", workers=2, only=karat.Only(folds=[0])
            )
    found = {run.model: run.records() for run in runs}
    return found, (place / "pids").read_text().split()


@linux
@pytest.mark.parametrize("name", WANTED)
def test_each_job_has_the_expected_status(rows, name):
    status, info = WANTED[name]
    (record,) = rows[0][name]
    assert (record["fold"], record["status"]) == (0, status), record["info"]
    assert info in record["info"]


def ended(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@linux
def test_no_process_is_left(rows):
    pids = [int(pid) for pid in rows[1]]
    assert len(pids) == 2
    assert all(map(ended, pids))


@linux
def test_ended_jobs_record_their_costs(rows):
    killed = rows[0]["Deaf"][0]
    assert killed["seconds"] >= 6.9
    assert rows[0]["ChildHog"][0]["peak_memory_mb"] > 900
    # Spin used the CPU, Deaf slept
    assert rows[0]["Spin"][0]["cpu_seconds"] > killed["cpu_seconds"]
    assert killed["cpu_seconds"] < killed["seconds"] / 2
    assert rows[0]["Interrupts"][0]["seconds"] > 0
    assert rows[0]["Fine"][0]["status"] == "ok"


@linux
def test_a_limit_of_the_task_replaces_that_of_the_constraint(nasty, tmp_path):
    define = tmp_path / "mine.yaml"
    define.write_text(
        "constraints:\n  quick: {max_runtime_seconds: 0.3, description: Little time.}\n"
    )
    given = {"define": define, "output": tmp_path / "out", "only": karat.Only(folds=[0])}
    given["workers"] = karat.Machines(constraint="quick")
    (run,) = karat.evaluate({"spin": nasty.Spin()}, [task()], **given)
    assert run.records()[0]["status"] == "timeout"
    assert "0.3 s" in run.records()[0]["info"]
    (run,) = karat.evaluate({"spin": nasty.Spin()}, [task(max_runtime_seconds=0.5)], **given)
    assert "0.5 s" in run.records()[0]["info"]


def test_too_little_disk_space_is_an_error_before_anything_runs(tmp_path):
    define = tmp_path / "mine.yaml"
    define.write_text("constraints:\n  vast: {min_vol_size_mb: 1000000000000}\n")
    with pytest.raises(DefinitionError, match="1,000,000,000,000 MB"):
        karat.evaluate(
            "dummy",
            [task()],
            define=define,
            workers=karat.Machines(constraint="vast"),
            output=tmp_path / "out",
        )
    assert not (tmp_path / "out").exists()


def test_limits_apply_to_stateless_encoders(tmp_path, script):
    """Its vectors are made in the worker, where the limits hold."""
    (tmp_path / "slow.py").write_text(
        "import time\n"
        "import numpy as np\n"
        "import pandas as pd\n"
        "import karat\n"
        "def slow(items):\n"
        "    time.sleep(600)\n"
        "frame = pd.DataFrame({'a': np.arange(20.0), 'y': np.arange(20.0)})\n"
        "data = karat.Dataset.from_table(frame, target='y', name='line', kind='regression')\n"
        "task = karat.Task('line', data, max_runtime_seconds=0.4, max_mem_size_mb=4000)\n"
        "(run,) = karat.evaluate({'slow': slow}, [task], only=karat.Only(folds=[0]))\n"
        "print(run.records()[0]['status'])\n"
    )
    done = script(tmp_path / "slow.py", cwd=tmp_path)
    assert done.stdout.strip() == "timeout", done.stderr


@linux
def test_the_memory_limit_is_enforced_and_removed_again():
    with limits_enforced(Limits(memory_mb=2000)), pytest.raises(MemoryError):
        np.ones(10**9)
    assert np.ones(10**6).sum() == 10**6
    import resource

    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY


def test_limits_set_only_parameters_that_are_none():
    class Told:
        def __init__(self, cores=None, max_runtime_seconds=7):
            self.cores, self.max_runtime_seconds = cores, max_runtime_seconds

        def fit(self, X, y):
            return self

        predict = fit

    model = Model("limited", Told(), "predictor", limits={"cores": 3, "max_runtime_seconds": 9})
    made = model.fresh(1, "regression")
    assert (made.cores, made.max_runtime_seconds) == (3, 7)


def test_a_log_keeps_both_ends_and_stays_open():
    log = OutputLog()
    log.write("begin\n")
    for _ in range(50):
        log.write("x" * 10_000)
    log.close()
    log.write("\nend")
    text = log.getvalue()
    assert text.startswith("begin\n") and text.endswith("\nend")
    assert "omitted" in text and len(text) < 250_000


def test_parallel_jobs_see_different_gpus(monkeypatch):
    monkeypatch.setenv(VISIBLE, "4, 5,6,7")
    assert visible_gpus() == ["4", "5", "6", "7"]
    seen = []
    for slot in (0, 1, 2):
        with limits_enforced(Limits(gpus=2), slot):
            seen.append(os.environ[VISIBLE])
    assert seen == ["4,5", "6,7", "4,5"]
    assert os.environ[VISIBLE] == "4, 5,6,7"
    monkeypatch.setenv(VISIBLE, "-1")
    assert visible_gpus() == []


def test_too_few_gpus_are_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(DefinitionError, match="2 GPUs, found 1"):
        karat.evaluate("dummy", [task(gpus=2)], output=tmp_path / "out")


def test_phases_add_up_even_when_one_raises(monkeypatch):
    clock = iter([0.0, 1.0, 3.0, 10.0, 14.0, 100.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    meter = Meter()
    with meter.phase("fit"):
        pass
    with pytest.raises(ValueError), meter.phase("fit"):
        raise ValueError
    costs = meter.costs()
    assert costs["fit_seconds"] == 2 + 4
    assert costs["seconds"] == 100


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep one peak per process")
def test_the_peak_is_reset_for_each_job():
    meter = Meter()
    big = np.ones(200 * 2**17)  # 200 MB
    with_big = meter.costs()["peak_memory_mb"]
    del big
    without = Meter().costs()["peak_memory_mb"]
    assert with_big - without > 150
    assert peak_memory() < with_big


def test_peak_memory_without_proc(monkeypatch):
    def refused(*_, **__):
        raise OSError

    monkeypatch.setattr(measure, "open", refused, raising=False)
    assert Meter().costs()["peak_memory_mb"] > 1


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "20000 100000"}, 1),
        ({"cpu.max": "max 100000"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({}, None),
    ],
)
def test_the_cores_of_a_container(tmp_path, files, cores):
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(f"{text}\n")
    assert container_cores(tmp_path) == cores
