"""Pages of the checks, their index, ``karat checks``, and the lines below a leaderboard."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pandas as pd
import pytest

import karat
from karat.analysis.check_facts import Finding, Findings
from karat.analysis.checks import RULES, explain, index_table, render_page
from karat.reporting.leaderboard_output import finding_lines, summary

DOCS = Path(__file__).parents[2] / "docs"
SECTIONS = ("What it means", "How it is computed", "Example", "What to do", "When to ignore it")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_renders_its_page(rule):
    page = render_page(rule)
    assert page == explain(rule.code)
    assert page.startswith(f"# {rule.code}: {rule.title}\n\nLevel: {rule.level}.\n\n## ")
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == list(SECTIONS)
    assert f"--ignore {rule.code}" in page.splitlines()[-1]


def test_the_script_writes_a_page_per_rule(tmp_path):
    script = runpy.run_path(str(DOCS.parent / "scripts" / "check_pages.py"))
    (tmp_path / "KRT999.md").write_text("a rule that was removed")
    script["write_pages"](tmp_path)
    pages = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert pages == {rule.code: explain(rule.code) for rule in RULES}


def test_the_index_lists_the_rules():
    assert index_table() in (DOCS / "checks.md").read_text(encoding="utf-8")


def test_pages_state_the_thresholds():
    from karat.analysis import check_facts as paired
    from karat.analysis import checks as data
    from karat.analysis import checks as models
    from karat.analysis import checks as runs
    from karat.analysis import checks as statistics
    from karat.execution import diagnostics as tasks
    from karat.execution import diagnostics as vectors

    keys = (data.LEAKED, tasks.KEY_LEAST, tasks.KEY_MOST, tasks.KEY_AGREES)
    sizes = (tasks.MOST_ROWS, tasks.MOST_CELLS, tasks.FEWEST_ROWS)
    power = (1 - paired.CONFIDENCE, paired.POWER)
    thresholds = {
        "KRT001": [_percent(data.LEAKED)],
        "KRT002": map(_percent, keys),
        "KRT003": [_percent(data.GIVEN_AWAY), *(f"{n:,}" for n in sizes)],
        "KRT004": [_percent(data.LOPSIDED), str(tasks.MOST_CLASSES), *data.HIDING],
        "KRT103": [f"{vectors.NEARLY:.4f}"],
        "KRT104": [_percent(models.COLLAPSED), f"{vectors.MOST_COMPARED:,}"],
        "KRT105": [_percent(models.COVERED)],
        "KRT106": [f"{models.UNLIKE:,}"],
        "KRT301": [f"{statistics.CEILING:g}", f"at least {statistics.FEWEST_THERE} models"],
        "KRT302": [*map(_percent, power), f"{(1 + paired.CONFIDENCE) / 2:g}"],
        "KRT401": [f"{runs.SAME:.6f}"],
    }
    for code, texts in thresholds.items():
        assert [text for text in texts if text not in explain(code)] == [], code


def _percent(share):
    return f"{100 * share:.0f} %"


# -- below a leaderboard --------------------------------------------------------------------


def found(code, model, task, level="note"):
    return Finding(code, level, model, task, f"{model} is odd on {task}.", "Mend it.")


def test_many_findings_of_a_check_are_one_line():
    many = [found("KRT102", m, t) for m in "ab" for t in ("t1", "t2", "t3", "t4")]
    line = summary(many)
    assert line.startswith("No better than raw features") and "t1, t2, t3" in line
    assert "t4" not in line
    assert summary([found("KRT301", None, t) for t in "xy"]).startswith("Saturated task: x, y")


def test_runs_of_one_model_are_listed_once():
    runs = [found("KRT102", f"a (20261116T0959{i}0)", t) for i in range(3) for t in "tu"]
    assert "a on t, u" in summary(runs)


def test_six_lines_and_where_the_rest_is():
    codes = [rule.code for rule in RULES[:8]]
    lines = finding_lines(Findings([found(code, "m", "t") for code in codes], {"KRT405": 2}), "r")
    assert [line.partition(" ")[0] for line in lines[:-1]] == codes[:6]
    assert "karat checks r" in lines[-1]
    assert finding_lines(Findings(), "r") == []
    assert len(finding_lines(Findings([], {"KRT405": 1}), "r")) == 1


def test_control_characters_are_removed():
    line = summary([found("KRT102", "a\x1b[1m\nb", "t\x07")])
    assert not {"\x1b", "\n", "\x07"} & set(line)


# -- karat checks ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two models on a table with a column that is the target."""
    folder = tmp_path_factory.mktemp("results")
    frame = pd.DataFrame({"x": range(200), "y": ["low"] * 100 + ["high"] * 100})
    data = karat.Dataset.from_table(frame, "y", name="halves")
    task = karat.Task("halves", data, split={"use": "kfold", "folds": 2}, metrics=["acc"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KARAT_CACHE", str(tmp_path_factory.mktemp("cache")))
        karat.evaluate(["onehot", "random"], task, output=folder)
    return folder


def test_checks_are_printed_with_advice(results, cli):
    said = cli("checks", results)
    assert said.code == 0
    head, message, advice, *_ = said.out.splitlines()
    assert head.startswith("KRT003 warning") and '"x"' in message and "(99%)" in message
    assert advice.strip().startswith("→")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--fail-on", "error"], 0),
        (["--fail-on", "warning"], 1),
        (["--fail-on", "note"], 1),
        (["--fail-on", "note", "--ignore", "KRT003"], 0),
        (["--ignore", "KRT777"], 2),
        (["--fail-on", "nothing"], 2),
    ],
)
def test_exit_codes(results, cli, options, code):
    assert cli("checks", results, *options).code == code


def test_checks_as_json(results, cli):
    findings = json.loads(cli("checks", results, "--json", "--ignore", "KRT0").out)
    assert findings == {"findings": [], "silenced": {"KRT003": 1}}
    (one,) = json.loads(cli("checks", results, "--json").out)["findings"]
    assert one.keys() == {"code", "level", "model", "task", "message", "advice"}
    assert (one["code"], one["model"], one["task"]) == ("KRT003", None, "halves")


def test_a_task_silences_in_its_definition(tmp_path):
    from karat.config.catalog import Catalog

    file = tmp_path / "mine.yaml"
    file.write_text("tasks:\n  mine: {extends: penguins, ignore: [KRT301]}\n")
    assert Catalog([file]).task("mine").ignore == ("KRT301",)
    frame = pd.DataFrame({"x": range(200), "y": ["low"] * 100 + ["high"] * 100})
    data = karat.Dataset.from_table(frame, "y", name="halves")
    runs = karat.evaluate("onehot", karat.Task("h", data, ignore=["KRT003"]), output=tmp_path)
    found = karat.check_runs(runs)
    assert (list(found), dict(found.silenced)) == ([], {"KRT003": 1})


def test_leaderboards_show_findings(results, cli):
    shown = cli("leaderboard", results).out
    assert 'KRT003 Column "x"' in shown
    assert "KRT003" not in cli("leaderboard", results, "--ignore", "KRT003").out
    assert "- KRT003 Column" in cli("leaderboard", results, "--format", "markdown").out
    assert isinstance(json.loads(cli("leaderboard", results, "--json").out), list)
    assert cli("leaderboard", results, "--json", "--ignore", "nothing").code == 2


def test_explain_and_list_need_no_runs(cli):
    assert cli("checks", "--explain", "krt104").out == explain("KRT104")
    listed = cli("checks", "--list").out.splitlines()
    assert [line.split()[0] for line in listed] == [rule.code for rule in RULES]
    unknown = cli("checks", "--explain", "KRT1044")
    assert (unknown.code, 'Did you mean "KRT104"?' in unknown.err) == (2, True)
    assert cli("checks").code == 2


def test_a_run_shows_its_checks(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"x": range(60), "y": ["low"] * 30 + ["high"] * 30})
    frame.to_csv("halves.csv", index=False)
    said = cli("run", "halves.csv", "--target", "y", "-m", "onehot", "-w", "1")
    assert said.code == 0
    assert "KRT003" in said.out
    assert "karat checks results/onehot.halves" in said.out
    quiet = ("--ignore", "KRT003", "-o", "other")
    assert (
        "KRT003"
        not in cli("run", "halves.csv", "--target", "y", "-m", "onehot", "-w", "1", *quiet).out
    )
