"""Ulysses SentEval's evaluator: its golden run, its arguments, what it returns."""

from __future__ import annotations

import inspect
import json
import re
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from karat.compat import ulysses
from karat.compat.ulysses import UlyssesSentEval, UlyssesSentEvalLazy
from karat.errors import ContractError, DataError, KaratError, Unavailable
from karat.results.run import open_runs
from karat.results.senteval import METRICS, aggregate

KEYS = {f"{s}_{m}" for s in ("avg", "std", "ci99_low", "ci99_high") for m in METRICS}


def alone(model, folder, **given):
    """Return an evaluator that stays in this process."""
    return UlyssesSentEval(model, data_dir_path=folder.path, disable_multiprocessing=True, **given)


def lazy(model, folder, **given):
    return UlyssesSentEvalLazy(
        model, data_dir_path=folder.path, disable_multiprocessing=True, **given
    )


# -- the golden run ---------------------------------------------------------------------------


class Golden:
    """The vectors of the golden run: the number of its row stands in each text."""

    def __init__(self) -> None:
        draws = np.random.RandomState(0)
        self.labels = draws.choice(2, 2000, p=[0.6, 0.4])
        vectors = draws.randn(2000, 32).astype(np.float32)
        middles = draws.randn(2, 32).astype(np.float32) * 0.35
        self.vectors = (vectors + middles[self.labels]).astype(np.float32)

    def encode(self, texts):
        return self.vectors[[int(text.split()[1]) for text in texts]]


def test_the_golden_run_of_the_original(senteval):
    model = Golden()
    senteval.write("T1A", {"text": [f"row {i}" for i in range(2000)], "label": model.labels})
    evaluator = alone(model, senteval, tasks="T1A")
    train = {"n_repeats": 2, "show_progress_bar": False}
    found, table = evaluator.evaluate(kwargs_train=train, return_all_results=True)
    told = found["T1A"]
    assert told["avg_metric_test"] == pytest.approx(0.799998, abs=1e-6)
    assert told["std_metric_test"] == pytest.approx(0.030128, abs=1e-6)
    assert told["ci99_low_metric_test"] == pytest.approx(0.780015, abs=1e-6)
    assert told["ci99_high_metric_test"] == pytest.approx(0.828264, abs=1e-6)
    assert told["avg_loss_test"] == pytest.approx(0.248293, abs=1e-5)
    epochs = table.groupby(["kfold_repetition", "kfold_partition"])["train_epoch"].max()
    assert epochs.tolist() == [94, 100, 100, 92, 100, 62, 95, 100, 87, 100]
    # only as many runs as got there are averaged at the end
    last = table[(table["metric"] == "loss_per_epoch_eval") & (table["train_epoch"] == 100)]
    assert len(last) == 5
    assert told["avg_loss_per_epoch_eval"][99] == pytest.approx(last["value"].mean())


# -- the interface ----------------------------------------------------------------------------


def test_the_documented_signatures():
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


def test_tasks_are_all_in_the_documents_order_or_one_or_some(senteval):
    assert UlyssesSentEval(None).tasks == tuple(senteval.files)
    assert UlyssesSentEval(None, tasks="G2B").tasks == ("G2B",)
    assert UlyssesSentEval(None, tasks=["T4", "F1A", "T4"]).tasks == ("T4", "F1A")


@pytest.mark.parametrize("tasks", ["F9", ["F1A", "F9"], []])
def test_an_unknown_task_is_a_value_error_that_lists_all(tasks, senteval):
    with pytest.raises(ValueError, match="F1A, F1B, F2, F3, .*, T4"):
        UlyssesSentEval(None, tasks=tasks)
    with pytest.raises(ValueError, match=r"no task 'T9'\. .*There are: F1A"):
        alone(None, senteval).evaluate_in_task("T9")


def test_processes_and_no_processes_is_a_value_error(senteval):
    with pytest.raises(ValueError, match="n_processes.*disable_multiprocessing"):
        alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train={"n_processes": 2})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_epoch": 3}, 'has no parameter "n_epoch". Did you mean "n_epochs"?'),
        ({"n_epochs": 0}, "n_epochs is 1 or more, not 0"),
        ({"n_repeats": 1.5}, "n_repeats is a whole number, not 1.5"),
        ({"k_fold": 1}, "k_fold is 2 or more, not 1"),
        ({"batch_size": "128"}, "batch_size is a whole number, not '128'"),
        ({"eval_frac": 1.0}, "eval_frac is between 0 and 1"),
        ({"eval_frac": "a"}, "eval_frac is a number, not 'a'"),
        ({"hidden_dims": 256}, "hidden_dims is a list of sizes, not 256"),
        ({"hidden_dims": "256"}, "hidden_dims is a list of sizes"),
        ({"mode": "exakt"}, 'mode is "fast" or "exact"'),
        ({"random_state": -1}, "random_state is 0 or more"),
        ({"random_state": 2**32}, "random_state has 32 bits"),
        ({"n_processes": None}, "n_processes is a whole number, not None"),
    ],
)
def test_a_wrong_argument_of_the_training_is_told_before_anything_is_embedded(
    wrong, said, senteval
):
    senteval.single("T1A")
    model = senteval.model()
    evaluator = UlyssesSentEval(model, tasks="T1A", data_dir_path=senteval.path)
    with pytest.raises(ValueError) as caught:
        evaluator.evaluate(kwargs_train=wrong)
    assert said in str(caught.value) and isinstance(caught.value, KaratError)
    assert model.seen == []


def test_what_is_returned(senteval):
    senteval.single("T1A")
    senteval.pairs("F1A")
    evaluator = alone(senteval.model(), senteval, tasks=["T1A", "F1A"])
    found, table = evaluator.evaluate(kwargs_train=senteval.quick, return_all_results=True)
    assert list(found) == ["T1A", "F1A"] and all(set(told) == KEYS for told in found.values())
    assert list(table) == [
        *("task", "kfold_repetition", "kfold_partition", "train_epoch", "metric", "value"),
    ]
    assert table["task"].unique().tolist() == ["T1A", "F1A"]
    assert table.index.tolist() == list(range(len(table))) and len(table) == 2 * 2 * (3 * 3 + 2)
    one, own = evaluator.evaluate_in_task(
        "T1A", kwargs_train=senteval.quick, return_all_results=True
    )
    assert set(one) == KEYS and one["avg_metric_test"] == found["T1A"]["avg_metric_test"]
    pd.testing.assert_frame_equal(own, table[table["task"] == "T1A"])
    assert evaluator.evaluate_in_task("F1A", kwargs_train=senteval.quick).keys() == KEYS


def test_other_seeds_are_other_folds_and_intervals(senteval):
    senteval.single("T1A")
    evaluator = alone(senteval.model(), senteval, tasks="T1A")
    tables = [
        evaluator.evaluate(kwargs_train=senteval.quick | given, return_all_results=True)[1]
        for given in ({}, {"random_state": 9847706}, {"random_state": 1})
    ]
    assert tables[0].equals(tables[1]) and not tables[0].equals(tables[2])


def test_one_process_or_two_give_the_same_frame(senteval):
    senteval.single("T1A")
    train = senteval.quick | {"n_repeats": 2}
    one = alone(senteval.model(), senteval, tasks="T1A").evaluate(
        kwargs_train=train, return_all_results=True
    )[1]
    evaluator = UlyssesSentEval(senteval.model(), tasks="T1A", data_dir_path=senteval.path)
    two = evaluator.evaluate(kwargs_train=train | {"n_processes": 2}, return_all_results=True)[1]
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_both_modes_have_the_same_folds_and_other_shuffles(senteval):
    senteval.single("T1A")
    seen = {}
    for mode in ("exact", "fast"):
        runs = senteval.path / mode
        alone(senteval.model(), senteval, tasks="T1A", runs_dir=runs).evaluate(
            kwargs_train=senteval.quick | {"mode": mode}
        )
        (run,) = open_runs([runs])
        truth = run.predictions("T1A", 1).truth.tolist()
        seen[mode] = truth, run.scores()["value"].tolist(), run.records()[0]["notes"]
    assert seen["exact"][0] == seen["fast"][0] and seen["exact"][1] != seen["fast"][1]
    assert seen["exact"][2][0].startswith("mode exact;")
    assert seen["fast"][2][0].startswith("mode fast;")


def test_kept_runs_are_one_for_all_tasks_and_are_completed(senteval):
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
    assert [path.stat().st_mtime_ns for path in records] == before, "nothing was run again"
    assert len(open_runs([runs])) == 1
    assert again["T3"]["avg_metric_test"] == first["T3"]["avg_metric_test"]
    scores = run.scores().query("task == 'T3' and metric == 'above_chance'")["value"]
    assert first["T3"]["avg_metric_test"] == pytest.approx(scores.mean())


def test_nothing_stays_behind(senteval, tmp_path, monkeypatch):
    senteval.single("T1A")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "files"))
    before = sorted(tmp_path.rglob("*"))
    state = np.random.get_state()[1].copy()
    alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    assert sorted(tmp_path.rglob("*")) == before
    assert (np.random.get_state()[1] == state).all()


# -- data -------------------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_looked_for_where_it_is_defined(senteval, monkeypatch):
    senteval.single("T1A")
    with pytest.raises(Unavailable, match="offcombr2.csv"):
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


def test_bad_files_are_told_before_anything_is_embedded(senteval):
    senteval.single("T1A")
    senteval.write("T3", {"text": ["a"] * 8, "label": [1] * 8})
    model = senteval.model()
    with pytest.raises(DataError, match="nothing to tell apart"):
        alone(model, senteval, tasks=["T1A", "T3"]).evaluate(kwargs_train=senteval.quick)
    assert model.seen == []


def test_labels_may_be_anything(senteval):
    numbers = senteval.single("T1A")
    plain = alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    words = numbers["label"].map({0: "no", 1: "yes"})
    senteval.write("T1A", {"text": numbers["text"], "label": words})
    named = alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    assert named["T1A"]["avg_metric_test"] == plain["T1A"]["avg_metric_test"]
    assert named["T1A"]["avg_loss_test"] == pytest.approx(plain["T1A"]["avg_loss_test"])


def test_too_few_rows_are_told_and_leave_the_other_tasks(senteval):
    senteval.single("T1A")
    senteval.single("T3", rows=6)
    evaluator = alone(senteval.model(), senteval, tasks=["T3", "T1A"])
    with pytest.warns(UserWarning, match="a class has fewer than 5 questions"):
        found = evaluator.evaluate(kwargs_train=senteval.quick | {"k_fold": 5})
    assert list(found) == ["T1A"]
    with pytest.raises(KaratError, match="a class has fewer than 5 questions"):
        evaluator.evaluate_in_task("T3", kwargs_train=senteval.quick | {"k_fold": 5})


# -- embedding --------------------------------------------------------------------------------


def test_rows_of_single_texts_pairs_and_options(senteval):
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


def test_each_text_is_encoded_once_and_arguments_are_passed_on(senteval):
    senteval.write("F1A", {"a": ["lei"] * 20, "b": ["gol", "lei"] * 10, "label": [0, 1] * 10})
    model = senteval.model()
    alone(model, senteval, tasks="F1A").evaluate(
        kwargs_embed={"batch_size": 8}, kwargs_train=senteval.quick
    )
    assert model.seen == [["lei", "gol"]] and model.told == [{"batch_size": 8}]


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


def test_a_vectoriser_is_sent_to_the_lazy_class(senteval):
    senteval.single("T1A")
    with pytest.raises(ContractError, match="TfidfVectorizer has no encode.*UlyssesSentEvalLazy"):
        alone(TfidfVectorizer(), senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (lambda n: np.ones((n, 3)) * np.nan, "NaN or infinity in 60 of 60 rows"),
        (lambda n: np.ones((n, 3)) / np.eye(n, 3), "infinite number (row 0)"),
        (lambda n: np.full((n, 2), 1e300), "infinity in 60 of 60 rows"),
        (lambda n: np.ones((n - 1, 3)), "returned 59 rows for 60 items"),
        (lambda n: np.ones(n), "must return a matrix"),
        (lambda n: [["a"]] * n, "must return numbers"),
    ],
)
def test_what_is_no_vector_is_told(returned, said, senteval):
    senteval.single("T1A")

    class Mine(UlyssesSentEval):
        def embed(self, X_a, X_b, task, data_split, **kwargs):
            with np.errstate(all="ignore"):
                return returned(len(X_a))

    evaluator = Mine(None, tasks="T1A", data_dir_path=senteval.path, disable_multiprocessing=True)
    with pytest.raises(ContractError, match=re.escape(said)):
        evaluator.evaluate(kwargs_train=senteval.quick)


def test_a_strange_part_is_refused(senteval):
    with pytest.raises(DataError, match="data_split is one of all, train, eval, test, not 'dev'"):
        UlyssesSentEval(senteval.model()).embed(["a"], None, "T1A", "dev")


# -- what is embedded in every fold -----------------------------------------------------------


class Spy(CountVectorizer):
    """A vectoriser that tells what every copy of it was shown."""

    events: list[tuple[str, list[str]]] = []

    def fit(self, texts, y=None):
        Spy.events.append(("fit", list(texts)))
        return super().fit(texts)

    def transform(self, texts):
        Spy.events.append(("transform", list(texts)))
        return super().transform(texts)


def test_a_lazy_embedder_is_fitted_on_train_texts_alone(senteval):
    table = senteval.pairs("F1A")
    Spy.events = []
    runs = senteval.path / "runs"
    lazy(Spy(), senteval, tasks="F1A", runs_dir=runs).evaluate(kwargs_train=senteval.quick)
    steps = [name for name, _ in Spy.events]
    assert steps == ["fit", "transform", "transform", "transform"] * 2
    folds = [Spy.events[i : i + 4] for i in (0, 4)]
    pairs = list(zip(table["a"], table["b"], strict=True))
    for (_, fitted), (_, train), (_, held), (_, tested) in folds:
        # 60 rows, 30 of them to test; of the other 30 six judge and 24 teach
        assert len(fitted) == 48 and set(fitted) == set(train)
        taught = list(zip(fitted[:24], fitted[24:], strict=True))
        assert set(taught) <= set(pairs)
        rest = [pair for pair in pairs if pair not in taught]
        assert {text for pair in rest for text in pair} == {*held, *tested}
        assert not {*held, *tested} & set(fitted)
    first, second = ({*fold[3][1]} for fold in folds)
    assert not first & second, "each row is tested once"


def test_lazy_rows_are_cut_and_trained_as_the_others(senteval):
    """A vectoriser that knows its words beforehand makes the same vectors in every fold."""
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


def test_lazy_in_one_process_or_two(senteval):
    senteval.pairs("F1A")
    given = {"kwargs_train": senteval.quick | {"n_repeats": 2}, "return_all_results": True}
    one = lazy(TfidfVectorizer(), senteval, tasks="F1A").evaluate(**given)[1]
    given["kwargs_train"]["n_processes"] = 2
    evaluator = UlyssesSentEvalLazy(TfidfVectorizer(), tasks="F1A", data_dir_path=senteval.path)
    pd.testing.assert_frame_equal(one, evaluator.evaluate(**given)[1], check_exact=True)


def test_who_cannot_be_sent_to_other_processes_stays_in_one(senteval):
    senteval.single("T1A")

    lock = threading.Lock()  # which cannot be pickled
    model = TfidfVectorizer(analyzer=lambda text: [*text.split(), str(lock.locked())])
    evaluator = UlyssesSentEvalLazy(model, tasks="T1A", data_dir_path=senteval.path)
    with pytest.warns(UserWarning, match="cannot be sent to other processes; one is used"):
        found = evaluator.evaluate(kwargs_train=senteval.quick | {"n_processes": 2})
    assert found["T1A"].keys() == KEYS


def test_one_learns_in_its_own_folds_only(senteval):
    """What an embedder keeps from one fold is not there in the next, nor in the caller's."""
    senteval.single("T1A")
    evaluator = lazy(TfidfVectorizer(), senteval, tasks="T1A")
    evaluator.evaluate(kwargs_train=senteval.quick)
    assert not hasattr(evaluator, "fitted_")
    assert not hasattr(evaluator.sentence_model, "vocabulary_")
    with pytest.raises(ValueError, match="fitted first, with the texts of train"):
        evaluator.embed(["lei"], None, "T1A", "test")
    with pytest.raises(ValueError, match="not all texts at once"):
        evaluator.embed(["lei"], None, "T1A", "all")


def test_lazy_embedding_calls_ones_own_method_part_by_part(senteval):
    senteval.single("T1A")
    seen = []

    class Mine(UlyssesSentEval):
        def embed(self, X_a, X_b, task, data_split, **kwargs):
            seen.append((len(X_a), X_b, task, data_split, kwargs))
            return self.sentence_model.encode(X_a)

    evaluator = Mine(
        senteval.model(),
        tasks="T1A",
        data_dir_path=senteval.path,
        lazy_embedding=True,
        disable_multiprocessing=True,
    )
    found = evaluator.evaluate(kwargs_embed={"x": 1}, kwargs_train=senteval.quick)
    parts = [(24, "train"), (6, "eval"), (30, "test")] * 2
    assert seen == [(rows, None, "T1A", part, {"x": 1}) for rows, part in parts]
    once = alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    assert found["T1A"]["avg_loss_test"] == once["T1A"]["avg_loss_test"]


def test_what_ones_own_lazy_method_raises_is_told_with_its_place(senteval):
    senteval.single("T1A")

    class Mine(UlyssesSentEvalLazy):
        def embed(self, X_a, X_b, task, data_split, **kwargs):
            raise RuntimeError("no words")

    evaluator = Mine(None, tasks="T1A", data_dir_path=senteval.path, disable_multiprocessing=True)
    with pytest.raises(ContractError, match="T1A: 2 of 2 folds .* RuntimeError: no words") as told:
        evaluator.evaluate(kwargs_train=senteval.quick)
    assert 'raise RuntimeError("no words")' in told.value.__notes__[0]


def test_a_fold_that_fails_is_told_and_the_others_are_aggregated(senteval):
    senteval.single("T1A")
    calls = []

    class Mine(UlyssesSentEvalLazy):
        def embed(self, X_a, X_b, task, data_split, **kwargs):
            calls.append(data_split)
            if len(calls) == 4:
                raise RuntimeError("lost")
            return super().embed(X_a, X_b, task, data_split, **kwargs)

    evaluator = Mine(
        TfidfVectorizer(), tasks="T1A", data_dir_path=senteval.path, disable_multiprocessing=True
    )
    with pytest.warns(UserWarning, match="T1A: 1 of 2 folds could not be run: RuntimeError: lost"):
        _, table = evaluator.evaluate(kwargs_train=senteval.quick, return_all_results=True)
    assert table["kfold_partition"].unique().tolist() == [1]


# -- the cache --------------------------------------------------------------------------------


def test_kept_vectors_are_used_again_and_only_for_what_they_are(senteval, tmp_path):
    table = senteval.single("T1A")
    kept = {"cache_embed_key": "my/model", "cache_dir": tmp_path / "kept", "tasks": "T1A"}

    def calls(given=kept, embed=None, cls=UlyssesSentEval, **more):
        model = senteval.model()
        evaluator = cls(model, data_dir_path=senteval.path, disable_multiprocessing=True, **given)
        evaluator.evaluate(kwargs_train=senteval.quick, kwargs_embed=embed, **more)
        return len(model.seen)

    class Mine(UlyssesSentEval):
        def embed(self, X_a, X_b, task, data_split, **kwargs):
            return 2 * self.sentence_model.encode(X_a)

    assert [calls(), calls(), calls(ignore_cached=True), calls()] == [1, 0, 1, 0]
    assert [calls(embed={"batch_size": 4}), calls(embed={"batch_size": 4})] == [1, 0]
    assert [calls(cls=Mine), calls(cls=Mine)] == [1, 0], "another method makes other vectors"
    assert calls(given=kept | {"cache_embed_key": "other"}) == 1
    senteval.write("T1A", {"text": table["text"].tolist()[::-1], "label": table["label"]})
    assert [calls(), calls()] == [1, 0], "other texts have other vectors"
    files = sorted((tmp_path / "kept").rglob("*"))
    assert sum(path.suffix == ".npy" for path in files) == 5
    assert not any(path.name.startswith(".") for path in files)
    broken = [path for path in files if path.suffix == ".npy"]
    for path in broken:
        path.write_bytes(path.read_bytes()[:200])
    assert [calls(), calls()] == [1, 0], "a broken file is made anew"


def test_without_a_key_nothing_is_kept(senteval, tmp_path, monkeypatch):
    senteval.single("T1A")
    monkeypatch.chdir(tmp_path)
    alone(senteval.model(), senteval, tasks="T1A").evaluate(kwargs_train=senteval.quick)
    assert not (tmp_path / "cache").exists()


def test_lazy_vectors_are_never_kept(senteval, tmp_path):
    senteval.single("T1A")
    with pytest.warns(UserWarning, match="cache_embed_key is not used"):
        evaluator = lazy(
            TfidfVectorizer(), senteval, tasks="T1A", cache_embed_key="x", cache_dir=tmp_path / "k"
        )
    evaluator.evaluate(kwargs_train=senteval.quick)
    assert not (tmp_path / "k").exists()


def test_kept_vectors_are_no_pickles(senteval, tmp_path):
    senteval.single("T1A")
    alone(
        senteval.model(), senteval, tasks="T1A", cache_embed_key="m", cache_dir=tmp_path / "k"
    ).evaluate(kwargs_train=senteval.quick)
    (path,) = (tmp_path / "k").rglob("*.npy")
    assert path.parent.name == "m" and path.name.startswith("T1A-")
    matrix = np.load(path, allow_pickle=False)
    assert matrix.dtype == np.float32 and matrix.shape == (60, 20)


def test_aggregates_are_those_of_the_frame(senteval):
    senteval.single("T1A")
    evaluator = alone(senteval.model(), senteval, tasks="T1A")
    found, table = evaluator.evaluate(kwargs_train=senteval.quick, return_all_results=True)
    wanted = aggregate(table)["T1A"]
    for key, value in found["T1A"].items():
        assert np.array_equal(value, wanted[key]), key
    plain = {key: np.asarray(value).tolist() for key, value in found["T1A"].items()}
    assert "NaN" not in json.dumps(plain)


def test_no_warning_is_given_where_all_is_well(senteval):
    senteval.pairs("F1A")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone(senteval.model(), senteval, tasks="F1A").evaluate(kwargs_train=senteval.quick)
        lazy(TfidfVectorizer(), senteval, tasks="F1A").evaluate(kwargs_train=senteval.quick)
