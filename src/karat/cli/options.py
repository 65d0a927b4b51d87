"""Options shared by several commands of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
FORMATS = ("table", "csv", "json", "markdown", "latex", "html")
PATH = click.Path(path_type=Path)


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
define_option = click.option(
    "--define",
    multiple=True,
    type=PATH,
    metavar="FILE",
    help="YAML definitions (a file or a folder), or a Python file that registers components. "
    "Repeatable.",
)
#: the options of a table file that are keys of a dataset, and those that are options of its reader
TABLE_KEYS = ("kind", "positive", "group", "weight", "drop", "part", "test")
TABLE_READING = ("separator", "decimal", "thousands", "encoding", "dates")
table_options = combine_options(
    click.option(
        "--kind",
        type=click.Choice(["classification", "regression"]),
        help="Kind of the target of a table file.  [default: inferred]",
    ),
    click.option(
        "--positive",
        metavar="CLASS",
        help="Positive class of two.  [default: the last in alphabetical order]",
    ),
    click.option("--group", metavar="COLUMN", help="Column of groups that are never split."),
    click.option("--weight", metavar="COLUMN", help="Column of the weights of the rows."),
    click.option(
        "--drop", multiple=True, metavar="COLUMN", help="Column that is not a feature. Repeatable."
    ),
    click.option("--part", metavar="COLUMN", help='Column with "train" or "test" for each row.'),
    click.option("--test", metavar="FILE", help="Second file, whose rows are the test rows."),
    click.option("--separator", metavar="TEXT", help="Separator of cells.  [default: inferred]"),
    click.option("--decimal", metavar="TEXT", help="Decimal mark.  [default: inferred]"),
    click.option("--thousands", metavar="TEXT", help="Thousands mark.  [default: inferred]"),
    click.option("--encoding", metavar="NAME", help="Encoding of the file.  [default: utf-8]"),
    click.option(
        "--dates",
        multiple=True,
        metavar="COLUMN[=FORMAT]",
        help="Column of dates, such as day=%d/%m/%Y. Repeatable.  [default: inferred]",
    ),
)


def pop_table_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of a table file and return them as the keys of a dataset.

    >>> pop_table_settings({"kind": None, "drop": ("id",), "dates": ("day",), "seed": 42})
    {'drop': ['id'], 'options': {'dates': {'day': None}}}
    """
    keys = {name: given.pop(name, None) for name in TABLE_KEYS}
    reading = {name: given.pop(name, None) for name in TABLE_READING}
    reading["dates"] = dict(_date_format(text) for text in reading["dates"] or ())
    settings = {name: value for name, value in keys.items() if value not in (None, ())}
    if "drop" in settings:
        settings["drop"] = list(settings["drop"])
    options = {name: value for name, value in reading.items() if value}
    return {**settings, **({"options": options} if options else {})}


def _date_format(text: str) -> tuple[str, str | None]:
    column, _, form = text.partition("=")
    return column, form or None


run_options = combine_options(
    click.argument("suite"),
    click.option(
        "-m",
        "--model",
        "models",
        multiple=True,
        metavar="MODEL",
        help="A model name, a vector file, or package.module:Name. Repeatable. Default: the models "
        "of the suite.",
    ),
    click.option(
        "-c",
        "--constraint",
        default="default",
        show_default=True,
        metavar="NAME",
        help="Resource limits, see karat list constraints.",
    ),
    click.option(
        "-t",
        "--task",
        "only",
        multiple=True,
        metavar="TASK",
        help="Run only these tasks of the suite; * matches any text. Repeatable.",
    ),
    click.option(
        "-X",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override f.PARAM of the models, t.KEY of the tasks, or an option such as seed. "
        "Repeatable.",
    ),
    click.option(
        "-f",
        "--fold",
        "folds",
        multiple=True,
        type=int,
        metavar="N",
        help="Run only these folds, counted from 0. Repeatable.",
    ),
    click.option(
        "--seed", default=42, show_default=True, help="Random seed; models get seed + fold."
    ),
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
    table_options,
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
        help="Number of worker processes; 0: run in this process.  [default: number of cores]",
    ),
    click.option(
        "--engine",
        type=click.Choice(["local", "dask"]),
        default="local",
        show_default=True,
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
        help="Stop at the first failed job, or continue.  [default: keep going]",
    ),
    click.option(
        "--inference",
        multiple=True,
        type=int,
        metavar="ROWS",
        help="Also measure prediction time for batches of this size. Repeatable.",
    ),
)
format_option = click.option(
    "--format", "shape", type=click.Choice(FORMATS), help="Output format.  [default: table]"
)
ignore_option = click.option(
    "--ignore",
    multiple=True,
    metavar="CODE",
    help="Checks to ignore: KRT102, or KRT1 for every check whose code starts so. Repeatable.",
)
