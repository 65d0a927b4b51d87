"""Leaderboards as Markdown, LaTeX, HTML, CSV and JSON.

Tables of leaderboards with missing values.
"""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.analysis.leaderboard import DIFFERENCES, leaderboard
from karat.cli.app import karat as group
from karat.core.formatting import format_rank, rounded
from karat.errors import DefinitionError
from karat.output.latex_table import escape_latex
from karat.output.markdown_table import escape_markdown
from karat.reporting import leaderboard_output as findings
from karat.reporting.formats import (
    BY_PAIRS,
    FORMATS,
    _of_coverage,
    caption,
    make_table,
    make_tables,
    notes,
    render,
)
from karat.reporting.leaderboard_output import leaderboard_text
from karat.reporting.terminal import print_leaderboard

from ..score_data import score_table

HOSTILE = ["a|b", "<script>alert(1)</script>", "new\nline", "*star*", "[x](y)", "_em_", "`code`"]
HOSTILE += [r"\input{x}", "50 % & $x$ #1 ^~{}", "[opt]", "--", "\x1b[1mbold", "a\\", "", "日本"]


TWO = {
    "adult": ("auc", {"good": [0.875, 0.875], "bad": [0.5, 0.25]}),
    "rents": ("rmse", {"good": 20.0, "bad": 10.0, "part": None}),
}


def board(**options):
    return leaderboard(score_table(TWO, kind="k"), **options)


def test_markdown():
    # the letters and the difference of these tasks have a test of their own
    made = board().drop(columns=list(DIFFERENCES)).assign(tie="")
    assert render(made, "markdown").splitlines()[2:7] == [
        "| model |    rank | adult<br>auc ↑ | rents<br>rmse ↓ | failed | n/a | time | memory |",
        "| ----- | ------: | -------------: | --------------: | -----: | --: | ---: | -----: |",
        "| good  | **1.5** |      **0.875** |           20.00 |      0 |   0 |    – |      – |",
        "| bad   | **1.5** |          0.375 |       **10.00** |      0 |   0 |    – |      – |",
        "| part  |     3.0 |              … |          failed |      0 |   0 |    – |      – |",
    ]


def test_differences_over_these_tasks_have_a_column():
    rows = [[cell.strip() for cell in row] for row in parsed(render(board(), "markdown"))]
    assert rows[0][2:4] == ["tie", "difference, 95 %"]
    # adult: 0.375 and 0.625, 12.706 × √(0.03125 × (1/2 + 1)); rents has one fold and no test
    assert [row[3].replace("\\", "") for row in rows[2:]] == [
        "reference",
        "-0.500 [-3.251, +2.251]",
        "–",
    ]


def test_the_markdown_of_a_view_names_a_group_once():
    lines = render(board(by="task", normalize="range"), "markdown").splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:10]]
    assert cells[0][:6] == ["task", "metric", "model", "rank", "95 %", "tie"]
    assert cells[0][6:9] == ["score", "95 %", "normalized"]
    assert cells[2][:7] == ["adult", "auc ↑", "good", "**1.0**", "1.0 – 2.0", "a", "**0.875**"]
    # 0.375 ± 12.706 × 0.125, and no area is below 0 or above 1
    assert cells[3][:8] == ["", "", "bad", "2.0", "1.0 – 2.0", "a", "0.375", "0.000 – 1.000"]
    assert cells[4][:7] == ["", "", "part", "–", "–", "", "…"]
    # of one fold there is no interval, and no models are separated
    assert cells[5][:7] == ["rents", "rmse ↓", "bad", "**1.0**", "–", "", "**10.00**"]
    assert cells[7][:7] == ["", "", "part", "3.0", "–", "", "failed"]


def test_the_caption_has_rule_and_seeds():
    made = board(missing="exclude")
    made.attrs["seeds"] = [42, 43]
    text = render(made, "markdown")
    assert "Seeds 42, 43." in text and "2 of 2 tasks" in text
    assert "of bad: 2 of 2." in render(board(missing="baseline:bad"), "markdown")


def parsed(text):
    """Return the cells of the table, as a reader of Markdown splits them."""
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [re.split(r"(?<!\\)(?:\\\\)*\|", row)[1:-1] for row in rows]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_break_no_table(name):
    tasks = {name or "t": {name: 0.5, "other": 0.25}}
    for by in (None, "task"):
        made = leaderboard(score_table(tasks), by=by)
        for shape in ("markdown", "latex"):
            text = render(made, shape)
            assert "<script" not in text and "\x1b" not in text
        cells = parsed(render(made, "markdown"))
        assert len({len(row) for row in cells}) == 1
        assert len(cells) == 4
        rows = [line for line in render(made, "latex").splitlines() if line.endswith(r" \\")]
        assert len({len(re.split(r"(?<!\\)&", row)) for row in rows}) == 1


@given(st.text(max_size=12))
def test_escaped_markdown_shows_the_text_itself(text):
    escaped = escape_markdown(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[|`*~\[\]]", escaped)
    assert "<" not in escaped and ">" not in escaped
    undone = re.sub(r"\\([\\`*\[\]|~_])", r"\1", escaped)
    for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        undone = undone.replace(entity, sign)
    assert undone == text


def test_latex():
    made = board().drop(columns=list(DIFFERENCES)).assign(tie="")
    lines = render(made, "latex").splitlines()
    assert lines[:9] == [
        r"% \usepackage{booktabs}",
        r"\begin{tabular}{lrrrrrrr}",
        r"\toprule",
        r"model & rank & adult & rents & failed & n/a & time & memory \\",
        r" &  & auc $\uparrow$ & rmse $\downarrow$ &  &  &  &  \\",
        r"\midrule",
        r"good & \textbf{1.5} & \textbf{0.875} & 20.00 & 0 & 0 & "
        r"\textendash{} & \textendash{} \\",
        r"bad & \textbf{1.5} & 0.375 & \textbf{10.00} & 0 & 0 & "
        r"\textendash{} & \textendash{} \\",
        r"part & 3.0 & \ldots{} & failed & 0 & 0 & "
        r"\textendash{} & \textendash{} \\",
    ]
    assert lines[9:12] == [r"\bottomrule", r"\end{tabular}", r"\par\smallskip"]
    assert lines[12].startswith(r"{\footnotesize 3 models") and lines[12].endswith(r"\par}")


def test_latex_sets_groups_apart():
    lines = render(board(by="task"), "latex").splitlines()
    rows = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    groups = ["adult", "", "", r"\addlinespace", "rents", "", ""]
    assert [row.split(" & ")[0] for row in rows] == groups


@pytest.mark.parametrize(
    "text, set_as",
    [
        ("a_b & 50 %", r"a\_b \& 50 \%"),
        (r"\x{y}", r"\textbackslash{}x\{y\}"),
        ("$#^~", r"\$\#\textasciicircum{}\textasciitilde{}"),
        ("<|>", r"\textless{}\textbar{}\textgreater{}"),
        ("[3ex]", "{[}3ex{]}"),
        ("*", "{*}"),
        ("---", "-{}-{}-"),
        ("1 – 2 …", r"1 \textendash{} 2 \ldots{}"),
        ("↑↓", r"$\uparrow$$\downarrow$"),
        ('say "a"', r"say {\char34}a{\char34}"),
        ("é 日本", "é 日本"),
    ],
)
def test_special_characters_of_latex(text, set_as):
    assert escape_latex(text) == set_as


@given(st.text(max_size=12))
def test_escaped_latex_has_whole_groups_and_no_command_of_the_name(text):
    escaped = escape_latex(text)
    bare = re.sub(r"\\[{}$&#_%]", "", escaped)
    bare = re.sub(r"\\(text[a-z]+|ldots)\{\}|\{\\char34\}|\$\\[a-z]+\$", "", bare)
    bare = re.sub(r"\{[\[\]*]\}|-\{\}", "", bare)
    assert not re.search(r"[\\{}$&#_%^~]", bare)


LINES = ["KRT999 a_b & <i> are 50 % | worse.", "karat lint RUN…"]


@pytest.mark.parametrize(
    "shape, below",
    [
        ("markdown", "\n- KRT999 a_b &amp; &lt;i&gt; are 50 % \\| worse.\n- karat lint RUN…\n"),
        (
            "latex",
            "{\\footnotesize KRT999 a\\_b \\& \\textless{}i\\textgreater{} are 50 \\% "
            "\\textbar{} worse.\\par}\n"
            "{\\footnotesize karat lint RUN\\ldots{}\\par}\n",
        ),
        (
            "html",
            '<ul style="font-size:.85em;opacity:.8;margin:.4em 0;text-align:left">\n'
            "<li>KRT999 a_b &amp; &lt;i&gt; are 50 % | worse.</li>\n"
            "<li>karat lint RUN…</li>\n</ul>\n",
        ),
        ("csv", ""),
        ("json", ""),
    ],
)
def test_findings_below_a_leaderboard_are_escaped(shape, below, monkeypatch, capsys):
    monkeypatch.setattr(findings, "check_runs", lambda *_: None)
    monkeypatch.setattr(findings, "finding_lines", lambda *_: LINES)
    findings.print_finding_lines([], "RUN…", shape)
    assert capsys.readouterr().out == below
    monkeypatch.setattr(findings, "finding_lines", lambda *_: [])
    findings.print_finding_lines([], "RUN…", shape)
    assert capsys.readouterr().out == ""


def test_findings_of_a_run_are_below_its_leaderboard(make_run, capsys):
    run = make_run("a<i>", {"t": [0.5, "boom <b>"]})
    for shape, start in (("html", "<li>KRT"), ("latex", r"{\footnotesize KRT")):
        print_leaderboard([run.folder], shape)
        text = capsys.readouterr().out
        assert start in text
        assert "<b>" not in text.partition("</table>")[2] and "<i>" not in text


@pytest.mark.parametrize("by", [None, "task", "kind"])
def test_csv_round_trip(by):
    rng = np.random.default_rng(0)
    tasks = {f"t{i}": {m: rng.random(3) for m in "abc"} for i in range(4)}
    tasks["t3"]["c"] = None
    made = leaderboard(score_table(tasks, kind="k"), by=by, normalize="range")
    keys = list(made.index.names)
    text = render(made, "csv")
    read = pd.read_csv(io.StringIO(text), index_col=keys, dtype={"tie": str})
    read["tie"] = read["tie"].fillna("")
    # pandas may read a number to the last bit but one; what is written is the number itself
    pd.testing.assert_frame_equal(read, made, rtol=1e-15, atol=0)
    for row, exact in zip(csv.DictReader(io.StringIO(text)), made["rank"], strict=True):
        assert float(row["rank"]) == exact


def test_json_is_valid():
    made = board(by="task")
    rows = json.loads(render(made, "json"), parse_constant=lambda name: pytest.fail(name))
    assert [(row["task"], row["model"]) for row in rows] == made.index.tolist()
    assert rows[2]["score"] is None
    assert rows[2]["status"] == "not run"
    endless = board().assign(adult=np.inf)
    assert json.loads(render(endless, "json"))[0]["adult"] is None


def test_the_command_line_has_all_formats():
    for verb in ("leaderboard", "run", "robustness", "status", "lint"):
        (option,) = (p for p in group.all_commands()[verb].params if "--format" in p.opts)
        assert set(option.type.choices) == {"table", *FORMATS}
    with pytest.raises(DefinitionError, match='markdwon.*"markdown"'):
        render(board(), "markdwon")


def test_all_formats_show_the_same_cells():
    """The cells of the terminal, of Markdown and of LaTeX are one table's."""
    made = board(normalize="baseline:bad")
    markdown = [
        [cell.replace("**", "").replace("\\", "").strip() for cell in row]
        for row in parsed(render(made, "markdown"))
    ]
    latex = render(made, "latex").replace(r"\textendash{}", "–").replace(r"\ldots{}", "…")
    latex = re.sub(r"\\textbf\{(.*?)\}", r"\1", latex).replace("{[}", "[").replace("{]}", "]")
    from_latex = [row[:-3].split(" & ") for row in latex.splitlines() if row.endswith(r"\\")]
    grid = leaderboard_text(made, 200).renderables[0]
    terminal = list(
        zip(*([c.text.strip() for c in col.cells] for col in grid.columns), strict=True)
    )
    assert markdown[2:] == from_latex[2:] == [list(row) for row in terminal]


def test_leaderboard_without_costs(tmp_path):
    frame = pd.DataFrame({"a": np.arange(20.0), "y": np.arange(20.0)})
    data = karat.Dataset.from_table(frame, target="y", name="line", kind="regression")
    (run,) = karat.evaluate("dummy", [karat.Task("line", data)], output=tmp_path / "out")
    for path in (run.folder / "jobs").glob("*.json"):
        record = json.loads(path.read_text())
        for name in [key for key in record if "seconds" in key or "memory" in key]:
            del record[name]
        path.write_text(json.dumps({**record, "status": "failed", "views": []}))
    karat.leaderboard([run.folder]).print_on_terminal()


def test_only_the_lowest_coverages_are_listed():
    shares = {("m", f"task {i}"): i / 10 for i in (9, 1, 5, 3, 7, 2, 8, 4)}
    found = list(_of_coverage(shares))
    assert "10 % of task 1" in found[0] and found[-1].startswith("2 cells")
    assert len(found) == 7


def column(board, name):
    (found,) = (each for each in make_table(board).columns if each.name == name)
    return [(cell.text.strip(), cell.best) for cell in found.cells]


def test_models_with_too_few_tasks_are_never_marked_best():
    tasks = {f"t{i}": {"a": [0.8 + i / 100], "b": [0.5]} for i in range(4)}
    tasks["t0"]["once"] = [0.9]
    board = leaderboard(score_table(tasks), normalize="range")
    # once beats both on its only task, a beats b on all; sorted by the rank that is shown
    assert board.index.tolist() == ["once", "a", "b"]
    assert board["rank"].tolist() == [1.0, 2.0, 3.0]
    assert column(board, "rank") == [("1.0", False), ("2.0", True), ("3.0", False)]
    assert column(board, "score")[0] == ("1.000", False)
    assert "**1.0**" not in render(board, "markdown")
    assert r"\textbf{1.0}" not in render(board, "latex")
    # its score on a task is a score like any other
    assert column(board, "t0")[0] == ("0.900", True)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((-0.0004, "0.000"), (-8.4e-5, "0.000"), (0.0625, "0.063"), (-1.0625, "-1.063")),
        *((12345.6, "12,346"), (1.125e6, "1,125,000"), (np.nan, "–"), (2e20, "2.000e20")),
        *((-0.4, "-0.400"), (100.25, "100.3")),
    ],
)
def test_scores_are_rounded_without_exponents_and_signed_zeros(value, text):
    assert rounded(value) == text


def test_halves_of_ranks_are_rounded_up():
    assert [format_rank(rank) for rank in (1.25, 1.75, 2.0, np.nan)] == ["1.3", "1.8", "2.0", "–"]


APART = {"t": {"a": 0.9, "b": 0.8}, "u": {"c": 0.5, "d": 0.6}}


def test_groups_of_models_have_a_table_each():
    board = leaderboard(score_table(APART))
    markdown, latex = render(board, "markdown"), render(board, "latex")
    assert markdown.count("| model") == 2 and latex.count(r"\begin{tabular}") == 2
    # no table has a model or a task of the other group
    first, second = markdown.split("| model")[1:]
    assert "u<br>" not in first and "t<br>" not in second
    assert [row["group"] for row in json.loads(render(board, "json"))] == [
        *("group 1", "group 1"),
        *("group 2", "group 2"),
    ]
    tables = make_tables(board)
    assert [table.title for table in tables] == ["group 1", "group 2"]
    assert not tables[0].notes and tables[1].notes


#: a failed on u; only b ran v
TASKS = {"t": {"a": 0.5, "b": 0.4}, "u": {"a": np.nan, "b": 0.3}, "v": {"b": 0.1}}


def grouped_board(**options):
    kinds = {"t": "first", "u": "first", "v": "second"}
    return leaderboard(score_table(TASKS, kind=kinds), **options)


@pytest.mark.parametrize(
    "options, words",
    [
        ({}, ["not tested", "1 cell, counted", "1 cell, left out", ": a (2)."]),
        ({"missing": "exclude"}, ["one fold", "1 cell.", "1 cell.", "1 of 3 tasks"]),
        (
            {"missing": "baseline:b", "normalize": "range"},
            ["not tested", "score: mean", "1 cell.", "1 cell.", "of b: 2 of 2", "a on u (1 of 1)"],
        ),
        ({"by": "kind"}, ["not tested", "1 cell, counted", "1 cell, left out", ": second."]),
        (
            {"by": "task", "normalize": "baseline:b"},
            ["one fold", "0 is b", "95 %", "1 cell, counted", "1 cell, left out"],
        ),
    ],
)
def test_notes_name_the_rule_and_the_counts(options, words):
    found = list(notes(grouped_board(**options)))
    assert len(found) == len(words)
    assert all(word in note for word, note in zip(words, found, strict=True)), found


def test_advice_where_no_task_is_common():
    found = leaderboard(score_table({"one": {"a": 0.5}, "other": {"b": 0.5}}), missing="exclude")
    assert any("--missing" in note for note in notes(found))


def test_note_on_models_with_few_tasks():
    tasks = {f"t{i}": {"broad": 0.5, "other": 0.4} for i in range(3)}
    tasks["t0"]["narrow"] = 0.6
    (note,) = [line for line in notes(leaderboard(score_table(tasks))) if "narrow" in line]
    assert note.endswith(": narrow (1).")
    # no note if no model has three tasks
    del tasks["t2"]
    assert not [line for line in notes(leaderboard(score_table(tasks))) if "narrow" in line]


def test_one_note_where_models_took_different_tasks():
    tasks = {f"t{i}": {"a": 0.5, "b": 0.4, "c": 0.3} for i in range(3)}
    assert BY_PAIRS not in notes(leaderboard(score_table(tasks)))
    del tasks["t2"]["c"]
    kinds = {"t0": "k", "t1": "k", "t2": "other"}
    table = score_table(tasks, kind=kinds)
    assert list(notes(leaderboard(table))).count(BY_PAIRS) == 1
    assert BY_PAIRS in render(leaderboard(table), "markdown")
    # within each kind all models take the same tasks, and on one task there is no mean
    for by in ("kind", "task"):
        assert BY_PAIRS not in notes(leaderboard(table, by=by))


def test_a_model_without_a_common_task_has_no_rank_and_a_note_says_why():
    # twelve models on four tasks; two of them take one task each, which the other does not
    tasks = {f"t{i}": {f"m{m:02}": m / 100 for m in range(10)} for i in range(6)}
    tasks["t0"]["x"], tasks["t1"]["y"], tasks["t2"]["y"] = 0.5, 0.5, 0.6
    board = leaderboard(score_table(tasks))
    assert board["rank"].isna().to_dict() == {name: name == "x" for name in board.index}
    assert board.index.tolist()[0] == "y" and board.index.tolist()[-1] == "x"
    (note,) = [line for line in notes(board) if line.startswith("Not ranked")]
    assert note == "Not ranked: x has no common task with y."


@pytest.mark.parametrize(
    "rule, word", [("worst", "worst"), ("exclude", "left out"), ("baseline:b", "of b")]
)
def test_failed_jobs_and_unfinished_runs(rule, word):
    found = grouped_board(missing=rule).assign(failed=[1, 0])
    found.attrs["missing"]["partial"] = 2
    *_, failed, partial = (note for note in notes(found) if "1 job" in note or "2 cells" in note)
    assert "1 job failed" in failed and word in failed
    assert "2 cells" in partial


@pytest.mark.parametrize(
    "options, start",
    [
        ({}, "2 models by mean rank over 2 of 3 tasks,"),
        ({"missing": "baseline:b"}, "2 models by mean rank over 3 tasks,"),
        ({"by": "kind"}, "2 models by mean rank over 2 of 3 tasks within each kind,"),
        ({"by": "task"}, "2 models on 3 tasks:"),
    ],
)
def test_captions(options, start):
    assert caption(grouped_board(**options)).startswith(start)


def test_notes_on_partial_scores_seeds_and_repeats():
    found = grouped_board()
    found.attrs["partial"] = {"a": {"t": (3, 5)}}
    found.attrs["seed_spread"] = {"a": {"t": 0.01, "u": 0.02}, "b": {"t": 0.03}}
    found.attrs["repeats"] = {"a": 2, "b": 3}
    text = "\n".join(notes(found))
    assert "a on t (3 of 5)" in text
    assert "a: standard deviation over seeds 0.010 to 0.020 (2 tasks)" in text
    assert "5 repeated jobs" in text and "(a, b)" in text


# -- scores filled with those of a baseline --------------------------------------------------


@pytest.mark.parametrize("by", [None, "task"])
def test_filled_scores_are_marked_in_every_format(by):
    # (0.80 + 0.82 + 0.95) / 3 = 0.85667, with the third fold of base
    folds = {"a": [0.80, 0.82, None], "b": [0.85, 0.80, 0.82], "base": [0.79, 0.80, 0.95]}
    filled = leaderboard(score_table({"t": folds}), missing="baseline:base", by=by)
    marks = {"markdown": "0.857†", "html": "0.857†", "latex": r"0.857\textdagger{}"}
    for shape, text in marks.items():
        made = render(filled, shape)
        assert text in made and "a on t (1 of 3)" in made
        assert made.count(text[5:]) == 2  # the score and the note
        assert "fewer folds than planned" not in made
    assert "0.857†" in repr(karat.leaderboard(score_table({"t": folds}), missing="baseline:base"))
    rows = {row["model"]: row for row in json.loads(render(filled, "json"))}
    assert rows["a"]["t" if by is None else "score"] == pytest.approx(2.57 / 3)
    assert rows["a"]["filled"] == (["t"] if by is None else 1)
    assert not rows["b"]["filled"] and not rows["base"]["filled"]
    read = pd.read_csv(io.StringIO(render(filled, "csv"))).set_index("model")["filled"]
    assert str(read["a"]) == ("t" if by is None else "1")
    plain = leaderboard(score_table({"t": folds}), by=by)
    assert "†" not in render(plain, "markdown") and "filled" not in render(plain, "json")
