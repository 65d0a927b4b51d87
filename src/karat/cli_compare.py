"""``karat compare``: a run beside earlier ones, a model beside another, many beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli_options import SETTINGS, options
from karat.errors import DefinitionError

what_to_compare = options(
    click.argument("names", nargs=-1, metavar="RUN | A B | A B C…"),
    click.option(
        "--in",
        "folders",
        multiple=True,
        metavar="DIR",
        help="Where models are looked for by name: a folder of runs. Repeatable.  [default: "
        "results]",
    ),
    click.option(
        "--with",
        "others",
        multiple=True,
        metavar="RUN",
        help="Of one RUN: a run folder, or the name of one beside RUN. Repeatable; without it all "
        "beside RUN.",
    ),
    click.option(
        "--common", is_flag=True, help="Only the questions that all runs know, scored again."
    ),
    click.option(
        "--rows",
        is_flag=True,
        help="Of two models: test each task on its stored predictions, with McNemar's test or a "
        "paired bootstrap.",
    ),
    click.option(
        "--metric",
        metavar="NAME",
        help="One metric: instead of all of each task, of two or more models instead of its first.",
    ),
    click.option("--views", is_flag=True, help="Of one RUN: on corrupted test folds too."),
    click.option(
        "--rope",
        type=float,
        metavar="SIZE",
        help="Of two models: differences up to this size count as none.  [default: 0.01]",
    ),
    click.option(
        "--fail-on-regression",
        "tolerance",
        type=float,
        metavar="SIZE",
        help="A is the old and B the new: exit code 1 where B is worse on any task by more than "
        "SIZE, or has no score.",
    ),
    click.option("--csv", "folder", metavar="FOLDER", help="Write the tables there as well."),
    click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON."),
    click.option("--markdown", is_flag=True, help="Of two models or more: print it as Markdown."),
)


@click.command(context_settings=SETTINGS)
@what_to_compare
def compare(names: tuple[str, ...], folder: str | None, as_json: bool, **given: Any) -> int:
    """Tell how RUN stands beside earlier runs, or whether model A is better than B.

    One RUN: values, ranks and coverage beside all earlier runs, task by task. Two, each a run
    folder or the name of a model in the runs of --in: paired by task and fold, with intervals,
    corrected p-values and a verdict. Three or more, or none and --in: all pairs of models.

    \b
    Examples:
      karat compare results/onehot.quickstart.default.local.20261115T201300
      karat compare skrub onehot
      karat compare OLD NEW --fail-on-regression 0.01
      karat compare skrub onehot random --in results --in others

    Exit code: 0 compared, 1 a regression was found where that was asked, 2 wrong input.
    """
    _check(len(names), given)
    if len(names) == 1:
        found, code = _beside(names[0], given, as_json), 0
    elif len(names) == 2:
        found, code = _two(names, given, as_json)
    else:
        found, code = _many(names, given, as_json), 0
    for path in found.to_csv(folder) if folder else ():
        click.echo(path, err=True)
    return code


#: which options are about how many models, by how they are given
_ONLY = {
    "one run": {"others": "--with", "views": "--views"},
    "two models": {"rope": "--rope", "rows": "--rows", "tolerance": "--fail-on-regression"},
}


def _check(many: int, given: dict[str, Any]) -> None:
    """Say which options do not go with so many names."""
    if not many and not given["folders"]:
        raise DefinitionError("name a run, two models, or --in DIR to compare all models there.")
    wrong = []
    for who, names in _ONLY.items():
        if many != (1 if who == "one run" else 2):
            wrong += [
                f"{option} is about {who}." for key, option in names.items() if _is(given[key])
            ]
    if many == 1:
        wrong += ["--in is about models by name; name two."] if given["folders"] else []
        wrong += ["--markdown is about two models or more."] if given["markdown"] else []
    if many not in (1, 2) and given["common"]:
        wrong.append("--common is about one run or two models.")
    if given["common"] and given["rows"]:
        wrong.append("--rows is on common questions already; leave out --common.")
    if wrong:
        raise DefinitionError(*wrong)


def _is(value: Any) -> bool:
    return value is not None and value is not False and value != ()


def _beside(run: str, given: dict[str, Any], as_json: bool) -> Any:
    from karat.report.comparison import show_comparison
    from karat.results.compare import compare as look

    how = {name: given[name] for name in ("metric", "common", "views")}
    found = look(Path(run), list(given["others"]) or "all", **how)
    show_comparison(found, as_json=as_json)
    return found


def _two(names: tuple[str, ...], given: dict[str, Any], as_json: bool) -> tuple[Any, int]:
    from karat.report.verdict import show_verdict
    from karat.results.verdict import ROPE, verdict

    tolerance = given["tolerance"]
    # of an old and a new one, the new one is what is asked about
    first, second = names if tolerance is None else names[::-1]
    on = "rows" if given["rows"] else "common" if given["common"] else "folds"
    rope = ROPE if given["rope"] is None else given["rope"]
    runs = given["folders"] or ("results",)
    found = verdict(runs, first, second, metric=given["metric"], rope=rope, on=on)
    worse = None if tolerance is None else found.regressions(tolerance)
    show_verdict(found, _shape(given, as_json), worse)
    return found, 0 if worse is None or not len(worse) else 1


def _many(names: tuple[str, ...], given: dict[str, Any], as_json: bool) -> Any:
    from karat.report.verdict import show_contests
    from karat.results.contests import contest_runs

    found = contest_runs(given["folders"] or ("results",), names, metric=given["metric"])
    show_contests(found, _shape(given, as_json))
    return found


def _shape(given: dict[str, Any], as_json: bool) -> str:
    return "json" if as_json else "markdown" if given["markdown"] else "table"
