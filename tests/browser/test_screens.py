"""The pages of a real server in a browser: upload, evaluate, and land on the leaderboard."""

from __future__ import annotations

import json
import zipfile
from importlib.util import find_spec

import pytest

if not all(map(find_spec, ("fastapi", "uvicorn"))):
    pytest.skip("needs karat[serve]", allow_module_level=True)

from karat.results.run import Run

TOKEN = "0123456789abcdef-token"
DEFINITIONS = """
tasks:
  texts:
    extends: classification
    dataset: {path: halves.csv, fields: [x], target: y, modality: text}
    metrics: [acc]
    split: {folds: 2}
  halves <i>two:
    extends: classification
    dataset: {path: halves.csv, target: y}
    metrics: [acc]
    split: {folds: 2}
suites:
  mine & <b>yours: {tasks: [texts, "halves <i>two"], models: [dummy]}
constraints:
  small: {max_runtime_seconds: 9000, max_mem_size_mb: 4096, cores: 1}
"""
STRANGE = "x/<script>alert(1)</script> y"


def write_run(folder, model, value):
    """Write a finished run with one task and one fold."""
    task = {"name": "halves", "kind": "classification", "metrics": ["acc"], "dataset": "halves"}
    task |= {"folds": [0], "fingerprint": "", "about": {}, "higher_is_better": {"acc": True}}
    about = {"model": model, "suite": "mine", "constraint": "default", "mode": "local", "seed": 42}
    about |= {"stamp": "20260101T000000", "karat": "0.1.0", "version": "1", "params": {}}
    run = Run.create(
        folder, {**about, "versions": {}, "tasks": [{**task, "duplicate_rows": [0, 0]}]}
    )
    view = {"corruption": "", "severity": 0.0, "draw": 0, "coverage": 1.0, "scores": {"acc": value}}
    record = {"spec": "", "model": model, "task": "halves", "fold": 0, "repeat": 0, "seed": 42}
    record |= {"metric": "acc", "status": "ok", "info": "", "views": [view], "notes": []}
    record |= {"history": [], "utc": "2026-01-01T00:00:00", "seconds": 1.0}
    run.write({**record, "kind": "classification"}, {})
    return run.folder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("screens")
    rows = "".join(f"{i},{'low' if i < 10 else 'high'}\n" for i in range(20))
    (folder / "halves.csv").write_text("x,y\n" + rows)
    (folder / "my.yaml").write_text(DEFINITIONS)
    vectors = "".join(f"{i} {-1.0 if i < 10 else 1.0} 1.0\n" for i in range(20))
    (folder / "my vectors.txt").write_text(vectors)
    (folder / "runs").mkdir()
    write_run(folder / "runs", "first", 0.5)
    packed = write_run(folder / "other", STRANGE, 1.0)
    with zipfile.ZipFile(folder / "packed run.zip", "w") as archive:
        for path in packed.rglob("*.json"):
            archive.write(path, path.relative_to(packed.parent))
    return folder


@pytest.fixture(scope="module")
def address(place, served):
    options = {"token": TOKEN, "constraint": "small", "define": (place / "my.yaml",)}
    with served(place / "runs", **options) as found:
        yield found


@pytest.fixture
def screen(browser):
    """A browser whose console is empty before and after."""
    browser.width(1280)
    browser.console_messages()
    yield browser
    messages = browser.console_messages()
    # the browser reports answers that refuse a request, as they are meant to
    assert [each for each in messages if "Failed to load resource" not in each] == []


def wrong(browser, field):
    """Wait for the error next to a field, and return it."""
    return browser.until(f"return document.getElementById('{field}-error').textContent")


def give(browser, field, text):
    node = browser.find(f"#{field}")
    node.clear()
    node.send_keys(text)


def test_mistakes_are_shown_next_to_their_field(screen, address, place):
    screen.open(f"{address}upload")
    screen.click("#send")
    assert wrong(screen, "file")
    assert screen.run("return document.activeElement.id") == "file"
    screen.find("#file").send_keys(str(place / "my vectors.txt"))
    assert screen.find("#name").get_attribute("value") == "my-vectors.txt"
    screen.click("#send")
    assert wrong(screen, "token")
    give(screen, "token", "a wrong token")
    screen.click("#send")
    screen.until("return !document.getElementById('send').disabled")
    assert wrong(screen, "token")
    give(screen, "token", TOKEN)
    give(screen, "name", STRANGE + ".txt")
    screen.click("#send")
    assert STRANGE in wrong(screen, "name")
    assert screen.run("return document.activeElement.getAttribute('aria-invalid')") == "true"
    assert screen.count("#name-error script") == 0
    assert not list((place / "runs").glob(".uploads/vectors/*"))


def test_upload_vectors_evaluate_them_and_find_the_row(screen, address, place):
    """With the keyboard alone, from the upload to the leaderboard."""
    screen.open(f"{address}upload")
    screen.find("#file").send_keys(str(place / "my vectors.txt"))
    give(screen, "token", TOKEN + "\n")
    screen.until("return document.querySelector('#uploaded a')")
    screen.until("return document.querySelector('#stored .what')")
    assert screen.texts("#stored .what") == ["my-vectors.txt"]
    assert screen.run("return document.activeElement.textContent") == "Evaluate it"
    screen.keys("\n")
    chosen = "return document.querySelector('#models input:checked')?.value"
    assert screen.until(chosen) == "upload:my-vectors.txt"
    screen.until("return document.querySelectorAll('#tasks .ticks input').length")
    suites = "return [...document.querySelectorAll('#suite option')].map((o) => o.value)"
    assert "mine & <b>yours" in screen.run(suites)
    screen.choose("suite", "mine & <b>yours")
    tasks = "#tasks .ticks span"
    screen.until(f"return document.querySelectorAll('{tasks}').length === 2")
    assert screen.texts(tasks) == ["texts", "halves <i>two"]
    assert screen.count("#tasks i") == 0
    screen.find("#tasks .ticks input[value=texts]").send_keys(" ")
    give(screen, "folds", "one")
    screen.find("#seed").send_keys("\n")
    assert wrong(screen, "folds")
    give(screen, "folds", "0 1")
    assert screen.find("#token").get_attribute("value") == TOKEN  # kept in this tab
    screen.find("#seed").send_keys("\n")
    assert screen.until("return new URLSearchParams(location.search).get('id')")
    # the page of the evaluation leads to the leaderboard when the evaluation has finished
    screen.until("return location.pathname === '/' && document.querySelector('tr.mine')")
    assert screen.texts("tr.mine th .cut") == ["my-vectors.txt"]
    screen.open(f"{address}evaluate")
    link = "return document.querySelector('#all a')?.textContent"
    assert screen.until(link).startswith("upload:my-vectors.txt on mine & <b>yours")


def test_upload_a_run_and_find_its_row(screen, address, place):
    screen.open(f"{address}upload")
    screen.find("#file").send_keys(str(place / "packed run.zip"))
    assert screen.find("input[value=runs]").is_selected()
    assert screen.find("#name").get_attribute("value") == "packed-run"
    give(screen, "token", TOKEN)
    screen.click("#send")
    screen.until("return location.pathname === '/' && document.querySelector('tr.mine')")
    assert screen.texts("tr.mine th .cut") == [STRANGE]
    assert screen.count("#board script") == 0


def test_an_evaluation_that_is_refused_or_unknown(screen, address):
    screen.open(f"{address}evaluate?id=nothing")
    assert "nothing" in wrong(screen, "current")
    screen.until("return document.querySelectorAll('#tasks .ticks input').length")
    script = "document.querySelector('#models .ticks').append(Object.assign("
    script += (
        "document.createElement('input'), {type: 'checkbox', checked: true, value: 'nobody'}))"
    )
    screen.run(script)
    give(screen, "token", TOKEN)
    screen.click("#send")
    assert "nobody" in wrong(screen, "models")


def test_the_page_follows_events_and_polls_without_them(screen, address, place):
    asked = "return performance.getEntriesByType('resource').map((e) => new URL(e.name).pathname)"
    screen.open(address)
    before = screen.until("return Karat.data.progress?.done")
    write_run(place / "runs", f"model {before}", 0.25)
    screen.until(f"return Karat.data.progress.done > {before}")
    screen.until(f"return Karat.data.models.some((m) => m.name === 'model {before}')")
    paths = screen.run(asked)
    assert paths.count("/api/v1/bundle") <= 3
    # a browser without event streams polls
    hidden = {"source": "delete window.EventSource"}
    script = screen.command("Page.addScriptToEvaluateOnNewDocument", hidden)
    try:
        screen.open(address)
        screen.until(
            "return performance.getEntriesByName(location.origin + '/api/v1/bundle').length > 1"
        )
        write_run(place / "runs", "polled", 0.125)
        screen.until("return Karat.data.models.some((m) => m.name === 'polled')")
    finally:
        screen.command("Page.removeScriptToEvaluateOnNewDocument", script)


@pytest.mark.parametrize("page", ["upload", "evaluate", "geval", "docs"])
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_and_their_controls_can_be_hit(screen, address, page, width):
    screen.width(width)
    screen.open(f"{address}{page}")
    if page == "evaluate":
        screen.until("return document.querySelectorAll('#tasks .ticks input').length")
    assert screen.run("return document.documentElement.scrollWidth") <= width
    small = """return [...document.querySelectorAll('form button, form select, form label.option, '
      + 'form input[type=text], form input[type=password], .ticks label')]
      .filter((e) => e.offsetHeight && e.offsetHeight < 30).map((e) => e.outerHTML)"""
    assert screen.run(small) == []
    named = (
        "return [...document.querySelectorAll('.ways [aria-current]')].map((e) => e.textContent)"
    )
    titles = {"upload": "Upload", "evaluate": "Evaluate", "geval": "GEval", "docs": "API"}
    assert screen.run(named) == [titles[page]]


RUN_AXE = """
const done = arguments[0];
axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => done(
  violations.map(({id, nodes}) => [id, nodes.slice(0, 3).map((n) => n.html)])
))"""


@pytest.mark.parametrize("page", ["upload", "evaluate", "docs", ""])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_accessible(screen, axe, address, page, theme):
    """No rule of axe-core is violated, with an error shown and everything unfolded."""
    media = [{"name": "prefers-color-scheme", "value": theme}]
    screen.command("Emulation.setEmulatedMedia", {"features": media})
    try:
        screen.open(f"{address}{page}", "rows=first" if not page else "")
        if page == "evaluate":
            screen.until("return document.querySelectorAll('#tasks .ticks input').length")
            screen.run("document.getElementById('current').hidden = false")
        screen.run("document.getElementById('send')?.click()")
        screen.run("document.querySelectorAll('details').forEach((e) => (e.open = true))")
        screen.run(axe)
        screen.driver.set_script_timeout(300)
        assert screen.driver.execute_async_script(RUN_AXE) == []
    finally:
        screen.command("Emulation.setEmulatedMedia", {"features": []})


def test_a_read_only_server_has_no_enabled_form(screen, place, served):
    with served(place / "runs") as found:
        for page in ("upload", "evaluate", "geval"):
            screen.open(f"{found}{page}")
            assert screen.run("return document.getElementById('send').matches(':disabled')")
        assert json.loads(screen.run("return document.documentElement.dataset.writable")) is False
