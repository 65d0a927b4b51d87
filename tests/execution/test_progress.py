"""Progress: lines, the live display, and which of them is chosen."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import textwrap

import pytest

import karat
from karat.execution.progress import (
    LineProgress,
    LiveProgress,
    Progress,
    choose_progress,
    failure_line,
    job_line,
    shown_progress,
)
from karat.models.tabular_encoders import OneHotTable

RECORD = {"model": "m", "task": "t", "fold": 1, "metric": "acc", "status": "ok", "info": ""}
RECORD |= {"views": [{"scores": {"acc": 0.75}}], "seconds": 1.234}
FAILED = {**RECORD, "status": "failed", "info": "ValueError: no", "views": []}


def test_a_job_is_one_line():
    assert job_line(RECORD) == "m · t · fold 1   acc 0.75   1.23 s   ok"
    died = {k: v for k, v in FAILED.items() if k != "seconds"}
    assert job_line(died) == "m · t · fold 1   acc –   –   failed"
    assert failure_line(FAILED, "logs/t/1.txt") == (
        "  ✗ m · t · fold 1   ValueError: no   (log: logs/t/1.txt)"
    )


def send_events(progress):
    progress.started("karat runs", 2)
    for model in "mn":
        progress.lost(model, "gone", "no\nfile")
    progress.embedding("m", "data", 10)
    progress.encoded(4, 8)
    progress.embedded("m", "data", 0.5)
    progress.finished(RECORD, "log")
    progress.finished(FAILED, "log")
    progress.ended()


def test_lines_print_failures_and_all_jobs_when_verbose(capsys):
    send_events(LineProgress())
    out, err = capsys.readouterr()
    assert out == ""
    lost = "  ✗ gone   no file   (its jobs fail; other tasks run)"
    quiet = ["karat runs", lost, "embedded data with m in 0.5 s", failure_line(FAILED, "log")]
    assert err.splitlines() == quiet
    send_events(LineProgress(verbose=True))
    assert capsys.readouterr().err.splitlines() == [
        *quiet[:3],
        f"1 of 2  {job_line(RECORD)}",
        quiet[3],
    ]


def test_lines_print_encoded_texts_every_few_seconds(capsys, monkeypatch):
    clock = iter([0.0, 4.0, 11.0, 11.0, 15.0, 30.0])
    monkeypatch.setattr("karat.execution.progress.time.monotonic", lambda: next(clock))
    progress = LineProgress()
    progress.embedding("m", "data", 5000)
    for done in (256, 512, 768, 5000):
        progress.encoded(done, 5000)
    assert capsys.readouterr().err == "embedding data with m: 512 of 5,000 texts\n"


def test_choose_returns_the_display_for_the_stream(monkeypatch):
    assert type(choose_progress(quiet=True)) is Progress
    assert type(choose_progress()) is LineProgress
    assert choose_progress(verbose=True).verbose

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    assert type(choose_progress()) is LiveProgress


def test_progress_is_shown_in_interactive_use(monkeypatch):
    own = LineProgress()
    assert shown_progress(own) is own
    assert type(shown_progress(True)) is LineProgress
    assert type(shown_progress(None)) is type(shown_progress(False)) is Progress
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert type(shown_progress(None)) is LineProgress
    assert type(shown_progress(False)) is Progress


def test_the_live_display_shows_every_event(monkeypatch):
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    send_events(LiveProgress(verbose=True))
    text = terminal.getvalue()
    assert text.startswith("karat runs\n")
    for line in (job_line(RECORD), "✗ m · t · fold 1   ValueError: no"):
        assert line in text


def test_a_run_sends_events(two_classes, tmp_path):
    events = []

    class Recorder(Progress):
        def started(self, title, jobs):
            events.append(jobs)
            assert "suite custom · 1 model · 1 task · 2 jobs   seed 42 · in this process" in title

        def finished(self, record, folder):
            events.append((record["fold"], folder))

        def ended(self):
            events.append("end")

    (run,) = karat.evaluate(OneHotTable(), two_classes(), output=tmp_path, progress=Recorder())
    logs = [str(run.folder / "logs" / "halves" / f"{fold}.txt") for fold in (0, 1)]
    assert events == [2, (0, logs[0]), (1, logs[1]), "end"]


LIVE = """
    import sys, time
    import pandas as pd
    import karat
    from karat.execution.progress import LiveProgress

    class Slow:
        def fit(self, items, y=None):
            return self
        def transform(self, items):
            print("printed by the model")
            time.sleep(0.4)
            return items.to_numpy(dtype=float)

    table = pd.DataFrame({"x": range(20), "y": ["low"] * 10 + ["high"] * 10})
    data = karat.Dataset.from_table(table, "y", name="halves")
    task = karat.Task("halves", data, split={"use": "kfold", "folds": 2}, metrics=["acc"])
    progress = LiveProgress()
    karat.evaluate({"slow": Slow(), "random": "random"}, task, progress=progress, output="out")
    """


@pytest.mark.slow
def test_the_live_display_and_job_logs_are_separate(tmp_path):
    (tmp_path / "live.py").write_text(textwrap.dedent(LIVE))
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    script = subprocess.Popen(
        [sys.executable, "live.py"], cwd=tmp_path, stderr=follower, env=environment
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    assert script.wait() == 0
    text = shown.decode()
    assert "running" in text and "4 of 4" in text
    assert "printed by the model" not in text
    logs = sorted(tmp_path.glob("out/slow*/logs/halves/*.txt"))
    assert [log.read_text() for log in logs] == ["printed by the model\n" * 2] * 2
