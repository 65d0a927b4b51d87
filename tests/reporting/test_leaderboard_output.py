"""Leaderboards in a notebook.

The table of robustness to corruption.
"""

from __future__ import annotations

import inspect
import pickle
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import karat
from karat.analysis import leaderboard as plain
from karat.reporting.formats import make_table, render, to_html
from karat.reporting.leaderboard_output import Leaderboard

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
