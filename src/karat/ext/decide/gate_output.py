"""The outcome of a gate in every output format."""

from __future__ import annotations

import sys
from dataclasses import replace

import pandas as pd

from karat.core.formatting import interval, middle_cut, plain, rounded, signed
from karat.errors import KaratError
from karat.ext.decide.gate import Gate, GateRates
from karat.output.markdown_table import escape_markdown
from karat.output.table import Table, text_column
from karat.reporting.comparison_output import show_result
from karat.reporting.formats import DOCUMENTS
from karat.results.run import Run


def show_gate(found: Gate, shape: str | None = None) -> None:
    """Print the outcome of a gate; in Markdown also changes of robustness and of checks."""
    lines = [plain(found.sentence)]
    lines += [plain(found.rates.sentence)] if found.rates else []
    if shape == "markdown":
        sys.stdout.write(gate_markdown(found))
        return
    flips = ["Items that became worse most:", *found.flip_lines()] if len(found.flips) else []
    show_result(
        gate_table(found), [*lines, *map(plain, flips)], shape, found.to_dict(), found.tasks
    )


def gate_table(found: Gate) -> Table:
    """Return one row per task: both scores, the difference, and the outcome."""
    rows = found.tasks
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
        caption=f"{middle_cut(found.new)} against {middle_cut(found.baseline)}",
        notes=list(map(plain, found.notes)),
    )


def gate_markdown(found: Gate) -> str:
    """Return the comment of a gate: outcome, leaderboard, robustness, checks, flips, rates."""
    parts = [f"### Gate: {found.outcome}", escape_markdown(plain(found.sentence))]
    table = replace(gate_table(found), notes=[], caption="")
    parts += ["#### Leaderboard", DOCUMENTS["markdown"](table)]
    changed = robustness_change(*found.runs)
    if len(changed):
        parts += ["#### Robustness", _render_frame(changed)]
    findings = new_findings(*found.runs)
    parts += ["#### Checks", "\n".join(findings) or "No new finding."]
    if len(found.flips):
        flips = (escape_markdown(plain(line)) for line in found.flip_lines())
        parts += ["#### Items that became worse most", "\n".join(f"- {line}" for line in flips)]
    parts += [found.rates.sentence] if found.rates else []
    parts += [escape_markdown(plain(note)) for note in found.notes]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _render_frame(frame: pd.DataFrame) -> str:
    """Return a frame of texts as a Markdown table."""
    first, *others = (text_column(str(name), frame[name], right=name != "task") for name in frame)
    return DOCUMENTS["markdown"](Table([], first, others, [0], "", []))


def robustness_change(new: list[Run], baseline: list[Run]) -> pd.DataFrame:
    """Return the share of the clean score kept under corruption, of both, by task, as text."""
    from karat.analysis.robustness import robustness

    try:
        tables = [robustness(runs, pool="model") for runs in (baseline, new)]
    except KaratError:  # no corrupted views
        return pd.DataFrame()
    both = [table.set_index("task")["retention"] for table in tables]
    found = pd.DataFrame({"baseline": both[0], "new": both[1]}).dropna()
    change = found["new"] - found["baseline"]
    shown = found.map(rounded).assign(difference=change.map(signed))
    return shown.reset_index(names="task")


def new_findings(new: list[Run], baseline: list[Run]) -> list[str]:
    """Return the findings of the checks that only the new runs have."""
    from karat.analysis.checks import check_runs

    known = {(each.code, each.task) for each in check_runs(baseline, pool="model")}
    found = [e for e in check_runs(new, pool="model") if (e.code, e.task) not in known]
    return [f"- {e.code} ({e.level}): {escape_markdown(plain(e.message))}" for e in found]


def show_rates(found: GateRates, shape: str | None = None) -> None:
    """Print the error rates of a gate."""
    rows = found.rates
    shares = [
        text_column(name.replace("_", " "), (f"{100 * share:.1f} %" for share in rows[name]))
        for name in ("failed", "cannot_tell", "passed")
    ]
    table = Table(
        groups=[],
        model=text_column("true loss", (f"{loss:g}" for loss in rows["loss"])),
        columns=shares,
        starts=[0],
        caption=f"{found.simulations:,} simulated gates per row",
        notes=[],
    )
    show_result(table, [found.sentence], shape, found.to_dict(), rows)
