"""The evaluator: embed a task's texts once or per fold, and train heads on the vectors."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.compat.ulysses.result_files import aggregate, frame
from karat.compat.ulysses.tasks import (
    SUITE,
    Encode,
    PerFold,
    StoredRows,
    Texts,
    Training,
    WrongArgument,
    as_rows,
    chosen,
    columns_of,
    composed,
    find,
    load_texts,
    method_of,
    place,
    rule_of,
    store,
)
from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.core.registry import accepts
from karat.core.task import Suite, Task
from karat.core.torch_random import bootstrap_seed
from karat.errors import ContractError, DataError, KaratError, KaratWarning
from karat.execution.evaluation import evaluate
from karat.execution.progress import choose_progress
from karat.execution.runner import Stopped
from karat.models.model import Model, object_identity
from karat.results.run import Run

SPLITS = ("all", "train", "eval", "test")

Arguments = Mapping[str, Any] | None
Statistics = dict[str, Any]


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
        found: dict[str, Statistics] = {}
        tables, errors = [], list[KaratError]()
        for task in self.tasks:
            texts = loaded.pop(task)
            try:
                found[task], table = self._run(texts, training, kwargs_embed, ignore_cached)
                tables.append(table)
            except Stopped:
                raise
            except KaratError as error:
                errors.append(error)
        if not found:
            raise errors[0]
        for reason in errors:
            warnings.warn(str(reason), stacklevel=2)
        return (found, pd.concat(tables, ignore_index=True)) if return_all_results else found

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
        found, table = self._run(texts, training, kwargs_embed, ignore_cached)
        return (found, table) if return_all_results else found

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
        separator = rule_of(task).separator
        columns = columns_of(X_a, X_b, separator)
        options = X_b is not None and separator is not None
        return composed(columns, encode, options, f"{type(self).__name__}.embed")

    def _encode(self, texts: list[str], arguments: Mapping[str, Any]) -> Any:
        model = self.sentence_model
        if isinstance(model, str) or not callable(getattr(model, "encode", None)):
            found = Catalog().model(model)
            if found.unavailable:
                raise ContractError(found.unavailable)
            model = found.prototype
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
        given, task = dict(arguments or {}), texts.rule.task
        path = folder / f"{task}.npy"
        if self.cache_embed_key is not None:
            facts = [texts.digest(), repr(sorted(given.items())), method_of(type(self).embed)]
            path = place(self.cache_dir, self.cache_embed_key, task, facts)
            cached = None if ignore_cached else find(path, len(texts.a))
            if cached is not None:
                return cached
        rows = self.embed(texts.a, texts.b, task, "all", **given)
        return store(path, as_rows(rows, len(texts.a), f"{type(self).__name__}.embed"))

    def _run(
        self, texts: Texts, training: Training, arguments: Arguments, ignore_cached: bool
    ) -> tuple[Statistics, pd.DataFrame]:
        rule, head = texts.rule, training.head(texts.rule.hidden_dims)
        with tempfile.TemporaryDirectory(prefix="karat-", ignore_cleanup_errors=True) as scratch:
            folder = Path(scratch)
            workers = 0 if training.workers == 1 else training.workers
            if self.lazy_embedding:
                prototype: Any = PerFold(self, rule.task, head, arguments or {}, training.seed)
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
                    output=self.runs_dir or folder / "runs",
                    resume=self.runs_dir is not None,
                    cache=False,
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
            texts = columns_of(X_a, X_b, rule_of(task).separator)
            self.fitted_ = clone(self.sentence_model, safe=False)
            self.fitted_.fit([text for column in texts for text in column])
        if not hasattr(self, "fitted_"):
            raise WrongArgument('the vectorizer is not fitted; call embed with "train" first.')
        given = _accepted(self.fitted_.transform, kwargs)
        return self._composed(X_a, X_b, task, lambda texts: self.fitted_.transform(texts, **given))


def _absolute(path: str | Path) -> Path:
    return Path(os.path.expandvars(path)).expanduser().absolute()


def _accepted(method: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
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
