"""Train Karat's head ``adamw`` on the folds of Ulysses SentEval, and print the scores.

    python ulysses_karat.py ROWS.npz REPEATS HIDDEN MODE

The metrics are those of the suite ``ulysses``. The time is that of all folds, without imports.
numba starts with an empty cache, so that the compilation in the first fold is part of it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time

import numpy as np
import pandas as pd
import sklearn.model_selection  # noqa: F401, used by the split: imported before the time starts
from scipy.special import expit  # noqa: F401, used by the head

import karat
from karat.execution.splits import split
from karat.ext.compat.ulysses.adamw import AdamW
from karat.metrics.metric import score
from karat.probes.trained import predict_checked


def main(rows: str, repeats: str, hidden: str, mode: str) -> None:
    """Train one head per fold."""
    arrays = np.load(rows)
    X, y = arrays["X"], arrays["y"]
    table = pd.DataFrame({"row": np.arange(len(y)), "y": y})
    data = karat.Dataset.from_table(table, "y", name="rows", kind="classification")
    fold_scores = []
    start = time.process_time()
    for number, fold in enumerate(split(data, {"use": "senteval", "repeats": int(repeats)}, 0)):
        dims = [int(hidden)] if int(hidden) else None
        head = AdamW(mode=mode, hidden_dims=dims, fold=number, random_state=number)
        head.fit(X[fold.train], y[fold.train])
        predictions = predict_checked(head, X[fold.test], data.take(fold.test), "adamw")
        fold_scores.append([score(name, predictions)[0] for name in ("above_chance", "logloss")])
    print(f"cpu_seconds={time.process_time() - start:.3f}")
    names = ("metric_test", "loss_test") if mode == "exact" else ("metric_test",)
    print(f"scores={json.dumps(dict(zip(names, np.mean(fold_scores, axis=0), strict=False)))}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache
        main(*sys.argv[1:])
