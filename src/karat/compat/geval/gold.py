"""GEval's gold standards and models as Karat tasks, for both protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karat.catalogue import Catalogue
from karat.compat.geval.parameters import Parameters
from karat.data.load import load_dataset
from karat.dataset import Dataset
from karat.results.geval_names import GOLD as NAMES
from karat.results.geval_names import METRICS
from karat.task import Task

COSTS = (0.001, 0.01, 0.1, 1.0, 10.0, 100, 1000)
REPEATS = 10


@dataclass(frozen=True)
class Gold:
    """A gold standard: the task it is for, its name in GEval's files, and Karat's dataset."""

    task: str
    name: str
    dataset: str


@dataclass(frozen=True)
class Setup:
    """A model of GEval with a configuration, and Karat's probe for it."""

    model: str
    configuration: str
    probe: Mapping[str, Any]
    repeats: int = 1


@dataclass(frozen=True)
class Trial:
    """A setup on a gold standard, and its Karat task."""

    gold: Gold
    setup: Setup
    task: Task


GOLD = tuple(Gold(task, name, dataset) for dataset, (task, name) in NAMES.items())
CLUSTERING = METRICS["Clustering"]


def load_gold(gold: Gold, folder: str | None) -> Dataset:
    """Return a gold standard, from a folder with GEval's layout or from its usual sources."""
    catalogue = Catalogue()
    if folder is None:
        data: Dataset = catalogue.dataset(gold.dataset)()
        return data
    definition = dict(catalogue.definitions.get("datasets", gold.dataset))
    options = dict(definition.get("options") or {})
    if "pairs" in options:  # a second file in the same folder
        options["pairs"] = Path(_place(options["pairs"])).name
    path = Path(folder) / _place(definition["sources"])
    local = {**definition, "sources": None, "path": str(path), "options": options}
    return load_dataset(gold.dataset, local)


def _place(sources: Iterable[Mapping[str, Any]]) -> str:
    """Return the path of a file in GEval's data folder."""
    return str(next(s["folder"] for s in sources if "folder" in s)).removeprefix("geval/")


def trials(gold: Gold, data: Dataset, params: Parameters) -> Iterator[Trial]:
    """Yield all models and configurations for a gold standard."""
    legacy = params.protocol == "legacy"
    for setup in SETUPS[gold.task](params, legacy):
        how = _task_options(gold.task, setup, params)
        name = " ".join(filter(None, (gold.task, gold.name, setup.model, setup.configuration)))
        yield Trial(gold, setup, Task(name=name, dataset=data, kind=gold.task, **how))


def _trained(head: Any, legacy: bool) -> dict[str, Any]:
    return {"use": "trained", "head": head, "scale": "plain" if legacy else "standard"}


def _classifiers(params: Parameters, legacy: bool) -> list[Setup]:
    machines = [{"use": "svm", "C": cost} for cost in COSTS]
    tree = {"use": "tree", "criterion": "gini" if legacy else "entropy"}
    knn = {"use": "knn", "n_neighbors": 3}
    rows: list[tuple[str, str, Any]] = [("NB", "", "nb"), ("KNN", "K=3", knn)]
    rows.append(("C45" if legacy else "EntropyTree", "", tree))
    rows += [("SVM", f"C={head['C']}", head) for head in machines]
    found = [Setup(*row[:2], _trained(row[2], legacy), REPEATS) for row in rows]
    if legacy:
        return found
    # selected on inner folds: the best of seven on the test folds would be optimistic
    nested = {"use": "best-of", "heads": machines, "folds": 3}
    any_of = {"use": "best-of", "heads": ["nb", knn, tree, *machines], "folds": 3}
    return [
        *found,
        Setup("SVM", "C=nested", _trained(nested, legacy)),
        Setup("NestedChoice", "NB,KNN,EntropyTree,SVM", _trained(any_of, legacy)),
    ]


def _regressors(params: Parameters, legacy: bool) -> list[Setup]:
    knn = {"use": "knn", "n_neighbors": 3}
    tree = ("M5", "", "tree") if legacy else ("ModelTree", "", "model-tree")
    rows: list[tuple[str, str, Any]] = [("LR", "", "linear"), ("KNN", "K=3", knn), tree]
    found = [Setup(*row[:2], _trained(row[2], legacy), REPEATS) for row in rows]
    if legacy:
        return found
    any_of = {"use": "best-of", "heads": ["linear", knn, "model-tree"], "folds": 3}
    return [*found, Setup("NestedChoice", "LR,KNN,ModelTree", _trained(any_of, legacy))]


def _clusterers(params: Parameters, legacy: bool) -> list[Setup]:
    metric: Any = params.similarity_metric
    named = metric if isinstance(metric, str) else getattr(metric, "__name__", "own")
    rows: list[tuple[str, str, Any]] = [
        ("DBSCAN", f"metric={named}", {"use": "dbscan", "metric": metric}),
        ("KMeans", "", {"use": "kmeans", "batch_size": None, "random_state": 0}),
        (
            "Agglomerative clustering",
            f"metric={named}",
            {"use": "agglomerative", "metric": metric},
        ),
        ("Ward hierarchical clustering", "metric=euclidean", "ward"),
    ]
    return [Setup(*row[:2], {"use": "trained", "head": row[2]}) for row in rows]


def _documents(params: Parameters, legacy: bool) -> list[Setup]:
    ways = (("without_weights", "matches"), ("with_weights", "weighted-matches"))
    probe = {"use": "similarity", "measure": params.similarity_metric}
    return [Setup("", name, {**probe, "bags": bags}) for name, bags in ways]


def _related(params: Parameters, legacy: bool) -> list[Setup]:
    return [Setup("", "", {"use": "similarity", "measure": params.similarity_metric})]


def _analogies(params: Parameters, legacy: bool) -> list[Setup]:
    probe: dict[str, Any] = {"use": "analogy"}
    if params.analogy_function is not None:
        probe["function"] = params.analogy_function
    return [Setup("", f"top_k={params.top_k}", probe)]


SETUPS: dict[str, Callable[[Parameters, bool], list[Setup]]] = {
    "Classification": _classifiers,
    "Regression": _regressors,
    "Clustering": _clusterers,
    "DocumentSimilarity": _documents,
    "EntityRelatedness": _related,
    "SemanticAnalogies": _analogies,
}


def _task_options(task: str, setup: Setup, params: Parameters) -> dict[str, Any]:
    options: dict[str, Any] = {"probe": setup.probe, "metrics": tuple(METRICS[task])}
    if task in ("Classification", "Regression"):
        use = "geval" if params.protocol == "legacy" else "kfold"
        return {**options, "split": {"use": use, "folds": 10, "repeats": setup.repeats}}
    options["split"] = "all"
    if task == "DocumentSimilarity":
        return options
    if task == "EntityRelatedness":
        options["metrics"] = ("kendall", "kendall_covered")
    elif task == "SemanticAnalogies":
        hits = f"hits@{params.top_k}"
        options["metrics"] = (hits, f"{hits}_covered", "mrr", "mrr_covered")
    return {**options, "missing": "penalise"}
