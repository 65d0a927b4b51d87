"""Comparison with earlier runs: what they scored, and where the new one stands among them."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.compat.geval.parameters import ALL, Parameters
from karat.compat.geval.tables import LOWER
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.results.files import write_atomic
from karat.results.geval_names import COMPARED

COLUMNS = COMPARED
#: what two scores must agree in to be compared
SAME = ("task_name", "gold_standard_file", "model", "model_configuration", "metric")
NAME = "comparison.csv"
#: in the ids of runs by the old protocol, whose scores are compared with one another only
LEGACY = "legacy"
#: seconds to wait for another run that writes the same file
PATIENCE = 60.0


class Store:
    """The scores of all runs of a results folder, in one file with GEval's columns."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME

    def read(self) -> pd.DataFrame:
        """Return all scores there are."""
        if not self.path.is_file():
            return pd.DataFrame(columns=list(COLUMNS))
        with self.path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file, delimiter=" "))
        if not lines or tuple(lines[0]) != COLUMNS or any(len(r) != len(COLUMNS) for r in lines):
            raise DataError(
                f"{self.path} is damaged: it needs the columns {', '.join(COLUMNS)}, separated by "
                f"blanks; move it away to begin a new one."
            )
        table = pd.DataFrame(lines[1:], columns=list(COLUMNS), dtype=object)
        numbers = ["coverage", "score_value"]
        return table.assign(**{n: pd.to_numeric(table[n], errors="coerce") for n in numbers})

    def check(self, wanted: Sequence[str]) -> None:
        """Refuse a run id that there is none of, before anything is run."""
        if ALL in wanted:
            return
        known = self.runs()
        lost = [run for run in wanted if run not in known]
        if lost:
            raise DefinitionError(
                *(
                    f'compare_with: there is no earlier run "{run}".{did_you_mean(run, known)} '
                    f"{self.path} has: {', '.join(known) or 'none'}."
                    for run in lost
                )
            )

    def runs(self) -> list[str]:
        """Return the ids of all earlier runs, in their order."""
        return list(dict.fromkeys(self.read()["test_name"]))

    def add(self, stem: str, rows: Sequence[Mapping[str, Any]]) -> str:
        """Keep the scores of a new run under an id of its own, and return the id."""
        with self._locked():
            earlier = self.read()
            name = f"{stem}_{next_number(stem, earlier['test_name'])}"
            new = pd.DataFrame([{"test_name": name, **row} for row in rows], columns=list(COLUMNS))
            write_atomic(self.path, _text(pd.concat([earlier, new]) if len(earlier) else new))
        return name

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_suffix(".lock")
        begun = time.monotonic()
        while True:
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                break
            except FileExistsError:
                if time.monotonic() - begun > PATIENCE:
                    raise DataError(
                        f"{lock} is held by another run; delete it if there is none."
                    ) from None
                time.sleep(0.05)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def stem_of(asked: Parameters, size: int) -> str:
    """Return what the id of a run begins with: file, size, metric and k."""
    metric: Any = asked.similarity_metric
    named = metric if isinstance(metric, str) else getattr(metric, "__name__", "own")
    path = Path(asked.vector_filename)
    packed = path.with_suffix("") if path.suffix.lower() in (".gz", ".zst") else path
    stem = f"{packed.with_suffix('')}_{size}_{named}_{asked.top_k}"
    return f"{stem}_{LEGACY}" if asked.protocol == LEGACY else stem


def next_number(stem: str, names: Sequence[str]) -> int:
    """Return the first number that no run of this stem has; numbers, not texts, are compared.

    >>> next_number("cities_200", ["cities_200_9", "cities_200_10", "cities_2000_11"])
    11
    """
    numbers = [re.fullmatch(re.escape(stem) + "_([0-9]+)", name) for name in names]
    return max((int(found[1]) for found in numbers if found), default=0) + 1


def is_legacy(name: str) -> bool:
    """Return whether a run was made by the old protocol.

    >>> is_legacy("v_200_cosine_2_legacy_3"), is_legacy("v_200_cosine_2_3")
    (True, False)
    """
    return re.search(f"_{LEGACY}_[0-9]+$", name) is not None


def compared(table: pd.DataFrame, own: str, wanted: Sequence[str]) -> pd.DataFrame:
    """Return the scores of a run and of those it is compared with."""
    kept = table if ALL in wanted else table[table["test_name"].isin([own, *wanted])]
    kept = kept[kept["test_name"].map(is_legacy) == is_legacy(own)]
    mine = table[table["test_name"] == own]
    return kept.merge(mine[list(SAME)].drop_duplicates(), on=list(SAME))[list(COLUMNS)]


def ranking(table: pd.DataFrame, own: str, first: int = 1) -> pd.DataFrame:
    """Return where a run stands: the best has the rank ``first``, equals share the best of theirs.

    A score that is none has the rank -1. ``absolute_total`` counts the scores compared,
    ``relative_total`` those that differ.
    """
    rows = []
    for key, part in table.groupby(list(SAME), sort=False, dropna=False):
        found = dict(zip(SAME, key, strict=True))
        values = part["score_value"].to_numpy(dtype=float)
        mine = float(values[(part["test_name"] == own).to_numpy()][0])
        others = values[~np.isnan(values)]
        better = others < mine if found["metric"] in LOWER else others > mine
        place = -1 if np.isnan(mine) else first + int(better.sum())
        share = part["coverage"].to_numpy(dtype=float)
        rows.append(
            {
                **found,
                "ranking": place,
                "absolute_total": len(others),
                "relative_total": len(np.unique(others)),
                "coverage": share[(part["test_name"] == own).to_numpy()][0],
                "lowest_coverage": share.min(),
                "highest_coverage": share.max(),
            }
        )
    return pd.DataFrame(rows)


def _text(table: pd.DataFrame) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=" ", lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in table.itertuples(index=False):
        writer.writerow(["" if cell is None else cell for cell in row])
    return buffer.getvalue()
