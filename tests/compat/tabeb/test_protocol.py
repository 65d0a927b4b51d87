"""What heads and ``get_score`` receive and return, and descriptions of objects."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import LocalOutlierFactor

from karat.compat.tabeb import (
    TabEBAnomalyDetectionTask,
    TabEBBaseTask,
    TabEBClassificationTask,
    TabEBDeduplicationTask,
    TabEBRankingTask,
    TabEBRegressionTask,
)
from karat.compat.tabeb.protocol import describe
from karat.errors import ContractError

from .test_interface import Scaled
from .test_tasks import Angle, Constant, Numbers, X, own, with_head


def test_regressor_on_integer_classes():
    frame = pd.DataFrame({"x": [0.0, 1.0] * 30, "y": [0, 1] * 30})
    task = own(TabEBBaseTask, frame, task="own", metric="rmse")
    task.get_head = LinearRegression
    assert task.evaluate([Numbers()]).loc[0, "own"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("cls", "base", "protocol", "expected"),
    [
        (TabEBRegressionTask, LinearRegression, "original", [np.float32, np.float64]),
        (TabEBRegressionTask, LinearRegression, "corrected", [np.float64, np.float64]),
        (TabEBClassificationTask, LogisticRegression, "original", [np.float64, np.float64]),
    ],
)
def test_precision_of_the_vectors_of_a_head(cls, base, protocol, expected):
    """The least squares of TabEB get the vectors in the precision of the encoder."""
    seen = []

    class Single(Numbers):
        name = "single"

        def transform(self, X, y=None):
            return super().transform(X).astype(np.float32)

    class Head(base):
        def fit(self, X, y):
            seen.append(X.dtype)
            return super().fit(X, y)

    kind = "regression" if cls is TabEBRegressionTask else "classification"
    frame = pd.DataFrame({"x": X, "y": X // 30})
    own(with_head(cls, Head()), frame, kind, protocol=protocol).evaluate([Single(), Numbers()])
    assert seen == expected


def rows_with_outliers() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=57), [40.0, -40.0, 80.0]])
    return pd.DataFrame({"x": x, "y": [0] * 57 + [1] * 3})


def test_anomaly_detection():
    task = own(TabEBAnomalyDetectionTask, rows_with_outliers())
    frame = task.evaluate([Numbers(), Constant()])
    assert frame.loc[0, "own"] == 1.0
    # all rows tie: the first three are flagged, and six rows are wrong
    f1 = [54 * 2 / (57 + 57), 0.0]
    assert frame.loc[1, "own"] == pytest.approx((57 * f1[0] + 3 * f1[1]) / 60)
    assert task.get_score([0, 0, 1, 1], [0, 0, 1, 1]) == 1.0
    by_order = own(TabEBAnomalyDetectionTask, rows_with_outliers(), metric="auc")
    assert by_order.evaluate([Numbers()]).loc[0, "own"] == 1.0


@pytest.mark.parametrize(
    "head",
    [
        IsolationForest(random_state=0),
        LocalOutlierFactor(n_neighbors=5),
        LocalOutlierFactor(n_neighbors=5, novelty=True),
    ],
)
def test_scikit_learn_detectors(head):
    frame = own(with_head(TabEBAnomalyDetectionTask, head), rows_with_outliers()).evaluate(
        [Numbers()]
    )
    assert frame.loc[0, "own"] == 1.0
    assert type(head).__name__ in frame.attrs["config"]["head"]


def test_invalid_anomaly_tasks():
    with pytest.raises(ContractError, match="outlier_scores"):
        own(
            with_head(TabEBAnomalyDetectionTask, LogisticRegression()), rows_with_outliers()
        ).evaluate([Numbers()])
    three = pd.DataFrame({"x": X, "y": np.repeat(list("abc"), 20)})
    with pytest.warns(UserWarning, match="own.* 3"):
        own(TabEBAnomalyDetectionTask, three).evaluate([Numbers()])


def test_get_score_of_a_ranking():
    class First(TabEBRankingTask):
        def get_score(self, y_true, y_pred):
            return float(pd.Series(y_pred).groupby(np.asarray(y_true)).min().eq(1).mean())

    frame = pd.DataFrame({"x": np.repeat([0.0, 90.0], 30), "y": np.repeat([0, 1], 30)})
    assert own(First, frame).evaluate([Angle()]).loc[0, "own"] == 1.0


def test_get_score_of_deduplication_needs_weights():
    class Blind(TabEBDeduplicationTask):
        def get_score(self, y_true, y_pred):
            return 1.0

    class Seeing(TabEBDeduplicationTask):
        def get_score(self, y_true, y_pred, predictions):
            return float(predictions.weight.sum())

    frame = pd.DataFrame({"x": np.repeat(np.arange(0, 90, 3.0), 2), "y": np.repeat(range(30), 2)})
    with pytest.warns(UserWarning, match="Blind.get_score"):
        own(Blind, frame).evaluate([Angle()])
    assert own(Seeing, frame).evaluate([Angle()]).loc[0, "own"] == 60 * 59 / 2


def test_descriptions():
    class Odd:
        def __init__(self):
            self.me, self.rows, self.name, self.pairs = self, np.ones(3), "x", {"a": [1, None]}

    assert describe(Odd()) == "Odd(name='x', pairs={a: [1, None]})"
    assert describe(None) == "None"
    long = [describe(Scaled(1, "n" * 600 + end)) for end in "ab"]
    assert long[0][:500] == long[1][:500] and long[0] != long[1] and len(long[0]) < 520
