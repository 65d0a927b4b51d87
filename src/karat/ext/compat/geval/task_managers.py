"""GEval's six task managers: names of gold standards and metrics, and an evaluation of a task."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from karat.config.catalog import Catalog
from karat.data.load_dataset import fetch_file
from karat.errors import DefinitionError, did_you_mean
from karat.ext.compat.geval.extensions import AbstractTaskManager
from karat.ext.compat.geval.gold import ADDED, ALL, GOLD, METRICS
from karat.ext.compat.geval.manager import FrameworkManager

#: files of a result folder that belong to a task
OWN_FILES = ("*_results.csv", "*_ignoredData.*")


class _Manager(AbstractTaskManager):
    """Evaluates one task with ``FrameworkManager``."""

    task: ClassVar[str]

    def __init__(
        self,
        data_manager: Any = None,
        debugging_mode: bool = False,
        datasets: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        self.data_manager = data_manager
        self.debugging_mode = debugging_mode
        self.datasets = datasets
        self.options = options

    @classmethod
    def get_task_name(cls) -> str:
        """Return the name of the task."""
        return cls.task

    @classmethod
    def get_gold_standard_file(cls) -> list[str]:
        """Return the names of the gold standards."""
        return [name for task, name in GOLD.values() if task == cls.task]

    @classmethod
    def get_metric_list(cls) -> list[str]:
        """Return the names of GEval's metrics."""
        return [name for name in METRICS[cls.task].values() if name not in ADDED]

    @classmethod
    def get_file_for_dataset(cls, dataset: str) -> str:
        """Return the path of a gold standard, which is downloaded if needed."""
        names = {name: gold for gold, (task, name) in GOLD.items() if task == cls.task}
        if dataset not in names:
            hint = did_you_mean(dataset, names)
            raise DefinitionError(f'{cls.task} has no gold standard "{dataset}".{hint}')
        definition = Catalog().definitions.get("datasets", names[dataset])
        return str(fetch_file(names[dataset], definition))

    def evaluate(
        self,
        vectors: Any,
        vector_file: str,
        vector_size: int | None,
        result_directory: str | Path,
        log_dictionary: MutableMapping[str, str],
        scores_dictionary: MutableMapping[str, Any],
    ) -> None:
        """Evaluate a vector file, write GEval's files, and add scores under the task's name."""
        with tempfile.TemporaryDirectory(prefix="karat-") as scratch:
            folder = FrameworkManager().evaluate(
                vector_file,
                vector_size=vector_size,
                tasks=[self.task],
                datasets=ALL if self.datasets is None else self.datasets,
                debugging_mode=self.debugging_mode,
                result_directory_path=scratch,
                **self.options,
            )
            Path(result_directory).mkdir(parents=True, exist_ok=True)
            for pattern in OWN_FILES:
                for path in folder.glob(pattern):
                    shutil.copy(path, Path(result_directory) / path.name)
            log_dictionary[self.task] = (folder / "log.txt").read_text(encoding="utf-8")
            values = pd.read_csv(folder / "comparison_values.csv", sep=" ", keep_default_na=False)
            scores_dictionary[self.task] = values.drop(columns="test_name", errors="ignore")


class ClassificationManager(_Manager):
    """The task Classification."""

    task = "Classification"


class RegressionManager(_Manager):
    """The task Regression."""

    task = "Regression"


class _MeasuredManager(_Manager):
    """A task that compares vectors by a metric."""

    def __init__(
        self,
        data_manager: Any = None,
        distance_metric: Any = "cosine",
        debugging_mode: bool = False,
        datasets: Sequence[str] | None = None,
    ) -> None:
        super().__init__(data_manager, debugging_mode, datasets, similarity_metric=distance_metric)


class ClusteringManager(_MeasuredManager):
    """The task Clustering."""

    task = "Clustering"


class DocumentSimilarityManager(_MeasuredManager):
    """The task DocumentSimilarity."""

    task = "DocumentSimilarity"


class EntityRelatednessManager(_MeasuredManager):
    """The task EntityRelatedness."""

    task = "EntityRelatedness"


class SemanticAnalogiesManager(_Manager):
    """The task SemanticAnalogies."""

    task = "SemanticAnalogies"

    def __init__(
        self,
        data_manager: Any = None,
        top_k: int = 2,
        debugging_mode: bool = False,
        analogy_function: Callable[..., Any] | str | None = None,
        datasets: Sequence[str] | None = None,
    ) -> None:
        options = {"top_k": top_k, "analogy_function": analogy_function}
        super().__init__(data_manager, debugging_mode, datasets, **options)
