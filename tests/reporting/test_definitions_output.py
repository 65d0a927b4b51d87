"""Lists of components, definitions with their origins, and the cache."""

import numpy as np
import pytest

import karat
from karat.config.catalog import Catalog
from karat.config.loading import Definitions
from karat.errors import DefinitionError
from karat.execution.embedding_cache import VectorCache
from karat.reporting.definitions_output import list_kind, list_kinds, show_cache, show_name


def lines(capsys):
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_every_kind_is_counted(capsys):
    list_kinds(["suites", "splitters"], [])
    suites, splitters = (line.split() for line in lines(capsys))
    count = len(Catalog().definitions.names("suites"))
    assert suites[:4] == ["karat", "list", "suites", str(count)]
    assert splitters[:5] == ["karat", "list", "splitters", "11", "all,"]


@pytest.mark.parametrize(
    "kind, name, about",
    [
        ("models", "onehot", "one-hot"),
        ("models", "skrub", "pip install karat[tables]"),
        ("tasks", "diabetes", "regression · rmse, mae, r2"),
        ("suites", "quickstart", "9 tasks"),
        ("datasets", "penguins", "CC0-1.0"),
        ("constraints", "test", ""),
        ("metrics", "rmse", "lower is better"),
        ("metrics", "acc", "higher is better"),
        ("corruptions", "typos", ""),
        ("heads", "ridge", "Ridge"),
        ("splitters", "all", ""),
        ("composers", "single", ""),
        ("probes", "analogy", ""),
        ("readers", "table", ""),
    ],
)
def test_every_name_has_a_line(capsys, kind, name, about):
    list_kind(kind, [])
    (found,) = [line for line in lines(capsys) if line.split()[0] == name]
    assert about in found


def test_own_names_are_listed(capsys, clean_registry, tmp_path):
    @karat.metric("my-own", higher_is_better=False)
    def own(predictions):
        """Own metric."""
        return 0.0

    file = tmp_path / "my.yaml"
    file.write_text("models: {mine: {extends: onehot, description: A model of mine.}}")
    list_kind("metrics", [])
    assert any("my-own" in line and "Own metric." in line for line in lines(capsys))
    list_kind("models", [file])
    assert any("mine" in line and "A model of mine." in line for line in lines(capsys))


@pytest.mark.parametrize(
    "name, words",
    [
        (
            "diabetes",
            ["tasks:", "datasets:", "metrics: [rmse, mae, r2]", "tasks.yaml:", "datasets.yaml:"],
        ),
        ("kfold", ["splitters: kfold", "karat.execution.splits:kfold", "\n"]),
    ],
)
def test_a_name_is_shown_with_its_origins(capsys, name, words):
    show_name(name, [])
    text = capsys.readouterr().out.rstrip()
    assert [word for word in words if word not in text] == []


def test_an_unknown_name_gets_the_nearest_of_all_kinds():
    with pytest.raises(DefinitionError) as caught:
        show_name("kfolds", [])
    assert '"kfold"' in str(caught.value)


def test_the_cache_is_shown_and_cleared(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path))
    show_cache(False)
    assert lines(capsys) == [f"0 entries, 0.0 MB in {tmp_path / 'vectors'}"]
    about = {"model": "[m]", "dataset": "d", "shape": [1000, 2]}
    VectorCache(tmp_path).put("ab" * 32, np.zeros((1000, 2)), about)
    show_cache(False)
    head, row, total = lines(capsys)
    assert head.split() == ["model", "dataset", "rows", "×", "dimensions", "MB"]
    assert row.split() == ["[m]", "d", "1,000", "×", "2", "0.0"]
    assert total.startswith("1 entry, 0.0 MB")
    show_cache(True)
    assert list(VectorCache(tmp_path).entries()) == []


def test_every_dataset_has_its_license_and_the_sha256_of_its_download(capsys):
    list_kind("datasets", [])
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    definitions = Definitions.load()
    for name in definitions.names("datasets"):
        given = definitions.get("datasets", name)
        remote = [s for s in given["sources"] or () if {"index", "url"} & set(s)]
        assert given["license"] in lines[name], name
        assert not remote or remote[0]["sha256"][:12] in lines[name], name
