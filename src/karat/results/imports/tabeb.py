"""TabEB: ``scores_<task>.parquet``, one row per encoder, one column per data set."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from karat.errors import DataError, KaratError
from karat.results.imports.files import Sample, read_parquet
from karat.results.imports.found import Found, Told, direction, number

LOOKS = 'a Parquet file with the columns "encoder" and "<task>_average"'
AVERAGE = "_average"
SETTINGS = ("config", "encoder_params")
#: what TabEB itself measures, whose files do not tell: its AUROC is that of labels
OWN = {"regression": "rmse", "classification": "balacc"}


def recognises(seen: Sample) -> bool:
    """Return whether a file is one of these."""
    return seen.shape == "parquet" and seen.has("encoder") and _task(seen) is not None


def read(samples: Sequence[Sample], told: Told) -> Iterator[Found]:
    """Yield a run per encoder: all its tasks together; those of another setting apart."""
    found: dict[tuple[str, int], Found] = {}
    for seen in samples:
        try:
            table = read_parquet(seen.path)
        except KaratError as error:
            told.problems.append(str(error))
            continue
        times: dict[str, int] = {}
        for row in table.to_dict("records"):
            name = told.model or str(row["encoder"])
            times[name] = times.get(name, 0) + 1
            suite = "tabeb" if times[name] == 1 else f"tabeb-{times[name]}"
            run = found.setdefault((name, times[name]), Found("tabeb", name, suite, []))
            try:
                _row(run, row, seen, told)
            except KaratError as error:
                told.problems.append(str(error))
    yield from found.values()


def _row(found: Found, row: Mapping[str, Any], seen: Sample, told: Told) -> None:
    task = str(_task(seen))
    other = {"encoder", f"{task}{AVERAGE}", *SETTINGS}
    settings = _settings(row.get("config"))
    metric = str(settings.get("metric") or OWN.get(task, ""))
    higher = settings.get("higher_is_better")
    higher = direction(metric) if higher is None else bool(higher)
    if not metric or higher is None:
        told.note(f"{seen.path.name}: {row['encoder']} is left out: no metric is known.")
        return
    found.files = [*found.files, seen.path]
    found.about = {"params": _settings(row.get("encoder_params"))}
    found.higher[metric] = higher
    for data in settings.get("datasets") or [name for name in row if name not in other]:
        _add(found, f"{data}-{task}", str(data), (metric, task, row.get(data)))


def _add(found: Found, task: str, dataset: str, told: tuple[str, str, Any]) -> None:
    metric, kind, cell = told
    found.tasks[task] = {"dataset": dataset, "metric": metric, "kind": kind}
    try:
        found.put(found.job(task), metric, number(cell))
    except ValueError as error:
        raise DataError(f"{found.files[0]}: {dataset} of {found.model} is {cell!r}.") from error


def _task(seen: Sample) -> str | None:
    names = [name.removesuffix(AVERAGE) for name in seen.names if name.endswith(AVERAGE)]
    return names[0] if len(names) == 1 else None


def _settings(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text) if isinstance(text, str) and text else {}
    except ValueError:
        return {}
    return dict(found) if isinstance(found, Mapping) else {}
