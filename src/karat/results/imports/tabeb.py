"""Import of TabEB's ``scores_<task>.parquet``: a row per encoder, a column per dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from karat.errors import DataError, KaratError
from karat.results.imports.files import Sample, read_parquet
from karat.results.imports.found import ImportLog, ModelResults, direction, number

LOOKS = 'a Parquet file with the columns "encoder" and "<task>_average"'
AVERAGE = "_average"
SETTINGS = ("config", "encoder_params")
#: the metrics of TabEB's own files, which do not name them; its AUROC is computed from labels
OWN = {"regression": "rmse", "classification": "balacc"}


def recognizes(sample: Sample) -> bool:
    """Return whether a file is one of these."""
    return sample.shape == "parquet" and sample.has("encoder") and _task(sample) is not None


def read(samples: Sequence[Sample], log: ImportLog) -> Iterator[ModelResults]:
    """Yield a run per encoder with all its tasks; other settings are separate runs."""
    found: dict[tuple[str, int], ModelResults] = {}
    for sample in samples:
        try:
            table = read_parquet(sample.path)
        except KaratError as error:
            log.problems.append(str(error))
            continue
        times: dict[str, int] = {}
        for row in table.to_dict("records"):
            name = log.model or str(row["encoder"])
            times[name] = times.get(name, 0) + 1
            suite = "tabeb" if times[name] == 1 else f"tabeb-{times[name]}"
            run = found.setdefault((name, times[name]), ModelResults("tabeb", name, suite, []))
            try:
                _row(run, row, sample, log)
            except KaratError as error:
                log.problems.append(str(error))
    yield from found.values()


def _row(found: ModelResults, row: Mapping[str, Any], sample: Sample, log: ImportLog) -> None:
    task = str(_task(sample))
    other = {"encoder", f"{task}{AVERAGE}", *SETTINGS}
    settings = _settings(row.get("config"))
    metric = str(settings.get("metric") or OWN.get(task, ""))
    higher = settings.get("higher_is_better")
    higher = direction(metric) if higher is None else bool(higher)
    if not metric or higher is None:
        log.note(f"{sample.path.name}: skipped {row['encoder']}: unknown metric.")
        return
    found.files = [*found.files, sample.path]
    found.about = {"params": _settings(row.get("encoder_params"))}
    found.higher[metric] = higher
    for data in settings.get("datasets") or [name for name in row if name not in other]:
        name = f"{data}-{task}"
        found.tasks[name] = {"dataset": str(data), "metric": metric, "kind": task}
        try:
            found.put(found.job(name), metric, number(row.get(data)))
        except ValueError as error:
            cell = f"{data} of {found.model}"
            raise DataError(
                f"{sample.path}: {cell} must be a number, got {row.get(data)!r}."
            ) from error


def _task(sample: Sample) -> str | None:
    names = [name.removesuffix(AVERAGE) for name in sample.names if name.endswith(AVERAGE)]
    return names[0] if len(names) == 1 else None


def _settings(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text) if isinstance(text, str) and text else {}
    except ValueError:
        return {}
    return dict(found) if isinstance(found, Mapping) else {}
