"""Whether two encoders are the same, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from karat.output.table import Table, text_column

if TYPE_CHECKING:
    from karat.ext.decide.same_encoder import Same


def same_table(same: Same) -> Table:
    """Return one row per measured value, by level; below it the items with other answers."""
    rows = same.lines()
    levels = [level for level, _, _ in rows]
    codes = pd.factorize(pd.Series(levels, dtype=object))[0]
    return Table(
        groups=[text_column("level", levels, right=False)],
        model=text_column("measure", [name for _, name, _ in rows], right=False),
        columns=[text_column("value", [value for _, _, value in rows])],
        starts=np.flatnonzero(np.diff(codes, prepend=-1)).tolist(),
        caption=f"{same.a} against {same.b}",
        notes=same.flip_lines(),
    )
