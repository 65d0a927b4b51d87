"""A table as Markdown."""

from __future__ import annotations

import re

from rich.cells import cell_len

from karat.output.table import Table, marked, shown_cells

_MARKDOWN = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {sign: f"\\{sign}" for sign in "\\`*[]|~"}
)
#: an underscore that is not inside a word starts or ends an emphasis
_EMPHASIS = re.compile(r"(?<![^\W_])_|_(?![^\W_])")


def markdown_table(table: Table) -> str:
    """Return a caption, a GitHub table and the notes."""
    columns = []
    for column, cells in zip(table.all_columns, shown_cells(table), strict=True):
        heading = "<br>".join(escape_markdown(part) for part in (column.name, column.label) if part)
        texts = [heading, *(marked(cell, escape_markdown, "**{}**") for cell in cells)]
        width = max(3, *map(cell_len, texts))
        spaces = [" " * (width - cell_len(text)) for text in texts]
        pairs = zip(texts, spaces, strict=True)
        padded = [space + text if column.right else text + space for text, space in pairs]
        rule = "-" * (width - 1) + ":" if column.right else "-" * width
        columns.append([padded[0], rule, *padded[1:]])
    lines = [f"| {' | '.join(row)} |" for row in zip(*columns, strict=True)]
    notes = escape_markdown(" ".join(table.notes))
    return (
        "\n\n".join(filter(None, [escape_markdown(table.caption), "\n".join(lines), notes])) + "\n"
    )


def escape_markdown(text: str) -> str:
    r"""Escape a text for Markdown, also inside a table.

    >>> escape_markdown("a|b <script> my_model _x_")
    'a\\|b &lt;script&gt; my_model \\_x\\_'
    """
    return _EMPHASIS.sub(r"\\_", text.translate(_MARKDOWN))
