"""What corruption costs, worked out by hand, for scores and for errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.analysis import robustness as module
from karat.analysis.robustness import SUMMARIES, curves, robustness
from karat.errors import DataError, DefinitionError
from karat.results.tables import SCORE_COLUMNS

from ..score_data import make_view, write_run

#: (corruption, severity): score
ADA = {("", 0): 0.9, ("noise", 0.1): 0.8, ("noise", 0.3): 0.6, ("gaps", 0.2): 0.7}
BEN = {("", 0): 0.8, ("noise", 0.1): 0.6, ("noise", 0.3): 0.4, ("gaps", 0.2): 0.7}


def table(*rows: tuple, task: str = "t", metric: str = "auc", **more) -> pd.DataFrame:
    """Return scores of (model, {(corruption, severity): value}) in one fold and draw, or others."""
    made = [
        {
            **dict(task=task, model=model, repeat=0, fold=0, draw=0, epoch=-1, metric=metric),
            **dict(corruption=corruption, severity=float(severity), value=value),
            **more,
        }
        for model, scores in rows
        for (corruption, severity), value in scores.items()
    ]
    return pd.DataFrame(made)[list(SCORE_COLUMNS)]


def both(**more) -> pd.DataFrame:
    return table(("ada", ADA), ("ben", BEN), **more)


def row(found: pd.DataFrame, model: str) -> pd.Series:
    return found.set_index("model").loc[model]


# -- numbers --------------------------------------------------------------------------------


def test_where_higher_is_better():
    found = robustness(both(), baseline="ben")
    ada, ben = row(found, "ada"), row(found, "ben")
    # mean errors of ada .3 and .3, of ben .5 and .3; mean losses .2 and .2, of ben .3 and .1
    wanted = {"clean": 0.9, "corrupted": 0.7, "mce": 0.6 / 0.8, "relative_mce": 0.4 / 0.4}
    wanted |= {"retention": 7 / 9, "area": (0.75 + 0.8) / 2, "worst": 0.6}
    assert ada[list(wanted)].tolist() == pytest.approx(list(wanted.values()))
    wanted = {"clean": 0.8, "corrupted": 0.6, "mce": 1, "relative_mce": 1, "retention": 0.75}
    wanted |= {"area": (0.17 / 0.3 + 0.75) / 2, "worst": 0.4}
    assert ben[list(wanted)].tolist() == pytest.approx(list(wanted.values()))
    assert found["worst_view"].tolist() == ["noise@0.3", "noise@0.3"]
    assert found["model"].tolist() == ["ada", "ben"], "the better first"
    assert found["corruptions"].tolist() == [2, 2] and found["higher_is_better"].all()


def test_where_lower_is_better():
    ada = {("", 0): 2, ("noise", 0.1): 3, ("noise", 0.3): 5, ("gaps", 0.2): 4}
    ben = {("", 0): 4, ("noise", 0.1): 5, ("noise", 0.3): 7, ("gaps", 0.2): 5}
    found = robustness(table(("ben", ben), ("ada", ada), metric="rmse"), baseline="ben")
    # mean errors 4 and 4, of ben 6 and 5; mean losses 2 and 2, of ben 2 and 1
    wanted = {"clean": 2, "corrupted": 4, "mce": 8 / 11, "relative_mce": 4 / 3}
    wanted |= {"retention": ((2 / 3 + 2 / 5) / 2 + 1 / 2) / 2, "area": (3.5 + 3) / 2, "worst": 5}
    assert row(found, "ada")[list(wanted)].tolist() == pytest.approx(list(wanted.values()))
    assert found["model"].tolist() == ["ada", "ben"], "the smaller error first"
    assert not found["higher_is_better"].any()


def test_each_corruption_by_itself():
    found = robustness(both(), baseline="ben", by_corruption=True)
    pairs = [("noise", "ada"), ("noise", "ben"), ("gaps", "ada"), ("gaps", "ben")]
    assert list(zip(found["corruption"], found["model"], strict=True)) == pairs
    assert found["ce"].tolist() == pytest.approx([0.6, 1, 1, 1])
    assert found["relative_ce"].tolist() == pytest.approx([2 / 3, 1, 2, 1])
    assert found["corrupted"].tolist() == pytest.approx([0.7, 0.5, 0.7, 0.7])
    assert found["area"].tolist() == pytest.approx([0.75, 0.17 / 0.3, 0.8, 0.75])
    assert "mce" not in found and "ce_low" in found


def test_a_baseline_that_loses_nothing_gives_no_ratio():
    still = {("", 0): 0.8, ("noise", 0.1): 0.8, ("noise", 0.3): 0.8, ("gaps", 0.2): 0.7}
    found = robustness(table(("ada", ADA), ("still", still)), baseline="still")
    # only gaps can be compared: .2 over .1
    assert row(found, "ada")["relative_mce"] == pytest.approx(2.0)
    assert found["relative_corruptions"].tolist() == [1, 1]
    (note,) = found.attrs["notes"]
    assert "noise" in note and "still" in note
    perfect = {key: 1.0 for key in ADA}
    found = robustness(table(("ada", ADA), ("perfect", perfect)), baseline="perfect")
    assert found[["mce", "relative_mce"]].isna().all(axis=None)


def test_no_retention_of_a_clean_score_of_0():
    zero = ("a", {("", 0): 0.0, ("noise", 0.1): 0.5})
    assert robustness(table(zero))["retention"].isna().all()
    assert robustness(table(zero, metric="rmse"))["retention"].tolist() == [0.0]


def test_a_corruption_under_which_the_baseline_gains_is_not_counted():
    gains = {**BEN, ("gaps", 0.2): 0.85}
    found = robustness(table(("ada", ADA), ("gains", gains)), baseline="gains")
    # noise alone: losses .2 over .3; errors of both: .3 + .3 over .5 + .15
    assert row(found, "ada")["relative_mce"] == pytest.approx(2 / 3)
    assert row(found, "ada")["mce"] == pytest.approx(0.6 / 0.65)
    assert found["relative_corruptions"].tolist() == [1, 1] and (found["corruptions"] == 2).all()
    assert found["relative_without"].tolist() == ["gaps", "gaps"]  # named, also in CSV and JSON
    whole = robustness(table(("ada", ADA), ("ben", BEN)), baseline="ben")
    assert whole["relative_without"].tolist() == ["", ""]
    assert "relative_without" not in robustness(table(("ada", ADA), ("ben", BEN)))


def test_no_relative_ratio_if_the_loss_of_the_baseline_is_within_its_error():
    parts = []
    for fold, loss in enumerate([-0.02, 0.02, -0.01, 0.0101]):
        ben = {("", 0): 0.8, ("noise", 0.1): 0.8 - loss}
        parts.append(table(("ada", {("", 0): 0.9, ("noise", 0.1): 0.7}), ("ben", ben), fold=fold))
    found = robustness(pd.concat(parts), baseline="ben")
    assert found["relative_mce"].isna().all() and found["mce"].notna().all()
    assert found["relative_corruptions"].tolist() == [0, 0]
    assert any("within its error" in note for note in found.attrs["notes"])


def test_no_retention_of_scores_that_can_be_negative():
    drop = ("a", {("", 0): -0.1, ("noise", 0.1): -0.75})
    found = robustness(table(drop, metric="r2"))
    assert found["retention"].isna().all() and found["corrupted"].notna().all()
    assert any("retention" in note for note in found.attrs["notes"])
    assert robustness(both()).attrs["notes"] == []


def test_scores_in_percent_have_the_same_ratios():
    shares = robustness(both(), baseline="ben")
    percent = robustness(both().assign(value=both()["value"] * 100), baseline="ben")
    for name in ("mce", "relative_mce", "retention"):
        assert percent[name].tolist() == pytest.approx(shares[name].tolist())
    assert any("percent" in note for note in percent.attrs["notes"])
    beyond = robustness(both().assign(value=both()["value"] * 1000), baseline="ben")
    assert beyond["mce"].isna().all() and any("no mCE" in each for each in beyond.attrs["notes"])


# -- folds, draws and what is missing ---------------------------------------------------------


def test_means_go_over_folds_and_draws_first():
    parts = [table(("a", {("", 0): v}), fold=fold) for fold, v in enumerate([0.9, 0.7])]
    seen = {(0, 0): 0.8, (0, 1): 0.6, (1, 0): 0.5, (1, 1): 0.1}
    parts += [table(("a", {("noise", 0.1): v}), fold=f, draw=d) for (f, d), v in seen.items()]
    found = row(robustness(pd.concat(parts)), "a")
    assert found["clean"] == pytest.approx(0.8)
    assert found["corrupted"] == pytest.approx(0.5)
    assert found["retention"] == pytest.approx(0.5 / 0.8)


def test_a_corruption_that_a_model_has_not_seen_is_left_out_for_all():
    cy = {key: value for key, value in ADA.items() if key[0] != "noise"}
    found = robustness(table(("ada", ADA), ("cy", cy)), baseline="ada")
    assert found["corrupted"].tolist() == pytest.approx([0.7, 0.7])
    assert found["area"].tolist() == pytest.approx([0.8, 0.8]), "gaps alone"
    assert found["mce"].tolist() == pytest.approx([1.0, 1.0])
    assert found["corruptions"].tolist() == [1, 1]
    (note,) = found.attrs["notes"]
    assert "noise" in note and "cy" in note
    each = robustness(table(("ada", ADA), ("cy", cy)), by_corruption=True)
    assert sorted(each["corruption"]) == ["gaps", "gaps", "noise", "noise"]


def test_models_without_a_common_corruption_keep_their_own():
    cy = {key: value for key, value in ADA.items() if key[0] != "noise"}
    di = {key: value for key, value in ADA.items() if key[0] != "gaps"}
    found = robustness(table(("cy", cy), ("di", di)))
    assert found["corruptions"].tolist() == [1, 1] and found["corrupted"].notna().all()
    assert any("no corruption is common" in note for note in found.attrs["notes"])


def test_an_incomplete_corruption_is_left_out():
    # the mildest severity alone would make a model look robust
    cy = {key: value for key, value in ADA.items() if key != ("noise", 0.3)}
    cy = row(robustness(table(("ada", ADA), ("cy", cy)), baseline="ada"), "cy")
    assert cy["corrupted"] == pytest.approx(0.7), "gaps alone"
    assert cy["retention"] == pytest.approx(7 / 9) and cy["area"] == pytest.approx(0.8)
    assert cy["corruptions"] == 1 and cy["worst_view"] == "gaps@0.2"


def test_a_model_without_any_corrupted_score_has_empty_numbers():
    found = robustness(table(("ada", ADA), ("none", {("", 0): 0.5})))
    none = row(found, "none")
    assert none["clean"] == 0.5 and none["corruptions"] == 0 and none["worst_view"] == ""
    assert none[["corrupted", "retention", "area", "worst"]].isna().all()
    assert found["model"].tolist() == ["ada", "none"]


NOBODY = {("noise", 0.5): np.nan}
PAIR = {("gaps+noise", 0.2): 0.5, ("gaps@0.2+noise@0.1", 1.0): 0.4}


@pytest.mark.parametrize(
    "other",
    [
        both().sample(frac=1, random_state=3),  # another order of severities and rows
        pd.concat([both(), both(epoch=1).assign(value=0.0)]),  # scores of epochs
        pd.concat([both(), table(("ada", NOBODY), ("ben", NOBODY))]),  # a view without any score
        pd.concat([both(), table(("ada", {("noise", 0): 0.9}))]),  # severity 0
        pd.concat([both(), table(("ada", PAIR), ("ben", PAIR))]),  # compositions
        both().drop(columns="draw"),
        both().assign(corruption=both()["corruption"].replace("", np.nan)),  # as read from CSV
    ],
)
def test_what_does_not_matter(other):
    first = robustness(both(), baseline="ben").set_index("model")
    found = robustness(other, baseline="ben").set_index("model").loc[first.index]
    pd.testing.assert_frame_equal(first, found)


@pytest.mark.parametrize(
    "scores, options, error, message",
    [
        (table(("a", {("", 0): 0.9, ("noise", 0): 0.9})), {}, DataError, "corrupted view"),
        (both(), {"compositions": True}, DataError, "composed"),
        (table(("a", {("", 0): 1, ("gaps+noise", 0.2): 0.5})), {}, DataError, "single"),
        (both(), {"metric": "acu"}, DataError, '"acu".*"auc"'),
        (both(), {"metric": "zzz"}, DataError, "There are: auc"),
        (both(), {"baseline": "adda"}, DataError, '"adda".*"ada"'),
        (both(), {"baseline": "zzz"}, DataError, "There are: ada, ben"),
        (both().drop(columns="severity"), {}, DataError, "severity"),
        (both(metric="own"), {}, DefinitionError, 'no metric "own"'),
    ],
)
def test_errors(scores, options, error, message):
    with pytest.raises(error, match=message):
        robustness(scores, **options)


# -- compositions, tasks, metrics, baselines --------------------------------------------------


def test_compositions_are_separate():
    found = robustness(table(("ada", ADA | PAIR), ("ben", BEN | PAIR)), compositions=True)
    composed = row(found, "ada")
    assert composed["corrupted"] == pytest.approx(0.45) and composed["corruptions"] == 2
    assert composed["worst_view"] == "gaps@0.2+noise@0.1"


def test_tasks_have_their_own_metric_and_those_without_corruption_are_left_out():
    numbers = table(("ada", {("", 0): 2, ("noise", 0.1): 4}), task="numbers", metric="rmse")
    clean = table(("ada", {("", 0): 2}), task="plain", metric="rmse")
    found = robustness(pd.concat([both(), numbers, clean]))
    assert found.groupby("task")["metric"].unique().to_dict() == {"t": "auc", "numbers": "rmse"}
    assert found["retention"].iloc[-1] == 0.5
    assert found[["mce", "relative_mce"]].isna().all(axis=None), "without a baseline"


def test_another_metric():
    found = robustness(pd.concat([both(), both(metric="brier")]), metric="brier")
    assert set(found["metric"]) == {"brier"} and not found["higher_is_better"].any()


def test_of_several_baselines_each_task_takes_the_first_it_has():
    other = table(("cy", ADA), ("di", BEN), task="u")
    found = robustness(pd.concat([both(), other]), baseline=["zzz", "ben", "di", "cy"])
    mce = found.set_index("model")["mce"].to_dict()
    assert mce == pytest.approx({"ada": 0.75, "ben": 1.0, "cy": 0.75, "di": 1.0})
    found = robustness(pd.concat([both(), other]), baseline="ben")
    assert found.set_index("task")["mce"].notna().to_dict() == {"t": True, "u": False}


# -- intervals --------------------------------------------------------------------------------


def folds_and_draws(folds: int, draws: int, seed: int = 0, models: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    names = [f"m{i}" for i in range(models)]
    views = [(c, s) for c in ("noise", "gaps") for s in (0.1, 0.4)]
    parts = []
    for fold in range(folds):
        parts.append(table(*((m, {("", 0): 0.9 + 0.02 * rng.normal()}) for m in names), fold=fold))
        for draw in range(draws):
            seen = [{(c, s): 0.8 - s / 4 + 0.05 * rng.normal() for c, s in views} for _ in names]
            parts.append(table(*zip(names, seen, strict=True), fold=fold, draw=draw))
    return pd.concat(parts)


ENDS = [f"{name}_{side}" for name in SUMMARIES for side in ("low", "high")]


def test_one_fold_gives_no_interval_of_clean_scores():
    assert robustness(both(), baseline="ben")[ENDS].isna().all(axis=None), "one fold and one draw"
    found = robustness(folds_and_draws(1, 4), baseline="m0")
    assert found[["clean_low", "clean_high"]].isna().all(axis=None)
    assert found[[end for end in ENDS if "clean" not in end]].notna().all(axis=None)


def test_two_folds_span_the_interval():
    # of two folds, one in four resamples is twice the first and one in four twice the second
    scores = {("", 0): 0.9, ("noise", 0.1): 0.0}, {("", 0): 0.7, ("noise", 0.1): 0.6}
    parts = [table(("a", each), fold=fold) for fold, each in enumerate(scores)]
    found = row(robustness(pd.concat(parts)), "a")
    assert found[["clean_low", "clean_high"]].tolist() == pytest.approx([0.7, 0.9])
    assert found[["corrupted_low", "corrupted_high"]].tolist() == pytest.approx([0.0, 0.6])
    assert found["retention_high"] == pytest.approx(0.6 / 0.7)


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 5), st.integers(1, 3), st.integers(0, 2**16))
def test_intervals_hold_the_value_and_are_the_same_each_time(folds, draws, seed):
    scores = folds_and_draws(folds, draws, seed)
    found = robustness(scores, baseline="m0")
    pd.testing.assert_frame_equal(found, robustness(scores, baseline="m0"))
    for name in SUMMARIES:
        assert (found[f"{name}_low"] <= found[f"{name}_high"]).all(), name
    for name in ("clean", "corrupted", "area"):
        assert found[name].between(found[f"{name}_low"], found[f"{name}_high"]).all(), name
    base = row(found, "m0")
    assert base[["mce_low", "mce", "mce_high"]].tolist() == [1, 1, 1]


def test_more_folds_narrow_the_interval():
    few, many = (robustness(folds_and_draws(folds, 2)) for folds in (4, 40))
    wide, narrow = ((t["corrupted_high"] - t["corrupted_low"]).mean() for t in (few, many))
    assert narrow < wide / 2


def test_a_resample_takes_as_many_folds_and_all_their_draws():
    parts = [table(("a", {("", 0): 1}), fold=fold) for fold in (0, 1)]
    draws = [(0, 0), (0, 1), (0, 2), (1, 0)]
    parts += [table(("a", {("noise", 0.1): 1}), fold=f, draw=d) for f, d in draws]
    cells = module._Cells.of(pd.concat(parts).assign(higher_is_better=True))
    assert cells.fold.tolist() == [0, 0, 0, 1]
    times = cells.resamples(400)
    # twice the first fold is 6 units, one of each 4, twice the second 2 times its only unit
    assert set(times.sum(axis=1)) == {6, 4, 2}
    assert (times[times.sum(axis=1) == 2][:, 3] == 2).all()
    assert (times[times.sum(axis=1) == 6][:, 3] == 0).all()
    shares = [(times.sum(axis=1) == size).mean() for size in (6, 4, 2)]
    assert shares == pytest.approx([0.25, 0.5, 0.25], abs=0.08)


def test_a_failed_fold_costs_no_interval():
    scores = folds_and_draws(5, 2)
    lost = (scores["model"] == "m1") & (scores["fold"] == 3)
    found = row(robustness(scores[~lost], baseline="m0"), "m1")
    assert found[ENDS].notna().all() and found["corruptions"] == 2


# -- curves -----------------------------------------------------------------------------------


def test_curves_begin_at_clean():
    found = curves(both())
    ada = found[(found["model"] == "ada") & (found["corruption"] == "noise")]
    assert ada[["severity", "mean"]].to_numpy().tolist() == [[0.0, 0.9], [0.1, 0.8], [0.3, 0.6]]
    assert ada["std"].isna().all() and (ada["count"] == 1).all()
    assert (found["severity"] == 0).sum() == 4, "two models, two corruptions"


def test_curves_have_the_std_over_folds_and_draws():
    parts = [table(("a", {("", 0): 0.9, ("noise", 0.1): v}), draw=d) for d, v in enumerate([1, 3])]
    found = curves(pd.concat(parts).drop_duplicates())
    last = found[found["severity"] == 0.1].iloc[0]
    assert [last["mean"], last["std"], last["count"]] == pytest.approx([2, 2**0.5, 2])


def test_curves_of_a_task_do_not_meet_those_of_another():
    other = table(("ada", {("", 0): 0.5, ("typos", 0.2): 0.4}), task="u")
    found = curves(pd.concat([both(), other]))
    assert found.groupby("task")["corruption"].unique().map(sorted).to_dict() == {
        "t": ["gaps", "noise"],
        "u": ["typos"],
    }


# -- runs -------------------------------------------------------------------------------------


def test_runs_and_their_folders_give_the_same(two_classes, tmp_path, clean_registry):
    @karat.metric("wrong", higher_is_better=False)
    def wrong(predictions):
        return float(np.mean(predictions.predictions != predictions.target))

    views = {"noise_gaussian": [0.5, 2.0], "vector_int8": [1.0], "sign_flip": [1.0]}
    task = two_classes(metrics=["wrong", "acc"], corruptions=views, draws=2)
    runs = karat.evaluate(["onehot", "dummy"], task, output=tmp_path)
    found = robustness(runs, baseline="dummy")
    assert set(found["metric"]) == {"wrong"} and not found["higher_is_better"].any()
    assert found.set_index("model")["corruptions"].to_dict() == {"onehot": 2, "dummy": 2}
    pd.testing.assert_frame_equal(found, robustness(str(tmp_path), baseline="dummy"))
    scores = pd.concat([run.scores() for run in runs])
    pd.testing.assert_frame_equal(found, robustness(scores, baseline="dummy"))
    seen = scores[(scores["metric"] == "wrong") & (scores["corruption"] == "sign_flip")]
    each = robustness(runs, by_corruption=True).set_index(["corruption", "model"])
    wanted = seen.groupby("model")["value"].mean()
    assert each.loc["sign_flip", "corrupted"].to_dict() == pytest.approx(wanted.to_dict())


def test_several_runs_of_the_baseline_are_one_model(tmp_path):
    def views(clean: float, noisy: float) -> list:
        return [make_view(acc=clean), make_view("noise", 0.1, acc=noisy)]

    for stamp, task in (("20260101T000000", "t"), ("20260202T000000", "u")):
        write_run(tmp_path, "base", {task: [views(0.8, 0.6)]}, stamp=stamp)
        write_run(tmp_path, "model", {task: [views(0.9, 0.8)]}, stamp=stamp)
    found = robustness(tmp_path, baseline="base")
    assert found[["task", "model"]].to_numpy().tolist() == [
        ["t", "model"],
        ["t", "base"],
        ["u", "model"],
        ["u", "base"],
    ]
    # errors of .2 over .4, losses of .1 over .2
    assert found["mce"].tolist() == pytest.approx([0.5, 1.0, 0.5, 1.0])
    assert found["relative_mce"].tolist() == pytest.approx([0.5, 1.0, 0.5, 1.0])


def test_a_model_that_declined_does_not_affect_the_others(two_classes, tmp_path):
    task = two_classes(corruptions={"noise_gaussian": [0.5]})
    karat.evaluate(["logistic-regression", "linear-regression"], task, output=tmp_path)
    alone = [run for run in karat.open_runs([tmp_path]) if run.model == "logistic-regression"]
    pd.testing.assert_frame_equal(robustness(tmp_path), robustness(alone))
    pd.testing.assert_frame_equal(curves(tmp_path), curves(alone))


def test_a_rounded_score_is_not_in_percent():
    shares = robustness(both(), baseline="ben")
    rounded = both()
    rounded.loc[rounded.index[0], "value"] = 1.0000001
    found = robustness(rounded, baseline="ben")
    assert not any("percent" in note for note in found.attrs["notes"])
    assert found["mce"].notna().all()
    # errors of about 0.3, not of 99.3: ratios stay far from 1
    assert found["mce"].min() == pytest.approx(shares["mce"].min(), abs=0.2)
    assert (found["mce"].min() - 1) / (shares["mce"].min() - 1) > 0.5
