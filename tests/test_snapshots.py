"""The wording of each surface, compared with tests/snapshots/*.txt.

KARAT_UPDATE_SNAPSHOTS=1 rewrites the files instead.
"""

import html
import io
import itertools
import os
import re
from pathlib import Path

import click
import pandas as pd
import pytest
from rich.console import Console

from karat.analysis.leaderboard import leaderboard
from karat.analysis.robustness import robustness
from karat.cli.app import karat as group
from karat.cli.options import SETTINGS
from karat.execution.plan import make_plan
from karat.models.adapters import adapt
from karat.models.tables.one_hot_table import OneHotTable
from karat.reporting.formats import render
from karat.reporting.leaderboard_output import leaderboard_text
from karat.reporting.page import make_bundle, plain_sections
from karat.reporting.terminal import show_plan

FOLDER = Path(__file__).parent / "snapshots"


def compare(surface, text):
    file = FOLDER / f"{surface}.txt"
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    if os.environ.get("KARAT_UPDATE_SNAPSHOTS"):
        file.write_text(text, encoding="utf-8")
    hint = f"{file.name} is outdated; update it with KARAT_UPDATE_SNAPSHOTS=1"
    assert text == file.read_text(encoding="utf-8"), hint


def help_of(verb):
    context = click.Context(group, None, "karat", terminal_width=80, **SETTINGS)
    if verb is not None:
        command = group.all_commands()[verb]
        context = click.Context(command, context, verb, terminal_width=80, **SETTINGS)
    return context.get_help()


@pytest.fixture(scope="module")
def scores():
    """Return four models on four tasks with clean and corrupted views; one score is missing."""
    keys = itertools.product(range(4), "abcd", range(3), [("", 0.0), ("noise", 0.1), ("gaps", 0.1)])
    rows = [
        {
            **dict(task=f"t{task}", model=model, repeat=0, fold=fold, draw=0, epoch=-1),
            **dict(metric="acc", corruption=view, severity=severity),
            "value": 0.9 - 0.1 * "abcd".index(model) - severity * task - 0.01 * fold * task,
        }
        for task, model, fold, (view, severity) in keys
        if (task, model) != (3, "d")
    ]
    return pd.DataFrame(rows)


def printed(board):
    file = io.StringIO()
    Console(file=file, width=100, color_system=None).print(leaderboard_text(board, 100))
    return file.getvalue()


def test_help():
    text = "\n\n".join(help_of(verb) for verb in [None, *sorted(group.all_commands())])
    assert max(map(len, text.splitlines())) <= 80
    compare("help", text)


def test_leaderboard(scores):
    options = [
        {},
        {"by": "task", "normalize": "range"},
        {"missing": "exclude", "columns": ["elo", "borda"]},
        {"missing": "baseline:a", "normalize": "baseline:a"},
    ]
    boards = [leaderboard(scores, **each) for each in options]
    compare("leaderboard", "\n".join([*map(printed, boards), render(boards[0], "markdown")]))


def test_robustness(scores):
    whole = robustness(scores, baseline="b")
    single = robustness(scores, by_corruption=True)
    file = io.StringIO()
    for result in (whole, single):
        result.print_on_terminal(Console(file=file, width=100, color_system=None))
    compare("robustness", file.getvalue())


def test_plan(two_classes, words, capsys):
    models = [adapt(OneHotTable(), name="onehot")]
    show_plan(make_plan(models, [two_classes(), words()]), "nowhere")
    compare("plan", capsys.readouterr().out)


def test_lint(cli):
    compare("lint", cli("lint", "--list").out)


def test_report_page(scores):
    sections = "\n".join(plain_sections(make_bundle(scores, title="Snapshot")))
    lines = re.sub(r"</(?:p|h2|li|tr|td|th|small)>", "\n", sections)
    text = html.unescape(re.sub("<[^>]*>", " ", lines))
    compare("report_page", "\n".join(line.strip() for line in text.splitlines() if line.strip()))
