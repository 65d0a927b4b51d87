"""The commands that read and write result files of other systems, and GEval's command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli.options import (
    PATH,
    SETTINGS,
    define_option,
    option,
    print_error,
    repeatable,
    run_folders,
)


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
    from karat.ext.compat.convert import import_results

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
    from karat.ext.compat.convert import export_results

    for path in export_results(list(runs), system, output):
        click.echo(path)
    if plots:
        from karat.ext.compat.taco.taco_plots import plot_runs

        for path in plot_runs(list(runs), output, shape=plots):
            click.echo(path)


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
@option("--svm_gamma NAME", "Gamma of the SVM, scale or auto (recorded results).  [default: scale]")
@option("--result_name NAME", "Name of the folder of this run.  [default: result_ and the time]")
@option("--workers N", "Number of processes.  [default: all cores with --parallel, or none]")
@option("-c, --constraint NAME", "Limits of every job (karat list constraints).")
@define_option
@option(
    "--parameters FILE",
    "XML file with parameters; options on the command line take precedence.",
    type=click.Path(path_type=Path),
)
def geval(parameters: Path | None, **options: Any) -> int:
    """Evaluate node embeddings on the six GEval tasks.

    Writes the result files of GEval.

    \b
    Examples:
      karat geval --vector_file vectors.txt --vector_size 200 --tasks Class,Reg
      karat geval --vector_file vectors.h5 --vector_file_format hdf5 --parallel
      python -m karat.compat.geval --parameters parameters.xml --protocol legacy

    Exit code: 0, 1 if a job failed, 2 after an error or if a gold standard is missing.
    """
    from dataclasses import replace

    from karat.ext.compat.geval.gold import Parameters, from_xml
    from karat.ext.compat.geval.manager import run_geval

    chosen = {name: value for name, value in options.items() if value not in (None, ())}
    for name in {"tasks", "datasets"} & {*chosen}:
        chosen[name] = ",".join(chosen[name])
    if parameters is not None:
        return run_geval(replace(from_xml(parameters), **chosen))
    if "vector_filename" not in chosen:
        raise click.UsageError("missing option --vector_file FILE (or --parameters FILE).")
    return run_geval(Parameters(**chosen))
