"""The command line: parse, call the API, print. No logic of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from karat import __version__
from karat.errors import DefinitionError, KaratError

KINDS = ("models", "tasks", "suites", "datasets", "metrics", "corruptions", "constraints")
PARTS = ("heads", "splitters", "composers", "probes", "readers")


def main() -> None:
    """Run the command line; a mistake is one message on standard error and exit code 2."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # "my_module:MyEncoder" of the current folder can be found
    try:
        sys.exit(karat.main(prog_name="karat", standalone_mode=False) or 0)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except DefinitionError as error:
        _complain(error.messages)
        if len(error.messages) > 1:
            click.echo(f"{len(error.messages)} mistakes, nothing was run.", err=True)
        sys.exit(2)
    except KaratError as error:
        _complain([str(error)])
        sys.exit(2)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the reader has gone; say no more
        sys.exit(1)


def _complain(messages: Any) -> None:
    for message in messages:
        click.echo(click.style("error: ", fg="red", bold=True) + message, err=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="karat", message="%(prog)s %(version)s")
def karat() -> None:
    """Tell what an encoder or a predictor is worth.

    \b
    karat run quickstart                     several models on real data, a board in a minute
    karat run quickstart -m my_module:MyEncoder -m onehot
    karat list models                        what there is
    karat leaderboard results                what earlier runs are worth together
    """


_define = click.option(
    "--define",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A YAML file, or a folder of them, with definitions of your own. Repeatable.",
)


def _run_options(command: Any) -> Any:
    options = [
        click.argument("suite"),
        click.option("-m", "--model", "models", multiple=True, metavar="MODEL",
                     help="A name, a vector file, or package.module:Name. Repeatable; without it "
                     "the suite's own models."),
        click.option("-c", "--constraint", default="default", show_default=True,
                     help="Limits of the run: karat list constraints."),
        click.option("-t", "--task", "only", multiple=True, metavar="TASK",
                     help="Only these tasks of the suite; * stands for anything. Repeatable."),
        click.option("-f", "--fold", "folds", multiple=True, type=int, metavar="N",
                     help="Only these folds, counted from 0. Repeatable."),
        click.option("--seed", default=42, show_default=True, help="Models get seed + fold."),
        click.option("--max-rows", type=int, metavar="N", help="At most so many rows a data set."),
        _define,
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@karat.command()
@_run_options
@click.option("-w", "--workers", type=int, metavar="N", help="Worker processes.  [default: cores]")
@click.option("-o", "--output", default="results", show_default=True, metavar="DIR",
              help="Where the run folders go.")  # fmt: skip
@click.option("--no-cache", is_flag=True, help="Neither use nor keep vectors of earlier runs.")
@click.option("--resume", is_flag=True,
              help="Complete unfinished runs of the same models and suite found in DIR.")  # fmt: skip
@click.option("--retry-failed", is_flag=True, help="With --resume: run failed jobs again.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, only the board.")
@click.option("-v", "--verbose", is_flag=True, help="A line for every job.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the board as CSV.")
@click.option("--json", "as_json", is_flag=True, help="Print the board as JSON.")
@click.pass_context
def run(context: click.Context, suite: str, models: tuple[str, ...], **given: Any) -> int:
    """Run models on the tasks of SUITE, write a run folder for each, and print the board.

    \b
    Examples:
      karat run quickstart
      karat run quickstart -m onehot -m skrub -t "penguins" -t "adult"
      karat run my-suite --define my.yaml -m vectors.txt --workers 2

    Exit code: 0 all went well, 1 some jobs failed, 2 a mistake in what was asked.
    """
    from karat.evaluate import Stopped, cores, find_suite, make_options, run_suite
    from karat.progress import choose

    shape = "json" if given.pop("as_json") else "csv" if given.pop("as_csv") else "board"
    given.pop("as_csv", None)
    progress = choose(given.pop("quiet"), given.pop("verbose"))
    catalogue, chosen = _catalogue_and_suite(given.pop("define"), suite)
    given["cache"] = not given.pop("no_cache")
    given["folds"] = list(given["folds"]) or None
    given["workers"] = cores() if given["workers"] is None else given["workers"]
    wanted = list(models) or list(chosen.models)
    options = make_options(given)
    found = _together(lambda: catalogue.models(wanted), lambda: find_suite(catalogue, chosen))
    try:
        runs = run_suite(found, chosen, catalogue, options, progress)
    except Stopped as stopped:
        again = " ".join(["karat", *sys.argv[1:], *([] if options.resume else ["--resume"])])
        click.echo(f"\n{stopped} {again} finishes the rest.", err=True)
        context.exit(130)
    return _show_runs(runs, shape)


def _catalogue_and_suite(define: Any, suite: str) -> Any:
    from karat.catalogue import Catalogue

    catalogue = Catalogue(define)
    return catalogue, suite


@karat.command("list")
@click.argument("kind", required=False, type=click.Choice([*KINDS, *PARTS]))
@_define
def list_(kind: str | None, define: tuple[Path, ...]) -> None:
    """List what there is: models, tasks, suites, datasets, metrics, corruptions, constraints.

    \b
    Examples:
      karat list                 a count of everything
      karat list models
    """
    from karat.report.catalogue import list_kind, list_kinds

    list_kind(kind, define) if kind else list_kinds([*KINDS, *PARTS], define)


@karat.command()
@click.argument("name")
@_define
def show(name: str, define: tuple[Path, ...]) -> None:
    """Show the resolved definition of NAME, and which file each value came from.

    \b
    Example:
      karat show penguins
    """
    from karat.report.catalogue import show_name

    show_name(name, define)
