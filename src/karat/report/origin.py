"""Origin: what made the numbers of a page: runs with their commands and versions, and failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from karat.errors import FAILURES
from karat.report.compact import cut_text
from karat.report.notes import short
from karat.report.shown import Shown, ShownRun, count, some

#: characters of a log that are shown, those of all logs, and the failures that are listed
LOG, LOGS, MOST_FAILURES = 4_000, 600_000, 2_000
#: a reason longer than this stands in the run folder
INFO = 1_000


def make_runs(shown: Shown) -> list[dict[str, Any]]:
    """Return the folder, command, seed and versions of each run, and how its jobs ended."""
    return [_run(told) for told in shown.runs]


def _run(told: ShownRun) -> dict[str, Any]:
    about = told.run.about
    ended = Counter(record["status"] for record in told.records)
    return {
        "model": told.model,
        "folder": told.run.folder.resolve().name,
        "command": text_of(about.get("command")),
        "seed": about.get("seed"),
        "versions": versions(about),
        "platform": about.get("platform"),
        "jobs": sum(record["fold"] is not None for record in told.records),
        "ok": ended["ok"],
        "failed": sum(ended[status] for status in FAILURES),
    }


def versions(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what was installed: Karat, Python, the model's own, and libraries."""
    told = {name: about.get(name) for name in ("karat", "python")} | {"model": about.get("version")}
    libraries = about.get("versions")
    told |= libraries if isinstance(libraries, Mapping) else {}
    return {str(name): str(each) for name, each in told.items() if each}


def text_of(command: Any) -> str | None:
    """Return a command as one line, whether it was kept as a text or as its words.

    >>> text_of(["karat", "run", "my suite"])
    "karat run 'my suite'"
    """
    if isinstance(command, list | tuple):
        import shlex

        return shlex.join(map(str, command))
    return str(command) if command else None


# -- failures -------------------------------------------------------------------------------


def make_failures(shown: Shown) -> tuple[list[dict[str, Any]], list[str]]:
    """Return every failed job with the end of its log, and what was left out."""
    failed = list(shown.failed)
    width = min(LOG, LOGS // max(min(len(failed), MOST_FAILURES), 1))
    found, unread = [], []
    for told, task, record in failed[:MOST_FAILURES]:
        log = _log(told, record, width)
        if log is None:
            who = f"{short(shown.models[told.model])} on {short(shown.tasks[task])}"
            unread.append(f"The log of {who}, fold {record['fold']}, cannot be read.")
        found.append(
            {
                "model": told.model,
                "task": task,
                "fold": record["fold"],
                "status": record["status"],
                "info": cut_text(str(record["info"]), INFO),
                "log": log or "",
            }
        )
    cut = some(unread, lambda n: f"{n} more logs cannot be read.")
    if len(failed) > MOST_FAILURES:
        more = count(len(failed) - MOST_FAILURES, "failed job")
        cut.append(f"{more} more are in results.csv of the run folders.")
    if width < LOG and any(each["log"] for each in found):
        cut.append(f"Logs are shown from their last {width:,} characters on.")
    lost = _of_other_tasks(shown)
    if lost:
        cut.append(f"{count(lost, 'failed job')} of tasks without any score are not listed.")
    return found, cut


def _of_other_tasks(shown: Shown) -> int:
    return sum(
        record["status"] in FAILURES and record["task"] not in told.tasks
        for told in shown.runs
        for record in told.records
    )


def _log(told: ShownRun, record: Mapping[str, Any], width: int) -> str | None:
    """Return the end of a job's log; an empty text if it left none, nothing if it is unreadable."""
    path = told.run.log(record)
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - 4 * width, 0))
            return file.read().decode("utf-8", "replace")[-width:]
    except FileNotFoundError:
        return ""
    except OSError:
        return None
