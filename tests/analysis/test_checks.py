"""Each check with runs just at its threshold and just below, its page, and ``karat lint``."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import karat
from karat.analysis import checks
from karat.analysis.checks import (
    RULES,
    Finding,
    Findings,
    Rule,
    check_runs,
    render_page,
    rule_of,
)
from karat.analysis.skipped_tasks import FEWEST_JUDGES, FEWEST_SKIPPED
from karat.core import registry
from karat.errors import DataError, DefinitionError
from karat.execution import diagnostics
from karat.reporting import leaderboard_output
from karat.reporting.leaderboard_output import finding_lines, summarize_findings

from ..score_data import make_view, score_table


def codes(runs, **options):
    return [finding.code for finding in check_runs(runs, **options)]


def messages(runs, code):
    return [finding.message for finding in check_runs(runs) if finding.code == code]


# -- prompts --------------------------------------------------------------------------------


SEARCH = {"roles": ["query"], "probe": {"use": "nearest"}}
OWN = ["document", "query"]


@pytest.mark.parametrize(
    ("task", "about", "found"),
    [
        (SEARCH, {"declared_prompts": OWN}, ["warning"]),
        (SEARCH, {"declared_prompts": OWN, "prompts": {"query": "", "document": ""}}, ["warning"]),
        (SEARCH, {"declared_prompts": OWN, "prompts": {"query": "q: "}}, []),
        (SEARCH, {}, ["note"]),
        ({}, {"declared_prompts": OWN}, []),
        (SEARCH, {"role": "predictor"}, []),
    ],
)
def test_prompts_that_were_not_used(made, task, about, found):
    run = made("m", [0.5], task=task, **about)
    findings = [each for each in check_runs(run) if each.code == "KRT108"]
    assert [each.level for each in findings] == found
    assert all("t" in each.message and "m" in each.message for each in findings)


@pytest.mark.parametrize(("scores", "found"), [([None, None], []), ([None, 0.5], ["KRT108"])])
@pytest.mark.parametrize("about", [{}, {"declared_prompts": OWN}])
def test_prompts_do_not_matter_if_all_jobs_failed(made, scores, found, about):
    run = made("m", scores, task=SEARCH, **about)
    assert [code for code in codes(run) if code == "KRT108"] == found


def test_models_without_prompts_share_one_note(made):
    runs = [made(name, [0.5], task=SEARCH) for name in ("one", "two")]
    (message,) = messages(runs, "KRT108")
    assert "one, two" in message


# -- data -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "found"),
    [
        ({"duplicate_rows": [10, 1000]}, ["KRT001"]),
        ({"duplicate_rows": [9, 1000]}, []),
        ({"entities": [10, 1000, "patient"]}, ["KRT002"]),
        ({"entities": [9, 1000, "patient"]}, []),
        # entities do not matter to untrained probes
        ({"entities": [900, 1000, "patient"], "probe": {"use": "similarity"}}, []),
        ({"give_away": ["iso code", 0.95]}, ["KRT003"]),
        ({"give_away": ["iso code", 0.949]}, []),
    ],
)
def test_facts_of_a_task(made, task, found):
    run = made("m", [0.5], task=task)
    assert codes(run) == found
    named = {"KRT001": "10 of 1,000", "KRT002": "patient", "KRT003": '"iso code"'}
    assert all(named[code] in message for code in found for message in messages(run, code))


def test_of_several_runs_the_largest_counts_are_used(made):
    few, many = (
        {"duplicate_rows": [0, 100], "tested": 100},
        {"duplicate_rows": [9, 500], "tested": 500},
    )
    for tasks in ((few, many), (many, few)):
        runs = [made(name, [0.5], task=task) for name, task in zip("ab", tasks, strict=True)]
        (message,) = messages(runs, "KRT001")
        assert "9 of 500" in message


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
    assert codes(made("m", [0.99], task={"classes": classes}, metric=metric)) == found


def test_score_of_a_constant_prediction(made):
    # always "no": precision 0.8 and recall 1 of 80 rows, 0 of the others: 0.8 · 2 · 0.8 / 1.8
    task = {"classes": {"no": 80, "yes": 20}}
    for metric, worth in (("acc", "0.80"), ("f1_weighted", "0.71")):
        (message,) = messages(made("m", [0.5], task=task, metric=metric), "KRT004")
        assert message.startswith("80 %") and f"{metric} {worth}" in message


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
    pair = [made("m", [0.5, 0.5], task=text), made("onehot", [0.5, 0.5], task=text)]
    assert codes(pair, ignore=["KRT302"]) == []
    runs = [made("n", [0.5, 0.5], task=text), made("tfidf", [0.5, 0.5], task=text)]
    assert codes(runs, ignore=["KRT302"]) == ["KRT102"]
    predictor = made("p", [0.5, 0.5], role="predictor")
    assert codes([predictor, made("onehot", [0.5, 0.5])], ignore=["KRT302"]) == []


def test_without_an_interval_the_better_mean_decides(made):
    for value, found in ((0.61, []), (0.6, ["KRT102"])):
        runs = [made("m", [value], metric="auc"), made("onehot", [0.6], metric="auc")]
        assert codes(runs, ignore=["KRT302"]) == found


@pytest.mark.parametrize(
    ("constant", "nearly", "found"),
    [(1, 0, ["1 of 8"]), (1, 2, ["1 of 8", "2 nearly"]), (0, 0, [])],
)
def test_constant_dimensions(made, constant, nearly, found):
    seen = {"dimensions": 8, "constant": constant, "nearly_dead": nearly}
    texts = messages(made("m", [0.5, 0.5], record={"observed": seen}), "KRT103")
    assert len(texts) == bool(found) and all(word in texts[0] for word in found)


@pytest.mark.parametrize(
    ("observed", "probe", "found"),
    [
        ({"same": 50, "compared": 1000}, "trained", ["KRT104"]),
        ({"same": 49, "compared": 1000}, "trained", []),
        ({"same": 0, "compared": 0}, "trained", []),
        ({"lengths": [1.0, 2.0, 1000.0]}, "trained", ["KRT106"]),
        ({"lengths": [1.0, 2.0, 999.0]}, "trained", []),
        ({"lengths": [0.0, 2.0, 999.0]}, "trained", []),
        ({"lengths": [1.0, 2.0, 1000.0]}, "similarity", []),
    ],
)
def test_equal_vectors_and_norms(made, observed, probe, found):
    record = {"observed": {"dimensions": 8, **observed}}
    assert codes(made("m", [0.5], record=record, task={"probe": {"use": probe}})) == found


@pytest.mark.parametrize(("second", "found"), [(0.9, []), (0.89, ["KRT105"])])
def test_coverage_is_the_mean_over_folds(made, second, found):
    run = made("m", [[make_view(acc=0.5, coverage=c)] for c in (0.9, second)])
    assert codes(run) == found


NAMES = {"asked": ["http://x/A", "http://x/B"], "known": ["a", "b"], "cause": "prefix and case"}


def test_names_without_a_vector(made):
    lost = {"status": "declined", "coverage": 0.0, "unmatched": NAMES, "views": []}
    run = made("m", [0.5, 0.5], record=lost)
    assert codes(run) == ["KRT107"]
    (message,) = messages(run, "KRT107")
    assert all(name in message for name in (*NAMES["asked"], *NAMES["known"], NAMES["cause"]))
    # a model that answers some questions of the task is not reported
    assert "KRT107" not in codes(made("n", [0.5], record={"coverage": 0.2}))
    # some names match, but no question has vectors for all its items
    assert codes(made("o", [0.5], record={**lost, "unmatched": {}})) == []


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
    assert codes([made("m", [value], seed=s) for s, value in ((4, 0.7), (5, 0.8))]) == []


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


def taken(level, skips, models=3, metric="acc"):
    """Return a table of scores of models on tasks of these levels; the last skips some of them."""
    scores = {
        f"t{t}": {f"m{m}": value + m / 1000 for m in range(models - (t in skips))}
        for t, value in enumerate(level)
    }
    return score_table(scores, metric)


LEVELS = [0.6, 0.61, 0.62, 0.63, 0.64, 0.80, 0.81, 0.82, 0.84, 0.86, 0.9, 0.93]


def test_the_skipped_tasks_are_the_hard_ones():
    (text,) = messages(taken(LEVELS, range(5)), "KRT305")
    # rank sum 15 against 32.5 ± 6.16
    assert "m2 skipped 5 of 12 tasks" in text and "p 0.003" in text
    assert messages(taken(LEVELS, range(7, 12)), "KRT305") == []  # the easy ones
    assert messages(taken(LEVELS, (0, 5, 7, 9, 11)), "KRT305") == []
    assert messages(taken(LEVELS, range(2)), "KRT305") == []  # too few
    assert messages(taken(LEVELS, range(5), models=2), "KRT305") == []  # one model cannot judge
    # errors have no upper bound, so tasks cannot be compared
    assert messages(taken(LEVELS, range(5), metric="rmse"), "KRT305") == []


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
    assert "was 0.8 and is 0.9" in check_runs([new, old])[0].message  # the run's place is no age
    later = made("m", [0.9], record={"utc": "2026-01-02"})
    before = made("m", [0.8], record={"utc": "2026-01-01"})
    assert "was 0.8 and is 0.9" in check_runs([later, before])[0].message
    other = made("m", [0.7], record={"spec": "other"})
    (found,) = check_runs([old, other])  # not identical: a changed model, for example
    assert (found.code, found.level) == ("KRT401", "note")


def test_repeats_are_counted_with_their_largest_difference(made):
    old = made("m", [0.8, 0.7, 0.6, 0.5])
    new = made("m", [0.8, 0.75, 0.5, 0.5])
    (message,) = messages([old, new], "KRT401")
    for words in ("4 repeated jobs, 2 with", "fold 2", "was 0.6 and is 0.5"):
        assert words in message
    assert codes([old, old]) == codes([old, made("m", [0.8, 0.7, 0.6, 0.5])]) == []


def test_a_task_asked_in_several_ways(made):
    kfold = {"split": {"use": "kfold", "folds": 2, "count": 2, "rows": "r"}}
    holdout = {"split": {"use": "holdout", "test": 0.2, "count": 1, "rows": "s"}}
    runs = [made("a", [0.6, 0.7], task=kfold), made("b", [0.7], task=holdout)]
    (message,) = messages(runs, "KRT407")
    assert "t · 2-fold, t · holdout 0.2" in message
    assert messages([runs[0], made("b", [0.5, 0.6], task=kfold)], "KRT407") == []


def test_a_score_over_fewer_folds_than_planned(made):
    undefined = [0.6, 0.7, 0.8, {"acc": None}, {"acc": None}]
    (message,) = messages(made("a", undefined), "KRT408")
    assert "3 of 5 folds" in message
    assert codes(made("b", [0.6, 0.7, None])) == ["KRT402"]


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
    runs = [made(n, [0.7, 0.8], seed=s, task={"tested": 5}) for n in ("a", "b") for s in (1, 2)]
    assert codes(runs, ignore=["KRT302"]) == [], "equal scores and equal seeds"
    assert codes([*runs, made("c", [0.7, 0.8], seed=1)], ignore=["KRT302"]) == ["KRT404"]


def test_one_task_on_other_data(made):
    runs = [made("a", [0.5]), made("b", [0.6], task={"fingerprint": "123456789"})]
    (message,) = messages(runs, "KRT405")
    assert "t, t [123456]" in message
    targets = [{"about": {"table": {"target": name}}, "fingerprint": name} for name in "xy"]
    runs = [made(name, [0.5], task=task) for name, task in zip("ab", targets, strict=True)]
    assert messages(runs, "KRT405") == []
    runs = [made("a", [0.5]), made("b", [0.6], task={"fingerprint": "123456789"})]
    assert messages([runs[0], made("b", [0.6], task={"fingerprint": "abcdef12"})], "KRT405") == []


# -- all together ---------------------------------------------------------------------------


def test_names_are_those_of_the_leaderboard(made):
    runs = [made("m", [0.5, 0.5], record={"unconverged": 1}) for _ in range(2)]
    board = karat.leaderboard(runs)
    assert {finding.model for finding in check_runs(runs)} == set(board.index)
    assert {finding.task for finding in check_runs(runs)} == set(board.attrs["tasks"])


def test_the_most_severe_come_first(made):
    task = {"duplicate_rows": [1, 1]}
    runs = [made("m", [0.8, 0.8], task=task), made("m", [0.9, 0.9], task=task)]
    runs += [made("onehot", [0.9, 0.9], task=task)]
    levels = [finding.level for finding in check_runs(runs)]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)
    assert set(levels) == {"error", "warning", "note"}


def test_silenced_by_code_by_prefix_and_by_the_task(made):
    run = made("m", [0.5], task={"duplicate_rows": [1, 1], "give_away": ["x", 1.0]})
    assert codes(run) == ["KRT001", "KRT003"]
    assert codes(run, ignore=["krt003"]) == ["KRT001"]
    found = check_runs(run, ignore=["KRT0"])
    assert (found, dict(found.silenced)) == ([], {"KRT001": 1, "KRT003": 1})
    own = made("n", [0.5], task={"duplicate_rows": [1, 1], "ignore": ["KRT001"]})
    assert (codes(own), dict(check_runs(own).silenced)) == ([], {"KRT001": 1})


@pytest.mark.parametrize("code", ["KRT999", "KRT", "", "unused", "KRT1021"])
def test_an_unknown_check_cannot_be_silenced(made, code):
    with pytest.raises(DefinitionError, match=f'"{code.upper()}"'):
        check_runs(made("m", [0.5]), ignore=[code])


def test_a_table_of_scores_is_checked_by_its_scores():
    found = check_runs(score_table({"t": {"a": 0.99, "b": 1.0, "c": 1.0}}))
    assert [(f.code, f.model, f.task) for f in found] == [("KRT301", None, "t")]


def test_runs_without_scores_have_no_findings(made):
    declined = made("m", [None], record={"status": "declined", "fold": None})
    assert codes(declined) == []


def test_every_rule_has_a_unique_code_and_a_level():
    listed = [rule.code for rule in RULES]
    assert listed == sorted(set(listed))
    assert {rule.level for rule in RULES} == {"error", "warning", "note"}
    for rule in RULES:
        assert rule.title and rule.advice[-1] in ".?" and not rule.title.endswith(".")


DOCS = Path(__file__).parents[2] / "docs"


SECTIONS = ("What it means", "How it is computed", "Example", "What to do", "When to ignore it")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_renders_its_page(rule):
    page = render_page(rule)
    assert page.startswith(f"# {rule.code}: {rule.title}\n\nLevel: {rule.level}.\n\n## ")
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == list(SECTIONS)
    assert f"--ignore {rule.code}" in page.splitlines()[-1]


def test_the_script_writes_a_page_per_rule_and_the_index(tmp_path):
    script = runpy.run_path(str(DOCS.parent / "scripts" / "check_pages.py"))
    assert script["index_table"]() in (DOCS / "checks.md").read_text(encoding="utf-8")
    (tmp_path / "KRT999.md").write_text("a rule that was removed")
    script["write_pages"](tmp_path)
    pages = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert pages == {rule.code: render_page(rule) for rule in RULES}


def test_pages_state_the_thresholds():
    keys = (checks.LEAKED, diagnostics.KEY_LEAST, diagnostics.KEY_MOST, diagnostics.KEY_AGREES)
    sizes = (diagnostics.MOST_ROWS, diagnostics.MOST_CELLS, diagnostics.FEWEST_ROWS)
    power = (1 - checks.CONFIDENCE, checks.POWER)
    thresholds = {
        "KRT001": [_percent(checks.LEAKED)],
        "KRT002": map(_percent, keys),
        "KRT003": [_percent(checks.GIVEN_AWAY), *(f"{n:,}" for n in sizes)],
        "KRT004": [_percent(checks.LOPSIDED), str(diagnostics.MOST_CLASSES), *checks.HIDING],
        "KRT103": [f"{diagnostics.NEARLY:.4f}"],
        "KRT104": [_percent(checks.COLLAPSED), f"{diagnostics.MOST_COMPARED:,}"],
        "KRT105": [_percent(checks.LOW_COVERAGE)],
        "KRT106": [f"{checks.UNLIKE:,}"],
        "KRT301": [f"{checks.CEILING:g}", f"at least {checks.FEWEST_THERE} models"],
        "KRT302": [*map(_percent, power), f"{(1 + checks.CONFIDENCE) / 2:g}"],
        "KRT305": [f"at least {FEWEST_SKIPPED} tasks", f"at least {FEWEST_JUDGES}"],
        "KRT401": [f"{checks.SAME:.6f}"],
    }
    for code, texts in thresholds.items():
        assert [text for text in texts if text not in render_page(rule_of(code))] == [], code


def _percent(share):
    return f"{100 * share:.0f} %"


def found(code, model, task, level="note"):
    return Finding(code, level, model, task, f"{model} is odd on {task}.", "Mend it.")


def test_many_findings_of_a_check_are_one_line():
    many = [found("KRT102", m, t) for m in "ab" for t in ("t1", "t2", "t3", "t4")]
    line = summarize_findings(many)
    assert line.startswith("No better than raw features") and "t1, t2, t3" in line
    assert "t4" not in line
    assert summarize_findings([found("KRT301", None, t) for t in "xy"]).startswith(
        "Saturated task: x, y"
    )
    # runs of one model are listed once
    runs = [found("KRT102", f"a (20261116T0959{i}0)", t) for i in range(3) for t in "tu"]
    assert "a on t, u" in summarize_findings(runs)
    # control characters are removed
    assert not {"\x1b", "\n", "\x07"} & set(
        summarize_findings([found("KRT102", "a\x1b[1m\nb", "t\x07")])
    )


@pytest.mark.parametrize("show", ["lint", "below"])
@pytest.mark.parametrize("width", [50, 57, 64])
def test_words_of_findings_are_not_split_in_a_narrow_terminal(show, width, monkeypatch, capsys):
    model, task = "a-sentence-encoder", "a-task-name-with-hyphens"
    made = Findings([found("KRT102", f"the strange {model}", f"first {task}")])
    monkeypatch.setattr(leaderboard_output, "check_runs", lambda *_: made)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("FORCE_COLOR", "1")
    if show == "lint":
        leaderboard_output.print_findings([])
    else:
        leaderboard_output.print_finding_lines([], "r", None)
    lines = re.sub("\x1b[^m]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= width
    assert {model, f"{task}."} <= {word for line in lines for word in line.split()}


def test_findings_are_not_wrapped_in_a_pipe(monkeypatch, capsys):
    made = Findings([found("KRT102", "m" * 30, "t" * 60)])
    monkeypatch.setattr(leaderboard_output, "check_runs", lambda *_: made)
    leaderboard_output.print_findings([])
    assert f"   {made[0].message}" in capsys.readouterr().out.splitlines()


def test_six_lines_and_where_the_rest_is():
    codes = [rule.code for rule in RULES[:8]]
    lines = finding_lines(Findings([found(code, "m", "t") for code in codes], {"KRT405": 2}), "r")
    assert [line.partition(" ")[0] for line in lines[:-1]] == codes[:6]
    assert "karat check r" in lines[-1]
    assert finding_lines(Findings(), "r") == []
    assert len(finding_lines(Findings([], {"KRT405": 1}), "r")) == 1


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two models on a table with a column that is the target."""
    folder = tmp_path_factory.mktemp("results")
    frame = pd.DataFrame({"x": range(200), "y": ["low"] * 100 + ["high"] * 100})
    data = karat.Dataset.from_table(frame, "y", name="halves")
    task = karat.Task("halves", data, split={"use": "kfold", "folds": 2}, metrics=["acc"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KARAT_CACHE", str(tmp_path_factory.mktemp("cache")))
        karat.evaluate(["onehot", "random"], task, output=folder)
    return folder


def test_checks_are_printed_with_advice(results, cli):
    result = cli("lint", results)
    assert result.code == 0
    head, message, advice, *_ = result.out.splitlines()
    assert head.startswith("KRT003 warning") and '"x"' in message and "(99 %)" in message
    assert advice.strip().startswith("→")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--fail-on", "error"], 0),
        (["--fail-on", "warning"], 1),
        (["--fail-on", "note"], 1),
        (["--fail-on", "note", "--ignore", "KRT003"], 0),
        (["--ignore", "KRT777"], 2),
        (["--fail-on", "nothing"], 2),
    ],
)
def test_exit_codes(results, cli, options, code):
    assert cli("lint", results, *options).code == code


def test_checks_as_json(results, cli):
    findings = json.loads(cli("lint", results, "--format", "json", "--ignore", "KRT0").out)
    assert (findings["findings"], findings["silenced"]) == ([], {"KRT003": 1})
    (one,) = json.loads(cli("lint", results, "--format", "json").out)["findings"]
    assert one.keys() == {"code", "level", "model", "task", "message", "advice"}
    assert (one["code"], one["model"], one["task"]) == ("KRT003", None, "halves")


def test_a_task_silences_in_its_definition(tmp_path):
    from karat.config.catalog import Catalog

    file = tmp_path / "mine.yaml"
    file.write_text("tasks:\n  mine: {extends: penguins, ignore: [KRT301]}\n")
    assert Catalog([file]).task("mine").ignore == ("KRT301",)
    frame = pd.DataFrame({"x": range(200), "y": ["low"] * 100 + ["high"] * 100})
    data = karat.Dataset.from_table(frame, "y", name="halves")
    runs = karat.evaluate("onehot", karat.Task("h", data, ignore=["KRT003"]), output=tmp_path)
    found = karat.check_runs(runs)
    assert (list(found), dict(found.silenced)) == ([], {"KRT003": 1})


def test_leaderboards_show_findings(results, cli):
    shown = cli("leaderboard", results).out
    assert 'KRT003 Column "x"' in shown
    assert "KRT003" not in cli("leaderboard", results, "--ignore", "KRT003").out
    assert "- KRT003 Column" in cli("leaderboard", results, "--format", "markdown").out
    assert isinstance(json.loads(cli("leaderboard", results, "--format", "json").out), list)
    assert cli("leaderboard", results, "--format", "json", "--ignore", "nothing").code == 2


def test_explain_and_list_need_no_runs(cli):
    assert cli("lint", "--explain", "krt104").out == render_page(rule_of("KRT104"))
    listed = cli("lint", "--list").out.splitlines()
    assert [line.split()[0] for line in listed] == [rule.code for rule in RULES]
    unknown = cli("lint", "--explain", "KRT1044")
    assert (unknown.code, 'Did you mean "KRT104"?' in unknown.err) == (2, True)
    assert cli("lint").code == 2


def test_a_run_shows_its_checks(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"x": range(60), "y": ["low"] * 30 + ["high"] * 30})
    frame.to_csv("halves.csv", index=False)
    result = cli("run", "halves.csv", "--target", "y", "-m", "onehot", "-w", "1")
    assert result.code == 0
    assert "KRT003" in result.out
    assert "karat check results/onehot.halves" in result.out
    quiet = ("--ignore", "KRT003", "-o", "other")
    assert (
        "KRT003"
        not in cli("run", "halves.csv", "--target", "y", "-m", "onehot", "-w", "1", *quiet).out
    )


def test_without_a_baseline_chance_comes_from_the_labels(made):
    def found(value, metric="acc", **task):
        classes = {"classes": {"a": 60, "b": 40}, "tested": 400, **task}
        run = made("m", [value - 0.001, value + 0.001], metric=metric, task=classes)
        return codes([run], ignore=["KRT004"])

    # the largest class is 60 % of the rows
    assert (found(0.5), found(0.61)) == (["KRT101"], [])
    assert (found(0.45, "balacc"), found(0.51, "balacc")) == (["KRT101"], [])
    assert (found(0.4, "auc"), found(-0.3, "r2"), found(0.1, "r2")) == (["KRT101"], ["KRT101"], [])
    # one fold of 400 rows: 0.6 ± 1.96 · sqrt(0.24 / 400) = 0.6 ± 0.048
    one = {"classes": {"a": 60, "b": 40}, "tested": 400}
    assert codes([made("m", [0.55], task=one)]) == ["KRT101"]
    assert codes([made("n", [0.56], task=one)]) == []


def test_an_exact_tie_is_too_close_to_call(made):
    (message,) = messages([made("a", [0.7, 0.8]), made("b", [0.7, 0.8])], "KRT302")
    assert "a and b" in message


# -- The smallest difference that folds or rows can detect (KRT302) -------------------------------


@pytest.mark.parametrize(("rows", "found"), [(1440, ["KRT302"]), (1441, [])])
def test_rows_needed_to_detect_a_difference_of_proportions(made, rows, found):
    # 2.80159 · sqrt((0.211975 + 0.228684) / n) = 0.049 at n = 1440.5
    runs = [made(n, [v], task={"tested": rows}) for n, v in (("a", 0.695), ("b", 0.646))]
    assert codes(runs) == found
    assert all(
        "1,440 test rows" in message
        for message in (finding.message for finding in check_runs(runs))
    )


@pytest.mark.parametrize(("apart", "found"), [(0.0046, ["KRT302"]), (0.0045, [])])
def test_the_test_over_folds_decides_as_it_does_for_the_letters(made, apart, found):
    # 12.7062 · sqrt(2 b² · 1.5) = 22.008 b against a gap of 0.1
    runs = [made("a", [0.7 - apart, 0.7 + apart], metric="auc")]
    runs += [made("b", [0.6, 0.6], metric="auc")]
    assert codes(runs) == found
    assert _one_letter(karat.leaderboard(runs)) == bool(found)


def test_the_ratio_comes_from_the_sizes_of_the_folds(made):
    # 10 train rows and 10 test rows in each of three folds: 1/3 + 1; t(0.975, 2) = 4.3027
    # makes 4.968 b of the differences a - b, a, a + b
    for apart, found in ((0.0202, ["KRT302"]), (0.0200, [])):
        ends = [0.6 - apart, 0.6, 0.6 + apart]
        runs = [made("a", ends, metric="ami"), made("b", [0.5] * 3, metric="ami")]
        assert codes(runs) == found


def _one_letter(board):
    """Return whether the first two models of a leaderboard share a letter."""
    first, second = (set(letters) for letters in board["tie"].iloc[:2])
    return bool(first & second)


@pytest.mark.parametrize("further", [0, 4])
def test_a_check_never_contradicts_the_letters(further):
    # five folds, differences from clear to none; more models make the correction larger
    rng = np.random.default_rng(3)
    answers = []
    for step in range(12):
        scores = {"a": (0.7 + 0.01 * step + rng.normal(0, 0.02, 5)).tolist(), "b": [0.7] * 5}
        scores |= {f"m{i}": (0.5 + rng.normal(0, 0.02, 5)).tolist() for i in range(further)}
        table = score_table({"t": scores})
        tied = _one_letter(karat.leaderboard(table))
        answers.append(tied)
        assert ("KRT302" in codes(table)) == tied
        by_task = karat.leaderboard(table, by="task")
        assert _one_letter(by_task) == tied
    assert {*answers} == {True, False}


TWO_METRICS = {
    "a": [{"acc": 0.70, "auc": 0.90}, {"acc": 0.72, "auc": 0.91}, {"acc": 0.69, "auc": 0.92}],
    "b": [{"acc": 0.71, "auc": 0.10}, {"acc": 0.70, "auc": 0.12}, {"acc": 0.69, "auc": 0.11}],
}


def test_a_finding_is_about_the_metric_that_is_shown(made):
    # acc ties, auc is far apart in every fold
    runs = [made(name, scores) for name, scores in TWO_METRICS.items()]
    (message,) = messages(runs, "KRT302")
    assert "(acc)" in message
    assert "KRT302" not in codes(runs, metrics={"t": "auc"})
    with pytest.raises(DataError, match="mcc"):
        check_runs(runs, metrics={"t": "mcc"})


def test_findings_below_a_leaderboard_are_about_its_metric(made, cli):
    runs = [made(name, scores) for name, scores in TWO_METRICS.items()]
    folder = str(runs[0].folder.parent)
    assert "KRT302" in cli("leaderboard", folder).out
    assert "KRT302" not in cli("leaderboard", folder, "--metric", "t=auc").out


# -- checks of extensions -------------------------------------------------------------------


def added(monkeypatch, code, rule):
    list(registry.checks)  # those of extensions are there
    monkeypatch.setitem(registry.checks._parts, code, rule)


def test_a_check_of_an_extension_that_fails_is_a_finding(made, monkeypatch):
    def look(facts):
        raise KeyError("rows")

    added(monkeypatch, "MINE001", Rule("MINE001", "a title", "note", "Advice.", look, "A page."))
    (finding,) = [each for each in check_runs(made("m", {"t": [0.5]})) if each.code == "MINE001"]
    assert finding.level == "warning" and "KeyError: 'rows'" in finding.message
    assert "A page." in render_page(rule_of("mine001"))
    assert check_runs(made("m", {"t": [0.5]}), ignore="MINE").silenced["MINE001"] == 1


@pytest.mark.parametrize("code", ["MINE002", "mine1"])
def test_a_check_of_an_extension_must_have_its_code(made, monkeypatch, code):
    rule = Rule("mine1", "a title", "note", "Advice.", lambda facts: [])
    added(monkeypatch, code, rule)
    with pytest.raises(DefinitionError, match=code):
        check_runs(made("m", {"t": [0.5]}))
