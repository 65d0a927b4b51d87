"""The commands that read run folders: leaderboard, compare, lint, report and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli.options import (
    PATH,
    SETTINGS,
    as_run_folders,
    cluster_option,
    combine_options,
    define_option,
    format_option,
    has_runs,
    ignore_option,
    is_from_command_line,
    option,
    pool_option,
    print_error,
    repeatable,
    run_folders,
)
from karat.core.registry import report_formats
from karat.errors import DataError, DefinitionError, DiskFull, KaratError

if TYPE_CHECKING:
    from karat.analysis.items import ItemComparison
    from karat.analysis.slices import SliceComparison
    from karat.output.result import Result

#: the options of checks of runs
checks_options = combine_options(
    ignore_option,
    option(
        "--fail-on",
        "Exit with code 1 if there is a finding of this level or a more severe one.",
        type=click.Choice(["error", "warning", "note"]),
    ),
    format_option,
    pool_option,
    option("--explain CODE", "Explain a check and how to fix its findings."),
    option("--list", "List all checks.", dest="list_checks", is_flag=True),
)
#: options of karat leaderboard that change a table which --next does not show
OTHER_TABLE = ("by", "columns", "normalize", "sort")


@click.command(context_settings=SETTINGS)
@run_folders
@option(
    "--by", "Rank within each of these.", type=click.Choice(["task", "kind", "dataset", "language"])
)
@option(
    "--missing RULE",
    "How to count missing scores: worst (failures get the worst score of their fold, "
    "everything else is left out), penalize (every missing score is the worst), exclude (compare "
    "only tasks and folds that all models have), baseline:MODEL (use that model's score).  "
    "[default: worst]",
)
@option("--common", "Short for --missing exclude.", is_flag=True)
@option(
    "--columns NAME,...",
    "Columns to show with the ranks: tasks, costs, any column name, elo (or elo:MODEL to set "
    "that model to 1500), borda, wins, score, median, pareto (or pareto:memory_mb).  "
    "[default: tasks,costs]",
)
@option(
    "--normalize SCALE",
    "Add scores scaled to 0-1: range (0 is the worst model of each task), baseline:MODEL "
    "(0 is that model) or baseline:ZERO,ONE (0 and 1 are these models).",
    dest="normalize",
)
@option("--sort COLUMN", "Sort by this column, best first.")
@option(
    "--next",
    "Show the rank to expect on a new task like these instead: its 90 % interval, the chance to be "
    "first and the loss. Needs 19 tasks.",
    dest="next_task",
    is_flag=True,
)
@repeatable("--metric TASK=METRIC", "Use this metric for a task. Repeatable.", dest="metrics")
@cluster_option
@pool_option
@ignore_option
@format_option
def leaderboard(runs: tuple[Path, ...], shape: str | None, **options: Any) -> None:
    """Rank the models of run folders.

    RUN is a run folder, a folder that contains run folders, or result files of another system that
    karat import can read.

    \b
    Examples:
      karat leaderboard results
      karat leaderboard results --by task --sort seconds
      karat leaderboard results --normalize range --missing baseline:dummy
      karat leaderboard results --columns elo,borda,wins,pareto,costs --sort elo
      karat leaderboard results --common
      karat leaderboard results --next
      karat leaderboard results/onehot.* results/skrub.* --format latex
    """
    if options.pop("next_task"):
        _print_next_task(runs, shape, options)
        return
    from karat.reporting.terminal import metric_by_task, parse_columns, print_leaderboard

    options["missing"] = _missing_rule(options.pop("missing"), options.pop("common"))
    options["metrics"] = metric_by_task(options["metrics"])
    options["columns"] = parse_columns(options["columns"])
    with as_run_folders(runs) as folders:
        where = "" if folders == list(runs) else "RUN..."
        print_leaderboard(folders, shape, where=where, **options)


def _missing_rule(rule: str | None, common: bool) -> str:
    if common and rule not in (None, "exclude", "common"):
        raise DefinitionError(f"--common conflicts with --missing {rule}; use one of them.")
    return "exclude" if common else rule or "worst"


def _print_next_task(runs: tuple[Path, ...], shape: str | None, options: dict[str, Any]) -> None:
    from karat.analysis.next_task import next_task
    from karat.output.result import show
    from karat.reporting.terminal import metric_by_task

    options["missing"] = _missing_rule(options.pop("missing"), options.pop("common"))
    if options.pop("cluster"):
        raise DefinitionError("--cluster is for tests on items; --next has none: leave it out.")
    options.pop("ignore")  # findings are not printed
    wrong = [name for name in OTHER_TABLE if options.pop(name)]
    if wrong:
        raise DefinitionError(
            f"--next conflicts with --{wrong[0]}: it prints a table of its own, with the kinds and "
            "sizes of tasks where at least 19 are alike; use one of them."
        )
    options["metrics"] = metric_by_task(options["metrics"])
    with as_run_folders(runs) as folders:
        show(next_task(folders, **options), shape)


@click.command(context_settings=SETTINGS)
@run_folders
@repeatable(
    "--baseline MODEL",
    "Reference model of mCE and relative mCE. Repeatable: each task uses the first one it has.",
)
@option("--metric NAME", "Use this metric.  [default: each task's primary metric]")
@option("--compositions", "Evaluate composed corruptions only.", is_flag=True)
@option("--by-corruption", "One line per corruption and model.", is_flag=True)
@pool_option
@format_option
def robustness(runs: tuple[Path, ...], shape: str | None, **options: Any) -> None:
    """Report how much corrupted data lowers the scores.

    Columns: retention, area under the severity curve, worst case, mCE and relative mCE.

    \b
    Examples:
      karat robustness results
      karat robustness results --baseline logistic-regression --format markdown
    """
    from karat.analysis.robustness import robustness as summarize
    from karat.output.result import show

    show(summarize(list(runs), **options), shape)


@click.command(context_settings=SETTINGS)
@run_folders
@repeatable("--metric NAME", "Additional metric to compute. Repeatable.", dest="metrics")
@option(
    "-o, --output DIR",
    "Write new run folders with the new scores here. Default: write nothing.",
    type=PATH,
)
@define_option
def rescore(
    runs: tuple[Path, ...], metrics: tuple[str, ...], output: Path | None, define: tuple[Path, ...]
) -> int:
    """Recompute scores from stored predictions.

    \b
    Examples:
      karat rescore results
      karat rescore results/RUN --metric balacc --metric brier -o rescored

    Exit code: 0 no score changed, 1 a score changed or a file cannot be used, 2 invalid input.
    """
    from karat.config.catalog import Catalog
    from karat.output.result import show
    from karat.results.rescore import known_metrics
    from karat.results.rescore import rescore as rescore_run
    from karat.results.run import open_runs

    if define:
        Catalog(define).definitions  # noqa: B018  reading the files registers their components
    checked, code, scores = known_metrics(metrics), 0, 0
    for run in open_runs(runs):
        try:
            rescored = rescore_run(run, checked)
            written = rescored.write(output).folder if output is not None else None
        except DiskFull:
            raise
        except KaratError as error:
            print_error(str(error))
            code = 1
        else:
            scores += len(rescored.scores)
            code = max(code, show(rescored))
            if written is not None:
                click.echo(f" written: {written}")
    if not scores and not code:
        raise DataError("nothing was rescored: the runs have no stored predictions.")
    return code


@click.command(context_settings=SETTINGS, hidden=True)
@run_folders
@format_option
def status(runs: tuple[Path, ...], shape: str | None) -> int:
    """Show the progress of running or finished runs.

    Counts jobs that are done, failed, declined, running and left.

    \b
    Example:
      karat status results

    Exit code: 0 all runs are finished, 1 jobs are left, 2 invalid input.
    """
    from karat.reporting.terminal import show_status

    return show_status(list(runs), shape)


@click.command(context_settings=SETTINGS)
@run_folders
@option(
    "-o, --output PATH",
    "Output file, or the folder of --site.  [default: report.html or site]",
)
@option("--site", "Write a folder instead, with a page per model and task.", is_flag=True)
@option("--title TEXT", "Title of the page.  [default: the names of the suites]")
@option("--umap", "Also project vectors with UMAP (slow).", is_flag=True)
@cluster_option
@pool_option
def report(runs: tuple[Path, ...], output: str | None, site: bool, **options: Any) -> None:
    """Write an interactive report as one HTML file, or a site.

    The file contains the leaderboard, curves, maps of vectors, predictions, failures, datasets and
    provenance. It works offline and needs no other file.

    \b
    Examples:
      karat report results
      karat report results/*.taco.* -o taco.html --title "TACO, November"
      karat report results --site -o public
    """
    if site:
        _write_site(runs, output or "site", options)
        return
    from karat.reporting.page import report as write

    click.echo(write(list(runs), output or "report.html", **options))


def _write_site(runs: tuple[Path, ...], output: str, options: dict[str, Any]) -> None:
    """Write a static site; refuse what only the page has."""
    if "site" not in report_formats:
        raise DefinitionError("--site needs the extension publish, which is missing.")
    only_page = [name for name in ("umap", "cluster") if options.pop(name)]
    if only_page:
        raise DefinitionError(f"--{only_page[0]} cannot be used with --site: leave it out.")
    files = report_formats.get("site")(list(runs), output, **options)
    click.echo(f"{files[1]}   ({len(files):,} files)")


@click.command(context_settings=SETTINGS)
@click.argument("names", nargs=-1, metavar="[MODEL|RUN...]")
@checks_options
@define_option
@click.pass_context
def check(
    context: click.Context, /, names: tuple[str, ...], define: tuple[Path, ...], **options: Any
) -> int:
    """Check a model, or runs for misleading scores.

    Of a MODEL, prints which requirements it does not meet and how to fix them. Of run folders,
    prints what makes scores misleading: leakage, constant vectors, saturated tasks, differences
    within noise, etc.

    \b
    Examples:
      karat check onehot
      karat check my_module:MyEncoder
      karat check vectors.txt
      karat check results --ignore KRT102 --fail-on warning
      karat check --explain KRT302

    Exit code: 0, 1 if there is a finding of the level of --fail-on, 2 if a model does not meet a
    requirement.
    """
    paths = tuple(map(Path, names))
    if options["explain"] is not None or options["list_checks"] or len(names) != 1:
        return check_runs(paths, **options)
    if any(has_runs(path) for path in paths):
        return check_runs(paths, **options)
    from karat.config.catalog import Catalog
    from karat.reporting.terminal import print_model_checks
    from karat.testing import check_model

    for parameter in context.command.params:
        if parameter.name in options and is_from_command_line(context, str(parameter.name)):
            raise DefinitionError(f"{parameter.opts[0]} is for runs; {names[0]} is no run folder.")
    return print_model_checks(check_model(Catalog(define).model(names[0])), names[0])


@click.command(context_settings=SETTINGS, hidden=True)
@click.argument("runs", nargs=-1, type=PATH, metavar="[RUN...]")
@checks_options
def lint(runs: tuple[Path, ...], **options: Any) -> int:
    """Check runs for problems that make scores misleading.

    The same as karat check for runs.

    \b
    Examples:
      karat lint results
      karat lint results --ignore KRT102 --fail-on warning
      karat lint --explain KRT302

    Exit code: 0, or 1 if there is a finding of the level of --fail-on.
    """
    return check_runs(runs, **options)


def check_runs(
    runs: tuple[Path, ...], explain: str | None, list_checks: bool, **options: Any
) -> int:
    """Print the findings of the checks of runs, or what the checks are."""
    from karat.reporting.leaderboard_output import (
        print_check_documentation,
        print_checks,
        print_findings,
    )
    from karat.results.load import frozen_runs, require_results

    if explain is not None:
        return print_check_documentation(explain)
    if list_checks:
        return print_checks()
    if not runs:
        raise DefinitionError("karat check needs a model, run folders, --list or --explain CODE.")
    require_results(frozen_runs(runs), "check")
    display = {"shape": options["shape"], "pool": options["pool"]}
    return print_findings(runs, options["ignore"], options["fail_on"], **display)


@click.command(context_settings=SETTINGS)
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@option("-a MODEL", "Test whether this model is better than that of -b.")
@option("-b MODEL", "The model that -a is compared with.")
@option(
    "--history RUN",
    "Compare this run folder with the others.  [default: with all next to it]",
    type=PATH,
)
@repeatable(
    "-m, --model NAME",
    "Without -a, -b and --history: compare only these models. Repeatable.",
    dest="models",
)
@option(
    "--metric NAME",
    "Compare on this metric only. Default: each task's primary metric; all metrics with --history.",
)
@option(
    "--on",
    "Compare scores of all questions of a fold, of the questions that all can answer "
    "(computed again), or test the stored predictions (only -a and -b).  [default: folds]",
    type=click.Choice(["folds", "common", "rows"]),
)
@option(
    "--test",
    "Test over tasks: max-T on ranks, as for the leaderboard's letters, or Wilcoxon's, of all "
    "pairs with Holm's correction.  [default: max-t]",
    type=click.Choice(["max-t", "wilcoxon"]),
)
@option("--views", "With --history: on corrupted test folds too.", is_flag=True)
@option(
    "--rope SIZE",
    "With -a and -b: differences up to this size count as equal.  [default: 0.01]",
    type=float,
)
@option(
    "--pool",
    "Without --history: which runs are one model, see karat leaderboard.  [default: variant]",
    type=click.Choice(["variant", "model", "none"]),
)
@cluster_option
@option(
    "--items",
    "With -a and -b: show the items that one model answers better than the other, both ways.",
    is_flag=True,
)
@option(
    "--by FEATURE",
    "With -a, or -a and -b: find slices of items on which a model is worse. FEATURE is auto, "
    "group, class, length, missing (cells), or a column of the data.",
)
@repeatable("-t, --task TASK", "With --items or --by: only this task. Repeatable.", dest="tasks")
@option("--top N", "With --items or --by: show N rows.  [default: 10]", type=click.IntRange(1))
@format_option
@option("-o, --output FOLDER", "Also write the tables as CSV into this folder.")
def compare(shape: str | None, output: str | None, **options: Any) -> int:
    """Test which models differ, or compare a run with earlier ones.

    With -a and -b, test whether one model is better than another. Without, test all pairs of
    models. With --history, compare one run with others. RUN is a run folder or a folder that
    contains run folders.  [default: results]

    A MODEL is the name of a model in the runs, or a run folder. Models are paired by task and
    fold; the output has confidence intervals and corrected p-values.

    \b
    Examples:
      karat compare results -a skrub -b onehot
      karat compare results
      karat compare results -a skrub -b onehot --items --task adult -o flips
      karat compare results -a skrub -b onehot --by auto
      karat compare --history results/onehot.tables.default.local.20261115T201300
    """
    from karat.analysis.all_pairs import compare_all
    from karat.analysis.comparison import compare as compare_two
    from karat.analysis.history import compare_to_history
    from karat.output.result import show

    about_items = {name: options.pop(name) for name in ("items", "by", "tasks", "top")}
    if any(about_items.values()):
        return _compare_items(shape, output, about_items, options)
    _check_folders(options["runs"])
    chosen = _chosen_options(options)
    runs = options["runs"] or ("results",)
    result: Result
    if options["a"]:
        result = compare_two(runs, options["a"], options["b"], **chosen)
    elif options["history"]:
        result = compare_to_history(options["history"], with_=options["runs"] or None, **chosen)
    else:
        result = compare_all(runs, **chosen)
    show(result, shape)
    for path in result.to_csv(output) if output else ():
        click.echo(path, err=True)
    return 0


def _check_folders(words: Sequence[str]) -> None:
    """Refuse the names of two models in the place of run folders."""
    if len(words) == 2 and not any(Path(word).exists() for word in words):
        first, second = words
        raise DefinitionError(
            f"{first} and {second} are no run folders; name models with -a and -b: "
            f"karat compare results -a {first} -b {second}"
        )


def _compare_items(
    shape: str | None, output: str | None, chosen: dict[str, Any], options: dict[str, Any]
) -> int:
    """Show the items or slices on which two models differ."""
    from karat.analysis.items import compare_items
    from karat.analysis.slices import compare_slices
    from karat.output.result import show

    by, a, b = chosen["by"], options["a"], options["b"]
    fit = ("runs", "a", "b", "pool", *(["cluster"] if by else []))
    used = [name for name, value in options.items() if name not in fit and value]
    unfit = ["--model" if name == "models" else f"--{name}" for name in used]
    problems = [f"{option} cannot be used with --items or --by." for option in unfit]
    if chosen["items"] and by:
        problems.append("--items and --by are two questions; use one of them.")
    elif not chosen["items"] and not by:
        problems.append("--task and --top require --items or --by.")
    if not a or (chosen["items"] and not b):
        problems.append("--items requires -a and -b." if chosen["items"] else "--by requires -a.")
    if problems:
        raise DefinitionError(*problems)
    runs, top = options["runs"] or ("results",), chosen["top"] or 10
    pool = {"pool": options["pool"]} if options["pool"] else {}
    result: ItemComparison | SliceComparison
    if by:
        result = compare_slices(
            runs, a, b, by=by, tasks=chosen["tasks"], cluster=options["cluster"], **pool
        )
    else:
        result = compare_items(runs, a, b, tasks=chosen["tasks"], **pool)
    show(replace(result, top=top), shape)
    for path in result.to_csv(output) if output else ():
        click.echo(path, err=True)
    return 0


def _chosen_options(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given; raise ``DefinitionError`` if they do not go together."""
    names = {
        "-a and -b": {"metric", "on", "rope", "pool", "test", "cluster"},
        "--history": {"metric", "on", "views"},
        "a comparison of all models": {"metric", "models", "test", "pool", "cluster"},
    }
    two = bool(settings["a"] or settings["b"])
    question = list(names)[0 if two else 1 if settings["history"] else 2]
    options = {k: v for k, v in settings.items() if k not in ("runs", "a", "b", "history")}
    options = {k: v for k, v in options.items() if not any(v is x for x in (None, False, ()))}
    unfit = sorted(options.keys() - names[question])
    wrong = ["--model" if name == "models" else f"--{name}" for name in unfit]
    wrong += ["--history"] if two and settings["history"] else []
    wrong += ["--on rows"] if question == "--history" and settings["on"] == "rows" else []
    problems = [f"{option} cannot be used with {question}." for option in wrong]
    if two and not (settings["a"] and settings["b"]):
        problems.append("-a and -b must be given together.")
    if problems:
        raise DefinitionError(*problems)
    return options
