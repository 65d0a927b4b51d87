"""Evaluation: encoders on the data sets of one task, where nothing that fails ends the run."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import is_regressor

from karat.columns import answers, find_classes, infer_kind
from karat.compat.tabeb.answers import as_arrays
from karat.compat.tabeb.contestants import Contestant
from karat.compat.tabeb.heads import told
from karat.compat.tabeb.rows import kind_of, row_keys
from karat.compat.tabeb.scores import CONFIG, ENCODER, averaged
from karat.compat.tabeb.tables import LostData
from karat.dataset import Dataset
from karat.errors import ContractError, DataError, DefinitionError, KaratError
from karat.predictions import Predictions
from karat.registry import accepts
from karat.solve import Probed

if TYPE_CHECKING:
    from karat.compat.tabeb.tasks import TabEBBaseTask

#: what libraries say to their programmers, not to people who evaluate
FOR_PROGRAMMERS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning)

#: a reason or note is cut to so many letters
LONGEST = 1000


class Evaluation:
    """One run of encoders on a task: what was scored, what failed, what is worth knowing."""

    def __init__(
        self,
        task: TabEBBaseTask,
        entries: Sequence[Contestant],
        side: str,
        head_params: Mapping[str, Any],
    ) -> None:
        self.task = task
        self.entries = entries
        self.side = side
        self.head_params = head_params
        self.failures: list[dict[str, str]] = []
        self.notes: list[dict[str, str]] = []
        self.data: list[dict[str, Any]] = []
        self.config = self._settings()

    def encoders(self) -> dict[str, str]:
        """Return what each encoder is, with its parameters, by its name."""
        extra = self.entries[0].treatment.fit_params
        fitted = f" fitted with {sorted(extra.items())}" if extra else ""
        return {entry.name: told(entry.prototype) + fitted for entry in self.entries}

    def frame(self) -> pd.DataFrame:
        """Return the scores: a row per encoder, a column per data set, and their mean."""
        names = _checked_names(self.task.data_name_list)
        lost = _load(self.task, names)
        table = pd.DataFrame({"encoder": [entry.name for entry in self.entries]})
        for name in names:
            table[name] = self._column(name, lost.get(name))
        frame = averaged(table, self.task.task)
        frame.attrs["config"] = self.config
        frame.attrs["encoders"] = self.encoders()
        frame.attrs["failures"] = self.failures
        frame.attrs["notes"] = self.notes
        frame.attrs["data"] = self.data
        return frame

    # -- one data set, one cell -------------------------------------------------------------

    def _column(self, name: str, lost: str | None) -> list[float]:
        try:
            if lost is not None:
                raise DataError(lost)
            train, test = self._sides(name)
        except Exception as error:
            said = _reason(error)
            for entry in self.entries:
                self.failures.append(_entry(entry.name, name, reason=said))
            # the line shown is that which called evaluate
            warnings.warn(said if said.startswith(name) else f"{name}: {said}", stacklevel=4)
            return [np.nan] * len(self.entries)
        values = []
        for entry in self.entries:
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
        solver = Probed(entry, probe, "ignore", self.task.seed)
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
                f"{type(task).__name__}.get_score must take predictions: pairs are counted, and "
                f"predictions.weight says how many a row stands for."
            )
        return task.get_score(*arrays)

    def _note(self, encoder: str, dataset: str, text: str) -> None:
        note = _entry(encoder, dataset, note=_line(text))
        if note not in self.notes:
            self.notes.append(note)

    # -- the two sides ----------------------------------------------------------------------

    def _sides(self, name: str) -> tuple[Dataset, Dataset]:
        table, metadata = self.task.data_dict[name], self.task.metadata.get(name)
        if metadata is None:
            raise DataError(f"{name}: nothing is known about it; put its target_name in metadata.")
        metadata = {**metadata, "name": name}
        X_train, X_test, y_train, y_test = self.task.get_splits(table, metadata)
        kind = self._kind(metadata, y_train, name)
        where = f"{name}: the target"
        truths = [answers(pd.Series(y), kind, where) for y in (y_train, y_test)]
        classes = find_classes(name, np.concatenate(truths)) if kind == "classes" else ()
        train = _dataset(X_train, truths[0], name, kind, classes)
        test = train if X_test is X_train else _dataset(X_test, truths[1], name, kind, classes)
        self.data.append(_told_sides(train, test, metadata.get("entity_name")))
        return train, train if self.side == "train" else test

    def _kind(self, metadata: Mapping[str, Any], y: Any, name: str) -> str:
        kind = kind_of(metadata, name) or infer_kind(np.asarray(y), name)
        numbers = np.asarray(y).dtype.kind in "iufb"
        if kind == "classes" and numbers and not self.task.unsupervised:
            # TabEB does not ask what a head predicts: least squares may learn 0 and 1
            head = self.task.make_head(kind, 2, self.head_params)
            return "numbers" if head is not None and is_regressor(head) else kind
        return kind

    def _settings(self) -> dict[str, Any]:
        task = self.task
        # a head is made now, so that a mistake in it stops before anything runs
        guess = "classes" if task.task == "classification" else "numbers"
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
            "head": told(head, ("n_clusters",) if open_ else ()),
            "datasets": list(task.data_name_list),
        }


def _dataset(X: Any, truth: np.ndarray, name: str, kind: str, classes: tuple[Any, ...]) -> Dataset:
    items = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X)).add_prefix("column ")
    items = items if items.index.is_unique else items.reset_index(drop=True)
    return Dataset(
        name=name,
        items=items,
        questions=pd.DataFrame({"row": items.index}),
        truth=truth,
        kind=kind,
        modality="table",
        classes=classes,
    )


def _told_sides(train: Dataset, test: Dataset, entity: Any) -> dict[str, Any]:
    """Return the sizes of both sides, and how many test rows the train side knows."""
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
    """Have the task load what it lacks; return why some data sets are not there."""
    if all(name in task.data_dict for name in names):
        return {}
    reasons: dict[str, str] = {}
    try:
        task.load_data()
    except LostData as error:
        reasons = error.reasons
    except Exception as error:
        reasons = dict.fromkeys(names, _reason(error))
    lost = [name for name in names if name not in task.data_dict]
    return {name: reasons.get(name, f"{name}: load_data did not load it.") for name in lost}


def _checked_names(given: Any) -> list[str]:
    names = [given] if isinstance(given, str) else list(given)
    if not names:
        raise DefinitionError("the task has no data sets; name some in data_name_list.")
    for name in names:
        if name in ("encoder", CONFIG, ENCODER) or names.count(name) > 1:
            raise DefinitionError(f'data_name_list: "{name}" is taken; each name once.')
    return names


def _entry(encoder: str, dataset: str, **text: str) -> dict[str, str]:
    return {"encoder": encoder, "dataset": dataset, **text}


def _reason(error: Exception) -> str:
    said = str(error) if isinstance(error, KaratError) else f"{type(error).__name__}: {error}"
    return _line(said)


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
