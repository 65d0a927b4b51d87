"""``karat geval``: GEval's command line with its parameter names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli_options import SETTINGS


def _switch(name: str, text: str) -> Any:
    """Return an option that is a flag or takes "true" or "false"."""
    return click.option(name, is_flag=False, flag_value="true", metavar="[true|false]", help=text)


@click.command(context_settings=SETTINGS)
@click.option(
    "--vector_file",
    "--vectors_file",
    "--vector_filename",
    "vector_filename",
    metavar="FILE",
    help="Vectors to evaluate: a text file with one entity per line, or HDF5.",
)
@click.option("--vector_file_format", metavar="NAME", help="txt, hdf5, npz, etc.  [default: txt]")
@click.option(
    "--vector_size", metavar="N", help="Expected number of dimensions.  [default: as in the file]"
)
@click.option(
    "--tasks",
    multiple=True,
    metavar="NAME",
    help="Class, Reg, Clu, DocSim, EntRel, SemAn or their long names, separated by commas or "
    "repeated.  [default: _all]",
)
@click.option(
    "--similarity_metric",
    "--similarity_function",
    metavar="NAME",
    help="A scikit-learn metric or package.module:function.  [default: cosine]",
)
@click.option(
    "--top_k",
    metavar="N",
    help="Analogies: count the answer as correct if it is among the N nearest.  [default: 2]",
)
@click.option("--analogy_function", metavar="package.module:function")
@click.option(
    "--compare_with", multiple=True, metavar="ID", help="Earlier run. Repeatable.  [default: _all]"
)
@_switch("--parallel", "Use several processes.")
@_switch("--debugging_mode", "Print one line per job, also to the log.")
@click.option("--protocol", metavar="NAME", help="corrected or legacy.  [default: corrected]")
@click.option("--gold_directory_path", metavar="DIR", help="GEval data in its original layout.")
@click.option("--result_directory_path", metavar="DIR", help="Output folder.  [default: results]")
@click.option(
    "--parameters",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="XML file with parameters; options on the command line take precedence.",
)
def geval(parameters: Path | None, **given: Any) -> int:
    """Evaluate node embeddings on the six GEval tasks.

    Writes the result files of GEval.

    \b
    Examples:
      karat geval --vector_file vectors.txt --vector_size 200 --tasks Class,Reg
      karat geval --vector_file vectors.h5 --vector_file_format hdf5 --parallel
      karat geval --parameters parameters.xml --protocol legacy
    """
    from dataclasses import replace

    from karat.compat.geval.command import run
    from karat.compat.geval.parameters import Parameters, from_xml

    chosen = {name: value for name, value in given.items() if value not in (None, ())}
    if "tasks" in chosen:
        chosen["tasks"] = ",".join(chosen["tasks"])
    if parameters is not None:
        return run(replace(from_xml(parameters), **chosen))
    if "vector_filename" not in chosen:
        raise click.UsageError("missing option --vector_file FILE (or --parameters FILE).")
    return run(Parameters(**chosen))
