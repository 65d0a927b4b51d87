"""What an analysis found: a sentence, tables and notes, and every form of output made from them."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from karat.core.formatting import dump_json, plain, records, write_tables
from karat.errors import DefinitionError, did_you_mean
from karat.output.table import Table, first_rows

if TYPE_CHECKING:
    from rich.console import Console

#: columns of the text of a result
TEXT_WIDTH = 80
#: rows of a table in the text of a result and in a notebook
MAX_ROWS = 20


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What an analysis found.

    A subclass is a dataclass with ``repr=False``. It has a ``sentence``, may have ``details``,
    ``notes`` and ``tables()``, and says which of its fields are data frames.
    """

    #: prefix of CSV files
    csv_prefix: ClassVar[str] = "result"
    #: fields that are data frames, the one that ``--format csv`` prints first
    frames: ClassVar[tuple[str, ...]] = ()
    #: fields that no output has, such as runs
    hidden: ClassVar[tuple[str, ...]] = ()
    #: properties that JSON has, too
    computed: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:  # a subclass has a property or a field of this name

        @property
        def sentence(self) -> str:
            """The answer in words."""

    @property
    def details(self) -> list[str]:
        """Further sentences."""
        return []

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return 0

    def tables(self) -> list[Table]:
        """Return the tables as texts, each with its legend."""
        return []

    def csv_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables as numbers, by name."""
        named = {name: getattr(self, name) for name in self.frames}
        return {name: frame for name, frame in named.items() if frame is not None}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON; NaN and infinite numbers are None."""
        names = [field.name for field in fields(self) if field.name not in self.hidden]
        facts = {name: plain_value(getattr(self, name)) for name in (*names, *self.computed)}
        return {"sentence": self.sentence, **facts}

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write the tables as CSV files into a folder, and return the files."""
        return write_tables(folder, self.csv_prefix, self.csv_tables())

    def to_markdown(self) -> str:
        """Return the tables, then the sentences and notes, as Markdown."""
        from karat.output.markdown_table import escape_markdown, markdown_table

        return _document(self, markdown_table, escape_markdown)

    def to_latex(self) -> str:
        """Return the tables, then the sentences and notes, as LaTeX."""
        from karat.output.latex_table import escape_latex, latex_table

        return _document(self, latex_table, escape_latex)

    def to_html(self) -> str:
        """Return the tables, then the sentences and notes, as an HTML fragment."""
        from karat.output.html_table import html_table

        return _document(self, html_table, lambda line: f"<p>{escape(line)}</p>")

    def render(self, form: str = "text") -> str:
        """Return the result as "text", "markdown", "latex", "html", "json" or "csv"."""
        if form not in FORMS:
            names, hint = ", ".join(f'"{name}"' for name in FORMS), did_you_mean(form, FORMS)
            raise DefinitionError(f"invalid format {form!r}: expected one of {names}.{hint}")
        return FORMS[form](self)

    def print_on_terminal(self, console: Console | None = None) -> None:
        """Print the tables, the sentence in bold type, further sentences, and the notes."""
        _print_on_terminal(self, console)

    def __repr__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        from karat.output.html_table import html_table

        parts = [f"<p><strong>{escape(plain(self.sentence))}</strong></p>"]
        parts += [html_table(replace(table, notes=[])) for table in _short_tables(self)]
        below = "<br>".join(map(escape, [*_details(self), *_notes(self, _short_tables(self))]))
        return "\n".join([*parts, f"<p><small>{below}</small></p>" if below else ""])


def show(result: Result, form: str | None = None) -> int:
    """Print a result in a format, by default for a terminal, and return its exit code."""
    if form in (None, "table"):
        result.print_on_terminal()
    else:
        sys.stdout.write(result.render(str(form)))
    return result.exit_code


def show_all(results: Sequence[Result], form: str | None = None) -> int:
    """Print several results; JSON is a list, CSV one table. Return the largest exit code."""
    if form == "json":
        sys.stdout.write(dump_json([result.to_dict() for result in results]))
    elif form == "csv":
        sys.stdout.write(_csv_text(pd.concat(map(_first_frame, results))))
    else:
        for result in results:
            show(result, form)
    return max((result.exit_code for result in results), default=0)


def plain_value(value: object) -> Any:
    """Return a value as JSON has it: a number, text, list or mapping; tables as lists of rows.

    >>> plain_value({"a": (1.5, float("nan")), "b": None})
    {'a': [1.5, None], 'b': None}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, pd.DataFrame):
        return [plain_value(row) for row in records(value)]
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): plain_value(item) for key, item in value.items()}
    if is_dataclass(value):
        return {field.name: plain_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Sequence | np.ndarray | set | frozenset):
        return [plain_value(item) for item in value]
    return str(value)


def _line(text: str) -> str:
    """Return a text on one line; an item of a list keeps its indent."""
    return " " * (len(text) - len(text.lstrip(" "))) + plain(text)


def _details(result: Result) -> list[str]:
    return list(map(_line, result.details))


def _notes(result: Result, tables: Sequence[Table]) -> list[str]:
    """Return the legends of the tables and the notes."""
    legends = [note for table in tables for note in table.notes]
    return list(map(_line, [*legends, *getattr(result, "notes", ())]))


def _short_tables(result: Result) -> list[Table]:
    return [first_rows(table, MAX_ROWS) for table in result.tables() if len(table)]


def _document(result: Result, write: Callable[[Table], str], escaped: Callable[[str], str]) -> str:
    """Return the tables, then all lines below the last one."""
    tables = result.tables()
    lines = [plain(result.sentence), *_details(result), *_notes(result, tables)]
    if not tables:
        return "\n\n".join(map(escaped, lines)) + "\n"
    tables = [replace(table, notes=[]) for table in tables]
    return "\n".join(map(write, [*tables[:-1], replace(tables[-1], notes=lines)]))


# -- text -----------------------------------------------------------------------------------


def _text(result: Result) -> str:
    """Return the sentence, the tables, further sentences and notes, at most 80 columns wide."""
    from rich.console import Console

    # in a notebook, rich would display the text as another output
    console = Console(file=io.StringIO(), width=TEXT_WIDTH, color_system=None, force_jupyter=False)
    with console.capture() as captured:
        for at, block in enumerate(_blocks(result)):
            if at:
                console.print()
            for part in block:
                console.print(part, highlight=False)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _blocks(result: Result) -> Iterator[list[Any]]:
    """Yield the parts of a text: lines, and tables as rich shows them."""
    from rich.text import Text

    from karat.output.terminal_table import table_parts, wrap

    tables = _short_tables(result)
    margin = " " if tables else ""
    yield [Text(line) for line in wrap(plain(result.sentence), TEXT_WIDTH, "", "")]
    for table in tables:
        caption = [Text(line) for line in wrap(plain(table.caption), TEXT_WIDTH)]
        yield [*caption, *table_parts(replace(table, notes=[]), TEXT_WIDTH)[:-1]]
    for lines in (_details(result), _notes(result, tables)):
        if lines:
            yield [Text(part) for line in lines for part in wrap(line, TEXT_WIDTH, margin, margin)]


def _print_on_terminal(result: Result, console: Console | None) -> None:
    """Print the tables, the sentence in bold type, further sentences, and the notes."""
    from rich.console import Console, Group
    from rich.text import Text

    from karat.output.terminal_table import table_parts

    console, tables = console or Console(highlight=False), result.tables()
    for table in tables:
        console.print(Text(f" {table.caption}\n"), soft_wrap=True)
        console.print(Group(*table_parts(replace(table, notes=[]), console.width)))
    print_lines_below(console, [plain(result.sentence)], _details(result), _notes(result, tables))


def print_lines_below(
    console: Console, bold: Sequence[str], lines: Sequence[str], dim: Sequence[str]
) -> None:
    """Print the lines below a table, with an empty line after the sentences."""
    from rich.text import Text

    from karat.output.terminal_table import wrap

    for style, texts in (("bold", bold), ("", lines), ("dim", dim)):
        for line in (line for text in texts for line in wrap(text, console.width)):
            console.print(Text(line, style=style), soft_wrap=True)
        if texts and style != "dim":
            console.print()


def _first_frame(result: Result) -> pd.DataFrame:
    return next(iter(result.csv_tables().values()), pd.DataFrame())


def _csv_text(frame: pd.DataFrame) -> str:
    return str(frame.to_csv(index=False, lineterminator="\n"))


FORMS: dict[str, Callable[[Result], str]] = {
    "text": _text,
    "markdown": lambda result: result.to_markdown(),
    "latex": lambda result: result.to_latex(),
    "html": lambda result: result.to_html(),
    "json": lambda result: dump_json(result.to_dict()),
    "csv": lambda result: _csv_text(_first_frame(result)),
}
