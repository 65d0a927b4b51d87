"""Which rows of a table are used, and which of them for training, in both protocols."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from karat.data.tabeb import KINDS
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.splits import Fold, split

PROTOCOLS = ("corrected", "original")
GROUPS = (None, "entity", "row")


@dataclass(frozen=True)
class Rows:
    """How a table is sampled and split.

    Attributes
    ----------
    protocol
        ``"corrected"``: a random sample and a stratified split by groups. ``"original"``: the
        first rows, and scikit-learn's GroupShuffleSplit as TabEB calls it.
    n_train
        Number of training rows (of groups under ``"original"``). Default: 80 %.
    group
        Keep rows of one ``"entity"`` or with equal features (``"row"``) on the same side.
        Default: by entity if the metadata have ``repeated``.
    whole_classes
        Whether a sample contains all rows of a class or none, for deduplication.
    """

    protocol: str = "corrected"
    seed: int = 42
    max_rows: int | None = None
    n_train: int | None = None
    group: str | None = None
    whole_classes: bool = False

    def __post_init__(self) -> None:
        for name, known in (("protocol", PROTOCOLS), ("group", GROUPS)):
            value = getattr(self, name)
            if value not in known:
                hint = did_you_mean(str(value), [text for text in known if text])
                allowed = " or ".join(map(repr, known))
                raise DefinitionError(f"{name} must be {allowed}, got {value!r}.{hint}")
        for name, least in (("seed", 0), ("max_rows", 2), ("n_train", 1)):
            value = getattr(self, name)
            is_integer = isinstance(value, Integral) and not isinstance(value, bool)
            if not (is_integer and value >= least) and (name == "seed" or value is not None):
                raise DefinitionError(f"{name} must be an integer >= {least}, got {value!r}.")

    def taken(self, table: pd.DataFrame, metadata: Mapping[str, Any], name: str) -> Dataset:
        """Return the rows that are used as a dataset, with their groups."""
        entity = metadata.get("entity_name")
        repeated = bool(metadata.get("repeated"))
        by_entity = self.group == "entity" or (self.group is None and repeated)
        if by_entity and not entity:
            raise DataError(f'{name}: cannot group by entity: the metadata lack "entity_name".')
        if "target_name" not in metadata:
            raise DataError(f'{name}: the metadata lack "target_name".')
        data = Dataset.from_table(
            table,
            metadata["target_name"],
            name=name,
            kind=kind_of(metadata, name),
            group=entity if by_entity else None,
        )
        if self.group == "row":
            data = replace(data, group=row_keys(data.items, index=False))
        if self.whole_classes:
            data = replace(data, group=data.truth)
        if self.max_rows is None or self.max_rows >= len(data):
            return data
        if self.protocol == "original":
            return data.take(np.arange(self.max_rows))
        # the same sample as in a Karat run
        rng = np.random.default_rng([self.seed, zlib.crc32(f"rows {name}".encode())])
        return data.sample(self.max_rows, rng)

    def fold(self, data: Dataset) -> Fold:
        """Return the training and test rows."""
        if self.protocol == "original":
            return self._as_tabeb(data)
        rows = {} if self.n_train is None else {"train_rows": int(self.n_train)}
        return split(data, {"use": "holdout", **rows}, self.seed)[0]

    def _as_tabeb(self, data: Dataset) -> Fold:
        from sklearn.model_selection import GroupShuffleSplit

        groups = np.arange(len(data)) if data.group is None else pd.factorize(data.group)[0]
        count = int(groups.max()) + 1
        wanted = int(0.8 * len(data)) if self.n_train is None else int(self.n_train)
        if not 0 < wanted < count:
            raise DataError(f"{data.name}: cannot train on {wanted} of {count} groups of rows.")
        splitter = GroupShuffleSplit(n_splits=1, test_size=count - wanted, random_state=self.seed)
        return Fold(*next(splitter.split(np.zeros(len(data)), groups=groups)))


def kind_of(metadata: Mapping[str, Any], name: str) -> str | None:
    """Return the kind of the target according to the metadata, or None."""
    task = metadata.get("task")
    if task is None or task in KINDS:
        return KINDS.get(str(task))
    raise DataError(
        f'{name}: "task" in the metadata must be regression or classification, got {task!r}.'
        f"{did_you_mean(str(task), KINDS)}"
    )


def row_keys(table: Any, *, index: bool) -> np.ndarray:
    """Return a hash per row, equal for rows with equal cells (and index).

    >>> keys = row_keys([[1, "a"], [1, "a"], [2, "a"]], index=False)
    >>> (keys == keys[0]).tolist()
    [True, True, False]
    """
    frame = pd.DataFrame(table)
    try:
        keys = pd.util.hash_pandas_object(frame, index=index)
    except TypeError:  # cells that cannot be hashed
        keys = pd.util.hash_pandas_object(frame.map(repr), index=index)
    return np.asarray(keys)
