"""The head adamw reproduces the original system, without its errors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import matthews_corrcoef

import karat
from karat.core.registry import build, heads
from karat.errors import DataError, DefinitionError
from karat.execution.splits import split
from karat.probes.heads.adamw import AdamW, _coded


def golden(rows=2000):
    """Return the data of a run of the original system with recorded scores."""
    g = np.random.RandomState(0)
    y = g.choice(2, rows, p=[0.6, 0.4])
    X = g.randn(rows, 32).astype(np.float32)
    X += (g.randn(2, 32).astype(np.float32) * 0.35)[y]
    return X.astype(np.float32), y


def as_data(y):
    table = pd.DataFrame({"row": np.arange(len(y)), "y": y})
    return karat.Dataset.from_table(table, "y", name="golden", kind="classification")


def problem(rows, classes=2, width=6, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % classes
    return (rng.normal(size=(rows, width)) + 1.5 * np.eye(classes, width)[y]), y


def epochs(head):
    return max(step["epoch"] for step in head.history_)


@pytest.mark.parametrize("loops", ["numpy", "compiled"])
def test_exact_mode_reproduces_the_original_fold_by_fold(monkeypatch, loops):
    if loops == "numpy":
        monkeypatch.setattr("karat.probes.heads.stacked_training.kernels", lambda: None)
    monkeypatch.setattr("karat.probes.heads.stacked_training.LARGE", 0)
    X, y = golden()
    data = as_data(y)
    folds = split(data, {"use": "senteval", "repeats": 2}, seed=3)
    scores, lengths, losses = [], [], []
    for number in (0, 3, 5, 8):
        fold = folds[number]
        head = AdamW(mode="exact", fold=number).fit(X[fold.train], y[fold.train])
        predicted, chances = head.predict_both(X[fold.test])
        target = y[fold.test]
        scores.append(matthews_corrcoef(target, predicted))
        losses.append(-np.log(chances[np.arange(len(target)), target]).mean())
        lengths.append(epochs(head))
    # the whole run: mean .799998, epochs [94, 100, 100, 92, 100, 62, 95, 100, 87, 100]
    assert lengths == [94, 92, 62, 87]
    assert scores == pytest.approx([0.7927419, 0.8064976, 0.7999860, 0.7371099], abs=1e-6)
    assert losses == pytest.approx([0.2323717, 0.2593575, 0.2537526, 0.2837250], abs=1e-4)


def test_the_original_split_is_balanced_and_tests_every_row_once():
    _, y = golden()
    data = as_data(y)
    folds = split(data, {"use": "senteval", "repeats": 2}, seed=3)
    least = np.bincount(y).min()
    assert len(folds) == 10
    for repeat in range(2):
        tested = np.concatenate([fold.test for fold in folds if fold.repeat == repeat])
        assert len(set(tested.tolist())) == len(tested) == 2 * least
        assert np.bincount(y[tested]).tolist() == [least, least]
    again = split(data, {"use": "senteval", "repeats": 2}, seed=77)
    assert all(np.array_equal(a.train, b.train) for a, b in zip(folds, again, strict=True))


def test_the_seed_decides():
    X, y = problem(300)
    a, b, c = (AdamW(random_state=seed, n_epochs=3).fit(X, y) for seed in (1, 1, 2))
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))
    assert not np.array_equal(a.predict_proba(X), c.predict_proba(X))


@pytest.mark.parametrize("rows", [60, 150, 300])
def test_few_rows_are_enough_to_train(rows):
    # the original trains with fewer than 800 balanced rows at a twentieth of the rate, and with
    # fewer than 200 not at all
    X, y = problem(rows)
    new, target = problem(1000, seed=1)
    best = np.where(new[:, 0] > new[:, 1], 0, 1)  # the Bayes classifier
    predicted = AdamW(random_state=0, learning_rate=0.01).fit(X, y).predict(new)
    assert matthews_corrcoef(target, predicted) > 0.85 * matthews_corrcoef(target, best)


@pytest.mark.parametrize("mode", ["fast", "exact"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("hidden", [None, [8]])
def test_every_shape_is_trained(mode, classes, hidden):
    X, y = problem(400, classes)
    head = AdamW(mode=mode, fold=1, random_state=1, hidden_dims=hidden, learning_rate=0.02)
    names = np.array(["b", "a", "c"])
    head.fit(X, names[y])
    predicted, chances = head.predict_both(X)
    assert head.classes_.tolist() == sorted(set(names[y]))
    best = X[:, :classes].argmax(axis=1)  # the Bayes classifier
    assert (predicted == names[y]).mean() > (best == y).mean() - 0.05
    assert chances.shape == (400, classes)
    assert np.allclose(chances.sum(axis=1), 1)
    assert np.array_equal(head.classes_[chances.argmax(axis=1)], predicted)
    assert mode in head.notes_[0] and "0.02" in head.notes_[0] and " 4 " in head.notes_[0]


def test_history_has_three_values_per_epoch_and_stops_early():
    X, y = problem(300)
    head = AdamW(random_state=0, tenacity=0, early_stopping_rel_improv=0.5).fit(X, y)
    # an epoch that does not halve the loss ends the training at once
    assert epochs(head) == 2
    names = ["loss_per_epoch_train", "loss_per_epoch_eval", "metric_per_epoch_eval"]
    assert [step["metric"] for step in head.history_[:3]] == names
    assert len(head.history_) == 6


def test_restore_best():
    X, y = problem(120, width=40)
    kwargs = dict(random_state=0, learning_rate=0.3, n_epochs=12, tenacity=20)
    last, best = (AdamW(restore_best=way, **kwargs).fit(X, y) for way in (False, True))
    held = [s["value"] for s in best.history_ if s["metric"] == "loss_per_epoch_eval"]
    assert np.argmin(held) < len(held) - 1
    assert last.history_ == best.history_
    assert not np.array_equal(last.predict_proba(X), best.predict_proba(X))


def test_stratified_eval():
    X, y = problem(100)
    head = AdamW(stratified_eval=True)
    held, kept = head.hold_out(y, np.random.default_rng(0).permutation(len(y)))
    assert np.bincount(y[held]).tolist() == [10, 10]
    assert sorted([*held, *kept]) == list(range(100))
    held, kept = AdamW().hold_out(y, np.arange(len(y)))
    assert held.tolist() == list(range(20))


def test_score_of_the_train_rows():
    X, y = problem(200)
    head = AdamW(train_metric=True, n_epochs=3, batch_size=16, random_state=0).fit(X, y)
    names = [step["metric"] for step in head.history_]
    assert names == [*names[:3], "metric_per_epoch_train"] * 3
    plain = AdamW(n_epochs=3, batch_size=16, random_state=0).fit(X, y)
    assert plain.history_ == [s for s in head.history_ if s["metric"] != names[3]]
    # the order of rows is the second draw of the generator
    rng = np.random.default_rng(0)
    rng.integers(2**32)
    _, train = plain.hold_out(y, rng.permutation(len(y)))
    expected = matthews_corrcoef(y[train], head.predict(X[train]))
    assert head.history_[-1]["value"] == pytest.approx(max(0, expected))


def test_a_column_that_is_constant_in_training_is_not_scaled():
    # the original divides it by 1e-12
    X, y = problem(300)
    X = np.column_stack([X, np.full(300, 0.1)])
    head = AdamW(random_state=0, n_epochs=5).fit(X, y)
    moved = X.copy()
    moved[:, -1] = 0.2
    assert np.abs(head.predict_proba(moved) - head.predict_proba(X)).max() < 0.05


@pytest.mark.parametrize("kind", [np.float16, np.float64, list])
def test_vectors_of_any_dtype(kind):
    X, y = problem(200)
    X = X.astype(np.float16)
    given = X.tolist() if kind is list else X.astype(kind)
    a, b = (AdamW(random_state=0, n_epochs=2).fit(each, y) for each in (given, X))
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))


def test_a_grid_of_one_point_is_not_searched():
    X, y = problem(200)
    head = AdamW(learning_rate=0.01, beta1=0.9, beta2=0.99, n_epochs=1).fit(X, y)
    assert "grid" not in head.notes_[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "exactly"),
        ("kind", "regression"),
        ("learning_rate", 3),
        ("beta1", []),
        ("batch_size", 0),
        ("eval_frac", 1.0),
        ("hidden_dims", [0]),
    ],
)
def test_wrong_parameters(name, value):
    with pytest.raises(DefinitionError, match="regression" if name == "kind" else name):
        AdamW(**{name: value})
    with pytest.raises(DefinitionError, match="n_epoch.*n_epochs"):
        build('head "adamw"', heads.get("adamw"), {"n_epoch": 3}, {})


def test_unusable_data():
    X, y = problem(40)
    with pytest.raises(DataError, match="one class"):
        AdamW().fit(X, np.zeros(40))
    with pytest.raises(DataError, match="too few"):
        AdamW().fit(X[:2], y[:2])
    with pytest.raises(DefinitionError, match="fold"):
        AdamW(mode="exact").fit(X, y)


@pytest.mark.parametrize("kind", [object, str, int])
def test_classes_are_sorted_whatever_their_type(kind):
    y = np.array([10, 9, 10, 2, 9] if kind is int else ["b", "ä", "b", "B", "ä"], dtype=kind)
    classes, codes = _coded(y)
    expected = np.unique(y, return_inverse=True)
    assert classes.tolist() == expected[0].tolist() and classes.dtype == expected[0].dtype
    assert codes.tolist() == expected[1].tolist()


def test_rows_are_not_changed():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 4)).astype(np.float32), np.array(["a", "b"] * 30, dtype=object)
    before = X.copy()
    X.setflags(write=False)
    AdamW(n_epochs=2).fit(X, y).predict_both(X)
    np.testing.assert_array_equal(X, before)
