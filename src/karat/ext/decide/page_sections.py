"""The sections of the page about the cheapest model and about races."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from karat.core.formatting import middle_cut
from karat.errors import KaratError
from karat.ext.decide.cheapest import MARGIN, Cheapest, ModelDifferences
from karat.ext.decide.cheapest_wording import cheapest_rows
from karat.ext.decide.race_wording import race_rows
from karat.reporting.page import MAX_MODELS
from karat.reporting.page_section import PageData, PlainSection
from karat.results.load import Gathered

if TYPE_CHECKING:
    from karat.ext.decide.race import Race

#: costs of the section on the cheapest model, the first one is shown first
COST_ORDER = ("bytes", "dimensions", "price", "seconds")
#: maximum number of scores that are compared with those of a reference
MAX_COMPARED = 2_000


class CheapestSection:
    """The cheapest model that is not worse, for each group of models and each known cost."""

    def data(self, page: PageData) -> list[list[dict[str, Any]]]:
        """Return the answers."""
        return make_cheapest(page.runs, page.scores, page.groups)

    def plain(self, data: list[list[dict[str, Any]]]) -> Sequence[PlainSection]:
        """Return one sentence per answer."""
        answers = [
            f"By {answer['cost']}: {answer['sentence']}" for group in data for answer in group
        ]
        return [PlainSection("Cheapest equivalent model", answers)] if answers else []


class RaceSection:
    """The races of which these runs are part."""

    def data(self, page: PageData) -> list[dict[str, Any]] | None:
        """Return the races, or None if there are none."""
        runs = page.all_runs
        if isinstance(runs, pd.DataFrame) or not any(run.about.get("race") for run in runs):
            return None
        from karat.ext.decide.race import follow_races  # it imports what runs jobs

        return [_race(race) for race in follow_races(runs)]

    def plain(self, data: list[dict[str, Any]]) -> Sequence[PlainSection]:
        """Return a section per race."""
        return [
            PlainSection("Race", [race["sentence"]], race["columns"], race["rows"], race["notes"])
            for race in data
        ]


def _race(race: Race) -> dict[str, Any]:
    """Return the answer of a race, its table, and the course of the evidence."""
    table, trace = race_rows(race), race.trace
    models = list(race.models["model"])
    with np.errstate(divide="ignore"):
        logs = [np.log10(trace[f"e_value {name}"].dropna()).round(3).tolist() for name in models]
    table["model"] = table["model"].map(middle_cut)
    return {
        **{"sentence": race.sentence, "notes": race.notes, "goal": race.goal},
        **{"jobs": race.jobs, "full": race.full_jobs},
        "trace": {name: trace[name].tolist() for name in ("task", "jobs", "models", "needed")},
        "lines": [
            {"model": name, "status": status, "tasks": int(tasks), "log": log}
            for name, status, tasks, log in zip(
                models, race.models["status"], race.models["tasks"], logs, strict=True
            )
        ],
        "columns": list(table.columns),
        "rows": table.to_numpy().tolist(),
    }


def make_cheapest(
    runs: Any, gathered: Gathered, parts: Sequence[pd.DataFrame]
) -> list[list[dict[str, Any]]]:
    """Return the answers of ``cheapest`` for each group of models, one for each known cost.

    Large groups have none.
    """
    answers: list[list[dict[str, Any]]] = []
    for part in parts:
        answers.append([])
        names = [str(name) for name in part.index]
        cells = len(names) * len(part.attrs["tasks"])
        if len(names) > MAX_MODELS or cells > MAX_COMPARED or not gathered.sources:
            continue
        differences = ModelDifferences(runs, None, gathered.pool, names, gathered.cluster)
        for cost in COST_ORDER:
            with contextlib.suppress(KaratError):  # fewer than two models have this cost
                answers[-1].append(_cheapest(differences.cheapest(cost, MARGIN)))
    return answers


def _cheapest(answer: Cheapest) -> dict[str, Any]:
    """Return an answer with the curve, and with the table as it is printed."""
    table = cheapest_rows(answer)
    table["model"] = table["model"].map(middle_cut)
    names = ["model", "base", "cost", "score", "verdict"]
    names += ["difference", "difference_low", "difference_high"]
    points = answer.models[answer.models["tasks"] > 0]
    level = float(points.loc[points["model"] == answer.reference, "score"].iloc[0])
    # differences of other metrics are shares, which cannot be added to a score
    apart = points["score"] - level - points["difference"]
    level = level if (apart.abs().fillna(0.0) < 1e-9).all() else np.nan
    return {
        **{"cost": answer.cost, "margin": answer.margin, "sentence": answer.sentence},
        **{"reference": answer.reference, "model": answer.model, "notes": answer.notes},
        "level": level,
        "points": [dict(zip(names, row, strict=True)) for row in points[names].to_numpy()],
        "columns": list(table.columns),
        "rows": table.to_numpy().tolist(),
    }
