"""A predictor that was fitted before: it is asked as it is and never fitted again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.metaestimators import available_if

from karat.errors import ContractError

#: stands in the notes of every result, since only its owner can know
NOTE = "fitted before, not on this train part"


class Fitted:
    """Put an already fitted pipeline or estimator through the same views as all others.

    Its ``fit`` learns nothing: it only checks that columns and classes are those the pipeline
    knows. All folds are asked of the one pipeline, so it must not have been fitted on rows they
    test; Karat cannot see that, and such a score would be worth nothing.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[0], [1]], ["no", "yes"])
    >>> Fitted(tree).fit([[5]], ["yes"]).predict([[1], [0]]).tolist()
    ['yes', 'no']
    """

    def __init__(self, pipeline: Any) -> None:
        _check_fitted(pipeline)
        self.pipeline = pipeline
        self.notes_ = [NOTE]
        self.takes = getattr(pipeline, "takes", None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Fitted:
        # a fresh copy for each fold is the same thing: nothing in it ever changes
        return self

    @property
    def classes_(self) -> Any:
        """The classes the pipeline knows; an attribute it may lack."""
        return self.pipeline.classes_

    def declines(self, kind: str) -> str:
        """Return why it cannot answer this kind of question, or nothing."""
        from sklearn.base import is_classifier, is_regressor

        if kind == "classes" and _is(is_regressor, self.pipeline):
            return "it predicts numbers, not classes"
        if kind == "numbers" and _is(is_classifier, self.pipeline):
            return "it predicts classes, not numbers"
        return ""

    def fit(self, X: Any, y: Any) -> Fitted:
        """Learn nothing; check that columns and classes are known."""
        known = getattr(self.pipeline, "feature_names_in_", None)
        if known is not None and isinstance(X, pd.DataFrame):
            lost = [str(name) for name in known if name not in set(X.columns)]
            if lost:
                raise ContractError(
                    f'the fitted pipeline reads the column "{lost[0]}", which the data lack; give '
                    f"it the columns it was fitted on."
                )
        if hasattr(self, "classes_"):
            classes = np.asarray(self.classes_).tolist()
            known = {*classes, *map(str, classes)}
            new = [label for label in np.unique(y).tolist() if not {label, str(label)} & known]
            if new:
                raise ContractError(
                    f"the fitted pipeline knows the classes {', '.join(map(str, classes[:10]))}, "
                    f'and not "{new[0]}"; fit it on labels as the data write them.'
                )
        return self

    def predict(self, X: Any) -> Any:
        """Return what the pipeline predicts."""
        return self.pipeline.predict(X)

    @available_if(lambda self: hasattr(self.pipeline, "predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the pipeline's probabilities of the classes."""
        return self.pipeline.predict_proba(X)


def _check_fitted(pipeline: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    name = type(pipeline).__name__
    if isinstance(pipeline, type) or not hasattr(pipeline, "predict"):
        raise ContractError(f"Fitted takes a fitted object with predict; {name} is none.")
    try:
        check_is_fitted(pipeline)
    except NotFittedError as error:
        raise ContractError(
            f"this {name} is not fitted; pass it without Fitted and Karat fits it in each fold."
        ) from error
    except TypeError:  # no estimator of scikit-learn's kind: its owner knows
        pass


def _is(question: Any, pipeline: Any) -> bool:
    try:
        return bool(question(pipeline))
    except Exception:  # no estimator of scikit-learn's kind
        return False
