"""Out-of-fold embeddings."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.metrics import roc_auc_score

from karat.errors import ContractError, Declined, DefinitionError
from karat.models.adapters import adapt
from karat.models.model_identity import object_identity
from karat.models.out_of_fold import OutOfFold
from karat.models.tables.forest_encoders import ForestLeaves, ForestScores
from karat.models.tables.one_hot_pca import OneHotPca
from karat.models.tables.one_hot_table import OneHotTable

ROWS = pd.DataFrame({"x": np.arange(4)})
NOISE = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 6))).rename(columns=str)
COINS = np.random.default_rng(1).permutation(np.array(["heads", "tails"] * 150))


class Mean(TransformerMixin, BaseEstimator):
    """The mean truth of the rows it was fitted on, for every row."""

    takes = ("table",)

    def __init__(self, kind=None, random_state=None):
        self.kind = kind
        self.random_state = random_state

    def fit(self, items, y=None):
        self.mean_ = 0.0 if y is None else np.mean(y)
        return self

    def transform(self, items):
        return np.full((len(items), 1), self.mean_)


class Grows(Mean):
    """As many dimensions as rows: two fits never agree."""

    def fit(self, items, y=None):
        self.width_ = len(items)
        return self

    def transform(self, items):
        return np.zeros((len(items), self.width_))


def test_each_part_is_embedded_from_the_others():
    """With four parts of one row, each row gets the mean of the three others."""
    y = np.array([0.0, 3.0, 6.0, 9.0])
    encoder = OutOfFold(Mean(), folds=4, kind="regression")
    assert encoder.fit_transform(ROWS, y)[:, 0].tolist() == [6.0, 5.0, 4.0, 3.0]
    assert encoder.transform(ROWS)[:, 0].tolist() == [4.5] * 4


def test_in_sample_scores_flatter_and_held_out_ones_do_not():
    """The labels are coins: nothing can be known, and only the in-sample forest knows it all."""
    in_sample = ForestScores(kind="classification", random_state=0).fit_transform(NOISE, COINS)
    held_out = OutOfFold(kind="classification", folds=3, random_state=0).fit_transform(NOISE, COINS)
    assert roc_auc_score(COINS, in_sample[:, 1]) > 0.95
    assert abs(roc_auc_score(COINS, held_out[:, 1]) - 0.5) < 0.1


def test_test_rows_are_the_same_with_and_without_folds():
    plain = ForestScores(kind="classification", random_state=5).fit(NOISE[:200], COINS[:200])
    folded = OutOfFold(ForestScores(), kind="classification", random_state=5)
    folded.fit_transform(NOISE[:200], COINS[:200])
    np.testing.assert_array_equal(folded.transform(NOISE[200:]), plain.transform(NOISE[200:]))


def test_a_class_that_a_part_never_saw_has_no_chance_there():
    y = np.array(["a", "b"] * 10 + ["once"])
    table = pd.DataFrame({"x": np.arange(21.0)})
    encoder = OutOfFold(options={"trees": 5}, folds=3, kind="classification")
    found = encoder.fit_transform(table, y)
    assert found.shape == (21, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found[20, 2] == 0
    assert encoder.transform(table)[20, 2] > 0


def test_hidden_truth_is_not_held_out():
    assert OutOfFold(Mean()).fit_transform(ROWS).tolist() == [[0.0]] * 4
    with pytest.raises(Declined, match="target"):
        OutOfFold(ForestScores()).fit_transform(ROWS)


@pytest.mark.parametrize("encoder", [ForestLeaves(), OneHotPca()])
def test_unaligned_encoders_are_refused(encoder):
    with pytest.raises(ContractError, match="out of fold"):
        OutOfFold(encoder, kind="classification").fit_transform(NOISE, COINS)


def test_other_widths_are_refused():
    with pytest.raises(ContractError, match="Grows .* 2 .* 4 "):
        OutOfFold(Grows(), folds=2, kind="regression").fit_transform(ROWS, np.arange(4.0))


@pytest.mark.parametrize("folds, rows", [(1, 4), (5, 1)])
def test_nothing_to_hold_out_is_refused(folds, rows):
    with pytest.raises(ContractError, match="2 folds and 2 rows"):
        OutOfFold(Mean(), folds=folds).fit_transform(ROWS[:rows], np.arange(rows))


def test_kind_seed_and_options_reach_the_encoder():
    encoder = OutOfFold(ForestScores, {"trees": 3}, folds=2, kind="regression", random_state=8)
    encoder.fit_transform(NOISE, np.arange(300.0))
    forest = encoder.encoder_.forest_
    assert (encoder.encoder_.kind, encoder.encoder_.random_state) == ("regression", 8)
    assert (len(forest.estimators_), forest.random_state) == (3, 8)
    filled = adapt(OutOfFold(Mean())).fresh(7, "regression")
    assert (filled.kind, filled.random_state, filled.encoder.random_state) == ("regression", 7, 7)


def test_it_takes_what_the_encoder_takes():
    assert adapt(OutOfFold(OneHotTable())).takes == ("table",)
    assert adapt(OutOfFold("karat.models.text_encoders:TfIdf")).takes == ("text", "entity")


def test_sparse_embeddings_of_texts():
    texts = pd.Series(["red apple", "red pear", "red plum", "red fig"] * 5)
    found = OutOfFold("karat.models.text_encoders:TfIdf", {"max_features": 2}).fit_transform(
        texts, np.array(["a", "b"] * 10)
    )
    assert found.shape == (20, 2)


@pytest.mark.parametrize(
    "made, match",
    [
        (lambda: OutOfFold("karat.models.tabular_encoders:ForestScore"), "cannot load"),
        (lambda: OutOfFold("forest"), "there is no model"),
        (lambda: OutOfFold(options={"treees": 3}), 'has no parameter "treees".*"trees"'),
        (lambda: OutOfFold(Mean(), {"kind": "classification"}), "options"),
        (lambda: OutOfFold("sklearn.linear_model:Ridge"), "Ridge"),
    ],
)
def test_a_wrong_encoder_raises_before_fit(made, match):
    with pytest.raises((DefinitionError, ContractError), match=match):
        adapt(made())


def test_identity_of_out_of_fold_depends_on_the_wrapped_encoder():
    same = [object_identity(OutOfFold("karat.models.text_encoders:TfIdf")) for _ in range(2)]
    assert same[0] == same[1] is not None
    others = {
        object_identity(OutOfFold()),
        object_identity(OutOfFold(options={"trees": 3})),
        object_identity(OutOfFold(folds=3)),
        object_identity(OutOfFold(random_state=3)),
        object_identity(OutOfFold(Mean())),
    }
    assert len(others | set(same)) == 6
