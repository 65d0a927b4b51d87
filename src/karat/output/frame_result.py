"""A result that is a data frame."""

from __future__ import annotations

import pandas as pd

from karat.core.formatting import dump_json, records
from karat.output.result import Result

#: methods of results that data frames have, too
DOCUMENTS = {
    "markdown": Result.to_markdown,
    "latex": Result.to_latex,
    "html": Result.to_html,
}


class FrameResult(pd.DataFrame, Result):
    """A data frame that prints as a result; ``render`` makes the other forms.

    It is used like any data frame: methods such as ``to_csv`` are those of pandas, and what pandas
    makes of it are plain data frames. A subclass has a ``sentence``, ``tables()`` and ``notes``; it
    prints as a plain data frame if a column that these need was removed.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    @property
    def frame(self) -> pd.DataFrame:
        """The same numbers as a plain data frame, which prints as one."""
        plain = pd.DataFrame(self)
        plain.attrs.update(self.attrs)
        return plain

    @property
    def notes(self) -> list[str]:
        """What was left out and why."""
        return list(self.attrs.get("notes", ()))

    def render(self, form: str = "text") -> str:
        """Return the result as "text", "markdown", "latex", "html", "json" or "csv"."""
        if form in DOCUMENTS:
            return DOCUMENTS[form](self)
        if form == "json":
            return dump_json(records(self.frame))
        return Result.render(self, form)

    def csv_tables(self) -> dict[str, pd.DataFrame]:
        """Return the data frame."""
        return {"table": self.frame}

    def __repr__(self) -> str:
        try:
            return self.render()
        except KeyError:  # a column was removed in place
            return repr(self.frame)

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        try:
            return Result._repr_html_(self)
        except KeyError:
            return str(self.frame._repr_html_())
