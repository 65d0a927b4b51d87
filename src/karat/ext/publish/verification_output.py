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


def show_verifications(verifications: Sequence[Verification], shape: str | None = None) -> None:
    """Print what was checked in each run, and why it is refused."""
    if shape == "json":
        sys.stdout.write(dump_json([verification.to_dict() for verification in verifications]))
    elif shape == "csv":
        tables = [
            verification.checks.assign(run=verification.run.folder.resolve().name)
            for verification in verifications
        ]
        sys.stdout.write(pd.concat(tables).to_csv(index=False, lineterminator="\n"))
    else:
        for verification in verifications:
            name = plain(verification.run.folder.resolve().name)
            if shape == "markdown":
                answer = "refused" if verification.refused else verification.sentence.rstrip(".")
                title = f"{name}: {answer[0].lower()}{answer[1:]}"
                sys.stdout.write(verification_markdown(verification, plain(title)))
                continue
            reasons = [plain(f"{reason.check}: {reason}") for reason in verification.reasons]
            table = verification_table(verification, name)
            show_result(
                table,
                lines=[plain(verification.sentence), *reasons],
                shape=shape,
                whole=None,
                rows=verification.checks,
            )


def verification_table(verification: Verification, caption: str) -> Table:
    """Return one row per check."""
    rows = verification.checks
    columns = [text_column(name, rows[name], right=False) for name in ("outcome", "detail")]
    first = text_column("check", rows["check"], right=False)
    return Table(
        groups=[],
        model=first,
        columns=columns,
        starts=[0],
        caption=caption,
        notes=list(map(plain, verification.notes)),
    )


def verification_markdown(verification: Verification, title: str) -> str:
    """Return the comment of a verification: the outcome, the reasons, the checks, the notes."""
    parts = [f"### {escape_markdown(title)}"]
    reasons = (f"- {reason.check}: {reason}" for reason in verification.reasons)
    parts += ["\n".join(escape_markdown(plain(line)) for line in reasons)]
    parts += [DOCUMENTS["markdown"](replace(verification_table(verification, ""), notes=[]))]
    parts += ["\n".join(f"- {escape_markdown(plain(note))}" for note in verification.notes)]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n\n"
