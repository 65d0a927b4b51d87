"""The template process: worker processes are forked from it and end with it."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from karat.execution.resources import _cgroup, end_tree, remove_cgroups
from karat.execution.template import Template

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@pytest.fixture
def template():
    made = Template()
    yield made
    made.close()


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


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


def test_workers_end_with_the_template(template, until):
    workers = [template.fork() for _ in range(2)]
    template.process.kill()
    until(lambda: all(gone(worker.pid) for worker in workers))
    assert workers[0].wait() == -signal.SIGKILL
    with pytest.raises(OSError):
        template.fork()


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
