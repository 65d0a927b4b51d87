"""TabEB's quick start with other imports: encoders of table rows on regression and classification.

The tables are fetched on first use. Scores of data or encoders that are not available are NaN,
with a reason; the others are computed.
"""

import os
import warnings

from karat.compat.tabeb.interface import display, get_leaderboard, get_model
from karat.compat.tabeb.tasks import TabEBClassificationTask, TabEBRegressionTask

warnings.simplefilter("ignore")  # the reasons are also in frame.attrs["failures"]

# Get the encoders
random_encoder = get_model("random_encoder")
carte_encoder = get_model("carte_encoder", task="regression")
skrub_encoder = get_model("skrub_encoder")
model_list = [random_encoder, carte_encoder, skrub_encoder]

# Get the tasks; leave max_rows out for all rows
task_regression = TabEBRegressionTask(data_dir="data", max_rows=1000)
task_classification = TabEBClassificationTask(data_dir="data", max_rows=1000)

# Run the tasks
result_dir = os.path.join(os.getcwd(), "results")
df_regression_scores = task_regression.evaluate(model_list, save_dir=result_dir)
df_classification_scores = task_classification.evaluate(model_list, save_dir=result_dir)

print("***REGRESSION TASK")
display(df_regression_scores)
print("***CLASSIFICATION TASK")
display(df_classification_scores)

# Get the leaderboard
df_leaderboard = get_leaderboard(["regression", "classification"], result_dir)
display(df_leaderboard)

failures = [*df_regression_scores.attrs["failures"], *df_classification_scores.attrs["failures"]]
for failure in failures:
    print(f"{failure['encoder']} on {failure['dataset']}: {failure['reason']}")

# an encoder of the cells must beat random vectors
if not any(failure["encoder"] == "skrub_encoder" for failure in failures):
    ranks = df_leaderboard.set_index("encoder")["mean_rank"]
    assert ranks["skrub_encoder"] < ranks["random_encoder"]
