"""Train Karat's head ``adamw`` on the folds of Ulysses SentEval, and print the scores.

    python ulysses_karat.py ROWS.npz REPEATS HIDDEN MODE

The time is that of all folds, without imports. numba starts with an empty cache, so that the
compilation in the first fold is part of it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time

import numpy as np
import pandas as pd
from scipy.special import expit  # noqa: F401, used by the head: imported before the time starts
from sklearn.metrics import f1_score, log_loss, matthews_corrcoef

import karat
from karat.execution.splits import split
from karat.probes.heads.adamw import AdamW


def score(target: np.ndarray, predicted: np.ndarray, classes: int) -> float:
    """Return MCC or chance-adjusted macro-F1, at least 0."""
    if classes == 2:
        return max(0.0, float(matthews_corrcoef(target, predicted)))
    f1 = float(f1_score(target, predicted, average="macro"))
    return max(0.0, (f1 - 1 / classes) / (1 - 1 / classes))


def main(rows: str, repeats: str, hidden: str, mode: str) -> None:
    """Train one head per fold."""
    given = np.load(rows)
    X, y = given["X"], given["y"]
    table = pd.DataFrame({"row": np.arange(len(y)), "y": y})
    data = karat.Dataset.from_table(table, "y", name="rows", kind="classification")
    found = []
    start = time.process_time()
    for number, fold in enumerate(split(data, {"use": "senteval", "repeats": int(repeats)}, 0)):
        dims = [int(hidden)] if int(hidden) else None
        head = AdamW(mode=mode, hidden_dims=dims, fold=number, random_state=number)
        head.fit(X[fold.train], y[fold.train])
        predicted, chances = head.predict_both(X[fold.test])
        target = y[fold.test]
        found.append((score(target, predicted, len(head.classes_)), log_loss(target, chances)))
    print(f"cpu_seconds={time.process_time() - start:.3f}")
    names = ("metric_test", "loss_test") if mode == "exact" else ("metric_test",)
    print(f"scores={json.dumps(dict(zip(names, np.mean(found, axis=0), strict=False)))}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache
        main(*sys.argv[1:])
