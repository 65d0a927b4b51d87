"""The data of tasks of mteb as datasets: each subset and split of a task is one."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.errors import DataError, KaratError, Unavailable
from karat.models.model import import_extra

if TYPE_CHECKING:
    from datasets import Dataset as Rows
    from mteb import AbsTask

#: an item without text, which no model can find
NOTHING = "d:"
_RETRIEVAL_CLASSES = ("AbsTaskRetrieval",)
CLASSES = {
    "Classification": ("AbsTaskClassification",),
    "Clustering": ("AbsTaskClustering", "AbsTaskClusteringLegacy"),
    "PairClassification": ("AbsTaskPairClassification",),
    "Retrieval": _RETRIEVAL_CLASSES,
    "Reranking": _RETRIEVAL_CLASSES,
    "STS": ("AbsTaskSTS",),
    "Summarization": ("AbsTaskSummarization",),
    "BitextMining": ("AbsTaskBitextMining",),
}


@dataclass(frozen=True, eq=False)
class MtebData:
    """Load a subset and split of a task of mteb when called.

    ``declined`` is why it cannot be run.
    """

    task: Any
    subset: str
    split: str
    declined: str = ""

    @property
    def name(self) -> str:
        """The name of the task and its data, as in imported results."""
        return part_name(self.task.metadata.name, self.subset, self.split)

    def __call__(self) -> Dataset:
        """Return the dataset."""
        if self.declined:
            raise Unavailable(self.declined)
        self._load()
        try:
            data = LOADERS[self.task.metadata.type](self)
        except KaratError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            text = f"{self.name}: unexpected layout of the data: {type(error).__name__}: {error}"
            raise DataError(" ".join(text.split())) from error
        return replace(data, about=self._about())

    def _load(self) -> None:
        """Load all data of the task, by mteb."""
        task, where = self.task, self.task.metadata.dataset
        try:
            with quiet():
                task.load_data()
                if hasattr(task, "convert_v1_dataset_format_to_v2"):
                    task.convert_v1_dataset_format_to_v2(num_proc=None)
        except Exception as error:  # downloads, archives and code of mteb's tasks
            reason = " ".join(str(error).split())[:200]
            logging.getLogger(__name__).debug("mteb: load_data failed", exc_info=True)
            raise DataError(
                f"{self.name}: mteb cannot load {where.get('path')} at revision "
                f"{where.get('revision')} ({type(error).__name__}: {reason}). It is on the Hugging "
                f"Face hub: check the connection, or set HF_HOME to a folder that has it."
            ) from error

    def _about(self) -> dict[str, str]:
        metadata = self.task.metadata
        languages = metadata.hf_subsets_to_langscripts.get(self.subset, [])
        facts = {
            "title": metadata.name,
            "description": " ".join(str(metadata.description or "").split()),
            "language": ", ".join(languages),
            "license": metadata.license,
            "citation": metadata.bibtex_citation,
            "homepage": metadata.reference,
            "source": f"mteb: {metadata.dataset.get('path')}",
            "revision": metadata.dataset.get("revision"),
            "mteb_task": metadata.name,
            "mteb_subset": self.subset,
            "mteb_split": self.split,
            "mteb_version": import_extra("mteb", "mteb").__version__,
        }
        return {key: str(value) for key, value in facts.items() if value}

    def splits(self, subset: str | None = None) -> Any:
        """Return the splits of a subset."""
        subset, dataset = subset or self.subset, self.task.dataset
        return dataset[subset] if subset in dataset or subset != "default" else dataset

    def rows(self) -> Any:
        """Return the rows of the split."""
        return self.splits()[self.split]

    def made(self, texts: Sequence[Any], fields: Mapping[str, Any], **facts: Any) -> Dataset:
        """Return a dataset of texts; ``fields`` hold their positions."""
        items = pd.Series([None if text is None else str(text) for text in texts], dtype=object)
        questions = pd.DataFrame({name: list(cells) for name, cells in fields.items()})
        return Dataset(self.name, items, questions, modality="text", **facts)


@contextmanager
def quiet() -> Iterator[None]:
    """Show no warnings of mteb inside, such as that a task is in beta."""
    log = logging.getLogger("mteb")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def part_name(task: str, subset: str, split: str) -> str:
    """Return the name of a subset and split of a task.

    >>> part_name("STS17", "en-en", "test"), part_name("SICK-R", "default", "test")
    ('STS17 (en-en)', 'SICK-R')
    """
    parts = [subset] * (subset != "default") + [split] * (split != "test")
    return f"{task} ({', '.join(parts)})" if parts else task


def _distinct(*columns: Iterable[Any]) -> tuple[list[Any], list[np.ndarray]]:
    """Return the distinct texts of some columns, and each column as positions in them."""
    lists = [list(column) for column in columns]
    codes, values = pd.factorize(np.array([c for one in lists for c in one], dtype=object))
    return values.tolist(), np.split(codes, np.cumsum([len(one) for one in lists])[:-1])


def _classification(part: MtebData) -> Dataset:
    task, splits = part.task, part.splits()
    names = [task.train_split]
    if not task.is_cross_validation:
        names.append(part.split)
    labels = [label for name in names for label in splits[name][task.label_column_name]]
    texts, cells = _distinct(*(splits[name][task.input_column_name] for name in names))
    sides = np.repeat(["train", "test"][: len(names)], [len(side) for side in cells])
    return part.made(
        texts,
        {"text": np.concatenate(cells)},
        target=np.array(labels, dtype=object),
        kind="classification",
        part=None if task.is_cross_validation else sides,
    )


def _clustering(part: MtebData) -> Dataset:
    if abstract_class(part.task) == "AbsTaskClusteringLegacy":
        return _legacy_clustering(part)
    # mteb draws for all splits and subsets in turn from one generator
    rng = copy.deepcopy(part.task.rng_state)
    for split in part.task.eval_splits:
        for subset in part.task.hf_subsets:
            rows = part.splits(subset)[split]
            drawn = _draw_clusters(part.task, rows, rng)
            if (subset, split) == (part.subset, part.split):
                return _drawn_clusters(part, rows, *drawn)
    raise DataError(f"{part.name}: mteb does not evaluate this subset and split.")


def _draw_clusters(
    task: AbsTask, rows: Rows, rng: Any
) -> tuple[list[int], list[list[Any]], list[list[tuple[list[int], list[int]]]]]:
    """Return the drawn documents, their labels, and by level the documents of each experiment.

    The latter are positions among the documents that have a label at this level.
    """
    count, most = len(rows), task.max_document_to_embed
    if task.max_fraction_of_documents_to_embed is not None:
        most = int(task.max_fraction_of_documents_to_embed * count)
    drawn = list(range(count))
    if most is not None:
        drawn = rng.sample(range(count), k=min(count, most))
    column = list(rows[task.label_column_name])
    labels = [column[i] if isinstance(column[i], list) else [column[i]] for i in drawn]
    depth = max(map(len, labels))
    levels = []
    for level in range(depth if task.max_depth is None else min(task.max_depth, depth)):
        # a label of -1 means none, as mteb has it
        labeled = [i for i, path in enumerate(labels) if len(path) > level and path[level] != -1]
        size = task.max_documents_per_cluster
        levels.append(
            [(labeled, rng.choices(range(len(labeled)), k=size)) for _ in range(task.n_clusters)]
        )
    return drawn, labels, levels


def _drawn_clusters(
    part: MtebData,
    rows: Rows,
    drawn: list[int],
    labels: list[list[Any]],
    levels: list[list[tuple[list[int], list[int]]]],
) -> Dataset:
    column = list(rows[part.task.input_column_name])
    places, targets, groups, classes = [], [], [], []
    for level, experiments in enumerate(levels):
        level_labels = np.array(
            [f"{level}: {row[level]}" if len(row) > level else "" for row in labels]
        )
        for number, (labeled, chosen) in enumerate(experiments):
            documents = np.array(labeled)[chosen]
            places.append(documents)
            targets.append(level_labels[documents])
            groups += [f"{level}-{number}"] * len(chosen)
        classes += sorted(set(level_labels[experiments[0][0]].tolist()))
    return part.made(
        [column[i] for i in drawn],
        {"text": np.concatenate(places)},
        target=np.concatenate(targets).astype(object),
        kind="classification",
        group=np.array(groups, dtype=object),
        classes=tuple(classes),
    )


def _legacy_clustering(part: MtebData) -> Dataset:
    rows = part.rows()
    sets = list(rows[part.task.input_column_name])
    labels = [
        f"{number}: {label}"
        for number, members in enumerate(rows[part.task.label_column_name])
        for label in members
    ]
    texts, (cells,) = _distinct([text for members in sets for text in members])
    return part.made(
        texts,
        {"text": cells},
        target=np.array(labels, dtype=object),
        kind="classification",
        group=np.repeat(np.arange(len(sets)).astype(str), [len(members) for members in sets]),
        classes=tuple(sorted(set(labels))),
    )


def _pairs(part: MtebData) -> Dataset:
    task, rows = part.task, part.rows()
    rows = rows[0] if len(rows) == 1 else rows  # older data have all pairs in one row
    names = (task.input1_column_name, task.input2_column_name)
    texts, (one, other) = _distinct(*(rows[name] for name in names))
    target = np.array([int(label) for label in rows[task.label_column_name]])
    return part.made(
        texts, {"a": one, "b": other}, target=target, kind="classification", classes=(0, 1)
    )


def _sts(part: MtebData) -> Dataset:
    rows = part.rows()
    texts, (one, other) = _distinct(*(rows[name] for name in part.task.column_names))
    target = np.array(list(rows["score"]), dtype=float)
    return part.made(texts, {"a": one, "b": other}, target=target, kind="regression")


def _summarization(part: MtebData) -> Dataset:
    task, rows = part.task, part.rows()
    machine, human, scores = (
        [list(members) for members in rows[name]]
        for name in (
            task.machine_summaries_column_name,
            task.human_summaries_column_name,
            task.relevancy_column_name,
        )
    )
    sides = [[text for members in side for text in members] for side in (machine, human)]
    texts, (one, other) = _distinct(*sides)
    sizes = [len(members) for members in machine]
    bags = [
        {int(i): 1.0 for i in members}
        for members in np.split(other, np.cumsum([len(members) for members in human])[:-1])
    ]
    return part.made(
        texts,
        {
            "summary": one,
            "references": [bag for bag, n in zip(bags, sizes, strict=True) for _ in range(n)],
        },
        target=np.array([score for members in scores for score in members], dtype=float),
        kind="regression",
        group=np.repeat(np.arange(len(sizes)).astype(str), sizes),
    )


def _bitext(part: MtebData) -> Dataset:
    task = part.task
    names = ["sentence1", "sentence2"]
    if task.parallel_subsets:
        rows, names = task.dataset[part.split], part.subset.split("-")
    else:
        rows = part.rows()
    one, other = (list(rows[name]) for name in names)
    gold = rows["gold"] if isinstance(rows, dict) and "gold" in rows else None
    wanted = np.arange(len(one)) if gold is None else np.array([pair[1] for pair in gold])
    return part.made(
        [*one, *other], {"query": np.arange(len(one))}, target=len(one) + wanted, kind="items"
    )


def _retrieval(part: MtebData) -> Dataset:
    rows = part.rows()
    if rows.get("top_ranked") is not None:
        raise DataError(
            f"{part.name}: its queries have candidates, which only reranking tasks may."
        )
    queries, documents, judged = _search_data(rows)
    # of equal scores, mteb ranks the document with the highest id first, and the probe the first
    documents = dict(sorted(documents.items(), reverse=True))
    items: dict[str, Any] = {**queries, **documents, NOTHING: None}
    query_ids, wanted, gains = [], [], []
    for query, relevant in judged.items():
        # a document that the corpus lacks is not found; a query without a relevant one scores 0
        absent = {doc: f"x:{doc}" for doc in relevant if doc not in documents}
        pairs = [(absent.get(doc, doc), gain) for doc, gain in relevant.items() if gain > 0]
        pairs = pairs or [(NOTHING, 1)]
        items |= {doc: None for doc, _ in pairs if doc not in items}
        query_ids += [query] * len(pairs)
        wanted += [doc for doc, _ in pairs]
        gains += [gain for _, gain in pairs]
    identity = None
    if part.task.ignore_identical_ids:
        identity = pd.factorize(pd.Index(items).str[2:])[0]
    return Dataset(
        name=part.name,
        items=pd.Series(items, dtype=object),
        questions=pd.DataFrame({"query": query_ids}),
        target=np.array(wanted, dtype=object),
        kind="items",
        modality="text",
        gain=np.array(gains, dtype=float),
        identity=identity,
    )


def _reranking(part: MtebData) -> Dataset:
    rows = part.rows()
    if rows.get("top_ranked") is None:
        raise DataError(f"{part.name}: its queries have no candidates to rank.")
    queries, documents, judged = _search_data(rows)
    items: dict[str, Any] = {**queries, **documents, NOTHING: None}
    query_ids, document_ids, gains = [], [], []
    for query, relevant in judged.items():
        candidates = [f"d:{doc}" for doc in rows["top_ranked"].get(query[2:], ())]
        if part.task.ignore_identical_ids:
            candidates = [doc for doc in candidates if doc[2:] != query[2:]]
        pairs = [(doc, relevant.get(doc, 0)) for doc in dict.fromkeys(candidates)]
        # a relevant document that is not among the candidates is not found
        absent = [
            (f"x:{doc}", g) for doc, g in relevant.items() if g > 0 and doc not in {*candidates}
        ]
        items |= {doc: None for doc, _ in absent}
        pairs += absent
        if not any(gain > 0 for _, gain in pairs):
            pairs.append((NOTHING, 1))
        query_ids += [query] * len(pairs)
        document_ids += [doc for doc, _ in pairs]
        gains += [gain for _, gain in pairs]
    return Dataset(
        name=part.name,
        items=pd.Series(items, dtype=object),
        questions=pd.DataFrame({"query": query_ids, "document": document_ids}),
        target=np.array(gains, dtype=float),
        kind="regression",
        modality="text",
        group=np.array(query_ids, dtype=object),
    )


def _search_data(
    rows: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the texts of queries and documents by id, and the judgments of each query."""
    judged = {
        f"q:{query}": {f"d:{doc}": gain for doc, gain in relevant.items()}
        for query, relevant in rows["relevant_docs"].items()
        if relevant
    }
    queries = dict(_query_texts(rows["queries"]))
    judged = {query: judged[query] for query in queries if query in judged}
    return (
        {query: queries[query] for query in judged},
        dict(_document_texts(rows["corpus"])),
        judged,
    )


def _query_texts(rows: Rows) -> Iterator[tuple[str, str]]:
    texts = list(rows["text"])
    more = list(rows["instruction"]) if "instruction" in rows.column_names else [None] * len(texts)
    for query, text, instruction in zip(rows["id"], texts, more, strict=True):
        if isinstance(text, str):
            yield f"q:{query}", text if instruction is None else f"{text} {instruction}"
            continue
        turns = [
            turn if isinstance(turn, str) else f"{turn['role']}: {turn['content']}" for turn in text
        ]
        text = "; ".join(turns)
        yield f"q:{query}", text if instruction is None else f"{instruction} {text}"


def _document_texts(rows: Rows) -> Iterator[tuple[str, str]]:
    texts = list(rows["text"])
    titles = list(rows["title"]) if "title" in rows.column_names else [""] * len(texts)
    for document, text, title in zip(rows["id"], texts, titles, strict=True):
        yield f"d:{document}", f"{title} {text}".strip() if title else text.strip()


LOADERS: dict[str, Callable[[MtebData], Dataset]] = {
    "Classification": _classification,
    "Clustering": _clustering,
    "PairClassification": _pairs,
    "Retrieval": _retrieval,
    "Reranking": _reranking,
    "STS": _sts,
    "Summarization": _summarization,
    "BitextMining": _bitext,
}


def abstract_class(task: AbsTask) -> str | None:
    """Return the name of mteb's class that evaluates a task; None if it evaluates itself."""
    task_class = type(task)
    for base in task_class.__mro__:
        if base.__name__ in CLASSES[task.metadata.type]:
            steps = ("evaluate", "_evaluate_subset", "_compute_metrics", "_calculate_scores")
            same = (getattr(task_class, step, None) is getattr(base, step, None) for step in steps)
            return base.__name__ if all(same) else None
    return None
