"""Write a run folder as this version writes it, for the tests of all later versions to read.

python tests/golden/make.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import karat

DEFINITIONS = """
models:
  kept-onehot: {extends: onehot, artifacts: [models]}
  kept-svm: {extends: svm, artifacts: [models]}
"""


def make_tasks() -> list[karat.Task]:
    """Return a task of two classes, with a corruption, and one of numbers."""
    rng = np.random.default_rng(7)
    size = rng.normal(size=60).round(3)
    table = pd.DataFrame({"size": size, "color": rng.choice(["red", "blue", "green"], 60)})
    red = table["color"] == "red"
    table["label"] = np.where(size + red + rng.normal(size=60) > 0.3, "yes", "no")
    table["price"] = (2 * size + red + rng.normal(size=60) / 4).round(3)
    split = {"use": "kfold", "folds": 2}
    labels = karat.Dataset.from_table(table.drop(columns="price"), "label", name="labels")
    prices = karat.Dataset.from_table(
        table.drop(columns="label"), "price", name="prices", kind="regression"
    )
    corruptions = {"missingness_mcar": [0.2]}
    return [
        karat.Task("labels", labels, metrics=["auc", "acc"], split=split, corruptions=corruptions),
        karat.Task("prices", prices, metrics=["rmse", "r2"], split=split),
    ]


def main(folder: Path) -> None:
    """Write a run folder per model below a folder, in which nothing must be yet."""
    definitions = folder / "definitions.yaml"
    folder.mkdir(parents=True)
    definitions.write_text(DEFINITIONS)
    models = ["kept-onehot", "kept-svm", "dummy"]
    karat.evaluate(models, make_tasks(), define=definitions, output=folder / "runs", workers=1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
