"""The commands that decide: cheapest, gate, race, same and shrink."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from karat.cli.app import resolve_session, resume_command, run_until_stopped
from karat.cli.options import (
    PATH,
    SETTINGS,
    as_run_folders,
    cluster_option,
    define_option,
    format_option,
    margin_option,
    option,
    pool_option,
    repeatable,
    run_folders,
    session_options,
    suite_options,
)
from karat.errors import DefinitionError

#: options that a replay uses; the others are those of jobs that run
REPLAYED = ("goal", "confidence", "margin", "folds_per_task", "orders", "seed")

#: options of a race that are no options of a run
OF_RACES = ("goal", "confidence", "margin", "folds_per_task", "order", "budget")


@click.command(context_settings=SETTINGS, short_help="Find the best model with fewer jobs.")
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
def race(context: click.Context, /, targets: tuple[str, ...], replay: bool, **options: Any) -> int:
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
    shape = options.pop("shape")
    _check_used(context, replay)
    if replay:
        return _replay(targets, shape, options)
    if len(targets) > 1:
        raise DefinitionError(
            f"a race has one suite, got {len(targets)}: {', '.join(targets)}. Add --replay to "
            f"replay finished runs."
        )
    del options["orders"]
    return _race(context, targets[0], shape, options)


def _check_used(context: click.Context, replay: bool) -> None:
    """Raise DefinitionError if an option was given that does not apply."""
    names = {parameter.name: parameter.opts[-1] for parameter in context.command.params}
    named = [
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if replay:
        used = {*REPLAYED, "targets", "replay", "shape"}
        unused = [names[name] for name in named if name not in used]
        what = "does not apply to --replay"
    else:
        unused, what = ["--orders"] * ("orders" in named), "requires --replay"
    if unused:
        raise DefinitionError(*(f"{name} {what}." for name in unused))


def _race(
    context: click.Context, suite: str, shape: str | None, race_options: dict[str, Any]
) -> int:
    from karat.data.download_display import shown_downloads
    from karat.execution.evaluation import plan_suite
    from karat.execution.plan import idle_reasons
    from karat.execution.progress import choose_progress
    from karat.ext.decide.race import run_race
    from karat.ext.decide.race_session import RaceOptions
    from karat.output.result import show

    quiet = race_options.pop("quiet")
    context.with_resource(shown_downloads(not quiet))
    progress = choose_progress(quiet, race_options.pop("verbose"))
    chosen = RaceOptions(**{name: race_options.pop(name) for name in OF_RACES})
    chosen.check()
    named = race_options["models"]
    models, tasks, catalog, options = resolve_session(suite, race_options)
    plan = plan_suite(models, tasks, catalog, options)

    def execute() -> Any:
        return run_race(plan, tasks, options, chosen, progress)

    result, _ = run_until_stopped(context, execute, resume_command())
    show(result, shape)
    idle = idle_reasons(plan) if named else {}
    for model, reason in idle.items():
        click.echo(f" {model} ran on no task: {reason}", err=True)
    if result.outcome == "stopped" and not quiet:
        click.echo(f"\nTo continue: {resume_command()}", err=True)
    if idle or int(result.models["failed"].sum()):
        return 1
    return 0 if result.outcome == "decided" else 3


def _replay(targets: tuple[str, ...], shape: str | None, options: dict[str, Any]) -> int:
    from karat.ext.decide.race import replay_race
    from karat.output.result import show

    chosen = {name: options[name] for name in REPLAYED}
    return show(replay_race([Path(target) for target in targets], **chosen), shape)


@click.command(context_settings=SETTINGS)
@run_folders
@option(
    "--cost",
    "What a model costs: price (of endpoints), seconds (to encode and predict one item), bytes "
    "(of a stored vector) or dimensions.",
    type=click.Choice(["price", "seconds", "bytes", "dimensions"]),
    required=True,
)
@margin_option
@option(
    "--reference MODEL",
    "Model to compare with.  [default: the one with the best mean score that is no variant of "
    "another]",
)
@option("--metric NAME", "Compare on this metric only.  [default: each task's primary metric]")
@cluster_option
@pool_option
@format_option
@option("-o, --output FOLDER", "Also write the table as CSV into this folder.")
def cheapest(runs: tuple[Path, ...], shape: str | None, output: str | None, **options: Any) -> int:
    """Find the cheapest model that is as good as the best one.

    A cheaper model is equivalent if its mean difference to the reference is within the margin, by
    two one-sided tests at 5 %, corrected for the number of cheaper models.

    \b
    Examples:
      karat cheapest results --cost bytes
      karat cheapest results --cost seconds --margin 0.02 --reference minilm

    Exit code: 0 a cheaper model can replace the reference, 1 none can, 2 invalid input,
    3 undecided: neither equivalence nor a difference can be shown.
    """
    from karat.ext.decide.cheapest import cheapest as find
    from karat.output.result import show

    answer = find(runs, **options)
    code = show(answer, shape)
    for path in answer.to_csv(output) if output else ():
        click.echo(path, err=True)
    return code


@click.command(context_settings=SETTINGS)
@click.argument("suite")
@run_folders
@option(
    "--keep-order SHARE",
    "Share of the pairs of models that must keep their order.",
    type=click.FloatRange(0.5, 1, min_open=True, max_open=True),
    default=0.95,
)
@option("-o, --output FILE", "Write the smaller suite as YAML definitions.", type=PATH)
@option("--name NAME", "Name of the smaller suite.  [default: SUITE-small]")
@pool_option
@define_option
@format_option
def shrink(
    suite: str, runs: tuple[Path, ...], output: Path | None, shape: str | None, **options: Any
) -> None:
    """Find few tasks that keep the order of models.

    Selects tasks of SUITE, and how many folds of each to run. RUN is as in karat leaderboard. The
    share of pairs of models in the same order as with all jobs is measured on models that were left
    out of the selection.

    \b
    Examples:
      karat shrink tables results --keep-order 0.95 -o small.yaml
      karat run tables-small --define small.yaml -m my_module:MyEncoder

    Exit code: 0, or 2 if there are too few models or tasks, or no smaller suite keeps the order.
    """
    from karat.ext.decide.shrink import shrink as find
    from karat.output.result import show

    name, define = options.pop("name"), options.pop("define")
    with as_run_folders(runs) as folders:
        smaller = find(suite, folders, define=define, **options)
    show(smaller, shape)
    if output is not None:
        named = smaller.write(output, name, define)
        files = " ".join(f"--define {shlex.quote(str(file))}" for file in (*define, output))
        click.echo(f"karat run {shlex.quote(named)} {files}", err=True)


@click.command(context_settings=SETTINGS)
@click.argument("models", nargs=-1, required=True, metavar="A [B]")
@option(
    "--items FILE",
    "Texts (.txt, one per line), ids of vector files (.txt), or rows of a table (.csv) to embed.  "
    "[default: 500 texts that come with Karat, common ids, or rows of penguins]",
    type=PATH,
)
@option("--margin SIZE", "Differences of scores up to this size count as equal.", default=0.01)
@option(
    "--rotations/--no-rotations",
    "Whether rotated vectors count as the same.  [default: only for vector files]",
    default=None,
    show_default=False,
)
@option("--all", "Measure all levels, also if the answer is settled.", dest="every", is_flag=True)
@repeatable("--runs RUN", "Stored runs of A and B by name, instead of running tasks. Repeatable.")
@option(
    "--suite NAME",
    "Suite whose tasks are run if the vectors do not settle the answer.",
    default="quickstart",
)
@repeatable("-t, --task TASK", "Run only these tasks of the suite. Repeatable.", dest="only")
@option("-o, --output DIR", "Where to write new run folders.", default="results")
@cluster_option
@option("--save FILE", "Write a fingerprint of A, to compare with later.", type=PATH)
@define_option
@format_option
def same(
    models: tuple[str, ...],
    items: Path | None,
    save: Path | None,
    shape: str | None,
    **arguments: Any,
) -> int:
    """Test whether B is still the same encoder as A.

    A and B are models as for karat run, vector files, fingerprints written with --save, or two run
    folders. Vectors are compared first, then nearest neighbors, then scores on tasks, until the
    answer is settled.

    \b
    Examples:
      karat same minilm minilm-int8
      karat same minilm http://localhost:8080/v1#minilm
      karat same --save minilm.json minilm
      karat same minilm.json my_module:NewMiniLM --format markdown

    Exit code: 0 identical or equivalent, 1 different, 3 undecided, 2 invalid input.
    """
    from karat.ext.decide.same_encoder import Fingerprint, Tasks, read_items
    from karat.ext.decide.same_encoder import same as compare_encoders
    from karat.output.result import show

    define = arguments.pop("define")
    chosen = read_items(items) if items else None
    if len(models) != (1 if save else 2):
        needed = "one model" if save else "two models"
        raise DefinitionError(f"karat same needs {needed}, got {len(models)}.")
    if save:
        click.echo(Fingerprint.of(models[0], chosen, define).save(save))
        return 0
    every, options = (
        arguments.pop("every"),
        {k: arguments.pop(k) for k in ("suite", "only", "output", "cluster")},
    )
    tasks = Tasks(list(arguments.pop("runs")) or None, **options)
    more = {"every_level": every, "tasks": tasks, "define": define}
    answer = compare_encoders(models[0], models[1], items=chosen, **more, **arguments)
    return show(answer, shape)


@click.command(context_settings=SETTINGS)
@click.argument("new", required=False)
@option("--against BASELINE", "Run folder, or folder of runs, of the baseline.", type=PATH)
@margin_option
@option("--suite NAME", "Suite on which a model is run.  [default: that of the baseline]")
@repeatable("-t, --task TASK", "Only these tasks; * matches any text. Repeatable.", dest="tasks")
@option(
    "-m, --model NAME",
    "Model to compare, of folders with runs of several.  [default: the only one in common]",
)
@cluster_option
@option(
    "--cannot-tell",
    "Exit code if the data do not decide: 0 (pass) or 1 (fail).  [default: 3]",
    dest="undecided",
    type=click.Choice(["pass", "fail"]),
)
@option("-o, --output DIR", "Where to write the run of a new model.", default="results")
@option("-w, --workers N", "Number of worker processes of this run.", type=int, default=0)
@option("--all-tasks", "Run all tasks, also if the gate has failed before.", is_flag=True)
@define_option
@option(
    "--calibrate BASELINE",
    "Simulate the error rates of the gate, and write them to gate.json in this folder.",
    type=PATH,
)
@format_option
def gate(new: str | None, against: Path | None, calibrate: Path | None, **options: Any) -> int:
    """Test that a new model is not worse than a baseline.

    NEW is a run folder, a folder of runs, or a model as for karat run; a model is run first, as the
    baseline was. The gate passes if a loss of the margin or more is rejected at 5 % for the mean
    over tasks. It fails if NEW is significantly worse, worse on a task by more than the margin, or
    lacks scores.

    \b
    Examples:
      karat gate results/NEW --against baselines/main
      karat gate results --against baselines/main -m random-forest
      karat gate my_module:New --against baselines/main --format markdown
      karat gate --calibrate baselines/main

    Exit code: 0 passed, 1 failed, 3 cannot tell, 2 invalid input.
    """
    from karat.ext.decide.gate import NewRuns, calibrate_gate
    from karat.ext.decide.gate import gate as compare_to_baseline
    from karat.output.result import show

    shape, chosen = (
        options["shape"],
        {name: options[name] for name in ("margin", "tasks", "cluster")},
    )
    if calibrate is not None:
        if new or against:
            raise DefinitionError("--calibrate cannot be used with NEW or --against.")
        rates = calibrate_gate(calibrate, **chosen)
        show(rates, shape)
        click.echo(rates.save(calibrate), err=True)
        return 0
    if not new or against is None:
        raise DefinitionError("karat gate needs NEW and --against BASELINE, or --calibrate.")
    chosen["model"] = options["model"]
    names = ("suite", "output", "workers", "define", "all_tasks")
    how = NewRuns(**{name: options[name] for name in names})
    answer = compare_to_baseline(new, against, **chosen, run=how)
    show(answer, shape)
    mapped = {"pass": 0, "fail": 1}.get(options["undecided"], answer.exit_code)
    return mapped if answer.exit_code == 3 else answer.exit_code
