"""The costs of a job against those of a new run: sizes exactly, memory within a factor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: what two runs of a job have in common to the last digit
SIZES = ("dimensions", "precision", "vector_bytes")
#: all costs of a record that leaderboards show
COSTS = (*SIZES, "peak_memory_mb", "seconds")
#: libraries and platforms differ by less in memory
MEMORY_FACTOR = 3.0
#: differences below this many MB are those of the libraries that a process has loaded
MEMORY_SLACK = 200.0


def size_differences(record: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sizes of vectors that differ from those of a new run.

    >>> list(size_differences({"dimensions": 8}, {"dimensions": 70}))
    ['dimensions is 8 in the record, and 70 in a new run.']
    """
    for name in SIZES:
        if name in record and record[name] != again.get(name):
            yield f"{name} is {record[name]} in the record, and {again.get(name)} in a new run."


def is_less_memory(claimed: float | None, measured: float | None) -> bool:
    """Return whether a record has far less memory than a new run needed.

    >>> is_less_memory(10.0, 250.0), is_less_memory(150.0, 300.0), is_less_memory(None, 300.0)
    (True, False, False)
    """
    if claimed is None or measured is None:
        return False
    return measured > MEMORY_FACTOR * claimed and measured - claimed > MEMORY_SLACK


def unequal_costs(
    records: list[dict[str, Any]], others: list[Mapping[str, Any]]
) -> tuple[str, int | None] | None:
    """Return the first job, by task and fold, whose costs differ in two lists of records."""
    costs = {(r["task"], r["fold"]): [r.get(name) for name in COSTS] for r in records}
    for other in others:
        job = (other["task"], other["fold"])
        if costs.get(job) != [other.get(name) for name in COSTS]:
            return job
    return None
