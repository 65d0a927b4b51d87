"""Evaluate three models on a table of your own, in ten lines."""

from sklearn.datasets import load_diabetes

import karat

table = load_diabetes(as_frame=True).frame
data = karat.Dataset.from_table(table, target="target", name="diabetes", kind="regression")
task = karat.Task("diabetes", data, metrics=["rmse", "r2"])
runs = karat.evaluate(["onehot", "ridge", "random"], [task])
board = karat.leaderboard(runs)
print(board[["rank", "tie", "diabetes", "seconds"]])
assert list(board.index)[-1] == "random"
