"""How MTEB evaluates: its few-shot draws, and its clustering, reranking, pairs and bitext mining.

Splitters and probes for the tasks of ``karat.compat.mteb.mteb_tasks``; mteb itself is not needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.core.predictions import Predictions
from karat.core.registry import probe, splitter
from karat.errors import DataError, DefinitionError
from karat.execution.splits import Fold
from karat.probes.retrieval import Nearest
from karat.probes.similarity import Similarity
from karat.probes.trained import need_fields

#: the seed of mteb
SEED = 42
#: the measures that mteb compares pairs with
PAIR_MEASURES = ("cosine", "dot", "euclidean", "manhattan")


@splitter("few-shot")
def few_shot(
    data: Dataset, samples: int = 8, repeats: int = 10, folds: int = 0, seed: int = SEED
) -> Iterator[Fold]:
    """Train on a few rows of each class, in each repeat on others; test on the test part.

    ``samples`` is the number of train rows per class. With ``folds``, the data are cut into so many
    folds, each of which is tested once, and there are no repeats. The draws are those of mteb and
    do not depend on the seed of the run.
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
        own = str(target[0]).partition(": ")[0]
        count = sum(str(label).partition(": ")[0] == own for label in test.classes)
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
        found = [Similarity(measure).answer(test, vectors) for measure in PAIR_MEASURES]
        count = len(found)
        return replace(
            found[0],
            predictions=np.concatenate([each.predictions for each in found]),
            target=np.tile(found[0].target, count),
            group=np.repeat(PAIR_MEASURES, len(test)),
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


def _as_classes(found: Predictions) -> Predictions:
    kinds: dict[str, Any] = {"answers": "classes", "truths": "classes"}
    return Predictions(found.predictions, found.target, **kinds)
