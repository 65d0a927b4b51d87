"""Tasks and benchmarks of mteb as tasks of Karat: its data and its protocol, our scoring.

``mteb:STSBenchmark`` and ``mteb:MTEB(eng, v2)`` are names of suites. Each subset and split of a
task of mteb is one task, named as in imported results: ``STS17 (en-en)``.

Splitters and probes evaluate as MTEB does: its few-shot draws, and its clustering, reranking, pairs
and bitext mining; mteb itself is not needed for them. ``Encoder`` is a model of Karat as an encoder
of mteb.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from karat.config.catalog import Catalog
from karat.core.dataset import DOCUMENT, QUERY, Dataset
from karat.core.embeddings import Vectors, embed
from karat.core.predictions import Predictions
from karat.core.registry import probe, splitter, suite_source
from karat.core.task import Suite, Task
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.execution.splits import Fold
from karat.ext.compat.mteb.task_data import LOADERS, MtebData, abstract_class, quiet
from karat.models.model import import_extra
from karat.models.model_identity import encoder_identity
from karat.probes.retrieval import Nearest
from karat.probes.similarity import MEASURES, Similarity, mean_similarities
from karat.probes.trained import need_fields

if TYPE_CHECKING:
    from types import ModuleType

    from mteb import AbsTask, TaskMetadata
    from mteb.types import PromptType
    from sklearn.base import BaseEstimator

PREFIX = "mteb:"
#: metrics of a task besides its main score, by type
METRICS = {
    "Classification": ("acc", "f1_macro", "f1_weighted", "precision_weighted", "recall_weighted"),
    "Clustering": ("v_measure", "ami"),
    "PairClassification": ("max_ap", "max_f1", "max_accuracy", "max_precision", "max_recall"),
    "Retrieval": ("ndcg@10", "map@10", "mrr@10", "recall@10", "recall@100", "precision@10"),
    "Reranking": ("map@1000", "ndcg@10", "mrr@10"),
    "STS": ("spearman", "pearson"),
    "Summarization": ("spearman", "pearson"),
    "BitextMining": ("f1_weighted", "acc", "precision_weighted", "recall_weighted"),
}
#: metrics of pairs that are compared by their cosine only
ONE_MEASURE = ("pr_auc", "f1_best", "acc_best")
#: our names of main scores, where they differ
_SPEARMAN = {"cosine_spearman": "spearman", "cosine_pearson": "pearson"}
NAMES: dict[str, dict[str, str]] = {
    "Classification": {"accuracy": "acc", "f1": "f1_macro"},
    # a model of Karat has no similarity of its own but the cosine
    "PairClassification": {
        f"{measure}_{name}": ours
        for measure in ("similarity", "cosine")
        for name, ours in {"ap": "pr_auc", "f1": "f1_best", "accuracy": "acc_best"}.items()
    },
    "Retrieval": {"accuracy": "recall@1"},
    "Reranking": {"accuracy": "recall@1"},
    "STS": _SPEARMAN,
    "Summarization": _SPEARMAN,
    "BitextMining": {
        "accuracy": "acc",
        **{name: f"{name}_weighted" for name in ("f1", "precision", "recall")},
    },
}
#: parameters of logistic regression that Karat's head has, or that change nothing
_OF_HEAD = ("C", "max_iter", "random_state", "n_jobs", "verbose", "warm_start")
_PROBES = {
    "Retrieval": {"use": "nearest", "queries": "apart", "ties": "first"},
    "Reranking": {"use": "candidates"},
    "STS": {"use": "similarity", "unknown": "mean"},
    "Summarization": {"use": "similarity", "bags": "max", "unknown": "mean"},
    "BitextMining": {"use": "bitext", "queries": "apart"},
}
SEED = 42


@suite_source("mteb")
def suite(tasks: str | Any | Iterable[Any]) -> Suite:
    """Return tasks of mteb as a suite.

    Parameters
    ----------
    tasks
        The name of a task or benchmark of mteb, such as ``"STSBenchmark"`` or ``"MTEB(eng, v2)"``;
        or objects of mteb: a task, a benchmark, or a list of tasks.

    Raises
    ------
    MissingExtra
        If mteb is not installed.
    DefinitionError
        If there is no such task or benchmark, or Karat cannot run any of the tasks.
    """
    mteb = import_extra("mteb", "mteb")
    selected = _find(mteb, tasks.removeprefix(PREFIX)) if isinstance(tasks, str) else tasks
    name = getattr(getattr(selected, "metadata", selected), "name", None)
    listed = list(_single(getattr(selected, "tasks", None) or selected))
    reasons = {task.metadata.name: why for task in listed if (why := mteb_decline_reason(task))}
    if len(reasons) == len(listed):
        raise DefinitionError(*(f"{PREFIX}{task}: {why}." for task, why in reasons.items()))
    parts = [part for task in listed for part in _parts(task, reasons)]
    return Suite(f"{PREFIX}{name or 'custom'}", tuple(parts))


def _find(mteb: ModuleType, name: str) -> Any:
    """Return a task or a benchmark by name."""
    with quiet():
        benchmarks = {benchmark.name: benchmark for benchmark in mteb.get_benchmarks()}
        if name in benchmarks:
            return benchmarks[name]
        with suppress(KeyError):
            return mteb.get_task(name)
        names = [task.metadata.name for task in mteb.get_tasks(exclude_superseded=False)]
    hint = did_you_mean(name, [*names, *benchmarks])
    raise DefinitionError(f'mteb {mteb.__version__} has no task or benchmark "{name}".{hint}')


def _single(tasks: AbsTask | Iterable[AbsTask]) -> Iterator[Any]:
    """Yield tasks; an aggregate, such as CQADupstackRetrieval, is replaced by its tasks."""
    for task in [tasks] if hasattr(tasks, "metadata") else tasks:
        inner = getattr(task.metadata, "tasks", None)
        if inner:
            yield from _single(inner)
        else:
            yield task


def mteb_decline_reason(task: AbsTask) -> str:
    """Return why Karat cannot run a task of mteb, or an empty string."""
    metadata = task.metadata
    if metadata.type not in LOADERS:
        return f"Karat does not run tasks of the type {metadata.type}"
    if list(metadata.modalities) != ["text"]:
        return f"its data are {' and '.join(sorted(metadata.modalities))}, not text"
    if abstract_class(task) is None:
        return "it computes its scores in its own way"
    if not _main_metric(metadata):
        return f'Karat does not have its main score "{metadata.main_score}"'
    if getattr(task, "skip_first_result", False):
        return "it skips the first document of each query"
    if metadata.type == "Classification" and (other := _other_classifier(task.evaluator_model)):
        return f"it trains {other}, not logistic regression with default settings"
    if "Deprecated" in getattr(getattr(task, "evaluator", None), "__name__", ""):
        return "its evaluator is deprecated in mteb because of a bug; use a newer version of it"
    return ""


def _other_classifier(model: BaseEstimator) -> str:
    """Return the classifier of a task if it is not the head of Karat, or an empty string."""
    from sklearn.linear_model import LogisticRegression

    usual = LogisticRegression().get_params()
    params = model.get_params() if type(model) is LogisticRegression else {}
    differs = [key for key in usual if key not in _OF_HEAD and params.get(key) != usual[key]]
    return repr(model) if not params or differs else ""


def _main_metric(metadata: TaskMetadata) -> str:
    """Return our name of a task's main score, or an empty string."""
    name = NAMES.get(metadata.type, {}).get(metadata.main_score, metadata.main_score)
    if metadata.type in ("Retrieval", "Reranking"):
        name = re.sub("_at_([0-9]+)$", r"@\1", name)
        return name if re.fullmatch("(ndcg|map|mrr|recall|precision|hit_rate)@[0-9]+", name) else ""
    return name if name in (*METRICS[metadata.type], *ONE_MEASURE) else ""


def _parts(task: AbsTask, reasons: Mapping[str, str]) -> Iterator[Task]:
    """Yield a task for each subset and split."""
    reason = reasons.get(task.metadata.name, "")
    for split in task.eval_splits if not reason else ["test"]:
        for subset in task.hf_subsets if not reason else ["default"]:
            data = MtebData(task, subset, split, reason)
            yield Task(data.name, data, **({} if reason else _settings(task)))


def _settings(task: AbsTask) -> dict[str, Any]:
    """Return probe, split, metrics and more of a task."""
    metadata = task.metadata
    kind = re.sub("(?<=[a-z])(?=[A-Z])", "-", metadata.type).lower()
    usual: dict[str, Any] = {
        "kind": kind,
        "split": "all",
        "metrics": tuple(dict.fromkeys((_main_metric(metadata), *METRICS[metadata.type]))),
        "roles": _roles(task),
        "description": " ".join(str(metadata.description or "").split()),
        "missing": "penalize",
    }
    return usual | _PROTOCOLS.get(metadata.type, _plain_protocol)(task)


def _plain_protocol(task: AbsTask) -> dict[str, Any]:
    return {"probe": _PROBES[task.metadata.type]}


def _classification(task: AbsTask) -> dict[str, Any]:
    model, draws = task.evaluator_model, {"repeats": task.n_experiments}
    if task.is_cross_validation:
        draws = {"folds": task.n_splits}
    head = {"use": "logistic-regression", "C": model.C, "max_iter": model.max_iter}
    samples = {"samples": task.samples_per_label, "seed": task.seed}
    return {
        "probe": {"use": "trained", "head": head, "scale": "plain"},
        "split": {"use": "few-shot", **samples, **draws},
    }


def _clustering(task: AbsTask) -> dict[str, Any]:
    probe = {"use": "mteb-clustering", "batch_size": _batch(task), "seed": task.seed}
    legacy = abstract_class(task) == "AbsTaskClusteringLegacy"
    only = {"metrics": ("v_measure",)} if legacy else {}
    return {"probe": probe, "split": "each-group", **only}


def _pairs(task: AbsTask) -> dict[str, Any]:
    main = _main_metric(task.metadata)
    if main not in ONE_MEASURE:
        return {"probe": "mteb-pairs", "missing": "ignore"}
    return {"probe": "similarity", "metrics": tuple(dict.fromkeys((main, *ONE_MEASURE)))}


_PROTOCOLS = {
    "Classification": _classification,
    "Clustering": _clustering,
    "PairClassification": _pairs,
}


def _batch(task: AbsTask) -> int:
    """Return the batch size of k-means."""
    if hasattr(task, "k_mean_batch_size"):
        return int(task.k_mean_batch_size)
    parameters = inspect.signature(task.evaluator).parameters
    return int(parameters["clustering_batch_size"].default)


def _roles(task: AbsTask) -> tuple[str, ...]:
    """Return the roles of the fields: query and document, or the type of the task."""
    kind = task.metadata.type
    if kind in ("Retrieval", "Reranking"):
        return (QUERY,) if kind == "Retrieval" else (QUERY, DOCUMENT)
    types = [getattr(task, f"input{i}_prompt_type", None) for i in (1, 2)]
    roles = tuple(str(role.value) if role is not None else kind for role in types)
    return roles if kind in ("STS", "PairClassification", "Summarization") else roles[:1]


class Encoder:
    """A model of Karat as an encoder for ``mteb.evaluate``.

    mteb's prompt type becomes the role of the texts (``"query"`` or ``"document"``); without one,
    the role is the type of the task, such as ``"STS"``. Encoders with prompts use that of the role.

    Parameters
    ----------
    model
        A model as ``karat.evaluate`` takes it: a name, a file of vectors, an object, a function.
    name
        The name of the model in mteb's results. Default: that of the model.
    fit_on
        Texts on which an encoder that is not pretrained, such as ``"tfidf"``, is fitted.
    """

    def __init__(
        self, model: Any, name: str | None = None, *, fit_on: Sequence[str] | None = None
    ) -> None:
        mteb = import_extra("mteb", "mteb")
        self.model = resolved = Catalog().model(model)
        if resolved.role != "encoder" or resolved.variant is not None:
            what = "a variant" if resolved.variant is not None else f"a {resolved.role}"
            raise DefinitionError(f"{resolved.name}: mteb needs an encoder, this is {what}.")
        if resolved.unavailable:
            raise DefinitionError(f"{resolved.name}: {resolved.unavailable}.")
        if resolved.takes is not None and "text" not in resolved.takes:
            raise DefinitionError(f"{resolved.name}: mteb needs an encoder of texts.")
        self.encoder = resolved.fresh(SEED, "classification")
        if not resolved.stateless:
            if fit_on is None:
                raise DefinitionError(
                    f"{resolved.name} is not pretrained: pass the texts to fit it on, "
                    f"Encoder({resolved.name!r}, fit_on=texts)."
                )
            self.encoder = self.encoder.fit(pd.Series(list(fit_on), dtype=object))
        self.mteb_model_meta = _metadata(
            mteb, name or resolved.name, encoder_identity(resolved, model)
        )

    def encode(
        self,
        inputs: Iterable[Mapping[str, Sequence[str]]],
        *,
        task_metadata: TaskMetadata,
        hf_split: str,
        hf_subset: str,
        prompt_type: PromptType | None = None,
        **_: Any,
    ) -> np.ndarray:
        """Return one row per text of a data loader of mteb."""
        texts = pd.Series([text for batch in inputs for text in batch["text"]], dtype=object)
        role = str(getattr(prompt_type, "value", None) or task_metadata.type)
        rows = pd.DataFrame({"text": texts.index})
        data = Dataset(
            name="texts",
            items=texts,
            questions=rows,
            target=np.zeros(len(texts)),
            kind="regression",
            modality="text",
            roles=(role,),
        )
        vectors = embed(self.encoder, data, self.model.name).of(data, "text")
        unknown = np.isnan(vectors[:, 0])
        if unknown.any():
            warnings.warn(
                f"{self.model.name} has no vector for {unknown.sum()} of {len(texts)} texts; mteb "
                f"gets zeros.",
                stacklevel=2,
            )
        return np.nan_to_num(vectors)

    def similarity(self, embeddings1: np.ndarray, embeddings2: np.ndarray) -> Any:
        """Return the cosines of all pairs of vectors."""
        cosines = import_extra("mteb.similarity_functions", "mteb").cos_sim
        return cosines(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: np.ndarray, embeddings2: np.ndarray) -> Any:
        """Return the cosines of the vectors in the same rows."""
        cosines = import_extra("mteb.similarity_functions", "mteb").pairwise_cos_sim
        return cosines(embeddings1, embeddings2)


def _metadata(mteb: ModuleType, name: str, identity: str | None) -> Any:
    """Return the metadata of a model for mteb; the revision is a hash of the model."""
    models = import_extra("mteb.models.model_meta", "mteb")
    named = name if "/" in name else f"karat/{name}"  # mteb wants an organization
    return models.ModelMeta.create_empty(
        overwrites={
            "name": named,
            "revision": (identity or "no_revision_available")[:40],
            "modalities": ["text"],
            "similarity_fn_name": models.ScoringFunction.COSINE,
        }
    )


@splitter("few-shot")
def few_shot(
    data: Dataset, samples: int = 8, repeats: int = 10, folds: int = 0, seed: int = SEED
) -> Iterator[Fold]:
    """Train on a few rows of each class, in each repeat on others; test on the test part.

    ``samples`` is the number of train rows per class. With ``folds``, the data are cut into this
    many folds, each of which is tested once, and there are no repeats. The draws are those of mteb
    and do not depend on the seed of the run.
    """
    if data.kind != "classification" or data.target is None:
        raise DefinitionError(f"{data.name}: split few-shot requires classes, got {data.kind}.")
    from sklearn.model_selection import KFold
    from sklearn.utils import check_random_state

    labels = np.asarray(data.target)
    rows = np.arange(len(data))
    if folds:
        sides = list(KFold(folds, shuffle=True, random_state=seed).split(rows))
    elif data.part is None:
        raise DataError(f"{data.name}: split few-shot requires a train and a test part.")
    else:
        sides = [(rows[data.part == "train"], rows[data.part == "test"])] * repeats
    order: list[int] | None = None
    for number, (train, test) in enumerate(sides):
        order = list(range(len(train))) if order is None else order
        # each draw shuffles the order of the one before with the same seed
        check_random_state(seed).shuffle(order)
        places = pd.Series(order)
        turn = places.groupby(labels[train][order]).cumcount()
        drawn = train[places[turn < samples].to_numpy()]
        yield Fold(drawn, test, 0 if folds else number)


@splitter("each-group")
def each_group(data: Dataset) -> Iterator[Fold]:
    """Every group is a fold in which nothing is held out, in the order of the data."""
    if data.group is None:
        raise DefinitionError(f"{data.name}: split each-group requires groups.")
    codes, names = pd.factorize(data.group)
    for number in range(len(names)):
        rows = np.flatnonzero(codes == number)
        yield Fold(rows, rows, number)


@probe("mteb-clustering")
class Clustering:
    """Mini-batch k-means with the settings of mteb.

    A class is written ``"SET: LABEL"``; the number of clusters is that of the labels of the set.
    """

    def __init__(self, batch_size: int = 512, seed: int = SEED) -> None:
        self.batch_size = batch_size
        self.seed = seed
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have an item with a vector."""
        need_fields(data, "mteb-clustering", "classification")
        return vectors.answerable(data)

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Do nothing: the probe is stateless."""

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the cluster of each question."""
        from sklearn.cluster import MiniBatchKMeans

        target = np.asarray(test.target)
        level = str(target[0]).partition(": ")[0]
        count = sum(str(label).partition(": ")[0] == level for label in test.classes)
        head = MiniBatchKMeans(count, batch_size=self.batch_size, n_init=1, random_state=self.seed)
        clusters = head.fit_predict(vectors.of(test, test.fields[0]))
        return Predictions(clusters, target, answers="clusters", truths="classes")

    def unanswered(self, test: Dataset) -> Predictions:
        """Return a separate cluster per question."""
        apart = -1 - np.arange(len(test))
        return Predictions(apart, np.asarray(test.target), answers="clusters", truths="classes")


@probe("mteb-pairs")
class Pairs(Similarity):
    """The similarity of pairs by four measures: one row per measure, which is the group, and pair.

    The metrics ``max_ap``, ``max_f1`` and so on are the highest of the measures.
    """

    one_answer_each = False

    def __init__(self) -> None:
        super().__init__()

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the similarities by each measure in turn."""
        scores, count = mean_similarities(test, vectors, MEASURES), len(MEASURES)
        predictions = self._predictions(test, scores[MEASURES[0]])
        return replace(
            predictions,
            predictions=np.concatenate([scores[measure] for measure in MEASURES]),
            target=np.tile(predictions.target, count),
            group=np.repeat(MEASURES, len(test)),
            question=np.tile(np.arange(len(test)), count),
        )

    def unanswered(self, test: Dataset) -> Predictions:
        """Refuse: pairs without vectors have no similarity."""
        raise DefinitionError("probe: mteb-pairs cannot penalize; set missing: ignore.")


@probe("candidates")
class Candidates(Similarity):
    """Rank the given candidates of each query by cosine.

    A question is a query and a candidate, the group is the query, the target the relevance. A
    candidate without a vector is never found. Of equal scores, the highest item id is first.
    """

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which candidates, and their queries, have a vector."""
        if data.group is None or data.kind != "regression":
            raise DefinitionError(
                f"probe: candidates needs relevances and the query of each as its group; "
                f"{data.name} has {data.kind}."
            )
        return super().answerable(data, vectors)

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the rank of each candidate among those of its query."""
        scores = super().answer(test, vectors).predictions
        ids = test.questions[test.fields[1]].to_numpy()
        table = pd.DataFrame({"group": np.asarray(test.group), "score": scores, "id": ids})
        table = table.sort_values(["score", "id"], ascending=False, kind="stable")
        rank = table.groupby("group", sort=False).cumcount().sort_index().to_numpy() + 1.0
        return self._ranked(test, rank)

    def unanswered(self, test: Dataset) -> Predictions:
        """Return ranks behind all candidates."""
        return self._ranked(test, np.full(len(test), np.inf))

    def _ranked(self, test: Dataset, rank: np.ndarray) -> Predictions:
        ids = test.questions[test.fields[1]].to_numpy()
        sizes = pd.Series(np.asarray(test.group)).map(pd.Series(test.group).value_counts())
        return Predictions(
            predictions=ids,
            target=ids,
            answers="items",
            truths="items",
            group=test.group,
            rank=rank,
            candidates=sizes.to_numpy(),
            gain=np.asarray(test.target, dtype=float),
        )


@probe("bitext")
class Bitext(Nearest):
    """The nearest candidate of each query by cosine, as the predicted one of many classes."""

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the nearest candidate of each query."""
        return _as_classes(super().answer(test, vectors))

    def unanswered(self, test: Dataset) -> Predictions:
        """Return no candidate."""
        return _as_classes(super().unanswered(test))


def _as_classes(predictions: Predictions) -> Predictions:
    kinds: dict[str, Any] = {"answers": "classes", "truths": "classes"}
    return Predictions(predictions.predictions, predictions.target, **kinds)
