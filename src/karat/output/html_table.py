"""A table as HTML."""

from __future__ import annotations

import html
from collections.abc import Mapping

from karat.output.table import TIE, Cell, Column, Table, shown_cells

NOTE_STYLE = "font-size:.85em;opacity:.8;margin:.4em 0;text-align:left"
#: attributes of elements: inline styles, because a fragment has no style sheet; colors adapt to
#: the page around it
_STYLES = {
    "div": 'style="overflow-x:auto"',
    "table": 'cellpadding="4" style="border-collapse:collapse;text-align:right;'
    'font-variant-numeric:tabular-nums"',
    "head": 'style="border-bottom:1px solid #8886"',
    "group": 'style="border-top:1px solid #8886"',
    "number": 'style="text-align:right;vertical-align:top"',
    "text": 'style="text-align:left;vertical-align:top"',
    "tie": 'style="text-align:left;white-space:pre;font-family:monospace"',
    "label": 'style="opacity:.8"',
    "note": f'style="{NOTE_STYLE}"',
}
#: classes of the report's style sheet
_CLASSES = {
    "div": 'class="wide" tabindex="0"',
    **dict.fromkeys(("number", "cell"), 'class="number"'),
    "long": 'class="wrap"',
    "note": 'class="notes"',
}
#: longer texts are wrapped
LINE = 40


def html_table(table: Table, classes: bool = False) -> str:
    """Return an HTML table that needs no other file; ``classes`` uses those of the report."""
    look = _CLASSES if classes else _STYLES
    heads = []
    for column in table.all_columns:
        label = _element(look, "small", "label", html.escape(column.label)) if column.label else ""
        text = html.escape(column.name) + ("<br>" if label and not classes else "") + label
        heads.append(_element(look, 'th scope="col"', "number" if column.right else "text", text))
    rows = []
    for i, row in enumerate(zip(*shown_cells(table), strict=True)):
        pairs = zip(row, table.all_columns, strict=True)
        cells = "".join(_html_cell(look, cell, column) for cell, column in pairs)
        rows.append(_element(look, "tr", "group" if i in table.starts[1:] else "", cells) + "\n")
    escaped = html.escape(table.caption)
    caption = _element(look, "caption", "note", escaped) + "\n" if escaped else ""
    head = f"<thead>{_element(look, 'tr', 'head', ''.join(heads))}</thead>"
    body = f"<tbody>\n{''.join(rows)}</tbody>"
    notes = "".join(_element(look, "p", "note", html.escape(n)) + "\n" for n in table.notes)
    whole = _element(look, "table", "table", f"\n{caption}{head}\n{body}\n")
    return _element(look, "div", "div", f"\n{whole}\n{notes}") + "\n"


def _html_cell(look: Mapping[str, str], cell: Cell, column: Column) -> str:
    text = html.escape(cell.text)
    text = f"<b>{text}</b>" if cell.best else f"<i>{text}</i>" if cell.faint else text
    if "long" in look and len(cell.text) > LINE:
        text = _element(look, "span", "long", text)
    text = f'<a href="{html.escape(cell.link)}">{text}</a>' if cell.link else text
    if column.right:
        return _element(look, "td", "cell", text)
    # <bdi> isolates names in right-to-left scripts
    role = TIE if column.name.startswith(TIE) else "text"
    return _element(look, "td", role, f"<bdi>{text}</bdi>")


def _element(look: Mapping[str, str], tag: str, role: str, text: str) -> str:
    attributes = f" {look[role]}" if role in look else ""
    return f"<{tag}{attributes}>{text}</{tag.split()[0]}>"
