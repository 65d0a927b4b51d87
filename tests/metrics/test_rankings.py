"""Ranking metrics by hand, and against scikit-learn and SciPy."""

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from karat.core.predictions import Predictions
from karat.metrics import get_metric, score
from karat.metrics.rankings import SHORT, kendall_p_value

steady = settings(deadline=None, derandomize=True)

LISTS = ["map", "ndcg@1", "ndcg@3", "recall@1", "recall@3", "mrr", "mrr@1", "mrr@3"]
CORRELATIONS = {"kendall": stats.kendalltau, "spearman": stats.spearmanr, "pearson": stats.pearsonr}


def value(name, predictions):
    found, reason = score(name, predictions)
    assert reason == ""
    return found


def grouped(answers, truth, group):
    return Predictions(answers, truth, group=np.array(list(group)))


def ranked(ranks):
    items = ["x"] * len(ranks)
    return Predictions(items, items, "items", "items", rank=np.array(ranks, dtype=float))


# group g: relevant at the places 1 and 3; group h: relevant at the place 2
TWO_LISTS = grouped([0.9, 0.5, 0.1, 0.2, 0.8], [1, 0, 1, 1, 0], "ggghh")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("map", ((1 + 2 / 3) / 2 + 1 / 2) / 2),
        ("mrr", (1 + 1 / 2) / 2),
        ("mrr@1", (1 + 0) / 2),
        ("mrr@2", (1 + 1 / 2) / 2),
        ("recall@1", (1 / 2 + 0) / 2),
        ("recall@2", (1 / 2 + 1) / 2),
        ("recall@9", 1.0),
        ("ndcg@1", (1 + 0) / 2),
        ("ndcg@3", ((1 + 1 / 2) / (1 + 1 / np.log2(3)) + 1 / np.log2(3)) / 2),
    ],
)
def test_two_lists_by_hand(name, expected):
    assert value(name, TWO_LISTS) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("name", LISTS)
def test_the_second_of_two_classes_is_relevant(name):
    labels = np.where(TWO_LISTS.target > 0, "yes", "no")
    p = Predictions(TWO_LISTS.predictions, labels, truths="classes", group=TWO_LISTS.group)
    assert value(name, p) == value(name, TWO_LISTS)


def test_known_classes_decide_which_is_the_second():
    p = Predictions([0.9, 0.1], ["a", "a"], truths="classes", classes=("a", "b"))
    assert score("map", p) == (None, "Scoring map: there are no relevant items in the target.")


@pytest.mark.parametrize("name", LISTS)
def test_without_groups_all_rows_are_one_list(name):
    one = Predictions([0.9, 0.5, 0.1], [1, 0, 1])
    assert value(name, one) == value(name, grouped([0.9, 0.5, 0.1], [1, 0, 1], "ggg"))


@pytest.mark.parametrize("name", LISTS)
def test_a_list_with_nothing_relevant_is_left_out(name):
    more = grouped([0.9, 0.5, 0.1, 0.2, 0.8, 0.3, 0.4], [1, 0, 1, 1, 0, 0, 0], "ggghhzz")
    assert value(name, more) == value(name, TWO_LISTS)
    nothing = grouped([0.3, 0.4], [0, 0], "zz")
    assert "there are no relevant items in the target" in score(name, nothing)[1]


def test_among_equal_scores_the_relevant_come_last():
    tied = Predictions([0.5, 0.5, 0.5], [1, 0, 1])
    assert value("map", tied) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert value("mrr", tied) == 0.5
    assert value("recall@1", tied) == 0.0
    assert value("recall@2", tied) == 0.5
    # the normalized gain shares the places evenly: ⅔ of a hit at the first
    assert value("ndcg@1", tied) == pytest.approx(2 / 3)


def test_relevance_may_be_graded():
    p = Predictions([3, 2, 1], [1, 3, 0])
    expected = (1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3))
    assert value("ndcg@3", p) == pytest.approx(expected)
    assert value("ndcg@1", p) == pytest.approx(1 / 3)
    assert value("map", p) == 1.0


def test_a_missing_item_may_score_minus_infinity():
    p = Predictions([-np.inf, 0.3, -np.inf], [1, 1, 0])
    assert value("map", p) == pytest.approx((1 + 2 / 3) / 2)
    assert value("ndcg@3", p) == pytest.approx(
        (1 + (1 / np.log2(3) + 1 / 2) / 2) / (1 + 1 / np.log2(3))
    )


def test_negative_relevance_has_no_gain():
    assert "negative" in score("ndcg@3", Predictions([1, 2], [1, -1]))[1]


@pytest.mark.parametrize("name", ["map", "mrr", "ndcg@3"])
def test_relevance_must_be_known(name):
    three = Predictions([1, 2, 3], ["a", "b", "c"], truths="classes")
    items = Predictions([1, 2], ["x", "y"], truths="items")
    for p in (three, items):
        assert "second of exactly two classes" in score(name, p)[1]


@pytest.mark.parametrize("k", [1, 2, 5, 50])
@pytest.mark.parametrize("seed", range(5))
def test_ndcg_is_scikit_learns(seed, k):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, 60)
    truth, scores = rng.integers(0, 4, 60), rng.integers(0, 6, 60) / 5
    by_group = [
        sk.ndcg_score([truth[group == g]], [scores[group == g]], k=k) for g in np.unique(group)
    ]
    found = value(f"ndcg@{k}", Predictions(scores, truth, group=group))
    assert found == pytest.approx(np.mean(by_group), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_map_is_scikit_learns_without_ties(seed):
    rng = np.random.default_rng(seed)
    group, truth, scores = rng.integers(0, 4, 60), rng.integers(0, 2, 60), rng.permutation(60)
    by_group = [
        sk.average_precision_score(truth[group == g], scores[group == g]) for g in np.unique(group)
    ]
    found = value("map", Predictions(scores, truth, group=group))
    assert found == pytest.approx(np.mean(by_group), abs=1e-12)


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("seed", range(5))
def test_recall_and_reciprocal_rank_list_by_list(seed, k):
    rng = np.random.default_rng(seed)
    group, truth, scores = rng.integers(0, 5, 40), rng.integers(0, 2, 40), rng.integers(0, 9, 40)
    recalls, firsts = [], []
    for g in range(5):
        shown = sorted(zip(-scores[group == g], truth[group == g], strict=True))
        relevant = [truth for _, truth in shown]
        recalls.append(sum(relevant[:k]) / sum(relevant))
        firsts.append(1 / (relevant.index(1) + 1))
    p = Predictions(scores, truth, group=group)
    assert value(f"recall@{k}", p) == pytest.approx(np.mean(recalls), abs=1e-12)
    assert value("mrr", p) == pytest.approx(np.mean(firsts), abs=1e-12)
    cut = [first if first >= 1 / k - 1e-15 else 0.0 for first in firsts]
    assert value(f"mrr@{k}", p) == pytest.approx(np.mean(cut), abs=1e-12)


def by_the_book(scores, gains, group, k):
    """The metrics as their definitions say, one list and one item after the other."""
    found = {"map": [], "ndcg": [], "recall": [], "precision": [], "mrr": [], "hit_rate": []}
    for name in dict.fromkeys(group):
        items = [(s, y) for s, y, g in zip(scores, gains, group, strict=True) if g == name]
        items.sort(key=lambda item: (-item[0], item[1]))
        places = [place for place, (_, y) in enumerate(items, start=1) if y > 0]
        if not places:
            continue
        found["map"].append(sum(i / place for i, place in enumerate(places, 1)) / len(places))
        found["recall"].append(sum(place <= k for place in places) / len(places))
        found["precision"].append(sum(place <= k for place in places) / k)
        found["mrr"].append(1 / places[0])
        found["hit_rate"].append(float(places[0] <= k))
        discounts = [1 / np.log2(i + 2) if i < k else 0 for i in range(len(items))]
        shared = [np.mean([y for other, y in items if other == s]) for s, _ in items]
        ideal = sorted((y for _, y in items), reverse=True)
        found["ndcg"].append(np.dot(shared, discounts) / np.dot(ideal, discounts))
    return {name: np.mean(values) for name, values in found.items()}


SCORED = st.tuples(
    st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 0.25, 0.5, 2.0, np.inf]) | st.floats(-9, 9),
    st.sampled_from([0, 0, 0, 1, 2, 3]) | st.floats(0, 1),
    st.sampled_from("qrstu"),
)


@steady
@given(st.lists(SCORED, min_size=1, max_size=40), st.integers(1, 12), st.booleans())
def test_scored_lists_with_ties_by_the_book(rows, k, list_by_list):
    rows = [*rows, (0.5, 1, "r")]  # one is relevant
    if list_by_list:
        rows.sort(key=lambda row: row[2])
    scores, gains, group = zip(*rows, strict=True)
    p = Predictions(np.array(scores), np.array(gains, dtype=float), group=np.array(group))
    for name, expected in by_the_book(scores, gains, group, k).items():
        asked = name if name in ("map", "mrr") else f"{name}@{k}"
        assert value(asked, p) == pytest.approx(expected, abs=1e-12), asked


def test_lists_of_many_lengths_are_sorted_one_by_one():
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(40), rng.integers(1, 60, 40))
    scores, gains = rng.integers(0, 30, len(group)), rng.integers(0, 2, len(group))
    shuffled = rng.permutation(len(group))
    expected = by_the_book(scores, gains, group, 5)
    for order in (np.arange(len(group)), shuffled):
        p = Predictions(scores[order], gains[order], group=group[order])
        assert value("map", p) == pytest.approx(expected["map"], abs=1e-12)
        assert value("ndcg@5", p) == pytest.approx(expected["ndcg"], abs=1e-12)


def test_an_unjudged_item_is_not_relevant_but_has_no_gain():
    p = Predictions([0.9, 0.5, 0.5], [np.nan, 1.0, np.nan])
    assert value("mrr", p) == 1 / 2
    assert "negative or NaN" in score("ndcg@3", p)[1]


def test_hits_and_reciprocal_ranks_by_hand():
    p = ranked([1, 2, 4, np.inf])
    assert value("hits@1", p) == 0.25
    assert value("hits@2", p) == 0.5
    assert value("hits@1000000", p) == 0.75
    assert value("mrr", p) == (1 + 1 / 2 + 1 / 4) / 4
    assert value("mrr@1", p) == 1 / 4
    assert value("mrr@3", p) == (1 + 1 / 2) / 4
    assert value("mrr@4", p) == value("mrr", p)


def found_at(places):
    """Predictions of ranked answers: the places of each list, whatever the order of rows."""
    rows = [(name, place) for name, found in places.items() for place in found]
    items = ["x"] * len(rows)
    group, rank = zip(*rows, strict=True)
    return Predictions(items, items, "items", "items", group=np.array(group), rank=np.array(rank))


def test_ranked_answers_by_hand():
    # list q: answers at 2, 3 and not at all; list r: one answer, first
    p = found_at({"q": [3.0, np.inf, 2.0], "r": [1.0]})
    assert value("map", p) == pytest.approx(((1 / 2 + 2 / 3 + 0) / 3 + 1) / 2)
    assert value("mrr", p) == value("mrr@10", p) == (1 / 2 + 1) / 2
    assert value("mrr@1", p) == (0 + 1) / 2
    assert value("recall@2", p) == pytest.approx((1 / 3 + 1) / 2)
    ideal = 1 + 1 / np.log2(3) + 1 / np.log2(4)
    gained = 1 / np.log2(3) + 1 / np.log2(4)
    assert value("ndcg@10", p) == pytest.approx((gained / ideal + 1) / 2)


@steady
@given(
    st.dictionaries(
        st.sampled_from("qrst"),
        st.lists(st.integers(1, 30), min_size=1, max_size=12, unique=True),
        min_size=1,
    ),
    st.integers(1, 12),
    st.randoms(),
)
def test_ranked_answers_are_scikit_learns_lists(places, k, random):
    average, gain, first = [], [], []
    for found in places.values():
        relevant = np.isin(np.arange(1, 31), found)
        scores = -np.arange(30.0)
        average.append(sk.average_precision_score(relevant, scores))
        gain.append(sk.ndcg_score([relevant.astype(int)], [scores], k=k))
        first.append(1 / min(found) if min(found) <= k else 0.0)
    p = found_at(places)
    order = list(range(len(p)))
    random.shuffle(order)
    for each in (p, p.take(np.array(order))):  # sorted or not
        assert value("map", each) == pytest.approx(np.mean(average), abs=1e-12)
        assert value(f"ndcg@{k}", each) == pytest.approx(np.mean(gain), abs=1e-12)
        assert value(f"mrr@{k}", each) == pytest.approx(np.mean(first), abs=1e-12)


def test_ranks_come_before_scores():
    p = Predictions([0.1, 0.9], [1, 0], rank=np.array([1, 1]))
    assert value("mrr", p) == 1.0


@pytest.mark.parametrize("wrong", [0, -1, np.nan])
@pytest.mark.parametrize("name", ["hits@3", "mrr", "mrr@3", "map"])
def test_a_rank_starts_at_one(name, wrong):
    assert "the best rank is 1" in score(name, ranked([1, wrong]))[1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # pairs: five agree, one does not
        ("kendall", 4 / 6),
        # squared rank differences 0 0 1 1
        ("spearman", 1 - 6 * 2 / (4 * 15)),
        # deviations -2 -1 2 1 and -3 -2 0 5
        ("pearson", (6 + 2 + 0 + 5) / np.sqrt(10 * 38)),
    ],
)
def test_four_rows_by_hand(name, expected):
    assert value(name, Predictions([1, 2, 5, 4], [0, 1, 3, 8])) == pytest.approx(expected)


@pytest.mark.parametrize("name", CORRELATIONS)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("rows", [5, 50, SHORT + 1])
def test_correlations_are_scipys(name, seed, rows):
    rng = np.random.default_rng(seed)
    truth = np.concatenate([[0, 1, 2] * 2, rng.integers(0, 8, rows)])
    answers = (truth + rng.normal(scale=3, size=len(truth))).round()
    expected = CORRELATIONS[name](answers, truth).statistic
    assert value(name, Predictions(answers, truth)) == pytest.approx(expected, abs=1e-12)
    group = np.concatenate([np.repeat([0, 1], 3), rng.integers(0, 2, rows)])
    by_group = [CORRELATIONS[name](answers[group == g], truth[group == g])[0] for g in range(2)]
    p = Predictions(answers, truth, group=group)
    assert value(name, p) == pytest.approx(np.mean(by_group), abs=1e-12)


@pytest.mark.parametrize("name", CORRELATIONS)
def test_groups_are_correlated_one_by_one(name):
    # perfect and reversed, though the pooled values would rise
    p = grouped([1, 2, 9, 8], [1, 2, 8, 9], "gghh")
    assert value(name, p) == pytest.approx(0.0, abs=1e-15)
    perfect = grouped([1, 2, 1, 2], [8, 9, 1, 2], "gghh")
    assert value(name, perfect) == pytest.approx(1.0)


@pytest.mark.parametrize("name", CORRELATIONS)
def test_constants_have_no_correlation(name):
    assert "the predictions are constant" in score(name, Predictions([1, 1, 1], [1, 2, 3]))[1]
    for p in (Predictions([1, 2, 3], [1, 1, 1]), Predictions([1], [1])):
        assert score(name, p) == (None, f"Scoring {name}: the target is constant.")


@pytest.mark.parametrize("name", CORRELATIONS)
def test_a_constant_group(name):
    # a truth without order is no question; answers without order are a bad answer
    assert value(name, grouped([1, 2, 1, 2], [1, 2, 5, 5], "gghh")) == pytest.approx(1.0)
    assert value(name, grouped([1, 2, 5, 5], [1, 2, 1, 2], "gghh")) == pytest.approx(0.5)
    assert value(name, grouped([1, 2, 7], [1, 2, 1], "ggh")) == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_scale_does_not_matter(scale):
    answers, truth = np.array([1.0, 2, 5, 4]) * scale, np.array([0.0, 1, 3, 8]) / scale
    assert value("pearson", Predictions(answers, truth)) == pytest.approx(13 / np.sqrt(380))


def test_infinite_scores_have_an_order_but_no_line():
    p = Predictions([-np.inf, 1, 2], [1, 2, 3])
    assert value("kendall", p) == pytest.approx(1.0)
    assert value("spearman", p) == pytest.approx(1.0)
    assert score("pearson", p) == (None, "Scoring pearson: the value is nan.")


ROWS = st.lists(
    st.tuples(st.integers(-4, 4), st.integers(0, 3), st.sampled_from("gh")), min_size=1, max_size=25
)


@steady
@given(ROWS, st.sampled_from([*LISTS, *CORRELATIONS]), st.booleans(), st.randoms())
def test_range_and_order_of_rows(rows, name, with_groups, random):
    def predictions():
        answers, truth, group = zip(*rows, strict=True)
        return Predictions(answers, truth, group=np.array(group) if with_groups else None)

    low, high = get_metric(name).range
    found, reason = score(name, predictions())
    random.shuffle(rows)
    shuffled, other_reason = score(name, predictions())
    assert reason == other_reason
    assert "Error" not in reason
    if found is not None:
        assert low <= found <= high + 1e-15
        assert shuffled == pytest.approx(found, abs=1e-12)


@steady
@given(ROWS, st.sampled_from([*LISTS, *CORRELATIONS]))
def test_the_truth_itself_is_best(rows, name):
    _, truth, group = zip(*rows, strict=True)
    found, _ = score(name, Predictions(truth, truth, group=np.array(group)))
    if found is not None and not name.startswith("recall"):
        assert found == pytest.approx(1.0, abs=1e-12)


@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=60, unique=True)
    | st.lists(st.integers(0, 5), min_size=2, max_size=60),
    st.integers(0, 9),
)
def test_the_p_value_of_kendalls_tau_is_scipys(values, seed):
    a = np.array(values, dtype=float)
    b = np.random.default_rng(seed).permutation(a)
    found = kendall_p_value(a, b)
    assert found == pytest.approx(stats.kendalltau(a, b).pvalue, rel=1e-9, nan_ok=True)


def test_hit_rate_counts_lists_not_answers():
    # list a finds an answer at rank 2, list b at rank 5 only
    ranks = np.array([2.0, 9.0, 5.0])
    p = Predictions(["x"] * 3, ["x"] * 3, "items", "items", rank=ranks, group=["a", "a", "b"])
    assert [value(f"hit_rate@{k}", p) for k in (1, 2, 5)] == [0.0, 0.5, 1.0]
    scores = Predictions([0.9, 0.8, 0.1, 0.7, 0.2], [0, 1, 1, 0, 0], group=list("aaabb"))
    # list b has no relevant item and is ignored
    assert [value(f"hit_rate@{k}", scores) for k in (1, 2)] == [0.0, 1.0]
