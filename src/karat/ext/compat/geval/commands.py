"""The command that runs GEval's tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli.options import SETTINGS, define_option, option, repeatable


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

    from karat.ext.compat.geval.gold import Parameters, from_xml
    from karat.ext.compat.geval.manager import run_geval

    chosen = {name: value for name, value in given.items() if value not in (None, ())}
    for name in {"tasks", "datasets"} & {*chosen}:
        chosen[name] = ",".join(chosen[name])
    if parameters is not None:
        return run_geval(replace(from_xml(parameters), **chosen))
    if "vector_filename" not in chosen:
        raise click.UsageError("missing option --vector_file FILE (or --parameters FILE).")
    return run_geval(Parameters(**chosen))
