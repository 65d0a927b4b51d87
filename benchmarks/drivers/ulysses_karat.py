"""Evaluate given vectors with Karat's ``UlyssesSentEval``, and print the scores.

    python ulysses_karat.py FOLDER TASK REPEATS HIDDEN MODE

``FOLDER`` has the task's CSV file, whose texts are row numbers, and the vectors in ``rows.npz``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from karat.compat.ulysses import UlyssesSentEval


class Vectors:
    """A sentence model that looks up the vector of a row number."""

    def __init__(self, path: Path) -> None:
        self.rows = np.load(path)["X"]

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the vectors of row numbers."""
        return self.rows[[int(text[1:]) for text in texts]]


def main(folder: str, task: str, repeats: str, hidden: str, mode: str) -> None:
    """Run Karat's evaluator in this process."""
    evaluator = UlyssesSentEval(
        Vectors(Path(folder) / "rows.npz"),
        tasks=task,
        data_dir_path=folder,
        disable_multiprocessing=True,
    )
    options: dict[str, Any] = {"n_repeats": int(repeats), "mode": mode, "show_progress_bar": False}
    options["hidden_dims"] = [int(hidden)] if int(hidden) else []
    found = evaluator.evaluate(kwargs_train=options)[task]
    names = ("metric_test", "loss_test") if mode == "exact" else ("metric_test",)
    print(f"scores={json.dumps({name: found[f'avg_{name}'] for name in names})}")


if __name__ == "__main__":
    main(*sys.argv[1:])
