"""Compare scikit-learn pipelines: one as an encoder, one as a predictor, one under corruption."""

from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import karat

table = load_breast_cancer(as_frame=True).frame
data = karat.Dataset.from_table(table, target="target", name="cancer", kind="classification")
task = karat.Task(
    "cancer",
    data,
    split={"use": "holdout", "test": 0.3},
    metrics=["auc", "acc"],
    corruptions={"noise_gaussian": [0.5, 1, 2]},
)
models = {
    "two numbers": make_pipeline(StandardScaler(), PCA(2)),
    "boosting": HistGradientBoostingClassifier(max_iter=30),
}
runs = karat.evaluate(models, task)
for run in runs:
    scores = run.scores().query("metric == 'auc'").set_index("severity")["value"]
    print(f"{run.model:12}", "  ".join(f"{s:g}: {v:.3f}" for s, v in scores.items()))
    assert scores[0.0] > scores[2.0] > 0.5
