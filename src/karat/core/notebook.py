"""Notebooks: whether one is open, an output that changes, and HTML forms of records."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    import pandas as pd

#: rows of a table that a notebook shows
MOST_ROWS = 20
#: height of a page inside a notebook, in pixels
FRAME = 600


def in_notebook() -> bool:
    """Return whether this is the kernel of a notebook, whose outputs can change.

    >>> in_notebook()
    False
    """
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookOutput:
    """An output of a notebook cell; ``show`` writes it, and later replaces it."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, html: str, text: str) -> None:
        """Show this content, as HTML where the front end can."""
        content = {"text/html": html, "text/plain": text}
        if self._handle is None:
            from IPython.display import display

            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


class PagePath(type(Path())):  # type: ignore[misc]  # the class of paths of this system
    """The path of an HTML page; a notebook links the page and shows it.

    >>> path = PagePath("report.html")
    >>> path
    report.html
    >>> path == Path("report.html"), str(path), Path(path).suffix
    (True, 'report.html', '.html')
    """

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        try:
            address = quote(self.absolute().relative_to(Path.cwd()).as_posix())
        except ValueError:  # a notebook serves the files below its folder
            return f"<p>{escape(str(self))}</p>"
        link = f'<a href="{address}" target="_blank">{escape(str(self))}</a>'
        frame = f'<iframe src="{address}" width="100%" height="{FRAME}" style="border:0"></iframe>'
        return f"<p>{link}</p>{frame}"


class PageFiles(list[Path]):
    """The files of a site; its text form names the first page."""

    def __repr__(self) -> str:
        start = next((path for path in self if path.name == "index.html"), None)
        return f"{start or 'no pages'} and {len(self) - 1:,} more files" if self else "no files"

    def _repr_html_(self) -> str:
        start = [path for path in self if path.name == "index.html"][:1]
        links = "".join(PagePath(path)._repr_html_() for path in start)
        return f"{links}<p>{len(self):,} files</p>"


def facts_html(title: str, facts: Mapping[str, Any], tables: Iterable[pd.DataFrame] = ()) -> str:
    """Return a title, a table of names and values, and the first rows of tables.

    Empty values are left out.

    >>> facts_html("churn", {"rows": 4, "weight": None})
    '<div><p><strong>churn</strong></p><table><tr><th>rows</th><td>4</td></tr></table></div>'
    """
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
        for name, value in facts.items()
        if value not in (None, "", ())
    )
    tables_text = "".join(table_html(table) for table in tables)
    head = f"<p><strong>{escape(title)}</strong></p>"
    return f"<div>{head}{f'<table>{rows}</table>' if rows else ''}{tables_text}</div>"


def table_html(table: pd.DataFrame, index: bool = False) -> str:
    """Return the first rows of a table, which scrolls where it is too wide."""
    rows = table.head(MOST_ROWS).to_html(index=index)
    hidden = len(table) - MOST_ROWS
    more = f"<p><small>… and {hidden:,} more rows</small></p>" if hidden > 0 else ""
    return f'<div style="overflow-x:auto">{rows}{more}</div>'
