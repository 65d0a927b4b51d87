"""Known: scores computed again from the questions that all of some runs know."""

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
    """The answers to a task cannot be cut to some of its questions. The message says why."""


class Stranger(KaratError):
    """A run has no answers to these questions. Holds the run's place and why."""

    def __init__(self, place: int, reason: str) -> None:
        self.place = place
        super().__init__(reason)


@dataclass
class Cut:
    """Scores of each run by fold, of how many questions out of how many, and why some are none.

    ``candidates`` are the most that an answer of each run was picked from, where it tells.
    """

    scores: list[dict[Unit, dict[str, float | None]]]
    questions: int = 0
    asked: int = 0
    reasons: dict[str, str] = field(default_factory=dict)
    candidates: list[int] = field(default_factory=list)


def cut_to_common(
    sides: Sequence[Side], task: str, view: View, units: Sequence[Unit], metrics: Sequence[str]
) -> Cut:
    """Return the scores of the questions of each fold that all runs know.

    Raises ``Uncut`` where an answer is not about one question, and ``Stranger`` where a run's
    answers cannot be read or are to other questions than those of the first run.
    """
    cut = Cut([{} for _ in sides], candidates=[0] * len(sides))
    for unit in units:
        told = [side.answered[task][view][unit] for side in sides]
        answers = [_read(sides, i, task, view, unit) for i in range(len(sides))]
        kept = common_rows(answers, told)
        cut.questions += len(kept[0])
        cut.asked += told[0].questions
        for i, (each, rows) in enumerate(zip(answers, kept, strict=True)):
            part = each.take(rows)
            if part.candidates is not None and len(part):
                cut.candidates[i] = max(cut.candidates[i], int(part.candidates.max()))
            graded = {name: score(name, part) for name in metrics}
            cut.scores[i][unit] = {name: value for name, (value, _) in graded.items()}
            cut.reasons |= {name: why for name, (_, why) in graded.items() if why}
    return cut


def common_rows(answers: Sequence[Predictions], told: Sequence[Answered]) -> list[np.ndarray]:
    """Return for each run the rows of the questions that all know, in the order of the questions.

    >>> one = Predictions([1.0, 2.0], [1.0, 3.0], question=[0, 2])
    >>> other = Predictions([5.0, 6.0, 7.0], [1.0, 2.0, 3.0], known=[0, 1, 1])
    >>> told = [Answered({}, 2 / 3, 3, 0)] * 2
    >>> [rows.tolist() for rows in common_rows([one, other], told)]
    [[1], [2]]
    """
    places = [_places(each, fold) for each, fold in zip(answers, told, strict=True)]
    shared = places[0]
    for each in places[1:]:
        shared = shared[np.isin(shared, each)]
    shared = np.sort(shared[shared >= 0])
    kept = []
    for i, each in enumerate(places):
        order = np.argsort(each, kind="stable")
        kept.append(order[np.searchsorted(each[order], shared)])
        mine, first = answers[i].truth[kept[i]], answers[0].truth[kept[0]]
        if not np.array_equal(mine, first):
            raise Stranger(i, "its folds ask other questions")
    return kept


def _places(answers: Predictions, told: Answered) -> np.ndarray:
    """Return the question each row is about, less than 0 where the model does not know it."""
    if answers.weight is not None:
        raise Uncut("a row stands for several pairs")
    if answers.rank is not None and answers.group is not None:
        if len(set(answers.group.tolist())) < len(answers):
            raise Uncut("the answers to a query are one list")
    if answers.question is not None:
        places = np.asarray(answers.question)
    elif len(answers) == told.questions and (answers.known is not None or told.coverage == 1):
        places = np.arange(len(answers))
    else:
        raise Uncut("there is not one answer per question")
    return places if answers.known is None else np.where(answers.known == 1, places, -1)


def _read(sides: Sequence[Side], place: int, task: str, view: View, unit: Unit) -> Predictions:
    fold, draw = unit
    try:
        return sides[place].run.predictions(task, fold, replace(view, draw=draw).name)
    except (KaratError, ValueError, KeyError, TypeError) as error:
        raise Stranger(place, f"its predictions of fold {fold} cannot be read") from error
