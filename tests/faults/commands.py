"""The commands that write files, on small data, and what their output must be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

#: columns and keys that differ between equal runs
TIMES = ("utc", "duration", "seconds", "memory", "stamp")
RUN = "run table.csv --target y --folds 2 -m onehot -m dummy -w 0 -q --no-cache"

#: the command and its output; IN is a folder that was made before, OUT is where it writes
COMMANDS = {
    "run": f"{RUN} -o OUT --resume",
    "race": "race eight --define race.yaml -m onehot -m dummy -w 0 -q --no-cache -o OUT --resume",
    "gather": "gather IN/shards -o OUT",
    "rescore": "rescore IN/runs --metric f1 -o OUT",
    "report": "report IN/runs -o OUT/report.html",
    "site": "site IN/runs -o OUT/site",
    "plot": "plot board IN/runs -o OUT/board.svg",
    "import": "import IN/taco --as taco -o OUT",
    "export": "export IN/runs --as taco -o OUT",
    "fingerprint": "same --save OUT/onehot.json onehot",
}


class Nursery:
    """The process that starts commands, in a folder with their input."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        script = Path(__file__).with_name("nursery.py")
        environment = {**os.environ, "KARAT_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def close(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def run(self, command: str, output: Path | str = "", **how: object) -> tuple[int, str]:
        """Run a command that writes into a folder; return its exit code and what it printed."""
        words = command.replace("OUT", str(output)).replace("IN", ".").split()
        printed = self.folder / "printed.txt"
        order = {"folder": str(self.folder), "output": str(printed), "command": words, **how}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        return code, printed.read_text(errors="replace")

    def prepare(self) -> None:
        """Make the input of the commands."""
        rng = np.random.default_rng(3)
        table = pd.DataFrame(rng.normal(size=(40, 2)).round(3), columns=["a", "b"])
        table["y"] = np.where(table["a"] + rng.normal(size=40) / 2 > 0, "yes", "no")
        table.to_csv(self.folder / "table.csv", index=False)
        tasks = [f"  t{i}: {{extends: classification, dataset: d{i}, folds: 2}}" for i in range(8)]
        data = [f"  d{i}: {{path: table.csv, target: y}}" for i in range(8)]
        suite = f"  eight: {{tasks: [{', '.join(f't{i}' for i in range(8))}]}}"
        lines = ["datasets:", *data, "tasks:", *tasks, "suites:", suite]
        (self.folder / "race.yaml").write_text("\n".join(lines) + "\n")
        for command in (
            f"{RUN} -o runs",
            f"{RUN} -o shards --shard 1/2",
            f"{RUN} -o shards --shard 2/2",
            "export runs --as taco -o taco",
        ):
            code, printed = self.run(command)
            assert code == 0, printed


def content(folder: Path) -> dict[str, object]:
    """Return what a command wrote, without times and names of run folders."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        assert not path.name.endswith(".tmp") and ".karat-draft-" not in str(path), path
        parts = path.relative_to(folder).parts
        place = "/".join([parts[0].partition(".")[0], *parts[1:]] if len(parts) > 1 else parts)
        if path.name == "scores.csv":
            found[place] = path.read_text()
        elif path.name == "predictions.csv" or (folder / "site").exists():
            found[place] = path.read_bytes()
        elif path.suffix in (".csv", ".html", ".svg"):
            found[place] = "there"  # tables of all facts, with times
    return found


def emptied(folder: Path) -> Path:
    """Return a folder without content."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
