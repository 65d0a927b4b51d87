"""The head of Ulysses SentEval against a plain PyTorch loop of the same protocol.

The loop is typical PyTorch code: a module, a data loader, AdamW, one head at a time, one thread.
Both use the same folds; CPU seconds are per fold.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import f1_score, matthews_corrcoef

import karat
from karat.execution.splits import Fold, split
from karat.execution.workers import one_thread
from karat.ext.compat.ulysses.adamw import AdamW, fold_seeds, kernels

#: rows, dimensions, classes, hidden units, required speedup in CPU time
SIZES = [
    (1000, 384, 2, None, 50),
    (1000, 384, 8, None, 30),
    (4000, 1536, 2, None, 30),
    (4000, 1536, 8, None, 10),
    (1000, 384, 2, 256, 5),
    (1000, 1920, 4, 256, 5),
]
FOLDS = 3


def measure(folds: int = FOLDS) -> Iterator[tuple[str, float, float, str, str]]:
    if find_spec("torch") is None:
        print("  heads: skipped, the plain loop needs PyTorch")
        return
    print(f"  compiled loops: {'numba' if kernels() else 'none'}; {folds} folds each")
    with one_thread():
        _plain(*_problem(400, 8, 2), None, [0])  # warm-up
        for rows, width, classes, hidden, limit in SIZES:
            X, y = _problem(rows, width, classes)
            parts = _folds(y)[:folds]
            AdamW(hidden_dims=hidden and [hidden], n_epochs=1).fit(
                X[parts[0].train], y[parts[0].train]
            )
            ours, our_score = _ours(X, y, parts, hidden)
            plain, their_score = _plain(X, y, hidden, range(folds))
            assert abs(our_score - their_score) < 0.1, (our_score, their_score)
            name = f"{rows} × {width} × {classes}{f', {hidden} hidden' if hidden else ''}"
            print(
                f"  {name}: {1e3 * ours:.0f} ms, plain {1e3 * plain:.0f} ms; {plain / ours:.0f} ×;"
                f" scores {our_score:.3f}, {their_score:.3f}"
            )
            if hidden:
                bare = _products(width, hidden) * _steps(X, y, parts[0], hidden)
                print(
                    f"  {name}: {1e3 * bare:.0f} ms are the first layer's products, measured alone"
                )
            yield f"a head on {name}, CPU", ours / plain, 1 / limit, "×", "a plain PyTorch loop"
    yield from _workers()


def _problem(rows: int, width: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors with a realistic signal: scores around 0.6."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % classes
    centers = rng.standard_normal((classes, width)) * (2.2 / math.sqrt(width))
    return (rng.standard_normal((rows, width)) + centers[y]).astype(np.float32), y


def _folds(y: np.ndarray) -> list[Fold]:
    table = pd.DataFrame({"row": np.arange(len(y)), "y": y})
    data = karat.Dataset.from_table(table, "y", name="rows", kind="classification")
    return split(data, {"use": "senteval", "repeats": 2}, 0)


def _score(target: np.ndarray, predicted: np.ndarray, classes: int) -> float:
    if classes == 2:
        return max(0.0, float(matthews_corrcoef(target, predicted)))
    f1 = f1_score(target, predicted, average="macro")
    return max(0.0, float((f1 - 1 / classes) / (1 - 1 / classes)))


def _ours(
    X: np.ndarray, y: np.ndarray, folds: list[Fold], hidden: int | None
) -> tuple[float, float]:
    start, scores = time.process_time(), []
    for number, fold in enumerate(folds):
        head = AdamW(hidden_dims=hidden and [hidden], random_state=number)
        head.fit(X[fold.train], y[fold.train])
        scores.append(_score(y[fold.test], head.predict(X[fold.test]), len(head.classes_)))
    return (time.process_time() - start) / len(folds), float(np.mean(scores))


def _steps(X: np.ndarray, y: np.ndarray, fold: Fold, hidden: int) -> int:
    """Return the number of batches that a head is trained on: the grid and the final fit."""
    head = AdamW(hidden_dims=[hidden], random_state=0).fit(X[fold.train], y[fold.train])
    points = len(head.learning_rate) * len(head.beta1) * len(head.beta2)
    epochs = points * head.grid_epochs + max(step["epoch"] for step in head.history_)
    train = len(fold.train) - math.ceil(head.eval_frac * len(fold.train))
    return epochs * (train // head.batch_size)


def _products(width: int, hidden: int) -> float:
    """Return the CPU time of the products of the first layer in one step: values and gradients."""
    rng = np.random.default_rng(0)
    shapes = ((128, width), (width, hidden), (128, hidden))
    X, weights, errors = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    values, slopes = np.empty_like(errors), np.empty_like(weights)
    times = []
    for _ in range(20):
        start = time.process_time()
        for _ in range(10):
            np.dot(X, weights, out=values)
            np.dot(X.T, errors, out=slopes)
        times.append((time.process_time() - start) / 10)
    return min(times)


# -- the plain loop -------------------------------------------------------------------------


def _plain(X: np.ndarray, y: np.ndarray, hidden: int | None, numbers: Any) -> tuple[float, float]:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    classes, folds = int(y.max()) + 1, _folds(y)
    scores, start = [], time.process_time()
    for number in numbers:
        train, test = folds[number].train, folds[number].test
        held = math.ceil(0.2 * len(train))
        weights, orders = fold_seeds(number, 5)
        rows = torch.tensor(X[train[held:]])
        mean, spread = rows.mean(0), rows.std(0) + 1e-12
        answers = torch.tensor(y, dtype=torch.float32 if classes == 2 else torch.int64)
        sets = [
            TensorDataset((torch.tensor(X[part]) - mean) / spread, answers[part])
            for part in (train[held:], train[:held], test)
        ]
        shuffle = torch.Generator().manual_seed(orders)
        training = DataLoader(sets[0], 128, shuffle=True, drop_last=True, generator=shuffle)
        held_out, testing = DataLoader(sets[1], 128), DataLoader(sets[2], 128)
        best, chosen = -1.0, (0.0, 0.0, 0.0)
        for rate in (5e-4, 1e-3, 2e-3):
            for beta1 in (0.8, 0.9):
                for beta2 in (0.99, 0.999):
                    network = _network(X.shape[1], hidden, classes, weights)
                    _train(network, training, held_out, classes, (rate, beta1, beta2), 8, None)
                    score = _evaluate(network, held_out, classes)[1]
                    if score > best:
                        best, chosen = score, (rate, beta1, beta2)
        network = _network(X.shape[1], hidden, classes, weights)
        _train(network, training, held_out, classes, chosen, 100, 5)
        scores.append(_evaluate(network, testing, classes)[1])
    return (time.process_time() - start) / len(scores), float(np.mean(scores))


def _network(width: int, hidden: int | None, classes: int, seed: int) -> Any:
    import torch
    from torch import nn

    torch.manual_seed(seed)
    layers: list[Any] = []
    if hidden:
        layers = [nn.Linear(width, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU()]
    layers.append(nn.Linear(hidden or width, 1 if classes == 2 else classes))
    nn.init.zeros_(layers[-1].bias)
    return nn.Sequential(*layers)


def _train(
    network: Any,
    training: Any,
    held_out: Any,
    classes: int,
    rates: tuple[float, ...],
    epochs: int,
    tenacity: int | None,
) -> None:
    import torch
    from torch import nn

    rate, *betas = rates
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, betas=betas, weight_decay=0.01)
    warm = torch.optim.lr_scheduler.LinearLR(
        optimizer, start_factor=0.05, total_iters=max(1, len(training) // 4)
    )
    best, bad = math.inf, 0
    for _ in range(epochs):
        network.train()
        for X, y in training:
            optimizer.zero_grad()
            _loss(network(X), y, classes).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            warm.step()
        loss = _evaluate(network, held_out, classes)[0]
        better = best == math.inf or (best - loss) / best >= 0.0025
        best, bad = (loss, 0) if better else (best, bad + 1)
        if tenacity is not None and bad > tenacity:
            break


def _loss(logits: Any, y: Any, classes: int) -> Any:
    from torch.nn import functional

    if classes == 2:
        return functional.binary_cross_entropy_with_logits(logits.squeeze(1), y)
    return functional.cross_entropy(logits, y)


def _evaluate(network: Any, rows: Any, classes: int) -> tuple[float, float]:
    import torch

    network.eval()
    with torch.no_grad():
        outputs, targets = zip(*((network(X), y) for X, y in rows), strict=True)
        logits, y = torch.cat(outputs), torch.cat(targets)
        predicted = (logits[:, 0] > 0) if classes == 2 else logits.argmax(1)
        return _loss(logits, y, classes).item(), _score(y.numpy(), predicted.numpy(), classes)


# -- two workers ----------------------------------------------------------------------------


def _numbers(items: pd.DataFrame) -> np.ndarray:
    return items.to_numpy()


def _workers() -> Iterator[tuple[str, float, float, str, str]]:
    """Yield the time of two workers for a task of 100 folds, divided by that of one worker."""
    X, y = _problem(4000, 1536, 8)
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(y=y)
    data = karat.Dataset.from_table(table, "y", name="rows", kind="classification")
    task = karat.Task(
        "rows",
        data,
        probe={"use": "trained", "head": "adamw", "scale": "plain"},
        split={"use": "kfold", "repeats": 20, "balanced": True},
        metrics=["acc"],
    )
    times = []
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["KARAT_CACHE"] = folder
            start = time.perf_counter()
            karat.evaluate({"numbers": _numbers}, task, output=folder, workers=workers)
            times.append(time.perf_counter() - start)
    print(
        f"  100 folds of 4000 × 1536 × 8: {times[0]:.1f} s with one worker, {times[1]:.1f} with two"
    )
    yield "two workers, 100 folds, wall clock", times[1] / times[0], 1 / 1.7, "×", "one worker"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=FOLDS, help="number of folds to train")
    for what, value, limit, unit, against in measure(parser.parse_args().folds):
        mark = "" if value <= limit else "   OVER"
        print(f"{what:<46}{value:>8.4f} {unit:<3}{limit:>8.4f} {unit:<3}   {against}{mark}")


if __name__ == "__main__":
    main()
