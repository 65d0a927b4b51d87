"""Options shared by several commands of the command line."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from karat.core.registry import interchange
from karat.errors import DataError

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}
FORMATS = ("table", "csv", "json", "markdown", "latex", "html")
PATH = click.Path(path_type=Path)
run_folders = click.argument("runs", nargs=-1, required=True, type=PATH, metavar="RUN...")
#: the options of a table file that are keys of a dataset, and those that are options of its reader
TABLE_KEYS = ("kind", "positive", "group", "weight", "drop", "part", "test")
TABLE_READING = ("separator", "decimal", "thousands", "encoding", "dates", "unanswered")
#: further options of the reader, each a list
TABLE_LISTS = ("missing", "numbers", "texts", "keep")


def option(usage: str, text: str = "", dest: str | None = None, **settings: Any) -> Any:
    """Return a click option; ``usage`` is written as the help shows it: "-o, --output DIR".

    ``dest`` is the name of the parameter. Default: the long name of the option.
    """
    words = usage.split()
    names = [word.rstrip(",") for word in words if word.startswith("-")]
    metavar = next((word for word in words if not word.startswith("-")), None)
    named = [*names, dest] if dest else names
    return click.option(*named, metavar=metavar, help=text or None, **settings)


#: an option that can be given several times
repeatable = partial(option, multiple=True)


def combine_options(*several: Callable[..., Any]) -> Any:
    """Return a decorator that adds several options to a command, in their order."""

    def add(command: Callable[..., Any]) -> Any:
        for option in reversed(several):
            command = option(command)
        return command

    return add


def print_error(message: str) -> None:
    """Print an error message on standard error."""
    click.echo(click.style("error: ", fg="red", bold=True) + message, err=True)


@contextlib.contextmanager
def as_run_folders(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield run folders as given, and result files of other systems imported.

    The imported runs are in a temporary folder, which is removed at the end.
    """
    from karat.results.importing import has_result_files

    others = [path for path in paths if not _is_read(path) and has_result_files(path)]
    if not others or "import" not in interchange:
        yield list(paths)
        return
    import_results = interchange.get("import")
    with tempfile.TemporaryDirectory(prefix="karat-import-") as folder:
        try:
            imported = import_results(others, folder)
        except DataError as error:
            raise DataError(f"{others[0]} contains no run folder; {_reason(error)}") from error
        for note in [*imported.notes, *imported.problems]:
            click.echo(f"note: {note}", err=True)
        yield [*(path for path in paths if path not in others), Path(folder)]


def _reason(error: DataError) -> str:
    """Return why files cannot be imported; for an unknown format, without a list of all."""
    reason = str(error).splitlines()[1]
    if not reason.startswith("unknown file format"):
        return reason
    what, _, _ = reason.partition(". Expected ")
    return (
        f"{what} (karat import lists the formats of other systems). To evaluate models on a table: "
        "karat run FILE --target COLUMN"
    )


def given_words(context: click.Context, without: Collection[str]) -> list[str]:
    """Return the words of a command as they were given, without some of its parameters."""
    words: list[str] = [str(context.command.name)]
    for parameter in context.command.params:
        name, value = str(parameter.name), context.params.get(str(parameter.name))
        if name in without or not is_from_command_line(context, name):
            continue
        if isinstance(parameter, click.Argument):
            words += map(str, [value] if parameter.nargs == 1 else value)  # type: ignore[arg-type]
        elif isinstance(parameter, click.Option):
            off = parameter.is_flag and not value
            option = max(parameter.secondary_opts if off else parameter.opts, key=len)
            values = value if parameter.multiple else [value]
            pairs = [[option] if parameter.is_flag else [option, str(part)] for part in values]  # type: ignore[union-attr]
            words += [word for pair in pairs for word in pair]
    return words


def is_from_command_line(context: click.Context, name: str) -> bool:
    """Return whether a parameter was given on the command line."""
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def has_runs(path: Path) -> bool:
    """Return whether a path is a run folder, or a folder of run folders or of their folders."""
    from karat.results.run_folders import find_run_folders

    return path.is_dir() and any(find_run_folders(path, levels=(0, 1, 2)))


def _is_read(path: Path) -> bool:
    """Return whether a folder has runs, or result files of MTEB, which are read as they are."""
    from karat.results.run_folders import find_run_folders

    if not path.is_dir():
        return False
    if any(find_run_folders(path, levels=(0, 1))):
        return True
    return "is_results_folder" in interchange and interchange.get("is_results_folder")(path)


def split_names(texts: Sequence[str]) -> list[str]:
    """Return the names in texts; commas separate them, also inside an option.

    >>> split_names(["f1,acc", "fbeta_score(beta=2, average='macro')"])
    ['f1', 'acc', "fbeta_score(beta=2, average='macro')"]
    """
    parts = [part.strip() for text in texts for part in re.split(r",(?![^(]*\))", text)]
    return [part for part in parts if part]


define_option = repeatable(
    "--define FILE",
    "YAML definitions (a file or a folder), or a Python file that registers components. "
    "Repeatable.",
    type=PATH,
)
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
    click.option(
        "--unanswered",
        type=click.Choice(["refuse", "drop"]),
        help="What to do with rows whose target is missing.  [default: refuse]",
    ),
    click.option(
        "--missing", multiple=True, metavar="TEXT", help="Cell that is a missing value. Repeatable."
    ),
    click.option(
        "--numbers",
        multiple=True,
        metavar="COLUMN",
        help="Column of numbers, also with leading zeros. Repeatable.  [default: inferred]",
    ),
    click.option(
        "--texts",
        multiple=True,
        metavar="COLUMN",
        help="Column of text or labels as they are written. Repeatable.  [default: inferred]",
    ),
    click.option(
        "--keep",
        multiple=True,
        metavar="COLUMN",
        help="Column that is a feature although it has another value in each row. Repeatable.",
    ),
)


def pop_table_settings(words: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of a table file and return them as the keys of a dataset.

    >>> pop_table_settings({"kind": None, "drop": ("id",), "dates": ("day",), "seed": 42})
    {'drop': ['id'], 'options': {'dates': {'day': None}}}
    """
    keys = {name: words.pop(name, None) for name in TABLE_KEYS}
    reading = {name: words.pop(name, None) for name in TABLE_READING}
    reading |= {name: list(words.pop(name, None) or ()) for name in TABLE_LISTS}
    reading["dates"] = dict(_date_format(text) for text in reading["dates"] or ())
    settings = {name: value for name, value in keys.items() if value not in (None, ())}
    if "drop" in settings:
        settings["drop"] = list(settings["drop"])
    options = {name: value for name, value in reading.items() if value}
    return {**settings, **({"options": options} if options else {})}


def _date_format(text: str) -> tuple[str, str | None]:
    column, _, form = text.partition("=")
    return column, form or None


suite_options = combine_options(
    repeatable(
        "-m, --model MODEL",
        "A model name, a vector file, an endpoint as URL#MODEL, or package.module:Name. "
        "Repeatable. Default: the models of the suite.",
        dest="models",
    ),
    option(
        "-c, --constraint NAME", "Resource limits, see karat list constraints.", default="default"
    ),
    repeatable(
        "-t, --task TASK",
        "Run only these tasks of the suite; * matches any text. Repeatable.",
        dest="only",
    ),
    repeatable(
        "-X KEY=VALUE",
        "Override f.PARAM of the models, t.KEY of the tasks, or an option such as seed. "
        "Repeatable.",
        dest="overrides",
    ),
    option("--folds N", "Number of folds.  [default: that of the task]", type=int),
    repeatable("--only-fold N", "Run only this fold, counted from 0. Repeatable.", type=int),
    repeatable(
        "--metric NAME,...",
        "Metrics instead of those of the tasks; the first one ranks. Repeatable.",
        dest="metrics",
    ),
    option("--seed", "Random seed; models get seed + fold.", default=42),
    option("--max-rows N", "Maximum number of rows per dataset.", type=int),
    option(
        "--dimensions N,...",
        "Also evaluate each encoder with the first N dimensions of its vectors, such as 64,128.",
    ),
    option(
        "--precision NAME,...",
        "Also evaluate each encoder, and each of --dimensions, with vectors of this precision: "
        "float32, float16, int8 or binary.",
    ),
    option(
        "--rescore N",
        "Retrieval with --precision binary ranks the first N documents again, by the 32-bit "
        "vector of the query.",
        type=int,
    ),
    option(
        "--passages WORDS",
        "Split documents into passages of this many words, if SUITE is the folder of a corpus.",
        type=int,
    ),
    option("--data-dir DIR", "Folder to search for data files before KARAT_DATA.", type=PATH),
    option("--target COLUMN", "Target column, if SUITE is a table file."),
    option(
        "--like TASK",
        "With --target: use the settings of this task or pattern; taco adds corruptions.",
    ),
    table_options,
    define_option,
)
run_options = combine_options(
    click.argument("suite"),
    suite_options,
    option(
        "--seeds N",
        "Fit models that use a seed N times on each fold, with other seeds; the mean counts.",
        type=int,
        default=1,
    ),
)
session_options = combine_options(
    option(
        "-w, -p, --workers, --parallel N",
        "Number of worker processes; 0: run in this process.  [default: number of cores]",
        dest="workers",
        type=int,
    ),
    option(
        "--engine",
        "Run jobs in local processes or on a Dask cluster.",
        type=click.Choice(["local", "dask"]),
        default="local",
    ),
    option(
        "--scheduler ADDRESS",
        "With --engine dask: tcp://HOST:PORT or a scheduler file. Default: start a local cluster.",
    ),
    option("-o, --output DIR", "Where to write run folders.", default="results"),
    option("--no-cache", "Do not read or write the vector cache.", is_flag=True),
    option("--no-items", "Do not copy texts or cells of the data into run folders.", is_flag=True),
)
format_option = option(
    "--format", "Output format.  [default: table]", dest="shape", type=click.Choice(FORMATS)
)
pool_option = option(
    "--pool",
    "Which runs are one model: variant (those of one name with the same constraint, version and "
    "parameters), model (all of one name), none (each run folder).",
    type=click.Choice(["variant", "model", "none"]),
    default="variant",
)
cluster_option = option(
    "--cluster COLUMN",
    "Column kept with the items, such as an author: items with the same value belong together, and "
    "tests on items treat them as one. near-duplicates: texts with the same letters.  "
    "[default: the groups of the data]",
)
margin_option = option(
    "--margin SIZE",
    "Largest acceptable loss, on the scale of the metric; of rmse and other metrics without an "
    "upper bound, as a share.",
    type=float,
    default=0.01,
)
ignore_option = repeatable(
    "--ignore CODE",
    "Checks to ignore: KRT102, or KRT1 for every check whose code starts so. Repeatable.",
)
