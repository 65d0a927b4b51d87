"""Ranks and tests of 100 models on 200 tasks: scikit-posthocs, autorank and bencheval.

Whole processes, imports included, that read one CSV file. scikit-posthocs makes Friedman's test and
Wilcoxon's tests of all pairs after Holm, as Karat does with ``test="wilcoxon"``; autorank chooses
Friedman's and Nemenyi's test; bencheval computes ranks only. What both sides compute is compared.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from recipe import Case, Recipe

MODELS, TASKS = 100, 200
READ = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, pandas as pd
table = pd.read_csv(sys.argv[1], index_col=0)
def show(**scores):
    print("scores=" + json.dumps({name: float(value) for name, value in scores.items()}))
"""
KARAT = (
    READ
    + """
from karat.analysis import compare_models
from karat.analysis.all_pairs import separate
values = table.to_numpy()
found = compare_models(values, separation=separate(values, test="wilcoxon"))
show(first=found.ranks[0], last=found.ranks[-1], friedman=found.statistic, p=found.pairs[0, 60])
"""
)
POSTHOCS = (
    READ
    + """
import scikit_posthocs
from scipy.stats import friedmanchisquare, rankdata
ranks = rankdata(-table.to_numpy(), axis=0).mean(axis=1)
p = scikit_posthocs.posthoc_wilcoxon(
    table.T.melt(), val_col="value", group_col="model", p_adjust="holm"
)
show(first=ranks[0], last=ranks[-1], friedman=friedmanchisquare(*table.to_numpy()).statistic,
     p=p.loc[table.index[0], table.index[60]])
"""
)
AUTORANK = (
    READ
    + """
from autorank import autorank
ranks = autorank(table.T, alpha=0.05, verbose=False).rankdf["meanrank"]
show(first=ranks[table.index[0]], last=ranks[table.index[-1]])
"""
)
BENCHEVAL = (
    READ
    + """
from bencheval.evaluator import BenchmarkEvaluator
results = table.T.rename_axis("task").reset_index().melt(
    id_vars="task", var_name="method", value_name="metric_error"
)
results["metric_error"] = 2 - results["metric_error"]  # must not be negative
ranks = BenchmarkEvaluator(columns_to_agg_extra=[]).leaderboard(results, include_elo=False)["rank"]
show(first=ranks[table.index[0]], last=ranks[table.index[-1]])
"""
)


def prepare(folder: Path) -> list[Case]:
    """Write the table; return the cases."""
    rng = np.random.default_rng(0)
    skill = 0.6 + np.linspace(0, 0.1, MODELS)[:, None] + rng.normal(0, 0.1, TASKS)
    values = (skill + rng.normal(0, 0.05, (MODELS, TASKS))).round(6)
    index, columns = (
        [f"{letter}{i}" for i in range(count)] for letter, count in (("m", MODELS), ("t", TASKS))
    )
    path = str(folder / "values.csv")
    pd.DataFrame(values, index=index, columns=columns).to_csv(path, index_label="model")
    ours = [sys.executable, "-c", KARAT, path]
    programs = {"scikit-posthocs": POSTHOCS, "bencheval": BENCHEVAL, "autorank": AUTORANK}
    return [
        Case(
            f"{name}, ranks and tests of {MODELS} × {TASKS}",
            ["{python}", "-c", program, path],
            ours,
            1.5,
            tolerance=1e-6,
            quick=name != "autorank",
        )
        for name, program in programs.items()
    ]


RECIPE = Recipe(
    title="Statistics",
    requirements=("scikit-posthocs==0.17.1", "autorank==1.3.0", "bencheval==0.1.0"),
    prepare=prepare,
    quick=True,
)
