"""What a page shows of single models and tasks: details of predictions and maps of vectors.

The models and tasks of a page are numbered; values are compact JSON within a budget of bytes.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.files import read_regular, safe_name
from karat.core.formatting import count, cut_text, plain, short
from karat.core.predictions import Predictions
from karat.errors import FAILURES, DataError, MissingExtra
from karat.results.item_tables import describe_item
from karat.results.run import Run
from karat.stats.paired_tests import average_ranks

# -- compact JSON and the index of a page ----------------------------------------------------

#: significant digits of a number
DIGITS = 6
#: characters that must be escaped inside a script element
_ESCAPES = str.maketrans({"<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029"})
#: maximum number of sentences of one kind
MAX_SENTENCES = 5
#: maximum number of classes of a confusion matrix; the rarest are merged
MAX_CLASSES = 30
BINS = 10
MAX_POINTS = 200
MAX_ROWS = 50
#: longer labels are cut
LABEL_WIDTH = 80
OTHER = "other"
#: a correct prediction with a lower confidence is listed too
LOW_CONFIDENCE = 0.5
#: number and predictions of a fold
Fold = tuple[int, Predictions]
#: characters of an item in a table and in the tip of a point
ITEM_WIDTH, POINT_WIDTH = 160, 80
#: bytes of details in a page, of predictions read per model and task, and of all predictions
DETAILS, READ_EACH, READ_ALL = 1_500_000, 10_000_000, 100_000_000
#: file of a job with the labels and first principal components of its test items
SAMPLE = "sample.csv"
#: bytes of all maps, points of one map, and labels with their own color
MAPS, MAPS_MAX_POINTS, MAX_LABELS = 800_000, 300, 30
#: a sample with fewer components has all components
COMPONENTS = 16
#: settings of UMAP; fewer items than the minimum are not projected
MIN_ITEMS, NEIGHBORS, SEED = 10, 15, 0


def compact(value: Any) -> Any:
    """Return plain lists, dicts, texts and rounded numbers; NaN and infinities become None.

    >>> compact({"a": (0.12345678, float("nan"), 2.0), "b": np.array([[1.5]])})
    {'a': [0.123457, None, 2], 'b': [[1.5]]}
    """
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return _rounded(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): compact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [compact(item) for item in value]
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "f":
        return [_rounded(item) for item in value.tolist()]  # fast path for most numbers of a page
    if isinstance(value, np.ndarray | np.generic):
        return compact(value.tolist())
    return clean(str(value))


def clean(text: str) -> str:
    r"""Replace lone surrogates, which cannot be encoded.

    >>> clean("a\ud800")
    'a�'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def to_json(value: Any) -> str:
    r"""Return JSON that is safe inside a script element.

    >>> print(to_json(["</script>", 1.5]))
    ["\u003c/script>",1.5]
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def size(value: Any) -> int:
    """Return the size of a value in the page, in bytes."""
    return len(to_json(value).encode())


def _rounded(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


@dataclass(frozen=True)
class ShownRun:
    """A run, the index of its model, the indices of its tasks by name, and its records."""

    run: Run
    model: int
    tasks: dict[str, int]
    records: list[dict[str, Any]]

    def jobs(self, *statuses: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the records of jobs with one of these statuses, each with the index of its task."""
        for record in self.records:
            if record["status"] in statuses and record["task"] in self.tasks:
                yield self.tasks[record["task"]], record


@dataclass(frozen=True)
class PageIndex:
    """Names in the order of the page; ``kinds`` are those of the tasks.

    ``runs`` of a model are in the order of their age, ``pool`` is how they were pooled.
    """

    models: list[str]
    tasks: list[str]
    kinds: list[str]
    runs: list[ShownRun] = field(default_factory=list)
    pool: str = "variant"

    @cached_property
    def _places(self) -> tuple[dict[str, int], dict[str, int]]:
        models, tasks = (enumerate(names) for names in (self.models, self.tasks))
        return {name: i for i, name in models}, {name: i for i, name in tasks}

    def model_place(self, name: Any) -> int | None:
        """Return the index of a model, or None."""
        return self._places[0].get(name)

    def task_place(self, name: Any) -> int | None:
        """Return the index of a task, or None."""
        return self._places[1].get(name)

    @cached_property
    def done(self) -> dict[tuple[int, int], tuple[Run, list[dict[str, Any]]]]:
        """The newest run and its records of successful jobs, by indices of task and model."""
        jobs: dict[tuple[int, int], tuple[Run, list[dict[str, Any]]]] = {}
        for run in reversed(self.runs):
            for task, record in run.jobs("ok"):
                newest, records = jobs.setdefault((task, run.model), (run.run, []))
                records += [record] if newest is run.run else []
        return jobs

    @property
    def failed(self) -> Iterator[tuple[ShownRun, int, dict[str, Any]]]:
        """The failed jobs with the indices of their tasks."""
        for run in self.runs:
            yield from ((run, task, record) for task, record in run.jobs(*FAILURES))

    @cached_property
    def _predicted(self) -> dict[int, set[str]]:
        """The tasks with stored predictions, of each run: names of folders."""
        return {
            id(page_run.run): _folders(page_run.run.folder / "predictions")
            for page_run in self.runs
        }

    def predicted(self) -> Iterator[tuple[int, int]]:
        """Yield ``rounds`` with stored predictions of the task."""
        for task, model in self.rounds():
            run, records = self.done[task, model]
            if safe_name(records[0]["task"]) in self._predicted[id(run)]:
                yield task, model

    def rounds(self) -> Iterator[tuple[int, int]]:
        """Yield indices of task and model: the best model of every task, then the next of each."""
        queues: dict[int, list[int]] = {}
        for task, model in sorted(self.done):
            queues.setdefault(task, []).append(model)
        for turn in range(max(map(len, queues.values()), default=0)):
            yield from ((task, queue[turn]) for task, queue in queues.items() if turn < len(queue))


def _folders(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


@dataclass
class _Budget:
    """The number of bytes left for a section of the page."""

    left: int

    def take(self, value: Any) -> bool:
        """Reserve room for a value; return False if there is too little."""
        needed = size(compact(value))
        if needed > self.left:
            return False
        self.left -= needed
        return True


def first_sentences(sentences: Sequence[str], more: Callable[[int], str]) -> list[str]:
    """Return the first sentences, and one that counts the others.

    >>> first_sentences(["a.", "b.", "c.", "d.", "e.", "f.", "g."], lambda n: f"{n} more.")[-2:]
    ['e.', '2 more.']
    """
    rest = len(sentences) - MAX_SENTENCES
    return [*sentences[:MAX_SENTENCES], *([more(rest)] if rest > 0 else [])]


# -- predictions -----------------------------------------------------------------------------


def details(folds: Sequence[Fold], kind: str) -> dict[str, Any]:
    """Return the details of the predictions of all folds; those that do not apply are None.

    ``kind`` is the kind of task: only in a regression are predictions on the scale of the target.
    """
    return {
        "confusion": confusion(folds),
        "calibration": calibration(folds),
        "scatter": scatter(folds),
        "rows": worst_rows(folds, kind),
    }


def confusion(folds: Sequence[Fold]) -> dict[str, Any] | None:
    """Return the confusion matrix over all folds, one row per true class."""
    if not folds or not all(answers.is_labeled for _, answers in folds):
        return None
    labels = sorted({label for _, answers in folds for label in answers.labels})
    number = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)))
    for _, answers in folds:
        places = np.array([number[label] for label in answers.labels], dtype=np.intp)
        weight = 1.0 if answers.weight is None else answers.weight
        np.add.at(counts, (places[answers.true_codes], places[answers.answered_codes]), weight)
    names, table = _merged(labels, counts)
    return {"classes": [cut_text(name, LABEL_WIDTH) for name in names], "counts": table}


def _merged(labels: list[str], counts: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Keep the most frequent classes and merge the others into one."""
    if len(labels) <= MAX_CLASSES:
        return labels, counts
    frequent = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[: MAX_CLASSES - 1])
    number = np.full(len(labels), len(frequent))
    number[frequent] = np.arange(len(frequent))
    table = np.zeros((MAX_CLASSES, MAX_CLASSES))
    np.add.at(table, (number[:, None], number[None, :]), counts)
    names = [labels[i] for i in frequent]
    return [*names, f"{OTHER} classes" if OTHER in names else OTHER], table


def calibration(folds: Sequence[Fold]) -> list[dict[str, float]] | None:
    """Return the accuracy of predictions by confidence, in ten bins; empty bins are left out.

    The confidence is the probability of the predicted class.
    """
    by_fold = [c for _, answers in folds if (c := answers.confidence) is not None]
    if not by_fold or len(by_fold) < len(folds):
        return None
    confidence = np.concatenate(by_fold)
    correct = np.concatenate([answers.predictions == answers.target for _, answers in folds])
    finite = np.isfinite(confidence)
    confidence, correct = confidence[finite], correct[finite].astype(float)
    bins = np.clip((confidence * BINS).astype(int), 0, BINS - 1)
    return [
        {
            "confidence": float(confidence[bins == b].mean()),
            "accuracy": float(correct[bins == b].mean()),
            "count": int((bins == b).sum()),
        }
        for b in np.unique(bins)
    ]


def scatter(folds: Sequence[Fold]) -> list[list[float]] | None:
    """Return pairs of numeric target and prediction, evenly sampled if there are many."""
    if not folds or not all(_numeric(answers) for _, answers in folds):
        return None
    pairs = np.concatenate([np.column_stack([p.target, p.predictions]) for _, p in folds])
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    picked = np.linspace(0, len(pairs) - 1, min(len(pairs), MAX_POINTS)).round().astype(int)
    points: list[list[float]] = pairs[picked].tolist()
    return points


def _numeric(answers: Predictions) -> bool:
    return answers.answers == "numbers" and answers.truths == "numbers"


def worst_rows(folds: Sequence[Fold], kind: str) -> list[list[Any]]:
    """Return fold, item, target, prediction and confidence of the worst predictions.

    The item is its key, or its row in the fold if the run stores no keys.

    Wrong labels are sorted by confidence, followed by correct ones with a confidence below 0.5.
    Numbers are sorted by their distance from the target (or the distance of their ranks, where the
    scales differ), items by the rank of the correct one.
    """
    rows_found: list[tuple[tuple[float, int, int], list[Any]]] = []
    for fold, answers in folds:
        errors = _errors(answers, kind)
        confidence = answers.confidence
        rows = np.arange(len(answers)) if answers.question is None else answers.question
        for i in np.argsort(-errors, kind="stable")[:MAX_ROWS].tolist():
            if errors[i] > 0:
                both = [_value(values[i]) for values in (answers.target, answers.predictions)]
                sure = None if confidence is None else float(confidence[i])
                item = int(rows[i]) if answers.key is None else str(answers.key[i])
                key = (-float(errors[i]), fold, int(rows[i]))
                rows_found.append((key, [fold, item, *both, sure]))
    rows_found.sort(key=lambda ranked_row: ranked_row[0])
    return [row for _, row in rows_found[:MAX_ROWS]]


def _errors(answers: Predictions, kind: str) -> np.ndarray:
    """Return the size of the error of each prediction; 0 for those not to list."""
    if not len(answers) or answers.answers == "clusters":
        return np.zeros(len(answers))
    if _numeric(answers):
        pair = [answers.target, answers.predictions]
        target, predicted = pair if kind == "regression" else map(average_ranks, pair)
        return np.nan_to_num(np.abs(target - predicted), nan=np.inf, posinf=np.inf)
    if answers.rank is not None:
        return np.nan_to_num(answers.rank - 1, nan=np.inf, posinf=np.inf)
    wrong = answers.predictions.astype(str) != answers.target.astype(str)
    confidence = answers.confidence
    if confidence is None:
        return wrong.astype(float)
    confidence = np.clip(np.nan_to_num(confidence), 0.0, 1.0)
    return np.where(wrong, 1 + confidence, np.maximum(LOW_CONFIDENCE - confidence, 0.0))


def _value(value: Any) -> Any:
    return cut_text(value, LABEL_WIDTH) if isinstance(value, str) else float(value)


@dataclass
class Reader:
    """Reads predictions up to a number of bytes, and records what could not be read."""

    left: int = READ_ALL
    damaged: list[str] = field(default_factory=list)
    large: list[str] = field(default_factory=list)

    def folds(self, run: Run, records: Sequence[dict[str, Any]], label: str) -> list[Fold]:
        """Return the predictions of the jobs, as many folds as there is room for."""
        folds: list[Fold] = []
        room = min(self.left, READ_EACH)
        for record in records:
            needed = _size(run, record)
            if needed is None:
                continue
            if needed > room:
                self.large.append(f"{label}: predictions of {count(len(folds), 'fold')} only.")
                break
            room, self.left = room - needed, self.left - needed
            folds += self._fold(run, record, label)
        return folds

    def _fold(self, run: Run, record: dict[str, Any], label: str) -> list[Fold]:
        try:
            return [(int(record["fold"]), run.predictions(record["task"], record["fold"]))]
        except Exception as error:  # a damaged file must not prevent the page
            why = plain(error) if isinstance(error, DataError) else type(error).__name__
            where = f"{label}, fold {record['fold']}"
            text = f"{where}: predictions cannot be read: {short(why, 160)}"
            self.damaged.append(f"{text.rstrip('.')}.")
            return []

    def details(self, folds: Sequence[Fold], kind: str, label: str) -> dict[str, Any] | None:
        """Return the details of predictions, or None if the folds are inconsistent."""
        try:
            return details(folds, kind)
        except Exception as error:  # as above
            self.damaged.append(f"{label}: inconsistent predictions: {short(error, 160)}.")
            return None


class ItemTexts:
    """Texts of items by key, read once per dataset; each is given once for all models of a task."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._tables: dict[Any, pd.DataFrame | None] = {}
        self._given: dict[int, set[str]] = {}

    def new(self, run: Run, name: str, task: int, keys: Sequence[Any]) -> dict[str, str]:
        """Return the texts of keys that were not shown yet, as far as the run keeps them."""
        table = self._table(run, name)
        if table is None:
            return {}
        already = self._given.get(task, set())
        wanted = [key for key in dict.fromkeys(map(str, keys)) if key not in already]
        places = table.index.get_indexer(pd.Index(wanted, dtype=object))
        pairs = zip(wanted, places, strict=True)
        return {key: describe_item(table.iloc[i], self.width) for key, i in pairs if i >= 0}

    def shown(self, task: int, texts: Mapping[str, str]) -> None:
        """Remember that these texts are on the page."""
        self._given.setdefault(task, set()).update(texts)

    def _table(self, run: Run, name: str) -> pd.DataFrame | None:
        tables = {task["name"]: task.get("item_table") for task in run.about["tasks"]}
        table_name = str(tables.get(name))  # the name of the file has a hash of the data
        if table_name not in self._tables:
            try:
                table = run.items(name)
                self._tables[table_name] = table if table.index.is_unique else None
            except DataError:
                return None
        return self._tables[table_name]


def make_details(
    page: PageIndex, max_bytes: int = DETAILS
) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Return the details by task, best models first, and notes on what was left out."""
    details: dict[int, list[dict[str, Any]]] = {}
    budget, reader, items = _Budget(max_bytes), Reader(), ItemTexts(ITEM_WIDTH)
    omitted = 0
    for task, model in page.predicted():
        run, records = page.done[task, model]
        if budget.left <= 0 or reader.left <= 0:
            omitted += any(_size(run, record) is not None for record in records)
            continue
        label = f"{short(page.models[model])} on {short(page.tasks[task])}"
        folds = reader.folds(run, records, label)
        detail = reader.details(folds, page.kinds[task], label) if folds else None
        if detail is None:
            continue
        keys = [row[1] for row in detail["rows"]]
        texts = items.new(run, records[0]["task"], task, keys)
        if budget.take(entry := {"model": model, **detail, "items": texts}):
            details.setdefault(task, []).append(entry)
            items.shown(task, texts)
        else:
            budget.left = 0  # do not fill the rest with smaller entries of worse models
            omitted += 1
    cut = first_sentences(reader.damaged, lambda n: f"{n} more prediction files cannot be read.")
    cut += first_sentences(reader.large, lambda n: f"{n} more with some folds only.")
    if omitted:
        pairs = count(omitted, "pair")
        cut.append(f"Predictions of {pairs} of model and task are left out (best models first).")
    for entries in details.values():
        entries.sort(key=lambda of_model: of_model["model"])
    return {str(task): details[task] for task in sorted(details)}, cut


def _size(run: Run, record: dict[str, Any]) -> int | None:
    path = run.artifact_folder("predictions", record) / "predictions.csv"
    try:
        return path.stat().st_size
    except OSError:
        return None


# -- maps of vectors -------------------------------------------------------------------------


def make_maps(page: PageIndex, umap: bool = False) -> tuple[list[dict[str, Any]], list[str]]:
    """Return maps of the first fold of each task, best models first, and notes on what is left out.

    A map shows the first two principal components; ``umap`` adds UMAP of the stored components.
    """
    if umap and find_spec("umap") is None:
        raise MissingExtra("umap-learn", "umap")
    maps_found: list[dict[str, Any]] = []
    damaged: list[str] = []
    budget, omitted, items = _Budget(MAPS), 0, ItemTexts(POINT_WIDTH)
    for task, model in page.predicted():
        run, records = page.done[task, model]
        try:
            sample = _sample(run, records[0])
        except (OSError, ValueError, KeyError, TypeError) as error:
            label = f"{short(page.models[model])} on {short(page.tasks[task])}"
            damaged.append(f"{label}: the map cannot be read: {short(plain(error), 160)}.")
            continue
        if sample is None:
            continue
        if budget.left <= 0:
            omitted += 1
            continue
        maps = [{"model": model, "task": task, **projection} for projection in _maps(sample, umap)]
        maps[0]["items"] = items.new(run, records[0]["task"], task, sample.keys or [])
        if budget.take(maps):
            maps_found += maps
            items.shown(task, maps[0]["items"])
        else:
            budget.left = 0
            omitted += 1
    cut = first_sentences(damaged, lambda n: f"{n} more maps cannot be read.")
    if omitted:
        cut.append(f"{count(omitted, 'map')} of vectors are left out (best models first).")
    return sorted(maps_found, key=lambda projection: (projection["task"], projection["model"])), cut


@dataclass(frozen=True)
class VectorSample:
    """Labels and first principal components of some items; whether labels are numbers.

    ``keys`` are those of the items, if stored.
    """

    labels: list[str]
    components: np.ndarray
    numbers: bool
    keys: list[str] | None = None

    @property
    def explained(self) -> list[float] | None:
        """The explained variance of the first two, if all components are stored."""
        total = float(self.components.var(axis=0).sum())
        if self.components.shape[1] >= COMPONENTS or not total:
            return None
        shares = (self.components.var(axis=0) / total).tolist()
        return [shares[0], shares[1] if len(shares) > 1 else 0.0]


def _sample(run: Run, record: dict[str, Any]) -> VectorSample | None:
    """Return the stored sample of a job, or None."""
    folder = run.artifact_folder("predictions", record)
    if not (folder / SAMPLE).resolve().is_relative_to(run.folder.resolve()):
        raise ValueError("the path leaves the run folder")
    try:
        table = pd.read_csv(
            io.BytesIO(read_regular(folder / SAMPLE)),
            dtype={"label": str, "key": str},
            keep_default_na=False,
        )
    except FileNotFoundError:
        return None
    names = [name for name in table if str(name).startswith("c") and str(name)[1:].isdecimal()]
    if "label" not in table or not names:
        raise ValueError('missing columns "label", c0, c1, ...')
    table = table.iloc[:MAPS_MAX_POINTS]
    components = table[names].to_numpy(dtype=float)
    if not np.isfinite(components).all():
        raise ValueError("a component is not a finite number")
    metadata = json.loads(read_regular(folder / "metadata.json"))
    keys = table["key"].tolist() if "key" in table else None
    return VectorSample(table["label"].tolist(), components, metadata["truths"] == "numbers", keys)


def _maps(sample: VectorSample, umap: bool) -> list[dict[str, Any]]:
    components = sample.components
    names, colors = color_by(sample.labels, sample.numbers)
    if components.shape[1] == 1:
        components = np.column_stack([components, np.zeros(len(components))])
    methods = {"pca": (components[:, :2], sample.explained)}
    if umap and len(components) >= MIN_ITEMS:
        methods["umap"] = (_umap(sample.components), None)
    return [
        {"method": name, "labels": names, "points": _points(xy, colors), "explained": explained}
        | ({} if sample.keys is None else {"keys": sample.keys})
        for name, (xy, explained) in methods.items()
    ]


def color_by(
    labels: list[str], numbers: bool = False
) -> tuple[list[str] | None, list[float | int | None]]:
    """Return the labels and the index of each item's label; for numbers None and the numbers.

    >>> color_by(["b", "a", "b"]), color_by(["1.5", ""], numbers=True)
    ((['a', 'b'], [1, 0, 1]), (None, [1.5, None]))
    """
    if numbers:
        return None, [float(label) if label else None for label in labels]
    counts = Counter(sorted(label for label in labels if label))
    number = MAX_LABELS if len(counts) <= MAX_LABELS else MAX_LABELS - 1
    frequent = sorted(name for name, _ in counts.most_common(number))
    color_of = {name: i for i, name in enumerate(frequent)}
    names = [cut_text(name, LABEL_WIDTH) for name in frequent]
    if len(counts) > len(frequent):
        names.append(OTHER)
    return names, [color_of.get(label, len(frequent)) if label else None for label in labels]


def _points(flat: np.ndarray, colors: list[float | int | None]) -> list[list[float | None]]:
    # four digits are enough for a screen
    scale = float(np.abs(flat).max(initial=0.0)) or 1.0
    digits = max(3 - math.floor(math.log10(scale)), 0)
    return [[*xy, c] for xy, c in zip(flat.round(digits).tolist(), colors, strict=True)]


def _umap(components: np.ndarray) -> np.ndarray:
    from umap import UMAP

    near = min(NEIGHBORS, len(components) - 1)
    umap = UMAP(n_neighbors=near, random_state=SEED, n_jobs=1, init="pca")
    return np.asarray(umap.fit_transform(components), dtype=float)
