"""Measure whole commands of Karat against the original systems, in one run.

    python benchmarks/peers.py                         # all recipes
    python benchmarks/peers.py geval mteb --rounds 3
    python benchmarks/peers.py taco --source taco=FOLDER --write

Each original runs in its own virtual environment below ``--folder``, made on first use from the
recipe's pinned requirements. A system that is not on PyPI needs its source (``--source``), else
its recipe is skipped. Both sides use one thread. ``--write`` puts the table into
``docs/benchmarks.md``.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from recipe import Case, Recipe

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- peers -->", "<!-- end of peers -->"
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


@dataclass(frozen=True)
class Measured:
    """CPU seconds, peak memory in MB and the scores that a command printed."""

    seconds: float
    memory: float
    scores: dict[str, float]


def run(command: list[str], case: Case, scratch: str) -> Measured:
    """Run a command in a new folder below ``scratch`` and return what it used."""
    folder = tempfile.mkdtemp(dir=scratch)
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, **ONE_THREAD, "KARAT_CACHE": folder, **case.environment},
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode:
        raise SystemExit(f"{case.name}: {' '.join(command)}\n{text[-3000:]}")
    printed = re.findall(r"^cpu_seconds=([\d.]+)$", text, re.MULTILINE)
    scores = re.findall(r"^scores=(\{.*\})$", text, re.MULTILINE)
    seconds = float(printed[-1]) if printed else usage.ru_utime + usage.ru_stime
    return Measured(seconds, usage.ru_maxrss / 1024, json.loads(scores[-1]) if scores else {})


def environment(name: str, recipe: Recipe, folder: Path) -> Path:
    """Return the interpreter of an original's virtual environment, made if it does not exist."""
    wanted = "\n".join((*recipe.requirements, *recipe.no_deps))
    home = folder / f"{name}-{hashlib.sha256(wanted.encode()).hexdigest()[:10]}"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *recipe.requirements], check=True)
        if recipe.no_deps:
            subprocess.run([*pip, "--no-deps", *recipe.no_deps], check=True)
        if recipe.python2_package:
            convert(python, recipe.python2_package)
        (home / "ready").touch()
    return python


def convert(python: Path, name: str) -> None:
    """Convert an installed package of an original from Python 2 to Python 3."""
    code = f"import importlib.util as u; print(u.find_spec({name!r}).origin)"
    printed = subprocess.run([str(python), "-c", code], check=True, stdout=subprocess.PIPE).stdout
    package = Path(printed.decode().strip()).parent
    options = ["-W", "ignore", "-m", "fissix", "-w", "-n", "--no-diffs", str(package)]
    subprocess.run([str(python), *options], check=True, stderr=subprocess.DEVNULL)


def filled(command: list[str], python: Path, source: Path | None) -> list[str]:
    """Return a command with its placeholders replaced."""
    parts = (part.replace("{python}", str(python)) for part in command)
    return [part.replace("{source}", str(source)) for part in parts]


def difference(ours: dict[str, float], theirs: dict[str, float]) -> float:
    """Return the largest difference of the scores that both sides printed."""
    both = ours.keys() & theirs.keys()
    nothing_shared = float("inf") if ours and theirs else 0.0
    return max((abs(ours[key] - theirs[key]) for key in both), default=nothing_shared)


def measured_rows(
    name: str, recipe: Recipe, options: argparse.Namespace, scratch: str
) -> Iterator[tuple[str, list[Measured], list[Measured], Case]]:
    """Yield each case with what both sides used, one entry per round."""
    python = environment(name, recipe, options.folder)
    source = dict(options.source).get(name)
    inputs = options.folder / f"{name}-inputs"
    inputs.mkdir(exist_ok=True)
    done: dict[tuple[str, ...], Measured] = {}  # one original may be compared with several cases
    # in its own process, as the peak memory of this one would count for all commands
    with ProcessPoolExecutor(1) as pool:
        cases = pool.submit(recipe.prepare, inputs).result()
    for case in cases:
        if options.case and not re.search(options.case, case.name):
            continue
        theirs, ours = [], []
        for number in range(options.rounds):
            key = (str(number), *case.original)
            if key not in done:
                done[key] = run(filled(case.original, python, source), case, scratch)
            theirs.append(done[key])
            command = filled(case.karat, Path(sys.executable), source)
            ours.append(run(command, case, scratch))
        apart = difference(ours[0].scores, theirs[0].scores)
        if apart > case.tolerance:
            raise SystemExit(f"{case.name}: scores differ by {apart:.3g}")
        yield recipe.title, theirs, ours, case


def span(values: list[float], digits: int = 1) -> str:
    """Return the smallest and largest value as text."""
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} – {high}"


def table_row(title: str, theirs: list[Measured], ours: list[Measured], case: Case) -> str:
    """Return one row of the table."""
    ratios = [them.seconds / us.seconds for them, us in zip(theirs, ours, strict=True)]
    cells = (
        f"{title}: {case.name}",
        span([them.seconds for them in theirs]),
        span([us.seconds for us in ours]),
        f"{span(ratios)} ×",
        f"{case.goal:g} ×",
        f"{max(them.memory for them in theirs):.0f} / {max(us.memory for us in ours):.0f} MB",
    )
    return f"| {' | '.join(cells)} |"


def write_page(rows: list[str]) -> None:
    """Replace the table in docs/benchmarks.md, keeping the rows of recipes that did not run."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    new = {row.split("|")[1]: row for row in rows}
    earlier_rows = {row.split("|")[1]: row for row in old.strip().splitlines()[2:]}
    PAGE.write_text(
        "".join((before, BEGIN, "\n", table({**earlier_rows, **new}.values()), END, after))
    )


def table(rows: Iterable[str]) -> str:
    """Return the rows below their heading."""
    head = "| command | original, CPU s | Karat, CPU s | ratio | goal | memory |"
    return "".join(f"{row}\n" for row in (head, "|---|---|---|---|---|---|", *rows))


def source_option(text: str) -> tuple[str, Path]:
    """Return the name and folder of ``NAME=FOLDER``."""
    name, _, folder = text.partition("=")
    if not Path(folder).is_dir():
        raise argparse.ArgumentTypeError(
            f"expected NAME=FOLDER with an existing folder, got {text}"
        )
    return name, Path(folder).resolve()


def main() -> int:
    """Measure the chosen recipes and print one table."""
    names = sorted(path.stem for path in (Path(__file__).parent / "recipes").glob("*.py"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("recipes", nargs="*", choices=[[], *names], default=[], metavar="RECIPE")
    parser.add_argument("--rounds", type=int, default=2, help="Rounds of both sides. Default: 2.")
    parser.add_argument("--case", help="Only cases whose name matches this regular expression.")
    parser.add_argument("--source", type=source_option, action="append", default=[])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "karat-peers")
    parser.add_argument("--write", action="store_true", help="Write the table to the docs.")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.folder.mkdir(exist_ok=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # as after an installation by pip
    compileall.compile_dir(Path(find_spec("karat").origin).parent, quiet=1)  # type: ignore[union-attr, arg-type]
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.path.insert(0, str(Path(__file__).parent))
    rows = []
    # removed at the end: ext4 takes longer to make files for minutes after many were removed
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.recipes or names:
            recipe = import_module(f"recipes.{name}").RECIPE
            if recipe.source and name not in dict(options.source):
                print(f"{recipe.title}: skipped, use --source {name}=FOLDER ({recipe.source})")
                continue
            for row in measured_rows(name, recipe, options, scratch):
                rows.append(table_row(*row))
                print(rows[-1], flush=True)
    if options.write:
        write_page(rows)
    return 0


if __name__ == "__main__":
    if find_spec("karat") is None:
        sys.exit("Karat is not installed in this environment: pip install -e .")
    sys.exit(main())
