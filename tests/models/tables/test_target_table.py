"""Mean targets of words, against scikit-learn."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.metrics import roc_auc_score

from karat.models.tables.ordinal_table import OrdinalTable
from karat.models.tables.target_table import TargetTable

WORDS = pd.DataFrame({"w": list("aaabbbcccd"), "v": list("xyxyxyxyxy")})


def scaled(values):
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(values)


def target_encoder(kind, folds):
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.preprocessing import TargetEncoder

    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9):
        return TargetEncoder(cv=folds, random_state=3)
    split = KFold if kind == "regression" else StratifiedKFold
    return TargetEncoder(cv=split(folds, shuffle=True, random_state=3))


@pytest.mark.parametrize(
    "kind, y, folds",
    [
        ("classification", np.array(["no", "yes"] * 5), 5),
        ("classification", np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 2]), 4),  # no class has more rows
        ("regression", np.arange(10) + 0.5, 5),
    ],
)
def test_target_is_scikit_learns_target_encoder(kind, y, folds):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = target_encoder(kind, folds).fit_transform(WORDS, y)
        found = TargetTable(kind=kind, random_state=3).fit_transform(WORDS, y)
    np.testing.assert_allclose(found, scaled(expected))
    assert found.shape == (10, 2 * (3 if len(set(y)) == 3 else 1))


def test_target_of_test_rows_is_the_mean_target_of_their_word():
    words = pd.DataFrame({"w": ["a"] * 40 + ["b"] * 40})
    y = np.where(np.arange(80) % 4 == 0, 1.0, 0.0) + np.where(words["w"] == "b", 10.0, 0.0)
    encoder = TargetTable(kind="regression").fit(words, y)
    inner = encoder.columns_.steps_[0][2][0]
    np.testing.assert_allclose(inner.encodings_[0], [0.25, 10.25], atol=0.05)
    unseen = encoder.transform(pd.DataFrame({"w": ["a", "b", "z"]}))[:, 0]
    np.testing.assert_allclose(unseen[2], unseen[:2].mean(), atol=1e-9)


def test_target_encodes_train_rows_out_of_fold():
    """Words are not informative, but each is in few rows: its in-sample mean reveals the target."""
    rng = np.random.default_rng(0)
    words = pd.DataFrame({"w": rng.integers(0, 150, 600).astype(str)})
    y = rng.integers(0, 2, 600)
    encoder = TargetTable(kind="classification", random_state=1)
    held_out = encoder.fit_transform(words, y)[:, 0]
    in_sample = encoder.transform(words)[:, 0]
    means = words.assign(y=y).groupby("w")["y"].transform("mean")
    assert np.corrcoef(in_sample, means)[0, 1] > 0.9
    assert roc_auc_score(y, in_sample) > 0.7
    assert roc_auc_score(y, held_out) < 0.6


@pytest.mark.parametrize("y", [None, np.arange(10), np.zeros(10)])
def test_target_without_a_usable_target_is_finite(y):
    found = TargetTable(kind="classification").fit_transform(WORDS, y)
    assert found.shape == (10, 2) and np.isfinite(found).all()
    if y is None or len(set(y)) == 10:
        np.testing.assert_array_equal(found, OrdinalTable().fit_transform(WORDS))
