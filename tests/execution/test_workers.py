"""Jobs in this process and in workers: results, and workers that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from karat.errors import DefinitionError
from karat.execution import workers as module
from karat.execution.object_store import ObjectStore
from karat.execution.resources import Limits, _cgroup, end_tree, remove_cgroups
from karat.execution.workers import Template, WorkerDied, execute, one_thread

WORK = """
import os, sys, time

def square(job, store):
    return job * job

def environment(job, store):
    from threadpoolctl import threadpool_info
    import numpy
    return os.getpid(), os.environ["OMP_NUM_THREADS"], [i["num_threads"] for i in threadpool_info()]

def dies(job, store):
    if job == "exit":
        print("goodbye", file=sys.stderr, flush=True)
        os._exit(3)
    if job == "abort":
        os.abort()
    if job == "kill":
        os.kill(os.getpid(), 9)
    if job == "raise":
        raise ValueError("not this one")
    if job == "garbage":
        os.write(answers(), b"no pickle")
        os._exit(0)
    return "alive"

def answers():
    # the pipe to the parent is the highest pipe that can be written
    import stat
    found = []
    for fd in range(3, 50):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, b"")
                found.append(fd)
        except OSError:
            pass
    return found[-1]

def talks(job, store):
    print("on standard output")
    os.write(1, b"and below it")
    return sys.stdin.read()

def shared(job, store):
    return store.get("thing")(job)

def loops(job, store):
    with open(job, "w") as file:
        file.write(str(os.getpid()))
    9 ** 9 ** 9  # in C, without a look at signals

def sleeps(job, store):
    time.sleep(job)

def of_model(job, store):
    return os.getpid()

def changes(job, store):
    before = os.getcwd(), len(sys.path), os.environ.get("CHANGED")
    os.chdir("/")
    sys.path.clear()
    os.environ["CHANGED"] = "yes"
    return before

def daemon(job, store):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            big = bytearray(job.size)
            with open(job.file, "w") as file:
                file.write(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    os.wait()
    while job.wait or not os.path.exists(job.file) or not open(job.file).read():
        time.sleep(0.01)
    return "done"

def slow(job, store):
    with open(job, "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Execute jobs with a function of a module that workers find on the path."""
    (tmp_path / "its_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "its_work", raising=False)

    def go(jobs, function, workers=2, report=lambda job, event: None, **things):
        store = ObjectStore(tmp_path / "store")
        for key, thing in things.items():
            store.put(key, thing)
        return execute(jobs, f"its_work:{function}", store, workers, report)

    return go


@pytest.fixture
def job(run, tmp_path, monkeypatch):
    """Make a job of a class that workers can import."""
    (tmp_path / "its_job.py").write_text(
        "import dataclasses\nfrom typing import Any\n\n@dataclasses.dataclass(frozen=True)\n"
        "class Job:\n    model: str = ''\n    number: int = 0\n    file: str = ''\n"
        "    size: int = 0\n    wait: bool = False\n    limits: Any = None\n"
    )
    monkeypatch.delitem(sys.modules, "its_job", raising=False)
    import its_job

    return its_job.Job


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("jobs", [20, 0])
def test_every_job_is_answered_once(run, workers, jobs):
    assert sorted(run(list(range(jobs)), "square", workers)) == [(i, i * i) for i in range(jobs)]


def test_workers_use_one_thread_each(run):
    answers = [answer for _, answer in run(list(range(6)), "environment")]
    assert os.getpid() not in {pid for pid, _, _ in answers}
    assert len({pid for pid, _, _ in answers}) <= 2
    assert {threads for _, threads, _ in answers} == {"1"}
    assert {n for _, _, pools in answers for n in pools} <= {1}


def test_a_dead_worker_fails_one_job_and_is_replaced(run):
    jobs = ["a", "exit", "b", "abort", "c", "kill", "d", "raise", "e"]
    answers = dict(run([*jobs, "garbage"], "dies"))
    assert [answers[job] for job in "abcde"] == ["alive"] * 5
    for job, cause, output in (
        ("exit", "exit code 3", "goodbye"),
        ("abort", "SIGABRT", "Fatal Python error: Aborted"),
        ("kill", "SIGKILL", ""),
        ("raise", "ValueError: not this one", "Traceback"),
        ("garbage", "", ""),  # an answer that cannot be read
    ):
        assert cause in answers[job].cause and output in answers[job].output
    assert all(isinstance(answers[job], WorkerDied) for job in jobs if len(job) > 1)


def test_jobs_cannot_use_the_pipes(run):
    assert [answer for _, answer in run([1, 2, 3], "talks")] == ["", "", ""]


def test_an_object_that_cannot_be_pickled_is_an_error(run):
    with pytest.raises(DefinitionError, match="pickle.*0 workers"):
        list(run([1, 2], "shared", thing=threading.Lock()))


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def pids_of(files, until):
    until(lambda: all(file.exists() and file.read_text() for file in files))
    return [int(file.read_text()) for file in files]


def test_stopping_a_worker_ends_its_process(run, until, tmp_path):
    store = ObjectStore(tmp_path / "store")
    store.put("parts", {})
    store.save()
    worker = module.Worker("its_work:slow", store.folder)
    died = []

    def ask():
        try:
            worker.ask(str(tmp_path / "one"))
        except WorkerDied as error:
            died.append(error.cause)

    asking = threading.Thread(target=ask)
    asking.start()
    (pid,) = pids_of([tmp_path / "one"], until)
    process = worker.process
    worker.stop()
    asking.join()
    assert gone(pid)
    assert len(died) == 1 and "SIGKILL" in died[0]
    # the pipe may be closed in the middle of a read
    assert "SIGKILL" in worker._died(process, ValueError("read of closed file"), None).cause


def test_a_closed_generator_leaves_no_process(run, until):
    answers = run(list(range(50)), "square")
    next(answers)
    answers.close()
    parent = psutil.Process(Template.current().process.pid if sys.platform == "linux" else None)
    until(lambda: all(gone(child.pid) for child in parent.children()))


@pytest.mark.slow
def test_workers_end_when_their_parent_is_killed(until, tmp_path):
    (tmp_path / "its_work.py").write_text(WORK)
    script = (
        "import sys; from pathlib import Path; from karat.execution.workers import execute;"
        "from karat.execution.job import ObjectStore;"
        "list(execute(sys.argv[1:], 'its_work:loops', ObjectStore(Path('store')), 2))"
    )
    files = [tmp_path / "one", tmp_path / "two"]
    parent = subprocess.Popen([sys.executable, "-c", script, *map(str, files)], cwd=tmp_path)
    try:
        pids = pids_of(files, until)
        parent.kill()
        parent.wait()
        until(lambda: all(gone(pid) for pid in pids))
    finally:
        parent.kill()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_runs_jobs_of_one_model(run, job, workers):
    jobs = [job(model, number) for number in range(3) for model in "abc"]
    by_model = {}
    for each, pid in run(jobs, "of_model", workers):
        by_model.setdefault(each.model, set()).add(pid)
    assert len(set.union(*by_model.values())) == sum(map(len, by_model.values()))
    assert sorted(by_model) == ["a", "b", "c"]
    if workers == 1:
        assert [len(pids) for pids in by_model.values()] == [1, 1, 1]  # jobs are taken by model


@pytest.mark.parametrize("workers", [0, 1])
def test_a_job_finds_the_folder_path_and_environment_of_the_start(run, workers):
    at_start = os.getcwd(), len(sys.path), None
    assert [answer for _, answer in run([1, 2], "changes", workers)] == [at_start] * 2
    assert os.getcwd() == at_start[0] and sys.path and "CHANGED" not in os.environ


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_detached_process_ends_with_its_job(run, job, until, tmp_path):
    file = tmp_path / "daemon"
    one = job("a", file=str(file), limits=Limits(memory_mb=4000))
    assert [answer for _, answer in run([one], "daemon", 1)] == ["done"]
    until(lambda: gone(int(file.read_text())))


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_the_memory_of_a_detached_process_counts(run, job, until, tmp_path):
    file = tmp_path / "daemon"
    one = job("a", file=str(file), size=500 * 2**20, wait=True, limits=Limits(memory_mb=490))
    ((_, answer),) = run([one], "daemon", 1)
    assert answer.status == "memory"


@pytest.mark.parametrize("workers", [0, 1])
def test_a_job_that_runs_for_long_is_reported(run, monkeypatch, workers):
    monkeypatch.setattr(module, "STALL", 0.01)
    events = []
    report = lambda job, event: events.append((job, event.name))  # noqa: E731
    assert [each for each, _ in run([0.5], "sleeps", workers, report)] == [0.5]
    assert events == [(0.5, "stalled")]


@pytest.mark.parametrize("workers", [0, 1])
def test_each_job_that_runs_for_long_is_reported_once(run, monkeypatch, workers):
    monkeypatch.setattr(module, "STALL", 0.1)
    events = []
    jobs = [0.5, 0.0, 0.6]
    list(run(jobs, "sleeps", workers, lambda job, event: events.append(job)))
    assert events == [0.5, 0.6]


def test_a_worker_that_is_stopped_starts_no_process(tmp_path):
    worker = module.Worker("its_work:square", tmp_path)
    worker.stop()
    with pytest.raises(WorkerDied, match="stopped"):
        worker.ask(1)
    assert worker.process is None


def test_one_thread_restores_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    with one_thread():
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
        assert os.environ["NUMBA_NUM_THREADS"] == "2"  # numba may have started its threads
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@pytest.fixture
def template():
    made = Template()
    yield made
    made.close()


def test_a_forked_worker_reports_how_it_ended(template):
    worker = template.fork()
    assert worker.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        worker.wait(0)
    worker.kill()
    assert worker.wait() == worker.poll() == -signal.SIGKILL
    ending = template.fork()
    ending.stdin.close()  # no job will come
    assert ending.wait() == 1 and b"EOFError" in ending.stderr.read()


COPIES = """
from karat.execution.workers import Template
Template.copy_this_process(preload=False)
"""


def test_a_worker_of_a_copied_process_says_why_it_ended(python):
    code = "worker = Template._current.fork(); worker.stdin.close(); print(worker.stderr.read())"
    assert "EOFError" in python("-c", COPIES + code).stdout


def test_a_process_with_components_of_users_is_not_copied(python):
    """Another component of that name could not be registered in any later worker."""
    registers = "import karat; karat.encoder('mine')(type('Mine', (), {}))"
    for first, copied in (("", True), (registers, False)):
        done = python("-c", f"{first}{COPIES}print(Template._current is not None)")
        assert done.stdout.split() == [str(copied)], done.stderr


def test_workers_end_with_the_template(template, until):
    workers = [template.fork() for _ in range(2)]
    template.process.kill()
    until(lambda: all(gone(worker.pid) for worker in workers))
    assert workers[0].wait() == -signal.SIGKILL
    with pytest.raises(OSError):
        template.fork()


def test_a_worker_whose_template_has_already_ended_ends_too():
    code = "import os; from karat.execution.workers import _become_worker as become; "
    code += "become([], os.getpid())"  # no process is its own parent
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1


def test_a_dead_template_is_replaced(monkeypatch):
    monkeypatch.setattr(Template, "_current", None)
    first = Template.current()
    assert Template.current() is first
    first.close()
    second = Template.current()
    assert second is not first and second.process.poll() is None
    second.close()


def test_a_forked_child_of_this_process_gets_its_own_template(monkeypatch, template):
    monkeypatch.setattr(Template, "_current", template)
    assert Template.current() is template
    monkeypatch.setattr(template, "owner", os.getpid() + 1)
    other = Template.current()
    assert other is not template
    other.close()
    monkeypatch.undo()


def test_a_cgroup_ends_all_its_processes():
    code = "from karat.execution.resources import enter_cgroup as e; e(); print(1); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-uc", code], **pipes) as leader:
        leader.stdout.readline()
        group = _cgroup(leader.pid)
        if group.name != f"karat-{leader.pid}":
            leader.kill()
            pytest.skip("cgroups cannot be made here")
        other = subprocess.Popen(["sleep", "600"])  # not a child of the leader
        (group / "cgroup.procs").write_text(str(other.pid))
        end_tree(leader.pid)
        assert leader.wait() == other.wait() == -signal.SIGKILL
    remove_cgroups()
    assert not group.exists()
