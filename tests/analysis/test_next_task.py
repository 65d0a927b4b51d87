"""What to expect of models on a new task: the table, classes of tasks, and too few tasks."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.formatting import percent_chance
from karat.errors import DataError, DefinitionError

from ..score_data import score_table, write_run


def cycle(tasks: int, metric: str = "acc", **columns):
    """Return three models: a wins, b is first on every fourth task, c is always last."""
    scores = {}
    for t in range(tasks):
        a, b = (0.8, 0.9) if t % 4 == 0 else (0.9, 0.8)
        scores[f"t{t:02}"] = {"a": a, "b": b, "c": 0.5}
    return score_table(scores, metric, **columns)


def test_the_numbers_of_a_small_collection():
    found = karat.next_task(cycle(20))
    rows = found.models.set_index("model")
    assert list(rows.index) == ["a", "b", "c"]
    assert rows["rank"].tolist() == pytest.approx([1.25, 1.75, 3.0])
    assert rows[["next_low", "next_high"]].to_numpy().tolist() == [[1, 2], [1, 2], [3, 3]]
    # one more task that each of three models wins equally often
    assert rows["first"].tolist() == pytest.approx([(15 + 1 / 3) / 21, (5 + 1 / 3) / 21, 1 / 63])
    # of the distance from 0.5 to 0.9: a loses 0.1 on 5 of 20 tasks, b on 15, c all of it
    assert rows["loss"].tolist() == pytest.approx([0.0625, 0.1875, 1.0])
    assert found.metric == "acc"
    assert rows["score_loss"].tolist() == pytest.approx([0.025, 0.075, 0.4])
    assert "On 90 % of new tasks like these 20, a has a rank from 1 to 2 of 3" in found.sentence
    assert "73 %" in found.sentence and "loses 0.06" in found.sentence


@pytest.mark.parametrize("tasks", [1, 5, 18])
def test_too_few_tasks_have_no_interval(tasks):
    with pytest.raises(DataError) as error:
        karat.next_task(cycle(tasks))
    noun = "is 1 task" if tasks == 1 else f"are {tasks} tasks"
    assert f"needs at least 19 tasks, and there {noun}" in str(error.value)
    assert "no interval exists" in str(error.value)


def test_unlike_metrics_have_no_common_unit():
    scores = {f"t{t}": ("acc" if t else "auc", {"a": 0.9, "b": 0.8}) for t in range(20)}
    found = karat.next_task(score_table(scores))
    assert found.metric == "" and "score_loss" not in found.models
    found = karat.next_task(score_table({t: m for t, (_, m) in scores.items()}, "rmse"))
    assert found.metric == ""  # without an upper bound
    # lower is better
    assert found.models["model"].tolist() == ["b", "a"]


def test_a_kind_with_enough_tasks_narrows_the_interval():
    kinds = {f"t{t:02}": "classification" if t < 20 else "regression" for t in range(40)}
    scores = {}
    for t, kind in enumerate(kinds.values()):
        up = kind == "classification"
        scores[f"t{t:02}"] = {"a": 0.9 if up else 0.1, "b": 0.5, "c": 0.1 if up else 0.9}
    found = karat.next_task(score_table(scores, kind=kinds))
    rows = found.models.set_index("model")
    assert rows.loc["a", ["next_low", "next_high"]].tolist() == [1, 3]
    own = found.within.set_index(["kind", "model"])
    assert own.loc[("classification", "a"), ["next_low", "next_high"]].tolist() == [1, 1]
    assert own.loc[("regression", "a"), ["next_low", "next_high"]].tolist() == [3, 3]
    assert own.loc[("classification", "a"), "first"] == pytest.approx((20 + 1 / 3) / 21)
    # of the ranks 3, 1 and 3 in the intervals of all tasks, 1 each is left
    assert found.alike["width_of_all"].tolist() == pytest.approx([7 / 3, 7 / 3])
    assert found.alike["narrower"].tolist() == pytest.approx([4 / 7, 4 / 7])


def test_sizes_of_tables_come_from_the_jobs(tmp_path):
    rng = np.random.default_rng(0)
    for model in "ab":
        for name, rows, places in (("small", 100, range(19)), ("large", 20_000, range(19, 40))):
            scores = {f"t{t:02}": [float(rng.random())] for t in places}
            record = {"train_questions": rows * 4 // 5, "questions": rows // 5}
            write_run(tmp_path / name, model, scores, record=record)
    found = karat.next_task([tmp_path / "small", tmp_path / "large"])
    sizes = found.alike[["size", "tasks"]].to_numpy().tolist()
    assert sizes == [["10,000+ rows", 21], ["under 1,000 rows", 19]]
    assert len(found.within) == 4 and found.within["next_low"].notna().all()


def test_a_model_with_few_tasks_is_shown_without_an_interval():
    table = cycle(20)
    table = table[(table["model"] != "c") | (table["task"] < "t08")]
    found = karat.next_task(table)
    rows = found.models.set_index("model")
    assert rows["next_low"].isna().to_dict() == {"a": False, "b": False, "c": True}
    assert rows.loc["c", "tasks"] == 8
    assert any("fewer than 19 tasks" in note and "c" in note for note in found.notes)
    assert any("stretched" in note for note in found.notes)


def test_models_that_cannot_be_compared_are_groups():
    one = cycle(20)
    other = cycle(24).assign(task=lambda t: "u" + t["task"], model=lambda t: t["model"].str.upper())
    few = cycle(4).assign(task=lambda t: "v" + t["task"], model=lambda t: "v" + t["model"])
    found = karat.next_task(pd.concat([one, other, few], ignore_index=True))
    assert found.models.groupby("group", sort=False)["model"].agg("".join).tolist() == [
        "ABC",
        "abc",
    ]
    assert set(found.models["tasks"]) == {20, 24}
    assert any("4 tasks, at least 19 are needed" in note for note in found.notes)


def test_several_tasks_on_a_dataset_are_noted():
    found = karat.next_task(cycle(20, dataset={f"t{t:02}": f"d{t // 2}" for t in range(20)}))
    assert any("20 tasks are on 10 datasets" in note for note in found.notes)


def test_all_of_it_is_plain_data():
    found = karat.next_task(cycle(20))
    read = json.loads(json.dumps(found.to_dict()))
    assert [row["model"] for row in read["models"]] == ["a", "b", "c"]
    assert read["verdict"] == found.sentence and "a has a rank" in repr(found)
    assert found.sentence in found._repr_html_()


def test_failed_tasks_are_a_whole_loss(tmp_path):
    for model, score in (("a", 0.9), ("b", 0.8), ("broken", None)):
        write_run(tmp_path, model, {f"t{t:02}": [score] for t in range(20)})
    rows = karat.next_task(tmp_path).models.set_index("model")
    # the worst score of a task counts for those who failed on it
    assert rows["loss"].tolist() == pytest.approx([0.0, 1.0, 1.0])
    assert rows.loc["broken", ["next_low", "next_high"]].tolist() == [3, 3]


def test_an_unknown_rule_is_named():
    with pytest.raises(DefinitionError, match="missing must be"):
        karat.next_task(cycle(20), missing="none")


def test_chances_are_never_certain():
    chances = [percent_chance(share) for share in (0.0049, 0.005, 0.9951)]
    assert chances == ["< 1 %", "1 %", "> 99 %"]
