"""Accessibility of the page by the rules of axe-core, in light and dark, wide and on a phone."""

from __future__ import annotations

import pytest

WIDE, NARROW = 1280, 390
#: pages, themes and widths: every pair of them occurs
VIEWS = [
    ("make_full", "light", WIDE),
    ("make_full", "dark", NARROW),
    ("make_groups", "dark", WIDE),
    ("make_groups", "light", NARROW),
]
#: all that is folded is opened, so that it is checked too
OPEN = "Karat.drawAll(); document.querySelectorAll('details').forEach((e) => (e.open = true))"
RUN = """
const done = arguments[1];
axe.run(arguments[0], {resultTypes: ["violations"]}).then(({violations, passes}) => done({
  passed: passes.length,
  violations: violations.map(({id, nodes}) => [id, nodes.slice(0, 3).map((n) => n.html)]),
}))"""


def check(browser, axe, theme, size=WIDE, part="html"):
    """Return the violations in a part of the open page with a theme and a width."""
    media = [{"name": "prefers-color-scheme", "value": theme}]
    media.append({"name": "prefers-reduced-motion", "value": "reduce"})
    browser.command("Emulation.setEmulatedMedia", {"features": media})
    browser.width(size)
    browser.run(OPEN)
    browser.run(axe)
    browser.driver.set_script_timeout(300)
    found = browser.driver.execute_async_script(RUN, part)
    assert found["passed"] > 20
    return found["violations"]


@pytest.fixture(scope="module")
def opened(browser, bundles, write_page, tmp_path_factory, request):
    """The page of a function of bundles.py, which the parameters of a test name."""
    path = tmp_path_factory.mktemp("axe") / "page.html"
    browser.open(write_page(getattr(bundles, request.param)(), path))
    yield browser
    browser.command("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize(("opened", "theme", "size"), VIEWS, indirect=["opened"])
def test_the_page_has_no_violations(opened, axe, theme, size):
    assert check(opened, axe, theme, size) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("opened", ["make_full", "make_groups"], indirect=True)
def test_the_dialog_of_a_task_and_the_chooser_have_no_violations(opened, axe, theme):
    opened.run("Karat.set({choosing: '1', columns: 'tasks'})")
    assert check(opened, axe, theme) == []
    opened.run("Karat.set({task: Karat.data.tasks[0].name})")
    opened.until("return document.querySelector('dialog[open]')")
    assert check(opened, axe, theme, part="dialog[open]") == []
    opened.run("Karat.set({task: '', choosing: '', columns: ''})")


@pytest.mark.parametrize("opened", ["make_groups"], indirect=True)
def test_a_missing_name_is_found(opened, axe):
    opened.run("document.body.append(document.createElement('button'))")
    found = check(opened, axe, "light")
    opened.run("document.body.lastElementChild.remove()")
    assert [name for name, _ in found] == ["button-name"]
