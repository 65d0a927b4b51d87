"""Leaderboards, plans, definitions, tables and the cache on a terminal."""

from __future__ import annotations

import inspect
import itertools
import os
import shlex
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click
import pandas as pd
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from karat.analysis.leaderboard import split_groups
from karat.core import registry
from karat.core.columns import cell_as_text, column_type
from karat.core.embeddings import split_name
from karat.core.files import cache_folder
from karat.core.formatting import count, duration, percent
from karat.core.replicates import replicate_of
from karat.core.services import RunServices
from karat.errors import FAILURES, DefinitionError, unknown
from karat.metrics.metric import Metric
from karat.output.result import show
from karat.output.terminal_table import shorten_cells
from karat.reporting.formats import (
    command_text,
    command_to_train_again,
    render_frame,
)
from karat.reporting.leaderboard_output import (
    leaderboard,
    print_finding_lines,
)
from karat.results.load import ago, estimate, frozen_runs, reason_nothing_ran, status
from karat.results.run import Run

if TYPE_CHECKING:
    from karat.config.catalog import Catalog
    from karat.core.dataset import Dataset
    from karat.data.load_dataset import DataSpec
    from karat.execution.plan import Decline, Plan, PlannedTask

#: splits that draw rows at random
SHUFFLING = ("kfold", "holdout")
#: from this number of rows on, a plan lists models instead of models and tasks
MANY_ROWS = 20
#: number of reasons, models and tasks in the summary of a plan
MAX_REASONS, MAX_MODELS, MAX_TASKS = 6, 3, 6
_COLUMNS = ("model", "done", "failed", "declined", "running", "left", "state", "last")
_REGISTRIES = {f"{parts.kind}s": parts for parts in registry.ALL}
_DEFINED = ("models", "tasks", "suites", "datasets", "constraints")


def plain_console() -> Console:
    """Return a console for lists; lines are not wrapped in a pipe, for grep."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 1000)


def show_runs(
    runs: Sequence[Run], shape: str | None, *, quiet: bool = False, ignore: Sequence[str] = ()
) -> int:
    """Print the leaderboard of finished runs and their folders; return the exit code."""
    runs = frozen_runs(runs)
    board = leaderboard(runs)
    show(board, shape)
    print_finding_lines(runs, _place(runs).partition("   ")[0], shape, ignore)
    if shape in (None, "table") and not quiet:
        console = Console(highlight=False, stderr=True)
        console.print(f"\n runs    {_place(runs)}", markup=False, soft_wrap=True)
        corrupted = any(len(job["views"] or ()) > 1 for run in runs for job in run.records())
        commands = _next(board, _relative(runs[0].folder.parent), corrupted)
        width = max(map(len, commands)) + 3
        for i, (command, purpose) in enumerate((_train_again(board, runs[0]) | commands).items()):
            start, command = "" if i else " next", f"{command}   "
            console.print(f"{start:<9}{command:<{width}}{purpose}", markup=False, soft_wrap=True)
    return 1 if int(board["failed"].fillna(0).sum()) else 0


def print_gather_hint(runs: Sequence[Run], output: Path) -> None:
    """Print how to merge the runs of shards, on standard error."""
    if not runs:
        print(" there was nothing to run for this shard", file=sys.stderr)
    folder = shlex.quote(str(output))
    print(
        f" when all shards have ended: karat gather {folder} -o {folder}/gathered", file=sys.stderr
    )


def print_idle_models(runs: Sequence[Run], named: Sequence[str]) -> int:
    """Print which named models ran on no task, with a reason each; return 1 if there is one.

    Without names, return 1 only if no model ran at all, or one has a vector for no item.
    """
    idle = [(run, reason) for run in runs if (reason := reason_nothing_ran(run)) is not None]
    if not named and len(idle) < len(runs):
        idle = [(r, why) for r, why in idle if any(j.get("unmatched") for j in r.records())]
    for run, reason in idle:
        print(f" {run.model} ran on no task: {reason}", file=sys.stderr)
    return 1 if idle else 0


def _train_again(board: pd.DataFrame, run: Run) -> dict[str, str]:
    """Return the command with more seeds, if the letters are about the models as fitted."""
    command = command_text(run.about.get("command")) or ""
    again = command_to_train_again(board.attrs["separation"], command)
    return {again: "include the noise of training"} if again else {}


def _next(board: pd.DataFrame, folder: str, corrupted: bool = False) -> dict[str, str]:
    path = shlex.quote(folder)
    commands = {f"karat robustness {path}": "scores on corrupted data"} if corrupted else {}
    commands |= {
        f"karat report {path}": "write an HTML report",
        f"karat leaderboard {path}": "rank all runs of this folder",
    }
    board = split_groups(board)[0]
    scored = board[board.attrs["tasks"]].notna()
    for first, second in itertools.combinations(board.index, 2):
        if (scored.loc[first] & scored.loc[second]).any():
            models = shlex.join(["-a", str(first), "-b", str(second)])
            commands[f"karat compare {path} {models}"] = "test whether two models differ"
            break
    return commands


def print_leaderboard(
    paths: Sequence[str | Path],
    shape: str | None,
    ignore: Sequence[str] = (),
    *,
    where: str = "",
    **options: Any,
) -> None:
    """Print the leaderboard and findings of run folders; options as in ``leaderboard``.

    ``where`` are the runs as they are named in the command that lists all findings.
    """
    runs = frozen_runs(paths)
    show(leaderboard(runs, **options), shape)
    where = where or ("RUN..." if len(paths) > 3 else shlex.join(map(str, paths)))
    check_options = {
        name: options[name] for name in ("pool", "metrics", "missing") if name in options
    }
    print_finding_lines(runs, where, shape, ignore, **check_options)


def metric_by_task(texts: Sequence[str]) -> dict[str, str]:
    """Parse options of the form ``TASK=METRIC``.

    >>> metric_by_task(["adult=auc"])
    {'adult': 'auc'}
    """
    pairs = [text.rpartition("=") for text in texts]
    wrong = [
        text for text, (task, _, metric) in zip(texts, pairs, strict=True) if not (task and metric)
    ]
    if wrong:
        raise DefinitionError(*(f'--metric must be TASK=METRIC, got "{text}".' for text in wrong))
    return {task: metric for task, _, metric in pairs}


def parse_columns(text: str | None) -> list[str] | None:
    """Parse an option of the form ``NAME,NAME``.

    >>> parse_columns("elo, pareto:memory_mb")
    ['elo', 'pareto:memory_mb']
    """
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def show_plan(plan: Plan, output: str | Path = "results", verbose: bool = False) -> None:
    """Print the number of jobs, the estimated time, the jobs, and declines with their reasons.

    The estimate uses earlier runs below ``output``. Without ``verbose``, a long plan is summed up.
    """
    console = plain_console()
    summary = f" {count(len(plan.jobs), 'job')}, {len(plan.declined)} declined"
    lines = [*_time(plan, Path(output))]
    lines += [line for service in plan.services() for line in registry.bills.get(service)(plan)]
    print_lines(console, summary, *(f" {line}" for line in lines))
    complete = _show_jobs(console, plan, verbose)
    complete &= _show_reasons(console, plan.declined, verbose)
    if plan.lost_tasks:
        tasks = count(len({decline.task for decline in plan.lost_tasks}), "task")
        print_lines(console, f"\n {tasks} with unusable data")
        complete &= _show_reasons(console, plan.lost_tasks, verbose)
    if plan.skipped_corruptions:
        print_lines(console, f"\n {count(len(plan.skipped_corruptions), 'corruption')} left out")
        complete &= _show_reasons(console, plan.skipped_corruptions, verbose)
    for planned in plan.tasks:
        duplicates, tested = planned.duplicate_rows
        if duplicates:
            text = f"{duplicates} of {tested} test rows also occur in the training data"
            print_lines(console, f"\n {planned.task.name}: {text}")
    if not complete:
        print_lines(console, "\n --verbose lists every job and reason.")


def _show_jobs(console: Console, plan: Plan, verbose: bool) -> bool:
    """Print the folds of each model and task, or, if there are many, the jobs of each model."""
    folds = Counter((model.name, planned.task.name) for model, planned, _ in plan.jobs)
    times = {pair: f" × {plan.seeds} seeds" for pair in plan.seeded}
    whole = verbose or len(folds) <= MANY_ROWS
    table = Grid(box=None, header_style="bold")
    for name in ("model", "task", "folds") if whole else ("model", "tasks", "jobs"):
        right = name in ("tasks", "jobs")
        table.add_column(name, no_wrap=True, justify="right" if right else "left")
    if whole:
        for (model, task), number in folds.items():
            jobs = number // (plan.seeds if (model, task) in times else 1)
            table.add_row(Text(model), Text(task), f"{jobs}{times.get((model, task), '')}")
    else:
        tasks = Counter(model for model, _ in folds)
        for model, number in Counter(model.name for model, _, _ in plan.jobs).items():
            table.add_row(Text(model), f"{tasks[model]:,}", f"{number:,}")
    if folds:
        console.print(Text())
        console.print(table)
    return whole


def print_tables(plan: Plan, whole: bool = False, err: bool = True) -> None:
    """Print a few lines about the data of a plan's tasks, on standard error.

    Without ``whole``, only about the splits of tasks whose data have a train and a test part.
    """
    for planned in plan.tasks:
        if planned.data is None:
            continue
        lines = list(describe_dataset(planned.data)) if whole else []
        if whole or planned.data.part is not None:
            lines.append(f"split: {planned.cut}")
        if whole:
            lines += _time_notes(planned)
        for line in lines:
            click.echo(f"{planned.task.name}: {line}", err=err)


def _time_notes(planned: PlannedTask) -> Iterator[str]:
    """Yield how to split by time, if the rows have dates and the split draws them at random."""
    items, how = planned.data.items if planned.data else None, planned.cut.partition(",")[0]
    if not isinstance(items, pd.DataFrame) or how not in SHUFFLING:
        return
    dates = [name for name in items.columns if column_type(items[name]) == "dates"]
    if dates:
        chosen = shlex.quote(f"t.split.column={dates[0]}")
        yield (
            f'column "{dates[0]}" holds dates, and {how} mixes past and future rows; to train on '
            f"the past only: -X t.split.use=time -X {chosen}"
        )


def describe_dataset(data: Dataset) -> Iterator[str]:
    """Yield one line each about the items, the target, the groups and the weights."""
    if isinstance(data.items, pd.DataFrame):
        types = Counter(column_type(data.items[name]) for name in data.items.columns)
        listed = ", ".join(f"{kind} {number}" for kind, number in types.most_common())
        yield f"{len(data):,} rows, {count(data.items.shape[1], 'feature')}: {listed}"
        for name in data.items.columns if data.part is None else ():
            if data.items[name].dtype.kind in "iufbmM":
                continue
            if set(data.items[name].dropna().astype(str).unique()[:9]) == {"train", "test"}:
                yield f'column "{name}" holds train and test; to use this split: --part {name}'
    elif data.about.get("found"):  # a corpus
        yield data.about["found"]
        if data.passage_of is not None:
            yield f"{len(data.items) - len(data.asked()):,} passages"
        return
    else:
        yield f"{len(data):,} questions about {len(data.items):,} items ({data.modality})"
    target: Any = data.target
    if data.kind == "classification":
        shares = [f"{label} {percent(share)}" for label, share in data.shares().items()][:6]
        more = ", …" if len(data.classes) > 6 else ""
        yield f"target: classification, {len(data.classes)} classes ({', '.join(shares)}{more})"
    elif data.kind == "regression":
        yield f"target: regression, from {target.min():g} to {target.max():g}"
    if data.positive is not None:
        yield f"positive class: {data.positive}"
    if data.group is not None:
        yield f"groups: {len(pd.unique(data.group)):,}"
    if data.weight is not None:
        yield f"weights: from {data.weight.min():g} to {data.weight.max():g}"


def print_lines(console: Console, *lines: str) -> None:
    """Print lines as they are, without markup and line breaks."""
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _time(plan: Plan, output: Path) -> Iterator[str]:
    found = estimate(((model.name, planned.task.name) for model, planned, _ in plan.jobs), output)
    if found.timed:
        some = "" if found.timed == found.jobs else f" for {found.timed:,} of {found.jobs:,} jobs"
        yield f"earlier runs in {output} took {duration(found.seconds)}{some} on one worker"
    limits = [plan.limits_of(planned.task) for _, planned, _ in plan.jobs]
    if limits and all(limit and limit.deadline for limit in limits):
        most = sum(limit.deadline or 0.0 for limit in limits if limit)
        yield f"the limits allow at most {duration(most)} of work"
    elif limits and not found.timed:
        yield f"unknown run time: no earlier runs in {output} and no time limits"


def _show_reasons(console: Console, declines: Sequence[Decline], verbose: bool) -> bool:
    """Print each reason once, with the models and tasks it applies to; return whether all are."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for decline in declines:
        reasons.setdefault(decline.reason, {}).setdefault(decline.model, []).append(decline.task)
    listed = list(reasons.items())[: None if verbose else MAX_REASONS]
    for reason, pairs in listed:
        first, *rest = reason.splitlines() or [""]
        if len(reasons) > 1:
            first, rest = first.removesuffix(" Tried:"), []
        print_lines(console, f"\n   {first}", *(f"   {line}" for line in rest))
        together: dict[tuple[str, ...], list[str]] = {}
        for model, tasks in pairs.items():
            # the same task can be listed once per corruption
            together.setdefault(tuple(dict.fromkeys(tasks)), []).append(model)
        for several, models in together.items():
            most = (None, None) if verbose else (MAX_MODELS, MAX_TASKS)
            print_lines(console, f"     {_some(models, most[0])} · {_some(several, most[1])}")
    if len(listed) < len(reasons):
        print_lines(console, f"\n   {count(len(reasons) - len(listed), 'more reason')}")
    return len(listed) == len(reasons)


def _some(names: Sequence[str], most: int | None) -> str:
    """Return the first names and the number of the others.

    >>> _some(["a", "b", "c"], 2), _some(["a", "b"], None)
    ('a, b and 1 more', 'a, b')
    """
    some_names = ", ".join(names[:most])
    return (
        some_names
        if most is None or len(names) <= most
        else f"{some_names} and {len(names) - most} more"
    )


def _place(runs: Sequence[Run]) -> str:
    if len(runs) == 1:
        return _relative(runs[0].folder)
    stamps = {run.about["stamp"] for run in runs}
    pattern = f"/*.{stamps.pop()}" if len(stamps) == 1 else ""
    # runs of further seeds have a number after their stamp
    pattern += "*" if pattern and any(replicate_of(run.about) for run in runs) else ""
    return f"{_relative(runs[0].folder.parent)}{pattern}   {len(runs)} folders"


def _relative(path: Path) -> str:
    near = os.path.relpath(path)
    return str(path) if near.startswith("..") else near


def show_status(paths: Sequence[Path], shape: str | None = None) -> int:
    """Print one line per run and the next step; return 0 if all runs are finished, else 1."""
    progress = status(list(paths))
    if shape not in (None, "table"):
        sys.stdout.write(render_frame(progress, str(shape)))
    else:
        table = Grid(box=None, pad_edge=False, header_style="bold")
        for name in _COLUMNS:
            text = name in ("model", "state", "last")
            table.add_column(name, justify="left" if text else "right", no_wrap=name != "model")
        for row in progress.to_dict("records"):
            table.add_row(*(Text(cell) for cell in _cells(row)))
        console = Console(highlight=False)
        console.print(table)
        remaining = int(progress["left"].sum())
        if remaining:
            rest = progress["seconds_per_job"].fillna(0) * progress["left"]
            time = f", about {rest.sum():,.0f} s of work" if rest.sum() else ""
            console.print(
                Text(f"{remaining:,} jobs left{time}. Continue stopped runs with --resume.")
            )
    return 0 if (progress["state"] == "finished").all() else 1


def _cells(row: dict[str, object]) -> list[str]:
    kinds = [f"{row[name]} {name}" for name in FAILURES[1:] if row[name]]
    failed = sum(int(str(row[name])) for name in FAILURES)
    failures = f"{failed}" + (f" ({', '.join(kinds)})" if kinds else "")
    # failed jobs are done too: what is not done is left
    planned = int(str(row["planned"]))
    done = f"{planned - int(str(row['left']))} of {planned}"
    counts = [str(row[name]) for name in ("declined", "running", "left")]
    return [str(row["model"]), done, failures, *counts, str(row["state"]), ago(str(row["last"]))]


def print_jobs_left(runs: Sequence[Run], resume: str) -> None:
    """Print on standard error how many jobs were not run, if any, and how to continue."""
    remaining = int(status([run.folder for run in runs])["left"].sum())
    if remaining:
        what = "1 job was" if remaining == 1 else f"{remaining:,} jobs were"
        print(
            f"\n Stopped at the first failure: {what} not run. To continue: {resume}",
            file=sys.stderr,
        )


def print_model_checks(checks: Sequence[Any], model: str) -> int:
    """Print which requirements a model meets; return the exit code."""
    console = plain_console()
    for check in checks:
        mark = Text("  ✓ ", style="green") if check.passed else Text("  ✗ ", style="red")
        console.print(mark + Text(check.requirement))
        if not check.passed:
            console.print(Text(f"      {check.reason}"), Text(f"\n      {check.fix}", style="dim"))
    passed = sum(check.passed for check in checks)
    result = "can be evaluated" if passed == len(checks) else "cannot be evaluated"
    line = f"\n{model} {result}: {passed} of {len(checks)} checks passed."
    console.print(line, markup=False, soft_wrap=True)
    return 0 if passed == len(checks) else 2


def is_table_file(name: str) -> bool:
    """Return whether a name is that of a file of a table, there or misspelled."""
    from karat.data.readers.table_files import SUFFIXES, suffix_of

    path = Path(name)
    return suffix_of(path) in SUFFIXES and not path.is_dir()


def show_table(file: Path, target: str | None, settings: Mapping[str, Any]) -> None:
    """Print the type, missing and distinct values and an example of each column of a file."""
    from karat.config.catalog import load_user_table
    from karat.data.load_dataset import DataSpec
    from karat.data.readers.table_files import OPTIONS
    from karat.data.readers.user_tables import USER_OPTIONS, read_user_table

    keys = {**settings, "target": target}
    test = keys.pop("test", None)
    files: Any = file if test is None else {"train": file, "test": Path(test)}
    spec = DataSpec(file.name.partition(".")[0], infer=True, **keys)
    spec.check_options(*OPTIONS, *USER_OPTIONS)
    data = None if target is None else load_user_table(file, target, settings)
    with warnings.catch_warnings():
        warnings.simplefilter("always" if data is None else "ignore")  # shown when it was loaded
        frame, spec = read_user_table(files, spec)
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


def _column_cells(column: pd.Series, spec: DataSpec) -> Iterator[str]:
    """Yield the cells of a column's row: name, type, counts, an example, and what it is used as."""
    present = column.dropna()
    yield str(column.name)
    yield column_type(column)
    yield f"{int(column.isna().sum()):,}"
    yield f"{present.astype(str).nunique():,}"
    yield shorten_cells(cell_as_text(present.iloc[0]), 30) if len(present) else ""
    uses = {spec.target: "target", spec.weight: "weight", spec.part: "part", spec.group: "group"}
    yield "dropped" if column.name in spec.drop else uses.get(str(column.name), "feature")


def list_kinds(kinds: Sequence[str], define: Sequence[Path]) -> None:
    """Print every kind with the number of its names."""
    from karat.config.catalog import Catalog

    catalog = Catalog(define)
    table = Grid(box=None, show_header=False)
    for kind in kinds:
        names = _names(catalog, kind)
        examples = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
        table.add_row(f"karat list {kind}", str(len(names)), Text(examples, style="dim"))
    plain_console().print(table)


def list_kind(kind: str, define: Sequence[Path]) -> None:
    """Print the names of one kind with a line of description each."""
    from karat.config.catalog import Catalog

    catalog = Catalog(define)
    table = Grid(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name in _names(catalog, kind):
        description, more = _about(catalog, kind, name)
        table.add_row(Text(name, style="bold"), Text(description), Text(more, style="dim"))
    plain_console().print(table)


def show_name(name: str, define: Sequence[Path], constraint: str | None = None) -> None:
    """Print all definitions of a name with the origin of every value.

    With a constraint, also print the limits of a task under it.
    """
    from karat.config.catalog import Catalog, suite_source

    catalog = Catalog(define)
    console = plain_console()
    if suite_source(name):
        for task in catalog.suite(name):
            description = f"{task.kind or 'declined'}  {' '.join(task.metrics)}"
            console.print(Text(task.name, style="bold"), Text(description), soft_wrap=True)
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
    registered = {kind: parts for kind, parts in _REGISTRIES.items() if name in parts}
    for kind, parts in registered.items():
        console.print(Text(f"{kind}: {name}", style="bold"), Text(f"  ({parts.origin(name)})"))
        console.print(_document(parts.get(name)), markup=False)
    if not sections and not registered:
        names = {n for kind in (*_DEFINED, *_REGISTRIES) for n in _names(catalog, kind)}
        message = unknown("name", name, names).messages[0]
        raise DefinitionError(message.replace("karat list names", "karat list"))


def _limits(catalog: Catalog, task: str, constraint: str) -> Iterator[str]:
    """Yield the limits of a task; its own limits override those of the constraint."""
    is_task = task in catalog.definitions.names("tasks")
    task_limits = catalog.definitions.get("tasks", task) if is_task else {}
    constraint_limits = catalog.definitions.get("constraints", constraint)
    for key in ("max_folds", "max_runtime_seconds", "max_mem_size_mb", "cores", "gpus"):
        for values, origin in ((task_limits, "the task"), (constraint_limits, constraint)):
            if values.get(key) is not None:
                yield f"{key}: {values[key]}   # {origin}"
                break
        else:
            yield f"{key}: null   # no limit"


def show_cache(clear: bool) -> None:
    """Print or clear the cache of vectors."""
    from karat.execution.embedding_cache import VectorCache

    cache = VectorCache(cache_folder())
    if clear:
        print(f"{cache.clear() / 2**20:.1f} MB of vectors removed from {cache.root}")
        return
    entries = sorted(cache.entries(), key=lambda e: (e.facts["model"], e.facts["dataset"]))
    table = Grid(box=None, header_style="bold")
    for name in ("model", "dataset", "rows × dimensions", "MB"):
        table.add_column(name, justify="left" if name in ("model", "dataset") else "right")
    for entry in entries:
        shape = " × ".join(f"{n:,}" for n in entry.facts["shape"])
        names = (Text(entry.facts[key]) for key in ("model", "dataset"))
        table.add_row(*names, shape, f"{entry.bytes / 2**20:.1f}")
    console = plain_console()
    if entries:
        console.print(table)
    total = sum(entry.bytes for entry in entries) / 2**20
    noun = "entry" if len(entries) == 1 else "entries"
    line = f"{len(entries)} {noun}, {total:.1f} MB in {cache.root}"
    for service in registry.accounts:
        received = [path.stat().st_size for path in RunServices().answers(service).glob("*")]
        if received:
            line += f"; {sum(received) / 2**20:.1f} MB received from {service}"
    console.print(line, markup=False, soft_wrap=True)


def _names(catalog: Catalog, kind: str) -> list[str]:
    defined = catalog.definitions.names(kind) if kind in _DEFINED else []
    return sorted({*defined, *_REGISTRIES.get(kind, ())})


def _about(catalog: Catalog, kind: str, name: str) -> tuple[str, str]:
    if kind in _DEFINED and name in catalog.definitions.names(kind):
        definition = catalog.definitions.get(kind, name)
        title = definition.get("title") or definition.get("description") or ""
        metrics = ", ".join(definition.get("metrics") or [])
        more = {
            "models": definition.get("extra") and f'pip install "karat[{definition["extra"]}]"',
            "tasks": f"{definition.get('kind') or ''} · {metrics}",
            "suites": f"{len(definition.get('tasks') or [])} tasks",
            "datasets": _license(definition) if kind == "datasets" else "",
        }.get(kind)
        return title, more or ""
    part = _REGISTRIES[kind].get(name)
    if isinstance(part, Metric):
        better = "higher is better" if part.higher_is_better else "lower is better"
        return part.about, better
    return _document(part).partition("\n")[0], ""


def _license(definition: Mapping[str, Any]) -> str:
    """Return the license of a dataset, and the beginning of the SHA-256 of its download."""
    remote = [
        source for source in definition.get("sources") or () if "index" in source or "url" in source
    ]
    checksum = f"sha256 {remote[0]['sha256'][:12]}…" if remote else ""
    return " · ".join(filter(None, (definition.get("license"), checksum)))


def _document(part: Any) -> str:
    return inspect.getdoc(getattr(part, "compute", part)) or ""
