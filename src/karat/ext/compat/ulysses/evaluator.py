"""The evaluator of Ulysses SentEval: its parameters and tasks, embedded texts, trained heads.

Texts are embedded once, or per fold by an encoder that is fitted.
"""

from __future__ import annotations

import copy
import hashlib
import io
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.core.digest import sha256_of
from karat.core.embeddings import check_vectors, distinct_texts
from karat.core.files import safe_name
from karat.core.registry import accepts, build
from karat.core.task import Suite, Task
from karat.core.writing import write_atomic
from karat.data.download import fetch_first
from karat.data.load_dataset import load_dataset
from karat.errors import (
    ContractError,
    DataError,
    DefinitionError,
    KaratError,
    KaratWarning,
    Unavailable,
    did_you_mean,
)
from karat.execution.arguments import Output
from karat.execution.evaluation import evaluate
from karat.execution.progress import choose_progress
from karat.execution.session import Stopped
from karat.ext.compat.ulysses.adamw import MASTER, AdamW, bootstrap_seed
from karat.ext.compat.ulysses.result_files import aggregate, frame
from karat.models.model import Model, StatelessEncoder
from karat.models.model_identity import object_identity
from karat.probes.trained import concat, interaction, single
from karat.results.run import Run

#: default of ``hidden_dims``: the hidden layers of the task definition
OF_THE_TASK = "of the task"
SUITE = "ulysses"
#: options of the head that the original does not have
FLAGS = ("stratified_eval", "restore_best", "train_metric")
#: the number of seeds of a run
SEEDS = 2**31 - 1
Encode = Callable[[list[str]], Any]
SPLITS = ("all", "train", "eval", "test")
Arguments = Mapping[str, Any] | None
Statistics = dict[str, Any]


class WrongArgument(DefinitionError, ValueError):
    """An invalid argument; also a ValueError, as in the original."""


@dataclass(frozen=True)
class Training:
    """How heads are trained; the defaults are those of the published results.

    ``mode: exact`` replays the original's splits, weights and shuffles; ``fast`` its splits only.
    Heads are always trained on the CPU; ``device`` is ignored.
    """

    n_processes: int = 5
    batch_size: int = 128
    hidden_dims: Sequence[int] | str | None = OF_THE_TASK
    eval_frac: float = 0.20
    device: Any = "auto"
    show_progress_bar: bool = True
    n_repeats: int = 10
    k_fold: int = 5
    n_epochs: int = 100
    tenacity: int = 5
    early_stopping_rel_improv: float = 0.0025
    random_state: int = MASTER
    mode: str = "exact"
    stratified_eval: bool = False
    restore_best: bool = False
    train_metric: bool = False

    @classmethod
    def of(cls, arguments: Mapping[str, Any] | None, alone: bool) -> Training:
        """Return checked parameters; with ``alone``, there is one process only."""
        arguments = {} if arguments is None else dict(arguments)
        if alone and "n_processes" in arguments:
            raise WrongArgument(
                "kwargs_train: n_processes conflicts with disable_multiprocessing=True; omit one."
            )
        try:
            training = build(
                "kwargs_train", cls, {"n_processes": 1} | arguments if alone else arguments, {}
            )
            training.check()
        except DefinitionError as error:
            raise WrongArgument(*error.messages) from error
        if str(training.device) not in ("auto", "cpu"):
            warnings.warn(
                f"device {str(training.device)!r} is ignored: heads are trained on the CPU. The "
                f"device of the sentence model does not change.",
                stacklevel=3,
            )
        return training

    def check(self) -> None:
        """Raise if a value is invalid."""
        minimum = {"batch_size": 1, "n_repeats": 1, "k_fold": 2, "n_epochs": 1, "tenacity": 0}
        for name, least in {**minimum, "random_state": 0, "n_processes": None}.items():
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool):
                raise DefinitionError(f"kwargs_train: {name} must be an integer, got {value!r}.")
            if least is not None and int(value) < least:
                raise DefinitionError(f"kwargs_train: {name} must be >= {least}, got {value}.")
        if self.random_state >= 2**32:
            raise DefinitionError("kwargs_train: random_state must be below 2**32.")
        for name in ("eval_frac", "early_stopping_rel_improv"):
            value = getattr(self, name)
            if not isinstance(value, Real):
                raise DefinitionError(f"kwargs_train: {name} must be a number, got {value!r}.")
        for name in FLAGS:
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise DefinitionError(f"kwargs_train: {name} must be true or false.")
        dims = [] if self.hidden_dims in (None, OF_THE_TASK) else self.hidden_dims
        listed = isinstance(dims, Sequence) and not isinstance(dims, str)
        if not listed or not all(isinstance(size, Integral) for size in dims):
            raise DefinitionError(f"kwargs_train: hidden_dims must be a list, got {dims!r}.")
        AdamW(**self.head([]))

    @property
    def seed(self) -> int:
        """The seed of the run; models get this seed plus their fold."""
        return int(self.random_state) % SEEDS

    @property
    def workers(self) -> int:
        """The number of processes, at least one."""
        return max(1, int(self.n_processes))

    def split(self) -> dict[str, Any]:
        """Return the split that replays the original's folds."""
        counts = {"folds": int(self.k_fold), "repeats": int(self.n_repeats)}
        return {"use": "senteval", **counts, "seed": int(self.random_state)}

    def head(self, of_the_task: Sequence[int] | None) -> dict[str, Any]:
        """Return the parameters of the head; the task's hidden layers are the default."""
        dims = of_the_task if isinstance(self.hidden_dims, str) else self.hidden_dims
        return {
            "mode": self.mode,
            "hidden_dims": list(dims or ()),
            "batch_size": int(self.batch_size),
            "eval_frac": self.eval_frac,
            "n_epochs": int(self.n_epochs),
            "tenacity": int(self.tenacity),
            "early_stopping_rel_improv": self.early_stopping_rel_improv,
            "seed": int(self.random_state),
            "folds": int(self.k_fold),
            **{name: bool(getattr(self, name)) for name in FLAGS},
        }


@dataclass(frozen=True)
class TaskRule:
    """The hidden layers of a task, and the separator of its options."""

    task: str
    hidden_dims: tuple[int, ...]
    separator: str | None


@dataclass(frozen=True)
class Texts:
    """The texts of a task, single or in pairs, and their labels."""

    rule: TaskRule
    a: list[str]
    b: list[str] | None
    data: Dataset

    def _dataset(self, items: pd.DataFrame | pd.Series, modality: str) -> Dataset:
        return Dataset(
            name=self.rule.task,
            items=items,
            questions=pd.DataFrame({"row": items.index}),
            target=self.data.target,
            kind="classification",
            modality=modality,
            classes=self.data.classes,
            about=self.data.about,
        )

    def rows(self) -> Dataset:
        """Return a dataset of row numbers."""
        return self._dataset(pd.Series(np.arange(len(self.a)).astype(str)), "entity")

    def table(self) -> Dataset:
        """Return a dataset of the texts."""
        columns = {"a": self.a} if self.b is None else {"a": self.a, "b": self.b}
        return self._dataset(pd.DataFrame(columns, dtype=object), "table")

    def digest(self) -> str:
        """Return a hash of the texts."""
        hashed = hashlib.sha256()
        for text in (*self.a, "", *(self.b or ())):
            encoded = text.encode("utf-8", "surrogatepass")
            hashed.update(len(encoded).to_bytes(8, "little") + encoded)
        return hashed.hexdigest()


def chosen(wanted: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of the selected tasks, without duplicates."""
    available = list(Catalog().definitions.get("suites", SUITE)["tasks"])
    if isinstance(wanted, str):
        wanted = available if wanted == "all" else [wanted]
    names = tuple(dict.fromkeys(wanted))
    for name in names:
        if name not in available:
            raise WrongArgument(
                f"unknown task {name!r}.{did_you_mean(str(name), available)} "
                f"Available: {', '.join(available)}."
            )
    if not names:
        raise WrongArgument(f"no task given. Available: {', '.join(available)}.")
    return names


@cache
def task_rule(task: str) -> TaskRule:
    """Return the hidden layers and the option separator of a task."""
    definition = Catalog().task(task)
    probe: Any = definition.probe
    loader: Any = definition.dataset
    options = loader.definition.get("options") or {}
    return TaskRule(task, tuple(probe["head"].get("hidden_dims") or ()), options.get("options"))


def load_texts(task: str, folder: Path) -> Texts:
    """Return the texts of a task, from a CSV file in the folder or from the task's sources.

    A downloaded file is copied into the folder. The options of a question are joined, as in the
    file.
    """
    rule = task_rule(task)
    loader: Any = Catalog().task(task).dataset
    definition = loader.definition
    local_file = folder / next(s["folder"] for s in definition["sources"] if "folder" in s)
    if local_file.is_file():
        local = {**definition, "sources": None, "path": str(local_file.absolute())}
        data = load_dataset(task, local)
    else:
        try:
            data = replace(loader(), name=task)
        except Unavailable as error:
            raise Unavailable(
                f"{task}: put the file into data_dir_path, as {local_file}. Otherwise: {error}"
            ) from error
        _copy_download(task, definition["sources"], local_file)
    columns = [data.items.iloc[data.mentions(name).rows].tolist() for name in data.fields]
    second = columns[1] if columns[1:] else None
    if second is not None and rule.separator is not None:
        second = [rule.separator.join(options) for options in zip(*columns[1:], strict=True)]
    return Texts(rule, columns[0], second, data)


def _copy_download(task: str, sources: Sequence[Mapping[str, Any]], target: Path) -> None:
    path, source = fetch_first(task, sources)
    if not source.remote:
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(target, path.read_bytes())
    except OSError as error:
        warnings.warn(f"cannot write {target} ({error.strerror}); {path} is used.", stacklevel=4)


def as_rows(values: object, rows: int, name: str) -> np.ndarray:
    """Return embedded rows as a float32 matrix.

    >>> as_rows([[1, 2]], 1, "embed").dtype
    dtype('float32')
    """
    with np.errstate(over="ignore"):  # overflow becomes infinity, which is an error below
        matrix = check_vectors(values, rows, name).astype(np.float32, copy=False)
    broken = ~np.isfinite(matrix).all(axis=1)
    if broken.any():
        raise ContractError(
            f"{name} returned NaN or infinity in {int(broken.sum())} of {rows} rows (first: row "
            f"{int(np.argmax(broken))}); every text needs a finite vector."
        )
    return matrix


def _columns_of(
    a: Sequence[str], b: Sequence[str] | None, separator: str | None
) -> list[list[str]]:
    """Return the columns to embed: one text, two texts, or a text and its options."""
    if b is None:
        return [list(a)]
    if separator is None:
        return [list(a), list(b)]
    options = [text.split(separator) for text in b]
    for row, cells in enumerate(options):
        if len(cells) != len(options[0]):
            raise DataError(
                f"row {row} has {len(cells)} options but row 0 has {len(options[0])}; all "
                f'questions need the same number of options, separated by "{separator}".'
            )
    return [list(a), *map(list, zip(*options, strict=True))]


def composed(columns: Sequence[list[str]], encode: Encode, chosen: bool, name: str) -> np.ndarray:
    """Return one row per question: (a), (a, b, |a − b|, a · b), or (a, b1 … bk) with options.

    Each distinct text is encoded once.
    """
    codes, texts = distinct_texts([text for column in columns for text in column])
    matrix = as_rows(encode(texts), len(texts), name)
    parts = [matrix[part] for part in np.split(codes, len(columns))]
    compose = concat if chosen else single if len(parts) == 1 else interaction
    return compose(*parts)


class StoredRows(StatelessEncoder):
    """Embedded rows in a file; items are row numbers."""

    takes = ("entity",)

    def __init__(self, path: str, digest: str) -> None:
        self.path = path
        self.digest = digest

    def transform(self, items: Sequence[str]) -> np.ndarray:
        """Return the rows of the items."""
        matrix = np.load(self.path, mmap_mode="r", allow_pickle=False)
        return np.asarray(matrix[np.asarray(items, dtype=int)])

    def fingerprint(self) -> str:
        """Return a hash of the rows."""
        return self.digest


def store(path: Path, matrix: np.ndarray) -> StoredRows:
    """Write rows atomically and return their encoder."""
    buffer = io.BytesIO()
    np.save(buffer, matrix, allow_pickle=False)
    write_atomic(path, buffer.getvalue())
    return _stored(path, matrix)


def _stored(path: Path, matrix: np.ndarray) -> StoredRows:
    return StoredRows(str(path), sha256_of(np.ascontiguousarray(matrix).data))


def find(path: Path, rows: int) -> StoredRows | None:
    """Return the encoder of cached rows, or None if they are missing or invalid."""
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
        valid = matrix.ndim == 2 and len(matrix) == rows and matrix.dtype == np.float32
        return _stored(path, matrix) if valid else None
    except (OSError, ValueError, EOFError):
        return None


def place(folder: Path, key: str, task: str, facts: Sequence[Any]) -> Path:
    """Return the cache file of a task's rows, which depends on the facts."""
    digest = sha256_of(repr(list(facts)), length=16)
    return folder / safe_name(key) / f"{task}-{digest}.npy"


def method_of(embed: Callable[..., object]) -> str:
    """Return the qualified name and the bytecode of a method, to detect changes of it."""
    code = getattr(getattr(embed, "__func__", embed), "__code__", None)
    named = f"{getattr(embed, '__module__', '')}.{getattr(embed, '__qualname__', '')}"
    return f"{named} {_instructions(code)}" if isinstance(code, CodeType) else named


def _instructions(code: CodeType) -> str:
    parts = [_instructions(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return repr((code.co_code.hex(), code.co_names, parts))


@dataclass(eq=False)
class PerFold:
    """Embed the train rows, then the eval rows, train the head, and embed the test rows last."""

    takes: ClassVar = ("table",)
    embedder: Any
    task: str
    head: Mapping[str, Any]
    arguments: Mapping[str, Any]
    seed: int
    random_state: int | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> PerFold:
        # share the sentence model, but not what the embedder learns in a fold
        return PerFold(
            embedder=copy.copy(self.embedder),
            task=self.task,
            head=self.head,
            arguments=self.arguments,
            seed=self.seed,
        )

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> PerFold:
        """Embed the train and eval rows, and train the head."""
        seed = int(self.random_state or 0)
        self.head_ = AdamW(**self.head, fold=(seed - self.seed) % SEEDS, random_state=seed)
        held, train = self.head_.hold_out(np.asarray(y), np.arange(len(X)))
        trained = self._embed(X.iloc[train], "train")
        judged = self._embed(X.iloc[held], "eval")
        labels = np.asarray(y)[np.concatenate([held, train])]
        self.head_.fit(np.vstack([judged, trained]), labels, judges=len(held))
        self.classes_ = self.head_.classes_
        self.history_, self.notes_ = self.head_.history_, self.head_.notes_
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return the most likely classes."""
        return self.predict_both(X)[0]

    def predict_both(self, X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return the most likely classes and all probabilities."""
        return self.head_.predict_both(self._embed(X, "test"))

    def _embed(self, X: pd.DataFrame, part: str) -> np.ndarray:
        a = X["a"].tolist()
        b = X["b"].tolist() if "b" in X else None
        rows = self.embedder.embed(a, b, self.task, part, **self.arguments)
        return as_rows(rows, len(X), f"{type(self.embedder).__name__}.embed")


# -- evaluation -------------------------------------------------------------------------------


class UlyssesSentEval:
    """Evaluate a sentence model on the tasks of Ulysses SentEval.

    Parameters
    ----------
    sentence_model
        An object with ``encode``, a function, vectors by text, or the name of a model.
    tasks
        ``"all"``, one task, or several, such as ``["F1A", "T3"]``.
    data_dir_path
        Folder of the CSV files; missing files are searched in ``KARAT_DATA``, then downloaded into
        this folder. ``~`` and environment variables are expanded, here and in ``cache_dir``.
    cache_embed_key
        Name under which the model's vectors are cached in ``cache_dir``. Other texts, arguments
        or embedding methods have other cache entries.
    lazy_embedding
        Call ``embed`` in every fold, for its train, eval and test texts in that order.
    runs_dir
        Folder for run folders with all predictions; unfinished runs in it are resumed.
    """

    def __init__(
        self,
        sentence_model: Any,
        *,
        tasks: str | Iterable[str] = "all",
        data_dir_path: str | Path = "./ulysses_senteval_datasets",
        cache_embed_key: str | None = None,
        cache_dir: str | Path = "./cache",
        disable_multiprocessing: bool = False,
        lazy_embedding: bool = False,
        runs_dir: str | Path | None = None,
    ) -> None:
        self.sentence_model = sentence_model
        self.tasks = chosen(tasks)
        self.data_dir_path = _absolute(data_dir_path)
        self.cache_embed_key = cache_embed_key
        self.cache_dir = _absolute(cache_dir)
        self.disable_multiprocessing = disable_multiprocessing
        self.lazy_embedding = lazy_embedding
        self.runs_dir = None if runs_dir is None else _absolute(runs_dir)
        if not lazy_embedding:
            return
        if cache_embed_key is not None:
            warnings.warn(
                "cache_embed_key is ignored: vectors computed per fold are not cached.",
                UserWarning,
                stacklevel=2,
            )
        if type(self).embed is UlyssesSentEval.embed:
            warnings.warn(
                "lazy_embedding has no effect on the scores: the method embed does not depend on "
                "data_split. Override it, or use UlyssesSentEvalLazy for a vectorizer.",
                UserWarning,
                stacklevel=2,
            )

    def evaluate(
        self,
        *,
        kwargs_embed: Arguments = None,
        kwargs_train: Arguments = None,
        return_all_results: bool = False,
        ignore_cached: bool = False,
    ) -> Any:
        """Return the 20 statistics of each task, and with ``return_all_results`` the frame too.

        All data are loaded before anything is embedded. A task that fails gives a warning; if all
        fail, the first error is raised.

        Parameters
        ----------
        kwargs_embed
            Passed to ``embed``, which passes them to the sentence model.
        kwargs_train
            n_processes (5), batch_size (128), hidden_dims (from the task), eval_frac (0.20),
            device, show_progress_bar (True), n_repeats (10), k_fold (5), n_epochs (100), tenacity
            (5), early_stopping_rel_improv (0.0025), random_state (9847706), mode ("exact"). Not in
            the original: stratified_eval (False) keeps the classes of train rows balanced,
            restore_best (False) tests the weights of the best epoch instead of the last, and
            train_metric (False) adds the curve ``metric_per_epoch_train``.
        ignore_cached
            Compute cached vectors again and replace them.
        """
        training = Training.of(kwargs_train, self.disable_multiprocessing)
        loaded = {task: load_texts(task, self.data_dir_path) for task in self.tasks}
        statistics: dict[str, Statistics] = {}
        tables, errors = [], list[KaratError]()
        for task in self.tasks:
            texts = loaded.pop(task)
            try:
                statistics[task], table = self._run(texts, training, kwargs_embed, ignore_cached)
                tables.append(table)
            except Stopped:
                raise
            except KaratError as error:
                errors.append(error)
        if not statistics:
            raise errors[0]
        for reason in errors:
            warnings.warn(str(reason), stacklevel=2)
        return (
            (statistics, pd.concat(tables, ignore_index=True)) if return_all_results else statistics
        )

    def evaluate_in_task(
        self,
        task: str,
        *,
        kwargs_embed: Arguments = None,
        kwargs_train: Arguments = None,
        return_all_results: bool = False,
        ignore_cached: bool = False,
    ) -> Any:
        """Return the 20 statistics of one task, and with ``return_all_results`` the frame too."""
        (task,) = chosen([task])
        training = Training.of(kwargs_train, self.disable_multiprocessing)
        texts = load_texts(task, self.data_dir_path)
        statistics, table = self._run(texts, training, kwargs_embed, ignore_cached)
        return (statistics, table) if return_all_results else statistics

    def embed(
        self, X_a: list[str], X_b: list[str] | None, task: str, data_split: str, **kwargs: Any
    ) -> Any:
        """Return one row per question; subclasses may override this method.

        The sentence model encodes each distinct text once, with ``kwargs``. A row is (a) for single
        texts, (a, b, |a − b|, a · b) for pairs, and (a, b1 … bk) for a question and its options.
        ``data_split`` is ``"all"``, or with lazy embedding ``"train"``, ``"eval"`` or ``"test"``.
        """
        _check_split(data_split)
        return self._composed(X_a, X_b, task, lambda texts: self._encode(texts, kwargs))

    def _composed(
        self, X_a: list[str], X_b: list[str] | None, task: str, encode: Encode
    ) -> np.ndarray:
        separator = task_rule(task).separator
        columns = _columns_of(X_a, X_b, separator)
        options = X_b is not None and separator is not None
        return composed(columns, encode, options, f"{type(self).__name__}.embed")

    def _encode(self, texts: list[str], arguments: Mapping[str, Any]) -> Any:
        model = self.sentence_model
        if isinstance(model, str) or not callable(getattr(model, "encode", None)):
            resolved = Catalog().model(model)
            if resolved.unavailable:
                raise ContractError(resolved.unavailable)
            model = resolved.prototype
        if not callable(getattr(model, "encode", None)):
            raise ContractError(
                f"{type(model).__name__} has no method encode; for a vectorizer that must be "
                f"fitted use UlyssesSentEvalLazy."
            )
        return model.encode(texts, **arguments)

    def _embedded(
        self, texts: Texts, arguments: Arguments, folder: Path, ignore_cached: bool
    ) -> StoredRows:
        """Return the rows of all questions, from the cache if possible."""
        options, task = dict(arguments or {}), texts.rule.task
        path = folder / f"{task}.npy"
        if self.cache_embed_key is not None:
            facts = [texts.digest(), repr(sorted(options.items())), method_of(type(self).embed)]
            path = place(self.cache_dir, self.cache_embed_key, task, facts)
            cached = None if ignore_cached else find(path, len(texts.a))
            if cached is not None:
                return cached
        rows = self.embed(texts.a, texts.b, task, "all", **options)
        matrix = as_rows(rows, len(texts.a), f"{type(self).__name__}.embed")
        try:
            return store(path, matrix)
        except OSError as error:
            raise DataError(
                f"cannot write {path}: {error.strerror}; choose another cache_dir."
            ) from error

    def _run(
        self, texts: Texts, training: Training, arguments: Arguments, ignore_cached: bool
    ) -> tuple[Statistics, pd.DataFrame]:
        rule, head = texts.rule, training.head(texts.rule.hidden_dims)
        with tempfile.TemporaryDirectory(prefix="karat-", ignore_cleanup_errors=True) as scratch:
            folder = Path(scratch)
            workers = 0 if training.workers == 1 else training.workers
            if self.lazy_embedding:
                prototype: Any = PerFold(
                    self, rule.task, head, arguments=arguments or {}, seed=training.seed
                )
                data, role, takes = texts.table(), "predictor", PerFold.takes
                workers = workers and _sendable(prototype, workers)
            else:
                prototype = self._embedded(texts, arguments, folder, ignore_cached)
                data, role, takes = texts.rows(), "encoder", StoredRows.takes
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", KaratWarning)  # reported by _check_run
                (run,) = evaluate(
                    Model(self._name(), prototype, role, takes),
                    Suite(SUITE, (_exact_task(data, head, training),)),
                    seed=training.seed,
                    workers=workers,
                    output=Output(self.runs_dir or folder / "runs", cache=False),
                    resume=self.runs_dir is not None,
                    progress=choose_progress(quiet=not training.show_progress_bar),
                )
            _check_run(run, rule.task)
            table = frame(run)
        table = table[table["task"] == rule.task].reset_index(drop=True)
        seed = bootstrap_seed(training.n_repeats, training.random_state)
        return aggregate(table, seed=seed)[rule.task], table

    def _name(self) -> str:
        model = self if self.sentence_model is None else self.sentence_model
        return self.cache_embed_key or (model if isinstance(model, str) else type(model).__name__)


class UlyssesSentEvalLazy(UlyssesSentEval):
    """The same for vectorizers, which are cloned and fitted on the training texts of each fold."""

    def __init__(self, sentence_model: Any, **kwargs: Any) -> None:
        super().__init__(sentence_model, **{**kwargs, "lazy_embedding": True})

    def _check_vectorizer(self) -> None:
        missing = [
            name
            for name in ("fit", "transform")
            if not callable(getattr(self.sentence_model, name, None))
        ]
        if missing:
            model = self.sentence_model
            named = repr(model) if isinstance(model, str) else type(model).__name__
            raise ContractError(
                f"{named} has no method {' or '.join(missing)}; for a sentence model that encodes "
                f"texts without being fitted use UlyssesSentEval."
            )

    def embed(
        self, X_a: list[str], X_b: list[str] | None, task: str, data_split: str, **kwargs: Any
    ) -> Any:
        """Fit a clone on the ``"train"`` texts, and transform the texts of the split.

        ``transform`` gets those ``kwargs`` that it accepts; others are ignored with a warning.
        """
        from sklearn.base import clone

        _check_split(data_split)
        if data_split == "all":
            raise WrongArgument('data_split must be "train", "eval" or "test", got "all".')
        if data_split == "train":
            texts = _columns_of(X_a, X_b, task_rule(task).separator)
            self._check_vectorizer()
            self.fitted_ = clone(self.sentence_model, safe=False)
            self.fitted_.fit([text for column in texts for text in column])
        if not hasattr(self, "fitted_"):
            raise WrongArgument('the vectorizer is not fitted; call embed with "train" first.')
        options = _accepted(self.fitted_.transform, kwargs)
        return self._composed(
            X_a, X_b, task, lambda texts: self.fitted_.transform(texts, **options)
        )


def _absolute(path: str | Path) -> Path:
    return Path(os.path.expandvars(path)).expanduser().absolute()


def _accepted(method: Callable[..., object], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a method accepts; warn about the others."""
    names, has_any = accepts(method)
    unknown = [] if has_any else [name for name in arguments if name not in names]
    if unknown:
        warnings.warn(
            f"kwargs_embed: {', '.join(unknown)} ignored, the vectorizer's transform does not "
            f"accept it.",
            UserWarning,
            stacklevel=3,
        )
    return {name: value for name, value in arguments.items() if name not in unknown}


def _sendable(prototype: PerFold, workers: int) -> int:
    if object_identity(prototype) is not None:
        return workers
    warnings.warn("the embedder cannot be pickled; using one process.", stacklevel=4)
    return 0


def _exact_task(data: Dataset, head: Mapping[str, Any], training: Training) -> Task:
    """Return the catalog's task with embedded rows and replayed folds."""
    probe = {"use": "trained", "head": {"use": "adamw", **head}, "compose": "single"}
    return replace(
        Catalog().task(data.name),
        dataset=data,
        probe={**probe, "scale": "plain"},
        split=training.split(),
    )


def _check_run(run: Run, task: str) -> None:
    """Raise if all folds failed; warn if some did."""
    records = [record for record in run.records() if record["task"] == task]
    bad = [record for record in records if record["status"] != "ok"]
    if not bad:
        return
    message = f"{task}: {len(bad)} of {len(records)} folds failed: {bad[0]['info']}"
    if len(bad) == len(records):
        error = ContractError(message)
        log = run.log(bad[0])
        if log.is_file():
            error.add_note(log.read_text(encoding="utf-8"))
        raise error
    warnings.warn(message, stacklevel=4)


def _check_split(data_split: str) -> None:
    if data_split not in SPLITS:
        raise DataError(f"data_split must be one of {', '.join(SPLITS)}, got {data_split!r}.")
