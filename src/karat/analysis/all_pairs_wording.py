"""All pairs of many models: the result in words, and the models as a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from karat.analysis.item_tests import AS_FITTED, TRAIN_AGAIN
from karat.core.formatting import count, format_p, format_rank, middle_cut
from karat.output.table import MAX_LETTERS, TIE, Cell, Column, Table, text_column
from karat.stats.paired_tests import ALPHA
from karat.stats.ranking import FEWEST_TASKS

if TYPE_CHECKING:
    from karat.analysis.all_pairs import AllPairs


def all_pairs_sentence(all_pairs: AllPairs) -> str:
    """Return how many pairs differ, and whether all models together do."""
    many, p = all_pairs.many, all_pairs.pairs["p"]
    tested = p.notna()
    if not tested.any():
        return f"No pair of models was tested: {all_pairs.why}."
    differ = f"{int((p < ALPHA).sum())} of {int(tested.sum())} pairs differ significantly"
    differ += f", {AS_FITTED}" * (many.claim == AS_FITTED) + f" ({many.test})"
    untested = int((~tested).sum())
    if untested:
        differ += f"; {count(untested, 'pair')} not tested"
    if all_pairs.values.shape[1] < 2 or np.isnan(many.p):
        return f"{differ}."
    differs = "differ" if many.p < ALPHA else "do not differ"
    return (
        f"The models {differs} significantly over {many.tasks} tasks ("
        f"{many.omnibus} p {format_p(many.p)}); {differ}."
    )


def all_pairs_table(all_pairs: AllPairs) -> Table:
    """Return one row per model, best first: rank, letters of its groups, p against the best."""
    many = all_pairs.many
    order = [int(m) for m in many.order if not np.isnan(many.ranks[m])]
    best = order[0] if order else 0
    against = [many.pairs[best, m] if m != best else np.nan for m in order]
    tasks = np.isfinite(all_pairs.values.to_numpy()).sum(axis=1)
    letters = [Cell(text) for text in _letters(all_pairs, order)]
    head = f"{TIE}, {AS_FITTED}" if many.claim == AS_FITTED else TIE
    names = (middle_cut(all_pairs.models[m]) for m in order)
    return Table(
        groups=[],
        model=text_column("model", names, right=False),
        columns=[
            text_column("rank", (format_rank(many.ranks[m]) for m in order)),
            Column(head, letters, right=False),
            text_column("tasks", (tasks[m] for m in order)),
            text_column("p against the first", map(format_p, against)),
        ],
        starts=[0],
        caption=f"{len(order)} models, all pairs compared on their common tasks",
        notes=list(_legend(all_pairs)),
    )


def _legend(all_pairs: AllPairs) -> Iterator[str]:
    """Yield what the letters mean, or why there are none."""
    many = all_pairs.many
    if not many.test:
        yield f"Not tested: {all_pairs.why}."
        return
    yield f"Models that share a letter do not differ significantly ({many.test}, 5 %)."
    untested = int(all_pairs.pairs["p"].isna().sum())
    if untested:
        yield f"{count(untested, 'pair')} not tested: fewer than {FEWEST_TASKS} common tasks."
    if many.claim == AS_FITTED:
        yield TRAIN_AGAIN


def _letters(all_pairs: AllPairs, order: Sequence[int]) -> list[str]:
    """Return the letters of each model, each in a column of its own, or as numbers if many."""
    letters = [re.findall(r"[a-z]|\[\d+\]", all_pairs.many.letters[m]) for m in order]
    signs = list(dict.fromkeys(sign for several in letters for sign in several))
    if len(signs) > MAX_LETTERS:
        return [", ".join(str(signs.index(sign) + 1) for sign in several) for several in letters]
    return [" ".join(sign if sign in several else " " for sign in signs) for several in letters]
