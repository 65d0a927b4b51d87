"""Train the heads of Ulysses SentEval with the original's ``kfold_train``, and print the scores.

    python ulysses_original.py SOURCE ROWS.npz TASK REPEATS HIDDEN

``SOURCE`` is the repository. Its ``__init__`` is not imported, because it needs the installed
package and a sentence model. Vectors and labels come from a file. The time is that of all folds,
without imports and without the original's confidence intervals.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch


def without_intervals(results: dict[str, Any], **_: Any) -> tuple[dict[str, Any], None]:
    """Return the results of all folds."""
    return results, None


def let_it_run_here() -> None:
    """Change what the original calls: PyTorch without CUDA, and no downloads, need less."""
    fork = torch.random.fork_rng

    def fork_cpu(devices: Any = None, **options: Any) -> Any:
        """Ignore the name of the processor, which PyTorch refuses as a device with its own seed."""
        return fork(devices=[], **options)

    torch.random.fork_rng = fork_cpu
    sys.modules["buscador"] = ModuleType("buscador")  # downloads data; it is not on PyPI


def main(source: str, rows: str, task: str, repeats: str, hidden: str) -> None:
    """Run the original's cross-validation."""
    let_it_run_here()
    package = ModuleType("ulysses_senteval")
    package.__path__ = [str(Path(source) / "ulysses_senteval")]
    sys.modules["ulysses_senteval"] = package
    assets, train = (import_module(f"ulysses_senteval.{name}") for name in ("assets", "train"))
    train.stats.summarize_metrics = without_intervals
    torch.set_num_threads(1)
    arrays = np.load(rows)
    classes = int(arrays["y"].max()) + 1
    X, y = torch.from_numpy(arrays["X"]), arrays["y"].astype(float if classes == 2 else int)
    start = time.process_time()
    results, _ = train.kfold_train(
        X,
        y,
        classes,
        assets.get_eval_metric(task, classes),
        n_processes=1,
        device="cpu",
        show_progress_bar=False,
        n_repeats=int(repeats),
        hidden_dims=[int(hidden)] if int(hidden) else None,
    )
    print(f"cpu_seconds={time.process_time() - start:.3f}")
    scores = {name: float(np.mean(results[name])) for name in ("metric_test", "loss_test")}
    print(f"scores={json.dumps(scores)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
