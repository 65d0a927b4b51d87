"""Scoring against mteb itself: the same vectors, data and protocol on both sides, the same scores.

The vectors are in a dictionary, so nothing is encoded. Both sides run their own verb,
``karat.evaluate`` and ``mteb.evaluate``, on data in memory and one thread. Of "scoring" the way of
the texts to the encoder and of the vectors back is no part: mteb's data loaders and ``encode``, our
staging and the hash of the encoder. Ours writes predictions and records in both; mteb is spared its
files.

Needs an environment that has both: ``pip install -e . mteb``.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import karat
from karat.execution.progress import Progress
from karat.execution.workers import one_thread
from karat.models.model_identity import encoder_identity

DIMENSIONS, TURNS = 384, 3
#: how far scores may differ: cosines of 32 bits there, of 64 here
NEAR = 1e-6


class Known:
    """Vectors of texts, looked up."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.texts = [f"text {i}" for i in range(len(matrix))]
        self.rows = {text: i for i, text in enumerate(self.texts)}
        self.matrix = matrix.astype(np.float32)

    def encode(self, texts: list[str]) -> np.ndarray:
        return self.matrix[[self.rows[text] for text in texts]]


@dataclass(frozen=True)
class Problem:
    """Vectors, a task of ours and one of theirs about them, and which scores must be equal."""

    name: str
    known: Known
    ours: Sequence[karat.Task]
    theirs: Callable[[], Any]
    #: a score of theirs, and that of ours ("task metric") or the best of several
    same: Mapping[str, Sequence[str]]
    limit: float = 1.0


@dataclass
class Cost:
    """Seconds of CPU: of all, and of what is no scoring."""

    whole: float = 0.0
    aside: float = 0.0
    _begun: list[float] = field(default_factory=list)

    def __enter__(self) -> Cost:
        self._begun.append(time.process_time())
        return self

    def __exit__(self, *_: object) -> None:
        self.aside += time.process_time() - self._begun.pop()

    @property
    def scoring(self) -> float:
        return self.whole - self.aside


def measure(scale: float = 1.0) -> Iterator[tuple[str, float, float, str, str]]:
    if find_spec("mteb") is None:
        print("  against_mteb: mteb is not installed in this environment; left out")
        return
    quiet()
    import datasets
    import mteb

    against = f"mteb {mteb.__version__}, datasets {datasets.__version__}"
    for make in (classification, pairs, retrieval):
        problem = make(scale)
        with one_thread():
            # what happens once is not what is measured; then in turns, so that noise hits both
            turns = [(ours(problem), theirs(problem)) for _ in range(TURNS + 1)][1:]
        (mine, _), (other, _) = turns[0]
        differ = [abs(a - b) for a, b in agreeing(problem, mine, other).values()]
        assert max(differ) < NEAR, agreeing(problem, mine, other)
        print(f"  {problem.name}: {len(differ)} scores agree to {max(differ):.0e}")
        for part in ("whole", "scoring"):
            costs = [min(getattr(c, part) for _, c in side) for side in zip(*turns, strict=True)]
            print(f"  {problem.name}, {part}: {costs[0]:.3f} s, mteb {costs[1]:.3f} s")
            what = f"{problem.name}, {part}, CPU"
            yield what, costs[0] / costs[1], problem.limit, "×", against


def quiet() -> None:
    """Let mteb and its dependencies use no network, draw no bars, and take one thread."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
    import datasets
    import torch

    datasets.disable_progress_bars()
    torch.set_num_threads(1)


def agreeing(
    problem: Problem, mine: Mapping[str, float], other: Mapping[str, float]
) -> dict[str, tuple[float, float]]:
    """Return ours and theirs of every score that must be equal."""
    return {
        name: (max(mine[metric] for metric in names), other[name])
        for name, names in problem.same.items()
    }


# -- the two sides --------------------------------------------------------------------------


class _Watch(Progress):
    """Hears when vectors are made and stored."""

    def __init__(self, cost: Cost) -> None:
        self.cost = cost

    def embedding(self, model: str, dataset: str, items: int) -> None:
        self.cost.__enter__()

    def embedded(self, model: str, dataset: str, seconds: float) -> None:
        self.cost.__exit__()


def ours(problem: Problem) -> tuple[dict[str, float], Cost]:
    cost = Cost()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KARAT_CACHE"] = folder
        with _aside("karat.execution.plan.encoder_identity", encoder_identity, cost):
            begun = time.process_time()
            (run,) = karat.evaluate(
                {"known": problem.known}, problem.ours, output=folder, progress=_Watch(cost)
            )
            cost.whole = time.process_time() - begun
        results = run.results()
    return {
        f"{task.name} {name}": float(results.loc[results["task"] == task.name, name].mean())
        for task in problem.ours
        for name in task.metrics
    }, cost


def theirs(problem: Problem) -> tuple[dict[str, float], Cost]:
    import mteb
    from mteb._create_dataloaders import create_dataloader

    cost, task = Cost(), problem.theirs()
    model = encoder(problem.known, cost)
    with ExitStack() as stack:
        for module in (
            "mteb.abstasks.classification",
            "mteb._evaluators.pair_classification_evaluator",
            "mteb.models.search_wrappers",
        ):
            name = f"{module}.create_dataloader"
            stack.enter_context(_aside(name, create_dataloader, cost))
        begun = time.process_time()
        results = mteb.evaluate(model, task, cache=None, show_progress_bar=False, co2_tracker=False)
        cost.whole = time.process_time() - begun
    return dict(results.task_results[0].scores["test"][0]), cost


def _aside(name: str, function: Callable[..., Any], cost: Cost) -> Any:
    """Return a context in which the function called by this name costs no scoring."""

    def timed(*arguments: Any, **named: Any) -> Any:
        with cost:
            return function(*arguments, **named)

    return patch(name, timed)


def encoder(vectors: Known, cost: Cost) -> Any:
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ModelMeta, ScoringFunction

    class Encoder(AbsEncoder):
        mteb_model_meta = ModelMeta.create_empty(
            {"name": "benchmarks/known", "similarity_fn_name": ScoringFunction.COSINE}
        )

        def __init__(self) -> None:
            self.model = None

        def encode(self, inputs: Any, **_: Any) -> np.ndarray:
            with cost:
                return np.concatenate([vectors.encode(batch["text"]) for batch in inputs])

    return Encoder()


# -- the problems ---------------------------------------------------------------------------


def classification(scale: float = 1.0) -> Problem:
    """Ten draws of eight texts of each class, a logistic regression, all other texts as test."""
    from mteb.abstasks import AbsTaskClassification

    pool, tested, classes = int(2_000 * scale), int(4_000 * scale), 10
    rng = np.random.default_rng(0)
    labels = rng.integers(classes, size=pool + tested)
    means = rng.normal(size=(classes, DIMENSIONS))
    known = Known(0.2 * means[labels] + rng.normal(size=(pool + tested, DIMENSIONS)))
    frame = pd.DataFrame({"text": known.texts, "label": labels})

    def other() -> Any:
        task = made(AbsTaskClassification, "Classification", "accuracy")
        task.dataset = parts(train=frame[:pool], test=frame[pool:])
        return task

    # the very draws of mteb, so that the scores are the same ones
    drawer, order, folds = other(), None, []
    for number in range(drawer.n_experiments):
        _, order, rows = drawer._undersample_data(drawer.dataset["train"], number, order)
        folds.append({"train": rows, "test": list(range(pool, pool + tested)), "repeat": number})
    task = karat.Task(
        "classification",
        karat.Dataset.from_columns(frame, ["text"], "label", name="classes", kind="classification"),
        probe={"use": "trained", "head": "logistic-regression", "scale": "plain"},
        split={"use": "fixed", "folds": folds},
        metrics=["accuracy", "f1", "f1_weighted", "precision", "recall"],
    )
    same = {name: [f"classification {name}"] for name in task.metrics}
    return Problem("classification", known, [task], other, same)


def pairs(scale: float = 1.0) -> Problem:
    """Pairs of texts, similar or not, separated by each of four measures, as mteb does."""
    from mteb.abstasks import AbsTaskPairClassification

    count = int(10_000 * scale)
    rng = np.random.default_rng(1)
    labels = rng.integers(2, size=count)
    first = rng.normal(size=(count, DIMENSIONS))
    near = np.where(labels == 1, 0.12, 0.0)[:, None]
    known = Known(np.concatenate([first, near * first + rng.normal(size=first.shape)]))
    one, two = known.texts[:count], known.texts[count:]
    frame = pd.DataFrame({"sentence1": one, "sentence2": two, "labels": labels})

    def other() -> Any:
        task = made(AbsTaskPairClassification, "PairClassification", "max_ap")
        task.dataset = parts(test=frame)
        return task

    fields, names = ["sentence1", "sentence2"], ["ap", "max_f1", "max_accuracy"]
    data = karat.Dataset.from_columns(frame, fields, "labels", name="pairs", kind="classification")
    tasks = [
        karat.Task(
            measure,
            data,
            probe={"use": "similarity", "measure": measure},
            split={"use": "all"},
            metrics=names,
        )
        for measure in ("cosine", "dot", "euclidean", "manhattan")
    ]
    same = {}
    for name in names:
        short = name.removeprefix("max_")
        same |= {f"{task.name}_{short}": [f"{task.name} {name}"] for task in tasks}
        same[f"max_{short}"] = [f"{task.name} {name}" for task in tasks]
    return Problem("pair classification", known, tasks, other, same)


def retrieval(scale: float = 1.0) -> Problem:
    """One to five answers of each query among many documents."""
    from mteb.abstasks import AbsTaskRetrieval

    class Exact(AbsTaskRetrieval):
        """Tells the means of its scores before it rounds them to five digits."""

        def task_specific_scores(self, scores: Any, *_: Any, **__: Any) -> dict[str, float]:
            means = pd.DataFrame(scores.values()).mean()
            return {f"exact_{name}": float(value) for name, value in means.items()}

    queries, documents = int(1_000 * scale), int(20_000 * scale)
    rng = np.random.default_rng(2)
    query_of = np.repeat(np.arange(queries), rng.integers(1, 6, size=queries))
    wanted = np.concatenate(
        [rng.choice(documents, n, replace=False) for n in np.bincount(query_of)]
    )
    matrix = rng.normal(size=(documents + queries, DIMENSIONS))
    np.add.at(matrix, documents + query_of, 0.2 * matrix[wanted])
    known = Known(matrix)
    ids = np.array(known.texts)
    relevant: dict[str, dict[str, int]] = {}
    for query, answer in zip(ids[documents + query_of], ids[wanted], strict=True):
        relevant.setdefault(str(query), {})[str(answer)] = 1

    def other() -> Any:
        task = made(Exact, "Retrieval", "ndcg_at_10")
        sides = {
            name: parts(it=pd.DataFrame({"id": part, "text": part}))["it"]
            for name, part in (("corpus", ids[:documents]), ("queries", ids[documents:]))
        }
        task.dataset = {
            "default": {"test": {**sides, "relevant_docs": relevant, "top_ranked": None}}
        }
        return task

    data = karat.Dataset(
        name="retrieval",
        items=pd.Series(known.texts),
        questions=pd.DataFrame({"query": documents + query_of}),
        target=wanted,
        kind="items",
        modality="text",
    )
    names = {
        "exact_ndcg_cut_10": "ndcg_at_10",
        "exact_map_cut_10": "map_at_10",
        "exact_map_cut_1000": "map_at_1000",
        "exact_recall_10": "recall_at_10",
        "exact_recall_100": "recall_at_100",
        "exact_P_10": "precision_at_10",
        "mrr_at_10": "mrr_at_10",
    }
    task = karat.Task(
        "retrieval",
        data,
        probe={"use": "nearest", "queries": "apart"},
        split={"use": "all"},
        metrics=list(names.values()),
    )
    same = {name: [f"retrieval {mine}"] for name, mine in names.items()}
    return Problem("retrieval", known, [task], other, same, limit=0.5)


def parts(**frames: pd.DataFrame) -> Any:
    from datasets import Dataset, DatasetDict

    return DatasetDict(
        {name: Dataset.from_dict(frame.to_dict("list")) for name, frame in frames.items()}
    )


def made(kind: type, what: str, main_score: str) -> Any:
    """Return a task of mteb that has its data already, in place of one that fetches them."""
    from mteb.abstasks.task_metadata import TaskMetadata

    metadata = TaskMetadata(
        name=f"Known{what}",
        description="Vectors that are there already.",
        dataset={"path": "none", "revision": "none"},
        type=what,
        category="t2t" if what != "Classification" else "t2c",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score=main_score,
    )
    made = type(f"Known{what}", (kind,), {"metadata": metadata})()
    made.data_loaded = True
    return made


def main() -> None:
    for what, value, limit, unit, against in measure():
        mark = "" if value <= limit else "   OVER"
        print(f"{what:<46}{value:>8.2f} {unit:<3}{limit:>8.2f} {unit:<3}   {against}{mark}")


if __name__ == "__main__":
    main()
