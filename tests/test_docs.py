"""The docs: code runs, links resolve, commands parse."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

from karat.analysis.checks import RULES
from karat.cli.app import karat

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_of_a_page_runs(page, script, tmp_path):
    (tmp_path / "page.py").write_text("\n\n".join(blocks(page, "python")))
    done = script(tmp_path / "page.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.name)
def test_example_runs_and_keeps_its_asserts(example, script, tmp_path):
    done = script(example, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "an example shows something"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    checks = {ROOT / "docs" / "checks" / f"{rule.code}.md" for rule in RULES}  # made by make docs
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert page.parent / target in checks or (page.parent / target).exists(), target


def test_the_reference_is_made_from_the_docstrings():
    made = runpy.run_path(str(ROOT / "scripts" / "reference.py"))
    assert (ROOT / "docs" / "reference.md").read_text() == made["main"]()


def commands() -> list[str]:
    found = []
    for page in PAGES:
        for block in blocks(page, "console"):
            found += [line.partition(" #")[0].strip() for line in block.splitlines()]
    return sorted({line for line in found if line.startswith("karat ")})


@pytest.mark.parametrize("line", commands())
def test_commands_of_the_docs_parse(line):
    context = karat.make_context("karat", shlex.split(line)[1:])
    words = vars(context).get("_protected_args") or vars(context)["protected_args"]  # click 8.1
    verb, command, rest = karat.resolve_command(context, [*words, *context.args])
    assert command is not None, verb
    command.make_context(verb, rest, parent=context)
