"""``python -m karat.compat.amlb``: the command line of ``runbenchmark.py``."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from karat.catalogue import Catalogue
from karat.compat.amlb.overrides import Overrides, read_overrides
from karat.compat.amlb.userdir import files_of
from karat.errors import DefinitionError, KaratError, did_you_mean
from karat.evaluate import make_options, plan_suite, run_suite
from karat.models.base import Model
from karat.progress import choose
from karat.report.runs import show_runs
from karat.session import Stopped
from karat.task import Suite

ELSEWHERE = ("aws", "docker", "singularity")
LEVELS = {"debug": 2, "info": 1, "warning": 0, "warn": 0, "error": 0, "critical": 0}
#: where the AutoML Benchmark looks for the user's files
HOME = Path("~/.config/automlbenchmark")


def parser() -> argparse.ArgumentParser:
    """Return the arguments of ``runbenchmark.py``, and what became of each."""
    made = argparse.ArgumentParser(
        prog="python -m karat.compat.amlb",
        description="Run a framework on a benchmark under a constraint, as runbenchmark.py does.",
        epilog="Exit code: 0 all went well, 1 some jobs failed, 2 a mistake in what was asked.",
    )
    add = made.add_argument
    add("framework", help="A model or a framework, in any case; NAME:TAG is NAME.")
    add("benchmark", nargs="?", default="test", help="A suite, a YAML file, openml/s/N, openml/t/N")
    add("constraint", nargs="?", default="test", help="A constraint: karat list constraints.")
    add("-m", "--mode", default="local", choices=["local", *ELSEWHERE], help="Only local.")
    add("-t", "--task", nargs="*", default=[], metavar="TASK", help="Only these tasks.")
    add("-f", "--fold", nargs="*", type=int, default=[], metavar="N", help="Only these folds.")
    add("-i", "--indir", type=Path, metavar="DIR", help="Where data files are looked for.")
    add("-o", "--outdir", type=Path, default=Path("results"), metavar="DIR")
    add("-u", "--userdir", type=Path, metavar="DIR", help=f"Definition files.  [{HOME}]")
    add("-p", "--parallel", type=int, default=1, metavar="N", help="Jobs side by side.")
    add("-s", "--setup", default="auto", choices=["auto", "skip", "force", "only"])
    add("-k", "--keep-scores", nargs="?", const="true", metavar="true|false")
    add("-e", "--exit-on-error", action="store_true", help="Stop at the first failed job.")
    add("--logging", default="console:info", metavar="LEVEL", help="debug, info, warning …")
    add("--resume", action="store_true", help="Complete unfinished runs in the folder.")
    add("--jobhistory", metavar="FILE", help=argparse.SUPPRESS)
    add("--openml-run-tag", metavar="TAG", help=argparse.SUPPRESS)
    add("--openml-test-server", action="store_true", help=argparse.SUPPRESS)
    add("--profiling", action="store_true", help=argparse.SUPPRESS)
    add("--session", help=argparse.SUPPRESS)
    add("-X", "--extra", action="append", default=[], metavar="KEY=VALUE", help="Repeatable.")
    add("--define", action="append", default=[], type=Path, metavar="FILE", help="Repeatable.")
    return made


def amlb(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for; return the exit code."""
    given = parser().parse_args(arguments)
    _refuse(given)
    _note(given)
    changes = read_overrides(given.extra)
    folders = [folder for folder in (given.indir, given.userdir) if folder is not None]
    _look_in(folders)
    catalogue, name = _catalogue(given)
    model = _model(catalogue, given.framework, changes)
    suite = _suite(catalogue, name, given.task)
    suite = Suite(suite.name, tuple(changes.changed(task) for task in suite), suite.models)
    options = make_options(
        {
            "workers": given.parallel,
            "output": given.outdir,
            "constraint": given.constraint,
            "only": [_exactly(suite, task) for task in given.task],
            "folds": given.fold or None,
            "resume": given.resume,
            "exit_on_error": given.exit_on_error,
            **changes.run,
        }
    )
    level = _level(given.logging)
    plan = plan_suite([model], suite, catalogue, options)
    runs = run_suite(plan, suite, options, choose(level == 0, level == 2))
    return show_runs(runs, None, quiet=level == 0)


def _refuse(given: argparse.Namespace) -> None:
    """Refuse what cannot be done here."""
    wrong = []
    if given.mode != "local":
        wrong.append(
            f"-m {given.mode}: jobs run on this machine, each within its limits; for several "
            f"machines: karat run --engine dask."
        )
    if given.setup in ("force", "only"):
        wrong.append(f"-s {given.setup}: nothing is installed here; use pip, karat list models.")
    if given.jobhistory is not None:
        wrong.append("--jobhistory: --resume looks into the run folders of --outdir itself.")
    if given.openml_test_server:
        wrong.append("--openml-test-server: only OpenML itself is asked.")
    if given.session is not None:
        wrong.append("--session: a run folder has the name of what it holds; choose --outdir.")
    if wrong:
        raise DefinitionError(*wrong)


def _note(given: argparse.Namespace) -> None:
    """Tell what is left away without harm."""
    if given.keep_scores is not None:
        _say("-k: every run keeps its scores; karat leaderboard reads all runs of a folder.")
    if given.openml_run_tag is not None:
        _say("--openml-run-tag: nothing is sent to OpenML, so that the tag is not used.")
    if given.profiling:
        _say("--profiling: seconds, CPU seconds and memory of every job stand in results.csv.")
    if ":" in given.framework and not given.framework.partition(":")[2][:1].isupper():
        _say(f"{given.framework}: what is installed is run, whatever the tag says.")


def _say(text: str) -> None:
    sys.stderr.write(f"note: {text}\n")


def _look_in(folders: Sequence[Path]) -> None:
    for folder in folders:
        if not folder.is_dir():
            raise DefinitionError(f"there is no folder {folder}.")
    known = os.environ.get("KARAT_DATA")
    places = [*(str(folder.absolute()) for folder in folders), *([known] if known else [])]
    if places:
        os.environ["KARAT_DATA"] = os.pathsep.join(places)


def _level(given: str) -> int:
    """Return how much is said: 0 nothing but mistakes, 1 progress, 2 a line for every job."""
    said = [part.rpartition(":") for part in given.lower().split(",")]
    parts = {logger or "console": level for logger, _, level in said}
    for level in parts.values():
        if level not in LEVELS:
            near = did_you_mean(level, LEVELS)
            raise DefinitionError(f'--logging: "{level}" is no level.{near}')
    return LEVELS[parts.get("console", "info")]


def _catalogue(given: argparse.Namespace) -> tuple[Catalogue, str]:
    """Return all that is defined, and the name of the benchmark."""
    files, name = list(given.define), given.benchmark
    if Path(name).suffix in (".yaml", ".yml"):
        files.append(Path(name))
        name = Path(name).stem
    folder = given.userdir or HOME.expanduser()
    if given.userdir is not None or folder.is_dir():
        files += files_of(folder, name)
    return Catalogue(files), name


def _model(catalogue: Catalogue, framework: str, changes: Overrides) -> Model:
    names = catalogue.definitions.names("models", abstract=True)
    if framework not in names and framework.count(":") == 1:
        name, _, tag = framework.partition(":")
        # package.module:Name is a class; a tag is not
        framework = framework if tag[:1].isupper() else name
    alike = [name for name in names if name.lower() == framework.lower()]
    chosen = framework if framework in names or not alike else alike[0]
    return catalogue.model(chosen, params=changes.params)


def _suite(catalogue: Catalogue, name: str, tasks: Sequence[str]) -> Suite:
    """Return the suite; a task that is asked for and left out says why."""
    definitions = catalogue.definitions
    for task in tasks:
        key = f"{name}.{task}"
        if key in definitions.names("tasks", abstract=True):
            refused = definitions.get("tasks", key).get("refuse")
            if refused:
                raise DefinitionError(refused)
    return catalogue.suite(name)


def _exactly(suite: Suite, wanted: str) -> str:
    """Return the name of a task as it is written."""
    alike = [task.name for task in suite if task.name.lower() == wanted.lower()]
    return alike[0] if alike else wanted


def main() -> None:
    """Run the command line; a mistake is a message on standard error and exit code 2."""
    warnings.formatwarning = lambda message, *_, **__: f"note: {message}\n"
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        sys.exit(amlb())
    except (KeyboardInterrupt, Stopped) as stopped:
        sys.stderr.write(f"{stopped or 'stopped.'}\n")
        sys.exit(130)
    except DefinitionError as error:
        messages: Any = error.messages
    except (KaratError, OSError) as error:
        messages = [str(error)]
    for message in messages:
        sys.stderr.write(f"error: {message}\n")
    sys.exit(2)


if __name__ == "__main__":
    main()
