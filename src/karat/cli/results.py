"""The commands that read run folders: leaderboard, compare, lint, report and others."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from karat.cli.options import (
    PATH,
    SETTINGS,
    as_run_folders,
    cluster_option,
    define_option,
    format_option,
    ignore_option,
    margin_option,
    option,
    pool_option,
    print_error,
    repeatable,
    run_folders,
)
from karat.errors import DataError, DefinitionError, KaratError


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
def leaderboard(runs: tuple[Path, ...], shape: str | None, **given: Any) -> None:
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
    if given.pop("next_task"):
        _print_next_task(runs, shape, given)
        return
    from karat.reporting.terminal import metric_by_task, parse_columns, print_leaderboard

    given["missing"] = _missing_rule(given.pop("missing"), given.pop("common"))
    given["metrics"] = metric_by_task(given["metrics"])
    given["columns"] = parse_columns(given["columns"])
    with as_run_folders(runs) as folders:
        where = "" if folders == list(runs) else "RUN..."
        print_leaderboard(folders, shape, where=where, **given)


def _missing_rule(rule: str | None, common: bool) -> str:
    if common and rule not in (None, "exclude", "common"):
        raise DefinitionError(f"--common conflicts with --missing {rule}; use one of them.")
    return "exclude" if common else rule or "worst"


def _print_next_task(runs: tuple[Path, ...], shape: str | None, given: dict[str, Any]) -> None:
    from karat.reporting.next_task_output import print_next_task

    given["missing"] = _missing_rule(given.pop("missing"), given.pop("common"))
    if given.pop("cluster"):
        raise DefinitionError("--cluster is for tests on items; --next has none: leave it out.")
    given.pop("ignore")  # findings are not printed
    with as_run_folders(runs) as folders:
        print_next_task(folders, shape, **given)


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
def robustness(runs: tuple[Path, ...], shape: str | None, **given: Any) -> None:
    """Report how much corrupted data lowers the scores.

    Columns: retention, area under the severity curve, worst case, mCE and relative mCE.

    \b
    Examples:
      karat robustness results
      karat robustness results --baseline logistic-regression --format markdown
    """
    from karat.reporting.terminal import show_robustness

    show_robustness(list(runs), shape, **given)


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
    from karat.reporting.terminal import show_rescored
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
        except KaratError as error:
            print_error(str(error))
            code = 1
        else:
            scores += len(rescored.scores)
            code = max(code, show_rescored(rescored, written))
    if not scores and not code:
        raise DataError("nothing was rescored: the runs have no stored predictions.")
    return code


@click.command("import", context_settings=SETTINGS)
@click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILE...")
@option("-o, --output DIR", "Where to write run folders.", default="results")
@option(
    "--as NAME",
    "System that wrote the files: amlb, geval, mteb, multabench, tabarena, tabeb, taco, ulysses.  "
    "[default: detect]",
    dest="system",
)
@option("--model NAME", "Model name, if the files do not contain it.")
def import_(files: tuple[Path, ...], output: str, system: str | None, model: str | None) -> int:
    """Import result files of other systems as run folders.

    \b
    Examples:
      karat import results.csv -o imported
      karat import mteb-results/no-revision --model my-encoder -o imported
      karat import taco/metrics_*.csv --as taco -o imported
      karat import multabench/leaderboard/models --as multabench -o imported

    Exit code: 0 all files were imported, 1 some were not, 2 none could be.
    """
    from karat.compat.convert import import_results

    imported = import_results(list(files), output, system=system, model=model)
    for run in imported.runs:
        click.echo(run.folder)
    for note in imported.notes:
        click.echo(f"note: {note}", err=True)
    for problem in imported.problems:
        print_error(problem)
    return 1 if imported.problems else 0


@click.command(context_settings=SETTINGS)
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
    "--cost",
    "What a model costs: price (of endpoints), seconds (to encode and predict one question), bytes "
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
def cheapest(runs: tuple[Path, ...], shape: str | None, output: str | None, **given: Any) -> int:
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
    from karat.analysis.cheapest import cheapest as find
    from karat.reporting.comparison_output import show_cheapest

    found = find(runs, **given)
    show_cheapest(found, shape)
    for path in found.to_csv(output) if output else ():
        click.echo(path, err=True)
    return {"found": 0, "none": 1, "undecided": 3}[found.outcome]


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
    suite: str, runs: tuple[Path, ...], output: Path | None, shape: str | None, **given: Any
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
    from karat.analysis.shrink import shrink as find
    from karat.reporting.comparison_output import show_shrunk

    name, define = given.pop("name"), given.pop("define")
    with as_run_folders(runs) as folders:
        found = find(suite, folders, define=define, **given)
    show_shrunk(found, shape)
    if output is not None:
        named = found.write(output, name, define)
        files = " ".join(f"--define {shlex.quote(str(file))}" for file in (*define, output))
        click.echo(f"karat run {shlex.quote(named)} {files}", err=True)


@click.command(context_settings=SETTINGS)
@run_folders
@option("-o, --output FILE", "Output file.", default="report.html")
@option("--title TEXT", "Title of the page.  [default: the names of the suites]")
@option("--umap", "Also project vectors with UMAP (slow).", is_flag=True)
@cluster_option
@pool_option
def report(runs: tuple[Path, ...], output: str, **given: Any) -> None:
    """Write an interactive report as one HTML file.

    The file contains the leaderboard, curves, maps of vectors, predictions, failures, datasets and
    provenance. It works offline and needs no other file.

    \b
    Examples:
      karat report results
      karat report results/*.taco.* -o taco.html --title "TACO, November"
    """
    from karat.reporting.page import report as write

    click.echo(write(list(runs), output, **given))


@click.command(context_settings=SETTINGS)
@run_folders
@option(
    "--as NAME",
    "Target format: amlb (results.csv as documented), amlb-new (results.csv as current AMLB "
    "writes it), amlb-report (the tables of its reports), every-eval-ever, geval, model-card (of "
    "the Hugging Face hub), mteb (a JSON file per task), taco, or ulysses (data frame, aggregates "
    "and summary).",
    dest="system",
    required=True,
)
@option("-o, --output DIR", "Output folder.", default="export")
@option("--plots", "Also plot curves and bars.", type=click.Choice(["png", "svg"]))
def export(runs: tuple[Path, ...], system: str, output: str, plots: str | None) -> None:
    """Write scores in the file format of another benchmark.

    \b
    Examples:
      karat export results --as taco -o taco --plots png
      karat export results --as ulysses -o ulysses
      karat export results --as mteb -o for-mteb
      karat export results --as model-card -o cards
    """
    from karat.compat.convert import export_results
    from karat.compat.taco.result_files import plot_runs

    for path in export_results(list(runs), system, output):
        click.echo(path)
    for path in plot_runs(list(runs), output, shape=plots) if plots else ():
        click.echo(path)


@click.command(context_settings=SETTINGS)
@click.argument("kind")
@run_folders
@option("-o, --output FILE", "A .svg, .pdf or .png file.  [default: KIND.svg]")
@repeatable(
    "-t, --task TASK[=METRIC]",
    "Plot only this task, optionally with another metric. Repeatable.",
    dest="tasks",
)
@option("--top N", "Plot the N best models.", type=int)
@option(
    "--value NAME",
    "Quantity to plot. board: rank, elo, borda, wins, score, median; curves: severity, epoch; "
    "pareto: seconds, memory_mb, dimensions; cheapest: bytes, dimensions, price, seconds.",
)
@option("--missing RULE", "How to count missing scores, see karat leaderboard.", default="worst")
@option("--group NAME", "Plot this group of models that share tasks.  [default: a file for each]")
@pool_option
def plot(kind: str, runs: tuple[Path, ...], output: str | None, **given: Any) -> None:
    """Plot runs as an SVG, PDF or PNG file.

    KIND is board, heatmap, cd (critical differences), curves, strip, bars, pareto,
    cheapest or parallel.

    \b
    Examples:
      karat plot board results -o board.pdf
      karat plot cd results --top 12 -o differences.svg
      karat plot strip results -t adult=acc -t penguins -o folds.png
      karat plot pareto results --value memory_mb
    """
    from karat.reporting.plots import save_plot

    for path in save_plot(list(runs), kind, output, **given):
        click.echo(path)


@click.command(context_settings=SETTINGS)
@click.argument("runs", nargs=-1, type=PATH, metavar="[RUN...]")
@ignore_option
@option(
    "--fail-on",
    "Exit with code 1 if there is a finding of this level or a more severe one.",
    type=click.Choice(["error", "warning", "note"]),
)
@format_option
@pool_option
@option("--explain CODE", "Explain a check and how to fix its findings.")
@option("--list", "List all checks.", dest="list_checks", is_flag=True)
def lint(runs: tuple[Path, ...], explain: str | None, list_checks: bool, **given: Any) -> int:
    """Check runs for problems that make scores misleading.

    The checks find leakage, constant vectors, saturated tasks, differences within noise, etc.

    \b
    Examples:
      karat lint results
      karat lint results --ignore KRT102 --fail-on warning
      karat lint --explain KRT302

    Exit code: 0, or 1 if there is a finding of the level of --fail-on.
    """
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
        raise DefinitionError("karat lint needs run folders, --list or --explain CODE.")
    require_results(frozen_runs(runs), "check")
    shown = {"shape": given["shape"], "pool": given["pool"]}
    return print_findings(runs, given["ignore"], given["fail_on"], **shown)


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
def compare(shape: str | None, output: str | None, **given: Any) -> int:
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
    from karat.reporting.comparison_output import show_all_pairs, show_comparison, show_history

    about_items = {name: given.pop(name) for name in ("items", "by", "tasks", "top")}
    if any(about_items.values()):
        return _compare_items(shape, output, about_items, given)
    _check_folders(given["runs"])
    chosen = _chosen_options(given)
    runs = given["runs"] or ("results",)
    found: Any
    if given["a"]:
        found = compare_two(runs, given["a"], given["b"], **chosen)
        show_comparison(found, shape)
    elif given["history"]:
        found = compare_to_history(given["history"], with_=given["runs"] or None, **chosen)
        show_history(found, shape)
    else:
        found = compare_all(runs, **chosen)
        show_all_pairs(found, shape)
    for path in found.to_csv(output) if output else ():
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
    shape: str | None, output: str | None, asked: dict[str, Any], given: dict[str, Any]
) -> int:
    """Show the items or slices on which two models differ."""
    from karat.analysis.items import compare_items
    from karat.analysis.slices import compare_slices
    from karat.reporting.comparison_output import show_items, show_slices

    by, a, b = asked["by"], given["a"], given["b"]
    fit = ("runs", "a", "b", "pool", *(["cluster"] if by else []))
    used = [name for name, value in given.items() if name not in fit and value]
    unfit = ["--model" if name == "models" else f"--{name}" for name in used]
    problems = [f"{option} cannot be used with --items or --by." for option in unfit]
    if asked["items"] and by:
        problems.append("--items and --by are two questions; use one of them.")
    elif not asked["items"] and not by:
        problems.append("--task and --top require --items or --by.")
    if not a or (asked["items"] and not b):
        problems.append("--items requires -a and -b." if asked["items"] else "--by requires -a.")
    if problems:
        raise DefinitionError(*problems)
    runs, top = given["runs"] or ("results",), asked["top"] or 10
    pool = {"pool": given["pool"]} if given["pool"] else {}
    found: Any
    if by:
        found = compare_slices(
            runs, a, b, by=by, tasks=asked["tasks"], cluster=given["cluster"], **pool
        )
        show_slices(found, shape, top)
    else:
        found = compare_items(runs, a, b, tasks=asked["tasks"], **pool)
        show_items(found, shape, top)
    for path in found.to_csv(output) if output else ():
        click.echo(path, err=True)
    return 0


def _chosen_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given; raise ``DefinitionError`` if they do not go together."""
    names = {
        "-a and -b": {"metric", "on", "rope", "pool", "test", "cluster"},
        "--history": {"metric", "on", "views"},
        "a comparison of all models": {"metric", "models", "test", "pool", "cluster"},
    }
    two = bool(given["a"] or given["b"])
    question = list(names)[0 if two else 1 if given["history"] else 2]
    options = {k: v for k, v in given.items() if k not in ("runs", "a", "b", "history")}
    options = {k: v for k, v in options.items() if not any(v is x for x in (None, False, ()))}
    unfit = sorted(options.keys() - names[question])
    wrong = ["--model" if name == "models" else f"--{name}" for name in unfit]
    wrong += ["--history"] if two and given["history"] else []
    wrong += ["--on rows"] if question == "--history" and given["on"] == "rows" else []
    problems = [f"{option} cannot be used with {question}." for option in wrong]
    if two and not (given["a"] and given["b"]):
        problems.append("-a and -b must be given together.")
    if problems:
        raise DefinitionError(*problems)
    return options


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
    models: tuple[str, ...], items: Path | None, save: Path | None, shape: str | None, **given: Any
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
    from karat.analysis.same_encoder import Fingerprint, Tasks, read_items
    from karat.analysis.same_encoder import same as compare_encoders
    from karat.reporting.comparison_output import show_same

    define = given.pop("define")
    chosen = read_items(items) if items else None
    if len(models) != (1 if save else 2):
        needed = "one model" if save else "two models"
        raise DefinitionError(f"karat same needs {needed}, got {len(models)}.")
    if save:
        click.echo(Fingerprint.of(models[0], chosen, define).save(save))
        return 0
    every, options = (
        given.pop("every"),
        {k: given.pop(k) for k in ("suite", "only", "output", "cluster")},
    )
    tasks = Tasks(list(given.pop("runs")) or None, **options)
    more = {"every_level": every, "tasks": tasks, "define": define}
    found = compare_encoders(models[0], models[1], items=chosen, **more, **given)
    show_same(found, shape)
    return found.exit_code


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
def gate(new: str | None, against: Path | None, calibrate: Path | None, **given: Any) -> int:
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
    from karat.analysis.gate import NewRuns, calibrate_gate
    from karat.analysis.gate import gate as compare_to_baseline
    from karat.reporting.comparison_output import show_gate, show_rates

    shape, chosen = given["shape"], {name: given[name] for name in ("margin", "tasks", "cluster")}
    if calibrate is not None:
        if new or against:
            raise DefinitionError("--calibrate cannot be used with NEW or --against.")
        rates = calibrate_gate(calibrate, **chosen)
        show_rates(rates, shape)
        click.echo(rates.save(calibrate), err=True)
        return 0
    if not new or against is None:
        raise DefinitionError("karat gate needs NEW and --against BASELINE, or --calibrate.")
    chosen["model"] = given["model"]
    names = ("suite", "output", "workers", "define", "all_tasks")
    how = NewRuns(**{name: given[name] for name in names})
    found = compare_to_baseline(new, against, **chosen, run=how)
    show_gate(found, shape)
    mapped = {"pass": 0, "fail": 1}.get(given["undecided"], found.exit_code)
    return mapped if found.exit_code == 3 else found.exit_code


@click.command(context_settings=SETTINGS)
@run_folders
@repeatable(
    "--against RUN",
    "Run folder, or folder of runs, whose predictions must not be equal. Repeatable.",
    type=PATH,
)
@option("--jobs N", "Number of jobs to run again.", type=click.IntRange(0), default=3)
@option("--seed N", "Seed of the sample of these jobs.  [default: random]", type=click.IntRange(0))
@option(
    "-m, --model MODEL",
    "The model to run again, as for karat run.  [default: the built-in or defined one with the "
    "name in the run]",
)
@option("--suite NAME", "The suite of the run.  [default: the defined one with this name]")
@option(
    "--data FILE",
    "The table file of a run on a table.  [default: the file that the run names]",
    type=PATH,
)
@define_option
@format_option
def verify(runs: tuple[Path, ...], shape: str | None, **given: Any) -> int:
    """Check that the results of runs can be trusted.

    Checks the records and the data, computes every score again from the predictions, runs a sample
    of jobs again if the model is at hand, and finds copied predictions and impossible times. RUN is
    a run folder or a folder that contains run folders.

    \b
    Examples:
      karat verify results/NEW
      karat verify results/NEW --against results --jobs 10
      karat verify results/NEW -m my_module:MyEncoder --format markdown
      karat verify out --data moved/churn.csv

    Exit code: 0 not refused, 1 refused, 2 invalid input. A run is verified only if all checks were
    made.
    """
    from karat.analysis.verification import verify as verify_run
    from karat.reporting.comparison_output import show_verifications
    from karat.results.load import require_results
    from karat.results.run import open_runs

    several = open_runs(runs, damaged=True)
    if given["model"] is not None and len(several) > 1:
        raise DefinitionError(f"--model needs one run, got {len(several)}.")
    found = [verify_run(run, **given) for run in several]
    show_verifications(found, shape)
    if any(each.refused for each in found):
        return 1
    require_results(several, "verify")
    return 0


@click.command(context_settings=SETTINGS)
@run_folders
@option("-o, --output DIR", "Folder of the site.", default="site")
@option("--title TEXT", "Title of the site.  [default: the names of the suites]")
@pool_option
def site(runs: tuple[Path, ...], output: str, **given: Any) -> None:
    """Write a static site with a page per model and task.

    It has the leaderboard, the report, and JSON of every page. RUN is a run folder or a folder that
    contains run folders.

    \b
    Examples:
      karat site results
      karat site results -o public --title "Table encoders"
    """
    from karat.reporting.site import site as write

    made = write(list(runs), output, **given)
    click.echo(f"{made[1]}   ({len(made):,} files)")
