"""``karat.plot``: numbers of plots, names, files and errors."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import karat
from karat.analysis.leaderboard import leaderboard
from karat.errors import DataError, DefinitionError, MissingExtra
from karat.ext.plots import figures as differences
from karat.ext.plots.figures import COLORS, FAINT, KINDS, Plot, PlotData, plot

from ...score_data import score_table, write_run

matplotlib = pytest.importorskip("matplotlib")

FLAT = sorted(set(KINDS) - {"curves", "pareto", "cheapest"})
HOSTILE = ["_under", "a $x^2$ b_c {d}", "$", "<script>alert(1)</script>", "\u202eleft", "50 % & #"]


def table(models=5, tasks=4, folds=3, seed=0, name="m{}"):
    """Return scores of models, the first the best of most tasks; the last task is an error."""
    rng = np.random.default_rng(seed)
    names = [name.format(i) for i in range(models)] if isinstance(name, str) else name
    noise = rng.normal(size=(tasks, len(names), folds)) * 0.2
    scores = 1 - np.arange(len(names))[:, None] / len(names) + noise
    made = {f"t{t}": dict(zip(names, scores[t], strict=True)) for t in range(tasks)}
    made[f"t{tasks - 1}"] = ("rmse", dict(zip(names, 5 - scores[-1], strict=True)))
    return score_table(made)


def corrupted(models=3):
    rows = table(models, tasks=2)
    noisy = [
        rows.assign(corruption="noise", severity=s, value=rows["value"] - s) for s in (0.1, 0.3)
    ]
    return pd.concat([rows, *noisy], ignore_index=True)


def texts(svg: bytes | str) -> list[str]:
    """Return what is written in an SVG picture, from first to last."""
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(each.itertext()).strip() for each in found]


def draw(kind, rows=None, **options):
    rows = rows if rows is not None else corrupted() if kind == "curves" else table()
    return plot(rows, kind, **options)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    output = tmp_path_factory.mktemp("runs")
    models = ["onehot", "dummy", "random"]
    return karat.evaluate(
        models,
        ["diabetes", "penguins", "breast-cancer"],
        only=karat.Only(folds=[0, 1]),
        output=output,
    )


def row_names(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


@pytest.mark.parametrize("value", ["rank", "elo"])
def test_board_plot_has_ratings_and_intervals(value):
    rows = table(tasks=60)
    axes = draw("board", rows, value=value).figure.axes[0]
    board = leaderboard(rows, columns=[value], sort=value)
    assert row_names(axes) == list(board.index)
    points = np.asarray(axes.collections[1].get_offsets())
    assert points[:, 0] == pytest.approx(board[value].to_numpy())
    assert points[:, 1].tolist() == list(range(5))
    lines = np.array([path.vertices[:, 0] for path in axes.collections[0].get_paths()])
    assert lines == pytest.approx(board[[f"{value}_low", f"{value}_high"]].to_numpy())
    side = axes.child_axes[0]
    assert row_names(side) == list(board["tie"])


def test_a_rating_without_any_model_is_an_error():
    with pytest.raises(DataError, match="elo"):
        draw("board", table(tasks=3), value="elo")


def test_models_with_too_few_tasks_are_gray():
    rows = table()
    rows = rows[(rows["model"] != "m0") | (rows["task"] == "t0")]
    picture = draw("board", rows)
    colors = picture.figure.axes[0].collections[1].get_facecolors()
    gray = matplotlib.colors.to_rgba(FAINT)
    # it is the first of its only task
    assert [tuple(c) == gray for c in colors] == [True] + [False] * 4
    assert "ranked on few tasks" in " ".join(texts(picture.to_bytes("svg")))


def test_on_a_few_tasks_board_and_cd_show_what_these_tasks_show():
    rows = table(tasks=3, folds=8)
    board = leaderboard(rows)
    picture = draw("board", rows)
    axes = picture.figure.axes[0]
    points = np.asarray(axes.collections[1].get_offsets())
    assert points[:, 0] == pytest.approx(board["difference"].to_numpy())
    assert row_names(axes.child_axes[0]) == list(board["tie"]) and set(board["tie"]) != {""}
    for kind in ("board", "cd"):
        written = " ".join(texts(draw(kind, rows).to_bytes("svg")))
        assert "on average over these tasks (t over these tasks, Bonferroni" in written
        assert "needs at least 6 tasks" in written and "not tested" not in written
    found = differences.tested(PlotData(rows, None, "worst"))
    assert found.tests.letters == tuple(board["tie"])


def test_a_heat_map_has_the_scores_of_the_table_and_the_colours_of_its_ranks():
    axes = draw("heatmap").figure.axes[0]
    board, long = leaderboard(table()), leaderboard(table(), by="task")
    written = {tuple(map(int, text.get_position())): text.get_text() for text in axes.texts}
    shade = axes.images[0].get_array()
    for column, task in enumerate(["t0", "t1", "t2", "t3"]):
        for row, model in enumerate(board.index):
            score = long.loc[(task, model), "score"]
            assert written[column, row] == f"{score:.3f}"
            # 1 is the best of five, 0 the last
            assert shade[row, column] == pytest.approx((5 - long.loc[(task, model), "rank"]) / 4)
    assert [t.get_text() for t in axes.get_xticklabels()] == [
        "t0  acc ↑",
        "t1  acc ↑",
        "t2  acc ↑",
        "t3  rmse ↓",
    ]


@pytest.mark.parametrize("column", [0, 3])  # higher is better, lower is better
def test_better_cells_of_a_heat_map_are_brighter_and_legible(column):
    axes = draw("heatmap").figure.axes[0]
    image = axes.images[0]
    light = image.to_rgba(image.get_array())[:, column, :3] @ [0.2126, 0.7152, 0.0722]
    scores = {int(t.get_position()[1]): t for t in axes.texts if t.get_position()[0] == column}
    values = [float(scores[row].get_text()) for row in range(len(light))]
    best, worst = (np.argmax, np.argmin) if column == 0 else (np.argmin, np.argmax)
    assert light[best(values)] == light.max() > light.min() == light[worst(values)]
    assert scores[best(values)].get_color() == "black"
    assert scores[worst(values)].get_color() == "white"


def test_heatmap_marks_missing_scores():
    rows = table()
    rows = rows[(rows["model"] != "m1") | (rows["task"] != "t2")]
    axes = draw("heatmap", rows).figure.axes[0]
    place = list(leaderboard(rows).index).index("m1")
    assert axes.images[0].get_array().mask.sum() == 1
    assert axes.images[0].get_array().mask[place, 2]
    assert "…" in {text.get_text() for text in axes.texts}


def test_cd_has_the_mean_ranks_of_the_leaderboard():
    rows = table(6, tasks=12, folds=1)
    picture = draw("cd", rows)
    board = leaderboard(rows)
    expected = {f"{name}  {rank:.2f}" for name, rank in board["rank"].items()}
    turned = {f"{rank:.2f}  {name}" for name, rank in board["rank"].items()}
    written = {text.get_text() for text in picture.figure.axes[0].texts}
    assert len(written) == 6 and written <= expected | turned
    found = differences.tested(PlotData(rows, None, "worst"))
    assert found.models == list(board.index)
    assert found.ranks == pytest.approx(board["rank"].to_numpy())


def test_cd_has_the_ranks_of_a_leaderboard_with_missing_cells():
    rows = table(6, tasks=12, folds=1)
    rows = rows[(rows["model"] != "m0") | ~rows["task"].isin(["t0", "t1", "t2"])]
    found = differences.tested(PlotData(rows, None, "worst"))
    assert found.ranks.tolist() == leaderboard(rows)["rank"].tolist()
    assert found.tests.ranks.tolist() == found.ranks.tolist()


def test_bars_join_the_cliques_that_tests_leave_together():
    rows = table(6, tasks=10, folds=1, seed=1)
    found = differences.tested(PlotData(rows, None, "worst"))
    for clique in found.cliques:
        p = found.tests.pairs[np.ix_(clique, clique)]
        assert (p >= 0.05).all()
    # two models differ if and only if no bar joins them
    joined = {(a, b) for clique in found.cliques for a in clique for b in clique}
    apart = {(a, b) for a, b in np.argwhere(found.tests.pairs < 0.05).tolist()}
    assert joined and apart and not joined & apart
    assert len(joined | apart | {(m, m) for m in range(6)}) == 36
    axes = draw("cd", rows).figure.axes[0]
    bars = [line.get_xdata() for line in axes.get_lines() if line.get_gid() == "clique"]
    assert [list(bar) for bar in bars] == [list(found.ranks[clique]) for clique in found.cliques]
    written = " ".join(texts(draw("cd", rows).to_bytes("svg")))
    assert f"chi-square {found.tests.statistic:.1f}" in written and "10 tasks" in written


@pytest.mark.parametrize("rule", ["worst", "penalize", "exclude"])
def test_cd_ranks_equal_the_leaderboard_with_missing_scores(rule):
    rows = table(6, tasks=8)
    rng = np.random.default_rng(2)
    rows = rows[(rng.random(len(rows)) > 0.1) | (rows["task"] < "t3")].copy()
    rows.loc[(rows["task"] == "t1") & (rows["model"] == "m5"), "value"] = np.nan
    rows.loc[rows["task"] == "t0", "value"] = 0.5
    found = differences.tested(PlotData(rows, None, rule))
    board = leaderboard(rows, missing=rule)
    assert found.ranks == pytest.approx(board.loc[found.models, "rank"].to_numpy())
    assert found.ranks == pytest.approx(found.tests.ranks, abs=1e-9)


def test_a_strip_has_every_fold_and_the_mean():
    axes = draw("strip").figure.axes[0]
    rows, board = table(), leaderboard(table())
    assert row_names(axes) == list(board.index)
    dots, means = axes.get_lines()[::2], axes.get_lines()[1::2]
    for row, model in enumerate(board.index):
        values = rows[(rows["task"] == "t0") & (rows["model"] == model)]["value"]
        assert dots[row].get_xdata() == pytest.approx(values.to_numpy())
        assert set(dots[row].get_ydata()) == {row}
        assert means[row].get_xdata() == pytest.approx([board.loc[model, "t0"]] * 2)
    error = draw("strip", tasks=["t3"]).figure.axes[0].get_lines()[1].get_xdata()
    assert error == pytest.approx([board["t3"].iloc[0]] * 2), "errors as they were measured"


def test_bars_have_means_and_intervals():
    axes = draw("bars", tasks=["t3"]).figure.axes[0]
    long = leaderboard(table()[table()["task"] == "t3"], by="task").loc["t3"]
    order = row_names(axes)
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(long.loc[order, "score"])
    lines = np.array([path.vertices[:, 0] for path in axes.collections[0].get_paths()])
    assert lines == pytest.approx(long.loc[order, ["score_low", "score_high"]].to_numpy())
    assert [t.get_text() for t in axes.texts] == [f"{v:.3f}" for v in long.loc[order, "score"]]


@pytest.mark.parametrize("cost", ["seconds", "memory_mb", "dimensions"])
def test_pareto_front_equals_the_column(runs, cost):
    axes = plot(runs, "pareto", value=cost).figure.axes[0]
    board = leaderboard(runs, columns=["costs", f"pareto:{cost}"])
    board = board[board[cost].notna()]
    for gid, part in (("front", board[board["pareto"]]), ("others", board[~board["pareto"]])):
        (line,) = [each for each in axes.get_lines() if each.get_gid() == gid]
        drawn = sorted(zip(line.get_xdata(), line.get_ydata(), strict=True))
        assert drawn == sorted(zip(part[cost], part["rank"], strict=True))
    assert {text.get_text() for text in axes.texts} == set(board.index)
    assert axes.yaxis_inverted()


def test_the_cheapest_plot_has_the_differences_costs_and_margin(tmp_path):
    for model, size, loss in (("big", 64, 0.0), ("big@8d", 8, 0.001), ("<b>$x$", 2, 0.03)):
        scores = {f"t{t}": [0.8 - loss * (1 + t / 9), 0.7 - loss] for t in range(6)}
        about = {"base": "big"} if "@" in model else {}
        write_run(tmp_path, model, scores, record={"dimensions": size, "questions": 500}, **about)
    found = karat.cheapest(tmp_path, cost="bytes").models.set_index("model")
    made = plot(tmp_path, "cheapest")
    axes = made.figure.axes[0]
    points = {tuple(each) for line in axes.get_lines() for each in line.get_xydata().tolist()}
    gains = found["difference"].fillna(0.0)
    assert points == set(zip(found["cost"], gains, strict=True)) and axes.get_xscale() == "log"
    assert [patch.get_extents().height > 0 for patch in axes.patches] == [True]
    written = texts(made.to_bytes("svg"))
    assert {"big", "@8d", "<b>$x$"} <= {*written}
    assert made.to_bytes("svg") == plot(tmp_path, "cheapest", value="bytes").to_bytes("svg")
    assert len(plot(tmp_path, "cheapest", top=2).figure.axes[0].get_lines()) == 2
    for wrong in ({"value": "bits"}, {"tasks": ["t0"]}):
        with pytest.raises(DefinitionError):
            plot(tmp_path, "cheapest", **wrong)


def test_parallel_lines_go_through_normalized_scores():
    axes = draw("parallel", top=2).figure.axes[0]
    board = leaderboard(table())
    long = leaderboard(table(), by="task", normalize="range")
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert set(lines) == set(board.index)
    for place, model in enumerate(board.index):
        expected = [long.loc[(task, model), "normalized"] for task in ("t0", "t1", "t2", "t3")]
        assert lines[model].get_ydata() == pytest.approx(expected)
        assert lines[model].get_color() == (COLORS[place] if place < 2 else FAINT)
    assert [t.get_text() for t in axes.figure.legends[0].get_texts()] == list(board.index[:2])
    # the ends of a scale are scores: the lowest error is at 1
    ends = {t.get_text() for t in axes.texts}
    assert f"{board['t3'].min():.3f}" in ends and f"{board['t0'].max():.3f}" in ends


def test_curves_go_through_the_means_over_severities():
    axes = draw("curves", tasks=["t0"]).figure.axes[0]
    rows = corrupted()
    board = leaderboard(rows[rows["task"] == "t0"])
    for line, model in zip(axes.get_lines(), board.index, strict=True):
        mean = board.loc[model, "t0"]
        assert line.get_xdata() == pytest.approx([0, 0.1, 0.3])
        assert line.get_ydata() == pytest.approx([mean, mean - 0.1, mean - 0.3])


def test_tasks_whose_names_are_cut_alike_have_a_panel_each():
    rows = corrupted().replace({"t0": "x" * 40 + "0", "t1": "x" * 40 + "1"})
    axes = [each for each in draw("curves", rows).figure.axes if each.get_visible()]
    assert len(axes) == 2 and all(len(each.get_lines()) == 3 for each in axes)


def test_curves_over_epochs_where_nothing_is_corrupted():
    rows = table(2, tasks=2)
    steps = [rows.assign(epoch=e, metric="loss", value=1 / e) for e in (1, 2, 4)]
    both = pd.concat([rows, *steps], ignore_index=True)
    axes = draw("curves", both).figure.axes[0]
    assert axes.get_lines()[0].get_xdata().tolist() == [1, 2, 4]
    assert axes.get_lines()[0].get_ydata().tolist() == [1, 0.5, 0.25]
    assert axes.get_xlabel() == "epoch"
    with pytest.raises(DataError, match="corrupt"):
        draw("curves", both, value="severity")
    with pytest.raises(DataError, match="epochs"):
        draw("curves", table())


def test_tasks_and_their_metrics_can_be_chosen():
    rows = table()
    other = rows[rows["task"] == "t0"].assign(metric="logloss", value=lambda t: -t["value"])
    rows = pd.concat([rows, other], ignore_index=True)
    axes = plot(rows, "heatmap", tasks={"t2": "", "t0": "logloss"}).figure.axes[0]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["t2  acc ↑", "t0  logloss ↓"]
    with pytest.raises(DataError, match='"t9"'):
        plot(rows, "heatmap", tasks=["t9"])
    with pytest.raises(DataError, match='"auc"'):
        plot(rows, "heatmap", tasks={"t0": "auc"})


@pytest.mark.parametrize("kind", FLAT)
def test_many_models_are_cut_with_a_note(kind):
    svg = draw(kind, table(100, tasks=2, folds=1)).to_bytes("svg")
    written = " ".join(texts(svg))
    assert ("92 more models" if kind == "parallel" else "best of 100 models") in written
    assert len(svg) < 200_000


def test_fewer_models_are_drawn_if_asked_for():
    picture = draw("strip", table(9, tasks=2, folds=1), top=3)
    board = leaderboard(table(9, tasks=2, folds=1))
    assert row_names(picture.figure.axes[0]) == list(board.index[:3])
    assert "3 best of 9 models" in " ".join(texts(picture.to_bytes("svg")))


def test_many_rows_are_not_all_labeled():
    axes = draw("board", table(130, tasks=3, folds=1), top=130).figure.axes[0]
    assert len(axes.collections[1].get_offsets()) == 130
    assert len(row_names(axes)) <= 60


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"pareto", "cheapest"}))
def test_the_same_scores_make_the_same_bytes(kind, monkeypatch):
    shapes = ("svg", "pdf", "png") if kind in ("board", "cd") else ("svg",)
    rows = corrupted() if kind == "curves" else table(3, tasks=2, folds=2)
    rows = rows[rows["task"] == "t0"] if kind == "curves" else rows
    picture = draw(kind, rows)
    first = [picture.to_bytes(shape) for shape in shapes]
    assert [picture.to_bytes(shape) for shape in shapes] == first
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 20)
    monkeypatch.setitem(matplotlib.rcParams, "text.parse_math", True)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    again = draw(kind, rows)
    assert [again.to_bytes(shape) for shape in reversed(shapes)] == first[::-1]


@pytest.mark.parametrize("kind", FLAT)
def test_names_are_texts(kind):
    rows = table(tasks=3, folds=1, name=[*HOSTILE, "x" * 10_000])
    rows["task"] = rows["task"].replace({"t0": HOSTILE[3], "t1": HOSTILE[1], "t2": HOSTILE[4]})
    svg = draw(kind, rows).to_bytes("svg")
    written = " \n ".join(texts(svg))
    for name in ("_under", "a $x^2$ b_c {d}", "<script>alert(1)</script>", "50 % & #", "�left"):
        assert name in written
    assert b"<script" not in svg and "\u202e" not in svg.decode() and "x" * 40 not in written


def test_curves_and_fronts_have_texts_too():
    rows = corrupted().replace({"m0": HOSTILE[1], "m1": HOSTILE[3], "m2": "_under"})
    rows = rows.replace({"t0": "$a$", "noise": "<b>"})
    written = " \n ".join(texts(draw("curves", rows).to_bytes("svg")))
    for name in (HOSTILE[1], HOSTILE[3], "_under", "$a$: <b>"):
        assert name in written


def test_an_axis_of_powers_has_no_formula(runs):
    svg = plot(runs, "pareto").to_bytes("svg").decode()
    assert "mathdefault" not in svg and "$" not in svg


@pytest.mark.parametrize(
    "kind, options, word",
    [
        ("heatmp", {}, '"heatmap"'),
        ("zzz", {}, "heatmap, cd"),
        ("board", {"value": "ello"}, '"elo"'),
        ("curves", {"value": "epochs"}, '"epoch"'),
        ("pareto", {"value": "secnds"}, '"seconds"'),
        ("strip", {"value": "elo"}, "pareto"),
        ("board", {"top": 0}, "top"),
        ("board", {"missing": "wrost"}, '"worst"'),
    ],
)
def test_invalid_options(kind, options, word):
    with pytest.raises(DefinitionError, match=word):
        plot(corrupted() if kind == "curves" else table(), kind, **options)


@pytest.mark.parametrize(
    "kind, rows, word",
    [
        ("cd", table(1), "two models"),
        ("parallel", table(3, tasks=1), "two tasks"),
        ("pareto", table(), "seconds"),
        ("board", table().assign(value=np.nan), "no model"),
    ],
)
def test_nothing_to_plot(kind, rows, word):
    with pytest.raises(DataError, match=word):
        plot(rows, kind)


def test_the_command_writes_what_python_draws(runs, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = runs[0].folder.parent
    code, out, err = cli("plot", "board", folder)
    assert (code, out, err) == (0, "board.svg\n", "")
    assert Path("board.svg").read_bytes() == plot(folder, "board").to_bytes("svg")
    first, second, *_ = next(t for t in runs[0].about["tasks"] if t["name"] == "penguins")[
        "metrics"
    ]
    options = ["-t", f"penguins={second}", "-t", "diabetes", "--top", "2", "-o", "new/a.pdf"]
    assert cli("plot", "bars", folder, *options)[0] == 0
    chosen = plot(folder, "bars", tasks={"penguins": second, "diabetes": ""}, top=2)
    assert Path("new/a.pdf").read_bytes() == chosen.to_bytes("pdf")


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["bord"], '"board"'),
        (["bord", "no/such/folder"], '"board"'),  # the kind is checked before anything is read
        (["board", "-o", "a.tiff"], '".tiff"'),
        (["board", "-t", "pengins"], '"penguins"'),
        (["board", "-t", "penguins=ac"], '"acc"'),
    ],
)
def test_errors_are_one_line(runs, cli, tmp_path, monkeypatch, arguments, word):
    monkeypatch.chdir(tmp_path)
    kind, *options = arguments
    code, out, err = cli("plot", kind, runs[0].folder.parent, *options)
    assert (code, out) == (2, "") and word in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", FLAT)
def test_groups_of_models_are_plotted_one_by_one(kind):
    first, second = {"m1": 0.9, "m2": 0.8}, {"m3": 0.5, "m4": 0.6}
    rows = score_table({"t": first, "u": first, "v": second, "w": second})
    for name, models in (("group 1", {"m1", "m2"}), ("group 2", {"m3", "m4"})):
        written = texts(plot(rows, kind, group=name).to_bytes("svg"))
        assert name.capitalize() in written
        words = set(" ".join(written).split())
        assert words & {"m1", "m2", "m3", "m4"} == models


def test_an_unknown_group_is_refused():
    rows = score_table({"t": {"a": 0.9, "b": 0.8}, "u": {"c": 0.5, "d": 0.6}})
    with pytest.raises(DefinitionError, match="group 1"):
        plot(rows, "board", group="grop 1")


def test_tasks_of_several_groups_are_refused():
    rows = score_table({"t": {"a": 0.9, "b": 0.8}, "u": {"c": 0.5, "d": 0.6}})
    with pytest.raises(DefinitionError, match="group 1, group 2"):
        plot(rows, "strip", tasks=["t", "u"])
    assert plot(rows, "strip", tasks=["t", "u"], group="group 2").to_bytes("svg")


def test_each_group_has_a_file(tmp_path):
    rows = score_table({"t": {"a": 0.9, "b": 0.8}, "u": {"c": 0.5, "d": 0.6}})
    saved = differences.save_plot(rows, "board", str(tmp_path / "board.svg"))
    assert [path.name for path in saved] == ["board-group-1.svg", "board-group-2.svg"]
    assert all(path.is_file() for path in saved)


# -- Figures: file formats, notebooks and settings of matplotlib ----------------------------------


SCORES = score_table({task: {"a": 0.5, "b": 0.75} for task in "tu"})


def test_formats_follow_the_name(tmp_path):
    figure = plot(SCORES, "board")
    starts = {"svg": b"<?xml", "PDF": b"%PDF", "png": b"\x89PNG"}
    for suffix, start in starts.items():
        assert figure.save(tmp_path / "new" / f"a.{suffix}").read_bytes().startswith(start)
    pdf = figure.to_bytes("pdf")
    assert b"/CIDFontType2" in pdf and b"/Type3" not in pdf and b"/CreationDate" not in pdf
    assert b"<dc:date>" not in figure.to_bytes("svg")
    for wrong, word in (("a.gif", '".gif"'), ("a", '"."'), ("a.svgg", '"svg"')):
        with pytest.raises(DefinitionError, match=word):
            figure.save(tmp_path / wrong)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new"]


def test_a_notebook_shows_it():
    figure = plot(SCORES, "board")
    assert figure._repr_svg_().encode() == figure.to_bytes("svg")
    shown = figure._repr_html_()
    assert shown.startswith('<img alt="leaderboard: ')
    assert 'src="data:image/svg+xml;base64,' in shown
    assert isinstance(karat.plot(SCORES, "cd"), Plot)


def test_nothing_of_the_callers_settings_changes():
    before = dict(matplotlib.rcParams)
    plot(SCORES, "heatmap").to_bytes("svg")
    assert dict(matplotlib.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or not matplotlib.pyplot.get_fignums()


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r'pip install "karat\[plots'):
        plot(SCORES, "board")
