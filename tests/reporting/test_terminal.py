"""``karat list``, ``show``, ``check`` and ``cache`` on a terminal.

Finished runs and plans on a terminal.
The leaderboard on narrow and wide terminals.
"""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import karat
from karat.analysis.leaderboard import leaderboard
from karat.config.catalog import Catalog
from karat.config.loading import Definitions
from karat.errors import DefinitionError
from karat.execution.embedding_cache import VectorCache
from karat.execution.plan import make_plan
from karat.metrics.metric import metric_label
from karat.models.adapters import adapt
from karat.models.tables.one_hot_table import OneHotTable
from karat.output.table import Cell, Column
from karat.output.terminal_table import Grid, _text_width
from karat.reporting.formats import notes, render
from karat.reporting.leaderboard_output import leaderboard_text
from karat.reporting.terminal import (
    list_kind,
    list_kinds,
    print_leaderboard,
    print_model_checks,
    show_cache,
    show_name,
    show_plan,
    show_runs,
)

from ..score_data import score_table


def lines(capsys):
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


@dataclass
class Check:
    requirement: str
    passed: bool
    reason: str = ""
    fix: str = ""


def test_checks_are_shown_with_what_to_do(capsys):
    good, bad = Check("returns numbers", True), Check("keeps rows", False, "9 of [10]", "Do so.")
    assert print_model_checks([good], "m") == 0
    assert lines(capsys)[0] == "  ✓ returns numbers"
    assert print_model_checks([good, bad], "[m]") == 2
    text = capsys.readouterr().out
    assert "  ✗ keeps rows" in text and "9 of [10]" in text and "Do so." in text
    assert "[m] cannot be evaluated: 1 of 2" in text


class Broken:
    def transform(self, items):
        raise ValueError("no")


@pytest.fixture
def runs(two_classes, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return karat.evaluate(["onehot", "dummy"], [two_classes(), words()], output="results")


def test_the_exit_code_of_failures(runs, two_classes, tmp_path, capsys):
    assert show_runs(runs, None) == 0
    failed = karat.evaluate({"broken": Broken()}, two_classes(), output=tmp_path / "other")
    assert show_runs(failed, None) == 1
    capsys.readouterr()


def test_only_the_leaderboard_goes_to_standard_output(runs, capsys):
    show_runs(runs, None)
    out, err = capsys.readouterr()
    assert "onehot" in out and "halves" in out
    stamp = runs[0].about["stamp"]
    _, runs_line, *commands = err.splitlines()
    assert runs_line == f" runs    results/*.{stamp}   2 folders"
    expected = ("report results", "leaderboard results", "compare results -a onehot -b dummy")
    assert [line[9:].split("   ")[0] for line in commands] == [f"karat {c}" for c in expected]
    show_runs(runs[:1], None)
    assert f" runs    results/{runs[0].folder.name}\n" in capsys.readouterr().err
    # no next steps if quiet or in machine formats
    for shape, quiet in (("csv", False), ("json", False), (None, True)):
        show_runs(runs, shape, quiet=quiet)
        assert capsys.readouterr().err == ""
    print_leaderboard([Path("results")], "csv")
    assert capsys.readouterr().out.startswith("model,rank,")


def test_csv_and_json_hold_the_whole_precision(runs):
    board = leaderboard(runs)
    rows = list(csv.DictReader(io.StringIO(render(board, "csv"))))
    read = json.loads(render(board, "json"))
    assert [row["model"] for row in rows] == [row["model"] for row in read] == list(board.index)
    for row, other, (_, exact) in zip(rows, read, board.iterrows(), strict=True):
        assert float(row["seconds"]) == other["seconds"] == exact["seconds"]
        assert other["halves"] == exact["halves"]
    onehot = next(row for row in read if row["model"] == "onehot")
    assert onehot["words"] is None


def test_a_plan_shows_jobs_and_declines(two_classes, words, capsys):
    plan = make_plan([adapt(OneHotTable(), "one[hot]")], [two_classes(), words("[w]")])
    show_plan(plan)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[:1] + lines[2:4] + lines[-1:] == [
        ["2", "jobs,", "1", "declined"],
        ["model", "task", "folds"],
        ["one[hot]", "halves", "2"],
        ["one[hot]", "·", "[w]"],
    ]


def test_a_long_plan_is_summed_up_unless_verbose(two_classes, words, capsys):
    models = [adapt(OneHotTable(), f"m{i}") for i in range(5)]
    tasks = [two_classes(f"t{i}") for i in range(7)] + [words(f"w{i}") for i in range(8)]
    plan = make_plan(models, tasks)
    show_plan(plan)
    text = capsys.readouterr().out
    lines = [line.split() for line in text.splitlines() if line.strip()]
    assert lines[0] == ["70", "jobs,", "40", "declined"] and ["m4", "7", "14"] in lines
    assert "m0, m1, m2 and 2 more · w0, w1, w2, w3, w4, w5 and 2 more" in text
    assert len(lines) < 15 and "--verbose" in text
    show_plan(plan, verbose=True)
    text = capsys.readouterr().out
    lines = [line.split() for line in text.splitlines() if line.strip()]
    assert all([f"m{m}", f"t{t}", "2"] in lines for m in range(5) for t in range(7))
    assert "m0, m1, m2, m3, m4 · w0" in text and "w7" in text and "--verbose" not in text


def board(models=("good", "bad"), tasks=("t",), metric="acc", **columns):
    count = len(models)
    frame = pd.DataFrame(
        {
            "rank": np.arange(1.0, count + 1),
            "rank_low": 1.0,
            "rank_high": 2.0,
            "tie": ["a", "ab", "b"][:count],
            **{task: np.linspace(0.9, 0.1, count) for task in tasks},
            "failed": 0,
            "declined": 0,
            "seconds": 1.5,
            "memory_mb": 512.0,
            **columns,
        },
        index=pd.Index(models, name="model"),
    )
    frame.attrs["tasks"] = list(tasks)
    frame.attrs["metrics"] = dict.fromkeys(tasks, metric)
    frame.attrs["higher_is_better"] = dict.fromkeys(tasks, metric == "acc")
    return frame


def shown(frame, width, color=False):
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, force_terminal=color)
    console.print(leaderboard_text(frame, width))
    return out.getvalue()


def test_leaderboard_of_two_models():
    assert shown(board(), 80).splitlines()[:4] == [
        "                                  t                             ",
        " model  rank       95 %  tie  acc ↑  failed  n/a   time  memory ",
        " good    1.0  1.0 – 2.0  a    0.900       0    0  1.5 s  0.5 GB ",
        " bad     2.0  1.0 – 2.0  a b  0.100       0    0  1.5 s  0.5 GB ",
    ]


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("tasks", [1, 9, 40])
def test_no_line_is_wider_than_the_screen_and_nothing_is_lost(width, tasks):
    names = [f"task-number-{i}" for i in range(tasks)]
    models = ("a-model-with-quite-a-long-name", "random")
    lines = shown(board(models, names), width).splitlines()
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for name in names:
        assert text.count(name + " ") + text.count(name + "\n") >= 1
    assert text.count("0.900") == text.count("0.100") == tasks


def test_a_wide_screen_is_used_and_a_narrow_one_folds():
    made = board(tasks=[f"longer-task{i}" for i in range(9)])
    assert (shown(made, 200).count("good"), shown(made, 80).count("good")) == (1, 3)


def test_long_names_are_cut_and_odd_ones_shown_as_they_are():
    text = shown(board(["x" * 300, "[red]<b>"], ["y" * 300, "[i] am"]), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert all(name in text for name in ("y" * 15 + "…", "xxx…", "[red]<b>", "[i] am"))


def test_the_best_is_bold_and_has_an_arrow():
    best = {"acc": "0.900", "rmse": "0.100"}
    for metric, value in best.items():
        text = shown(board(metric=metric), 80, color=True)
        assert re.findall(r"\x1b\[1m *(0\.\d+)", text) == [value]
        assert metric_label(metric) in text


@pytest.mark.parametrize(
    "value, cell",
    [
        *[(0.12345, "0.123"), (54.216, "54.22"), (123456.7, "123,457"), (-0.5, "-0.500")],
        *[(0, "0.000"), (77.1, "77.10"), (1234.5, "1,235"), (-79.0, "-79.00")],
    ],
)
def test_scores_have_three_decimals_or_four_digits(value, cell):
    assert f" {cell} " in shown(board(t=[value, 0.5]), 80)


def test_empty_cells_are_dashes():
    names = ("rank", "rank_low", "rank_high", "seconds", "memory_mb")
    empty = board(**dict.fromkeys(names, np.nan), t=[np.nan, 0.5])
    row = shown(empty, 80).splitlines()[2].split()
    assert row == ["good", "–", "a", "–", "0", "0", "–", "–"]


def test_tasks_without_scores_are_listed_in_a_note():
    text = shown(board(tasks=("t", "u"), u=np.nan), 80)
    assert text.splitlines()[-1].endswith(": u.")
    assert " u " not in text.splitlines()[0]


def test_notes_without_facts_of_the_leaderboard():
    assert list(notes(board())) == []
    assert list(notes(board(["one"]))) == []
    (failed,) = notes(board(failed=[1, 0], t=[np.nan, 0.1]))
    assert "1 job failed" in failed


def scores(models, tasks, **columns):
    """Return a tidy table in which every third cell is missing and every seventh failed."""
    made = {}
    for t, task in enumerate(tasks):
        places = [m for m in range(len(models)) if (m + 2 * t) % 3 != 2]
        values = [None if (m + t) % 7 == 3 else 0.1 + (m * 5 + t * 3) % 11 / 14 for m in places]
        made[task] = {models[m]: [v, v] for m, v in zip(places, values, strict=True)}
    return score_table(made, **columns)


MODELS = ["a-model-with-quite-a-long-name", *(f"model-{i}" for i in range(5))]
VIEWS = [{}, {"by": "task"}, {"by": "kind"}, {"by": "task", "normalize": "range"}]
VIEWS += [{"normalize": "baseline:model-1"}, {"by": "kind", "normalize": "range"}]


@pytest.mark.parametrize("options", VIEWS, ids=str)
@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_every_view_fits_the_screen(width, options):
    table = scores(MODELS, [f"a-task-with-a-number-{i}" for i in range(9)], kind="classification")
    lines = shown(leaderboard(table, **options), width).splitlines()
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    columns = ["rank", "time"] + ["score"] * ("normalize" in options)
    assert all(re.search(rf"\b{name}\b", text) for name in columns)


def test_signs_of_missing_cells():
    rows = score_table({"t": {"a": 0.5, "b": None}, "u": {"b": 0.2}})
    lines = {
        line.split()[0]: line.split() for line in shown(leaderboard(rows), 120).splitlines()[2:4]
    }
    # t: b failed and is second; u: b alone
    assert lines["a"][2:4] == ["0.500", "…"]
    assert lines["b"][2:4] == ["failed", "0.200"]


def test_leaderboard_by_task():
    rows = score_table({"t": {"good": 0.9, "bad": 0.1}, "u": {"bad": 0.3}})
    assert shown(leaderboard(rows, by="task"), 80).splitlines()[:9] == [
        " model  rank  score  95 %  folds  failed  time ",
        "",
        " t   acc ↑",
        " good    1.0  0.900     –      1       0     – ",
        " bad     2.0  0.100     –      1       0     – ",
        "",
        " u   acc ↑",
        " bad       –  0.300     –      1       0     – ",
        " good      –      …     –      0       0     – ",
    ]


def test_a_name_cannot_steer_the_terminal():
    rows = score_table({"t\x1b[2J": {"m\x1b]0;x\x07": 0.9, "n": 0.1}})
    for by in (None, "task"):
        assert "\x1b" not in shown(leaderboard(rows, by=by), 80)


TEXTS = st.sampled_from(["", "a", "0.5", "– ", "näh", "漢字", "x y ", " b", "[bold]x"])


@given(st.data(), st.booleans(), st.booleans())
def test_a_grid_looks_like_a_table_of_rich(data, heading, color):
    rows = data.draw(st.integers(0, 3))
    cells = st.builds(Cell, TEXTS, st.booleans(), st.booleans())
    column = st.builds(
        Column,
        TEXTS.filter(bool),
        st.lists(cells, min_size=rows, max_size=rows),
        st.sampled_from(["", "acc ↑"]),
        st.booleans(),
    )
    columns = data.draw(st.lists(column, min_size=1, max_size=4))
    grid = Grid(columns, [_text_width(each) for each in columns], heading, fixed=True)
    outputs = []
    for shown in (grid, grid._shortened()):
        out = io.StringIO()
        Console(file=out, width=200, highlight=False, force_terminal=color).print(shown)
        outputs.append(out.getvalue())
    assert outputs[0] == outputs[1]


def test_a_grid_that_does_not_fit_is_shortened():
    cells = [Cell("a long name"), Cell("b")]
    grid = Grid([Column("model", cells, right=False)], [11])
    out = io.StringIO()
    Console(file=out, width=8, highlight=False).print(grid)
    assert out.getvalue().splitlines() == [" model  ", " a lon… ", " b      "]


def test_every_kind_is_counted(capsys):
    list_kinds(["suites", "splitters"], [])
    suites, splitters = (line.split() for line in lines(capsys))
    count = len(Catalog().definitions.names("suites"))
    assert suites[:4] == ["karat", "list", "suites", str(count)]
    assert splitters[:5] == ["karat", "list", "splitters", "11", "all,"]


@pytest.mark.parametrize(
    "kind, name, about",
    [
        ("models", "onehot", "one-hot"),
        ("models", "skrub", 'pip install "karat[tables]"'),
        ("tasks", "diabetes", "regression · rmse, mae, r2"),
        ("suites", "quickstart", "9 tasks"),
        ("datasets", "penguins", "CC0-1.0"),
        ("constraints", "test", ""),
        ("metrics", "rmse", "lower is better"),
        ("metrics", "acc", "higher is better"),
        ("corruptions", "typos", ""),
        ("heads", "ridge", "Ridge"),
        ("splitters", "all", ""),
        ("composers", "single", ""),
        ("probes", "analogy", ""),
        ("readers", "table", ""),
    ],
)
def test_every_name_has_a_line(capsys, kind, name, about):
    list_kind(kind, [])
    (found,) = [line for line in lines(capsys) if line.split()[0] == name]
    assert about in found


def test_own_names_are_listed(capsys, clean_registry, tmp_path):
    @karat.metric("my-own", higher_is_better=False)
    def own(predictions):
        """Own metric."""
        return 0.0

    file = tmp_path / "my.yaml"
    file.write_text("models: {mine: {extends: onehot, description: A model of mine.}}")
    list_kind("metrics", [])
    assert any("my-own" in line and "Own metric." in line for line in lines(capsys))
    list_kind("models", [file])
    assert any("mine" in line and "A model of mine." in line for line in lines(capsys))


@pytest.mark.parametrize(
    "name, words",
    [
        (
            "diabetes",
            ["tasks:", "datasets:", "metrics: [rmse, mae, r2]", "tasks.yaml:", "datasets.yaml:"],
        ),
        ("kfold", ["splitters: kfold", "karat.execution.splits:kfold", "\n"]),
    ],
)
def test_a_name_is_shown_with_its_origins(capsys, name, words):
    show_name(name, [])
    text = capsys.readouterr().out.rstrip()
    assert [word for word in words if word not in text] == []


def test_an_unknown_name_gets_the_nearest_of_all_kinds():
    with pytest.raises(DefinitionError) as caught:
        show_name("kfolds", [])
    assert '"kfold"' in str(caught.value)


def test_the_cache_is_shown_and_cleared(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path))
    show_cache(False)
    assert lines(capsys) == [f"0 entries, 0.0 MB in {tmp_path / 'vectors'}"]
    about = {"model": "[m]", "dataset": "d", "shape": [1000, 2]}
    VectorCache(tmp_path).put("ab" * 32, np.zeros((1000, 2)), about)
    show_cache(False)
    head, row, total = lines(capsys)
    assert head.split() == ["model", "dataset", "rows", "×", "dimensions", "MB"]
    assert row.split() == ["[m]", "d", "1,000", "×", "2", "0.0"]
    assert total.startswith("1 entry, 0.0 MB")
    show_cache(True)
    assert list(VectorCache(tmp_path).entries()) == []


def test_every_dataset_has_its_license_and_the_sha256_of_its_download(capsys):
    list_kind("datasets", [])
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    definitions = Definitions.load()
    for name in definitions.names("datasets"):
        given = definitions.get("datasets", name)
        remote = [s for s in given["sources"] or () if {"index", "url"} & set(s)]
        assert given["license"] in lines[name], name
        assert not remote or remote[0]["sha256"][:12] in lines[name], name
