"""``karat compare``: one model against another, all models, or a run against earlier ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli_options import SETTINGS, options
from karat.errors import DefinitionError

FORMATS = ("table", "markdown", "json")

what_to_compare = options(
    click.argument("runs", nargs=-1, metavar="[RUNS]..."),
    click.option("-a", metavar="MODEL", help="Is this model better than that of -b?"),
    click.option("-b", metavar="MODEL", help="The model that -a is compared with."),
    click.option(
        "--history",
        metavar="RUN",
        help="Compare this run folder with RUNS.  [default RUNS: all next to it]",
    ),
    click.option(
        "-m",
        "--model",
        "models",
        multiple=True,
        metavar="NAME",
        help="Without -a, -b and --history: compare only these models. Repeatable.",
    ),
    click.option(
        "--metric",
        metavar="NAME",
        help="Compare on this metric only. Default: each task's primary metric; all metrics with "
        "--history.",
    ),
    click.option(
        "--on",
        type=click.Choice(["folds", "common", "rows"]),
        help="Compare scores of all questions of a fold, of the questions that all can answer "
        "(computed again), or test the stored predictions (only -a and -b).  [default: folds]",
    ),
    click.option("--views", is_flag=True, help="With --history: on corrupted test folds too."),
    click.option(
        "--rope",
        type=float,
        metavar="SIZE",
        help="With -a and -b: differences up to this size count as equal.  [default: 0.01]",
    ),
    click.option(
        "--fail-on-regression",
        "tolerance",
        type=float,
        metavar="SIZE",
        help="With -a and -b: exit code 1 if -a is worse than -b on any task by more than SIZE, "
        "or has no score.",
    ),
    click.option(
        "--format", "shape", type=click.Choice(FORMATS), default="table", show_default=True
    ),
    click.option(
        "-o", "--output", metavar="FOLDER", help="Also write the tables as CSV into this folder."
    ),
)


@click.command(context_settings=SETTINGS)
@what_to_compare
def compare(output: str | None, **given: Any) -> int:
    """Compare models: -a with -b, all models of RUNS, or one run with earlier ones (--history).

    RUNS are run folders or folders of runs.  [default: results]

    A MODEL is the name of a model in RUNS, or a run folder. Models are paired by task and fold; the
    output has confidence intervals and corrected p-values.

    \b
    Examples:
      karat compare results -a skrub -b onehot
      karat compare -a NEW_RUN -b OLD_RUN --fail-on-regression 0.01
      karat compare results
      karat compare --history results/onehot.quickstart.default.local.20261115T201300

    Exit code: 0 compared, 1 regression found with --fail-on-regression, 2 wrong input.
    """
    question = "two" if given["a"] or given["b"] else "history" if given["history"] else "all"
    _check(question, given)
    found, code = {"two": _two, "history": _history, "all": _all}[question](given)
    for path in found.to_csv(output) if output else ():
        click.echo(path, err=True)
    return code


#: how each question is asked, and the options that only some questions have
_CHOSEN = {"two": "-a and -b", "history": "--history", "all": "a comparison of all models"}
_OPTIONS = {
    "--history": ("history", {"history"}),
    "--model": ("models", {"all"}),
    "--on": ("on", {"two", "history"}),
    "--views": ("views", {"history"}),
    "--rope": ("rope", {"two"}),
    "--fail-on-regression": ("tolerance", {"two"}),
}


def _check(question: str, given: dict[str, Any]) -> None:
    """Raise ``DefinitionError`` for options that do not go together."""
    wrong = [
        f"{option} cannot be used with {_CHOSEN[question]}."
        for option, (key, questions) in _OPTIONS.items()
        if question not in questions and not any(given[key] is unset for unset in (None, False, ()))
    ]
    if question == "two" and not (given["a"] and given["b"]):
        wrong.append("-a and -b must be given together.")
    if question == "history" and given["on"] == "rows":
        wrong.append("--on rows cannot be used with --history.")
    if wrong:
        raise DefinitionError(*wrong)


def _two(given: dict[str, Any]) -> tuple[Any, int]:
    from karat.report.verdict import show_verdict
    from karat.results.either import compare as compare_two
    from karat.results.verdict import ROPE

    found = compare_two(
        given["runs"] or ("results",),
        given["a"],
        given["b"],
        metric=given["metric"],
        rope=ROPE if given["rope"] is None else given["rope"],
        on=given["on"] or "folds",
    )
    worse = None if given["tolerance"] is None else found.regressions(given["tolerance"])
    show_verdict(found, given["shape"], worse)
    return found, 0 if worse is None or not len(worse) else 1


def _all(given: dict[str, Any]) -> tuple[Any, int]:
    from karat.report.verdict import show_contests
    from karat.results.either import compare_all

    runs = given["runs"] or ("results",)
    found = compare_all(runs, models=given["models"], metric=given["metric"])
    show_contests(found, given["shape"])
    return found, 0


def _history(given: dict[str, Any]) -> tuple[Any, int]:
    from karat.report.comparison import comparison_table, show_comparison
    from karat.report.formats import to_markdown
    from karat.results.either import compare_to_history

    found = compare_to_history(
        Path(given["history"]),
        with_=given["runs"] or None,
        metric=given["metric"],
        on=given["on"] or "folds",
        views=given["views"],
    )
    if given["shape"] == "markdown":
        click.echo(to_markdown(comparison_table(found)), nl=False)
    else:
        show_comparison(found, as_json=given["shape"] == "json")
    return found, 0
