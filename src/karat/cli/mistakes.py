"""Commands and options that do not exist: one line that says what to type instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

import click

#: commands that people type, and what does that in Karat
INSTEAD = {
    "bench": "run",
    "benchmark": "run",
    "board": "leaderboard",
    "charts": "plot",
    "clean": "cache --clear",
    "datasets": "list datasets",
    "dashboard": "serve",
    "describe": "show",
    "diff": "compare",
    "eval": "run",
    "evaluate": "run",
    "fit": "run",
    "help": "--help",
    "html": "report",
    "info": "show",
    "ls": "list",
    "metrics": "list metrics",
    "models": "list models",
    "predict": "run",
    "rank": "leaderboard",
    "ranking": "leaderboard",
    "results": "leaderboard results",
    "resume": "run SUITE --resume",
    "score": "run",
    "search": "list",
    "show-results": "leaderboard results",
    "start": "run quickstart",
    "suites": "list suites",
    "summary": "leaderboard",
    "table": "leaderboard",
    "tasks": "list tasks",
    "test": "run",
    "train": "run",
    "ui": "serve",
    "upload": "export",
    "validate": "check",
    "version": "--version",
    "view": "show",
}
#: options that people type, and the one that does that in Karat, by command ("" is any)
OPTIONS_INSTEAD = {
    ("run", "--cv"): "--folds N",
    ("run", "--data"): "the table is the first argument: karat run FILE.csv --target COLUMN",
    ("run", "--dataset"): "-t TASK",
    ("run", "--encoder"): "-m NAME",
    ("run", "--fold"): "--folds N for the number of folds, --only-fold N to run one of them",
    ("run", "-f"): "--folds N for the number of folds, --only-fold N to run one of them",
    ("run", "--models"): "-m NAME, once for each model",
    ("run", "--label"): "--target COLUMN",
    ("run", "--n-jobs"): "--workers N",
    ("run", "--jobs"): "--workers N",
    ("run", "--predictor"): "-m NAME",
    ("run", "--random-state"): "--seed N",
    ("run", "--scoring"): "--metric NAME",
    ("run", "--suite"): "the suite is the first argument: karat run SUITE",
    ("run", "--tasks"): "-t NAME, once for each task",
    ("run", "--y"): "--target COLUMN",
    ("", "--json"): "--format json",
    ("", "--csv"): "--format csv",
    ("", "--out"): "--output",
}
#: kinds that people name, and the word of Karat
KINDS = {
    "binary": "classification",
    "encoders": "models",
    "md": "markdown",
    "multiclass": "classification",
    "predictors": "models",
    "tex": "latex",
    "text": "table",
}
#: what a missing argument is, with an example
EXAMPLES = {
    "check": "karat check my_module:MyEncoder",
    "compare": "karat compare results",
    "gate": "karat gate NEW --against BASELINE",
    "leaderboard": "karat leaderboard results",
    "plan": "karat plan quickstart",
    "plot": "karat plot cd results",
    "report": "karat report results",
    "robustness": "karat robustness results",
    "run": "karat run quickstart, or karat run churn.csv --target churn",
    "show": "karat show adult",
}


class Commands(click.Group):
    """A group of commands that knows what people call them elsewhere."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; the error for an unknown one names what to type."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            raise click.UsageError(_unknown_command(name, args[1:], self.list_commands(ctx)), ctx)
        return super().resolve_command(ctx, args)


def _unknown_command(name: str, rest: Sequence[str], commands: Sequence[str]) -> str:
    """Return the message for an unknown command.

    >>> _unknown_command("evaluate", ["quickstart"], ["run", "geval"])
    'there is no command "evaluate". Use: karat run quickstart'
    >>> _unknown_command("leaderbord", [], ["leaderboard"])
    'there is no command "leaderbord". Did you mean "leaderboard"?'
    """
    message = f'there is no command "{name}".'
    if name == "install":
        return f'{message} Use: pip install "karat[{",".join(rest) or "tables"}]"'
    if instead := INSTEAD.get(name.lower()):
        takes_rest = " " not in instead and not instead.startswith("-")
        return f"{message} Use: {' '.join(['karat', instead, *(rest if takes_rest else ())])}"
    if "." in name or "/" in name:
        return f"{message} To run a suite or a table: karat run {' '.join([name, *rest])}"
    if near := difflib.get_close_matches(name.lower(), commands, n=1):
        return f'{message} Did you mean "{near[0]}"?'
    return message


def usage_message(error: click.ClickException) -> str:
    """Return one line about a mistake in the words of a command: what is wrong, and what to do."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "karat"
    command = path.partition(" ")[2]
    return f"{_reworded(error, command)}   ({path} --help)"


def _reworded(error: click.ClickException, command: str) -> str:
    """Return the message of an error, in Karat's words where it can say more."""
    if isinstance(error, click.NoSuchOption):
        return _unknown_option(error, command)
    text = error.format_message()
    choice = getattr(getattr(error, "param", None), "type", None)
    if isinstance(choice, click.Choice) and (wrong := re.search("'([^']*)' is not one of", text)):
        return _unknown_choice(text, wrong[1], choice.choices)
    if isinstance(error, click.MissingParameter) and command in EXAMPLES:
        return f"{_lowered(text).rstrip('.')}, as in: {EXAMPLES[command]}"
    if command == "run" and text.startswith("Got unexpected extra argument"):
        words = text.partition("(")[2].rstrip(").").split()
        models = " ".join(f"-m {word}" for word in words)
        return f"karat run takes one SUITE; name models with -m: {models}"
    return _lowered(text)


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _unknown_choice(text: str, name: str, choices: Sequence[str]) -> str:
    """Return the message for a word that is none of the allowed ones."""
    where = text.partition(":")[0].removeprefix("Invalid value for ").strip("'[]")
    meant = KINDS.get(name, "")
    near = [meant] if meant in choices else difflib.get_close_matches(name, choices, n=1)
    hint = f' Did you mean "{near[0]}"?' if near else ""
    return f"{where} cannot be {name!r}.{hint} It is one of: {', '.join(choices)}"


def _unknown_option(error: click.NoSuchOption, command: str) -> str:
    name = error.option_name
    message = f"there is no option {name}"
    instead = OPTIONS_INSTEAD.get((command, name)) or OPTIONS_INSTEAD.get(("", name))
    if instead:
        return f"{message}. Use: {instead}" if instead.startswith("-") else f"{message}; {instead}"
    # without the hyphens, which all options share
    options = {option.lstrip("-"): option for option in error.possibilities or ()}
    near = difflib.get_close_matches(name.lstrip("-"), options, n=1)
    return f"{message}. Did you mean {options[near[0]]}?" if near else f"{message}."
