"""Write the tables of promises in docs/systems from ``tests/ext/compat/SYSTEM/promises.yaml``.

Each row of a table is what another system promises, the command or call of Karat that keeps it, and
whether it works or differs, with the reason. ``tests/ext/compat/test_promises.py`` runs every row.

python scripts/promises.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parent.parent
SYSTEMS = ("tabeb", "taco", "ulysses", "amlb", "geval", "mteb")


def promises_file(system: str) -> Path:
    """Return the file of the promises of a system."""
    return ROOT / "tests" / "ext" / "compat" / system / "promises.yaml"


def has_promises(system: str) -> bool:
    """Return whether the promises of a system are written."""
    return promises_file(system).exists()


def read_promises(system: str) -> dict[str, Any]:
    """Return the promises of a system: ``rows``, and if any ``setups`` and ``migration``."""
    return YAML(typ="safe").load(promises_file(system))


def cell(text: str) -> str:
    """Return text as a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def code_cell(call: str) -> str:
    """Return each line of code as a code span."""
    lines = [line for line in call.strip().splitlines() if line.strip()]
    spans = (line.replace("|", "\\|").strip() for line in lines)
    return "<br>".join(f"`` {line} ``" if "`" in line else f"`{line}`" for line in spans)


def test_cell(test: str) -> str:
    """Return a short link to the file of a test; its title is the name of the test."""
    path, _, name = test.partition("::")
    return f'[test](../../{path} "{name}")'


def outcome_cell(row: dict[str, Any]) -> str:
    """Return "works", or "differs" with the reason."""
    reason = cell(row.get("differs", ""))
    return f"differs: {reason}" if reason else "works"


def counts_line(rows: list[dict[str, Any]]) -> str:
    """Return how many promises work, and how many differ."""
    differ = sum(bool(row.get("differs")) for row in rows)
    return f"{len(rows)} promises: {len(rows) - differ} work as there, {differ} differ."


def table_lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Return the counts and the lines of the tables, one table per section."""
    yield from ("", counts_line(rows))
    section = None
    for row in rows:
        if row["section"] != section:
            section = row["section"]
            yield from ("", f"### {section}", "")
            yield from (
                "| promise | command or call | works or differs | test |",
                "|---|---|---|---|",
            )
        cells = (cell(row["promise"]), code_cell(row["call"]), outcome_cell(row))
        yield f"| {' | '.join(cells)} | {test_cell(row['test'])} |"


def migration_lines(migration: dict[str, Any]) -> Iterator[str]:
    """Return what changes in a script, and an example, which test_promises.py runs."""
    yield from ("", "Calls stay as they are. What changes:", "")
    yield from ("| there | with Karat |", "|---|---|")
    for original, ours in migration["replace"].items():
        yield f"| {code_cell(original)} | {code_cell(ours)} |"
    language = migration.get("language", "py")
    yield from ("", "For example:", "", "<!-- not run: needs files of another system -->")
    yield from (f"```{language}", migration["example"].rstrip(), "```")


def rendered(page: str, promises: dict[str, Any]) -> str:
    """Return a page with its migration example and its tables replaced."""
    parts = {"table": table_lines(promises["rows"])}
    if "migration" in promises:
        parts["migration"] = migration_lines(promises["migration"])
    for name, lines in parts.items():
        begin, end = f"<!-- promises: {name} -->", f"<!-- end of promises: {name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"The page needs one line {begin!r} and one line {end!r}.")
        made = "\n".join([begin, *lines, "", end])
        page = re.sub(f"{begin}.*{end}", lambda _: made, page, flags=re.DOTALL)  # noqa: B023
    return page


def page_of(system: str) -> Path:
    """Return the docs page of a system."""
    return ROOT / "docs" / "systems" / f"{system}.md"


if __name__ == "__main__":
    for each in filter(has_promises, SYSTEMS):
        page = page_of(each)
        page.write_text(rendered(page.read_text(), read_promises(each)))
