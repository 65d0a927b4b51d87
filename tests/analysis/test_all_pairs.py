"""Many models: every pair, intervals, cliques, and scores of runs on one scale."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import karat
from karat.analysis.all_pairs import (
    ManyModels,
    compare_all,
    compare_models,
    compare_pairs,
    separate,
)
from karat.errors import DataError, DefinitionError
from karat.reporting.verdict import find_evidence, make_verdict
from karat.stats.paired_tests import benjamini_hochberg, holm, rank_tasks, wilcoxon
from karat.stats.ranking import step_down

from ..score_data import score_table


def table(models: int = 6, tasks: int = 20, missing: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    values = rng.random((models, tasks)) + np.linspace(0, 0.8, models)[:, None]
    values[rng.random(values.shape) < missing] = np.nan
    return pd.DataFrame(values, index=[f"m{i}" for i in range(models)])


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_every_pair_once_the_better_ranked_first(missing):
    frame = table(missing=missing)
    found = compare_pairs(frame)
    place = {found.models[m]: i for i, m in enumerate(found.many.order)}
    assert len(found.pairs) == 15
    assert all(place[a] < place[b] for a, b in found.pairs[["first", "second"]].to_numpy())
    for _, pair in found.pairs.iterrows():
        apart = (frame.loc[pair["first"]] - frame.loc[pair["second"]]).dropna()
        assert pair["tasks"] == len(apart) and pair["difference"] == pytest.approx(apart.mean())
        exact = stats.wilcoxon(apart, method="exact").pvalue
        assert pair["p_wilcoxon"] == pytest.approx(exact)
        assert (pair["wins"], pair["losses"]) == ((apart > 0).sum(), (apart < 0).sum())
        assert pair["superiority"] == pytest.approx((apart > 0).mean())
        assert pair["difference_low"] < pair["difference"] < pair["difference_high"]
        ends = stats.t.interval(0.95, len(apart) - 1, apart.mean(), stats.sem(apart))
        assert (pair["difference_low"], pair["difference_high"]) == pytest.approx(ends)
    raw = found.pairs["p_wilcoxon"]
    assert found.pairs["p_holm"].to_numpy() == pytest.approx(holm(raw))
    assert found.pairs["p_bh"].to_numpy() == pytest.approx(benjamini_hochberg(raw))


def test_p_is_that_of_the_chosen_test():
    frame = table(tasks=30, missing=0.1)
    found = compare_pairs(frame)
    places = {name: i for i, name in enumerate(found.models)}
    expected = step_down(rank_tasks(frame.to_numpy()))
    for _, pair in found.pairs.iterrows():
        assert pair["p"] == expected[places[pair["first"]], places[pair["second"]]]
    assert set(found.pairs["test"]) == {"max-T over tasks"}
    other = compare_pairs(frame, "wilcoxon")
    assert other.pairs["p"].to_numpy() == pytest.approx(other.pairs["p_holm"].to_numpy())
    assert set(other.pairs["test"]) == {"Wilcoxon, Holm"}
    assert other.to_dict()["procedure"] == "Wilcoxon, Holm"
    with pytest.raises(DefinitionError, match='Did you mean "max-t"'):
        compare_pairs(frame, "max-T")


def test_letters_and_cliques_agree_with_the_test():
    found = compare_pairs(table(8, 40))
    letters = found.many.letters
    for i in range(8):
        for j in range(i):
            differs = found.many.pairs[i, j] < 0.05
            assert bool(set(letters[i]) & set(letters[j])) != differs
            assert any(i in group and j in group for group in found.many.cliques) != differs


def test_too_few_tasks_are_not_tested():
    found = compare_pairs(table(4, 5))
    assert found.pairs["p"].isna().all() and set(found.pairs["test"]) == {""}
    assert found.cliques == [] and set(found.many.letters) == {""}
    assert found.why.startswith("too few tasks") and "not differ" not in found.sentence
    assert found.to_dict()["not_tested"] and found.to_dict()["procedure"] == ""
    wilcoxon = compare_pairs(table(4, 5), test="wilcoxon")
    assert "needs 6" in wilcoxon.why and "without --test wilcoxon" in wilcoxon.sentence


def test_cliques_and_the_sentence():
    frame = pd.concat([table(2), table(2).rename(index={"m0": "m0'", "m1": "m1'"}) - 1e-3])
    found = compare_pairs(frame + np.array([[5.0], [0.0], [5.0], [0.0]]))
    assert found.cliques == [] and "6 of 6 pairs" in found.sentence, "always ahead, if by little"
    assert "do not differ" not in found.sentence
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["friedman"]["tasks"] == 20 and len(plain["pairs"]) == 6
    same = compare_pairs(pd.DataFrame(np.ones((3, 9)), index=list("abc")))
    assert same.cliques == [["a", "b", "c"]] and (same.pairs["ties"] == 9).all()
    assert "do not differ" in same.sentence and "0 of 3 pairs" in same.sentence


def test_a_pair_without_a_task_in_common():
    frame = pd.DataFrame([[1.0, np.nan], [np.nan, 1.0], [0.5, 0.5]], index=list("abc"))
    found = compare_pairs(frame)
    apart = found.pairs.set_index(["first", "second"]).loc[("a", "b")]
    assert apart["tasks"] == 0 and np.isnan(apart["p"]) and np.isnan(apart["difference_low"])
    assert found.to_dict()["friedman"]["test"] == "Skillings-Mack"
    json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(DataError, match="2 models"):
        compare_pairs(frame[:1])


def test_the_order_of_the_models_changes_nothing():
    frame = table(missing=0.1)
    one, other = compare_pairs(frame), compare_pairs(frame[::-1])
    assert one.cliques == other.cliques
    pd.testing.assert_frame_equal(one.pairs, other.pairs)


# -- arrays ---------------------------------------------------------------------------------


def wilcoxon_pairs(values: np.ndarray) -> ManyModels:
    return compare_models(values, separation=separate(values, test="wilcoxon"))


def scores(models: int, tasks: int, seed: int = 0, missing: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.random((models, tasks)) + np.linspace(0.3, 0, models)[:, None]
    values[rng.random(values.shape) < missing] = np.nan
    return values


def test_pairs_equal_those_of_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs")
    values = scores(6, 20, seed=5)
    expected = posthocs.posthoc_wilcoxon(list(values), p_adjust="holm").to_numpy()
    found = wilcoxon_pairs(values)
    assert found.pairs == pytest.approx(expected)


def test_all_pairs_are_those_of_one_pair_each():
    values = np.round(scores(7, 30, seed=6, missing=0.2), 2)
    found = wilcoxon_pairs(values)
    raw = np.eye(7)
    for i, j in itertools.combinations(range(7), 2):
        both = ~np.isnan(values[[i, j]]).any(axis=0)
        one, other = values[i, both], values[j, both]
        alone = wilcoxon(np.round(one - other, 2))
        raw[i, j] = alone.p
        assert found.difference[i, j] == pytest.approx((one - other).mean())
        assert found.difference[j, i] == pytest.approx((other - one).mean())
    upper = np.triu_indices(7, 1)
    assert found.pairs[upper] == pytest.approx(holm(raw[upper]))
    assert np.diag(found.pairs).tolist() == [1.0] * 7


def test_more_pairs_than_fit_a_block(monkeypatch):
    values = scores(12, 9, seed=7, missing=0.1)
    whole = wilcoxon_pairs(values)
    monkeypatch.setattr("karat.stats.paired_tests.BLOCK", 5)
    again = wilcoxon_pairs(values)
    assert again.pairs == pytest.approx(whole.pairs, nan_ok=True)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.permutations(range(5)))
def test_the_order_of_models_and_tasks_changes_nothing(seed, places):
    values = scores(5, 8, seed=seed, missing=0.1)
    found, other = compare_models(values), compare_models(values[places][:, ::-1])
    assert other.pairs == pytest.approx(found.pairs[np.ix_(places, places)], nan_ok=True)
    assert other.ranks == pytest.approx(found.ranks[list(places)], nan_ok=True)
    assert (other.statistic, other.p) == pytest.approx((found.statistic, found.p), nan_ok=True)


def test_equal_models_are_one_clique_and_separate_ones_none():
    rng = np.random.default_rng(8)
    same = np.repeat(rng.random((1, 20)), 4, axis=0)
    found = compare_models(same)
    assert (found.p, found.pairs.min(), found.cliques) == (1.0, 1.0, [[0, 1, 2, 3]])
    apart = same + np.array([0.0, 3.0, 1.0, 2.0])[:, None]
    found = compare_models(apart)
    assert found.order.tolist() == [1, 3, 2, 0] and found.cliques == []
    assert found.difference[1, 0] == pytest.approx(3.0)


def test_models_of_equal_rank_are_ordered_by_value():
    # both are first once and second once; the second is ahead by more
    values = np.array([[0.5, 0.6], [0.9, 0.5]])
    assert compare_models(values).order.tolist() == [1, 0]
    assert compare_models(values[::-1]).order.tolist() == [0, 1]


def test_a_model_without_a_task_is_in_no_clique():
    values = np.vstack([scores(3, 8), np.full(8, np.nan)])
    found = compare_models(values)
    assert np.isnan(found.ranks[3]) and np.isnan(found.pairs[3, :3]).all()
    assert 3 not in itertools.chain(*found.cliques) and found.order[-1] == 3


# -- from scores ----------------------------------------------------------------------------


def test_scores_are_put_on_one_scale_by_hand():
    tasks = {f"t{i}": {"a": [0.9, 0.7], "b": [0.5], "c": [0.1, 0.3]} for i in range(3)}
    tasks["price"] = ("rmse", {"a": [10.0, 30.0], "b": [30.0, 50.0], "c": [20.0, 24.0]})
    found = compare_all(score_table(tasks))
    # only the first fold of t has all three: 0.9, 0.5, 0.1; rmse of 20, 40 and 22, less is better
    assert found.values["t0"].tolist() == pytest.approx([1.0, 0.5, 0.0])
    assert found.values["price"].tolist() == pytest.approx([1.0, 0.0, 0.9])
    pair = found.pairs.set_index(["first", "second"]).loc[("a", "b")]
    assert pair["difference"] == pytest.approx((3 * 0.5 + 1) / 4) and pair["wins"] == 4


def test_ranks_equal_those_of_the_leaderboard():
    rng = np.random.default_rng(1)
    tasks = {
        f"t{i}": {m: np.round(rng.random(3), 1).tolist() for m in "abcd"[: 4 - (i % 2)]}
        for i in range(9)
    }
    price = ("rmse", {m: rng.random(3) * 50 for m in "abcd"})
    given = score_table({**tasks, "price": price})
    found, board = compare_all(given), karat.leaderboard(given)
    ranks = pd.Series(found.many.ranks, index=found.models)
    assert ranks[board.index].tolist() == pytest.approx(board["rank"].tolist())


def test_chosen_models_and_metric():
    given = score_table(
        {f"t{i}": {m: [0.1 * j, 0.2] for j, m in enumerate("abc")} for i in range(6)}
    )
    found = compare_all(given, models=["a", "c"])
    assert sorted(found.models) == ["a", "c"] and found.pairs["wins"].tolist() == [6]
    assert len(compare_all(given, metric="acc").pairs) == 3
    with pytest.raises(DefinitionError, match='no model "d"'):
        compare_all(given, models=["a", "d"])
    with pytest.raises(DefinitionError, match='no task has the metric "auc"'):
        compare_all(given, metric="auc")


def test_models_with_too_few_tasks_are_left_out():
    tasks = {f"t{i}": {"a": [0.1], "b": [0.2]} for i in range(4)}
    tasks["t0"]["few"] = [0.9]
    found = compare_all(score_table(tasks))
    assert found.models == ["a", "b"]
    assert any("too few tasks: few" in note for note in found.notes)


def test_models_of_other_tasks_are_named_with_how_to_compare_them():
    tasks = {f"t{i}": {"a": [0.1], "b": [0.2]} for i in range(4)}
    tasks |= {f"u{i}": {"c": [0.1], "d": [0.2]} for i in range(3)}
    found = compare_all(score_table(tasks))
    assert found.models == ["b", "a"] or found.models == ["a", "b"]
    assert "On other tasks, compared by name only, such as -a c -b d: c, d." in found.notes


def test_ranks_are_those_of_the_leaderboard_whatever_is_missing():
    rng = np.random.default_rng(3)
    tasks = {f"t{i}": {m: [rng.random()] for m in "abcde"} for i in range(9)}
    for task in ("t0", "t3", "t4"):
        del tasks[task]["b"]
    del tasks["t5"]["d"]
    found, board = compare_all(score_table(tasks)), karat.leaderboard(score_table(tasks))
    ranks = dict(zip(found.models, found.many.ranks.tolist(), strict=True))
    assert ranks == board["rank"].to_dict()
    assert [found.models[m] for m in found.many.order] == board.index.tolist()


def test_a_name_stands_for_all_its_variants():
    t, u = {"a · x": 0.1, "a · y": 0.3, "b": 0.2}, {"a · x": 0.9, "b": 0.5}
    given = score_table({"t": t, "u": u})
    assert compare_all(given, models=["b", "a"]).values.index.tolist() == ["b", "a · x", "a · y"]
    assert compare_all(given, models=["b", "a · x"]).values.loc["a · x"].tolist() == [0.0, 1.0]


def test_names_are_escaped_in_notebooks():
    names = ["<script>alert(1)</script>", "other"]
    shown = compare_pairs(pd.DataFrame([[0.9, 0.8], [0.5, 0.6]], index=names))._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown


def test_one_task_has_no_test_over_tasks():
    folds = {"a": [0.9, 0.8, 0.85], "b": [0.5, 0.6, 0.4], "c": [0.1, 0.2, 0.15]}
    plain = karat.compare_all(score_table({"t": folds})).to_dict()
    assert plain["friedman"] is None
    for pair in plain["pairs"]:
        assert [pair[name] for name in ("p_wilcoxon", "p_holm", "p_bh")] == [None] * 3
        assert pair["p"] is not None and pair["test"]  # that of the folds
    two = karat.compare_all(score_table({"t": folds, "u": folds})).to_dict()
    assert two["friedman"]["tasks"] == 2


def test_common_tasks_of_a_pair_have_one_count():
    # b failed on t0: it counts as lost in the ranks, and is no common task
    rng = np.random.default_rng(0)
    scores = {f"t{i}": {"a": 0.9, "b": 0.8 - 0.1 * rng.random(), "c": 0.1} for i in range(8)}
    scores["t0"]["b"] = None
    frame = score_table(scores)
    pairs = karat.compare_all(frame).pairs.set_index(["first", "second"])
    assert tuple(pairs.loc[("a", "b"), ["tasks", "failed"]]) == (7, 1)
    assert tuple(pairs.loc[("a", "c"), ["tasks", "failed"]]) == (8, 0)
    assert karat.compare(frame, "a", "b").overall.tasks == 7
    (verdict,) = make_verdict(karat.leaderboard(frame), find_evidence(frame))
    assert (verdict["margin"]["tasks"], verdict["margin"]["failed"]) == (7, 1)
    texts = [line["text"] for line in verdict["lines"] if line["what"] == "margin"]
    assert "7 common tasks and 1 on which one failed" in texts[0]


def test_two_suites_are_compared_over_what_is_common():
    forest = {f"t{i}": {"forest": [0.9, 0.8]} for i in range(9)}
    churn = {"churn": {"forest": [0.9, 0.8, 0.85], "dummy": [0.5, 0.4, 0.5]}}
    found = compare_all(score_table({**forest, **churn}))
    assert found.models == ["forest", "dummy"]
    assert found.pairs["tasks"].tolist() == [1]


def test_models_that_share_no_task_are_named():
    apart = score_table({"t": {"forest": [0.9, 0.8]}, "u": {"dummy": [0.5, 0.4]}})
    with pytest.raises(DataError, match="forest, dummy share no task"):
        compare_all(apart)
    with pytest.raises(DataError, match="got forest"):
        compare_all(score_table({"t": {"forest": [0.9, 0.8]}}))
