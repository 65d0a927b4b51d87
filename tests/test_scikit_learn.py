"""Everyday wishes: the code of scikit-learn and of Karat in the docs have equal scores."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = Path(__file__).parent.parent / "docs" / "scikit-learn.md"
WISHES = (
    *("Number of folds", "Own splitter", "Own metric", "NumPy arrays", "A pipeline"),
    *("Sample weights", "Groups", "Class weights", "Parallel", "A fixed test set"),
)


def programs() -> dict[str, list[str]]:
    """Return the programs of each section of the page; those before the first are under ""."""
    parts = re.split(r"^## (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    sections = {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}
    code = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return {name: found for name, text in sections.items() if (found := code.findall(text))}


def value(code: str, names: dict[str, Any]) -> Any:
    """Run a program and return the value of its last expression."""
    *first, last = ast.parse(code).body
    exec(compile(ast.Module(first, []), "docs", "exec"), names)
    return eval(compile(ast.Expression(last.value), "docs", "eval"), names)


@pytest.fixture(scope="module")
def given() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(programs()[""][0], names)
    return names


def test_the_page_has_ten_wishes():
    assert tuple(programs()) == ("", *WISHES)


@pytest.mark.parametrize("wish", WISHES)
def test_scores_are_equal_and_karat_is_not_longer(wish, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    theirs, ours = programs()[wish]
    expected = np.atleast_1d(value(theirs, dict(given)))
    (run,) = value(ours, dict(given))
    table = run.scores()
    metric = "cost" if wish == "Own metric" else "acc"
    found = table[table["metric"] == metric].sort_values("fold")["value"].to_numpy()
    assert len(found) == len(expected) and np.allclose(found, expected, rtol=0, atol=1e-12)
    assert len("".join(ours.split())) <= len("".join(theirs.split()))
