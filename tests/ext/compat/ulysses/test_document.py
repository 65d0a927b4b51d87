"""What users of Ulysses SentEval write: an evaluation, an own embedding, lazy embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from karat.ext.compat import ulysses as ulysses_senteval
from karat.ext.compat.ulysses import evaluator as evaluators
from karat.ext.compat.ulysses.evaluator import Training

SOME = ("F3", "F1A", "T1A")


@pytest.fixture
def here(senteval, tmp_path, monkeypatch):
    """A working folder with data for all tasks; three tasks with few folds are run."""
    for task in senteval.files:
        if task in ("F3", "F5"):
            senteval.options(task, rows=24)
        elif task.startswith("T") or task == "F2":
            senteval.single(task, rows=24, classes=3 if task == "F2" else 2)
        else:
            senteval.pairs(task, rows=24)
    senteval.path.rename(tmp_path / "ulysses_senteval_datasets")
    monkeypatch.chdir(tmp_path)
    checked, chosen = Training.of, evaluators.chosen

    def quick(given, alone):
        processes = {} if alone else {"n_processes": 1}
        return checked({**(given or {}), **senteval.quick, **processes}, alone)

    monkeypatch.setattr(evaluators.Training, "of", quick)
    monkeypatch.setattr(
        evaluators, "chosen", lambda tasks: SOME if tasks == "all" else chosen(tasks)
    )
    return senteval


def test_all_tasks_without_further_options(here, capsys):
    scores = ulysses_senteval.UlyssesSentEval(
        here.model(), disable_multiprocessing=False
    ).evaluate()
    print(scores)
    assert "'avg_metric_test': " in capsys.readouterr().out
    assert list(scores) == list(SOME)
    assert all(0 <= scores[task]["avg_metric_test"] <= 1 for task in SOME)


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_own_embedding_method(here, kind):
    calls = []

    class FirstTexts(ulysses_senteval.UlyssesSentEval):
        """Embeds the first text of a pair alone."""

        def embed(self, X_a, X_b, task, data_split, **options: Any):
            calls.append((task, data_split, X_b is None))
            rows = self.sentence_model.encode(X_a)
            return pytest.importorskip("torch").tensor(rows) if kind == "tensor" else rows

    assert list(FirstTexts(here.model()).evaluate()) == list(SOME)
    assert calls == [("F3", "all", False), ("F1A", "all", False), ("T1A", "all", True)]


def test_lazy_embedders(here):
    vectorizer = TfidfVectorizer(max_features=50, stop_words=["lei"])
    scores = ulysses_senteval.UlyssesSentEvalLazy(vectorizer).evaluate()
    assert list(scores) == list(SOME)


@pytest.mark.slow
def test_all_18_tasks(here):
    evaluator = ulysses_senteval.UlyssesSentEval(
        here.model(), tasks=list(here.files), disable_multiprocessing=True
    )
    res, table = evaluator.evaluate(return_all_results=True)
    assert list(res) == list(here.files) == table["task"].unique().tolist()
    assert all(len(each) == 20 and np.isfinite(each["avg_loss_test"]) for each in res.values())
