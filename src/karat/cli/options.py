"""Options shared by several commands of the command line."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

SETTINGS = {
    **{"help_option_names": ["-h", "--help"], "max_content_width": 100},
    "show_default": True,
}
FORMATS = ("table", "csv", "json", "markdown", "latex", "html")
PATH = click.Path(path_type=Path)


#: an option that can be given several times
repeatable = partial(click.option, multiple=True)


def combine_options(*several: Any) -> Any:
    """Return a decorator that adds several options to a command, in their order."""

    def add(command: Any) -> Any:
        for option in reversed(several):
            command = option(command)
        return command

    return add


def print_error(message: str) -> None:
    """Print an error message on standard error."""
    click.echo(click.style("error: ", fg="red", bold=True) + message, err=True)


run_folders = click.argument("runs", nargs=-1, required=True, type=PATH, metavar="RUN...")
define_option = repeatable(
    "--define",
    type=PATH,
    metavar="FILE",
    help="YAML definitions (a file or a folder), or a Python file that registers components. "
    "Repeatable.",
)
run_options = combine_options(
    click.argument("suite"),
    repeatable(
        "-m",
        "--model",
        "models",
        metavar="MODEL",
        help="A model name, a vector file, or package.module:Name. Repeatable. Default: the models "
        "of the suite.",
    ),
    click.option(
        "-c",
        "--constraint",
        default="default",
        metavar="NAME",
        help="Resource limits, see karat list constraints.",
    ),
    repeatable(
        "-t",
        "--task",
        "only",
        metavar="TASK",
        help="Run only these tasks of the suite; * matches any text. Repeatable.",
    ),
    repeatable(
        "-X",
        "overrides",
        metavar="KEY=VALUE",
        help="Override f.PARAM of the models, t.KEY of the tasks, or an option such as seed. "
        "Repeatable.",
    ),
    repeatable(
        "-f",
        "--fold",
        "folds",
        type=int,
        metavar="N",
        help="Run only these folds, counted from 0. Repeatable.",
    ),
    click.option("--seed", default=42, help="Random seed; models get seed + fold."),
    click.option("--max-rows", type=int, metavar="N", help="Maximum number of rows per dataset."),
    click.option(
        "--data-dir",
        type=PATH,
        metavar="DIR",
        help="Folder to search for data files before KARAT_DATA.",
    ),
    click.option("--target", metavar="COLUMN", help="Target column, if SUITE is a table file."),
    click.option(
        "--like",
        metavar="TASK",
        help="With --target: use the settings of this task or pattern; taco adds corruptions.",
    ),
    define_option,
)
engine_options = combine_options(
    click.option(
        "-w",
        "-p",
        "--workers",
        "--parallel",
        "workers",
        type=int,
        metavar="N",
        help="Number of worker processes.  [default: number of cores]",
    ),
    click.option(
        "--engine",
        type=click.Choice(["local", "dask"]),
        default="local",
        help="Run jobs in local processes or on a Dask cluster.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="With --engine dask: tcp://HOST:PORT or a scheduler file. Default: start a local "
        "cluster.",
    ),
)
failure_options = combine_options(
    click.option(
        "-e/-k",
        "--exit-on-error/--keep-going",
        "exit_on_error",
        default=False,
        show_default=False,
        help="Stop at the first failed job, or continue.  [default: keep going]",
    ),
    repeatable(
        "--inference",
        type=int,
        metavar="ROWS",
        help="Also measure prediction time for batches of this size. Repeatable.",
    ),
)
format_option = click.option(
    "--format", "shape", type=click.Choice(FORMATS), help="Output format.  [default: table]"
)
ignore_option = repeatable(
    "--ignore",
    metavar="CODE",
    help="Checks to ignore: KRT102, or KRT1 for every check whose code starts so. Repeatable.",
)
