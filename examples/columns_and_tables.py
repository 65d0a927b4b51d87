"""Evaluate encoders of columns and of whole tables on tables of your own."""

import numpy as np
import pandas as pd

import karat

rng = np.random.default_rng(0)
CITIES = ["Rome", "Oslo", "Lima", "Bern", "Cairo", "Quito", "Paris", "Tunis"]
NAMES = ["Ann", "Bob", "Eva", "Leo", "Mia", "Tom", "Zoe", "Jan"]


def sales(n):
    """Return a table of sales, with other headers in every second table."""
    table = pd.DataFrame({"city": rng.choice(CITIES, 6), "price": rng.uniform(1, 99, 6).round(2)})
    return table.rename(columns={"city": "place", "price": "amount"}) if n % 2 else table


def staff(n):
    """Return a table of people."""
    table = pd.DataFrame({"name": rng.choice(NAMES, 6), "age": rng.integers(20, 65, 6)})
    return table.rename(columns={"name": "who", "age": "years"}) if n % 2 else table


tables = {f"sales {n}": sales(n) for n in range(10)} | {f"staff {n}": staff(n) for n in range(10)}
types = {"sales": ("city", "price"), "staff": ("person", "age")}
column_types = {
    (name, position): types[name.split()[0]][position] for name in tables for position in (0, 1)
}
table_classes = {name: name.split()[0] for name in tables}


def shapes(items):
    """Return one row per column or table: its size, and the length of its cells."""
    texts = [np.asarray(item, dtype=str).ravel() for item in items]
    return [[len(cells), np.mean([len(cell) for cell in cells])] for cells in texts]


columns = karat.Dataset.from_tables(tables, column_types, name="columns")
frames = karat.Dataset.from_tables(tables, table_classes, name="frames")
tasks = [
    # the columns of a table are never in both training and test data
    karat.Task("types", columns, metrics=["acc"]),
    # a column asks for columns of its type in other tables
    karat.Task("union", columns, probe="same-class", split="all", metrics=["map"]),
    karat.Task("search", frames, probe="same-class", split="all", metrics=["map"]),
]
models = ["random", "headers", "column-statistics", "value-sets", "columns-tfidf"]
runs = karat.evaluate({**{name: name for name in models}, "shapes": shapes}, tasks)
board = karat.leaderboard(runs)
print(board[["rank", "types", "union", "search"]].round(3))
assert board.loc["column-statistics", "types"] > board.loc["random", "types"]
assert board.loc["value-sets", "union"] > board.loc["random", "union"]
