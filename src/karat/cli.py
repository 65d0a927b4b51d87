"""The command line: parse, call the API, print. No logic of its own."""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from karat import __version__
from karat.cli_board import leaderboard, robustness
from karat.cli_checks import checks
from karat.cli_compare import compare
from karat.cli_geval import geval
from karat.cli_options import SETTINGS, define, engine, going, ignore, machine, what_to_run
from karat.cli_plot import plot
from karat.cli_report import export, report
from karat.cli_results import import_, rescore, status
from karat.cli_serve import serve
from karat.errors import DefinitionError, KaratError

DEFINED = ("models", "tasks", "suites", "datasets", "constraints")
PARTS = (
    *("metrics", "corruptions", "heads", "splitters", "composers", "probes", "readers", "askers"),
)


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
    # what is worth knowing is a line, without the place in our code
    warnings.formatwarning = lambda message, *_, **__: f"note: {message}\n"
    # who ends us politely gets what Ctrl-C gets: the finished jobs are kept
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def _complain(messages: Sequence[str]) -> None:
    for message in messages:
        click.echo(click.style("error: ", fg="red", bold=True) + message, err=True)


@click.group(
    commands=[
        *(leaderboard, compare, checks, robustness, report, plot, serve, export),
        *(import_, rescore, status, geval),
    ],
    context_settings=SETTINGS,
)
@click.version_option(__version__, prog_name="karat", message="%(prog)s %(version)s")
def karat() -> None:
    """Tell what an encoder or a predictor is worth.

    \b
    karat run quickstart                      several models on real data, a board in a minute
    karat run quickstart -m onehot -m my_module:MyEncoder
    karat list models                         what there is
    karat check my_module:MyEncoder           is this a model Karat can evaluate?
    karat leaderboard results                 what all runs below a folder are worth together
    karat compare skrub onehot                is the difference real?
    karat compare results/RUN                 how a run stands beside the earlier ones
    karat checks results                      what makes these scores mislead
    karat robustness results                  what corruption costs them
    karat report results                      one HTML file to show
    karat plot cd results -o cd.pdf           a picture for a paper
    karat serve results                       the same page live, with a JSON API
    karat export results --as taco            the files of another benchmark
    karat import results.csv -o results       the results of another benchmark as run folders
    karat status results                      what is done, failed, running and left
    karat rescore results                     every score again, from the predictions
    karat geval --vector_file vectors.txt     node embeddings on GEval's six tasks, in its files
    """


@karat.command()
@what_to_run
@engine
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
@going
@click.option("-q", "--quiet", is_flag=True, help="No progress, only the board.")
@click.option("-v", "--verbose", is_flag=True, help="A line for every job.")
@ignore
@machine
@click.pass_context
def run(context: click.Context, /, suite: str, **given: Any) -> int:
    """Run models on the tasks of SUITE, write a run folder for each, and print the board.

    \b
    Examples:
      karat run quickstart
      karat run quickstart -m onehot -m skrub -t penguins -t adult
      karat run my-suite --define my.yaml -m vectors.txt --workers 2
      karat run churn.csv --target churn --like taco -m rf -m logreg

    Exit code: 0 all went well, 1 some jobs failed, 2 a mistake in what was asked, 130 stopped.
    """
    from karat.evaluate import plan_suite, run_suite
    from karat.execute import cores
    from karat.progress import choose
    from karat.report.progressed import show_left
    from karat.report.runs import show_runs
    from karat.session import Stopped

    if given["retry_failed"] and not given["resume"]:
        raise DefinitionError("--retry-failed goes with --resume.")
    shape, quiet, silent = (given.pop(name) for name in ("shape", "quiet", "ignore"))
    progress = choose(quiet, given.pop("verbose"))
    given["cache"] = not given.pop("no_cache")
    given["workers"] = cores() if given["workers"] is None else given["workers"]
    models, chosen, catalogue, options = _asked(suite, given)
    again = shlex.join(["karat", *(a for a in sys.argv[1:] if a != "--resume"), "--resume"])
    try:
        plan = plan_suite(models, chosen, catalogue, options)
        runs = run_suite(plan, chosen, options, progress)
    except Stopped as stopped:
        click.echo(f"{stopped.why}: {stopped.kept}; {again} finishes the rest.", err=True)
        context.exit(130)
    code = show_runs(runs, shape, quiet=quiet, ignore=silent)
    if options.exit_on_error:
        show_left(runs, again)
    return code


@karat.command()
@what_to_run
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
    from karat.overrides import change_models, change_tasks, parse

    catalogue = Catalogue(given.pop("define"))
    _look_in(given.pop("data_dir"))
    target, like = given.pop("target"), given.pop("like")
    if like is not None and target is None:
        raise DefinitionError("--like needs --target: it tells how a table of your own is asked.")
    if Path(suite).suffix in (".yaml", ".yml") and Path(suite).is_file():
        raise DefinitionError(f"{suite} holds definitions: karat run SUITE --define {suite}.")
    if target is None and Path(suite).suffix and Path(suite).is_file():
        raise DefinitionError(f"{suite} is a file: say with --target which column to answer.")
    asked = suite if target is None else catalogue.table_suite(suite, target, like)
    said = parse(given.pop("overrides"))
    names = {"only": given["only"], "constraint": given["constraint"]}
    models, chosen = find_both(catalogue, list(given.pop("models")) or None, asked, **names)
    models, chosen = change_models(models, said.models), change_tasks(chosen, said.tasks)
    options = {**given, "folds": list(given["folds"]) or None, **said.options}
    return models, chosen, catalogue, make_options(options)


def _look_in(folder: Path | None) -> None:
    if folder is None:
        return
    if not folder.is_dir():
        raise DefinitionError(f"--data-dir: there is no folder {folder}.")
    given = os.environ.get("KARAT_DATA")
    os.environ["KARAT_DATA"] = os.pathsep.join(
        [str(folder.absolute()), *([given] if given else [])]
    )


@karat.command("list")
@click.argument("kind", required=False, type=click.Choice([*DEFINED, *PARTS]), metavar="[KIND]")
@define
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
@click.option(
    "-c", "--constraint", metavar="NAME", help="Also the limits of a task under this constraint."
)
@define
def show(name: str, constraint: str | None, define: tuple[Path, ...]) -> None:
    """Show the resolved definition of NAME, and which file each value came from.

    \b
    Examples:
      karat show penguins
      karat show penguins -c 1h8c
    """
    from karat.report.names import show_name

    show_name(name, define, constraint)


@karat.command()
@click.argument("model")
@define
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
