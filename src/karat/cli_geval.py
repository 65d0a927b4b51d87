"""``karat geval``: GEval's command line, with the names of its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli_options import SETTINGS


def _switch(name: str, about: str) -> Any:
    """Return an option that is a flag, or takes true and false."""
    return click.option(name, is_flag=False, flag_value="true", metavar="[true|false]", help=about)


@click.command(context_settings=SETTINGS)
@click.option(
    "--vector_file",
    "--vectors_file",
    "--vector_filename",
    "vector_filename",
    metavar="FILE",
    help="The vectors to evaluate: one entity per line, or HDF5.",
)
@click.option("--vector_file_format", metavar="NAME", help="txt, hdf5, npz, …  [txt]")
@click.option("--vector_size", metavar="N", help="Checked; else as in the file.")
@click.option(
    "--tasks",
    multiple=True,
    metavar="NAME",
    help="Class, Reg, Clu, DocSim, EntRel, SemAn, or their long names, with commas or repeated. "
    "[_all]",
)
@click.option(
    "--similarity_metric",
    "--similarity_function",
    metavar="NAME",
    help="A metric of scikit-learn, or package.module:function.  [cosine]",
)
@click.option("--top_k", metavar="N", help="Analogies: right if among so many.  [2]")
@click.option("--analogy_function", metavar="package.module:function")
@click.option(
    "--compare_with", multiple=True, metavar="ID", help="Earlier runs. Repeatable.  [_all]"
)
@_switch("--parallel", "Several processes at once.")
@_switch("--debugging_mode", "A line for every job, also in the log.")
@click.option("--protocol", metavar="NAME", help="corrected or legacy.  [corrected]")
@click.option("--gold_directory_path", metavar="DIR", help="GEval's data, laid out as there.")
@click.option("--result_directory_path", metavar="DIR", help="[results]")
@click.option(
    "--parameters",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="An XML file with parameters; those given here count more.",
)
def geval(parameters: Path | None, **given: Any) -> int:
    """Evaluate node embeddings on GEval's six tasks and write its files.

    \b
    Examples:
      karat geval --vector_file vectors.txt --vector_size 200 --tasks Class,Reg
      karat geval --vector_file vectors.h5 --vector_file_format hdf5 --parallel
      karat geval --parameters parameters.xml --protocol legacy
    """
    from dataclasses import fields, replace

    from karat.compat.geval.command import run
    from karat.compat.geval.parameters import Parameters, from_xml

    chosen = {name: value for name, value in given.items() if value not in (None, ())}
    if "tasks" in chosen:
        chosen["tasks"] = ",".join(chosen["tasks"])
    if parameters is not None:
        return run(replace(from_xml(parameters), **chosen))
    if "vector_filename" not in chosen:
        raise click.UsageError("say which file to evaluate: --vector_file FILE.")
    known = {field.name for field in fields(Parameters)}
    return run(Parameters(**{name: chosen[name] for name in chosen if name in known}))
