"""Fixed cost of commands: ``--help`` against a bare Python, small work against bare imports."""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

REPEATS = 15
COMMANDS = {
    "bare": [sys.executable, "-c", "import argparse, importlib.metadata"],
    "karat --help": [sys.executable, "-m", "karat", "--help"],
    "import karat": [sys.executable, "-c", "import karat"],
}
ROUNDS = 3
TABLES, ESTIMATORS = "import numpy, pandas", "import pandas, sklearn.linear_model"
#: the smallest commands: five jobs, and two runs of them
SMALL = ["quickstart", "-m", "dummy", "-t", "penguins"]
SMALLEST = {
    "run": ["run", *SMALL, "-o", "one"],
    "plan": ["plan", *SMALL],
    "leaderboard": ["leaderboard", "two"],
    "compare": ["compare", "two", "-a", "dummy", "-b", "onehot"],
    "status": ["status", "two"],
    "report": ["report", "two", "-o", "page.html"],
}


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    # as after an installation by pip, which compiles numpy and pandas too
    compileall.compile_dir(Path(find_spec("karat").origin).parent, quiet=1)  # type: ignore[union-attr, arg-type]
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(REPEATS):  # in turns, so that noise affects all commands alike
        for name, command in COMMANDS.items():
            begun = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            best[name] = min(best[name], time.perf_counter() - begun)
    for name in ("karat --help", "import karat"):
        against = "python -c 'import argparse, importlib.metadata'"
        yield f"{name}, wall", best[name] / best["bare"], 5, "×", against
    yield from _smallest()


def _smallest() -> Iterator[tuple[str, float, float, str, str]]:
    """Compare the CPU time of small commands, with all their processes, with bare imports."""
    with tempfile.TemporaryDirectory() as folder:
        karat = {name: ["-m", "karat", *given] for name, given in SMALLEST.items()}
        _cpu(["-m", "karat", "run", *SMALL, "-m", "onehot", "-o", "two"], folder)
        commands = {TABLES: ["-c", TABLES], ESTIMATORS: ["-c", ESTIMATORS], **karat}
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                taken[name].append(_cpu(command, folder))
    best = {name: min(seconds) for name, seconds in taken.items()}
    above = best["run"] - best[ESTIMATORS]
    yield "karat run, 5 jobs of dummy, CPU above", above, 0.5, "s", f"python -c '{ESTIMATORS}'"
    for name in list(SMALLEST)[1:]:
        yield f"karat {name}, CPU", best[name] / best[TABLES], 2, "×", f"python -c '{TABLES}'"


def _cpu(arguments: list[str], folder: str) -> float:
    """Return the CPU seconds of a Python command and of its child processes."""
    null = subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, *arguments], cwd=folder, stdout=null, stderr=null)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return used.ru_utime + used.ru_stime
