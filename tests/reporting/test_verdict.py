"""Verdicts: winner, margin, evidence, weaknesses, cost and next step, with numbers by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from karat.analysis.leaderboard import leaderboard
from karat.reporting.verdict import find_evidence, make_verdict, verdict_lines

from ..score_data import make_view, score_table, write_run


def verdicts(runs, **attrs):
    board = leaderboard(runs)
    board.attrs.update(attrs)
    found = make_verdict(board, find_evidence(runs, "results"))
    assert all(set(line) == {"what", "text"} for each in found for line in each["lines"])
    return found


def verdict(runs, **attrs):
    (found,) = verdicts(runs, **attrs)
    return found


def whats(found):
    return [line["what"] for line in found["lines"]]


def text_of(found, what):
    (text,) = (line["text"] for line in found["lines"] if line["what"] == what)
    return text


def steady(tasks=8, models="abc"):
    """Scores in which every model is always better than the next."""
    own = {name: [0.9 - i / 10] * 3 for i, name in enumerate(models)}
    return score_table({f"t{t}": own for t in range(tasks)})


def test_the_winner_and_the_next_with_the_margin_of_their_mean_ranks():
    # a is second on the first two of eight tasks: mean ranks 1.25, 1.75 and 3
    scores = {f"t{t}": {"a": 0.9, "b": 0.95 if t < 2 else 0.8, "c": 0.1} for t in range(8)}
    found = verdict(score_table(scores))
    assert (found["kind"], found["winner"], found["next"]) == ("ranking", "a", "b")
    margin, apart = found["margin"], np.array([-1, -1, 1, 1, 1, 1, 1, 1])
    # one more task with the variance of random ranks, 3 · 4 / 6; corrected for three pairs
    error = np.sqrt((apart.var(ddof=1) / 8 * 7 + 2 / 8) / 8)
    half = stats.t.isf(0.025 / 3, 7) * error
    assert (margin["what"], margin["value"], margin["tasks"]) == ("mean rank", 0.5, 8)
    assert (margin["low"], margin["high"]) == pytest.approx((0.5 - half, 0.5 + half))
    assert "1.25" in text_of(found, "margin") and "1.75" in text_of(found, "margin")
    assert "3 models" in text_of(found, "basis") and "8 tasks" in text_of(found, "basis")


def test_the_margin_is_that_of_the_ranks_shown_also_where_models_take_different_tasks():
    scores = {f"t{t}": {"a": 0.9, "b": 0.95 if t < 2 else 0.8, "c": 0.1} for t in range(8)}
    del scores["t0"]["b"], scores["t5"]["c"]
    found = verdict(score_table(scores))
    # a loses one of 7 tasks to b, b six of 7 to a, and both none to c
    assert found["margin"]["value"] == pytest.approx(6 / 7 - 1 / 7)
    assert "Mean rank 1.14 against 1.86 of b: ahead by 0.71" in text_of(found, "margin")
    assert found["margin"]["tasks"] == 7 and found["margin"]["low"] < 5 / 7


def test_a_better_rank_on_few_tasks_is_no_headline_but_is_said():
    scores = {f"t{t}": {"a": 0.9, "b": 0.8, "c": 0.1} for t in range(8)}
    for t in range(4):
        scores[f"t{t}"]["new"] = 0.99
    found = verdict(score_table(scores))
    assert found["winner"] == "a" and "with enough tasks" in text_of(found, "answer")
    assert "new has a better mean rank, 1.00, but on 4 of 8 tasks only." in found["weak"]
    assert "enough" not in text_of(verdict(steady()), "answer")


def test_what_the_common_tasks_show_about_a_model_on_few_tasks_is_said():
    rng = np.random.default_rng(0)
    means = {"a": 0.8, "b": 0.7, "new": 0.95}
    scores = {
        f"t{t}": {
            m: mean + rng.normal(0, 0.01, 5) for m, mean in means.items() if m != "new" or t < 4
        }
        for t in range(8)
    }
    table = score_table(scores)
    board = leaderboard(table, columns=["difference"])
    (found,) = make_verdict(board, find_evidence(table))
    row = board.loc["new"]
    ends = (row["difference"], row["difference_low"], row["difference_high"])
    said = "on these it is better than a ({:+.3f}, {:+.3f} to {:+.3f}).".format(*ends)
    assert said in found["weak"][0] and row["difference_low"] > 0.1


@pytest.mark.parametrize("seed", range(12))
def test_margin_and_picture_say_what_the_letters_say(seed):
    rng = np.random.default_rng(seed)
    tasks, models = int(rng.integers(6, 12)), int(rng.integers(2, 7))
    skill = rng.normal(0, 0.5, models)
    scores = {
        f"t{t}": {
            f"m{m}": float(skill[m] + rng.normal())
            for m in range(models)
            if m < 2 or rng.random() < 0.85
        }
        for t in range(tasks)
    }
    table = score_table(scores)
    board, found = leaderboard(table), verdict(table)
    letters = {name: set(text) for name, text in board["tie"].items()}
    mine = letters[found["winner"]]
    for row in found["over_tasks"]["models"]:
        if row["verdict"] in ("reference", "not tested"):
            continue
        differs = not mine & letters[row["model"]]
        assert (row["low"] > 0 or row["high"] < 0) == differs == (row["p"] < 0.05)
        assert (row["verdict"] in ("better", "worse")) == differs
        rank = board.at[found["winner"], "rank"] - board.at[row["model"], "rank"]
        assert row["difference"] == pytest.approx(rank)
    rows = {row["model"]: row for row in found["over_tasks"]["models"]}
    next_one, margin = rows[found["next"]], found["margin"]
    if next_one["verdict"] != "not tested":
        ends = (-next_one["high"], -next_one["low"])
        assert (margin["low"], margin["high"]) == pytest.approx(ends)
        word = "better" if next_one["verdict"] == "worse" else "ahead"
        text = text_of(found, "margin")
        assert f": {word} by" in text or "equal scores" in text or margin["value"] < 0


def test_a_model_that_is_better_than_every_other_is_alone_at_the_top():
    found = verdict(steady())
    assert (found["state"], found["top"], found["weak"]) == ("clear", ["a"], [])
    assert found["next_step"]["command"] == "karat compare results -a a -b b"


def test_models_that_share_a_letter_with_the_leader_are_in_its_group():
    table = steady()
    board = leaderboard(table)
    board["tie"], board["top"] = ["ab", "b", "c"], [True, True, False]
    (found,) = make_verdict(board, find_evidence(table))
    assert (found["state"], found["top"]) == ("tied", ["a", "b"])
    assert "b cannot be distinguished" in text_of(found, "answer")
    assert found["next_step"] is None  # a table has no folder to give to a command


def test_the_headline_says_what_the_letters_say():
    wins = [0.9] * 7 + [0.5]
    table = score_table({f"t{t}": {"a": wins[t], "b": 0.7} for t in range(8)})
    board = leaderboard(table)
    # 7 of 8: two-sided p 0.07 for the letters, one-sided 0.035 for the model that may be the best
    assert list(board["tie"]) == ["a", "a"] and list(board["top"]) == [True, False]
    (found,) = make_verdict(board, find_evidence(table))
    assert found["state"] == "tied" and found["top"] == ["a", "b"]
    assert "cannot be distinguished" in text_of(found, "answer")


def test_no_letters_mean_not_tested_and_never_a_tie():
    table = steady(tasks=2)
    board = leaderboard(table)
    board["tie"] = ""
    board.attrs.pop("separation", None)
    (found,) = make_verdict(board, find_evidence(table, "results"))
    assert (found["state"], found["reason"], found["top"]) == ("untested", "too few tasks", ["a"])
    assert math.isnan(found["margin"]["low"])
    assert found["next_step"]["command"] == "karat leaderboard results --by task"
    assert any("too few tasks" in text for text in found["weak"])


def test_a_reason_given_by_the_leaderboard_is_used():
    found = verdict(steady(), separation={"by": None, "why": "no common folds"})
    assert (found["state"], found["reason"]) == ("untested", "no common folds")


def test_one_task_compares_scores_over_folds():
    folds = {"a": [0.9, 0.8, 0.85], "b": [0.7, 0.7, 0.6], "c": [0.1, 0.1, 0.1]}
    found = verdict(score_table({"t": folds}))
    margin = found["margin"]
    # differences 0.2, 0.1 and 0.25: their mean, and the error with 1/3 + 1/2 (three folds)
    error = math.sqrt(stats.tvar([0.2, 0.1, 0.25]) * (1 / 3 + 1 / 2))
    half = stats.t.ppf(1 - 0.025 / 3, 2) * error  # holds together with those of three pairs
    assert (margin["what"], margin["folds"]) == ("acc", 3)
    assert margin["value"] == pytest.approx(0.55 / 3)
    assert margin["high"] - margin["low"] == pytest.approx(2 * half)


def test_no_weakness_contradicts_the_letters():
    # 0.2, -0.05 and 0.1: the mean is positive, its interval over folds holds 0
    folds = {"a": [0.9, 0.65, 0.8], "b": [0.7, 0.7, 0.7], "c": [0.1, 0.1, 0.1]}
    table = score_table({"t": folds})
    board = leaderboard(table)
    board["tie"], board["top"] = list("abc"), [True, False, False]
    board.attrs["separation"] = {"by": "items", "test": "max-T", "why": "", "items": 300}
    (found,) = make_verdict(board, find_evidence(table))
    assert found["state"] == "clear"
    assert not any("separate" in text for text in found["weak"])


def test_lower_is_better_where_the_metric_says_so():
    scores = {"t": ("rmse", {"a": [2.0, 3.0], "b": [3.0, 5.0]})}
    found = verdict(score_table(scores))
    assert (found["winner"], found["kind"]) == ("a", "comparison")
    assert found["margin"]["value"] == pytest.approx(1.5)


def test_one_fold_is_not_tested():
    found = verdict(score_table({"t": {"a": 0.896, "dummy": 0.5, "b": 0.6}}))
    assert (found["state"], found["reason"]) == ("untested", "one fold")
    assert "0.896" in text_of(found, "margin") and math.isnan(found["margin"]["low"])


def test_two_models_are_a_comparison_by_tasks_won():
    scores = {f"t{t}": {"a": 0.9, "b": 0.95 if t < 2 else 0.8} for t in range(8)}
    found = verdict(score_table(scores))
    assert found["kind"] == "comparison"
    assert "better on 6 of 8 tasks, worse on 2" in text_of(found, "answer")


def few_tasks():
    """Five tasks: b equals a on four, c is worse on three of the four that it has."""
    a, far = [0.90, 0.92, 0.91, 0.93], [0.30, 0.33, 0.31, 0.33]
    scores = {f"t{t}": {"a": a, "b": a, "c": far if t else a} for t in range(4)}
    scores["last"] = {"a": a, "b": [0.87, 0.94, 0.89, 0.92]}
    return score_table(scores)


def test_few_tasks_say_what_they_show_and_never_only_that_they_are_few():
    found = verdict(few_tasks())
    assert (found["state"], found["winner"], found["reason"]) == ("tied", "a", "")
    answer = text_of(found, "answer")
    assert answer.startswith("a leads on these 5 tasks: ") and "better than c" in answer
    assert "too few tasks" not in " ".join(verdict_lines([found]))
    assert text_of(found, "limit").endswith("other tasks like these needs at least 6 tasks.")
    assert found["weak"] == []


def test_equal_scores_on_most_tasks_are_not_told_as_a_margin():
    found = verdict(few_tasks())
    text = text_of(found, "margin")
    assert "equal scores on 4 of 5 common tasks, they differ on last" in text
    assert found["margin"]["what"] == "mean gain" and found["margin"]["value"] < 0.01
    assert " by 0" not in text
    assert "equal scores on 4" in text_of(found, "tasks")
    # mean ranks of six tasks differ though five scores are equal
    scores = {f"t{t}": {"a": 0.9, "b": 0.9 if t else 0.8, "c": 0.1} for t in range(6)}
    text = text_of(verdict(score_table(scores)), "margin")
    assert " by 0" not in text and "they differ on t0" in text


def test_the_headline_names_the_tasks_that_a_first_model_clearly_loses():
    good, fair, bad = [0.90, 0.92, 0.91], [0.70, 0.73, 0.71], [0.10, 0.14, 0.12]
    scores = {f"t{t}": {"a": good, "b": fair, "c": bad} for t in range(13)}
    scores |= {f"r{t}": {"a": fair, "b": good, "c": bad} for t in range(2)}
    table = score_table(scores)
    table["kind"] = ["retrieval" if task.startswith("r") else "pairs" for task in table["task"]]
    board = leaderboard(table, columns=["tasks", "difference"])
    (found,) = make_verdict(board, find_evidence(table))
    answer = text_of(found, "answer")
    assert "first on 13 of 15, loses both retrieval tasks to b" in answer
    assert answer.startswith("a ") and "max-T over tasks" in answer


def test_the_picture_has_a_row_for_each_model_with_the_numbers_of_the_board():
    table = few_tasks()
    board = leaderboard(table)
    picture = verdict(table)["these_tasks"]
    assert picture["reference"] == "a" and picture["margin"] == 0.01
    rows = {row["model"]: row for row in picture["models"]}
    assert list(rows) == list(board.index)
    for name in ("b", "c"):
        assert rows[name]["difference"] == board.at[name, "difference"]
        assert rows[name]["low"] == board.at[name, "difference_low"]
    assert (rows["c"]["tasks"], rows["c"]["verdict"]) == (4, "worse")


def test_a_baseline_that_wins_weakens_the_verdict():
    found = verdict(steady(models=["dummy", "b", "c"]))
    assert found["winner"] == "dummy" and any("dummy" in text for text in found["weak"])


def test_a_single_model_and_models_without_common_tasks_have_no_winner():
    alone = verdict(score_table({"t": {"a": 0.5}}))
    assert (alone["state"], alone["winner"], whats(alone)) == ("alone", None, ["answer"])
    apart = verdicts(score_table({"t": {"a": 0.5}, "u": {"b": 0.5}}))
    assert {(each["winner"], each["next_step"]) for each in apart} == {(None, None)}


def test_scores_over_fewer_folds_than_planned_weaken_the_verdict():
    found = verdict(steady(), partial={"a": {"t1": (2, 5)}, "b": {"t1": (1, 5)}})
    assert [text for text in found["weak"] if "2 of 5" in text]
    assert not [text for text in found["weak"] if "1 of 5" in text]


def test_findings_about_the_winner_count_and_those_about_others_do_not(tmp_path):
    scores = {f"t{t}": [0.9, 0.8] for t in range(6)}
    lower = {task: [0.5, 0.4] for task in scores}
    write_run(tmp_path, "a", {**scores, "t5": [0.9, None]}, command="karat run s -m a")
    write_run(tmp_path, "b", lower)
    write_run(tmp_path, "c", {**lower, "t0": [0.1, None]})
    found = verdict([tmp_path])
    (weak,) = [text for text in found["weak"] if "KRT402" in text]
    assert "a failed" in weak and "c " not in weak
    assert found["next_step"]["command"] == "karat run s -m a --resume --retry-failed"


def test_costs_of_the_winner_and_of_the_cheapest_in_the_top_group(tmp_path):
    scores = {f"t{t}": [0.9, 0.8] for t in range(6)}
    for name, seconds in (("a", 30.0), ("b", 2.0), ("c", 1.0)):
        record = {"train_seconds": seconds, "duration": seconds}
        values = {t: [v - 0.1 * "abc".index(name) for v in own] for t, own in scores.items()}
        write_run(tmp_path, name, values, record=record)
    board = leaderboard([tmp_path])
    board["seconds"], board["tie"] = [30.0, 2.0, 1.0], ["a", "a", "b"]
    (found,) = make_verdict(board, find_evidence([tmp_path]))
    assert "30.0 s" in text_of(found, "cost") and "2.0 s" in text_of(found, "cost")
    board["tie"] = ["a", "b", "c"]
    (found,) = make_verdict(board, find_evidence([tmp_path]))
    assert "1.0 s" not in text_of(found, "cost")  # the next one, not the cheapest of all


def test_robustness_leads_where_data_was_corrupted(tmp_path):
    def views(clean, corrupted):
        return [[make_view(acc=clean), make_view("noise", 0.5, acc=corrupted)] for _ in range(2)]

    own = {"a": (0.9, 0.45), "b": (0.8, 0.6), "dummy": (0.5, 0.5)}
    for name, (clean, corrupted) in own.items():
        write_run(tmp_path, name, {"t": views(clean, corrupted)})
    found = verdict([tmp_path])
    assert found["kind"] == "robustness" and whats(found)[:3] == ["answer", "corrupted", "clean"]
    # b keeps 0.6 / 0.8; dummy keeps everything, but knows nothing
    assert "75 %" in text_of(found, "answer") and text_of(found, "answer").startswith("b ")
    assert (found["winner"], found["next"]) == ("b", "a")
    assert "0.600" in text_of(found, "corrupted")


def test_groups_have_their_own_winner():
    tables = {f"t{t}": {"a": 0.9, "b": 0.8, "dummy": 0.1} for t in range(6)}
    texts = {f"u{t}": {"c": 0.9, "d": 0.8, "dummy": 0.1} for t in range(6)}
    found = verdicts(score_table({**tables, **texts}))
    assert [each["winner"] for each in found] == ["a", "c"]
    assert all("3 models, 6 tasks" in text_of(each, "basis") for each in found)
    starts = [f"{each['name']}: {each['winner']} " for each in found]
    lines = verdict_lines(found)
    assert all(each["name"] for each in found)
    assert [sum(line.startswith(start) for line in lines) for start in starts] == [1, 1]


def test_names_are_one_line_and_short():
    table = steady(models=["a\nb\x1b[1m" + "x" * 100, "b", "c"])
    assert all("\n" not in line and "\x1b" not in line for line in verdict_lines([verdict(table)]))
