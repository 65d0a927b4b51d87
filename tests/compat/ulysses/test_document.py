"""The examples in the documentation of Ulysses SentEval, with other imports and without typos."""

from __future__ import annotations

import typing as t

import numpy as np
import pytest
import sklearn.feature_extraction.text

from karat.compat import ulysses as ulysses_senteval
from karat.compat.ulysses import evaluator as evaluators
from karat.compat.ulysses.evaluator import Training

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


@pytest.fixture
def sbert(here):
    return here.model()


def test_minimal_example(sbert, capsys):
    disable_multiprocessing = False
    evaluator = ulysses_senteval.UlyssesSentEval(
        sbert, tasks="all", disable_multiprocessing=disable_multiprocessing
    )
    res = evaluator.evaluate()
    print(res)
    assert "'avg_metric_test': " in capsys.readouterr().out
    assert list(res) == list(SOME)
    assert all(0 <= res[task]["avg_metric_test"] <= 1 for task in SOME)


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_own_embedding_method(sbert, kind):
    seen = []

    class MyCustomEmbedder(ulysses_senteval.UlyssesSentEval):
        def embed(
            self,
            X_a: t.List[str],  # noqa: UP006
            X_b: t.Optional[t.List[str]],  # noqa: UP006, UP045
            task: str,
            data_split: str,
            **kwargs: t.Any,
        ):
            seen.append((task, data_split, X_b is None))
            out = self.sentence_model.encode(X_a)
            return pytest.importorskip("torch").tensor(out) if kind == "tensor" else out

    my_custom_evaluator = MyCustomEmbedder(sbert)
    res = my_custom_evaluator.evaluate()
    assert list(res) == list(SOME)
    assert seen == [("F3", "all", False), ("F1A", "all", False), ("T1A", "all", True)]


def test_lazy_embedders(here):
    tf_idf_embedder = sklearn.feature_extraction.text.TfidfVectorizer(
        ngram_range=(1, 3), max_features=3000, stop_words=["de", "a", "o", "que"]
    )

    evaluator = ulysses_senteval.UlyssesSentEvalLazy(tf_idf_embedder)
    res = evaluator.evaluate()
    assert list(res) == list(SOME)


@pytest.mark.slow
def test_all_18_tasks(here):
    evaluator = ulysses_senteval.UlyssesSentEval(
        here.model(), tasks=list(here.files), disable_multiprocessing=True
    )
    res, table = evaluator.evaluate(return_all_results=True)
    assert list(res) == list(here.files) == table["task"].unique().tolist()
    assert all(len(each) == 20 and np.isfinite(each["avg_loss_test"]) for each in res.values())
