"""The commands of extensions: their help, wrong input, and every format of what they print."""

import csv
import io
import json

import pytest

from karat.cli.app import karat as group
from karat.core.extension import builtin_extensions, commands

from ..score_data import make_view, write_run

COMMANDS = {name: group.all_commands()[name] for name, _ in commands(builtin_extensions())}
#: commands that read run folders
READING = {
    "cheapest": "--cost bytes",
    "export": "--as taco",
    "gate": "--against RUNS/b",
    "site": "",
    "verify": "--jobs 0",
}


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Write runs of two models on two tasks, clean and with noise."""
    monkeypatch.chdir(tmp_path)
    sizes = {"questions": 500, "train_questions": 1500}
    for name, shift in (("a", 0.001), ("b", 0.0)):
        views = [
            [make_view(acc=0.8 + 0.01 * fold + shift), make_view("noise", 0.1, acc=0.7)]
            for fold in range(5)
        ]
        facts = {"dimensions": 8 if name == "a" else 16}
        scores, record = {"t": views, "u": views}, sizes | facts
        write_run(tmp_path / "runs", name, scores, record=record).folder.rename(f"runs/{name}")
    return tmp_path / "runs"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_an_example(cli, name):
    shown = cli(name, "--help")
    assert shown.code == 0 and f"karat {name} " in shown.out


@pytest.mark.parametrize("name", sorted(READING))
def test_a_missing_folder_is_one_clear_message(cli, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = cli(name, "nowhere", *READING[name].replace("RUNS", "nowhere").split())
    assert (code, out) == (2, "") and err.startswith("error: ") and "nowhere" in err


@pytest.mark.parametrize("shape", ["json", "csv", "markdown", "latex", "html"])
@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("cheapest RUNS --cost dimensions", (0, 1, 3)),
        ("gate RUNS/a --against RUNS/b", (0, 1, 3)),
        ("gate --calibrate RUNS/b", (0,)),
        ("verify RUNS/a --jobs 0", (0, 1)),
    ],
)
def test_every_format_of_a_result(cli, runs, command, codes, shape):
    words = command.replace("RUNS", str(runs)).split()
    code, out, err = cli(*words, "--format", shape)
    assert code in codes, err
    if shape == "json":
        assert json.loads(out)
    elif shape == "csv":
        header, *rows = csv.reader(io.StringIO(out))
        assert rows and {len(row) for row in rows} == {len(header)}
    else:
        assert {"markdown": "| ", "latex": "\\begin{tabular}", "html": "<table"}[shape] in out


def test_power_is_told_for_a_plan(cli, runs, tmp_path):
    (tmp_path / "table.csv").write_text("x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(40)))
    plan = ("plan", tmp_path / "table.csv", "--target", "y", "-m", "dummy", "--detect", "0.01")
    code, out, err = cli(*plan, "--runs", tmp_path / "none")
    assert code == 2 and "--detect needs earlier runs" in err


def test_a_site_and_files_of_another_system(cli, runs, tmp_path):
    for words, folder in ((("site", runs), "site"), (("report", runs, "--site"), "again")):
        made = cli(*words, "-o", tmp_path / folder)
        assert made.code == 0 and (tmp_path / folder / "index.html").is_file()
    done = cli("export", runs, "--as", "amlb", "-o", tmp_path / "out")
    assert done.code == 0, done.err
    back = cli("import", tmp_path / "out" / "results.csv", "-o", tmp_path / "in")
    assert back.code == 0, back.err
