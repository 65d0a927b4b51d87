"""A file system without locks (``ENOLCK``): runs go on, and no text is paid for twice."""

import os
import subprocess
import sys

import pytest

from ..endpoint_server import serving

pytest.importorskip("fcntl")

#: what Python loads at its start, so that each process of a run finds no locks
NO_LOCKS = """
import errno, fcntl, os

def none(*_):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

fcntl.flock = fcntl.lockf = none
"""
SUITE = """
datasets:
  topics-data: {reader: columns, path: topics.csv, fields: [text], target: y}
tasks:
  topics: {dataset: topics-data, metrics: [acc], probe: {use: trained, head: knn},
           split: {use: kfold, folds: 3}}
suites:
  mine: {tasks: [topics]}
"""


@pytest.fixture
def karat(tmp_path):
    """Return a function that starts a command in a folder with a suite, without locks."""
    rows = [f"{'apple pear' if i % 2 else 'iron zinc'} number {i},{'ab'[i % 2]}" for i in range(90)]
    (tmp_path / "topics.csv").write_text("text,y\n" + "\n".join(rows) + "\n")
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "sitecustomize.py").write_text(NO_LOCKS)
    # another sitecustomize, as of a coverage tool, would hide this one
    paths = [str(tmp_path / "start"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "TMPDIR": str(tmp_path / "tmp"),
        "KARAT_CACHE": str(tmp_path / "cache"),
    }

    def start(*arguments):
        call = [sys.executable, "-m", "karat", "run", "mine", "--define", "suite.yaml", *arguments]
        return subprocess.Popen(
            call, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip

    return start


def test_a_run_without_endpoints_needs_no_locks(karat, tmp_path):
    process = karat("-m", "tfidf", "-o", "out", "--workers", "2")
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert list((tmp_path / "tmp").iterdir()) == []


def test_two_runs_that_share_a_cache_without_locks_pay_once(karat, tmp_path):
    pytest.importorskip("httpx")
    with serving(slow=0.01) as server:
        model = f"{server.url}/v1#words-small"
        processes = [karat("-m", model, "-o", f"out {i}", "--workers", "2") for i in range(2)]
        outputs = [process.communicate()[0] for process in processes]
        assert [process.returncode for process in processes] == [0, 0], outputs
        assert len(server.texts) == 90 and set(server.texts.values()) == {1}
    folder = tmp_path / "cache" / "vectors" / "endpoints"
    assert [path.name for path in folder.iterdir()] == ["endpoints-1.sqlite"]
