"""Evaluate an already fitted predictor without refitting it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.metaestimators import available_if

from karat.errors import ContractError

#: a note in every result, since Karat cannot check the training rows
NOTE = "fitted in advance, not on this training fold"


class Fitted:
    """Evaluate an already fitted pipeline or estimator.

    ``fit`` only checks that columns and classes match. The same pipeline is used for all folds, so
    it must not have been fitted on their test rows. Karat cannot check this; scores would be
    invalid.

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
        # nothing in it changes, so all folds share it
        return self

    @property
    def classes_(self) -> Any:
        """The classes of the pipeline, if it has them."""
        return self.pipeline.classes_

    def declines(self, kind: str) -> str:
        """Return why it cannot predict this kind of target, or an empty string."""
        from sklearn.base import is_classifier, is_regressor

        if kind == "classes" and _passes(is_regressor, self.pipeline):
            return "it predicts numbers, not classes"
        if kind == "numbers" and _passes(is_classifier, self.pipeline):
            return "it predicts classes, not numbers"
        return ""

    def fit(self, X: Any, y: Any) -> Fitted:
        """Check columns and classes."""
        columns = getattr(self.pipeline, "feature_names_in_", None)
        if columns is not None and isinstance(X, pd.DataFrame):
            missing = [str(name) for name in columns if name not in set(X.columns)]
            if missing:
                raise ContractError(
                    f'the data lack the column "{missing[0]}", which the pipeline was fitted on.'
                )
        if hasattr(self, "classes_"):
            classes = np.asarray(self.classes_).tolist()
            accepted = {*classes, *map(str, classes)}
            new = [label for label in np.unique(y).tolist() if not {label, str(label)} & accepted]
            if new:
                raise ContractError(
                    f'unknown class "{new[0]}": the pipeline was fitted on the classes '
                    f"{', '.join(map(str, classes[:10]))}."
                )
        return self

    def predict(self, X: Any) -> Any:
        """Return the pipeline's predictions."""
        return self.pipeline.predict(X)

    @available_if(lambda self: hasattr(self.pipeline, "predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the pipeline's class probabilities."""
        return self.pipeline.predict_proba(X)


def _check_fitted(pipeline: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    name = type(pipeline).__name__
    if isinstance(pipeline, type) or not hasattr(pipeline, "predict"):
        raise ContractError(f"Fitted expects a fitted object with predict, got {name}.")
    try:
        check_is_fitted(pipeline)
    except NotFittedError as error:
        raise ContractError(
            f"{name} is not fitted; pass it without Fitted, and Karat fits it in each fold."
        ) from error
    except TypeError:  # not a scikit-learn estimator
        pass


def _passes(check: Any, pipeline: Any) -> bool:
    try:
        return bool(check(pipeline))
    except Exception:  # not a scikit-learn estimator
        return False
