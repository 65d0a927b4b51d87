"""Evaluate models on your own table as TACO does: clean, corrupted, and the loss by corruption."""

import numpy as np
import pandas as pd

import karat
from karat.compat import export_results
from karat.config import Catalog

rng = np.random.default_rng(0)
rows = 400
table = pd.DataFrame(
    {
        "months": rng.integers(1, 72, rows),
        "bill": rng.gamma(4, 15, rows).round(2),
        "plan": rng.choice(["basic", "plus", "family"], rows, p=[0.6, 0.3, 0.1]),
    }
)
risk = 0.05 * (30 - table["months"]) + 0.02 * table["bill"] + (table["plan"] == "basic")
table["churn"] = np.where(risk + rng.normal(size=rows) > 1.5, "yes", "no")
table.to_csv("churn.csv", index=False)

# what "karat run churn.csv --target churn --like taco -m logistic-regression -m dummy" does
suite = Catalog().table_suite("churn.csv", target="churn", like="taco")
runs = karat.evaluate(["logistic-regression", "dummy"], suite)

found = karat.robustness(runs, baseline="dummy").set_index("model")
print(found[["clean", "corrupted", "retention", "worst", "worst_view", "mce"]].round(3))
assert (
    0.7 < found.loc["logistic-regression", "corrupted"] < found.loc["logistic-regression", "clean"]
)
assert found.loc["dummy", "mce"] == 1 and found.loc["logistic-regression", "mce"] < 0.7

for path in export_results(runs, "taco", "taco"):
    print(path)
lines = pd.read_csv("taco/metrics_churn_classification.csv")
assert list(lines) == ["dataset", "task", "corruption", "severity", "model", "metric", "value"]
