"""Scores as TabEB's users make them: encoders of table rows on regression and classification.

The tables are fetched on first use. Scores of data or encoders that are not available are NaN,
with a reason; the others are computed.
"""

import warnings

from karat.compat.tabeb.interface import display, get_leaderboard, get_model
from karat.compat.tabeb.tasks import TabEBClassificationTask, TabEBRegressionTask

warnings.simplefilter("ignore")  # the reasons are also in frame.attrs["failures"]

encoders = [get_model(name) for name in ("random_encoder", "skrub_encoder")]
encoders.append(get_model("carte_encoder", task="regression"))

failures = []
for make in (TabEBRegressionTask, TabEBClassificationTask):
    task = make(data_dir="data", max_rows=1000)  # leave max_rows out for all rows
    frame = task.evaluate(encoders, save_dir="results")
    print(f"{task.task}, {task.metric}")
    display(frame)
    failures += frame.attrs["failures"]

board = get_leaderboard(["regression", "classification"], "results")
print("leaderboard")
display(board)
for failure in failures:
    print(f"{failure['encoder']} on {failure['dataset']}: {failure['reason']}")

# an encoder of the cells must beat random vectors
if not any(failure["encoder"] == "skrub_encoder" for failure in failures):
    ranks = board.set_index("encoder")["mean_rank"]
    assert ranks["skrub_encoder"] < ranks["random_encoder"]
