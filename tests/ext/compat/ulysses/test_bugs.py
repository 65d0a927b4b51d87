"""Known mistakes of Ulysses SentEval that Karat does not have."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics import f1_score, matthews_corrcoef

from karat.errors import DataError
from karat.ext.compat.ulysses import UlyssesSentEval, UlyssesSentEvalLazy
from karat.ext.compat.ulysses.evaluator import Training
from karat.ext.compat.ulysses.result_files import aggregate, frame, summary
from karat.results.run import open_runs

from .test_evaluator import alone


# mistake 1
def test_hidden_layer_of_f3_is_not_used_in_later_tasks(senteval, monkeypatch):
    from karat.ext.compat.ulysses import adamw

    made = []
    fit = adamw.AdamW.fit

    def spy(self, *given, **named):
        made.append(list(self.hidden_dims))
        return fit(self, *given, **named)

    monkeypatch.setattr(adamw.AdamW, "fit", spy)
    senteval.options("F3", rows=30)
    senteval.pairs("F4", rows=30)
    senteval.single("T1A", rows=30)
    train = dict(senteval.quick)
    evaluator = alone(senteval.model(), senteval, tasks=["F3", "F4", "T1A"])
    evaluator.evaluate(kwargs_train=train)
    assert made == [[256]] * 2 + [[]] * 4
    assert train == senteval.quick
    made.clear()
    evaluator.evaluate(kwargs_train=train | {"hidden_dims": None})
    assert made == [[]] * 6
    made.clear()
    evaluator.evaluate(kwargs_train=train | {"hidden_dims": [8, 4]})
    assert made == [[8, 4]] * 6


# mistake 2, 3
@pytest.mark.parametrize("rows", [600, 60])
def test_training_with_few_rows(rows, senteval):
    """With fewer than 512 rows the original's rate stays at 5 %; below 128 it makes no step."""
    senteval.single("T1A", rows=rows)
    train = senteval.quick | {"n_epochs": 100}
    found = alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train=train)["T1A"]
    losses = found["avg_loss_per_epoch_train"]
    assert np.isfinite(losses).all()
    assert losses[0] - losses[-1] > 0.1  # below 0.02 with 5 % of the rate


# mistake 4
def test_device_is_ignored(senteval):
    senteval.single("T1A")
    evaluator = alone(senteval.model(), senteval, tasks="T1A")
    with pytest.warns(UserWarning, match="'cuda:0'") as caught:
        found = evaluator.evaluate(kwargs_train=senteval.quick | {"device": "cuda:0"})
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for device in ("auto", "cpu"):
            again = evaluator.evaluate(kwargs_train=senteval.quick | {"device": device})
            assert again["T1A"]["avg_loss_test"] == found["T1A"]["avg_loss_test"]


# mistake 5
def test_one_epoch_and_one_run_are_aggregated(senteval):
    senteval.single("T1A")
    train = senteval.quick | {"n_epochs": 1}
    found, table = alone(senteval.model(), senteval, tasks="T1A").evaluate(
        kwargs_train=train, return_all_results=True
    )
    assert found["T1A"]["avg_loss_per_epoch_train"].shape == (1,)
    one = aggregate(table[table["kfold_partition"] == 1])["T1A"]
    assert one["std_metric_test"] == 0
    assert one["ci99_low_metric_test"] == one["avg_metric_test"] == one["ci99_high_metric_test"]


# mistake 6: see test_interval_of_equal_folds


# mistake 7, 9
def test_summary_has_the_wider_interval_and_raw_scores(senteval):
    senteval.single("T1A")
    runs = senteval.path / "runs"
    train = senteval.quick | {"k_fold": 5, "n_repeats": 2, "n_epochs": 8, "batch_size": 4}
    statistics = alone(senteval.model(), senteval, tasks="T1A", runs_dir=runs).evaluate(
        kwargs_train=train
    )["T1A"]
    (run,) = open_runs([runs])
    found = summary(run).set_index("metric")
    first = found.loc["above_chance"].iloc[0]
    assert first["mean"] == statistics["avg_metric_test"] and first["mode"] == "exact"
    assert first["ci99_low"] == statistics["ci99_low_metric_test"]
    assert first["nb99_low"] < first["ci99_low"] and first["nb99_high"] > first["ci99_high"]
    answers = [run.predictions("T1A", fold) for fold in range(10)]
    plain = [matthews_corrcoef(p.target, p.predictions) for p in answers]
    assert found.loc["mcc", "mean"] == pytest.approx(np.mean(plain))
    assert first["mean"] == pytest.approx(np.mean(np.maximum(plain, 0)))


# mistake 10
def test_new_word_in_test_texts(senteval):
    """The original divides a column that is 0 in all training rows by 1e-12."""
    labels = np.arange(80) % 2
    texts = [f"{'lei' if label else 'gol'} w{i}" for i, label in enumerate(labels)]
    senteval.write("F1A", {"a": texts, "b": texts[::-1], "label": labels})
    words = ["lei", "gol", *(f"w{i}" for i in range(80))]
    found = alone(
        CountVectorizer(vocabulary=words), senteval, UlyssesSentEvalLazy, tasks="F1A"
    ).evaluate(kwargs_train=senteval.quick)
    assert found["F1A"]["avg_loss_test"] < 5


# mistake 12
def test_options_with_lazy_embedders(senteval):
    senteval.options("F3", rows=90)
    words = [word for group in senteval.words for word in group]
    evaluator = alone(
        CountVectorizer(vocabulary=words, token_pattern=r"\S+"),
        senteval,
        UlyssesSentEvalLazy,
        tasks="F3",
    )
    evaluator.embed(["lei"], ["gol [SEP] sol"], "F3", "train")
    row = evaluator.embed(["lei"], ["gol [SEP] sol"], "F3", "test")
    dense = UlyssesSentEval(senteval.model()).embed(["lei"], ["gol [SEP] sol"], "F3", "all")
    assert row.shape == (1, 3 * 20) and (row == dense).all()
    train = senteval.quick | {"n_epochs": 40}
    one = evaluator.evaluate(kwargs_train=train, return_all_results=True)[1]
    two = alone(senteval.model(), senteval, tasks="F3").evaluate(
        kwargs_train=train, return_all_results=True
    )[1]
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert one.loc[one["metric"] == "metric_test", "value"].min() > 0.5


def test_lazy_embedder_is_not_fitted_on_the_separator(senteval):
    evaluator = UlyssesSentEvalLazy(TfidfVectorizer())
    evaluator.embed(["lei"], ["gol [SEP] sol"], "F3", "train")
    assert sorted(evaluator.fitted_.vocabulary_) == ["gol", "lei", "sol"]


@pytest.mark.parametrize("cls", [UlyssesSentEval, UlyssesSentEvalLazy])
def test_different_numbers_of_options_are_an_error(cls, senteval):
    joined = ["lei [SEP] gol [SEP] sol"] * 59 + ["lei [SEP] gol"]
    senteval.write("F5", {"a": ["lei"] * 60, "b": joined, "label": [0, 1, 2] * 20})
    model = TfidfVectorizer() if cls is UlyssesSentEvalLazy else senteval.model()
    with pytest.raises(DataError, match="row 59"):
        alone(model, senteval, cls, tasks="F5").evaluate(kwargs_train=senteval.quick)
    with pytest.raises(DataError, match="row 1 "):
        alone(model, senteval, cls).embed(["a", "b"], ["a [SEP] b", "a"], "F5", "train")


# mistake 13
@pytest.fixture(scope="module")
def plain():
    """The loss with plain vectors, set by the first test."""
    return []


def tensor(matrix, kind):
    torch = pytest.importorskip("torch")
    return torch.tensor(matrix, requires_grad=True).to(getattr(torch, kind))


@pytest.mark.parametrize(
    "shape",
    [
        np.float16,
        np.float64,
        np.int64,
        np.ndarray.tolist,
        lambda matrix: [row for row in matrix],
        pd.DataFrame,
        lambda matrix: tensor(matrix, "float32"),
        lambda matrix: tensor(matrix, "float64"),
        lambda matrix: tensor(matrix, "bfloat16"),
    ],
    ids=["f16", "f64", "int", "lists", "rows", "frame", "tensor", "tensor64", "bfloat16"],
)
@pytest.mark.parametrize("own", [True, False], ids=["embed", "encode"])
def test_types_of_vectors(shape, own, plain, senteval, tmp_path):
    shape(np.ones((2, 2)))  # skip without torch
    senteval.single("T1A", rows=30)

    class Own(UlyssesSentEval):
        def embed(self, X_a, X_b, task, data_split, **kwargs):
            if not own:
                return super().embed(X_a, X_b, task, data_split, **kwargs)
            return shape(self.sentence_model.encode(X_a))

    model = senteval.model()
    if not own:
        counted = model.encode
        model.encode = lambda texts: shape(counted(texts))
    train = senteval.quick | {"n_epochs": 2}
    if not plain:
        wanted = alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train=train)
        plain.append(wanted["T1A"]["avg_loss_test"])
    cached = {"cache_embed_key": "m", "cache_dir": tmp_path / "vectors"}
    for _ in range(2):
        found = alone(model, senteval, Own, tasks="T1A", **cached).evaluate(kwargs_train=train)
        assert [found["T1A"]["avg_loss_test"]] == plain
    assert len(list((tmp_path / "vectors").rglob("*.npy"))) == 1


# mistake 14
@pytest.mark.parametrize(("task", "classes"), [("F2", 2), ("T1A", 4)])
def test_metric_depends_on_the_number_of_classes(task, classes, senteval):
    senteval.single(task, rows=80, classes=classes)
    runs = senteval.path / "runs"
    train = senteval.quick | {"n_epochs": 30}
    found = alone(senteval.model(), senteval, tasks=task, runs_dir=runs).evaluate(
        kwargs_train=train
    )
    (run,) = open_runs([runs])
    wanted = []
    for answers in (run.predictions(task, fold) for fold in range(2)):
        truth, predicted = answers.target, answers.predictions
        macro = (f1_score(truth, predicted, average="macro") - 1 / classes) / (1 - 1 / classes)
        wanted.append(max(0, matthews_corrcoef(truth, predicted) if classes == 2 else macro))
    assert found[task]["avg_metric_test"] == pytest.approx(np.mean(wanted))
    assert frame(run)["task"].unique().tolist() == [task]


# mistake 15: see the tests of the cache
def test_default_arguments():
    made = Training.of(None, alone=False)
    wanted = {
        "n_processes": 5,
        "batch_size": 128,
        "eval_frac": 0.20,
        "n_repeats": 10,
        "k_fold": 5,
        "n_epochs": 100,
        "tenacity": 5,
        "early_stopping_rel_improv": 0.0025,
        "random_state": 9847706,
        "show_progress_bar": True,
        "mode": "exact",
    }
    assert {name: getattr(made, name) for name in wanted} == wanted
    assert made.head([256])["hidden_dims"] == [256] and made.head(None)["hidden_dims"] == []
    assert Training.of({"n_processes": 0}, alone=False).workers == 1
