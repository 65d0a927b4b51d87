"""The benchmark against other systems: a failing case is a row, and scores are compared."""

import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="no benchmarks here")


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import peers

    yield peers
    for name in ("peers", "recipe"):
        sys.modules.pop(name, None)


def program(code):
    return [sys.executable, "-c", code]


def scored(number):
    return program(f"print('cpu_seconds=2'); print('scores={{\"a\": {number}}}')")


@pytest.fixture
def measured(peers, monkeypatch, tmp_path, capsys):
    """Run cases of name, original and Karat; return what was printed and which failed."""

    def measure(*cases):
        from recipe import Case, Recipe

        made = [Case(name, *commands, goal=1.0, tolerance=0.01) for name, *commands in cases]
        recipe = Recipe(title="Theirs", requirements=(), prepare=lambda folder: made)
        monkeypatch.setattr(peers, "import_module", lambda name: SimpleNamespace(RECIPE=recipe))
        monkeypatch.setattr(peers, "cases_of", lambda *given: (made, Path(sys.executable), None))
        options = Namespace(recipes=["theirs"], rounds=1, quick=False, write=False)
        failed = peers.measure(options, str(tmp_path))
        return capsys.readouterr().out, failed

    return measure


def test_a_case_that_fails_is_a_row_and_the_others_go_on(measured):
    text, failed = measured(
        ("broken", program("raise SystemExit('no such file')"), scored(0.5)),
        ("apart", scored(0.5), scored(0.7)),
        ("good", scored(0.5), scored(0.505)),
        ("silent", program("print('cpu_seconds=1')"), scored(0.5)),
    )
    assert failed == ["Theirs: broken", "Theirs: apart"]
    assert "| Theirs: broken | failed: " in text and "no such file" in text
    assert "scores differ by 0.2, allowed 0.01" in text
    good, silent = (
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if line.startswith(("| Theirs: good", "| Theirs: silent"))
    )
    assert (good[1:4], good[6]) == (["2.0", "2.0", "1.0 ×"], "0.005")
    assert silent[6] == "not compared"


def test_rows_replace_those_of_the_same_command(peers, monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"a\n{peers.BEGIN}\n{peers.table(['| x | 1 |', '| y | 2 |'])}{peers.END}\nb\n")
    monkeypatch.setattr(peers, "PAGE", page)
    peers.write_page(["| y | 3 |"])
    peers.write_page(["| z | 4 |"])
    lines = page.read_text().splitlines()
    assert lines[4:8] == ["| x | 1 |", "| y | 3 |", "| z | 4 |", peers.END]


def test_every_recipe_says_what_karat_needs_without_being_imported(peers):
    names = [path.stem for path in peers.RECIPES.glob("*.py")]
    assert peers.extras_of("geval") == ("h5",)
    assert {name for name in names if peers._fact(name, "quick", False)} >= {"rankings", "tables"}
