"""What the named sentence encoders are worth and cost: STS-B's test part on one thread.

    python benchmarks/encoders.py minilm use-multilingual    # without names: all that are installed

Spearman's rho between the cosine and the human score of 1,379 pairs; seconds until the first text
is encoded; distinct texts encoded per second of wall clock and of processor time.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy.stats import spearmanr

from karat.config.catalog import Catalog
from karat.core.embeddings import encode, unit_rows
from karat.execution.workers import one_thread

NAMES = ("glove", "wordllama", "use-multilingual", "minilm-int8", "minilm")


def timed(call):
    wall, processor = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    catalog = Catalog()
    data = catalog.dataset("stsb")()
    texts = data.items.tolist()
    print(f"{'encoder':<20}{'dims':>6}{'STS-B':>9}{'load s':>9}{'texts/s':>9}{'per CPU s':>11}")
    for name in sys.argv[1:] or NAMES:
        model = catalog.model(name)
        if model.unavailable:
            print(f"{name:<20}  {model.unavailable.splitlines()[0]}")
            continue
        encoder = model.prototype
        with one_thread():
            _, load, _ = timed(lambda: encode(encoder, ["first"], name))  # noqa: B023
            vectors, wall, processor = timed(lambda: encode(encoder, texts, name))  # noqa: B023
        unit = unit_rows(vectors, np.float64)
        one, two = (unit[data.mentions(field).rows] for field in data.fields)
        score = spearmanr((one * two).sum(axis=1), data.target).statistic
        speed = f"{len(texts) / wall:>9.0f}{len(texts) / processor:>11.0f}"
        print(f"{name:<20}{vectors.shape[1]:>6}{score:>9.4f}{load:>9.1f}{speed}", flush=True)


if __name__ == "__main__":
    main()
