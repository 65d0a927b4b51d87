"""Tasks and benchmarks of mteb as tasks of Karat: its data and its protocol, our scoring.

``mteb:STSBenchmark`` and ``mteb:MTEB(eng, v2)`` are names of suites. Each subset and split of a
task of mteb is one task, named as in imported results: ``STS17 (en-en)``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from karat.compat.mteb.task_data import LOADERS, MtebData, abstract_class, quiet
from karat.core.dataset import DOCUMENT, QUERY
from karat.core.registry import suite_source
from karat.core.task import Suite, Task
from karat.errors import DefinitionError, did_you_mean
from karat.models.model import import_extra

PREFIX = "mteb:"
#: metrics of a task besides its main score, by type
METRICS = {
    "Classification": ("acc", "f1_macro", "f1_weighted", "precision_weighted", "recall_weighted"),
    "Clustering": ("v_measure", "ami"),
    "PairClassification": ("max_ap", "max_f1", "max_accuracy", "max_precision", "max_recall"),
    "Retrieval": ("ndcg@10", "map@10", "mrr@10", "recall@10", "recall@100", "precision@10"),
    "Reranking": ("map@1000", "ndcg@10", "mrr@10"),
    "STS": ("spearman", "pearson"),
    "Summarization": ("spearman", "pearson"),
    "BitextMining": ("f1_weighted", "acc", "precision_weighted", "recall_weighted"),
}
#: metrics of pairs that are compared by their cosine only
ONE_MEASURE = ("pr_auc", "f1_best", "acc_best")
#: our names of main scores, where they differ
_SPEARMAN = {"cosine_spearman": "spearman", "cosine_pearson": "pearson"}
NAMES: dict[str, dict[str, str]] = {
    "Classification": {"accuracy": "acc", "f1": "f1_macro"},
    # a model of Karat has no similarity of its own but the cosine
    "PairClassification": {
        f"{measure}_{name}": ours
        for measure in ("similarity", "cosine")
        for name, ours in {"ap": "pr_auc", "f1": "f1_best", "accuracy": "acc_best"}.items()
    },
    "Retrieval": {"accuracy": "recall@1"},
    "Reranking": {"accuracy": "recall@1"},
    "STS": _SPEARMAN,
    "Summarization": _SPEARMAN,
    "BitextMining": {
        "accuracy": "acc",
        **{name: f"{name}_weighted" for name in ("f1", "precision", "recall")},
    },
}
#: parameters of logistic regression that Karat's head has, or that change nothing
_OF_HEAD = ("C", "max_iter", "random_state", "n_jobs", "verbose", "warm_start")


@suite_source("mteb")
def suite(tasks: str | Any | Iterable[Any]) -> Suite:
    """Return tasks of mteb as a suite.

    Parameters
    ----------
    tasks
        The name of a task or benchmark of mteb, such as ``"STSBenchmark"`` or ``"MTEB(eng, v2)"``;
        or objects of mteb: a task, a benchmark, or a list of tasks.

    Raises
    ------
    MissingExtra
        If mteb is not installed.
    DefinitionError
        If there is no such task or benchmark, or Karat cannot run any of the tasks.
    """
    mteb = import_extra("mteb", "mteb")
    found = _find(mteb, tasks.removeprefix(PREFIX)) if isinstance(tasks, str) else tasks
    name = getattr(getattr(found, "metadata", found), "name", None)
    listed = list(_single(getattr(found, "tasks", None) or found))
    reasons = {each.metadata.name: why for each in listed if (why := decline_reason(each))}
    if len(reasons) == len(listed):
        raise DefinitionError(*(f"{PREFIX}{task}: {why}." for task, why in reasons.items()))
    parts = [part for each in listed for part in _parts(each, reasons)]
    return Suite(f"{PREFIX}{name or 'custom'}", tuple(parts))


def _find(mteb: Any, name: str) -> Any:
    """Return a task or a benchmark by name."""
    with quiet():
        benchmarks = {each.name: each for each in mteb.get_benchmarks()}
        if name in benchmarks:
            return benchmarks[name]
        with suppress(KeyError):
            return mteb.get_task(name)
        names = [each.metadata.name for each in mteb.get_tasks(exclude_superseded=False)]
    hint = did_you_mean(name, [*names, *benchmarks])
    raise DefinitionError(f'mteb {mteb.__version__} has no task or benchmark "{name}".{hint}')


def _single(tasks: Any) -> Iterator[Any]:
    """Yield tasks; an aggregate, such as CQADupstackRetrieval, is replaced by its tasks."""
    for task in [tasks] if hasattr(tasks, "metadata") else tasks:
        inner = getattr(task.metadata, "tasks", None)
        if inner:
            yield from _single(inner)
        else:
            yield task


def decline_reason(task: Any) -> str:
    """Return why Karat cannot run a task of mteb, or an empty string."""
    about = task.metadata
    if about.type not in LOADERS:
        return f"Karat does not run tasks of the type {about.type}"
    if list(about.modalities) != ["text"]:
        return f"its data are {' and '.join(sorted(about.modalities))}, not text"
    if abstract_class(task) is None:
        return "it computes its scores in its own way"
    if not _main_metric(about):
        return f'Karat does not have its main score "{about.main_score}"'
    if getattr(task, "skip_first_result", False):
        return "it skips the first document of each query"
    if about.type == "Classification" and (other := _other_classifier(task.evaluator_model)):
        return f"it trains {other}, not logistic regression with default settings"
    if "Deprecated" in getattr(getattr(task, "evaluator", None), "__name__", ""):
        return "its evaluator is deprecated in mteb because of a bug; use a newer version of it"
    return ""


def _other_classifier(model: Any) -> str:
    """Return the classifier of a task if it is not the head of Karat, or an empty string."""
    from sklearn.linear_model import LogisticRegression

    usual = LogisticRegression().get_params()
    own = model.get_params() if type(model) is LogisticRegression else {}
    differs = [key for key in usual if key not in _OF_HEAD and own.get(key) != usual[key]]
    return repr(model) if not own or differs else ""


def _main_metric(about: Any) -> str:
    """Return our name of a task's main score, or an empty string."""
    name = NAMES.get(about.type, {}).get(about.main_score, about.main_score)
    if about.type in ("Retrieval", "Reranking"):
        name = re.sub("_at_([0-9]+)$", r"@\1", name)
        return name if re.fullmatch("(ndcg|map|mrr|recall|precision|hit_rate)@[0-9]+", name) else ""
    return name if name in (*METRICS[about.type], *ONE_MEASURE) else ""


def _parts(task: Any, reasons: Mapping[str, str]) -> Iterator[Task]:
    """Yield a task for each subset and split."""
    reason = reasons.get(task.metadata.name, "")
    for split in task.eval_splits if not reason else ["test"]:
        for subset in task.hf_subsets if not reason else ["default"]:
            data = MtebData(task, subset, split, reason)
            yield Task(data.name, data, **({} if reason else _settings(task)))


def _settings(task: Any) -> dict[str, Any]:
    """Return probe, split, metrics and more of a task."""
    about = task.metadata
    kind = re.sub("(?<=[a-z])(?=[A-Z])", "-", about.type).lower()
    usual: dict[str, Any] = {
        "kind": kind,
        "split": "all",
        "metrics": tuple(dict.fromkeys((_main_metric(about), *METRICS[about.type]))),
        "roles": _roles(task),
        "description": " ".join(str(about.description or "").split()),
        "missing": "penalize",
    }
    return usual | _PROTOCOLS.get(about.type, _plain_protocol)(task)


def _plain_protocol(task: Any) -> dict[str, Any]:
    return {"probe": _PROBES[task.metadata.type]}


def _classification(task: Any) -> dict[str, Any]:
    model, draws = task.evaluator_model, {"repeats": task.n_experiments}
    if task.is_cross_validation:
        draws = {"folds": task.n_splits}
    head = {"use": "logistic-regression", "C": model.C, "max_iter": model.max_iter}
    samples = {"samples": task.samples_per_label, "seed": task.seed}
    return {
        "probe": {"use": "trained", "head": head, "scale": "plain"},
        "split": {"use": "few-shot", **samples, **draws},
    }


def _clustering(task: Any) -> dict[str, Any]:
    probe = {"use": "mteb-clustering", "batch_size": _batch(task), "seed": task.seed}
    legacy = abstract_class(task) == "AbsTaskClusteringLegacy"
    only = {"metrics": ("v_measure",)} if legacy else {}
    return {"probe": probe, "split": "each-group", **only}


def _pairs(task: Any) -> dict[str, Any]:
    main = _main_metric(task.metadata)
    if main not in ONE_MEASURE:
        return {"probe": "mteb-pairs", "missing": "ignore"}
    return {"probe": "similarity", "metrics": tuple(dict.fromkeys((main, *ONE_MEASURE)))}


_PROTOCOLS = {
    "Classification": _classification,
    "Clustering": _clustering,
    "PairClassification": _pairs,
}
_PROBES = {
    "Retrieval": {"use": "nearest", "queries": "apart"},
    "Reranking": {"use": "candidates"},
    "STS": {"use": "similarity", "unknown": "mean"},
    "Summarization": {"use": "similarity", "bags": "max", "unknown": "mean"},
    "BitextMining": {"use": "bitext", "queries": "apart"},
}


def _batch(task: Any) -> int:
    """Return the batch size of k-means."""
    if hasattr(task, "k_mean_batch_size"):
        return int(task.k_mean_batch_size)
    parameters = inspect.signature(task.evaluator).parameters
    return int(parameters["clustering_batch_size"].default)


def _roles(task: Any) -> tuple[str, ...]:
    """Return the roles of the fields: query and document, or the type of the task."""
    kind = task.metadata.type
    if kind in ("Retrieval", "Reranking"):
        return (QUERY,) if kind == "Retrieval" else (QUERY, DOCUMENT)
    types = [getattr(task, f"input{i}_prompt_type", None) for i in (1, 2)]
    roles = tuple(str(each.value) if each is not None else kind for each in types)
    return roles if kind in ("STS", "PairClassification", "Summarization") else roles[:1]
