"""Items read from stored predictions: what is shared, clusters, and further seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import karat
from karat.analysis.item_tests import LEARNERS, Fits, item_separation, separate_pairs
from karat.analysis.stored_items import find_sides, fold_repeats, read_item_values
from karat.corruptions.view import CLEAN
from karat.errors import DataError
from karat.results.load import gather_scores


def people(rows: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["a", "b", "c"])
    table["person"] = [f"p{i % 12}" for i in range(rows)]
    signal = table["a"] + table["b"] + rng.normal(size=rows)
    return table.assign(target=np.where(signal > 0, "yes", "no"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    data = karat.Dataset.from_table(people(), target="target", name="people", group="person")
    split = {"use": "kfold", "folds": 3}
    task = karat.Task("people", data, metrics=["acc", "auc"], split=split)
    where = tmp_path_factory.mktemp("items")
    models = ["random-forest", "logistic-regression", "dummy"]
    return karat.evaluate(karat.Variants(models, seeds=2), [task], output=where / "runs")


def test_declared_groups_are_the_units(runs):
    given = gather_scores(runs)
    items = read_item_values(find_sides(given, "people", given.models), "acc")
    assert items.clusters == 12 and items.values.shape == (3, 12) and items.items == 120
    assert items.independent == 12 and not items.is_right


def test_further_seeds_are_averaged_and_their_noise_is_known(runs):
    given = gather_scores(runs)
    sides = find_sides(given, "people", given.models)
    items = read_item_values(sides, "acc")
    freedom = dict(zip(items.models, [noise.freedom for noise in items.seeds], strict=True))
    assert freedom["random-forest"] == 1 and freedom["dummy"] == 0
    side, task = sides["random-forest"]
    scores = side.replicate_scores(task, "acc")
    mean = np.average(
        [np.mean(list(own.values())) for own in scores.values()],
        weights=[side.answered[task][CLEAN][fold, 0].questions for fold in scores],
    )
    place = items.models.index("random-forest")
    assert items.values[place].mean() == pytest.approx(mean)


def test_folds_and_items_are_one_test_of_learners(runs):
    given = gather_scores(runs)
    found = item_separation(given, "people", "acc", given.models)
    assert found.claim == LEARNERS and found.test == "max-T over folds and items"
    assert found.clusters == 12 and (found.p >= found.raw - 1e-12).all()
    difference = found.mean_difference(0, 2)
    assert difference.mean == -found.mean_difference(2, 0).mean
    # as the two by themselves
    both = [given.models[0], given.models[2]]
    pair = item_separation(given, "people", "acc", both)
    assert pair.p[0, 1] == found.raw[0, 2] and pair.test == "t over folds and items"
    low, high = difference.interval()
    assert found.error[0, 2] > 0 and low < difference.mean < high


def test_the_scores_of_fits_are_those_of_the_folds(runs):
    given = gather_scores(runs)
    sides = find_sides(given, "people", given.models)
    fits = Fits.of(list(sides.values()), "acc")
    assert fits.scores.shape == (3, 3) and list(fits.repeats) == [0, 0, 0]
    assert fits.ratio == pytest.approx(0.5)
    assert set(fold_repeats(*sides["dummy"]).values()) == {0}
    items = read_item_values(sides, "acc")
    assert separate_pairs(items, fits, "acc", corrected=False).p.shape == (3, 3)


def test_one_model_cannot_be_compared(runs):
    given = gather_scores(runs)
    with pytest.raises(DataError):
        read_item_values(find_sides(given, "people", given.models[:1]), "acc")
