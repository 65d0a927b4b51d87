"""Normalised scores, medians and shares of wins that can be worked out on paper."""

import numpy as np
import pytest

from karat.results.missing import Compared
from karat.results.normalise import normalise, over_tasks, win_shares

NAN = np.nan


def compared(*tasks, takes=None):
    values = [np.asarray(task, dtype=float) for task in tasks]
    models = [f"m{i}" for i in range(len(values[0]))]
    takes = np.ones((len(models), len(values))) if takes is None else np.asarray(takes)
    return Compared(models, [f"t{i}" for i in range(len(values))], values, takes.astype(bool))


def column(task, baseline=None, takes=None):
    return normalise(compared(task, takes=takes), baseline).ravel().tolist()


def test_the_worst_is_0_and_the_best_is_1():
    assert column([[0.9], [0.5], [0.6]]) == [1.0, 0.0, pytest.approx(0.25)]
    # the mean over folds: 2, 4, 3
    assert column([[1, 3], [4, 4], [3, 3]]) == [0.0, 1.0, 0.5]


def test_a_failed_fold_is_the_worst_of_that_fold():
    # 9 and the 2 of fold 2: 5.5; 5 and 2: 3.5; 6 and 6: 6
    assert column([[9, NAN], [5, 2], [6, 6]]) == [pytest.approx(2 / 2.5), 0.0, 1.0]
    # a fold in which all failed says nothing
    assert column([[9, NAN], [5, NAN]]) == [1.0, 0.0]
    assert column([[NAN], [5], [6]]) == [0.0, 0.0, 1.0]


def test_a_task_on_which_all_are_equal_is_nan():
    assert np.isnan(column([[0.5], [0.5]])).all()
    assert np.isnan(column([[0.1 + 0.2], [0.3]])).all()
    assert np.isnan(column([[NAN], [NAN]])).all()
    assert np.isnan(column([[0.5], [0.4]], takes=[[1], [0]])).all()
    assert np.isnan(column([[0.5], [0.5]], baseline=0, takes=[[1], [0]])).all()


def test_a_score_is_better_than_a_failure():
    assert column([[0.5], [NAN], [0.5]]) == [1.0, 0.0, 1.0]


def test_a_baseline_is_0_and_the_best_is_1():
    assert column([[0.9], [0.5], [0.7]], baseline=1) == [1.0, 0.0, pytest.approx(0.5)]
    # below it, as far down as the best is up, and no further
    assert column([[0.9], [0.7], [0.6], [-9]], baseline=1) == [1.0, 0.0, pytest.approx(-0.5), -1.0]


def test_no_model_beats_the_baseline():
    assert column([[0.9], [0.5], [0.9]], baseline=0) == [0.0, -1.0, 0.0]


def test_a_baseline_without_a_score():
    assert np.isnan(column([[0.9], [NAN], [0.5]], baseline=1)).all()
    assert np.isnan(column([[0.9], [NAN], [0.5]], baseline=1, takes=[[1], [0], [1]])).all()


def test_infinite_scores_are_clipped():
    assert column([[-np.inf], [0.5], [1.0]]) == [0.0, 0.0, 1.0]


def test_models_that_do_not_take_a_task_are_ignored():
    found = column([[0.9], [0.5], [0.1]], takes=[[1], [1], [0]])
    assert found[:2] == [1.0, 0.0]
    assert np.isnan(found[2])


def test_a_share_of_wins_counts_a_tie_as_half():
    ranks = np.array([[1.0, 1.5], [2.0, 1.5], [3.0, NAN]])
    np.testing.assert_array_equal(win_shares(ranks), [[1, 0.5], [0.5, 0.5], [0, NAN]])


def test_mean_and_median_are_over_the_tasks_a_model_has():
    mean, median = over_tasks(np.array([[1.0, 0.0, 0.5], [1.0, NAN, 0.0], [NAN, NAN, NAN]]))
    np.testing.assert_array_equal(mean, [0.5, 0.5, NAN])
    np.testing.assert_array_equal(median, [0.5, 0.5, NAN])
