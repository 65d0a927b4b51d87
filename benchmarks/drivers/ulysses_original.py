"""Train the heads of Ulysses SentEval with the original's ``kfold_train``, and print the scores.

    python ulysses_original.py SOURCE ROWS.npz TASK REPEATS HIDDEN

``SOURCE`` is the repository. Its ``__init__`` is not imported, because it needs the installed
package and a sentence model. Vectors and labels come from a file, as the evaluator would pass them.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import torch


def main(source: str, rows: str, task: str, repeats: str, hidden: str) -> None:
    """Run the original's cross-validation."""
    package = ModuleType("ulysses_senteval")
    package.__path__ = [str(Path(source) / "ulysses_senteval")]
    sys.modules["ulysses_senteval"] = package
    assets, train = (import_module(f"ulysses_senteval.{name}") for name in ("assets", "train"))
    torch.set_num_threads(1)
    given = np.load(rows)
    classes = int(given["y"].max()) + 1
    found, _ = train.kfold_train(
        torch.from_numpy(given["X"]),
        given["y"].astype(float if classes == 2 else int),
        classes,
        assets.get_eval_metric(task, classes),
        n_processes=1,
        device="cpu",
        show_progress_bar=False,
        n_repeats=int(repeats),
        hidden_dims=[int(hidden)] if int(hidden) else None,
    )
    scores = {name: float(found[f"avg_{name}"]) for name in ("metric_test", "loss_test")}
    print(f"scores={json.dumps(scores)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
