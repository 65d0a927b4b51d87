"""Scores computed again on the questions that all of some runs can answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from karat.corruptions.view import View
from karat.errors import KaratError
from karat.metrics.base import score
from karat.predictions import Predictions
from karat.results.beside import Answered, Side, Unit


class Uncut(KaratError):
    """The predictions of a task cannot be restricted to some of its questions."""


class Stranger(KaratError):
    """A run (``place``) has no predictions for these questions."""

    def __init__(self, place: int, reason: str) -> None:
        self.place = place
        super().__init__(reason)


@dataclass
class Cut:
    """Scores of each run by fold on ``questions`` of those ``asked``.

    ``reasons`` tell by metric why a score is missing, ``candidates`` is each run's largest number
    of candidate answers, where recorded.
    """

    scores: list[dict[Unit, dict[str, float | None]]]
    questions: int = 0
    asked: int = 0
    reasons: dict[str, str] = field(default_factory=dict)
    candidates: list[int] = field(default_factory=list)


def cut_to_common(
    sides: Sequence[Side], task: str, view: View, units: Sequence[Unit], metrics: Sequence[str]
) -> Cut:
    """Return the scores on the questions of each fold that all runs can answer.

    Raises ``Uncut`` where a prediction is not about one question, and ``Stranger`` where a run's
    predictions cannot be read or belong to other questions than those of the first run.
    """
    cut = Cut([{} for _ in sides], candidates=[0] * len(sides))
    for unit in units:
        folds = [side.answered[task][view][unit] for side in sides]
        answers = [_read(sides, i, task, view, unit) for i in range(len(sides))]
        rows_of = common_rows(answers, folds)
        cut.questions += len(rows_of[0])
        cut.asked += folds[0].questions
        for i, (each, rows) in enumerate(zip(answers, rows_of, strict=True)):
            part = each.take(rows)
            if part.candidates is not None and len(part):
                cut.candidates[i] = max(cut.candidates[i], int(part.candidates.max()))
            graded = {name: score(name, part) for name in metrics}
            cut.scores[i][unit] = {name: value for name, (value, _) in graded.items()}
            cut.reasons |= {name: why for name, (_, why) in graded.items() if why}
    return cut


def common_rows(answers: Sequence[Predictions], folds: Sequence[Answered]) -> list[np.ndarray]:
    """Return each run's rows of the questions that all can answer, in the order of the questions.

    >>> one = Predictions([1.0, 2.0], [1.0, 3.0], question=[0, 2])
    >>> other = Predictions([5.0, 6.0, 7.0], [1.0, 2.0, 3.0], known=[0, 1, 1])
    >>> folds = [Answered({}, 2 / 3, 3, 0)] * 2
    >>> [rows.tolist() for rows in common_rows([one, other], folds)]
    [[1], [2]]
    """
    places = [_places(each, fold) for each, fold in zip(answers, folds, strict=True)]
    shared = places[0]
    for each in places[1:]:
        shared = shared[np.isin(shared, each)]
    shared = np.sort(shared[shared >= 0])
    rows = []
    for i, each in enumerate(places):
        order = np.argsort(each, kind="stable")
        rows.append(order[np.searchsorted(each[order], shared)])
        if not np.array_equal(answers[i].truth[rows[i]], answers[0].truth[rows[0]]):
            raise Stranger(i, "its folds have other questions")
    return rows


def _places(answers: Predictions, fold: Answered) -> np.ndarray:
    """Return the question of each row, -1 where the model cannot answer it."""
    if answers.weight is not None:
        raise Uncut("a row of its predictions counts for several pairs")
    if answers.rank is not None and answers.group is not None:
        if len(set(answers.group.tolist())) < len(answers):
            raise Uncut("the predictions of a query are one ranked list")
    if answers.question is not None:
        places = np.asarray(answers.question)
    elif len(answers) == fold.questions and (answers.known is not None or fold.coverage == 1):
        places = np.arange(len(answers))
    else:
        raise Uncut("there is not one prediction per question")
    return places if answers.known is None else np.where(answers.known == 1, places, -1)


def _read(sides: Sequence[Side], place: int, task: str, view: View, unit: Unit) -> Predictions:
    fold, draw = unit
    try:
        return sides[place].run.predictions(task, fold, replace(view, draw=draw).name)
    except (KaratError, ValueError, KeyError, TypeError) as error:
        raise Stranger(place, f"its predictions of fold {fold} cannot be read") from error
