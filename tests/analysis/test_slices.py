"""Slices: how they are made, proposed and tested, and how often they are right."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import karat
from karat.analysis.items import TaskItems
from karat.analysis.slices import (
    MOST_TESTED,
    Slice,
    cluster_error,
    compare_slices,
    estimate_slices,
    held_out,
    make_slices,
    propose,
    slices_of,
    worse_inside,
)
from karat.errors import DataError, DefinitionError

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def names(slices) -> list[str]:
    return [each.name for each in slices]


# -- making slices --------------------------------------------------------------------------


def test_numbers_are_cut_at_their_quartiles():
    values = [str(v) for v in range(100)]
    found = slices_of("x", values)
    assert [int(each.inside.sum()) for each in found] == [25, 25, 25, 25]
    assert sum(each.inside.astype(int) for each in found).tolist() == [1] * 100
    assert len(slices_of("class", values[:10], names=True)) == 10
    few = slices_of("x", ["1", "2"] * 10)
    assert names(few) == ["x = 1", "x = 2"]


def test_values_that_repeat_at_a_quartile_make_fewer_slices():
    values = ["0"] * 80 + [str(v) for v in range(1, 21)]
    found = slices_of("gain", values)
    assert [int(each.inside.sum()) for each in found] == [80, 20]


def test_missing_cells_are_a_slice_of_their_own():
    found = slices_of("x", [str(v) for v in range(20)] + [""] * 5)
    assert names(found)[-1] == "x is missing" and found[-1].inside.sum() == 5
    assert not any((each.inside & found[-1].inside).any() for each in found[:-1])


def task_items(loss: str = "error", texts: pd.DataFrame | None = None, why: str = "") -> TaskItems:
    target = ["a", "b"] * 50 if loss == "error" else np.arange(100.0)
    table = pd.DataFrame({"key": [f"k{i}" for i in range(100)], "fold": 0, "target": target})
    return TaskItems("t", loss, table, texts, why)


TEXTS = pd.DataFrame(
    {
        "plan": ["basic"] * 60 + ["plus"] * 40,
        "note": ["x" * (40 + i) for i in range(100)],
        "age": [""] * 30 + [str(i) for i in range(70)],
        "characters": [str(i) for i in range(100)],
        "group": ["g", "h"] * 50,
    },
    index=[f"k{i}" for i in reversed(range(100))],
)


def test_features_by_name():
    found = task_items(texts=TEXTS)
    assert names(make_slices(found, "class")) == ["class = a", "class = b"]
    assert names(make_slices(found, "group")) == ["group = g", "group = h"]
    assert names(make_slices(found, "missing")) == ["missing cells = 0", "missing cells = 1"]
    assert len(make_slices(found, "length")) == 4
    assert names(make_slices(found, "note"))[0].startswith("length of note <= ")
    basic, plus = make_slices(found, "plan")
    assert (basic.name, plus.name) == ("plan = basic", "plan = plus")
    # the item table has another order than the predictions
    assert plus.inside[:40].all() and not plus.inside[40:].any()
    assert names(make_slices(task_items("absolute error", TEXTS), "target"))[0].startswith("target")


def test_auto_makes_all_slices_once():
    found = make_slices(task_items(texts=TEXTS), "auto")
    assert len({each.inside.tobytes() for each in found}) == len(found)
    assert {each.feature for each in found} >= {"class", "length", "plan", "age"}
    assert "age is missing" in names(found) and "missing cells = 1" not in names(found)


def test_unknown_and_absent_features():
    found = task_items(texts=TEXTS)
    with pytest.raises(DefinitionError, match='"plan"'):
        make_slices(found, "plann")
    with pytest.raises(DefinitionError):
        make_slices(task_items("absolute error", TEXTS), "class")
    with pytest.raises(DataError, match="no table"):
        make_slices(task_items(why="no table"), "plan")
    assert names(make_slices(task_items(why="no table"), "auto")) == ["class = a", "class = b"]


# -- proposing and testing ------------------------------------------------------------------


def test_later_folds_are_held_out_and_groups_are_not_divided():
    folds = np.repeat(np.arange(5), 4)
    assert sorted(set(folds[held_out(folds)])) == [2, 3, 4]
    groups = np.repeat(np.arange(10), 3)
    test = held_out(np.zeros(30, dtype=int), groups)
    assert test.sum() == 15
    assert all(len(set(test[groups == g])) == 1 for g in range(10))
    assert np.array_equal(test, held_out(np.zeros(30, dtype=int), groups))


def test_p_is_the_larger_of_two_tests():
    rng = np.random.default_rng(0)
    values, inside = rng.normal(size=200), np.arange(200) < 60
    values[inside] += 0.3
    x, rest = values[inside], values[~inside]
    welch = stats.ttest_ind(x, rest, equal_var=False, alternative="greater").pvalue
    z = (x.mean() - rest.mean()) / (values.std(ddof=1) * np.sqrt(1 / 60 + 1 / 140))
    assert worse_inside(values, inside, False) == pytest.approx(max(welch, stats.norm.sf(z)))
    own = stats.ttest_1samp(x, 0, alternative="greater").pvalue
    expected = max(welch, stats.norm.sf(z), own)
    assert worse_inside(values, inside, True) == pytest.approx(expected)


def test_no_error_inside_is_no_proof():
    # 2 % errors elsewhere, none of 25 inside: the chance of that is 0.6
    values = np.zeros(525)
    values[25:35] = -1.0
    assert worse_inside(values, np.arange(525) < 25, False) > 0.2
    assert worse_inside(-values, np.arange(525) < 25, False) == 1.0


def test_a_lead_that_is_the_same_everywhere_is_no_slice():
    rng = np.random.default_rng(1)
    values, inside = 0.5 + rng.normal(0, 0.1, 400), np.arange(400) < 100
    assert worse_inside(values, inside, True) > 0.01
    # a smaller lead of the other is no loss
    values = np.where(inside, -0.1, -0.5) + rng.normal(0, 0.1, 400)
    assert worse_inside(values, inside, True) == 1.0
    assert worse_inside(values, inside, False) < 1e-6


def test_only_slices_that_stand_out_are_proposed_with_their_direction():
    rng = np.random.default_rng(2)
    values = rng.normal(0, 0.1, 300)
    values[:60] += 1.0
    values[60:120] -= 1.0
    every = np.ones(300, dtype=bool)
    slices = [Slice(f"s{i}", "s", np.arange(300) // 60 == i) for i in range(5)]
    proposed = {each.name: sign for each, sign in propose(values, slices, every, True)}
    assert proposed == {"s0": 1, "s1": -1}
    assert [each.name for each, _ in propose(values, slices, every, False)] == ["s0"]
    many = [
        Slice(f"s{i}", "s", (np.arange(300) < 60) | (np.arange(300) == 100 + i)) for i in range(40)
    ]
    assert len(propose(values, many, every, True)) == MOST_TESTED


def test_small_slices_are_not_tested():
    values, every = np.arange(100.0), np.ones(100, dtype=bool)
    small = Slice("small", "s", np.arange(100) < 19)
    assert estimate_slices(values, [(small, 1)], every, False) == []
    (found,) = estimate_slices(values, [(Slice("s", "s", np.arange(100) > 79), 1)], every, False)
    assert found.values["items"] == 20 and found.values["elsewhere"] == 39.5
    assert found.values["difference"] == 89.5 - 39.5
    assert found.values["difference_low"] < 50 < found.values["difference_high"]


# -- simulations ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def benchmark():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import slices
    finally:
        sys.path.remove(str(BENCHMARKS))
    return slices


def test_a_planted_weakness_is_found_first(benchmark):
    found = [benchmark.simulate(seed, 2000, 0.4, "equal") for seed in range(20)]
    assert sum(first for _, first in found) >= 18


@pytest.mark.parametrize("kind", ["equal", "one", "rare", "column"])
def test_no_slice_is_claimed_without_a_weakness(benchmark, kind):
    found = [benchmark.simulate(seed, 600, None, kind) for seed in range(20)]
    assert sum(claimed for claimed, _ in found) <= 2


# -- runs -----------------------------------------------------------------------------------


class Weak:
    """Predicts the target that a column gives away, except for one plan."""

    def __init__(self, plan: str = "plus") -> None:
        self.plan = plan

    def fit(self, X, y):
        return self

    def predict(self, X):
        right = X["leak"].to_numpy()
        odd = np.arange(len(X)) % 2 == 0
        return np.where((X["plan"] == self.plan) & odd, 1 - right, right).astype(str)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    rng = np.random.default_rng(0)
    leak = rng.integers(2, size=600)
    frame = pd.DataFrame(
        {
            "plan": rng.choice(["basic", "plus", "pro"], 600),
            "leak": leak,
            "noise": rng.normal(size=600),
            "y": leak.astype(str),
            "who": rng.integers(60, size=600),
        }
    )
    data = karat.Dataset.from_table(frame, "y", name="d", kind="classification", group="who")
    task = karat.Task("t", data, split={"use": "kfold", "folds": 5}, metrics=["acc"])
    models = {"weak": Weak(), "strong": Weak("none")}
    return karat.evaluate(models, task, output=tmp_path_factory.mktemp("runs"))


def test_the_weak_model_loses_on_its_slice(runs):
    for first, second, sign in (("weak", "strong", 1), ("strong", "weak", -1)):
        found = compare_slices(runs, first, second)
        best = found.claims.iloc[0]
        assert (best["slice"], best["worse"], best["loss"]) == ("plan = plus", "weak", "error")
        assert 0.4 < sign * best["difference"] < 0.6 and best["elsewhere"] == 0
        assert best["difference_low"] < best["difference"] < best["difference_high"]
        assert len(found.claims) == 1 and len(found.sentences) == 1


def test_one_model_is_worse_than_elsewhere(runs):
    found = compare_slices(runs, "weak")
    best = found.claims.iloc[0]
    assert (best["slice"], best["elsewhere"]) == ("plan = plus", 0)
    assert not len(compare_slices(runs, "strong").claims)


def test_a_column_is_tested_on_all_items(runs):
    found = compare_slices(runs, "weak", "strong", by="plan")
    assert sorted(found.slices["slice"]) == ["plan = basic", "plan = plus", "plan = pro"]
    assert set(found.slices["of"]) == {600} and found.slices["items"].sum() == 600
    assert found.claims["slice"].tolist() == ["plan = plus"]
    assert len(compare_slices(runs, "weak", by="group").slices) == 0  # ten items each


def test_without_items_classes_still_work(tmp_path, runs):
    import shutil

    copies = []
    for run in runs:
        copy = tmp_path / run.folder.name
        shutil.copytree(run.folder, copy)
        shutil.rmtree(copy / "items")
        copies.append(copy)
    found = compare_slices(copies, "weak", "strong")
    assert set(found.slices["feature"]) <= {"class", "group"}
    assert any("Keys only" in note for note in found.notes)
    with pytest.raises(DataError):
        compare_slices(copies, "weak", "strong", by="plan")


def test_wrong_names(runs):
    with pytest.raises(DefinitionError, match='"plan"'):
        compare_slices(runs, "weak", by="plann")
    with pytest.raises(DefinitionError, match='"weak"'):
        compare_slices(runs, "week")
    with pytest.raises(DefinitionError, match='"t"'):
        compare_slices(runs, "weak", tasks="tt")


def test_tables_are_written(runs, tmp_path):
    found = compare_slices(runs, "weak", "strong")
    (path,) = found.to_csv(tmp_path)
    assert pd.read_csv(path)["slice"].tolist() == found.slices["slice"].tolist()
    assert found.to_dict()["slices"][0]["worse"] == "weak"


# -- clusters -------------------------------------------------------------------------------


def test_the_error_over_clusters_by_hand():
    values = np.array([1.0, 1.0, 2.0, 2.0, 6.0, 6.0, 0.0, 0.0])
    clusters = np.repeat(list("abcd"), 2)
    inside = np.array([True] * 6 + [False] * 2)
    # the means of a, b and c are 1, 2 and 6
    error, freedom = cluster_error(values[inside], np.ones(6, dtype=bool), clusters[inside])
    assert error == pytest.approx(np.std([1, 2, 6], ddof=1) / np.sqrt(3)) and freedom == 2
    # a cluster alone outside shows no spread
    assert cluster_error(values, inside, clusters)[0] == np.inf
    # each item its own cluster: the error of two means
    apart = np.array([0.0, 2.0, 4.0, 1.0, 3.0, 5.0])
    halves = np.arange(6) < 3
    parts = [apart[halves].var(ddof=1) / 3, apart[~halves].var(ddof=1) / 3]
    assert cluster_error(apart, halves, np.arange(6))[0] == pytest.approx(np.sqrt(sum(parts)))


def test_a_slice_of_few_clusters_is_not_tested():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(40), 10)
    values, every = rng.normal(size=400), np.ones(400, dtype=bool)
    few, many = (Slice("s", "s", clusters < number) for number in (5, 20))
    assert estimate_slices(values, [(few, 1)], every, True, clusters) == []
    assert len(estimate_slices(values, [(few, 1), (many, 1)], every, True)) == 2
    assert len(estimate_slices(values, [(many, 1)], every, True, clusters)) == 1


def test_items_of_a_cluster_are_on_one_side_of_the_test():
    folds, clusters = np.tile([0, 1], 20), np.repeat(np.arange(10), 4)
    chosen = held_out(folds, clusters)
    assert not set(clusters[chosen]) & set(clusters[~chosen]) and chosen.sum() == 20
    assert held_out(folds, folds).tolist() == (folds == 1).tolist()


def test_slices_of_equal_models_are_rarely_worse_over_clusters():
    """Losses that groups share, and slices of whole groups: 5 %, where items give over 20 %."""
    rng, wrong = np.random.default_rng(1), {"items": 0, "groups": 0}
    groups = np.repeat(np.arange(40), 25)
    for _ in range(200):
        values = 0.8 * rng.normal(size=40)[groups] + rng.normal(size=1000)
        inside = (rng.random(40) < 0.4)[groups]
        tests = [(Slice("s", "s", inside), 1)]
        for name, clusters in (("items", None), ("groups", groups)):
            found = estimate_slices(values, tests, np.arange(1000) >= 0, False, clusters)
            wrong[name] += bool(found) and found[0].p < 0.05
    assert wrong["groups"] / 200 <= 0.08 and wrong["items"] / 200 > 0.2
