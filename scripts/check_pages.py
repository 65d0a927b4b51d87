"""Write docs/checks/*.md, one page per check, from the rules.

python scripts/check_pages.py
"""

from __future__ import annotations

from pathlib import Path

from karat.analysis.checks import RULES, render_page

FOLDER = Path(__file__).parent.parent / "docs" / "checks"


def write_pages(folder: Path) -> None:
    """Write a page per check into a folder, and delete the pages of checks that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in folder.glob("KRT*.md"):
        page.unlink()
    for rule in RULES:
        (folder / f"{rule.code}.md").write_text(render_page(rule), encoding="utf-8")


def index_table(folder: str = "checks") -> str:
    """Return a Markdown table of all checks with links to their pages."""
    rows = [
        f"| [{rule.code}]({folder}/{rule.code}.md) | {rule.level} | {rule.title} |"
        for rule in RULES
    ]
    return "\n".join(["| code | level | what |", "|---|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    write_pages(FOLDER)
