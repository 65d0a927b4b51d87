"""TabEB's six tasks, and the base class for custom tasks."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd

from karat.compat.tabeb.encoders import Rows, Treatment, contestants
from karat.compat.tabeb.interface import as_config, check_file, get_model, save_scores, score_file
from karat.compat.tabeb.protocol import Evaluation, Headed, as_predictions, as_scorer, with_params
from karat.compat.tabeb.readers import LostData, Table, check_table, find_table, warn_of_own
from karat.core.predictions import Predictions
from karat.core.registry import build, heads
from karat.errors import ContractError, DefinitionError, KaratError, did_you_mean
from karat.execution.workers import one_thread
from karat.metrics.metric import get_metric, score
from karat.probes.retrieval import Duplicates, SameClass
from karat.probes.trained import Probe

Sides = tuple[pd.DataFrame, pd.DataFrame, np.ndarray, np.ndarray]


class Params(TypedDict, total=False):
    """Parameters of the encoders' ``fit`` and of the head."""

    encoder_fit_params: Mapping[str, Any] | None
    head_params: Mapping[str, Any] | None


class Settings(TypedDict, total=False):
    """Settings of a task, as in ``TabEBBaseTask``."""

    task: str
    metric: str
    split: Sequence[str]
    data_name_list: Sequence[str]
    data_dir: str | Path | None
    seed: int
    max_rows: int | None
    n_train: int | None
    protocol: str
    group: str | None


class TabEBBaseTask:
    """A task: datasets, a head on the encoders' vectors, and a score.

    A custom task sets ``task``, ``metric`` and ``data_name_list`` and implements ``get_head`` and
    ``get_score``. If ``metric`` is one of Karat's, ``get_score`` is optional.

    Parameters
    ----------
    task, metric
        Name of the task in score files, and of its metric.
    split
        The sides that ``evaluate`` can score.
    data_name_list
        Names of the datasets.
    data_dir
        Folder with ``<name>/<name>.parquet`` and ``<name>/<name>_metadata.json``. Datasets that
        it lacks are taken from Karat.
    seed
        Seed of the sample, the split, and every ``random_state`` that is None.
    max_rows
        Maximum number of rows per dataset.
    n_train
        Number of training rows. Default: 80 %.
    protocol
        ``"corrected"``, or ``"original"``: the first rows, TabEB's split, unscaled vectors and
        TabEB's heads.
    group
        Keep rows of one ``"entity"`` or with equal features (``"row"``) on the same side of the
        split. Default: as in the metadata.

    Attributes
    ----------
    data_dict
        The datasets by name, each a table and its metadata. Datasets that you add are used.
    data_loaded_
        Whether all datasets are loaded.
    higher_is_better
        Direction of a metric that Karat does not define; the leaderboard needs it.
    """

    task: str = "classification"
    metric: str = "accuracy"
    data_name_list: Sequence[str] = ()
    higher_is_better: bool | None = None
    #: the content of ``y_pred``, and whether the target is hidden from training
    shape: str = "numbers"
    unsupervised: bool = False

    def __init__(
        self,
        task: str | None = None,
        metric: str | None = None,
        split: Sequence[str] = ("train", "test"),
        data_name_list: Sequence[str] | None = None,
        data_dir: str | Path | None = "",
        seed: int = 42,
        *,
        max_rows: int | None = None,
        n_train: int | None = None,
        protocol: str = "corrected",
        group: str | None = None,
    ) -> None:
        Rows(protocol, seed, max_rows, n_train, group)  # validate the settings
        if self.unsupervised and (n_train is not None or group is not None):
            raise DefinitionError(
                f"{type(self).__name__} has no train/test split; omit n_train and group."
            )
        self.data_dir = data_dir
        self.seed = seed
        self.max_rows = max_rows
        self.n_train = n_train
        self.protocol = protocol
        self.group = group
        self.split = [split] if isinstance(split, str) else list(split)
        self.task = task or self.task
        self.metric = metric or self.metric
        self.data_name_list = list(
            self.data_name_list if data_name_list is None else data_name_list
        )
        self.data_dict: dict[str, Table] = {}
        self.data_loaded_ = False

    @property
    def metadata(self) -> Mapping[str, dict[str, Any]]:
        """The metadata of the datasets in ``data_dict``, by name."""
        pairs = self.data_dict.items()
        return MappingProxyType({name: check_table(name, pair)[1] for name, pair in pairs})

    def load_data(self) -> None:
        """Load missing tables; raise after the last one if any is not available."""
        lost: dict[str, str] = {}
        fresh = [name for name in self.data_name_list if name not in self.data_dict]
        for name in fresh:
            try:
                self.data_dict[name] = self._load_data(name, self.data_dir)
            except KaratError as error:
                lost[name] = str(error)
            except Exception as error:
                lost[name] = f"{name}: {type(error).__name__}: {error}"
        warn_of_own([name for name in fresh if name not in lost], self.data_dir)
        self.data_loaded_ = not lost
        if lost:
            raise LostData(lost)

    @staticmethod
    def _load_data(data_name: str, data_dir: str | Path | None) -> Table:
        return find_table(data_name, data_dir)

    def get_splits(
        self,
        data: pd.DataFrame,
        data_metadata: Mapping[str, Any],
        num_train: int | None = None,
        random_state: int | None = None,
    ) -> Sides:
        """Return ``X_train, X_test, y_train, y_test``; unsupervised tasks use all rows for both.

        ``num_train`` and ``random_state`` are by default ``n_train`` and ``seed`` of the task.
        """
        rows = self._rows(num_train, random_state)
        taken = rows.taken(data, data_metadata, self._name_of(data, data_metadata))
        X, y = taken.frame(), np.asarray(taken.target)
        if self.unsupervised:
            return X, X, y, y
        fold = rows.fold(taken)
        return X.iloc[fold.train], X.iloc[fold.test], y[fold.train], y[fold.test]

    def _name_of(self, data: pd.DataFrame, metadata: Mapping[str, Any]) -> str:
        """Return the name in ``data_dict``, as evaluate does, or else that of the metadata."""
        pairs = self.data_dict.items()
        known = (name for name, pair in pairs if isinstance(pair, tuple) and pair[0] is data)
        return str(next(known, metadata.get("name", "table")))

    def _rows(self, num_train: int | None, random_state: int | None) -> Rows:
        n_train = self.n_train if num_train is None else num_train
        seed = self.seed if random_state is None else random_state
        return Rows(self.protocol, seed, self.max_rows, n_train, self.group)

    def get_head(self) -> Any:
        """Return an unfitted head, or None for the default head.

        A parameter ``n_clusters``, if present, receives the number of classes.
        """
        return None

    def get_score(
        self, y_true: np.ndarray, y_pred: np.ndarray, predictions: Predictions | None = None
    ) -> float:
        """Return the score of two arrays; ``predictions`` is Karat's record of the predictions."""
        given = predictions or as_predictions(y_true, y_pred, self.shape)
        value, reason = score(self.metric, given)
        if value is None:
            raise ContractError(reason)
        return value

    def make_head(self, kind: str, n_clusters: int, params: Mapping[str, Any]) -> Any:
        """Return a head for one training set, with parameters set."""
        head = build("get_head", self.get_head, {}, {"n_clusters": n_clusters})
        head = self.usual_head(kind) if head is None else head
        works = hasattr(head, "fit") or hasattr(head, "outlier_scores")
        if inspect.isclass(head) or not works:
            raise ContractError(f"get_head must return an unfitted head, got {head!r}.")
        return with_params(head, params)

    def usual_head(self, kind: str) -> Any:
        """Return the protocol's default head for classes or numbers."""
        if kind == "classification":
            return heads.get("logistic-regression")(random_state=self.seed)
        return heads.get("linear-regression" if self.protocol == "original" else "ridge")()

    def make_probe(self, params: Mapping[str, Any]) -> Probe:
        """Return the probe that turns vectors into predictions."""
        return Headed(
            lambda train: self.make_head(train.kind, len(train.classes), params),
            "plain" if self.protocol == "original" else "standard",
        )

    def evaluate(
        self,
        models: Any,
        split: str = "test",
        model_kwargs: Mapping[str, Any] | None = None,
        na_fill_value: float | None = None,
        save_dir: str | Path | None = None,
        **params: Unpack[Params],
    ) -> pd.DataFrame:
        """Return one row per encoder: its name, a score per dataset, and their mean.

        A failure gives NaN, a warning and a reason in ``frame.attrs["failures"]``. Other ``attrs``
        are ``"notes"`` (such as a head that did not converge), ``"data"`` (sizes, and test rows
        that also occur in training), ``"config"`` and ``"encoders"``.

        Parameters
        ----------
        models
            Objects with ``fit`` and ``transform``, names for ``get_model``, or a mapping from row
            labels to these. Every dataset gets a fresh copy.
        split
            The side to score, ``"test"`` or ``"train"``.
        model_kwargs
            TabEB's name for ``encoder_fit_params``; not passed to the head.
        na_fill_value
            Replacement of NaN in vectors. Default: NaN is an error.
        save_dir
            Folder of ``scores_<task>.parquet``. Default: nothing is saved.
        **params
            ``encoder_fit_params`` for the encoders' ``fit``, ``head_params`` for the head.
        """
        self._check(split, params)
        if model_kwargs and params.get("encoder_fit_params"):
            raise DefinitionError("pass either model_kwargs or its synonym encoder_fit_params.")
        fit_params = dict(model_kwargs or params.get("encoder_fit_params") or {})
        entries = contestants(models, Treatment(fit_params, na_fill_value), get_model)
        run = Evaluation(self, entries, split, dict(params.get("head_params") or {}))
        path = None
        if save_dir:
            path = score_file(save_dir, self.task)
            check_file(path)
        with one_thread():
            frame = run.frame()
        if path is not None:
            save_scores(frame, path, as_config(frame.attrs["config"]), frame.attrs["encoders"])
        return frame

    def direction(self) -> bool | None:
        """Return whether higher is better, or None if unknown."""
        if self.higher_is_better is not None:
            return self.higher_is_better
        try:
            return get_metric(self.metric).higher_is_better
        except DefinitionError:
            return None

    def _check(self, split: str, params: Mapping[str, Any]) -> None:
        for name in params:
            if name not in Params.__annotations__:
                hint = did_you_mean(name, [*Params.__annotations__, "save_dir", "model_kwargs"])
                raise DefinitionError(f'evaluate has no parameter "{name}".{hint}')
        if split not in self.split:
            hint = did_you_mean(str(split), self.split)
            allowed = " or ".join(self.split)
            raise DefinitionError(f"split must be {allowed}, got {split!r}.{hint}")


class _DocumentedTask(TabEBBaseTask):
    """One of the six tasks; as in TabEB, its settings are given by name."""

    def __init__(self, **settings: Unpack[Settings]) -> None:
        super().__init__(**settings)


class TabEBRegressionTask(_DocumentedTask):
    """Regression: ridge on standardized vectors (original protocol: least squares), RMSE."""

    task = "regression"
    metric = "rmse"
    data_name_list = ("wine_pl", "wine_vivino_price")

    def get_head(self) -> Any:
        """Return the protocol's linear head."""
        return self.usual_head("regression")


class TabEBClassificationTask(_DocumentedTask):
    """Classification: logistic regression, AUROC (micro-averaged for more than two classes)."""

    task = "classification"
    metric = "auc_micro"
    data_name_list = ("spotify",)
    shape = "classes"

    def get_head(self) -> Any:
        """Return a logistic regression with at most 100 iterations."""
        return self.usual_head("classification")


class TabEBClusteringTask(_DocumentedTask):
    """Clustering: mini-batch k-means with as many clusters as classes, V-measure."""

    task = "clustering"
    metric = "v_measure"
    data_name_list = ("wine", "penguins")
    shape = "clusters"
    unsupervised = True

    def get_head(self, n_clusters: int = 8) -> Any:
        """Return mini-batch k-means with batches of 32."""
        return heads.get("kmeans")(n_clusters=n_clusters, random_state=self.seed)


class TabEBAnomalyDetectionTask(_DocumentedTask):
    """Anomaly detection: distance to neighbors, known share of outliers, weighted F1."""

    task = "anomaly_detection"
    metric = "f1_weighted"
    data_name_list = ("shuttle_c0_c4", "glass5")
    shape = "labels"
    unsupervised = True

    def get_head(self) -> Any:
        """Return a head with outlier scores; scikit-learn's detectors are also accepted."""
        return heads.get("knn-distance")()

    def make_head(self, kind: str, n_clusters: int, params: Mapping[str, Any]) -> Any:
        """Return a head with outlier scores, with parameters set."""
        return as_scorer(super().make_head(kind, n_clusters, params))


class _Compared(_DocumentedTask):
    """A task that compares vectors by cosine, without a head."""

    def make_head(self, kind: str, n_clusters: int, params: Mapping[str, Any]) -> Any:
        """Raise if a head is configured."""
        if self.get_head() is not None or params:
            raise DefinitionError(
                f"{type(self).__name__} compares vectors by cosine and has no head; "
                f"omit get_head and head_params."
            )
        return None


class TabEBRankingTask(_Compared):
    """Rank training rows by cosine to each test row; rows of its class are relevant; MAP.

    ``get_score`` gets the query of each relevant row as ``y_true`` and its rank as ``y_pred``.
    """

    task = "ranking"
    metric = "map"
    data_name_list = ("wine", "penguins")
    shape = "places"

    def make_probe(self, params: Mapping[str, Any]) -> Probe:
        """Return the probe that ranks by cosine, for at most 200 queries."""
        return SameClass(random_state=self.seed)


class TabEBDeduplicationTask(_Compared):
    """Distinguish pairs of duplicate rows from all other pairs by cosine; AUROC.

    ``get_score`` gets whether a pair is a duplicate as ``y_true`` and its cosine as ``y_pred``. It
    must accept ``predictions``, whose ``weight`` is the number of pairs of each row.
    """

    task = "deduplication"
    metric = "auc"
    data_name_list = ("febrl1", "febrl2")
    unsupervised = True

    def make_probe(self, params: Mapping[str, Any]) -> Probe:
        """Return the probe that compares all pairs."""
        return Duplicates()

    def _rows(self, num_train: int | None, random_state: int | None) -> Rows:
        return replace(super()._rows(num_train, random_state), whole_classes=True)
