"""``python -m karat.compat.amlb``: the command line of ``runbenchmark.py``."""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from karat.config.catalog import Catalog
from karat.core.task import Suite, Task
from karat.data.download_display import shown_downloads
from karat.errors import DefinitionError, KaratError, did_you_mean
from karat.execution.evaluation import make_options, plan_suite, run_suite
from karat.execution.progress import choose_progress
from karat.execution.session import Stopped
from karat.execution.workers import Template
from karat.ext.compat.amlb.definitions import (
    USER_FRAMEWORK,
    Overrides,
    built_in_files,
    files_of,
    read_config,
    read_overrides,
    tagged_file,
)
from karat.ext.compat.amlb.result_files import keep_scores
from karat.models.model import Model
from karat.reporting.terminal import print_idle_models, show_runs

ELSEWHERE = ("aws", "docker", "singularity")
LEVELS = {"debug": 2, "info": 1, "warning": 0, "warn": 0, "error": 0, "critical": 0}
#: the AutoML Benchmark's default user folder
HOME = Path("~/.config/automlbenchmark")


def parser() -> argparse.ArgumentParser:
    """Return a parser of the arguments of ``runbenchmark.py``."""
    command_line = argparse.ArgumentParser(
        prog="python -m karat.compat.amlb",
        description="Run a framework on a benchmark under a constraint, as runbenchmark.py does.",
        epilog="Exit code: 0 success, 1 some jobs failed, 2 invalid arguments.",
    )
    add = command_line.add_argument
    add("framework", help="A model, in any case; NAME:TAG is in frameworks_TAG.yaml.")
    add("benchmark", nargs="?", default="test", help="A suite, a YAML file, openml/s/N, openml/t/N")
    add("constraint", nargs="?", default="test", help="A constraint: karat list constraints.")
    add("-m", "--mode", default="local", choices=["local", *ELSEWHERE], help="Must be local.")
    add("-t", "--task", nargs="*", default=[], metavar="TASK", help="Only these tasks.")
    add("-f", "--fold", nargs="*", type=int, default=[], metavar="N", help="Only these folds.")
    add("-i", "--indir", type=Path, metavar="DIR", help="Folder of data files.")
    add("-o", "--outdir", type=Path, metavar="DIR", help="Folder of the runs.  [results]")
    add("-u", "--userdir", type=Path, metavar="DIR", help=f"Definition files.  [{HOME}]")
    add("-p", "--parallel", type=int, default=1, metavar="N", help="Number of parallel jobs.")
    add("-s", "--setup", default="auto", choices=["auto", "skip", "force", "only"])
    keep = "Add the rows to results.csv of the output folder.  [true]"
    add("-k", "--keep-scores", nargs="?", type=_boolean, const=True, default=True, help=keep)
    add("-e", "--exit-on-error", action="store_true", help="Stop at the first failed job.")
    add("--logging", default="console:info", metavar="LEVEL", help="debug, info, warning ...")
    add("--resume", action="store_true", help="Resume unfinished runs in the output folder.")
    add("--jobhistory", metavar="FILE", help=argparse.SUPPRESS)
    add("--openml-run-tag", metavar="TAG", help=argparse.SUPPRESS)
    add("--openml-test-server", action="store_true", help=argparse.SUPPRESS)
    add("--profiling", action="store_true", help=argparse.SUPPRESS)
    add("--session", help=argparse.SUPPRESS)
    add("-X", "--extra", action="append", default=[], metavar="KEY=VALUE", help="Repeatable.")
    add("--define", action="append", default=[], type=Path, metavar="FILE", help="Repeatable.")
    return command_line


def amlb(arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark and return the exit code."""
    options = parser().parse_args(arguments)
    _check_supported(options)
    _print_notes(options)
    changes = _changes(options)
    options.outdir = options.outdir or Path(_placed(options, changes, "output_dir") or "results")
    folders = [folder for folder in (options.indir, options.userdir) if folder is not None]
    if (data := _placed(options, changes, "input_dir")) and options.indir is None:
        folders += [Path(data)] if Path(data).is_dir() else []
    with _data_folders(folders), shown_downloads(_level(options.logging) > 0):
        return _run(options, changes)


def _placed(options: argparse.Namespace, changes: Overrides, key: str) -> str | None:
    """Return a folder of their configuration with its placeholder filled."""
    folder = changes.folders.get(key)
    user = options.userdir or HOME.expanduser()
    return None if folder is None else os.path.expanduser(folder.replace("{user}", str(user)))


def _run(command: argparse.Namespace, changes: Overrides) -> int:
    framework, tag = _split_tag(command.framework, changes.tags)
    catalog, name = _catalog(command, tag)
    if sys.platform == "linux":
        # one worker loads only what its model uses
        Template.copy_this_process(preload=command.parallel > 1)
    if tag:
        _check_tagged(command, catalog, framework, tag)
    model = _model(catalog, framework, changes)
    suite = _suite(catalog, name, command.task)
    tasks = tuple(_changed(task, changes) for task in suite)
    suite = Suite(suite.name, tasks, suite.models)
    spelled = {task.name.lower(): task.name for task in suite}
    options = make_options(
        {
            "workers": command.parallel,
            "output": command.outdir,
            "constraint": command.constraint,
            "only": [spelled.get(task.lower(), task) for task in command.task],
            "only_folds": command.fold or None,
            "resume": command.resume,
            "exit_on_error": command.exit_on_error,
            **changes.run,
        }
    )
    level = _level(command.logging)
    plan = plan_suite([model], suite, catalog, options)
    runs = run_suite(plan, suite, options, choose_progress(level == 0, level == 2))
    if command.keep_scores:
        keep_scores(runs, command.outdir / "results.csv")
    code = show_runs(runs, None, quiet=level == 0)
    return code | print_idle_models(runs, [command.framework])


def _check_supported(options: argparse.Namespace) -> None:
    installs, has_history = options.setup in ("force", "only"), options.jobhistory is not None
    checks = {
        f"-m {options.mode}: jobs run on this machine. For several machines use karat run --engine "
        f"dask.": options.mode != "local",
        f"-s {options.setup}: Karat installs nothing; use pip. See karat list models.": installs,
        "--jobhistory: not supported; --resume reads the run folders in --outdir.": has_history,
        "--openml-test-server: not supported.": options.openml_test_server,
        "--session: not supported; set --outdir.": options.session is not None,
    }
    mistakes = [message for message, wrong in checks.items() if wrong]
    if mistakes:
        raise DefinitionError(*mistakes)


def _print_notes(options: argparse.Namespace) -> None:
    notes = {
        "--openml-run-tag is ignored: nothing is sent to OpenML.": options.openml_run_tag
        is not None,
        "--profiling: results.csv always has seconds, CPU seconds and memory.": options.profiling,
    }
    for text in (text for text, applies in notes.items() if applies):
        sys.stderr.write(f"note: {text}\n")


@contextmanager
def _data_folders(folders: Sequence[Path]) -> Iterator[None]:
    """Add folders to ``KARAT_DATA`` during a run."""
    for folder in folders:
        if not folder.is_dir():
            raise DefinitionError(f"folder not found: {folder}.")
    before = os.environ.get("KARAT_DATA")
    places = [*(str(folder.absolute()) for folder in folders), *([before] if before else [])]
    if places:
        os.environ["KARAT_DATA"] = os.pathsep.join(places)
    try:
        yield
    finally:
        os.environ.pop("KARAT_DATA", None)
        if before is not None:
            os.environ["KARAT_DATA"] = before


def _level(levels_text: str) -> int:
    """Return the verbosity: 0 errors only, 1 progress, 2 a line per job."""
    pairs = [item.rpartition(":") for item in levels_text.lower().split(",")]
    levels = {logger or "console": level for logger, _, level in pairs}
    for level in levels.values():
        if level not in LEVELS:
            near = did_you_mean(level, LEVELS)
            raise DefinitionError(f'--logging: unknown level "{level}".{near}')
    return LEVELS[levels.get("console", "info")]


def _boolean(text: str) -> bool:
    """Return true for the words that mean it."""
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in words:
        raise argparse.ArgumentTypeError(f"must be true or false, got {text!r}.")
    return words[text.lower()]


def _changes(options: argparse.Namespace) -> Overrides:
    """Return what the user's config.yaml, ``-X config=FILE`` and ``-X`` change, the last wins."""
    files = [(options.userdir or HOME.expanduser()) / "config.yaml"]
    config_arguments = [pair for pair in options.extra if pair.startswith("config=")]
    files += [Path(pair.partition("=")[2]) for pair in config_arguments]
    merged: dict[str, Any] = {}
    for file in files:
        if file != files[0] and not file.is_file():
            raise DefinitionError(f"-X config={file}: file not found.")
        for key, value in read_config(file).items():
            both = isinstance(value, dict) and isinstance(merged.get(key), dict)
            merged[key] = {**merged[key], **value} if both else value
    extra = [pair for pair in options.extra if pair not in config_arguments]
    changes = read_overrides(extra, merged, str(files[-1]))
    if changes.unused:
        sys.stderr.write(f"note: keys without effect: {', '.join(changes.unused)}.\n")
    return changes


def _changed(task: Task, changes: Overrides) -> Task:
    return replace(task, **changes.task, usual={**task.usual, **changes.metrics})


def _split_tag(framework: str, tags: Sequence[str]) -> tuple[str, str]:
    """Return name and tag of a framework; the name of a class has no tag.

    >>> _split_tag("mine:stable", ["stable"]), _split_tag("package.module:Name", ["stable"])
    (('mine', 'stable'), ('package.module:Name', ''))
    """
    name, _, tag = framework.partition(":")
    if tag in tags:
        return name, tag
    if not tag or tag[0].isupper() or ":" in tag:
        return framework, ""
    near = did_you_mean(tag, tags) or f" Available: {', '.join(tags)}."
    raise DefinitionError(
        f'{framework}: unknown tag "{tag}".{near} The key frameworks.tags of config.yaml lists '
        f"the tags."
    )


def _check_tagged(options: argparse.Namespace, catalog: Catalog, framework: str, tag: str) -> None:
    """Refuse a framework that only definitions without the tag have; note one of Karat."""
    definitions = catalog.definitions
    chosen = _spelled(framework, definitions.names("models", abstract=True))
    if chosen is None:
        untagged = _catalog(options, "")[0].definitions
        chosen = _spelled(framework, untagged.names("models", abstract=True))
        if chosen is not None:
            untagged.chosen("models", chosen)  # why it was removed
            raise DefinitionError(
                f'"{framework}" has no definition with the tag "{tag}": add it to '
                f"frameworks_{tag}.yaml in the user folder, or leave the tag out."
            )
    elif definitions.folder("models", chosen) in _folders_of_karat(chosen):
        sys.stderr.write(
            f"note: {options.framework}: no frameworks_{tag}.yaml defines it; the installed "
            f"version is run.\n"
        )


def _folders_of_karat(model: str) -> list[Path | None]:
    """Return the folder in which Karat itself defines a model, if it does."""
    supplied = Catalog().definitions
    names = supplied.names("models", abstract=True)
    return [supplied.folder("models", model)] if model in names else []


def _spelled(framework: str, names: Sequence[str]) -> str | None:
    """Return the name of a framework as it is defined: the same one, or in another case."""
    alike = [name for name in names if name.lower() == framework.lower()]
    return framework if framework in names else alike[0] if alike else None


def _catalog(options: argparse.Namespace, tag: str) -> tuple[Catalog, str]:
    """Return the catalog with the user's definitions, and the name of the benchmark."""
    pairs = [(file, tagged_file(file, tag)) for file in options.define]
    files = [tagged if tagged.is_file() else file for file, tagged in pairs]
    name = options.benchmark
    if Path(name).suffix in (".yaml", ".yml"):
        files.append(Path(name))
        name = Path(name).stem
    folder = options.userdir or HOME.expanduser()
    if options.userdir is not None or folder.is_dir():
        files += files_of(folder, name, tag)
    # the user's entries replace those that come with the command
    return Catalog([*built_in_files(name), *files]), name


def _model(catalog: Catalog, framework: str, changes: Overrides) -> Model:
    names = catalog.definitions.names("models", abstract=True)
    chosen = _spelled(framework, names) or framework
    definition = catalog.definitions.get("models", chosen) if chosen in names else {}
    if definition.get("use") != USER_FRAMEWORK:
        return catalog.model(chosen, params=changes.params)
    nested = {"framework_params": changes.params} if changes.params else {}
    model = catalog.model(chosen, params=nested)
    params = dict(model.params.get("framework_params") or {})
    version = model.params.get("framework_version") or model.version
    return replace(model, params=params, version=str(version))


def _suite(catalog: Catalog, name: str, tasks: Sequence[str]) -> Suite:
    """Return the suite; raise with the reason if a selected task is excluded."""
    definitions = catalog.definitions
    for task in tasks:
        key = f"{name}.{task}"
        if key in definitions.names("tasks", abstract=True):
            refused = definitions.get("tasks", key).get("refuse")
            if refused:
                raise DefinitionError(refused)
    return catalog.suite(name)


def main() -> None:
    """Run the command line; an error is a message on standard error and exit code 2."""
    atexit.register(gc.freeze)  # the memory is freed at once, without a search for cycles
    gc.freeze()  # what is loaded by now stays
    gc.enable()
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
