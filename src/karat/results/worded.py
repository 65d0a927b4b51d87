"""The conclusion of a comparison as a sentence, and how it is printed and written to files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from karat.results.files import write_atomic
from karat.results.significance import ALPHA

#: a Bayesian probability from here on counts as a conclusion
PROBABLE = 1 - ALPHA
#: with fewer tasks Wilcoxon's p stays above 0.05 even for a win on all: 2 / 2⁵ = 0.0625
FEWEST = 6
UNTOLD = "no significant difference"


@dataclass(frozen=True)
class Words:
    """Sentences about two models."""

    first: str
    second: str
    rope: float

    def verdict(self, tasks: pd.DataFrame, overall: Any) -> str:
        """Return the conclusion in one or two sentences."""
        if not overall.tasks:
            return f"{self.first} and {self.second} could not be compared on any task."
        if overall.tasks == 1:
            return self._one(tasks[tasks["folds"] > 0].iloc[0])
        if overall.tasks < FEWEST:
            return f"{self._counts(overall)}. A test over tasks needs at least {FEWEST} tasks."
        return self._many(overall)

    def _one(self, row: pd.Series) -> str:
        if not row["better"]:
            why = "" if not math.isnan(row["p"]) else " (its folds allow no test)"
            return f"{self._none()} on {row['task']}{why}."
        worse = self.second if row["better"] == self.first else self.first
        return (
            f"{row['better']} is better than {worse} on {row['task']} "
            f"({row['metric']} {signed(row['difference'])}, p {p_value(row['p_holm'])})."
        )

    def _many(self, overall: Any) -> str:
        over = f"over {overall.tasks} tasks"
        ahead = overall.rank_biserial > 0
        first, second = (self.first, self.second) if ahead else (self.second, self.first)
        p_ahead = overall.p_better if ahead else overall.p_worse
        beyond = f"by more than {self.rope:g} with probability {chance(p_ahead)}"
        p, significant = p_value(overall.p), bool(overall.p < ALPHA)
        if overall.p_equal >= PROBABLE:
            but = f", though {first} is significantly ahead (p {p})" if significant else ""
            return (
                f"{self.first} and {self.second} are practically equal {over}: within "
                f"{self.rope:g} with probability {chance(overall.p_equal)}{but}."
            )
        if significant:
            return f"{first} is better than {second} {over} (p {p}), {beyond}."
        if p_ahead >= PROBABLE:
            return (
                f"{first} is probably better than {second} {over}, {beyond}, but the difference "
                f"is not significant (p {p})."
            )
        tasks = f"; {self._counts(overall)}" if overall.better + overall.worse else ""
        return f"{self._none()} {over} (p {p}){tasks}."

    def _none(self) -> str:
        return f"{self.first} and {self.second} do not differ significantly"

    def _counts(self, overall: Any) -> str:
        """Return on how many tasks which model is better; the one that leads is named first."""
        if not overall.better + overall.worse + overall.untested:
            return f"{self._none()} on any of {overall.tasks} tasks"
        first, second, wins, losses = self.first, self.second, overall.better, overall.worse
        if losses > wins:
            first, second, wins, losses = second, first, losses, wins
        return f"{first} is significantly better than {second} on " + _listed(
            f"{wins} of {overall.tasks} tasks",
            (losses, f"worse on {losses}"),
            (overall.untold, f"{UNTOLD} on {overall.untold}"),
            (overall.untested, f"{overall.untested} not tested"),
        )


def _listed(first: str, *counted: tuple[int, str]) -> str:
    return ", ".join([first, *(text for count, text in counted if count)])


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
    """Return a value with three decimals, or four significant digits from 10 on."""
    if math.isnan(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:#.4g}".rstrip(".")


def p_value(p: float) -> str:
    """Return p with three decimals.

    >>> p_value(0.0301), p_value(0.00002), p_value(1.0)
    ('0.030', '< 0.001', '1.000')
    """
    return "–" if math.isnan(p) else "< 0.001" if p < 0.0005 else f"{p:.3f}"


def chance(p: float) -> str:
    """Return a probability estimated by sampling, which is never shown as 0 or 1.

    >>> chance(0.97), chance(1.0), chance(0.0)
    ('0.970', '> 0.999', '< 0.001')
    """
    return "> 0.999" if p > 0.9995 else p_value(p)


def interval(value: float, low: float, high: float) -> str:
    """Return a difference with its interval, if it has one."""
    return signed(value) if math.isnan(low) else f"{signed(value)} [{signed(low)}, {signed(high)}]"


# -- tables and files -----------------------------------------------------------------------


def records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a table as dictionaries, None for what is missing."""
    return table.astype(object).where(table.notna(), None).to_dict(orient="records")


def write_tables(folder: str | Path, prefix: str, tables: Mapping[str, pd.DataFrame]) -> list[Path]:
    """Write tables as ``prefix_name.csv`` into a folder, and return the files."""
    paths = [Path(folder) / f"{prefix}_{name}.csv" for name in tables]
    for path, table in zip(paths, tables.values(), strict=True):
        write_atomic(path, table.to_csv(index=False, lineterminator="\n"))
    return paths


# -- in a shell, in a notebook --------------------------------------------------------------


def shown(found: Any) -> pd.DataFrame:
    """Return the tasks of a comparison as text; those without any score are left to the notes."""
    rows = found.tasks[found.tasks[["first", "second"]].notna().any(axis=1)]
    tested = zip(rows["better"], rows["folds"], rows["p"].notna(), strict=True)
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
            "better": [name or _undecided(folds, known) for name, folds, known in tested],
        }
    )


def _undecided(folds: int, tested: bool) -> str:
    return "not compared" if not folds else UNTOLD if tested else "not tested"


def overall_lines(found: Any) -> list[str]:
    """Return the results over all tasks, line by line."""
    o = found.overall
    if not o.tasks:
        return []
    counts = _listed(
        f"significantly better on {o.better}, worse on {o.worse}, {UNTOLD} on {o.untold}",
        (o.untested, f"{o.untested} not tested"),
    )
    lines = [f"{o.tasks} of {o.of} tasks: {o.wins} won, {o.ties} tied, {o.losses} lost; {counts}"]
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
    """Return a comparison as text: conclusion, tasks, all tasks together, notes."""
    table = shown(found).rename(columns={"first": found.first, "second": found.second})
    table = table.map(_printable).rename(columns=_printable)
    parts = [table.to_string(index=False), "\n".join(overall_lines(found))]
    notes = "\n".join(_printable(note) for note in found.notes)
    return "\n\n".join(part for part in (_printable(found.sentence), *parts, notes) if part)


def _printable(text: str) -> str:
    """Return a text without control characters."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def repr_html(found: Any) -> str:
    """Return a comparison as HTML, with all names escaped."""
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
