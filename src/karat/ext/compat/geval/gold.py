"""GEval's gold standards: names, tasks of both protocols, coverage by a vector file, ranks.

Its parameters, from a call or from an XML file, are checked before anything runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.core.registry import analogy_functions, metrics
from karat.core.task import Task
from karat.core.writing import write_atomic
from karat.data.load_dataset import fetch_file, load_dataset
from karat.data.readers.table_files import parse_json, read_text
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.models.vector_files import VectorFile
from karat.models.vectors.vector_formats import VECTOR_FILE_FORMATS, check_format
from karat.probes.similarity import Measure

#: long and short task names, in the order of execution
TASKS = {
    "Classification": "Class",
    "Regression": "Reg",
    "Clustering": "Clu",
    "DocumentSimilarity": "DocSim",
    "EntityRelatedness": "EntRel",
    "SemanticAnalogies": "SemAn",
}
#: GEval's task and gold standard, by Karat dataset
GOLD = {
    **{
        data + end: (task, name)
        for task, end in (("Classification", ""), ("Regression", "_rating"))
        for data, name in (
            ("cities", "Cities"),
            ("movies", "MetacriticMovies"),
            ("albums", "MetacriticAlbums"),
            ("aaup", "AAUP"),
            ("forbes", "Forbes"),
        )
    },
    "cities_and_countries": ("Clustering", "citiesAndCountries_cluster"),
    "cities2000_and_countries": ("Clustering", "cities2000AndCountries_cluster"),
    "five_domains": ("Clustering", "citiesMoviesAlbumsCompaniesUni_cluster"),
    "teams": ("Clustering", "teams_cluster"),
    "lp50": ("DocumentSimilarity", "LP50"),
    "kore": ("EntityRelatedness", "KORE"),
    "capital_country": ("SemanticAnalogies", "capital_country_entities"),
    "all_capital_country": ("SemanticAnalogies", "all_capital_country_entities"),
    "currency": ("SemanticAnalogies", "currency_entities"),
    "city_state": ("SemanticAnalogies", "city_state_entities"),
}
PROTOCOLS = ("corrected", "legacy")
#: how missing related entities are ranked: last and tied, or last in a random order
TAILS = ("tied", "random")
#: gamma of the SVM: scikit-learn's default, and that of its versions before 0.22
GAMMAS = ("scale", "auto")
ALL = "_all"
#: other spellings used by GEval's documentation or code
SPELLINGS = {
    "vector_file": "vector_filename",
    "vectors_file": "vector_filename",
    "similarity_function": "similarity_metric",
    "result_directory": "result_directory_path",
    "gold_directory": "gold_directory_path",
}
#: parameters that an XML file has as numbers or booleans
_TYPED = ("vector_size", "top_k", "parallel", "debugging_mode")
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off", "")
#: length of a wrong value that is shown
MOST_SHOWN = 60
COSTS = (0.001, 0.01, 0.1, 1.0, 10.0, 100, 1000)
#: GEval's model and configuration, by the suffix of Karat's task names
SETUPS = {
    "Classification": {
        "nb": ("NB", ""),
        "knn3": ("KNN", "K=3"),
        "tree": ("EntropyTree", ""),
        **{f"svm-{cost}": ("SVM", f"C={cost}") for cost in COSTS},
        "choice": ("NestedChoice", "NB,KNN,SVM"),
    },
    "Regression": {
        "linear": ("LR", ""),
        "knn3": ("KNN", "K=3"),
        "model-tree": ("ModelTree", ""),
        "choice": ("NestedChoice", "LR,Ridge,KNN"),
    },
    "Clustering": {
        "kmeans": ("KMeans", "metric=euclidean, n_clusters={count}"),
        "ward": ("Ward hierarchical clustering", "metric=euclidean, n_clusters={count}"),
        "agglomerative": ("Agglomerative clustering", "metric=cosine, n_clusters={count}"),
        "dbscan": ("DBSCAN", "metric=cosine"),
    },
    "DocumentSimilarity": {"": ("", "without_weights"), "weighted": ("", "with_weights")},
    "EntityRelatedness": {"": ("", "")},
    "SemanticAnalogies": {"": ("", "top_k=2")},
}
#: GEval's metrics by Karat's; ``{k}`` is the number in the configuration ``top_k=...``
METRICS = {
    "Classification": {"acc": "accuracy"},
    "Regression": {"rmse": "root_mean_squared_error"},
    "Clustering": {
        "ari": "adjusted_rand_index",
        "ami": "adjusted_mutual_info_score",
        "homogeneity": "homogeneity_score",
        "completeness": "completeness_score",
        "v_measure": "v_measure_score",
        "nmi": "normalized_mutual_info_score",
        "clustering_accuracy": "clustering_accuracy",
        "fowlkes_mallows": "fowlkes_mallows_score",
    },
    "DocumentSimilarity": {
        "pearson": "pearson_score",
        "spearman": "spearman_score",
        "harmonic": "harmonic_mean",
    },
    "EntityRelatedness": {
        "kendall_covered": "kendalltau_correlation",
        "kendall": "kendalltau_correlation_penalised",
    },
    "SemanticAnalogies": {
        "hits@{k}_covered": "accuracy",
        "hits@{k}": "accuracy_over_all",
        "mrr_covered": "mean_reciprocal_rank",
        "mrr": "mean_reciprocal_rank_over_all",
    },
}
#: metrics that GEval's code does not have
ADDED = (
    "fowlkes_mallows_score",
    "kendalltau_correlation_penalised",
    "accuracy_over_all",
    "mean_reciprocal_rank",
    "mean_reciprocal_rank_over_all",
)
COMPARED = (
    "test_name",
    "task_name",
    "gold_standard_file",
    "coverage",
    "model",
    "model_configuration",
    "metric",
    "score_value",
)
TOP_K = "top_k="
#: the text of an empty model or configuration in the comparison
NONE = "-"
#: the number of clusters of a gold standard; all others have two
CLUSTERS = {"citiesMoviesAlbumsCompaniesUni_cluster": 5}
#: the columns two scores must agree in to be compared
RANKED = ("task_name", "gold_standard_file", "model", "model_configuration", "metric")
#: metrics where lower is better
LOWER = ("root_mean_squared_error",)
REPEATS = 10


@dataclass(frozen=True)
class Parameters(Mapping[str, Any]):
    """The parameters of ``evaluate``; also a mapping by name, in any of GEval's spellings.

    >>> Parameters("v.txt", top_k=3)["top_k"], Parameters("v.txt")["similarity_function"]
    (3, 'cosine')
    """

    vector_filename: str
    vector_file_format: str = "txt"
    vector_size: int | None = None
    parallel: bool = False
    tasks: str | Iterable[str] = ALL
    similarity_metric: str | Callable[..., Any] = "cosine"
    top_k: int = 2
    compare_with: str | Iterable[str] = ALL
    debugging_mode: bool = False
    analogy_function: str | Callable[..., Any] | None = None
    result_directory_path: str | Path | None = None
    protocol: str = "corrected"
    gold_directory_path: str | Path | None = None
    datasets: str | Iterable[str] = ALL
    missing_related: str = "tied"
    svm_gamma: str = "scale"
    define: Sequence[str | Path] = ()
    constraint: str = "default"
    workers: int | None = None
    result_name: str | None = None

    def __getitem__(self, name: str) -> Any:
        return vars(self)[SPELLINGS.get(name, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))

    def checked(self) -> Parameters:
        """Return the parameters in canonical spelling, or raise one error with all mistakes."""
        mistakes: list[str] = []
        values: dict[str, Any] = dict(vars(self))
        extensions = extensions_of(self)  # first: other names may be defined there
        values["define"] = extensions.define
        for name, check in _CHECKS.items():
            try:
                context = (extensions,) if name == "tasks" else ()
                values[name] = check(name, values[name], *context)
            except DefinitionError as error:
                mistakes += error.messages
        if mistakes:
            raise DefinitionError(*mistakes)
        return Parameters(**values)


def from_xml(path: str | Path) -> Parameters:
    """Return the parameters of an XML file: ``<parameters>`` with one element for each."""
    parameters: dict[str, Any] = {}
    names = [field.name for field in fields(Parameters)]
    for element in _parse_xml(Path(path)):
        name, text = SPELLINGS.get(element.tag, element.tag), (element.text or "").strip()
        if name not in names:
            hint = did_you_mean(element.tag, [*names, *SPELLINGS])
            raise DefinitionError(f"{path}: unknown parameter <{element.tag}>.{hint}")
        if name in parameters:
            raise DefinitionError(f"{path}: duplicate parameter <{element.tag}>.")
        for nested in (below for value in element for below in value):
            raise DataError(f"{path}: unexpected element <{nested.tag}> below <{element.tag}>.")
        values = [value.text.strip() for value in element if value.text and value.text.strip()]
        if name in ("tasks", "compare_with", "datasets"):
            parameters[name] = values or _words(text) or ALL
        elif text:
            parameters[name] = _CHECKS[name](name, text) if name in _TYPED else text
    if "vector_filename" not in parameters:
        raise DefinitionError(f"{path}: <vector_filename> is missing.")
    return Parameters(**parameters)


class _NoDoctype(ElementTree.TreeBuilder):
    """Rejects a document type, whose entities can name other files or grow without limit."""

    def doctype(self, *_: object) -> None:
        raise DataError("a parameter file must not have a document type (<!DOCTYPE ...>).")


def _parse_xml(path: Path) -> ElementTree.Element:
    parser = ElementTree.XMLParser(target=_NoDoctype())
    try:
        root = ElementTree.fromstring(path.read_bytes(), parser)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    except ElementTree.ParseError as error:
        raise DataError(f"{path} is not valid XML: {error}.") from error
    except (LookupError, ValueError) as error:
        raise DataError(
            f"{path}: its encoding is not supported ({error}); save it as UTF-8."
        ) from error
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    if root.tag != "parameters":
        raise DataError(f"{path}: the root element must be <parameters>, got <{root.tag}>.")
    return root


def extensions_of(params: Parameters) -> Any:
    """Return the tasks and gold standards that parameters may name besides GEval's own."""
    from karat.ext.compat.geval.extensions import Extensions

    defined = params.define
    files = [defined] if isinstance(defined, str | Path) else defined or ()
    folder = params.gold_directory_path
    extensions = Extensions(
        tuple(map(Path, files)), str(Path(folder).expanduser()) if folder else None
    )
    if extensions.define:
        _ = extensions.catalog  # registers the components of the files
    return extensions


def task_names(
    name: str, requested: type | str | Iterable[Any] | None, extensions: Any = None
) -> list[str]:
    """Return the long names of tasks, in the order of execution, then the names of own tasks.

    >>> task_names("tasks", ["SemAn", "Classification"])
    ['Classification', 'SemanticAnalogies']
    """
    several = [requested] if isinstance(requested, type) else requested or ()
    wanted = _words(requested) if isinstance(requested, str) else list(several)
    if not wanted:
        raise DefinitionError(f"{name} is empty: expected {ALL} or some of {', '.join(TASKS)}.")
    if ALL in wanted:
        return list(TASKS)
    spelled = {
        spelling.lower(): long for long, short in TASKS.items() for spelling in (long, short)
    }
    others = [spelling for spelling in wanted if str(spelling).lower() not in spelled]
    chosen = {spelled[str(spelling).lower()] for spelling in wanted if spelling not in others}
    named = (extensions or extensions_of(Parameters(""))).task_names(others) if others else []
    return [*(long for long in TASKS if long in chosen), *named]


def gold_names(name: str, requested: str | Iterable[object] | None) -> list[str]:
    """Return the names of gold standards, in the order of execution.

    >>> gold_names("datasets", "kore, Cities")
    ['Cities', 'KORE']
    """
    wanted = (
        _words(requested)
        if isinstance(requested, str)
        else [str(standard) for standard in requested or ()]
    )
    names = list(dict.fromkeys(gold for _, gold in GOLD.values()))
    if not wanted:
        raise DefinitionError(f"{name} is empty: expected {ALL} or some of {', '.join(names)}.")
    if ALL in wanted:
        return [ALL]
    spelled = {standard.lower(): standard for standard in names}
    unknown = [standard for standard in wanted if standard.lower() not in spelled]
    if unknown:
        raise DefinitionError(
            *(
                f'unknown gold standard "{standard}".{did_you_mean(standard, names)} Available: '
                f"{', '.join(names)}; or {ALL}."
                for standard in unknown
            )
        )
    chosen = {spelled[standard.lower()] for standard in wanted}
    return [standard for standard in names if standard in chosen]


def truth(name: str, value: object) -> bool:
    """Return a boolean parameter, also from a text such as "false".

    >>> truth("parallel", "False"), truth("parallel", True)
    (False, True)
    """
    text = str(value).strip().lower()
    if isinstance(value, bool | str | int) and text in (*_TRUE, *_FALSE):
        return text in _TRUE
    raise DefinitionError(f"{name} must be true or false, got {value!r}.")


def _whole(name: str, value: object) -> int | None:
    if value is None and name in ("vector_size", "workers"):
        return None
    text = str(value).strip()
    if isinstance(value, bool) or not re.fullmatch("[0-9]{1,18}", text) or int(text) < 1:
        described = repr(value) if len(text) < MOST_SHOWN else f"a text of {len(text):,} characters"
        raise DefinitionError(f"{name} must be an integer >= 1, got {described}.")
    return int(text)


def _file(name: str, value: object) -> str:
    text = str(value or "")
    path = Path(text).expanduser()
    if not text or not path.is_file():
        near = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() and text else []
        raise DefinitionError(
            f"{name}: file not found: {text or '(empty)'}.{did_you_mean(path.name, near)}"
        )
    return text


def _one_of(choices: Iterable[str]) -> Callable[[str, Any], str]:
    def check(name: str, value: object) -> str:
        text = str(value).strip().lower()
        if text not in choices:
            hint = did_you_mean(text, choices)
            raise DefinitionError(
                f'{name} must be one of {", ".join(choices)}, got "{value}".{hint}'
            )
        return text

    return check


def _format(name: str, value: object) -> str:
    from karat.ext.compat.geval.extensions import format_name

    text = format_name(value).strip()
    text = text.lower() if text.lower() in VECTOR_FILE_FORMATS else text
    check_format(text)
    return text


def _function(name: str, value: object) -> Any:
    function = analogy_functions.get(value) if isinstance(value, str) and value else value
    if function is not None and not callable(function):
        raise DefinitionError(f"{name} must be a function of three vectors, got {value!r}.")
    return value or None


def _folder(name: str, value: str | Path | None) -> str | None:
    if value is None:
        return None
    path = Path(value).expanduser()
    if name == "gold_directory_path" and not path.is_dir():
        raise DefinitionError(f"{name}: folder not found: {value}.")
    return str(path)


def _component(name: str, value: object) -> str | None:
    if value is not None and not re.fullmatch(r"\w[\w.@+-]*", str(value)):
        raise DefinitionError(f"{name} must be letters, digits and _.@+-, got {value!r}.")
    return None if value is None else str(value)


def _runs(name: str, value: str | Iterable[object] | None) -> list[str]:
    value = ALL if value is None else value
    return [value] if isinstance(value, str) else list(map(str, value))


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "vector_filename": _file,
    "vector_file_format": _format,
    "vector_size": _whole,
    "parallel": truth,
    "tasks": task_names,
    "similarity_metric": lambda name, value: Measure(value).given,
    "top_k": _whole,
    "compare_with": _runs,
    "debugging_mode": truth,
    "analogy_function": _function,
    "result_directory_path": _folder,
    "protocol": _one_of(PROTOCOLS),
    "gold_directory_path": _folder,
    "datasets": gold_names,
    "missing_related": _one_of(TAILS),
    "svm_gamma": _one_of(GAMMAS),
    "workers": _whole,
    "result_name": _component,
}


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,;]+", text.strip()) if word]


def lower_is_better(metric: str) -> bool:
    """Return whether lower values are better; GEval's tasks have one such metric.

    >>> lower_is_better("root_mean_squared_error"), lower_is_better("mae"), lower_is_better("acc")
    (True, True, False)
    """
    if metric in metrics:  # of a task that is not GEval's
        return not metrics.get(metric).higher_is_better
    return metric in LOWER


@dataclass(frozen=True)
class Trial:
    """A model with a configuration on a gold standard: the subject of a row in GEval's files."""

    task: str
    gold: str
    model: str = ""
    configuration: str = ""

    @property
    def name(self) -> str:
        """The task name in the suite ``geval``, or else all fields, as in ``karat geval``.

        >>> Trial("Classification", "Cities", "NB").name, Trial("Regression", "Cities", "M5").name
        ('cities-nb', 'Regression Cities M5')
        """
        pair = (self.model, self.configuration)
        setups = _setups(self.task, self.gold).items()
        ending = next((ending for ending, names in setups if names == pair), None)
        if self.dataset and ending is not None:
            return "-".join(filter(None, (self.dataset.replace("_", "-"), ending)))
        return self.full_name

    @property
    def full_name(self) -> str:
        """The task name in ``karat geval``."""
        return " ".join(filter(None, (self.task, self.gold, self.model, self.configuration)))

    @property
    def dataset(self) -> str:
        """Karat's dataset, or an empty string."""
        pair = (self.task, self.gold)
        return next((data for data, names in GOLD.items() if names == pair), "")

    @property
    def metrics(self) -> dict[str, str]:
        """GEval's metrics by Karat's."""
        k = self.configuration.removeprefix(TOP_K) or "2"
        return {ours.format(k=k): theirs for ours, theirs in METRICS[self.task].items()}

    @property
    def file(self) -> str:
        """The name of GEval's result file; analogies share one."""
        middle = "" if self.task == "SemanticAnalogies" else f"_{self.gold}"
        return f"{self.task[0].lower()}{self.task[1:]}{middle}_results.csv"


def _setups(task: str, gold: str) -> dict[str, tuple[str, str]]:
    """Return GEval's model and configuration by the suffix of Karat's task names."""
    count = CLUSTERS.get(gold, 2)
    pairs = SETUPS.get(task, {}).items()
    return {ending: (model, text.format(count=count)) for ending, (model, text) in pairs}


def trial_of(name: str, dataset: str, kind: str) -> Trial | None:
    """Return the GEval trial that corresponds to a Karat task, or None.

    >>> trial_of("cities-svm-0.1", "cities", "classification")
    Trial(task='Classification', gold='Cities', model='SVM', configuration='C=0.1')
    >>> trial_of("Clustering teams_cluster KMeans", "teams", "Clustering").model
    'KMeans'
    >>> trial_of("cities-mine", "cities", "classification") is None
    True
    """
    if kind in METRICS and name.startswith(f"{kind} "):
        gold, *rest = name.removeprefix(f"{kind} ").split(" ")
        signs = ("=", ",", "_weights")
        start = next((i for i, word in enumerate(rest) if any(s in word for s in signs)), len(rest))
        return Trial(kind, gold, " ".join(rest[:start]), " ".join(rest[start:]))
    if dataset not in GOLD:
        return None
    task, gold = GOLD[dataset]
    stem = dataset.replace("_", "-")
    ending = "" if name == stem else name.removeprefix(f"{stem}-")
    setups = _setups(task, gold)
    if ending not in setups or (ending and not name.startswith(f"{stem}-")):
        return None
    return Trial(task, gold, *setups[ending])


def ranking(values: pd.DataFrame, run_id: str, first: int = 1) -> pd.DataFrame:
    """Return the ranks of a run: the best has the rank ``first``, ties share the better rank.

    A missing score has the rank -1. ``absolute_total`` counts the scores compared,
    ``relative_total`` the distinct ones.
    """
    rows = []
    for key, group in values.groupby(list(RANKED), sort=False, dropna=False):
        is_own = (group["test_name"] == run_id).to_numpy()
        if not is_own.any():
            continue
        scores = group["score_value"].to_numpy(dtype=float)
        score, present = scores[is_own][0], scores[~np.isnan(scores)]
        better = present < score if lower_is_better(str(key[-1])) else present > score
        coverage = group["coverage"].to_numpy(dtype=float)
        rows.append(
            {
                **dict(zip(RANKED, key, strict=True)),
                "ranking": -1 if np.isnan(score) else first + int(better.sum()),
                "absolute_total": len(present),
                "relative_total": len(np.unique(present)),
                "coverage": coverage[is_own][0],
                "lowest_coverage": coverage.min(),
                "highest_coverage": coverage.max(),
            }
        )
    return pd.DataFrame(rows)


def comparison_text(values: pd.DataFrame) -> str:
    """Return a table of the comparison separated by blanks, as GEval stores it."""
    return values.to_csv(sep=" ", index=False, lineterminator="\n")


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
class GoldTrial:
    """A trial and its Karat task."""

    trial: Trial
    task: Task


GOLD_STANDARDS = tuple(Gold(task, name, dataset) for dataset, (task, name) in GOLD.items())


def load_gold(gold: Gold, folder: str | None) -> Dataset:
    """Return a gold standard, from a folder with GEval's layout or from its usual sources."""
    catalog = Catalog()
    if folder is None:
        data: Dataset = catalog.dataset(gold.dataset)()
        return data
    definition = dict(catalog.definitions.get("datasets", gold.dataset))
    options = dict(definition.get("options") or {})
    if "pairs" in options:  # a second file in the same folder
        options["pairs"] = Path(_place(options["pairs"])).name
    path = Path(folder) / _place(definition["sources"])
    local = {**definition, "sources": None, "path": str(path), "options": options}
    return load_dataset(gold.dataset, local)


def _place(sources: Iterable[Mapping[str, Any]]) -> str:
    """Return the path of a file in GEval's data folder."""
    return str(next(s["folder"] for s in sources if "folder" in s)).removeprefix("geval/")


def trials(gold: Gold, data: Dataset, params: Parameters) -> Iterator[GoldTrial]:
    """Yield all models and configurations for a gold standard."""
    trained = {"Classification": _classifiers, "Regression": _regressors}.get(gold.task)
    count = len(data.classes)
    for setup in trained(params) if trained else _stateless(gold.task, params, count):
        trial = Trial(gold.task, gold.name, setup.model, setup.configuration)
        options = _task_options(gold.task, setup, params)
        task = Task(name=trial.full_name, dataset=data, kind=gold.task, **options)
        yield GoldTrial(trial, task)


def _trained(head: str | Mapping[str, object], legacy: bool) -> dict[str, Any]:
    return {"use": "trained", "head": head, "scale": "plain" if legacy else "standard"}


def _classifiers(params: Parameters) -> list[Setup]:
    legacy = params.protocol == "legacy"
    gamma = {} if params.svm_gamma == "scale" else {"gamma": params.svm_gamma}
    machines = [{"use": "svm", "C": cost, **gamma} for cost in COSTS]
    tree = {"use": "decision-tree", "criterion": "gini" if legacy else "entropy"}
    knn = {"use": "knn", "n_neighbors": 3}
    rows: list[tuple[str, str, Any]] = [("NB", "", "naive-bayes"), ("KNN", "K=3", knn)]
    rows.append(("C45" if legacy else "EntropyTree", "", tree))
    rows += [("SVM", f"C={head['C']}", head) for head in machines]
    setups = [Setup(*row[:2], _trained(row[2], legacy), REPEATS) for row in rows]
    if legacy:
        return setups
    # selected on inner folds: the best of seven on the test folds would be optimistic
    nested = {"use": "best-of", "heads": machines, "folds": 3}
    any_of = {"use": "best-of", "heads": ["naive-bayes", knn, tree, *machines], "folds": 3}
    return [
        *setups,
        Setup("SVM", "C=nested", _trained(nested, legacy)),
        Setup("NestedChoice", "NB,KNN,EntropyTree,SVM", _trained(any_of, legacy)),
    ]


def _regressors(params: Parameters) -> list[Setup]:
    legacy = params.protocol == "legacy"
    knn = {"use": "knn", "n_neighbors": 3}
    tree = ("M5", "", "decision-tree") if legacy else ("ModelTree", "", "model-tree")
    rows: list[tuple[str, str, Any]] = [("LR", "", "linear-regression"), ("KNN", "K=3", knn), tree]
    setups = [Setup(*row[:2], _trained(row[2], legacy), REPEATS) for row in rows]
    if legacy:
        return setups
    any_of = {"use": "best-of", "heads": ["linear-regression", knn, "model-tree"], "folds": 3}
    return [*setups, Setup("NestedChoice", "LR,KNN,ModelTree", _trained(any_of, legacy))]


def _stateless(task: str, params: Parameters, count: int) -> list[Setup]:
    """Return the setups of the tasks that are not trained; both protocols have the same."""
    metric: Any = params.similarity_metric
    probe: dict[str, Any] = {"use": "similarity", "measure": metric}
    if task == "EntityRelatedness":
        tail = {"tied": "last", "random": "random-last"}[params.missing_related]
        return [Setup("", "", {**probe, "unknown": tail})]
    if task == "DocumentSimilarity":
        bags = {"without_weights": "matches", "with_weights": "weighted-matches"}
        return [Setup("", name, {**probe, "bags": how}) for name, how in bags.items()]
    if task == "SemanticAnalogies":
        function = params.analogy_function
        probe = {"use": "analogy", **({} if function is None else {"function": function})}
        return [Setup("", f"{TOP_K}{params.top_k}", probe)]
    named = f"metric={metric if isinstance(metric, str) else getattr(metric, '__name__', 'own')}"
    clusters, euclidean = f"n_clusters={count}", "metric=euclidean"
    means = {"use": "kmeans", "batch_size": None, "random_state": 0}
    merges = {"use": "agglomerative", "metric": metric}
    rows: list[tuple[str, str, Any]] = [
        ("DBSCAN", named, {"use": "dbscan", "metric": metric}),
        ("KMeans", f"{euclidean}, {clusters}", means),
        ("Agglomerative clustering", f"{named}, {clusters}", merges),
        ("Ward hierarchical clustering", f"{euclidean}, {clusters}", "ward"),
    ]
    return [Setup(*row[:2], {"use": "trained", "head": row[2]}) for row in rows]


def _task_options(task: str, setup: Setup, params: Parameters) -> dict[str, Any]:
    options: dict[str, Any] = {"probe": setup.probe, "metrics": tuple(METRICS[task])}
    if task in ("Classification", "Regression"):
        legacy = params.protocol == "legacy"
        use = "geval" if legacy else "kfold"
        split: dict[str, Any] = {"use": use, "folds": 10, "repeats": setup.repeats}
        if legacy and task == "Classification" and params.svm_gamma == "auto":
            split["each_class"] = True  # scikit-learn 0.22 changed the folds, too
        return {**options, "split": split}
    options["split"] = "all"
    if task == "DocumentSimilarity":
        return options
    if task == "EntityRelatedness":
        options["metrics"] = ("kendall", "kendall_covered")
    elif task == "SemanticAnalogies":
        hits = f"hits@{params.top_k}"
        options["metrics"] = (hits, f"{hits}_covered", "mrr", "mrr_covered")
    return {**options, "missing": "penalize"}


def annotated_entities(gold: Gold, folder: str | None) -> list[str]:
    """Return the entity of every annotation of the documents, as often as it is mentioned."""
    definition = Catalog().definitions.get("datasets", gold.dataset)
    local = None if folder is None else Path(folder) / _place(definition["sources"])
    path = local or fetch_file(gold.dataset, definition)
    documents = parse_json(read_text(path), path)
    return [
        annotation["entity"].strip()
        for document in documents
        for annotation in document["annotations"]
    ]


@dataclass(frozen=True)
class Coverage:
    """Which items and questions of a gold standard a vector file has vectors for.

    ``mentions`` are the entities of all annotations of documents.
    """

    gold: Gold
    data: Dataset
    items: np.ndarray
    questions: np.ndarray
    mentions: Sequence[str] = ()

    @classmethod
    def of(
        cls, gold: Gold, data: Dataset, encoder: VectorFile, mentions: Sequence[str] = ()
    ) -> Coverage:
        """Look up all items of a gold standard."""
        items = ~np.isnan(encoder.transform(data.items)[:, 0])
        questions = np.ones(len(data), dtype=bool)
        for name in data.fields:
            bags = data.mentions(name)
            questions &= np.logical_or.reduceat(items[bags.rows], bags.offsets[:-1])
        if data.kind == "items":
            questions &= items[data.items.index.get_indexer(pd.Index(data.target))]
        return cls(gold, data, items, questions, mentions)

    @property
    def counted(self) -> tuple[int, int, str]:
        """What GEval counts: how many are covered, how many there are, and their name.

        These are the main entities of KORE, the annotations of LP50, and the rows of all others.
        """
        if self.gold.task == "EntityRelatedness":
            main = np.unique(self.data.mentions(self.data.fields[0]).rows)
            return int(self.items[main].sum()), len(main), "main entities"
        if self.mentions:
            with_vector = set(self.data.items.index[self.items])
            return (
                sum(name in with_vector for name in self.mentions),
                len(self.mentions),
                "annotations",
            )
        return int(self.questions.sum()), len(self.questions), "rows"

    @property
    def share(self) -> float:
        """The fraction of the gold standard that is covered."""
        covered, total, _ = self.counted
        return covered / total

    @property
    def missing(self) -> list[str]:
        """The entities without a vector, in the order of the gold standard."""
        return [str(name) for name in self.data.items.index[~self.items]]

    def covered(self) -> Dataset:
        """Return the covered rows, as GEval joins them before it splits."""
        return self.data.take(np.flatnonzero(self.questions))

    def summary(self) -> str:
        """Return one line for the log."""
        covered, total, what = self.counted
        rows = f"{covered} of {total} {what}"
        entities = f"{len(self.missing)} of {len(self.items)} entities missing"
        return f"{self.gold.name}: coverage {self.share:.4f} ({rows}), {entities}"

    def write(self, folder: Path) -> Path:
        """Write GEval's file of ignored data, which may have no rows, and return its path."""
        task = self.gold.task
        stem = f"{task[0].lower()}{task[1:]}_{self.gold.name}_ignoredData"
        tables = {"EntityRelatedness": self._pairs, "SemanticAnalogies": self._quadruples}
        path = folder / f"{stem}.{'csv' if task in tables else 'txt'}"
        if task in tables:
            write_atomic(path, tables[task]().to_csv(index=False, lineterminator="\n"))
        else:
            write_atomic(path, "".join(f"{name}\n" for name in self.missing))
        return path

    def _pairs(self) -> pd.DataFrame:
        """Return missing main entities, then missing related ones with their main entity."""
        main, related = (self.data.mentions(name).rows for name in self.data.fields)
        names = self.data.items.index
        missing = [(names[m], "") for m in dict.fromkeys(main) if not self.items[m]]
        pairs = zip(related, main, strict=True)
        missing += [(names[a], names[b]) for a, b in pairs if not self.items[a]]
        return pd.DataFrame(missing, columns=["entity", "related_to"])

    def _quadruples(self) -> pd.DataFrame:
        missing = self.data.questions.loc[~self.questions, ["a", "c", "b"]]
        answers = np.asarray(self.data.target)[~self.questions]
        table = missing.assign(answer=answers).astype(str)
        return table.set_axis([f"entity_{i}" for i in range(1, 5)], axis=1)
