"""Write docs/pictures, the gallery of docs/plot.md, from runs that are made in FOLDER in minutes.

python scripts/pictures.py FOLDER
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import karat

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
#: what is run, unless it is there from an earlier time
RUNS = {
    "quickstart": ["quickstart"],
    "tabeb": ["tabeb", "--only-fold", "0", "--max-rows", "2000"],
    "taco": ["taco", "-t", "taco-adult", "--max-rows", "3000"],
}
#: of each picture its kind, the runs it is drawn from, and what is chosen of them
GALLERY: dict[str, tuple[str, str, dict[str, Any]]] = {
    "board": ("board", "tabeb", {}),
    "elo": ("board", "tabeb", {"value": "elo"}),
    "heatmap": ("heatmap", "quickstart", {}),
    "cd": ("cd", "tabeb", {}),
    "curves": ("curves", "taco", {"top": 2}),
    "strip": ("strip", "quickstart", {"tasks": ["penguins", "diabetes", "adult"]}),
    "bars": ("bars", "quickstart", {"tasks": ["adult", "penguins", "diabetes"]}),
    "pareto": ("pareto", "tabeb", {}),
    "parallel": ("parallel", "tabeb", {"top": 4}),
}


def main() -> None:
    """Make the runs that are not there, draw the pictures, and tell how large they are."""
    folder = Path(sys.argv[1])
    for name, asked in RUNS.items():
        if not (folder / name).exists():
            command = [sys.executable, "-m", "karat", "run", *asked, "-q", "-o", str(folder / name)]
            # a data set that cannot be had here ends in code 1; the others are drawn
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    for name, (kind, runs, options) in GALLERY.items():
        file = karat.plot(folder / runs, kind, **options).save(PICTURES / f"{name}.svg")
        print(f"{file.stat().st_size / 1000:6.1f} kB  {file.name}")


if __name__ == "__main__":
    main()
