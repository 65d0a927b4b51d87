"""A model knows whether it learns, and gives a fresh, seeded copy of itself."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from karat.errors import ContractError
from karat.models.base import Model, StatelessEncoder, tags_of
from karat.models.random import RandomEncoder


def test_a_stateless_encoder_without_transform_says_so():
    with pytest.raises(ContractError, match="StatelessEncoder"):
        StatelessEncoder().fit(["a"]).transform(["a"])


def test_the_seed_reaches_every_part_of_a_pipeline():
    pipeline = make_pipeline(TfidfVectorizer(), RandomForestClassifier(random_state=1))
    made = Model("m", pipeline, "predictor").fresh(45, "classes")
    assert made.get_params()["randomforestclassifier__random_state"] == 45
    assert pipeline.get_params()["randomforestclassifier__random_state"] == 1


@pytest.mark.parametrize("seed, got", [(0, 0), (7, 7), (2**31 - 1, 0), (2**31, 1)])
def test_a_seed_stays_within_32_bits(seed, got):
    made = Model("m", LogisticRegression(), "predictor").fresh(seed, "classes")
    assert made.random_state == got


class Sorted(BaseEstimator):
    def __init__(self, kind=None):
        self.kind = kind

    def fit(self, X, y=None):
        return self

    def predict(self, X):
        return X


def test_kind_is_filled_in_if_none():
    assert Model("m", Sorted(), "predictor").fresh(0, "numbers").kind == "numbers"
    assert Model("m", Sorted("quick"), "predictor").fresh(0, "numbers").kind == "quick"


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
    made = Model("m", plain, "encoder").fresh(5, "classes")
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
    made = Model("m", prototype, "encoder").fresh(0, "classes")
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
        (HashingVectorizer(), "encoder", True),
        (TfidfVectorizer(), "encoder", False),
        (Plain(), "encoder", False),
        (OnlyMixin(), "encoder", False),
        (LogisticRegression(), "predictor", False),
    ],
)
def test_who_learns_nothing(prototype, role, stateless):
    assert Model("m", prototype, role).stateless is stateless


def test_failing_tags_are_none():
    assert tags_of(OnlyMixin()) is None
    assert tags_of(object()) is None


def test_a_stateless_encoder_is_shared_unless_it_has_a_seed():
    shared, seeded = NoFit(), RandomEncoder()
    assert Model("m", shared, "encoder").fresh(1, "classes") is shared
    made = Model("m", seeded, "encoder").fresh(1, "classes")
    assert made is not seeded
    assert (made.random_state, seeded.random_state) == (1, None)
