"""Provenance: runs with their commands and versions, and failed jobs."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from typing import Any

from karat.errors import FAILURES
from karat.report.compact import cut_text
from karat.report.notes import short
from karat.report.shown import Shown, ShownRun, count, some

#: maximum number of characters of a log and of all logs, and of listed failures
LOG, LOGS, MAX_FAILURES = 4_000, 600_000, 2_000
#: maximum length of a reason
INFO = 1_000


def make_runs(shown: Shown) -> list[dict[str, Any]]:
    """Return the folder, command, seed, versions and job counts of each run."""
    return [_run(run) for run in shown.runs]


def _run(shown: ShownRun) -> dict[str, Any]:
    about = shown.run.about
    statuses = Counter(record["status"] for record in shown.records)
    return {
        "model": shown.model,
        "folder": shown.run.folder.resolve().name,
        "command": text_of(about.get("command")),
        "seed": about.get("seed"),
        "versions": versions(about),
        "platform": about.get("platform"),
        "jobs": sum(record["fold"] is not None for record in shown.records),
        "ok": statuses["ok"],
        "failed": sum(statuses[status] for status in FAILURES),
    }


def versions(about: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of Karat, Python, the model and libraries."""
    found = {name: about.get(name) for name in ("karat", "python")} | {
        "model": about.get("version")
    }
    libraries = about.get("versions")
    found |= libraries if isinstance(libraries, Mapping) else {}
    return {str(name): str(each) for name, each in found.items() if each}


def text_of(command: Any) -> str | None:
    """Return a command as one line, whether it is stored as a text or as a list.

    >>> text_of(["karat", "run", "my suite"])
    "karat run 'my suite'"
    """
    if isinstance(command, list | tuple):
        return shlex.join(map(str, command))
    return str(command) if command else None


def make_failures(shown: Shown) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the failed jobs with the ends of their logs, and notes on what was left out."""
    failed = list(shown.failed)
    width = min(LOG, LOGS // max(min(len(failed), MAX_FAILURES), 1))
    found, unread = [], []
    for run, task, record in failed[:MAX_FAILURES]:
        log = _log(run, record, width)
        if log is None:
            label = f"{short(shown.models[run.model])} on {short(shown.tasks[task])}"
            unread.append(f"{label}, fold {record['fold']}: the log cannot be read.")
        facts = {key: record[key] for key in ("fold", "status")}
        facts |= {"info": cut_text(str(record["info"]), INFO), "log": log or ""}
        found.append({"model": run.model, "task": task, **facts})
    cut = some(unread, lambda n: f"{n} more logs cannot be read.")
    if len(failed) > MAX_FAILURES:
        more = count(len(failed) - MAX_FAILURES, "failed job")
        cut.append(f"{more} more, see results.csv in the run folders.")
    if width < LOG and any(each["log"] for each in found):
        cut.append(f"Logs are cut to their last {width:,} characters.")
    unlisted = sum(
        record["status"] in FAILURES and record["task"] not in run.tasks
        for run in shown.runs
        for record in run.records
    )
    if unlisted:
        cut.append(f"{count(unlisted, 'failed job')} of tasks without any score not listed.")
    return found, cut


def _log(shown: ShownRun, record: Mapping[str, Any], width: int) -> str | None:
    """Return the end of a job's log; empty if there is none, None if it cannot be read."""
    path = shown.run.log(record)
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - 4 * width, 0))
            return file.read().decode("utf-8", "replace")[-width:]
    except FileNotFoundError:
        return ""
    except OSError:
        return None
