"""Dataset: the items to embed, the questions about them, and the true answers.

A table's rows are items and each row is one question. A pair of sentences is one question with two
fields; every sentence is one item, however often it is asked about. A cell of a question is an item
id or a bag ``{id: weight}``.
"""

from __future__ import annotations

import copy
import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError, did_you_mean
from karat.fingerprints import fingerprint

KINDS = ("classes", "numbers", "items")
MODALITIES = ("table", "text", "entity")


@dataclass(frozen=True)
class Bags:
    """The items a field's questions mention: question i owns ``rows[offsets[i]:offsets[i+1]]``."""

    rows: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray

    def take(self, questions: np.ndarray) -> Bags:
        """Return the bags of some questions, in the order asked."""
        sizes = (self.offsets[1:] - self.offsets[:-1])[questions]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        starts = np.repeat(self.offsets[:-1][questions] - offsets[:-1], sizes)
        cells = np.arange(offsets[-1]) + starts
        return Bags(self.rows[cells], offsets, self.weights[cells])


@dataclass(frozen=True, eq=False)
class Dataset:
    """Items, questions and truth, checked when it is made and never changed.

    Attributes
    ----------
    items
        A table (modality ``"table"``) or a series of texts or entity labels; its index are the ids.
    questions
        One row per question, one column per field, cells are item ids or bags ``{id: weight}``.
    truth
        One answer per question, or nothing when it is hidden.
    kind
        What the truth is: ``"classes"``, ``"numbers"`` or ``"items"`` (ids).
    group
        Questions of one group stay on one side of a split; rankings are scored per group.
    part
        ``"train"`` or ``"test"`` per question, where the data come split.
    about
        Source, licence, citation and checksum, as they came with the data.
    """

    name: str
    items: pd.DataFrame | pd.Series
    questions: pd.DataFrame
    truth: np.ndarray | None
    kind: str
    modality: str
    group: np.ndarray | None = None
    part: np.ndarray | None = None
    classes: tuple[Any, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(self)
        mentions = {name: _mentions(self, name) for name in self.questions.columns}
        object.__setattr__(self, "_mentions", mentions)
        if self.kind == "classes" and not self.classes and self.truth is not None:
            object.__setattr__(self, "classes", _classes(self.name, self.truth))

    # -- making one -------------------------------------------------------------------------

    @classmethod
    def from_table(
        cls,
        table: pd.DataFrame,
        target: str,
        *,
        name: str = "table",
        kind: str | None = None,
        group: str | None = None,
        drop: Sequence[str] = (),
        part: str | None = None,
        about: Mapping[str, str] | None = None,
    ) -> Dataset:
        """Return a data set whose items are the rows of a table and whose truth is one column.

        >>> table = pd.DataFrame({"age": [31, 45], "churn": ["yes", "no"]})
        >>> Dataset.from_table(table, target="churn", name="churn")
        <Dataset churn: 2 questions about 2 table items, 2 classes>
        """
        table = _check_table(table, name).reset_index(drop=True)
        named = [target, *(column for column in (group, part) if column), *drop]
        for column in named:
            _check_column(table, column, name)
        truth = _check_target(table[target], name, target)
        items = table.drop(columns=[target, *([part] if part else []), *drop])
        if not items.shape[1]:
            raise DataError(f'{name}: there is no column besides the target "{target}".')
        return cls(
            name=name,
            items=items,
            questions=pd.DataFrame({"row": table.index}),
            truth=truth,
            kind=kind or _infer_kind(truth, name),
            modality="table",
            group=table[group].to_numpy() if group else None,
            part=table[part].to_numpy() if part else None,
            about=about or {},
        )

    @classmethod
    def from_columns(
        cls,
        frame: pd.DataFrame,
        fields: Sequence[str],
        target: str,
        *,
        name: str = "columns",
        kind: str | None = None,
        modality: str = "text",
        group: str | None = None,
        part: str | None = None,
        label: Callable[[str], str] | None = None,
        about: Mapping[str, str] | None = None,
    ) -> Dataset:
        """Return a data set of texts or entities: each row asks about the cells of its fields.

        ``label`` turns an entity id into words, so that text encoders can read it.

        >>> frame = pd.DataFrame({"a": ["hi", "yes"], "b": ["hello", "no"], "score": [0.9, 0.1]})
        >>> Dataset.from_columns(frame, ["a", "b"], "score", name="pairs", kind="numbers")
        <Dataset pairs: 2 questions about 4 text items, numbers>
        """
        frame = _check_table(frame, name).reset_index(drop=True)
        for column in (*fields, target, *(c for c in (group, part) if c)):
            _check_column(frame, column, name)
        truth = _check_target(frame[target], name, target)
        kind = kind or _infer_kind(truth, name)
        cells = [frame[column].to_numpy() for column in fields]
        things = _unique([*cells, truth] if kind == "items" else cells, name, list(fields))
        if modality == "text":
            items = pd.Series(list(things), dtype=object)
            position = {thing: i for i, thing in enumerate(things)}
            truth = np.array([position[t] for t in truth]) if kind == "items" else truth
            asked = {c: [position[t] for t in frame[c]] for c in fields}
        else:
            items = pd.Series([label(t) for t in things] if label else things, index=things)
            asked = {c: frame[c].to_numpy() for c in fields}
        return cls(
            name=name,
            items=items,
            questions=pd.DataFrame(asked),
            truth=truth,
            kind=kind,
            modality=modality,
            group=frame[group].to_numpy() if group else None,
            part=frame[part].to_numpy() if part else None,
            about=about or {},
        )

    # -- looking at it ----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.questions)

    def __repr__(self) -> str:
        answers = f"{len(self.classes)} classes" if self.kind == "classes" else self.kind
        return (
            f"<Dataset {self.name}: {len(self)} questions about {len(self.items)} "
            f"{self.modality} items, {answers}>"
        )

    @property
    def fields(self) -> list[str]:
        """The names of the questions' fields."""
        return list(self.questions.columns)

    def mentions(self, field: str) -> Bags:
        """Return the positions of the items that a field's questions mention."""
        return self._mentions[field]  # type: ignore[attr-defined]

    def mentioned(self) -> np.ndarray:
        """Return the positions of all items the questions mention, each once, ascending.

        Where the answer is an item, any item may be the answer, so all are mentioned.
        """
        if self.kind == "items":
            return np.arange(len(self.items))
        rows = [self.mentions(name).rows for name in self.questions.columns]
        return np.unique(np.concatenate(rows)) if rows else np.array([], dtype=np.intp)

    def frame(self) -> pd.DataFrame | pd.Series:
        """Return the items in the order of the questions; only for questions of one plain field."""
        if len(self.fields) != 1:
            raise DataError(f"{self.name} asks about {len(self.fields)} fields at once, not one.")
        bags = self.mentions(self.fields[0])
        if len(bags.rows) != len(self):
            raise DataError(f"{self.name} asks about bags of items, not single ones.")
        return self.items.iloc[bags.rows]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything a score depends on: items, questions, truth, group, part."""
        digest = hashlib.sha256(f"{self.kind} {self.modality} {self.classes!r}".encode())
        digest.update(fingerprint(self.items).encode())
        digest.update(fingerprint(self.questions.astype(object).map(_plain)).encode())
        for values in (self.truth, self.group, self.part):
            digest.update(b"-" if values is None else fingerprint(pd.Series(values)).encode())
        return digest.hexdigest()

    # -- parts of it ------------------------------------------------------------------------

    def take(self, rows: np.ndarray) -> Dataset:
        """Return the same items with only these questions, in this order."""
        rows = np.asarray(rows)
        part = copy.copy(self)
        part.__dict__.pop("fingerprint", None)
        mentions = {name: bags.take(rows) for name, bags in self._mentions.items()}  # type: ignore[attr-defined]
        changes: dict[str, Any] = {
            "questions": self.questions.iloc[rows],
            "truth": None if self.truth is None else self.truth[rows],
            "group": None if self.group is None else self.group[rows],
            "part": None if self.part is None else self.part[rows],
            "_mentions": mentions,
        }
        for name, value in changes.items():
            object.__setattr__(part, name, value)
        return part

    def blind(self) -> Dataset:
        """Return it with the truth hidden; the number of classes stays known."""
        part = copy.copy(self)
        part.__dict__.pop("fingerprint", None)
        object.__setattr__(part, "truth", None)
        return part

    def sample(self, rows: int, rng: np.random.Generator) -> Dataset:
        """Return at most this many questions, drawn by the generator, whole groups at a time.

        Items that no question mentions any more are left away.
        """
        if rows >= len(self):
            return self
        if self.group is None:
            kept = self.take(np.sort(rng.choice(len(self), size=rows, replace=False)))
        else:
            codes = pd.factorize(self.group)[0]
            order = rng.permutation(codes.max() + 1)
            sizes = np.bincount(codes)[order]
            whole = order[: max(1, int(np.searchsorted(np.cumsum(sizes), rows, side="right")))]
            kept = self.take(np.flatnonzero(np.isin(codes, whole)))
        return replace(kept, items=kept.items.iloc[kept.mentioned()])


def _plain(cell: Any) -> Any:
    return repr(sorted(cell.items())) if isinstance(cell, Mapping) else cell


# -- checks ---------------------------------------------------------------------------------


def _check(data: Dataset) -> None:
    for value, allowed, what in (
        (data.kind, KINDS, "kind"),
        (data.modality, MODALITIES, "modality"),
    ):
        if value not in allowed:
            raise DataError(
                f'{data.name}: {what} "{value}" is none of {", ".join(allowed)}.'
                + did_you_mean(str(value), allowed)
            )
    if not len(data.questions):
        raise DataError(f"{data.name} is empty: it has no questions.")
    if not data.items.index.is_unique:
        twice = data.items.index[data.items.index.duplicated()][0]
        raise DataError(f'{data.name}: the item id "{twice}" stands twice; each item once.')
    for what in ("truth", "group", "part"):
        values = getattr(data, what)
        if values is not None and len(values) != len(data.questions):
            raise DataError(
                f"{data.name}: {len(values)} values of {what} for {len(data.questions)} questions."
            )


def _mentions(data: Dataset, name: str) -> Bags:
    cells = data.questions[name]
    if cells.map(lambda cell: isinstance(cell, Mapping)).any():
        ids = [key for bag in cells for key in bag]
        sizes = [len(bag) for bag in cells]
        if 0 in sizes:
            raise DataError(f'{data.name}: question {sizes.index(0)} has an empty bag in "{name}".')
        weights = np.array([weight for bag in cells for weight in bag.values()], dtype=float)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
    else:
        ids, offsets = cells.to_numpy(), np.arange(len(cells) + 1)
        weights = np.ones(len(cells))
    rows = data.items.index.get_indexer(pd.Index(ids))
    if (rows < 0).any():
        lost = ids[int(np.flatnonzero(rows < 0)[0])]
        raise DataError(f'{data.name}: a question asks about "{lost}", which is not an item.')
    return Bags(rows, offsets, weights)


def _check_table(table: Any, name: str) -> pd.DataFrame:
    if not isinstance(table, pd.DataFrame):
        raise DataError(f"{name}: expected a data frame, got {type(table).__name__}.")
    if table.empty:
        raise DataError(f"{name} is empty: {table.shape[0]} rows, {table.shape[1]} columns.")
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise DataError(f'{name}: the column "{twice[0]}" stands twice; rename or drop one.')
    return table


def _check_column(table: pd.DataFrame, column: str, name: str) -> None:
    if column not in table.columns:
        columns = [str(c) for c in table.columns]
        raise DataError(
            f'{name}: "{column}" is not a column.{did_you_mean(str(column), columns)} '
            f"It has: {', '.join(columns[:20])}{' …' if len(columns) > 20 else ''}",
            value=str(column),
        )


def _check_target(column: pd.Series, name: str, target: str) -> np.ndarray:
    empty = int(column.isna().sum())
    if empty:
        first = int(np.flatnonzero(column.isna())[0])
        raise DataError(
            f'{name}: the target "{target}" is missing in {empty} of {len(column)} rows '
            f"(first: row {first}); drop or fill them."
        )
    values = column.to_numpy()
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise DataError(f'{name}: the target "{target}" holds infinite values.')
    return values


def _infer_kind(truth: np.ndarray, name: str) -> str:
    if truth.dtype.kind not in "iuf":
        return "classes"
    whole = truth.dtype.kind in "iu" or bool((truth == np.round(truth)).all())
    if not whole:
        return "numbers"
    distinct = len(np.unique(truth))
    kind = "classes" if distinct <= max(2, min(20, len(truth) // 10)) else "numbers"
    warnings.warn(
        f'{name}: the target is whole numbers, {distinct} distinct; taken as "{kind}". '
        f'Say kind="classes" or kind="numbers" to be sure.',
        stacklevel=4,
    )
    return kind


def _classes(name: str, truth: np.ndarray) -> tuple[Any, ...]:
    labels = list(dict.fromkeys(truth.tolist()))
    if len({str(label) for label in labels}) < len(labels):
        raise DataError(f"{name}: two class labels print alike: {sorted(map(str, labels))}.")
    if len(labels) < 2:
        raise DataError(f'{name}: there is only one class, "{labels[0]}"; at least two are needed.')
    return tuple(sorted(labels, key=str))


def _unique(columns: list[np.ndarray], name: str, fields: list[str]) -> list[Any]:
    things: dict[Any, None] = {}
    for column, label in zip(columns, [*fields, "target"], strict=False):
        empty = pd.isna(column)
        if empty.any():
            raise DataError(
                f'{name}: the column "{label}" is missing in {int(empty.sum())} rows '
                f"(first: row {int(np.flatnonzero(empty)[0])})."
            )
        things.update(dict.fromkeys(column.tolist()))
    return list(things)
