"""Items of two models: how they are paired, which flipped, and what is shown without texts."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest

import karat
from karat.analysis.items import compare_items, item_losses
from karat.core.predictions import Predictions
from karat.errors import DataError, DefinitionError

from ..score_data import score_table

TRUTH = ["yes", "no", "yes", "no"]
ITEMS = "key,text,characters\na,first text,10\nb,second text,11\nc,third text,10\nd,fourth,6\n"


def classes(answers, chance=None, keys="abcd", truth=TRUTH) -> Predictions:
    """Return labels; ``chance`` are probabilities of yes."""
    probabilities = None if chance is None else np.column_stack([1 - np.array(chance), chance])
    return Predictions(
        answers,
        truth,
        answers="classes",
        truths="classes",
        classes=("no", "yes"),
        probabilities=probabilities,
        key=None if keys is None else list(keys),
    )


def files_of(answers: Predictions) -> dict[str, str]:
    facts = {"answers": answers.answers, "truths": answers.truths, "classes": answers.classes}
    return {**answers.files(), "metadata.json": json.dumps(facts)}


@pytest.fixture
def store(write):
    """Write a run with stored predictions of the task "t", one per fold, and an item table."""

    def make(model, *folds, items=ITEMS, kind="classification", metric="acc", record=None, **facts):
        sizes = {"train_questions": 8, "questions": len(folds[0]), **(record or {})}
        task = {"kind": kind, "metrics": [metric], "probe": {"use": "trained"}, **facts}
        if items:
            task["item_table"] = {"file": "items/t.csv.gz", "rows": 4, "of": 4}
        stored = {("t", fold): files_of(answers) for fold, answers in enumerate(folds)}
        scores = {"t": [0.5] * len(folds)}
        run = write(model, scores, task=task, files=stored, record=sizes)
        if items:
            (run.folder / "items").mkdir()
            (run.folder / "items" / "t.csv.gz").write_bytes(gzip.compress(items.encode()))
        return run

    return make


# -- losses ---------------------------------------------------------------------------------


def test_losses_by_hand():
    assert item_losses(classes(["yes", "yes", "no", "no"]), "")[0].tolist() == [0, 1, 1, 0]
    numbers = Predictions([1.0, 5.0, 2.0], [1.0, 3.0, 2.5])
    assert item_losses(numbers, "regression")[0].tolist() == [0, 2, 0.5]
    # ranks of the targets 1, 3, 2 and of the predictions 1, 3, 2
    assert item_losses(numbers, "similarity") == (pytest.approx([0, 0, 0]), "rank distance")
    items = Predictions(
        ["x", "y", ""], ["x", "z", "z"], answers="items", truths="items", rank=[1, 4, np.inf]
    )
    assert item_losses(items, "")[0].tolist() == [0, 0.75, 1]
    clusters = Predictions([0, 1, 1, 0], TRUTH, answers="clusters", truths="classes")
    with pytest.raises(DataError):
        item_losses(clusters, "")


# -- flips ----------------------------------------------------------------------------------


def test_flips_both_ways_with_answers_confidences_and_texts(store):
    one = store("one", classes(["yes", "no", "no", "no"], [0.9, 0.2, 0.4, 0.4]))
    other = store("other", classes(["no", "no", "yes", "yes"], [0.1, 0.2, 0.7, 0.8]))
    found = compare_items([one, other], "one", "other")
    rows = found.items.set_index("key")
    # a: 0.9 against 0.1 for the target; d: 0.6 against 0.2; c: the other is right
    assert rows.index.tolist() == ["a", "d", "c"]
    assert rows["better"].tolist() == ["one", "one", "other"]
    assert rows.loc["d", ["target", "first", "second"]].tolist() == ["no", "no", "yes"]
    assert rows.loc["d", ["first_confidence", "second_confidence"]].tolist() == [0.6, 0.8]
    assert rows["item"].tolist() == ["first text", "fourth", "third text"]
    assert rows["change"].tolist() == [-1, -1, 1]
    (counts,) = found.tasks.to_dict("records")
    numbers = [counts[name] for name in ("items", "first_better", "second_better", "same")]
    assert numbers == [4, 2, 1, 1]
    assert (counts["first_loss"], counts["second_loss"]) == (0.25, 0.5)


def test_swapping_the_models_swaps_the_flips(store):
    runs = [store("one", classes(["yes"] * 4)), store("other", classes(["no"] * 4))]
    found, swapped = compare_items(runs, "one", "other"), compare_items(runs, "other", "one")
    for better in ("one", "other"):
        keys = [
            set(each.items.loc[each.items["better"] == better, "key"]) for each in (found, swapped)
        ]
        assert keys[0] == keys[1] != set()
    assert sorted(found.items["change"]) == sorted(-swapped.items["change"])


def test_numbers_are_sorted_by_the_change_in_loss(store):
    truth = [1.0, 2.0, 3.0, 4.0]
    one, other = [1.0, 2.5, 3.0, 9.0], [1.5, 2.0, 5.0, 4.0]
    made = {
        name: store(name, Predictions(values, truth, key=list("abcd")), kind="regression")
        for name, values in {"one": one, "other": other}.items()
    }
    found = compare_items(list(made.values()), "one", "other")
    assert found.items["key"].tolist() == ["c", "a", "d", "b"]
    assert found.items["change"].tolist() == [-2.0, -0.5, 5.0, 0.5]
    assert found.tasks["loss"].tolist() == ["absolute error"]


def test_items_are_paired_by_key_whatever_their_order(store):
    one = store("one", classes(["yes", "yes", "yes", "yes"]))
    order = classes(["no", "no", "no"], keys="dba", truth=["no", "no", "yes"])
    other = store("other", order, record={"questions": 4})
    found = compare_items([one, other], "one", "other")
    assert found.tasks["items"].tolist() == [3]
    assert dict(zip(found.items["key"], found.items["better"], strict=True)) == {
        "a": "one",
        "b": "other",
        "d": "other",
    }


def test_other_targets_are_not_compared(store):
    one, other = store("one", classes(TRUTH)), store("other", classes(TRUTH, truth=["no"] * 4))
    with pytest.raises(DataError):
        compare_items([one, other], "one", "other")


def test_runs_without_keys_are_paired_by_row(store):
    runs = [
        store("one", classes(["yes"] * 4, keys=None), items=""),
        store("other", classes(["no"] * 4, keys=None), items=""),
    ]
    found = compare_items(runs, "one", "other")
    assert found.items["key"].tolist()[:2] == ["fold 0, row 0", "fold 0, row 2"]
    assert set(found.items["item"]) == {""}
    assert any("--resume" in note for note in found.notes)


def test_only_the_first_repeat_counts(store, tmp_path):
    runs = []
    for name, label in (("one", "yes"), ("other", "no")):
        run = store(name, classes([label] * 4), classes([label] * 4))
        path = run.folder / "jobs" / "t.1.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "repeat": 1}))
        runs.append(run)
    assert compare_items(runs, "one", "other").tasks["items"].tolist() == [4]


def test_what_is_wrong_is_an_error(store, write, tmp_path):
    runs = [store("one", classes(TRUTH)), store("other", classes(TRUTH))]
    with pytest.raises(DefinitionError, match='"t"'):
        compare_items(runs, "one", "other", tasks="tt")
    with pytest.raises(DefinitionError, match='"other"'):
        compare_items(runs, "one", "othr")
    table = score_table({"t": {"one": [0.5, 0.6], "other": [0.5, 0.6]}})
    with pytest.raises(DefinitionError):
        compare_items(table, "one", "other")
    bare = [write(name, {"t": [0.5]}) for name in ("a", "b")]
    with pytest.raises(DataError, match="predictions"):
        compare_items(bare, "a", "b")


def test_tables_are_written(store, tmp_path):
    runs = [store("one", classes(["yes"] * 4)), store("other", classes(["no"] * 4))]
    found = compare_items(runs, "one", "other")
    items, counts = found.to_csv(tmp_path / "out")
    assert items.name == "comparison_items.csv"
    again = pd.read_csv(items)
    assert again["key"].tolist() == found.items["key"].tolist()
    assert pd.read_csv(counts)["items"].tolist() == [4]
    whole = found.to_dict()
    assert len(whole["items"]) == 4 and whole["items"][0]["first_confidence"] is None
    json.dumps(whole, allow_nan=False)


def test_a_real_run(tmp_path):
    frame = pd.DataFrame({"x": np.arange(40) % 10, "y": ["yes", "no"] * 20})
    data = karat.Dataset.from_table(frame.set_index(frame.index.map("n{}".format)), "y", name="d")
    task = karat.Task("t", data, split={"use": "kfold", "folds": 2}, metrics=["acc"])
    runs = karat.evaluate(["dummy", "random-forest"], task, output=tmp_path)
    found = karat.compare_items(runs, "random-forest", "dummy")
    assert found.tasks["items"].tolist() == [40]
    for _, row in found.items.iterrows():
        number = int(row["key"].removeprefix("n"))
        assert row["item"] == str(number % 10)
        assert row["target"] == ("no" if number % 2 else "yes")


def test_runs_of_one_model_are_pooled(tmp_path):
    frame = pd.DataFrame({"x": np.arange(60) % 10, "y": ["yes", "no"] * 30})
    data = karat.Dataset.from_table(frame, "y", name="d")
    task = karat.Task("t", data, split={"use": "kfold", "folds": 3}, metrics=["acc"])
    for fold in range(3):
        karat.evaluate(
            ["dummy", "random-forest"], task, only=karat.Only(folds=fold), output=tmp_path
        )
    found = karat.compare_items(tmp_path, "random-forest", "dummy")
    assert found.tasks["items"].tolist() == [60]
    one = karat.compare_slices(tmp_path, "dummy", by="class")
    assert one.slices["items"].sum() == 60
