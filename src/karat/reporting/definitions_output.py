"""Definitions, the columns of a table, and the cache on a terminal."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

import pandas as pd
from rich.table import Table as Grid
from rich.text import Text

from karat.analysis.formatting import count
from karat.config.catalog import Catalog, load_user_table, suite_source
from karat.core import registry
from karat.core.columns import cell_as_text, column_type
from karat.core.embeddings import split_name
from karat.core.files import cache_folder
from karat.data.load_dataset import DataSpec
from karat.data.readers.table_files import OPTIONS, infer_columns, read_frame, read_parts
from karat.errors import DefinitionError, unknown
from karat.execution.embedding_cache import VectorCache
from karat.metrics.metric import Metric
from karat.reporting.terminal import describe_dataset, plain_console, print_lines


def show_table(file: Path, target: str | None, settings: Mapping[str, Any]) -> None:
    """Print the type, missing and distinct values and an example of each column of a file."""
    keys = {**settings, "target": target}
    test = keys.pop("test", None)
    files: Any = file if test is None else {"train": file, "test": Path(test)}
    spec = DataSpec(file.name.partition(".")[0], infer=True, **keys)
    spec.check_options(*OPTIONS)
    data = None if target is None else load_user_table(file, target, settings)
    with warnings.catch_warnings():
        warnings.simplefilter("always" if data is None else "ignore")  # shown when it was loaded
        frame, spec = read_parts(files, spec, lambda path: read_frame(path, spec))
        frame = infer_columns(frame, spec)
    table = Grid(box=None, header_style="bold")
    for name in ("column", "type", "missing", "distinct", "example", "use"):
        table.add_column(name, justify="right" if name in ("missing", "distinct") else "left")
    for name in frame.columns:
        table.add_row(*map(Text, _column_cells(frame[name], spec)))
    console = plain_console()
    console.print(table)
    print_lines(console, f"\n {count(len(frame), 'row')}, {count(frame.shape[1], 'column')}")
    if data is not None:
        print_lines(console, *(f" {line}" for line in describe_dataset(data)))


def _shortened(text: str) -> str:
    shown = Text(text)
    shown.truncate(30, overflow="ellipsis")
    return shown.plain


def _column_cells(column: pd.Series, spec: DataSpec) -> Iterator[str]:
    """Yield the cells of a column's row: name, type, counts, an example, and what it is used as."""
    present = column.dropna()
    yield str(column.name)
    yield column_type(column)
    yield f"{int(column.isna().sum()):,}"
    yield f"{present.astype(str).nunique():,}"
    yield _shortened(cell_as_text(present.iloc[0])) if len(present) else ""
    uses = {spec.target: "target", spec.weight: "weight", spec.part: "part", spec.group: "group"}
    yield "dropped" if column.name in spec.drop else uses.get(str(column.name), "feature")


_REGISTRIES = {f"{parts.kind}s": parts for parts in registry.ALL}
_DEFINED = ("models", "tasks", "suites", "datasets", "constraints")


def list_kinds(kinds: Sequence[str], define: Sequence[Path]) -> None:
    """Print every kind with the number of its names."""
    catalog = Catalog(define)
    table = Grid(box=None, show_header=False)
    for kind in kinds:
        names = _names(catalog, kind)
        examples = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
        table.add_row(f"karat list {kind}", str(len(names)), Text(examples, style="dim"))
    plain_console().print(table)


def list_kind(kind: str, define: Sequence[Path]) -> None:
    """Print the names of one kind with a line of description each."""
    catalog = Catalog(define)
    table = Grid(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name in _names(catalog, kind):
        about, more = _about(catalog, kind, name)
        table.add_row(Text(name, style="bold"), Text(about), Text(more, style="dim"))
    plain_console().print(table)


def show_name(name: str, define: Sequence[Path], constraint: str | None = None) -> None:
    """Print all definitions of a name with the origin of every value.

    With a constraint, also print the limits of a task under it.
    """
    catalog = Catalog(define)
    console = plain_console()
    if suite_source(name):
        for task in catalog.suite(name):
            about = f"{task.kind or 'declined'}  {' '.join(task.metrics)}"
            console.print(Text(task.name, style="bold"), Text(about), soft_wrap=True)
        return None
    sections = catalog.definitions.names_everywhere(name)
    if not sections and (stated := split_name(name)):
        params = ", ".join(f"{key}: {value}" for key, value in stated[1].params.items())
        console.print(Text(f"variant of {stated[0]}: {params}", style="bold"), soft_wrap=True)
        return show_name(stated[0], define, constraint)
    limits = list(_limits(catalog, name, constraint)) if constraint is not None else []
    for section in sections:
        text = catalog.definitions.show(section, name)
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
        names = {n for kind in (*_DEFINED, *_REGISTRIES) for n in _names(catalog, kind)}
        message = unknown("name", name, names).messages[0]
        raise DefinitionError(message.replace("karat list names", "karat list"))


def _limits(catalog: Catalog, task: str, constraint: str) -> Iterator[str]:
    """Yield the limits of a task; its own limits override those of the constraint."""
    is_task = task in catalog.definitions.names("tasks")
    own = catalog.definitions.get("tasks", task) if is_task else {}
    given = catalog.definitions.get("constraints", constraint)
    for key in ("folds", "max_runtime_seconds", "max_mem_size_mb", "cores", "gpus"):
        for values, origin in ((own, "the task"), (given, constraint)):
            if values.get(key) is not None:
                yield f"{key}: {values[key]}   # {origin}"
                break
        else:
            yield f"{key}: null   # no limit"


def show_cache(clear: bool) -> None:
    """Print or clear the cache of vectors."""
    cache = VectorCache(cache_folder())
    if clear:
        print(f"{cache.clear() / 2**20:.1f} MB of vectors removed from {cache.root}")
        return
    entries = sorted(cache.entries(), key=lambda e: (e.about["model"], e.about["dataset"]))
    table = Grid(box=None, header_style="bold")
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
    journals = [path.stat().st_size for path in (cache.root / "endpoints").glob("*.journal")]
    if journals:
        line += f"; {sum(journals) / 2**20:.1f} MB received from {len(journals)} endpoint models"
    console.print(line, markup=False, soft_wrap=True)


def _names(catalog: Catalog, kind: str) -> list[str]:
    defined = catalog.definitions.names(kind) if kind in _DEFINED else []
    return sorted({*defined, *_REGISTRIES.get(kind, ())})


def _about(catalog: Catalog, kind: str, name: str) -> tuple[str, str]:
    if kind in _DEFINED and name in catalog.definitions.names(kind):
        given = catalog.definitions.get(kind, name)
        about = given.get("title") or given.get("description") or ""
        more = {
            "models": given.get("extra") and f"pip install karat[{given['extra']}]",
            "tasks": f"{given.get('kind') or ''} · {', '.join(given.get('metrics') or [])}",
            "suites": f"{len(given.get('tasks') or [])} tasks",
            "datasets": _license(given) if kind == "datasets" else "",
        }.get(kind)
        return about, more or ""
    part = _REGISTRIES[kind].get(name)
    if isinstance(part, Metric):
        better = "higher is better" if part.higher_is_better else "lower is better"
        return part.about, better
    return _document(part).partition("\n")[0], ""


def _license(given: Mapping[str, Any]) -> str:
    """Return the license of a dataset, and the beginning of the SHA-256 of its download."""
    remote = [each for each in given.get("sources") or () if "index" in each or "url" in each]
    checksum = f"sha256 {remote[0]['sha256'][:12]}…" if remote else ""
    return " · ".join(filter(None, (given.get("license"), checksum)))


def _document(part: Any) -> str:
    return inspect.getdoc(getattr(part, "compute", part)) or ""
