"""Replicates: further fits of a model on the same folds, which differ in the model's seed only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: what a replicate adds to the seed of the model; more than the folds of any task
STEP = 1_000_000
#: seeds of models are below this number
LIMIT = 2**31 - 1
#: the largest seed of a run: numpy's and scikit-learn's limit
LARGEST_SEED = 2**32 - 1
#: largest number of fits of a fold; those of more would have the same seeds again
MOST_SEEDS = 1000
#: parameters of scikit-learn's estimators, and the values with which ``random_state`` has no effect
_NO_EFFECT: dict[str, tuple[str, tuple[Any, ...]]] = {
    "LogisticRegression": ("solver", ("lbfgs", "newton-cg", "newton-cholesky")),
    **dict.fromkeys(
        ("Ridge", "RidgeClassifier"),
        ("solver", ("auto", "svd", "cholesky", "lsqr", "sparse_cg", "lbfgs")),
    ),
    **dict.fromkeys(("Lasso", "ElasticNet"), ("selection", ("cyclic",))),
    "SVC": ("probability", (False, "deprecated")),
}


def model_seed(seed: int, fold: int, replicate: int = 0) -> int:
    """Return the seed of a model on a fold: the run's seed plus the fold, as ``accepted_seed``.

    >>> model_seed(42, 3), model_seed(42, 3, replicate=2), model_seed(2633845682, 1)
    (45, 2000045, 2633845683)
    """
    wanted = seed + fold + STEP * replicate
    return accepted_seed(wanted) if seed > LIMIT else wanted % LIMIT


def accepted_seed(seed: int) -> int:
    """Return a seed that models accept: within 31 bits if it can be, else within 32 bits.

    >>> accepted_seed(7), accepted_seed(2**31 - 1), accepted_seed(2**31), accepted_seed(2**32)
    (7, 0, 2147483648, 0)
    """
    return seed % LIMIT if seed <= LIMIT else seed % (LARGEST_SEED + 1)


def replicate_of(run_facts: Mapping[str, Any]) -> int:
    """Return which replicate the run of a ``run.json`` has; 0 is the first fit of each fold.

    >>> replicate_of({"model": "onehot"}), replicate_of({"model": "forest", "replicate": 2})
    (0, 2)
    """
    return int(run_facts.get("replicate") or 0)


def replicate_name(name: str, replicate: int) -> str:
    """Return the name of a replicate in messages; the first one has the name of the model.

    >>> replicate_name("forest", 0), replicate_name("forest", 2)
    ('forest', 'forest (seed 3)')
    """
    return f"{name} (seed {replicate + 1})" if replicate else name


def replicate_fact(replicate: int) -> dict[str, int]:
    """Return the entry of a file about a replicate; the first one has none, as in old files.

    >>> replicate_fact(0), replicate_fact(2)
    ({}, {'replicate': 2})
    """
    return {"replicate": replicate} if replicate else {}


def fit_seed(run_facts: Mapping[str, Any]) -> Any:
    """Return the seed of a run, which tells runs of the same seed and replicate from others.

    >>> fit_seed({"seed": 42}), fit_seed({"seed": 42, "replicate": 2})
    (42, '42 (seed 3)')
    """
    replicate = replicate_of(run_facts)
    return (
        replicate_name(str(run_facts.get("seed")), replicate)
        if replicate
        else run_facts.get("seed")
    )


def seed_parameters(estimator: object) -> list[str]:
    """Return the parameters of a model that take its seed, with those of nested estimators.

    >>> seed_parameters(object())
    []
    """
    return [name for name in _parameters(estimator) if name.split("__")[-1] == "random_state"]


def depends_on_seed(estimator: Any, kind: str = "") -> bool:
    """Return whether the seed may change what a model learns from a target of this kind.

    A model says so itself with a method ``uses_seed(kind)``; else the seed counts if the model has
    a parameter for it, except where this has no effect, as in logistic regression by lbfgs.

    >>> depends_on_seed(object())
    False
    """
    if callable(getattr(estimator, "uses_seed", None)):
        return bool(estimator.uses_seed(kind))
    params = _parameters(estimator)
    prefixes = [name.removesuffix("random_state")[:-2] for name in seed_parameters(estimator)]
    owners = [params.get(prefix, estimator) for prefix in prefixes]
    return not all(map(_ignores_seed, owners))


def _parameters(estimator: object) -> Mapping[str, Any]:
    if hasattr(estimator, "get_params") and not isinstance(estimator, type):
        parameters: Mapping[str, Any] = estimator.get_params()
        return parameters
    return getattr(estimator, "__dict__", {})


def _ignores_seed(estimator: object) -> bool:
    """Return whether the ``random_state`` of an estimator of scikit-learn has no effect."""
    kind = type(estimator)
    if not kind.__module__.startswith("sklearn.") or kind.__name__ not in _NO_EFFECT:
        return False
    name, values = _NO_EFFECT[kind.__name__]
    return getattr(estimator, name, None) in values
