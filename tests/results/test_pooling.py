"""Runs of one model as one row, and questions that differ as columns of their own."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from karat.analysis.leaderboard import leaderboard
from karat.errors import DefinitionError
from karat.results.load import gather_scores, make_cells
from karat.results.pooling import name_models, name_questions, pool_runs

from ..score_data import write_run

KFOLD = {"use": "kfold", "folds": 2, "repeats": 1, "count": 2}
HOLDOUT = {"use": "holdout", "test": 0.3, "repeats": 1, "count": 1}


@pytest.fixture
def make(tmp_path):
    return functools.partial(write_run, tmp_path)


def split(how, rows):
    return {"split": {**how, "rows": rows}}


# -- models ---------------------------------------------------------------------------------


def test_shards_and_suites_of_one_model_are_one_row(make):
    shard = {"fingerprint": "", "folds": [0, 1]}
    runs = [
        make("a", {"t": {0: 0.5}}, task=shard, suite="one"),
        make("a", {"t": {1: 0.7}}, task=shard, suite="two", stamp="20260102T000000"),
    ]
    board = leaderboard(runs)
    assert board["t"].to_dict() == {"a": pytest.approx(0.6)}


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ({"constraint": "4h8c"}, {"constraint": "1h8c"}, ["a · 4h8c", "a · 1h8c"]),
        ({"version": "1.0"}, {"version": "2.0"}, ["a · v1.0", "a · v2.0"]),
        ({"version": "1.0"}, {"version": "dev"}, ["a · v1.0", "a · version dev"]),
        (
            {"params": {"trees": 9, "depth": 3}},
            {"params": {"trees": 5, "depth": 3}},
            ["a · trees=9", "a · trees=5"],
        ),
        ({"params": {}}, {"params": {"trees": 5}}, ["a · default trees", "a · trees=5"]),
        (
            {"params": {"head": {"c": 1}}, "constraint": "x"},
            {"params": {"head": {"c": 2}}, "constraint": "y"},
            ["a · x · head.c=1", "a · y · head.c=2"],
        ),
        ({"suite": "x", "mode": "local"}, {"suite": "y", "mode": "dask"}, ["a", "a"]),
        ({"seed": 1}, {"seed": 2}, ["a", "a"]),
        ({"params": {"_jobs": 1}}, {"params": {"_jobs": 2}}, ["a", "a"]),
    ],
)
def test_the_label_names_only_what_differs(make, first, second, names):
    runs = [make("a", {"t": [0.5]}, **first), make("a", {"u": [0.5]}, **second)]
    assert name_models(runs) == names
    assert name_models(runs, "model") == ["a", "a"]
    assert len(set(name_models(runs, "none"))) == 2


def test_a_model_with_the_name_of_a_label_keeps_its_own(make):
    runs = [make("a · x", {"t": [0.1]}), make("a", {"t": [0.2]}, constraint="x")]
    runs.append(make("a", {"t": [0.3]}, constraint="y"))
    assert name_models(runs) == ["a · x", "a · x (2)", "a · y"]


def test_an_import_without_parameters_is_the_variant_of_the_others(make):
    imported = {"imported": {"system": "amlb"}, "version": ""}
    runs = [make("a", {"t": [0.1]}, params={"n": 1}), make("a", {"u": [0.1]}, **imported)]
    assert name_models(runs) == ["a", "a"]
    runs = [make("a", {"t": [0.1]}, params={"n": 1}), make("a", {"u": [0.1]})]
    assert len(set(name_models(runs))) == 2  # without parameters, not unknown ones


def test_an_unknown_way_to_pool(make):
    with pytest.raises(DefinitionError, match='"model"'):
        gather_scores([make("a", {"t": [0.1]})], "modell")


# -- repeats --------------------------------------------------------------------------------


def test_of_a_repeated_job_the_newest_counts(make):
    old = make("a", {"t": [0.1, 0.2], "u": [0.3]}, stamp="20260101T000000")
    new = make("a", {"t": [0.5, None]}, stamp="20260201T000000")
    for runs in ([old, new], [new, old]):
        given = gather_scores(runs)
        scores = given.scores.set_index(["task", "fold"])["value"].to_dict()
        assert scores == {("t", 0): 0.5, ("u", 0): 0.3}  # the failure of fold 1 is newer
        assert len(given.repeated) == 2
        assert given.jobs["status"].value_counts().to_dict() == {"ok": 2, "failed": 1}
        assert make_cells(given, given.metrics).means.tolist() == [[0.5, 0.3]]


def test_a_newer_run_that_declined_does_not_replace_a_score(make):
    runs = [make("a", {"t": [0.1]}), make("a", {"t": "declined"}, stamp="20260201T000000")]
    assert gather_scores(runs).scores["value"].tolist() == [0.1]


def test_an_old_metric_of_a_repeated_job_is_gone(make):
    old = make("a", {"t": [{"acc": 0.1, "f1": 0.2}]})
    new = make("a", {"t": [{"acc": 0.3}]}, stamp="20260201T000000")
    assert gather_scores([old, new]).scores["metric"].tolist() == ["acc"]


# -- questions ------------------------------------------------------------------------------


def labels(runs):
    return [next(iter(named.labels.values())) for named in pool_runs(runs)]


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        (split(KFOLD, "r"), split(HOLDOUT, "s"), ["t · 2-fold", "t · holdout 0.3"]),
        (split(KFOLD, "r"), split({**KFOLD, "repeats": 9}, "s"), ["t · 2-fold", "t · 9 × 2-fold"]),
        (
            split({**KFOLD, "balanced": True}, "r"),
            split({**KFOLD, "balanced": False}, "s"),
            ["t · 2-fold, balanced=true", "t · 2-fold, balanced=false"],
        ),
        (split(KFOLD, "r1r1r1x"), split(KFOLD, "s2s2s2x"), ["t · rows r1r1r1", "t · rows s2s2s2"]),
        (
            {"probe": {"use": "trained", "head": "ridge"}},
            {"probe": {"use": "trained", "head": "knn"}},
            ["t · head=ridge", "t · head=knn"],
        ),
        (
            {"probe": {"use": "trained"}},
            {"probe": "similarity"},
            ["t · probe=trained", "t · probe=similarity"],
        ),
        (
            {"missing": "ignore"},
            {"missing": "penalize"},
            ["t · missing ignore", "t · missing penalize"],
        ),
        ({"positive": "yes"}, {"positive": "no"}, ["t · positive yes", "t · positive no"]),
        ({"metrics": ["auc"]}, {"metrics": ["acc"]}, ["t · auc", "t · acc"]),
        ({"metrics": ["auc", "acc"]}, {"metrics": ["acc"]}, ["t", "t"]),
        ({"fingerprint": "111111aa"}, {"fingerprint": "222222bb"}, ["t", "t [222222]"]),
        ({"fingerprint": "111111aa"}, {"fingerprint": ""}, ["t", "t"]),
        # an absent key is equal to any split of as many folds
        (split({**KFOLD, "count": 1}, "r"), {}, ["t", "t"]),
        (split(KFOLD, "r"), {}, ["t · 2-fold", "t · 1 fold"]),
        (split(KFOLD, "r"), split(KFOLD, "r"), ["t", "t"]),
    ],
)
def test_questions_that_differ_are_columns_with_the_difference(make, first, second, names):
    runs = [make("a", {"t": [0.5]}, task=first), make("b", {"t": [0.6]}, task=second)]
    assert labels(runs) == names
    assert labels(runs[::-1])[::-1] == names or names[1].endswith("]")


def test_scores_of_different_splits_are_not_ranked_together(make):
    runs = [
        make("a", {"t": [0.5, 0.6]}, task=split(KFOLD, "r")),
        make("b", {"t": [0.9]}, task=split(HOLDOUT, "s")),
    ]
    board = leaderboard(runs)
    assert board["rank"].isna().all()
    assert board.attrs["tasks"] == ["t · 2-fold", "t · holdout 0.3"]
    assert np.isnan(board.loc["b", "t · 2-fold"])


def test_folds_that_were_not_chosen_do_not_change_the_question(make):
    facts = split(KFOLD, "r")
    runs = [make("a", {"t": [0.5, 0.6]}, task=facts), make("b", {"t": {1: 0.7}}, task=facts)]
    assert labels(runs) == ["t", "t"]
    assert leaderboard(runs)["rank"].to_dict() == {"b": 1.0, "a": 2.0}


# -- seeds ----------------------------------------------------------------------------------


def test_seeds_of_one_model_on_the_same_rows_are_averaged(make):
    runs = [
        make("a", {"t": [0.5, 0.7]}, task=split(KFOLD, "r"), seed=1),
        make("a", {"t": [0.7, 0.9]}, task=split(KFOLD, "r"), seed=2),
        make("b", {"t": [0.1, 0.2]}, task=split(KFOLD, "r"), seed=3),
    ]
    given = gather_scores(runs)
    assert given.metrics == {"t": "acc"}
    cells = make_cells(given, given.metrics)
    np.testing.assert_allclose(cells.folds[0], [[0.6, 0.8], [0.1, 0.2]])
    assert given.by_seed["mean"].tolist() == pytest.approx([0.6, 0.8])


def test_seeds_that_all_models_have_are_further_repeats(make):
    runs = [
        make(model, {"t": [0.1 * seed, 0.2]}, task=split(KFOLD, f"r{seed}"), seed=seed)
        for model in "ab"
        for seed in (1, 2)
    ]
    given = gather_scores(runs)
    assert given.metrics == {"t": "acc"}
    cells = make_cells(given, given.metrics)
    np.testing.assert_allclose(cells.folds[0], [[0.1, 0.2, 0.2, 0.2]] * 2)
    assert given.planned == {("a", "t"): 4, ("b", "t"): 4}


def test_a_seed_that_not_all_models_have_is_left_out(make):
    runs = [
        make("a", {"t": [0.1, 0.1]}, task=split(KFOLD, "r1"), seed=1),
        make("a", {"t": [0.9, 0.9]}, task=split(KFOLD, "r2"), seed=2),
        make("b", {"t": [0.2, 0.3]}, task=split(KFOLD, "r1"), seed=1),
        make("c", {"t": "declined"}, task=split(KFOLD, "r3"), seed=3),
    ]
    given = gather_scores(runs)
    assert leaderboard(runs)["t"].dropna().to_dict() == {"b": 0.25, "a": 0.1}
    assert given.by_seed.set_index("seed")["mean"].to_dict() == {1: 0.1, 2: 0.9}


def test_replicates_are_averaged_and_cost_as_much_as_one(make):
    runs = [
        make("a", {"t": [score, 0.5]}, replicate=fit, record={"seconds": seconds})
        for fit, score, seconds in ((0, 0.1, 2.0), (1, 0.2, 3.0), (2, 0.6, 7.0))
    ]
    runs.append(make("b", {"t": [0.4, 0.4]}, record={"seconds": 1.0}))
    given = gather_scores(runs)
    assert not len(given.repeated) and given.planned == {("a", "t"): 2, ("b", "t"): 2}
    cells = make_cells(given, given.metrics)
    np.testing.assert_allclose(cells.folds[0], [[0.3, 0.5], [0.4, 0.4]])
    # the means of the fits are 0.3, 0.35 and 0.55
    assert cells.seed_spread[0, 0] == pytest.approx(np.std([0.3, 0.35, 0.55], ddof=1))
    assert np.isnan(cells.seed_spread[1, 0])
    assert leaderboard(runs)["seconds"].to_dict() == {"a": 8.0, "b": 2.0}  # (2 + 3 + 7) / 3 twice
    assert leaderboard(runs, pool="none").shape[0] == 4


def test_of_a_repeated_replicate_the_newest_counts(make):
    runs = [
        make("a", {"t": [0.1]}, replicate=0),
        make("a", {"t": [0.3]}, replicate=1),
        make("a", {"t": [0.5]}, replicate=1, stamp="20260102T000000"),
    ]
    given = gather_scores(runs)
    assert len(given.repeated) == 1
    assert make_cells(given, given.metrics).means.tolist() == [[pytest.approx(0.3)]]


def test_models_without_a_common_seed_have_a_column_each(make):
    runs = [
        make("a", {"t": [0.1, 0.1]}, task=split(KFOLD, "r1"), seed=1),
        make("b", {"t": [0.2, 0.3]}, task=split(KFOLD, "r2"), seed=2),
    ]
    board = leaderboard(runs)
    assert board.attrs["tasks"] == ["t · seed 1", "t · seed 2"]
    assert board["rank"].isna().all()


def test_two_targets_of_a_table_file_are_two_tasks(make):
    def of(target, data):
        return {"about": {"table": {"file": "t.csv", "target": target}}, "fingerprint": data}

    runs = [
        make("a", {"t": [0.1]}, task=of("x", "1")),
        make("a", {"t": [0.2]}, task=of("y", "2")),
        make("b", {"t": [0.3]}, task=of("y", "2")),
    ]
    assert leaderboard(runs).attrs["tasks"] == ["t-x", "t-y"]
    assert leaderboard(runs[1:]).attrs["tasks"] == ["t"]
    changed = make("b", {"t": [0.3]}, task=of("y", "3"))
    assert len(leaderboard([*runs, changed]).attrs["tasks"]) == 3


def test_questions_of_a_run_are_named_after_its_tasks(make):
    run = make("a", {"t": [0.1], "u": [0.2]})
    assert {name: each.label for name, each in name_questions([run])[0].items()} == {
        "t": "t",
        "u": "u",
    }


def test_the_leaderboard_has_the_spread_over_seeds_and_partial_scores(make):
    runs = [
        make("a", {"t": [0.5, 0.7]}, task=split(KFOLD, "r"), seed=1),
        make("a", {"t": [0.7, 0.9]}, task=split(KFOLD, "r"), seed=2),
        make("b", {"t": [0.5, {"acc": None}]}, task=split(KFOLD, "r"), seed=1),
    ]
    attrs = leaderboard(runs).attrs
    assert attrs["seed_spread"] == {"a": {"t": pytest.approx(0.2 / np.sqrt(2))}}
    assert attrs["partial"] == {"b": {"t": (1, 2)}}
    by_task = leaderboard(runs, by="task")
    assert by_task[["folds", "planned"]].to_dict("index") == {
        ("t", "a"): {"folds": 2, "planned": 2},
        ("t", "b"): {"folds": 1, "planned": 2},
    }
    assert by_task["seed_spread"].notna().tolist() == [True, False]
    assert "planned" not in leaderboard(runs[:2], by="task")


def test_repeated_jobs_are_counted(make):
    runs = [
        make("a", {"t": [0.1, 0.2]}),
        make("a", {"t": [0.1, 0.2]}),
        make("b", {"t": [0.1, 0.1]}),
    ]
    assert leaderboard(runs).attrs["repeats"] == {"a": 2}
    assert leaderboard(runs, pool="none").attrs["repeats"] == {}
