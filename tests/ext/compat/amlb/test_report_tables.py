"""The tables of the AutoML Benchmark's reports: by hand, and those of its published results."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import karat
from karat.errors import DataError
from karat.ext.compat.amlb.report_tables import report_tables
from karat.ext.compat.convert import export_results

from ....skips import original_file

#: framework, then its scores in two folds of a task of higher and of one of lower values
SCORES = {
    "constantpredictor": (0.5, 0.5, -1.0, -1.0),
    "RandomForest": (0.75, 0.625, -0.5, -0.25),
    "TunedRandomForest": (1.0, 0.75, -0.5, -0.5),
    "Mine": (0.875, None, -0.75, -0.5),
    "Broken": (None, None, -0.25, -0.25),
}
#: hours of the published results: the files of results, with and without _ref
PUBLISHED = {
    "1h": ("small-8c1h", "medium-8c1h"),
    "4h": ("small-8c4h", "medium-8c4h", "large-8c4h"),
}
#: H2OAutoML on this task: a row of the results has its log loss in two columns, and the published
#: score, normalized score and rank have one fold with the wrong sign
SHIFTED = "jungle_chess_2pcs_raw_endgame_complete"


def jobs() -> pd.DataFrame:
    rows = [
        (kind, task, fold, name, values[place * 2 + fold], task == "Kc2")
        for place, (kind, task) in enumerate((("binary", "Kc2"), ("multiclass", "iris")))
        for name, values in SCORES.items()
        for fold in (0, 1)
    ]
    columns = ["type", "task", "fold", "framework", "score", "higher_is_better"]
    return pd.DataFrame(rows, columns=columns)


def tables(jobs: pd.DataFrame) -> dict[str, list[list[str]]]:
    return {name: table.astype(str).to_numpy().tolist() for name, table in report_tables(jobs)}


def test_lost_folds_have_the_score_of_the_random_forest_unless_all_are_lost():
    made = tables(jobs())
    # broken, constantpredictor, mine, randomforest, tunedrandomforest
    assert made["score_summary.csv"] == [
        ["binary", "kc2", "", "0.5", "0.75 (1)", "0.6875", "0.875"],
        ["multiclass", "iris", "-0.25", "-1", "-0.625", "-0.375", "-0.5"],
    ]
    # results are as documented: a loss is positive
    assert made["result_summary.csv"][1][2:] == ["0.25", "1", "0.625", "0.375", "0.5"]


def test_a_normalized_score_is_the_mean_of_those_of_the_folds():
    (kc2, iris) = tables(jobs())["norm_score_summary.csv"]
    assert kc2[2:] == ["", "0", "0.625 (1)", "0.5", "1"]  # mine: .75 and .5
    assert iris[2:] == ["1.5", "0", "0.75", "1.25", "1"]


def test_ranks_of_tasks_leave_out_references_and_those_of_folds_lost_scores():
    made = tables(jobs())
    assert made["tasks_leaderboard.csv"] == [
        ["binary", "kc2", "", "2 (1)", "1"],
        ["multiclass", "iris", "1", "3", "2"],
    ]
    assert made["folds_leaderboard.csv"] == [
        ["binary", "kc2", "0", "", "4", "2", "3", "1"],
        ["binary", "kc2", "1", "", "3", "", "2", "1"],
        ["multiclass", "iris", "0", "1", "4", "3", "2", "2"],
        ["multiclass", "iris", "1", "1", "3", "2", "1", "2"],
    ]


def test_without_references_nothing_is_replaced_or_normalized():
    mine = jobs()
    made = tables(mine[mine["framework"] == "Mine"])
    assert set(made) == {
        "result_summary.csv",
        "score_summary.csv",
        "tasks_leaderboard.csv",
        "folds_leaderboard.csv",
    }
    assert made["score_summary.csv"][0] == ["binary", "kc2", "0.875"]


def test_results_of_two_constraints_are_refused():
    with pytest.raises(DataError, match=r"several results of mine on kc2, fold 0: .* constraint"):
        tables(pd.concat([jobs(), jobs()[6:7], jobs().query("framework == 'Mine'")]))


def published(hours: str, name: str) -> pd.DataFrame:
    path = original_file(f"amlb_2019_{hours}_{name}")
    return pd.read_csv(path, dtype=str, keep_default_na=False).replace("nan", "")


def number(cell: str) -> tuple[float, str]:
    """Return the number of a cell, and the number of lost folds after it."""
    value, _, lost = cell.partition(" ")
    return float(value or "nan"), lost


@pytest.mark.parametrize("hours", PUBLISHED)
def test_published_tables(tmp_path, hours):
    expected = {
        f"{name}.csv": published(hours, name)
        for name in ("result_summary", "norm_score_summary", "tasks_leaderboard")
    }
    files = [
        original_file(f"amlb_2019_{part}{end}") for part in PUBLISHED[hours] for end in ("", "_ref")
    ]
    runs = karat.import_results(files, tmp_path / "runs").runs
    runs = [run for run in runs if run.model != "oboe"]  # it is not in the published tables
    written = {path.name: path for path in export_results(runs, "amlb-report", tmp_path)}
    differing = []
    for name, table in expected.items():
        ours = pd.read_csv(Path(written[name]), dtype=str, keep_default_na=False)
        ours = ours.set_index("task").reindex(columns=table.columns.drop("task"))
        for task, row in table.set_index("task").iterrows():
            for framework in row.index.drop("type"):
                mine, theirs = number(ours.loc[task, framework]), number(row[framework])
                equal = mine[0] == pytest.approx(theirs[0], rel=5e-6, nan_ok=True)
                if not equal or mine[1] != theirs[1]:
                    differing.append((name, task, framework))
    jungle = [
        ("norm_score_summary.csv", SHIFTED, "h2oautoml"),
        ("tasks_leaderboard.csv", SHIFTED, "h2oautoml"),
        ("tasks_leaderboard.csv", SHIFTED, "tpot"),
    ]
    assert differing == (jungle if hours == "4h" else [])
