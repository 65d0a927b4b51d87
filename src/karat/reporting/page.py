"""The report: one self-contained HTML file, and its data as plain JSON values.

Without JavaScript it shows tables. Names are escaped as HTML; inside the script element they are
JSON without ``<``. The content security policy allows only the scripts of the page.
"""

from __future__ import annotations

import base64
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
from karat.core.digest import sha256_of
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
#: one character per state of a cell
STATE_LETTERS = {OK: ".", FAILED: "f", DECLINED: "d", NOT_RUN: "n", ELIMINATED: "n"}
#: maximum number of scores of secondary metrics
MAX_NUMBERS = 200_000
#: maximum bytes of the curves of each kind, points of a line, and rows of the robustness table
LINES, MAX_POINTS, MAX_ROBUSTNESS = 700_000, 60, 1_000
Charts = list[dict[str, Any]]
#: texts of a card, from the task or its dataset
DATA_TEXTS = ("title", "source", "license", "citation", "homepage", "sha256")
COUNTS = ("items", "questions", "columns")
#: maximum number of models tested pairwise
MAX_MODELS = 60
#: maximum number of findings (most severe first), and of characters of one
MAX_FINDINGS, MESSAGE = 1_000, 600
#: maximum number of differences of two models on a task; with more a page has none
MAX_DIFFERENCES = 20_000
#: maximum number of p values of single tasks, and of files of predictions read for them
MAX_TASK_TESTS, MAX_FILES = 80_000, 500
#: maximum number of characters of a log and of all logs, and of listed failures
LOG, LOGS, MAX_FAILURES = 4_000, 600_000, 2_000
#: maximum length of a reason
INFO = 1_000
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
#: headings, formats and units of the other columns
_RATINGS = {"wins": "{:.3f}", "borda": "{:.1f}", "elo": "{:.0f}"}
_COSTS = {
    "failed": ("failed", "{:.0f}", 1.0),
    "declined": ("n/a", "{:.0f}", 1.0),
    "seconds": ("time", "{:.1f} s", 1.0),
    "memory_mb": ("memory", "{:.1f} GB", 1 / 1024),
}
#: folder of the scripts and styles, which are used in the order of their names
FOLDER = "html"
#: the diamond next to the name
ICON = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>"
    "<path d='M8 1l7 7-7 7-7-7z' fill='#c8951a'/></svg>"
)


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
    whole_runs, page_runs, out = _without_eliminated(runs)
    gathered = cluster_scores(gather_scores(page_runs, pool), cluster)
    board = _board(page_runs, gathered)
    whole = _one_row_each(parts := split_groups(board))
    chosen = gathered.chosen({})
    cells = make_cells(gathered, chosen)
    order = pd.Index(cells.models).get_indexer(whole.index)
    metrics = metrics_of(gathered, chosen)
    page = _shown(gathered, whole, list(chosen))
    folds, many_folds = folds_of(cells, order, fold_budget)
    compared = apply_missing_rule(cells, RULE)
    evidence = make_evidence(gathered, cells, compared, **_facts(page_runs, page))
    sections = _sections(page_runs, page, evidence, umap)
    unrated = [] if "elo" in board else [NO_ELO]
    bundle = {
        **{"schema": SCHEMA, "title": title or _title(page), "karat": __version__},
        "made": max((str(r["utc"]) for run in page.runs for r in run.records), default=""),
        **{"confidence": CONFIDENCE, "rule": RULE, "notes": [*_notes(board), *out]},
        "models": _models(whole, page, order),
        **_answers(parts, evidence, page),
        "tasks": _tasks(gathered, cells, metrics, evidence),
        **{"scores": means_of(gathered, cells, metrics, order), "spread": spread_of(cells, order)},
        **{"folds": folds, "states": states_of(cells, order), "where": evidence.where},
        "tests": make_tests(gathered, cells, order),
        **section_data(PageData(whole_runs, page_runs, gathered, parts)),
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
    remaining = [run for run in runs if not eliminated_by(run.about)]
    if not remaining:
        raise DataError("all models of these runs were eliminated in a race; add the other runs.")
    out = {run.model: why for run in runs if (why := eliminated_by(run.about))}
    return runs, remaining, list(eliminated_notes(out))


def _board(page_runs: Any, gathered: Gathered) -> pd.DataFrame:
    """Return the leaderboard with ratings and costs; Elo is slow for many models."""
    rated = ["elo"] if len(gathered.models) <= MAX_RATED else []
    costs = ["costs", "pareto"] if len(gathered.jobs) else []
    few = ["difference"] if len(gathered.models) <= MAX_MODELS else []
    columns = ["tasks", "borda", "wins", *few, *rated, *costs]
    return leaderboard(
        page_runs, missing=RULE, columns=columns, pool=gathered.pool, cluster=gathered.cluster
    )


def _one_row_each(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all groups; a model of several groups has the numbers of the first."""
    whole = pd.concat(parts) if len(parts) > 1 else parts[0]
    return whole[~whole.index.duplicated()]


def _sections(page_runs: Any, page: PageIndex, evidence: Evidence, umap: bool) -> dict[str, Any]:
    """Return all sections but the scores, and notes on what was left out."""
    limited = {
        "curves": make_curves(page_runs, page),
        "robustness": make_robustness(evidence.robust),
        "learning": make_learning(page_runs, page),
        "details": make_details(page),
        "failures": make_failures(page),
        "maps": make_maps(page, umap),
        "checks": make_checks(evidence.findings, page),
    }
    whole = {"cards": make_cards(page), "runs": make_runs(page)}
    cut = [sentence for _, sentences in limited.values() for sentence in sentences]
    return {**{name: value for name, (value, _) in limited.items()}, **whole, "cut": cut}


# -- groups and verdicts ---------------------------------------------------------------------


def _answers(parts: list[pd.DataFrame], evidence: Evidence, page: PageIndex) -> dict[str, Any]:
    """Return the groups of models, a verdict on each, and scores over fewer folds than planned."""
    verdicts = make_verdict(parts, evidence)
    for verdict in verdicts:
        verdict |= {name: page.model_place(verdict[name]) for name in ("winner", "next")}
        verdict["top"] = [page.model_place(name) for name in verdict["top"]]
        for name in ("these_tasks", "over_tasks"):
            verdict[name] = _with_places(verdict[name], page)
    partial = {
        (page.model_place(model), page.task_place(task), *counts)
        for part in parts
        for model, tasks in part.attrs.get("partial", {}).items()
        for task, counts in tasks.items()
    }
    return {
        "groups": _groups(parts, page),
        "verdict": verdicts,
        "partial": sorted(row for row in partial if None not in row),
    }


def _with_places(facts: Mapping[str, Any], page: PageIndex) -> dict[str, Any]:
    """Return the differences to the first model with places of models and tasks for their names."""
    if not facts:
        return {}
    few = len(facts["tasks"]) < FEWEST_TASKS  # many tasks would make the page large
    rows = []
    for row in facts["models"][:MAX_MODELS]:
        task_rows = row.get("by_task", ()) if few else ()
        by_task = [{**on, "task": page.task_place(on["task"])} for on in task_rows]
        rows.append({**row, "model": page.model_place(row["model"]), "by_task": by_task})
    return {**facts, "reference": page.model_place(facts["reference"]), "models": rows}


def _facts(page_runs: Any, page: PageIndex) -> dict[str, Any]:
    """Return findings, robustness, test items of tasks, commands of models, folder of the runs."""
    commands = {
        page.models[run.model]: command_text(run.run.about.get("command")) or ""
        for run in page.runs
    }
    items = {page.tasks[task]: number for task, number in _questions(page).items()}
    parents = {run.run.folder.resolve().parent.name for run in page.runs}
    where = parents.pop() if len(parents) == 1 else "RUN..." if parents else ""
    robust = find_robustness(page_runs, page.pool)
    facts = {"commands": commands, "items": items, "where": where}
    return {"findings": check_runs(page_runs, pool=page.pool), "robust": robust, **facts}


def _shown(gathered: Gathered, board: pd.DataFrame, tasks: list[str]) -> PageIndex:
    models = [str(name) for name in board.index]
    kinds = [str(gathered.kinds.get(task) or "") for task in tasks]
    page = PageIndex(models, tasks, kinds, pool=gathered.pool)
    for number, (run, model, labels) in enumerate(gathered.sources):
        places = {task: page.task_place(name) for task, name in labels.items()}
        task_places = {
            task: run_number for task, run_number in places.items() if run_number is not None
        }
        records = run.records()
        if gathered.superseded:
            records = [
                record
                for record in records
                if (number, labels.get(record["task"]), record["fold"]) not in gathered.superseded
            ]
        page.runs.append(ShownRun(run, models.index(model), task_places, records))
    oldest_first = reversed(newest_first(run for run, *_ in gathered.sources))
    age = {id(run): run_number for run_number, run in enumerate(oldest_first)}
    # the last run of a model is shown in detail: that of its first seed
    page.runs.sort(key=lambda e: (e.model, -replicate_of(e.run.about), age[id(e.run)]))
    return page


def _title(page: PageIndex) -> str:
    named = (str(run.run.about.get("suite") or "") for run in page.runs)
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


def _models(board: pd.DataFrame, page: PageIndex, order: np.ndarray) -> list[dict[str, Any]]:
    """Return what is known about each model; ``place`` orders models of equal rank."""
    runs = {run.model: run for run in page.runs}
    rows = zip(page.models, _board_numbers(board), order.tolist(), strict=True)
    return [
        {"name": name, "place": number, **_origin(runs.get(m), name), **row, **_latency(page, m)}
        for m, (name, row, number) in enumerate(rows)
    ]


def _latency(page: PageIndex, model: int) -> dict[str, float]:
    """Return the median over jobs of what a model's records hold about requests, if anything."""
    records = [r for (_, m), (_, done) in page.done.items() if m == model for r in done]
    values = {name: [r[name] for r in records if r.get(name) is not None] for name in LATENCY}
    return {name: float(np.median(seconds)) for name, seconds in values.items() if seconds}


def _groups(parts: list[pd.DataFrame], page: PageIndex) -> list[dict[str, Any]]:
    """Return the groups of models that can be compared, with the numbers of each in its group."""
    places = {task: t for t, task in enumerate(page.tasks)}
    headings = {f"{task} (task)": t for task, t in places.items()} | places
    return [
        {
            "name": str(part.attrs.get("group", "")),
            "models": [page.models.index(name) for name in part.index],
            "tasks": [headings[task] for task in part.attrs["tasks"]],
            "rows": _board_numbers(part),
        }
        for part in parts
    ]


def _board_numbers(board: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the columns of the leaderboard that a page has for each model."""
    few = set(board.attrs.get("few", ()))
    headings = {**COLUMNS, **{name: name for name in OF_ENDPOINTS}}
    columns = {key: board[name].tolist() for key, name in headings.items() if name in board}
    rows = []
    for number, name in enumerate(board.index):
        numbers = {
            key: None if pd.isna(values[number]) else values[number]
            for key, values in columns.items()
        }
        row = {**dict.fromkeys(COLUMNS), **numbers, "few": name in few}
        rows.append({**row, "pareto": bool(numbers.get("pareto"))})
    return rows


def _origin(page_run: ShownRun | None, name: str) -> dict[str, Any]:
    facts: Mapping[str, Any] = page_run.run.about if page_run else {}
    keys = {key: facts.get(key) for key in ("suite", "constraint", "stamp", "seed")}
    folder = page_run.run.folder.resolve().name if page_run else None
    command = command_text(facts.get("command"))
    return {"model": facts.get("model", name), "run": folder, **keys, "command": command}


def _tasks(
    gathered: Gathered, cells: Cells, metrics: Metrics, evidence: Evidence
) -> list[dict[str, Any]]:
    return [
        {
            "name": task,
            "kind": str(gathered.kinds.get(task) or ""),
            "dataset": str(gathered.datasets.get(task) or ""),
            "language": str(gathered.languages.get(task) or ""),
            "metrics": metrics.names[t],
            "higher": metrics.higher[t],
            "folds": int(cells.tried[t].any(axis=0).sum()),
            "questions": evidence.items.get(task),
            "duplicate_rows": gathered.duplicate_rows.get(task),
        }
        for t, task in enumerate(cells.tasks)
    ]


def _questions(page: PageIndex) -> dict[int, int]:
    """Return the number of questions of each task: the maximum over models, summed over folds."""
    by_fold: dict[int, dict[Any, int]] = {}
    for (task, _), (_, records) in page.done.items():
        counts = by_fold.setdefault(task, {})
        for record in records:
            number = int(record.get("questions") or 0)
            counts[record["fold"]] = max(counts.get(record["fold"], 0), number)
    totals = {task: sum(counts.values()) for task, counts in by_fold.items()}
    return {task: total for task, total in totals.items() if total}


# -- scores ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metrics:
    """The metrics of each task (primary metric first) and their directions."""

    names: list[list[str]]
    higher: list[list[bool]]
    cut: list[str]


def metrics_of(gathered: Gathered, chosen: dict[str, str]) -> Metrics:
    """Return the metrics of each task, as many as there is room for."""
    pairs = gathered.scores[["task", "metric"]].drop_duplicates()
    seen: dict[str, list[str]] = {}
    for task, metric in zip(pairs["task"], pairs["metric"], strict=True):
        seen.setdefault(task, []).append(metric)
    names, higher, unknown = [], [], []
    room = MAX_NUMBERS // max(len(gathered.models) * len(chosen), 1)
    for task, first in chosen.items():
        rest = [metric for metric in seen.get(task, []) if metric != first]
        directions = {first: gathered.higher(first)}
        for metric in rest[: max(room, 0)]:
            try:
                directions[metric] = gathered.higher(metric)
            except KaratError:
                unknown.append(f"{short(metric)} of {short(task)}: unknown direction.")
        names.append(list(directions))
        higher.append(list(directions.values()))
    cut = first_sentences(unknown, lambda n: f"{n} more metrics with unknown direction.")
    if any(len(seen.get(task, [])) > room + 1 for task in chosen):
        cut.append(f"Only the first {room + 1} metrics of each task are shown (too many scores).")
    return Metrics(names, higher, cut)


def means_of(
    gathered: Gathered, cells: Cells, metrics: Metrics, order: np.ndarray
) -> list[list[np.ndarray]]:
    """Return the mean over folds by task, metric and model, in this order of models."""
    table = gathered.scores[gathered.scores["value"].notna()]
    means = table.groupby(["task", "metric", "model"], sort=False)["value"].mean()
    by_pair = {key: part.droplevel([0, 1]) for key, part in means.groupby(level=[0, 1], sort=False)}
    names = pd.Index([cells.models[m] for m in order])
    all_means = []
    for t, (task, task_metrics) in enumerate(zip(cells.tasks, metrics.names, strict=True)):
        first = cells.means[order, t]
        rest = [by_pair.get((task, metric), pd.Series(dtype=float)) for metric in task_metrics[1:]]
        all_means.append([first, *(part.reindex(names).to_numpy(dtype=float) for part in rest)])
    return all_means


def spread_of(cells: Cells, order: np.ndarray) -> list[np.ndarray]:
    """Return the standard deviation over folds by task and model; NaN for one fold."""
    return [pd.DataFrame(table[order]).std(axis=1).to_numpy() for table in cells.folds]


def states_of(cells: Cells, order: np.ndarray) -> list[str]:
    """Return one sign per model for each task."""
    return ["".join(STATE_LETTERS[state] for state in states) for states in cells.states[order].T]


def folds_of(
    cells: Cells, order: np.ndarray, max_numbers: int
) -> tuple[list[list[Any]] | None, list[str]]:
    """Return the scores of folds by task and model, unless there are too many."""
    numbers = sum(table.size for table in cells.folds)
    if numbers > max_numbers:
        return None, [f"Scores of single folds are left out (too many: {numbers:,})."]
    folds = []
    for table, up in zip(cells.folds, cells.higher, strict=True):
        values = (table if up else -table)[order]
        folds.append([None if np.isnan(row).all() else row for row in values])
    return folds, []


# -- curves and robustness -------------------------------------------------------------------


def make_curves(runs: Any, page: PageIndex) -> tuple[Charts, list[str]]:
    """Return one chart per task and corruption: scores over severities, with 0 for clean.

    Bands are standard deviations over folds and draws.
    """
    try:
        points = curves(runs, pool=page.pool)
    except DataError:  # no task has a corrupted view
        return [], []
    charts = []
    keys = ["task", "metric", "higher_is_better", "corruption"]
    for (task, metric, higher, corruption), part in points.groupby(keys, sort=False):
        facts = {"metric": metric, "higher": bool(higher), "corruption": corruption}
        tested = part.groupby("model")["severity"].transform("max") > 0
        lines = _lines(part[tested], "severity", page)
        for line in lines:
            spread = line.pop("std")
            line |= {"low": line["mean"] - spread, "high": line["mean"] + spread}
        charts.append({"task": page.task_place(task), **facts, "lines": lines})
    return _fitting(charts, page, "corruption")


def make_learning(runs: Any, page: PageIndex) -> tuple[Charts, list[str]]:
    """Return one chart per task and metric: values by epoch, over folds."""
    charts = []
    table = learning_curves(runs, page.pool)
    for (task, metric), part in table.groupby(["task", "metric"], sort=False):
        lines = _lines(part, "epoch", page)
        charts.append({"task": page.task_place(task), "metric": metric, "lines": lines})
    drawn, cut = _fitting(charts, page, "learning")
    if any(len(line["x"]) == MAX_POINTS for chart in drawn for line in chart["lines"]):
        cut.append(f"Learning curves have at most {MAX_POINTS} evenly sampled points.")
    return drawn, cut


def make_robustness(summary: pd.DataFrame | None) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the robustness table as texts, or None without corrupted views."""
    if summary is None:
        return None, []
    table = robustness_table(summary)
    columns = table.all_columns
    rows = [[column.cells[row].text for column in columns] for row in range(len(table))]
    cut = []
    if len(rows) > MAX_ROBUSTNESS:
        cut.append(f"The robustness table shows {MAX_ROBUSTNESS:,} of {len(rows):,} rows.")
    return {"columns": [column.name for column in columns], "rows": rows[:MAX_ROBUSTNESS]}, cut


def _lines(part: pd.DataFrame, x: str, page: PageIndex) -> Charts:
    lines = []
    for model, line in part.groupby("model", sort=False):
        number = page.model_place(model)
        line = line.sort_values(x, kind="stable")
        picked = np.linspace(0, len(line) - 1, min(len(line), MAX_POINTS)).round().astype(int)
        values = {name: line[name].to_numpy(dtype=float)[picked] for name in (x, "mean", "std")}
        lines.append({"model": number, "x": values.pop(x), **values})
    shown_lines = [line for line in lines if line["model"] is not None]
    return sorted(shown_lines, key=lambda line: line["model"])


def _fitting(charts: Charts, page: PageIndex, what: str) -> tuple[Charts, list[str]]:
    """Return the charts with the lines of as many models as there is room for, best first."""
    charts = [chart for chart in charts if chart["task"] is not None and chart["lines"]]
    needed = np.zeros(len(page.models))
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


def make_cards(page: PageIndex) -> list[dict[str, Any]]:
    """Return one card per dataset name and fingerprint."""
    cards: dict[tuple[str, str], dict[str, Any]] = {}
    for run in page.runs:
        for task in run.run.about["tasks"]:
            number = run.tasks.get(task["name"])
            name = str(task.get("dataset") or "")
            if number is None or not name:
                continue
            card = cards.setdefault((name, str(task.get("fingerprint") or "")), _card(task, name))
            if number not in card["tasks"]:
                card["tasks"].append(number)
    sorted_cards = sorted(cards.values(), key=lambda card: min(card["tasks"]))
    return [{**card, "tasks": sorted(card["tasks"])} for card in sorted_cards]


def _card(task: Mapping[str, Any], name: str) -> dict[str, Any]:
    description = task.get("about")
    facts = {**(description if isinstance(description, Mapping) else {}), **task}
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


def make_tests(gathered: Gathered, cells: Cells, order: np.ndarray) -> dict[str, Any]:
    """Return the tests of a page, the same as in the leaderboard and in ``compare_all``.

    ``pairs`` holds p of every pair, corrected for all pairs of its group, and the mean difference
    of normalized scores (1 is the best model of a task, 0 the worst); ``by_task`` the tests of each
    task. Groups that share too few tasks are tested by themselves; ``groups`` has the test of all
    models of each.
    """
    compared, models = apply_missing_rule(cells, RULE), len(order)
    tests = TaskTests(gathered, gathered.chosen({}))
    position = np.argsort(order)
    p, difference = np.full((2, models, models), np.nan)
    groups = []
    for group in connected(gathered, cells).values():
        part = compared.only(group.tasks, group.models).by_name()
        mean = mean_ranks(rank_each(part.values, part.takes))
        separation = separate_models(part, tests)
        many = compare_models(scale_scores(part), mean, separation)
        at = np.ix_(position[group.models], position[group.models])
        p[at] = np.where(np.isnan(p[at]), many.pairs, p[at])
        difference[at] = np.where(np.isnan(difference[at]), many.difference, difference[at])
        cliques = [[int(position[group.models[m]]) for m in clique] for clique in many.cliques]
        groups.append({**_omnibus(many), "why": separation.why, "cliques": cliques})
    return {
        **groups[0],
        "cliques": [clique for group in groups for clique in group["cliques"]],
        "pairs": {"p": p, "diff": difference} if 1 < models <= MAX_MODELS else None,
        "by_task": make_task_tests(gathered, cells, order),
        "differences": make_task_differences(compared, tests, order),
        "groups": groups,
    }


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


def _omnibus(many: ManyModels) -> dict[str, Any]:
    """Return the names of the tests, and the test of all models, if there is one."""
    test = {"test": many.omnibus, "statistic": many.statistic, "p": many.p}
    friedman = {**test, "tasks": many.tasks} if many.tasks > 1 and len(many.ranks) > 1 else None
    return {"procedure": many.test, "friedman": friedman}


def make_task_tests(gathered: Gathered, cells: Cells, order: np.ndarray) -> list[dict[str, Any]]:
    """Return the test of each pair on each task, as ``karat compare`` of the two makes it.

    With many models and tasks, only pairs of the best models are tested. p is that of items and
    fits, or of the corrected t over folds where there are too many stored predictions to read; it
    is not corrected for several tasks or pairs. ``why`` tells why there is none, ``claim`` whether
    it is about the learners or the models as fitted, ``unit`` what the unit of items is.
    """
    tasks, metrics = len(cells.tasks), gathered.chosen({})
    best = order[: int(np.sqrt(MAX_TASK_TESTS / max(tasks, 1)))]
    names = [cells.models[m] for m in best]
    ratios = fold_ratios(gathered, cells.tasks)
    single = [len(table.T) == 1 for table in cells.folds]
    every = sum(table.shape[1] for table in cells.folds) * len(best) <= MAX_FILES
    read = tasks == 1 or sum(single) * len(best) <= MAX_FILES
    tests = []
    for t, task in enumerate(cells.tasks):
        p, test, why = _over_folds(cells.folds[t][best], ratios[t])
        claim, unit, clusters = LEARNERS if test else "", "", 0
        if read and (every or tasks == 1 or single[t]):
            items = item_separation(gathered, task, metrics[task], names, corrected=False)
            p = np.where(np.isnan(items.p), p, items.p)
            test, claim = items.test or test, items.claim or claim
            unit, clusters = _unit_of(items, gathered.cluster), items.clusters
        facts = {"test": test, "why": "" if test else why, "claim": claim, "unit": unit}
        tests.append({**facts, "clusters": clusters, "p": p if test else None})
    return tests


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
    findings: Sequence[Finding], page: PageIndex
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the findings with indices of model and task, and notes on what was left out."""
    rows = [
        {
            "code": finding.code,
            "title": rule_of(finding.code).title,
            "level": finding.level,
            "model": page.model_place(finding.model),
            "task": page.task_place(finding.task),
            "message": cut_text(finding.message, MESSAGE),
            "advice": finding.advice,
        }
        for finding in findings[:MAX_FINDINGS]
    ]
    rest = len(findings) - len(rows)
    more = f"{count(rest, 'finding')} left out (most severe first)."
    return rows, [more] if rest else []


# -- runs and failures -----------------------------------------------------------------------


def make_runs(page: PageIndex) -> list[dict[str, Any]]:
    """Return the folder, command, seed, versions and job counts of each run."""
    return [
        {
            "model": page_run.model,
            "folder": page_run.run.folder.resolve().name,
            "command": command_text(page_run.run.about.get("command")),
            "seed": page_run.run.about.get("seed"),
            "versions": _versions(page_run.run.about),
            "platform": page_run.run.about.get("platform"),
            "jobs": sum(record["fold"] is not None for record in page_run.records),
            "ok": sum(record["status"] == "ok" for record in page_run.records),
            "failed": sum(record["status"] in FAILURES for record in page_run.records),
        }
        for page_run in page.runs
    ]


def _versions(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of Karat, Python, the model and libraries."""
    versions = {name: facts.get(name) for name in ("karat", "python")} | {
        "model": facts.get("version")
    }
    libraries = facts.get("versions")
    versions |= libraries if isinstance(libraries, Mapping) else {}
    return {str(name): str(version) for name, version in versions.items() if version}


def make_failures(page: PageIndex) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the failed jobs with the ends of their logs, and notes on what was left out."""
    failed = list(page.failed)
    width = min(LOG, LOGS // max(min(len(failed), MAX_FAILURES), 1))
    failures, unread = [], []
    for run, task, record in failed[:MAX_FAILURES]:
        log = _log(run, record, width)
        if log is None:
            label = f"{short(page.models[run.model])} on {short(page.tasks[task])}"
            unread.append(f"{label}, fold {record['fold']}: the log cannot be read.")
        facts = {key: record[key] for key in ("fold", "status")}
        facts |= {"info": cut_text(str(record["info"]), INFO), "log": log or ""}
        failures.append({"model": run.model, "task": task, **facts})
    cut = first_sentences(unread, lambda n: f"{n} more logs cannot be read.")
    if len(failed) > MAX_FAILURES:
        more = count(len(failed) - MAX_FAILURES, "failed job")
        cut.append(f"{more} more, see results.csv in the run folders.")
    if width < LOG and any(failure["log"] for failure in failures):
        cut.append(f"Logs are cut to their last {width:,} characters.")
    unlisted = sum(
        record["status"] in FAILURES and record["task"] not in run.tasks
        for run in page.runs
        for record in run.records
    )
    if unlisted:
        cut.append(f"{count(unlisted, 'failed job')} of tasks without any score not listed.")
    return failures, cut


def _log(page_run: ShownRun, record: Mapping[str, Any], width: int) -> str | None:
    """Return the end of a job's log; empty if there is none, None if it cannot be read."""
    path = page_run.run.log(record)
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - 4 * width, 0))
            return file.read().decode("utf-8", "replace")[-width:]
    except FileNotFoundError:
        return ""
    except OSError:
        return None


# -- the HTML file ----------------------------------------------------------------------------


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
            [(*_names(bundle, row), *(row[key] for key in finding)) for row in checks],
        ),
        (
            f"Failures: {len(failures):,}",
            ("model", "task", "fold", "reason"),
            [(*_names(bundle, row), row["fold"], row["info"]) for row in failures],
        ),
        ("Datasets", card, [[row[key] for key in card] for row in bundle["cards"]]),
        ("Provenance", run, [[_joined(row[key]) for key in run] for row in bundle["runs"]]),
    ]
    lines = _paragraphs(verdict_lines(bundle.get("verdict", ())))
    sections = [("Verdict", lines)] if lines else []
    sections += [(name, to_html(row, classes=True)) for name, row in leaderboard_tables(bundle)]
    sections += [(section.title, _section_text(section)) for section in plain_added(bundle)]
    sections += [(title, _rows(names, rows)) for title, names, rows in tables if rows]
    items = "".join(f"<li>{escape(plain(sentence))}</li>" for sentence in bundle["cut"])
    sections += [("Left out", f'<ul class="notes">{items}</ul>')] if items else []
    return [f"<section><h2>{escape(title)}</h2>{text}</section>" for title, text in sections]


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


def _names(bundle: Bundle, row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the model and the task, or empty texts."""
    for key, named in (("model", bundle["models"]), ("task", bundle["tasks"])):
        yield "" if row[key] is None else short(named[row[key]]["name"], NAME)


def _joined(value: Any) -> Any:
    return ", ".join(map(" ".join, value.items())) if isinstance(value, dict) else value


def leaderboard_tables(bundle: Bundle) -> Iterator[tuple[str, Table]]:
    """Yield title and table of each group of models that can be compared."""
    # the page of a server without runs has no group
    groups = bundle.get("groups") or [{"name": "", "models": [], "tasks": [], "rows": []}]
    captions, notes = bundle["notes"][: len(groups)], bundle["notes"][len(groups) :]
    small = len(bundle["models"]) * len(bundle["tasks"]) <= MAX_CELLS
    if not small:
        number = len(bundle["tasks"])
        notes = [*notes, f"Scores on {number:,} tasks are shown with JavaScript only."]
    for position, group in enumerate(groups):
        last = position == len(groups) - 1
        columns = _columns(bundle, group, small)
        title = f"Leaderboard: {group['name']}" if len(groups) > 1 else "Leaderboard"
        yield title, Table([], *columns, [], captions[position], notes if last else [])


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
        text_column("rank", ranks),
        text_column("95 %", spans),
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


def _numbers(models: Sequence[Mapping[str, Any]], key: str) -> Iterator[Column]:
    """Yield the column of a rating or a cost, if a model has one."""
    heading, form, unit = _COSTS.get(key) or (key, _RATINGS[key], 1.0)
    values = [model[key] for model in models]
    best = _best(values, True)
    if best is not None:
        texts = ["–" if value is None else form.format(value * unit) for value in values]
        marks = [key in _RATINGS and value == best for value in values]
        part = "rank" if key in _RATINGS else "cost"
        yield Column(
            heading,
            [Cell(*text_and_mark) for text_and_mark in zip(texts, marks, strict=True)],
            part=part,
        )


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


def _tags(bundle: Mapping[str, Any], title: str) -> str:
    """Return the icon of the page, and what links to the page show."""
    lines = [*verdict_lines(bundle.get("verdict", ())), *bundle["notes"]]
    description = escape(clean(plain(next(iter(lines), ""))))
    texts = {"og:type": "website", "og:site_name": "Karat", "og:title": title}
    texts |= {"og:description": description} if description else {}
    meta = "".join(f'<meta property="{name}" content="{text}">' for name, text in texts.items())
    named = f'<meta name="description" content="{description}">' if description else ""
    return f'{named}{meta}<link rel="icon" href="data:image/svg+xml,{quote(ICON)}">'


def policy(scripts: Sequence[str], live: bool = False) -> str:
    """Return the content security policy: these scripts, and requests to its server if live."""
    sums = (base64.b64encode(bytes.fromhex(sha256_of(script))).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{script}'" for script in sums) or "'none'"
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
    page_list = sorted(
        (f for f in folder.iterdir() if f.name.endswith(ending)), key=lambda f: f.name
    )
    return [file.read_text(encoding="utf-8") for file in page_list]
