"""Write the table of MTEB's main metrics, by task: the facts that imports of its results use.

Needs an environment with mteb; run it again for a new version of mteb.

    python scripts/mteb_metrics.py
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path

TABLE = Path(__file__).parents[1] / "src" / "karat" / "compat" / "mteb" / "main_metrics.json"


def table_lines(metrics: dict[str, list[str]]) -> Iterator[str]:
    """Yield one line of JSON per metric, the most frequent one first."""
    ordered = sorted(metrics, key=lambda metric: (-len(metrics[metric]), metric))
    for metric in ordered:
        names = json.dumps(" ".join(sorted(metrics[metric])), ensure_ascii=False)
        yield f"  {json.dumps(metric)}: {names}"


def main_metrics() -> dict[str, list[str]]:
    """Return the names of mteb's tasks by their main metric."""
    import mteb

    found: dict[str, list[str]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tasks = mteb.get_tasks(exclude_superseded=False, exclude_aggregate=False)
    for task in tasks:
        name = task.metadata.name
        if " " in name:
            raise ValueError(f"the table is separated by blanks, and {name!r} has one")
        # f1 of bitext mining is weighted, that of classes is the mean over them
        kind = " BitextMining" if task.metadata.type == "BitextMining" else ""
        found.setdefault(task.metadata.main_score + kind, []).append(name)
    return found


if __name__ == "__main__":
    TABLE.write_text("{\n" + ",\n".join(table_lines(main_metrics())) + "\n}\n", encoding="utf-8")
