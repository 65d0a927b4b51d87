"""GEval's extension points: own vector file formats, tasks, models and gold standards.

A class that was written for GEval's abstract classes works after a change of its imports. Tasks,
formats, similarity measures and gold standards of installed packages and of ``--define`` files are
found by name.
"""

from __future__ import annotations

import re
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from karat.config.catalog import Catalog, default_metrics
from karat.core import registry
from karat.core.dataset import Dataset
from karat.core.registry import Registry, build
from karat.core.task import Task
from karat.data.load_dataset import load_dataset
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.ext.compat.geval.gold import (
    ALL,
    COMPARED,
    GOLD_STANDARDS,
    TASKS,
    Gold,
    GoldTrial,
    Parameters,
    Trial,
)
from karat.models.vector_files import VectorFile
from karat.models.vectors.vector_formats import read_vectors

#: GEval's default size of vectors, for formats that need one to read a file
DEFAULT_SIZE = 200
#: names of methods as GEval's abstract class spells them
MISSPELLED = {"initialize_vectors": "inizialize_vectors"}
#: the columns of the scores of a task, without the run
SCORE_COLUMNS = COMPARED[1:]
#: task managers by name; installed packages add entry points of the group karat.geval_tasks
task_managers = Registry("geval_task")
#: the gold standard of each task whose format further files of the task have
TEMPLATES = {
    "Classification": "cities",
    "Regression": "cities_rating",
    "Clustering": "teams",
    "EntityRelatedness": "kore",
    "SemanticAnalogies": "capital_country",
}
GOLD_NAME = r"\w[\w@+-]*(\.[\w@+-]+)*"


# -- formats and data -----------------------------------------------------------------------


class AbstractDataManager:
    """Reads a vector file format, and joins its vectors with gold standards.

    A subclass defines ``read_vector_file`` or ``initialize_vectors``; the other methods work on
    tables. The vectors are a data frame with the column ``name`` and one column per dimension.
    """

    #: default columns of a gold standard, and the name of the second one after the join
    column_key: ClassVar[str] = "DBpedia_URI15"
    column_score: ClassVar[str] = "label"
    joined_score: ClassVar[str] = "label"
    taskDataManager: MutableMapping[str, Any]

    def __init__(self, debugging_mode: bool = False) -> None:
        self.debugging_mode = debugging_mode
        self.taskDataManager = {}

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for right, wrong in MISSPELLED.items():
            members = vars(cls)
            if wrong in members and right not in members:
                setattr(cls, right, members[wrong])
            elif right in members and wrong not in members:
                setattr(cls, wrong, members[right])

    def initialize_vectors(self, vector_filename: str, vector_size: int) -> Any:
        """Return the vectors of a file, or None after noting how to read them later."""
        return self.read_vector_file(vector_filename, vector_size)

    def inizialize_vectors(self, vector_filename: str, vector_size: int) -> Any:
        """Return the vectors of a file: GEval's spelling of ``initialize_vectors``."""
        return self.initialize_vectors(vector_filename, vector_size)

    def read_vector_file(self, filename: str, vector_size: int) -> Any:
        """Return the vectors of a file as a data frame."""
        raise DefinitionError(
            f"{type(self).__name__} must define read_vector_file or initialize_vectors."
        )

    def create_header(self, vec_size: int) -> list[Any]:
        """Return the columns of the vectors: the name and the dimensions."""
        return ["name", *range(vec_size)]

    def read_file(self, filename: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return columns of a gold standard: a table separated by tabs, commas or blanks."""
        with open(filename, encoding="utf-8") as file:
            first = file.readline()
        separator = next((sign for sign in ("\t", ",") if sign in first), r"\s+")
        wanted = None if columns is None else list(columns)
        return pd.read_csv(
            filename, sep=separator, usecols=wanted, encoding="utf-8", keep_default_na=False
        )

    def intersect_vectors_goldStandard(
        self,
        vectors: pd.DataFrame | None,
        vector_filename: str,
        vector_size: int,
        goldStandard_filename: str | None = None,
        goldStandard_data: pd.DataFrame | None = None,
        column_key: str | None = None,
        column_score: str | None = None,
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the rows of a gold standard with their vectors, and the rows without one."""
        key, score = column_key or self.column_key, column_score or self.column_score
        gold = goldStandard_data
        if gold is None:
            gold = self.read_file(str(goldStandard_filename), [key, score])
        gold = gold.rename(columns={key: "name", score: self.joined_score})
        if vectors is None:
            vectors = self.read_vector_file(vector_filename, vector_size)
        has_vector = gold["name"].isin(vectors["name"])
        return gold.merge(vectors, on="name", how="inner"), gold[~has_vector]

    def create_vocab(
        self, vectors: pd.DataFrame, vector_filename: str, vector_size: int
    ) -> dict[str, int]:
        """Return the row of each entity by its name."""
        return {name: row for row, name in enumerate(vectors["name"])}

    def normalize_vectors(
        self, vectors: pd.DataFrame, vector_filename: str, vec_size: int, vocab: Mapping[str, int]
    ) -> np.ndarray:
        """Return the vectors with length 1, in the order of the vocabulary."""
        rows = [vocab[name] for name in vectors["name"]]
        matrix = np.zeros((len(vectors), vectors.shape[1] - 1))
        matrix[rows] = vectors.drop(columns="name").to_numpy(dtype=float)
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        return np.divide(matrix, lengths, out=matrix, where=lengths > 0)

    def get_data_manager(self, task: str) -> Any:
        """Return the data manager of a task, or this one."""
        return vars(self).get("taskDataManager", {}).get(task, self)

    def add_task_dataManager(self, taskName: str, dataManager: Any) -> None:
        """Use a data manager, a class or an object, for a task."""
        vars(self).setdefault("taskDataManager", {})[taskName] = dataManager

    add_task_data_manager = add_task_dataManager

    @classmethod
    def read_vectors(cls, path: Path, size: int | None = None) -> tuple[list[str], np.ndarray]:
        """Return the names and the vectors of a file, for Karat's own tasks."""
        manager = _built(cls, {"debugging_mode": False})
        size = size or DEFAULT_SIZE
        table = manager.initialize_vectors(str(path), size)
        if table is None:  # its own tasks read the file later
            table = manager.read_vector_file(str(path), size)
        if not isinstance(table, pd.DataFrame) or "name" not in table.columns:
            raise DataError(
                f'{path}: {cls.__name__} must return a data frame with the column "name" and one '
                f"column per dimension, got {type(table).__name__}."
            )
        vectors = table.drop(columns="name")
        if vectors.isna().to_numpy().any():
            raise DataError(
                f"{path}: {cls.__name__} returned vectors with missing numbers at the vector size "
                f"{size}; set vector_size to the number of dimensions."
            )
        return table["name"].astype(str).tolist(), vectors.to_numpy(dtype=np.float32)


class DataManager(AbstractDataManager):
    """Reads every vector file format of Karat by the suffix of the file."""

    def __init__(self, debugging_mode: bool = False) -> None:
        super().__init__(debugging_mode)
        self.taskDataManager.update(
            classification=ClassificationDataManager,
            regression=RegressionDataManager,
            clustering=ClusteringDataManager,
        )

    def read_vector_file(self, filename: str, vector_size: int | None = None) -> pd.DataFrame:
        """Return the vectors of a file as a data frame."""
        return vector_table(*read_vectors(Path(filename), vector_size))


class ClassificationDataManager(DataManager):
    """Joins vectors with the gold standards of classification."""


class RegressionDataManager(DataManager):
    """Joins vectors with the gold standards of regression."""

    column_score = "rating"


class ClusteringDataManager(DataManager):
    """Joins vectors with the gold standards of clustering."""

    column_key = "DBpedia_URI"
    column_score = joined_score = "cluster"


def vector_table(names: Sequence[str], vectors: np.ndarray) -> pd.DataFrame:
    """Return vectors as GEval's data frame.

    >>> vector_table(["a"], np.array([[1.0, 2.0]])).columns.tolist()
    ['name', 0, 1]
    """
    table = pd.DataFrame(vectors)
    table.insert(0, "name", list(names))
    return table


def default_analogy_function(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> np.ndarray:
    """Return the vector that is to c as b is to a: b - a + c.

    >>> default_analogy_function([1, 0], [1, 1], [2, 0]).tolist()
    [2, 1]
    """
    return np.asarray(b) - np.asarray(a) + np.asarray(c)


# -- tasks, models, evaluations -------------------------------------------------------------


class AbstractTaskManager(ABC):
    """A task: reads its gold standards, trains its models, writes its files and reports scores.

    The constructor may take ``data_manager``, ``debugging_mode``, ``distance_metric`` or
    ``similarity_metric``, ``top_k`` and ``analogy_function``.
    """

    @classmethod
    def get_task_name(cls) -> str:
        """Return the name in result files."""
        return cls.__name__.removesuffix("Manager").removesuffix("Task") or cls.__name__

    @abstractmethod
    def evaluate(
        self,
        vectors: Any,
        vector_file: str,
        vector_size: int,
        result_directory: str,
        log_dictionary: MutableMapping[str, str],
        scores_dictionary: MutableMapping[str, Any],
    ) -> Any:
        """Evaluate the vectors, and add text and scores under the task's name.

        The scores are a data frame with the columns task_name, gold_standard_file, model,
        model_configuration, metric, score_value and, if known, coverage.
        """

    @staticmethod
    def get_gold_standard_file() -> list[str]:
        """Return the names of the gold standards."""
        return []

    @staticmethod
    def get_metric_list() -> list[str]:
        """Return the names of the metrics."""
        return []


class AbstractModel(ABC):
    """A model of a task with one configuration."""

    @abstractmethod
    def train(self, *data: Any) -> Any:
        """Train the model, and return the results of the task."""


class AbstractEvaluationManager(ABC):
    """Supervises a whole evaluation, for ``FrameworkManager(evaluation_manager=...)``.

    Its methods are called in the order of their definitions.
    """

    def __init__(self, data_manager: Any = None, debugging_mode: bool = False) -> None:
        self.data_manager = data_manager
        self.debugging_mode = debugging_mode

    @abstractmethod
    def create_result_directory(self) -> Any:
        """Create the folder of the results."""

    @abstractmethod
    def initialize_vectors(self, vector_file: str, vec_size: int) -> Any:
        """Read the vectors, or note how to read them."""

    @abstractmethod
    def run_tests_in_sequential(
        self, tasks: Sequence[str], similarity_metric: str, top_k: int, analogy_function: Any = None
    ) -> Any:
        """Run the tasks one after the other, and return their scores."""

    @abstractmethod
    def run_tests_in_parallel(
        self, tasks: Sequence[str], similarity_metric: str, top_k: int, analogy_function: Any = None
    ) -> Any:
        """Run the tasks at the same time, and return their scores."""

    @abstractmethod
    def compare_with(self, compare_with: Any, scores_dictionary: Any) -> Any:
        """Compare the scores with those of earlier runs."""


def supervise(manager: type, params: Parameters) -> Any:
    """Carry out an evaluation with the user's evaluation manager, and return the manager."""
    offers = {"data_manager": data_manager_of(params), "debugging_mode": params.debugging_mode}
    supervisor = _built(manager, offers)
    supervisor.create_result_directory()
    supervisor.initialize_vectors(params.vector_filename, params.vector_size or DEFAULT_SIZE)
    run = (
        supervisor.run_tests_in_parallel if params.parallel else supervisor.run_tests_in_sequential
    )
    scores = run(
        params.tasks, params.similarity_metric, params.top_k, _analogy(params.analogy_function)
    )
    supervisor.compare_with(params.compare_with, scores)
    return supervisor


def data_manager_of(params: Parameters) -> Any:
    """Return the data manager of a vector file format; Karat's own formats share one."""
    part = own_format(params.vector_file_format)
    is_manager = isinstance(part, type) and issubclass(part, AbstractDataManager)
    return _built(part if is_manager else DataManager, {"debugging_mode": params.debugging_mode})


def own_format(name: str) -> Any:
    """Return the registered reader of a vector file format, or None for a built-in one."""
    is_registered = ":" in name or name in registry.vector_formats
    return registry.vector_formats.get(name) if is_registered else None


def format_name(vector_format: object) -> str:
    """Return the name of a vector file format; a data manager is registered under its own."""
    if isinstance(vector_format, str):
        return vector_format
    part = vector_format if isinstance(vector_format, type) else type(vector_format)
    if not issubclass(part, AbstractDataManager):
        raise DefinitionError(
            f"vector_file_format must be a name or a data manager, got {vector_format!r}."
        )
    name = f"{part.__module__}.{part.__qualname__}"
    registry.vector_formats.register(name, part)
    return name


def _built(part: Any, offers: Mapping[str, Any]) -> Any:
    """Return an object of a user's class, or the object itself."""
    if not isinstance(part, type):
        return part
    try:
        return build(part.__name__, part, {}, offers)
    except TypeError as error:
        raise DefinitionError(f"{part.__name__}: {error}.") from error


def _analogy(function: str | Callable[..., Any] | None) -> Any:
    return registry.analogy_functions.get(function) if isinstance(function, str) else function


# -- names ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class OwnGold(Gold):
    """A gold standard of a user: how to load it, and the Karat task if it belongs to one."""

    load: Callable[[], Dataset] = field(compare=False)
    defined: Task | None = field(default=None, compare=False)


@dataclass(frozen=True)
class OwnTrial(Trial):
    """A trial of a Karat task, with the task's own metrics."""

    measured: tuple[str, ...] = ()

    @property
    def metrics(self) -> dict[str, str]:
        """The metrics, which have Karat's names."""
        return {name: name for name in self.measured}


def own_trials(gold: Any, data: Dataset) -> Iterator[GoldTrial]:
    """Yield the only trial of a gold standard that belongs to a Karat task."""
    task: Task = gold.defined
    probe: Any = task.probe
    head: Any = probe.get("head") or probe["use"]
    model = str(head["use"] if isinstance(head, Mapping) else head)
    ready = replace(task, dataset=data)
    measured = tuple(task.metrics) or default_metrics(ready, data, blind=False)
    trial = OwnTrial(gold.task, gold.name, model, "", measured)
    yield GoldTrial(trial, replace(ready, name=trial.full_name))


@dataclass(frozen=True)
class Extensions:
    """The tasks and gold standards that are not GEval's own, by name."""

    define: tuple[Path, ...] = ()
    folder: str | None = None

    @cached_property
    def catalog(self) -> Catalog:
        """The definitions of the files; reading them registers the components in them."""
        catalog = Catalog(self.define)
        _ = catalog.definitions
        return catalog

    def task_names(self, requested: Sequence[Any]) -> list[str]:
        """Return the canonical names of tasks, or raise one error with all unknown names."""
        names: dict[str, None] = {}
        mistakes: list[str] = []
        for task in requested:
            try:
                name = self.task_name(task)
            except DefinitionError as error:
                mistakes += error.messages
                continue
            if name is None:
                mistakes.append(self._unknown(str(task)))
            else:
                names[name] = None
        if mistakes:
            raise DefinitionError(*mistakes)
        return list(names)

    def _unknown(self, name: str) -> str:
        both = [*(spelling for pair in TASKS.items() for spelling in pair), *self.names()]
        allowed = ", ".join(f"{long} ({short})" for long, short in TASKS.items())
        return (
            f'unknown task "{name}".{did_you_mean(name, both)} Available: {allowed}; or {ALL}; '
            f"or TASK:GOLD, a defined task, or package.module:Class."
        )

    def task_name(self, task: object) -> str | None:
        """Return the canonical name of a task, ``TASK:GOLD`` for a gold standard, or None."""
        if isinstance(task, type):
            name = _task_label(task)
            task_managers.register(name, task)
            return name
        text = str(task)
        if (gold := self._gold_of(text)) is not None:
            return f"{gold.task}:{gold.name}"
        if ":" in text:
            start = text.partition(":")[0]
            if "." not in start and did_you_mean(start, _spellings()):
                return None  # one of GEval's tasks, misspelled or with an unknown gold standard
            _check_manager(text, registry.load_object(text))
            return text
        if text in task_managers:
            return text
        return text if text in self.catalog.definitions.names("tasks") else None

    def names(self) -> list[str]:
        """Return all names but those of GEval."""
        defined = self.catalog.definitions
        golds = [standard.name for standard in GOLD_STANDARDS] + self._datasets()
        named = [f"{task}:{gold}" for task in _spellings().values() for gold in golds]
        return [*task_managers, *defined.names("tasks"), *dict.fromkeys(named)]

    def golds(self, tasks: Sequence[str]) -> list[Gold]:
        """Return the gold standards of tasks."""
        golds: list[Gold] = []
        for task in tasks:
            if task in TASKS:
                golds += [gold for gold in GOLD_STANDARDS if gold.task == task]
            elif (gold := self._gold_of(task)) is not None:
                golds.append(gold)
            elif not self._is_manager(task):
                golds.append(self._defined(task))
        return list(dict.fromkeys(golds))

    def managers(self, tasks: Sequence[str]) -> dict[str, Any]:
        """Return the task managers of tasks, by the name in result files."""
        parts = [task_managers.get(task) for task in tasks if self._is_manager(task)]
        return {_task_label(part): part for part in parts}

    def labels(self, tasks: Sequence[str]) -> list[str]:
        """Return the names of tasks in result files."""
        golds = (gold.task for gold in self.golds(tasks))
        chosen = (task for task in tasks if task in TASKS)
        return list(dict.fromkeys([*chosen, *golds]))

    def _is_manager(self, task: str) -> bool:
        return (
            task not in TASKS
            and self._gold_of(task) is None
            and (":" in task or task in task_managers)
        )

    def _defined(self, name: str) -> Gold:
        task = self.catalog.task(name)
        load: Any = task.dataset
        called = getattr(load, "name", None) or name
        return OwnGold(name, str(called), str(called), load, task)

    def _gold_of(self, text: str) -> Gold | None:
        """Return the gold standard of ``TASK:GOLD``, or None."""
        start, _, name = text.partition(":")
        task = _spellings().get(start.lower())
        if task is None or not re.fullmatch(GOLD_NAME, name):
            return None
        for gold in GOLD_STANDARDS:
            if gold.task == task and name in (gold.name, gold.dataset):
                return gold
        if (path := self._file(task, name)) is not None:
            return OwnGold(task, name, name, lambda: self._read(task, name, path))
        if name in self._datasets():
            return OwnGold(task, name, name, self.catalog.dataset(name))
        return None

    def _datasets(self) -> list[str]:
        return [*self.catalog.definitions.names("datasets"), *registry.datasets]

    def _file(self, task: str, name: str) -> Path | None:
        """Return a further file of a task in the folder of gold standards, or None."""
        if self.folder is None or task not in TEMPLATES:
            return None
        suffix = ".txt" if task in ("EntityRelatedness", "SemanticAnalogies") else ".tsv"
        path = Path(self.folder) / task / f"{name}{suffix}"
        return path if path.is_file() else None

    def _read(self, task: str, name: str, path: Path) -> Dataset:
        definition = self.catalog.definitions.get("datasets", TEMPLATES[task])
        return load_dataset(name, {**definition, "sources": None, "path": str(path)})


def _spellings() -> dict[str, str]:
    return {spelling.lower(): long for long, short in TASKS.items() for spelling in (long, short)}


def _task_label(part: object) -> str:
    named = getattr(part, "get_task_name", None)
    return str(named()) if callable(named) else str(getattr(part, "__name__", part))


def _check_manager(name: str, part: object) -> None:
    if not callable(getattr(part, "evaluate", None)):
        raise DefinitionError(f'task "{name}" must be a class with the method evaluate.')


# -- evaluation of task managers ------------------------------------------------------------


@dataclass
class ManagerRun:
    """Evaluates task managers: their scores, log texts, seconds and problems."""

    params: Parameters
    folder: Path
    encoder: VectorFile
    rows: list[dict[str, Any]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def run(self, managers: Mapping[str, Any]) -> None:
        """Evaluate one manager after the other; a failure is a problem."""
        for name, part in managers.items():
            start = time.perf_counter()
            try:
                self._evaluate(name, part)
            except Exception as error:  # the code of a user may raise anything
                self.problems.append(f"{name}: failed: {type(error).__name__}: {error}")
                if self.params.debugging_mode and not isinstance(error, KaratError):
                    self.log += traceback.format_exc().splitlines()
            seconds = time.perf_counter() - start
            self.log.append(f"{name} execution time: {seconds:.2f} seconds")

    def _evaluate(self, name: str, part: Any) -> None:
        data_manager = data_manager_of(self.params)
        vectors, size = self._vectors(data_manager)
        metric, params = self.params.similarity_metric, self.params
        offers = {
            "data_manager": _for_task(data_manager, name, params.debugging_mode),
            **dict.fromkeys(("similarity_metric", "distance_metric", "metric"), metric),
            "debugging_mode": params.debugging_mode,
            "top_k": params.top_k,
            "analogy_function": _analogy(params.analogy_function),
        }
        manager = _built(part, offers)
        texts: dict[str, str] = {}
        scores: dict[str, Any] = {}
        folder = str(self.folder)
        manager.evaluate(vectors, params.vector_filename, size, folder, texts, scores)
        self.log += [line for text in texts.values() for line in str(text).splitlines()]
        self.rows += [row for table in scores.values() for row in _score_rows(name, table)]
        if not scores:
            self.problems.append(f"{name}: added no scores to the dictionary of scores.")

    def _vectors(self, data_manager: Any) -> tuple[Any, int]:
        """Return the vectors as the data manager of the format gives them, and their size."""
        if own_format(self.params.vector_file_format) is not None:
            size = self.params.vector_size or self.encoder.vocabulary()[1].shape[1]
            return data_manager.initialize_vectors(self.params.vector_filename, size), size
        names, matrix = self.encoder.vocabulary()
        return vector_table(names.tolist(), matrix), matrix.shape[1]


def _for_task(data_manager: Any, task: str, debugging_mode: bool) -> Any:
    """Return the data manager of a task, under its name or its name in snake case."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", task).lower()
    for name in (task, snake):
        task_data_manager = data_manager.get_data_manager(name)
        if task_data_manager is not data_manager:
            return _built(task_data_manager, {"debugging_mode": debugging_mode})
    return data_manager


def _score_rows(task: str, table: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a task's scores, with the columns of the comparison."""
    needed = [name for name in SCORE_COLUMNS if name not in ("coverage", "task_name")]
    missing = [name for name in needed if name not in getattr(table, "columns", ())]
    if missing:
        raise DataError(f"the scores of {task} have no column {', '.join(missing)}.")
    for row in table.to_dict(orient="records"):
        scores = {"task_name": task, "coverage": float("nan"), **row}
        for name in ("model", "model_configuration"):
            scores[name] = (
                "-" if scores[name] in (None, "") or scores[name] != scores[name] else scores[name]
            )
        scores["score_value"] = float(scores["score_value"])
        yield {name: scores[name] for name in SCORE_COLUMNS}
