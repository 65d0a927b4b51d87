"""Options that several commands of the command line share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

#: what every command shares with the group
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def options(*several: Any) -> Any:
    """Return what adds several options to a command, in their order."""

    def add(command: Any) -> Any:
        for option in reversed(several):
            command = option(command)
        return command

    return add


define = click.option(
    "--define",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="YAML with definitions of your own (or a folder of it), or Python that registers parts. "
    "Repeatable.",
)
what_to_run = options(
    click.argument("suite"),
    click.option(
        "-m",
        "--model",
        "models",
        multiple=True,
        metavar="MODEL",
        help="A name, a vector file, or package.module:Name. Repeatable; without it the suite's "
        "own models.",
    ),
    click.option(
        "-c",
        "--constraint",
        default="default",
        show_default=True,
        metavar="NAME",
        help="Limits of the run: karat list constraints.",
    ),
    click.option(
        "-t",
        "--task",
        "only",
        multiple=True,
        metavar="TASK",
        help="Only these tasks of the suite; * stands for anything. Repeatable.",
    ),
    click.option(
        "-X",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="f.PARAM=… of the models, t.KEY=… of the tasks, or an option such as seed=7. "
        "Repeatable.",
    ),
    click.option(
        "-f",
        "--fold",
        "folds",
        multiple=True,
        type=int,
        metavar="N",
        help="Only these folds, counted from 0. Repeatable.",
    ),
    click.option("--seed", default=42, show_default=True, help="Models get seed + fold."),
    click.option("--max-rows", type=int, metavar="N", help="At most so many rows of a data set."),
    click.option(
        "--data-dir",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Where data files are looked for first, before KARAT_DATA.",
    ),
    click.option("--target", metavar="COLUMN", help="SUITE is a table file: the column to answer."),
    click.option(
        "--like",
        metavar="TASK",
        help="With --target: ask as this task or pattern does; taco asks under corruption.",
    ),
    define,
)
engine = options(
    click.option(
        "-w",
        "-p",
        "--workers",
        "--parallel",
        "workers",
        type=int,
        metavar="N",
        help="Worker processes.  [default: cores]",
    ),
    click.option(
        "--engine",
        type=click.Choice(["local", "dask"]),
        default="local",
        show_default=True,
        help="Where jobs run: in processes here, or on a Dask cluster.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="With --engine dask: the cluster's scheduler, tcp://HOST:PORT or its scheduler file; "
        "without it a cluster is started here.",
    ),
)
going = options(
    click.option(
        "-e/-k",
        "--exit-on-error/--keep-going",
        "exit_on_error",
        default=False,
        help="Stop at the first job that fails, or go on.  [default: keep going]",
    ),
    click.option(
        "--inference",
        multiple=True,
        type=int,
        metavar="ROWS",
        help="Also time answers to batches of so many rows. Repeatable.",
    ),
)
FORMATS = ("table", "markdown", "csv", "json", "latex", "html")
machine = options(
    click.option(
        "--format",
        "shape",
        type=click.Choice(FORMATS),
        help="How to print the board.  [default: table]",
    ),
    click.option("--csv", "shape", flag_value="csv", help="Print the board as CSV."),
    click.option("--json", "shape", flag_value="json", help="Print the board as JSON."),
)
ignore = click.option(
    "--ignore",
    multiple=True,
    metavar="CODE",
    help="Checks to say nothing of: KRT102, or KRT1 for all about models. Repeatable.",
)
