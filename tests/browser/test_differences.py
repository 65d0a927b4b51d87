"""The picture of the verdict: differences to the first model over these tasks."""

import pytest

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


def test_a_selection_of_tasks_hides_the_picture(shown):
    shown.run("Karat.choose([0, 1])")
    assert shown.run("return document.querySelector('.differences').hidden")
