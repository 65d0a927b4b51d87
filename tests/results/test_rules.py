"""Each rule by hand: made-up runs that it speaks of, and others just below its threshold."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pandas as pd
import pytest

import karat
from karat.errors import DefinitionError
from karat.results.rules import RULES, check_runs
from karat.results.run import Run

STAMPS = itertools.count(1)


@pytest.fixture
def made(tmp_path):
    """Make a run of one task: a score per fold, None where it failed; ``task`` are its facts."""

    def make(model, scores, *, task=None, metric="acc", higher=True, **about):
        spec = f"{about.get('seed')}-{about.get('params')}"
        record, coverage = about.pop("record", {}), about.pop("coverage", None)
        facts = {"name": "t", "kind": "", "metrics": [metric], "folds": list(range(len(scores)))}
        facts |= {"higher_is_better": {metric: higher}, "dataset": "d", "modality": "table"}
        facts |= {"fingerprint": "abcdef12", "probe": {"use": "trained"}, **(task or {})}
        told = {"model": model, "suite": "s", "constraint": "c", "mode": "local", "version": "1"}
        told |= {"stamp": f"{next(STAMPS):08d}", "seed": 42, "params": {}, "role": "encoder"}
        run = Run.create(tmp_path, {**told, "karat": "0.1.0", "tasks": [facts], **about})
        for fold, value in enumerate(scores):
            view = {"corruption": "", "severity": 0.0, "draw": 0, "status": "ok", "info": ""}
            view |= {"scores": {metric: value}, "coverage": (coverage or {}).get(fold, 1.0)}
            job = {
                "spec": f"{model}-{spec}-{fold}",
                "model": model,
                "task": facts["name"],
                "fold": fold,
            }
            job |= {"repeat": 0, "seed": 42, "metric": metric, "info": "", "notes": []}
            job |= {"status": "ok" if value is not None else "failed", "history": [], "utc": ""}
            job |= {"views": [view] if value is not None else []}
            job |= {"questions": 10, "train_questions": 10, **record}
            run.write(job, {})
        return run

    return make


def codes(runs, **options):
    return [finding.code for finding in check_runs(runs, **options)]


def said(runs, code):
    return [finding.message for finding in check_runs(runs) if finding.code == code]


# -- data -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("twins", "found"), [(10, ["KRT001"]), (9, [])])
def test_duplicates_from_one_in_a_hundred_on(made, twins, found):
    assert codes(made("m", [0.5], task={"twins": [twins, 1000]})) == found


@pytest.mark.parametrize(("shared", "found"), [(10, ["KRT002"]), (9, [])])
def test_entities_from_one_in_a_hundred_on(made, shared, found):
    run = made("m", [0.5], task={"entities": [shared, 1000, "patient"]})
    assert codes(run) == found
    if found:
        assert said(run, "KRT002") == [
            "1% of the test questions of t share their patient with a train question (10 of 1,000)."
        ]


def test_of_several_runs_the_one_that_tested_most_tells(made):
    few, many = ({"twins": [0, 100], "tested": 100}, {"twins": [9, 500], "tested": 500})
    for tasks in ((few, many), (many, few)):
        runs = [made(name, [0.5], task=task) for name, task in zip("ab", tasks, strict=True)]
        assert said(runs, "KRT001") == [
            "2% of the test rows of t also stand in their train part (9 of 500)."
        ]


def test_entities_do_not_matter_where_nothing_is_learned(made):
    task = {"entities": [900, 1000, "item"], "probe": {"use": "similarity"}}
    assert codes(made("m", [0.5], task=task)) == []


@pytest.mark.parametrize(("score", "found"), [(0.95, ["KRT003"]), (0.949, [])])
def test_a_column_that_tells_the_answer(made, score, found):
    run = made("m", [0.5], task={"give_away": ["iso code", score]})
    assert codes(run) == found
    if found:
        assert said(run, "KRT003") == ['The column "iso code" alone tells the answers of t (95%).']


@pytest.mark.parametrize(
    ("classes", "metric", "found"),
    [
        ({"no": 80, "yes": 20}, "acc", ["KRT004"]),
        ({"no": 79, "yes": 21}, "acc", []),
        ({"no": 99, "yes": 1}, "balacc", []),
        ({"no": 99, "yes": 1}, "accuracy", ["KRT004"]),  # MTEB's name for the same
        ({}, "acc", []),
    ],
)
def test_imbalance_matters_to_metrics_that_hide_it(made, classes, metric, found):
    assert codes(made("m", [0.5], task={"classes": classes}, metric=metric)) == found


def test_what_saying_the_same_always_is_worth(made):
    # always "no": precision 0.8 and recall 1 of 80 rows, 0 of the others: 0.8 · 2 · 0.8 / 1.8
    task = {"classes": {"no": 80, "yes": 20}}
    for metric, worth in (("acc", "0.80"), ("f1_weighted", "0.71")):
        assert said(made("m", [0.5], task=task, metric=metric), "KRT004") == [
            f'80% of t is the class "no": always saying so has {metric} {worth}.'
        ]


# -- models ---------------------------------------------------------------------------------

# Two folds and as many test as train rows: the interval of a difference a ± b is a ± 22.008 b,
# because t(0.975, 1) = 12.7062, the variance is 2 b², and 1/2 + 1 = 1.5.


@pytest.mark.parametrize(("apart", "found"), [(0.009, ["KRT101"]), (0.0092, [])])
def test_worse_than_random_by_more_than_the_folds_differ(made, apart, found):
    runs = [made("m", [0.5 - apart, 0.5 + apart]), made("random", [0.7, 0.7])]
    assert codes(runs) == found
    if found:
        assert said(runs, "KRT101") == ["m is worse than random on t (0.5 against 0.7)."]


@pytest.mark.parametrize(("other", "found"), [(0.64, ["KRT101"]), (0.63, [])])
def test_with_one_fold_rows_decide(made, other, found):
    # 1.96 · sqrt((0.25 + 0.2304) / 100) = 0.1358 and sqrt((0.25 + 0.2331) / 100) makes 0.1362
    task = {"tested": 100}
    assert codes([made("m", [0.5], task=task), made("random", [other], task=task)]) == found
    # the area under a curve is no share of rows, and has no interval
    pair = [made("a", [0.5], metric="auc", task=task), made("random", [other], metric="auc")]
    assert codes(pair) == []


def test_the_lowest_error_is_the_better_one(made):
    runs = [made(n, [v, v], metric="rmse", higher=False) for n, v in (("m", 2.0), ("random", 1.0))]
    assert said(runs, "KRT101") == ["m is worse than random on t (2 against 1)."]
    assert said(runs[:1], "KRT101") == []


def test_predictors_are_held_against_one_that_says_the_same_always(made):
    tree = made("tree", [0.3, 0.3], role="predictor")
    assert codes([tree, made("random", [0.5, 0.5])]) == []
    assert codes([tree, made("dummy", [0.5, 0.5], role="predictor")]) == ["KRT101"]
    # results of other systems do not tell what a model is
    other = made("other", [0.3, 0.3], role="")
    assert codes([other, made("constantpredictor", [0.5, 0.5], role="")]) == ["KRT101"]


@pytest.mark.parametrize(("apart", "found"), [(0.009, []), (0.0092, ["KRT102"])])
def test_no_better_than_raw_features_as_far_as_folds_tell(made, apart, found):
    runs = [made("m", [0.7 - apart, 0.7 + apart]), made("onehot", [0.5, 0.5])]
    assert codes(runs, ignore=["KRT302"]) == found
    if found:
        assert said(runs, "KRT102") == [
            "m is not measurably better than onehot on t (0.7 against 0.5)."
        ]


def test_raw_features_depend_on_what_the_items_are(made):
    text = {"modality": "text"}
    assert codes([made("m", [0.5, 0.5], task=text), made("onehot", [0.5, 0.5], task=text)]) == []
    runs = [made("n", [0.5, 0.5], task=text), made("tfidf", [0.5, 0.5], task=text)]
    assert said(runs, "KRT102") == ["n is no better than tfidf on t (0.5 against 0.5)."]
    predictor = made("p", [0.5, 0.5], role="predictor")
    assert codes([predictor, made("onehot", [0.5, 0.5])]) == []


def test_without_an_interval_the_better_mean_decides(made):
    for value, found in ((0.61, []), (0.6, ["KRT102"])):
        runs = [made("m", [value], metric="auc"), made("onehot", [0.6], metric="auc")]
        assert codes(runs) == found


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        (
            {"constant": 1, "nearly_dead": 0},
            ["1 of the 8 dimensions of m on t say nothing (1 constant)."],
        ),
        (
            {"constant": 1, "nearly_dead": 2},
            ["3 of the 8 dimensions of m on t say nothing (1 constant, 2 nearly so)."],
        ),
        ({"constant": 0, "nearly_dead": 0}, []),
    ],
)
def test_dimensions_that_say_nothing(made, seen, found):
    run = made("m", [0.5, 0.5], record={"observed": {"dimensions": 8, **seen}})
    assert said(run, "KRT103") == found


@pytest.mark.parametrize(("same", "found"), [(50, ["KRT104"]), (49, [])])
def test_unlike_items_with_the_same_vector(made, same, found):
    observed = {"dimensions": 8, "same": same, "compared": 1000}
    assert codes(made("m", [0.5], record={"observed": observed})) == found
    none = {"dimensions": 8, "same": 0, "compared": 0}
    assert codes(made("m", [0.5], record={"observed": none})) == []


@pytest.mark.parametrize(("second", "found"), [(0.9, []), (0.89, ["KRT105"])])
def test_coverage_is_the_mean_over_folds(made, second, found):
    run = made("m", [0.5, 0.5], coverage={0: 0.9, 1: second})
    assert codes(run) == found


@pytest.mark.parametrize(
    ("lengths", "probe", "found"),
    [
        ([1.0, 2.0, 1000.0], "trained", ["KRT106"]),
        ([1.0, 2.0, 999.0], "trained", []),
        ([0.0, 2.0, 999.0], "trained", []),
        ([1.0, 2.0, 1000.0], "similarity", []),
    ],
)
def test_lengths_matter_to_heads(made, lengths, probe, found):
    observed = {"dimensions": 8, "lengths": lengths}
    run = made("m", [0.5], record={"observed": observed}, task={"probe": {"use": probe}})
    assert codes(run) == found


# -- learning -------------------------------------------------------------------------------


def test_heads_that_gave_up(made):
    assert codes(made("m", [0.5, 0.5], record={"unconverged": 0})) == []
    assert said(made("n", [0.5, 0.5], record={"unconverged": 1}), "KRT201") == [
        "n on t: did not converge in 2 of 2 folds."
    ]


@pytest.mark.parametrize(("apart", "found"), [(0.049, ["KRT202"]), (0.051, [])])
def test_seeds_that_differ_more_than_folds(made, apart, found):
    # the means 0.7 and 0.8 spread by 0.0707, and folds a ± b by 1.414 b
    runs = [made("m", [0.7 - apart, 0.7 + apart], seed=1)]
    runs += [made("m", [0.8 - apart, 0.8 + apart], seed=2)]
    assert codes(runs) == found
    assert codes([runs[0], made("m", [0.9, 0.9], seed=3, params={"k": 2})]) == []


def test_the_spread_of_errors_is_told_as_errors(made):
    runs = [made("m", [v, v], seed=s, metric="rmse", higher=False) for s, v in ((1, 7.0), (2, 8.0))]
    (message,) = said(runs, "KRT202")
    assert message == "m on t: 7 to 8 with 2 seeds, a spread of 0.71; that of folds is 0."


# -- statistics -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "metric", "found"),
    [
        ((0.98, 0.99, 1.0), "acc", ["KRT301"]),
        ((0.979, 0.99, 1.0), "acc", []),
        ((0.98, 0.99, 1.0, 0.5, 0.5, 0.5), "acc", ["KRT301"]),
        ((0.98, 0.99, 1.0, 0.5, 0.5, 0.5, 0.5), "acc", []),
        ((0.02, 0.01, 0.0), "max_pce", ["KRT301"]),  # the lower the better
        ((0.02, 0.01, 0.0), "rmse", []),  # has no end
    ],
)
def test_half_of_the_models_at_the_ceiling(made, scores, metric, found):
    higher = metric == "acc"
    runs = [made(f"m{i}", [v], metric=metric, higher=higher) for i, v in enumerate(scores)]
    assert codes(runs, ignore=["KRT302"]) == found


def test_who_knows_nothing_and_who_ran_twice_do_not_saturate(made):
    pair = [made("a", [1.0]), made("b", [1.0])]
    assert codes([*pair, made("dummy", [1.0])]) == []
    assert codes([*pair, made("b", [1.0])]) == []
    assert codes([*pair, made("c", [1.0])]) == ["KRT301"]


@pytest.mark.parametrize(("rows", "found"), [(1440, ["KRT302"]), (1441, [])])
def test_rows_that_a_difference_of_shares_needs(made, rows, found):
    # 2.80159 · sqrt((0.211975 + 0.228684) / n) = 0.049 at n = 1440.5
    runs = [made(n, [v], task={"tested": rows}) for n, v in (("a", 0.695), ("b", 0.646))]
    assert codes(runs) == found
    if found:
        assert said(runs, "KRT302") == [
            "On t, a leads b by 0.049; 1,440 test rows can tell differences from 0.049."
        ]


@pytest.mark.parametrize(("apart", "found"), [(0.0042, ["KRT302"]), (0.004, [])])
def test_folds_that_a_difference_needs(made, apart, found):
    # (12.7062 + 1.3764) · sqrt(2 b² · 1.5) = 24.392 b against a gap of 0.1
    runs = [made("a", [0.7 - apart, 0.7 + apart], metric="auc")]
    runs += [made("b", [0.6, 0.6], metric="auc")]
    assert codes(runs) == found


def test_the_ratio_comes_from_the_sizes_of_the_folds(made):
    # 10 train rows and 10 test rows in each of three folds: 1/3 + 1; t(0.975, 2) = 4.3027 and
    # t(0.8, 2) = 1.0607 make 6.193 b of the differences a - b, a, a + b
    for apart, found in ((0.0163, ["KRT302"]), (0.0160, [])):
        ends = [0.6 - apart, 0.6, 0.6 + apart]
        runs = [made("a", ends, metric="ami"), made("b", [0.5] * 3, metric="ami")]
        assert codes(runs) == found


def test_equal_scores_claim_nothing(made):
    runs = [made(n, [0.7, 0.8], task={"tested": 5}) for n in ("a", "b")]
    assert codes(runs) == []


# -- runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("now", "found"), [(0.8000001, []), (0.80001, ["KRT401"])])
def test_scores_that_changed_though_nothing_did(made, now, found):
    assert codes([made("m", [0.8]), made("m", [now])]) == found


def test_what_is_no_part_of_a_job_is_named(made):
    old = made("m", [0.8], versions={"numpy": "1"}, python="3.11")
    new = made("m", [0.9], versions={"numpy": "2"}, python="3.12")
    (found,) = check_runs([old, new])
    assert found.level == "error"
    assert found.message == (
        "m on t, fold 0: acc was 0.8 and is 0.9, though nothing has changed "
        "but numpy 1 → 2, python 3.11 → 3.12."
    )
    assert [f.message for f in check_runs([new, old])] == [
        found.message.replace("was 0.8 and is 0.9", "was 0.9 and is 0.8")
        .replace("1 → 2", "2 → 1")
        .replace("3.11 → 3.12", "3.12 → 3.11")
    ]
    later = made("m", [0.9], record={"utc": "2026-01-02"})
    before = made("m", [0.8], record={"utc": "2026-01-01"})
    assert "was 0.8 and is 0.9" in check_runs([later, before])[0].message
    other = made("m", [0.7], record={"spec": "other"})
    assert codes([old, other]) == []


def test_failed_jobs_are_counted(made):
    runs = made("m", [0.5, None, None])
    assert said(runs, "KRT402") == ["m failed in 2 of 3 folds of t."]
    assert codes(made("n", [0.5, 0.5])) == []


def test_versions_and_seeds_on_one_board(made):
    runs = [made("a", [0.5]), made("b", [0.6], karat="0.2.0", seed=7)]
    assert said(runs, "KRT403") == [
        "Runs of 2 versions of Karat are compared: 0.1.0 (a), 0.2.0 (b)."
    ]
    assert said(runs, "KRT404") == [
        "Models were run with other seeds, on other folds: 42 (a), 7 (b)."
    ]


def test_the_same_seeds_for_all_are_fine(made):
    runs = [made(n, [0.5], seed=s) for n in ("a", "b") for s in (1, 2)]
    assert codes(runs) == []
    assert codes([*runs, made("c", [0.5], seed=1)]) == ["KRT404"]


def test_one_task_on_other_data(made):
    runs = [made("a", [0.5]), made("b", [0.6], task={"fingerprint": "123456789"})]
    assert said(runs, "KRT405") == [
        "t was asked on 2 versions of its data, each compared apart: t, t [123456]."
    ]
    assert said([runs[0], made("b", [0.6], task={"fingerprint": "abcdef12"})], "KRT405") == []


# -- all together ---------------------------------------------------------------------------


def test_names_are_those_of_the_board(made):
    runs = [made("m", [0.5, 0.5], record={"unconverged": 1}) for _ in range(2)]
    board = karat.leaderboard(runs)
    assert {finding.model for finding in check_runs(runs)} == set(board.index)
    assert {finding.task for finding in check_runs(runs)} == set(board.attrs["tasks"])


def test_what_matters_most_comes_first(made):
    task = {"twins": [1, 1]}
    runs = [made("m", [0.8, 0.8], task=task), made("m", [0.9, 0.9], task=task)]
    runs += [made("onehot", [0.9, 0.9], task=task)]
    levels = [finding.level for finding in check_runs(runs)]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)
    assert set(levels) == {"error", "warning", "note"}


def test_silenced_by_code_by_its_beginning_and_by_the_task(made):
    run = made("m", [0.5], task={"twins": [1, 1], "give_away": ["x", 1.0]})
    assert codes(run) == ["KRT001", "KRT003"]
    assert codes(run, ignore=["krt003"]) == ["KRT001"]
    found = check_runs(run, ignore=["KRT0"])
    assert (found, dict(found.silenced)) == ([], {"KRT001": 1, "KRT003": 1})
    own = made("n", [0.5], task={"twins": [1, 1], "ignore": ["KRT001"]})
    assert (codes(own), dict(check_runs(own).silenced)) == ([], {"KRT001": 1})


@pytest.mark.parametrize("code", ["KRT999", "KRT", "", "unused", "KRT1021"])
def test_a_check_that_is_none_cannot_be_silenced(made, code):
    with pytest.raises(DefinitionError, match=f'there is no check "{code}"'):
        check_runs(made("m", [0.5]), ignore=[code])


def test_a_table_of_scores_is_checked_by_its_scores():
    columns = "task model repeat fold corruption severity epoch metric value".split()
    rows = [("t", m, 0, 0, "", 0.0, -1, "acc", v) for m, v in (("a", 0.99), ("b", 1.0), ("c", 1.0))]
    found = check_runs(pd.DataFrame(rows, columns=columns))
    assert [(f.code, f.model, f.task) for f in found] == [("KRT301", None, "t")]


def test_runs_without_scores_or_facts_say_nothing(made):
    declined = made("m", [None], record={"status": "declined", "fold": None})
    assert codes(declined) == []


def test_many_models_and_tasks_are_checked_in_no_time():
    rng = np.random.default_rng(0)
    t, m, f = (axis.ravel() for axis in np.indices((100, 100, 5)))
    table = pd.DataFrame({"task": t, "model": m, "fold": f}).astype({"task": str, "model": str})
    table = table.assign(repeat=0, corruption="", severity=0.0, epoch=-1, metric="acc")
    begun = time.process_time()
    found = check_runs(table.assign(value=rng.random(len(table))))
    assert time.process_time() - begun < 2
    assert {finding.code for finding in found} <= {"KRT302"}


def test_every_rule_has_a_code_of_its_own_and_a_level():
    listed = [rule.code for rule in RULES]
    assert listed == sorted(set(listed))
    assert {rule.level for rule in RULES} == {"error", "warning", "note"}
    for rule in RULES:
        assert rule.title and rule.advice[-1] in ".?" and not rule.title.endswith(".")
        assert rule.look.__doc__.startswith(f"{rule.code}: ")
