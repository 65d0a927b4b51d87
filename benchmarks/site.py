"""CPU time of `karat report --site` for 500 runs with predictions.

python benchmarks/site.py [RUNS]
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import karat

RUNS = 500
MODELS = ["onehot", "ordinal", "hashing", "logistic-regression", "dummy"]
TASKS = ["breast-cancer", "penguins", "diabetes"]


def copy_run(source: Path, target: Path, model: str, rng: np.random.Generator) -> None:
    """Copy a run under another name; each score is changed by up to 5 %."""
    shutil.copytree(source, target)
    about = json.loads((target / "run.json").read_text())
    (target / "run.json").write_text(json.dumps({**about, "model": model}))
    for path in (target / "jobs").glob("*.json"):
        record = json.loads(path.read_text())
        for view in record["views"]:
            scores = {name: value * rng.uniform(0.95, 1) for name, value in view["scores"].items()}
            view["scores"] = scores
        path.write_text(json.dumps({**record, "model": model}))


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        karat.evaluate(MODELS, "quickstart", only=TASKS, output=folder / "real")
        real = sorted((folder / "real").iterdir())
        for number in range(count):
            target = folder / "runs" / f"model-{number}.quickstart.default.local.1"
            copy_run(real[number % len(real)], target, f"model-{number}", rng)
        begun = time.process_time()
        files = karat.site(folder / "runs", folder / "site")
        spent = time.process_time() - begun
        size = sum(path.stat().st_size for path in files) / 2**20
        print(
            f"{count} runs, {len(TASKS)} tasks: {len(files):,} files, {size:.0f} MB, "
            f"{spent:.1f} s of CPU time"
        )


if __name__ == "__main__":
    main()
