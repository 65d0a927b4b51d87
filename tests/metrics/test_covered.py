"""What the model does not know, counted and left out; and the harmonic mean of correlations."""

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from karat.metrics import get_metric, score
from karat.predictions import Predictions


def relatedness(answers, known):
    """Three main entities with four related ones each; the truth counts down."""
    return Predictions(
        predictions=np.array(answers, dtype=float),
        truth=np.tile([4.0, 3, 2, 1], len(answers) // 4),
        group=np.repeat(list("abc")[: len(answers) // 4], 4),
        known=np.array(known),
    )


def test_hits_over_all_and_over_the_covered():
    ranks = [1, 2, np.inf, np.inf]
    found = Predictions(
        predictions=list("wxyz"),
        truth=list("wwyz"),
        answers="items",
        truths="items",
        rank=ranks,
        candidates=[9] * 4,
        known=[1, 1, 1, 0],
    )
    assert score("hits@1", found) == (0.25, "")
    assert score("hits@1_covered", found) == (1 / 3, "")
    assert score("hits@2_covered", found) == (2 / 3, "")
    assert score("mrr_covered", found)[0] == pytest.approx(1.5 / 3)


def test_a_missing_main_entity_is_left_out_of_one_mean_and_costs_in_the_other():
    # a in the right order, b reversed, of c nothing is known: all at the tail
    found = relatedness([4, 3, 2, 1, 1, 2, 3, 4, -9, -9, -9, -9], [1] * 8 + [0] * 4)
    assert score("kendall_covered", found)[0] == pytest.approx(0.0)
    right = relatedness([4, 3, 2, 1, 8, 6, 4, 2, -9, -9, -9, -9], [1] * 8 + [0] * 4)
    assert score("kendall_covered", right)[0] == pytest.approx(1.0)
    assert score("kendall", right)[0] == pytest.approx(2 / 3)


def test_missing_related_entities_stay_at_the_tail_of_their_group():
    # the two best related are not known: a compacted list would score a perfect 1
    found = relatedness([-9, -9, 2, 1], [0, 0, 1, 1])
    wanted = kendalltau([-9, -9, 2, 1], [4, 3, 2, 1]).statistic
    assert wanted < 0
    assert score("kendall_covered", found)[0] == pytest.approx(wanted)


def test_without_a_gap_both_are_one():
    found = Predictions(
        predictions=["a", "b"], truth=["a", "a"], answers="classes", truths="classes"
    )
    assert score("acc_covered", found) == score("acc", found) == (0.5, "")


def test_nothing_known_has_no_value():
    found = Predictions(predictions=[1.0, 2.0], truth=[1.0, 2.0], known=[0, 0])
    value, reason = score("rmse_covered", found)
    assert value is None
    assert "no rows" in reason


def test_the_name_says_what_it_is():
    part = get_metric("rmse_covered")
    assert part.name == "rmse_covered"
    assert not part.higher_is_better
    assert "can answer" in part.about


def test_who_knew_what_survives_the_file():
    found = Predictions(predictions=[1.0, 2.0], truth=[1.0, 3.0], known=[True, False])
    back = Predictions.from_csv(found.to_csv(), answers="numbers", truths="numbers")
    assert back.known.tolist() == [1, 0]
    assert back.covered().truth.tolist() == [1.0]


def test_the_harmonic_mean_is_that_of_both_correlations():
    rng = np.random.default_rng(3)
    truth = rng.random(40)
    answers = truth + rng.normal(0, 0.3, 40)
    p, s = pearsonr(answers, truth).statistic, spearmanr(answers, truth).statistic
    found = Predictions(predictions=answers, truth=truth)
    assert score("harmonic", found)[0] == pytest.approx(2 * p * s / (p + s))


def test_opposite_signs_have_no_harmonic_mean():
    # Pearson is above 0 because of one far value, Spearman below: 2ps / (p + s) would explode
    found = Predictions(predictions=[5.0, 4, 3, 2, 1, 100], truth=[1.0, 2, 3, 4, 5, 50])
    value, reason = score("harmonic", found)
    assert value is None
    assert "> 0" in reason
