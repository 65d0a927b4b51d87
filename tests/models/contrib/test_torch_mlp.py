"""The feed-forward network: training, early stopping and reproducibility."""

import pickle
import sys

import numpy as np
import pytest

from karat.errors import MissingExtra
from karat.models.contrib.torch_mlp import LEAST_STEPS, Adam, NetClassifier, NetRegressor


def corners(count=600, seed=0):
    """Return points and which side of zero the product of their coordinates lies on."""
    X = np.random.default_rng(seed).uniform(-1, 1, (count, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"karat\[net\]"):
        NetClassifier().fit(*corners(40))


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_it_learns_what_no_line_separates(torch):
    X, y = corners()
    test, truth = corners(500, seed=1)
    fitted = NetClassifier(random_state=0).fit(X, np.array(["out", "in"])[y])
    assert np.mean(fitted.predict(test) == np.array(["out", "in"])[truth]) > 0.93
    chances = fitted.predict_proba(test)
    assert chances.sum(axis=1) == pytest.approx(np.ones(500))
    assert np.array_equal(fitted.classes_[chances.argmax(axis=1)], fitted.predict(test))


def test_it_learns_numbers_in_their_own_units(torch):
    X, _ = corners()
    y = 1e6 + 1e5 * X[:, 0] * X[:, 1]
    fitted = NetRegressor(random_state=0).fit(X, y)
    assert np.var(fitted.predict(X) - y) / np.var(y) < 0.05


def test_a_truth_that_does_not_vary_is_nearly_the_answer(torch):
    X, _ = corners(60)
    found = NetRegressor(random_state=0).fit(X, np.full(60, 1000.0)).predict(X)
    assert found == pytest.approx(np.full(60, 1000.0), abs=0.5)


def test_it_stops_after_the_lowest_loss_and_goes_back_to_it(torch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 20)), rng.integers(0, 2, 300)  # nothing to learn: it must overfit
    fitted = NetClassifier(patience=4, random_state=0).fit(X, y)
    losses = [step["value"] for step in fitted.history_]
    assert [step["epoch"] for step in fitted.history_] == list(range(1, len(losses) + 1))
    assert len(losses) == int(np.argmin(losses)) + 1 + 4 < 200
    # stopping at that epoch gives those weights; going on does not
    short = NetClassifier(epochs=int(np.argmin(losses)) + 1, patience=999, random_state=0).fit(X, y)
    for one, other in zip(fitted.weights_, short.weights_, strict=True):
        assert np.array_equal(one, other)


def test_held_out_rows_teach_nothing(torch, monkeypatch):
    X, y = corners(200)
    drawn = np.zeros(200, dtype=bool)
    drawn[::10] = True
    monkeypatch.setattr(
        "karat.models.contrib.torch_mlp.sample_rows", lambda *_: np.flatnonzero(drawn)
    )
    one = NetClassifier(epochs=3, random_state=0).fit(X, y)
    changed = np.where(drawn[:, None], X + 0.1, X)
    two = NetClassifier(epochs=3, random_state=0).fit(changed, y)
    assert [h["value"] for h in one.history_] != [h["value"] for h in two.history_]
    assert all(np.array_equal(a, b) for a, b in zip(one.weights_, two.weights_, strict=True))


def test_few_rows_are_all_learned_from(torch):
    X, y = corners(40)
    fitted = NetClassifier(epochs=50, random_state=0).fit(X, y)
    assert fitted.history_ == []
    assert np.mean(fitted.predict(X) == y) > 0.9


def test_every_row_is_met_in_an_epoch_and_batches_are_shuffled(torch):
    net, rng = NetClassifier(batch=16), np.random.default_rng(0)
    batches = [part.tolist() for part in net._batches(1000, rng)]
    met = [row for part in batches for row in part]
    assert sorted(met) == list(range(1000)) and met != sorted(met)
    assert len(list(net._batches(30, rng))) == LEAST_STEPS


def test_the_seed_decides_all_and_other_generators_are_left_alone(torch):
    X, y = corners(120)
    before = torch.random.get_rng_state().clone(), repr(np.random.get_state())
    threads = torch.get_num_threads()
    one, two, other = (NetClassifier(epochs=5, random_state=s).fit(X, y) for s in (1, 1, 2))
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert before[1] == repr(np.random.get_state())
    assert torch.get_num_threads() == threads


def test_a_fitted_net_answers_without_torch(torch, monkeypatch):
    X, y = corners(120)
    fitted = NetClassifier(epochs=5, random_state=1).fit(X, y)
    expected = fitted.predict_proba(X)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), expected)


def test_adam_steps_as_torchs_own(torch):
    begin = torch.tensor(np.random.default_rng(0).normal(size=(5, 3)))
    ours, theirs = (begin.clone().requires_grad_() for _ in range(2))
    adam, reference = Adam([ours], 0.01), torch.optim.Adam([theirs], lr=0.01)
    for _ in range(60):
        for weights in (ours, theirs):
            (weights.sin() ** 2).sum().backward()
        adam.step()
        reference.step()
        reference.zero_grad()
    assert ours.detach().numpy() == pytest.approx(theirs.detach().numpy(), abs=1e-12)
