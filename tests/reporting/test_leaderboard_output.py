"""Leaderboards in a notebook.

The table of robustness to corruption.
"""

from __future__ import annotations

import inspect
import io
import pickle
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import karat
from karat.analysis import leaderboard as plain
from karat.analysis.robustness import robustness
from karat.reporting.formats import make_table, render, to_html, to_latex, to_markdown
from karat.reporting.leaderboard_output import Leaderboard, robustness_table
from karat.reporting.terminal import print_table

from ..score_data import score_table

HOSTILE = ["<script>alert(1)</script>", 'a" onmouseover="x', "\u202eleft", "&amp;", "'", "$x$ _a_"]


def table(models=("good", "bad"), tasks=4):
    scores = {model: 1 / (place + 1) for place, model in enumerate(models)}
    return score_table({f"t{t}": scores for t in range(tasks)})


class Cells(HTMLParser):
    """Collects the texts of a table by row, and all tags."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags, self.inside = [], set(), False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.inside = True
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def test_leaderboard_is_a_data_frame_with_attrs():
    board = karat.leaderboard(table(), columns=["elo", "tasks"])
    same = plain.leaderboard(table(), columns=["elo", "tasks"])
    assert isinstance(board, Leaderboard)
    pd.testing.assert_frame_equal(pd.DataFrame(board), same)
    assert board.attrs == same.attrs
    assert inspect.signature(karat.leaderboard) == inspect.signature(plain.leaderboard)
    assert karat.leaderboard.__doc__ == plain.leaderboard.__doc__


def test_what_pandas_makes_of_it_is_plain():
    board = karat.leaderboard(table())
    for made in (board.head(1), board[["rank"]], board.sort_values("rank"), board.copy()):
        assert type(made) is pd.DataFrame
    assert type(board["rank"]) is pd.Series
    again = pickle.loads(pickle.dumps(board))
    pd.testing.assert_frame_equal(pd.DataFrame(again), pd.DataFrame(board))


def test_a_notebook_shows_the_cells_of_the_table():
    board = karat.leaderboard(table(tasks=6), columns=["borda", "elo", "tasks"])
    shown = Cells(board._repr_html_())
    expected = [[cell.text for cell in column.cells] for column in make_table(board).all_columns]
    assert shown.rows[1:] == [list(row) for row in zip(*expected, strict=True)]
    assert shown.rows[0][:4] == ["model", "rank", "95 %", "tie"]
    assert shown.rows[0][5:7] == ["elo", "95 %"] and shown.rows[0][7] == "t0acc ↑"
    assert "share a letter" in board._repr_html_()


@pytest.mark.parametrize("by", [None, "task"])
@pytest.mark.parametrize("width", [80, 120])
def test_print_shows_ranks_and_scores_within_the_width(monkeypatch, capsys, by, width):
    monkeypatch.setenv("COLUMNS", str(width))
    board = karat.leaderboard(table(["good", "a-bad-model-with-a-long-name"], tasks=12), by=by)
    print(board)
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    (first, *_) = [line.split() for line in lines if line.startswith(" good")]
    assert first[:2] == ["good", "1.0"]
    assert all(f"t{t}" in text for t in range(12)) and "0.5" in text
    assert repr(board) == str(board) == text.rstrip("\n")


def test_the_plain_frame_of_a_leaderboard():
    board = karat.leaderboard(table())
    assert type(board.frame) is pd.DataFrame
    pd.testing.assert_frame_equal(board.frame, plain.leaderboard(table()))
    assert board.frame.attrs == board.attrs
    assert str(board.frame) == str(plain.leaderboard(table()))


def test_it_shows_as_much_as_pandas_would():
    board = karat.leaderboard(table([f"m{i:03d}" for i in range(100)], tasks=30))
    with pd.option_context("display.max_rows", 60, "display.max_columns", 20):
        text = board._repr_html_()
    assert "40 more rows" in text and "10 more tasks" in text
    rows = Cells(text).rows
    # the columns "tie" and "time" also start with t
    assert len(rows) == 61 and sum(name.startswith("t") for name in rows[0]) == 20 + 2
    with pd.option_context("display.max_rows", None, "display.max_columns", None):
        assert len(Cells(board._repr_html_()).rows) == 101


def test_leaderboard_without_its_columns_is_a_plain_table():
    board = karat.leaderboard(table())
    del board["tie"]
    assert "<table" in board._repr_html_() and "0.5" in board._repr_html_()
    assert str(board) == str(board.frame)


@pytest.mark.parametrize("by", [None, "task"])
def test_names_are_texts(by):
    rows = table([*HOSTILE, "x" * 10_000])
    rows["task"] = rows["task"].replace({"t0": HOSTILE[0], "t1": HOSTILE[1]})
    text = to_html(plain.leaderboard(rows, by=by))
    found = Cells(text)
    assert found.tags <= set("div table caption thead tbody tr th td br small b i p bdi".split())
    assert "<script" not in text and 'onmouseover="' not in text and "\u202e" not in text
    names = [row[0 if by is None else 2] for row in found.rows[1:]]
    assert HOSTILE[0] in names and HOSTILE[1] in names and "�left" in names


def test_groups_are_named_once_and_the_best_is_bold():
    board = plain.leaderboard(table(), by="task")
    text = render(board, "html")
    rows = Cells(text).rows
    assert [row[0] for row in rows[1:]] == ["t0", "", "t1", "", "t2", "", "t3", ""]
    assert text.count("<b>1.000</b>") == 4
    assert np.isclose(board["score"].max(), 1)


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


def shown(found: pd.DataFrame, baseline=None, width: int = 300) -> str:
    file = io.StringIO()
    print_table(
        robustness_table(found, baseline), Console(file=file, width=width, color_system=None)
    )
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
    text = shown(each, "weak")
    assert re.search(r"t +noise +auc ↑", text) and re.search(r"u +gaps +rmse ↓", text)
    assert "mean over severities" in text and "mean over corruptions" not in text


def test_notes_name_the_baseline_and_missing_corruptions():
    found = robustness(scores(**TWO, half=[0.9, 0.8, 0.8]), baseline=["zzz", "weak"])
    text = " ".join(shown(found, ["zzz", "weak"]).split())
    assert "zzz or weak" in text
    assert "t: compared without gaps, which half lacks." in text


def test_the_direction_of_an_unregistered_metric():
    found = robustness(scores(**TWO)).assign(metric="own", higher_is_better=False)
    table = robustness_table(found)
    assert table.groups[1].cells[0].text == "own ↓"
    assert column(table, "corrupted") == [("0.700", False), ("0.450", True)]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_every_block_on_a_screen_has_numbers_and_fits(width):
    text = shown(robustness(scores(folds=2, **TWO), baseline="weak"), "weak", width)
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
