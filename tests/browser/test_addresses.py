"""Links of sections, models and tasks: where they land, what the address says, Back and Forward."""

from __future__ import annotations

import pytest

#: how far a section may be from the edge below the navigation, in pixels
NEAR = 12
#: how many pixels the top of a section is below the navigation; 0 where the page ends before
AWAY = """
  const root = document.documentElement;
  const box = document.getElementById(arguments[0]).getBoundingClientRect();
  const edge = parseFloat(getComputedStyle(root).scrollPaddingTop) || 0;
  const ends = scrollY + innerHeight >= root.scrollHeight - 2 && box.top > edge;
  return ends && box.top < innerHeight ? 0 : box.top - edge"""
#: whether the page has stood still for ten frames
STILL = """
  const now = `${scrollY} ${document.documentElement.scrollHeight}`;
  window.quiet = now === window.seen ? (window.quiet ?? 0) + 1 : 0;
  window.seen = now;
  return window.quiet > 10"""
SECTIONS = "return [...document.querySelectorAll('.ways a')].map((a) => a.hash.slice(1))"


@pytest.fixture(scope="module")
def pages(bundles, write_page, tmp_path_factory):
    folder = tmp_path_factory.mktemp("addresses")
    many = {**bundles.make_bundle(500, 200, folds=1, seed=5), "folds": None}
    return {
        "full": write_page(bundles.make_full(), folder / "full.html"),
        "many": write_page(many, folder / "many.html"),
    }


@pytest.fixture
def window(browser):
    yield browser
    browser.command("Emulation.setEmulatedMedia", {"features": []})
    browser.width(1400)


def reduce_motion(browser, reduced):
    value = "reduce" if reduced else "no-preference"
    features = [{"name": "prefers-reduced-motion", "value": value}]
    browser.command("Emulation.setEmulatedMedia", {"features": features})


def distance(browser, section):
    browser.run("window.quiet = 0")
    browser.until(STILL)
    return browser.run(AWAY, section)


def address(browser):
    return browser.run("return location.hash")


@pytest.mark.parametrize("width, reduced", [(1280, False), (1280, True), (390, False)])
def test_a_link_lands_at_its_section_at_the_first_and_second_click(window, pages, width, reduced):
    window.width(width)
    reduce_motion(window, reduced)
    window.open(pages["full"])
    sections = window.run(SECTIONS)
    again = sections[1::4] if width > 400 and not reduced else []
    for section in [*sections[::-1], *again]:
        window.run("document.querySelector(`.ways a[href='#${arguments[0]}']`).click()", section)
        assert abs(distance(window, section)) <= NEAR, section
        assert address(window) == f"#{section}"


def test_a_section_of_a_page_of_500_models_is_where_its_link_lands(window, pages):
    window.width(1280)
    reduce_motion(window, False)
    window.open(pages["many"])
    for section in window.run(SECTIONS)[::-2]:
        window.run("document.querySelector(`.ways a[href='#${arguments[0]}']`).click()", section)
        assert abs(distance(window, section)) <= NEAR, section


def test_a_pasted_address_opens_the_same_view(window, pages):
    for section in ("compare", "cost", "origin"):
        window.open(pages["full"], section)
        assert abs(distance(window, section)) <= NEAR, section
    window.open(pages["full"], "cost?find=encoder-00")
    assert abs(distance(window, "cost")) <= NEAR
    assert window.run("return Karat.get('find')") == "encoder-00"
    window.open(pages["full"], "/task/clas-000")
    assert window.run("return document.getElementById('task').open")
    assert window.texts("#task-title") == ["clas-000"]
    window.open(pages["full"], "/model/encoder-003")
    assert abs(distance(window, "compare")) <= NEAR
    names = window.run("return Karat.data.models.map((model) => model.name)")
    chosen = window.run("return Number(document.getElementById('compare-a').value)")
    assert names[chosen] == "encoder-003"


def test_a_model_has_an_address_and_back_and_forward_work(window, pages):
    window.width(1280)
    window.open(pages["full"])
    first = window.texts("#board tbody th .link")[0]
    window.click("#board tbody th .link")
    assert abs(distance(window, "compare")) <= NEAR
    assert address(window) == f"#/model/{first}"
    window.run("document.querySelector(\".ways a[href='#origin']\").click()")
    distance(window, "origin")
    window.run("Karat.set({ task: 'clas-000' })")
    assert address(window).startswith("#/task/clas-000")
    assert window.run("return document.getElementById('task').open")
    window.driver.back()
    window.until("return !document.getElementById('task').open")
    window.driver.back()
    window.until(f"return location.hash === '#/model/{first}'")
    assert abs(distance(window, "compare")) <= NEAR
    window.driver.forward()
    window.until("return location.hash.startsWith('#origin')")
    assert abs(distance(window, "origin")) <= NEAR


HOSTILE = ["a b/c", "<script>alert(1)</script>", "50%", "q?x=1&y#z", 'say "hi"', "../..", "ü ö"]


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_of_a_task_fits_into_an_address(window, bundles, write_page, tmp_path, name):
    bundle = bundles.make_bundle(3, 2, seed=1)
    bundle["tasks"][0]["name"] = name
    page = write_page(bundle, tmp_path / "page.html")
    window.open(page)
    window.run("Karat.set({ task: Karat.keyOf(Karat.data.tasks, 0) })")
    pasted = address(window)[1:]
    window.open(page, pasted)
    assert window.run("return document.getElementById('task').open")
    assert window.texts("#task-title") == [name]
