"""Accessibility of the page by the rules of axe-core, in light and dark, wide and on a phone."""

from __future__ import annotations

import pytest

SIZES = (1280, 390)
#: all that is folded is opened, so that it is checked too
OPEN = "Karat.drawAll(); document.querySelectorAll('details').forEach((e) => (e.open = true))"
RUN = """
const done = arguments[0];
axe.run(document, {resultTypes: ["violations"]}).then(({violations, passes}) => done({
  passed: passes.length,
  violations: violations.map(({id, nodes}) => [id, nodes.slice(0, 3).map((n) => n.html)]),
}))"""


def check(browser, axe, theme, size):
    """Return the violations of the open page with a theme and a width."""
    media = [{"name": "prefers-color-scheme", "value": theme}]
    media.append({"name": "prefers-reduced-motion", "value": "reduce"})
    browser.command("Emulation.setEmulatedMedia", {"features": media})
    browser.width(size)
    browser.run(OPEN)
    browser.run(axe)
    browser.driver.set_script_timeout(300)
    found = browser.driver.execute_async_script(RUN)
    assert found["passed"] > 20
    return found["violations"]


@pytest.fixture(scope="module", params=["make_full", "make_groups"])
def opened(browser, bundles, write_page, tmp_path_factory, request):
    path = tmp_path_factory.mktemp("axe") / "page.html"
    browser.open(write_page(getattr(bundles, request.param)(), path))
    yield browser
    browser.command("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_has_no_violations(opened, axe, theme, size):
    assert check(opened, axe, theme, size) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_dialog_of_a_task_and_the_chooser_have_no_violations(opened, axe, theme):
    opened.run("Karat.set({choosing: '1', columns: 'tasks'})")
    assert check(opened, axe, theme, SIZES[0]) == []
    opened.run("Karat.set({task: Karat.data.tasks[0].name})")
    opened.until("return document.querySelector('dialog[open]')")
    assert check(opened, axe, theme, SIZES[0]) == []
    opened.run("Karat.set({task: '', choosing: '', columns: ''})")


def test_a_missing_name_is_found(opened, axe):
    opened.run("document.body.append(document.createElement('button'))")
    found = check(opened, axe, "light", SIZES[0])
    opened.run("document.body.lastElementChild.remove()")
    assert [name for name, _ in found] == ["button-name"]
