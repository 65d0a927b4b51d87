"""Boards of runs in which something is not known."""

import json

import numpy as np
import pandas as pd

import karat
from karat.report.terminal import print_board


def test_a_model_of_which_no_cost_is_known_has_a_board(tmp_path):
    """All its jobs ended without a measurement: that is a dash, not a traceback."""
    frame = pd.DataFrame({"a": np.arange(20.0), "y": np.arange(20.0)})
    data = karat.Dataset.from_table(frame, target="y", name="line", kind="numbers")
    (run,) = karat.evaluate("dummy", [karat.Task("line", data)], output=tmp_path / "out")
    for path in (run.folder / "jobs").glob("*.json"):
        record = json.loads(path.read_text())
        for name in [key for key in record if "seconds" in key or "memory" in key]:
            del record[name]
        path.write_text(json.dumps({**record, "status": "failed", "views": []}))
    print_board(karat.leaderboard([run.folder]))


def test_the_least_covered_are_told_and_the_others_counted():
    from karat.report.notes import _of_coverage

    shares = {("m", f"task {i}"): i / 10 for i in (9, 1, 5, 3, 7, 2, 8, 4)}
    told = list(_of_coverage(shares))
    assert told[0] == "m could answer 10% of task 1."
    assert told[-1] == "2 cells more, from 80% up (karat compare --common)."
    assert len(told) == 7
