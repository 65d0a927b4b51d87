"""``karat leaderboard``: what to show, what is common, and mistakes."""

from __future__ import annotations

import io

import pandas as pd
import pytest

import karat


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    output = tmp_path_factory.mktemp("runs")
    models = ["onehot", "dummy", "random"]
    karat.evaluate(models, ["diabetes", "wine-clusters"], folds=[0, 1], output=output)
    return output


def frame(text):
    return pd.read_csv(io.StringIO(text), index_col="model")


def test_columns_are_those_of_python(results, cli):
    options = ["--columns", "elo:dummy, borda,pareto", "--sort", "elo", "--csv"]
    code, out, err = cli("leaderboard", results, *options)
    assert (code, err) == (0, "")
    board = karat.leaderboard(results, columns=["elo:dummy", "borda", "pareto"], sort="elo")
    assert list(frame(out).columns) == list(board.columns)
    pd.testing.assert_frame_equal(frame(out), pd.DataFrame(board), check_dtype=False)
    assert frame(out).loc["dummy", "elo"] == 1500


def test_the_front_and_what_ratings_mean_stand_below_the_board(results, cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = cli("leaderboard", results, "--columns", "elo,borda,pareto,costs")
    assert code == 0
    board = karat.leaderboard(results, columns=["pareto"])
    front = ", ".join(board.index[board["pareto"]])
    assert f"pareto: no other model is better at a lower cost (time): {front}." in out
    assert "400 points are odds of ten to one to win a task; the mean of all is 1,500." in out
    assert "Costs are those of the tasks a model takes" in out
    heading = out.splitlines()[0].split()
    assert (
        heading == "model rank 95 % tie borda elo 95 % pareto failed n/a time memory dims".split()
    )


def test_common_is_exclude(results, cli):
    outs = [
        cli("leaderboard", results, *options, "--csv")[1]
        for options in (["--common"], ["--missing", "exclude"], ["--missing", "common"])
    ]
    assert outs[0] == outs[1] == outs[2]
    assert (
        frame(outs[0])["rank"].tolist()
        != frame(cli("leaderboard", results, "--csv")[1])["rank"].tolist()
    )
    code, out, err = cli("leaderboard", results, "--common", "--missing", "penalise")
    assert code == 2 and "--common is --missing exclude" in err and not out


def test_penalise_is_told(results, cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = cli("leaderboard", results, "--missing", "penalise")
    assert "– not applicable to this model: 1 cell, counted as the worst." in out


def test_html_is_a_table_to_put_into_a_page(results, cli):
    code, out, _ = cli("leaderboard", results, "--format", "html")
    assert code == 0 and out.startswith("<div") and out.count("<table") == 1
    assert out.count("<tr") == 1 + 3 and "<script" not in out and "http" not in out


def test_a_wrong_name_is_one_line_and_exit_code_2(results, cli):
    code, out, err = cli("leaderboard", results, "--columns", "brda")
    assert (code, out) == (2, "")
    assert err == 'error: columns: the board has no column "brda". Did you mean "borda"?\n'
