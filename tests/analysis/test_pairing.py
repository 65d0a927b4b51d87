"""Two models paired by task and fold."""

from __future__ import annotations

import pytest

from karat.analysis.checks import Facts
from karat.analysis.leaderboard import fold_ratios
from karat.analysis.pairing import pair
from karat.errors import DefinitionError
from karat.results.load import gather_scores

from ..score_data import write_run

#: instead of 80 and 20
OTHER_SIZES = {"train_questions": 70, "questions": 30}


def test_comparisons_leaderboards_and_checks_use_one_ratio(tmp_path):
    # a repeated holdout: not 1 / (k - 1)
    runs = [
        write_run(tmp_path, name, {"t": scores}, record=OTHER_SIZES)
        for name, scores in {"one": [0.9, 0.8], "other": [0.7, 0.6]}.items()
    ]
    (paired,) = pair(runs, "one", "other", None, "folds").tasks
    assert paired.ratio == fold_ratios(gather_scores(runs), ["t"])[0] == Facts.of(runs).ratios["t"]
    assert paired.ratio == pytest.approx(30 / 70)


# -- pooled runs ----------------------------------------------------------------------------

KFOLD = {"use": "kfold", "folds": 2, "count": 2}


def kfold(rows):
    return {"split": {**KFOLD, "rows": rows}}


def test_shards_of_a_model_are_paired_as_one(tmp_path):
    for fold, value in enumerate((0.9, 0.8)):
        write_run(tmp_path, "a", {"t": {fold: value}}, task=kfold("r"), suite=f"s{fold}")
    write_run(tmp_path, "b", {"t": [0.7, 0.5]}, task=kfold("r"))
    (paired,) = pair(tmp_path, "a", "b", None, "folds").tasks
    assert (paired.first.tolist(), paired.second.tolist()) == ([0.9, 0.8], [0.7, 0.5])


def test_seeds_of_both_are_further_folds_and_others_are_left_out(tmp_path):
    for seed in (1, 2, 3):
        write_run(tmp_path, "a", {"t": [0.1 * seed, 0.9]}, task=kfold(f"r{seed}"), seed=seed)
    for seed in (1, 2):
        write_run(tmp_path, "b", {"t": [0.5, 0.5]}, task=kfold(f"r{seed}"), seed=seed)
    (paired,) = pair(tmp_path, "a", "b", None, "folds").tasks
    assert paired.first.tolist() == [0.1, 0.9, 0.2, 0.9]
    assert paired.held == (4, 4)


def test_seeds_on_the_same_rows_are_averaged(tmp_path):
    for seed, value in ((1, 0.5), (2, 0.7)):
        write_run(tmp_path, "a", {"t": [value, 0.9]}, task=kfold("r"), seed=seed)
    write_run(tmp_path, "b", {"t": [0.5, 0.5]}, task=kfold("r"), seed=3)
    (paired,) = pair(tmp_path, "a", "b", None, "folds").tasks
    assert paired.first.tolist() == pytest.approx([0.6, 0.9])


def test_different_splits_are_not_paired(tmp_path):
    write_run(tmp_path, "a", {"t": [0.9, 0.8]}, task=kfold("r"))
    holdout = {"use": "holdout", "test": 0.3, "count": 1, "rows": "s"}
    write_run(tmp_path, "b", {"t": [0.7]}, task={"split": holdout})
    (paired,) = pair(tmp_path, "a", "b", None, "folds").tasks
    assert paired.task == "t" and not paired.compared
    assert paired.states == ("ok", "other split")
    assert paired.own == (pytest.approx(0.85), 0.7)


def test_variants_are_named_by_their_labels(tmp_path):
    for constraint in ("4h8c", "1h8c"):
        write_run(tmp_path, "a", {"t": [0.9, 0.8]}, constraint=constraint)
    write_run(tmp_path, "b", {"t": [0.7, 0.6]})
    with pytest.raises(DefinitionError, match='2 variants; name one of "a · 1h8c", "a · 4h8c"'):
        pair(tmp_path, "a", "b", None, "folds")
    assert pair(tmp_path, "a", "b", None, "folds", "model").first == "a"
    both = pair(tmp_path, "a · 4h8c", "a · 1h8c", None, "folds")
    assert (both.first, both.second) == ("a · 4h8c", "a · 1h8c")
    assert both.tasks[0].compared
