"""Fresh copies and folds of models."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from karat.config.catalog import Catalog
from karat.core.embeddings import Variant
from karat.errors import DefinitionError
from karat.models.model import Model, StatelessEncoder, assign_folds, target_kind
from karat.models.random_encoder import RandomEncoder


def test_the_seed_reaches_every_part_of_a_pipeline():
    pipeline = make_pipeline(TfidfVectorizer(), RandomForestClassifier(random_state=1))
    made = Model("m", pipeline, "predictor").fresh(45, "classification")
    assert made.get_params()["randomforestclassifier__random_state"] == 45
    assert pipeline.get_params()["randomforestclassifier__random_state"] == 1


@pytest.mark.parametrize(
    "seed, got",
    [(0, 0), (7, 7), (2**31 - 1, 0), (2**31, 2**31), (2**32 - 1, 2**32 - 1), (2**32, 0)],
)
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
