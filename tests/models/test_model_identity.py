"""Identities of models: everything their vectors depend on, and nothing else."""

import importlib
import os
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import karat
from karat.config.catalog import Catalog
from karat.errors import ContractError, DataError, DefinitionError
from karat.models import model_identity as identities
from karat.models.adapters import adapt
from karat.models.model import StatelessEncoder
from karat.models.model_identity import model_identity
from karat.models.random_encoder import RandomEncoder
from karat.models.tables.one_hot_table import OneHotTable


def who(thing):
    return model_identity(adapt(thing))


class Weighted:
    def __init__(self, weights):
        self.weights = weights

    def transform(self, items):
        return np.tile(self.weights, (len(items), 1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: OneHotTable(),
        lambda: RandomEncoder(8, random_state=3),
        lambda: {"a": [1.0, 2.0], "b": [3.0, 4.0]},
        lambda: make_pipeline(TfidfVectorizer(), LogisticRegression(C=2)),
        lambda: Weighted(np.arange(3.0)),
    ],
)
def test_equal_models_have_one_identity(make):
    assert who(make()) == who(make()) is not None


@pytest.mark.parametrize(
    "one, other",
    [
        (OneHotTable(0.1), OneHotTable(0.2)),
        (RandomEncoder(8, random_state=1), RandomEncoder(8, random_state=2)),
        (Weighted(np.arange(3.0)), Weighted(np.arange(3.0) + 1e-12)),
        ({"a": [1.0]}, {"a": [2.0]}),
        ({"a": [1.0]}, {"b": [1.0]}),
        (lambda items: [[1.0]], lambda items: [[2.0]]),
        (
            make_pipeline(TfidfVectorizer(), LogisticRegression(C=1)),
            make_pipeline(TfidfVectorizer(), LogisticRegression(C=2)),
        ),
    ],
    ids=["parameter", "seed", "weights", "vectors", "ids", "function", "nested parameter"],
)
def test_other_models_have_another_identity(one, other):
    assert who(one) != who(other)


def test_what_a_closure_holds_belongs_to_it():
    def scaled(factor):
        return lambda items: [[factor] for _ in items]

    assert who(scaled(1)) == who(scaled(1)) != who(scaled(2))


def test_an_object_that_cannot_be_pickled_has_no_identity():
    assert who(Weighted(threading.Lock())) is None


ENCODER = """
    import helping

    class Encoder:
        def transform(self, items):
            return [[{value}] for item in items if item not in {{"a", "b", "c"}}]
    """
HELPING = """
    def helped(x):
        return {value}
    """


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module ``mine`` that imports ``helping``, and import it anew."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(value=1, helping=1, load=True):
        Path(tmp_path, "mine.py").write_text(textwrap.dedent(ENCODER).format(value=value))
        Path(tmp_path, "helping.py").write_text(textwrap.dedent(HELPING).format(value=helping))
        importlib.invalidate_caches()
        for name in ("helping", "mine") if load else ():
            monkeypatch.delitem(importlib.sys.modules, name, raising=False)
            cached = Path(tmp_path, "__pycache__")
            for file in cached.glob("*.pyc"):
                file.unlink()
        return importlib.import_module("mine")

    return write


@pytest.mark.parametrize("part", ["value", "helping"])
def test_the_source_of_ones_own_module_and_of_what_it_imports_counts(module, part):
    first = who(module().Encoder())
    assert who(module(**{part: 2}).Encoder()) != first
    assert who(module(**{part: 1}).Encoder()) == first


def test_code_in_memory_and_code_on_disk_are_two_things(module):
    """A file edited after its import: the old code runs, and must not pass for the new one."""
    old = module(value=1).Encoder()
    module(value=2, load=False)
    stale = who(old)
    assert stale != who(module(value=2).Encoder())
    assert stale != who(module(value=1).Encoder())


def test_a_base_class_in_another_file_counts(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    Path(tmp_path, "child_of_base.py").write_text(
        "from base_of_child import Base\n\n\nclass Child(Base):\n    pass\n"
    )
    found = []
    for value in (1, 2):
        Path(tmp_path, "base_of_child.py").write_text(
            f"class Base:\n    def transform(self, items):\n        return [[{value}]]\n"
        )
        for name in ("child_of_base", "base_of_child"):
            monkeypatch.delitem(importlib.sys.modules, name, raising=False)
        for file in tmp_path.glob("__pycache__/*.pyc"):
            file.unlink()
        importlib.invalidate_caches()
        found.append(who(importlib.import_module("child_of_base").Child()))
    assert found[0] != found[1]


SCRIPT = """
    from karat.models.adapters import adapt
    from karat.models.model_identity import model_identity

    LETTERS = "ab"

    def helped(x):
        return [len(x) if x in {"one", "two", "three", "four"} else 0]

    class Mine:
        def __init__(self, k=1):
            self.k = k

        def transform(self, items):
            return [helped(x) for x in items]

    print(*(model_identity(adapt(model)) for model in (Mine(), Mine(2), helped)))
    """


def test_a_class_of_a_script_is_the_same_tomorrow(tmp_path, python, script):
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(SCRIPT))
    outputs = [python(file, env={"PYTHONHASHSEED": seed}).stdout.split() for seed in "12"]
    assert outputs[0] == outputs[1] == script(file, cwd=tmp_path).stdout.split()
    assert len(set(outputs[0])) == 3
    file.write_text(textwrap.dedent(SCRIPT).replace('"four"', '"five"'))
    changed = script(file, cwd=tmp_path).stdout.split()
    assert len(changed) == 3 and not set(changed) & set(outputs[0])


class Reads:
    def __init__(self, path):
        self.path = path

    def transform(self, items):
        return items


def test_the_content_of_a_file_named_by_a_parameter_counts(tmp_path):
    file = tmp_path / "weights.bin"
    file.write_bytes(b"one")
    first = who(Reads(str(file)))
    file.write_bytes(b"two")
    assert who(Reads(str(file))) != first
    file.write_bytes(b"one")
    assert who(Reads(str(file))) == first
    assert who(Reads(file)) != who(Reads(tmp_path / "other.bin"))


def test_a_folder_named_by_a_parameter_counts(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(b"one")
    first = who(Reads(str(folder)))
    (folder / "weights").write_bytes(b"longer")
    assert who(Reads(str(folder))) != first


def test_what_a_model_declares_to_depend_on_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text("one")
    monkeypatch.delenv("KARAT_TEST_MODE", raising=False)

    class Own(StatelessEncoder):
        depends_on = ("words.txt", "env:KARAT_TEST_MODE")

    found = [who(Own)]
    assert who(Own) == found[0]
    for value in ("", "fast"):
        monkeypatch.setenv("KARAT_TEST_MODE", value)
        found.append(who(Own))
    Path("words.txt").write_text("two")
    found.append(who(Own))
    assert len(set(found)) == 4
    Path("words.txt").unlink()
    with pytest.raises(DefinitionError, match="words.txt"):
        who(Own)
    Own.depends_on = 7
    with pytest.raises(ContractError, match="depends_on"):
        adapt(Own)


def test_a_model_of_yaml_declares_what_it_depends_on(tmp_path, monkeypatch):
    (tmp_path / "words.txt").write_text("one")

    def identity(more):
        text = f"models:\n  mine: {{use: 'karat.models.text_encoders:TfIdf', {more}}}\n"
        (tmp_path / "my.yaml").write_text(text)
        return model_identity(Catalog(tmp_path / "my.yaml").model("mine"))

    names = "depends_on: [words.txt, 'env:KARAT_TEST_MODE']"
    found = [identity("params: {}"), identity(names)]
    (tmp_path / "words.txt").write_text("two")
    found.append(identity(names))
    monkeypatch.setenv("KARAT_TEST_MODE", "fast")
    found += [identity(names), identity("version: '1'"), identity("version: '2'")]
    assert len(set(found)) == 6


def test_an_empty_or_bare_word_is_no_folder(tmp_path, monkeypatch):
    """Otherwise results written into the current folder would change who a model is."""
    monkeypatch.chdir(tmp_path)
    first = [who(Reads("")), who(Reads("results"))]
    os.mkdir("results")
    Path("results", "scores.csv").write_text("1")
    assert [who(Reads("")), who(Reads("results"))] == first


def test_a_vector_file_is_its_content(tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("a 1 2\n")
    two.write_text("a 1 2\n")
    first = who(one)
    two.write_text("a 1 3\n")
    assert who(two) != first
    one.unlink()
    with pytest.raises(DataError, match="one.txt"):
        who(one)


def test_the_words_of_rows_belong_to_encoders_of_sentences():
    importlib.import_module("karat.models.tabular_encoders")
    code = identities._code(["karat.models.tabular_encoders"])
    assert any(part.startswith("karat.core.columns ") for part in code)


#: an encoder of an extension, and what it imports in each of the ways that Karat uses
REACHED = {
    "ext.letters.encoder": "from karat.ext.letters.counts import (\n    count,  # of letters\n)\n",
    "ext.letters.counts": "from karat.core import cells\n",
    "core.cells": "def read():\n    from karat.data.marks import MARKS as marks\n",
    "data.marks": 'NAMED = "karat.models.words:Words"\n',
    "models.words": "import karat.core.files\n",
    "core.files": "from karat.core.registry import find\n",
}
NOT_REACHED = {
    "core.registry": "from karat.reporting import page\n",
    "reporting.page": "",
    "ext.letters.other": "",
}


@pytest.fixture
def own_karat(tmp_path, monkeypatch):
    """Return a function that writes a module of a copy of Karat with six modules."""

    def write(name, source):
        file = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)

    for name, source in {**REACHED, **NOT_REACHED}.items():
        write(name, source)
    monkeypatch.setattr(karat, "__file__", str(tmp_path / "__init__.py"))
    return write


@pytest.mark.parametrize("name", [*REACHED, *NOT_REACHED])
def test_every_module_of_karat_that_an_encoder_reaches_counts(own_karat, name):
    before = identities._karat_code({"karat.ext.letters.encoder"})
    own_karat(name, {**REACHED, **NOT_REACHED}[name] + "# edited\n")
    after = identities._karat_code({"karat.ext.letters.encoder"})
    assert (before != after) == (name in REACHED)


def test_a_module_of_karat_in_memory_counts_if_it_was_edited_on_disk(monkeypatch):
    before = identities._karat_code({"karat.core.columns"})
    monkeypatch.setattr(sys.modules["karat.core.numbers"], "NUMBER_OF_TESTS", 1, raising=False)
    assert identities._karat_code({"karat.core.columns"}) == before  # no code
    monkeypatch.setattr(sys.modules["karat.core.numbers"], "parse", _parse, raising=False)
    assert identities._karat_code({"karat.core.columns"}) != before


def _parse(text):
    return text


_parse.__module__ = "karat.core.numbers"
