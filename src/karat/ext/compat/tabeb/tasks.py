"""TabEB's six tasks, the base class for custom tasks, and the evaluation of encoders on them.

A dataset or encoder that fails does not stop the others.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd
from sklearn.base import is_outlier_detector, is_regressor

from karat.core.columns import find_classes, infer_kind, target_values
from karat.core.dataset import Dataset
from karat.core.digest import sha256_of
from karat.core.formatting import cut_text
from karat.core.predictions import Predictions, as_text
from karat.core.registry import accepts, build, heads
from karat.errors import ContractError, DataError, DefinitionError, KaratError, did_you_mean
from karat.execution.solvers import ProbeSolver
from karat.execution.workers import one_thread
from karat.ext.compat.tabeb.encoders import (
    Contestant,
    Rows,
    Treatment,
    column_kind,
    contestants,
    row_keys,
)
from karat.ext.compat.tabeb.interface import (
    CONFIG,
    ENCODER,
    as_config,
    averaged,
    check_file,
    get_model,
    save_scores,
    score_file,
)
from karat.ext.compat.tabeb.readers import (
    LostData,
    Table,
    check_tabeb_table,
    find_table,
    warn_of_own,
)
from karat.metrics.metric import get_metric, score
from karat.probes.retrieval import Duplicates, SameClass
from karat.probes.trained import Probe, Trained

#: types written with ``repr``
PLAIN = (str, int, float, type(None))
#: maximum length of a description, and of a reason or note
LONGEST_DESCRIPTION = 500
LONGEST_NOTE = 1000
#: warnings for library developers, which are not reported
FOR_PROGRAMMERS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning)
Sides = tuple[pd.DataFrame, pd.DataFrame, np.ndarray, np.ndarray]


def as_arrays(
    predictions: Predictions, test: Dataset, probabilities: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``y_true`` and ``y_pred`` in the labels of the table.

    Ranked answers are returned as queries and ranks. Probabilities have one column per class, in
    sorted label order.
    """
    if predictions.rank is not None:
        return np.asarray(predictions.group), np.asarray(predictions.rank)
    if predictions.answers != "classes":
        paired = len(predictions) != len(test) or predictions.weight is not None
        return np.asarray(predictions.target if paired else test.target), predictions.predictions
    if probabilities and predictions.probabilities is not None:
        order = [predictions.classes.index(str(label)) for label in sorted(test.classes)]
        return np.asarray(test.target), predictions.probabilities[:, order]
    written = dict(zip(as_text(test.classes), test.classes, strict=True))
    labels = [written[label] for label in predictions.predictions]
    return np.asarray(test.target), np.array(labels, dtype=np.asarray(test.target).dtype)


def as_predictions(y_true: np.ndarray, y_pred: np.ndarray, shape: str) -> Predictions:
    """Return two arrays as Predictions.

    ``shape`` names the content of ``y_pred``: ``"numbers"``, ``"classes"`` (probabilities),
    ``"labels"``, ``"clusters"`` or ``"places"`` (ranks). A matrix always holds class
    probabilities; numbers for two classes are scores of the second.

    >>> as_predictions([0, 1, 2], [[0.5, 0.3, 0.2], [0, 1, 0], [0, 0, 1]], "classes").classes
    ('0', '1', '2')
    """
    truth, answers = np.asarray(y_true), np.asarray(y_pred)
    if shape == "places":
        return Predictions(
            as_text(truth), as_text(truth), "items", "items", group=truth, rank=answers
        )
    if shape == "clusters":
        return Predictions(answers, as_text(truth), "clusters", "classes")
    if shape == "numbers" and answers.ndim == 1 and truth.dtype.kind in "iufb":
        return Predictions(answers, truth)
    classes = _classes(truth, answers)
    names = tuple(as_text(classes))
    kinds: dict[str, Any] = {"answers": "classes", "truths": "classes", "classes": names}
    if answers.ndim == 1 and shape == "classes" and answers.dtype.kind == "f":
        return Predictions(answers, as_text(truth), **{**kinds, "answers": "numbers"})
    if answers.ndim == 1:
        return Predictions(as_text(answers), as_text(truth), **kinds)
    columns = [sorted(classes).index(label) for label in classes]
    chances = answers[:, columns]
    best = np.array(names, dtype=object)[chances.argmax(axis=1)]
    return Predictions(best, as_text(truth), **kinds, probabilities=chances)


def _classes(target: np.ndarray, answers: np.ndarray) -> tuple[Any, ...]:
    """Return the labels in Karat's order; integer classes from 0 need not all occur in truth."""
    labels = find_classes("y_true", target) if len(np.unique(target)) > 1 else tuple(target[:1])
    if answers.ndim == 1 or answers.shape[1] == len(labels):
        return labels
    columns = answers.shape[1]
    if target.dtype.kind in "iu" and target.min() >= 0 and target.max() < columns:
        return tuple(sorted(range(columns), key=str))
    raise ContractError(
        f"y_pred has {columns} columns but y_true has {len(labels)} classes; expected one column "
        f"per class, in sorted label order."
    )


class Headed(Trained):
    """The trained probe with a head that the task makes for each training set."""

    def __init__(self, make: Callable[[Dataset], Any], scale: str) -> None:
        super().__init__(scale=scale)
        self.make = make

    def _make_head(self, train: Dataset) -> Any:
        self.kind_ = train.kind
        return self.make(train)

    def _scaled(self, X: np.ndarray, *, fit: bool) -> np.ndarray:
        # As in TabEB, the precision of unscaled vectors decides which dimensions least squares
        # neglects. Logistic regression needs double precision for them.
        if self.scale != "plain" or self.kind_ != "regression":
            X = X.astype(np.float64, copy=False)
        return super()._scaled(X, fit=fit)


@dataclass
class Detector:
    """A scikit-learn outlier detector with the interface of Karat's heads."""

    detector: Any

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """Return the detector."""
        return {"detector": self.detector}

    def outlier_scores(self, X: np.ndarray) -> np.ndarray:
        """Return one outlier score per item; higher is more unusual."""
        self.detector.fit(X)
        if hasattr(self.detector, "negative_outlier_factor_"):
            return -np.asarray(self.detector.negative_outlier_factor_)
        return -np.asarray(self.detector.score_samples(X))


def as_scorer(head: Any) -> Any:
    """Return a head with ``outlier_scores``, wrapping a scikit-learn detector if needed."""
    if hasattr(head, "outlier_scores"):
        return head
    # LocalOutlierFactor has score_samples only with novelty=True
    if hasattr(head, "score_samples") or is_outlier_detector(head):
        return Detector(head)
    raise ContractError(
        f"get_head returned {type(head).__name__}; an anomaly task needs outlier_scores(X), or "
        f"scikit-learn's fit and score_samples."
    )


def with_params(head: Any, params: Mapping[str, Any]) -> Any:
    """Return the head with parameters set; raise if one does not exist."""
    if not params:
        return head
    available = head.get_params() if hasattr(head, "get_params") else vars(head)
    for name in params:
        if name not in available:
            raise DefinitionError(
                f'head_params: {type(head).__name__} has no parameter "{name}".'
                f"{did_you_mean(name, available)}"
            )
    if hasattr(head, "set_params"):
        return head.set_params(**params)
    for name, value in params.items():
        setattr(head, name, value)
    return head


def describe_object(thing: object, hidden: Collection[str] = ()) -> str:
    """Return an object's class and parameters in one line, the same in every process.

    A line that is too long ends in a hash of the whole description.

    >>> from sklearn.linear_model import Ridge
    >>> describe_object(Ridge(alpha=2.0)).startswith("Ridge(alpha=2.0, copy_X=True")
    True
    >>> describe_object({"b": 1, "a": [Ridge]})
    '{a: [Ridge], b: 1}'
    """
    text = _described(thing, hidden)
    if len(text) <= LONGEST_DESCRIPTION:
        return text
    return f"{text[:LONGEST_DESCRIPTION]}… {sha256_of(text, length=12)}"


def _described(thing: Any, hidden: Collection[str] = ()) -> str:
    if isinstance(thing, PLAIN):
        return repr(thing)
    if isinstance(thing, list | tuple):
        return f"[{', '.join(map(_described, thing))}]"
    if isinstance(thing, Mapping):
        return f"{{{', '.join(f'{name}: {_described(thing[name])}' for name in sorted(thing))}}}"
    if hasattr(thing, "__qualname__"):
        return str(thing.__qualname__)
    try:
        params = thing.get_params(deep=False)
    except (AttributeError, RuntimeError, TypeError):
        # other objects may contain anything, even themselves
        held = getattr(thing, "__dict__", {})
        params = {name: value for name, value in held.items() if _is_plain(value)}
    arguments = [
        f"{name}={_described(params[name])}" for name in sorted(params) if name not in hidden
    ]
    return f"{type(thing).__name__}({', '.join(arguments)})"


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(map(_is_plain, (*value, *value.values())))
    return isinstance(value, PLAIN)


@dataclass
class _Evaluation:
    """The scores, failures and notes of encoders on a task."""

    task: TabEBBaseTask
    entries: Sequence[Contestant]
    side: str
    head_params: Mapping[str, Any]
    failures: list[dict[str, str]] = field(default_factory=list)
    notes: list[dict[str, str]] = field(default_factory=list)
    data: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.config = self._settings()

    def encoders(self) -> dict[str, str]:
        """Return a description of each encoder, by name."""
        extra = self.entries[0].treatment.fit_params
        fitted = f" fitted with {sorted(extra.items())}" if extra else ""
        return {entry.name: describe_object(entry.prototype) + fitted for entry in self.entries}

    def frame(self) -> pd.DataFrame:
        """Return the scores: a row per encoder, a column per dataset, and their mean."""
        names = _checked_names(self.task.data_name_list)
        missing = _load(self.task, names)
        table = pd.DataFrame({"encoder": [entry.name for entry in self.entries]})
        for name in names:
            table[name] = self._column(name, missing.get(name))
        frame = averaged(table, self.task.task)
        frame.attrs |= {
            "config": self.config,
            "encoders": self.encoders(),
            "failures": self.failures,
            "notes": self.notes,
            "data": self.data,
        }
        return frame

    def _column(self, name: str, missing: str | None) -> list[float]:
        try:
            if missing is not None:
                raise DataError(missing)
            train, test = self._sides(name)
        except Exception as error:
            reason = _reason(error)
            for entry in self.entries:
                self.failures.append(_entry(entry.name, name, reason=reason))
            # show the line that called evaluate
            warnings.warn(reason if reason.startswith(name) else f"{name}: {reason}", stacklevel=4)
            return [np.nan] * len(self.entries)
        values = []
        for entry in self.entries:  # a comprehension is a frame, which counts for stacklevel
            values.append(self._cell(entry, train, test))
        return values

    def _cell(self, entry: Contestant, train: Dataset, test: Dataset) -> float:
        failed = ""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                value = self._value(entry, train, test)
            except Exception as error:
                value, failed = np.nan, _reason(error)
        for warning in caught:
            if not issubclass(warning.category, FOR_PROGRAMMERS):
                self._note(entry.name, test.name, str(warning.message))
        if failed:
            self.failures.append(_entry(entry.name, test.name, reason=failed))
            warnings.warn(f"{entry.name} on {test.name}: {failed}", stacklevel=5)
        return value

    def _value(self, entry: Contestant, train: Dataset, test: Dataset) -> float:
        probe = self.task.make_probe(self.head_params)
        solver = ProbeSolver(entry, probe, "ignore", self.task.seed)
        solver.fit(train.blind() if self.task.unsupervised else train)
        predictions = solver.answer(test).predictions
        for note in solver.notes:
            self._note(entry.name, test.name, note)
        value = float(self._score(predictions, test))
        if not np.isfinite(value):
            raise ContractError(f"{type(self.task).__name__}.get_score returned {value}.")
        return value

    def _score(self, predictions: Predictions, test: Dataset) -> float:
        task = self.task
        chances = task.shape == "classes" or task.task == "classification"
        arrays = as_arrays(predictions, test, chances)
        named, any_name = accepts(task.get_score)
        if "predictions" in named or any_name:
            return task.get_score(*arrays, predictions=predictions)
        if predictions.weight is not None:
            raise ContractError(
                f"{type(task).__name__}.get_score must accept a parameter predictions: "
                f"predictions.weight holds the number of pairs of each row."
            )
        return task.get_score(*arrays)

    def _note(self, encoder: str, dataset: str, text: str) -> None:
        note = _entry(encoder, dataset, note=_line(text))
        if note not in self.notes:
            self.notes.append(note)

    def _sides(self, name: str) -> tuple[Dataset, Dataset]:
        table, metadata = check_tabeb_table(name, self.task.data_dict[name])
        metadata = {**metadata, "name": name}
        X_train, X_test, y_train, y_test = self.task.get_splits(table, metadata)
        kind = self._kind(metadata, y_train, name)
        where = f"{name}: the target"
        truths = [target_values(pd.Series(y), kind, where) for y in (y_train, y_test)]
        classes = find_classes(name, np.concatenate(truths)) if kind == "classification" else ()
        train = _dataset(X_train, target=truths[0], name=name, kind=kind, classes=classes)
        test = (
            train
            if X_test is X_train
            else _dataset(X_test, target=truths[1], name=name, kind=kind, classes=classes)
        )
        self.data.append(_sizes(train, test, metadata.get("entity_name")))
        return train, train if self.side == "train" else test

    def _kind(self, metadata: Mapping[str, Any], y: np.ndarray, name: str) -> str:
        kind = column_kind(metadata, name) or infer_kind(np.asarray(y), name)
        numbers = np.asarray(y).dtype.kind in "iufb"
        if kind == "classification" and numbers and not self.task.unsupervised:
            # as in TabEB, a regressor may be trained on the classes 0 and 1
            head = self.task.make_head(kind, 2, self.head_params)
            return "regression" if head is not None and is_regressor(head) else kind
        return kind

    def _settings(self) -> dict[str, Any]:
        task = self.task
        # make a head now to find mistakes before anything runs
        guess = "classification" if task.task == "classification" else "regression"
        head = task.make_head(guess, 2, self.head_params)
        open_ = "n_clusters" in accepts(task.get_head)[0]
        return {
            "protocol": task.protocol,
            "seed": task.seed,
            "max_rows": task.max_rows,
            "n_train": task.n_train,
            "group": task.group,
            "split": self.side,
            "na_fill_value": self.entries[0].treatment.fill,
            "metric": task.metric,
            "higher_is_better": task.direction(),
            "head": describe_object(head, ("n_clusters",) if open_ else ()),
            "datasets": list(task.data_name_list),
        }


def _dataset(
    X: pd.DataFrame, target: np.ndarray, name: str, kind: str, classes: tuple[Any, ...]
) -> Dataset:
    items = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X)).add_prefix("column ")
    items = items if items.index.is_unique else items.reset_index(drop=True)
    return Dataset(
        name=name,
        items=items,
        questions=pd.DataFrame({"row": items.index}),
        target=target,
        kind=kind,
        modality="table",
        classes=classes,
    )


def _sizes(train: Dataset, test: Dataset, entity: str | None) -> dict[str, Any]:
    """Return the numbers of train and test rows, and of test rows that also occur in train."""
    sizes: dict[str, Any] = {"dataset": train.name, "train": len(train), "test": len(test)}
    if test is train:
        return sizes
    keys = [row_keys(side.items, index=False) for side in (train, test)]
    sizes["test_rows_alike_in_train"] = int(np.isin(keys[1], keys[0]).sum())
    if entity is not None and entity in test.items and entity in train.items:
        seen = test.items[entity].isin(train.items[entity])
        sizes["test_rows_of_train_entities"] = int(seen.sum())
    return sizes


def _load(task: TabEBBaseTask, names: Sequence[str]) -> dict[str, str]:
    """Let the task load missing datasets; return the reasons of those that cannot be loaded."""
    if all(name in task.data_dict for name in names):
        return {}
    reasons: dict[str, str] = {}
    try:
        task.load_data()
    except LostData as error:
        reasons = error.reasons
    except Exception as error:
        reasons = dict.fromkeys(names, _reason(error))
    missing = [name for name in names if name not in task.data_dict]
    return {name: reasons.get(name, f"{name}: load_data did not load it.") for name in missing}


def _checked_names(data_names: str | Iterable[str]) -> list[str]:
    names = [data_names] if isinstance(data_names, str) else list(data_names)
    if not names:
        raise DefinitionError("the task has no datasets; set data_name_list.")
    for name in names:
        if name in ("encoder", CONFIG, ENCODER) or names.count(name) > 1:
            raise DefinitionError(f'data_name_list: "{name}" is reserved or a duplicate.')
    return names


def _entry(encoder: str, dataset: str, **text: str) -> dict[str, str]:
    return {"encoder": encoder, "dataset": dataset, **text}


def _reason(error: Exception) -> str:
    return _line(
        str(error) if isinstance(error, KaratError) else f"{type(error).__name__}: {error}"
    )


def _line(text: str) -> str:
    return cut_text(" ".join(text.split()), LONGEST_NOTE)


# -- tasks ------------------------------------------------------------------------------------


class Params(TypedDict, total=False):
    """Parameters of the encoders' ``fit`` and of the head."""

    encoder_fit_params: Mapping[str, Any] | None
    head_params: Mapping[str, Any] | None


class _Settings(TypedDict, total=False):
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
        Rows(
            protocol=protocol, seed=seed, max_rows=max_rows, n_train=n_train, group=group
        )  # validate the settings
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
        return MappingProxyType({name: check_tabeb_table(name, pair)[1] for name, pair in pairs})

    def load_data(self) -> None:
        """Load missing tables; raise after the last one if any is not available."""
        failures: dict[str, str] = {}
        fresh = [name for name in self.data_name_list if name not in self.data_dict]
        for name in fresh:
            try:
                self.data_dict[name] = self._load_data(name, self.data_dir)
            except KaratError as error:
                failures[name] = str(error)
            except Exception as error:
                failures[name] = f"{name}: {type(error).__name__}: {error}"
        warn_of_own([name for name in fresh if name not in failures], self.data_dir)
        self.data_loaded_ = not failures
        if failures:
            raise LostData(failures)

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
        same_table = (name for name, pair in pairs if isinstance(pair, tuple) and pair[0] is data)
        return str(next(same_table, metadata.get("name", "table")))

    def _rows(self, num_train: int | None, random_state: int | None) -> Rows:
        n_train = self.n_train if num_train is None else num_train
        seed = self.seed if random_state is None else random_state
        return Rows(
            protocol=self.protocol,
            seed=seed,
            max_rows=self.max_rows,
            n_train=n_train,
            group=self.group,
        )

    def get_head(self) -> Any:
        """Return an unfitted head, or None for the default head.

        A parameter ``n_clusters``, if present, receives the number of classes.
        """
        return None

    def get_score(
        self, y_true: np.ndarray, y_pred: np.ndarray, predictions: Predictions | None = None
    ) -> float:
        """Return the score of two arrays; ``predictions`` is Karat's record of the predictions."""
        scored = predictions or as_predictions(y_true, y_pred, self.shape)
        value, reason = score(self.metric, scored)
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
        run = _Evaluation(self, entries, split, dict(params.get("head_params") or {}))
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

    def __init__(self, **settings: Unpack[_Settings]) -> None:
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
