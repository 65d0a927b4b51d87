"""The page of small results in a browser: clicks, keys, selections and saved files."""

from __future__ import annotations

import csv
import io
import struct
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import karat
from karat.analysis.comparison import compare
from karat.core.formatting import format_p, format_rank, rounded
from karat.ext.decide.cheapest_wording import cheapest_rows
from karat.output.latex_table import escape_latex
from karat.output.markdown_table import escape_markdown
from karat.reporting.formats import render
from karat.reporting.page import make_bundle
from karat.stats.pairwise_ranks import mean_ranks
from karat.stats.ranking import letters_of, rank_bounds, rank_models, sign_patterns

from ..score_data import score_table, write_run

SVG = "{http://www.w3.org/2000/svg}"
NAMES = "return [...document.querySelectorAll('#board tbody th .cut')].map((e) => e.textContent)"
MEANS = "return Karat.ranking.mean"


@pytest.fixture(scope="module")
def full(bundles):
    return bundles.make_full()


@pytest.fixture(scope="module")
def page(full, write_page, tmp_path_factory):
    return write_page(full, tmp_path_factory.mktemp("page") / "full.html")


@pytest.fixture
def opened(browser, page):
    browser.width(1400)
    browser.console_messages()
    browser.open(page)
    yield browser
    assert browser.console_messages() == []


def chosen_ranks(bundle, tasks):
    """Return the result of karat.stats.ranking for some tasks of a bundle."""
    values, takes = [], []
    for t in sorted(tasks, key=lambda t: bundle["tasks"][t]["name"]):
        sign = 1 if bundle["tasks"][t]["higher"][0] else -1
        folds = bundle["folds"][t]
        size = max(len(row) for row in folds if row)
        rows = [[np.nan] * size if row is None else row for row in folds]
        values.append(sign * np.array(rows, dtype=float))
        takes.append([state in ".f" for state in bundle["states"][t]])
    return rank_models(values, np.array(takes).T)


def test_ranks_on_all_tasks_equal_the_bundle(opened, full):
    exact = opened.run("return Karat.ranking.exact")
    assert exact == pytest.approx([model["rank"] for model in full["models"]], abs=1e-9)


@pytest.fixture(scope="module")
def wide(bundles, write_page, tmp_path_factory):
    """Return a bundle with more tasks than have all sign patterns, and its page."""
    bundle = bundles.make_bundle(9, 30, seed=2)
    return bundle, write_page(bundle, tmp_path_factory.mktemp("page") / "wide.html")


def assert_equal_to_python(browser, bundle, tasks):
    browser.run("Karat.choose(arguments[0])", tasks)
    expected = chosen_ranks(bundle, tasks)
    browser.until("return Karat.ranking.ready")
    mean = np.array(browser.run("return Karat.ranking.mean"), dtype=float)
    np.testing.assert_array_equal(mean, expected.mean)  # to the last bit
    for name in ("low", "high"):
        found = np.array(browser.run(f"return Karat.ranking.{name}"), dtype=float)
        assert found == pytest.approx(getattr(expected, name), abs=1e-6, nan_ok=True)
    assert browser.run("return Karat.ranking.tie") == expected.ties
    assert browser.run("return Karat.ranking.top") == expected.top.tolist()
    p = browser.run("return Karat.ranking.p.map((row) => [...row])")
    np.testing.assert_array_equal(np.array(p, dtype=float), expected.p)
    return expected


@pytest.mark.parametrize("tasks", [[0, 1, 2], [3, 4], [1, 4, 6, 9], list(range(9))])
def test_chosen_tasks_rank_as_in_python(opened, full, tasks):
    found = assert_equal_to_python(opened, full, tasks)
    assert any(found.ties) == (len(tasks) >= 6)


def test_many_tasks_are_compared_with_the_random_signs_of_python(browser, wide):
    bundle, page = wide
    browser.open(page)
    for tasks in (list(range(0, 28)), list(range(3, 30, 2)), [29, *range(12)]):
        found = assert_equal_to_python(browser, bundle, tasks)
    assert len(set(found.ties)) > 1 and np.isnan(found.each).any()


def test_a_model_without_a_common_task_has_no_rank(opened):
    # the last two models never meet: the one with fewer tasks is left out
    script = """
      const rows = (values) => values.map((value) => [value]);
      const task = (who, values) => ({ who, rows: rows(values) });
      const tasks = [
        task([0, 1, 2], [3, 2, 1]), task([0, 1, 2], [1, 2, 3]), task([0, 1, 3], [3, 2, 1]),
      ];
      return Karat.ranks.rankEach(tasks, 4).mean"""
    found = opened.run(script)
    # 0 loses one of three tasks to 1, both lose one of two to 2
    assert found[:3] == pytest.approx([1 + 1 / 3 + 1 / 2, 1 + 2 / 3 + 1 / 2, 1 + 1 / 2 + 1 / 2])
    assert found[3] is None
    ranks = np.array([[1.0, 3, 1], [2, 2, 2], [3, 1, np.nan], [np.nan, np.nan, 3]])
    np.testing.assert_array_equal(np.array(found, dtype=float), mean_ranks(ranks))


def test_the_order_is_that_of_the_ranks_also_with_few_tasks(browser, full, write_page, tmp_path):
    models = [{**model, "few": m == 0, "rank": 1.0 + m} for m, model in enumerate(full["models"])]
    browser.open(write_page({**full, "models": models}, tmp_path / "few.html"))
    assert browser.run("return Karat.order()") == list(range(len(models)))
    first = browser.texts("#board tbody th .link")[0]
    assert first == models[0]["name"]


def test_signs_are_those_of_python(opened):
    for tasks in (1, 6, 12, 13, 40):
        script = "return Karat.ranks.signPatterns(arguments[0]).map((row) => [...row])"
        np.testing.assert_array_equal(opened.run(script, tasks), sign_patterns(tasks))


def test_quantiles_are_those_of_scipy(opened):
    for degrees in (1, 2, 3, 4, 5, 8, 9, 30, 199):
        found = opened.run("return Karat.ranks.quantile(0.05, arguments[0])", degrees)
        assert found == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-9)


def test_one_chosen_task_has_the_letters_of_its_test(opened, full):
    models = len(full["models"])
    p = np.where(np.eye(models, dtype=bool), np.nan, 0.5)
    p[0, 1:] = p[1:, 0] = 0.0001
    taking = [m for m, state in enumerate(full["states"][2]) if state in ".f"]
    pairs = [[a, b, 0.1, 0.01, 4, p[a, b]] for a in taking for b in taking if a < b]
    test = {"test": "t", "why": "", "claim": "learners", "step": 0, "pairs": pairs}
    script = "Karat.data.tests.differences = Karat.data.tasks.map(() => arguments[0])"
    opened.run(script, test)
    opened.run("Karat.choose([2])")
    opened.until("return Karat.ranking.ready")
    p[[m for m in range(models) if m not in taking]] = np.nan
    p[:, [m for m in range(models) if m not in taking]] = np.nan
    np.fill_diagonal(p, 1.0)
    rank = chosen_ranks(full, [2]).each[:, 0]
    top = rank_bounds(rank, p)[2]
    assert set(opened.run("return Karat.ranking.low")) == {None}
    assert opened.run("return Karat.ranking.tie") == letters_of(rank, p)
    assert opened.run("return Karat.ranking.top") == top.tolist()
    assert len(set(letters_of(rank, p))) > 1


def test_choosing_again_gives_the_same_intervals_and_letters(opened):
    script = "Karat.choose([0, 1, 2, 3, 4, 5, 7]);"
    script += " return new Promise((done) => Karat.on('intervals', done))"
    found = "return JSON.stringify([Karat.ranking.low, Karat.ranking.high, Karat.ranking.tie])"
    opened.run(script)
    first = opened.run(found)
    opened.run("Karat.choose([0, 1])")
    opened.run(script)
    assert opened.run(found) == first


@pytest.mark.parametrize("seed", range(6))
def test_letters_are_those_of_python(opened, seed):
    rng = np.random.default_rng(seed)
    models = 20 + seed
    p = np.where(np.triu(rng.random((models, models)) < 0.1 + seed / 8, 1), 0.01, 0.5)
    p = np.minimum(p, p.T)
    means = rng.permutation(models) + 1.0
    script = """
      const steps = Karat.ranks.letters(arguments[0], arguments[1]);
      let step = steps.next();
      while (!step.done) step = steps.next();
      return step.value"""
    assert opened.run(script, means.tolist(), p.tolist()) == letters_of(means, p)


def test_ranks_share_their_mean_and_failed_is_worst(opened):
    assert opened.run("return [...Karat.ranks.ranked([0.5, 0.9, 0.5, 0.1])]") == [2.5, 1, 2.5, 4]
    script = "return Karat.ranks.rankEach([{who: [0, 2], rows: [[NaN, 1], [0.5, 0.5]]}], 3).mean"
    # the first is worst in a fold by a hair, and best in the other
    assert opened.run(script) == [1, None, 2]
    script = "return Karat.ranks.rankEach([{who: [0, 2], rows: [[NaN], [-7]]}], 3).mean"
    assert opened.run(script) == [2, None, 1]


def test_only_common_tasks_are_those_all_shown_models_have(opened, full):
    opened.find("#find").send_keys("encoder-00")
    opened.until("return Karat.get('find') === 'encoder-00'")
    opened.click("#common")
    shown = [m for m, model in enumerate(full["models"]) if "encoder-00" in model["name"]]
    common = [
        t
        for t, folds in enumerate(full["folds"])
        if all(folds[m] for m in shown)
        and any(all(folds[m][f] is not None for m in shown) for f in range(5))
    ]
    assert 0 < len(common) < len(full["tasks"])
    assert opened.run("return Karat.ranking.compared") == len(common)
    assert f"compared on {len(common)} task" in opened.find("#status").text
    opened.until("return Karat.ranking.ready")


@pytest.mark.parametrize("repeats", [1, 3])
def test_two_models_have_the_p_of_karat_compare(browser, write_page, tmp_path, repeats):
    rng = np.random.default_rng(repeats)
    models = {"one": 0.72, "other": 0.7}
    tasks = {
        f"t{t}": {m: (v + rng.normal(0, 0.02, 5 * repeats)).tolist() for m, v in models.items()}
        for t in range(7)
    }
    table = score_table(tasks)
    table = table.assign(repeat=table["fold"] // 5, fold=table["fold"] % 5)
    browser.open(write_page(make_bundle(table), tmp_path / "two.html"), "a=one&b=other")
    expected = compare(table, "one", "other").tasks.set_index("task")
    rows = [
        [cell.text for cell in row.find_elements("css selector", "th, td")]
        for row in browser.driver.find_elements("css selector", "#compare .pair tbody tr")
    ]
    assert sorted(row[0] for row in rows) == sorted(expected.index)
    for row in rows:
        found = expected.loc[row[0]]
        assert row[5:8] == [format_p(found["p"]), format_p(found["p_holm"]), "corrected t"]


NEXT = "return Karat.nextTask(Karat.ranking, Karat.data.models.length)"


@pytest.mark.parametrize("skipped", [0.0, 0.25])
def test_the_next_task_is_that_of_python(browser, write_page, tmp_path, skipped):
    rng = np.random.default_rng(3)
    for m, name in enumerate("abcde"):
        scores = {f"t{t:02}": (rng.random(2) + 0.1 * m).round(2).tolist() for t in range(30)}
        scores["t07"][0] = None  # a failed fold
        skip = {task: "declined" for task in scores if rng.random() < skipped}
        write_run(tmp_path / "runs", name, {**scores, **skip})
    browser.open(write_page(make_bundle(tmp_path / "runs"), tmp_path / "page.html"))
    rows = karat.next_task(tmp_path / "runs").models.set_index("model")
    names = browser.run("return Karat.data.models.map((model) => model.name)")
    for name, found in zip(names, browser.run(NEXT), strict=True):
        expected = rows.loc[name]
        assert (found is None) == bool(np.isnan(expected["next_low"]))
        if found is not None:
            ends = [expected["next_low"], expected["next_high"], expected["tasks"]]
            assert [found["low"], found["high"], found["tasks"]] == ends
            assert found["first"] == pytest.approx(expected["first"], abs=1e-9)
            assert found["loss"] == pytest.approx(expected["loss"], abs=1e-9)
    column = [text for text in browser.texts("#board thead th") if text.startswith("next task")]
    assert column == ["next task90 % · first · loss"]
    best = rows.dropna(subset=["next_low"]).iloc[0]
    assert f"{best['next_low']:.0f} – {best['next_high']:.0f}" in browser.texts("#board .next")[0]
    # a selection of tasks is computed anew; with fewer than 19 there is no such column
    browser.run("Karat.choose([...Array(20).keys()])")
    chosen = [f"t{t:02}" for t in range(20)]
    tasks = browser.run("return Karat.data.tasks.map((task) => task.name)")[:20]
    assert tasks == chosen
    if not skipped:
        assert [row["tasks"] for row in browser.run(NEXT)] == [20] * 5
    browser.run("Karat.choose([0, 1, 2, 3, 4])")
    assert browser.run(NEXT) is None
    assert browser.count("#board [data-key='next']") == 0
    assert browser.console_messages() == []


def test_one_fold_is_not_tested(browser, write_page, tmp_path):
    bundle = make_bundle(score_table({"t": {"logreg": 0.896, "dummy": 0.5}}))
    browser.open(write_page(bundle, tmp_path / "one.html"))
    assert "not tested: one fold" in browser.texts("#compare .pair tbody")[0]
    assert "not tested: one fold" in browser.texts("#differences .lead")[0]


def test_numbers_are_those_of_the_terminal(opened):
    values = [0, -0.0, -8.4e-5, -0.0004, 0.0005, 0.12345, 0.0625, 1.25, -1.0625, 9.9996, 54.916]
    values += [100.25, 999.96, 1000.5, -1001.5, 12345.6, 1.125e6, -7.2e9, 2e20]
    shown = opened.run("return arguments[0].map((value) => Karat.number(value))", values)
    assert shown == [rounded(value) for value in values]
    ranks = opened.run("return [1.25, 1.35, 2.75, 3].map((rank) => rank.toFixed(1))")
    assert ranks == [format_rank(rank) for rank in (1.25, 1.35, 2.75, 3)]
    assert opened.run("return Karat.number(-8.4e-5, 5)") == "-0.000084"  # next to the pointer


def test_every_section_is_there_and_in_the_navigation(opened):
    ids = opened.run("return [...document.querySelectorAll('main > section')].map((s) => s.id)")
    expected = (
        "verdict board heatmap differences folds corruption learning cost cheapest maps compare"
    )
    assert ids == f"{expected} checks failures data origin".split()
    links = opened.run(
        "return [...document.querySelectorAll('.ways a')].map((a) => a.getAttribute('href'))"
    )
    assert links == [f"#{name}" for name in ids]
    opened.click(".ways a[href='#cost']")
    assert opened.run("return document.activeElement.id") == "cost"


def test_a_click_on_a_head_sorts_the_better_first_and_again_the_other_way(opened, full):
    for t in (0, 3):  # higher is better, lower is better
        up = full["tasks"][t]["higher"][0]
        scores = full["scores"][t][0]
        best = (max if up else min)(s for s in scores if s is not None)
        opened.click(f"#board [data-key='t{t}']")
        assert opened.run(NAMES)[0] == full["models"][scores.index(best)]["name"]
        way = "descending" if up else "ascending"
        assert opened.texts(f"#board th[aria-sort='{way}'] .sort") == [full["tasks"][t]["name"]]
        # models without a score come last in either order
        without = {full["models"][m]["name"] for m, s in enumerate(scores) if s is None}
        assert set(opened.run(NAMES)[len(scores) - len(without) :]) == without
        opened.click(f"#board [data-key='t{t}']")
        assert set(opened.run(NAMES)[len(scores) - len(without) :]) == without
        assert opened.run(NAMES)[0] != full["models"][scores.index(best)]["name"]
    assert opened.count("#board th[aria-sort]") == 1


def test_keys_alone_sort_and_focus_stays(opened, full):
    opened.run("document.querySelector('#board [data-key=model]').focus()")
    opened.keys("\ue007")  # enter
    names = sorted(model["name"] for model in full["models"])
    assert opened.run(NAMES) == names
    assert opened.run("return document.activeElement.dataset.key") == "model"
    opened.keys(" ")
    assert opened.run(NAMES) == names[::-1]


def test_finding_hides_rows_and_the_address_remembers(opened, page, full):
    opened.find("#find").send_keys("010")
    opened.until("return Karat.get('find') === '010'")
    assert opened.run(NAMES) == ["encoder-010"]
    assert opened.run(MEANS) == [model["rank"] for model in full["models"]]
    opened.open(page, opened.run("return location.hash.slice(1)"))
    assert opened.run(NAMES) == ["encoder-010"]
    assert opened.find("#find").get_attribute("value") == "010"


def test_tasks_are_chosen_by_kind_data_and_one_by_one(opened, full):
    opened.click("#choose-tasks")
    kinds = [task["kind"] for task in full["tasks"]]
    opened.click("#chooser fieldset:nth-child(2) legend input")
    left = [t for t, kind in enumerate(kinds) if kind != kinds[3]]
    assert opened.run("return Karat.ranking.chosen") == left
    heads = opened.texts("#board thead .sort")
    assert full["tasks"][left[0]]["name"] in heads and full["tasks"][3]["name"] not in heads
    opened.click("#chooser [data-task='0']")
    assert opened.run("return Karat.ranking.chosen") == left[1:]
    first = "document.querySelector('#chooser fieldset legend input')"
    assert opened.run(f"return [{first}.checked, {first}.indeterminate]") == [False, True]
    opened.click("#chooser [data-option='dataset']")
    opened.click("#chooser fieldset:nth-child(1) legend input")
    assert opened.run("return Karat.ranking.chosen") == [0, *left[1:]]
    assert opened.texts("#choose-tasks") == [f"Tasks: {len(left)} of {len(kinds)} ▾"]
    opened.until("return Karat.ranking.ready")


def test_another_metric_ranks_anew(opened, full):
    opened.choose("metric", "acc")
    assert opened.run("return [0, 3].map((t) => Karat.ranking.metric(t))") == [1, 0]
    assert "acc ↑" in opened.texts("#board thead small")
    # acc of these results is auc turned round: who was first on a task is last now
    opened.click("#board [data-key='t0']")
    scores = [s for s in full["scores"][0][0] if s is not None]
    assert opened.run(NAMES)[0] == full["models"][full["scores"][0][0].index(min(scores))]["name"]
    opened.until("return Karat.ranking.ready")


def test_marks_color_a_model_everywhere(opened):
    mark = "#board tbody tr:first-child .mark"
    assert "c0" in opened.find(mark).get_attribute("class")
    opened.click(mark)
    assert "none" in opened.find(mark).get_attribute("class")
    opened.click("#board tbody tr:last-child .mark")
    assert "c0" in opened.find("#board tbody tr:last-child .mark").get_attribute("class")


def test_the_verdict_comes_first_with_every_line(opened, full):
    first = "return document.querySelector('main > section').id"
    assert opened.run(first) == "verdict"
    (verdict,) = full["verdict"]
    assert opened.texts("#verdict .answer") == [verdict["lines"][0]["text"]]
    assert opened.texts("#verdict .answer strong") == ["encoder-000"]
    shown = [line["text"] for line in verdict["lines"][1:]]
    assert opened.texts("#verdict .evidence dd") == shown
    assert opened.texts("#verdict .weak li") == verdict["weak"]
    assert opened.texts("#verdict pre") == [verdict["next_step"]["command"]]
    opened.click("#verdict .weak button")
    assert opened.run("return document.activeElement.id") == "checks"


def test_the_verdict_on_a_selection_is_that_of_the_browser(opened):
    opened.run("Karat.choose([0, 1, 2])")
    opened.until("return Karat.ranking.ready")
    leader = opened.run("return Karat.model(Karat.order()[0])")
    assert opened.texts("#verdict .answer strong")[0] == leader
    assert opened.count("#verdict .evidence") == 0
    opened.run("Karat.choose(Karat.data.tasks.map((_, t) => t))")
    assert opened.count("#verdict .evidence") == 1


@pytest.mark.parametrize(
    ("kind", "second"),
    [("ranking", "board"), ("robustness", "corruption"), ("comparison", "compare")],
)
def test_what_the_verdict_is_about_comes_next(browser, full, write_page, tmp_path, kind, second):
    bundle = {**full, "verdict": [{**full["verdict"][0], "kind": kind}]}
    browser.open(write_page(bundle, tmp_path / "kind.html"))
    assert browser.run("return document.querySelectorAll('main > section')[1].id") == second


def test_no_letters_are_not_tested_and_no_tie(browser, full, write_page, tmp_path):
    bare = [{**model, "tie": "", "few": False} for model in full["models"]]
    verdict = {**full["verdict"][0], "state": "untested", "reason": "one fold"}
    note = "Differences are not tested: one fold; run more."
    bundle = {**full, "models": bare, "verdict": [verdict], "notes": ["Caption.", note, "Other."]}
    browser.open(write_page(bundle, tmp_path / "untested.html"))
    assert browser.find("#board .untested").text == note
    assert browser.texts("#board .notes li") == ["Other."]
    assert browser.count("#board [data-key=tie]") == 0
    some = [{**model, "tie": "a" if m else ""} for m, model in enumerate(bare)]
    browser.open(write_page({**bundle, "models": some}, tmp_path / "some.html"))
    assert not browser.find("#board .untested").is_displayed()
    assert browser.texts("#board tbody .few") == ["not tested"]
    assert browser.run("return Karat.p(null)") == "not tested"


def test_groups_are_shown_one_at_a_time(browser, bundles, write_page, tmp_path):
    bundle = bundles.make_groups()
    page = write_page(bundle, tmp_path / "groups.html")
    browser.console_messages()
    browser.open(page)
    name = [model["name"] for model in bundle["models"]]
    for place, group in enumerate(bundle["groups"]):
        browser.click(f"#group-{place}")
        assert browser.run(NAMES) == [name[m] for m in group["models"]]
        assert browser.run("return Karat.ranking.mean") == [1, 2, 3, 4]
        assert browser.find("#board .caption").text == bundle["notes"][place]
        own = ["A note.", ("one.", "two.")[place], "both: of them."]
        assert browser.texts("#board .notes li") == own
        tasks = [bundle["tasks"][t]["name"] for t in group["tasks"]]
        assert browser.run("return Karat.data.tasks.map((task) => task.name)") == tasks
        scores = browser.run("return Karat.data.scores.map((task) => task[0])")
        expected = [[bundle["scores"][t][0][m] for m in group["models"]] for t in group["tasks"]]
        assert scores == expected
        winner = bundle["verdict"][place]["winner"]
        assert browser.texts("#verdict .answer strong") == [name[winner]]
        assert len(browser.texts("#verdict .others li")) == 1
        assert len(browser.texts("#board .partial")) == 1
        runs = [run["model"] for run in bundle["runs"] if run["model"] in group["models"]]
        assert browser.run("return Karat.data.runs.length") == len(runs)
    browser.run("Karat.drawAll()")
    address = browser.run("return location.hash")
    assert "group=texts" in address
    browser.open(page, address[1:])
    assert browser.run(NAMES) == [name[m] for m in bundle["groups"][1]["models"]]
    browser.driver.back()
    assert browser.console_messages() == []


def test_findings_are_grouped_by_check_and_failures_by_reason(browser, full, write_page, tmp_path):
    check = {"title": "Title", "advice": "Do it.", "level": "note"}
    codes = ["KRT402"] * 30 + ["KRT101"] * 2 + ["KRT003"]
    checks = [
        {**check, "code": code, "model": i % 3, "task": i % 5, "message": f"Message {i}."}
        for i, code in enumerate(codes)
    ]
    checks[-1]["level"] = "error"
    job = {"model": 1, "status": "failed", "log": "log"}
    failures = [{**job, "task": i % 5, "fold": i, "info": f"No {i} of 'x{i}'"} for i in range(40)]
    failures.append({**job, "task": 0, "fold": 9, "info": "Killed"})
    bundle = {**full, "checks": checks, "failures": failures}
    browser.width(1280)
    browser.open(write_page(bundle, tmp_path / "many.html"))
    codes = [text.split()[0] for text in browser.texts("#checks summary strong")]
    assert codes == ["KRT003", "KRT402", "KRT101"]  # the most severe first
    assert browser.texts("#checks summary .tally") == [" 30", " 2"]
    assert browser.count("#checks li") == len(checks)
    assert browser.texts("#failures > .group .tally") == [" 40 jobs"]
    assert browser.count("#failures > details") == 2
    browser.run("document.querySelector('#failures > .group').open = true")
    browser.until("return document.querySelectorAll('#failures .inner details').length === 40")
    height = "return document.getElementById(arguments[0]).offsetHeight"
    assert browser.run(height, "checks") < 400 and browser.run(height, "failures") < 700


def test_folded_lists_open_when_one_jumps_to_them(opened):
    assert opened.count("#data .card") == 0
    opened.click(".ways a[href='#data']")
    opened.until("return document.querySelectorAll('#data .card').length > 0")


def test_costs_are_in_view_and_rows_are_cards_on_a_phone(browser, bundles, write_page, tmp_path):
    page = write_page(bundles.make_bundle(6, 12), tmp_path / "costs.html")
    ends = (
        "const wide = document.querySelector('#board .wide').getBoundingClientRect();"
        "return ['seconds', 'memory_mb', 'failed'].map((key) => wide.right - document"
        ".querySelector(`#board [data-key=${key}]`).closest('th').getBoundingClientRect().right)"
    )
    browser.width(1280)
    browser.open(page)
    assert min(browser.run(ends)) >= 0
    browser.width(390)
    browser.open(page)
    rows = "return [...document.querySelectorAll('#board tbody tr')].map((e) => e.offsetWidth)"
    assert max(browser.run(rows)) <= 390
    assert browser.run("return document.documentElement.scrollWidth") <= 390
    label = "return getComputedStyle(document.querySelector('#board td'), '::before').content"
    assert browser.run(label) == '"mean rank"'
    browser.choose("sorter", "seconds")
    assert browser.run("return Karat.get('sort')") == "seconds"
    browser.width(1400)


def test_scores_over_fewer_folds_than_planned_are_marked(browser, full, write_page, tmp_path):
    place = next(m for m, sign in enumerate(full["states"][2]) if sign == ".")
    bundle = {**full, "partial": [[place, 2, 3, 5]]}
    browser.open(write_page(bundle, tmp_path / "partial.html"), "columns=tasks")
    (cell,) = browser.run(
        "return [...document.querySelectorAll('#board .partial')].map((e) => e.closest('td').title)"
    )
    assert "3 of 5" in cell
    assert browser.texts("#board .partial") == [" 3/5"]


def test_intervals_without_folds_are_called_narrower(browser, full, opened, write_page, tmp_path):
    shown = "const p = document.getElementById('narrower'); return p.hidden ? '' : p.textContent"
    opened.run("Karat.choose([0, 1, 2])")
    assert opened.run(shown) == ""  # this page has the folds
    opened.run("Karat.set({ tasks: '', metrics: '0:1' })")
    assert "metrics" in opened.run(shown)
    opened.open(write_page({**full, "folds": None}, tmp_path / "without.html"))
    assert opened.run(shown) == ""  # the bundle's own intervals rest on folds
    opened.run("Karat.choose([0, 1, 2])")
    assert "narrower" in opened.run(shown)
    opened.run("Karat.choose([...Karat.data.tasks.keys()])")
    assert opened.run(shown) == ""


def test_notes_explain_only_columns_that_are_shown(browser, full, write_page, tmp_path):
    notes = ["borda: beaten.", "elo: 400 points.", "pareto: none.", "A failed fold is worst."]
    models = [{**model, "elo": 1500 + m} for m, model in enumerate(full["models"])]
    bundle = {**full, "notes": ["The caption.", *notes], "models": models}
    browser.open(write_page(bundle, tmp_path / "notes.html"))
    assert browser.texts("#board .notes li") == [notes[1], notes[3]]
    browser.run("Karat.choose([0, 1, 2])")
    assert browser.texts("#board .notes li") == [notes[3]]
    assert "Elo" not in browser.texts("#board thead .sort")
    browser.run("Karat.choose([...Karat.data.tasks.keys()])")
    assert browser.texts("#board .notes li") == [notes[1], notes[3]]


def test_the_radar_shows_clean_scores(opened):
    opened.run("Karat.drawAll()")
    assert opened.texts("#figure-radar-0 .keys li")[:2] == [
        "encoder-000: clean 0.920",
        "encoder-001: clean 0.903",
    ]
    tip = "return document.querySelector('#figure-radar-0 path.line').dataset.tip"
    assert opened.run(tip).splitlines()[:2] == ["encoder-000", "clean 0.920"]


def test_worst_predictions_and_maps_show_items(opened):
    opened.run("location.hash = 'task=' + encodeURIComponent(arguments[0])", "clas-000")
    opened.until("return document.querySelector('dialog')?.open")
    rows = """return [...document.querySelectorAll('dialog table')].at(-1)"""
    head = opened.run(f"{rows}.querySelector('thead').innerText").split()
    assert head[:5] == ["fold", "item", "content", "target", "prediction"]
    cells = opened.run(f"{rows}.querySelector('tbody tr').innerText").split("\t")
    assert [cell.strip() for cell in cells[:3]] == ["0", "row-0", "<b>text</b> 0"]
    # the second model's texts are stored with the first
    opened.choose("answers-of", "1")
    assert "<b>text</b> 3" in opened.run(f"{rows}.innerText")
    opened.run("Karat.drawAll()")
    tips = (
        "return [...document.querySelectorAll('#figure-map [data-tip]')].map((n) => n.dataset.tip)"
    )
    found = opened.run(tips)
    assert found[0].split("\n")[1] == "k0: <i>x</i>"
    assert found[1].split("\n")[1] == "item k1"


def test_a_task_opens_shows_all_and_closes_by_key(opened, full):
    opened.run("location.hash = 'task=' + encodeURIComponent(arguments[0])", "clas-000")
    opened.until("return document.querySelector('dialog')?.open")
    text = opened.find("dialog").text
    for word in ("3 of 100 test rows", "encoder-000", "Predictions", "Worst predictions"):
        assert word in text
    assert opened.texts("dialog pre")[0].startswith("Traceback")
    figures = opened.run("return [...document.querySelectorAll('dialog figure')].map((f) => f.id)")
    assert figures == [f"figure-task-0-{part}" for part in ("folds", "confusion", "calibration")]
    opened.find("#figure-task-0-confusion")  # plots are drawn when they come into view
    opened.until("return document.querySelector('#figure-task-0-confusion text')")
    assert "<b>fish</b>" in opened.texts("dialog svg text"), "markup in a label is text"
    opened.choose("answers-of", "2")
    assert "model=encoder-002" in opened.run("return location.hash")
    opened.find("#figure-task-0-confusion")
    opened.until(
        "return [...document.querySelectorAll('#figure-task-0-confusion text')]"
        ".some((t) => t.textContent === '32')"
    )
    opened.keys("\ue00c")  # escape
    opened.until("return !document.querySelector('dialog').open")
    assert "task=" not in opened.run("return location.hash")


def test_a_regression_has_a_scatter_plot(opened):
    opened.run("location.hash = 'task=regr-004'")
    opened.until("return document.querySelector('#figure-task-4-scatter svg')")
    assert opened.count("#figure-task-4-scatter circle") == 150
    opened.click("#close-task")


def test_arrows_walk_over_the_heat_map_and_enter_opens(opened, full):
    opened.find("#heatmap")
    opened.until("return document.getElementById('heat')")
    opened.run("document.getElementById('heat').focus()")
    opened.keys("\ue014", "\ue015")  # right, down
    order = opened.run("return Karat.order()")
    announced = opened.texts("#heat [aria-live]")[0].splitlines()
    assert announced[:2] == [full["models"][order[1]]["name"], "clas-001"]
    opened.keys("\ue007")
    opened.until("return document.querySelector('dialog')?.open")
    assert opened.texts("#task-title") == ["clas-001"]
    opened.click("#close-task")


def draw_all(browser):
    browser.run("Karat.drawAll()")
    return browser.run("return [...document.querySelectorAll('main figure')].map((f) => f.id)")


def test_every_plot_is_saved_as_svg_png_and_csv(opened):
    figures = draw_all(opened)
    assert len(figures) == 18
    for kind in (
        "heatmap",
        "differences",
        "folds",
        "clean-0",
        "corruption-0-0",
        "radar-0",
        "cost",
        "cheapest",
        "map",
    ):
        assert f"figure-{kind}" in figures
    opened.click("#figure-heatmap .saves button:nth-child(3)")
    assert opened.saved("karat-heatmap.csv").read_text().startswith("model,")
    # nine files in all: the browser asks the user before the eleventh
    for name in ("heatmap", "differences", "cost", "cheapest"):
        for place in (1, 2):
            opened.click(f"#figure-{name} .saves button:nth-child({place})")
        root = ElementTree.parse(opened.saved(f"karat-{name}.svg")).getroot()
        assert root.tag == f"{SVG}svg"
        texts = [node.text for node in root.iter(f"{SVG}text")]
        assert "encoder-000" in texts
        # nothing is left to a style sheet that the file does not have
        assert not [n for n in root.iter() if n.get("class") or "var(" in str(n.attrib)]
        pixels = opened.saved(f"karat-{name}.png").read_bytes()
        assert pixels[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", pixels[16:24])
        assert (width, height) == (2 * int(root.get("width")), 2 * int(root.get("height")))


def test_csv_files_of_plots(opened, full):
    draw_all(opened)
    opened.click("#figure-folds .saves button:nth-child(3)")
    rows = list(csv.reader(io.StringIO(opened.saved("karat-folds.csv").read_text())))
    assert rows[0] == ["model", "task", "fold", "auc"]
    known = [row for row in full["folds"][0] if row]
    assert len(rows) - 1 == sum(map(len, known))
    best = rows[1]
    m = [model["name"] for model in full["models"]].index(best[0])
    assert float(best[3]) == full["folds"][0][m][0]
    share(opened, "Save as CSV")
    board = pd.read_csv(opened.saved("karat-board.csv"))
    assert board["model"].tolist() == opened.run(NAMES)
    assert board["rank"].tolist() == pytest.approx([model["rank"] for model in full["models"]])
    assert board["clas-001"].iloc[0] == pytest.approx(full["scores"][1][0][0])


def share(browser, action):
    """Click on an action of the menu that shares the leaderboard."""
    browser.find("#share")
    browser.run("document.getElementById('share').open = true")
    script = "return [...document.querySelectorAll('#share button')]"
    (button,) = (each for each in browser.run(script) if each.text == action)
    button.click()


def test_a_shared_leaderboard_is_that_of_the_command(browser, tmp_path, write_page):
    rng = np.random.default_rng(4)
    for name in ("one_a", "two|b", "dummy"):
        scores = {f"t{t}_{'x' * t}": rng.random(3).round(3).tolist() for t in range(7)}
        scores["rmse-t"] = (rng.random(3) * 5000).round(2).tolist()
        scores["t1_x"][2] = None if name == "dummy" else scores["t1_x"][2]
        record = {"seconds": float(rng.random() * 9000), "peak_memory_mb": 3000.0}
        write_run(tmp_path / "runs", name, scores, record=record)
    runs = tmp_path / "runs"
    browser.open(write_page(make_bundle(runs), tmp_path / "page.html"))
    board = karat.leaderboard(runs)
    for shape, action, ending in (
        ("markdown", "Save as Markdown", "md"),
        ("latex", "Save as LaTeX", "tex"),
    ):
        (browser.downloads / f"karat-leaderboard.{ending}").unlink(missing_ok=True)
        share(browser, action)
        assert browser.saved(f"karat-leaderboard.{ending}").read_text() == render(board, shape)


def test_texts_are_escaped_as_in_the_command(opened):
    texts = ["a|b <script> my_model _x_", '50 % of & [rest] \\ ^ ~ ` -- {$}#"', "naïve_ß_1 * – … ↑"]
    for name, escape in (("escapeMarkdown", escape_markdown), ("escapeLatex", escape_latex)):
        found = opened.run(f"return arguments[0].map(Karat.{name})", texts)
        assert found == [escape(text) for text in texts]


def test_a_shared_picture_has_a_row_per_shown_model(opened, full):
    opened.find("#find").send_keys("encoder-00")
    opened.until("return Karat.get('find') === 'encoder-00'")
    share(opened, "Save as SVG")
    root = ElementTree.parse(opened.saved("karat-leaderboard.svg")).getroot()
    texts = {node.text for node in root.iter(f"{SVG}text")}
    names = {model["name"] for model in full["models"]}
    assert names & texts == {name for name in names if "encoder-00" in name}
    assert full["title"] in texts
    share(opened, "Save as PNG")
    data = opened.saved("karat-leaderboard.png").read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    size = (2 * int(root.get("width")), 2 * int(root.get("height")))
    assert (width, height) == size


def test_a_picture_of_very_many_leaves_out_tasks_and_models(browser, bundles, write_page, tmp_path):
    browser.open(write_page(bundles.make_bundle(230, 25), tmp_path / "many.html"))
    (browser.downloads / "karat-leaderboard.svg").unlink(missing_ok=True)
    share(browser, "Save as SVG")
    root = ElementTree.parse(browser.saved("karat-leaderboard.svg")).getroot()
    texts = [node.text or "" for node in root.iter(f"{SVG}text")]
    assert sum(text.startswith("encoder-") for text in texts) == 200
    assert not any(text.startswith("clas-") for text in texts)
    assert any("200 of 230" in text for text in texts)


def test_the_menu_closes_by_escape_and_by_a_click_elsewhere(opened):
    opened.click("#share summary")
    assert opened.run("return document.getElementById('share').open")
    opened.keys("\ue00c")
    assert not opened.run("return document.getElementById('share').open")
    opened.click("#share summary")
    opened.click("#board h2")
    assert not opened.run("return document.getElementById('share').open")


def test_a_spreadsheet_calculates_nothing(opened):
    text = opened.run("return Karat.csv([['=1+1', '-a', 'b,\"c', -1.5, null]])")
    assert text == '\'=1+1,\'-a,"b,""c",-1.5,\r\n'


@pytest.mark.parametrize(
    ("low", "high", "some"),
    [
        (1.2e6, 2.9e6, "2.0M"),
        (1e6, 1e6 + 4, "1.000002M"),
        (0, 2.4e5, "100k"),
        (2e9, 5.1e9, "4.0e9"),
        (2e-7, 9e-7, "400e-9"),
        (0.5, 0.9, "0.7"),
        (0, 8000, "4,000"),
    ],
)
def test_ticks_differ_and_are_whole(opened, low, high, some):
    found = opened.run(
        """
        const [mean, model] = [[...arguments], 0];
        const line = { model, x: [0, 1], mean, low: mean, high: mean };
        const sheet = Karat.lineChart({ lines: [line], width: 300, label: "", across: "x" });
        document.body.append(sheet);
        const ticks = [...sheet.querySelectorAll("text[text-anchor=end]")];
        const found = ticks.map((tick) => [tick.textContent, tick.getBBox().x]);
        sheet.remove();
        return found""",
        low,
        high,
    )
    texts = [text for text, _ in found]
    assert some in texts
    assert len(set(texts)) == len(texts) > 2
    assert min(place for _, place in found) >= 0


def test_relative_to_clean_starts_at_one(opened):
    opened.find("#corruption")
    opened.run("document.querySelector('#corruption input[type=checkbox]').click()")
    opened.run("Karat.drawAll()")
    tips = opened.run(
        "return [...document.querySelectorAll('#figure-corruption-0-0 circle')]"
        ".map((c) => c.dataset.tip)"
    )
    assert tips[0] == "encoder-000\n0: 1.000"
    assert len(tips) == 8 * 4  # the marked models at four severities


@pytest.fixture
def composed(browser, bundles, write_page, tmp_path):
    """A page of two corruptions and two compositions on one task."""
    bundle = bundles.make_full(8, 8)
    x, clean = [0, 0.2], (0.9, 0.8, 0.7)
    lost = {"typos": 0.1, "noise": 0.2, "typos+noise": 0.3, "noise+typos": 0.5}
    bundle["curves"] = [
        {
            **{"task": 0, "metric": "auc", "higher": True, "corruption": name},
            "lines": [
                {"model": m, "x": x, "mean": [c, c - less], "low": x, "high": x}
                for m, c in enumerate(clean)
            ],
        }
        for name, less in lost.items()
    ]
    browser.open(write_page(bundle, tmp_path / "composed.html"))
    browser.run("Karat.drawAll()")
    return browser


def bar_values(browser, name):
    found = browser.run(
        "return [...document.querySelectorAll(`#figure-${arguments[0]} rect.dot`)]"
        ".map((bar) => bar.dataset.tip.split('\\n')[1])",
        name,
    )
    return [float(text) for text in found]


def test_bars_of_clean_scores_and_of_compositions(composed):
    assert bar_values(composed, "clean-0") == [0.9, 0.8, 0.7]
    # the mean of what is left of the clean score under the two compositions
    assert bar_values(composed, "composed-0") == pytest.approx([0.5, 0.4, 0.3])
    figures = composed.run(
        "return [...document.querySelectorAll('#corruption figure')].map((one) => one.id)"
    )
    assert figures == ["figure-clean-0", "figure-corruption-0-0", "figure-corruption-0-1"] + [
        "figure-composed-0"
    ], "a composition at one severity has no curve of its own"


def test_one_corruption_is_chosen_with_its_scores(composed):
    lists = "document.querySelectorAll('#corruption .bar select')"
    options = composed.run(f"return [...{lists}[1].options].map((one) => one.value)")
    assert options == ["", "typos", "noise", "typos+noise", "noise+typos"]
    composed.run(
        f"const s = {lists}[1]; s.value = 'noise+typos'; s.dispatchEvent(new Event('change'))"
    )
    composed.run("Karat.drawAll()")
    assert composed.count("#corruption .line") == 3
    rows = composed.run("return [...document.querySelectorAll('#corruption tbody')][0].rows.length")
    assert rows == 3 * 2
    cells = composed.texts("#corruption tbody tr:nth-child(2) > *")[:5]
    assert cells[1:] == ["noise+typos", "0.2", "0.400", "auc"]
    assert composed.count("#corruption .level") == 0
    composed.run("document.querySelectorAll('#corruption input[type=checkbox]')[1].click()")
    composed.run("Karat.drawAll()")
    tips = composed.run(
        "return [...document.querySelectorAll('#corruption .level')].map((one) => one.dataset.tip)"
    )
    assert [tip.split("\n")[1] for tip in tips] == [f"clean: {c}00" for c in (0.9, 0.8, 0.7)]
    assert "corruption=noise" in composed.run("return location.hash")


def test_pareto_front(opened):
    points = [[0, 1.0, 5.0], [1, 2.0, 3.0], [2, 3.0, 4.0], [3, 3.0, 1.0], [4, 9.0, 1.0]]
    assert opened.run("return Karat.front(arguments[0]).map((p) => p[0])", points) == [0, 1, 3]


def test_two_models_side_by_side(opened, full):
    for key, value in (("a", 0), ("b", 11)):
        opened.choose(f"compare-{key}", value)
    both = [
        t
        for t, scores in enumerate(full["scores"])
        if scores[0][0] is not None and scores[0][11] is not None
    ]
    assert f"{len(both)} common tasks" in opened.find("#compared").text
    assert opened.count("#compare .pair tbody tr") == len(both)
    assert "1.11" in opened.texts("#compare > div:last-child tbody")[0]  # the versions differ


CONTRAST = """
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((c) => {
      const share = c / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const probe = document.body.appendChild(document.createElement('i'));
  const color = (name) => {
    probe.style.color = `var(--${name})`;
    return light(getComputedStyle(probe).color);
  };
  const worst = [];
  for (const ink of ['ink', 'soft', 'gold', 'bad'])
    for (const ground of ['back', 'card', 'sunk', 'wash']) {
      const [a, b] = [color(ink), color(ground)].sort((x, y) => y - x);
      worst.push([(a + 0.05) / (b + 0.05), ink, ground]);
    }
  for (const line of ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'glow']) {
    const [a, b] = [color(line), color('card')].sort((x, y) => y - x);
    worst.push([1.5 * (a + 0.05) / (b + 0.05), line, 'card']);  // lines need 3 : 1, text 4.5 : 1
  }
  for (let share = 0; share <= 1; share += 0.02) {
    probe.style.color = Karat.ramp(share);
    const ground = light(getComputedStyle(probe).color);
    probe.style.color = Karat.over(share);
    const [a, b] = [ground, light(getComputedStyle(probe).color)].sort((x, y) => y - x);
    worst.push([(a + 0.05) / (b + 0.05), 'cell', share]);
  }
  probe.remove();
  return worst.filter(([ratio, ink]) => ratio < 4.5 && ink !== 'glow');
"""


def test_themes_are_switched_remembered_and_readable(opened, page):
    grounds = {}
    for theme in ("light", "dark"):
        opened.click(f".top [data-option='{theme}']")
        grounds[theme] = opened.run("return getComputedStyle(document.body).backgroundColor")
        assert opened.run(CONTRAST) == [], theme
        opened.open(page)
        assert opened.run("return document.documentElement.dataset.theme") == theme
    assert grounds["light"] != grounds["dark"]
    opened.click(".top [data-option='auto']")
    assert opened.run("return document.documentElement.dataset.theme ?? 'none'") == "none"


@pytest.mark.parametrize("width", [360, 800])
def test_narrow_screens_scroll_tables_not_the_page(opened, page, width):
    opened.width(width)
    opened.open(page)
    opened.run("Karat.drawAll()")
    wide = opened.run("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide == [width, width]
    opened.run("location.hash = 'task=clas-000'")
    opened.until("return document.querySelector('dialog')?.open")
    assert opened.run("return document.querySelector('dialog').scrollWidth") <= width


def test_a_usual_screen_cuts_no_table_and_scrolls_no_map(opened, page):
    opened.width(1280)
    opened.open(page)
    opened.run("Karat.drawAll()")
    sizes = "const e = document.querySelector(arguments[0]); return "
    tall = opened.run(f"{sizes}[e.scrollHeight, e.clientHeight]", "#figure-heatmap .plot")
    assert tall[0] <= tall[1]
    wide = opened.run(f"{sizes}[e.scrollWidth, e.clientWidth]", "#compare .pair .wide")
    assert wide[0] <= wide[1]


def test_screen_readers_find_landmarks_headings_and_names(opened):
    draw_all(opened)
    assert all(opened.count(f"body > {tag}") for tag in ("header", "nav", "main", "footer"))
    levels = opened.run(
        "return [...document.querySelectorAll('h1, h2, h3')].map((h) => Number(h.tagName[1]))"
    )
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:], strict=False))
    nameless = """
      const named = (e) => e.textContent.trim() || e.getAttribute('aria-label') ||
        e.labels?.length || e.closest('label') || e.title;
      const all = (selector) => [...document.querySelectorAll(selector)];
      const wrong = all('button, select, input, a').filter((e) => !named(e));
      const pictures = all('svg[role=img]').filter((e) => !e.getAttribute('aria-label'));
      const tables = all('table').filter((e) => !e.caption?.textContent);
      return [...wrong, ...pictures, ...tables].map((e) => e.outerHTML.slice(0, 120))"""
    assert opened.run(nameless) == []
    twice = (
        "const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);"
        "return ids.filter((id, i) => ids.indexOf(id) !== i)"
    )
    assert opened.run(twice) == []


def test_paper_has_everything_and_no_controls(opened):
    opened.command("Emulation.setEmulatedMedia", {"media": "print"})
    shown = (
        "return [...document.querySelectorAll('.ways, .bar, .saves')]"
        ".filter((e) => e.offsetHeight).length"
    )
    assert opened.run(shown) == 0
    opened.command("Emulation.setEmulatedMedia", {"media": ""})
    paper = opened.command("Page.printToPDF", {"preferCSSPageSize": True})
    assert len(paper["data"]) > 20_000
    # what was not in view yet was drawn for it
    assert opened.count("main .plot:empty") == 0


def test_a_free_model_is_in_the_cost_chart(browser, full, write_page, tmp_path):
    models = [{**model, "few": False} for model in full["models"]]
    models[2]["seconds"] = 0.0
    browser.open(write_page({**full, "models": models}, tmp_path / "free.html"))
    browser.run("Karat.drawAll()")
    place = (
        "const dots = [...document.querySelectorAll('#figure-cost circle')];"
        "const x = (dot) => Number(dot.getAttribute('cx'));"
        "const free = dots.find((dot) => dot.dataset.tip.startsWith(arguments[0]));"
        "return [dots.length, x(free), Math.min(...dots.filter((d) => d !== free).map(x))]"
    )
    for linear in ("", "1"):
        browser.run("Karat.set({ linear: arguments[0] }); Karat.redrawAll()", linear)
        dots, free, others = browser.run(place, models[2]["name"])
        assert dots == len(models)
        assert 46 <= free < others  # within the axes
    ticks = browser.texts("#figure-cost svg text")
    assert "0" in ticks


def test_the_cheapest_model_is_as_python_found_it(browser, write_page, tmp_path):
    for model, size, loss in (("big", 64, 0.0), ("big@8d", 8, 0.001), ("big@2d", 2, 0.03)):
        scores = {f"t{t}": [0.8 - loss * (1 + t / 9), 0.7 - loss] for t in range(6)}
        about = {"base": "big"} if "@" in model else {}
        write_run(tmp_path, model, scores, record={"dimensions": size, "questions": 500}, **about)
    found = karat.cheapest(tmp_path, cost="bytes")
    assert found.model == "big@8d"
    browser.open(write_page(make_bundle(tmp_path), tmp_path / "cheapest.html"))
    browser.run("Karat.drawAll()")
    assert browser.texts("#cheapest > p") == [found.sentence]
    cells = browser.run(
        "return [...document.querySelectorAll('#cheapest tbody tr')]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    assert cells == cheapest_rows(found).to_numpy().tolist()
    dots = browser.run(
        "return [...document.querySelectorAll('#figure-cheapest circle')]"
        ".map((dot) => [dot.dataset.tip.split('\\n')[0], Number(dot.getAttribute('cx')), "
        "Number(dot.getAttribute('cy'))])"
    )
    places = {name: (x, y) for name, x, y in dots}
    assert places["big@2d"][0] < places["big@8d"][0] < places["big"][0]
    assert places["big@2d"][1] > places["big@8d"][1] > places["big"][1]
    band = browser.run(
        "const r = document.querySelector('#figure-cheapest rect.band');"
        "return [r.y.baseVal.value, r.y.baseVal.value + r.height.baseVal.value]"
    )
    # 0.01 up and down: the loss of 0.0013 is within the band, that of 0.037 is not
    assert band[0] < places["big@8d"][1] < band[1] < places["big@2d"][1]
    middle = sum(band) / 2
    assert middle == pytest.approx(places["big"][1], abs=0.2)


def test_the_title_does_not_scroll(browser, full, write_page, tmp_path):
    sizes = (
        "const h = document.querySelector('h1');"
        "return [getComputedStyle(h).overflowY, h.clientHeight, h.title]"
    )
    browser.width(1280)
    for title in ("quickstart gypq", "a very long title " * 100):
        browser.open(write_page({**full, "title": title}, tmp_path / "title.html"))
        overflow, height, tip = browser.run(sizes)
        assert overflow == "hidden" and height < 220
        assert bool(tip) == (len(title) > 80)


def test_a_wide_screen_shows_a_wide_leaderboard(browser, bundles, write_page, tmp_path):
    bundle = bundles.make_bundle(5, 14)
    browser.width(1920)
    browser.open(write_page(bundle, tmp_path / "wide.html"))
    script = (
        "const e = document.querySelector('#board .wide'); return e.scrollWidth - e.clientWidth"
    )
    assert browser.count("#board thead th") > 18
    assert browser.run(script) <= 0


def test_escape_closes_the_chooser_and_returns_the_focus(opened):
    opened.click("#choose-tasks")
    opened.find("#chooser input[type=search]").send_keys("clas")
    opened.keys("\ue00c")  # clears the text
    assert not opened.run("return document.getElementById('chooser').hidden")
    opened.keys("\ue00c")
    assert opened.run("return document.getElementById('chooser').hidden")
    assert opened.run("return document.activeElement.id") == "choose-tasks"
    opener = "return document.activeElement.getAttribute('aria-expanded')"
    assert opened.run(opener) == "false"


def test_no_common_task_is_explained(browser, bundles, write_page, tmp_path):
    bundle = bundles.make_bundle(3, 3, missing=0)
    for t in range(3):  # each model lacks another task
        bundle["states"][t] = "".join("d" if m == t else "." for m in range(3))
        for row in bundle["scores"][t]:
            row[t] = None
        bundle["folds"][t][t] = None
    browser.open(write_page(bundle, tmp_path / "apart.html"))
    text = "const p = document.getElementById('none-common'); return p.hidden ? '' : p.textContent"
    assert browser.run(text) == ""
    browser.click("#common")
    assert browser.run("return Karat.ranking.compared") == 0
    assert "all 3 shown models" in browser.run(text) and "2 of 3" in browser.run(text)
    browser.find("#find").send_keys("000")
    browser.until("return Karat.get('find') === '000'")
    assert "two models" in browser.run(text)


def test_back_and_forward_undo_and_repeat_choices(opened, full):
    opened.find("#find").send_keys("encoder-00")
    opened.until("return Karat.get('find') === 'encoder-00'")
    opened.click("#common")
    opened.choose("metric", "acc")
    opened.run("Karat.set({ task: 'clas-000' })")
    opened.until("return document.querySelector('dialog')?.open")
    back = "history.back()"
    opened.run(back)
    opened.until("return !document.querySelector('dialog').open")
    opened.run(back)
    opened.until("return document.getElementById('metric').value === ''")
    assert opened.run("return Karat.ranking.metric(0)") == 0
    opened.run(back)
    opened.until("return !document.getElementById('common').checked")
    assert opened.run("return Karat.ranking.own")
    opened.run(back)  # all letters at once
    opened.until("return document.getElementById('find').value === ''")
    assert len(opened.run(NAMES)) == len(full["models"])
    opened.run("history.forward()")
    opened.until("return document.getElementById('find').value === 'encoder-00'")
    assert opened.run("return document.documentElement.dataset.ready") == "1"


def test_a_model_of_the_leaderboard_is_compared_on_click(opened, full):
    opened.click("#board tbody tr:nth-child(4) th .link")
    name = opened.run(NAMES)[3]
    assert opened.run("return Karat.get('a')") == name
    chosen = "return Karat.model(document.getElementById('compare-a').value)"
    assert opened.run(chosen) == name
    assert name in opened.texts("#compared")[0]
    assert opened.run("return document.activeElement.id") == "compare"


def test_landmarks_have_different_names(opened):
    draw_all(opened)
    script = """
      const named = (e) => e.getAttribute('aria-label') ??
        document.getElementById(e.getAttribute('aria-labelledby')).textContent;
      const marks = document.querySelectorAll('section[aria-labelledby], [role=region], nav');
      return [...marks].map(named)"""
    names = opened.run(script)
    assert len(names) > 10 and sorted(names) == sorted(set(names))


def test_paper_is_light_even_from_a_dark_screen(opened):
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    opened.command("Emulation.setEmulatedMedia", {"features": dark})
    fill = (
        "const rect = document.querySelector('#hatch rect');"
        "return Number(`0x${rect.getAttribute('fill').slice(1, 3)}`)"
    )
    theme = "return document.documentElement.dataset.theme ?? 'none'"
    try:
        opened.run("Karat.redrawAll(); Karat.drawAll()")
        assert opened.run(fill) < 0x80
        opened.run("dispatchEvent(new Event('beforeprint'))")
        assert opened.run(fill) > 0xC0
        opened.run("dispatchEvent(new Event('afterprint')); Karat.drawAll()")
        assert opened.run(fill) < 0x80 and opened.run(theme) == "none"
    finally:
        opened.command("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize(("tasks", "all_tasks"), [(2, True), (8, True), (14, False)])
def test_a_leaderboard_on_paper_is_legible(
    browser, bundles, write_page, tmp_path, tasks, all_tasks
):
    browser.width(1400)
    browser.open(
        write_page(bundles.make_bundle(6, tasks), tmp_path / "paper.html"), "columns=tasks"
    )
    browser.run("dispatchEvent(new Event('beforeprint'))")
    browser.command("Emulation.setEmulatedMedia", {"media": "print"})
    browser.width(1032)  # A4 across, without its margins
    script = (
        "const table = document.querySelector('#board table');"
        "const across = table.closest('section').classList.contains('across');"
        "return [table.style.zoom * 8.5, table.getBoundingClientRect().width, across]"
    )
    points, wide, across = browser.run(script)
    names = browser.texts("#board thead .sort")
    browser.command("Emulation.setEmulatedMedia", {"media": ""})
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert points >= 7 and wide <= 1032
    assert across == (tasks > 2)
    assert ("clas-000" in names) == all_tasks
    assert "clas-000" in browser.texts("#board thead .sort")  # as before
    assert browser.count(".across") == 0


def test_names_are_text_and_nothing_runs(browser, bundles, write_page, tmp_path):
    path = write_page(bundles.make_nasty(), tmp_path / "nasty.html")
    browser.width(360)
    browser.console_messages()
    browser.open(path)
    draw_all(browser)
    for place in range(4):
        browser.run("Karat.set({ task: Karat.keyOf(Karat.data.tasks, arguments[0]) })", place)
        browser.until("return document.querySelector('dialog').open")
    browser.run("document.querySelectorAll('dialog .saves button').forEach((b) => b.click())")
    browser.run("document.querySelector('dialog').close()")
    browser.run("Karat.choose([0, 1, 2]); Karat.set({ find: 'script' })")
    browser.until("return Karat.ranking.ready")
    assert browser.run("return window.hacked ?? null") is None
    assert browser.count("img, main script, dialog script, a[href^='javascript:' i]") == 0
    assert sorted(browser.run(NAMES)) == sorted(n for n in bundles.NASTY if "script>" in n)
    browser.run("Karat.set({ find: '' })")
    names = browser.run(NAMES)
    assert bundles.NASTY[3] in names  # all of its 10 kB
    # marks that turn the direction are shown, not obeyed
    assert any("\ufffdright to left\ufffd" in name for name in names)
    assert browser.run("return document.documentElement.scrollWidth") == 360
    assert browser.console_messages() == []


@pytest.fixture(scope="module")
def real(two_classes, line, words, tmp_path_factory):
    tasks = [two_classes(), two_classes("again", data="other"), line(), words()]
    models = ["onehot", "dummy", "random", "tfidf"]
    return make_bundle(karat.evaluate(models, tasks, output=tmp_path_factory.mktemp("runs")))


def test_the_page_of_a_real_run(browser, real, write_page, tmp_path):
    browser.width(1400)
    browser.console_messages()
    browser.open(write_page(real, tmp_path / "real.html"))
    assert browser.run(NAMES) == [model["name"] for model in real["models"]]
    exact = browser.run("return Karat.ranking.exact")
    assert exact == pytest.approx([model["rank"] for model in real["models"]], abs=1e-5)
    draw_all(browser)
    browser.click("#heat")
    browser.until("return document.querySelector('dialog')?.open")
    assert "Predictions" in browser.find("dialog").text
    assert browser.console_messages() == []
