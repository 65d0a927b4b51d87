"""Simulations with known truth of the intervals, letters and top sets of leaderboards.

Scores are a model's skill, an effect of the task on the model, and the noise of folds that share
training rows; 8 % of the cells are missing. The truth is what the same generator gives on 20,000
tasks with the same number of folds and without missing cells: expected ranks among all models, and
Bradley–Terry strengths. ``--missing`` makes the tables about models that take different tasks,
``--leads`` that of the differences of the first model's rank to those of the others.

    python benchmarks/calibration.py [--runs N] [--quick] [--missing | --leads]
"""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from karat.analysis.item_tests import fold_separation
from karat.stats.pairwise_ranks import mean_ranks
from karat.stats.ranking import (
    CENTER,
    POINTS,
    borda,
    bradley_terry,
    compact_letters,
    elo,
    rank_bounds,
    rank_intervals,
    rank_leads,
    step_down,
    top_set,
)

MODELS, TASKS, FOLDS = (3, 10, 30), (6, 10, 20, 50), (1, 5)
MISSING = 0.08
#: standard deviation of one fold; the effects of tasks have 1
NOISE = 0.5
TRUTH_TASKS = 20_000
LEVEL = 0.05

Effects = Callable[[np.random.Generator, int, int], np.ndarray]
#: by how many standard deviations the models that take all tasks are worse
WORSE = (0.0, 0.3, 0.6)
#: shares of missing cells
SHARES = (0.0, 0.1, 0.2, 0.3)


def normal(rng: np.random.Generator, models: int, tasks: int) -> np.ndarray:
    return rng.normal(size=(models, tasks))


def heavy(rng: np.random.Generator, models: int, tasks: int) -> np.ndarray:
    return rng.standard_t(2, size=(models, tasks))


def skewed(rng: np.random.Generator, models: int, tasks: int) -> np.ndarray:
    return rng.exponential(size=(models, tasks))


def families(rng: np.random.Generator, models: int, tasks: int) -> np.ndarray:
    """Return effects of which every other model has a large part in common."""
    effects = rng.normal(0, 0.5, (models, tasks))
    effects[::2] += rng.normal(size=tasks)
    return effects


EFFECTS: dict[str, Effects] = {
    "normal": normal,
    "heavy tails": heavy,
    "skewed": skewed,
    "families": families,
}


def equal(models: int) -> np.ndarray:
    return np.zeros(models)


def third(models: int) -> np.ndarray:
    """Return skills of which the first third is better, and all others are equal."""
    return np.where(np.arange(models) < max(1, models // 3), 2.0, 0.0)


def ladder(models: int) -> np.ndarray:
    return np.linspace(3.0, 0.0, models)


def steep(models: int) -> np.ndarray:
    return np.linspace(6.0, 0.0, models)


SKILLS = {"equal": equal, "third": third, "ladder": ladder, "steep": steep}


@dataclass(frozen=True)
class Setting:
    """One generator: models with these skills, effects of this kind, and folds."""

    skills: str
    effects: str
    folds: int
    models: int

    def ranks(self, rng: np.random.Generator, tasks: int, missing: float = MISSING) -> np.ndarray:
        """Return models × tasks: ranks of the mean over folds, NaN where a cell is missing."""
        skill = SKILLS[self.skills](self.models)[:, None]
        # folds share training rows: their noise is correlated by 1 / folds
        shared = 1 / self.folds if self.folds > 1 else 0.0
        spread = NOISE * np.sqrt(shared + (1 - shared) / self.folds)
        scores = skill + EFFECTS[self.effects](rng, self.models, tasks)
        scores += rng.normal(0, spread, scores.shape)
        scores[rng.random(scores.shape) < missing] = np.nan
        return ranks_of(scores)

    @functools.cache  # noqa: B019
    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """Return expected ranks among all models, and strengths in points of Elo."""
        ranks = self.ranks(np.random.default_rng(99), TRUTH_TASKS, missing=0.0)
        games = (TRUTH_TASKS + 0.01) * (1 - np.eye(self.models))
        wins = borda(ranks) + 0.005 * (self.models - 1)
        means = ranks.mean(axis=1)
        if self.skills == "equal":
            means = np.full(self.models, means.mean())
        return means, CENTER + POINTS * bradley_terry(wins, games)


def ranks_of(scores: np.ndarray) -> np.ndarray:
    """Return ranks within tasks of scores without ties; NaN is missing, and of one model only."""
    scores = np.where((~np.isnan(scores)).sum(axis=0) < 2, np.nan, scores)
    # missing values are sorted last
    ranks = np.argsort(np.argsort(-scores, axis=0), axis=0) + 1.0
    return np.where(np.isnan(scores), np.nan, ranks)


def settings(models: int, folds: tuple[int, ...] = FOLDS) -> Iterator[Setting]:
    for skills in SKILLS:
        for effects in EFFECTS:
            for count in folds:
                yield Setting(skills, effects, count, models)


def measure_tasks(setting: Setting, tasks: int, runs: int) -> dict[str, float]:
    """Return how often intervals, tests and top sets over tasks are right."""
    expected, points = setting.truth()
    skill = SKILLS[setting.skills](setting.models)
    rng = np.random.default_rng([tasks, setting.models, setting.folds])
    rows = [_measure(setting.ranks(rng, tasks), expected, points, skill) for _ in range(runs)]
    measured = pd.DataFrame(rows)
    totals = measured[["covered", "intervals", "elo_covered", "elo_shown"]].sum()
    return {
        "rank": totals["covered"] / totals["intervals"],
        "elo": totals["elo_covered"] / totals["elo_shown"] if totals["elo_shown"] else np.nan,
        "shown": totals["elo_shown"] / (setting.models * runs),
        **measured[["false", "power", "best", "size", "agree"]].mean().to_dict(),
    }


def _measure(
    ranks: np.ndarray, expected: np.ndarray, points: np.ndarray, skill: np.ndarray
) -> dict[str, float]:
    mean, low, high = rank_intervals(ranks)
    rating = elo(ranks)
    rated = ~np.isnan(rating.mean)
    # the mean of the rated models is at the center
    true = points - (points[rated].mean() - CENTER if rated.any() else 0.0)
    p, top = step_down(ranks), top_set(ranks)
    differ, alike = p < LEVEL, skill[:, None] == skill
    apart = skill[:, None] - skill
    pairs = differ[(apart >= 1) & (apart <= 1.5)]
    best = expected == expected.min() if len(set(skill)) > 1 else np.arange(len(skill)) == 0
    return {
        "covered": float(((low <= expected) & (expected <= high)).sum()),
        "intervals": float((~np.isnan(low)).sum()),
        "elo_covered": float(((rating.low <= true) & (true <= rating.high)).sum()),
        "elo_shown": float(rated.sum()),
        "false": float((differ & alike).any()),
        "power": float(pairs.mean()) if len(pairs) else np.nan,
        "best": float(top[best].all()),
        "size": float(top.mean()),
        "agree": float(_agree(mean, p)),
    }


def _agree(mean: np.ndarray, p: np.ndarray) -> bool:
    """Return whether models share a letter if and only if the test does not separate them."""
    ranked = np.flatnonzero((~np.isnan(p)).sum(axis=1) > 1)
    order = ranked[np.argsort(mean[ranked], kind="stable")]
    letters = compact_letters(order, p < LEVEL)
    groups = [set(re.findall(r"[a-z]|\[\d+\]", text)) for text in letters]
    return all(
        bool(groups[a] & groups[b]) != (p[a, b] < LEVEL) for a in order for b in order if a < b
    )


def over_tasks(runs: int, sizes: tuple[tuple[int, ...], tuple[int, ...]]) -> pd.DataFrame:
    """Return a row per number of models and tasks: the mean over generators, and the worst."""
    rows = []
    for models in sizes[0]:
        for tasks in sizes[1]:
            measured = [
                {"skills": setting.skills, **measure_tasks(setting, tasks, runs)}
                for setting in settings(models)
            ]
            rows.append({"models": models, "tasks": tasks, **summarize(pd.DataFrame(measured))})
            print(f"{models} models, {tasks} tasks", flush=True)
    return pd.DataFrame(rows)


def summarize(measured: pd.DataFrame) -> dict[str, str]:
    """Return the columns of the table: a mean over generators, with the worst where it matters."""
    by = dict(list(measured.groupby("skills")))
    # Elo under very steep skills is mostly not shown, and given separately
    usual = measured[measured["skills"] != "steep"]
    return {
        "rank interval": _with(measured["rank"], min),
        "Elo interval": _with(usual["elo"], min),
        "Elo, steep": _with(by["steep"]["elo"], min),
        "shown": f"{usual['shown'].mean():.2f} / {by['steep']['shown'].mean():.2f}",
        "false, equal": _with(by["equal"]["false"], max),
        "false, a third better": _with(by["third"]["false"], max),
        "power, 1–1.5 apart": f"{by['ladder']['power'].mean():.2f}",
        "best in top set": _with(measured["best"], min),
        "top set": f"{by['equal']['size'].mean():.2f} / {by['ladder']['size'].mean():.2f}",
        "letters agree": f"{measured['agree'].mean():.2f}",
    }


def _with(values: pd.Series, worst: Callable[[pd.Series], float] | None = None) -> str:
    """Return a mean as text, with the worst value."""
    present = values.dropna()
    if not len(present):
        return "–"
    return f"{present.mean():.2f}" + (f" ({worst(present):.2f})" if worst else "")


def one_task(runs: int, sizes: tuple[int, ...]) -> pd.DataFrame:
    """Return false separations, coverage of rank bounds, and power on one task over folds."""
    rows = []
    for models in sizes:
        for folds in (5, 10):
            for name in ("equal", "ladder"):
                skill = SKILLS[name](models)
                rng = np.random.default_rng([models, folds])
                measured = pd.DataFrame([_measure_task(rng, skill, folds) for _ in range(runs)])
                values = {key: _with(measured[key]) for key in measured}
                rows.append({"models": models, "folds": folds, "skills": name, **values})
    return pd.DataFrame(rows)


def _measure_task(rng: np.random.Generator, skill: np.ndarray, folds: int) -> dict[str, float]:
    shared = rng.normal(0, NOISE * np.sqrt(1 / folds), (len(skill), 1))
    of_model = rng.normal(0, NOISE * np.sqrt(1 - 1 / folds), (len(skill), folds))
    scores = skill[:, None] + shared + of_model
    p = fold_separation(scores, 1 / (folds - 1)).p
    low, high, top = rank_bounds(rankdata(-scores.mean(axis=1)), p)
    # any order of equal models is true: the bounds must hold all their ranks
    least, most = rankdata(-skill, "min"), rankdata(-skill, "max")
    pairs = np.triu(np.ones(p.shape, dtype=bool), 1) & (skill[:, None] != skill)
    return {
        "any false": float(((p < LEVEL) & (skill[:, None] == skill)).any()),
        "rank bounds": float(((low <= least) & (most <= high)).mean()),
        "best in top set": float(top[0]),
        "power, all pairs": float((p < LEVEL)[pairs].mean()) if pairs.any() else np.nan,
    }


#: models of the tables about different tasks, of which half skip half of the tasks
TAKERS, TAKEN = 10, 24


def within_tasks(ranks: np.ndarray) -> np.ndarray:
    """Return the mean of ranks within tasks, the rule before ranks by pairs."""
    return np.asarray(np.nanmean(ranks, axis=1))


def half_skipped(rng: np.random.Generator, worse: float, same: bool) -> np.ndarray:
    """Return ranks of ten models: five take all tasks, five skip half, the same or any."""
    scores = rng.normal(size=(TAKERS, TAKEN))
    scores[: TAKERS // 2] -= worse
    skipped = rng.permutation(TAKEN)[: TAKEN // 2]
    for model in range(TAKERS // 2, TAKERS):
        skipped_tasks = skipped if same else rng.permutation(TAKEN)[: TAKEN // 2]
        scores[model, skipped_tasks] = np.nan
    return ranks_of(scores)


def different_takers(runs: int) -> pd.DataFrame:
    """Return the ranks of models that take all tasks or half, and how often one of all is first."""
    rows = []
    for same in (True, False):
        for worse in WORSE:
            rng = np.random.default_rng([int(10 * worse), same])
            tables = [half_skipped(rng, worse, same) for _ in range(runs)]
            row: dict[str, object] = {"skipped": "the same half" if same else "any half"}
            row["takers of all are worse by"] = f"{worse:g} sd"
            for name, rule in {"by pairs": mean_ranks, "within tasks": within_tasks}.items():
                means = np.array([rule(table) for table in tables])
                all_tasks, half = np.split(means.mean(axis=0), 2)
                row[f"ranks {name}"] = f"{all_tasks.mean():.2f} and {half.mean():.2f}"
                first = (means.argmin(axis=1) < TAKERS // 2).mean()
                row[f"a taker of all is first, {name}"] = f"{first:.2f}"
            rows.append(row)
    return pd.DataFrame(rows)


def missing_cells(runs: int) -> pd.DataFrame:
    """Return how often rank intervals hold the rank among all models, by share of missing cells."""
    rows = []
    for tasks in (10, TAKEN, 50):
        row: dict[str, object] = {"models": TAKERS, "tasks": tasks}
        for share in SHARES:
            covered = [_covered(setting, tasks, share, runs) for setting in settings(TAKERS, (5,))]
            row[f"{share:.0%} missing"] = f"{np.mean(covered):.3f} ({min(covered):.2f})"
        rows.append(row)
    return pd.DataFrame(rows)


def _covered(setting: Setting, tasks: int, share: float, runs: int) -> float:
    expected, _ = setting.truth()
    rng = np.random.default_rng([tasks, int(100 * share)])
    covered = intervals = 0
    for _ in range(runs):
        _, low, high = rank_intervals(setting.ranks(rng, tasks, share))
        covered += int(((low <= expected) & (expected <= high)).sum())
        intervals += int((~np.isnan(low)).sum())
    return covered / intervals


def leading(runs: int, sizes: tuple[tuple[int, ...], tuple[int, ...]]) -> pd.DataFrame:
    """Return how often the differences of the first model's rank to those of others are right.

    *One*: an interval holds the difference of expected ranks; *all*: those of a leaderboard do;
    *false*: a model that is as good as the first one, or better, counts as worse.
    """
    rows = []
    for models in sizes[0]:
        for tasks in sizes[1]:
            leads = pd.DataFrame([_leads(one, tasks, runs) for one in settings(models)])
            row = {"models": models, "tasks": tasks}
            row |= {name: _with(leads[name], min) for name in ("one", "all")}
            rows.append({**row, "false": _with(leads["false"], max)})
            print(f"{models} models, {tasks} tasks", flush=True)
    return pd.DataFrame(rows)


def _leads(setting: Setting, tasks: int, runs: int) -> dict[str, float]:
    expected, _ = setting.truth()
    rng = np.random.default_rng([1, tasks, setting.models, setting.folds])
    rows = []
    for _ in range(runs):
        ranks = setting.ranks(rng, tasks)
        enough = (~np.isnan(ranks)).sum(axis=1) >= min(tasks, 6)
        mean = np.where(enough, mean_ranks(ranks), np.nan)
        if np.isnan(mean).all():
            continue
        first = int(np.nanargmin(mean))
        leads, true = rank_leads(ranks, first), expected - expected[first]
        tested = ~np.isnan(leads.low)
        tested[first] = False
        held = (leads.low <= true) & (true <= leads.high)
        wrong = tested & (leads.p < LEVEL) & (leads.value > 0) & (true <= 0)
        if tested.any():
            rows.append((held[tested].mean(), held[tested].all(), wrong.any()))
    return dict(zip(("one", "all", "false"), np.mean(rows, axis=0), strict=True))


def to_markdown(table: pd.DataFrame) -> str:
    lines = [list(map(str, table.columns)), ["---"] * len(table.columns)]
    lines += [[str(value) for value in row] for row in table.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100, help="runs of each of 32 generators")
    parser.add_argument("--quick", action="store_true", help="few runs and sizes")
    parser.add_argument(
        "--missing", action="store_true", help="only models that take different tasks"
    )
    parser.add_argument(
        "--leads", action="store_true", help="only differences to the first model's rank"
    )
    arguments = parser.parse_args()
    runs = min(arguments.runs, 10) if arguments.quick else arguments.runs
    if arguments.missing:
        tables = different_takers(10 * runs), missing_cells(runs)
        print(*map(to_markdown, tables), sep="\n\n")
        return
    sizes = ((3, 10), (6, 20)) if arguments.quick else (MODELS, TASKS)
    if arguments.leads:
        print(to_markdown(leading(runs, sizes)))
        return
    table = over_tasks(runs, sizes)
    print(to_markdown(table), to_markdown(one_task(10 * runs, sizes[0])), sep="\n\n")


if __name__ == "__main__":
    main()
