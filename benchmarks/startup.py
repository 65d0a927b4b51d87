"""Time of ``karat --help`` and ``import karat``, relative to a bare Python."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

REPEATS = 15
COMMANDS = {
    "bare": [sys.executable, "-c", "import argparse, importlib.metadata"],
    "karat --help": [sys.executable, "-m", "karat", "--help"],
    "import karat": [sys.executable, "-c", "import karat"],
}


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(REPEATS):  # in turns, so that noise affects all commands alike
        for name, command in COMMANDS.items():
            begun = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            best[name] = min(best[name], time.perf_counter() - begun)
    for name in ("karat --help", "import karat"):
        against = "python -c 'import argparse, importlib.metadata'"
        yield f"{name}, wall", best[name] / best["bare"], 5, "×", against
