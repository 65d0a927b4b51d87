"""GEval's page of a real server in a browser: upload, watch, read the results, compare."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pandas as pd
import pytest

if not all(map(find_spec, ("fastapi", "uvicorn"))):
    pytest.skip("needs karat[serve]", allow_module_level=True)

TESTS = Path(__file__).parents[1]


def load(path):
    """Return a module of the tests that cannot be imported by its name."""
    spec = spec_from_file_location(f"karat_{path.stem}", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


screens = load(Path(__file__).with_name("test_screens.py"))
data = load(TESTS / "ext" / "compat" / "geval" / "geval_gold.py")
TOKEN, RUN_AXE = screens.TOKEN, screens.RUN_AXE
screen, wrong, give = screens.screen, screens.wrong, screens.give
STRANGE = "my <script>alert(1)</script> vectors.txt".replace("/", "")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("geval")
    data.write_gold(folder / "gold")
    data.write_text(folder / STRANGE, data.vectors())
    (folder / "broken.txt").write_text("a 1.0 2.0\nb 1.0\n")
    (folder / "empty.txt").write_text("")
    (folder / "runs").mkdir()
    return folder


@pytest.fixture(scope="module")
def address(place, served):
    options = {"token": TOKEN, "geval_gold": place / "gold"}
    with served(place / "runs", **options) as found:
        yield found


def opened(screen, address, query=""):
    screen.open(f"{address}geval{query}")
    screen.until("return document.querySelectorAll('#similarity_metric option').length > 5")


def tick(screen, task):
    screen.find(f"#tasks .ticks input[value={task}]").click()


def test_mistakes_are_shown_next_to_their_field(screen, address, place):
    opened(screen, address)
    screen.click("#send")
    assert wrong(screen, "file")
    assert screen.run("return document.activeElement.id") == "file"
    screen.find("#file").send_keys(str(place / "empty.txt"))
    screen.click("#send")
    assert "empty" in wrong(screen, "file")
    screen.find("#file").send_keys(str(place / STRANGE))
    assert screen.find("#name").get_attribute("value") == "my-script-alert-1-script-vectors.txt"
    give(screen, "vector_size", "six")
    screen.click("#send")
    assert wrong(screen, "vector_size")
    give(screen, "vector_size", "6")
    give(screen, "token", "")
    screen.click("#send")
    assert wrong(screen, "token")


def test_upload_evaluate_read_and_compare(screen, address, place):
    opened(screen, address)
    screen.find("#file").send_keys(str(place / STRANGE))
    tick(screen, "EntityRelatedness")
    give(screen, "vector_size", "6")
    give(screen, "token", TOKEN)
    screen.click("#send")
    rows = "return document.querySelectorAll('#ranks tr.score').length"
    assert screen.until(rows) == 2
    assert screen.texts("#ranks tbody th") == ["EntityRelatedness · KORE"]
    score = pd.read_csv(place / "runs" / "comparison.csv", sep=" ")["score_value"][0]
    cells = screen.texts("#ranks tr.score td")[1:4]
    assert cells == ["kendalltau_correlation", f"{score:.4f}", "1 of 1"]
    names = " ".join(screen.texts("#tables summary"))
    assert "entityRelatedness_KORE_results.csv" in names and "log.txt" in names
    assert screen.count("#all li a") == 1 and screen.count("#main script") == 0
    screen.click("#files a")
    name = screen.run("return document.querySelector('#files a').href").split("/")[-2]
    with zipfile.ZipFile(screen.saved(f"{name}.zip")) as packed:
        files = {Path(each).name for each in packed.namelist()}
    assert {"entityRelatedness_KORE_results.csv", "comparison_values.csv", "log.txt"} <= files
    # again, with the file on the server, compared with the first run
    opened(screen, address)
    screen.choose("vectors", "my-script-alert-1-script-vectors.txt")
    tick(screen, "EntityRelatedness")
    screen.choose("similarity_metric", "euclidean")
    screen.click("#compare_with .ticks input")
    screen.click("#send")
    assert screen.until(rows) == 2
    assert screen.texts("#ranks tr.score td")[3].endswith(" of 2")
    screen.until("return document.querySelectorAll('#all li a').length === 2")
    screen.click("#all li:last-child a")
    screen.until("return location.search.startsWith('?result=')")
    assert screen.until(rows) == 2


@pytest.mark.parametrize(("name", "size"), [("broken.txt", ""), (STRANGE, "7")])
def test_a_broken_file_and_a_wrong_size_fail_with_a_reason(screen, address, place, name, size):
    opened(screen, address)
    screen.find("#file").send_keys(str(place / name))
    give(screen, "name", f"bad{size}.txt")
    tick(screen, "EntityRelatedness")
    give(screen, "vector_size", size)
    give(screen, "token", TOKEN)
    screen.click("#send")
    state = "return document.getElementById('state').textContent"
    assert "exit code 2" in screen.until(f"{state}.includes('Failed') && {state[7:]}")
    printed = screen.run("return document.querySelector('#output pre').textContent")
    assert f"bad{size}.txt" in printed and "Traceback" not in printed
    assert str(place) not in printed


def test_a_failed_evaluation_is_run_again_with_the_token_only(screen, address, place):
    opened(screen, address)
    screen.find("#file").send_keys(str(place / "broken.txt"))
    give(screen, "name", "again.txt")
    tick(screen, "EntityRelatedness")
    give(screen, "token", TOKEN)
    screen.click("#send")
    failed = "return document.getElementById('state').textContent.includes('Failed')"
    screen.until(failed)
    error = "document.getElementById('current-error').textContent"
    give(screen, "token", "another-token-0123456789")
    screen.click("#actions button")
    assert "oken" in screen.until(f"return {error}")
    give(screen, "token", TOKEN)
    screen.click("#actions button")
    screen.until(f"return !{error}")
    screen.until(failed)
    assert not screen.run(f"return {error}")


def test_a_server_without_gold_standards_says_so(screen, place, served, tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path))
    (tmp_path / "none").mkdir()
    with served(place / "runs", token=TOKEN, geval_gold=tmp_path / "none") as found:
        opened(screen, found)
        assert "--geval-gold" in wrong(screen, "gold")
        assert screen.count("#tasks input:disabled") == 6


def test_a_result_that_does_not_exist(screen, address):
    opened(screen, address, "?result=result_nothing")
    assert "result_nothing" in wrong(screen, "result")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_results_are_accessible_and_fit(screen, axe, address, place, theme, width):
    names = sorted((place / "runs").glob("result_*/log.txt"))
    assert names
    media = [{"name": "prefers-color-scheme", "value": theme}]
    screen.command("Emulation.setEmulatedMedia", {"features": media})
    try:
        screen.width(width)
        opened(screen, address, f"?result={names[0].parent.name}")
        screen.until("return document.querySelectorAll('#ranks tr.score').length")
        screen.run("document.getElementById('current').hidden = false")
        screen.run("document.querySelectorAll('details').forEach((e) => (e.open = true))")
        screen.click("#send")
        assert screen.run("return document.documentElement.scrollWidth") <= width
        screen.run(axe)
        screen.driver.set_script_timeout(300)
        assert screen.driver.execute_async_script(RUN_AXE) == []
    finally:
        screen.command("Emulation.setEmulatedMedia", {"features": []})
