"""Evaluation of encoders on the datasets of a TabEB task; a failure does not stop it."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import is_outlier_detector, is_regressor

from karat.compat.tabeb.encoders import Contestant, kind_of, row_keys
from karat.compat.tabeb.interface import CONFIG, ENCODER, averaged
from karat.compat.tabeb.readers import LostData, check_table
from karat.core.columns import find_classes, infer_kind, target_values
from karat.core.dataset import Dataset
from karat.core.predictions import Predictions, as_text
from karat.core.registry import accepts
from karat.errors import ContractError, DataError, DefinitionError, KaratError, did_you_mean
from karat.execution.solvers import ProbeSolver
from karat.probes.trained import Trained

if TYPE_CHECKING:
    from karat.compat.tabeb.tasks import TabEBBaseTask


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


def as_predictions(y_true: Any, y_pred: Any, shape: str) -> Predictions:
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
    if answers.ndim == 1 and shape == "classes" and answers.dtype.kind == "f":
        return Predictions(answers, as_text(truth), "numbers", "classes", names)
    if answers.ndim == 1:
        return Predictions(as_text(answers), as_text(truth), "classes", "classes", names)
    columns = [sorted(classes).index(label) for label in classes]
    chances = answers[:, columns]
    best = np.array(names, dtype=object)[chances.argmax(axis=1)]
    return Predictions(best, as_text(truth), "classes", "classes", names, chances)


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


#: types written with ``repr``
PLAIN = (str, int, float, type(None))
#: maximum length of a description, and of a reason or note
LONGEST_DESCRIPTION = 500
LONGEST_NOTE = 1000
#: warnings for library developers, which are not reported
FOR_PROGRAMMERS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning)


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
    known = head.get_params() if hasattr(head, "get_params") else vars(head)
    for name in params:
        if name not in known:
            raise DefinitionError(
                f'head_params: {type(head).__name__} has no parameter "{name}".'
                f"{did_you_mean(name, known)}"
            )
    if hasattr(head, "set_params"):
        return head.set_params(**params)
    for name, value in params.items():
        setattr(head, name, value)
    return head


def describe(thing: Any, hidden: Collection[str] = ()) -> str:
    """Return an object's class and parameters in one line, the same in every process.

    A line that is too long ends in a hash of the whole description.

    >>> from sklearn.linear_model import Ridge
    >>> describe(Ridge(alpha=2.0)).startswith("Ridge(alpha=2.0, copy_X=True")
    True
    >>> describe({"b": 1, "a": [Ridge]})
    '{a: [Ridge], b: 1}'
    """
    text = _described(thing, hidden)
    if len(text) <= LONGEST_DESCRIPTION:
        return text
    return f"{text[:LONGEST_DESCRIPTION]}… {hashlib.sha256(text.encode()).hexdigest()[:12]}"


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
    shown = [f"{name}={_described(params[name])}" for name in sorted(params) if name not in hidden]
    return f"{type(thing).__name__}({', '.join(shown)})"


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(map(_is_plain, (*value, *value.values())))
    return isinstance(value, PLAIN)


@dataclass
class Evaluation:
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
        return {entry.name: describe(entry.prototype) + fitted for entry in self.entries}

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
        table, metadata = check_table(name, self.task.data_dict[name])
        metadata = {**metadata, "name": name}
        X_train, X_test, y_train, y_test = self.task.get_splits(table, metadata)
        kind = self._kind(metadata, y_train, name)
        where = f"{name}: the target"
        truths = [target_values(pd.Series(y), kind, where) for y in (y_train, y_test)]
        classes = find_classes(name, np.concatenate(truths)) if kind == "classification" else ()
        train = _dataset(X_train, truths[0], name, kind, classes)
        test = train if X_test is X_train else _dataset(X_test, truths[1], name, kind, classes)
        self.data.append(_sizes(train, test, metadata.get("entity_name")))
        return train, train if self.side == "train" else test

    def _kind(self, metadata: Mapping[str, Any], y: Any, name: str) -> str:
        kind = kind_of(metadata, name) or infer_kind(np.asarray(y), name)
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
            "head": describe(head, ("n_clusters",) if open_ else ()),
            "datasets": list(task.data_name_list),
        }


def _dataset(X: Any, target: np.ndarray, name: str, kind: str, classes: tuple[Any, ...]) -> Dataset:
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


def _sizes(train: Dataset, test: Dataset, entity: Any) -> dict[str, Any]:
    """Return the numbers of train and test rows, and of test rows that also occur in train."""
    sizes: dict[str, Any] = {"dataset": train.name, "train": len(train), "test": len(test)}
    if test is train:
        return sizes
    keys = [row_keys(side.items, index=False) for side in (train, test)]
    sizes["test_rows_alike_in_train"] = int(np.isin(keys[1], keys[0]).sum())
    if entity is not None and entity in test.items and entity in train.items:
        known = test.items[entity].isin(train.items[entity])
        sizes["test_rows_of_train_entities"] = int(known.sum())
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


def _checked_names(given: Any) -> list[str]:
    names = [given] if isinstance(given, str) else list(given)
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
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_NOTE else f"{text[: LONGEST_NOTE - 1]}…"
