"""Two models compared: pairing, tests, what is left out, and the conclusion."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import karat
from karat.analysis.all_pairs import compare_all
from karat.analysis.all_pairs_wording import all_pairs_table
from karat.analysis.checks import Facts
from karat.analysis.comparison import Comparison, compare, gain_interval
from karat.analysis.leaderboard import fold_ratios, leaderboard
from karat.analysis.pairing import pair
from karat.errors import DataError, DefinitionError
from karat.results.load import gather_scores
from karat.results.run import Run
from karat.stats.paired_tests import holm
from karat.stats.ranking import step_down

from ..score_data import score_table, write_run

COLUMNS = [
    *("task", "metric", "higher_is_better", "first", "second"),
    *("difference", "difference_low", "difference_high", "p", "p_holm", "better", "test", "why"),
    *("p_folds", "folds", "p_items", "items", "clusters", "claim"),
    *("gain", "relative", "p_better", "p_equal", "p_worse", "effect"),
    *("first_folds", "second_folds", "first_status", "second_status"),
]
#: instead of 80 and 20
OTHER_SIZES = {"train_questions": 70, "questions": 30}


def write_two(output: Path, first: dict, second: dict, **about) -> list[Run]:
    return [write_run(output, "one", first, **about), write_run(output, "other", second, **about)]


def row(found, task: str) -> pd.Series:
    return found.tasks.set_index("task").loc[task]


# -- one task -------------------------------------------------------------------------------


def test_a_task_by_hand(tmp_path):
    runs = write_two(tmp_path, {"t": [0.9, 0.8, 0.7, 0.9]}, {"t": [0.8, 0.8, 0.6, 0.6]})
    found = compare(runs, "one", "other")
    result = row(found, "t")
    apart = np.array([0.1, 0.0, 0.1, 0.3])
    # 80 rows teach and 20 test: the variance of the mean is 1/4 + 1/4 of that of the folds
    error = np.sqrt(apart.var(ddof=1) * (1 / 4 + 20 / 80))
    assert (result["first"], result["second"]) == pytest.approx((0.825, 0.7))
    assert result["difference"] == pytest.approx(0.125)
    p = 2 * stats.t.sf(0.125 / error, 3)
    assert (result["p"], result["p_holm"]) == pytest.approx((p, p))
    half = stats.t.ppf(0.975, 3) * error
    assert (result["difference_low"], result["difference_high"]) == pytest.approx(
        (0.125 - half, 0.125 + half)
    )
    assert result["p_better"] == pytest.approx(stats.t.sf((0.01 - 0.125) / error, 3))
    assert result["effect"] == pytest.approx(0.125 / apart.std(ddof=1))
    assert (result["folds"], result["test"], result["better"]) == (4, "corrected t", "")
    assert list(found.tasks.columns) == COLUMNS


def test_a_significant_difference(tmp_path):
    runs = write_two(tmp_path, {"t": [0.9, 0.8, 0.91, 0.8]}, {"t": [0.5, 0.4, 0.5, 0.41]})
    found = compare(runs, "other", "one")
    assert row(found, "t")["better"] == "one"
    assert found.sentence.startswith("one is better than other on t (acc -0.400")
    assert (found.overall.worse, found.overall.losses) == (1, 1)


def test_one_task_has_no_probabilities_and_effects_over_tasks(tmp_path):
    runs = write_two(tmp_path, {"t": [0.9, 0.8, 0.7, 0.9]}, {"t": [0.8, 0.8, 0.6, 0.6]})
    overall = compare(runs, "one", "other").to_dict()["overall"]
    over_tasks = ("p", "p_wilcoxon", "p_better", "p_equal", "p_worse")
    effects = ("rank_biserial", "superiority", "cohens_d")
    assert all(overall[name] is None for name in (*over_tasks, *effects))
    assert (overall["wins"], overall["gain"]) == (1, pytest.approx(0.125))
    # two tasks have them
    runs = write_two(tmp_path / "two", {"t": [0.9], "u": [0.7]}, {"t": [0.8], "u": [0.6]})
    overall = compare(runs, "one", "other").to_dict()["overall"]
    assert overall["p_better"] > 0 and overall["superiority"] == 1.0


def test_lower_is_better_and_counts_as_a_share(tmp_path):
    scores = {"rmse": [9.0, 9.0, 9.3]}, {"rmse": [11.0, 11.0, 10.7]}
    # a direction that the runs do not record is that of the registered metric
    runs = write_two(tmp_path, *scores, task={"higher_is_better": {}})
    result = row(compare(runs, "one", "other"), "rmse")
    assert result["difference"] == pytest.approx(-1.8)
    assert result["relative"] and result["gain"] == pytest.approx(1.8 / 10)
    assert result["p_better"] > 0.95


def test_one_fold_and_folds_without_spread_are_not_tested(tmp_path):
    first = {"one fold": [0.9], "flat": [0.75, 0.5], "same": [0.5, 0.6]}
    runs = write_two(tmp_path, first, {"one fold": [0.8], "flat": [0.5, 0.25], "same": [0.5, 0.6]})
    found = compare(runs, "one", "other")
    assert np.isnan(row(found, "one fold")["p"]) and np.isnan(row(found, "flat")["p"])
    assert (row(found, "same")["p"], row(found, "same")["gain"]) == (1.0, 0.0)
    assert (found.overall.untested, found.overall.not_significant, found.overall.ties) == (2, 1, 1)
    assert found.tasks["why"].tolist() == ["one fold", "no spread over folds", ""]
    assert sum(note.endswith(": one fold.") for note in found.notes) == 1


# -- over tasks -----------------------------------------------------------------------------


def many_tasks(output: Path, shift: float, tasks: int = 8) -> list[Run]:
    rng = np.random.default_rng(0)
    second = {f"t{i}": (0.7 + rng.normal(0, 0.02, 4)).tolist() for i in range(tasks)}
    first = {
        name: (np.array(values) + shift + rng.normal(0, 0.003, 4)).tolist()
        for name, values in second.items()
    }
    return write_two(output, first, second)


def test_the_test_over_tasks_is_that_of_the_letters_or_wilcoxons(tmp_path):
    runs = many_tasks(tmp_path, 0.05)
    found = compare(runs, "one", "other")
    gains = found.tasks["gain"].to_numpy()
    o = found.overall
    assert (gains > 0).all() and o.p == pytest.approx(2 / 2**8)
    assert o.p == step_down(np.array([[1.0] * 8, [2.0] * 8]))[0, 1]
    assert o.p_wilcoxon == pytest.approx(stats.wilcoxon(gains, method="exact").pvalue)
    other = compare(runs, "one", "other", test="wilcoxon").overall
    assert other.p == o.p_wilcoxon and other.test != o.test
    with pytest.raises(DefinitionError, match="max-t"):
        compare(runs, "one", "other", test="max-tt")
    assert (o.wins, o.ties, o.losses, o.tasks, o.of) == (8, 0, 0, 8, 8)
    assert (o.rank_biserial, o.superiority) == (1.0, 1.0)
    assert o.gain == pytest.approx(gains.mean()) and o.gain_low < o.gain < o.gain_high
    assert o.p_better > 0.95 and o.p_better + o.p_equal + o.p_worse == pytest.approx(1)
    assert found.tasks["p_holm"].to_numpy() == pytest.approx(holm(found.tasks["p"]))


@pytest.mark.parametrize(
    ("shift", "rope", "tasks", "words"),
    [
        (0.05, 0.01, 8, ["one is better than other", "8 tasks", "p 0.008", "0.01", "> 0.999"]),
        (-0.05, 0.01, 8, ["other is better than one", "p 0.008"]),
        (0.003, 0.05, 8, ["practically equal", "within 0.05"]),
        (
            0.0,
            0.0001,
            8,
            [
                "is not significant",
                "posterior probability",
                "that one is ahead by more than 0.0001",
            ],
        ),
        (-0.001, 0.0005, 8, ["do not differ"]),
        # a test over tasks needs six of them
        (0.05, 0.01, 3, ["over these 3 tasks", "one is better on", "at least 6"]),
        (0.0, 0.01, 3, ["over these 3 tasks", "no difference shown on", "at least 6"]),
    ],
)
def test_the_sentence(tmp_path, shift, rope, tasks, words):
    found = compare(many_tasks(tmp_path, shift, tasks), "one", "other", rope=rope)
    assert [word for word in words if word not in found.sentence] == []


def test_the_mean_over_two_to_five_tasks_is_that_of_the_leaderboard():
    scores = {
        "t0": {"one": [0.9, 0.8, 0.85, 0.9], "other": [0.7, 0.75, 0.7, 0.72]},
        "t1": ("rmse", {"one": [2.0, 2.1, 1.9, 2.2], "other": [2.1, 2.0, 2.0, 2.1]}),
        "t2": {"one": [0.5], "other": [0.4]},  # one fold is not tested
    }
    table = score_table(scores)
    found = compare(table, "one", "other")
    row = leaderboard(table).attrs["these_tasks"]["models"][1]
    numbers = [found.overall.gain, found.overall.gain_low, found.overall.gain_high]
    assert numbers == pytest.approx([-row["difference"], -row["high"], -row["low"]])
    assert found.overall.p == pytest.approx(row["p"]) and row["tested"] == 2
    assert found.overall.test == "t over these tasks, Bonferroni"
    for words in ("on average over these 2 tasks", "not tested on t2"):
        assert words in found.sentence
    assert "over these 2 tasks; t over these tasks" in repr(found)
    alone = compare(table[table["task"] == "t2"], "one", "other")
    assert np.isnan(alone.overall.p)


@pytest.mark.parametrize("tasks", [2, 3, 5, 6, 9])
def test_an_interval_of_a_task_contains_0_unless_a_model_is_better(tmp_path, tasks):
    rng, better = np.random.default_rng(tasks), 0
    for _ in range(15):
        lead = rng.normal(0, 0.03, tasks)
        scores = {
            f"t{t}": {
                "a": 0.7 + lead[t] + rng.normal(0, 0.02, 5),
                "b": 0.7 + rng.normal(0, 0.02, 5),
            }
            for t in range(tasks)
        }
        table = score_table(scores)
        rows = compare(table, "a", "b").tasks
        apart = (rows["difference_low"] > 0) | (rows["difference_high"] < 0)
        assert (apart == (rows["better"] != "")).all()
        better += int(apart.sum())
        if tasks > 5:
            continue
        # with fewer than six tasks, the leaderboard of the two says the same of every task
        these = karat.leaderboard(table).attrs["these_tasks"]
        on_board = {
            on["task"]: (on["p"], on["verdict"]) for row in these["models"] for on in row["by_task"]
        }
        for row in rows.itertuples():
            p, said = on_board[row.task]
            assert row.p_holm == pytest.approx(p, rel=1e-3)  # of scores with six digits
            assert (said == "open") == (row.better == "")
    assert better


def test_a_note_says_that_other_models_are_left_out_of_the_correction(tmp_path):
    scores = {"t": {"a": [0.9, 0.8], "b": [0.7, 0.75], "c": [0.1, 0.2]}}
    table = score_table(scores)
    assert any("these two models alone" in note for note in compare(table, "a", "b").notes)
    pair = table[table["model"] != "c"]
    assert not any("alone" in note for note in compare(pair, "a", "b").notes)
    runs = write_two(tmp_path, {"t": [0.9, 0.8]}, {"t": [0.7, 0.75]})
    assert not any("alone" in note for note in compare(runs, "one", "other").notes)


def test_swapping_sides_mirrors_everything(tmp_path):
    first = {"a": [0.9, 0.8], "rmse": [3.0, 4.0], "b": [0.5, 0.7], "c": [0.61, 0.6]}
    second = {"a": [0.7, 0.75], "rmse": [4.0, 4.5], "b": [0.6, 0.7], "c": [0.6, 0.6]}
    runs = write_two(tmp_path, first, second)
    one, other = compare(runs, "one", "other"), compare(runs, "other", "one")
    assert one.tasks[["folds", "better"]].equals(other.tasks[["folds", "better"]])
    for name in ("p", "p_holm", "p_equal"):
        assert one.tasks[name].to_numpy() == pytest.approx(other.tasks[name].to_numpy())
    for name in ("gain", "difference", "effect"):
        assert one.tasks[name].to_numpy() == pytest.approx(-other.tasks[name].to_numpy())
    for name, mirror in (
        *(("p_better", "p_worse"), ("difference_low", "difference_high")),
        ("first", "second"),
    ):
        sign = -1 if name == "difference_low" else 1
        assert one.tasks[name].to_numpy() == pytest.approx(sign * other.tasks[mirror].to_numpy())
    mine, theirs = vars(one.overall), vars(other.overall)
    for name, mirror in (("wins", "losses"), ("better", "worse"), ("ties", "ties")):
        assert mine[name] == theirs[mirror]
    assert mine["p_wilcoxon"] == theirs["p_wilcoxon"]
    assert mine["p"] == theirs["p"] < 1
    assert mine["gain_low"] == pytest.approx(-theirs["gain_high"])
    assert mine["p_better"] == pytest.approx(theirs["p_worse"], abs=1e-3)
    for name in ("gain", "rank_biserial", "cohens_d"):
        assert mine[name] == pytest.approx(-theirs[name])
    assert (mine["gain_low"], mine["gain_high"]) == pytest.approx(
        (-theirs["gain_high"], -theirs["gain_low"])
    )
    assert mine["superiority"] == pytest.approx(1 - theirs["superiority"])


def test_a_model_with_the_same_scores(tmp_path):
    scores = {f"t{i}": [0.5, 0.6, 0.7] for i in range(7)}
    found = compare(write_two(tmp_path, scores, scores), "one", "other")
    assert found.tasks["p"].tolist() == [1.0] * 7 and found.overall.p == 1.0
    assert (found.overall.ties, found.overall.p_equal) == (7, 1.0)
    assert "practically equal" in found.sentence


@pytest.mark.parametrize("tasks", [2, 3, 5, 10, 50])
def test_the_interval_of_the_mean_gain_covers_it(tasks):
    rng = np.random.default_rng(tasks)
    ends = np.array([gain_interval(0.02 + 0.05 * rng.normal(size=tasks)) for _ in range(2000)])
    covered = ((ends[:, 0] <= 0.02) & (ends[:, 1] >= 0.02)).mean()
    assert 0.94 <= covered <= 0.96
    gain = rng.random(tasks)
    expected = stats.t.interval(0.95, tasks - 1, gain.mean(), stats.sem(gain))
    assert gain_interval(gain) == pytest.approx(expected)


def tasks_with(output: Path, gains: list[float], **options) -> Comparison:
    """Return a comparison of tasks with these gains in every fold, up to a small noise."""
    rng = np.random.default_rng(0)
    second = {f"t{i}": 0.6 + rng.normal(0, 0.02, 4) for i in range(len(gains))}
    noise = rng.normal(0, 1e-4, (len(gains), 4))
    pairs = zip(second.items(), gains, noise, strict=True)
    first = {name: (values + gain + own).tolist() for (name, values), gain, own in pairs}
    second = {name: values.tolist() for name, values in second.items()}
    return compare(write_two(output, first, second), "one", "other", **options)


def test_tasks_beyond_the_margin_are_not_practically_equal(tmp_path):
    # half of the tasks gain 0.02 and half lose it: the mean is near 0, the tasks are not
    apart = tasks_with(tmp_path / "apart", [0.02, -0.02] * 20 + [0.0, 0.0])
    assert apart.overall.p_equal > 0.95 and apart.overall.within == pytest.approx(2 / 42)
    assert "practically equal" not in apart.sentence and "2 of 42 tasks" in apart.sentence
    close = tasks_with(tmp_path / "close", [0.004, -0.004] * 10 + [0.02])
    assert close.overall.within == pytest.approx(20 / 21)
    assert "practically equal" in close.sentence and "20 of 21 tasks" in close.sentence


def test_more_wins_with_a_mean_loss_are_pointed_out(tmp_path):
    found = tasks_with(tmp_path, [0.01] * 6 + [-0.2] * 2)
    assert found.overall.wins == 6 and found.overall.gain < 0
    assert "one wins more tasks (6 of 8)" in found.sentence and "favors other" in found.sentence
    turned = tasks_with(tmp_path / "turned", [0.01] * 6 + [0.2] * 2)
    assert "favors" not in turned.sentence


# -- what is paired with what ---------------------------------------------------------------


def test_only_folds_that_both_have(tmp_path):
    runs = write_two(tmp_path, {"t": [0.9, None, 0.7, 0.5]}, {"t": [0.8, 0.1, 0.5]})
    found = compare(runs, "one", "other")
    result = row(found, "t")
    assert (result["first"], result["second"], result["folds"]) == (pytest.approx(0.8), 0.65, 2)
    assert (result["first_folds"], result["second_folds"]) == (3, 3)
    assert "Left out, one has no score in 1 of 3 folds: t." in found.notes
    assert "Left out, other has no score in 1 of 3 folds: t." in found.notes


def test_notes_list_what_cannot_be_paired(tmp_path):
    good = [0.9, 0.8]
    first = {"both": good, "failed": good, "declined": good, "gone": good, "neither": "declined"}
    second = {"both": good, "failed": [None, None], "declined": "declined", "neither": "declined"}
    found = compare(write_two(tmp_path, first, {**second, "new": good}), "one", "other")
    states = found.tasks.set_index("task")["second_status"].to_dict()
    assert states["failed"] == "failed" and states["declined"] == "declined"
    assert states["gone"] == "not run" and row(found, "new")["first_status"] == "not run"
    assert row(found, "gone")["first"] == pytest.approx(0.85), "its own value is still shown"
    assert (found.overall.tasks, found.overall.of) == (1, 5)
    assert "Not compared, other failed: failed." in found.notes
    assert "Not compared, other not run: gone." in found.notes
    assert "Not compared, one not run: new." in found.notes
    assert "Not compared, both declined: neither." in found.notes
    nothing = compare(write_two(tmp_path / "n", {"t": good}, {"t": [None]}), "one", "other")
    assert nothing.overall.tasks == 0 and np.isnan(nothing.overall.p)


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"seed": 7}, "another seed"),
        ({"task": {"fingerprint": "9"}}, "other data"),
        ({"record": OTHER_SIZES}, "folds"),
    ],
)
def test_different_folds_are_not_paired(tmp_path, about, why):
    runs = [
        write_run(tmp_path, "one", {"t": [0.9, 0.8]}),
        write_run(tmp_path, "other", {"t": [0.7, 0.6]}, **about),
    ]
    found = compare(runs, "one", "other")
    assert row(found, "t")["folds"] == 0 and why in row(found, "t")["second_status"]
    assert row(found, "t")["second"] == pytest.approx(0.65), "its own value is still shown"


def test_of_several_runs_the_newest_that_fits_counts(tmp_path):
    old = write_run(tmp_path, "one", {"t": [0.1, 0.2], "old": [0.5, 0.6]}, stamp="20250101T000000")
    write_run(tmp_path, "one", {"t": [0.8, 0.9]}, stamp="20260101T000000")
    write_run(tmp_path, "one", {"t": [0.3, 0.3]}, stamp="20270101T000000", seed=1)
    write_run(tmp_path, "other", {"t": [0.7, 0.7], "old": [0.5, 0.5]})
    found = compare(tmp_path, "one", "other")
    assert row(found, "t")["first"] == pytest.approx(0.85), "the newest has another seed"
    assert row(found, "old")["first"] == pytest.approx(0.55)
    assert any("one has 3 runs" in note for note in found.notes)
    named = compare(tmp_path, old.folder, "other")
    assert row(named, "t")["first"] == pytest.approx(0.15)
    by_name = compare(tmp_path, old.folder.name, "other")
    assert row(by_name, "t")["first"] == pytest.approx(0.15)


def test_folders_of_runs_stand_for_their_model(tmp_path):
    for name, value in (("old", 0.5), ("new", 0.6)):
        write_run(tmp_path / name, "m", {"a": [value, 0.1]}, stamp="20250101T000000")
        write_run(tmp_path / name, "m", {"b": [value, 0.2]}, stamp="20260101T000000")
    found = compare([], tmp_path / "new", tmp_path / "old")
    assert found.tasks["difference"].to_numpy() == pytest.approx([0.05, 0.05])
    write_run(tmp_path / "old", "n", {"a": [0.1]})
    with pytest.raises(DefinitionError, match="2 models"):
        compare([], tmp_path / "new", tmp_path / "old")


def test_a_string_among_runs_is_a_name_and_no_folder(tmp_path):
    """Names may come from untrusted users, so they are not looked up on the disk."""
    runs = write_two(tmp_path / "runs", {"t": [0.9, 0.8]}, {"t": [0.7, 0.6]})
    secret = write_run(tmp_path / "elsewhere", "secret", {"t": [0.1, 0.2]})
    for name in (
        str(secret.folder),
        str(secret.folder.parent),
        f"{runs[0].folder}/../../elsewhere",
    ):
        with pytest.raises(DefinitionError, match="the runs have no model"):
            compare(runs, "one", name)
    assert compare(runs, "one", secret.folder).second == "secret"
    assert compare(runs[0].folder.parent, "one", str(secret.folder)).second == "secret"


def test_damaged_records_are_left_out_or_an_error(tmp_path):
    write_two(tmp_path, {"t": [0.9, 0.8]}, {"t": [0.7, 0.6]})
    bad = write_run(tmp_path, "other", {"t": [0.1, 0.1]}, stamp="20270101T000000")
    for path in (bad.folder / "jobs").iterdir():
        path.write_text(json.dumps({**json.loads(path.read_text()), "views": [{"scores": {}}]}))
    found = compare(tmp_path, "one", "other")
    assert row(found, "t")["second"] == pytest.approx(0.65)
    assert any("damaged record" in note for note in found.notes)
    with pytest.raises(DataError, match="damaged record"):
        compare(tmp_path, "one", bad.folder)


def test_wrong_input_raises(tmp_path):
    runs = write_two(tmp_path, {"t": [0.9, 0.8]}, {"t": [0.7, 0.6]})
    for arguments, how, error, message in [
        (("on", "other"), {}, DefinitionError, 'no model "on". Did you mean "one"'),
        (("one", "one"), {}, DefinitionError, "same run"),
        (("one", "other"), {"metric": "ac"}, DefinitionError, 'metric "ac". Did you mean "acc"'),
        (("one", "other"), {"rope": -1}, DefinitionError, "rope"),
        (("one", "other"), {"on": "row"}, DefinitionError, 'Did you mean "rows"'),
    ]:
        with pytest.raises(error) as caught:
            compare(runs, *arguments, **how)
        assert message in str(caught.value)
    with pytest.raises(DataError, match='"x".*nowhere'):
        compare(tmp_path / "nowhere", "x", "y")
    with pytest.raises(DataError, match="gone"):
        compare(tmp_path, "one", f"{tmp_path}/gone")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{}")
    found = compare(tmp_path, "one", "other")
    assert any(note.startswith("broken is left out: ") for note in found.notes)


# -- from a table ---------------------------------------------------------------------------


def scores_of(model: str, rng: np.random.Generator) -> np.ndarray:
    """Return the scores of ten folds, those of "one" higher."""
    return 0.7 + 0.1 * (model == "one") + rng.normal(0, 0.01, 10)


def twice(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of folds as repeats of five folds."""
    return table.assign(repeat=table["fold"] // 5, fold=table["fold"] % 5)


def test_a_table_of_scores():
    rng = np.random.default_rng(0)
    models = ("one", "other", "third")
    table = twice(score_table({t: {m: scores_of(m, rng) for m in models} for t in "ab"}))
    found = compare(table, "one", "other")
    part = table[table["task"] == "a"].pivot(
        index=["repeat", "fold"], columns="model", values="value"
    )
    apart = (part["one"] - part["other"]).to_numpy()
    # five folds a repeat: one part tests, four teach
    error = np.sqrt(apart.var(ddof=1) * (1 / 10 + 1 / 4))
    assert row(found, "a")["p"] == pytest.approx(2 * stats.t.sf(apart.mean() / error, 9))
    assert row(found, "a")["folds"] == 10
    for arguments, options, message in (
        (("one", "two"), {}, 'the table has no model "two"'),
        (("one", "other"), {"on": "rows"}, "rows"),
        (("one", "one"), {}, "two models"),
        (("one", "other"), {"metric": "auc"}, 'no task has the metric "auc"'),
    ):
        with pytest.raises(DefinitionError, match=message):
            compare(table, *arguments, **options)


def test_folds_of_scikit_learn():
    """Two classifiers on ten repeats of five folds, with the test of scikit-learn's own example."""
    from sklearn.datasets import load_iris
    from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    X, y = load_iris(return_X_y=True)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=10, random_state=0)
    models = {"knn": KNeighborsClassifier(), "bayes": GaussianNB()}
    found = {name: cross_val_score(model, X, y, cv=folds) for name, model in models.items()}
    result = row(compare(twice(score_table({"iris": found})), "knn", "bayes"), "iris")
    train, test = next(iter(folds.split(X, y)))
    apart = found["knn"] - found["bayes"]
    error = np.sqrt(np.var(apart, ddof=1) * (1 / 50 + len(test) / len(train)))
    assert result["p"] == pytest.approx(2 * stats.t.sf(abs(apart.mean() / error), 49))
    assert result["p"] > 0.05 > stats.ttest_rel(found["knn"], found["bayes"]).pvalue


def test_an_unregistered_metric(tmp_path):
    runs = write_two(tmp_path, {"t": [30.0, 40.0]}, {"t": [20.0, 30.0]}, task={"metrics": ["own"]})
    result = row(compare(runs, "one", "other"), "t")
    assert result["relative"] and result["gain"] == pytest.approx(10 / 30)


# -- on stored predictions, and from the package --------------------------------------------


@pytest.fixture(scope="module")
def answered(tmp_path_factory) -> list[Run]:
    """Two models on 40 questions: the vectors of "right" mislead on 4, those of "wrong" on 14."""
    names = [f"q{i}" for i in range(40)]
    frame = pd.DataFrame({"item": names, "y": ["a", "b"] * 20})
    data = karat.Dataset.from_columns(frame, ["item"], "y", name="forty", modality="entity")
    task = karat.Task("forty", data, split="holdout", metrics=["acc", "auc"])
    models = {}
    for name, missed in {"right": 4, "wrong": 14}.items():
        rng = np.random.default_rng(0)
        signs = [(-1) ** i * (-1 if i % 20 < missed // 2 else 1) for i in range(40)]
        models[name] = {q: [s, rng.normal(0, 0.01)] for q, s in zip(names, signs, strict=True)}
    return karat.evaluate(models, task, output=tmp_path_factory.mktemp("answered"))


def test_stored_answers_are_tested(answered):
    found = compare(answered, "right", "wrong", on="rows")
    result = row(found, "forty")
    answers = [run.predictions("forty") for run in answered]
    right = [each.predictions == each.target for each in answers]
    only = (right[0] & ~right[1]).sum(), (right[1] & ~right[0]).sum()
    assert only[0] > 0 and result["test"] == "McNemar"
    assert result["p"] == pytest.approx(stats.binomtest(int(only[0]), int(sum(only))).pvalue)
    assert result["difference_low"] <= result["difference"] <= result["difference_high"]
    assert not np.isnan(result["difference_low"])
    areas = row(compare(answered, "right", "wrong", metric="auc", on="rows"), "forty")
    assert areas["test"] == "paired bootstrap" and 0 < areas["p"] <= 1
    again = row(compare(answered, "right", "wrong", metric="auc", on="rows"), "forty")
    assert again.equals(areas), "the same seed, the same numbers"
    turned = row(compare(answered, "wrong", "right", metric="auc", on="rows"), "forty")
    assert turned["difference_low"] == pytest.approx(-areas["difference_high"])


def test_one_task_is_tested_on_its_items_by_default(answered):
    found = compare(answered, "right", "wrong")
    result, rows = row(found, "forty"), row(compare(answered, "right", "wrong", on="rows"), "forty")
    assert (result["test"], result["folds"], result["why"]) == ("McNemar", 1, "")
    assert result["p"] == result["p_items"] == rows["p"] and np.isnan(result["p_folds"])
    assert result["items"] == len(answered[0].predictions("forty"))
    assert found.overall.untested == 0 and any("fitted" in note for note in found.notes)
    assert "on forty, as fitted (" in found.sentence


def test_one_fit_is_as_fitted_in_all_pairs_too(answered):
    found = karat.compare_all(answered)
    assert found.to_dict()["claim"] == "as fitted"
    assert "1 pairs differ significantly, as fitted (" in found.sentence
    shown = all_pairs_table(found)
    assert "tie, as fitted" in [column.name for column in shown.columns]
    assert any("--seeds 3" in note for note in shown.notes)


def test_one_fold_without_predictions_is_not_tested(tmp_path):
    found = compare(write_two(tmp_path, {"t": [0.896]}, {"t": [0.5]}), "one", "other")
    assert row(found, "t")["why"] == "one fold" and found.overall.untested == 1
    assert "not tested" in found.sentence and "one fold" in found.sentence
    assert "do not differ" not in found.sentence
    plain = found.to_dict()
    assert plain["tasks"][0]["why"] == "one fold" and plain["tasks"][0]["p"] is None
    several = {"t": [0.9], "u": [0.8]}, {"t": [0.5], "u": [0.5]}
    found = compare(write_two(tmp_path / "two", *several), "one", "other")
    assert "not tested on any of 2 tasks: one fold" in found.sentence


def test_runs_without_predictions_are_tested_on_folds(tmp_path):
    runs = write_two(tmp_path, {"t": [0.9, 0.8]}, {"t": [0.7, 0.7]})
    found = compare(runs, "one", "other", on="rows")
    assert any("t: not tested on its items" in note for note in found.notes)
    assert row(found, "t")["test"] == "corrected t"


def test_two_models_have_the_same_test_in_a_comparison_and_on_their_leaderboard():
    rng = np.random.default_rng(3)
    scores = {f"t{i}": {"a": v + 0.3, "b": w} for i, (v, w) in enumerate(rng.random((12, 2)))}
    rows = score_table(scores)
    p = compare(rows, "a", "b").overall.p
    assert p == compare_all(rows).pairs["p"].iloc[0]
    ties = leaderboard(rows)["tie"]
    assert (ties["a"] != ties["b"]) == (p < 0.05)


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


def test_what_is_not_significant_is_never_called_better():
    # one wins 7 of 8 tasks by much, and loses one by little: p of the signs is above 0.05
    gains = [0.2, 0.3, 0.2, 0.3, 0.2, 0.3, 0.2, -0.01]
    scores = {f"t{i}": {"one": 0.5 + gain, "other": 0.5} for i, gain in enumerate(gains)}
    found = compare(score_table(scores), "one", "other", rope=0.0001)
    assert found.overall.p > 0.05 and found.overall.p_better > 0.95
    assert "better" not in found.sentence and "not significant" in found.sentence


def test_a_comparison_on_one_task_has_no_test_over_tasks():
    found = compare(score_table({"t": {"a": [0.9, 0.8, 0.85], "b": [0.5, 0.6, 0.4]}}), "a", "b")
    overall = found.to_dict()["overall"]
    assert overall["p"] is None and overall["p_wilcoxon"] is None
    assert "nan" not in repr(found).lower()
