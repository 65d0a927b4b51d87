"""What a verification found, in every output format."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from karat.core.formatting import dump_json, plain
from karat.ext.publish.verification import Verification
from karat.output.markdown_table import escape_markdown
from karat.output.table import Table, text_column
from karat.reporting.comparison_output import show_result
from karat.reporting.formats import DOCUMENTS


def show_verifications(found: Sequence[Verification], shape: str | None = None) -> None:
    """Print what was checked in each run, and why it is refused."""
    if shape == "json":
        sys.stdout.write(dump_json([each.to_dict() for each in found]))
    elif shape == "csv":
        tables = [each.checks.assign(run=each.run.folder.resolve().name) for each in found]
        sys.stdout.write(pd.concat(tables).to_csv(index=False, lineterminator="\n"))
    else:
        for each in found:
            name = plain(each.run.folder.resolve().name)
            if shape == "markdown":
                answer = "refused" if each.refused else each.sentence.rstrip(".")
                title = f"{name}: {answer[0].lower()}{answer[1:]}"
                sys.stdout.write(verification_markdown(each, plain(title)))
                continue
            reasons = [plain(f"{reason.check}: {reason}") for reason in each.reasons]
            table = verification_table(each, name)
            show_result(table, [plain(each.sentence), *reasons], shape, None, each.checks)


def verification_table(found: Verification, caption: str) -> Table:
    """Return one row per check."""
    rows = found.checks
    columns = [text_column(name, rows[name], right=False) for name in ("outcome", "detail")]
    first = text_column("check", rows["check"], right=False)
    return Table([], first, columns, [0], caption, list(map(plain, found.notes)))


def verification_markdown(found: Verification, title: str) -> str:
    """Return the comment of a verification: the outcome, the reasons, the checks, the notes."""
    parts = [f"### {escape_markdown(title)}"]
    reasons = (f"- {reason.check}: {reason}" for reason in found.reasons)
    parts += ["\n".join(escape_markdown(plain(each)) for each in reasons)]
    parts += [DOCUMENTS["markdown"](replace(verification_table(found, ""), notes=[]))]
    parts += ["\n".join(f"- {escape_markdown(plain(note))}" for note in found.notes)]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n\n"
