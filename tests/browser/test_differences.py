"""The picture of the verdict: differences to the first model over these tasks."""

import numpy as np
import pytest
from scipy import stats

from karat.analysis.comparison import compare
from karat.reporting.page import make_bundle

from ..score_data import score_table


@pytest.fixture(scope="module")
def bundle():
    near, far = [0.90, 0.92, 0.91, 0.93], [0.30, 0.33, 0.31, 0.33]
    twin = [0.905, 0.917, 0.912, 0.928]
    return make_bundle(score_table({f"t{t}": {"a": near, "b": twin, "far": far} for t in range(3)}))


@pytest.fixture
def shown(browser, bundle, write_page, tmp_path):
    browser.open(write_page(bundle, tmp_path / "few.html"))
    browser.until("return document.querySelector('#figure-answer svg') !== null")
    return browser


def test_every_model_has_a_row_with_the_numbers_of_the_bundle(shown, bundle):
    rows = bundle["verdict"][0]["these_tasks"]["models"]
    label = shown.run(
        "return document.querySelector('#figure-answer svg').getAttribute('aria-label')"
    )
    for row in rows:
        name = bundle["models"][row["model"]]["name"]
        assert name in shown.texts("#figure-answer svg .name")
        if row["verdict"] != "reference":
            assert f"{name} {row['difference']:+.3f}" in label
    assert shown.count("#figure-answer .first") == 1
    assert not shown.console_messages()


def test_a_model_far_behind_is_written_at_the_edge(shown):
    (text,) = shown.texts("#figure-answer .off")
    assert text.startswith("◀ -0.598")


def test_the_numbers_are_a_table_and_the_limit_is_said_once(shown):
    shown.click(".differences summary")
    assert shown.count(".differences tbody tr") == 2
    said = "return document.body.innerText.split('needs at least 6 tasks').length - 1"
    assert shown.run(said) == 1


@pytest.fixture(scope="module")
def table():
    """Return scores of four models on seven tasks; one skips three of them, two are often equal."""
    rng, scores = np.random.default_rng(0), {}
    for t in range(7):
        easy = rng.normal(0.7, 0.02, 5)
        models = {
            "a": easy,
            "b": easy if t < 3 else easy - 0.01,
            "c": easy - rng.normal(0.2, 0.01, 5),
        }
        models["d"] = easy + rng.normal(0.12 if t == 1 else -0.05, 0.02, 5)
        scores[f"t{t}"] = {name: models[name] for name in models if name != "d" or t < 4}
    return score_table(scores, kind={f"t{t}": "odd" if t == 1 else "even" for t in range(7)})


@pytest.mark.parametrize("tasks", [[0, 1, 2], [1, 4], [3], [0, 1, 2, 3, 6]])
def test_a_selection_of_tasks_shows_what_python_says_of_them(
    browser, table, write_page, tmp_path, tasks
):
    whole = make_bundle(table)
    browser.open(write_page(whole, tmp_path / "whole.html"))
    browser.run("Karat.choose(arguments[0])", tasks)
    browser.until("return Karat.ranking.ready")
    part = make_bundle(table[table["task"].isin([f"t{t}" for t in tasks])])
    names = [model["name"] for model in whole["models"]]
    letters = {model["name"]: model["tie"] for model in part["models"]}
    assert dict(zip(names, browser.run("return Karat.ranking.tie"), strict=True)) == letters
    verdict = part["verdict"][0]
    rows = {row["model"]: row for row in browser.run("return Karat.ranking.facts.models")}
    for row in verdict["these_tasks"]["models"]:
        shown = rows[names.index(part["models"][row["model"]]["name"])]
        for one, other in zip([shown, *shown["by_task"]], [row, *row["by_task"]], strict=True):
            numbers = [[x[key] for key in ("difference", "low", "high", "p")] for x in (one, other)]
            found, expected = np.array(numbers, dtype=float)
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
            assert one["verdict"] == other["verdict"]
    texts = {line["what"]: line["text"] for line in verdict["lines"]}
    assert browser.texts(".verdict .limit") == [texts["limit"]]
    if len(tasks) > 1:
        assert browser.texts(".verdict .answer") == [texts["answer"]]
        below = [texts[name] for name in ("margin", "tasks") if name in texts]
        assert browser.texts(".verdict dd") == below
        two = compare(table[table["task"].isin([f"t{t}" for t in tasks])], "a", "c").overall
        script = "return Karat.meanDifference(Karat.ranking, arguments[0], arguments[1])"
        mean = browser.run(script, names.index("a"), names.index("c"))
        found = [mean[key] for key in ("difference", "low", "high", "p")]
        assert found == pytest.approx([two.gain, two.gain_low, two.gain_high, two.p], rel=1e-3)
    assert browser.count("#figure-answer .first") == 1
    assert not browser.console_messages()


@pytest.mark.parametrize("complete", [True, False])
def test_six_tasks_or_more_show_the_mean_ranks_that_the_letters_are_about(
    browser, write_page, tmp_path, complete
):
    rng = np.random.default_rng(4)
    skill = {"a": 0.80, "b": 0.79, "c": 0.78, "d": 0.6}
    scores = {
        f"t{t}": {
            name: mean + rng.normal(0, 0.02) + rng.normal(0, 0.01, 3)
            for name, mean in skill.items()
            if complete or name in "ab" or t != 3
        }
        for t in range(10)
    }
    table, tasks = score_table(scores), [0, 1, 2, 3, 4, 6, 7, 8]
    whole = make_bundle(table)
    browser.open(write_page(whole, tmp_path / "many.html"))
    assert browser.texts("#figure-answer .margin") == []
    title = browser.run("return document.querySelector('.differences').innerText")
    assert "Difference of mean ranks to" in title
    browser.run("Karat.choose(arguments[0])", tasks)
    browser.until("return Karat.ranking.ready")
    part = make_bundle(table[table["task"].isin([f"t{t}" for t in tasks])])
    names = [model["name"] for model in whole["models"]]
    shown = {row["model"]: row for row in browser.run("return Karat.ranking.overTasks.models")}
    for row in part["verdict"][0]["over_tasks"]["models"]:
        other = shown[names.index(part["models"][row["model"]]["name"])]
        numbers = [[x[key] for key in ("difference", "low", "high", "p")] for x in (row, other)]
        expected, found = np.array(numbers, dtype=float)
        if row["verdict"] != "reference":
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
        assert (other["verdict"], other["tasks"]) == (row["verdict"], row["tasks"])
    browser.click(".differences summary")
    (head,) = browser.texts(".differences thead tr")
    assert "rank [95 %]" in head and "gain [95 %]" in head
    assert "mean gain on these 8 tasks alone" in browser.texts(".differences details")[0]
    assert not browser.console_messages()


def test_two_models_on_a_few_tasks_have_the_p_of_compare(browser, table, write_page, tmp_path):
    few = table[table["task"].isin(["t0", "t1", "t3"])]
    bundle = make_bundle(few)
    browser.open(write_page(bundle, tmp_path / "few.html"))
    names = [model["name"] for model in bundle["models"]]
    keys = [names.index(name) for name in ("a", "d")]
    script = "const [a, b] = arguments[0].map((m) => Karat.keyOf(Karat.data.models, m));"
    browser.run(f"{script} Karat.set({{a, b}})", keys)
    rows = compare(few, "a", "d").tasks.set_index("task")["p_holm"]
    texts = browser.texts("#compare table:first-of-type tbody tr")
    for task, p in rows.dropna().items():
        (text,) = [text for text in texts if text.startswith(task)]
        assert ("< 0.001" if p < 0.001 else f"{p:.3f}") in text


def test_a_selection_without_tests_names_the_command_that_makes_them(shown):
    shown.run("Karat.set({common: '1'})")
    shown.until("return Karat.ranking.ready")
    (text,) = shown.texts(".verdict .answer")
    assert text.endswith("karat leaderboard RUNS --by task --common makes them.")
    assert shown.run("return document.querySelector('.differences').hidden")


def test_quantiles_and_tails_of_t_are_those_of_scipy(shown):
    script = "return [Karat.student.exceeded(arguments[0], arguments[1]), arguments[1]]"
    for freedom in (1, 2.5, 7.3, 120.4, 31000.7):
        for chance in (0.025, 1e-5):
            value, _ = shown.run(script, chance, freedom)
            assert value == pytest.approx(stats.t.isf(chance, freedom), rel=1e-8)
