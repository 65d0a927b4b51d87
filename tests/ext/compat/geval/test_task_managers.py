"""GEval's managers of single tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from karat.compat import geval
from karat.errors import DefinitionError
from karat.ext.compat.geval import FrameworkManager, default_analogy_function, gold

from .geval_gold import vectors, write_gold, write_text

MANAGERS = {
    "Classification": geval.ClassificationManager,
    "Regression": geval.RegressionManager,
    "Clustering": geval.ClusteringManager,
    "DocumentSimilarity": geval.DocumentSimilarityManager,
    "EntityRelatedness": geval.EntityRelatednessManager,
    "SemanticAnalogies": geval.SemanticAnalogiesManager,
}


@pytest.mark.parametrize("task", MANAGERS)
def test_names_of_gold_standards_and_metrics(task):
    manager = MANAGERS[task]
    assert manager.get_task_name() == task
    names = {name for own, name in gold.GOLD.values() if own == task}
    assert set(manager.get_gold_standard_file()) == names
    assert manager.get_metric_list() and not {*manager.get_metric_list()} & {*gold.ADDED}
    assert set(geval.__all__) >= {manager.__name__, "default_analogy_function"}


def test_the_file_of_a_gold_standard(tmp_path, monkeypatch):
    write_gold(tmp_path / "geval")
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    path = geval.EntityRelatednessManager.get_file_for_dataset("KORE")
    assert Path(path) == tmp_path / "geval" / "EntityRelatedness" / "KORE.txt"
    with pytest.raises(DefinitionError, match='no gold standard "Kore".*KORE'):
        geval.EntityRelatednessManager.get_file_for_dataset("Kore")


def test_a_manager_writes_files_and_scores_as_a_whole_run_does(tmp_path, monkeypatch):
    write_gold(tmp_path / "geval")
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    file = str(write_text(tmp_path / "v.txt", vectors()))
    manager = geval.EntityRelatednessManager(None, "cosine", False)
    logs, scores = {}, {}
    manager.evaluate(None, file, 6, tmp_path / "out", logs, scores)
    whole = FrameworkManager().evaluate(
        file, tasks=["EntRel"], result_directory_path=tmp_path / "w"
    )
    name = "entityRelatedness_KORE_results.csv"
    assert (tmp_path / "out" / name).read_text() == (whole / name).read_text()
    assert set(scores) == set(logs) == {"EntityRelatedness"}
    table = scores["EntityRelatedness"]
    assert isinstance(table, pd.DataFrame) and "kendalltau_correlation" in set(table["metric"])


def test_the_default_analogy_is_b_minus_a_plus_c(tmp_path, monkeypatch):
    a, b, c = np.eye(3)
    assert default_analogy_function(a, b, c).tolist() == (b - a + c).tolist()
    write_gold(tmp_path / "geval")
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    file = str(write_text(tmp_path / "v.txt", vectors()))
    tables = []
    for number, function in enumerate((None, default_analogy_function)):
        manager = geval.SemanticAnalogiesManager(None, 2, False, function, ["currency_entities"])
        manager.evaluate(None, file, 6, tmp_path / str(number), {}, found := {})
        tables.append(found["SemanticAnalogies"])
    assert tables[0]["score_value"].tolist() == tables[1]["score_value"].tolist()
