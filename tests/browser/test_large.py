"""The page of 500 models × 200 tasks in a browser."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

MODELS, TASKS = 500, 200
ROWS = "#board tbody tr:not(.spacer)"
FIRST = "return document.querySelector('#board tbody th .cut').textContent"


@pytest.fixture(scope="module")
def large(bundles):
    bundle = bundles.make_bundle(MODELS, TASKS, folds=1, seed=5)
    bundle["folds"] = None  # as that many numbers are left out
    return bundle


@pytest.fixture(scope="module")
def opened(browser, large, write_page, tmp_path_factory):
    browser.width(1400)
    browser.console_messages()
    browser.open(write_page(large, tmp_path_factory.mktemp("page") / "large.html"))
    yield browser
    assert browser.console_messages() == []


def test_only_rows_in_view_are_there(opened, large):
    assert 20 < opened.count(ROWS) < 100
    assert opened.run("return document.querySelector('#board table').ariaRowCount") == "501"
    opened.run("document.querySelector('#board .wide').scrollTop = 1e6")
    last = large["models"][-1]["name"]
    opened.until(
        "return [...document.querySelectorAll('#board tbody th .cut')].at(-1).textContent === "
        f"'{last}'"
    )
    assert 20 < opened.count(ROWS) < 100
    opened.run("document.querySelector('#board .wide').scrollTop = 0")
    opened.until(f"{FIRST} === '{large['models'][0]['name']}'")


def test_finding_and_sorting_among_many(opened, large):
    seconds = [model["seconds"] for model in large["models"]]
    opened.click("#board [data-key='seconds']")
    assert opened.run(FIRST) == large["models"][seconds.index(min(seconds))]["name"]
    opened.click("#board [data-key='seconds']")
    assert opened.run(FIRST) == large["models"][seconds.index(max(seconds))]["name"]
    opened.run("Karat.set({ sort: '', down: '', find: 'encoder-49' })")
    assert opened.count(ROWS) == 10
    opened.run("Karat.set({ find: '' })")


def test_ranks_equal_the_bundle(opened, large):
    assert any("f" in states for states in large["states"])
    exact = opened.run("return Karat.ranking.exact")
    assert exact == pytest.approx([model["rank"] for model in large["models"]], abs=1e-9)


def test_the_heat_map_is_painted_and_saved_as_a_drawing(opened):
    opened.find("#heatmap")
    opened.until("return document.querySelector('#heat canvas')")
    colors = opened.run(
        """
        const canvas = document.querySelector('#heat canvas');
        const pen = canvas.getContext('2d');
        const { data } = pen.getImageData(canvas.width / 2, 60, 300, 300);
        const pixel = (_, i) => data.slice(4 * i, 4 * i + 3).join();
        return new Set(Array.from({ length: 90000 }, pixel)).size
        """
    )
    assert colors > 20
    opened.click("#figure-heatmap .saves button:nth-child(1)")
    root = ElementTree.parse(opened.saved("karat-heatmap.svg")).getroot()
    paths = list(root.iter("{http://www.w3.org/2000/svg}path"))
    assert sum(path.get("d").count("M") for path in paths) == MODELS * TASKS
    # one per color, not one per cell
    assert sum(path.get("fill", "").startswith("rgb") for path in paths) < 40


def test_a_task_of_many_models_opens(opened, large):
    opened.run("Karat.set({ task: arguments[0] })", large["tasks"][7]["name"])
    opened.until("return document.querySelector('dialog')?.open")
    assert 20 < opened.count("dialog tbody tr:not(.spacer)") < 100
    opened.click("#close-task")


def test_resampling_does_not_block_the_page(opened):
    """The last test: afterwards fewer tasks are chosen."""
    opened.run(
        """
        window.turns = 0;
        const watch = () => {
          if (!Karat.ranking.ready) window.turns += 1;
          setTimeout(watch, 0);
        };
        watch();
        """
    )
    for tasks in (range(100), range(50, 150), range(0, 200, 5)):
        opened.run("Karat.choose(arguments[0])", list(tasks))
    opened.until("return Karat.ranking.ready")
    # other events are handled between slices of the resampling
    assert opened.run("return window.turns") > 10
    low, mean, high = opened.run("const r = Karat.ranking; return [r.low, r.mean, r.high]")
    assert all(1 <= a <= b <= c <= MODELS for a, b, c in zip(low, mean, high, strict=True))
    assert opened.run("return Karat.ranking.tie.filter(Boolean).length") == MODELS
