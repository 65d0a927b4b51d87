"""Define a data set, tasks, a model and a suite in YAML, and run them by name."""

from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.datasets import load_wine

import karat

YAML = """
datasets:
  my-wine:
    path: wine.csv
    target: target
    kind: classification
models:
  small-forest:
    extends: random-forest
    params: {options: {n_estimators: 10}}
tasks:
  "my-wine-{rows}":
    for_each: {rows: [16, 64]}
    extends: classification
    dataset: my-wine
    split: {use: holdout, train_rows: "{rows}", repeats: 3}
    metrics: [acc]
suites:
  mine:
    tasks: [my-wine-16, my-wine-64]
    models: [onehot, small-forest, dummy]
"""

with TemporaryDirectory() as folder:
    load_wine(as_frame=True).frame.to_csv(Path(folder, "wine.csv"), index=False)
    define = Path(folder, "mine.yaml")
    define.write_text(YAML)
    runs = karat.evaluate(["onehot", "small-forest", "dummy"], "mine", define=define)
    board = karat.leaderboard(runs)
    print(board[["rank", "my-wine-16", "my-wine-64"]])
    assert board.loc["onehot", "my-wine-64"] > board.loc["dummy", "my-wine-64"]
