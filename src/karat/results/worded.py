"""Worded: a verdict in plain words, and how it shows itself in a shell or a notebook."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from karat.results.significance import ALPHA

#: so sure is sure: a chance from here on is said without a perhaps
SURE = 1 - ALPHA
#: with fewer tasks not even a win on all of them is beyond chance: 2 / 2⁵ is above 0.05
FEWEST = 6
UNTOLD = "cannot be told apart"


@dataclass(frozen=True)
class Words:
    """What is said about two models."""

    first: str
    second: str
    rope: float

    def verdict(self, tasks: pd.DataFrame, overall: Any) -> str:
        """Return one sentence, or two where the tasks say more than all of them together."""
        if not overall.tasks:
            return f"{self.first} and {self.second} could not be compared on any task."
        if overall.tasks == 1:
            (row,) = (row for _, row in tasks.iterrows() if row["folds"] > 0)
            return self._one(row)
        if overall.tasks < FEWEST:
            return self._few(overall)
        return self._many(overall)

    def _one(self, row: pd.Series) -> str:
        if not row["better"]:
            why = "" if not math.isnan(row["p"]) else "; its folds allow no test"
            return f"{self.first} and {self.second} {UNTOLD} on {row['task']}{why}."
        worse = self.second if row["better"] == self.first else self.first
        better = f"{row['better']} is better than {worse} on {row['task']}"
        return (
            f"{better} ({row['metric']} {signed(row['difference'])}, p {p_value(row['p_holm'])})."
        )

    def _few(self, overall: Any) -> str:
        few = f"So few tasks say no more; a verdict over tasks takes {FEWEST}."
        if overall.better + overall.worse + overall.untested:
            return f"{self._told(overall)}. {few}"
        return f"{self.first} and {self.second} {UNTOLD} on any of {overall.tasks} tasks. {few}"

    def _many(self, overall: Any) -> str:
        over = f"over {overall.tasks} tasks"
        ahead = overall.rank_biserial > 0
        first, second = (self.first, self.second) if ahead else (self.second, self.first)
        sure = overall.p_better if ahead else overall.p_worse
        if overall.p_equal >= SURE:
            but = (
                f", though {first} is ahead more often than by chance"
                if self._real(overall)
                else ""
            )
            return (
                f"{self.first} and {self.second} are practically equal {over}: within "
                f"{self.rope:g} with probability {chance(overall.p_equal)}{but}."
            )
        if self._real(overall):
            return (
                f"{first} is better than {second} {over} (p {p_value(overall.p)}), by more than "
                f"{self.rope:g} with probability {chance(sure)}."
            )
        if sure >= SURE:
            return (
                f"{first} is probably better than {second} {over}, by more than {self.rope:g} with "
                f"probability {chance(sure)}, but chance could do it too (p {p_value(overall.p)})."
            )
        told = f"; {self._told(overall)}" if overall.better + overall.worse else ""
        return f"{self.first} and {self.second} {UNTOLD} {over} (p {p_value(overall.p)}){told}."

    def _real(self, overall: Any) -> bool:
        return bool(overall.p < ALPHA)

    def _told(self, overall: Any) -> str:
        """Return on how many tasks which model is better; the one that leads is named first."""
        first, second, wins, losses = self.first, self.second, overall.better, overall.worse
        if losses > wins:
            first, second, wins, losses = second, first, losses, wins
        said = f"{first} is better than {second} on {wins} of {overall.tasks} tasks"
        said += f", worse on {losses}" if losses else ""
        said += f"; they {UNTOLD} on {overall.untold}" if overall.untold else ""
        return said + (f" ({overall.untested} not tested)" if overall.untested else "")


# -- numbers --------------------------------------------------------------------------------


def signed(value: float) -> str:
    """Return a difference with its sign.

    >>> signed(0.0123), signed(-123.456), signed(0.0)
    ('+0.012', '-123.5', '0.000')
    """
    if math.isnan(value):
        return "–"
    text = number(abs(value))
    return text if not float(text) else f"{'-' if value < 0 else '+'}{text}"


def number(value: float) -> str:
    """Return a value as it is shown: three digits, or four that count."""
    if math.isnan(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:#.4g}".rstrip(".")


def p_value(p: float) -> str:
    """Return p with three digits, or that it is smaller.

    >>> p_value(0.0301), p_value(0.00002), p_value(1.0)
    ('0.030', '< 0.001', '1.000')
    """
    return "–" if math.isnan(p) else "< 0.001" if p < 0.0005 else f"{p:.3f}"


def chance(p: float) -> str:
    """Return a probability; what was drawn at random never looks sure.

    >>> chance(0.97), chance(1.0), chance(0.0)
    ('0.970', '> 0.999', '< 0.001')
    """
    return "> 0.999" if p > 0.9995 else p_value(p)


def interval(value: float, low: float, high: float) -> str:
    """Return a difference with its interval, if it has one."""
    return signed(value) if math.isnan(low) else f"{signed(value)} [{signed(low)}, {signed(high)}]"


# -- in a shell, in a notebook --------------------------------------------------------------


def shown(found: Any) -> pd.DataFrame:
    """Return the rows of a verdict as text."""
    # of what neither has a score, a note says it
    rows = found.tasks[found.tasks[["first", "second"]].notna().any(axis=1)]
    tested = zip(rows["better"], rows["folds"], rows["p"].notna(), strict=True)
    better = [name or _untold(folds, known) for name, folds, known in tested]
    arrow = rows["higher_is_better"].map({True: " ↑", False: " ↓"})
    bounds = (rows["difference"], rows["difference_low"], rows["difference_high"])
    return pd.DataFrame(
        {
            "task": rows["task"],
            "metric": rows["metric"] + arrow,
            "first": rows["first"].map(number),
            "second": rows["second"].map(number),
            "difference": [interval(*each) for each in zip(*bounds, strict=True)],
            "p": rows["p_holm"].map(p_value),
            "better": better,
        }
    )


def _untold(folds: int, tested: bool) -> str:
    return "not compared" if not folds else UNTOLD if tested else "not tested"


def overall_lines(found: Any) -> list[str]:
    """Return what is said over all tasks, line by line."""
    o = found.overall
    if not o.tasks:
        return []
    told = f"told better on {o.better}, worse on {o.worse}, neither on {o.untold}"
    told += f", {o.untested} not tested" if o.untested else ""
    lines = [f"{o.tasks} of {o.of} tasks: {o.wins} won, {o.ties} tied, {o.losses} lost; {told}"]
    if o.tasks > 1:
        lines += [
            f"mean gain {interval(o.gain, o.gain_low, o.gain_high)}; Wilcoxon p {p_value(o.p)}",
            f"P(better) {chance(o.p_better)}, P(equal within {found.rope:g}) {chance(o.p_equal)}, "
            f"P(worse) {chance(o.p_worse)}",
            f"effect: rank-biserial {signed(o.rank_biserial)}, probability of superiority "
            f"{o.superiority:.3f}, Cohen's d {signed(o.cohens_d)}",
        ]
    return lines


def repr_text(found: Any) -> str:
    """Return a verdict as text: the sentence, the tasks, all tasks together, the notes."""
    table = shown(found).rename(columns={"first": found.first, "second": found.second})
    table = table.map(_printable).rename(columns=_printable)
    parts = [table.to_string(index=False), "\n".join(overall_lines(found))]
    notes = "\n".join(_printable(note) for note in found.notes)
    return "\n\n".join(part for part in (_printable(found.sentence), *parts, notes) if part)


def _printable(text: str) -> str:
    """Return a text without signs that steer a terminal."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def repr_html(found: Any) -> str:
    """Return a verdict as HTML; names are text, whatever they hold."""
    heads = ["task", "metric", found.first, found.second, "difference", "p", "better"]
    rows = shown(found).to_numpy().tolist()
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    below = "".join(f"<br>{escape(line)}" for line in [*overall_lines(found), *found.notes])
    return (
        f"<p><strong>{escape(found.sentence)}</strong></p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table><p><small>{below.removeprefix('<br>')}</small></p>"
    )
