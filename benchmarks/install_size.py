"""How much disk the core install takes, without any extra."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder, "bin", "python")
        limits = ["-c", str(ROOT / "constraints.txt")]
        command = [python, "-m", "pip", "install", "-q", *limits, str(ROOT)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        site = next(Path(folder).glob("lib/python*/site-packages"))
        packages = [p for p in site.iterdir() if not p.name.startswith(("pip", "setuptools"))]
        files = [f for p in packages for f in ([p] if p.is_file() else p.rglob("*")) if f.is_file()]
        size = sum(file.stat().st_size for file in files) / 2**20
    yield "core install with compiled files", size, 420, "MB", "an empty venv"
