"""Each rule by hand: runs just at its threshold and just below."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pandas as pd
import pytest

import karat
from karat.analysis.checks import RULES, check_runs
from karat.errors import DefinitionError
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
        about_run = {
            "model": model,
            "suite": "s",
            "constraint": "c",
            "mode": "local",
            "version": "1",
        }
        about_run |= {"stamp": f"{next(STAMPS):08d}", "seed": 42, "params": {}, "role": "encoder"}
        run = Run.create(tmp_path, {**about_run, "karat": "0.1.0", "tasks": [facts], **about})
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


def messages(runs, code):
    return [finding.message for finding in check_runs(runs) if finding.code == code]


# -- data -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("twins", "found"), [(10, ["KRT001"]), (9, [])])
def test_duplicates_from_one_in_a_hundred_on(made, twins, found):
    assert codes(made("m", [0.5], task={"twins": [twins, 1000]})) == found


@pytest.mark.parametrize(("shared", "found"), [(10, ["KRT002"]), (9, [])])
def test_entities_from_one_in_a_hundred_on(made, shared, found):
    run = made("m", [0.5], task={"entities": [shared, 1000, "patient"]})
    assert codes(run) == found
    assert all("patient" in message for message in messages(run, "KRT002"))


def test_of_several_runs_the_largest_counts_are_used(made):
    few, many = ({"twins": [0, 100], "tested": 100}, {"twins": [9, 500], "tested": 500})
    for tasks in ((few, many), (many, few)):
        runs = [made(name, [0.5], task=task) for name, task in zip("ab", tasks, strict=True)]
        (message,) = messages(runs, "KRT001")
        assert "9 of 500" in message


def test_entities_do_not_matter_to_untrained_probes(made):
    task = {"entities": [900, 1000, "item"], "probe": {"use": "similarity"}}
    assert codes(made("m", [0.5], task=task)) == []


@pytest.mark.parametrize(("score", "found"), [(0.95, ["KRT003"]), (0.949, [])])
def test_a_column_that_predicts_the_target(made, score, found):
    run = made("m", [0.5], task={"give_away": ["iso code", score]})
    assert codes(run) == found
    assert all('"iso code"' in message for message in messages(run, "KRT003"))


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


def test_score_of_a_constant_prediction(made):
    # always "no": precision 0.8 and recall 1 of 80 rows, 0 of the others: 0.8 · 2 · 0.8 / 1.8
    task = {"classes": {"no": 80, "yes": 20}}
    for metric, worth in (("acc", "0.80"), ("f1_weighted", "0.71")):
        (message,) = messages(made("m", [0.5], task=task, metric=metric), "KRT004")
        assert message.startswith("80%") and f"{metric} {worth}" in message


# -- models ---------------------------------------------------------------------------------

# Two folds and as many test as train rows: the interval of a difference a ± b is a ± 22.008 b,
# because t(0.975, 1) = 12.7062, the variance is 2 b², and 1/2 + 1 = 1.5.


@pytest.mark.parametrize(("apart", "found"), [(0.009, ["KRT101"]), (0.0092, [])])
def test_worse_than_random_by_more_than_the_folds_differ(made, apart, found):
    runs = [made("m", [0.5 - apart, 0.5 + apart]), made("random", [0.7, 0.7])]
    assert codes(runs) == found


@pytest.mark.parametrize(("other", "found"), [(0.64, ["KRT101"]), (0.63, [])])
def test_with_one_fold_rows_decide(made, other, found):
    # 1.96 · sqrt((0.25 + 0.2304) / 100) = 0.1358 and sqrt((0.25 + 0.2331) / 100) makes 0.1362
    task = {"tested": 100}
    assert codes([made("m", [0.5], task=task), made("random", [other], task=task)]) == found
    # the area under a curve is no share of rows, and has no interval
    pair = [made("a", [0.5], metric="auc", task=task), made("random", [other], metric="auc")]
    assert codes(pair) == []


def test_lower_errors_are_better(made):
    runs = [made(n, [v, v], metric="rmse", higher=False) for n, v in (("m", 2.0), ("random", 1.0))]
    (message,) = messages(runs, "KRT101")
    assert "m is worse than random" in message and "2 against 1" in message
    assert codes(runs[:1]) == []


def test_predictors_are_compared_with_a_constant_one(made):
    tree = made("tree", [0.3, 0.3], role="predictor")
    assert codes([tree, made("random", [0.5, 0.5])]) == []
    assert codes([tree, made("dummy", [0.5, 0.5], role="predictor")]) == ["KRT101"]
    # results of other systems do not record the role of a model
    other = made("other", [0.3, 0.3], role="")
    assert codes([other, made("constantpredictor", [0.5, 0.5], role="")]) == ["KRT101"]


@pytest.mark.parametrize(("apart", "found"), [(0.009, []), (0.0092, ["KRT102"])])
def test_not_significantly_better_than_raw_features(made, apart, found):
    runs = [made("m", [0.7 - apart, 0.7 + apart]), made("onehot", [0.5, 0.5])]
    assert codes(runs, ignore=["KRT302"]) == found


def test_raw_features_depend_on_the_modality(made):
    text = {"modality": "text"}
    assert codes([made("m", [0.5, 0.5], task=text), made("onehot", [0.5, 0.5], task=text)]) == []
    runs = [made("n", [0.5, 0.5], task=text), made("tfidf", [0.5, 0.5], task=text)]
    assert codes(runs) == ["KRT102"]
    predictor = made("p", [0.5, 0.5], role="predictor")
    assert codes([predictor, made("onehot", [0.5, 0.5])]) == []


def test_without_an_interval_the_better_mean_decides(made):
    for value, found in ((0.61, []), (0.6, ["KRT102"])):
        runs = [made("m", [value], metric="auc"), made("onehot", [0.6], metric="auc")]
        assert codes(runs) == found


@pytest.mark.parametrize(
    ("constant", "nearly", "found"),
    [(1, 0, ["1 of 8"]), (1, 2, ["1 of 8", "2 nearly"]), (0, 0, [])],
)
def test_constant_dimensions(made, constant, nearly, found):
    seen = {"dimensions": 8, "constant": constant, "nearly_dead": nearly}
    texts = messages(made("m", [0.5, 0.5], record={"observed": seen}), "KRT103")
    assert len(texts) == bool(found) and all(word in texts[0] for word in found)


@pytest.mark.parametrize(("same", "found"), [(50, ["KRT104"]), (49, [])])
def test_different_items_with_the_same_vector(made, same, found):
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


def test_heads_that_did_not_converge(made):
    assert codes(made("m", [0.5, 0.5], record={"unconverged": 0})) == []
    (message,) = messages(made("n", [0.5, 0.5], record={"unconverged": 1}), "KRT201")
    assert "2 of 2 folds" in message


@pytest.mark.parametrize(("apart", "found"), [(0.049, ["KRT202"]), (0.051, [])])
def test_seeds_that_differ_more_than_folds(made, apart, found):
    # the means 0.7 and 0.8 spread by 0.0707, and folds a ± b by 1.414 b
    runs = [made("m", [0.7 - apart, 0.7 + apart], seed=1)]
    runs += [made("m", [0.8 - apart, 0.8 + apart], seed=2)]
    assert codes(runs) == found
    assert codes([runs[0], made("m", [0.9, 0.9], seed=3, params={"k": 2})]) == []


def test_the_range_of_errors_is_positive(made):
    runs = [made("m", [v, v], seed=s, metric="rmse", higher=False) for s, v in ((1, 7.0), (2, 8.0))]
    (message,) = messages(runs, "KRT202")
    assert "7 to 8 with 2 seeds" in message and "0.71" in message


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


def test_uninformed_and_repeated_models_do_not_saturate(made):
    pair = [made("a", [1.0]), made("b", [1.0])]
    assert codes([*pair, made("dummy", [1.0])]) == []
    assert codes([*pair, made("b", [1.0])]) == []
    assert codes([*pair, made("c", [1.0])]) == ["KRT301"]


@pytest.mark.parametrize(("rows", "found"), [(1440, ["KRT302"]), (1441, [])])
def test_rows_needed_to_detect_a_difference_of_proportions(made, rows, found):
    # 2.80159 · sqrt((0.211975 + 0.228684) / n) = 0.049 at n = 1440.5
    runs = [made(n, [v], task={"tested": rows}) for n, v in (("a", 0.695), ("b", 0.646))]
    assert codes(runs) == found
    assert all("1,440 test rows" in message for message in messages(runs, "KRT302"))


@pytest.mark.parametrize(("apart", "found"), [(0.0042, ["KRT302"]), (0.004, [])])
def test_folds_needed_to_detect_a_difference(made, apart, found):
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


def test_equal_scores_have_no_findings(made):
    runs = [made(n, [0.7, 0.8], task={"tested": 5}) for n in ("a", "b")]
    assert codes(runs) == []


# -- runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("now", "found"), [(0.8000001, []), (0.80001, ["KRT401"])])
def test_scores_that_changed_for_an_identical_job(made, now, found):
    assert codes([made("m", [0.8]), made("m", [now])]) == found


def test_differences_of_the_environment_are_named(made):
    old = made("m", [0.8], versions={"numpy": "1"}, python="3.11")
    new = made("m", [0.9], versions={"numpy": "2"}, python="3.12")
    (found,) = check_runs([old, new])
    assert found.level == "error"
    for word in ("acc was 0.8 and is 0.9", "numpy 1 → 2", "python 3.11 → 3.12"):
        assert word in found.message
    assert "was 0.9 and is 0.8" in check_runs([new, old])[0].message
    later = made("m", [0.9], record={"utc": "2026-01-02"})
    before = made("m", [0.8], record={"utc": "2026-01-01"})
    assert "was 0.8 and is 0.9" in check_runs([later, before])[0].message
    other = made("m", [0.7], record={"spec": "other"})
    assert codes([old, other]) == []


def test_failed_jobs_are_counted(made):
    runs = made("m", [0.5, None, None])
    (message,) = messages(runs, "KRT402")
    assert "2 of 3 folds" in message
    assert codes(made("n", [0.5, 0.5])) == []


def test_several_versions_and_seeds(made):
    runs = [made("a", [0.5]), made("b", [0.6], karat="0.2.0", seed=7)]
    assert codes(runs, ignore=["KRT302"]) == ["KRT403", "KRT404"]
    (version,), (seed,) = messages(runs, "KRT403"), messages(runs, "KRT404")
    assert "0.1.0 (a), 0.2.0 (b)" in version and "42 (a), 7 (b)" in seed


def test_the_same_seeds_for_all_are_fine(made):
    runs = [made(n, [0.5], seed=s) for n in ("a", "b") for s in (1, 2)]
    assert codes(runs) == []
    assert codes([*runs, made("c", [0.5], seed=1)]) == ["KRT404"]


def test_one_task_on_other_data(made):
    runs = [made("a", [0.5]), made("b", [0.6], task={"fingerprint": "123456789"})]
    (message,) = messages(runs, "KRT405")
    assert "t, t [123456]" in message
    assert messages([runs[0], made("b", [0.6], task={"fingerprint": "abcdef12"})], "KRT405") == []


# -- all together ---------------------------------------------------------------------------


def test_names_are_those_of_the_leaderboard(made):
    runs = [made("m", [0.5, 0.5], record={"unconverged": 1}) for _ in range(2)]
    board = karat.leaderboard(runs)
    assert {finding.model for finding in check_runs(runs)} == set(board.index)
    assert {finding.task for finding in check_runs(runs)} == set(board.attrs["tasks"])


def test_the_most_severe_come_first(made):
    task = {"twins": [1, 1]}
    runs = [made("m", [0.8, 0.8], task=task), made("m", [0.9, 0.9], task=task)]
    runs += [made("onehot", [0.9, 0.9], task=task)]
    levels = [finding.level for finding in check_runs(runs)]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)
    assert set(levels) == {"error", "warning", "note"}


def test_silenced_by_code_by_prefix_and_by_the_task(made):
    run = made("m", [0.5], task={"twins": [1, 1], "give_away": ["x", 1.0]})
    assert codes(run) == ["KRT001", "KRT003"]
    assert codes(run, ignore=["krt003"]) == ["KRT001"]
    found = check_runs(run, ignore=["KRT0"])
    assert (found, dict(found.silenced)) == ([], {"KRT001": 1, "KRT003": 1})
    own = made("n", [0.5], task={"twins": [1, 1], "ignore": ["KRT001"]})
    assert (codes(own), dict(check_runs(own).silenced)) == ([], {"KRT001": 1})


@pytest.mark.parametrize("code", ["KRT999", "KRT", "", "unused", "KRT1021"])
def test_an_unknown_check_cannot_be_silenced(made, code):
    with pytest.raises(DefinitionError, match=f'"{code.upper()}"'):
        check_runs(made("m", [0.5]), ignore=[code])


def test_a_table_of_scores_is_checked_by_its_scores():
    columns = "task model repeat fold corruption severity epoch metric value".split()
    rows = [("t", m, 0, 0, "", 0.0, -1, "acc", v) for m, v in (("a", 0.99), ("b", 1.0), ("c", 1.0))]
    found = check_runs(pd.DataFrame(rows, columns=columns))
    assert [(f.code, f.model, f.task) for f in found] == [("KRT301", None, "t")]


def test_runs_without_scores_have_no_findings(made):
    declined = made("m", [None], record={"status": "declined", "fold": None})
    assert codes(declined) == []


def test_many_models_and_tasks_are_checked_quickly():
    rng = np.random.default_rng(0)
    t, m, f = (axis.ravel() for axis in np.indices((100, 100, 5)))
    table = pd.DataFrame({"task": t, "model": m, "fold": f}).astype({"task": str, "model": str})
    table = table.assign(repeat=0, corruption="", severity=0.0, epoch=-1, metric="acc")
    begun = time.process_time()
    found = check_runs(table.assign(value=rng.random(len(table))))
    assert time.process_time() - begun < 60
    assert {finding.code for finding in found} <= {"KRT302"}


def test_every_rule_has_a_unique_code_and_a_level():
    listed = [rule.code for rule in RULES]
    assert listed == sorted(set(listed))
    assert {rule.level for rule in RULES} == {"error", "warning", "note"}
    for rule in RULES:
        assert rule.title and rule.advice[-1] in ".?" and not rule.title.endswith(".")
        assert rule.look.__doc__.startswith(f"{rule.code}: ")
