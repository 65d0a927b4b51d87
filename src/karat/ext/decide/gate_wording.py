"""The outcome of a gate and its error rates in words and tables."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from karat.core.formatting import (
    count,
    interval,
    middle_cut,
    percent,
    plain,
    rounded,
    short_percent,
    signed,
)
from karat.errors import KaratError
from karat.output.markdown_table import escape_markdown, markdown_table
from karat.output.table import Table, text_column
from karat.results.run import Run

if TYPE_CHECKING:
    from karat.ext.decide.gate import Gate, GateRates


def gate_sentence(gate: Gate) -> str:
    """Return the outcome in words."""
    mean = interval(gate.difference, gate.difference_low, gate.difference_high)
    tested = count(int(gate.tasks["difference"].notna().sum()), "task")
    start = f"{gate.outcome.capitalize()}: {gate.new} against {gate.baseline}, margin "
    text = f"{start}{gate.margin:g}."
    if not math.isnan(gate.difference):
        text += f" Mean difference on {tested}: {mean}."
    return " ".join([text, *gate.reasons])


def gate_table(gate: Gate) -> Table:
    """Return one row per task: both scores, the difference, and the outcome."""
    rows = gate.tasks
    bounds = (rows[f"difference{end}"] for end in ("", "_low", "_high"))
    return Table(
        groups=[],
        model=text_column("task", map(middle_cut, rows["task"]), right=False),
        columns=[
            text_column("metric", rows["metric"], right=False),
            text_column("baseline", rows["baseline"].map(rounded)),
            text_column("new", rows["new"].map(rounded)),
            text_column("difference", map(interval, *bounds), part="task"),
            text_column("outcome", rows["outcome"], right=False, part="task"),
        ],
        starts=[0],
        caption=f"{middle_cut(gate.new)} against {middle_cut(gate.baseline)}",
        notes=[],
    )


def gate_markdown(gate: Gate) -> str:
    """Return the comment of a gate: outcome, leaderboard, robustness, checks, flips, rates."""
    parts = [f"### Gate: {gate.outcome}", escape_markdown(plain(gate.sentence))]
    table = replace(gate_table(gate), caption="")
    parts += ["#### Leaderboard", markdown_table(table)]
    if all(gate.runs):
        parts += _changes_of_runs(*gate.runs)
    if len(gate.flips):
        flips = (escape_markdown(plain(line)) for line in gate.flip_lines())
        parts += ["#### Items that became worse most", "\n".join(f"- {line}" for line in flips)]
    parts += [gate.rates.sentence] if gate.rates else []
    parts += [escape_markdown(plain(note)) for note in gate.notes]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _changes_of_runs(new: list[Run], baseline: list[Run]) -> list[str]:
    """Return what changed in robustness and in the findings of checks."""
    changed = robustness_change(new, baseline)
    parts = ["#### Robustness", _render_frame(changed)] if len(changed) else []
    findings = new_findings(new, baseline)
    return [*parts, "#### Checks", "\n".join(findings) or "No new finding."]


def _render_frame(frame: pd.DataFrame) -> str:
    """Return a frame of texts as a Markdown table."""
    first, *others = (text_column(str(name), frame[name], right=name != "task") for name in frame)
    return markdown_table(Table([], first, others, [0], "", []))


def robustness_change(new: list[Run], baseline: list[Run]) -> pd.DataFrame:
    """Return the share of the clean score kept under corruption, of both, by task, as text."""
    from karat.analysis.robustness import robustness

    try:
        tables = [robustness(runs, pool="model") for runs in (baseline, new)]
    except KaratError:  # no corrupted views
        return pd.DataFrame()
    both = [table.set_index("task")["retention"] for table in tables]
    retention = pd.DataFrame({"baseline": both[0], "new": both[1]}).dropna()
    change = retention["new"] - retention["baseline"]
    texts = retention.map(rounded).assign(difference=change.map(signed))
    return texts.reset_index(names="task")


def new_findings(new: list[Run], baseline: list[Run]) -> list[str]:
    """Return the findings of the checks that only the new runs have."""
    from karat.analysis.checks import check_runs

    old_findings = {(finding.code, finding.task) for finding in check_runs(baseline, pool="model")}
    added = [e for e in check_runs(new, pool="model") if (e.code, e.task) not in old_findings]
    return [f"- {e.code} ({e.level}): {escape_markdown(plain(e.message))}" for e in added]


def rates_sentence(rates: GateRates) -> str:
    """Return the error rates in one sentence."""
    free = rates.rates.iloc[0]
    losses = [
        f"a loss of {row.loss:g} is found in {short_percent(row.failed)}"
        for row in rates.rates.iloc[1:].itertuples()
    ]
    return (
        f"At margin {rates.margin:g} on {count(len(rates.tasks), 'task')}: false alarms "
        f"{short_percent(free['failed'])}, cannot tell {short_percent(free['cannot_tell'])}, "
        f"{', '.join(losses)} of cases. Noise: {rates.noise}."
    )


def rates_table(rates: GateRates) -> Table:
    """Return the shares of outcomes, one row per true loss."""
    rows = rates.rates
    return Table(
        groups=[],
        model=text_column("true loss", (f"{loss:g}" for loss in rows["loss"])),
        columns=[
            text_column(name.replace("_", " "), map(percent, rows[name]))
            for name in ("failed", "cannot_tell", "passed")
        ],
        starts=[0],
        caption=f"{rates.simulations:,} simulated gates per row",
        notes=[],
    )
