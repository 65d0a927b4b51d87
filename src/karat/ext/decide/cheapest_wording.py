"""The cheapest model in words and as a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from karat.core.formatting import count, fixed, interval, middle_cut, percent, rounded, signed
from karat.ext.decide.costs import COSTS, STATED
from karat.output.table import Cell, Column, Table, text_column

if TYPE_CHECKING:
    from karat.ext.decide.cheapest import Cheapest

#: verdicts on cheaper models
EQUIVALENT, BETTER, NOT_WORSE, WORSE, UNDECIDED = VERDICTS = (
    "equivalent",
    "better",
    "not worse",
    "worse",
    "undecided",
)


def cheapest_sentence(answer: Cheapest) -> str:
    """Return the answer in one sentence."""
    rows = answer.cheaper_models
    within = f"{answer.reference} within {answer.margin:g}"
    if not len(rows):
        models = count(int(answer.models["cost"].notna().sum()), "model")
        return f"{answer.reference} has the lowest {answer.cost} of {models}."
    if answer.model is None:
        closest = rows.sort_values("difference", ascending=False).iloc[0]
        if answer.outcome == "none":
            alone = "the only one" if len(rows) == 1 else "the best of them"
            more = f"{closest['model']}, {alone}, is worse ({_numbers(closest)})"
            return f"No cheaper model is equivalent to {within}: {more}."
        open_ = rows[rows["verdict"] == UNDECIDED].sort_values("difference", ascending=False)
        return f"{_undecided(open_, answer)}."
    row = rows[rows["model"] == answer.model].iloc[0]
    saved = saving(row["relative_cost"], answer.cost)
    texts = {
        EQUIVALENT: f"is equivalent to {within} ({saved})",
        NOT_WORSE: f"is not worse than {answer.reference} by more than {answer.margin:g} ({saved})",
        BETTER: f"is better than {answer.reference} ({_numbers(row)}; {saved})",
    }
    parts = [f"{answer.model} {texts[row['verdict']]}"]
    less = rows[rows["relative_cost"] < row["relative_cost"]]
    less = less.sort_values(["relative_cost", "difference"], ascending=False)
    worse, open_ = less[less["verdict"] == WORSE], less[less["verdict"] == UNDECIDED]
    if len(worse):
        more = count(len(worse) - 1, "cheaper model") if len(worse) > 1 else ""
        more = f", nor {'are' if len(worse) > 2 else 'is'} {more}" if more else ""
        parts.append(f"{worse.iloc[0]['model']} is not ({_numbers(worse.iloc[0])}){more}")
    parts += [_undecided(open_, answer).replace("Undecided", "undecided", 1)] if len(open_) else []
    return "; ".join(parts) + "."


def _undecided(rows: pd.DataFrame, answer: Cheapest) -> str:
    first, more = rows.iloc[0], len(rows) - 1
    why = f"; {first['why']}" if first["why"] else ""
    rest = f" and {more} more" if more else ""
    both = f"{first['model']} ({_numbers(first)}{why}){rest}"
    verb = "are" if more else "is"
    within = f"{answer.reference} within {answer.margin:g}"
    return f"Undecided: whether {both} {verb} equivalent to {within}"


def _numbers(row: pd.Series) -> str:
    low, high = row["difference_low"], row["difference_high"]
    if math.isnan(low):
        return signed(row["difference"])
    return f"{signed(row['difference'])}, 95 % interval {signed(low)} to {signed(high)}"


def saving(relative: float, cost: str) -> str:
    """Return by how much a model is cheaper than the reference.

    >>> saving(1 / 16, "bytes"), saving(0.3, "seconds"), saving(0.88, "price")
    ('16 times smaller', '3.3 times faster', '12 % cheaper')
    """
    less = COSTS.get(cost, STATED).less
    if relative <= 0:
        return "at no cost"
    if relative > 0.5:
        return f"{percent(1 - relative, 0)} {less}"
    times = 1 / relative
    return (
        f"{f'{times:,.0f}' if times >= 10 or times.is_integer() else f'{times:.1f}'} times {less}"
    )


def cost_text(value: float, cost: str) -> str:
    """Return a cost with its unit.

    >>> cost_text(1024, "bytes"), cost_text(0.00123, "seconds"), cost_text(2.5, "price")
    ('1,024', '1.23 ms', '2.5')
    """
    if math.isnan(value):
        return "–"
    if cost == "seconds":
        size, unit = next((s, u) for s, u in ((1, "s"), (1e-3, "ms"), (0, "µs")) if value >= s)
        return f"{value / (size or 1e-6):.3g} {unit}"
    return fixed(value, 0) if value >= 1000 or value == int(value) else f"{value:.3g}"


def cheapest_rows(answer: Cheapest) -> pd.DataFrame:
    """Return the models as text."""
    rows = answer.models
    bounds = (rows["difference"], rows["difference_low"], rows["difference_high"])
    return pd.DataFrame(
        {
            "model": rows["model"],
            answer.cost: [cost_text(value, answer.cost) for value in rows["cost"]],
            "score": rows["score"].map(rounded),
            "difference": [interval(*bound) for bound in zip(*bounds, strict=True)],
            "verdict": rows["verdict"],
        }
    )


def cheapest_table(answer: Cheapest) -> Table:
    """Return one row per model, the cheapest first: cost, score, difference and verdict."""
    rows = cheapest_rows(answer)
    verdicts = zip(rows["verdict"], rows["model"] == answer.model, strict=True)
    against = f"against {middle_cut(answer.reference)}"
    return Table(
        groups=[],
        model=text_column("model", map(middle_cut, rows["model"]), right=False),
        columns=[
            text_column(answer.cost, rows[answer.cost]),
            text_column("score", rows["score"], part="task"),
            text_column("difference", rows["difference"]),
            Column("verdict", [Cell(text, best) for text, best in verdicts], right=False),
        ],
        starts=[0],
        caption=f"{count(len(rows), 'model')} by {answer.cost}, {against}",
        notes=[],
    )
