"""Fresh copies, identities and folds of models."""

import importlib
import os
import textwrap
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from karat.config.catalog import Catalog
from karat.core import columns
from karat.core.embeddings import Variant
from karat.errors import ContractError, DataError, DefinitionError
from karat.models import model as model_module
from karat.models import tabular_encoders
from karat.models.adapters import adapt
from karat.models.model import (
    Model,
    StatelessEncoder,
    assign_folds,
    model_identity,
    target_kind,
)
from karat.models.tabular_encoders import OneHotTable, RandomEncoder


def test_the_seed_reaches_every_part_of_a_pipeline():
    pipeline = make_pipeline(TfidfVectorizer(), RandomForestClassifier(random_state=1))
    made = Model("m", pipeline, "predictor").fresh(45, "classification")
    assert made.get_params()["randomforestclassifier__random_state"] == 45
    assert pipeline.get_params()["randomforestclassifier__random_state"] == 1


@pytest.mark.parametrize("seed, got", [(0, 0), (7, 7), (2**31 - 1, 0), (2**31, 1)])
def test_a_seed_stays_within_32_bits(seed, got):
    made = Model("m", LogisticRegression(), "predictor").fresh(seed, "classification")
    assert made.random_state == got


@dataclass(eq=False, repr=False)
class Scaled(StatelessEncoder):
    inner: Any = None
    factor: float = 0.5


def test_parameters_are_set_and_shown_as_in_scikit_learn():
    made = Scaled(Scaled(), factor=float("0.5"))
    assert repr(made) == "Scaled(inner=Scaled())"
    # the parameters of a parameter are set after the parameter itself
    new = Scaled(factor=1.0)
    assert made.set_params(inner__factor=3.0, inner=new).inner is new and new.factor == 3.0
    assert sorted(made.get_params()) == ["factor", "inner", "inner__factor", "inner__inner"]
    assert clone(made).get_params(deep=False)["inner"].factor == 3.0
    with pytest.raises(ValueError, match="factr"):
        made.set_params(factr=1)


class Sorted(BaseEstimator):
    def __init__(self, kind=None):
        self.kind = kind

    def fit(self, X, y=None):
        return self

    def predict(self, X):
        return X


def test_kind_is_filled_in_if_none():
    assert Model("m", Sorted(), "predictor").fresh(0, "regression").kind == "regression"
    assert Model("m", Sorted("quick"), "predictor").fresh(0, "regression").kind == "quick"


class Plain:
    """No scikit-learn in sight."""

    def __init__(self):
        self.random_state = None
        self.seen = []

    def fit(self, X, y=None):
        self.seen.append(len(X))
        return self

    def transform(self, X):
        return np.zeros((len(X), 1))


def test_an_object_without_params_is_copied_deeply_and_seeded():
    plain = Plain()
    made = Model("m", plain, "encoder").fresh(5, "classification")
    made.fit([1, 2])
    assert (made.random_state, made.seen) == (5, [2])
    assert (plain.random_state, plain.seen) == (None, [])


class Rounded(BaseEstimator):
    """Its __init__ changes what it is given, which scikit-learn's clone refuses."""

    def __init__(self, sizes=(1,)):
        self.sizes = list(sizes)

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


def test_an_estimator_that_cannot_be_cloned_is_copied():
    prototype = Rounded((1, 2))
    made = Model("m", prototype, "encoder").fresh(0, "classification")
    assert made is not prototype
    assert made.sizes == [1, 2]


class OnlyMixin(TransformerMixin):
    """Forgot BaseEstimator: asking it for tags fails inside scikit-learn."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class NoFit:
    def transform(self, X):
        return X


@pytest.mark.parametrize(
    "prototype, role, stateless",
    [
        (RandomEncoder(), "encoder", True),
        (NoFit(), "encoder", True),
        # scikit-learn 1.6 says that it must be fitted
        (HashingVectorizer(), "encoder", not HashingVectorizer().__sklearn_tags__().requires_fit),
        (TfidfVectorizer(), "encoder", False),
        (Plain(), "encoder", False),
        (OnlyMixin(), "encoder", False),
        (LogisticRegression(), "predictor", False),
    ],
)
def test_which_models_are_stateless(prototype, role, stateless):
    assert Model("m", prototype, role).stateless is stateless


def test_a_stateless_encoder_is_shared_unless_it_has_a_seed():
    shared, seeded = NoFit(), RandomEncoder()
    assert Model("m", shared, "encoder").fresh(1, "classification") is shared
    made = Model("m", seeded, "encoder").fresh(1, "classification")
    assert made is not seeded
    assert (made.random_state, seeded.random_state) == (1, None)


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
    from karat.models.model import model_identity

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


def test_wording_is_part_of_the_identity_of_sentences():
    # it is not in the package of models, and a change in it changes their vectors
    code = model_module._code(["karat.models.tabular_encoders"])
    assert any(part.startswith("karat.core.columns ") for part in code)
    (file,) = model_module._sources("karat", Path(columns.__file__))
    assert file.name == "columns.py"
    models = model_module._sources("karat", Path(tabular_encoders.__file__))
    assert {"tabular_encoders.py", "model.py"} <= {path.name for path in models}
    assert "columns.py" not in {path.name for path in models}


@pytest.mark.parametrize("seed", range(5))
def test_folds_are_stratified(seed):
    y = np.array(["a"] * 20 + ["b"] * 10 + ["c"] * 5)
    parts = assign_folds(y, "classification", 5, seed)
    for part in range(5):
        assert [np.sum(y[parts == part] == label) for label in "abc"] == [4, 2, 1]


def test_a_class_of_two_rows_is_in_two_folds():
    y = np.array(["rare", "rare", *["often"] * 9])
    assert all(len(set(assign_folds(y, "classification", 5, seed)[:2])) == 2 for seed in range(20))


def test_numbers_are_dealt_evenly_and_by_the_seed():
    y = np.arange(11.0)
    parts = assign_folds(y, "regression", 3, 0)
    assert sorted(np.bincount(parts)) == [3, 4, 4]
    assert assign_folds(y, "regression", 3, 0).tolist() == parts.tolist()
    assert assign_folds(y, "regression", 3, 1).tolist() != parts.tolist()


def test_the_kind_is_inferred_unless_declared():
    assert target_kind(np.array([1, 2]), None) == "classification"
    assert target_kind(np.array([1, 2]), "regression") == "regression"
    assert target_kind(None, None) == "classification"


def test_a_variant_has_at_most_the_known_dimensions_of_its_encoder():
    model = Catalog().model("random")
    assert model.as_variant(Variant(64)).variant == Variant(64)
    with pytest.raises(DefinitionError, match="random.* 65.* 64 "):
        model.as_variant(Variant(65))
    # without a known width, vectors have to be computed first
    assert Catalog().model("onehot").as_variant(Variant(10_000)).base == "onehot"
