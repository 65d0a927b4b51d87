"""Either: what ``karat.compare`` is, a run beside others or one model beside another."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, overload

from karat.results.beside import ALL
from karat.results.compare import Comparison
from karat.results.compare import compare as beside
from karat.results.run import Run
from karat.results.verdict import ROPE, Verdict, verdict


@overload
def compare(
    run: Run | str | Path,
    others: Run | str | Path | Iterable[Run | str | Path] = ALL,
    *,
    metric: str | None = None,
    common: bool = False,
    views: bool = False,
) -> Comparison: ...


@overload
def compare(
    run: Any,
    others: Any,
    second: Any,
    *,
    metric: str | None = None,
    rope: float = ROPE,
    on: str = "folds",
) -> Verdict: ...


def compare(run: Any, others: Any = ALL, second: Any = None, **how: Any) -> Comparison | Verdict:
    """Return how a run stands beside others, or whether one model is better than another.

    ``compare(run)`` or ``compare(run, others)`` returns a ``Comparison``: values, ranks and
    coverage task by task. ``compare(runs, "one", "other")`` returns a ``Verdict`` on two models:
    paired by task and fold, with intervals, corrected p-values and a sentence in plain words.

    Parameters
    ----------
    run
        A run folder; for a verdict any runs, folders of them, or a table of scores.
    others
        ``"all"`` runs in the same folder, or run folders; for a verdict the first model, by its
        name or by its run folder.
    second
        The second model of a verdict.
    how
        ``metric="acc"`` instead of all of a task's metrics, for a verdict instead of its first.
        Of one run: ``common=True`` compares on the questions that all runs know, ``views=True`` on
        corrupted test folds too. Of two models: ``rope=0.01``, up to which size gains count as
        none, and ``on="folds"``, ``"common"`` or ``"rows"``, the last of which tests the stored
        predictions.
    """
    if second is not None:
        return verdict(run, others, second, **how)
    return beside(run, others, **how)
