"""Every score can be computed again from the files, for every kind of task and every view."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import karat
from karat.errors import DataError
from karat.metrics.base import score

LABELS = ["NA", "no, really", "True"]


def tasks() -> list[karat.Task]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    table["word"] = np.array(["x", "y", None], dtype=object)[np.arange(60) % 3]
    table["label"] = np.array(LABELS, dtype=object)[np.arange(60) % 3]
    table["number"] = table["a"] * 2 + rng.normal(size=60) / 10
    table["entity"] = np.arange(60) // 2
    labels = karat.Dataset.from_table(table.drop(columns=["number", "entity"]), "label", name="l")
    numbers = karat.Dataset.from_table(
        table.drop(columns=["label", "entity"]), "number", name="n", kind="numbers"
    )
    twins = karat.Dataset.from_table(
        table.drop(columns=["label", "number"]), "entity", name="e", kind="classes"
    )
    odd = table.drop(columns=["label", "number", "entity"]).assign(odd=np.arange(60) < 5)
    odd = karat.Dataset.from_table(odd, "odd", name="o", kind="classes")
    views = {"noise_gaussian": [0.5], "missingness_mcar": [0.2]}
    outliers = {"use": "trained", "head": "knn-distance"}
    return [
        karat.Task("classes", labels, metrics=["acc", "auc_ovr", "logloss"], corruptions=views),
        karat.Task("numbers", numbers, metrics=["rmse", "r2"], corruptions=views),
        karat.Task("clusters", labels, split="all", metrics=["v_measure", "ari"]),
        karat.Task("twins", twins, probe="duplicates", split="all", metrics=["auc", "f1_best"]),
        karat.Task("odd", odd, probe=outliers, split="all", metrics=["auc", "pr_auc", "f1_micro"]),
    ]


def of_entities() -> list[karat.Task]:
    ids = [f"entity {i}" for i in range(12)]
    pairs = pd.DataFrame({"a": ids, "b": np.roll(ids, 1), "near": np.linspace(0, 1, 12)})
    pairs["main"] = ["first"] * 6 + ["second"] * 6
    likes = karat.Dataset.from_columns(
        pairs, ["a", "b"], "near", name="p", kind="numbers", modality="entity", group="main"
    )
    quads = pd.DataFrame({f: np.roll(ids, i) for i, f in enumerate("abcd")})
    quads = karat.Dataset.from_columns(
        quads, ["a", "b", "c"], "d", name="q", kind="items", modality="entity"
    )
    asked = pd.DataFrame({"query": ids * 2, "answer": [*np.roll(ids, 1), *np.roll(ids, 2)]})
    asked = karat.Dataset.from_columns(
        asked, ["query"], "answer", name="s", kind="items", modality="entity"
    )
    metrics = ["kendall", "spearman", "pearson", "ndcg@3"]
    ranked = ["map", "mrr", "ndcg@10", "recall@2", "hits@1"]
    return [
        karat.Task("pairs", likes, probe="similarity", split="all", metrics=metrics),
        karat.Task("analogies", quads, probe="analogy", split="all", metrics=["hits@2", "mrr"]),
        karat.Task("search", asked, probe="nearest", split="all", metrics=ranked),
    ]


def scored_again(run: karat.Run) -> int:
    table = run.scores()
    for row in table.itertuples():
        view = f"{row.corruption}@{row.severity:g}" if row.corruption else "clean"
        value, reason = score(row.metric, run.predictions(row.task, row.fold, view))
        assert value == row.value, (row, reason)
    return len(table)


def test_tables(tmp_path):
    (run,) = karat.evaluate("onehot", tasks(), output=tmp_path)
    assert set(run.results()["status"]) == {"ok"}
    assert scored_again(run) == 5 * 3 * 3 + 5 * 3 * 2 + 2 + 2 + 3
    # labels survive the file unchanged
    assert set(run.predictions("classes").truth) == set(LABELS)


@pytest.mark.parametrize("missing", ["ignore", "penalise"])
def test_entities_some_of_which_are_unknown(tmp_path, missing):
    rng = np.random.default_rng(1)
    known = {f"entity {i}": rng.normal(size=4) for i in range(10)}
    listed = [karat.Task(**{**vars(t), "missing": missing}) for t in of_entities()]
    (run,) = karat.evaluate({"mine": known}, listed, output=tmp_path)
    assert set(run.results()["status"]) == {"ok"}
    assert (run.results()["coverage"] < 1).all()
    assert scored_again(run) == 4 + 2 + 5


def test_what_is_not_there_is_said(tmp_path):
    (run,) = karat.evaluate("onehot", tasks()[2], output=tmp_path)
    with pytest.raises(DataError, match="no predictions of clusters, fold 7, clean"):
        run.predictions("clusters", 7)
