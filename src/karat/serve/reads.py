"""Reads: the endpoints that tell what is in the folder."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from karat.errors import DataError
from karat.results.tables import SCORE_COLUMNS
from karat.serve.asking import Asked
from karat.serve.kept import KeptRun
from karat.serve.replies import CSV, TEXT, Refused, Reply, json_reply
from karat.serve.service import Service

#: the columns of the tidy table here: that of the runs, then its own
COLUMNS = ("run", *SCORE_COLUMNS)
ABOUT = ("model", "suite", "constraint", "mode", "stamp", "seed", "karat", "role")


def runs(service: Service, asked: Asked) -> Reply:
    """Return all runs and how far they have come."""
    snapshot = service.state.look()
    found = [_summary(run) for run in snapshot.runs.values()]
    left_out = [{"run": name, "why": why} for name, why in snapshot.left_out.items()]
    return json_reply({**_page(found, asked), "left_out": left_out})


def run(service: Service, asked: Asked) -> Reply:
    """Return what one run says of itself."""
    found = _run(service, asked)
    return json_reply({**_summary(found), "about": found.about})


def jobs(service: Service, asked: Asked) -> Reply:
    """Return the records of a run's finished jobs."""
    found = _run(service, asked)
    wanted = {key: asked.query[key] for key in ("task", "fold", "status")}
    picked = [
        record
        for record in found.records()
        if all(value is None or record[key] == value for key, value in wanted.items())
    ]
    return json_reply(_page(picked, asked))


def log(service: Service, asked: Asked) -> Reply:
    """Return what a job printed, and its traceback."""
    found = _run(service, asked)
    path = found.log({"task": asked.query["task"], "fold": asked.query["fold"], "status": ""})
    if not path.is_file():
        raise Refused(404, "that job has no log", "only jobs that printed or failed have one")
    return Reply(path, TEXT)


def scores(service: Service, asked: Asked) -> Reply:
    """Return the tidy table of all scores, or of those that were asked for."""
    shape = asked.wants("json", "csv")
    table = service.state.scores(service.state.look())
    table = table if len(table) else pd.DataFrame(columns=list(COLUMNS))
    for name in COLUMNS:
        wanted = asked.query.get(name)
        if wanted or (wanted is not None and name not in ("run", "model", "task", "metric")):
            several = wanted if isinstance(wanted, list) else [wanted]
            table = table[table[name].isin(several)]
    total, start = len(table), asked.query["offset"]
    limit = asked.query["limit"] or (1000 if shape == "json" else total)
    part = table.iloc[start : start + limit].loc[:, list(COLUMNS)]
    if shape == "csv":
        text = part.to_csv(index=False, lineterminator="\n")
        return Reply(text.encode("utf-8", "replace"), CSV, headers={"x-total-count": str(total)})
    rows = part.astype(object).where(part.notna(), None).to_dict(orient="records")
    return json_reply({"total": total, "offset": start, "items": rows})


def predictions(service: Service, asked: Asked) -> Reply:
    """Return what was answered in a fold, row by row."""
    path, facts = _predictions(service, asked)
    start, limit = asked.query["offset"], asked.query["limit"] or 1000
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            columns = next(reader, [])
            rows = list(itertools.islice(reader, start, start + limit))
        told = {"columns": columns, "offset": start, "items": rows, **facts}
        return json_reply({"total": _rows(service, path), **told})
    except (csv.Error, ValueError) as error:
        raise Refused(422, "the file is damaged", "karat rescore tells where") from error


def predictions_file(service: Service, asked: Asked) -> Reply:
    """Return the predictions file as it is."""
    return Reply(_predictions(service, asked)[0], CSV)


def progress(service: Service, asked: Asked) -> Reply:
    """Return how far all runs have come, and what runs now."""
    return json_reply(service.state.look().progress)


def bundle(service: Service, asked: Asked) -> Reply:
    """Return what the live page shows."""
    return service.bundles.live(service.state.look())


def _run(service: Service, asked: Asked) -> KeptRun:
    return service.state.look().run(asked.path["run"])


def _summary(run: KeptRun) -> dict[str, Any]:
    told = {name: run.about.get(name) for name in ABOUT}
    row = dict(run.row)
    active = len(run.running_now())
    row |= {"running": active, "state": _condition(row["left"], active)}
    return {"id": run.id, **told, **{k: v for k, v in row.items() if k not in ("run", "model")}}


def _condition(left: int, active: int) -> str:
    return "finished" if not left else "running" if active else "stopped"


def _page(found: list[Any], asked: Asked) -> dict[str, Any]:
    start, limit = asked.query["offset"], asked.query["limit"] or 1000
    return {"total": len(found), "offset": start, "items": found[start : start + limit]}


def _predictions(service: Service, asked: Asked) -> tuple[Path, Mapping[str, Any]]:
    found = _run(service, asked)
    query = asked.query
    try:
        folder = found._view_folder(query["task"], query["fold"], query["view"])
        told = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
        path = folder / "predictions.csv"
        if not path.is_file():
            raise FileNotFoundError(path.name)
    except (OSError, DataError) as error:
        hint = "jobs lists what was done; views are called like typos@0.1"
        raise Refused(404, "there are no such predictions", hint) from error
    except ValueError as error:
        raise Refused(422, "metadata.json is no JSON", "karat rescore tells more") from error
    facts = told if isinstance(told, dict) else {}
    return path, {name: facts.get(name) for name in ("answers", "truths", "classes")}


def _rows(service: Service, path: Path) -> int:
    facts = path.stat()

    def count() -> int:
        with path.open(encoding="utf-8", newline="") as file:
            return max(sum(1 for _ in csv.reader(file)) - 1, 0)

    return int(service.computed(("rows", str(path), facts.st_mtime_ns, facts.st_size), count))
