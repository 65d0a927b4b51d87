"""TabEB's tasks: six kinds, and the base that tasks of one's own inherit from."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd

from karat.compat.tabeb.answers import as_predictions
from karat.compat.tabeb.contestants import Treatment, contestants
from karat.compat.tabeb.evaluation import Evaluation
from karat.compat.tabeb.heads import Headed, as_scorer, with_params
from karat.compat.tabeb.interface import get_model
from karat.compat.tabeb.rows import Rows
from karat.compat.tabeb.scores import as_config, check_file, save_scores, score_file
from karat.compat.tabeb.tables import LostData, Table, find_table, warn_of_own
from karat.errors import ContractError, DefinitionError, KaratError, did_you_mean
from karat.execute import one_thread
from karat.metrics.base import get_metric, score
from karat.predictions import Predictions
from karat.probes.base import Probe
from karat.probes.duplicates import Duplicates
from karat.probes.same_class import SameClass
from karat.registry import build, heads

Sides = tuple[pd.DataFrame, pd.DataFrame, pd.Series, pd.Series]


class Params(TypedDict, total=False):
    """Parameters for parts of an evaluation: the encoders' ``fit``, and the head."""

    encoder_fit_params: Mapping[str, Any] | None
    head_params: Mapping[str, Any] | None


class TabEBBaseTask:
    """A task: data sets, a head on the encoders' vectors, and a score.

    A task of one's own sets ``task``, ``metric`` and ``data_name_list`` and writes ``get_head``
    and ``get_score``. Where ``metric`` is one of Karat's, ``get_score`` need not be written.

    Parameters
    ----------
    data_dir
        A folder with ``<name>/<name>.parquet`` and ``<name>/<name>_metadata.json``. What is not
        there, or everything where no folder is given, is taken from Karat's own data sets.
    seed
        Decides the rows, the split, and every ``random_state`` that was left open.
    max_rows
        Take at most so many rows of each table.
    n_train
        Train on so many rows; 80 % where nothing is said.
    protocol
        ``"corrected"``, or ``"original"``: the first rows, TabEB's own split, vectors as they are
        and its plain heads.
    group
        ``"entity"`` keeps the rows of one entity on one side of the split and ``"row"`` those
        with the same features; where nothing is said, the metadata decide.

    Attributes
    ----------
    split
        The sides that ``evaluate`` can score.
    data_dict, metadata, data_loaded_
        The tables and what is said about them, by name, and whether all are there. Put tables of
        your own here, and they are used.
    higher_is_better
        For a metric that Karat does not know; without it, a leaderboard cannot rank.
    """

    task: str = "classification"
    metric: str = "acc"
    data_name_list: Sequence[str] = ()
    higher_is_better: bool | None = None
    #: what ``y_true`` and ``y_pred`` are, and whether the train side hides its truth
    shape: str = "numbers"
    unsupervised: bool = False

    def __init__(
        self,
        data_dir: str | Path | None = None,
        seed: int = 42,
        max_rows: int | None = None,
        n_train: int | None = None,
        *,
        task: str | None = None,
        metric: str | None = None,
        split: Sequence[str] = ("train", "test"),
        data_name_list: Sequence[str] | None = None,
        protocol: str = "corrected",
        group: str | None = None,
    ) -> None:
        Rows(protocol, seed, max_rows, n_train, group)  # a wrong setting is said now
        if self.unsupervised and (n_train is not None or group is not None):
            raise DefinitionError(
                f"{type(self).__name__} holds no rows out, so n_train and group mean nothing."
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
        self.data_dict: dict[str, pd.DataFrame] = {}
        self.metadata: dict[str, dict[str, Any]] = {}
        self.data_loaded_ = False

    # -- data -------------------------------------------------------------------------------

    def load_data(self) -> None:
        """Load the tables that are not there yet; what cannot be had is said after the others."""
        lost: dict[str, str] = {}
        fresh = [name for name in self.data_name_list if name not in self.data_dict]
        for name in fresh:
            try:
                self.data_dict[name], self.metadata[name] = self._load_data(name, self.data_dir)
            except Exception as error:  # the other tables are loaded all the same
                said = str(error)
                known = isinstance(error, KaratError)
                lost[name] = said if known else f"{name}: {type(error).__name__}: {said}"
        warn_of_own([name for name in fresh if name not in lost], self.data_dir)
        self.data_loaded_ = not lost
        if lost:
            raise LostData(lost)

    def _load_data(self, name: str, data_dir: str | Path | None) -> Table:
        return find_table(name, data_dir)

    def get_splits(
        self,
        data: pd.DataFrame,
        metadata: Mapping[str, Any],
        num_train: int | None = None,
        random_state: int | None = None,
    ) -> Sides:
        """Return ``X_train, X_test, y_train, y_test``: the rows that take part, cut in two.

        Where the truth is hidden from the train side, both sides are all rows.
        """
        rows = self._rows(num_train, random_state)
        taken = rows.taken(data, metadata, str(metadata.get("name", "table")))
        X = taken.frame()
        y = pd.Series(taken.truth, index=X.index, name=metadata["target_name"])
        if self.unsupervised:
            return X, X, y, y
        fold = rows.fold(taken)
        return X.iloc[fold.train], X.iloc[fold.test], y.iloc[fold.train], y.iloc[fold.test]

    def _rows(self, num_train: int | None, random_state: int | None) -> Rows:
        n_train = self.n_train if num_train is None else num_train
        seed = self.seed if random_state is None else random_state
        return Rows(self.protocol, seed, self.max_rows, n_train, self.group)

    # -- the two seams ----------------------------------------------------------------------

    def get_head(self) -> Any:
        """Return an unfitted head; nothing stands for the usual one of the data.

        A parameter ``n_clusters`` is told how many classes there are.
        """
        return None

    def get_score(
        self, y_true: np.ndarray, y_pred: np.ndarray, predictions: Predictions | None = None
    ) -> float:
        """Return the task's metric of two arrays.

        A parameter ``predictions`` is given Karat's own record of the answers.
        """
        given = predictions or as_predictions(y_true, y_pred, self.shape)
        value, reason = score(self.metric, given)
        if value is None:
            raise ContractError(reason)
        return value

    def make_head(self, kind: str, n_clusters: int, params: Mapping[str, Any]) -> Any:
        """Return a head for one train side, with its parameters set."""
        head = build("get_head", self.get_head, {}, {"n_clusters": n_clusters})
        head = self.usual_head(kind) if head is None else head
        works = hasattr(head, "fit") or hasattr(head, "outlier_scores")
        if inspect.isclass(head) or not works:
            raise ContractError(f"get_head returned {head!r}; it must return an unfitted head.")
        return with_params(head, params)

    def usual_head(self, kind: str) -> Any:
        """Return the protocol's head for classes or numbers."""
        if kind == "classes":
            return heads.get("logistic")(random_state=self.seed)
        return heads.get("linear" if self.protocol == "original" else "ridge")()

    def make_probe(self, params: Mapping[str, Any]) -> Probe:
        """Return what turns vectors into answers."""
        return Headed(
            lambda train: self.make_head(train.kind, len(train.classes), params),
            "plain" if self.protocol == "original" else "standard",
        )

    # -- evaluation -------------------------------------------------------------------------

    def evaluate(
        self,
        models: Any,
        split: str = "test",
        model_kwargs: Mapping[str, Any] | None = None,
        na_fill_value: float | None = None,
        save_dir: str | Path | None = None,
        **params: Unpack[Params],
    ) -> pd.DataFrame:
        """Return one row per encoder: its name, a score per data set, and their plain mean.

        What fails is NaN, with a warning and a reason in ``frame.attrs["failures"]``. There are
        also ``attrs["notes"]`` (such as a head that did not converge), ``attrs["data"]`` (sizes,
        and test rows that the train side knows), ``attrs["config"]`` and ``attrs["encoders"]``.

        Parameters
        ----------
        models
            Objects with ``fit`` and ``transform``, names for ``get_model``, or a mapping from row
            labels to those. Each data set meets a fresh copy.
        split
            The side that is scored, ``"test"`` or ``"train"``.
        model_kwargs
            TabEB's name for ``encoder_fit_params``; the head does not see them.
        na_fill_value
            Put in the place of NaN in vectors, which are refused otherwise.
        save_dir
            Where ``scores_<task>.parquet`` is written or added to; nothing: nowhere.
        **params
            ``encoder_fit_params`` go to the encoders' ``fit``, ``head_params`` are set on the head.
        """
        self._check(split, params)
        fit_params = _one_of(model_kwargs, params.get("encoder_fit_params"))
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
        """Return whether a higher score is better; nothing where it is not known."""
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
            raise DefinitionError(f"split is {' or '.join(self.split)}, not {split!r}.{hint}")


class TabEBRegressionTask(TabEBBaseTask):
    """Predict a number: ridge on standardised vectors, RMSE. Originally plain least squares."""

    task = "regression"
    metric = "rmse"
    data_name_list = ("wine_pl", "wine_vivino_price")

    def get_head(self) -> Any:
        """Return the protocol's linear head."""
        return self.usual_head("numbers")


class TabEBClassificationTask(TabEBBaseTask):
    """Predict a class: logistic regression, AUROC of its probabilities, micro beyond two."""

    task = "classification"
    metric = "auc_micro"
    data_name_list = ("spotify",)
    shape = "classes"

    def get_head(self) -> Any:
        """Return a logistic regression of at most 100 iterations."""
        return self.usual_head("classes")


class TabEBClusteringTask(TabEBBaseTask):
    """Group all rows: mini-batch k-means with as many clusters as classes, V-measure."""

    task = "clustering"
    metric = "v_measure"
    data_name_list = ("wine", "penguins")
    shape = "clusters"
    unsupervised = True

    def get_head(self, n_clusters: int = 8) -> Any:
        """Return mini-batch k-means with batches of 32."""
        return heads.get("kmeans")(n_clusters=n_clusters, random_state=self.seed)


class TabEBAnomalyDetectionTask(TabEBBaseTask):
    """Find the odd rows: the share known to be odd, by the distance to neighbours; weighted F1."""

    task = "anomaly_detection"
    metric = "f1_weighted"
    data_name_list = ("shuttle_c0_c4", "glass5")
    shape = "labels"
    unsupervised = True

    def get_head(self) -> Any:
        """Return a head that scores how odd each row is; scikit-learn's detectors do as well."""
        return heads.get("knn-distance")()

    def make_head(self, kind: str, n_clusters: int, params: Mapping[str, Any]) -> Any:
        """Return a head that scores oddness, with its parameters set."""
        return as_scorer(super().make_head(kind, n_clusters, params))


class _Compared(TabEBBaseTask):
    """A task that compares vectors by their cosine and has no head."""

    def make_head(self, kind: str, n_clusters: int, params: Mapping[str, Any]) -> Any:
        """Refuse a head, which would not be used."""
        if self.get_head() is not None or params:
            raise DefinitionError(
                f"{type(self).__name__} compares vectors by their cosine: it has no head, and "
                f"neither get_head nor head_params mean anything."
            )
        return None


class TabEBRankingTask(_Compared):
    """Rank train rows by their cosine to test rows; those of the same class are wanted; MAP.

    ``get_score`` gets the query of each wanted row as ``y_true`` and its place as ``y_pred``.
    """

    task = "ranking"
    metric = "map"
    data_name_list = ("wine", "penguins")
    shape = "places"

    def make_probe(self, params: Mapping[str, Any]) -> Probe:
        """Return the probe that ranks by cosine, for at most 200 queries."""
        return SameClass(random_state=self.seed)


class TabEBDeduplicationTask(_Compared):
    """Tell pairs of rows about one thing from all other pairs, by their cosine; AUROC.

    ``get_score`` gets whether a pair is a duplicate as ``y_true`` and its cosine as ``y_pred``;
    pairs are counted, so it must take ``predictions``, whose ``weight`` says how many a row is.
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


def _one_of(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> dict[str, Any]:
    if first and second:
        raise DefinitionError("model_kwargs is TabEB's name for encoder_fit_params; give one.")
    return dict(first or second or {})
