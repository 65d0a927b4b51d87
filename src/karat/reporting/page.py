"""The report: one self-contained HTML file, and its data as plain JSON values.

Without JavaScript it shows tables. Names are escaped as HTML; inside the script element they are
JSON without ``<``. The content security policy allows only the scripts of the page.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from karat import __version__
from karat.analysis.all_pairs import ManyModels, compare_models, scale_scores, separate_models
from karat.analysis.checks import Finding, check_runs, rule_of
from karat.analysis.item_tests import CORRECTED, LEARNERS, Separation, item_separation
from karat.analysis.leaderboard import (
    DIFFERENCES,
    THESE_TASKS,
    TaskTests,
    connected,
    fold_ratios,
    leaderboard,
    split_groups,
)
from karat.analysis.robustness import curves
from karat.analysis.robustness_wording import robustness_table
from karat.analysis.score_matrix import RankedScores, apply_missing_rule, significant
from karat.analysis.these_tasks import OTHER_TASKS
from karat.core.formatting import count, cut_text, format_rank, plain, rounded, short
from karat.core.notebook import PagePath
from karat.core.replicates import replicate_of
from karat.core.writing import write_output
from karat.errors import FAILURES, DataError, KaratError
from karat.metrics.metric import metric_label
from karat.output.table import Cell, Column, Table, text_column
from karat.reporting.details import (
    PageIndex,
    ShownRun,
    clean,
    compact,
    first_sentences,
    make_details,
    make_maps,
    size,
    to_json,
)
from karat.reporting.formats import command_text, eliminated_notes, make_tables, to_html
from karat.reporting.page_section import PageData, PlainSection, plain_added, section_data
from karat.reporting.verdict import (
    Evidence,
    find_robustness,
    make_evidence,
    make_verdict,
    verdict_lines,
)
from karat.results.clusters import INDEPENDENT, cluster_scores, cluster_unit
from karat.results.load import (
    DECLINED,
    FAILED,
    NOT_RUN,
    OK,
    SIGNS,
    Cells,
    Gathered,
    frozen_runs,
    gather_scores,
    learning_curves,
    make_cells,
)
from karat.results.run import newest_first
from karat.results.tables import ELIMINATED, eliminated_by
from karat.stats.paired_tests import CONFIDENCE, corrected_t
from karat.stats.pairwise_ranks import mean_ranks
from karat.stats.ranking import FEWEST_TASKS, rank_each

SCHEMA = 1
RULE = "worst"
#: maximum number of scores of single folds in a page
FOLDS = 200_000
#: with more models than this, Elo is left out
MAX_RATED = 100
NO_ELO = f"Elo is left out: there are more than {MAX_RATED} models."
#: maximum number of suites in a title
MAX_SUITES = 3
#: columns of the leaderboard that a page has for each model
COLUMNS = {
    **{"rank": "rank", "low": "rank_low", "high": "rank_high", "tie": "tie"},
    "top": "top",
    **{name: name for name in ("seconds", "memory_mb", "dimensions", "failed", "declined")},
    **{name: name for name in ("elo", "borda", "wins", "pareto")},
}
#: columns that a page has only if a model uses an endpoint
OF_ENDPOINTS = ("tokens", "price")
#: what the records of an endpoint's jobs hold about its requests
LATENCY = ("request_seconds_median", "request_seconds_p95", "texts_per_second")


def make_bundle(
    runs: Any,
    *,
    title: str | None = None,
    fold_budget: int = FOLDS,
    umap: bool = False,
    pool: str = "variant",
    cluster: str | None = None,
) -> dict[str, Any]:
    """Return the data of a page; the same runs give the same bundle.

    ``runs`` are run folders, folders of them, Run objects, or a tidy table of scores. All values
    are valid JSON: no NaN, numbers with six digits. Models are in the order of the leaderboard.
    ``umap`` adds UMAP projections of vectors, which is slow. ``pool`` and ``cluster``
    are as in ``leaderboard``.
    """
    whole_runs, found, out = _without_eliminated(runs)
    given = cluster_scores(gather_scores(found, pool), cluster)
    board = _board(found, given)
    whole = _one_row_each(parts := split_groups(board))
    chosen = given.chosen({})
    cells = make_cells(given, chosen)
    order = pd.Index(cells.models).get_indexer(whole.index)
    metrics = metrics_of(given, chosen)
    shown = _shown(given, whole, list(chosen))
    folds, many_folds = folds_of(cells, order, fold_budget)
    compared = apply_missing_rule(cells, RULE)
    evidence = make_evidence(given, cells, compared, **_facts(found, shown))
    sections = _sections(found, shown, evidence, umap)
    unrated = [] if "elo" in board else [NO_ELO]
    bundle = {
        **{"schema": SCHEMA, "title": title or _title(shown), "karat": __version__},
        "made": max((str(r["utc"]) for run in shown.runs for r in run.records), default=""),
        **{"confidence": CONFIDENCE, "rule": RULE, "notes": [*_notes(board), *out]},
        "models": _models(whole, shown, order),
        **_answers(parts, evidence, shown),
        "tasks": _tasks(given, cells, metrics, evidence),
        **{"scores": means_of(given, cells, metrics, order), "spread": spread_of(cells, order)},
        **{"folds": folds, "states": states_of(cells, order), "where": evidence.where},
        "tests": make_tests(given, cells, order),
        **section_data(PageData(whole_runs, found, given, parts)),
        **sections,
        "cut": [*metrics.cut, *many_folds, *unrated, *sections["cut"]],
    }
    return dict(compact(bundle))


def _without_eliminated(runs: Any) -> tuple[Any, Any, list[str]]:
    """Return the runs, those of models that were not eliminated, and who was eliminated."""
    if isinstance(runs, pd.DataFrame):
        return runs, runs, []
    # models of equal rank are in the order of their folders, in whatever order these are given
    runs = sorted(frozen_runs(runs), key=lambda run: (run.folder.name, str(run.folder.resolve())))
    if not any(run.about.get("race") for run in runs):
        return runs, runs, []
    left = [run for run in runs if not eliminated_by(run.about)]
    if not left:
        raise DataError("all models of these runs were eliminated in a race; add the other runs.")
    out = {run.model: why for run in runs if (why := eliminated_by(run.about))}
    return runs, left, list(eliminated_notes(out))


def _board(found: Any, given: Gathered) -> pd.DataFrame:
    """Return the leaderboard with ratings and costs; Elo is slow for many models."""
    rated = ["elo"] if len(given.models) <= MAX_RATED else []
    costs = ["costs", "pareto"] if len(given.jobs) else []
    few = ["difference"] if len(given.models) <= MAX_MODELS else []
    columns = ["tasks", "borda", "wins", *few, *rated, *costs]
    return leaderboard(found, missing=RULE, columns=columns, pool=given.pool, cluster=given.cluster)


def _one_row_each(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all groups; a model of several groups has the numbers of the first."""
    whole = pd.concat(parts) if len(parts) > 1 else parts[0]
    return whole[~whole.index.duplicated()]


def _sections(found: Any, shown: PageIndex, evidence: Evidence, umap: bool) -> dict[str, Any]:
    """Return all sections but the scores, and notes on what was left out."""
    limited = {
        "curves": make_curves(found, shown),
        "robustness": make_robustness(evidence.robust),
        "learning": make_learning(found, shown),
        "details": make_details(shown),
        "failures": make_failures(shown),
        "maps": make_maps(shown, umap),
        "checks": make_checks(evidence.findings, shown),
    }
    whole = {"cards": make_cards(shown), "runs": make_runs(shown)}
    cut = [sentence for _, sentences in limited.values() for sentence in sentences]
    return {**{name: value for name, (value, _) in limited.items()}, **whole, "cut": cut}


# -- groups and verdicts ---------------------------------------------------------------------


def _answers(parts: list[pd.DataFrame], evidence: Evidence, shown: PageIndex) -> dict[str, Any]:
    """Return the groups of models, a verdict on each, and scores over fewer folds than planned."""
    verdicts = make_verdict(parts, evidence)
    for verdict in verdicts:
        verdict |= {name: shown.model_place(verdict[name]) for name in ("winner", "next")}
        verdict["top"] = [shown.model_place(name) for name in verdict["top"]]
        for name in ("these_tasks", "over_tasks"):
            verdict[name] = _with_places(verdict[name], shown)
    partial = {
        (shown.model_place(model), shown.task_place(task), *counts)
        for part in parts
        for model, tasks in part.attrs.get("partial", {}).items()
        for task, counts in tasks.items()
    }
    return {
        "groups": _groups(parts, shown),
        "verdict": verdicts,
        "partial": sorted(each for each in partial if None not in each),
    }


def _with_places(found: Mapping[str, Any], shown: PageIndex) -> dict[str, Any]:
    """Return the differences to the first model with places of models and tasks for their names."""
    if not found:
        return {}
    few = len(found["tasks"]) < FEWEST_TASKS  # many tasks would make the page large
    rows = []
    for row in found["models"][:MAX_MODELS]:
        each = row.get("by_task", ()) if few else ()
        by_task = [{**on, "task": shown.task_place(on["task"])} for on in each]
        rows.append({**row, "model": shown.model_place(row["model"]), "by_task": by_task})
    return {**found, "reference": shown.model_place(found["reference"]), "models": rows}


def _facts(found: Any, shown: PageIndex) -> dict[str, Any]:
    """Return findings, robustness, test items of tasks, commands of models, folder of the runs."""
    commands = {
        shown.models[run.model]: command_text(run.run.about.get("command")) or ""
        for run in shown.runs
    }
    items = {shown.tasks[task]: number for task, number in _questions(shown).items()}
    parents = {run.run.folder.resolve().parent.name for run in shown.runs}
    where = parents.pop() if len(parents) == 1 else "RUN..." if parents else ""
    robust = find_robustness(found, shown.pool)
    facts = {"commands": commands, "items": items, "where": where}
    return {"findings": check_runs(found, pool=shown.pool), "robust": robust, **facts}


def _shown(given: Gathered, board: pd.DataFrame, tasks: list[str]) -> PageIndex:
    models = [str(name) for name in board.index]
    kinds = [str(given.kinds.get(task) or "") for task in tasks]
    shown = PageIndex(models, tasks, kinds, pool=given.pool)
    for number, (run, model, labels) in enumerate(given.sources):
        places = {task: shown.task_place(name) for task, name in labels.items()}
        own = {task: place for task, place in places.items() if place is not None}
        records = run.records()
        if given.superseded:
            records = [
                record
                for record in records
                if (number, labels.get(record["task"]), record["fold"]) not in given.superseded
            ]
        shown.runs.append(ShownRun(run, models.index(model), own, records))
    oldest_first = reversed(newest_first(run for run, *_ in given.sources))
    age = {id(run): place for place, run in enumerate(oldest_first)}
    # the last run of a model is shown in detail: that of its first seed
    shown.runs.sort(key=lambda e: (e.model, -replicate_of(e.run.about), age[id(e.run)]))
    return shown


def _title(shown: PageIndex) -> str:
    named = (str(run.run.about.get("suite") or "") for run in shown.runs)
    suites = [suite for suite in dict.fromkeys(named) if suite]
    rest = len(suites) - MAX_SUITES
    more = [f"{rest} more"] if rest > 0 else []
    return " · ".join([*suites[:MAX_SUITES], *more]) or "Leaderboard"


def _notes(board: pd.DataFrame) -> list[str]:
    tests = [part.attrs.get("separation") or {} for part in split_groups(board)]
    if not any(test.get("by") == THESE_TASKS for test in tests):
        # only the picture has the differences
        board = board.drop(columns=[name for name in DIFFERENCES if name in board])
    tables = make_tables(board)
    # the verdict says what these tasks cannot show
    below = [note for note in tables[-1].notes if not note.endswith(OTHER_TASKS)]
    return [*(table.caption for table in tables), *below]


def _models(board: pd.DataFrame, shown: PageIndex, order: np.ndarray) -> list[dict[str, Any]]:
    """Return what is known about each model; ``place`` orders models of equal rank."""
    runs = {run.model: run for run in shown.runs}
    rows = zip(shown.models, _board_numbers(board), order.tolist(), strict=True)
    return [
        {"name": name, "place": place, **_origin(runs.get(m), name), **row, **_latency(shown, m)}
        for m, (name, row, place) in enumerate(rows)
    ]


def _latency(shown: PageIndex, model: int) -> dict[str, float]:
    """Return the median over jobs of what a model's records hold about requests, if anything."""
    records = [r for (_, m), (_, done) in shown.done.items() if m == model for r in done]
    values = {name: [r[name] for r in records if r.get(name) is not None] for name in LATENCY}
    return {name: float(np.median(each)) for name, each in values.items() if each}


def _groups(parts: list[pd.DataFrame], shown: PageIndex) -> list[dict[str, Any]]:
    """Return the groups of models that can be compared, with the numbers of each in its group."""
    places = {task: t for t, task in enumerate(shown.tasks)}
    headings = {f"{task} (task)": t for task, t in places.items()} | places
    return [
        {
            "name": str(part.attrs.get("group", "")),
            "models": [shown.models.index(name) for name in part.index],
            "tasks": [headings[task] for task in part.attrs["tasks"]],
            "rows": _board_numbers(part),
        }
        for part in parts
    ]


def _board_numbers(board: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the columns of the leaderboard that a page has for each model."""
    few = set(board.attrs.get("few", ()))
    shown = {**COLUMNS, **{name: name for name in OF_ENDPOINTS}}
    columns = {key: board[name].tolist() for key, name in shown.items() if name in board}
    found = []
    for place, name in enumerate(board.index):
        numbers = {
            key: None if pd.isna(each[place]) else each[place] for key, each in columns.items()
        }
        row = {**dict.fromkeys(COLUMNS), **numbers, "few": name in few}
        found.append({**row, "pareto": bool(numbers.get("pareto"))})
    return found


def _origin(shown: ShownRun | None, name: str) -> dict[str, Any]:
    about: Mapping[str, Any] = shown.run.about if shown else {}
    keys = {key: about.get(key) for key in ("suite", "constraint", "stamp", "seed")}
    folder = shown.run.folder.resolve().name if shown else None
    command = command_text(about.get("command"))
    return {"model": about.get("model", name), "run": folder, **keys, "command": command}


def _tasks(
    given: Gathered, cells: Cells, metrics: Metrics, evidence: Evidence
) -> list[dict[str, Any]]:
    return [
        {
            "name": task,
            "kind": str(given.kinds.get(task) or ""),
            "dataset": str(given.datasets.get(task) or ""),
            "language": str(given.languages.get(task) or ""),
            "metrics": metrics.names[t],
            "higher": metrics.higher[t],
            "folds": int(cells.tried[t].any(axis=0).sum()),
            "questions": evidence.items.get(task),
            "duplicate_rows": given.duplicate_rows.get(task),
        }
        for t, task in enumerate(cells.tasks)
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


# -- scores ----------------------------------------------------------------------------------

#: one character per state of a cell
STATE_LETTERS = {OK: ".", FAILED: "f", DECLINED: "d", NOT_RUN: "n", ELIMINATED: "n"}
#: maximum number of scores of secondary metrics
MAX_NUMBERS = 200_000


@dataclass(frozen=True)
class Metrics:
    """The metrics of each task (primary metric first) and their directions."""

    names: list[list[str]]
    higher: list[list[bool]]
    cut: list[str]


def metrics_of(given: Gathered, chosen: dict[str, str]) -> Metrics:
    """Return the metrics of each task, as many as there is room for."""
    pairs = given.scores[["task", "metric"]].drop_duplicates()
    seen: dict[str, list[str]] = {}
    for task, metric in zip(pairs["task"], pairs["metric"], strict=True):
        seen.setdefault(task, []).append(metric)
    names, higher, unknown = [], [], []
    room = MAX_NUMBERS // max(len(given.models) * len(chosen), 1)
    for task, first in chosen.items():
        rest = [metric for metric in seen.get(task, []) if metric != first]
        directions = {first: given.higher(first)}
        for metric in rest[: max(room, 0)]:
            try:
                directions[metric] = given.higher(metric)
            except KaratError:
                unknown.append(f"{short(metric)} of {short(task)}: unknown direction.")
        names.append(list(directions))
        higher.append(list(directions.values()))
    cut = first_sentences(unknown, lambda n: f"{n} more metrics with unknown direction.")
    if any(len(seen.get(task, [])) > room + 1 for task in chosen):
        cut.append(f"Only the first {room + 1} metrics of each task are shown (too many scores).")
    return Metrics(names, higher, cut)


def means_of(
    given: Gathered, cells: Cells, metrics: Metrics, order: np.ndarray
) -> list[list[np.ndarray]]:
    """Return the mean over folds by task, metric and model, in this order of models."""
    table = given.scores[given.scores["value"].notna()]
    means = table.groupby(["task", "metric", "model"], sort=False)["value"].mean()
    by_pair = {key: part.droplevel([0, 1]) for key, part in means.groupby(level=[0, 1], sort=False)}
    names = pd.Index([cells.models[m] for m in order])
    found = []
    for t, (task, own) in enumerate(zip(cells.tasks, metrics.names, strict=True)):
        first = cells.means[order, t]
        rest = [by_pair.get((task, metric), pd.Series(dtype=float)) for metric in own[1:]]
        found.append([first, *(part.reindex(names).to_numpy(dtype=float) for part in rest)])
    return found


def spread_of(cells: Cells, order: np.ndarray) -> list[np.ndarray]:
    """Return the standard deviation over folds by task and model; NaN for one fold."""
    return [pd.DataFrame(table[order]).std(axis=1).to_numpy() for table in cells.folds]


def states_of(cells: Cells, order: np.ndarray) -> list[str]:
    """Return one sign per model for each task."""
    return ["".join(STATE_LETTERS[state] for state in each) for each in cells.states[order].T]


def folds_of(
    cells: Cells, order: np.ndarray, max_numbers: int
) -> tuple[list[list[Any]] | None, list[str]]:
    """Return the scores of folds by task and model, unless there are too many."""
    numbers = sum(table.size for table in cells.folds)
    if numbers > max_numbers:
        return None, [f"Scores of single folds are left out (too many: {numbers:,})."]
    found = []
    for table, up in zip(cells.folds, cells.higher, strict=True):
        values = (table if up else -table)[order]
        found.append([None if np.isnan(row).all() else row for row in values])
    return found, []


# -- curves and robustness -------------------------------------------------------------------

#: maximum bytes of the curves of each kind, points of a line, and rows of the robustness table
LINES, MAX_POINTS, MAX_ROBUSTNESS = 700_000, 60, 1_000

Charts = list[dict[str, Any]]


def make_curves(runs: Any, shown: PageIndex) -> tuple[Charts, list[str]]:
    """Return one chart per task and corruption: scores over severities, with 0 for clean.

    Bands are standard deviations over folds and draws.
    """
    try:
        found = curves(runs, pool=shown.pool)
    except DataError:  # no task has a corrupted view
        return [], []
    charts = []
    keys = ["task", "metric", "higher_is_better", "corruption"]
    for (task, metric, higher, corruption), part in found.groupby(keys, sort=False):
        facts = {"metric": metric, "higher": bool(higher), "corruption": corruption}
        tested = part.groupby("model")["severity"].transform("max") > 0
        lines = _lines(part[tested], "severity", shown)
        for line in lines:
            spread = line.pop("std")
            line |= {"low": line["mean"] - spread, "high": line["mean"] + spread}
        charts.append({"task": shown.task_place(task), **facts, "lines": lines})
    return _fitting(charts, shown, "corruption")


def make_learning(runs: Any, shown: PageIndex) -> tuple[Charts, list[str]]:
    """Return one chart per task and metric: values by epoch, over folds."""
    charts = []
    table = learning_curves(runs, shown.pool)
    for (task, metric), part in table.groupby(["task", "metric"], sort=False):
        lines = _lines(part, "epoch", shown)
        charts.append({"task": shown.task_place(task), "metric": metric, "lines": lines})
    found, cut = _fitting(charts, shown, "learning")
    if any(len(line["x"]) == MAX_POINTS for chart in found for line in chart["lines"]):
        cut.append(f"Learning curves have at most {MAX_POINTS} evenly sampled points.")
    return found, cut


def make_robustness(found: pd.DataFrame | None) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the robustness table as texts, or None without corrupted views."""
    if found is None:
        return None, []
    table = robustness_table(found)
    columns = table.all_columns
    rows = [[column.cells[row].text for column in columns] for row in range(len(table))]
    cut = []
    if len(rows) > MAX_ROBUSTNESS:
        cut.append(f"The robustness table shows {MAX_ROBUSTNESS:,} of {len(rows):,} rows.")
    return {"columns": [column.name for column in columns], "rows": rows[:MAX_ROBUSTNESS]}, cut


def _lines(part: pd.DataFrame, x: str, shown: PageIndex) -> Charts:
    found = []
    for model, line in part.groupby("model", sort=False):
        place = shown.model_place(model)
        line = line.sort_values(x, kind="stable")
        picked = np.linspace(0, len(line) - 1, min(len(line), MAX_POINTS)).round().astype(int)
        values = {name: line[name].to_numpy(dtype=float)[picked] for name in (x, "mean", "std")}
        found.append({"model": place, "x": values.pop(x), **values})
    shown_lines = [line for line in found if line["model"] is not None]
    return sorted(shown_lines, key=lambda line: line["model"])


def _fitting(charts: Charts, shown: PageIndex, what: str) -> tuple[Charts, list[str]]:
    """Return the charts with the lines of as many models as there is room for, best first."""
    charts = [chart for chart in charts if chart["task"] is not None and chart["lines"]]
    needed = np.zeros(len(shown.models))
    for line in (line for chart in charts for line in chart["lines"]):
        needed[line["model"]] += size(compact(line))
    models = int(np.searchsorted(np.cumsum(needed), LINES, side="right"))
    if models >= len(needed):
        return charts, []
    charts = [
        {**chart, "lines": [line for line in chart["lines"] if line["model"] < models]}
        for chart in charts
    ]
    note = f"Curves of {what} are shown for the best {count(models, 'model')}."
    return [chart for chart in charts if chart["lines"]], [note]


# -- datasets, tests and checks --------------------------------------------------------------

#: texts of a card, from the task or its dataset
DATA_TEXTS = ("title", "source", "license", "citation", "homepage", "sha256")
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
        **{key: _text(facts.get(key)) for key in DATA_TEXTS},
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


def make_tests(given: Gathered, cells: Cells, order: np.ndarray) -> dict[str, Any]:
    """Return the tests of a page, the same as in the leaderboard and in ``compare_all``.

    ``pairs`` holds p of every pair, corrected for all pairs of its group, and the mean difference
    of normalized scores (1 is the best model of a task, 0 the worst); ``by_task`` the tests of each
    task. Groups that share too few tasks are tested by themselves; ``groups`` has the test of all
    models of each.
    """
    compared, models = apply_missing_rule(cells, RULE), len(order)
    tests = TaskTests(given, given.chosen({}))
    place = np.argsort(order)
    p, difference = np.full((2, models, models), np.nan)
    groups = []
    for group in connected(given, cells).values():
        part = compared.only(group.tasks, group.models).by_name()
        mean = mean_ranks(rank_each(part.values, part.takes))
        separation = separate_models(part, tests)
        found = compare_models(scale_scores(part), mean, separation)
        at = np.ix_(place[group.models], place[group.models])
        p[at] = np.where(np.isnan(p[at]), found.pairs, p[at])
        difference[at] = np.where(np.isnan(difference[at]), found.difference, difference[at])
        cliques = [[int(place[group.models[m]]) for m in clique] for clique in found.cliques]
        groups.append({**_omnibus(found), "why": separation.why, "cliques": cliques})
    return {
        **groups[0],
        "cliques": [clique for group in groups for clique in group["cliques"]],
        "pairs": {"p": p, "diff": difference} if 1 < models <= MAX_MODELS else None,
        "by_task": make_task_tests(given, cells, order),
        "differences": make_task_differences(compared, tests, order),
        "groups": groups,
    }


#: maximum number of differences of two models on a task; with more a page has none
MAX_DIFFERENCES = 20_000


def make_task_differences(
    compared: RankedScores, tests: TaskTests, order: np.ndarray
) -> list[dict[str, Any] | None]:
    """Return what each task shows about all models that take it, as the leaderboard tests it.

    From these the page computes what a selection of tasks shows; see ``these_tasks``. ``pairs`` has
    a row per pair: both models, the gain of the first, its standard error, degrees of freedom, and
    p, corrected for all pairs of the task.
    """
    takers = compared.takes.sum(axis=0)
    if int((takers * (takers - 1) // 2).sum()) > MAX_DIFFERENCES:
        return [None] * len(takers)
    one, other = np.triu_indices(len(order), 1)
    rows: list[dict[str, Any] | None] = []
    for t, taking in enumerate(compared.takes.T):
        if takers[t] < 2:
            rows.append(None)
            continue
        test, both = tests.of(compared, t), taking[order[one]] & taking[order[other]]
        at = (order[one[both]], order[other[both]])
        tables = (test.difference, test.error, test.freedom, test.p)
        numbers = [np.full(int(both.sum()), np.nan) if x is None else x[at] for x in tables]
        columns = [one[both].tolist(), other[both].tolist(), *(x.tolist() for x in numbers)]
        facts = {"test": test.test, "why": test.why, "claim": test.claim, "step": test.step}
        rows.append({**facts, "pairs": [list(row) for row in zip(*columns, strict=True)]})
    return rows


def _omnibus(found: ManyModels) -> dict[str, Any]:
    """Return the names of the tests, and the test of all models, if there is one."""
    test = {"test": found.omnibus, "statistic": found.statistic, "p": found.p}
    friedman = {**test, "tasks": found.tasks} if found.tasks > 1 and len(found.ranks) > 1 else None
    return {"procedure": found.test, "friedman": friedman}


#: maximum number of p values of single tasks, and of files of predictions read for them
MAX_TASK_TESTS, MAX_FILES = 80_000, 500


def make_task_tests(given: Gathered, cells: Cells, order: np.ndarray) -> list[dict[str, Any]]:
    """Return the test of each pair on each task, as ``karat compare`` of the two makes it.

    With many models and tasks, only pairs of the best models are tested. p is that of items and
    fits, or of the corrected t over folds where there are too many stored predictions to read; it
    is not corrected for several tasks or pairs. ``why`` tells why there is none, ``claim`` whether
    it is about the learners or the models as fitted, ``unit`` what the unit of items is.
    """
    tasks, metrics = len(cells.tasks), given.chosen({})
    best = order[: int(np.sqrt(MAX_TASK_TESTS / max(tasks, 1)))]
    names = [cells.models[m] for m in best]
    ratios = fold_ratios(given, cells.tasks)
    single = [len(table.T) == 1 for table in cells.folds]
    every = sum(table.shape[1] for table in cells.folds) * len(best) <= MAX_FILES
    read = tasks == 1 or sum(single) * len(best) <= MAX_FILES
    found = []
    for t, task in enumerate(cells.tasks):
        p, test, why = _over_folds(cells.folds[t][best], ratios[t])
        claim, unit, clusters = LEARNERS if test else "", "", 0
        if read and (every or tasks == 1 or single[t]):
            items = item_separation(given, task, metrics[task], names, corrected=False)
            p = np.where(np.isnan(items.p), p, items.p)
            test, claim = items.test or test, items.claim or claim
            unit, clusters = _unit_of(items, given.cluster), items.clusters
        facts = {"test": test, "why": "" if test else why, "claim": claim, "unit": unit}
        found.append({**facts, "clusters": clusters, "p": p if test else None})
    return found


def _unit_of(tested: Separation, cluster: str) -> str:
    """Return the sentence on the unit of a test on items; empty for other tests."""
    if not tested.items:
        return ""
    if not tested.clusters:
        return INDEPENDENT
    return cluster_unit(tested.clusters, tested.items, cluster)


def _over_folds(values: np.ndarray, ratio: float) -> tuple[np.ndarray, str, str]:
    """Return p of every pair over the folds of a task, the test, and why there is none."""
    p = np.full((len(values), len(values)), np.nan)
    one, other = np.triu_indices(len(values), 1)
    digits = significant(values)
    apart = np.where(digits[one] == digits[other], 0.0, values[one] - values[other])
    with np.errstate(invalid="ignore"):
        p[one, other] = p[other, one] = corrected_t(apart, ratio).p
    if not np.isnan(p).all():
        return p, CORRECTED, ""
    return p, "", "one fold" if values.shape[1] < 2 else "no spread over folds"


def make_checks(
    found: Sequence[Finding], shown: PageIndex
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the findings with indices of model and task, and notes on what was left out."""
    rows = [
        {
            "code": finding.code,
            "title": rule_of(finding.code).title,
            "level": finding.level,
            "model": shown.model_place(finding.model),
            "task": shown.task_place(finding.task),
            "message": cut_text(finding.message, MESSAGE),
            "advice": finding.advice,
        }
        for finding in found[:MAX_FINDINGS]
    ]
    rest = len(found) - len(rows)
    more = f"{count(rest, 'finding')} left out (most severe first)."
    return rows, [more] if rest else []


# -- runs and failures -----------------------------------------------------------------------

#: maximum number of characters of a log and of all logs, and of listed failures
LOG, LOGS, MAX_FAILURES = 4_000, 600_000, 2_000
#: maximum length of a reason
INFO = 1_000


def make_runs(shown: PageIndex) -> list[dict[str, Any]]:
    """Return the folder, command, seed, versions and job counts of each run."""
    return [
        {
            "model": each.model,
            "folder": each.run.folder.resolve().name,
            "command": command_text(each.run.about.get("command")),
            "seed": each.run.about.get("seed"),
            "versions": _versions(each.run.about),
            "platform": each.run.about.get("platform"),
            "jobs": sum(record["fold"] is not None for record in each.records),
            "ok": sum(record["status"] == "ok" for record in each.records),
            "failed": sum(record["status"] in FAILURES for record in each.records),
        }
        for each in shown.runs
    ]


def _versions(about: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of Karat, Python, the model and libraries."""
    found = {name: about.get(name) for name in ("karat", "python")} | {
        "model": about.get("version")
    }
    libraries = about.get("versions")
    found |= libraries if isinstance(libraries, Mapping) else {}
    return {str(name): str(each) for name, each in found.items() if each}


def make_failures(shown: PageIndex) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the failed jobs with the ends of their logs, and notes on what was left out."""
    failed = list(shown.failed)
    width = min(LOG, LOGS // max(min(len(failed), MAX_FAILURES), 1))
    found, unread = [], []
    for run, task, record in failed[:MAX_FAILURES]:
        log = _log(run, record, width)
        if log is None:
            label = f"{short(shown.models[run.model])} on {short(shown.tasks[task])}"
            unread.append(f"{label}, fold {record['fold']}: the log cannot be read.")
        facts = {key: record[key] for key in ("fold", "status")}
        facts |= {"info": cut_text(str(record["info"]), INFO), "log": log or ""}
        found.append({"model": run.model, "task": task, **facts})
    cut = first_sentences(unread, lambda n: f"{n} more logs cannot be read.")
    if len(failed) > MAX_FAILURES:
        more = count(len(failed) - MAX_FAILURES, "failed job")
        cut.append(f"{more} more, see results.csv in the run folders.")
    if width < LOG and any(each["log"] for each in found):
        cut.append(f"Logs are cut to their last {width:,} characters.")
    unlisted = sum(
        record["status"] in FAILURES and record["task"] not in run.tasks
        for run in shown.runs
        for record in run.records
    )
    if unlisted:
        cut.append(f"{count(unlisted, 'failed job')} of tasks without any score not listed.")
    return found, cut


def _log(shown: ShownRun, record: Mapping[str, Any], width: int) -> str | None:
    """Return the end of a job's log; empty if there is none, None if it cannot be read."""
    path = shown.run.log(record)
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - 4 * width, 0))
            return file.read().decode("utf-8", "replace")[-width:]
    except FileNotFoundError:
        return ""
    except OSError:
        return None


# -- the HTML file ----------------------------------------------------------------------------


#: with more cells than this, the leaderboard has no task columns
MAX_CELLS = 5_000
#: maximum number of failures and findings
MAX_ROWS = 200
#: longer names are cut
NAME = 200
#: what is shown about a dataset
TEXTS = ("source", "license", "citation", "sha256")
_STATES = {"f": SIGNS[FAILED], "d": SIGNS[DECLINED], "n": SIGNS[NOT_RUN]}

Bundle = Mapping[str, Any]


def plain_sections(bundle: Bundle) -> list[str]:
    """Return the sections with data, for a page without JavaScript."""
    robust = bundle["robustness"] or {"columns": (), "rows": ()}
    checks, failures = bundle["checks"], bundle["failures"]
    finding, card = ("code", "level", "message", "advice"), ("dataset", *TEXTS, "fingerprint")
    run = ("folder", "command", "seed", "platform", "versions")
    tables: list[tuple[str, Sequence[str], list[Any]]] = [
        ("Robustness", robust["columns"], robust["rows"]),
        (
            f"Checks: {len(checks):,}",
            ("model", "task", *finding),
            [(*_names(bundle, each), *(each[key] for key in finding)) for each in checks],
        ),
        (
            f"Failures: {len(failures):,}",
            ("model", "task", "fold", "reason"),
            [(*_names(bundle, each), each["fold"], each["info"]) for each in failures],
        ),
        ("Datasets", card, [[each[key] for key in card] for each in bundle["cards"]]),
        ("Provenance", run, [[_joined(each[key]) for key in run] for each in bundle["runs"]]),
    ]
    lines = _paragraphs(verdict_lines(bundle.get("verdict", ())))
    found = [("Verdict", lines)] if lines else []
    found += [(name, to_html(each, classes=True)) for name, each in leaderboard_tables(bundle)]
    found += [(section.title, _section_text(section)) for section in plain_added(bundle)]
    found += [(title, _rows(names, rows)) for title, names, rows in tables if rows]
    items = "".join(f"<li>{escape(plain(sentence))}</li>" for sentence in bundle["cut"])
    found += [("Left out", f'<ul class="notes">{items}</ul>')] if items else []
    return [f"<section><h2>{escape(title)}</h2>{text}</section>" for title, text in found]


def _section_text(section: PlainSection) -> str:
    table = _rows(section.columns, section.rows) if section.columns else ""
    return _paragraphs(section.sentences) + table + _paragraphs(section.notes)


def _paragraphs(lines: Sequence[str]) -> str:
    return "".join(f"<p>{escape(plain(line))}</p>" for line in lines)


def _rows(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of the first rows, and a note that counts the others."""
    first, *columns = (
        text_column(name, ("" if value is None else value for value in values), right=False)
        for name, values in zip(names, zip(*rows[:MAX_ROWS], strict=True), strict=True)
    )
    rest = len(rows) - MAX_ROWS
    notes = [f"{rest:,} more are shown with JavaScript only."] if rest > 0 else []
    return to_html(Table([], first, columns, [], "", notes), classes=True)


def _names(bundle: Bundle, each: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the model and the task, or empty texts."""
    for key, named in (("model", bundle["models"]), ("task", bundle["tasks"])):
        yield "" if each[key] is None else short(named[each[key]]["name"], NAME)


def _joined(value: Any) -> Any:
    return ", ".join(map(" ".join, value.items())) if isinstance(value, dict) else value


def leaderboard_tables(bundle: Bundle) -> Iterator[tuple[str, Table]]:
    """Yield title and table of each group of models that can be compared."""
    # the page of a server without runs has no group
    groups = bundle.get("groups") or [{"name": "", "models": [], "tasks": [], "rows": []}]
    about, notes = bundle["notes"][: len(groups)], bundle["notes"][len(groups) :]
    small = len(bundle["models"]) * len(bundle["tasks"]) <= MAX_CELLS
    if not small:
        number = len(bundle["tasks"])
        notes = [*notes, f"Scores on {number:,} tasks are shown with JavaScript only."]
    for place, group in enumerate(groups):
        last = place == len(groups) - 1
        columns = _columns(bundle, group, small)
        title = f"Leaderboard: {group['name']}" if len(groups) > 1 else "Leaderboard"
        yield title, Table([], *columns, [], about[place], notes if last else [])


def _columns(bundle: Bundle, group: Bundle, small: bool) -> tuple[Column, list[Column]]:
    """Return the models and the other columns: ranks, tasks if they are few, costs."""
    pairs = zip(group["models"], group["rows"], strict=True)
    models = [{**bundle["models"][m], **row} for m, row in pairs]
    scores = {t: [bundle["scores"][t][0][m] for m in group["models"]] for t in group["tasks"]}
    scored = [t for t, values in scores.items() if _best(values, True) is not None]
    ranks = (format_rank(m["rank"]) for m in models)
    ends = ([format_rank(m[end]) for end in ("low", "high")] for m in models)
    spans = (low if low == "–" else f"{low} – {high}" for low, high in ends)
    columns = [
        *(text_column("rank", ranks), text_column("95 %", spans)),
        text_column("tie", (model["tie"] or "" for model in models), right=False),
        *(column for key in _RATINGS for column in _numbers(models, key)),
        *(_task(bundle, t, group["models"]) for t in scored if small),
        *(column for key in _COSTS for column in _numbers(models, key)),
    ]
    return text_column("model", (model["name"] for model in models), right=False), columns


def _task(bundle: Bundle, t: int, models: Sequence[int]) -> Column:
    task, states = bundle["tasks"][t], bundle["states"][t]
    means = bundle["scores"][t][0]
    higher = task["higher"][0]
    best = _best([means[m] for m in models], higher)
    cells = [
        Cell(_STATES.get(states[m], "–"), faint=True)
        if means[m] is None
        else Cell(rounded(means[m]), means[m] == best)
        for m in models
    ]
    label = plain(metric_label(task["metrics"][0], higher))
    return Column(plain(task["name"]), cells, label, part="task")


def _best(values: Sequence[float | None], higher: bool) -> float | None:
    scores = [value for value in values if value is not None]
    return (max(scores) if higher else min(scores)) if scores else None


#: headings, formats and units of the other columns
_RATINGS = {"wins": "{:.3f}", "borda": "{:.1f}", "elo": "{:.0f}"}
_COSTS = {
    "failed": ("failed", "{:.0f}", 1.0),
    "declined": ("n/a", "{:.0f}", 1.0),
    "seconds": ("time", "{:.1f} s", 1.0),
    "memory_mb": ("memory", "{:.1f} GB", 1 / 1024),
}


def _numbers(models: Sequence[Mapping[str, Any]], key: str) -> Iterator[Column]:
    """Yield the column of a rating or a cost, if a model has one."""
    heading, form, unit = _COSTS.get(key) or (key, _RATINGS[key], 1.0)
    values = [model[key] for model in models]
    best = _best(values, True)
    if best is not None:
        texts = ["–" if value is None else form.format(value * unit) for value in values]
        marks = [key in _RATINGS and value == best for value in values]
        part = "rank" if key in _RATINGS else "cost"
        yield Column(heading, [Cell(*each) for each in zip(texts, marks, strict=True)], part=part)


#: folder of the scripts and styles, which are used in the order of their names
FOLDER = "html"


def report(
    runs: Any,
    path: str | Path = "report.html",
    *,
    title: str | None = None,
    umap: bool = False,
    pool: str = "variant",
    cluster: str | None = None,
) -> Path:
    """Write the report of some runs to a file and return its path, which a notebook shows.

    Parameters
    ----------
    runs
        Run folders, folders of them, Run objects, or a tidy table of scores.
    path, title
        The HTML file, and the title of the page. Default: a title that names the suites.
    umap
        Whether to add UMAP maps of vectors; the library must be installed.
    pool, cluster
        Which runs are one model, and which items belong together, as in ``leaderboard``.
    """
    bundle = make_bundle(runs, title=title, umap=umap, pool=pool, cluster=cluster)
    text = make_page(bundle)
    write_output(Path(path), text)
    return PagePath(path)


def make_page(bundle: Mapping[str, Any], live: str | bool | None = False) -> str:
    """Return the page of a bundle; a live page polls its server, or the address ``live``."""
    scripts, title = page_files(".js"), escape(clean(plain(bundle["title"])))
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{escape(policy(scripts, bool(live)))}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} – Karat</title>{_tags(bundle, title)}"
        f"<style>{''.join(page_files('.css'))}</style>"
    )
    body = (
        f'<header class="top"><p class="brand">Karat</p><h1>{title}</h1></header>\n'
        f'<main id="plain">\n{chr(10).join(plain_sections(bundle))}\n</main>\n'
        f'<script type="application/json" id="bundle">{to_json(bundle)}</script>\n'
        + "".join(f"<script>{script}</script>\n" for script in scripts)
    )
    kind = f'data-live="{"true" if live else "false"}"'
    kind += f' data-address="{escape(live)}"' if isinstance(live, str) else ""
    return (
        f'<!doctype html>\n<html lang="en" {kind}><head>{head}</head>\n'
        f"<body>\n{body}</body></html>\n"
    )


#: the diamond next to the name
ICON = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>"
    "<path d='M8 1l7 7-7 7-7-7z' fill='#c8951a'/></svg>"
)


def _tags(bundle: Mapping[str, Any], title: str) -> str:
    """Return the icon of the page, and what links to the page show."""
    lines = [*verdict_lines(bundle.get("verdict", ())), *bundle["notes"]]
    about = escape(clean(plain(next(iter(lines), ""))))
    texts = {"og:type": "website", "og:site_name": "Karat", "og:title": title}
    texts |= {"og:description": about} if about else {}
    meta = "".join(f'<meta property="{name}" content="{text}">' for name, text in texts.items())
    named = f'<meta name="description" content="{about}">' if about else ""
    return f'{named}{meta}<link rel="icon" href="data:image/svg+xml,{quote(ICON)}">'


def policy(scripts: Sequence[str], live: bool = False) -> str:
    """Return the content security policy: these scripts, and requests to its server if live."""
    sums = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in sums) or "'none'"
    connect = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; "
        f"img-src data: blob:; connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def page_files(ending: str) -> list[str]:
    """Return the scripts or styles of the page, in the order of their names."""
    folder = files("karat.reporting").joinpath(FOLDER)
    if not folder.is_dir():
        return []
    found = sorted((f for f in folder.iterdir() if f.name.endswith(ending)), key=lambda f: f.name)
    return [file.read_text(encoding="utf-8") for file in found]
