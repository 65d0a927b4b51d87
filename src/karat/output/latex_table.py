"""A table as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence

from karat.output.table import Table, marked, shown_cells

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
        "†": r"\textdagger{}",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "\ufffd": "?",
    }
)


def latex_table(table: Table) -> str:
    """Return a booktabs tabular with caption and notes below it."""
    columns = table.all_columns
    heads = [[escape_latex(column.name) for column in columns]]
    if any(column.label for column in columns):
        heads.append([escape_latex(column.label) for column in columns])
    rows = zip(*shown_cells(table), strict=True)
    body = [_latex_row([marked(c, escape_latex, r"\textbf{{{}}}") for c in row]) for row in rows]
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
