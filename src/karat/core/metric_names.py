"""Names of metrics in scikit-learn and in everyday use, and the metric of Karat that each means."""

from __future__ import annotations

from collections.abc import Iterable

from karat.core import registry
from karat.errors import did_you_mean

#: scorers of scikit-learn, by name, whose value a metric of Karat has; where several definitions
#: exist, as for more than two classes, only scorers that agree are here
SCORERS = {
    "accuracy": "acc",
    "adjusted_mutual_info_score": "ami",
    "adjusted_rand_score": "ari",
    "average_precision": "pr_auc",
    "balanced_accuracy": "balacc",
    "completeness_score": "completeness",
    "f1": "f1",
    "f1_macro": "f1_macro",
    "f1_micro": "f1_micro",
    "f1_weighted": "f1_weighted",
    "fowlkes_mallows_score": "fowlkes_mallows",
    "homogeneity_score": "homogeneity",
    "matthews_corrcoef": "mcc",
    "normalized_mutual_info_score": "nmi",
    "precision": "precision",
    "precision_micro": "f1_micro",
    "precision_weighted": "precision_weighted",
    "r2": "r2",
    "recall": "recall",
    "recall_micro": "f1_micro",
    "recall_weighted": "recall_weighted",
    "roc_auc": "auc",
    "roc_auc_ovo_weighted": "auc_ovo",
    "roc_auc_ovr_weighted": "auc_ovr",
    "v_measure_score": "v_measure",
}
#: scorers of losses: the value in scikit-learn is negative, that of Karat positive
NEGATED_SCORERS = {
    "neg_log_loss": "logloss",
    "neg_mean_absolute_error": "mae",
    "neg_mean_squared_error": "mse",
    "neg_mean_squared_log_error": "msle",
    "neg_root_mean_squared_error": "rmse",
    "neg_root_mean_squared_log_error": "rmsle",
}
#: functions of ``sklearn.metrics``, with their default arguments; not those of one class, such as
#: ``f1_score``: of the classes 1 and 2 they measure the class 1
FUNCTIONS = {
    "accuracy_score": "acc",
    "balanced_accuracy_score": "balacc",
    "log_loss": "logloss",
    "mean_absolute_error": "mae",
    "mean_squared_error": "mse",
    "mean_squared_log_error": "msle",
    "r2_score": "r2",
    "roc_auc_score": "auc",
    "root_mean_squared_error": "rmse",
    "root_mean_squared_log_error": "rmsle",
}
#: what people also call a metric
EVERYDAY = {
    "auroc": "auc",
    "balanced_acc": "balacc",
    "cross_entropy": "logloss",
    "matthews": "mcc",
    "rocauc": "auc",
}
ALIASES = {**SCORERS, **NEGATED_SCORERS, **FUNCTIONS, **EVERYDAY}

#: names that may mean several metrics: the nearest one, and the others
NEAREST = {"f_score": ("f1", "f05 and f2 have other weights")}


def canonical_metric(name: str) -> str:
    """Return Karat's name of a metric; a registered or unknown name is returned as it is.

    ``"accuracy"`` stays: results of MTEB have a metric of this name.

    >>> canonical_metric("roc_auc"), canonical_metric("neg_root_mean_squared_error")
    ('auc', 'rmse')
    >>> canonical_metric("acc"), canonical_metric("accuracy"), canonical_metric("mine")
    ('acc', 'accuracy', 'mine')
    """
    if name not in ALIASES or name == "accuracy" or name in registry.metrics:
        return name
    return ALIASES[name]


def recorded_metric(name: str, recorded: Iterable[str]) -> str:
    """Return the name under which results have a metric; Karat's name if they do not have it.

    >>> recorded_metric("roc_auc", ["auc"]), recorded_metric("roc_auc", ["roc_auc"])
    ('auc', 'roc_auc')
    """
    return name if name in set(recorded) else canonical_metric(name)


def metric_hint(name: str, names: list[str]) -> str:
    """Return a suggestion for an unknown metric, or an empty string.

    >>> metric_hint("f_score", ["f1", "f2"])
    ' Did you mean "f1"? Note that f05 and f2 have other weights.'
    >>> metric_hint("aur_oc", ["auc", "pr_auc"])
    ' Did you mean "auc"?'
    """
    if name in NEAREST:
        nearest, difference = NEAREST[name]
        return f' Did you mean "{nearest}"? Note that {difference}.'
    hint = did_you_mean(name, [*names, *ALIASES])
    alias = hint.removeprefix(' Did you mean "').removesuffix('"?')
    return f' Did you mean "{ALIASES[alias]}"?' if alias in ALIASES else hint
