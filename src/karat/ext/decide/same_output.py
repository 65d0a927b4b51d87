"""Whether two encoders are the same, in every output format."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.ext.decide.same_encoder import Same
from karat.output.table import Table, text_column
from karat.reporting.comparison_output import show_result


def show_same(found: Same, shape: str | None = None) -> None:
    """Print whether two encoders are the same, with the measured values."""
    rows = found.lines()
    levels = [level for level, _, _ in rows]
    place = pd.factorize(pd.Series(levels, dtype=object))[0]
    table = Table(
        groups=[text_column("level", levels, right=False)],
        model=text_column("measure", [name for _, name, _ in rows], right=False),
        columns=[text_column("value", [value for _, _, value in rows])],
        starts=np.flatnonzero(np.diff(place, prepend=-1)).tolist(),
        caption=f"{found.a} against {found.b}",
        notes=[*found.flip_lines(), *found.notes],
    )
    frame = pd.DataFrame(rows, columns=["level", "measure", "value"])
    show_result(table, [found.sentence], shape, found.to_dict(), frame)
