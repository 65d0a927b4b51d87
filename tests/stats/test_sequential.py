"""E-processes keep their level whenever one stops, and find clear losses early."""

import numpy as np
import pytest

from karat.stats.sequential import BETS, loss_e_process


def test_by_hand():
    found = loss_e_process([-1.0, 0.0, 1.0], margin=0.1)
    bets = BETS / 1.1
    expected = np.cumprod([1 + 0.9 * bets, 1 - 0.1 * bets, 1 - 1.1 * bets], axis=0).mean(axis=1)
    assert found == pytest.approx(expected)
    with pytest.raises(ValueError, match="1"):
        loss_e_process([2.0], margin=0.1)


@pytest.mark.parametrize("differing", [0.02, 0.1, 0.5])
def test_false_alarms_at_any_time_are_below_the_level(differing):
    """The true loss is the margin; the process is read after each of 1,500 items."""
    rng, margin, runs = np.random.default_rng(0), 0.02, 400
    chances = [(differing + margin) / 2, 1 - differing, (differing - margin) / 2]
    for level in (0.05, 0.2):
        drawn = rng.choice([-1.0, 0.0, 1.0], (runs, 1500), p=chances)
        alarms = np.mean([loss_e_process(own, margin).max() >= 1 / level for own in drawn])
        assert alarms <= level + 2 * np.sqrt(level * (1 - level) / runs)


def test_expected_value_is_one_at_the_margin():
    """By enumeration: of three items whose mean difference is the margin."""
    values, chances = np.array([-1.0, 0.0, 1.0]), np.array([0.3, 0.5, 0.2])
    whole = 0.0
    for places in np.ndindex(3, 3, 3):
        own = list(places)
        whole += chances[own].prod() * loss_e_process(values[own], margin=0.1)[-1]
    assert whole == pytest.approx(1.0)


def test_a_clear_loss_is_found_early():
    rng = np.random.default_rng(1)
    drawn = rng.choice([-1.0, 0.0, 1.0], (100, 1000), p=[0.15, 0.8, 0.05])
    stops = [int(np.argmax(loss_e_process(own, 0.01) >= 100)) for own in drawn]
    assert 0 < np.median(stops) < 400
