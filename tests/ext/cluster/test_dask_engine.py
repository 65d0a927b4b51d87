"""The engine Dask: schedulers and workers as processes of their own, on this machine's loopback."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import importlib
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil
import pytest
from sklearn.linear_model import LogisticRegression

import karat
from karat.errors import DefinitionError, DiskFull, KaratError, MissingExtra
from karat.execution.job import Job
from karat.execution.object_store import ObjectStore
from karat.execution.progress import Progress
from karat.execution.resources import Limits
from karat.execution.session import Stopped
from karat.execution.workers import WorkerDied
from karat.ext.cluster import dask_engine as dask
from karat.ext.cluster.dask_engine import Depot, RemoteFile, RemoteJob, pickle_user_modules
from karat.models.random_encoder import RandomEncoder
from karat.models.tables.one_hot_table import OneHotTable

real = pytest.mark.skipif(not find_spec("distributed"), reason="distributed is not installed")

#: a Dask worker keeps the process from which it forks
TEMPLATES = int(sys.platform == "linux")
#: work that workers find on their path; job.spec says what to do
WORK = """
import os, signal, sys, time
from pathlib import Path
import psutil

def dask_worker():
    parent = psutil.Process(os.getppid())
    return parent.ppid() if sys.platform == "linux" else parent.pid  # above the template

def describe(job, store):
    return job.fold, dask_worker(), job.vectors and Path(job.vectors, "vectors.npy").read_bytes(), \
        str(store.folder), store.get(job.dataset)

def dies(job, store):
    '''Write down the Dask worker; wait, or end that worker, if the model's name says so.'''
    seen = Path(job.spec)
    first = not seen.exists()
    with seen.open("a") as file:
        file.write(f"{dask_worker()}\\n")
    if job.model == "deadly":
        os.kill(dask_worker(), signal.SIGKILL)
    if job.model == "deadly" or first and job.model == "waits":
        time.sleep(600)
    return "done"

def alone(job, store):
    begun = time.time()
    time.sleep(0.5)
    return begun, time.time(), dask_worker()
"""
#: a worker of another machine does not see the client's disk
BLIND = "import karat.ext.cluster.dask_engine as engine\nengine.is_same_file = lambda *_: False\n"


class Cluster:
    """A scheduler and workers as one starts them by hand."""

    def __init__(self, folder: Path, until) -> None:
        self.folder = folder
        self.until = until
        self.file = folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        (folder / "its_dask_work.py").write_text(WORK)
        (folder / "blind.py").write_text(BLIND)

    def scheduler(self, **settings: str) -> subprocess.Popen[bytes]:
        self.file.unlink(missing_ok=True)
        args = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"]
        return self._start(["scheduler", *args, "--scheduler-file", str(self.file)], settings)

    def worker(self, name: str, *more: str, threads: int = 1) -> subprocess.Popen[bytes]:
        own = self.folder / name
        args = ["--host", "127.0.0.1", "--no-dashboard", "--nthreads", str(threads)]
        args += ["--no-nanny", "--memory-limit", "0", "--local-directory", str(own), *more]
        args += ["--scheduler-file", str(self.file), "--name", name]
        return self._start(["worker", *args], {"KARAT_CACHE": str(own / "cache")})

    def _start(self, args: list[str], settings: dict[str, str]) -> subprocess.Popen[bytes]:
        paths = [str(self.folder), os.environ.get("PYTHONPATH", "")]
        settings = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), **settings}
        with (self.folder / "log.txt").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *args],
                env={**os.environ, **settings},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    @property
    def address(self) -> str:
        """The scheduler's address, once it has written it down."""
        self.until(lambda: self.file.exists() and self.file.read_text().endswith("}"))
        return str(json.loads(self.file.read_text())["address"])

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture(scope="module", autouse=True)
def patience():
    """A machine with much to do may need long to start a worker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask, "PATIENCE", 900.0)
        yield


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, until):
    """Two workers that share no disk, neither with the client nor with each other."""
    made = Cluster(tmp_path_factory.mktemp("cluster"), until)
    made.scheduler()
    blind = ("--preload", str(made.folder / "blind.py"))
    large = ("--resources", "cores=2 memory=2e9")
    made.workers = [made.worker("north", *blind, *large, threads=2), made.worker("south", *blind)]
    assert made.address
    yield made
    made.stop()


@pytest.fixture
def fragile(tmp_path, until):
    """A cluster to break: a scheduler that gives a job up after two dead workers."""
    made = Cluster(tmp_path, until)
    made.process = made.scheduler(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1")
    yield made
    made.stop()


@real
@pytest.mark.slow
def test_results_equal_those_of_local_workers(
    cluster, models, contents, two_classes, line, words, tmp_path, monkeypatch
):
    noise = {"noise_gaussian": [0.5, 2.0]}
    tasks = [two_classes(corruptions=noise), line(), words()]
    given = {
        "noisy": models.Noisy(),
        "random": RandomEncoder(8),
        "logistic": LogisticRegression(),
        "onehot": OneHotTable(),
        "dies": models.Dies(),
        "locked": models.Locked(),
    }
    here = karat.evaluate(given, tasks, output=tmp_path / "here", workers=2)
    monkeypatch.setattr(dask, "PIECE", 3000)  # files come in several pieces
    options = {"workers": karat.Machines(engine="dask", scheduler=cluster.address)}
    there = karat.evaluate(given, tasks, output=tmp_path / "there", **options)
    assert contents(here[:5]) == contents(there[:5])
    # a model without an identity has another spec each time
    assert contents(here[5:], ["spec"]) == contents(there[5:], ["spec"])
    assert len(contents(there)) > 60
    fine = [r for run in there[:4] for r in run.records() if r["task"] == "halves"]
    assert [r["status"] for r in fine] == ["ok"] * 8
    dies, locked = ({r["info"] for r in run.records() if r["task"] == "line"} for run in there[4:])
    assert any("exit code 3" in info for info in dies)
    assert locked == {""}  # it cannot be pickled and runs in this process
    assert [process.poll() for process in cluster.processes] == [None] * 3
    assert there[0].folder.name.startswith("noisy.custom.default.dask.")
    # what is resumed elsewhere finds nothing left to do
    again = {"resume": True, "output": tmp_path / "there"}
    same = karat.evaluate({"onehot": OneHotTable()}, tasks, **again)
    assert [run.folder for run in same] == [there[3].folder]


def things(tmp_path, **kinds):
    """Return a store with the parts that jobs of WORK name."""
    store = ObjectStore(tmp_path / "store")
    for key in ("model", "deadly", "waits", "task"):
        store.put(key, key)
    for key, thing in kinds.items():
        store.put(key, thing)
    return store


@real
@pytest.mark.slow
def test_files_are_sent_to_each_worker_once(cluster, until, tmp_path):
    vectors = tmp_path / "vectors"
    vectors.mkdir()
    np.save(vectors / "vectors.npy", np.arange(1000.0))
    (vectors / "about.json").write_text("{}")
    store = things(tmp_path, data=7, other="x" * 10_000)
    jobs = [
        Job("model", "task", "data" if i % 2 else "other", i, 0, "", "", vectors=str(vectors))
        for i in range(30)
    ]
    answers = list(dask.execute_on_dask(jobs, "its_dask_work:describe", store, cluster.address))
    assert sorted(job.fold for job, _ in answers) == list(range(30))
    names = dict(zip((process.pid for process in cluster.workers), ("north", "south"), strict=True))
    matrix = (vectors / "vectors.npy").read_bytes()
    for job, (fold, parent, seen, folder, data) in answers:
        assert (fold, seen, data) == (job.fold, matrix, 7 if job.fold % 2 else "x" * 10_000)
        # below the directory of its own worker, and of no other
        assert Path(folder).is_relative_to(cluster.folder / names[parent])
    for name in {names[parent] for _, (_, parent, *_) in answers}:
        files = (cluster.folder / name).rglob("karat/files/*")
        held = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
        assert held.count(hashlib.sha256(matrix).hexdigest()) == 1
        assert len(held) == len(set(held))
    # the session's folder is gone with it, and so are its processes
    assert not list(cluster.folder.rglob("store/task.pickle"))
    for process in cluster.workers:
        until(lambda p=process: len(psutil.Process(p.pid).children(recursive=True)) <= TEMPLATES)


@real
@pytest.mark.slow
def test_limits_end_jobs_and_not_dask_workers(cluster, models, two_classes, words, tmp_path):
    vectors = tmp_path / "vectors.txt"
    spoken = sorted(set(" ".join(words().dataset.items).split()))
    vectors.write_text("".join(f"{word} {i} 1\n" for i, word in enumerate(spoken)))
    options = {
        "workers": karat.Machines(engine="dask", scheduler=cluster.address),
        "output": tmp_path / "out",
    }
    for hungry, seconds, wanted in ((False, 5, "timeout"), (True, 900, "memory")):
        task = two_classes(max_runtime_seconds=seconds, max_mem_size_mb=600)
        model = {"forever": models.Forever(hungry)}
        (run,) = karat.evaluate(model, task, only=karat.Only(folds=0), **options)
        assert [record["status"] for record in run.records()] == [wanted]
    # a file of vectors lies here and not there: its vectors are sent
    (run,) = karat.evaluate(
        str(vectors), words(max_mem_size_mb=1000), only=karat.Only(folds=0), **options
    )
    (file,) = run.records()
    assert (file["status"], file["dimensions"]) == ("ok", 2)
    assert [process.poll() for process in cluster.processes] == [None] * 3


def answered(jobs, work, store, address):
    """Begin to execute jobs in a thread; return the thread and the list it fills."""
    answers = []

    def go():
        answers.extend(dask.execute_on_dask(jobs, f"its_dask_work:{work}", store, address))

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    return thread, answers


def pids(file):
    return [int(line) for line in file.read_text().split()] if file.exists() else []


@real
@pytest.mark.slow
def test_jobs_of_a_killed_worker_run_on_a_later_one(fragile, until, tmp_path):
    first = fragile.worker("first")
    seen = tmp_path / "seen"
    jobs = [
        Job("waits", "task", "data", 0, 0, str(seen), ""),
        Job("model", "task", "data", 1, 0, str(tmp_path / "other"), ""),
    ]
    thread, answers = answered(jobs, "dies", things(tmp_path, data=1), fragile.address)
    until(lambda: pids(seen))
    assert pids(seen) == [first.pid]
    (child,) = psutil.Process(first.pid).children()
    first.kill()
    late = fragile.worker("late")
    thread.join(900)
    assert sorted((job.fold, answer) for job, answer in answers) == [(0, "done"), (1, "done")]
    assert pids(seen) == [first.pid, late.pid]
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    # a job that ends every worker it meets is given up
    fatal = tmp_path / "fatal"
    deadly = Job("deadly", "task", "data", 0, 0, str(fatal), "")
    thread, answers = answered([deadly], "dies", things(tmp_path, data=1), fragile.address)
    until(lambda: pids(fatal) == [late.pid])
    fragile.worker("later")
    thread.join(900)
    ((_, died),) = answers
    assert isinstance(died, WorkerDied)
    assert died.cause.startswith("2 Dask workers died")
    assert len(pids(fatal)) == 2


class Kills(Progress):
    """Ends a process when so many jobs are done."""

    def __init__(self, process, after):
        self.process = process
        self.after = after

    def finished(self, record, folder):
        self.after -= 1
        if self.after == 0:
            self.process.kill()
            self.process.wait()


@real
@pytest.mark.slow
def test_a_lost_scheduler_stops_the_run_and_resume_finishes_it(
    fragile, models, contents, two_classes, tmp_path
):
    task = two_classes(split={"use": "kfold", "folds": 10})
    worker = fragile.worker("one", "--death-timeout", "5")
    options = {
        "workers": karat.Machines(engine="dask", scheduler=fragile.address),
        "output": tmp_path / "out",
    }
    with pytest.raises(Stopped) as caught:
        karat.evaluate({"slow": models.Slow()}, task, progress=Kills(fragile.process, 3), **options)
    assert "scheduler" in caught.value.reason
    done = len(caught.value.runs[0].records())
    assert 3 <= done < 10
    assert f"{done} of 10" in caught.value.progress
    worker.wait(900)  # it ends by itself
    fragile.scheduler()
    fragile.worker("two")
    options["workers"] = karat.Machines(engine="dask", scheduler=fragile.address)
    (run,) = karat.evaluate({"slow": models.Slow()}, task, resume=True, **options)
    assert run.folder == caught.value.runs[0].folder
    (whole,) = karat.evaluate({"slow": models.Slow()}, task, output=tmp_path / "whole")
    assert contents([run]) == contents([whole])


@real
@pytest.mark.slow
def test_jobs_reserve_declared_resources(cluster, tmp_path):
    store = things(tmp_path, data=1)
    jobs = [Job("model", "task", "data", i, 0, "", "", limits=Limits(cores=2)) for i in range(2)]
    found = dask.execute_on_dask(jobs, "its_dask_work:alone", store, cluster.address)
    (_, end, north), (start, _, same) = sorted(answer for _, answer in found)
    assert north == same == cluster.workers[0].pid  # it declares two cores
    assert end <= start


SCRIPT = """
import numpy as np, pandas as pd, psutil
import karat

class Own:
    def fit(self, items, y=None):
        return self
    def transform(self, items):
        return items.to_numpy(dtype=float)

table = pd.DataFrame({"x": np.arange(20.0), "y": ["low"] * 10 + ["high"] * 10})
data = karat.Dataset.from_table(table, "y", name="halves")
task = karat.Task("halves", data, metrics=["acc"])
(run,) = karat.evaluate(Own, task, workers=karat.Machines(engine="dask"), output="out")
(same,) = karat.evaluate(Own, task, output="out")
assert run.scores().equals(same.scores())
print(run.model, *run.results()["status"].unique(), len(psutil.Process().children()))
"""


@real
@pytest.mark.slow
def test_without_an_address_a_local_cluster_is_used(python, tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    done = python("script.py", cwd=tmp_path)
    assert (done.stdout.split(), done.stderr) == (["Own", "ok", "0"], "")


@real
@pytest.mark.slow
def test_other_versions_are_an_error_before_anything_runs(
    cluster, two_classes, tmp_path, monkeypatch
):
    now = dask._installed()
    monkeypatch.setattr(dask, "_installed", lambda: {**now, "pandas": "0.0"})
    with pytest.raises(DefinitionError, match="pandas .* 0.0") as caught:
        machines = karat.Machines(engine="dask", scheduler=cluster.address)
        karat.evaluate(OneHotTable(), two_classes(), workers=machines, output=tmp_path / "out")
    assert len(caught.value.messages) == 3  # two workers, and what to do
    assert not (tmp_path / "out").exists()
    # a worker that comes later is asked by each job
    monkeypatch.undo()
    monkeypatch.setattr(dask, "_versions", lambda: ("0.0", "3.99"))
    jobs = [Job("model", "task", "data", 0, 0, "", "")]
    with pytest.raises(DefinitionError, match="0.0 and Python 3.99"):
        store = things(tmp_path, data=1)
        list(dask.execute_on_dask(jobs, "its_dask_work:describe", store, cluster.address))


@real
def test_no_scheduler_at_the_address(two_classes, tmp_path, monkeypatch):
    monkeypatch.setattr(dask, "PATIENCE", 0.5)
    machines = karat.Machines(engine="dask", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(DefinitionError, match="tcp://127.0.0.1:9"):
        karat.evaluate(OneHotTable(), two_classes(), workers=machines, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_library_names_the_extra(two_classes, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r'pip install "karat\[dask\]"'):
        karat.evaluate(
            OneHotTable(),
            two_classes(),
            workers=karat.Machines(engine="dask"),
            output=tmp_path / "out",
        )
    assert not (tmp_path / "out").exists()


def remote_file(content: bytes, path="elsewhere") -> RemoteFile:
    return RemoteFile(hashlib.sha256(content).hexdigest(), len(content), str(path))


@pytest.mark.parametrize("pieces", [[b""], [b"abc"], [b"ab", b"c"]])
def test_a_file_is_complete_after_its_last_piece(tmp_path, pieces):
    held, whole = Depot(tmp_path), b"".join(pieces)
    remote, start = remote_file(whole), 0
    for piece in pieces:
        assert held.missing([remote, remote]) == (remote,)
        held.receive(remote, start, piece, "session")
        start += len(piece)
    assert held.missing([remote]) == ()
    assert (held.files / remote.sha256).read_bytes() == whole


def test_content_with_another_hash_is_an_error(tmp_path):
    held, remote = Depot(tmp_path), remote_file(b"abc")
    with pytest.raises(OSError, match="changed"):
        held.receive(remote, 0, b"abd", "session")
    assert held.missing([remote]) == (remote,)
    assert list(held.files.iterdir()) == []


def test_a_full_disk_of_a_dask_worker_is_named(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    held = Depot(tmp_path)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(DiskFull, match="No space left on device; free some space there"):
        held.receive(remote_file(b"abc"), 0, b"abc", "session")
    assert list(held.files.iterdir()) == []


def test_files_of_clients_that_stopped_sending_are_removed(tmp_path, monkeypatch):
    held, remotes = Depot(tmp_path), [remote_file(b"abc"), remote_file(b"abd")]
    for remote in remotes:
        held.receive(remote, 0, b"ab", "ended")
    held.close("ended")
    assert list(held.files.iterdir()) == []
    held.receive(remotes[0], 0, b"ab", "killed")
    monkeypatch.setattr(dask, "IDLE", 0.0)
    held.receive(remotes[1], 0, b"abd", "another")
    assert [file.name for file in held.files.iterdir()] == [remotes[1].sha256]


def test_an_unchanged_file_on_a_shared_disk_is_not_sent(tmp_path):
    shared = tmp_path / "shared"
    shared.write_bytes(b"abc")
    held, remote = Depot(tmp_path / "depot"), remote_file(b"abc", shared)
    assert held.missing([remote]) == ()
    assert Depot(tmp_path / "other").missing([dataclasses.replace(remote, sha256="0")]) != ()
    shared.unlink()
    assert held.missing([remote]) == (remote,)
    held.receive(remote, 0, b"abc", "session")
    assert held.missing([remote]) == ()


def test_the_least_recently_used_files_are_removed(tmp_path):
    held = Depot(tmp_path)
    held.room = 7
    remotes = [remote_file(bytes([i]) * 3) for i in range(4)]
    for age, (i, remote) in zip((30, 20, 10), enumerate(remotes[:3]), strict=True):
        with held.using(remotes[:1]):  # the oldest, and at work
            held.receive(remote, 0, bytes([i]) * 3, "session")
        if (file := held.files / remote.sha256).exists():
            os.utime(file, (time.time() - age, time.time() - age))
    assert held.missing(remotes[:3]) == (remotes[1],)
    held.receive(remotes[3], 0, bytes([3]) * 3, "session")
    assert len(held.missing(remotes)) == 2


def test_child_processes_of_a_machine_have_different_numbers(tmp_path, monkeypatch):
    """Else workers of one thread each would bind all their jobs to the same core."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    order = RemoteJob(None, "work", "session", {}, {}, ("", ""))
    one, two = Depot(tmp_path / "one"), Depot(tmp_path / "two")
    first, second, third = (held.acquire(order, tmp_path) for held in (one, two, one))
    assert [child.worker.slot for child in (first, second, third)] == [0, 1, 2]
    one.release(third)
    assert one.acquire(order, tmp_path) is third  # a warm one first
    two.close("session")
    assert one.acquire(order, tmp_path).worker.slot == 1
    one.close("session")


def test_jobs_require_at_most_the_declared_resources():
    class Client:
        workers: dict = {}

        def scheduler_info(self, n_workers):
            return {"workers": dict(enumerate(self.workers))}

    job = Job("model", "task", "data", 0, 0, "", "", limits=Limits(cores=3, memory_mb=100))

    def share(*declared, job=job):
        client = Client()
        client.workers = [{"nthreads": 2, "resources": each} for each in declared]
        return dask._Cluster(client).share(job)

    assert share({}, {}) is None
    assert share({"GPU": 1}) is None
    gpus = dataclasses.replace(job, limits=Limits(gpus=1, cores=1))
    assert share({"GPU": 2.0, "other": 1.0}, job=gpus) == {"GPU": 1}
    assert share({"cores": 8}, {"cores": 4}) == {"cores": 3}
    assert share({"CORES": 2}) == {"CORES": 2}
    assert share({"memory": 1e9, "cores": 8}) == {"memory": 100 * 2**20, "cores": 3}
    assert share({"cores": 8}, job=dataclasses.replace(job, limits=None)) is None


def test_only_uninstalled_modules_are_pickled_by_value():
    import cloudpickle

    before = cloudpickle.list_registry_pickle_by_value()  # other tests may have left some
    with pickle_user_modules():
        names = cloudpickle.list_registry_pickle_by_value()
    assert __name__ in names
    assert not {name for name in names if name.partition(".")[0] in ("karat", "numpy", "json")}
    assert cloudpickle.list_registry_pickle_by_value() == before


def test_an_installed_module_may_be_a_link_as_those_of_uv(tmp_path, monkeypatch):
    import cloudpickle

    for folder in ("cache", "site"):
        (tmp_path / folder).mkdir()
    (tmp_path / "cache" / "linked_module.py").write_text("")
    (tmp_path / "site" / "linked_module.py").symlink_to(tmp_path / "cache" / "linked_module.py")
    monkeypatch.setattr(dask.site, "getsitepackages", lambda: [str(tmp_path / "site")])
    monkeypatch.syspath_prepend(tmp_path / "site")
    importlib.import_module("linked_module")
    with pickle_user_modules():
        names = cloudpickle.list_registry_pickle_by_value()
    del sys.modules["linked_module"]
    assert "linked_module" not in names and __name__ in names


def test_slots_follow_no_links_of_other_users(tmp_path, monkeypatch):
    monkeypatch.setattr(dask.tempfile, "tempdir", str(tmp_path))
    folder, victim = tmp_path / f"karat-slots-{os.getuid()}", tmp_path / "victim"
    slots = [dask._reserve_slot() for _ in range(2)]
    assert [number for number, _ in slots] == [0, 1]
    assert folder.stat().st_mode & 0o777 == 0o700
    for _, file in slots:
        file.close()
    victim.write_text("mine")
    (folder / "0").unlink()
    (folder / "0").symlink_to(victim)
    with pytest.raises(OSError):
        dask._reserve_slot()
    assert victim.read_text() == "mine"
    folder.rename(tmp_path / "other")
    folder.symlink_to(tmp_path / "other")
    with pytest.raises(KaratError, match="karat-slots"):
        dask._reserve_slot()


def test_idle_child_processes_end_also_when_no_job_comes(tmp_path, monkeypatch):
    monkeypatch.setattr(dask, "IDLE", 0.05)
    depot, ended = Depot(tmp_path), threading.Event()

    class Child:
        session, busy, since = "gone", True, 0.0
        stop = staticmethod(ended.set)

    child = Child()
    depot._children["gone"] = [child]
    depot.release(child)
    assert ended.wait(30) and depot._children["gone"] == []
