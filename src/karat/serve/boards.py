"""Boards and comparisons over the web: the same functions, with the query as their options."""

from __future__ import annotations

from typing import Any

import pandas as pd

from karat.errors import did_you_mean
from karat.serve.asking import KINDS, Asked
from karat.serve.kept import KeptRun
from karat.serve.replies import Refused, Reply, json_reply, plain
from karat.serve.service import Service
from karat.serve.state import Snapshot

#: what a board tells besides its rows
FACTS = ("tasks", "metrics", "higher_is_better", "missing", "few", "seeds", "by", "normalize")


def board(service: Service, asked: Asked) -> Reply:
    """Return the leaderboard of all runs, or of those that were asked for."""
    shape = asked.wants("json", "csv", "markdown")
    snapshot = service.state.look()
    query = {name: asked.query[name] for name in ("by", "missing", "normalize", "sort")}
    lists = {name: tuple(asked.query[name]) for name in ("run", "metric", "columns")}
    key = ("board", snapshot.version, *query.values(), *lists.values())
    made = service.computed(key, lambda: _board(snapshot, query, lists))
    if shape == "json":
        return json_reply(_told(made))
    from karat.reporting.formats import render

    kind = f"{KINDS[shape]}; charset=utf-8"
    return Reply(render(made, shape).encode("utf-8", "replace"), kind)


def _board(snapshot: Snapshot, query: dict[str, Any], lists: dict[str, Any]) -> pd.DataFrame:
    from karat.analysis.leaderboard import leaderboard
    from karat.reporting.terminal import metric_by_task

    return leaderboard(
        _chosen(snapshot, lists["run"]),
        metrics=metric_by_task(lists["metric"]),
        columns=list(lists["columns"]) or None,
        **query,
    )


def _told(board: pd.DataFrame) -> dict[str, Any]:
    rows = plain(board.reset_index().astype(object).to_dict(orient="records"))
    facts = {name: plain(board.attrs.get(name)) for name in FACTS}
    return {"total": len(rows), "items": rows, **facts}


def comparison(service: Service, asked: Asked) -> Reply:
    """Return how two models differ, on the tasks and folds that both have."""
    snapshot = service.state.look()
    names = {name: asked.query[name] for name in ("a", "b", "metric", "on")}
    chosen = tuple(asked.query["run"])
    key = ("compare", snapshot.version, *names.values(), chosen)
    return json_reply(service.computed(key, lambda: _compared(_chosen(snapshot, chosen), names)))


def _compared(runs: list[KeptRun], names: dict[str, Any]) -> dict[str, Any]:
    from karat.analysis.comparison import compare
    from karat.results.load import named_runs

    # runs, never names: a name that looks like a path must not be taken for one
    known: dict[str, Any] = {run.id: run for run in runs}
    known |= {name: run for run, name, _ in named_runs(runs)}
    for name in (names["a"], names["b"]):
        if name not in known:
            hint = did_you_mean(name[:200], known).strip() or "/api/v1/board lists the models"
            raise Refused(404, f'there is no model "{name[:200]}"', hint)
    a, b = known[names["a"]], known[names["b"]]
    if a is b:
        raise Refused(422, "a and b are the same", "name two models of the board")
    return dict(compare(runs, a, b, metric=names["metric"], on=names["on"]).to_dict())


def _chosen(snapshot: Snapshot, names: tuple[str, ...]) -> list[KeptRun]:
    if not snapshot.runs:
        raise Refused(409, "there is no run here yet", "karat run makes one")
    return [snapshot.run(name) for name in names] or list(snapshot.runs.values())
