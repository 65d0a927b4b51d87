"""The command line: parses options, calls the API and prints the result."""

from __future__ import annotations

import atexit
import gc
import io
import json
import logging
import os
import re
import shlex
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from karat import __version__
from karat.cli.mistakes import Commands, usage_message
from karat.cli.options import (
    PATH,
    SETTINGS,
    define_option,
    format_option,
    given_words,
    ignore_option,
    option,
    pop_table_settings,
    print_error,
    repeatable,
    run_options,
    session_options,
    shard_options,
    split_names,
    suite_options,
    table_options,
)
from karat.cli.results import (
    cheapest,
    compare,
    export,
    gate,
    import_,
    leaderboard,
    lint,
    plot,
    report,
    rescore,
    robustness,
    same,
    shrink,
    site,
    status,
    verify,
)
from karat.core.exits import exit_refused
from karat.errors import DefinitionError, KaratError, KaratWarning

#: options of karat run that differ between its shards, or change only what is printed
NOT_REPEATED = (
    *(
        "shard",
        "claim",
        "lease",
        "estimates",
        "output",
        "resume",
        "retry_failed",
        "quiet",
        "verbose",
    ),
    *("shape", "ignore"),
)
#: what Slurm accepts as time and memory
SLURM_FORMATS = (
    ("time", r"(\d+-)?\d+(:\d+){0,2}|infinite|unlimited", "90 (minutes), 4:00:00 or 2-12:00:00"),
    ("mem", r"\d+[kmgt]?b?", "8G or 500M"),
)
#: the folder of Karat
PACKAGE = Path(__file__).parents[1]
#: variables that keep libraries from printing, unless they are set
QUIET_LIBRARIES = {"HF_HUB_VERBOSITY": "error", "TRANSFORMERS_VERBOSITY": "error"}
#: number of jobs that are listed
MOST_JOBS = 20


@click.command(context_settings=SETTINGS, short_help="Serve the report with a JSON API.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@option("--host", "Address to listen on.", default="127.0.0.1")
@option(
    "--port", "Port to listen on; 0: any free port.", type=click.IntRange(0, 65535), default=8765
)
@option(
    "--token-file FILE",
    "Token required to upload files or start evaluations (or set KARAT_TOKEN). Without one, "
    "both are disabled.",
    type=click.Path(path_type=Path),
)
@repeatable(
    "--allow-host NAME", "Additional host name of this server. Repeatable.", dest="allow_hosts"
)
@option(
    "--max-upload MB", "Maximum size of an upload.", type=click.IntRange(1, 100_000), default=256
)
@option(
    "--queue N", "Maximum number of queued evaluations.", type=click.IntRange(1, 1000), default=8
)
@option(
    "-c, --constraint NAME",
    "Limits of evaluations started over the web (karat list constraints).",
    default="served",
)
@option(
    "-w, --workers N",
    "Number of worker processes of an evaluation.",
    type=click.IntRange(1, 1024),
    default=1,
)
@define_option
@option(
    "--geval-gold DIR",
    "Gold standards of GEval in its layout.  [default: those installed or cached]",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@option("--open", "Open the page in a browser.", dest="show", is_flag=True)
def serve(folder: Path, token_file: Path | None, max_upload: int, show: bool, **given: Any) -> int:
    """Serve the runs in DIR as a live page with a JSON API (http://127.0.0.1:8765/).

    \b
    Examples:
      karat serve results
      karat serve results --port 0 --open
      karat serve results --token-file token.txt --max-upload 100

    Exit code: 0 after SIGTERM, 130 after Ctrl-C (a running evaluation can be resumed later),
    2 after an error, such as a port that is already in use.
    """
    from karat.serve.server import (
        MEGABYTE,
        ServerSettings,
        is_loopback,
        is_readable_by_others,
        read_token,
    )
    from karat.serve.server import serve as run

    token = read_token(token_file)
    settings = ServerSettings(folder, token=token, max_upload=max_upload * MEGABYTE, **given)
    if token_file is not None and is_readable_by_others(token_file):
        click.echo(f"note: other users can read {token_file}; chmod 600 {token_file}", err=True)
    if not is_loopback(settings.host):
        click.echo(
            "note: everyone who reaches this machine can read these runs; see docs/serve.md",
            err=True,
        )

    def ready(address: str) -> None:
        click.echo(f"{folder} at {address}   (API: {address}docs; stop with Ctrl-C)")
        if show:
            click.launch(address)

    return run(settings, ready)


def _switch(name: str, text: str) -> Any:
    """Return an option that is a flag or takes "true" or "false"."""
    return click.option(name, is_flag=False, flag_value="true", metavar="[true|false]", help=text)


@click.command(context_settings=SETTINGS)
@option(
    "--vector_file, --vectors_file, --vector_filename FILE",
    "Vectors to evaluate: a text file with one entity per line, or HDF5.",
    dest="vector_filename",
)
@option(
    "--vector_file_format NAME", "txt, hdf5, npz, etc., or a registered format.  [default: txt]"
)
@option("--vector_size N", "Expected number of dimensions.  [default: as in the file]")
@repeatable(
    "--tasks NAME",
    "Class, Reg, Clu, DocSim, EntRel, SemAn or their long names; TASK:GOLD for one gold "
    "standard; a defined task; or package.module:Class. Separated by commas or repeated.  "
    "[default: _all]",
)
@option(
    "--similarity_metric, --similarity_function NAME",
    "A scikit-learn metric, a registered measure or package.module:function.  [default: cosine]",
)
@option(
    "--top_k N",
    "Analogies: count the answer as correct if it is among the N nearest.  [default: 2]",
)
@option("--analogy_function NAME", "A registered function or package.module:function.")
@repeatable("--compare_with ID", "Earlier run. Repeatable.  [default: _all]")
@_switch("--parallel", "Use several processes.")
@_switch("--debugging_mode", "Print one line per job, also to the log.")
@option("--protocol NAME", "corrected or legacy.  [default: corrected]")
@option("--gold_directory_path DIR", "GEval data in its original layout.")
@option("--result_directory_path DIR", "Output folder.  [default: results]")
@repeatable(
    "--datasets NAME",
    "Gold standards, such as Cities or KORE, separated by commas or repeated.  [default: _all]",
)
@option(
    "--missing_related NAME",
    "Rank related entities without a vector last, tied or in random order.  [default: tied]",
)
@option("--result_name NAME", "Name of the folder of this run.  [default: result_ and the time]")
@option("--workers N", "Number of processes.  [default: all cores with --parallel, or none]")
@option("-c, --constraint NAME", "Limits of every job (karat list constraints).")
@define_option
@option(
    "--parameters FILE",
    "XML file with parameters; options on the command line take precedence.",
    type=click.Path(path_type=Path),
)
def geval(parameters: Path | None, **given: Any) -> int:
    """Evaluate node embeddings on the six GEval tasks.

    Writes the result files of GEval.

    \b
    Examples:
      karat geval --vector_file vectors.txt --vector_size 200 --tasks Class,Reg
      karat geval --vector_file vectors.h5 --vector_file_format hdf5 --parallel
      karat geval --parameters parameters.xml --protocol legacy

    Exit code: 0, 1 if a job failed, 2 after an error or if a gold standard is missing.
    """
    from dataclasses import replace

    from karat.compat.geval.gold import Parameters, from_xml
    from karat.compat.geval.manager import run_geval

    chosen = {name: value for name, value in given.items() if value not in (None, ())}
    for name in {"tasks", "datasets"} & {*chosen}:
        chosen[name] = ",".join(chosen[name])
    if parameters is not None:
        return run_geval(replace(from_xml(parameters), **chosen))
    if "vector_filename" not in chosen:
        raise click.UsageError("missing option --vector_file FILE (or --parameters FILE).")
    return run_geval(Parameters(**chosen))


DEFINED = ("models", "tasks", "suites", "datasets", "constraints")
COMPONENTS = (
    *("metrics", "corruptions", "heads", "splitters", "composers", "probes", "readers"),
    *("query_generators", "vector_formats", "measures", "analogy_functions"),
)
logger = logging.getLogger("karat")


@click.command(context_settings=SETTINGS, short_help="Merge the runs of several machines.")
@click.argument("folders", nargs=-1, required=True, type=PATH, metavar="DIR...")
@option("-o, --output DIR", "Where to write the merged run folders.", type=PATH, required=True)
@option(
    "--format", "Output format.", dest="shape", type=click.Choice(["text", "json"]), default="text"
)
def gather(folders: tuple[Path, ...], output: Path, shape: str) -> int:
    """Merge the runs that karat run --shard or --claim has written into DIR.

    Checks that every planned job is there once, lists what is missing, double or outdated, and
    prints the commands that run what is missing. The tables are those of a run on one machine.

    \b
    Examples:
      karat gather results -o results/gathered
      karat gather node-a/results node-b/results -o results

    Exit code: 0 every job is there, 1 jobs are missing or equal jobs have different scores,
    2 invalid input.
    """
    from karat.execution.gather import gather as merge

    found = merge(list(folders), output)
    if not found.planned:
        raise DefinitionError("nothing to gather: the plan of these runs has no jobs.")
    lists = {name: getattr(found, name) for name in ("missing", "double", "differing", "outdated")}
    if shape == "json":
        facts = {"planned": found.planned, "failed": found.failed, **lists}
        commands = [{"for": text, "command": command} for text, command in found.commands.items()]
        runs = [str(run.folder) for run in found.runs]
        click.echo(json.dumps({**facts, "commands": commands, "runs": runs}, indent=1))
        return 0 if found.is_complete else 1
    done = found.planned - len(found.missing)
    click.echo(f"{done:,} of {found.planned:,} jobs, {found.failed:,} of them failed, in {output}")
    notes = {
        "missing": "missing",
        "double": "were run more than once, with equal scores",
        "differing": "were run more than once, with different scores; the oldest counts",
        "outdated": "are there only for another version of model, data or task",
    }
    for name, jobs in lists.items():
        if jobs:
            click.echo(f"\n{len(jobs):,} {'job' if len(jobs) == 1 else 'jobs'} {notes[name]}:")
            for model, task, fold in jobs[:MOST_JOBS]:
                click.echo(f"  {model}, {task}, fold {fold}")
            if len(jobs) > MOST_JOBS:
                click.echo(f"  … and {len(jobs) - MOST_JOBS:,} more (--format json lists all)")
    for text, command in found.commands.items():
        click.echo(f"\n{text}:\n  {command}")
    return 0 if found.is_complete else 1


@click.command(context_settings=SETTINGS, short_help="Write a job script for Slurm.")
@run_options
@option(
    "--array N",
    "Number of parts, each of them a task of a job array.",
    type=click.IntRange(1),
    required=True,
)
@option("--time TIME", "Time limit of a task, such as 4:00:00.")
@option("--mem SIZE", "Memory of a task, such as 8G.")
@option(
    "-w, --workers N", "Worker processes and cores of a task.", type=click.IntRange(1), default=1
)
@option("-o, --output DIR", "Where to write run folders, on a shared disk.", default="results")
@option("--no-cache", "Do not read or write the vector cache.", is_flag=True)
@option("--no-items", "Do not copy texts or cells of the data into run folders.", is_flag=True)
@shard_options
@repeatable(
    "--sbatch OPTION", "Further option of sbatch, such as --sbatch=--partition=gpu. Repeatable."
)
@click.pass_context
def slurm(context: click.Context, /, suite: str, **given: Any) -> int:
    """Write a job script that runs SUITE as a job array of Slurm.

    The script is printed; the size of the parts, from the times of earlier runs, is printed on
    standard error. Submit it with: bash job.sh. A second job gathers the results when the array has
    ended. A task that is preempted, or that reaches its time limit, is queued again and continues.

    \b
    Examples:
      karat slurm quickstart --array 64 --time 4:00:00 --mem 8G > job.sh
      karat slurm quickstart -m onehot --array 8 --claim results/claims > job.sh
    """
    from karat.cli.app import resolve

    slurm_options = {name: given.pop(name) for name in ("array", "time", "mem", "sbatch")}
    _check_settings(slurm_options)
    own = (*NOT_REPEATED, *slurm_options, "workers")
    words = ["run", *given_words(context, own)[1:]]
    given["cache"], given["items"] = not given.pop("no_cache"), not given.pop("no_items")
    models, tasks, catalog, options = resolve(
        suite, {**given, "shard": f"1/{slurm_options['array']}"}
    )
    from karat.execution.evaluation import plan_suite
    from karat.execution.plan import require_jobs
    from karat.execution.shards import Parts, read_times

    plan = plan_suite(models, tasks, catalog, options)
    require_jobs(plan)
    times = read_times(plan, options.estimates or options.output)
    parts = Parts.of(plan, times, slurm_options["array"])
    _print_parts(parts, bool(times), options.workers)
    click.echo(_script(words, options, slurm_options), nl=False)
    return 0


def _check_settings(given: dict[str, Any]) -> None:
    """Refuse settings that sbatch would refuse when the script is submitted."""
    for name, pattern, example in SLURM_FORMATS:
        if given[name] and not re.fullmatch(pattern, given[name], re.IGNORECASE):
            raise DefinitionError(f'--{name} must be as {example}, got "{given[name]}".')
    for each in given["sbatch"]:
        if "\n" in each or not each.startswith("-"):
            raise DefinitionError(f"--sbatch must be an option of sbatch, got {each!r}.")


def _print_parts(parts: Any, known: bool, workers: int) -> None:
    """Print the number and the size of the parts on standard error."""
    from karat.reporting.formats import duration

    sizes = [len(parts.jobs(part)) for part in range(len(parts.parts))]
    empty = sum(not size for size in sizes)
    text = f"{len(sizes)} parts of {min(sizes):,} to {max(sizes):,} jobs"
    if empty:
        text += f"; {empty} have none, because jobs that share vectors are kept together"
    click.echo(text, err=True)
    if known:
        seconds = [parts.seconds(part) / workers for part in range(len(sizes))]
        click.echo(
            f"estimated from earlier runs: {duration(min(seconds))} to {duration(max(seconds))} "
            f"per part",
            err=True,
        )
    else:
        click.echo("no earlier runs: parts have about the same number of jobs", err=True)


SCRIPT = """#!/bin/bash
# Written by karat slurm. Submit the array, and the job that gathers its results, with: bash {file}
#SBATCH --job-name=karat
#SBATCH --array=1-{array}
{settings}#SBATCH --cpus-per-task={workers}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@60
KARAT=({karat})

if [ -z "${{SLURM_ARRAY_TASK_ID:-}}" ]; then
    array=$(sbatch --parsable "$0") || exit 1
    sbatch --dependency=afterany:"${{array%%;*}}" --job-name=karat-gather {gather}\\
        --wrap {wrap} || exit 1
    echo "array job $array; when it has ended, results are in "{gathered}
    exit
fi

# USR1: a minute before the time limit. TERM: preempted. Finished jobs are kept.
trap 'again=yes; kill -TERM "$karat"' USR1
trap 'kill -TERM "$karat"' TERM
"${{KARAT[@]}}" {command} &
karat=$!
wait "$karat"; code=$?
while kill -0 "$karat" 2>/dev/null; do wait "$karat"; code=$?; done
if [ -n "${{again:-}}" ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt 10 ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"
"""


def _script(words: list[str], options: Any, given: dict[str, Any]) -> str:
    """Return the job script."""
    limits = [f"--{name}={given[name]}" for name in ("time", "mem") if given[name]]
    settings = [*limits, *given["sbatch"]]
    output = str(options.output)
    own = ["-o", output, "-w", str(options.workers)]
    for name in ("claim", "estimates"):
        own += [f"--{name}", str(value)] if (value := getattr(options, name)) is not None else []
    if options.claim is not None:
        own += ["--lease", f"{options.lease:g}"]
    karat = shlex.join([sys.executable, "-m", "karat"])
    gathered = shlex.quote(f"{output}/gathered")
    part = f'--shard "$SLURM_ARRAY_TASK_ID/{given["array"]}" --resume'
    return SCRIPT.format(
        file="job.sh",
        array=given["array"],
        settings="".join(f"#SBATCH {each}\n" for each in settings),
        workers=options.workers,
        karat=karat,
        gather="".join(f"{shlex.quote(each)} " for each in settings),
        wrap=shlex.quote(f"{karat} gather {shlex.quote(output)} -o {gathered}"),
        gathered=gathered,
        command=f"{shlex.join([*words, *own])} {part}",
    )


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
        return karat.main(prog_name="karat", standalone_mode=False) or 0


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
    shown: set[str] = set()

    def note(
        message: Warning | str, category: type[Warning], filename: str, *_: Any, **__: Any
    ) -> str:
        """Return the line of a note, once: several parts of a command may read the same run."""
        if is_of_library(category, filename):
            logger.info("%s: %s", category.__name__, message)
            return ""
        line = f"note: {message}\n"
        if line in shown:
            return ""
        shown.add(line)
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
    cls=Commands,
    commands=[
        *(leaderboard, compare, cheapest, lint, robustness, report, plot, serve, export),
        *(import_, rescore, status, geval, same, gate, shrink, gather, slurm, verify, site),
    ],
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
    """Evaluate encoders and predictors.

    \b
    karat run quickstart                    evaluate several models on real data
    karat run quickstart -m onehot -m my_module:MyEncoder
    karat race SUITE -m A -m B              find the best model with fewer jobs
    karat list models                       list available models
    karat inspect churn.csv                 show how a table file is read
    karat check my_module:MyEncoder         check that a model can be evaluated
    karat leaderboard results               rank the models of all runs
    karat compare results                   test which models differ
    karat cheapest results --cost bytes     find a cheaper model that is as good
    karat same minilm minilm-int8           test whether two encoders are the same
    karat gate NEW --against BASELINE       test that a new model is not worse
    karat shrink SUITE results              choose few tasks that keep the order
    karat lint results                      find problems that distort scores
    karat robustness results                measure the effect of corrupted data
    karat report results                    write one HTML file with all results
    karat site results -o site              write a static site of all results
    karat plot cd results -o cd.pdf         plot a figure for a paper
    karat serve results                     serve the report with a JSON API
    karat export results --as taco          write the files of another benchmark
    karat import results.csv -o results     import results of another benchmark
    karat slurm quickstart --array 64       write a job script for Slurm
    karat gather results -o gathered        merge the runs of several machines
    karat status results                    show the progress of runs
    karat rescore results                   recompute scores from predictions
    karat verify results/NEW                check that results can be trusted
    karat geval --vector_file vectors.txt   run GEval's tasks on node embeddings
    """
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
@shard_options
@option("--resume", "Complete unfinished runs of the same models and suite in DIR.", is_flag=True)
@option("--retry-failed", "With --resume: also rerun failed jobs.", is_flag=True)
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
def run(context: click.Context, /, suite: str, **given: Any) -> int:
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
    from karat.execution.evaluation import plan_suite, run_suite
    from karat.execution.runner import choose_progress
    from karat.reporting import terminal

    tracker = _pop_tracker(given)
    shape, quiet, ignored = (given.pop(name) for name in ("shape", "quiet", "ignore"))
    context.with_resource(shown_downloads(not quiet))
    progress = choose_progress(quiet, given.pop("verbose"))
    named = given["models"]
    given["command"] = given_words(context, NOT_REPEATED)
    models, tasks, catalog, options = _resolve_session(suite, given)
    resume = _resume_command()

    def execute() -> Any:
        plan = plan_suite(models, tasks, catalog, options)
        if not quiet:
            terminal.print_tables(plan, whole=Path(suite).exists())
        return run_suite(plan, tasks, options, progress)

    runs, left = _run_until_stopped(context, execute, resume)
    if options.shard is not None or options.claim is not None:
        terminal.print_gather_hint(runs, options.output)
    if not runs:  # an empty part
        return 0
    code = terminal.show_runs(runs, shape, quiet=quiet, ignore=ignored) | _send(runs, tracker)
    if left:
        click.echo(f"\n{left}", err=True)
        return 1
    code |= terminal.print_idle_models(runs, named) | any(run.gone for run in runs)
    if options.exit_on_error:
        terminal.print_jobs_left(runs, resume)
    return code


def _resume_command() -> str:
    """Return this command with ``--resume``."""
    return shlex.join(["karat", *(a for a in sys.argv[1:] if a != "--resume"), "--resume"])


def _pop_tracker(given: dict[str, Any]) -> str | None:
    """Remove and return the tracker; raise if it, or --retry-failed, cannot be used."""
    if given["retry_failed"] and not given["resume"]:
        raise DefinitionError("--retry-failed requires --resume.")
    tracker: str | None = given.pop("track")
    if tracker is not None:
        from karat.compat.publishing import check_tracker

        check_tracker(tracker)
    return tracker


def _send(runs: Any, tracker: str | None) -> int:
    """Send runs to a tracker; return 1 if that fails, which does not change the run folders."""
    if tracker is None:
        return 0
    from karat.compat.publishing import track

    try:
        sent = track(runs, tracker)
    except KaratError as error:
        print_error(f"{error} The runs are stored in {runs[0].folder.parent}.")
        return 1
    click.echo(f"sent to {tracker}: {', '.join(sent)}", err=True)
    return 0


def _run_until_stopped(context: click.Context, execute: Any, resume: str) -> tuple[Any, str]:
    """Return the runs and a message about postponed jobs; exit if the run was interrupted."""
    from karat.execution.runner import Stopped

    try:
        return execute(), ""
    except Stopped as stopped:
        left = f"{stopped.reason}: {stopped.progress}. To continue: {resume}"
        if stopped.interrupted:
            click.echo(left, err=True)
            context.exit(130)
        return stopped.runs, left


#: options that a replay uses; the others are those of jobs that run
REPLAYED = ("goal", "confidence", "margin", "folds_per_task", "orders", "seed")
#: options of a race that are no options of a run
OF_RACES = ("goal", "confidence", "margin", "folds_per_task", "order", "budget")


@karat.command(short_help="Find the best model with fewer jobs.")
@click.argument("targets", nargs=-1, required=True, metavar="SUITE")
@option(
    "--goal GOAL",
    "What to find: best, top-K such as top-3, or order to separate all pairs of models.",
    default="best",
)
@option("--confidence P", "Probability that the answer is right.", type=float, default=0.95)
@option(
    "--margin SIZE",
    "Two models are equivalent, and stop, if on most tasks neither is better by more than this, on "
    "the scale of the metric; of rmse and other metrics without an upper bound, as a share.",
    type=float,
)
@option(
    "--budget AMOUNT",
    "Most that this command may run: a time such as 4h or 30m, or a number of jobs.",
)
@option(
    "--folds-per-task N",
    "Number of folds of each task to run, all before the task counts.",
    type=int,
    default=1,
)
@option(
    "--order",
    "Order of the tasks: random, or cheap ones first by the times of earlier runs in DIR. See the "
    "docs for what the guarantee then covers.",
    type=click.Choice(["random", "cheap"]),
    default="random",
)
@option(
    "--replay",
    "Replay races on finished runs in random orders; the arguments are run folders.",
    is_flag=True,
)
@option("--orders N", "With --replay: number of random orders.", type=int, default=100)
@suite_options
@session_options
@option("--resume", "Continue the latest race of this suite in DIR; new models join.", is_flag=True)
@option("-q, --quiet", "Print only the result.", is_flag=True)
@option("-v, --verbose", "Print one line per job.", is_flag=True)
@format_option
@click.pass_context
def race(context: click.Context, /, targets: tuple[str, ...], replay: bool, **given: Any) -> int:
    """Find the best model of SUITE, and run only the jobs that can still change the answer.

    The tasks are run in a random order by all models that remain. After each task, models leave
    against which the evidence is sufficient, at a stated confidence, whenever the race is stopped.

    \b
    Examples:
      karat race my-suite --define my.yaml -m onehot -m skrub -m tfidf
      karat race my-suite --goal top-3 --confidence 0.9 --budget 4h
      karat race my-suite --resume -m another-model
      karat race --replay results

    Exit code: 0 the goal is reached, 1 some jobs failed or a model given with -m ran on no task,
    2 invalid input, 3 undecided or stopped by
    the budget, 130 interrupted.
    """
    shape = given.pop("shape")
    _check_used(context, replay)
    if replay:
        return _replay(targets, shape, given)
    if len(targets) > 1:
        raise DefinitionError(
            f"a race has one suite, got {len(targets)}: {', '.join(targets)}. Add --replay to "
            f"replay finished runs."
        )
    del given["orders"]
    return _race(context, targets[0], shape, given)


def _check_used(context: click.Context, replay: bool) -> None:
    """Raise DefinitionError if an option was given that does not apply."""
    names = {each.name: each.opts[-1] for each in context.command.params}
    given = [
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if replay:
        used = {*REPLAYED, "targets", "replay", "shape"}
        unused = [names[name] for name in given if name not in used]
        what = "does not apply to --replay"
    else:
        unused, what = ["--orders"] * ("orders" in given), "requires --replay"
    if unused:
        raise DefinitionError(*(f"{name} {what}." for name in unused))


def _race(context: click.Context, suite: str, shape: str | None, given: dict[str, Any]) -> int:
    from karat.analysis.race import run_race
    from karat.data.download_display import shown_downloads
    from karat.execution.evaluation import plan_suite
    from karat.execution.plan import idle_reasons
    from karat.execution.race_session import RaceOptions
    from karat.execution.runner import choose_progress
    from karat.reporting.comparison_output import show_race

    quiet = given.pop("quiet")
    context.with_resource(shown_downloads(not quiet))
    progress = choose_progress(quiet, given.pop("verbose"))
    chosen = RaceOptions(**{name: given.pop(name) for name in OF_RACES})
    chosen.check()
    named = given["models"]
    models, tasks, catalog, options = _resolve_session(suite, given)
    plan = plan_suite(models, tasks, catalog, options)

    def execute() -> Any:
        return run_race(plan, tasks, options, chosen, progress)

    found, _ = _run_until_stopped(context, execute, _resume_command())
    show_race(found, shape)
    idle = idle_reasons(plan) if named else {}
    for model, reason in idle.items():
        click.echo(f" {model} ran on no task: {reason}", err=True)
    if found.outcome == "stopped" and not quiet:
        click.echo(f"\nTo continue: {_resume_command()}", err=True)
    if idle or int(found.models["failed"].sum()):
        return 1
    return 0 if found.outcome == "decided" else 3


def _replay(targets: tuple[str, ...], shape: str | None, given: dict[str, Any]) -> int:
    from karat.analysis.race import replay_race
    from karat.reporting.comparison_output import show_replay

    chosen = {name: given[name] for name in REPLAYED}
    show_replay(replay_race([Path(each) for each in targets], **chosen), shape)
    return 0


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
    suite: str, detect: float | None, runs: Path, verbose: bool, shape: str, **given: Any
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
    from karat.reporting.terminal import print_tables, show_detectable, show_plan

    if shape == "json" and detect is None:
        raise DefinitionError("--format json requires --detect.")
    # models that do not tell what they take are tried in another process
    models, tasks, catalog, options = resolve(suite, {**given, "workers": 1})
    plan = plan_suite(models, tasks, catalog, options)
    if shape != "json":
        print_tables(plan, whole=Path(suite).exists(), err=False)
        show_plan(plan, runs, verbose=verbose)
    if detect is not None:
        show_detectable(plan, detect, runs, shape)


@karat.command()
@click.argument("file", type=PATH)
@click.option("--target", metavar="COLUMN", help="Target column.")
@table_options
def inspect(file: Path, target: str | None, **given: Any) -> None:
    """Show how a table file is read, without running anything.

    Lists, per column, its type, the number of missing and of distinct values and an example, and
    with --target what would be predicted. The options are those of karat run.

    \b
    Examples:
      karat inspect churn.csv
      karat inspect churn.csv --target churn --positive no
      karat inspect verkauf.csv --target umsatz --separator ";" --decimal ,
    """
    from karat.reporting.terminal import show_table

    show_table(file, target, pop_table_settings(given))


def _resolve_session(suite: str, given: dict[str, Any]) -> Any:
    """Return the models, the tasks, the catalog and the options of jobs to run."""
    from karat.execution.workers import Template, available_cores

    given["cache"], given["items"] = not given.pop("no_cache"), not given.pop("no_items")
    given["workers"] = available_cores() if given["workers"] is None else given["workers"]
    if given["workers"] and sys.platform == "linux" and given["engine"] == "local":
        Template.copy_this_process()  # it loads its libraries while this process plans
    return resolve(suite, given)


def resolve(suite: str, given: dict[str, Any]) -> Any:
    """Return the models, the tasks, the catalog and the options of a run."""
    from karat.config.catalog import Catalog, change_models, change_tasks, parse
    from karat.execution.evaluation import change_metrics, find_models_and_suite, make_options
    from karat.execution.resources import restored_folder

    with restored_folder():
        catalog = Catalog(given.pop("define"))
    folder = given.pop("data_dir")
    if folder is not None:
        if not folder.is_dir():
            raise DefinitionError(f"--data-dir: no such folder: {folder}.")
        folders = [str(folder.absolute()), os.environ.get("KARAT_DATA")]
        os.environ["KARAT_DATA"] = os.pathsep.join(filter(None, folders))
    tasks = _find_tasks(catalog, suite, given)
    changes = parse(given.pop("overrides"))
    names = {name: given[name] for name in ("only", "constraint")}
    variants = _pop_variants(given)
    models, tasks = find_models_and_suite(
        catalog, list(given.pop("models")) or None, tasks, variants=variants, **names
    )
    models, tasks = change_models(models, changes.models), change_tasks(tasks, changes.tasks)
    tasks = change_metrics(tasks, split_names(given.pop("metrics")))
    given["only_folds"] = list(given.pop("only_fold")) or None
    options = {**given, **changes.options}
    return models, tasks, catalog, make_options(options)


def _pop_variants(given: dict[str, Any]) -> Any:
    """Remove the options of variants and return the variants of every encoder."""
    from karat.core.embeddings import make_variants

    widths, bits = (
        [part.strip() for part in (given.pop(name) or "").split(",") if part.strip()]
        for name in ("dimensions", "precision")
    )
    rescore = given.pop("rescore")
    numbers = [int(each) if each.isdecimal() else each for each in widths]
    return make_variants(numbers, bits, False if rescore is None else rescore)


def _find_tasks(catalog: Any, suite: str, given: dict[str, Any]) -> Any:
    """Return the name of a suite, or the suite of a table file or of a corpus."""
    from karat.execution.evaluation import is_corpus

    target, like, passages = given.pop("target"), given.pop("like"), given.pop("passages")
    settings = pop_table_settings(given)
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
        raise DefinitionError(_not_a_suite(suite, given["only"]))
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
@define_option
def show(name: str, constraint: str | None, target: str | None, define: tuple[Path, ...]) -> None:
    """Show the definition of NAME, or how a table file is read.

    \b
    Examples:
      karat show penguins
      karat show penguins -c 1h8c
      karat show churn.csv        as karat inspect, without its options
    """
    from karat.reporting.terminal import is_table_file, show_name, show_table

    if is_table_file(name):
        if constraint is not None:
            raise DefinitionError(f"--constraint applies to a task; {name} is a table file.")
        return show_table(Path(name), target, {})
    if target is not None:
        raise DefinitionError(f"--target applies to a table file; {name} is none.")
    return show_name(name, define, constraint)


@karat.command()
@click.argument("model")
@define_option
def check(model: str, define: tuple[Path, ...]) -> int:
    """Check that MODEL can be evaluated.

    Prints which requirements it does not meet and how to fix them.

    \b
    Examples:
      karat check onehot
      karat check my_module:MyEncoder
      karat check vectors.txt
    """
    from karat.config.catalog import Catalog
    from karat.reporting.terminal import print_model_checks
    from karat.testing import check_model

    return print_model_checks(check_model(Catalog(define).model(model)), model)


@karat.command()
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
