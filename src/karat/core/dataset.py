"""Dataset: the items to embed, the questions about them, and the targets.

The rows of a table are items and each row is one question. A pair of sentences is one question with
two fields; every distinct sentence is one item. A cell of a question is an item id or a bag
``{id: weight}``.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core import registry
from karat.core.columns import (
    ITEM_TYPES,
    Bags,
    as_frame,
    attach_target,
    check_cells,
    check_names,
    check_table,
    column_items,
    find_classes,
    find_items,
    find_targets,
    flatten_cells,
    frame_items,
    holds_bags,
    infer_kind,
    number_target,
    ordered_classes,
    put_last,
    require_columns,
    table_names,
    target_values,
)
from karat.core.files import fingerprint
from karat.core.formatting import count
from karat.core.notebook import facts_html
from karat.errors import DataError, did_you_mean

KINDS = ("classification", "regression", "items")
#: the types of items, and how a message calls several of them
PLURAL = {
    "table": "tables",
    "text": "texts",
    "entity": "entities",
    "column": "columns",
    "frame": "whole tables",
}
MODALITIES = tuple(PLURAL)
PARTS = ("train", "test")
#: classes in the notebook form of a dataset
SHOWN_CLASSES = 10
DRAWN_BY = ("name", "target")
QUERY, DOCUMENT = "query", "document"
#: role of a field whose items are queries and candidates of other queries
QUERY_AND_DOCUMENT = f"{QUERY}+{DOCUMENT}"
#: the attributes that have one value per question
QUESTION_VALUES = ("target", "group", "part", "weight", "gain")


@dataclass(frozen=True, eq=False)
class ItemRoles:
    """The role of each item, and the positions of documents that are queries too.

    The latter have two vectors. A role is empty if the item has none.
    """

    main: np.ndarray
    both: np.ndarray


@dataclass(frozen=True, eq=False)
class Dataset:
    """Items, questions and targets, checked on creation and immutable.

    Attributes
    ----------
    name
        The name in results.
    items
        A table, whose rows are the items (modality ``"table"``), or a series of texts, entity
        labels, columns or whole tables; its index are the ids.
    questions
        One row per question, one column per field, cells are item ids or bags ``{id: weight}``.
    target
        One target per question, or None if it is hidden.
    kind
        Kind of the target: ``"classification"``, ``"regression"`` or ``"items"`` (ids).
    modality
        What the items are: ``"table"``, ``"text"``, ``"entity"``, ``"column"`` or ``"frame"``.
    group
        Questions of a group are never split; rankings are scored per group.
    part
        ``"train"`` or ``"test"`` per question, if the data have a fixed split.
    classes
        The class labels, sorted as text unless given; the last of two is the positive class.
    about
        Source, license, citation and checksum of the data.
    weight
        The weight of each question in training and in metrics, if they differ.
    roles
        The role of each field, such as ``("query", "document")``, for encoders that embed a query
        in another way than a document; see ``item_roles``.
    gain
        The relevance of each question's target, if the targets are items: 0 is not relevant.
        Default: all are relevant, with gain 1.
    passage_of
        The id of the document whose passage each item is, if items are passages. A document is
        named by its first passage, and its score is that of its best passage.
    identity
        A number per item: a query does not search items of its own number, such as itself in a
        corpus. Default: an item is only identical to itself.
    drawn_by
        What folds and samples of rows depend on besides the seed: ``"name"``, as for all defined
        datasets, or ``"target"``, the targets in the order of the rows, as for tables and columns
        of the user.
    """

    name: str
    items: pd.DataFrame | pd.Series
    questions: pd.DataFrame
    target: np.ndarray | None
    kind: str
    modality: str
    group: np.ndarray | None = None
    part: np.ndarray | None = None
    classes: tuple[Any, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    weight: np.ndarray | None = None
    roles: tuple[str, ...] = ()
    gain: np.ndarray | None = None
    passage_of: np.ndarray | None = None
    identity: np.ndarray | None = None
    drawn_by: str = "name"

    def __post_init__(self) -> None:
        choices = (("kind", KINDS), ("modality", MODALITIES), ("drawn_by", DRAWN_BY))
        for what, allowed in choices:
            value = getattr(self, what)
            if value not in allowed:
                raise DataError(
                    f'{self.name}: {what} must be one of {", ".join(allowed)}, got "{value}".'
                    + did_you_mean(str(value), allowed)
                )
        _check_items(self)
        if len(self.roles) > len(self.questions.columns):
            fields = ", ".join(map(str, self.questions.columns))
            raise DataError(f"{self.name}: {len(self.roles)} roles for the fields {fields}.")
        for name in QUESTION_VALUES:
            object.__setattr__(self, name, _checked_values(self, name))
        where = f'{self.name}: the field "'
        mentions = {
            name: find_items(self.questions[name], self.items.index, f'{where}{name}"')
            for name in self.questions.columns
        }
        object.__setattr__(self, "_mentions", mentions)
        if self.kind == "classification" and self.target is not None:
            object.__setattr__(
                self, "classes", self.classes or find_classes(self.name, self.target)
            )
        if self.target is not None and self.kind != "regression":
            allowed = self.items.index if self.kind == "items" else pd.Index(self.classes)
            unknown = allowed.get_indexer(pd.Index(self.target, tupleize_cols=False)) < 0
            if unknown.any():
                what = "not an item" if self.kind == "items" else "not one of its classes"
                raise DataError(f'{self.name}: the target "{self.target[unknown][0]}" is {what}.')

    # -- constructors -----------------------------------------------------------------------

    @classmethod
    def from_table(
        cls,
        table: pd.DataFrame,
        target: str | Sequence[object] | np.ndarray | pd.Series,
        *,
        name: str = "table",
        kind: str | None = None,
        positive: object = None,
        group: str | None = None,
        group_feature: bool = False,
        weight: str | None = None,
        drop: Sequence[str] = (),
        part: str | None = None,
        about: Mapping[str, str] | None = None,
    ) -> Dataset:
        """Return a dataset whose items are the rows of a table and whose target is one column.

        Parameters
        ----------
        table
            One row per item, a data frame of pandas or polars. Its index names the rows in stored
            predictions, if it is unique.
        target
            The target column, which is then not a feature; or a series, array or list with one
            value per row. A series of pandas is matched by its index.
        kind
            Kind of the target: ``"classification"`` or ``"regression"``. Default: inferred, with a
            warning if it is a guess.
        positive
            The positive class of two. Default: the last category of an ordered categorical column,
            otherwise the last label in alphabetical order.
        group
            Column of groups that are never split. It is not a feature.
        group_feature
            Whether the group is also a feature.
        weight
            Column of the weight of each row in training and in metrics. It is not a feature.
        drop
            Columns that are not features.
        part
            Column with ``"train"`` or ``"test"``, if the data have a fixed split. It is not a
            feature.
        about
            Source, license, citation and checksum.

        Raises
        ------
        DataError
            If a column is unknown, the table is empty, a target is missing, there is only one
            class, or there are several targets.

        >>> table = pd.DataFrame({"age": [31, 45], "churn": ["yes", "no"]})
        >>> Dataset.from_table(table, target="churn", name="churn")
        <Dataset churn: 2 rows, 1 feature, 2 classes>
        """
        table, target = attach_target(as_frame(table, name), target, name)
        names = _row_names(table.index)
        table = check_table(table, name)
        columns = {"group": group, "part": part, "weight": weight}
        drop = [drop] if isinstance(drop, str) else drop
        require_columns(table, [target, *(c for c in columns.values() if c), *drop], name)
        truth, kind, classes = _target_of(table, target, kind, name)
        hidden = [target, part, weight, *drop, *([] if group_feature else [group])]
        items = table.drop(columns=[c for c in dict.fromkeys(hidden) if c is not None])
        if not items.shape[1]:
            raise DataError(f'{name}: there is no column other than the target "{target}".')
        data = cls(
            name=name,
            items=items,
            questions=pd.DataFrame({"row": table.index}, index=names),
            target=truth,
            kind=kind,
            modality="table",
            classes=classes,
            drawn_by="target",
            about=about or {},
            **{what: table[column].to_numpy() for what, column in columns.items() if column},
        )
        return data if positive is None else data.with_positive(positive)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        target: str,
        *,
        test: str | Path | None = None,
        name: str | None = None,
        kind: str | None = None,
        positive: object = None,
        group: str | None = None,
        group_feature: bool = False,
        weight: str | None = None,
        drop: Sequence[str] = (),
        part: str | None = None,
        separator: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        encoding: str | None = None,
        dates: Sequence[str] | Mapping[str, str] | None = None,
        missing: Sequence[str] | None = None,
        numbers: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        keep: Sequence[str] | None = None,
        unanswered: str | None = None,
    ) -> Dataset:
        """Return a dataset whose items are the rows of a file; what is not given is inferred.

        A warning says how the file is written: another separator than the suffix says, decimal
        commas, thousands marks. One more per column says what is surprising about it: units,
        dates, leading zeros, another value in each row. ``about["reading"]`` has the first.

        Parameters
        ----------
        path
            A CSV or TSV file, or any other table that Karat reads (Parquet, ARFF, JSON).
        test
            A second file, whose rows are the test part; those of ``path`` are the train part.
        name
            Name of the dataset. Default: that of the file.
        target, kind, positive, group, group_feature, weight, drop, part
            As in ``from_table``.
        separator, decimal, thousands, encoding
            How the file is written. Default: inferred; the encoding is UTF-8, or UTF-16 if the
            file begins with its mark.
        dates
            Columns of dates, or a mapping of columns to formats such as ``"%d/%m/%Y"``. An empty
            list: none.
        missing
            Further texts that mean a missing value.
        numbers
            Columns of numbers, also if they have leading zeros.
        texts
            Columns of text, or the target if its labels are used as they are written.
        keep
            Columns that are features although they have another value in each row.
        unanswered
            ``"drop"`` leaves out rows without a target; by default they are an error.

        Raises
        ------
        DataError
            If the file cannot be read, or as in ``from_table``.
        DefinitionError
            If an option is wrong.
        """
        load = registry.load_object("karat.data.load_dataset:load_dataset")
        options = {
            "separator": separator,
            "decimal": decimal,
            "thousands": thousands,
            "encoding": encoding,
            "dates": dates,
            "missing": missing,
            "numbers": numbers,
            "texts": texts,
            "keep": keep,
            "unanswered": unanswered,
        }
        definition = {
            "path": str(path) if test is None else {"train": str(path), "test": str(test)},
            "target": target,
            "kind": kind,
            "positive": positive,
            "group": group,
            "group_feature": group_feature,
            "weight": weight,
            "drop": [drop] if isinstance(drop, str) else drop,
            "part": part,
            "options": _one_or_several(options),
        }
        data: Dataset = load(name or Path(path).name.partition(".")[0], definition)
        return data.with_drawn_by("target")

    @classmethod
    def from_columns(
        cls,
        frame: pd.DataFrame,
        fields: Sequence[str],
        target: str,
        *,
        name: str = "columns",
        kind: str | None = None,
        positive: object = None,
        modality: str = "text",
        group: str | None = None,
        weight: str | None = None,
        part: str | None = None,
        label: Callable[[str], str] | None = None,
        about: Mapping[str, str] | None = None,
    ) -> Dataset:
        """Return a dataset of texts or entities: each row is a question about its fields.

        Parameters
        ----------
        frame
            One row per question; its index is used as in ``from_table``.
        fields
            The columns that hold texts, entity ids or bags ``{id: weight}``.
        target, kind, positive, group, weight, part, about
            As in ``from_table``; ``kind`` may also be ``"items"`` (the target is an item).
        modality
            ``"text"`` or ``"entity"``.
        label
            A function that converts an entity id into text for text encoders.

        Raises
        ------
        DataError
            If a column is unknown or duplicate, or a cell or target is missing.

        >>> frame = pd.DataFrame({"a": ["hi", "yes"], "b": ["hello", "no"], "score": [0.9, 0.1]})
        >>> Dataset.from_columns(frame, ["a", "b"], "score", name="pairs", kind="regression")
        <Dataset pairs: 2 questions about 4 text items, numbers>
        """
        frame, names = _checked_frame(frame, name)
        fields = [fields] if isinstance(fields, str) else list(fields)
        _check_fields(fields, name)
        columns = {"group": group, "part": part, "weight": weight}
        require_columns(frame, [*fields, target, *(c for c in columns.values() if c)], name)
        truth, kind, classes = _target_of(frame, target, kind, name)
        cells = [flatten_cells(frame[c], f'{name}: the column "{c}"') for c in fields]
        values, codes = _numbered([c.ids for c in cells] + ([truth] if kind == "items" else []))
        if modality == "text":
            items = pd.Series(values, dtype=object)
            mentioned = {c: cells[i].renamed(codes[i]) for i, c in enumerate(fields)}
            truth = codes[-1] if kind == "items" else truth
        else:
            labels = [label(t) for t in values] if label else values
            items = pd.Series(labels, index=pd.Index(values, tupleize_cols=False))
            mentioned = {c: frame[c].to_numpy() for c in fields}
        questions = _questions(mentioned, names)
        data = cls(
            name=name,
            items=items,
            questions=questions,
            target=truth,
            kind=kind,
            modality=modality,
            classes=classes,
            drawn_by="target",
            about=about or {},
            **{what: frame[column].to_numpy() for what, column in columns.items() if column},
        )
        return data if positive is None else data.with_positive(positive)

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[Any, pd.DataFrame],
        target: Mapping[Any, Any],
        *,
        name: str = "tables",
        kind: str | None = None,
        about: Mapping[str, str] | None = None,
    ) -> Dataset:
        """Return a dataset whose items are columns or whole tables.

        Parameters
        ----------
        tables
            The tables by name. ``table.attrs["caption"]``, if set, is the caption.
        target
            ``{(table, column): value}`` asks about columns, ``{table: value}`` about tables. A
            column is its header or its position. Columns and tables without a target are left out.
        kind, about
            As in ``from_table``.

        Returns
        -------
        Dataset
            The group of a column is its table: the columns of one table stay on one side of a
            split.

        Raises
        ------
        DataError
            If a table or column is unknown, a header is ambiguous, or as in ``from_table``.

        >>> cities = pd.DataFrame({"name": ["Rome", "Oslo"], "people": [2.8, 0.7]})
        >>> target = {("cities", "name"): "city", ("cities", "people"): "population"}
        >>> Dataset.from_tables({"cities": cities}, target, name="types")
        <Dataset types: 2 questions about 2 column items, 2 classes>
        """
        if len(target) == 0:
            raise DataError(f"{name}: there is no target.")
        places, values = find_targets(tables, target, name)
        columns = isinstance(next(iter(target)), tuple)
        items = (column_items if columns else frame_items)(tables).iloc[places]
        values = pd.Series(values, dtype=object).infer_objects().to_frame("target")
        truth, kind, classes = _target_of(values, "target", kind, name)
        owners = [column.attrs["table"] for column in items] if columns else None
        return cls(
            name=name,
            items=items,
            questions=pd.DataFrame({"item": items.index}, index=items.index),
            target=truth,
            kind=kind,
            modality="column" if columns else "frame",
            group=None if owners is None else np.array(owners, dtype=object),
            classes=classes,
            about=about or {},
        )

    @classmethod
    def from_corpus(
        cls,
        documents: pd.DataFrame | pd.Series | Mapping[Any, str],
        queries: pd.DataFrame | pd.Series | Mapping[Any, str],
        judgments: pd.DataFrame,
        *,
        name: str = "corpus",
        passages: int | None = None,
        overlap: int = 0,
        about: Mapping[str, str] | None = None,
    ) -> Dataset:
        """Return a dataset for retrieval: each query asks for its relevant documents.

        Parameters
        ----------
        documents
            A frame with the columns ``id``, ``text`` and optionally ``title``, or texts by id.
        queries
            A frame with the columns ``id`` and ``text``, or texts by id.
        judgments
            A frame with the columns ``query``, ``document`` and optionally ``relevance`` (0 is not
            relevant, higher grades are more relevant).
        passages
            Split documents into passages of this number of words; a document has the score of its
            best passage. Default: documents are not split.
        overlap
            Number of words that two adjacent passages share.

        Raises
        ------
        DataError
            If an id is duplicate, or no query has a relevant document.

        >>> documents = {"a": "how to bake bread", "b": "how to plant trees"}
        >>> judgments = pd.DataFrame({"query": ["q"], "document": ["a"]})
        >>> Dataset.from_corpus(documents, {"q": "bread"}, judgments)
        <Dataset corpus: 1 question about 3 text items, items>
        """
        make = registry.corpora.get("dataset")
        data: Dataset = make(documents, queries, judgments, name, about, passages, overlap)
        return data

    # -- properties -------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.questions)

    def __repr__(self) -> str:
        answers = (
            f"{len(self.classes)} classes" if self.kind == "classification" else self.target_type
        )
        return f"<Dataset {self.name}: {self._size()}, {answers}>"

    def _repr_html_(self) -> str:
        facts = {
            "size": self._size(),
            "target": ", ".join(map(str, self.classes[:SHOWN_CLASSES])) or self.target_type,
            "classes": len(self.classes) if self.kind == "classification" else None,
            "positive class": self.positive,
        }
        items = self.items
        first = (
            items.head() if isinstance(items, pd.DataFrame) else pd.DataFrame({"item": items[:5]})
        )
        return facts_html(f"Dataset {self.name}", facts, [first])

    def _size(self) -> str:
        """Return the numbers of rows and features, or those of questions and items."""
        if self.is_plain_table:
            return f"{len(self):,} rows, {count(self.items.shape[1], 'feature')}"
        questions = count(len(self), "question")
        return f"{questions} about {count(len(self.items), f'{self.modality} item')}"

    @property
    def is_plain_table(self) -> bool:
        """Whether every row of a table is one question, so that messages speak of rows."""
        single = self.questions.shape[1] == 1 and len(self) == len(self.items)
        return self.modality == "table" and single

    @property
    def noun(self) -> str:
        """What messages call that which is predicted: rows of a table, else questions."""
        return "rows" if self.is_plain_table else "questions"

    @property
    def target_type(self) -> str:
        """The type of the target's values: ``"classes"``, ``"numbers"`` or ``"items"``."""
        return {"classification": "classes", "regression": "numbers"}.get(self.kind, self.kind)

    @property
    def positive(self) -> Any:
        """The positive class: the last of two; None if there are not two classes."""
        two = self.kind == "classification" and len(self.classes) == 2
        return self.classes[-1] if two else None

    @property
    def fields(self) -> list[str]:
        """The names of the questions' fields."""
        return list(self._mentions)  # type: ignore[attr-defined]

    def mentions(self, field: str) -> Bags:
        """Return the positions of the items in a field of the questions."""
        return self._mentions[field]  # type: ignore[attr-defined]

    def mentioned(self) -> np.ndarray:
        """Return the sorted positions of all items in the questions.

        If the target is an item, these are all items: any of them may be the answer.
        """
        if self.kind == "items":
            return np.arange(len(self.items))
        is_mentioned = np.zeros(len(self.items), dtype=bool)
        for name in self.fields:
            is_mentioned[self.mentions(name).rows] = True
        return np.flatnonzero(is_mentioned)

    def asked(self) -> np.ndarray:
        """Return the sorted positions of all query items.

        If the targets are items, a subset keeps the query items of the whole dataset: a query in
        one subset is a candidate in none.
        """
        inherited: np.ndarray | None = self.__dict__.get("_asked")
        return self._own() if inherited is None else inherited

    def _own(self) -> np.ndarray:
        return np.unique(np.concatenate([self.mentions(name).rows for name in self.fields]))

    def learnable(self) -> np.ndarray:
        """Return the sorted positions of the items an encoder may be fitted on.

        These are all items of the questions; if the target is an item, all items except the queries
        of other subsets.
        """
        if self.kind != "items":
            return self.mentioned()
        fine = np.ones(len(self.items), dtype=bool)
        fine[self.asked()] = False
        fine[self._own()] = True
        if self.target is not None:
            fine[self.items.index.get_indexer(pd.Index(self.target, tupleize_cols=False))] = True
        return np.flatnonzero(fine)

    def role_of(self, field: str) -> str:
        """Return the role of a field, or an empty string."""
        roles = dict(zip(self.fields, self.roles, strict=False))
        return roles.get(field, "")

    @cached_property
    def item_roles(self) -> ItemRoles:
        """The roles in which the items are embedded.

        The items of a field have its role. If a field is a query, all other items are documents:
        those of the other fields, the targets, and items that no question mentions. A subset keeps
        the roles of the whole dataset.
        """
        roles = self.roles + (DOCUMENT,) * (len(self.fields) - len(self.roles))
        rows = [self.mentions(name).rows for name in self.fields]
        main = np.full(len(self.items), "", dtype=object)
        if not {QUERY, QUERY_AND_DOCUMENT} & set(roles):
            for role, places in zip(self.roles, rows, strict=False):
                main[places] = role
            return ItemRoles(main, np.empty(0, dtype=np.intp))
        query, document = np.zeros((2, len(self.items)), dtype=bool)
        for role, places in zip(roles, rows, strict=True):
            query[places] |= role != DOCUMENT
            document[places] |= role != QUERY
        if self.kind == "items" and self.target is not None:
            targets = pd.Index(self.target, tupleize_cols=False)
            document[self.items.index.get_indexer(targets)] = True
        main[:] = DOCUMENT
        main[query & ~document] = QUERY
        return ItemRoles(main, np.flatnonzero(query & document))

    @cached_property
    def documents(self) -> np.ndarray | None:
        """The position of the document of each item, if items are passages; otherwise None."""
        if self.passage_of is None:
            return None
        places = self.items.index.get_indexer(pd.Index(self.passage_of, tupleize_cols=False))
        if (places < 0).any():
            unknown = self.passage_of[np.argmax(places < 0)]
            raise DataError(f'{self.name}: passage_of names an unknown item "{unknown}".')
        return np.asarray(places)

    @cached_property
    def tables(self) -> np.ndarray | None:
        """The table of each item, if the items are columns; otherwise their identity, if any."""
        return table_names(self.items) if self.modality == "column" else self.identity

    def frame(self) -> pd.DataFrame | pd.Series:
        """Return the items in the order of the questions; only for one field without bags."""
        if len(self.fields) != 1:
            raise DataError(
                f"{self.name} has questions with {len(self.fields)} fields, expected one."
            )
        bags = self.mentions(self.fields[0])
        if len(bags.rows) != len(self):
            raise DataError(f"{self.name} has questions with bags of items, expected single items.")
        return self.items.iloc[bags.rows]

    @cached_property
    def items_fingerprint(self) -> str:
        """A hash of the items."""
        return fingerprint(self.items)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything a score depends on: name, items, questions, target, group, part.

        The revision of the source, if it is known, is part of it.
        """
        facts = (self.name, self.target_type, self.modality, self.classes, self.fields)
        digest = hashlib.sha256(repr(facts).encode())
        digest.update(self.items_fingerprint.encode())
        for name in self.fields:
            cells = self.questions[name].reset_index(drop=True)
            if holds_bags(cells):
                bags = flatten_cells(cells, name)
                digest.update(bags.weights.tobytes() + bags.sizes.tobytes())
                cells = pd.Series(bags.ids)
            digest.update(fingerprint(cells).encode())
        if "_asked" in self.__dict__ and len(self.asked()) > len(self._own()):
            digest.update(self.asked().tobytes())
        for values in (self.target, self.group, self.part):
            digest.update(b"-" if values is None else fingerprint(pd.Series(values)).encode())
        for name in ("weight", "gain"):
            if (numbers := getattr(self, name)) is not None:
                digest.update(name.encode() + numbers.tobytes())
        for values in (self.passage_of, self.identity):
            if values is not None:
                digest.update(fingerprint(pd.Series(values)).encode())
        if revision := self.about.get("revision"):
            digest.update(f"revision {revision}".encode())
        return digest.hexdigest()

    @property
    def draw_key(self) -> str:
        """What folds and samples of rows depend on besides the seed: the name, or the targets."""
        if self.drawn_by == "name":
            return self.name
        digest = hashlib.sha256(f"{len(self)} rows".encode())
        if self.target is not None and self.target.dtype.kind in "iufb":
            digest.update(np.ascontiguousarray(self.target, dtype="<f8").tobytes())
        elif self.target is not None:
            digest.update("\0".join(map(str, self.target)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @cached_property
    def mentions_digest(self) -> str:
        """A hash of the items of all questions, cheaper than ``fingerprint``."""
        digest = hashlib.blake2b(repr(self.roles).encode(), digest_size=16)
        for bags in self._mentions.values():  # type: ignore[attr-defined]
            for part in (bags.rows, bags.offsets, bags.weights):
                digest.update(f"{part.dtype} {part.shape}".encode() + part.tobytes())
        return digest.hexdigest()

    # -- subsets ----------------------------------------------------------------------------

    def take(self, rows: np.ndarray) -> Dataset:
        """Return the dataset with only these questions, in this order."""
        rows = np.asarray(rows)
        part = copy.copy(self)
        for name in ("fingerprint", "mentions_digest"):
            part.__dict__.pop(name, None)
        mentions = {name: bags.take(rows) for name, bags in self._mentions.items()}  # type: ignore[attr-defined]
        changes: dict[str, Any] = {
            "questions": self.questions.iloc[rows],
            "_mentions": mentions,
            **({"_asked": self.asked()} if self.kind == "items" else {}),
            **({"item_roles": self.item_roles} if self.roles else {}),
        }
        for name in QUESTION_VALUES:
            changes[name] = None if getattr(self, name) is None else getattr(self, name)[rows]
        for name, value in changes.items():
            object.__setattr__(part, name, value)
        return part

    def with_drawn_by(self, drawn_by: str) -> Dataset:
        """Return the dataset whose folds depend on its name or on its targets."""
        other = copy.copy(self)
        object.__setattr__(other, "drawn_by", drawn_by)
        return other

    def with_roles(self, roles: Sequence[str]) -> Dataset:
        """Return the dataset with other roles of its fields."""
        return replace(self, roles=tuple(roles))

    def with_positive(self, label: object) -> Dataset:
        """Return the dataset with another positive class; there must be two classes."""
        if self.kind != "classification":
            raise DataError(
                f"{self.name}: a positive class needs classes, the target is {self.target_type}.",
                value=str(label),
            )
        return replace(self, classes=put_last(self.classes, label, self.name))

    def shares(self) -> dict[Any, float]:
        """Return the share of each class, also if the target is hidden."""
        if self.target is None:
            return dict(self.__dict__.get("_shares", {}))
        if self.kind != "classification":
            return {}
        return {label: float(np.mean(self.target == label)) for label in self.classes}

    def blind(self) -> Dataset:
        """Return the dataset without the target; the classes and their shares remain."""
        part = copy.copy(self)
        part.__dict__.pop("fingerprint", None)
        object.__setattr__(part, "_shares", self.shares())
        object.__setattr__(part, "target", None)
        return part

    def sample(self, rows: int, rng: np.random.Generator) -> Dataset:
        """Return a stratified random sample of at most this many questions.

        Groups stay whole, and at least one is kept even if it has more rows. Items without
        questions are dropped.
        """
        if rows < 1:
            raise DataError(f"{self.name}: the number of rows must be >= 1, got {rows}.")
        if rows >= len(self):
            return self
        classes = self.target if self.kind == "classification" else None
        sample = self.take(sample_rows(len(self), rows, rng, classes, self.group))
        if self.kind == "items":  # any item may be the answer
            return sample
        return replace(sample, items=sample.items.iloc[sample.mentioned()])


def _target_of(
    table: pd.DataFrame, target: object, kind: str | None, name: str
) -> tuple[Any, str, tuple[Any, ...]]:
    """Return the values and the kind of a target column, and the order of its classes, if any."""
    where = f'{name}: the target "{target}"'
    column = number_target(table[target], kind, where)
    truth = target_values(column, kind, where, str(target))
    kind = kind or infer_kind(truth, name)
    return truth, kind, ordered_classes(column, truth) if kind == "classification" else ()


def _one_or_several(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are set; a single column or text of a list is a list of one."""
    lists = ("missing", "numbers", "texts", "keep")
    return {
        name: [value] if name in lists and isinstance(value, str) else value
        for name, value in options.items()
        if value is not None
    }


def _row_names(index: pd.Index) -> pd.Index | None:
    """Return the names of rows; None if they are not unique."""
    named = index.nlevels == 1 and index.is_unique and not index.hasnans
    return index.rename(None) if named else None


def _checked_frame(frame: pd.DataFrame, name: str) -> tuple[pd.DataFrame, pd.Index | None]:
    """Return a table and the names of its rows; None if they are not unique."""
    frame = as_frame(frame, name)
    return check_table(frame, name), _row_names(frame.index)


def _questions(fields: Mapping[str, Any], names: pd.Index | None) -> pd.DataFrame:
    questions = pd.DataFrame(fields)
    questions.index = questions.index if names is None else names
    return questions


def _numbered(columns: list[np.ndarray]) -> tuple[list[Any], list[np.ndarray]]:
    """Return the distinct values of some columns, and each column as indices into them."""
    together = np.concatenate([np.asarray(column, dtype=object) for column in columns])
    codes, values = pd.factorize(together)
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return values.tolist(), np.split(codes, ends)


def _check_items(data: Dataset) -> None:
    wanted = pd.DataFrame if data.modality == "table" else pd.Series
    if not isinstance(data.items, wanted):
        raise DataError(
            f"{data.name}: items of modality {data.modality} must be a {wanted.__name__}, "
            f"got a {type(data.items).__name__}."
        )
    if isinstance(data.items, pd.DataFrame):
        check_names(data.items.columns, data.name)
    elif data.modality in ITEM_TYPES:
        check_cells(data.items, data.modality, data.name)
    if not len(data.questions):
        raise DataError(f"{data.name} is empty: it has no questions.")
    _check_fields(list(data.questions.columns), data.name)
    if not data.items.index.is_unique:
        duplicate = data.items.index[data.items.index.duplicated()][0]
        raise DataError(f'{data.name}: duplicate item id "{duplicate}".')


def _check_fields(fields: list[Any], name: str) -> None:
    if not fields:
        raise DataError(f"{name}: the questions have no fields; name their columns.")
    for field_name in fields:
        if fields.count(field_name) > 1:
            raise DataError(f'{name}: duplicate field "{field_name}".')


def _checked_values(data: Dataset, what: str) -> np.ndarray | None:
    values = getattr(data, what)
    if values is None:
        return None
    if len(values) != len(data.questions):
        raise DataError(
            f"{data.name}: {len(values)} values of {what} for {len(data.questions)} {data.noun}."
        )
    column = pd.Series(values).reset_index(drop=True)
    if what == "target":
        return np.asarray(target_values(column, data.kind, f"{data.name}: the target"))
    empty = column.isna().to_numpy()
    if empty.any():
        first, unit = int(np.flatnonzero(empty)[0]), data.noun.removesuffix("s")
        raise DataError(f"{data.name}: the {what} of {unit} {first} is missing; fill it.")
    if what in ("weight", "gain"):
        return _checked_weights(column, what, data.name)
    invalid = [] if what == "group" else sorted(set(map(str, column)) - set(PARTS))
    if invalid:
        raise DataError(f'{data.name}: part must be "train" or "test", got "{invalid[0]}".')
    return column.to_numpy()


def _checked_weights(column: pd.Series, what: str, name: str) -> np.ndarray:
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f'{name}: a {what} must be a number >= 0, got "{column[row]}" (row {row}).')
    if not numbers.sum() > 0:
        raise DataError(f"{name}: all values of {what} are 0.")
    return numbers


def sample_rows(
    size: int,
    wanted: int,
    rng: np.random.Generator,
    classes: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    nested: bool = False,
) -> np.ndarray:
    """Return the sorted positions of at most ``wanted`` of ``size`` rows.

    With classes, the sample is stratified, with at least one row per class if possible. Groups are
    drawn whole; without groups the number is exact. If every group is larger than ``wanted``, the
    smallest one is returned.

    A ``nested`` draw contains every smaller one of the same generator: groups are drawn in order
    until one does not fit, and the first is always included.

    >>> sample_rows(6, 2, np.random.default_rng(0), classes=np.array(list("aaaaab"))).tolist()[1]
    5
    """
    codes = None if classes is None else pd.factorize(classes)[0]
    if groups is not None:
        groups = pd.factorize(groups)[0]
        chosen = _choose_groups(groups, wanted, _group_order(groups, codes, rng), nested)
        return np.flatnonzero(np.isin(groups, chosen))
    shuffled = rng.permutation(size)
    if codes is None or (wanted <= codes.max() and not nested):
        return np.sort(shuffled[:wanted])
    codes = codes[shuffled]
    counts = np.bincount(codes)
    turn = np.empty(size, dtype=np.intp)
    turn[np.argsort(codes, kind="stable")] = np.arange(size) - np.repeat(
        np.cumsum(counts) - counts, counts
    )
    # classes interleave in proportion: the place of a row is its quantile in its class
    quantile = (turn + 0.5) / counts[codes]
    return np.sort(shuffled[np.lexsort((quantile, turn > 0))[:wanted]])


def _choose_groups(
    groups: np.ndarray, wanted: int, order: np.ndarray, nested: bool
) -> Sequence[int]:
    sizes = np.bincount(groups)
    fitting = int(np.searchsorted(np.cumsum(sizes[order]), wanted, side="right"))
    if nested:
        return list(order[: max(1, fitting)])
    chosen = list(order[:fitting])
    remaining = wanted - int(sizes[chosen].sum())
    for group in order[fitting:]:
        if remaining < sizes.min():
            break
        if sizes[group] <= remaining:
            chosen.append(group)
            remaining -= int(sizes[group])
    return chosen or [order[np.argmin(sizes[order])]]


def _group_order(
    groups: np.ndarray, codes: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """Return a random order; the groups that are the first to contain a class come first."""
    order = rng.permutation(groups.max() + 1)
    if codes is None:
        return order
    position = np.empty(len(order), dtype=np.intp)
    position[order] = np.arange(len(order))
    shows = np.full(codes.max() + 1, len(order))
    np.minimum.at(shows, codes, position[groups])
    return order[np.argsort(~np.isin(np.arange(len(order)), shows), kind="stable")]
