"""Write docs/reports/*.html, the reports of the landing page, with the commands on that page.

python scripts/landing.py
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "index.md"
REPORTS = ROOT / "docs" / "reports"


def commands(page: Path = PAGE) -> list[str]:
    """Return the commands of the landing page that make reports, in their order."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if " landing/" in line]


def run_python(*arguments: str, cwd: Path) -> None:
    """Run Python in a folder; a failure is an error."""
    subprocess.run([sys.executable, *arguments], cwd=cwd, check=True)


def build(
    target: Path = REPORTS,
    options: Sequence[str] = (),
    run: Callable[..., object] = run_python,
) -> list[Path]:
    """Run the commands in an empty folder and return the reports, moved to ``target``.

    ``options`` are added to every ``karat run``, for example to use fewer rows.
    """
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for command in commands():
            _, verb, *words = shlex.split(command)
            more = options if verb == "run" else ()
            run("-m", "karat", verb, *words, *more, cwd=Path(folder))
        found = sorted((Path(folder) / "reports").glob("*.html"))
        return [Path(shutil.move(path, target / path.name)) for path in found]


if __name__ == "__main__":
    for report in build():
        print(report.relative_to(ROOT))
