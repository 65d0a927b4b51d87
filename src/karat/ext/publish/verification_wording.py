"""What a verification found, in words and as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from karat.core.formatting import plain
from karat.output.markdown_table import escape_markdown, markdown_table
from karat.output.table import Table, text_column

if TYPE_CHECKING:
    from karat.ext.publish.verification import Verification


def verification_sentence(verification: Verification) -> str:
    """Return the outcome, and which checks could not be made."""
    if verification.verified:
        return "Verified."
    skipped = verification.skipped.items()
    parts = [f"{name} ({why})" if why else name for name, why in skipped]
    lacking = f"{len(parts)} of {len(verification.checks)} checks could not be made"
    lacking = f"{lacking}: {', '.join(parts)}." if parts else ""
    return f"{'Refused.' if verification.refused else 'Not refused, but'} {lacking}".strip()


def verification_table(verification: Verification) -> Table:
    """Return one row per check."""
    rows = verification.checks
    columns = [text_column(name, rows[name], right=False) for name in ("outcome", "detail")]
    first = text_column("check", rows["check"], right=False)
    return Table([], first, columns, [0], plain(verification.name), [])


def verification_markdown(verification: Verification) -> str:
    """Return the comment of a verification: the outcome, the reasons, the checks, the notes."""
    answer = "refused" if verification.refused else verification.sentence.rstrip(".")
    title = plain(f"{verification.name}: {answer[0].lower()}{answer[1:]}")
    parts = [f"### {escape_markdown(title)}"]
    parts += ["\n".join(f"- {escape_markdown(plain(line))}" for line in verification.details)]
    parts += [markdown_table(replace(verification_table(verification), caption=""))]
    parts += ["\n".join(f"- {escape_markdown(plain(note))}" for note in verification.notes)]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n\n"
