"""Lists of names, definitions with their origins, checks and the cache, on a terminal."""

from dataclasses import dataclass

import numpy as np
import pytest

import karat
from karat.cache import VectorCache
from karat.catalogue import Catalogue
from karat.errors import DefinitionError
from karat.report.names import list_kind, list_kinds, show_cache, show_checks, show_name


def lines(capsys):
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_every_kind_is_counted(capsys):
    list_kinds(["suites", "splitters"], [])
    suites, splitters = (line.split() for line in lines(capsys))
    count = len(Catalogue().definitions.names("suites"))
    assert suites[:4] == ["karat", "list", "suites", str(count)]
    assert splitters[:5] == ["karat", "list", "splitters", "6", "all,"]


@pytest.mark.parametrize(
    "kind, name, about",
    [
        ("models", "onehot", "imputed and scaled, everything else one-hot."),
        ("models", "skrub", "pip install karat[tables]"),
        ("tasks", "diabetes", "regression · rmse, mae, r2"),
        ("suites", "quickstart", "9 tasks"),
        ("datasets", "penguins", "CC0-1.0"),
        ("constraints", "test", "Two folds of each task"),
        ("metrics", "rmse", "lower is better"),
        ("metrics", "acc", "higher is better"),
        ("corruptions", "typos", "Swap each pair of neighboring letters"),
        ("heads", "ridge", "Ridge regression."),
        ("splitters", "all", "Train and test on all questions"),
        ("composers", "single", ""),
        ("probes", "analogy", "Rank the true item"),
        ("readers", "table", "rows of a file"),
    ],
)
def test_every_name_has_a_line(capsys, kind, name, about):
    list_kind(kind, [])
    (found,) = [line for line in lines(capsys) if line.split()[0] == name]
    assert about in found


def test_a_name_of_ones_own_is_listed(capsys, clean_registry, tmp_path):
    @karat.metric("my-own", higher_is_better=False)
    def own(predictions):
        """Tell something."""
        return 0.0

    file = tmp_path / "my.yaml"
    file.write_text("models: {mine: {extends: onehot, description: A model of mine.}}")
    list_kind("metrics", [])
    assert any("my-own" in line and "Tell something." in line for line in lines(capsys))
    list_kind("models", [file])
    assert any("mine" in line and "A model of mine." in line for line in lines(capsys))


def test_a_definition_is_shown_with_its_origins(capsys):
    show_name("diabetes", [])
    text = capsys.readouterr().out
    assert "tasks:" in text and "datasets:" in text
    assert "metrics: [rmse, mae, r2]" in text
    assert "tasks.yaml:" in text and "datasets.yaml:" in text


def test_a_registered_part_is_shown_with_its_words(capsys):
    show_name("kfold", [])
    text = capsys.readouterr().out
    assert "splitters: kfold" in text
    assert "karat.splits:kfold" in text
    assert "groups stay whole" in text


def test_an_unknown_name_gets_the_nearest_of_all_kinds():
    with pytest.raises(DefinitionError) as caught:
        show_name("kfolds", [])
    assert str(caught.value) == ('there is no name "kfolds". Did you mean "kfold"?   (karat list)')


@dataclass
class Check:
    promise: str
    kept: bool
    why: str = ""
    cure: str = ""


def test_checks_are_shown_with_what_to_do(capsys):
    good, bad = Check("returns numbers", True), Check("keeps rows", False, "9 of [10]", "Do so.")
    assert show_checks([good], "m") == 0
    assert lines(capsys) == ["  ✓ returns numbers", "", "m can be evaluated: 1 of 1 promises kept."]
    assert show_checks([good, bad], "[m]") == 2
    text = capsys.readouterr().out
    assert "  ✗ keeps rows" in text and "9 of [10]" in text and "Do so." in text
    assert "[m] cannot be evaluated as it is: 1 of 2 promises kept." in text


def test_the_cache_is_shown_and_cleared(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path))
    show_cache(False)
    assert lines(capsys) == [f"0 entries, 0.0 MB in {tmp_path / 'vectors'}"]
    about = {"model": "[m]", "dataset": "d", "shape": [1000, 2]}
    VectorCache(tmp_path).put("ab" * 32, np.zeros((1000, 2)), about)
    show_cache(False)
    head, row, total = lines(capsys)
    assert head.split() == ["model", "data", "set", "rows", "×", "dimensions", "MB"]
    assert row.split() == ["[m]", "d", "1,000", "×", "2", "0.0"]
    assert total.startswith("1 entry, 0.0 MB")
    show_cache(True)
    assert "removed" in capsys.readouterr().out
    assert list(VectorCache(tmp_path).entries()) == []
