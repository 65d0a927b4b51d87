"""Measure whole commands of Karat against the original systems and other libraries, in one run.

    python benchmarks/peers.py                         # all recipes
    python benchmarks/peers.py --quick                 # the short cases, ten minutes
    python benchmarks/peers.py geval mteb --rounds 3
    python benchmarks/peers.py taco --source taco=FOLDER --write

Nothing needs to be installed: each original runs in its own virtual environment below
``--folder``, made on first use from the recipe's pinned requirements, and Karat in one with this
clone and the extras of the recipes (``--here``: in the environment of this command). A system that
is not on PyPI is cloned at the recipe's commit, or taken from ``--source``. Both sides use one
thread and run in turns. A case that fails is a row, and the others go on. The scores of both sides
are compared in every row; "not compared" says that a side printed none. ``--write`` puts each row
into ``docs/benchmarks.md`` as soon as it is measured.
"""

from __future__ import annotations

import argparse
import ast
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
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from recipe import Case, Recipe

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
RECIPES = Path(__file__).resolve().parent / "recipes"
BEGIN, END = "<!-- peers -->", "<!-- end of peers -->"
HEAD = (
    "| command | original, CPU s | Karat, CPU s | ratio | goal | memory | scores differ by | date |"
)
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
#: what drivers need besides Karat and its extras
BESIDES = ("matplotlib",)
#: from so many seconds on, ``--quick`` starts no other case
QUICK_SECONDS = 600
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


@dataclass(frozen=True)
class Measured:
    """CPU seconds, peak memory in MB and the scores that a command printed."""

    seconds: float
    memory: float
    scores: dict[str, float]


class Failed(Exception):
    """A command of a case failed, or its scores differ; the message is the reason."""


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
        raise Failed(f"{' '.join(command)[:300]}\n{text[-3000:]}")
    printed = re.findall(r"^cpu_seconds=([\d.]+)$", text, re.MULTILINE)
    scores = re.findall(r"^scores=(\{.*\})$", text, re.MULTILINE)
    seconds = float(printed[-1]) if printed else usage.ru_utime + usage.ru_stime
    return Measured(seconds, usage.ru_maxrss / 1024, json.loads(scores[-1]) if scores else {})


def install(place: Path, *requirements: Sequence[str]) -> Path:
    """Return the interpreter of a new virtual environment, into which pip installs in steps."""
    python = place / "bin" / "python"
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for arguments in filter(None, requirements):
        subprocess.run([*pip, *arguments], check=True)
    return python


def environment(name: str, recipe: Recipe, folder: Path) -> Path:
    """Return the interpreter of an original's virtual environment, made if it does not exist."""
    wanted = "\n".join((*recipe.requirements, *recipe.no_deps))
    place = folder / f"{name}-{hashlib.sha256(wanted.encode()).hexdigest()[:10]}"
    if not (place / "ready").exists():
        no_deps = ("--no-deps", *recipe.no_deps) if recipe.no_deps else ()
        python = install(place, recipe.requirements, no_deps)
        if recipe.python2_package:
            convert(python, recipe.python2_package)
        (place / "ready").touch()
    return place / "bin" / "python"


def karat_environment(names: Sequence[str], folder: Path) -> Path:
    """Return the interpreter of an environment with this clone and the extras of some recipes."""
    extras = sorted({extra for name in names for extra in extras_of(name)})
    wanted = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
    place = folder / f"karat-{hashlib.sha256(wanted.encode()).hexdigest()[:10]}"
    if not (place / "ready").exists():
        # the usual build of torch needs gigabytes of libraries for graphics cards
        torch = ["torch", "--index-url", TORCH_INDEX] if "net" in extras else ()
        install(place, torch, ("--editable", wanted, *BESIDES))
        (place / "ready").touch()
    return place / "bin" / "python"


def extras_of(name: str) -> tuple[str, ...]:
    """Return the extras of Karat that a recipe needs."""
    return tuple(_fact(name, "extras", ()))


def _fact(name: str, fact: str, default: Any) -> Any:
    """Return an argument of a recipe without importing it, which may need what is not installed."""
    for node in ast.walk(ast.parse((RECIPES / f"{name}.py").read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Recipe":
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            return ast.literal_eval(given[fact]) if fact in given else default
    return default


def cloned(name: str, source: str, folder: Path) -> Path:
    """Return the folder of a repository, ``HOST/OWNER/NAME at commit HASH``, cloned once."""
    repository, _, commit = source.partition(" at commit ")
    place = folder / f"{name}-source-{commit}"
    if not (place / "ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        git = ["git", "-c", "advice.detachedHead=false"]
        environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
        for arguments in (
            ["clone", "--quiet", f"https://{repository}", str(place)],
            ["-C", str(place), "checkout", "--quiet", commit],
        ):
            subprocess.run([*git, *arguments], check=True, env=environment)
        (place / "ready").touch()
    return place


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


def difference(ours: dict[str, float], theirs: dict[str, float]) -> float | None:
    """Return the largest difference of the scores of both sides; None if a side printed none."""
    if not ours or not theirs:
        return None
    both = ours.keys() & theirs.keys()
    return max((abs(ours[key] - theirs[key]) for key in both), default=float("inf"))


def cases_of(
    name: str, recipe: Recipe, options: argparse.Namespace
) -> tuple[list[Case], Path, Path | None]:
    """Return the cases to measure, the original's interpreter and its source."""
    source = dict(options.source).get(name)
    if recipe.source and source is None:
        source = cloned(name, recipe.source, options.folder)
    python = environment(name, recipe, options.folder)
    inputs = options.folder / f"{name}-inputs"
    inputs.mkdir(exist_ok=True)
    # in its own process, as the peak memory of this one would count for all commands
    with ProcessPoolExecutor(1) as pool:
        cases = pool.submit(recipe.prepare, inputs).result()
    wanted = [case for case in cases if not options.case or re.search(options.case, case.name)]
    return [case for case in wanted if case.quick or not options.quick], python, source


def measured_row(
    recipe: Recipe, case: Case, commands: tuple[list[str], list[str]], rounds: int, scratch: str
) -> str:
    """Run both sides of a case in turns, and return the row of the table."""
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(run(commands[0], case, scratch))
        ours.append(run(commands[1], case, scratch))
    apart = difference(ours[0].scores, theirs[0].scores)
    if apart is not None and apart > case.tolerance:
        raise Failed(f"scores differ by {apart:.3g}, allowed {case.tolerance:g}")
    return table_row(recipe.title, theirs, ours, case, apart)


def span(values: list[float], digits: int = 1) -> str:
    """Return the smallest and largest value as text."""
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} – {high}"


def table_row(
    title: str, theirs: list[Measured], ours: list[Measured], case: Case, apart: float | None
) -> str:
    """Return one row of the table."""
    ratios = [them.seconds / us.seconds for them, us in zip(theirs, ours, strict=True)]
    cells = (
        f"{title}: {case.name}",
        span([them.seconds for them in theirs]),
        span([us.seconds for us in ours]),
        f"{span(ratios)} ×",
        f"{case.goal:g} ×",
        f"{max(them.memory for them in theirs):.0f} / {max(us.memory for us in ours):.0f} MB",
        "not compared" if apart is None else f"{apart:.1g}",
        date.today().isoformat(),
    )
    return f"| {' | '.join(cells)} |"


def write_page(rows: list[str]) -> None:
    """Replace the table in docs/benchmarks.md, keeping the rows of recipes that did not run."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    new = {row.split("|")[1]: row for row in rows}
    kept = {row.split("|")[1]: row for row in old.strip().splitlines()[2:]}
    PAGE.write_text("".join((before, BEGIN, "\n", table({**kept, **new}.values()), END, after)))


def table(rows: Iterable[str]) -> str:
    """Return the rows below their heading."""
    return "".join(f"{row}\n" for row in (HEAD, "|---" * HEAD.count(" |") + "|", *rows))


def source_option(text: str) -> tuple[str, Path]:
    """Return the name and folder of ``NAME=FOLDER``."""
    name, _, folder = text.partition("=")
    if not Path(folder).is_dir():
        raise argparse.ArgumentTypeError(
            f"expected NAME=FOLDER with an existing folder, got {text}"
        )
    return name, Path(folder).resolve()


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    names = sorted(path.stem for path in RECIPES.glob("*.py"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("recipes", nargs="*", choices=[[], *names], default=[], metavar="RECIPE")
    parser.add_argument("--rounds", type=int, default=2, help="Rounds of both sides. Default: 2.")
    parser.add_argument("--case", help="Only cases whose name matches this regular expression.")
    parser.add_argument("--quick", action="store_true", help="One round of short cases, 10 min.")
    parser.add_argument("--source", type=source_option, action="append", default=[])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "karat-peers")
    parser.add_argument("--here", action="store_true", help="Run Karat in this environment.")
    parser.add_argument("--write", action="store_true", help="Write each row to the docs.")
    options = parser.parse_args()
    options.recipes = options.recipes or names
    if options.quick:
        options.recipes = [name for name in options.recipes if _fact(name, "quick", False)]
    options.folder = options.folder.resolve()
    options.folder.mkdir(exist_ok=True)
    options.rounds = 1 if options.quick else options.rounds
    return options


def measure(options: argparse.Namespace, scratch: str) -> list[str]:
    """Print the row of each case, and return the names of those that failed."""
    failed = []
    stop = time.monotonic() + (QUICK_SECONDS if options.quick else float("inf"))
    for name in options.recipes:
        title = name
        try:
            recipe = import_module(f"recipes.{name}").RECIPE
            title = recipe.title
            cases, python, source = cases_of(name, recipe, options)
        except Exception as error:  # others can be measured
            failed.append(title)
            print(f"| {title} | failed: {type(error).__name__}: {error} |", flush=True)
            continue
        for case in cases:
            if time.monotonic() > stop:
                print(f"{title}: {case.name}: left out, ten minutes are over", flush=True)
                continue
            commands = (
                filled(case.original, python, source),
                filled(case.karat, Path(sys.executable), source),
            )
            try:
                row = measured_row(recipe, case, commands, options.rounds, scratch)
            except Failed as error:
                failed.append(f"{title}: {case.name}")
                print(f"| {failed[-1]} | failed: {error} |", flush=True)
                continue
            print(row, flush=True)
            if options.write:
                write_page([row])
    return failed


def main() -> int:
    """Measure the chosen recipes and print one table."""
    options = arguments()
    if not options.here:
        python = karat_environment(options.recipes, options.folder)
        os.execv(python, [str(python), __file__, *sys.argv[1:], "--here"])
    if find_spec("karat") is None:
        sys.exit("Karat is not installed in this environment: leave out --here.")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # as after an installation by pip
    compileall.compile_dir(Path(find_spec("karat").origin).parent, quiet=1)  # type: ignore[union-attr, arg-type]
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.path.insert(0, str(Path(__file__).parent))
    print(table(()), end="", flush=True)
    # removed at the end: ext4 takes longer to make files for minutes after many were removed
    with tempfile.TemporaryDirectory() as scratch:
        failed = measure(options, scratch)
    if failed:
        print(f"{len(failed)} failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
