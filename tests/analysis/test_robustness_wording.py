"""The table of robustness: columns, directions, intervals, groups, notes and widths."""

from __future__ import annotations

import io
import re

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from karat.analysis.robustness import Robustness, robustness
from karat.analysis.robustness_wording import robustness_table
from karat.reporting.formats import to_latex, to_markdown

from ..score_data import score_table


def scores(folds: int = 1, metric: str = "auc", **models: list[float]) -> pd.DataFrame:
    """Return a table of models with a clean score and those at noise@0.1, noise@0.2, gaps@0.1."""
    views = [("", 0.0), ("noise", 0.1), ("noise", 0.2), ("gaps", 0.1)]
    parts = [
        score_table(
            {"t": {m: v[i] + np.arange(folds) / 100 for m, v in models.items() if v[i:]}}
        ).assign(metric=metric, corruption=corruption, severity=severity)
        for i, (corruption, severity) in enumerate(views)
    ]
    return pd.concat(parts)


TWO = {"strong": [0.9, 0.8, 0.8, 0.6], "weak": [0.95, 0.7, 0.5, 0.3]}


def shown(found: Robustness, width: int = 300) -> str:
    file = io.StringIO()
    found.print_on_terminal(Console(file=file, width=width, color_system=None))
    return file.getvalue()


def column(table, name: str) -> list[tuple[str, bool]]:
    (found,) = [each for each in table.columns if each.name == name]
    return [(cell.text, cell.best) for cell in found.cells]


def test_columns_and_the_best_of_each():
    table = robustness_table(robustness(scores(**TWO), baseline="weak"), "weak")
    assert [cell.text for cell in table.model.cells] == ["strong", "weak"]
    assert column(table, "clean") == [("0.900", False), ("0.950", True)]
    # strong: (.8 + .6) / 2, weak: (.6 + .3) / 2
    assert column(table, "corrupted") == [("0.700", True), ("0.450", False)]
    # mean errors .2 and .4 over .4 and .7
    assert column(table, "mCE") == [("0.545", True), ("1.000", False)]
    assert column(table, "worst view") == [("gaps@0.1", False), ("gaps@0.1", False)]
    assert [each.name for each in table.columns] == [
        *("clean", "corrupted", "retention", "area", "worst", "mCE", "rel. mCE", "worst view")
    ]


def test_best_values_of_error_metrics():
    table = robustness_table(robustness(scores(metric="rmse", a=[2, 3, 5, 4], b=[1, 5, 7, 6])))
    assert column(table, "clean") == [("2.000", False), ("1.000", True)]
    assert column(table, "worst") == [("5.000", True), ("7.000", False)]
    assert [best for _, best in column(table, "retention")] == [True, False]
    assert [cell.text for cell in table.groups[1].cells] == ["rmse ↓", "rmse ↓"]


def test_without_a_baseline_there_is_no_column_for_it():
    table = robustness_table(robustness(scores(**TWO)))
    assert not any("CE" in each.name for each in table.columns)
    assert not any("mCE" in note for note in table.notes)


def test_intervals_are_in_brackets():
    assert "[" not in shown(robustness(scores(**TWO))).partition("corrupted:")[0]
    # two folds a hundredth apart
    assert "0.705 [0.700, 0.710]" in shown(robustness(scores(folds=2, **TWO)))


def test_a_group_per_task_and_per_corruption():
    several = pd.concat([scores(**TWO), scores(metric="rmse", a=[1, 2, 3, 4]).assign(task="u")])
    table = robustness_table(robustness(several))
    assert table.starts == [0, 2]
    each = robustness(several, by_corruption=True, baseline="weak")
    table = robustness_table(each, "weak")
    assert table.starts == [0, 2, 4, 5]
    assert column(table, "CE")[:2] == [("0.500", True), ("1.000", False)]
    assert column(table, "CE")[4:] == [("–", False), ("–", False)], "u has no run of weak"
    text = shown(each)
    assert re.search(r"t +noise +auc ↑", text) and re.search(r"u +gaps +rmse ↓", text)
    assert "mean over severities" in text and "mean over corruptions" not in text


def test_notes_name_the_baseline_and_missing_corruptions():
    found = robustness(scores(**TWO, half=[0.9, 0.8, 0.8]), baseline=["zzz", "weak"])
    text = " ".join(shown(found).split())
    assert "zzz or weak" in text
    assert "t: compared without gaps, which half lacks." in text


def test_the_direction_of_an_unregistered_metric():
    found = robustness(scores(**TWO)).assign(metric="own", higher_is_better=False)
    table = robustness_table(found)
    assert table.groups[1].cells[0].text == "own ↓"
    assert column(table, "corrupted") == [("0.700", False), ("0.450", True)]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_every_block_on_a_screen_has_numbers_and_fits(width):
    text = shown(robustness(scores(folds=2, **TWO), baseline="weak"), width)
    assert max(map(len, text.splitlines())) <= width
    lines = [line for line in text.splitlines() if line.strip().startswith("strong")]
    assert lines and all(re.search(r"\d|@", line) for line in lines)


def test_markdown_and_latex_escape_names():
    strange = {"<script>": [0.9, 0.8, 0.8, 0.6], "a_b $x$": [0.9, 0.7, 0.5, 0.3]}
    table = robustness_table(robustness(scores(**strange)))
    markdown, latex = to_markdown(table), to_latex(table)
    assert "<script>" not in markdown and "&lt;script&gt;" in markdown
    assert r"a\_b \$x\$" in latex
    assert "**0.700**" in markdown
