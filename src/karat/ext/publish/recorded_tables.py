"""The suite of a run on a user's own table, made again from the file if it is at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from karat.config.catalog import Catalog
from karat.core.digest import sha256_of_file
from karat.core.task import Suite
from karat.errors import DataError, KaratError

#: keys of a table's settings that a run folder may give; none of them names code
SETTINGS = ("kind", "positive", "group", "weight", "drop", "part", "test", "options")
READING = (
    "separator",
    "decimal",
    "thousands",
    "encoding",
    "dates",
    "missing",
    "numbers",
    "texts",
    "keep",
)


def recorded_table(plan: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return how the table of a run was read, from its run.json; None if it was no table file."""
    tasks: list[dict[str, Any]] = list(plan.get("tasks") or ())
    facts = tasks[0].get("about") if len(tasks) == 1 else None
    table = facts.get("table") if isinstance(facts, Mapping) else None
    if not isinstance(table, Mapping) or not isinstance(facts, Mapping):
        return None
    return {**table, "sha256": facts.get("sha256"), "name": str(tasks[0]["name"])}


def table_suite_again(
    table: Mapping[str, Any], catalog: Catalog, data: str | Path | None = None
) -> Suite:
    """Return the suite of a recorded table.

    The file is the recorded one, only if it has the recorded content, or ``data``. Raises a
    ``DataError`` if there is none.
    """
    recorded = table.get("settings") or {}
    settings = {name: recorded[name] for name in SETTINGS if name in recorded}
    reading = settings.get("options") or {}
    if reading:
        settings["options"] = {name: reading[name] for name in READING if name in reading}
    file = Path(data if data is not None else str(table.get("file")))
    if not file.is_file():
        raise DataError(f"there is no table file {file}; use --data FILE.")
    if data is None and _digest(file, settings.get("test")) != table.get("sha256"):
        raise DataError(f"{file} is not the table of the run; use --data FILE.")
    suite = catalog.table_suite(file, str(table.get("target")), table.get("like"), settings)
    name = str(table["name"])  # the file may have another name now
    tasks = []
    for task in suite:
        dataset: Any = task.dataset
        tasks.append(replace(task, name=name, dataset=replace(dataset, name=name)))
    return replace(suite, name=name, tasks=tuple(tasks))


def _digest(file: Path, test: object) -> str | None:
    """Return the hashes of a table, and of the file of its test rows, as a run records them."""
    try:
        if test is None:
            return sha256_of_file(file)
        if not Path(str(test)).is_file():
            return None
        return f"train {sha256_of_file(file)}, test {sha256_of_file(Path(str(test)))}"
    except (OSError, KaratError):
        return None
