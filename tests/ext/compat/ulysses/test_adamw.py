"""The head adamw reproduces the original system, without its errors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score, log_loss, matthews_corrcoef

import karat
from karat.core.registry import build, heads
from karat.errors import DataError, DefinitionError
from karat.execution.splits import split
from karat.ext.compat.ulysses.adamw import (
    MASTER,
    AdamW,
    Descent,
    Layered,
    Logistic,
    Rates,
    Recipe,
    TorchGenerator,
    _coded,
    _shuffled,
    bootstrap_seed,
    fold_seeds,
    kernels,
    losses,
    probabilities,
    repetitions,
    selection_scores,
    targets,
)


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
        monkeypatch.setattr("karat.ext.compat.ulysses.adamw.kernels", lambda: None)
    monkeypatch.setattr("karat.ext.compat.ulysses.adamw.LARGE", 0)
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


@pytest.mark.parametrize("rows", [5, 64, 65, 700])
def test_rows_are_scaled_by_the_mean_and_spread_of_the_train_rows(rows):
    X, y = np.random.default_rng(1).normal(3, 2, (rows + 2, 4)), np.arange(rows + 2) % 2
    before = np.getbufsize()
    head = AdamW(n_epochs=1).fit(X, y, judges=2)
    train = X[2:].astype(np.float32).astype(np.float64)
    assert np.array_equal(head.mean_, train.mean(axis=0).astype(np.float32))
    assert np.array_equal(head.spread_, (train.std(axis=0, ddof=1) + 1e-12).astype(np.float32))
    assert np.getbufsize() == before


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


GRID = Rates(np.array([0.01, 0.02, 0.05]), np.array([0.8, 0.9, 0.9]), np.array([0.99, 0.99, 0.9]))
KERNELS = "karat.ext.compat.ulysses.adamw.kernels"
LOADED = "karat.ext.compat.ulysses.adamw._loaded"


def drawn(inputs, outputs):
    return np.random.default_rng(inputs).normal(0, 0.5, (inputs, outputs)).astype(np.float32)


@pytest.fixture(params=["numpy", "compiled"])
def loops(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(KERNELS, lambda: None)
        monkeypatch.setattr(LOADED, lambda name: None)
    elif kernels() is None:
        pytest.skip("numba is not installed")
    monkeypatch.setattr("karat.ext.compat.ulysses.adamw.LARGE", 0)


def small_problem(classes, rows, width=7):
    rng = np.random.default_rng(classes)
    codes = rng.integers(classes, size=rows)
    X = rng.normal(size=(rows, width)) + rng.normal(size=(classes, width))[codes]
    return X.astype(np.float32), targets(codes, classes)


def prepared(network, X):
    """Rows as the network gets them: linear heads have a column of ones for the bias."""
    return np.column_stack([X, np.ones_like(X[:, :1])]) if isinstance(network, Logistic) else X


def trained(network, rates, recipe, data, epochs=3):
    X, wanted = data
    X = prepared(network, X)
    descent, rng = Descent(network, rates, recipe), np.random.default_rng(5)
    for _ in range(epochs):
        order = rng.permutation(len(X))
        descent.epoch(X, wanted[:, order], order)
    return descent


def by_the_book(data, rate, beta1, beta2, recipe, epochs=3):
    """AdamW as its authors write it, in float64, one number after the other."""
    X, wanted = data
    X = np.column_stack([X, np.ones(len(X))]).astype(np.float64)
    weights = np.append(drawn(X.shape[1] - 1, 1)[:, 0], 0).astype(np.float64)
    first, second, step = np.zeros_like(weights), np.zeros_like(weights), 0
    rng, size = np.random.default_rng(5), recipe.batch_size
    batches = len(X) // size
    warm = max(1, int(batches * recipe.warm_up))
    for _ in range(epochs):
        order = rng.permutation(len(X))
        for at in range(batches):
            rows = order[at * size : (at + 1) * size]
            chance = 1 / (1 + np.exp(-X[rows] @ weights))
            slope = X[rows].T @ (chance - wanted[0, rows]) / size
            slope *= min(1, recipe.clip / (np.linalg.norm(slope) + 1e-6))
            now = rate * (0.05 + 0.95 * min(step, warm) / warm)
            step += 1
            first = beta1 * first + (1 - beta1) * slope
            second = beta2 * second + (1 - beta2) * slope**2
            weights -= now * recipe.weight_decay * weights
            root = np.sqrt(second / (1 - beta2**step)) + 1e-8
            weights -= now * first / (1 - beta1**step) / root
    return weights


@pytest.mark.parametrize("clip", [1.0, 0.05])
def test_each_head_is_trained_as_if_it_were_alone(loops, clip):
    data, recipe = small_problem(2, 150), Recipe(batch_size=16, clip=clip)
    together = Logistic(7, 1, 3, drawn)
    trained(together, GRID, recipe, data)
    for head in range(3):
        alone = Logistic(7, 1, 1, drawn)
        rates = GRID.take(head)
        trained(alone, rates, recipe, data)
        numbers = rates.rate[0], rates.beta1[0], rates.beta2[0]
        expected = by_the_book(data, *numbers, recipe)
        assert np.allclose(alone.values[0], expected, atol=2e-5)
        assert np.allclose(together.values[head], expected, atol=2e-5)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("hidden", [[], [6]])
def test_compiled_loops_give_the_same_weights(classes, hidden, monkeypatch):
    if kernels() is None:
        pytest.skip("numba is not installed")
    data, recipe = small_problem(classes, 150), Recipe(batch_size=16)
    outputs = 1 if classes == 2 else classes
    made = []
    monkeypatch.setattr("karat.ext.compat.ulysses.adamw.LARGE", 0)
    for way in (kernels, lambda: None):
        monkeypatch.setattr(KERNELS, way)
        if hidden:
            network = Layered(7, outputs, hidden, drawn)
        else:
            network = Logistic(7, outputs, 1, drawn)
        trained(network, GRID.take(0), recipe, data)
        made.append(network.values)
    assert np.allclose(*made, atol=1e-5)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("clip", [1.0, 0.05])
def test_small_heads_have_the_same_digits_with_and_without_numba(heads, classes, clip, monkeypatch):
    if kernels() is None:
        pytest.skip("numba is not installed")
    rates = GRID if heads == 3 else GRID.take(0)
    made = []
    for _ in range(2):
        network = Logistic(7, 1 if classes == 2 else classes, heads, drawn)
        data, recipe = small_problem(classes, 150), Recipe(batch_size=16, clip=clip)
        made.append((trained(network, rates, recipe, data).moments, network.values))
        monkeypatch.setattr(LOADED, lambda name: None)
    for compiled, plain in zip(*made, strict=True):
        np.testing.assert_array_equal(compiled, plain)


def test_the_logits_of_a_step_are_those_of_the_heads():
    X, wanted = small_problem(3, 40)
    network = Logistic(7, 3, 5, drawn)
    network.values += np.arange(5, dtype=np.float32)[:, None] / 10
    X = prepared(network, X)
    np.testing.assert_allclose(network.learn(X, wanted), network.logits(X), rtol=1e-5, atol=1e-6)


def changes(rows, recipe):
    network = Logistic(7, 1, 1, drawn)
    descent = trained(network, GRID.take(1), recipe, small_problem(2, rows), epochs=2)
    return descent, network


def test_the_rate_rises_also_where_an_epoch_has_fewer_than_four_batches(loops):
    # there, the rate stayed at a twentieth for ever with fewer than 512 rows to train on
    descent, _ = changes(40, Recipe(batch_size=16, weight_decay=0.5))
    shrink = descent._planned(4, 2)[:, 0, 0].astype(float)
    assert (1 - shrink) / 0.5 == pytest.approx([0.001, 0.02, 0.02, 0.02], rel=1e-3)


def test_fewer_rows_than_a_batch_are_one_batch(loops):
    # there, nothing was ever updated with fewer than 128 rows to train on
    descent, network = changes(20, Recipe(batch_size=128))
    assert descent.steps == 2
    assert not np.allclose(network.values[0, :-1], drawn(7, 1)[:, 0], atol=1e-4)


def test_rows_that_fill_no_batch_are_left_out(loops):
    assert changes(47, Recipe(batch_size=16))[0].steps == 2 * 2


def test_a_longer_plan_goes_on_where_the_first_ended():
    descent = Descent(Logistic(7, 1, 3, drawn), GRID, Recipe())
    whole = descent._planned(400, 5)
    given = np.concatenate([descent._changes(5) for _ in range(80)])
    assert np.array_equal(given, whole)


def test_against_pytorch(loops):
    torch = pytest.importorskip("torch")
    data, recipe = small_problem(4, 96), Recipe(batch_size=32)
    network = Layered(7, 4, [6], drawn)
    there = torch.nn.Sequential(
        torch.nn.Linear(7, 6, bias=False),
        torch.nn.BatchNorm1d(6),
        torch.nn.ReLU(),
        torch.nn.Linear(6, 4),
    )
    with torch.no_grad():
        there[0].weight.copy_(torch.tensor(network.weights[0].T))
        there[3].weight.copy_(torch.tensor(network.weights[-2].T))
        there[3].bias.zero_()
    trained(network, GRID.take(1), recipe, data)
    optimizer = torch.optim.AdamW(there.parameters(), lr=0.02, betas=(0.9, 0.99), weight_decay=0.01)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.05, total_iters=1)
    X, codes = torch.tensor(data[0]), torch.tensor(data[1].argmax(axis=0))
    rng = np.random.default_rng(5)
    for _ in range(3):
        order = torch.tensor(rng.permutation(96))
        for rows in order.split(32):
            optimizer.zero_grad()
            torch.nn.CrossEntropyLoss()(there(X[rows]), codes[rows]).backward()
            torch.nn.utils.clip_grad_norm_(there.parameters(), 1.0)
            optimizer.step()
            warm.step()
    assert np.allclose(network.weights[0], there[0].weight.detach().numpy().T, atol=1e-5)
    assert np.allclose(network.weights[-2], there[3].weight.detach().numpy().T, atol=1e-5)
    assert np.allclose(network.running[0][1], there[1].running_var.numpy(), atol=1e-4)
    logits = there.eval()(X).detach().numpy()
    assert np.allclose(network.logits(data[0])[:, 0].T, logits, atol=1e-4)


def batch(classes, rows=24, width=5):
    rng = np.random.default_rng(classes)
    codes = rng.integers(classes, size=rows)
    return rng.normal(size=(rows, width)).astype(np.float32), codes


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_losses_and_scores_are_those_of_scikit_learn(loops, classes):
    _, codes = batch(classes, rows=60)
    outputs = 1 if classes == 2 else classes
    logits = np.random.default_rng(1).normal(0, 3, (outputs, 4, 60))
    loss, score = losses(logits, targets(codes, classes)), selection_scores(logits, codes)
    given = probabilities(logits.copy())
    for head in range(4):
        shares = given[:, head].T
        shares = np.hstack([1 - shares, shares]) if classes == 2 else shares
        predicted = shares.argmax(axis=1)
        assert loss[head] == pytest.approx(log_loss(codes, shares, labels=range(classes)))
        if classes == 2:
            raw = matthews_corrcoef(codes, predicted)
        else:
            f1 = f1_score(codes, predicted, average="macro", labels=range(classes))
            raw = (f1 - 1 / classes) / (1 - 1 / classes)
        assert score[head] == pytest.approx(max(0, raw), abs=1e-12)


def test_a_class_counts_for_a_head_if_it_occurs_or_is_predicted():
    codes = np.array([0, 1, 1, 0])
    first = np.eye(3)[[0, 1, 0, 0]].T  # the logits of a head, which predicts 0, 1, 0, 0
    second = np.eye(3)[[0, 2, 1, 0]].T
    scores = selection_scores(np.stack([first, second], axis=1), codes)
    f1 = [(4 / 5 + 2 / 3) / 2, (1 + 2 / 3 + 0) / 3]
    assert scores.tolist() == pytest.approx([(each - 1 / 3) / (2 / 3) for each in f1])


def test_huge_logits_keep_their_loss(loops):
    logits = np.array([[[1e4, -1e4, 1e4]]], dtype=np.float32)
    assert losses(logits, np.array([[1.0, 0.0, 0.0]])).tolist() == pytest.approx([1e4 / 3])
    three = np.array([[[200.0]], [[0.0]], [[-300.0]]])
    assert losses(three, np.array([[0.0], [0.0], [1.0]])).tolist() == [500.0]


def test_a_threshold_is_a_logit_of_zero(loops):
    # all logits within 0 and 1: they are logits all the same, and each says "yes"
    assert selection_scores(np.array([[[0.2, 0.4]]]), np.array([0, 1])).tolist() == [0.0]
    assert selection_scores(np.array([[[-0.2, 0.4]]]), np.array([0, 1])).tolist() == [1.0]


def slope(network, place, X, wanted):
    """The loss's slope along one weight, by a difference in float64."""
    values = []
    for step in (1e-4, -1e-4):
        moved = object.__new__(type(network))
        moved.__dict__.update(network.__dict__)
        moved.values = network.values.astype(np.float64)
        moved.values[place] += step
        moved.gradients = np.empty_like(moved.values)
        if hasattr(network, "running"):
            moved.weights, moved.slopes = moved.parts(moved.values), moved.parts(moved.gradients)
            moved.running = [each.copy() for each in network.running]
        predicted = moved.learn(X.astype(np.float64), wanted.astype(np.float64))
        values.append(losses(predicted, wanted).sum() * X.shape[0])
    return (values[0] - values[1]) / 2e-4


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("hidden", [[], [6], [6, 3]])
def test_gradients_are_the_slopes_of_the_loss(loops, classes, hidden):
    X, codes = batch(classes)
    outputs = 1 if classes == 2 else classes
    if hidden:
        network = Layered(5, outputs, hidden, drawn)
    else:
        network = Logistic(5, outputs, 2, drawn)
        network.values[1] *= -0.3
    X, wanted = prepared(network, X), targets(codes, classes)
    network.learn(X, wanted)
    rng = np.random.default_rng(0)
    starts = np.cumsum([0, *(part.size for part in getattr(network, "weights", [network.values]))])
    places = (rng.integers(*ends, 4) for ends in pairwise(starts.tolist()))
    for place in np.concatenate(list(places)):
        place = np.unravel_index(place, network.values.shape)
        expected = slope(network, place, X, wanted)
        assert network.gradients[place] == pytest.approx(expected, rel=2e-3, abs=2e-3)


def test_seeds_are_those_of_the_original():
    first = next(repetitions(10, 5))
    assert first.cut == 865890962
    assert first.weights == (2464987226, 3442928275, 244800193, 870809707, 3528135495)
    assert first.orders == (3161574360, 645645678, 2341447860, 1293698719, 3673899258)
    assert bootstrap_seed(10) == 1260762361
    assert MASTER == 9847706


def test_folds_are_counted_through_all_repetitions():
    third = list(repetitions(3, 4))[2]
    assert fold_seeds(9, 4) == (third.weights[1], third.orders[1])
    assert fold_seeds(0, 5) == (2464987226, 3161574360)


def test_more_repetitions_leave_the_earlier_ones_as_they_are():
    few, many = list(repetitions(2, 5)), list(repetitions(7, 5))
    assert [each.weights for each in few] == [each.weights for each in many[:2]]


# What PyTorch 2.13 gives for a seed, written down so that the test needs no PyTorch.
TORCH_WEIGHTS = [
    [0.04032507538795471, -0.3477921187877655, 0.18384182453155518],
    [0.1811612844467163, -0.3085803687572479, -0.0865316316485405],
]
TORCH_ORDERS = [[1, 3, 5, 7, 9, 4, 6, 2, 8, 0], [5, 1, 6, 0, 9, 7, 8, 4, 3, 2]]


def test_weights_are_those_of_pytorch():
    # torch.manual_seed(7); torch.nn.Linear(3, 2, bias=False).weight
    drawn = TorchGenerator(7).weights(3, 2).T.tolist()
    assert drawn == TORCH_WEIGHTS


def test_orders_are_those_of_a_pytorch_data_loader():
    # two epochs of DataLoader(range(10), shuffle=True, generator=Generator().manual_seed(7))
    orders = TorchGenerator(7).epochs(10)
    assert [next(orders).tolist() for _ in range(2)] == TORCH_ORDERS


def test_orders_drawn_at_once_are_those_drawn_one_after_the_other():
    words, orders = TorchGenerator(5), TorchGenerator(5).epochs(30)
    for _ in range(20):
        own = words.take(2 + 2 * 29)
        assert next(orders).tolist() == _shuffled(30, own[2:31]).tolist()


@pytest.mark.parametrize("size", [1, 2, 37])
def test_an_order_has_every_place_once(size):
    orders = TorchGenerator(3).epochs(size)
    for _ in range(20):
        assert sorted(next(orders).tolist()) == list(range(size))


def test_against_pytorch_itself():
    torch = pytest.importorskip("torch")
    for seed in (0, 2464987226, 2**32 - 2):
        torch.manual_seed(seed)
        layers = [torch.nn.Linear(37, 256, bias=False), torch.nn.Linear(256, 3)]
        words = TorchGenerator(seed)
        for layer in layers:
            drawn = words.weights(layer.in_features, layer.out_features)
            assert np.array_equal(layer.weight.detach().numpy().T, drawn)
        generator = torch.Generator().manual_seed(seed)
        rows = torch.utils.data.TensorDataset(torch.arange(700))
        loader = torch.utils.data.DataLoader(rows, 128, shuffle=True, generator=generator)
        orders = TorchGenerator(seed).epochs(700)
        for _ in range(11):
            given = torch.cat([batch[0] for batch in loader]).numpy()
            assert np.array_equal(given, next(orders))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 8, 641])
def test_an_order_swaps_each_place_in_turn_with_a_later_one(size):
    words = np.random.default_rng(size).integers(2**32, size=max(size - 1, 0), dtype=np.uint32)
    expected = list(range(size))
    for place, word in enumerate(words.tolist()):
        other = place + word % (size - place)
        expected[place], expected[other] = expected[other], expected[place]
    assert _shuffled(size, words).tolist() == expected
