"""Read a text vector file, 50,000 × 200, against pandas' C reader: CPU seconds, one thread.

Karat's result must be bit-identical to Python's floats, and agree with pandas to six digits. A
second file has all digits of float64, and some exponents.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.execution.workers import one_thread
from karat.models.vectors.vector_formats import read_vectors
from karat.models.vectors.vector_text import text_kernels

ENTITIES, WIDTH = 50_000, 200
#: repetitions; the minimum counts
TIMES = 7
#: number formats, and the limit as a share of pandas' time
FORMS = (("six decimals", "{:.6f}", 0.65), ("all digits", "{!r}", 1.0))


def measure(entities: int = ENTITIES) -> Iterator[tuple[str, float, float, str, str]]:
    if text_kernels() is None:
        print("  vector files: skipped, the compiled reader needs numba")
        return
    with tempfile.TemporaryDirectory() as folder, one_thread():
        for name, form, limit in FORMS:
            path = Path(folder) / "vectors.txt"
            expected = _write(path, entities, form)
            _small(Path(folder) / "small.txt")  # compile first
            ours, theirs = [], []
            for _ in range(TIMES):
                seconds, (ids, vectors) = _timed(read_vectors, path)
                ours.append(seconds)
                seconds, frame = _timed(_pandas, path)
                theirs.append(seconds)
            assert vectors.tobytes() == expected.tobytes()
            assert ids == list(frame.index)
            np.testing.assert_allclose(frame.to_numpy(), vectors, rtol=1e-6)
            size = path.stat().st_size / 1e6
            print(f"  {size:.0f} MB, {name}: {min(ours):.2f} s, pandas {min(theirs):.2f} s")
            ratio = min(ours) / min(theirs)
            yield f"vector file, {size:.0f} MB, {name}", ratio, limit, "×", "pandas' C reader, CPU"


def _write(path: Path, entities: int, form: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    expected = np.empty((entities, WIDTH), dtype=np.float32)
    with path.open("w") as file:
        for row in range(entities):
            cells = [form.format(value) for value in rng.normal(size=WIDTH).tolist()]
            file.write(f"http://dbpedia.org/resource/Entity_{row} {' '.join(cells)}\n")
            expected[row] = [float(cell) for cell in cells]
    return expected


def _small(path: Path) -> None:
    path.write_text("a 1 2\nb 3e5 4\n")
    read_vectors(path)


def _pandas(path: Path) -> pd.DataFrame:
    numbers = dict.fromkeys(range(1, WIDTH + 1), np.float32)
    options: dict[str, Any] = {"sep": " ", "header": None, "quoting": 3, "na_filter": False}
    return pd.read_csv(path, engine="c", index_col=0, dtype=numbers, **options)


def _timed(read: Callable[[Path], Any], path: Path) -> tuple[float, Any]:
    gc.collect()
    started = time.process_time()
    result = read(path)
    return time.process_time() - started, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, default=ENTITIES, help="number of lines")
    for what, value, limit, unit, against in measure(parser.parse_args().entities):
        mark = "" if value <= limit else "   OVER"
        print(f"{what:<46}{value:>8.2f} {unit:<3}{limit:>8.2f} {unit:<3}   {against}{mark}")


if __name__ == "__main__":
    main()
