"""Leaderboards and other tables as Markdown, LaTeX, HTML, CSV or JSON."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Sequence

import pandas as pd
from rich.cells import cell_len

from karat.errors import DefinitionError, did_you_mean
from karat.report.tables import Cell, Column, Table, frame_table, make_table

_MARKDOWN = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {sign: f"\\{sign}" for sign in "\\`*[]|~"}
)
#: an underscore that is not inside a word starts or ends an emphasis
_EMPHASIS = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "{}$&#_%"}
    # LaTeX reads a star or bracket at the start of a row as an argument of the previous \\\\
    | {sign: f"{{{sign}}}" for sign in "[]*"}
    | {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "`": r"\textasciigrave{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"{\char34}",
        "–": r"\textendash{}",
        "…": r"\ldots{}",
        "·": r"\textperiodcentered{}",
        "×": r"$\times$",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "\ufffd": "?",
    }
)


def render(board: pd.DataFrame, shape: str) -> str:
    """Return a leaderboard as "markdown", "latex", "html", "csv" or "json".

    CSV and JSON contain numbers at full precision; missing values are empty.
    """
    if shape not in FORMATS:
        names, hint = ", ".join(f'"{name}"' for name in FORMATS), did_you_mean(shape, FORMATS)
        raise DefinitionError(f"invalid format {shape!r}: expected one of {names}.{hint}")
    return FORMATS[shape](board)


def render_frame(frame: pd.DataFrame, shape: str) -> str:
    """Return any data frame in one of the formats of ``render``."""
    machine = shape in ("csv", "json")
    return (
        render(frame.set_index(frame.columns[0]), shape)
        if machine
        else DOCUMENTS[shape](frame_table(frame))
    )


def to_csv(board: pd.DataFrame) -> str:
    """Return CSV with numbers at full precision."""
    return str(board.to_csv(lineterminator="\n"))


def to_json(board: pd.DataFrame) -> str:
    """Return a JSON list of rows."""
    rows = board.reset_index().to_dict(orient="records")
    plain = [{str(k): _empty(v) for k, v in row.items()} for row in rows]
    return dump_json(plain)


def dump_json(value: object) -> str:
    """Return indented JSON."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def records(table: pd.DataFrame) -> list[dict[str, object]]:
    """Return the rows of a table; missing and infinite values are None."""
    rows = table.astype(object).where(table.notna(), None).to_dict(orient="records")
    return [{str(k): None if v == math.inf else v for k, v in row.items()} for row in rows]


def _empty(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_markdown(board: pd.DataFrame | Table) -> str:
    """Return a caption, a GitHub table and the notes."""
    table = make_table(board)
    columns = []
    for column, cells in zip(table.all_columns, _shown(table), strict=True):
        heading = "<br>".join(escape_markdown(part) for part in (column.name, column.label) if part)
        texts = [heading, *(_markdown_cell(cell) for cell in cells)]
        width = max(3, *map(cell_len, texts))
        padded = [_padded(text, width, column.right) for text in texts]
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


def _markdown_cell(cell: Cell) -> str:
    text = escape_markdown(cell.text.strip())
    return f"**{text}**" if cell.best else text


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def to_latex(board: pd.DataFrame | Table) -> str:
    """Return a booktabs tabular with caption and notes below it."""
    table = make_table(board)
    columns = table.all_columns
    heads = [[escape_latex(column.name) for column in columns]]
    if any(column.label for column in columns):
        heads.append([escape_latex(column.label) for column in columns])
    body = [_latex_row([_latex_cell(c) for c in row]) for row in zip(*_shown(table), strict=True)]
    for start in reversed(table.starts[1:]):
        body.insert(start, r"\addlinespace")
    sides = "".join("r" if column.right else "l" for column in columns)
    below = escape_latex(" ".join(filter(None, [table.caption, *table.notes])))
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        *map(_latex_row, heads),
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    lines += [r"\par\smallskip", rf"{{\footnotesize {below}\par}}"] if below else []
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    r"""Escape a text for LaTeX.

    >>> print(escape_latex("50 % of my_model & [rest]"))
    50 \% of my\_model \& {[}rest{]}
    """
    # LaTeX would turn two hyphens into a dash
    return re.sub("-(?=-)", "-{}", text.translate(_LATEX))


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(cell: Cell) -> str:
    text = escape_latex(cell.text.strip())
    return rf"\textbf{{{text}}}" if cell.best else text


#: inline styles, because a fragment has no style sheet; colors adapt to the page around it
_LINE = "border-bottom:1px solid #8886"
_TABLE = "border-collapse:collapse;text-align:right;font-variant-numeric:tabular-nums"
_NOTE = "font-size:.85em;opacity:.8;margin:.4em 0;text-align:left"


def to_html(board: pd.DataFrame | Table) -> str:
    """Return an HTML table that needs no style sheet, script or other file."""
    table = make_table(board)
    columns = table.all_columns
    heads = "".join(_html_heading(column) for column in columns)
    rows = []
    for i, row in enumerate(zip(*_shown(table), strict=True)):
        line = f' style="{_LINE.replace("bottom", "top")}"' if i in table.starts[1:] else ""
        cells = [_html_cell(*pair) for pair in zip(row, columns, strict=True)]
        rows.append(f"<tr{line}>{''.join(cells)}</tr>\n")
    notes = "".join(f'<p style="{_NOTE}">{html.escape(note)}</p>\n' for note in table.notes)
    caption = f'<caption style="{_NOTE}">{html.escape(table.caption)}</caption>\n'
    caption = caption if table.caption else ""
    return (
        '<div style="overflow-x:auto">\n'
        f'<table cellpadding="4" style="{_TABLE}">\n'
        f"{caption}<thead>"
        f'<tr style="{_LINE}">{heads}</tr></thead>\n'
        f"<tbody>\n{''.join(rows)}</tbody>\n</table>\n{notes}</div>\n"
    )


def _html_heading(column: Column) -> str:
    label = f'<br><small style="opacity:.8">{html.escape(column.label)}</small>'
    text = html.escape(column.name) + (label if column.label else "")
    side = "right" if column.right else "left"
    return f'<th scope="col" style="text-align:{side};vertical-align:top">{text}</th>'


def _html_cell(cell: Cell, column: Column) -> str:
    text = html.escape(cell.text)
    text = f"<b>{text}</b>" if cell.best else f"<i>{text}</i>" if cell.faint else text
    if column.right:
        return f"<td>{text}</td>"
    # align the letters of ties
    look = ";white-space:pre;font-family:monospace" if column.name == "tie" else ""
    # <bdi> isolates names in right-to-left scripts
    return f'<td style="text-align:left{look}"><bdi>{text}</bdi></td>'


def lines_below(lines: Sequence[str], shape: str) -> str:
    r"""Return lines below a leaderboard in Markdown, LaTeX or HTML.

    >>> print(lines_below(["50 % of a_b", "c"], "latex"), end="")
    {\footnotesize 50 \% of a\_b\par}
    {\footnotesize c\par}
    """
    if shape == "markdown":
        return "".join(f"\n- {escape_markdown(line)}" for line in lines) + "\n" * bool(lines)
    if shape == "latex":
        return "".join(f"{{\\footnotesize {escape_latex(line)}\\par}}\n" for line in lines)
    items = "".join(f"<li>{html.escape(line)}</li>\n" for line in lines)
    return f'<ul style="{_NOTE}">\n{items}</ul>\n' if items else ""


def _shown(table: Table) -> list[Sequence[Cell]]:
    """Return the cells of every column; only the first row of a group has its name."""
    first = set(table.starts)
    groups = [
        [cell if row in first else Cell("") for row, cell in enumerate(column.cells)]
        for column in table.groups
    ]
    return [*groups, *(column.cells for column in (table.model, *table.columns))]


DOCUMENTS: dict[str, Callable[[pd.DataFrame | Table], str]] = {
    "markdown": to_markdown,
    "latex": to_latex,
    "html": to_html,
}
FORMATS: dict[str, Callable[[pd.DataFrame], str]] = {**DOCUMENTS, "csv": to_csv, "json": to_json}
