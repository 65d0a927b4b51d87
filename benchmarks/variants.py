"""All variants of a sentence encoder on ``sentences``, in CPU time of one run of the encoder.

Both are the command line with one worker and no vectors in the cache; the data are downloaded
before. ``python variants.py MODEL`` measures another encoder and prints where the time goes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

MODEL = "use-multilingual"
GRID = ["--dimensions", "64,128,256", "--precision", "float32,float16,int8,binary"]
VARIANTS = 12


def run(model: str, *more: str) -> tuple[float, list[tuple[str, str, float]]]:
    """Run the suite in another process; return its CPU seconds and those of the jobs by model."""
    from karat.core.files import cache_folder

    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "cache").mkdir()
        (here / "cache" / "data").symlink_to(cache_folder() / "data")
        environment = {**os.environ, "KARAT_CACHE": str(here / "cache"), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "karat", "run", "sentences", "-m", model, *more]
        command += ["--workers", "1", "--quiet", "-o", str(here / "results")]
        before = _cpu()
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        spent = _cpu() - before
        return spent, [_jobs(each) for each in sorted((here / "results").iterdir())]


def _jobs(folder: Path) -> tuple[str, str, float]:
    """Return the model of a run, how its jobs ended, and the CPU seconds of its jobs."""
    import karat

    records = karat.Run.open(folder).records()
    states = ",".join(sorted({record["status"] for record in records}))
    return records[0]["model"], states, sum(record["cpu_seconds"] for record in records)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(model: str = MODEL) -> Iterator[tuple[str, float, float, str, str]]:
    """Yield the CPU time of the encoder and its variants, in that of the encoder alone."""
    plan = [sys.executable, "-m", "karat", "plan", "sentences", "-m", model]
    subprocess.run(plan, check=True, stdout=subprocess.DEVNULL)  # downloads the data
    alone, jobs = run(model)
    whole, more = run(model, *GRID)
    assert len(more) == len(jobs) + VARIANTS
    assert {states for _, states, _ in [*jobs, *more]} == {"ok"}
    if __name__ == "__main__":
        for name, _, seconds in more:
            print(f"  jobs of {name:<34}{seconds:>8.1f} s")
        print(f"  alone {alone:.1f} s, its jobs {jobs[0][2]:.1f} s; with variants {whole:.1f} s")
    what = f"{VARIANTS} variants and the encoder, CPU"
    yield what, whole / alone, 1.3, "×", f"one run of {model} on sentences"


if __name__ == "__main__":
    for row in measure(*sys.argv[1:]):
        print(*row)
