"""``karat list``, ``show``, ``check`` and ``cache`` on a terminal."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

from rich.table import Table
from rich.text import Text

from karat import registry
from karat.cache import VectorCache
from karat.catalogue import Catalogue
from karat.errors import DefinitionError, unknown
from karat.folders import cache_folder
from karat.metrics.base import Metric
from karat.report.terminal import plain_console

_REGISTRIES = {f"{parts.kind}s": parts for parts in registry.ALL}
_DEFINED = ("models", "tasks", "suites", "datasets", "constraints")


def list_kinds(kinds: Sequence[str], define: Sequence[Path]) -> None:
    """Print every kind with the number of its names."""
    catalogue = Catalogue(define)
    table = Table(box=None, show_header=False)
    for kind in kinds:
        names = _names(catalogue, kind)
        examples = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
        table.add_row(f"karat list {kind}", str(len(names)), Text(examples, style="dim"))
    plain_console().print(table)


def list_kind(kind: str, define: Sequence[Path]) -> None:
    """Print the names of one kind with a line of description each."""
    catalogue = Catalogue(define)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name in _names(catalogue, kind):
        about, more = _about(catalogue, kind, name)
        table.add_row(Text(name, style="bold"), Text(about), Text(more, style="dim"))
    plain_console().print(table)


def show_name(name: str, define: Sequence[Path], constraint: str | None = None) -> None:
    """Print all definitions of a name with the origin of every value.

    With a constraint, also print the limits of a task under it.
    """
    catalogue = Catalogue(define)
    console = plain_console()
    sections = catalogue.definitions.names_everywhere(name)
    limits = list(_limits(catalogue, name, constraint)) if constraint is not None else []
    for section in sections:
        text = catalogue.definitions.show(section, name)
        console.print(Text(f"{section}:\n  {name}:", style="bold"), soft_wrap=True)
        console.print(Text(indent(text.rstrip("\n"), "    ")), soft_wrap=True)
        if section == "tasks" and limits:
            console.print(Text(f"  under {constraint}:", style="bold"), soft_wrap=True)
            for line in limits:
                console.print(Text(f"    {line}"), soft_wrap=True)
    registered = [kind for kind, parts in _REGISTRIES.items() if name in parts]
    for kind in registered:
        parts = _REGISTRIES[kind]
        console.print(Text(f"{kind}: {name}", style="bold"), Text(f"  ({parts.origin(name)})"))
        console.print(_document(parts.get(name)), markup=False)
    if not sections and not registered:
        names = {n for kind in (*_DEFINED, *_REGISTRIES) for n in _names(catalogue, kind)}
        message = unknown("name", name, names).messages[0]
        raise DefinitionError(message.replace("karat list names", "karat list"))


def _limits(catalogue: Catalogue, task: str, constraint: str) -> Iterator[str]:
    """Yield the limits of a task; its own limits override those of the constraint."""
    is_task = task in catalogue.definitions.names("tasks")
    own = catalogue.definitions.get("tasks", task) if is_task else {}
    given = catalogue.definitions.get("constraints", constraint)
    for key in ("folds", "max_runtime_seconds", "max_mem_size_mb", "cores", "gpus"):
        for values, origin in ((own, "the task"), (given, constraint)):
            if values.get(key) is not None:
                yield f"{key}: {values[key]}   # {origin}"
                break
        else:
            yield f"{key}: null   # no limit"


def show_checks(checks: Sequence[Any], model: str) -> int:
    """Print which requirements a model meets; return the exit code."""
    console = plain_console()
    for check in checks:
        mark = Text("  ✓ ", style="green") if check.kept else Text("  ✗ ", style="red")
        console.print(mark + Text(check.promise))
        if not check.kept:
            console.print(Text(f"      {check.why}"), Text(f"\n      {check.cure}", style="dim"))
    passed = sum(check.kept for check in checks)
    result = "can be evaluated" if passed == len(checks) else "cannot be evaluated"
    line = f"\n{model} {result}: {passed} of {len(checks)} checks passed."
    console.print(line, markup=False, soft_wrap=True)
    return 0 if passed == len(checks) else 2


def show_cache(clear: bool) -> None:
    """Print or clear the cache of vectors."""
    cache = VectorCache(cache_folder())
    if clear:
        print(f"{cache.clear() / 2**20:.1f} MB of vectors removed from {cache.root}")
        return
    entries = sorted(cache.entries(), key=lambda e: (e.about["model"], e.about["dataset"]))
    table = Table(box=None, header_style="bold")
    for name in ("model", "dataset", "rows × dimensions", "MB"):
        table.add_column(name, justify="left" if name in ("model", "dataset") else "right")
    for entry in entries:
        shape = " × ".join(f"{n:,}" for n in entry.about["shape"])
        names = (Text(entry.about[key]) for key in ("model", "dataset"))
        table.add_row(*names, shape, f"{entry.bytes / 2**20:.1f}")
    console = plain_console()
    if entries:
        console.print(table)
    total = sum(entry.bytes for entry in entries) / 2**20
    noun = "entry" if len(entries) == 1 else "entries"
    line = f"{len(entries)} {noun}, {total:.1f} MB in {cache.root}"
    console.print(line, markup=False, soft_wrap=True)


def _names(catalogue: Catalogue, kind: str) -> list[str]:
    defined = catalogue.definitions.names(kind) if kind in _DEFINED else []
    return sorted({*defined, *_REGISTRIES.get(kind, ())})


def _about(catalogue: Catalogue, kind: str, name: str) -> tuple[str, str]:
    if kind in _DEFINED and name in catalogue.definitions.names(kind):
        given = catalogue.definitions.get(kind, name)
        about = given.get("title") or given.get("description") or ""
        more = {
            "models": given.get("extra") and f"pip install karat[{given['extra']}]",
            "tasks": f"{given.get('kind') or ''} · {', '.join(given.get('metrics') or [])}",
            "suites": f"{len(given.get('tasks') or [])} tasks",
            "datasets": given.get("licence"),
        }.get(kind)
        return about, more or ""
    part = _REGISTRIES[kind].get(name)
    if isinstance(part, Metric):
        better = "higher is better" if part.higher_is_better else "lower is better"
        return part.about, better
    return _document(part).partition("\n")[0], ""


def _document(part: Any) -> str:
    return inspect.getdoc(getattr(part, "compute", part)) or ""
