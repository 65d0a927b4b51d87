"""Dataset cards: source, license, citation and fingerprint of the data of the tasks.

Significance tests and findings of checks for a page.
The data of a report page as plain JSON values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from karat import __version__
from karat.analysis.all_pairs import scale_scores
from karat.analysis.checks import check_runs
from karat.analysis.leaderboard import leaderboard
from karat.analysis.score_matrix import apply_missing_rule
from karat.reporting.details import make_details, make_maps
from karat.reporting.notes import PageIndex, ShownRun, caption, compact, count, cut_text, notes
from karat.reporting.sections import (
    Metrics,
    folds_of,
    make_curves,
    make_failures,
    make_learning,
    make_robustness,
    make_runs,
    means_of,
    metrics_of,
    spread_of,
    states_of,
    text_of,
)
from karat.results.load import Cells, Gathered, frozen_runs, gather_scores, make_cells, named_runs
from karat.stats.paired_tests import compare_models, friedman
from karat.stats.ranking import CONFIDENCE

#: texts of a card, from the task or its dataset
TEXTS = ("title", "source", "license", "citation", "homepage", "sha256")
COUNTS = ("items", "questions", "columns")


def make_cards(shown: PageIndex) -> list[dict[str, Any]]:
    """Return one card per dataset name and fingerprint."""
    cards: dict[tuple[str, str], dict[str, Any]] = {}
    for run in shown.runs:
        for task in run.run.about["tasks"]:
            place = run.tasks.get(task["name"])
            name = str(task.get("dataset") or "")
            if place is None or not name:
                continue
            card = cards.setdefault((name, str(task.get("fingerprint") or "")), _card(task, name))
            if place not in card["tasks"]:
                card["tasks"].append(place)
    found = sorted(cards.values(), key=lambda card: min(card["tasks"]))
    return [{**card, "tasks": sorted(card["tasks"])} for card in found]


def _card(task: Mapping[str, Any], name: str) -> dict[str, Any]:
    about = task.get("about")
    facts = {**(about if isinstance(about, Mapping) else {}), **task}
    return {
        "dataset": name,
        **{key: _text(facts.get(key)) for key in TEXTS},
        "fingerprint": _text(task.get("fingerprint")),
        **{key: facts[key] if isinstance(facts.get(key), int) else None for key in COUNTS},
        "kind": _text(task.get("modality")) or _text(task.get("kind")),
        "tasks": [],
    }


def _text(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or None
    return str(value) if value not in (None, "", {}) else None


#: maximum number of models tested pairwise
MAX_MODELS = 60
#: maximum number of findings (most severe first), and of characters of one
MAX_FINDINGS, MESSAGE = 1_000, 600


def make_tests(cells: Cells, order: np.ndarray, rule: str) -> dict[str, Any]:
    """Return the Friedman test, the groups of models that do not differ, and p of every pair.

    Pairs are compared by normalized scores: 1 is the best model of a task, 0 the worst. If there
    are too many models, only the best are compared.
    """
    values = scale_scores(apply_missing_rule(cells, rule))[order]
    statistic, p, tasks = friedman(values)
    overall = {"statistic": statistic, "p": p, "tasks": tasks}
    best = values[:MAX_MODELS]
    found = compare_models(best) if len(best) > 1 else None
    tests: dict[str, Any] = {
        "friedman": overall if np.isfinite(statistic) else None,
        "cliques": [] if found is None else found.cliques,
        "pairs": None,
    }
    if found is not None and len(values) <= MAX_MODELS:
        tests["pairs"] = {"p": found.pairs, "diff": found.difference}
    return tests


def make_checks(runs: Any, shown: PageIndex) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the findings with indices of model and task, and notes on what was left out."""
    models = {name: place for place, name in enumerate(shown.models)}
    tasks = {name: place for place, name in enumerate(shown.tasks)}
    found = check_runs(runs)
    rows = [
        {
            "code": finding.code,
            "level": finding.level,
            "model": models.get(finding.model or ""),
            "task": tasks.get(finding.task or ""),
            "message": cut_text(finding.message, MESSAGE),
            "advice": finding.advice,
        }
        for finding in found[:MAX_FINDINGS]
    ]
    rest = len(found) - len(rows)
    more = f"{count(rest, 'finding')} left out (most severe first)."
    return rows, [more] if rest else []


SCHEMA = 1
RULE = "worst"
#: maximum number of scores of single folds in a page
FOLDS = 200_000
#: with more models than this, Elo is left out
MAX_RATED = 100
#: maximum number of suites in a title
MAX_SUITES = 3
#: columns of the leaderboard that a page has for each model
COLUMNS = {
    **{"rank": "rank", "low": "rank_low", "high": "rank_high", "tie": "tie"},
    **{name: name for name in ("seconds", "memory_mb", "dimensions", "failed", "declined")},
    **{name: name for name in ("elo", "borda", "wins", "pareto")},
}


def make_bundle(
    runs: Any, *, title: str | None = None, fold_budget: int = FOLDS, umap: bool = False
) -> dict[str, Any]:
    """Return the data of a page; the same runs give the same bundle.

    ``runs`` are run folders, folders of them, Run objects, or a tidy table of scores. All values
    are valid JSON: no NaN, numbers with six digits. Models are in the order of the leaderboard.
    ``umap`` adds UMAP projections of vectors, which is slow.
    """
    found = runs if isinstance(runs, pd.DataFrame) else frozen_runs(runs)
    given = gather_scores(found)
    board = leaderboard(found, missing=RULE, columns=_columns(given))
    chosen = given.chosen({})
    cells = make_cells(given, chosen)
    order = pd.Index(cells.models).get_indexer(board.index)
    metrics = metrics_of(given, chosen)
    shown = _shown(found, given, board, list(chosen))
    folds, many_folds = folds_of(cells, order, fold_budget)
    sections = _sections(found, shown, umap)
    bundle = {
        **_head(title, board, shown),
        "models": _models(board, shown),
        "tasks": _tasks(given, cells, metrics, shown),
        "scores": means_of(given, cells, metrics, order),
        "spread": spread_of(cells, order),
        "folds": folds,
        "states": states_of(cells, order),
        "tests": make_tests(cells, order, RULE),
        **sections,
        "cut": [*metrics.cut, *many_folds, *_unrated(len(shown.models)), *sections["cut"]],
    }
    plain: dict[str, Any] = compact(bundle)
    return plain


def _head(title: str | None, board: pd.DataFrame, shown: PageIndex) -> dict[str, Any]:
    made = max((str(r["utc"]) for run in shown.runs for r in run.records), default="")
    names = {"title": title or _title(shown), "karat": __version__, "made": made}
    rules = {"confidence": CONFIDENCE, "rule": RULE, "notes": [caption(board), *notes(board)]}
    return {"schema": SCHEMA, **names, **rules}


def _columns(given: Gathered) -> list[str]:
    """Return the columns of the leaderboard; Elo is slow for many models."""
    rated = ["elo"] if len(given.models) <= MAX_RATED else []
    costs = ["costs", "pareto"] if len(given.jobs) else []
    return ["tasks", "borda", "wins", *rated, *costs]


def _unrated(models: int) -> list[str]:
    many = models > MAX_RATED
    return [f"Elo is left out: there are more than {MAX_RATED} models."] if many else []


def _sections(found: Any, shown: PageIndex, umap: bool) -> dict[str, Any]:
    """Return all sections but the scores, and notes on what was left out."""
    limited = {
        "curves": make_curves(found, shown),
        "robustness": make_robustness(found),
        "learning": make_learning(found, shown),
        "details": make_details(shown),
        "failures": make_failures(shown),
        "maps": make_maps(shown, umap),
        "checks": make_checks(found, shown),
    }
    whole = {"cards": make_cards(shown), "runs": make_runs(shown)}
    cut = [sentence for _, sentences in limited.values() for sentence in sentences]
    return {**{name: value for name, (value, _) in limited.items()}, **whole, "cut": cut}


def _shown(found: Any, given: Gathered, board: pd.DataFrame, tasks: list[str]) -> PageIndex:
    models = [str(name) for name in board.index]
    task_index = {name: i for i, name in enumerate(tasks)}
    model_index = {name: i for i, name in enumerate(models)}
    runs = []
    for run, model, labels in [] if isinstance(found, pd.DataFrame) else named_runs(found):
        own = {task: task_index[name] for task, name in labels.items() if name in task_index}
        runs.append(ShownRun(run, model_index[model], own, run.records()))
    runs.sort(key=lambda run: run.model)
    return PageIndex(models, tasks, [str(given.kinds.get(task) or "") for task in tasks], runs)


def _title(shown: PageIndex) -> str:
    named = (str(run.run.about.get("suite") or "") for run in shown.runs)
    suites = [suite for suite in dict.fromkeys(named) if suite]
    rest = len(suites) - MAX_SUITES
    more = [f"{rest} more"] if rest > 0 else []
    return " · ".join([*suites[:MAX_SUITES], *more]) or "Leaderboard"


def _models(board: pd.DataFrame, shown: PageIndex) -> list[dict[str, Any]]:
    few = set(board.attrs.get("few", ()))
    runs = {run.model: run for run in shown.runs}
    columns = {key: board[name].tolist() for key, name in COLUMNS.items() if name in board}
    found = []
    for place, name in enumerate(shown.models):
        numbers = {
            key: None if pd.isna(each[place]) else each[place] for key, each in columns.items()
        }
        row = {**dict.fromkeys(COLUMNS), **numbers, "few": name in few}
        row["pareto"] = bool(numbers.get("pareto"))
        found.append({"name": name, **_origin(runs.get(place), name), **row})
    return found


def _origin(shown: ShownRun | None, name: str) -> dict[str, Any]:
    about: Mapping[str, Any] = shown.run.about if shown else {}
    keys = {key: about.get(key) for key in ("suite", "constraint", "stamp", "seed")}
    folder = shown.run.folder.resolve().name if shown else None
    command = text_of(about.get("command"))
    return {"model": about.get("model", name), "run": folder, **keys, "command": command}


def _tasks(
    given: Gathered, cells: Cells, metrics: Metrics, shown: PageIndex
) -> list[dict[str, Any]]:
    questions = _questions(shown)
    return [
        {
            "name": task,
            "kind": shown.kinds[t],
            "dataset": str(given.datasets.get(task) or ""),
            "metrics": metrics.names[t],
            "higher": metrics.higher[t],
            "folds": int(cells.tried[t].any(axis=0).sum()),
            "questions": questions.get(t),
            "twins": given.twins.get(task),
        }
        for t, task in enumerate(shown.tasks)
    ]


def _questions(shown: PageIndex) -> dict[int, int]:
    """Return the number of questions of each task: the maximum over models, summed over folds."""
    by_fold: dict[int, dict[Any, int]] = {}
    for (task, _), (_, records) in shown.done.items():
        counts = by_fold.setdefault(task, {})
        for record in records:
            number = int(record.get("questions") or 0)
            counts[record["fold"]] = max(counts.get(record["fold"], 0), number)
    totals = {task: sum(counts.values()) for task, counts in by_fold.items()}
    return {task: total for task, total in totals.items() if total}
