"""The random numbers of Ulysses SentEval without PyTorch: seeds, weights, shuffles.

PyTorch's CPU generator is the same Mersenne Twister as NumPy's, with the same seeding; only the way
numbers, weights and orders are computed from its words differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

#: the default seed of the original
MASTER = 9847706
_TOP = 2**32 - 1
#: swaps each place of an order with the one that many steps after it
Shuffle = Callable[[np.ndarray, np.ndarray], None]


@dataclass(frozen=True)
class Repetition:
    """The seeds of one repetition; ``draws`` then shuffles the train rows of each fold."""

    undersample: np.random.RandomState
    cut: int
    weights: tuple[int, ...]
    orders: tuple[int, ...]
    draws: np.random.RandomState


def repetitions(repeats: int, folds: int, master: int = MASTER) -> Iterator[Repetition]:
    """Yield the seeds of each repetition.

    >>> next(repetitions(10, 5)).cut
    865890962
    """
    for seed in np.random.RandomState(master).randint(0, _TOP, size=repeats):
        draws = np.random.RandomState(seed)
        undersample, cut = draws.randint(0, _TOP, size=2)
        weights, orders = draws.randint(0, _TOP, size=(2, folds)).tolist()
        draws.random_sample()  # in the original, the delay of a progress bar
        sampler = np.random.RandomState(undersample)
        yield Repetition(sampler, int(cut), tuple(weights), tuple(orders), draws)


def shuffles(size: int, times: int) -> Iterator[np.ndarray]:
    """Yield the orders of rows that are shuffled repeatedly, with the seeds 0, 1, 2 and so on.

    >>> [order.tolist() for order in shuffles(4, 2)]
    [[2, 3, 1, 0], [0, 1, 2, 3]]
    """
    order = np.arange(size)
    for seed in range(times):
        drawn = np.arange(size)
        np.random.RandomState(seed).shuffle(drawn)
        order = order[drawn]
        yield order


def bootstrap_seed(repeats: int, master: int = MASTER) -> int:
    """Return the seed of the confidence intervals, drawn after those of the repetitions.

    >>> bootstrap_seed(10)
    1260762361
    """
    draws = np.random.RandomState(master)
    draws.randint(0, _TOP, size=repeats)
    return int(draws.randint(0, _TOP))


def interval_seeds(names: Iterable[str], seed: int) -> dict[str, int]:
    """Return a seed for the confidence interval of each name, independent of their order.

    >>> interval_seeds(["b", "a"], 1260762361) == interval_seeds(["a", "b"], 1260762361)
    True
    """
    ordered = sorted(names)
    drawn = np.random.RandomState(seed).randint(0, _TOP, size=len(ordered))
    return dict(zip(ordered, drawn.tolist(), strict=True))


def resamples(size: int, times: int, seed: int) -> np.ndarray:
    """Return the indices of ``times`` bootstrap samples of ``size`` values."""
    return np.random.RandomState(seed).randint(0, size, size=(times, size), dtype=np.int32)


def fold_seeds(fold: int, folds: int, master: int = MASTER) -> tuple[int, int]:
    """Return the seeds of a fold's weights and orders; folds are numbered across repetitions."""
    repeat, place = divmod(fold, folds)
    *_, repetition = repetitions(repeat + 1, folds, master)
    return repetition.weights[place], repetition.orders[place]


class TorchGenerator:
    """PyTorch's CPU generator: a stream of 32-bit words, and the values computed from it.

    ``shuffle`` may be a faster function that swaps the places of an order in turn.
    """

    def __init__(self, seed: int, shuffle: Shuffle | None = None) -> None:
        self._shuffle = shuffle or _shuffle
        self._words = np.random.RandomState(seed & _TOP)

    def take(self, count: int) -> np.ndarray:
        """Return the next words."""
        return self._words.randint(0, 2**32, size=count, dtype=np.uint32)

    def weights(self, inputs: int, outputs: int) -> np.ndarray:
        """Return the initial weights of a linear layer, a row per input."""
        bound = np.float32(math.sqrt(3.0) * (math.sqrt(2.0 / 6.0) / math.sqrt(inputs)))
        parts = self.take(inputs * outputs) & np.uint32(2**24 - 1)
        # rounded once, like a fused multiply-add
        drawn = (parts * 2.0**-24 * float(2 * bound) - float(bound)).astype(np.float32)
        return np.ascontiguousarray(drawn.reshape(outputs, inputs).T)

    def order(self, size: int) -> np.ndarray:
        """Return a shuffled ``range(size)``."""
        return self._shuffled(size, self.take(max(size - 1, 0)))

    def epoch(self, size: int) -> np.ndarray:
        """Return the order of an epoch, and skip the other numbers that a data loader draws.

        These are the seed of its workers and an order for the remainder, which is empty.
        """
        steps = max(size - 1, 0)
        return self._shuffled(size, self.take(2 + 2 * steps)[2 : 2 + steps])

    def _shuffled(self, size: int, words: np.ndarray) -> np.ndarray:
        order = np.arange(size)
        self._shuffle(order, words % np.arange(size, 1, -1, dtype=np.uint32))
        return order


def _shuffle(order: np.ndarray, steps: np.ndarray) -> None:
    """Swap each place of the order with the one that many steps after it."""
    places = order.tolist()
    for place, other in enumerate((steps + np.arange(len(steps))).tolist()):
        held = places[place]
        places[place] = places[other]
        places[other] = held
    order[:] = places
