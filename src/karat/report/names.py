"""Names on a terminal: what there is, where it is defined, whether it keeps its promises."""

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
    """Print every kind of thing that has names, and how many there are."""
    catalogue = Catalogue(define)
    table = Table(box=None, show_header=False)
    for kind in kinds:
        names = _names(catalogue, kind)
        some = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
        table.add_row(f"karat list {kind}", str(len(names)), Text(some, style="dim"))
    plain_console().print(table)


def list_kind(kind: str, define: Sequence[Path]) -> None:
    """Print the names of one kind with a line about each."""
    catalogue = Catalogue(define)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name in _names(catalogue, kind):
        about, more = _about(catalogue, kind, name)
        table.add_row(Text(name, style="bold"), Text(about), Text(more, style="dim"))
    plain_console().print(table)


def show_name(name: str, define: Sequence[Path], constraint: str | None = None) -> None:
    """Print all definitions of a name with the origin of every value.

    With a constraint, also which limits hold for a task under it.
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
        everything = {n for kind in (*_DEFINED, *_REGISTRIES) for n in _names(catalogue, kind)}
        message = unknown("name", name, everything).messages[0]
        raise DefinitionError(message.replace("karat list names", "karat list"))


def _limits(catalogue: Catalogue, task: str, constraint: str) -> Iterator[str]:
    """Yield what holds for a task: its own limits count more than the constraint's."""
    known = task in catalogue.definitions.names("tasks")
    own = catalogue.definitions.get("tasks", task) if known else {}
    given = catalogue.definitions.get("constraints", constraint)
    for key in ("folds", "max_runtime_seconds", "max_mem_size_mb", "cores", "gpus"):
        for values, origin in ((own, "the task"), (given, constraint)):
            if values.get(key) is not None:
                yield f"{key}: {values[key]}   # {origin}"
                break
        else:
            yield f"{key}: null   # no limit"


def show_checks(checks: Sequence[Any], model: str) -> int:
    """Print which promises a model keeps; return the exit code."""
    console = plain_console()
    for each in checks:
        mark = Text("  ✓ ", style="green") if each.kept else Text("  ✗ ", style="red")
        console.print(mark + Text(each.promise))
        if not each.kept:
            console.print(Text(f"      {each.why}"), Text(f"\n      {each.cure}", style="dim"))
    broken = sum(not each.kept for each in checks)
    verdict = "can be evaluated" if not broken else "cannot be evaluated as it is"
    verdict = f"\n{model} {verdict}: {len(checks) - broken} of {len(checks)} promises kept."
    console.print(verdict, markup=False, soft_wrap=True)
    return 2 if broken else 0


def show_cache(clear: bool) -> None:
    """Print the vectors that are kept between runs, or remove them."""
    cache = VectorCache(cache_folder())
    if clear:
        print(f"{cache.clear() / 2**20:.1f} MB of vectors removed from {cache.root}")
        return
    entries = sorted(cache.entries(), key=lambda e: (e.about["model"], e.about["dataset"]))
    table = Table(box=None, header_style="bold")
    for name in ("model", "data set", "rows × dimensions", "MB"):
        table.add_column(name, justify="left" if name in ("model", "data set") else "right")
    for entry in entries:
        shape = " × ".join(f"{n:,}" for n in entry.about["shape"])
        about = entry.about
        size = f"{entry.bytes / 2**20:.1f}"
        table.add_row(Text(about["model"]), Text(about["dataset"]), shape, size)
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
