"""Stacked training against AdamW by the book and PyTorch."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss, matthews_corrcoef

from karat.probes.heads.stacked_training import (
    Descent,
    Layered,
    Logistic,
    Rates,
    Recipe,
    above_chance,
    kernels,
    losses,
    probabilities,
    targets,
)

GRID = Rates(np.array([0.01, 0.02, 0.05]), np.array([0.8, 0.9, 0.9]), np.array([0.99, 0.99, 0.9]))
KERNELS = "karat.probes.heads.stacked_training.kernels"
LOADED = "karat.probes.heads.stacked_training._loaded"


def drawn(inputs, outputs):
    return np.random.default_rng(inputs).normal(0, 0.5, (inputs, outputs)).astype(np.float32)


@pytest.fixture(params=["numpy", "compiled"])
def loops(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(KERNELS, lambda: None)
        monkeypatch.setattr(LOADED, lambda name: None)
    elif kernels() is None:
        pytest.skip("numba is not installed")
    monkeypatch.setattr("karat.probes.heads.stacked_training.LARGE", 0)


def problem(classes, rows, width=7):
    rng = np.random.default_rng(classes)
    codes = rng.integers(classes, size=rows)
    X = rng.normal(size=(rows, width)) + rng.normal(size=(classes, width))[codes]
    return X.astype(np.float32), targets(codes, classes)


def trained(network, rates, recipe, data, epochs=3):
    X, wanted = data
    X = network.prepare(X)
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
    data, recipe = problem(2, 150), Recipe(batch_size=16, clip=clip)
    together = Logistic(7, 1, 3, drawn)
    trained(together, GRID, recipe, data)
    for head in range(3):
        alone = Logistic(7, 1, 1, drawn)
        rates = GRID.take(head)
        trained(alone, rates, recipe, data)
        numbers = rates.rate[0], rates.beta1[0], rates.beta2[0]
        expected = by_the_book(data, *numbers, recipe)
        assert np.allclose(alone.values[0, 0], expected, atol=2e-5)
        assert np.allclose(together.values[0, head], expected, atol=2e-5)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("hidden", [[], [6]])
def test_compiled_loops_give_the_same_weights(classes, hidden, monkeypatch):
    if kernels() is None:
        pytest.skip("numba is not installed")
    data, recipe = problem(classes, 150), Recipe(batch_size=16)
    outputs = 1 if classes == 2 else classes
    made = []
    monkeypatch.setattr("karat.probes.heads.stacked_training.LARGE", 0)
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
        data, recipe = problem(classes, 150), Recipe(batch_size=16, clip=clip)
        made.append((trained(network, rates, recipe, data).moments, network.values))
        monkeypatch.setattr(LOADED, lambda name: None)
    for compiled, plain in zip(*made, strict=True):
        np.testing.assert_array_equal(compiled, plain)


def test_the_logits_of_a_step_are_those_of_the_heads():
    X, wanted = problem(3, 40)
    network = Logistic(7, 3, 5, drawn)
    network.values += np.arange(5, dtype=np.float32)[:, None] / 10
    X = network.prepare(X)
    np.testing.assert_allclose(network.learn(X, wanted), network.logits(X), rtol=1e-5, atol=1e-6)


def changes(rows, recipe):
    network = Logistic(7, 1, 1, drawn)
    descent = trained(network, GRID.take(1), recipe, problem(2, rows), epochs=2)
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
    assert not np.allclose(network.values[0, 0, :-1], drawn(7, 1)[:, 0], atol=1e-4)


def test_rows_that_fill_no_batch_are_left_out(loops):
    assert changes(47, Recipe(batch_size=16))[0].steps == 2 * 2


def test_a_longer_plan_goes_on_where_the_first_ended():
    descent = Descent(Logistic(7, 1, 3, drawn), GRID, Recipe())
    whole = descent._planned(400, 5)
    given = np.concatenate([descent._changes(5) for _ in range(80)])
    assert np.array_equal(given, whole)


def test_against_pytorch(loops):
    torch = pytest.importorskip("torch")
    data, recipe = problem(4, 96), Recipe(batch_size=32)
    network = Layered(7, 4, [6], drawn)
    there = torch.nn.Sequential(
        *(torch.nn.Linear(7, 6, bias=False), torch.nn.BatchNorm1d(6), torch.nn.ReLU()),
        torch.nn.Linear(6, 4),
    )
    with torch.no_grad():
        there[0].weight.copy_(torch.tensor(network.weights[0].T))
        there[3].weight.copy_(torch.tensor(network.weights[3].T))
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
    assert np.allclose(network.weights[3], there[3].weight.detach().numpy().T, atol=1e-5)
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
    loss, score = losses(logits, targets(codes, classes)), above_chance(logits, codes)
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


def test_huge_logits_keep_their_loss(loops):
    logits = np.array([[[1e4, -1e4, 1e4]]], dtype=np.float32)
    assert losses(logits, np.array([[1.0, 0.0, 0.0]])).tolist() == pytest.approx([1e4 / 3])
    three = np.array([[[200.0]], [[0.0]], [[-300.0]]])
    assert losses(three, np.array([[0.0], [0.0], [1.0]])).tolist() == [500.0]


def test_a_threshold_is_a_logit_of_zero(loops):
    # all logits within 0 and 1: they are logits all the same, and each says "yes"
    assert above_chance(np.array([[[0.2, 0.4]]]), np.array([0, 1])).tolist() == [0.0]
    assert above_chance(np.array([[[-0.2, 0.4]]]), np.array([0, 1])).tolist() == [1.0]


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
            moved.running = [[np.array(each) for each in pair] for pair in network.running]
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
        network.values[:, 1] *= -0.3
    X, wanted = network.prepare(X), targets(codes, classes)
    network.learn(X, wanted)
    rng = np.random.default_rng(0)
    starts = np.cumsum([0, *(part.size for part in getattr(network, "weights", [network.values]))])
    places = (rng.integers(*ends, 4) for ends in pairwise(starts.tolist()))
    for place in np.concatenate(list(places)):
        place = np.unravel_index(place, network.values.shape)
        expected = slope(network, place, X, wanted)
        assert network.gradients[place] == pytest.approx(expected, rel=2e-3, abs=2e-3)
