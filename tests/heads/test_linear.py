"""Linear heads: results by hand, and scikit-learn's."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from karat.errors import DefinitionError
from karat.heads.linear import linear, logistic, ridge

X = np.array([[-1.0], [1.0]])
Y = np.array([-2.0, 2.0])


def test_least_squares_finds_the_line():
    head = linear().fit(X + 3, Y + 5)
    assert head.predict([[0.0]])[0] == pytest.approx(5 - 3 * 2)


@pytest.mark.parametrize(("alpha", "slope"), [(1.0, 4 / 3), (2.0, 1.0), (0.5, 1.6)])
def test_ridge_shrinks_the_slope(alpha, slope):
    # slope = Σxy / (Σx² + alpha) = 4 / (2 + alpha)
    assert ridge(alpha=alpha).fit(X, Y).coef_[0] == pytest.approx(slope)
    assert ridge().alpha == 1.0


def test_logistic_is_scikit_learns_with_a_hundred_iterations():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((60, 3))
    labels = np.digitize(points[:, 0] + 0.3 * rng.standard_normal(60), [-0.5, 0.5])
    ours, theirs = logistic(random_state=1).fit(points, labels), LogisticRegression()
    assert ours.max_iter == 100
    theirs.fit(points, labels)
    np.testing.assert_array_equal(ours.predict_proba(points), theirs.predict_proba(points))
    assert logistic(C=0.1, max_iter=7).get_params()["C"] == 0.1


@pytest.mark.parametrize(
    ("head", "kind", "suggested"),
    [(logistic, "numbers", "ridge"), (ridge, "classes", "logistic"), (linear, "classes", "logist")],
)
def test_the_error_for_the_wrong_kind_suggests_another_head(head, kind, suggested):
    with pytest.raises(DefinitionError, match=f"{kind}.*{suggested}"):
        head(kind=kind)
