"""The command line: parse, call the API, print. No logic of its own."""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from karat import __version__
from karat.errors import DefinitionError, KaratError

DEFINED = ("models", "tasks", "suites", "datasets", "constraints")
PARTS = ("metrics", "corruptions", "heads", "splitters", "composers", "probes", "readers")


def main() -> None:
    """Run the command line; a mistake is one message on standard error and exit code 2."""
    _prepare()
    try:
        sys.exit(karat.main(prog_name="karat", standalone_mode=False) or 0)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("stopped.", err=True)
        sys.stdout.flush()
        # an import that was interrupted may leave Python a signal to die of, whatever we return
        os._exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except DefinitionError as error:
        _complain(error.messages)
        if len(error.messages) > 1:
            click.echo(f"{len(error.messages)} mistakes, nothing was run.", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # the reader of our output has gone: say no more, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (KaratError, OSError) as error:
        _complain([str(error)])
        sys.exit(2)


def _prepare() -> None:
    if os.getcwd() not in sys.path:
        # "my_module:MyEncoder" of the current folder can be found, and hides nothing installed
        sys.path.append(os.getcwd())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no "✗" shows "?"
    # who ends us politely gets what Ctrl-C gets: the finished jobs are kept
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def _complain(messages: Sequence[str]) -> None:
    for message in messages:
        click.echo(click.style("error: ", fg="red", bold=True) + message, err=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="karat", message="%(prog)s %(version)s")
def karat() -> None:
    """Tell what an encoder or a predictor is worth.

    \b
    karat run quickstart                      several models on real data, a board in a minute
    karat run quickstart -m onehot -m my_module:MyEncoder
    karat list models                         what there is
    karat check my_module:MyEncoder           is this a model Karat can evaluate?
    karat leaderboard results                 what all runs below a folder are worth together
    """


def _options(*options: Any) -> Any:
    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


_define = click.option(
    "--define",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="YAML with definitions of your own (or a folder of it), or Python that registers parts. "
    "Repeatable.",
)
_what_to_run = _options(
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
    _define,
)
_machine = _options(
    click.option("--csv", "shape", flag_value="csv", help="Print the board as CSV."),
    click.option("--json", "shape", flag_value="json", help="Print the board as JSON."),
)


@karat.command()
@_what_to_run
@click.option("-w", "--workers", type=int, metavar="N", help="Worker processes.  [default: cores]")
@click.option(
    "-o",
    "--output",
    default="results",
    show_default=True,
    metavar="DIR",
    help="Where the run folders go.",
)
@click.option("--no-cache", is_flag=True, help="Neither use nor keep vectors of other runs.")
@click.option(
    "--resume",
    is_flag=True,
    help="Complete unfinished runs of the same models and suite found in DIR.",
)
@click.option("--retry-failed", is_flag=True, help="With --resume: run failed jobs again.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, only the board.")
@click.option("-v", "--verbose", is_flag=True, help="A line for every job.")
@_machine
@click.pass_context
def run(context: click.Context, /, suite: str, **given: Any) -> int:
    """Run models on the tasks of SUITE, write a run folder for each, and print the board.

    \b
    Examples:
      karat run quickstart
      karat run quickstart -m onehot -m skrub -t penguins -t adult
      karat run my-suite --define my.yaml -m vectors.txt --workers 2

    Exit code: 0 all went well, 1 some jobs failed, 2 a mistake in what was asked, 130 stopped.
    """
    from karat.evaluate import plan_suite, run_suite
    from karat.execute import cores
    from karat.progress import choose
    from karat.report.runs import show_runs
    from karat.session import Stopped

    shape, quiet = given.pop("shape"), given.pop("quiet")
    progress = choose(quiet, given.pop("verbose"))
    given["cache"] = not given.pop("no_cache")
    given["workers"] = cores() if given["workers"] is None else given["workers"]
    models, chosen, catalogue, options = _asked(suite, given)
    try:
        plan = plan_suite(models, chosen, catalogue, options)
        runs = run_suite(plan, chosen, options, progress)
    except Stopped as stopped:
        again = shlex.join(["karat", *(a for a in sys.argv[1:] if a != "--resume"), "--resume"])
        click.echo(f"stopped: {stopped.kept}; {again} finishes the rest.", err=True)
        context.exit(130)
    return show_runs(runs, shape, quiet=quiet)


@karat.command()
@_what_to_run
def plan(suite: str, **given: Any) -> None:
    """Show what karat run would do: jobs by model and task, and who declines what and why.

    \b
    Example:
      karat plan quickstart -m onehot -m tfidf
    """
    from karat.evaluate import plan_suite
    from karat.report.runs import show_plan

    models, chosen, catalogue, options = _asked(suite, given)
    show_plan(plan_suite(models, chosen, catalogue, options))


def _asked(suite: str, given: dict[str, Any]) -> Any:
    from karat.catalogue import Catalogue
    from karat.evaluate import find_both, make_options

    catalogue = Catalogue(given.pop("define"))
    models, chosen = find_both(catalogue, list(given.pop("models")) or None, suite)
    given["folds"] = list(given["folds"]) or None
    return models, chosen, catalogue, make_options(given)


@karat.command("list")
@click.argument("kind", required=False, type=click.Choice([*DEFINED, *PARTS]), metavar="[KIND]")
@_define
def list_(kind: str | None, define: tuple[Path, ...]) -> None:
    """List models, tasks, suites, datasets, constraints, metrics, corruptions, or other parts.

    \b
    Examples:
      karat list                 what kinds there are, and how many of each
      karat list models
    """
    from karat.report.names import list_kind, list_kinds

    list_kind(kind, define) if kind else list_kinds([*DEFINED, *PARTS], define)


@karat.command()
@click.argument("name")
@_define
def show(name: str, define: tuple[Path, ...]) -> None:
    """Show the resolved definition of NAME, and which file each value came from.

    \b
    Example:
      karat show penguins
    """
    from karat.report.names import show_name

    show_name(name, define)


@karat.command()
@click.argument("model")
@_define
def check(model: str, define: tuple[Path, ...]) -> int:
    """Tell whether MODEL is one Karat can evaluate, which promise it breaks, and how to mend it.

    \b
    Examples:
      karat check onehot
      karat check my_module:MyEncoder
      karat check vectors.txt
    """
    from karat.catalogue import Catalogue
    from karat.checks import check_model
    from karat.report.names import show_checks

    return show_checks(check_model(Catalogue(define).model(model)), model)


@karat.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@_machine
def leaderboard(runs: tuple[Path, ...], shape: str | None) -> None:
    """Rank the models of run folders; a folder of run folders stands for all of them.

    \b
    Examples:
      karat leaderboard results
      karat leaderboard results/onehot.* results/skrub.* --csv
    """
    from karat.report.runs import show_board

    show_board(list(runs), shape)


@karat.command()
@click.option("--clear", is_flag=True, help="Remove all vectors that are kept.")
def cache(clear: bool) -> None:
    """Show the vectors that are kept between runs, or remove them.

    \b
    Examples:
      karat cache
      karat cache --clear
    """
    from karat.report.names import show_cache

    show_cache(clear)
