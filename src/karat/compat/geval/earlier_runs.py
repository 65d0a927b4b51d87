"""Comparison with earlier runs: their scores, and the rank of the new run."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from karat.compat.geval.gold import COMPARED, RANKED, comparison_text
from karat.compat.geval.parameters import ALL, Parameters
from karat.core.files import write_atomic
from karat.errors import DataError, DefinitionError, did_you_mean

#: part of the ids of legacy runs, which are compared with legacy runs only
LEGACY = "legacy"
#: seconds to wait for a lock
PATIENCE = 60.0


class Store:
    """The scores of all runs of a results folder, in a file with GEval's columns."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "comparison.csv"

    def read(self) -> pd.DataFrame:
        """Return all stored scores."""
        if not self.path.is_file():
            return pd.DataFrame(columns=list(COMPARED))
        with self.path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file, delimiter=" "))
        if not lines or tuple(lines[0]) != COMPARED or any(len(r) != len(COMPARED) for r in lines):
            raise DataError(
                f"{self.path} is damaged: expected the columns {', '.join(COMPARED)}, separated by "
                f"blanks. Move the file away to start a new one."
            )
        table = pd.DataFrame(lines[1:], columns=list(COMPARED), dtype=object)
        numbers = ["coverage", "score_value"]
        return table.assign(**{n: pd.to_numeric(table[n], errors="coerce") for n in numbers})

    def check(self, wanted: Sequence[str]) -> None:
        """Raise if a run id does not exist."""
        known = list(dict.fromkeys(self.read()["test_name"]))
        unknown = [run for run in wanted if run not in known] if ALL not in wanted else []
        if unknown:
            available = ", ".join(known) or "none"
            raise DefinitionError(
                *(
                    f'compare_with: unknown run "{run}".{did_you_mean(run, known)} '
                    f"Runs in {self.path}: {available}."
                    for run in unknown
                )
            )

    def add(self, stem: str, rows: Sequence[Mapping[str, Any]]) -> str:
        """Store the scores of a new run under a new id, and return the id."""
        with self._locked():
            earlier = self.read()
            name = f"{stem}_{next_number(stem, earlier['test_name'])}"
            new = pd.DataFrame([{"test_name": name, **row} for row in rows], columns=list(COMPARED))
            write_atomic(
                self.path, comparison_text(pd.concat([earlier, new]) if len(earlier) else new)
            )
        return name

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_suffix(".lock")
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                break
            except FileExistsError:
                if time.monotonic() > deadline:
                    raise DataError(
                        f"{lock} is held by another run; delete it if no other run is active."
                    ) from None
                time.sleep(0.05)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def stem_of(params: Parameters, size: int) -> str:
    """Return the prefix of a run id: file, size, metric and k."""
    metric: Any = params.similarity_metric
    named = metric if isinstance(metric, str) else getattr(metric, "__name__", "own")
    path = Path(params.vector_filename)
    packed = path.with_suffix("") if path.suffix.lower() in (".gz", ".zst") else path
    stem = f"{packed.with_suffix('')}_{size}_{named}_{params.top_k}"
    return f"{stem}_{LEGACY}" if params.protocol == LEGACY else stem


def next_number(stem: str, names: Sequence[str]) -> int:
    """Return the next free number of a stem.

    >>> next_number("cities_200", ["cities_200_9", "cities_200_10", "cities_2000_11"])
    11
    """
    numbers = [re.fullmatch(re.escape(stem) + "_([0-9]+)", name) for name in names]
    return max((int(found[1]) for found in numbers if found), default=0) + 1


def is_legacy(name: str) -> bool:
    """Return whether a run used the legacy protocol.

    >>> is_legacy("v_200_cosine_2_legacy_3"), is_legacy("v_200_cosine_2_3")
    (True, False)
    """
    return re.search(f"_{LEGACY}_[0-9]+$", name) is not None


def compared(table: pd.DataFrame, own: str, wanted: Sequence[str]) -> pd.DataFrame:
    """Return the scores of a run and of the runs it is compared with."""
    chosen = table if ALL in wanted else table[table["test_name"].isin([own, *wanted])]
    chosen = chosen[chosen["test_name"].map(is_legacy) == is_legacy(own)]
    keys = table.loc[table["test_name"] == own, list(RANKED)].drop_duplicates()
    return chosen.merge(keys, on=list(RANKED))[list(COMPARED)]
