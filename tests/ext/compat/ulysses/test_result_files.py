"""The tables of Ulysses SentEval: frame, aggregates, summary and exported files."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import karat
from karat.core.dataset import Dataset
from karat.data.load_dataset import DataSpec
from karat.errors import DataError, DefinitionError
from karat.ext.compat.convert import export_results
from karat.ext.compat.ulysses.adamw import bootstrap_seed, interval_seeds, resamples
from karat.ext.compat.ulysses.result_files import (
    METRICS,
    Resampling,
    aggregate,
    bootstrap,
    corrected,
    describe_columns,
    frame,
    pooled_bootstrap,
    pooled_corrected,
    read_senteval,
    resampled_means,
    summary,
)
from karat.results.tables import SCORE_COLUMNS

CURVES = ["loss_per_epoch_train", "loss_per_epoch_eval", "metric_per_epoch_eval"]
COLUMNS = ["task", "kfold_repetition", "kfold_partition", "train_epoch", "metric", "value"]
STATISTICS = ["avg", "std", "ci99_low", "ci99_high"]


def tidy(task: str = "F1A", repeats: int = 2, folds: int = 3, model: str = "m") -> pd.DataFrame:
    """Return scores of a run: fold f stops after f + 1 epochs, its test score is f / 10."""
    rows = []
    for fold in range(repeats * folds):
        job = (task, model, fold // folds, fold, "", 0.0, 0)
        for epoch in range(1, fold + 2):
            rows += [(*job, epoch, name, fold + epoch / 10) for name in CURVES]
        final = {"above_chance": fold / 10, "mcc": fold / 10 - 0.1, "logloss": 1 - fold / 10}
        rows += [(*job, -1, name, value) for name, value in final.items()]
    return pd.DataFrame(rows, columns=list(SCORE_COLUMNS))


def test_columns_and_order_of_the_frame():
    table = frame(tidy())
    assert list(table) == COLUMNS
    assert table["metric"].unique().tolist() == [*CURVES, "loss_test", "metric_test"]
    assert len(table) == 3 * (1 + 2 + 3 + 4 + 5 + 6) + 2 * 6
    first = table[table["metric"] == CURVES[0]]
    assert first["train_epoch"].tolist()[:6] == [1, 1, 2, 1, 2, 3]
    assert first["kfold_partition"].unique().tolist() == [1, 2, 3]
    assert first["value"].tolist()[:3] == [0.1, 1.1, 1.2]
    tests = table[table["metric"] == "metric_test"]
    assert (tests["train_epoch"] == -1).all()
    assert tests["kfold_repetition"].tolist() == [1, 1, 1, 2, 2, 2]
    assert tests["kfold_partition"].tolist() == [1, 2, 3, 1, 2, 3]
    assert tests["value"].tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert table["value"].dtype == float and table["kfold_partition"].dtype.kind == "i"


def test_missing_folds_keep_partition_numbers():
    scores = tidy()
    table = frame(scores[~scores["fold"].isin([0, 4])])
    tests = table[table["metric"] == "metric_test"]
    pairs = tests[["kfold_repetition", "kfold_partition"]].to_numpy().tolist()
    assert pairs == [[1, 2], [1, 3], [2, 1], [2, 3]]


def test_frame_has_clean_scores_of_senteval_tasks_only():
    noisy = tidy().assign(corruption="typos", severity=0.1, value=9.0)
    other = tidy("other").query("metric not in ('above_chance', 'logloss')")
    table = frame(pd.concat([tidy(), noisy, other], ignore_index=True))
    pd.testing.assert_frame_equal(table, frame(tidy()))
    with pytest.raises(DataError, match="above_chance"):
        frame(other)


def test_name_of_exact_tasks():
    assert frame(tidy("F1A-exact"))["task"].unique().tolist() == ["F1A"]
    both = frame(pd.concat([tidy("F1A-exact"), tidy("F1A")], ignore_index=True))
    assert both["task"].unique().tolist() == ["F1A-exact", "F1A"]


def test_frame_of_two_models_is_an_error():
    with pytest.raises(DataError, match="two values"):
        frame(pd.concat([tidy(), tidy(model="n")], ignore_index=True))


def test_twenty_keys():
    (found,) = aggregate(frame(tidy())).values()
    assert sorted(found) == sorted(f"{s}_{m}" for s in STATISTICS for m in METRICS)
    assert len(found) == 20
    for key, value in found.items():
        curve = "per_epoch" in key
        assert isinstance(value, np.ndarray) == curve and isinstance(value, float) != curve, key
        assert np.shape(value) == ((6,) if curve else ())


def test_means_over_folds_that_reached_an_epoch():
    (found,) = aggregate(frame(tidy())).values()
    assert found["avg_metric_test"] == pytest.approx(0.25)
    assert found["std_metric_test"] == pytest.approx(np.std(np.arange(6) / 10, ddof=1))
    # epoch e was reached by the folds e - 1 to 5, whose values are fold + e / 10
    wanted = [np.mean(np.arange(epoch - 1, 6)) + epoch / 10 for epoch in range(1, 7)]
    assert found["avg_loss_per_epoch_eval"] == pytest.approx(wanted)
    spreads = [np.std(np.arange(epoch - 1, 6), ddof=1) for epoch in range(1, 6)]
    assert found["std_loss_per_epoch_train"] == pytest.approx([*spreads, 0.0])
    last = [found[f"{name}_loss_per_epoch_train"][-1] for name in STATISTICS]
    assert last == [5.6, 0.0, 5.6, 5.6]


def test_intervals_use_the_original_seeds():
    (found,) = aggregate(frame(tidy())).values()
    seeds = interval_seeds(METRICS, bootstrap_seed(2))
    low, high = bootstrap(1 - np.arange(6)[:, None] / 10, seeds["loss_test"])
    assert (found["ci99_low_loss_test"], found["ci99_high_loss_test"]) == (low[0], high[0])
    (other,) = aggregate(frame(tidy()), seed=3).values()
    assert other["ci99_low_loss_test"] != found["ci99_low_loss_test"]
    assert other["avg_loss_test"] == found["avg_loss_test"]


def test_interval_of_equal_folds():
    scores = tidy().assign(value=0.0)
    (found,) = aggregate(frame(scores)).values()
    assert found["ci99_low_metric_test"] == found["ci99_high_metric_test"] == 0.0
    assert not np.isnan(np.concatenate([np.atleast_1d(v) for v in found.values()])).any()
    (plain,) = aggregate(frame(scores), faithful=True).values()
    assert math.isnan(plain["ci99_low_metric_test"])


def test_interval_is_clipped_to_the_metric_range():
    scores = tidy(repeats=2, folds=5)
    scores.loc[scores["metric"] == "above_chance", "value"] = [0.0] * 9 + [1.0]
    (plain,) = aggregate(frame(scores), faithful=True).values()
    (found,) = aggregate(frame(scores)).values()
    assert plain["ci99_low_metric_test"] < 0 == found["ci99_low_metric_test"]
    assert found["ci99_high_metric_test"] == plain["ci99_high_metric_test"]
    losses = scores["metric"] == "logloss"
    scores.loc[losses, "value"] = [0.0] * 9 + [30.0]
    (found,) = aggregate(frame(scores)).values()
    assert found["ci99_low_loss_test"] == 0 and found["ci99_high_loss_test"] > 1


def test_other_confidence():
    table = frame(tidy())
    (wide,), (narrow,) = aggregate(table).values(), aggregate(table, confidence=0.5).values()
    assert "ci50_low_loss_test" in narrow and "ci99_low_loss_test" not in narrow
    assert narrow["ci50_low_loss_test"] > wide["ci99_low_loss_test"]
    with pytest.raises(DefinitionError, match="99"):
        aggregate(table, confidence=99)


def test_tasks_without_curves():
    (found,) = aggregate(frame(tidy().query("epoch == -1"))).values()
    assert len(found) == 20 and found["avg_loss_per_epoch_train"].size == 0
    assert found["avg_metric_test"] == pytest.approx(0.25)


def test_frame_with_missing_columns():
    with pytest.raises(DataError, match='"kfold_partition"'):
        aggregate(frame(tidy()).drop(columns="kfold_partition"))


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    parts = [tidy("F1A"), tidy("F2").assign(value=lambda t: t["value"] / 2), tidy("T3")]
    return summary(pd.concat(parts, ignore_index=True))


def test_rows_of_the_summary(table):
    names = ["model", "task", "group", "metric", "mean", "std", "ci99_low", "ci99_high"]
    assert list(table) == [*names, "nb99_low", "nb99_high", "mode"]
    tasks = table[~table["task"].str.contains(" task")]
    assert tasks["metric"].tolist() == ["above_chance", "mcc", "logloss"] * 3
    groups = table[table["task"].str.contains(" task")]
    assert groups["group"].tolist() == ["F", "T", "all"]
    assert groups["task"].tolist() == ["2 tasks", "1 task", "3 tasks"]
    assert groups["mean"].tolist() == pytest.approx([0.1875, 0.25, 0.625 / 3])
    assert groups["std"].tolist()[0] == pytest.approx(np.std([0.25, 0.125], ddof=1))


def test_intervals_of_a_task(table):
    row = table[(table["task"] == "F1A") & (table["metric"] == "mcc")].iloc[0]
    assert row["mean"] == pytest.approx(0.15) and row["nb99_low"] < 0, "not clipped"
    row = table[(table["task"] == "F1A") & (table["metric"] == "above_chance")].iloc[0]
    (own,) = aggregate(frame(tidy())).values()
    assert row["ci99_low"] == own["ci99_low_metric_test"]
    assert row["ci99_high"] == own["ci99_high_metric_test"]
    low, high = corrected(np.arange(6)[:, None] / 10, parts=3)
    assert row["nb99_low"] == max(0, low[0]) and row["nb99_high"] == pytest.approx(min(1, high[0]))
    # a group of one task
    task = table[(table["task"] == "T3") & (table["metric"] == "above_chance")].iloc[0]
    group = table[table["group"] == "T"].iloc[-1]
    assert group["nb99_low"] == task["nb99_low"] and group["nb99_high"] == task["nb99_high"]
    assert 0 <= group["ci99_low"] < group["mean"] < group["ci99_high"] <= 0.5


def test_summary_of_several_models():
    both = pd.concat([tidy(), tidy(model="n")], ignore_index=True)
    table = summary(both)
    assert table["model"].tolist() == ["m"] * 5 + ["n"] * 5


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[karat.Run]:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    words = [["lei", "norma"], ["gol", "jogo"]]
    texts = [" ".join(rng.choice(words[label], 5)) + f" {i}" for i, label in enumerate(labels)]
    table = pd.DataFrame({"text": texts, "label": labels})
    data = karat.Dataset.from_columns(table, ["text"], "label", name="small", kind="classification")
    metrics = ["above_chance", "mcc", "f1_macro", "acc", "logloss"]
    tasks = []
    for name, mode in (("F1A-exact", "exact"), ("T3", "fast")):
        head = {"use": "adamw", "mode": mode, "n_epochs": 4, "folds": 2}
        split = {"use": "senteval", "folds": 2, "repeats": 2}
        probe = {"use": "trained", "head": head, "scale": "plain"}
        kind = f"ulysses-{name[0]}"
        tasks.append(karat.Task(name, data, probe, split, metrics, kind=kind))
    tasks.append(karat.Task("plain", data, split={"use": "kfold", "folds": 2}, metrics=["acc"]))
    output = tmp_path_factory.mktemp("runs")
    return karat.evaluate(["tfidf", "random"], tasks, output=output)


def test_learning_curves(runs):
    scores = runs[0].scores()
    curves = scores[(scores["task"] == "T3") & (scores["metric"] == CURVES[1])]
    assert curves.groupby("fold")["epoch"].agg(list).tolist() == [[1, 2, 3, 4]] * 4
    table = frame(runs[0])
    assert table["task"].unique().tolist() == ["F1A", "T3"]
    assert len(table) == 2 * (4 * 4 * 3 + 4 * 2)


def test_exported_files(runs, tmp_path):
    written = export_results(runs[0], "ulysses", tmp_path / "one")
    assert [path.name for path in written] == [
        "results_nonagg.csv",
        "results_agg.json",
        "summary.csv",
    ]
    table = pd.read_csv(written[0])
    pd.testing.assert_frame_equal(table, frame(runs[0]), check_dtype=False)
    aggregates = json.loads(written[1].read_text())
    assert list(aggregates) == ["F1A", "T3"] and all(len(v) == 20 for v in aggregates.values())
    assert aggregates["T3"]["avg_metric_test"] == aggregate(table)["T3"]["avg_metric_test"]
    assert len(aggregates["T3"]["ci99_low_loss_per_epoch_eval"]) == 4
    rows = pd.read_csv(written[2], keep_default_na=False)
    assert rows.loc[rows["task"] == "F1A", "mode"].unique().tolist() == ["exact"]
    assert rows.loc[rows["task"] == "T3", "mode"].unique().tolist() == ["fast"]
    assert rows["group"].tolist() == ["F"] * 5 + ["T"] * 5 + ["F", "T", "all"]
    raw = rows[(rows["task"] == "T3") & (rows["metric"] == "acc")].iloc[0]
    scores = runs[0].scores().query("task == 'T3' and metric == 'acc'")
    assert float(raw["mean"]) == pytest.approx(scores["value"].mean())


def test_export_of_several_models(runs, tmp_path):
    written = export_results(runs, "ulysses", tmp_path)
    names = [path.relative_to(tmp_path).as_posix() for path in written]
    assert names == [
        "tfidf/results_nonagg.csv",
        "tfidf/results_agg.json",
        "random/results_nonagg.csv",
        "random/results_agg.json",
        "summary.csv",
    ]
    assert set(pd.read_csv(written[-1])["model"]) == {"tfidf", "random"}


# -- Bootstrap intervals against SciPy, corrected intervals by hand -------------------------------


def short(values: np.ndarray) -> np.ndarray:
    """Return values of so few bits that their sums are exact, whatever their order."""
    return np.round(values * 1024) / 1024


@pytest.mark.parametrize("confidence", [0.99, 0.9])
@pytest.mark.parametrize("size", [2, 3, 10, 50])
@pytest.mark.parametrize("faithful", [False, True])
def test_the_bootstrap_equals_scipys(size, confidence, faithful):
    values = np.random.default_rng(size).gamma(2, size=(size, 3))
    values = values if faithful else short(values)
    low, high = bootstrap(values, 77, confidence, faithful=faithful)
    for column in range(3):
        mean = values[:, column].mean()
        theirs = stats.bootstrap(
            (values[:, column],),
            lambda x, axis=-1, mean=mean: mean - np.mean(x, axis=axis),
            n_resamples=10_000,
            confidence_level=confidence,
            random_state=77,
        ).confidence_interval
        assert low[column] == pytest.approx(mean + theirs.low, abs=1e-12)
        assert high[column] == pytest.approx(mean + theirs.high, abs=1e-12)


def test_resamples_are_those_of_numpys_old_generator():
    drawn = resamples(7, 100, 5)
    assert (drawn == np.random.RandomState(5).randint(0, 7, size=(100, 7))).all()
    values = np.random.default_rng(0).normal(size=(7, 4))
    assert resampled_means(values, drawn) == pytest.approx(values[drawn].mean(axis=1))


def test_each_metric_has_a_seed_by_its_place_among_the_sorted():
    draws = np.random.RandomState(1260762361)
    first, second = draws.randint(0, 2**32 - 1), draws.randint(0, 2**32 - 1)
    assert interval_seeds(["metric", "loss"], 1260762361) == {"loss": first, "metric": second}


def test_rounding_does_not_move_the_interval():
    """A resample of every value once is the mean itself, also where its sum is rounded."""
    values = np.random.default_rng(3).normal(size=(5, 1))
    exact = short(values)
    plain = np.array(bootstrap(values, 1)) - values.mean()
    rough = np.array(bootstrap(exact, 1)) - exact.mean()
    assert plain == pytest.approx(rough, abs=5e-3)
    shifted = np.array(bootstrap(exact + 1e-3, 1)) - (exact + 1e-3).mean()
    assert shifted == pytest.approx(rough, abs=1e-12)


def test_one_value_has_itself_as_interval_and_equal_ones_have_none():
    assert [each.tolist() for each in bootstrap(np.array([[0.3]]), 0)] == [[0.3], [0.3]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low, high = bootstrap(np.full((4, 1), 0.3), 0)
    assert np.isnan([low, high]).all()


def test_columns_are_described_over_the_rows_that_have_them():
    table = np.array([[1.0, 4.0, 7.0], [2.0, 6.0, np.nan], [6.0, np.nan, np.nan]])
    found = describe_columns(table, 0, Resampling(), (0.0, math.inf))
    assert found["avg"].tolist() == [3.0, 5.0, 7.0]
    assert found["std"] == pytest.approx([math.sqrt(7), math.sqrt(2), 0.0])
    for column, rows in enumerate((3, 2, 1)):
        low, high = bootstrap(table[:rows, column : column + 1], 0)
        assert found["ci99_low"][column] == max(low[0], 0) and found["ci99_high"][column] == high[0]


def test_an_interval_stays_within_the_range_and_around_equal_values():
    """Nine times nothing and one 1: the reflected interval begins below 0."""
    table = np.array([[0.0, 0.5]] * 9 + [[1.0, 0.5]])
    plain = describe_columns(table, 1, Resampling(faithful=True), (0.0, 1.0))
    assert plain["ci99_low"][0] < -0.1 and np.isnan(plain["ci99_low"][1])
    found = describe_columns(table, 1, Resampling(), (0.0, 1.0))
    assert found["ci99_low"].tolist() == [0.0, 0.5]
    assert found["ci99_high"].tolist() == [plain["ci99_high"][0], 0.5]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=20),
    st.integers(0, 2**32 - 1),
)
def test_every_interval_of_shares_lies_between_0_and_1(values, seed):
    found = describe_columns(np.array(values)[:, None], seed, Resampling(times=200), (0.0, 1.0))
    assert 0 <= found["ci99_low"][0] <= found["ci99_high"][0] <= 1


def test_names_contain_the_confidence():
    found = describe_columns(np.ones((2, 1)), 0, Resampling(0.95), (0, 1))
    assert list(found) == ["avg", "std", "ci95_low", "ci95_high"]
    assert list(describe_columns(np.ones((2, 1)), 0, Resampling(0.995), (0, 1)))[2] == "ci99.5_low"


@pytest.mark.parametrize("wrong", [{"confidence": 1.0}, {"confidence": 99}, {"times": 0}])
def test_wrong_options_raise(wrong):
    with pytest.raises(DefinitionError, match=r"confidence|resamples"):
        Resampling(**wrong)


def test_the_corrected_interval_by_hand():
    """Ten folds of five parts: 0.116/9 times 1/10 + 1/4; t of 9 degrees at 99 % is 3.249836."""
    values = np.array([0.0, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 0.3, 0.4])[:, None]
    squares = 0.0324 + 3 * 0.0064 + 4 * 0.0004 + 0.0144 + 0.0484
    half = 3.249836 * math.sqrt(squares / 9 * (1 / 10 + 1 / 4))
    low, high = corrected(values, parts=5)
    assert low[0] == pytest.approx(0.18 - half, abs=1e-6)
    assert high[0] == pytest.approx(0.18 + half, abs=1e-6)
    naive = stats.t.interval(0.99, 9, 0.18, stats.sem(values[:, 0]))
    ratio = math.sqrt((1 / 10 + 1 / 4) / (1 / 10))
    assert high[0] - low[0] == pytest.approx(ratio * (naive[1] - naive[0]))


def test_one_fold_has_no_corrected_interval_and_equal_ones_have_no_width():
    assert np.isnan(corrected(np.array([[0.5]]), 5)).all()
    low, high = corrected(np.full((10, 1), 0.25), 5)
    assert low.tolist() == high.tolist() == [0.25]


def test_the_corrected_interval_of_two_tasks_by_hand():
    """Variances 0.02 and 0.08 of two folds in two parts: 1.5 times as much, Welch's degrees."""
    a, b = np.array([[0.4], [0.6]]), np.array([[0.3], [0.7]])
    first, second = 0.02 * 1.5, 0.08 * 1.5
    degrees = (first + second) ** 2 / (first**2 + second**2)
    half = stats.t.ppf(0.95, degrees) * math.sqrt(first + second) / 2
    low, high = pooled_corrected([a, b], [2, 2], confidence=0.9)
    assert (low[0], high[0]) == pytest.approx((0.5 - half, 0.5 + half))


def test_the_percentile_interval_of_some_tasks():
    rng = np.random.default_rng(0)
    tasks = {name: rng.normal(0.5, 0.1, (50, 1)) for name in "ab"}
    low, high = pooled_bootstrap(tasks, 0, 0.9, 20_000)
    middle = (tasks["a"].mean() + tasks["b"].mean()) / 2
    error = math.sqrt(tasks["a"].var() / 50 + tasks["b"].var() / 50) / 2
    assert (high[0] - low[0]) / 2 == pytest.approx(1.645 * error, rel=0.03)
    assert (high[0] + low[0]) / 2 == pytest.approx(middle, abs=error / 10)
    other = pooled_bootstrap(dict(reversed(tasks.items())), 0, 0.9, 20_000)
    assert other[0][0] == pytest.approx(low[0]) and other[1][0] == pytest.approx(high[0])


pytestmark = pytest.mark.usefixtures("download_settings")


SINGLE = ",text,label\n0,good,1\n1,bad,0\n2,fine,1\n"
PAIRS = ",a,b,label\n0,one,eins,1\n1,two,drei,0\n2,one,zwei,0\n"
EXAM = (
    ',question,options,label\n0,"1 + 1?","two [SEP] three [SEP] ten",0\n'
    '7,"2 + 1?","two [SEP] three [SEP] ten",1\n9,"5 + 5?","two [SEP] three [SEP] ten",2\n'
)


@pytest.fixture
def read(tmp_path):
    def reading(text: str, name: str = "file.csv", **settings) -> Dataset:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return read_senteval(path, DataSpec(name="mine", **settings))

    return reading


def texts(data: Dataset, field: str) -> list[str]:
    return data.items[data.questions[field]].tolist()


def test_one_text(read):
    data = read(SINGLE)
    assert (data.modality, data.kind, data.fields) == ("text", "classification", ["text"])
    assert texts(data, "text") == ["good", "bad", "fine"]
    assert data.target.tolist() == [1, 0, 1] and data.classes == (0, 1)


def test_two_texts(read):
    data = read(PAIRS)
    assert data.fields == ["a", "b"] and len(data.items) == 5
    assert texts(data, "a") == ["one", "two", "one"] and texts(data, "b")[1] == "drei"


def test_columns_after_the_second_text_are_ignored(read):
    data = read("id,a,b,source,label\n5,x,y,web,1\n6,u,v,web,0\n")
    assert data.fields == ["a", "b"] and len(data.items) == 4


def test_other_columns_can_be_named(read):
    data = read("place,a,b,label\nweb,x,y,1\nbook,u,v,0\n", fields=("b",), target="place")
    assert texts(data, "b") == ["y", "v"] and data.classes == ("book", "web")


def test_text_index_must_be_declared(read):
    content = "name,text,label\nfirst,good,1\nsecond,bad,0\n"
    with pytest.raises(DataError, match='"name"'):
        read(content)
    assert texts(read(content, options={"index": True}), "text") == ["good", "bad"]
    assert read(content, options={"index": False}).fields == ["name", "text"]


def test_texts_are_not_converted(read):
    data = read(',text,label\n0,NA,1\n1,007,0\n2," a, b ",1\n3,null,0\n')
    assert texts(data, "text") == ["NA", "007", " a, b ", "null"]


def test_train_and_test_files(tmp_path):
    for name, text in (("a.csv", SINGLE), ("b.csv", ",text,label\n0,new,1\n")):
        (tmp_path / name).write_text(text)
    files = {"train": tmp_path / "a.csv", "test": tmp_path / "b.csv"}
    data = read_senteval(files, DataSpec(name="mine"))
    assert Counter(data.part) == {"train": 3, "test": 1} and data.target.tolist() == [1, 0, 1, 1]


def test_group_column(read):
    data = read(",who,text,label\n0,x,a,1\n1,y,b,0\n", group="who")
    assert data.group.tolist() == ["x", "y"] and data.fields == ["text"]


@pytest.mark.parametrize(
    ("written", "classes"),
    [
        (["2", "10", "1"], (1, 2, 10)),
        (["1.0", "0.0", "1.0"], (0.0, 1.0)),
        (["-1", "1", "0"], (-1, 0, 1)),
        (["5", "7", "5"], (5, 7)),
        (["02", "10", "1"], ("1", "02", "10")),
        (["yes", "no", "yes"], ("no", "yes")),
        (["NA", "None", "x"], ("NA", "None", "x")),
        (["10", "9", "ten"], ("10", "9", "ten")),
        (["True", "False", "True"], ("False", "True")),
    ],
)
def test_labels_of_any_kind(read, written, classes):
    rows = "".join(f"{i},text {i},{label}\n" for i, label in enumerate(written))
    data = read(f",text,label\n{rows}")
    assert data.classes == classes
    assert [str(label) for label in data.target] == written


def test_labels_can_be_renamed(read):
    data = read(SINGLE, options={"labels": {"1": "good", "0": "bad"}})
    assert data.classes == ("good", "bad") and data.target.tolist() == ["good", "bad", "good"]


def test_options_become_fields(read):
    data = read(EXAM, options={"options": " [SEP] "})
    assert data.fields == ["question", "option_1", "option_2", "option_3"]
    assert texts(data, "question") == ["1 + 1?", "2 + 1?", "5 + 5?"]
    assert texts(data, "option_3") == ["ten"] * 3
    assert len(data.items) == 6 and data.classes == (0, 1, 2)


CHOICES = '"two [SEP] three [SEP] ten",'


@pytest.mark.parametrize(
    ("content", "separator", "word"),
    [
        (
            EXAM.replace(f"{CHOICES}2", '"two [SEP] three",2'),
            " [SEP] ",
            'row 2: "options".* 2 .* 3',
        ),
        (EXAM.replace(f"{CHOICES}1", '"two [SEP]  [SEP] ten",1'), " [SEP] ", 'row 1:.*"options"'),
        (EXAM, " / ", '" / "'),
        (SINGLE, " [SEP] ", "second text"),
        (EXAM, "", "second text"),
    ],
)
def test_invalid_choices(read, content, separator, word):
    with pytest.raises(DataError, match=word):
        read(content, options={"options": separator})


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", r"file.csv is empty\."),
        (",text,label\n", r"file\.csv"),
        ("text,label\ngood,1\n", "columns"),
        ("label\n1\n0\n", "columns"),
        (",text,label\n0,a,1\n1,b,1\n", '"1"'),
        (",text,label\n0,a,1\n1,,0\n", 'row 1.*"text"'),
        (",text,label\n0,a,1\n1,  ,0\n", 'row 1: "text" is empty'),
        (",a,b,label\n0,x,,1\n1,,y,0\n", 'row 0.*"b"'),
        (",text,label\n0,a,1\n1,b,\n", 'row 1.*"label"'),
        (",text,text,label\n0,a,b,1\n", '"text"'),
        (",text,label\n0,a,1\n1,b,0,5\n", "line 3"),
    ],
)
def test_invalid_files(read, content, word):
    with pytest.raises(DataError, match=word) as error:
        read(content)
    assert "file.csv" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"fields": ("txt",)}, '"text"'),
        ({"target": "labels"}, '"label"'),
        ({"group": "who"}, '"who"'),
    ],
)
def test_unknown_column_suggests_the_nearest(read, settings, word):
    with pytest.raises(DataError, match=word):
        read(SINGLE, **settings)


def test_missing_cells_of_other_formats(tmp_path):
    rows = [{"i": 0, "text": None, "label": "x"}, {"i": 1, "text": "a", "label": "y"}]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    with pytest.raises(DataError, match='row 0: "text" is empty'):
        read_senteval(path, DataSpec(name="mine"))
    rows[0]["text"], rows[1]["label"] = "b", None
    path.write_text(json.dumps([*rows, {"i": 2, "text": "c", "label": "y"}]))
    with pytest.raises(DataError, match='row 1.*"label"'):
        read_senteval(path, DataSpec(name="mine"))


def test_incomplete_rows_can_be_dropped(read):
    content = ",text,label\n0,a,1\n1,,0\n2,b,\n3,c,0\n"
    data = read(content, options={"empty": "drop", "unanswered": "drop"})
    assert texts(data, "text") == ["a", "c"] and data.target.tolist() == [1, 0]
    with pytest.raises(DataError, match="texts"):
        read(",text,label\n0,,1\n1,,0\n", options={"empty": "drop"})


@pytest.mark.parametrize("option", ["empty", "unanswered", "index"])
def test_invalid_value_of_an_option(read, option):
    with pytest.raises(DefinitionError, match=f'"{option}"'):
        read(SINGLE, options={option: "maybe"})


def test_questions_that_share_a_text_stay_together(read):
    data = read(PAIRS, options={"together": True})
    assert data.group.tolist() == [0, 1, 0]
    with pytest.raises(DefinitionError, match='"group"'):
        read(PAIRS, options={"together": True}, group="a")


YAML = """\
tasks:
  my-task:
    extends: senteval
    dataset: {path: mine.csv, reader: senteval}
suites:
  my-suite: {tasks: [my-task]}
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Write a YAML file of six lines and 800 texts whose label is their first word."""
    kinds = ["good", "poor"] * 400
    rows = [f"{i},{kind} day {i % 7} and {i},{kind}" for i, kind in enumerate(kinds)]
    (tmp_path / "mine.csv").write_text("\n".join([",text,label", *rows, ""]))
    (tmp_path / "mine.yaml").write_text(YAML)
    return tmp_path / "mine.yaml"


def test_own_task_in_six_lines(own, tmp_path):
    assert len(YAML.splitlines()) == 6
    suite = karat.suite("my-suite", define=own)
    (run,) = karat.evaluate(
        "tfidf", suite, only=karat.Only(folds=[0, 1]), output=tmp_path / "results"
    )
    results = run.results()
    assert results["metric"].unique().tolist() == ["above_chance"]
    assert results["result"].tolist() == [1.0, 1.0], "the label is a word of the text"
