"""Tests that are valid after every item: e-processes of bounded paired differences."""

from __future__ import annotations

from typing import Any

import numpy as np

#: shares of the wealth that are bet on a loss; the e-process is the mean over them
BETS = np.geomspace(0.005, 0.9, 20)


def loss_e_process(differences: Any, margin: float) -> np.ndarray:
    """Return the evidence after each item that the mean difference is below ``-margin``.

    Differences lie in [-1, 1]. As long as each has a conditional mean of ``-margin`` or more, given
    the items before it, the result is a supermartingale that starts at 1: the probability that it
    ever reaches 1 / level is at most the level (Ville's inequality), whenever one stops. It is the
    wealth of a gambler who bets a share of it on a loss at every item (Waudby-Smith and Ramdas
    2024), averaged over several shares.

    >>> loss_e_process([0.0, 0.0], margin=0.01).round(4).tolist()
    [0.9981, 0.9963]
    >>> bool(loss_e_process([-1.0] * 20, margin=0.01)[-1] > 100)
    True
    """
    given = np.asarray(differences, dtype=float)
    if given.size and np.abs(given).max() > 1:
        raise ValueError("differences must lie in [-1, 1].")
    # at most 0.9 × (1 + margin) can be lost, so that the wealth stays positive
    bets = BETS / (1 + margin)
    logs = np.log1p(-bets * (given[:, None] + margin)).cumsum(axis=0)
    return np.asarray(np.exp(logs).mean(axis=1))
