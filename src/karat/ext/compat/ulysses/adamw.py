"""The head of Ulysses SentEval: AdamW with a small grid, trained at once, and early stopping.

Stacked logistic heads and small networks with hidden layers are trained on mini-batches, with
warm-up, clipped gradients, and one learning rate per head. Logits have the shape (outputs, heads,
rows), targets (outputs, rows); two classes need one output. Gradients are those of the summed loss.

Inner loops are compiled if numba is installed (``pip install "karat[fast]"``). They compute the
same as the NumPy code with fewer passes over memory; the last digits differ.

The random numbers are those of Ulysses SentEval without PyTorch. PyTorch's CPU generator is the
same Mersenne Twister as NumPy's, with the same seeding; only the way numbers, weights and orders
are computed from its words differs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from karat.core.registry import head
from karat.errors import DataError, DefinitionError

#: the default seed of the original
MASTER = 9847706
_TOP = 2**32 - 1
#: number of epochs whose orders are drawn at once: those of a grid point
AT_ONCE = 8
#: with more outputs, matrix products of a library are faster than a compiled epoch
FEW = 16
#: a compiled epoch processes this many rows at a time
BLOCK = 4
#: values times outputs from which compiled loops of a linear head pay for numba's import
LARGE = 3_000_000
EPSILON = 1e-8
#: elements that NumPy buffers in an epoch: with more, it copies the factors of the heads
SHORT = 256
#: number of epochs for which the step sizes are computed at once
AHEAD = 25
#: returns the initial weights of a layer (inputs, outputs)
FirstWeights = Callable[[int, int], np.ndarray]
MODES = ("fast", "exact")
#: a column counts as constant, and is not scaled, if its spread is below this share of its maximum
CONSTANT = 1e-6


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
        yield Repetition(
            undersample=sampler,
            cut=int(cut),
            weights=tuple(weights),
            orders=tuple(orders),
            draws=draws,
        )


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
    repeat, partition = divmod(fold, folds)
    *_, repetition = repetitions(repeat + 1, folds, master)
    return repetition.weights[partition], repetition.orders[partition]


class TorchGenerator:
    """PyTorch's CPU generator: a stream of 32-bit words, and the values computed from it."""

    def __init__(self, seed: int) -> None:
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

    def epochs(self, size: int) -> Iterator[np.ndarray]:
        """Yield the order of each epoch; those of several epochs are drawn at once.

        Skipped are the other numbers that a data loader draws: the seed of its workers and an order
        for the remainder, which is empty.
        """
        steps = max(size - 1, 0)
        while True:
            words = self.take(AT_ONCE * (2 + 2 * steps)).reshape(AT_ONCE, -1)
            yield from [_shuffled(size, epoch_words) for epoch_words in words[:, 2 : 2 + steps]]


def _shuffled(size: int, words: np.ndarray) -> np.ndarray:
    """Return ``range(size)`` after swapping each place in turn with a later one."""
    from scipy.linalg.lapack import dlaswp  # swaps rows in turn, for decompositions with pivots

    order = np.arange(size)
    if size < 2:
        return order
    others = order[:-1] + words % np.arange(size, 1, -1, dtype=np.uint32)
    return np.asarray(dlaswp(order[:, None].astype(float), others)[:, 0].astype(order.dtype))


@cache
def _loops() -> Any | None:
    try:
        from karat.ext.compat.ulysses import adamw_numba
    except ImportError:
        return None
    return adamw_numba


def kernels() -> Any | None:
    """Return the module of compiled loops, or None without numba."""
    return _loops()


def _loaded(name: str) -> Any | None:
    """Return a compiled loop with the digits of NumPy, if another head has loaded the module."""
    return getattr(_loops(), name, None) if _loops.cache_info().currsize else None


class Network(Protocol):
    """A trainable network: weights, their gradients after ``learn``, and logits.

    ``values`` has all weights and ``gradients`` their gradients, both with one row per head.
    """

    heads: int
    values: np.ndarray
    gradients: np.ndarray

    def logits(self, X: np.ndarray) -> np.ndarray: ...  # noqa: D102
    def learn(self, X: np.ndarray, wanted: np.ndarray) -> np.ndarray: ...  # noqa: D102


@dataclass(frozen=True)
class Rates:
    """Learning rate and the two betas of AdamW for each head."""

    rate: np.ndarray
    beta1: np.ndarray
    beta2: np.ndarray

    def take(self, head: int) -> Rates:
        """Return the rates of one head."""
        chosen = slice(head, head + 1)
        return Rates(self.rate[chosen], self.beta1[chosen], self.beta2[chosen])


@dataclass(frozen=True)
class Recipe:
    """Settings of the steps; the rate rises during the share ``warm_up`` of the first epoch."""

    batch_size: int = 128
    weight_decay: float = 0.01
    clip: float = 1.0
    warm_up: float = 0.25
    warm_up_start: float = 0.05


class Descent:
    """The training state of a network."""

    def __init__(self, network: Network, rates: Rates, recipe: Recipe) -> None:
        self.network = network
        self.recipe = recipe
        self.rates = rates
        self.steps = 0
        heads = network.heads
        self.moments = np.zeros((2, *network.values.shape), dtype=np.float32)
        self._state = network.values, self.moments, network.gradients
        self._spare = np.empty_like(network.values)
        betas = np.stack([rates.beta1, rates.beta2])
        self._memory = np.concatenate([betas, 1 - betas]).astype(np.float32)
        self._plan = np.empty((0, 3, heads), dtype=np.float32)

    def epoch(self, X: np.ndarray, wanted: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Make one step per full batch; return the first head's logits before each step.

        ``wanted`` is in the given order. An incomplete last batch is dropped, unless it is the only
        one.
        """
        size = min(self.recipe.batch_size, len(order))
        batches = len(order) // size
        order = order[: batches * size]
        changes = self._changes(batches)
        logits = np.empty((len(wanted), 1, len(order)), dtype=np.float32)
        single = isinstance(self.network, Logistic) and self.network.heads == 1
        few = single and size % BLOCK == 0 and len(wanted) <= FEW
        if few and (compiled := self._kernels(X, len(wanted))):
            shape, clip = (len(wanted), X.shape[1]), np.float32(self.recipe.clip)
            state = self.network.values.reshape(shape), self.moments.reshape(2, *shape)
            arguments = (changes[:, :, 0], *state, self._memory[:, 0], clip, logits[:, 0])
            compiled.epoch(X, wanted, order, *arguments)
        elif few:
            self._train_one(X, wanted, order, changes, logits)
        else:
            before = np.setbufsize(SHORT)
            try:
                self._train(X, wanted, order, changes, logits)
            finally:
                np.setbufsize(before)
        return logits

    def _train(self, *arguments: np.ndarray) -> None:
        """Train several heads, or a network with hidden layers, for an epoch."""
        X, wanted, order, changes, logits = arguments
        size = len(order) // len(changes)
        update = _loaded("update_as_numpy") or partial(_update_numpy, spare=self._spare)
        update = compiled.update if (compiled := self._kernels(X, len(wanted))) else update
        rows = np.empty((size, X.shape[1]), dtype=np.float32)
        for number, change in enumerate(changes):
            batch = slice(number * size, (number + 1) * size)
            X.take(order[batch], 0, rows, "clip")
            logits[:, :, batch] = self.network.learn(rows, wanted[:, batch])[:, :1]
            update(*self._state, change, self._memory, self._scale(size))

    def _train_one(self, *arguments: np.ndarray) -> None:
        """Train one linear head for an epoch, with as few calls as possible."""
        X, wanted, order, changes, logits = arguments
        clip, size = self.recipe.clip, len(order) // len(changes)
        shape = len(wanted), X.shape[1]
        w, g = (part.reshape(shape) for part in self._state[::2])
        compiled, one = _loaded("update_as_numpy"), np.ones(1, dtype=np.float32)
        keep1, keep2, add1, add2 = self._memory[:, 0].tolist()
        rows = np.empty((size, X.shape[1]), dtype=np.float32)
        columns = rows.T
        for number, (shrink, move, small) in enumerate(changes[:, :, 0].tolist()):
            batch = slice(number * size, (number + 1) * size)
            X.take(order[batch], 0, rows, "clip")
            outputs = w.dot(columns)
            logits[:, 0, batch] = outputs
            errors = probabilities(outputs)
            errors -= wanted[:, batch]
            errors.dot(rows, g)
            scale = min(1.0, clip / (math.sqrt(np.vdot(g, g)) / size + 1e-6)) / size
            memory = (keep1, keep2, add1 * scale, add2 * scale * scale)
            if compiled is None:
                _move(self._state, self._spare, (shrink, move, small), memory)
            else:
                factors = np.array(memory, dtype=np.float32)[:, None]
                compiled(*self._state, changes[number], factors, one)

    def _kernels(self, X: np.ndarray, outputs: int) -> Any | None:
        """Return the compiled loops if the network has hidden layers or an epoch is long."""
        small = isinstance(self.network, Logistic) and X.size * outputs < LARGE
        return None if small else kernels()

    def _scale(self, size: int) -> np.ndarray:
        """Return the factor of each head's gradients: a mean over rows, clipped by its norm."""
        gradients = self.network.gradients
        squares = np.matmul(gradients[:, None], gradients[:, :, None])[:, 0, 0]
        norm = np.sqrt(squares) / np.float32(size) + np.float32(1e-6)
        return np.minimum(1, np.float32(self.recipe.clip) / norm) / np.float32(size)

    def _changes(self, batches: int) -> np.ndarray:
        """Return decay, step size and epsilon for each step of an epoch and each head."""
        if self.steps + batches > len(self._plan):
            self._plan = self._planned(self.steps + AHEAD * batches, batches)
        self.steps += batches
        return self._plan[self.steps - batches : self.steps]

    def _planned(self, steps: int, batches: int) -> np.ndarray:
        recipe, rates = self.recipe, self.rates
        done = np.arange(steps)[:, None]
        warm = max(1, math.floor(batches * recipe.warm_up))
        start = recipe.warm_up_start
        rate = rates.rate * (start + (1 - start) * np.minimum(1.0, done / warm))
        root = np.sqrt(1 - rates.beta2 ** (done + 1))
        move = rate * root / (1 - rates.beta1 ** (done + 1))
        parts = [1 - rate * recipe.weight_decay, move, EPSILON * root]
        return np.stack(parts, axis=1).astype(np.float32)


def _update_numpy(*arguments: np.ndarray, spare: np.ndarray) -> None:
    """Make an AdamW step and overwrite the gradients; the arguments are those of the loop."""
    *state, change, memory, scale = arguments
    keep1, keep2, add1, add2 = memory[:, :, None]
    by = scale[:, None]
    _move(state, spare, change[:, :, None], (keep1, keep2, add1 * by, add2 * by * by))


def _move(
    state: Sequence[np.ndarray],
    spare: np.ndarray,
    change: np.ndarray | Sequence[float],
    memory: Sequence[np.ndarray] | Sequence[float],
) -> None:
    """Make an AdamW step whose factors of new gradients include their scale."""
    (shrink, move, small), (keep1, keep2, add1, add2) = change, memory
    weights, (first, second), gradients = state
    first *= keep1
    first += np.multiply(gradients, add1, out=spare)
    second *= keep2
    gradients *= gradients
    gradients *= add2
    second += gradients
    np.sqrt(second, out=gradients)
    gradients += small
    np.divide(first, gradients, out=gradients)
    gradients *= move
    weights *= shrink
    weights -= gradients


#: epsilon and momentum of batch normalization
SMALL, MOMENTUM = np.float32(1e-5), np.float32(0.1)


def targets(codes: np.ndarray, classes: int) -> np.ndarray:
    """Return class codes as targets of the network: 0 and 1, or one-hot rows."""
    if classes == 2:
        return codes.astype(np.float32)[None]
    return (np.arange(classes)[:, None] == codes).astype(np.float32)


@cache
def _sigmoid() -> Any:
    from scipy.special import expit

    return expit


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Turn logits into probabilities, in place."""
    if len(logits) == 1:
        sigmoid = _sigmoid()
        return sigmoid(logits, out=logits)
    logits -= np.maximum.reduce(logits)
    np.exp(logits, out=logits)
    logits /= np.add.reduce(logits)
    return logits


def losses(logits: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the mean cross-entropy of each head; targets may differ between heads.

    >>> losses(np.zeros((1, 1, 3)), np.array([[0.0, 1.0, 1.0]])).round(4).tolist()
    [0.6931]
    """
    wanted = wanted if wanted.ndim == 3 else wanted[:, None]
    if len(logits) == 1:
        z = logits[0]
        loss = np.abs(z)  # log(1 + exp(z)) without overflow
        np.log1p(np.exp(np.negative(loss, out=loss), out=loss), out=loss)
        loss += np.maximum(z, 0)
        loss -= z * wanted[0]
    else:
        top = np.maximum.reduce(logits)
        loss = top + np.log(np.add.reduce(np.exp(logits - top)))
        loss -= np.einsum("chn,chn->hn", logits, wanted)
    return np.asarray(loss.sum(axis=-1), dtype=np.float64) / logits.shape[-1]


def selection_scores(logits: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the score of each head: MCC, or chance-adjusted macro-F1; negative scores are 0.

    >>> logits = np.array([[[2.0, 1.0, -1.0, 3.0]]])
    >>> selection_scores(logits, np.array([1, 1, 0, 0])).round(4).tolist()
    [0.5774]
    """
    predicted = (logits[0] > 0).astype(int) if len(logits) == 1 else logits.argmax(axis=0)
    heads, classes = len(predicted), max(2, len(logits))
    cells = codes * classes + predicted + np.arange(heads)[:, None] * classes**2
    counts = np.bincount(cells.ravel(), minlength=heads * classes**2)
    if classes == 2:
        return np.array([_mcc(*table) for table in counts.reshape(heads, 4).tolist()])
    tables = counts.reshape(heads, classes, classes)
    sizes = tables.sum(axis=1) + tables.sum(axis=2)
    both = 2 * np.ascontiguousarray(tables.diagonal(axis1=1, axis2=2))
    if (sizes > 0).all():
        f1 = (both / sizes).mean(axis=1)
    else:  # classes that neither occur nor are predicted do not count
        rows = zip(both, sizes, strict=True)
        f1 = np.array([np.mean(right[size > 0] / size[size > 0]) for right, size in rows])
    return np.maximum(0.0, (f1 - 1 / classes) / (1 - 1 / classes))


def _mcc(tn: int, fp: int, fn: int, tp: int) -> float:
    spread = (tn + fp) * (fn + tp) * (tn + fn) * (fp + tp)
    return max(0.0, (tn * tp - fp * fn) / math.sqrt(spread)) if spread else 0.0


class Logistic:
    """Logistic heads stacked in one matrix; the bias is the weight of a last column of ones."""

    def __init__(self, width: int, outputs: int, heads: int, first: FirstWeights) -> None:
        values = np.zeros((heads, outputs, width + 1), dtype=np.float32)
        values[:, :, :-1] = first(width, outputs).T
        self.values = values.reshape(heads, -1)
        self.gradients = np.empty_like(self.values)
        self.heads = heads

    def logits(self, X: np.ndarray) -> np.ndarray:
        """Return the logits of rows."""
        outputs = self.values.reshape(-1, X.shape[1]).dot(X.T)
        return outputs.reshape(self.heads, -1, len(X)).transpose(1, 0, 2)

    def learn(self, X: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Set the gradients of a batch and return its logits."""
        shape = self.heads, len(wanted), len(X)
        # a row per row of the batch is faster; the copy has a row per output
        outputs = X.dot(self.values.reshape(-1, X.shape[1]).T).T
        wrong = outputs.copy()
        errors = probabilities(wrong.reshape(shape).transpose(1, 0, 2))
        errors -= wanted[:, None]
        wrong.dot(X, self.gradients.reshape(-1, X.shape[1]))
        return outputs.reshape(shape).transpose(1, 0, 2)


class Layered:
    """A network with hidden layers (linear, batch normalization, ReLU) and a linear output."""

    heads = 1

    def __init__(self, width: int, outputs: int, hidden: Sequence[int], first: FirstWeights):
        weights: list[np.ndarray] = []
        self.running: list[np.ndarray] = []
        for size in hidden:
            zeros_ones = np.zeros((2, size), dtype=np.float32)
            zeros_ones[1] = 1
            weights += [first(width, size), zeros_ones[::-1]]
            self.running.append(zeros_ones)
            width = size
        weights += [first(width, outputs), np.zeros(outputs, dtype=np.float32)]
        self.values = np.concatenate([part.ravel() for part in weights])[None]
        self.gradients = np.empty_like(self.values)
        self._shapes = [part.shape for part in weights]
        self.weights, self.slopes = self.parts(self.values), self.parts(self.gradients)

    def parts(self, values: np.ndarray) -> list[np.ndarray]:
        """Return views of all values: linear, (gain, shift) of each layer, linear and bias."""
        ends = np.cumsum([math.prod(shape) for shape in self._shapes])
        split = np.split(values[0], ends[:-1])
        return [part.reshape(shape) for part, shape in zip(split, self._shapes, strict=True)]

    def logits(self, X: np.ndarray) -> np.ndarray:
        """Return the logits of rows, normalized by the running means and variances."""
        for layer, (mean, variance) in enumerate(self.running):
            linear, (gain, shift) = self.weights[2 * layer : 2 * layer + 2]
            slope = gain / np.sqrt(variance + SMALL)
            X = X.dot(linear)
            X *= slope
            X += shift - mean * slope
            np.maximum(X, 0, out=X)
        return (X.dot(self.weights[-2]) + self.weights[-1]).T[:, None]

    def learn(self, X: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Set the gradients of a batch and return its logits."""
        layers = []
        for layer in range(len(self.running)):
            layers.append((X, *self._forward(layer, X)))
            X = layers[-1][-1]
        logits = X.dot(self.weights[-2])
        logits += self.weights[-1]
        errors = probabilities(logits.T.copy())
        errors -= wanted
        X.T.dot(errors.T, self.slopes[-2])
        np.add.reduce(errors, axis=1, out=self.slopes[-1])
        back = errors.T.dot(self.weights[-2].T)
        for layer in reversed(range(len(layers))):
            back = self._backward(layer, back, layers[layer])
        return logits.T[:, None]

    def _forward(self, layer: int, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        linear, gain_shift = self.weights[2 * layer : 2 * layer + 2]
        normal = X.dot(linear)
        out, statistics = np.empty_like(normal), np.empty_like(gain_shift)
        compiled = kernels() if normal.dtype == np.float32 else None
        apply: Any = compiled.normalize_columns if compiled else _normalize_numpy
        unbiased = normal.dtype.type(len(X) / (len(X) - 1))
        apply(normal, out, gain_shift, statistics, self.running[layer], unbiased)
        return gain_shift[0] * statistics[1], normal, out

    def _backward(self, layer: int, back: np.ndarray, state: tuple[np.ndarray, ...]) -> np.ndarray:
        X, slope, normal, out = state
        to_linear, to_gain_shift = self.slopes[2 * layer : 2 * layer + 2]
        compiled = kernels() if back.dtype == np.float32 else None
        apply: Any = compiled.denormalize if compiled else _denormalize_numpy
        apply(back, normal, out, slope, *to_gain_shift)
        X.T.dot(back, to_linear)
        return back.dot(self.weights[2 * layer].T) if layer else back


def _normalize_numpy(*arguments: np.ndarray) -> None:
    """Normalize columns, and scale, shift and rectify them; the arguments are those of the loop."""
    normal, out, (gain, shift), (mean, scale), running, unbiased = arguments
    np.mean(normal, axis=0, out=mean)
    normal -= mean
    variance = np.einsum("ij,ij->j", normal, normal) / normal.dtype.type(len(normal))
    running[0] += MOMENTUM * (mean - running[0])
    running[1] += MOMENTUM * (variance * unbiased - running[1])
    np.divide(1, np.sqrt(variance + SMALL), out=scale)
    normal *= scale
    np.multiply(normal, gain, out=out)
    out += shift
    np.maximum(out, 0, out=out)


def _denormalize_numpy(*arguments: np.ndarray) -> None:
    """Backpropagate through a layer, in place; the batch mean depends on every row."""
    back, normal, out, slope, to_gain, to_shift = arguments
    back *= out > 0
    np.sum(back, axis=0, out=to_shift)
    np.einsum("ij,ij->j", back, normal, out=to_gain)
    back -= to_shift / np.float32(len(back))
    back -= normal * (to_gain / np.float32(len(back)))
    back *= slope


@head("adamw")
@dataclass
class AdamW:
    """Train a logistic head, or one with hidden layers; a grid search selects the rates.

    A share of the train rows (``eval_frac``) is held out to select the rates and to stop early.
    ``mode: exact`` takes the rows in the given order and replays the initial weights and shuffles
    of the original system, which requires ``split: senteval``; ``fast`` shuffles once for all grid
    points. ``train_metric`` records the score of the train rows after each epoch.
    """

    #: rows are not changed in place, so that heads can share them
    keeps_X: ClassVar = True

    mode: str = "fast"
    hidden_dims: Sequence[int] | None = None
    batch_size: int = 128
    eval_frac: float = 0.2
    n_epochs: int = 100
    tenacity: int = 5
    early_stopping_rel_improv: float = 0.0025
    grid_epochs: int = 8
    learning_rate: Sequence[float] = (5e-4, 1e-3, 2e-3)
    beta1: Sequence[float] = (0.80, 0.90)
    beta2: Sequence[float] = (0.990, 0.999)
    weight_decay: float = 0.01
    clip: float = 1.0
    warm_up: float = 0.25
    warm_up_start: float = 0.05
    restore_best: bool = False
    stratified_eval: bool = False
    train_metric: bool = False
    seed: int = MASTER
    folds: int = 5
    fold: int | None = None
    random_state: int | None = None
    kind: str = "classification"
    history_: list[dict[str, Any]] = field(default_factory=list, init=False, repr=False)
    notes_: list[str] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind != "classification":
            raise DefinitionError(f"head adamw predicts classes, not {self.kind}.")
        if self.mode not in MODES:
            raise DefinitionError(f'head adamw: mode must be "fast" or "exact", got "{self.mode}".')
        self.hidden_dims = [int(size) for size in self.hidden_dims or ()]
        if any(size < 1 for size in self.hidden_dims):
            raise DefinitionError(f"head adamw: hidden_dims must be >= 1, got {self.hidden_dims}.")
        for name in ("learning_rate", "beta1", "beta2"):
            setting = getattr(self, name)
            values = tuple(setting) if isinstance(setting, Sequence) else (setting,)
            if not values or not all(0 < value < 1 for value in values):
                raise DefinitionError(
                    f"head adamw: {name} must be between 0 and 1, got {setting!r}."
                )
            setattr(self, name, values)
        for name in ("batch_size", "n_epochs", "grid_epochs"):
            if getattr(self, name) < 1:
                raise DefinitionError(
                    f"head adamw: {name} must be >= 1, got {getattr(self, name)!r}."
                )
        if not 0 < self.eval_frac < 1:
            raise DefinitionError(
                f"head adamw: eval_frac must be between 0 and 1, got {self.eval_frac!r}."
            )

    def fit(self, X: np.ndarray, y: np.ndarray, judges: int | None = None) -> AdamW:
        """Select the rates on the held-out rows, then train until their loss stops falling.

        With ``judges``, that number of first rows is held out instead of the share ``eval_frac``.
        """
        self.classes_, codes = _coded(np.asarray(y))
        if len(self.classes_) < 2:
            raise DataError("head adamw: the train rows have one class; at least two are needed.")
        X = np.asarray(X, dtype=np.float32)
        chance = _Exact(self) if self.mode == "exact" else _Fast(self)
        if judges is None:
            held, train = self.hold_out(codes, chance.rows(len(codes)))
        else:
            held, train = np.split(np.arange(len(codes)), [judges])
        self._scale(X, train)
        # by columns, for faster products
        rows = self._scaled(X, train), self._scaled(X, held, "F")
        training = _Training(self, chance, rows, (codes[train], codes[held]))
        rates, points = training.select()
        self.network_, self.history_ = training.finish(rates)
        self.notes_ = [self._note(rates, points)]
        return self

    def hold_out(self, y: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the held-out rows, the first of the order, and the rows to train on.

        With ``stratified_eval``, the first rows of each class are held out.
        """
        wanted = math.ceil(self.eval_frac * len(y))
        if len(y) - wanted < 2:
            raise DataError(
                f"head adamw: {len(y)} train rows are too few: {wanted} are held out to select the "
                f"rates, which leaves {len(y) - wanted} to train on."
            )
        held = np.zeros(len(y), dtype=bool)
        if self.stratified_eval:
            shares = np.empty(len(y))
            for label in np.unique(y):
                of_label = np.flatnonzero(y[order] == label)
                shares[of_label] = (np.arange(len(of_label)) + 0.5) / len(of_label)
            held[np.argsort(shares, kind="stable")[:wanted]] = True
        else:
            held[:wanted] = True
        return order[held], order[~held]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most probable classes."""
        return self.predict_both(X)[0]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the class probabilities, in the order of ``classes_``."""
        return self.predict_both(X)[1]

    def predict_both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable classes and the probabilities of all."""
        rows = self._scaled(np.asarray(X, dtype=np.float32), np.arange(len(X)))
        logits = self.network_.logits(rows).astype(np.float64)
        two = len(logits) == 1
        codes = (logits[0, 0] > 0).astype(int) if two else logits[:, 0].argmax(axis=0)
        chances = probabilities(logits)[:, 0].T
        return self.classes_[codes], np.hstack([1 - chances, chances]) if two else chances

    def _scale(self, X: np.ndarray, train: np.ndarray) -> None:
        mean = _sums(X, train) / len(train)
        self.mean_ = mean.astype(np.float32)
        total = _sums(X, train, mean)
        spread = np.sqrt(total / max(1, len(train) - 1))
        # no value is farther from the mean than the root of the sum of squares
        if (spread > 2 * CONSTANT * (np.abs(mean) + np.sqrt(total))).all():
            constant: Any = False
        else:
            constant = spread <= CONSTANT * np.abs(X[train]).max(axis=0)
        self.spread_ = np.where(constant, 1, spread + 1e-12).astype(np.float32)

    def _scaled(
        self, X: np.ndarray, rows: np.ndarray, order: Literal["C", "F"] = "C"
    ) -> np.ndarray:
        """Return scaled rows; without hidden layers, a column of ones for the bias is added."""
        width = X.shape[1]
        shape = len(rows), width if self.hidden_dims else width + 1
        scaled = np.empty(shape, dtype=np.float32, order=order)
        scaled[:, width:] = 1
        for part in _parts(len(rows)):
            centered = X[rows[part]]
            centered -= self.mean_
            np.divide(centered, self.spread_, out=scaled[part, :width])
        return scaled

    def _note(self, rates: Rates, points: int) -> str:
        chosen = (
            f"learning rate {rates.rate[0]:g}, beta1 {rates.beta1[0]:g}, beta2 {rates.beta2[0]:g}"
        )
        epochs = max(step["epoch"] for step in self.history_)
        of = f" of {points} grid points" if points > 1 else ""
        return f"mode {self.mode}; {chosen}{of}; {epochs} epochs"


def _parts(size: int, step: int = 64) -> Iterator[slice]:
    """Yield slices of a few rows, which fit in the cache: copies of all rows take more time."""
    return (slice(start, start + step) for start in range(0, size, step))


def _sums(X: np.ndarray, rows: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
    """Return the sums of columns, or of their squared distances from the mean, in 64 bits."""
    total = np.zeros(X.shape[1])
    for part in _parts(len(rows)):
        block = X[rows[part]].astype(np.float64)
        if mean is not None:
            block -= mean
            block *= block
        block[0] += total  # so that rows are added from top to bottom
        np.add.reduce(block, axis=0, out=total)
    return total


def _coded(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes in order, and the place of each row's class; texts are not sorted."""
    if y.dtype != object:
        return np.unique(y, return_inverse=True)
    labels = y.tolist()
    classes = sorted(set(labels))
    codes = {label: code for code, label in enumerate(classes)}
    ordered = np.empty(len(classes), dtype=object)
    ordered[:] = classes
    return ordered, np.fromiter(map(codes.__getitem__, labels), np.intp, len(labels))


def _steps(curves: dict[str, list[float]]) -> list[dict[str, Any]]:
    """Return the values of all curves, epoch by epoch."""
    return [
        {"epoch": epoch, "metric": name, "value": value}
        for epoch, values in enumerate(zip(*curves.values(), strict=True), start=1)
        for name, value in zip(curves, values, strict=True)
    ]


class _Fast:
    """Random numbers of one NumPy generator for rows, weights and shuffles."""

    def __init__(self, head: AdamW) -> None:
        self._rng = np.random.default_rng(head.random_state or 0)
        self._weights = int(self._rng.integers(2**32))
        self.shared = not head.hidden_dims

    def rows(self, size: int) -> np.ndarray:
        return self._rng.permutation(size)

    def first(self) -> Callable[[int, int], np.ndarray]:
        drawn = np.random.default_rng(self._weights)

        def uniform(inputs: int, outputs: int) -> np.ndarray:
            bound = 1 / math.sqrt(inputs)
            return drawn.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)

        return uniform

    def epochs(self, size: int) -> Iterator[np.ndarray]:
        while True:
            yield self._rng.permutation(size)


class _Exact:
    """The random numbers of the original: rows as given, PyTorch's weights and shuffles."""

    shared = False

    def __init__(self, head: AdamW) -> None:
        if head.fold is None:
            raise DefinitionError("head adamw: mode exact needs the number of the fold.")
        self._weights, orders = fold_seeds(head.fold, head.folds, head.seed)
        self._orders = TorchGenerator(orders)

    def rows(self, size: int) -> np.ndarray:
        return np.arange(size)

    def first(self) -> Callable[[int, int], np.ndarray]:
        return TorchGenerator(self._weights).weights

    def epochs(self, size: int) -> Iterator[np.ndarray]:
        return self._orders.epochs(size)


class _Training:
    """The training of one fold; held-out rows select the rates."""

    def __init__(
        self,
        head: AdamW,
        chance: _Fast | _Exact,
        rows: tuple[np.ndarray, np.ndarray],
        codes: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """Get the scaled rows and the classes, each of the train and of the held-out rows."""
        self.head, self.shared = head, chance.shared
        self.train_codes, self.codes = codes
        self.outputs = 1 if len(head.classes_) == 2 else len(head.classes_)
        self.X, self.held = rows
        self.orders = chance.epochs(len(self.X))
        self.width = self.X.shape[1] - (not head.hidden_dims)
        sizes = (self.width, *(head.hidden_dims or ()), self.outputs)
        self.first = list(map(chance.first(), sizes, sizes[1:]))
        self.wanted = targets(self.train_codes, len(head.classes_))
        self.held_wanted = targets(self.codes, len(head.classes_))
        self.recipe = Recipe(
            batch_size=head.batch_size,
            weight_decay=head.weight_decay,
            clip=head.clip,
            warm_up=head.warm_up,
            warm_up_start=head.warm_up_start,
        )

    def select(self) -> tuple[Rates, int]:
        """Return the first rates with the best score on the held-out rows, and the grid size."""
        head = self.head
        points = list(product(head.learning_rate, head.beta1, head.beta2))
        grid = Rates(*np.array(points, dtype=np.float64).T)
        if len(points) == 1:
            return grid, 1
        scores = [score for rates in self._stacks(grid) for score in self._grid_scores(rates)]
        return grid.take(int(np.argmax(scores))), len(points)

    def finish(self, rates: Rates) -> tuple[Network, list[dict[str, Any]]]:
        """Train with the selected rates until the loss of the held-out rows stops falling."""
        head, network = self.head, self._network(1)
        descent = Descent(network, rates, self.recipe)
        held: list[np.ndarray] = []
        train_losses: list[float] = []
        eval_losses: list[float] = []
        train_scores: list[float] = []
        best, bad, best_network = math.inf, 0, None
        for _ in range(head.n_epochs):
            train_losses += losses(*self._epoch(descent)).tolist()
            held.append(network.logits(self.held))
            if head.train_metric:
                train_scores += selection_scores(network.logits(self.X), self.train_codes).tolist()
            loss = float(losses(held[-1], self.held_wanted)[0])
            eval_losses.append(loss)
            better = best == math.inf or (best - loss) / (best + 1e-12) >= (
                head.early_stopping_rel_improv
            )
            bad = 0 if better else bad + 1
            if better:
                best = loss
                best_network = copy.deepcopy(network) if head.restore_best else None
            if bad > head.tenacity:
                break
        curves = {
            "loss_per_epoch_train": train_losses,
            "loss_per_epoch_eval": eval_losses,
            "metric_per_epoch_eval": selection_scores(np.hstack(held), self.codes).tolist(),
            **({"metric_per_epoch_train": train_scores} if head.train_metric else {}),
        }
        return best_network or network, _steps(curves)

    def _stacks(self, grid: Rates) -> Iterator[Rates]:
        """Yield the grid points that are trained together: all, or one at a time."""
        if self.shared:
            yield grid
        else:
            yield from (grid.take(point) for point in range(len(grid.rate)))

    def _grid_scores(self, rates: Rates) -> np.ndarray:
        network = self._network(len(rates.rate))
        descent = Descent(network, rates, self.recipe)
        for _ in range(self.head.grid_epochs):
            self._epoch(descent)
        return selection_scores(network.logits(self.held), self.codes)

    def _epoch(self, descent: Descent) -> tuple[np.ndarray, np.ndarray]:
        """Train for an epoch and return the logits before each step, and the targets."""
        order = next(self.orders)
        wanted = np.take(self.wanted, order, axis=1)
        logits = descent.epoch(self.X, wanted, order)
        return logits, wanted[:, : logits.shape[-1]]

    def _network(self, heads: int) -> Logistic | Layered:
        drawn = iter(self.first)

        def first(inputs: int, outputs: int) -> np.ndarray:
            return next(drawn).copy()

        if self.head.hidden_dims:
            return Layered(self.width, self.outputs, self.head.hidden_dims, first)
        return Logistic(self.width, self.outputs, heads, first)
