"""The results of Ulysses SentEval itself against Karat's, row by row.

Both sides evaluate the same word-count model, or a vectorizer, on the same files with the default
training and two repetitions. Then the aggregates of the original are compared with Karat's on the
original's own frame. ``--corrected`` corrects three lines of the original while it runs: the
warm-up has at least one step, a batch may be smaller than ``batch_size``, and constant columns are
not scaled.

Needs both packages: ``pip install -e . git+https://github.com/ulysses-camara/ulysses-senteval``,
with ``numpy<2.4`` and ``pandas<3``, which the original needs.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer

from karat.ext.compat import ulysses
from karat.ext.compat.ulysses.adamw import bootstrap_seed
from karat.ext.compat.ulysses.result_files import aggregate

FILES = {
    "T1A": "hatebr_offensive_lang",
    "G3": "faqs",
    "F2": "code_estatutes_cf88",
    "F3": "oab_first_part",
}
KEYS = ["task", "kfold_repetition", "kfold_partition", "train_epoch", "metric"]
WORDS, TOPICS, REPEATS = 60, 5, 2


class WordCounts:
    """Word counts in a fixed random projection."""

    def __init__(self) -> None:
        self.projection = np.random.RandomState(1).randn(WORDS, 24).astype(np.float32)

    def encode(self, texts: list[str], convert_to_tensor: bool = False) -> Any:
        counts = np.zeros((len(texts), WORDS), np.float32)
        for row, text in enumerate(texts):
            np.add.at(counts[row], [int(word[1:]) for word in text.split()], 1)
        vectors = counts @ self.projection
        if convert_to_tensor:
            import torch

            return torch.from_numpy(vectors)
        return vectors


def write_files(folder: Path, rows: int) -> None:
    """Write the files of four tasks: single texts, pairs, several classes and options."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(WORDS, 0.7), TOPICS)

    def texts(topics: np.ndarray) -> list[str]:
        drawn = (rng.choice(WORDS, rng.integers(5, 14), p=shares[topic]) for topic in topics)
        return [" ".join(f"w{word}" for word in words) for words in drawn]

    def noisy(labels: np.ndarray, classes: int) -> np.ndarray:
        return np.where(rng.random(rows) < 0.15, rng.integers(0, classes, rows), labels)

    two, five, four = (rng.integers(0, classes, rows) for classes in (2, TOPICS, 4))
    first = rng.integers(0, TOPICS, rows)
    second = np.where(two == 1, first, (first + rng.integers(1, TOPICS, rows)) % TOPICS)
    options = [texts(np.where(four == i, first, (first + 1 + i) % TOPICS)) for i in range(4)]
    joined = [" [SEP] ".join(choices) for choices in zip(*options, strict=True)]
    columns = {
        "T1A": {"text": texts(noisy(two, 2)), "label": two},
        "G3": {"a": texts(first), "b": texts(second), "label": two},
        "F2": {"text": texts(noisy(five, TOPICS)), "label": five},
        "F3": {"a": texts(first), "b": joined, "label": four},
    }
    for task, table in columns.items():
        pd.DataFrame(table).to_csv(folder / f"{FILES[task]}.csv")


def corrections(original: Any) -> Iterator[Any]:
    """Yield patches of three lines of the original."""
    import torch

    linear, loader = torch.optim.lr_scheduler.LinearLR, torch.utils.data.DataLoader

    def warm_up(*arguments: Any, total_iters: int, **more: Any) -> Any:
        return linear(*arguments, total_iters=max(1, total_iters), **more)

    def batches(rows: Any, drop_last: bool, batch_size: int, **more: Any) -> Any:
        drop_last = drop_last and len(rows) >= batch_size
        return loader(rows, drop_last=drop_last, batch_size=batch_size, **more)

    def scaled(train: Any, *others: Any) -> tuple[Any, ...]:
        spread = torch.std(train, dim=0)
        spread = torch.where(spread < 1e-7, torch.ones_like(spread), spread + 1e-12)
        return tuple((part - torch.mean(train, dim=0)) / spread for part in (train, *others))

    yield patch.object(torch.optim.lr_scheduler, "LinearLR", warm_up)
    yield patch.object(torch.utils.data, "DataLoader", batches)
    yield patch.object(original.stats, "scale_data", scaled)


def run(package: Any, task: str, folder: Path, lazy: bool) -> tuple[dict[str, Any], pd.DataFrame]:
    """Return the aggregates and the frame of a task."""
    model = CountVectorizer(token_pattern=r"\S+") if lazy else WordCounts()
    evaluator = package.UlyssesSentEvalLazy if lazy else package.UlyssesSentEval
    train = {"n_repeats": REPEATS, "show_progress_bar": False, "device": "cpu"}
    evaluation = evaluator(
        model, tasks=task, data_dir_path=str(folder), disable_multiprocessing=True
    )
    aggregates, table = evaluation.evaluate(kwargs_train=train, return_all_results=True)
    return aggregates[task], table


def run_original(task: str, folder: Path, lazy: bool, corrected: bool) -> Any:
    """Return the results of the original, on one thread and without CUDA."""
    import torch
    import ulysses_senteval.train as original

    torch.set_num_threads(1)
    fork = torch.random.fork_rng
    with ExitStack() as stack:
        # fork_rng refuses the device "cpu" without CUDA
        stack.enter_context(patch.object(torch.random, "fork_rng", lambda devices: fork([])))
        for patched in corrections(original) if corrected else ():
            stack.enter_context(patched)
        import ulysses_senteval

        return run(ulysses_senteval, task, folder, lazy)


def compare(task: str, theirs: Any, ours: Any) -> str:
    """Return a row of a Markdown table."""
    (their_facts, their_table), (_, our_table) = theirs, ours
    both = their_table.merge(our_table, on=KEYS, how="outer", indicator=True)
    rows = both[both["_merge"] == "both"]
    apart = (rows["value_x"] - rows["value_y"]).abs().groupby(rows["metric"]).max()
    seed = bootstrap_seed(REPEATS)
    again = aggregate(their_table, seed=seed, faithful=True)[task]
    worst = max(_apart(again[key], their_facts[key]) for key in again)
    loss = max(value for name, value in apart.items() if name.startswith("loss"))
    score = max(value for name, value in apart.items() if name.startswith("metric"))
    counts = f"{len(their_table)} | {len(our_table)} | {len(rows)}"
    return f"| {task} | {counts} | {loss:.1e} | {score:.1e} | {worst:.1e} |"


def _apart(ours: Any, theirs: Any) -> float:
    """Return the largest difference; two NaN are equal, NaN and a number are not."""
    ours, theirs = np.atleast_1d(ours), np.atleast_1d(theirs)
    apart = np.where(np.isnan(ours) & np.isnan(theirs), 0, np.abs(ours - theirs))
    return float(np.nan_to_num(apart, nan=np.inf).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1100)
    parser.add_argument("--tasks", nargs="+", default=list(FILES), choices=list(FILES))
    parser.add_argument("--lazy", action="store_true")
    parser.add_argument("--corrected", action="store_true")
    arguments = parser.parse_args()
    print("| task | rows, original | rows, Karat | in both | loss | metric | aggregates |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), arguments.rows)
        for task in arguments.tasks:
            theirs = run_original(task, Path(folder), arguments.lazy, arguments.corrected)
            ours = run(ulysses, task, Path(folder), arguments.lazy)
            print(compare(task, theirs, ours), flush=True)


if __name__ == "__main__":
    main()
