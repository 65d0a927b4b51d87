"""``karat leaderboard``: columns, missing scores and invalid options."""

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
    options = ["--columns", "elo:dummy, borda,pareto", "--sort", "elo", "--format", "csv"]
    code, out, err = cli("leaderboard", results, *options)
    assert (code, err) == (0, "")
    board = karat.leaderboard(results, columns=["elo:dummy", "borda", "pareto"], sort="elo")
    assert list(frame(out).columns) == list(board.columns)
    pd.testing.assert_frame_equal(frame(out), pd.DataFrame(board), check_dtype=False)
    assert frame(out).loc["dummy", "elo"] == 1500


def test_ratings_and_pareto_front(results, cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = cli("leaderboard", results, "--columns", "elo,borda,pareto,costs")
    assert code == 0
    board = karat.leaderboard(results, columns=["pareto"])
    assert f"{', '.join(board.index[board['pareto']])}." in out
    expected = "model rank 95 % tie borda elo 95 % pareto failed n/a time memory dims"
    assert out.splitlines()[0].split() == expected.split()


def test_common_is_exclude(results, cli):
    shape = ("--format", "csv")
    outs = [
        cli("leaderboard", results, *options, *shape).out
        for options in ([], ["--common"], ["--missing", "exclude"], ["--missing", "common"])
    ]
    assert outs[1] == outs[2] == outs[3]
    assert frame(outs[0])["rank"].tolist() != frame(outs[1])["rank"].tolist()
    code, out, err = cli("leaderboard", results, "--common", "--missing", "penalise")
    assert code == 2 and "--common" in err and not out


def test_penalise(results, cli):
    ranks = [
        cli("leaderboard", results, "--missing", rule, "--format", "csv").out
        for rule in ("worst", "penalise")
    ]
    assert ranks[0] != ranks[1]


def test_html(results, cli):
    code, out, _ = cli("leaderboard", results, "--format", "html")
    assert code == 0 and out.startswith("<div") and out.count("<table") == 1
    assert out.count("<tr") == 1 + 3 and "<script" not in out and "http" not in out


def test_unknown_column(results, cli):
    code, out, err = cli("leaderboard", results, "--columns", "brda")
    assert (code, out) == (2, "")
    assert '"brda"' in err and '"borda"' in err and err.count("\n") == 1
