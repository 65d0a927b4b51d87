"""Metric functions and scorers of scikit-learn, and the user's own functions of y_true and y_pred.

A metric of scikit-learn that Karat does not have is found by its name in every process: that of a
scorer, such as ``"roc_auc_ovr"``, or of a function with its arguments, such as
``"fbeta_score(beta=2)"``. The user's own functions are registered under their names.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from karat.core import registry
from karat.core.metric_names import canonical_metric
from karat.core.predictions import Predictions
from karat.errors import DefinitionError
from karat.metrics.metric import Metric

#: ends of the names of functions whose lower values are better, as scikit-learn names them
LOSSES = ("_error", "_loss", "_deviance")
#: beginnings and ends of names for which scikit-learn is imported
BEGINNINGS = (
    "neg_",
    "roc_auc",
    "jaccard",
    "average_precision",
    "balanced_accuracy",
    "top_k_accuracy",
    "explained_variance",
    "precision_",
    "recall_",
    "f1_",
    "positive_likelihood",
)
ENDS = (*LOSSES, "_score", "_corrcoef")
#: functions of class probabilities or scores; others are known by their second parameter
OF_PROBABILITIES = (
    "roc_auc_score",
    "average_precision_score",
    "top_k_accuracy_score",
    "hinge_loss",
    "log_loss",
    "brier_score_loss",
    "d2_log_loss_score",
    "d2_brier_score",
)
PROBABILITY_PARAMETERS = ("y_score", "y_proba", "y_prob", "probas_pred", "pred_decision")
#: functions with values from 0 to 1
SHARES = (
    "accuracy_score",
    "balanced_accuracy_score",
    "f1_score",
    "fbeta_score",
    "jaccard_score",
    "precision_score",
    "recall_score",
    "roc_auc_score",
    "average_precision_score",
)
#: functions that, of two classes, measure one
OF_POSITIVE = (
    "f1_score",
    "fbeta_score",
    "jaccard_score",
    "precision_score",
    "recall_score",
    "average_precision_score",
    "brier_score_loss",
)
#: what the predictions must contain for the functions of a module
NEEDS_OF_MODULES = {
    "sklearn.metrics._regression": ("numbers",),
    "sklearn.metrics._classification": ("classes",),
}


@dataclass(frozen=True)
class ScoreFunction:
    """A function of the true and the predicted values, applied to Predictions.

    ``sign`` is -1 for scorers that negate a loss; ``of_probabilities`` says that the function takes
    class probabilities instead of labels.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    sign: int = 1
    of_probabilities: bool = False

    def __post_init__(self) -> None:
        # a registry takes a component for the user's own by the module of its function
        for name in ("__module__", "__qualname__"):
            object.__setattr__(self, name, getattr(self.function, name, None) or "?")

    def __call__(self, predictions: Predictions) -> float:
        """Return the value that the function has for these predictions."""
        truth, answers, more = self._inputs(predictions)
        if predictions.weight is not None:
            more["sample_weight"] = predictions.weight
        return self.sign * float(self.function(truth, answers, **self.arguments, **more))

    def _inputs(self, predictions: Predictions) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        labels = predictions.labels
        if not labels or (predictions.truths == "numbers" and not self.of_probabilities):
            return predictions.target, predictions.predictions, {}
        typed = typed_labels(np.array(labels, dtype=object))
        truth = typed[predictions.true_codes]
        if not self.of_probabilities:
            answers = typed[predictions.answered_codes]
            return truth, answers, self._positive(predictions, typed)
        if len(labels) == 2:
            scores = predictions.predictions
            if predictions.probabilities is not None:
                scores = predictions.probabilities[:, -1]
            if {"labels", "pos_label"} & set(self.arguments):
                return truth, scores, {}
            return predictions.true_codes, scores, {}
        order = np.argsort(typed[: len(predictions.classes)])
        takes_labels = "labels" in registry.accepts(self.function)[0] - set(self.arguments)
        more = {"labels": typed[order]} if takes_labels else {}
        return truth, np.asarray(predictions.probabilities)[:, order], more

    def _positive(self, predictions: Predictions, typed: np.ndarray) -> dict[str, Any]:
        """Return the positive class, where the function's default, 1, is no class."""
        takes = "pos_label" in registry.accepts(self.function)[0] - set(self.arguments)
        return {"pos_label": typed[1]} if takes and len(typed) == 2 and 1 not in typed else {}


def typed_labels(labels: np.ndarray) -> np.ndarray:
    """Return labels, which are stored as text, as the integers, numbers or booleans they were.

    >>> typed_labels(np.array(["0", "10"], dtype=object)).tolist()
    [0, 10]
    >>> typed_labels(np.array(["no", "1"], dtype=object)).tolist()
    ['no', '1']
    """
    texts = [str(label) for label in labels]
    if set(texts) <= {"True", "False"}:
        return np.array([text == "True" for text in texts])
    for kind in (int, float):
        try:
            numbers = [kind(text) for text in texts]
        except ValueError:
            continue
        if [str(number) for number in numbers] == texts:
            return np.array(numbers)
    return np.array(texts)


def function_name(metric: Any) -> str:
    """Return the name under which a metric function or a scorer is found, in every process.

    A metric that Karat has too gets Karat's name; a function that scikit-learn does not have is
    registered under its own.
    """
    if registered := _registered_name(metric):
        return registered
    score_function = _score_function(metric)
    name = _name(score_function)
    of_scikit_learn = scikit_learn_metric(name)
    if of_scikit_learn is not None and of_scikit_learn.compute == score_function:
        return canonical_metric(name)
    if name in registry.metrics and registry.metrics.origin(name).startswith("karat."):
        raise DefinitionError(f'there is a metric "{name}"; give your function another name.')
    registry.metrics.register(name, _metric(name, score_function))
    return name


def scikit_learn_metric(name: str) -> Metric | None:
    """Return the metric of scikit-learn that a name stands for, or None.

    >>> scikit_learn_metric("neg_mean_absolute_error").higher_is_better
    True
    >>> scikit_learn_metric("zero_one_loss(normalize=False)").higher_is_better
    False
    """
    base, _, _ = name.partition("(")
    if not base.startswith(BEGINNINGS) and not base.endswith(ENDS):
        return None
    import sklearn.metrics

    if name in sklearn.metrics.get_scorer_names():
        return _metric(name, _score_function(sklearn.metrics.get_scorer(name)))
    function = getattr(sklearn.metrics, base.removeprefix("neg_"), None)
    arguments = _parsed_arguments(name)
    if not inspect.isfunction(function) or arguments is None:
        return None
    sign = -1 if base.startswith("neg_") else 1
    return _metric(name, ScoreFunction(function, arguments, sign, _of_probabilities(function)))


def _parsed_arguments(name: str) -> dict[str, Any] | None:
    """Return the arguments in a name such as "fbeta_score(beta=2)"; None if there is a mistake."""
    if not re.fullmatch(r"\w+(\(.*\))?", name):
        return None
    try:
        call: Any = ast.parse(name, mode="eval").body
        keywords = getattr(call, "keywords", [])
        return {keyword.arg: ast.literal_eval(keyword.value) for keyword in keywords}
    except (SyntaxError, ValueError):
        return None


def _registered_name(metric: object) -> str:
    """Return the name of a function that was registered with ``karat.metric``, or nothing."""
    for name in registry.metrics:
        definition = registry.metrics.get(name)
        compute = getattr(definition, "compute", None)
        if compute is metric or definition is metric:
            return name
    return ""


def _score_function(metric: Any) -> ScoreFunction:
    """Return a scorer, a function or a partial function as a ScoreFunction."""
    if hasattr(metric, "_score_func"):  # what make_scorer and get_scorer return
        responses = metric._response_method
        responses = (responses,) if isinstance(responses, str) else tuple(responses)
        of_labels = "predict" in responses
        return ScoreFunction(
            metric._score_func, dict(metric._kwargs), int(metric._sign), not of_labels
        )
    function: Any = metric
    arguments: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        if function.args:
            raise DefinitionError(f"name the arguments of the metric {metric!r}: partial(f, a=1).")
        function, arguments = function.func, {**function.keywords, **arguments}
    _check_parameters(function)
    return ScoreFunction(function, arguments, 1, _of_probabilities(function))


def _check_parameters(function: Callable[..., Any]) -> None:
    name = _plain_name(function)
    if not name.isidentifier():
        raise DefinitionError(f"the metric {name} needs a name; define it with def.")
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return
    if names[:1] == ["estimator"] or len(names) < 2:
        raise DefinitionError(
            f"the metric {name} must be a function of (y_true, y_pred), a scorer of make_scorer, "
            f"or a function of Predictions that is decorated with @karat.metric; it has the "
            f"parameters {', '.join(names) or 'none'}."
        )


def _plain_name(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _of_probabilities(function: Callable[..., Any]) -> bool:
    if _plain_name(function) in OF_PROBABILITIES:
        return True
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return False
    return len(names) > 1 and names[1] in PROBABILITY_PARAMETERS


def _name(score_function: ScoreFunction) -> str:
    """Return the name of a function with its arguments, after "neg_" if it is negated."""
    name = _plain_name(score_function.function)
    listed = ", ".join(f"{key}={value!r}" for key, value in score_function.arguments.items())
    negated = "neg_" if score_function.sign < 0 else ""
    return f"{negated}{name}({listed})" if listed else f"{negated}{name}"


def _metric(name: str, score_function: ScoreFunction) -> Metric:
    function, arguments = score_function.function, score_function.arguments
    plain = _plain_name(function)
    lower = plain.endswith(LOSSES)
    low, high = (0.0, np.inf) if lower else (-np.inf, np.inf)
    if plain in SHARES and "adjusted" not in arguments:
        low, high = 0.0, 1.0
    if score_function.sign < 0:
        low, high = -high, -low
    module = getattr(function, "__module__", None) or ""
    needs = NEEDS_OF_MODULES.get(module, ())
    origin = " of scikit-learn" if module.startswith("sklearn.") else ""
    return Metric(
        name,
        score_function,
        higher_is_better=score_function.sign < 0 or not lower,
        range=(low, high),
        needs=("probabilities",) if score_function.of_probabilities else needs,
        about=f"{plain}{origin}.",
        weighted="sample_weight" in registry.accepts(function)[0],
        positive_class=plain in OF_POSITIVE and arguments.get("average", "binary") == "binary",
    )
