"""The commands of runs on several machines: gather and slurm."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli.app import NOT_REPEATED, resolve
from karat.cli.options import (
    PATH,
    SETTINGS,
    given_words,
    option,
    repeatable,
    run_options,
)
from karat.errors import DefinitionError

if TYPE_CHECKING:
    from karat.execution.session import Options
    from karat.ext.cluster.shards import Parts

#: what Slurm accepts as time and memory
SLURM_FORMATS = (
    ("time", r"(\d+-)?\d+(:\d+){0,2}|infinite|unlimited", "90 (minutes), 4:00:00 or 2-12:00:00"),
    ("mem", r"\d+[kmgt]?b?", "8G or 500M"),
)

#: number of jobs that are listed
MOST_JOBS = 20
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


@click.command(context_settings=SETTINGS, short_help="Merge the runs of several machines.")
@click.argument("folders", nargs=-1, required=True, type=PATH, metavar="DIR...")
@option("-o, --output DIR", "Where to write the merged run folders.", type=PATH, required=True)
@option(
    "--format", "Output format.", dest="shape", type=click.Choice(["text", "json"]), default="text"
)
def gather(folders: tuple[Path, ...], output: Path, shape: str) -> int:
    """Merge the runs that karat run --shard has written into DIR.

    Checks that every planned job is there once, lists what is missing, double or outdated, and
    prints the commands that run what is missing. The tables are those of a run on one machine.

    \b
    Examples:
      karat gather results -o results/gathered
      karat gather node-a/results node-b/results -o results

    Exit code: 0 every job is there, 1 jobs are missing or equal jobs have different scores,
    2 invalid input.
    """
    from karat.ext.cluster.gather import gather as merge

    merged = merge(list(folders), output)
    if not merged.planned:
        raise DefinitionError("nothing to gather: the plan of these runs has no jobs.")
    lists = {name: getattr(merged, name) for name in ("missing", "double", "differing", "outdated")}
    if shape == "json":
        facts = {"planned": merged.planned, "failed": merged.failed, **lists}
        commands = [{"for": text, "command": command} for text, command in merged.commands.items()]
        runs = [str(run.folder) for run in merged.runs]
        click.echo(json.dumps({**facts, "commands": commands, "runs": runs}, indent=1))
        return 0 if merged.is_complete else 1
    done = merged.planned - len(merged.missing)
    failed = f"{merged.failed:,} of them failed"
    click.echo(f"{done:,} of {merged.planned:,} jobs, {failed}, in {output}")
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
    for text, command in merged.commands.items():
        click.echo(f"\n{text}:\n  {command}")
    return 0 if merged.is_complete else 1


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
@repeatable(
    "--sbatch OPTION", "Further option of sbatch, such as --sbatch=--partition=gpu. Repeatable."
)
@click.pass_context
def slurm(context: click.Context, /, suite: str, **settings: Any) -> int:
    """Write a job script that runs SUITE as a job array of Slurm.

    The script is printed; the size of the parts, from the times of earlier runs, is printed on
    standard error. Submit it with: bash job.sh. A second job gathers the results when the array has
    ended. A task that is preempted, or that reaches its time limit, is queued again and continues.

    \b
    Examples:
      karat slurm quickstart --array 64 --time 4:00:00 --mem 8G > job.sh
    """
    slurm_options = {name: settings.pop(name) for name in ("array", "time", "mem", "sbatch")}
    _check_settings(slurm_options)
    left_out = (*NOT_REPEATED, *slurm_options, "workers")
    words = ["run", *given_words(context, left_out)[1:]]
    settings["cache"], settings["items"] = (
        not settings.pop("no_cache"),
        not settings.pop("no_items"),
    )
    models, tasks, catalog, options = resolve(
        suite, {**settings, "shard": f"1/{slurm_options['array']}"}
    )
    from karat.execution.evaluation import plan_suite
    from karat.execution.plan import require_jobs
    from karat.ext.cluster.shards import Parts, read_times

    plan = plan_suite(models, tasks, catalog, options)
    require_jobs(plan)
    times = read_times(plan, options.output)
    parts = Parts.of(plan, times, slurm_options["array"])
    _print_parts(parts, bool(times), options.workers)
    click.echo(_script(words, options, slurm_options), nl=False)
    return 0


def _check_settings(settings: dict[str, Any]) -> None:
    """Refuse settings that sbatch would refuse when the script is submitted."""
    for name, pattern, example in SLURM_FORMATS:
        if settings[name] and not re.fullmatch(pattern, settings[name], re.IGNORECASE):
            raise DefinitionError(f'--{name} must be as {example}, got "{settings[name]}".')
    for text in settings["sbatch"]:
        if "\n" in text or not text.startswith("-"):
            raise DefinitionError(f"--sbatch must be an option of sbatch, got {text!r}.")


def _print_parts(parts: Parts, timed: bool, workers: int) -> None:
    """Print the number and the size of the parts on standard error."""
    from karat.core.formatting import duration

    sizes = [len(parts.jobs(part)) for part in range(len(parts.parts))]
    empty = sum(not size for size in sizes)
    text = f"{len(sizes)} parts of {min(sizes):,} to {max(sizes):,} jobs"
    if empty:
        text += f"; {empty} have none, because jobs that share vectors are kept together"
    click.echo(text, err=True)
    if timed:
        seconds = [parts.seconds(part) / workers for part in range(len(sizes))]
        click.echo(
            f"estimated from earlier runs: {duration(min(seconds))} to {duration(max(seconds))} "
            f"per part",
            err=True,
        )
    else:
        click.echo("no earlier runs: parts have about the same number of jobs", err=True)


def _script(words: list[str], options: Options, slurm_options: dict[str, Any]) -> str:
    """Return the job script."""
    limits = [f"--{name}={slurm_options[name]}" for name in ("time", "mem") if slurm_options[name]]
    settings = [*limits, *slurm_options["sbatch"]]
    output = str(options.output)
    run_options = ["-o", output, "-w", str(options.workers)]
    karat = shlex.join([sys.executable, "-m", "karat"])
    gathered = shlex.quote(f"{output}/gathered")
    part = f'--shard "$SLURM_ARRAY_TASK_ID/{slurm_options["array"]}" --resume'
    return SCRIPT.format(
        file="job.sh",
        array=slurm_options["array"],
        settings="".join(f"#SBATCH {option}\n" for option in settings),
        workers=options.workers,
        karat=karat,
        gather="".join(f"{shlex.quote(option)} " for option in settings),
        wrap=shlex.quote(f"{karat} gather {shlex.quote(output)} -o {gathered}"),
        gathered=gathered,
        command=f"{shlex.join([*words, *run_options])} {part}",
    )
