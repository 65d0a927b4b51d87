import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss, matthews_corrcoef

import karat.probes.heads.stacked_training
from karat.probes.heads.stacked_training import (
    Layered,
    Logistic,
    above_chance,
    kernels,
    losses,
    probabilities,
    targets,
)


@pytest.fixture(autouse=True, params=["numpy", "compiled"])
def loops(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(karat.heads.networks, "kernels", lambda: None)
    elif kernels() is None:
        pytest.skip("numba is not installed")


def drawn(inputs, outputs):
    return np.random.default_rng(inputs).normal(0, 0.5, (inputs, outputs)).astype(np.float32)


def batch(classes, rows=24, width=5):
    rng = np.random.default_rng(classes)
    codes = rng.integers(classes, size=rows)
    return rng.normal(size=(rows, width)).astype(np.float32), codes


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_losses_and_scores_are_those_of_scikit_learn(classes):
    _, codes = batch(classes, rows=60)
    outputs = 1 if classes == 2 else classes
    logits = np.random.default_rng(1).normal(0, 3, (outputs, 4, 60))
    loss, score = losses(logits, targets(codes, classes)), above_chance(logits, codes)
    given = probabilities(logits.copy())
    for head in range(4):
        shares = given[:, head].T
        shares = np.hstack([1 - shares, shares]) if classes == 2 else shares
        said = shares.argmax(axis=1)
        assert loss[head] == pytest.approx(log_loss(codes, shares, labels=range(classes)))
        if classes == 2:
            raw = matthews_corrcoef(codes, said)
        else:
            f1 = f1_score(codes, said, average="macro", labels=range(classes))
            raw = (f1 - 1 / classes) / (1 - 1 / classes)
        assert score[head] == pytest.approx(max(0, raw), abs=1e-12)


def test_huge_logits_keep_their_loss():
    logits = np.array([[[1e4, -1e4, 1e4]]], dtype=np.float32)
    assert losses(logits, np.array([[1.0, 0.0, 0.0]])).tolist() == pytest.approx([1e4 / 3])
    three = np.array([[[200.0]], [[0.0]], [[-300.0]]])
    assert losses(three, np.array([[0.0], [0.0], [1.0]])).tolist() == [500.0]


def test_a_threshold_is_a_logit_of_zero():
    # all logits within 0 and 1: they are logits all the same, and each says "yes"
    assert above_chance(np.array([[[0.2, 0.4]]]), np.array([0, 1])).tolist() == [0.0]
    assert above_chance(np.array([[[-0.2, 0.4]]]), np.array([0, 1])).tolist() == [1.0]


def slope(network, part, place, X, wanted):
    """The loss's slope along one weight, by a difference in float64."""
    values = []
    for step in (1e-4, -1e-4):
        weights = [each.astype(np.float64) for each in network.weights]
        weights[part][place] += step
        moved = object.__new__(type(network))
        moved.__dict__.update(network.__dict__)
        moved.weights = weights
        moved.gradients = [np.empty_like(each) for each in weights]
        if hasattr(network, "running"):
            moved.running = [[np.array(each) for each in pair] for pair in network.running]
        said = moved.learn(X.astype(np.float64), wanted.astype(np.float64))
        values.append(losses(said, wanted).sum() * X.shape[0])
    return (values[0] - values[1]) / 2e-4


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("hidden", [[], [6], [6, 3]])
def test_gradients_are_the_slopes_of_the_loss(classes, hidden):
    X, codes = batch(classes)
    outputs = 1 if classes == 2 else classes
    if hidden:
        network = Layered(5, outputs, hidden, drawn)
    else:
        network = Logistic(5, outputs, 2, drawn)
        network.weights[0][:, 1] *= -0.3
    X, wanted = network.prepare(X), targets(codes, classes)
    network.learn(X, wanted)
    rng = np.random.default_rng(0)
    for part, weights in enumerate(network.weights):
        for _ in range(4):
            place = tuple(rng.integers(size) for size in weights.shape)
            expected = slope(network, part, place, X, wanted)
            assert network.gradients[part][place] == pytest.approx(expected, rel=2e-3, abs=2e-3)


def test_heads_side_by_side_are_as_if_alone():
    X, codes = batch(3)
    both = Logistic(5, 3, 2, drawn)
    both.weights[0][:, 1] += 0.25
    X, wanted = both.prepare(X), targets(codes, 3)
    logits = both.learn(X, wanted)
    for head in range(2):
        one = Logistic(5, 3, 1, drawn)
        one.weights[0][:, 0] = both.weights[0][:, head]
        assert np.allclose(one.learn(X, wanted)[:, 0], logits[:, head], atol=1e-6)
        assert np.allclose(one.gradients[0][:, 0], both.gradients[0][:, head], atol=1e-5)


def test_hidden_layers_against_pytorch():
    torch = pytest.importorskip("torch")
    X, codes = batch(3)
    network = Layered(5, 3, [6], drawn)
    there = torch.nn.Sequential(
        torch.nn.Linear(5, 6, bias=False),
        torch.nn.BatchNorm1d(6),
        torch.nn.ReLU(),
        torch.nn.Linear(6, 3),
    )
    with torch.no_grad():
        there[0].weight.copy_(torch.tensor(network.weights[0].T))
        there[3].weight.copy_(torch.tensor(network.weights[3].T))
        there[3].bias.zero_()
    loss = torch.nn.CrossEntropyLoss(reduction="sum")(there(torch.tensor(X)), torch.tensor(codes))
    loss.backward()
    network.learn(X, targets(codes, 3))
    given = [there[0].weight.grad.T, there[1].weight.grad, there[1].bias.grad]
    given += [there[3].weight.grad.T, there[3].bias.grad]
    for ours, theirs in zip(network.gradients, given, strict=True):
        assert np.allclose(ours, theirs.numpy(), atol=1e-4)
    there.eval()
    with torch.no_grad():
        assert np.allclose(network.logits(X)[:, 0].T, there(torch.tensor(X)).numpy(), atol=1e-5)
