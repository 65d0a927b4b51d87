"""The command line: parses options, calls the API and prints the result."""

from __future__ import annotations

import atexit
import gc
import io
import logging
import os
import re
import shlex
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat import __version__
from karat.cli.extension_commands import AllCommands
from karat.cli.mistakes import usage_message
from karat.cli.options import (
    PATH,
    SETTINGS,
    define_option,
    format_option,
    given_words,
    has_runs,
    ignore_option,
    is_from_command_line,
    option,
    pop_table_settings,
    print_error,
    repeatable,
    run_options,
    session_options,
    split_names,
    table_options,
)
from karat.cli.results import (
    check,
    compare,
    leaderboard,
    lint,
    report,
    rescore,
    robustness,
    status,
)
from karat.core.exits import exit_refused
from karat.core.registry import plan_notes, trackers
from karat.errors import DefinitionError, KaratError, KaratWarning

if TYPE_CHECKING:
    from karat.config.catalog import Catalog
    from karat.results.run import Run

#: options of karat run that differ between its shards, or change only what is printed
NOT_REPEATED = (
    "shard",
    "output",
    "resume",
    "retry_failed",
    "quiet",
    "verbose",
    "shape",
    "ignore",
)
#: the folder of Karat
PACKAGE = Path(__file__).parents[1]
#: variables that keep libraries from printing, unless they are set
QUIET_LIBRARIES = {"HF_HUB_VERBOSITY": "error", "TRANSFORMERS_VERBOSITY": "error"}


DEFINED = ("models", "tasks", "suites", "datasets", "constraints")
COMPONENTS = (
    "metrics",
    "corruptions",
    "heads",
    "splitters",
    "composers",
    "probes",
    "readers",
    "query_generators",
    "vector_formats",
    "measures",
    "analogy_functions",
)
#: what ends the process if the standard output is closed
ENDING_MODULES = ("click.core", "rich.console")
logger = logging.getLogger("karat")


def main() -> None:
    """Run the command line; errors are messages on standard error with exit code 2."""
    try:
        _prepare()
        sys.exit(_run_command())
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("stopped.", err=True)
        sys.stdout.flush()
        # an interrupted import can leave a pending signal that would change the exit code
        os._exit(130)
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # click 8.2 and later
            error.show()
        else:
            print_error(usage_message(error))
        sys.exit(2)
    except DefinitionError as error:
        for message in error.messages:
            print_error(message)
        if len(error.messages) > 1:
            click.echo(f"{len(error.messages)} errors, nothing was run.", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # standard output was closed; avoid another error when Python flushes it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (KaratError, OSError) as error:
        print_error(_explained(error))
        sys.exit(2)


def _explained(error: KaratError | OSError) -> str:
    """Return the message of an error; a full disk is told as everywhere."""
    if isinstance(error, OSError):
        from karat.core.writing import full_disk_explained

        try:
            with full_disk_explained(Path("the output")):
                raise error
        except (KaratError, OSError) as told:
            return str(told)
    return str(error)


def _run_command() -> int:
    """Run the command and return its exit code; it does not end by code of the user's."""
    with exit_refused():
        try:
            return karat.main(prog_name="karat", standalone_mode=False) or 0
        except SystemExit as error:
            *_, (frame, _) = traceback.walk_tb(error.__traceback__)
            if frame.f_globals["__name__"] in ENDING_MODULES:
                raise BrokenPipeError from error
            raise


def _prepare() -> None:
    # the memory is freed at once, without a search for cycles: a tenth of karat leaderboard
    atexit.register(gc.freeze)
    try:
        folder = os.getcwd()
    except FileNotFoundError as error:
        raise KaratError("the current folder no longer exists; change to another one.") from error
    if folder not in sys.path:
        # appended, so that "my_module:MyEncoder" is found but never hides an installed module
        sys.path.append(folder)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    printed: set[str] = set()

    def note(
        message: Warning | str, category: type[Warning], filename: str, *_: Any, **__: Any
    ) -> str:
        """Return the line of a note, once: several parts of a command may read the same run."""
        if is_of_library(category, filename):
            logger.info("%s: %s", category.__name__, message)
            return ""
        line = f"note: {message}\n"
        if line in printed:
            return ""
        printed.add(line)
        return line

    warnings.formatwarning = note
    for name in QUIET_LIBRARIES:
        os.environ.setdefault(name, QUIET_LIBRARIES[name])
    if not sys.stderr.isatty():  # a bar would be a line per step
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    # SIGTERM stops a run as Ctrl-C does: finished jobs are saved
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def is_of_library(category: type[Warning], file: str) -> bool:
    """Return whether a warning is that of a library, for its callers, and not of Karat or a user.

    >>> is_of_library(UserWarning, "my_encoder.py"), is_of_library(FutureWarning, "my_encoder.py")
    (False, True)
    """
    if issubclass(category, KaratWarning):
        return False
    if category is not UserWarning:  # pandas and others name the line of their caller
        return True
    path = Path(file)
    if path.is_relative_to(PACKAGE):
        return False
    installed = {"site-packages", "dist-packages"} & {*path.parts}
    return bool(installed) or path.is_relative_to(Path(os.__file__).parent)


def _configure_logging(verbose: int, log_file: Path | None) -> None:
    """Send messages of the karat logger to standard error and to a file."""
    for handler in [*logger.handlers]:
        logger.removeHandler(handler)
        handler.close()
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    logger.setLevel(min(level, logging.INFO) if log_file else level)
    # without --verbose, failures are reported by the progress display and the tables
    stderr = logging.StreamHandler() if verbose else logging.NullHandler()
    stderr.setLevel(level)
    stderr.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger.addHandler(stderr)
    if not verbose and not logging.root.handlers:
        logging.root.addHandler(logging.NullHandler())  # else Python prints those of libraries
    if log_file:
        file = logging.FileHandler(log_file, encoding="utf-8")
        file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(file)
    # a password in the URL of an endpoint is refused later, and does not belong into a log
    secret = r"(?<=://)[^/@\s]+(?=@)|(?<=\?)[^\s#']+"
    called = re.sub(secret, "***", shlex.join(sys.argv[1:]))
    logger.info("karat %s: %s", __version__, called)


@click.group(
    cls=AllCommands,
    commands=[
        check,
        compare,
        leaderboard,
        lint,
        report,
        rescore,
        robustness,
        status,
    ],
    epilog="Start with: karat run quickstart (options: karat COMMAND --help).",
    context_settings=SETTINGS,
)
@option(
    "-v, --verbose",
    "Log more: -v for INFO, -vv for DEBUG messages.",
    count=True,
    show_default=False,
)
@option("--log-file FILE", "Append log messages to this file.", type=PATH)
@click.version_option(__version__, prog_name="karat", message="%(prog)s %(version)s")
def karat(verbose: int, log_file: Path | None) -> None:
    """Evaluate encoders and predictors."""
    from karat.data.download_display import shown_downloads

    _configure_logging(verbose, log_file)
    click.get_current_context().with_resource(shown_downloads())


@karat.command()
@run_options
@session_options
@option(
    "--budget PRICE",
    "Most that this command may spend on endpoints, in dollars; jobs beyond are not run.",
    type=click.FloatRange(min=0),
)
@option(
    "--shard I/N",
    "Run the I-th of N parts of the plan; auto: from the variables of Slurm, Kubernetes, AWS Batch "
    "or GitLab. karat gather merges the parts.",
)
@option("--resume", "Complete unfinished runs of the same models and suite in DIR.", is_flag=True)
@option("--retry-failed", "As --resume, and rerun failed jobs.", is_flag=True)
@option(
    "-e/-k, --exit-on-error/--keep-going",
    "Stop at the first failed job, or continue.  [default: keep going]",
    dest="exit_on_error",
    default=False,
    show_default=False,
)
@repeatable(
    "--inference ROWS",
    "Also measure prediction time for batches of this size. Repeatable.",
    type=int,
)
@option(
    "--track",
    "Send the finished runs to this experiment tracker.",
    type=click.Choice(["mlflow", "wandb", "trackio"]),
)
@option("-q, --quiet", "Print only the leaderboard.", is_flag=True)
@option("-v, --verbose", "Print one line per job.", is_flag=True)
@ignore_option
@format_option
@click.pass_context
def run(context: click.Context, /, suite: str, **options_given: Any) -> int:
    """Run models on the tasks of SUITE.

    Writes one run folder per model and prints the leaderboard.

    \b
    Examples:
      karat run quickstart
      karat run quickstart -m onehot -m skrub -t penguins -t adult
      karat run my-suite --define my.yaml -m vectors.txt --workers 2
      karat run churn.csv --target churn --like taco -m random-forest -m dummy
      karat run corpus/ -m minilm -m bm25
      karat run quickstart --shard 3/64 -o results
      karat run mteb:STSBenchmark -m minilm

    Exit code: 0 success, 1 some jobs failed or were not run because of the budget or an endpoint,
    or a model given with -m ran on no task, 2 invalid input, 130 interrupted.
    """
    from karat.data.download_display import shown_downloads
    from karat.execution.evaluation import plan_suite, run_suite, without_broken_files
    from karat.execution.progress import choose_progress
    from karat.reporting import terminal

    tracker = _pop_tracker(options_given)
    shape, quiet, ignored = (options_given.pop(name) for name in ("shape", "quiet", "ignore"))
    context.with_resource(shown_downloads(not quiet))
    progress = choose_progress(quiet, options_given.pop("verbose"))
    named = options_given["models"]
    options_given["command"] = given_words(context, NOT_REPEATED)
    models, tasks, catalog, options = resolve_session(suite, options_given)
    resume = resume_command()

    def execute() -> Any:
        plan = plan_suite(models, tasks, catalog, options)
        if not quiet:
            terminal.print_tables(plan, whole=Path(suite).exists())
        return run_suite(without_broken_files(plan), tasks, options, progress)

    runs, note_left = run_until_stopped(context, execute, resume)
    if options.shard is not None:
        terminal.print_gather_hint(runs, options.output)
    if not runs:  # an empty part
        return 0
    code = terminal.show_runs(runs, shape, quiet=quiet, ignore=ignored) | _send(runs, tracker)
    if note_left:
        click.echo(f"\n{note_left}", err=True)
        return 1
    code |= terminal.print_idle_models(runs, named) | any(run.gone for run in runs)
    if options.exit_on_error:
        terminal.print_jobs_left(runs, resume)
    return code


def resume_command() -> str:
    """Return this command with ``--resume``."""
    return shlex.join(["karat", *(a for a in sys.argv[1:] if a != "--resume"), "--resume"])


def _pop_tracker(options: dict[str, Any]) -> str | None:
    """Remove and return the tracker; raise if it cannot be used."""
    tracker: str | None = options.pop("track")
    if tracker is not None:
        trackers.get(tracker).check()
    return tracker


def _send(runs: Sequence[Run], tracker: str | None) -> int:
    """Send runs to a tracker; return 1 if that fails, which does not change the run folders."""
    if tracker is None:
        return 0
    try:
        sent = trackers.get(tracker).send(runs)
    except KaratError as error:
        print_error(f"{error} The runs are stored in {runs[0].folder.parent}.")
        return 1
    click.echo(f"sent to {tracker}: {', '.join(sent)}", err=True)
    return 0


def run_until_stopped(
    context: click.Context, execute: Callable[[], Any], resume: str
) -> tuple[Any, str]:
    """Return the runs and a message about postponed jobs; exit if the run was interrupted."""
    from karat.execution.session import Stopped

    try:
        return execute(), ""
    except Stopped as stopped:
        message = f"{stopped.reason}: {stopped.progress}. To continue: {resume}"
        if stopped.interrupted:
            click.echo(message, err=True)
            context.exit(130)
        return stopped.runs, message


@karat.command()
@run_options
@option(
    "--detect DIFFERENCE",
    "Show how many tasks, folds, items or queries are needed to detect this difference of scores "
    "of two models, and which difference those at hand can detect.",
    type=click.FloatRange(min=0, min_open=True),
)
@option(
    "--format",
    "Output format of --detect; json prints nothing else.",
    dest="shape",
    type=click.Choice(["table", "json"]),
    default="table",
)
@option("--runs DIR", "Folder of earlier runs, for estimates.", type=PATH, default="results")
@click.option("-v", "--verbose", is_flag=True, help="List every job and reason.")
def plan(
    suite: str, detect: float | None, runs: Path, verbose: bool, shape: str, **settings: Any
) -> None:
    """Show what karat run would do, without running it.

    Shows the number of jobs, the estimated time, the jobs by model and task (in a large suite: by
    model), and the tasks that a model does not support.

    \b
    Examples:
      karat plan quickstart -m onehot -m tfidf
      karat plan tabeb --verbose
      karat plan corpus/ -m bm25 --detect 0.05
      karat plan tables --detect 0.01 --runs results --format json
    """
    from karat.execution.evaluation import plan_suite
    from karat.reporting.terminal import print_tables, show_plan

    if shape == "json" and detect is None:
        raise DefinitionError("--format json requires --detect.")
    # models that do not tell what they take are tried in another process
    models, tasks, catalog, options = resolve(suite, {**settings, "workers": 1})
    plan = plan_suite(models, tasks, catalog, options)
    if shape != "json":
        print_tables(plan, whole=Path(suite).exists(), err=False)
        show_plan(plan, runs, verbose=verbose)
    if detect is not None:
        if "detect" not in plan_notes:
            raise DefinitionError("--detect needs the extension decide, which is missing.")
        plan_notes.get("detect")(plan, detect, runs, shape)


@karat.command(hidden=True)
@click.argument("file", type=PATH)
@click.option("--target", metavar="COLUMN", help="Target column.")
@table_options
def inspect(file: Path, target: str | None, **settings: Any) -> None:
    """Show how a table file is read, as karat show FILE.

    \b
    Examples:
      karat inspect churn.csv
    """
    from karat.reporting.terminal import show_table

    show_table(file, target, pop_table_settings(settings))


def resolve_session(suite: str, options: dict[str, Any]) -> Any:
    """Return the models, the tasks, the catalog and the options of jobs to run."""
    from karat.execution.workers import Template, available_cores

    options["cache"], options["items"] = not options.pop("no_cache"), not options.pop("no_items")
    options["workers"] = available_cores() if options["workers"] is None else options["workers"]
    if options["workers"] and sys.platform == "linux" and options["engine"] == "local":
        Template.copy_this_process()  # it loads its libraries while this process plans
    return resolve(suite, options)


def resolve(suite: str, words: dict[str, Any]) -> Any:
    """Return the models, the tasks, the catalog and the options of a run."""
    from karat.config.catalog import Catalog, change_models, change_tasks, parse
    from karat.execution.evaluation import change_metrics, find_models_and_suite, make_options
    from karat.execution.resources import restored_folder
    from karat.execution.resuming import RETRY_FAILED

    if words.pop("retry_failed", False):
        words["resume"] = RETRY_FAILED
    with restored_folder():
        catalog = Catalog(words.pop("define"))
    folder = words.pop("data_dir")
    if folder is not None:
        if not folder.is_dir():
            raise DefinitionError(f"--data-dir: no such folder: {folder}.")
        folders = [str(folder.absolute()), os.environ.get("KARAT_DATA")]
        os.environ["KARAT_DATA"] = os.pathsep.join(filter(None, folders))
    tasks = _find_tasks(catalog, suite, words)
    changes = parse(words.pop("overrides"))
    names = {name: words[name] for name in ("only", "constraint")}
    variants = _pop_variants(words)
    models, tasks = find_models_and_suite(
        catalog, list(words.pop("models")) or None, tasks, variants=variants, **names
    )
    models, tasks = change_models(models, changes.models), change_tasks(tasks, changes.tasks)
    tasks = change_metrics(tasks, split_names(words.pop("metrics")))
    words["only_folds"] = list(words.pop("only_fold")) or None
    options = {**words, **changes.options}
    return models, tasks, catalog, make_options(options)


def _pop_variants(options: dict[str, Any]) -> Any:
    """Remove the options of variants and return the variants of every encoder."""
    from karat.core.embeddings import make_variants

    widths, bits = (
        [part.strip() for part in (options.pop(name) or "").split(",") if part.strip()]
        for name in ("dimensions", "precision")
    )
    rescore = options.pop("rescore")
    numbers = [int(width) if width.isdecimal() else width for width in widths]
    return make_variants(numbers, bits, False if rescore is None else rescore)


def _find_tasks(catalog: Catalog, suite: str, options: dict[str, Any]) -> Any:
    """Return the name of a suite, or the suite of a table file or of a corpus."""
    from karat.execution.evaluation import is_corpus

    target, like, passages = options.pop("target"), options.pop("like"), options.pop("passages")
    settings = pop_table_settings(options)
    if is_corpus(catalog, suite):
        return catalog.corpus_suite(suite, {} if passages is None else {"passages": passages})
    if passages is not None:
        raise DefinitionError("--passages requires the folder of a corpus as SUITE.")
    if target is None and (like is not None or settings):
        names = [*settings, *settings.get("options", ())]
        first = "like" if like is not None else next(name for name in names if name != "options")
        raise DefinitionError(f"--{first} requires --target: it applies to a table file.")
    if Path(suite).suffix in (".yaml", ".yml") and Path(suite).is_file():
        raise DefinitionError(
            f"{suite} is a file of definitions; use karat run SUITE --define {suite}."
        )
    if target is None and Path(suite).suffix and Path(suite).is_file():
        raise DefinitionError(_not_a_suite(suite, options["only"]))
    return suite if target is None else catalog.table_suite(suite, target, like, settings)


def _not_a_suite(file: str, only: Sequence[str]) -> str:
    """Return the message for a file without ``--target`` in the place of a suite."""
    from karat.models.adapters import is_vector_file

    if is_vector_file(file) and not file.lower().endswith((".csv", ".tsv")):
        return (
            f"{file} is not a suite. If it holds vectors: karat run SUITE -m {file}; if it is a "
            f"table, name its target column with --target."
        )
    message = f"{file} is a table file; name its target column with --target"
    return f"{message} {only[0]} (-t chooses tasks)." if only else f"{message}."


@karat.command("list")
@click.argument(
    "kind", required=False, type=click.Choice([*DEFINED, *COMPONENTS]), metavar="[KIND]"
)
@define_option
def list_(kind: str | None, define: tuple[Path, ...]) -> None:
    """List models, tasks, suites, datasets, metrics and more.

    \b
    Examples:
      karat list                 list the kinds and the number of names of each
      karat list models
    """
    from karat.reporting.terminal import list_kind, list_kinds

    list_kind(kind, define) if kind else list_kinds([*DEFINED, *COMPONENTS], define)


@karat.command()
@click.argument("name")
@option("-c, --constraint NAME", "Also show the limits of a task under this constraint.")
@option("--target COLUMN", "Target column, if NAME is a table file.")
@table_options
@define_option
@option("--clear", "With cache: remove all cached vectors.", is_flag=True)
@format_option
@click.pass_context
def show(
    context: click.Context, /, name: str, define: tuple[Path, ...], clear: bool, **options: Any
) -> int | None:
    """Show a definition, a table file, or the progress of runs.

    NAME is that of a definition, a file, a folder of runs, or the word cache, for the cache of
    vectors. Of a table file, lists each column with its type, the number of missing and of distinct
    values and an example, and with --target what would be predicted; its options are those of
    karat run. Of runs, counts the jobs that are done, failed, declined, running and left.

    \b
    Examples:
      karat show penguins
      karat show penguins -c 1h8c
      karat show churn.csv
      karat show verkauf.csv --target umsatz --separator ";" --decimal ,
      karat show results
      karat show cache

    Exit code: 0, 1 if jobs of runs are left, 2 invalid input.
    """
    from karat.reporting import terminal

    constraint, target, shape = (options.pop(key) for key in ("constraint", "target", "shape"))
    what = _kind_of_shown(name)
    _refuse_options_of_others(context, name, what)
    if what == "cache":
        terminal.show_cache(clear)
    elif what == "runs":
        return terminal.show_status([Path(name)], shape)
    elif what == "table":
        terminal.show_table(Path(name), target, pop_table_settings(options))
    else:
        terminal.show_name(name, define, constraint)
    return None


def _kind_of_shown(name: str) -> str:
    """Return what a name is: that of a table file, of runs, of the cache, or of a definition."""
    from karat.reporting.terminal import is_table_file

    if name == "cache":
        return "cache"
    if is_table_file(name):
        return "table"
    return "runs" if has_runs(Path(name)) else "definition"


def _refuse_options_of_others(context: click.Context, name: str, what: str) -> None:
    """Refuse an option that does nothing for what is shown."""
    kinds = {"constraint": "definition", "define": "definition", "clear": "cache", "shape": "runs"}
    words = {"table": "a table file", "runs": "runs", "cache": "the cache", "definition": "a name"}
    for parameter in context.command.params:
        kind = kinds.get(str(parameter.name), "table")
        is_set = parameter.name != "name" and is_from_command_line(context, str(parameter.name))
        if is_set and kind != what:
            option = max(parameter.opts, key=len)
            raise DefinitionError(f"{option} is for {words[kind]}; {name} is not.")


@karat.command(hidden=True)
@option("--clear", "Remove all cached vectors.", is_flag=True)
def cache(clear: bool) -> None:
    """Show or clear the cache of vectors.

    \b
    Examples:
      karat cache
      karat cache --clear
    """
    from karat.reporting.terminal import show_cache

    show_cache(clear)
