"""docs/extending.md: its package, installed outside the repository, works in Karat's commands.

The files are those of the page; a block whose first line is a comment with a path is that file.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "extending.md"
FILE = re.compile(r"^```\w+\n# (karat_letters/\w+\.py|pyproject\.toml)\n(.*?)^```", re.M | re.S)
#: a suite whose items have vectors in towns.sem
TOWNS = """
datasets:
  towns:
    path: towns.tsv
    reader: entities
    modality: entity
    target: label
    kind: classification
    options: {key: name}
tasks:
  towns: {dataset: towns, kind: classification, metrics: [acc], split: {use: kfold, folds: 2}}
suites:
  towns: {tasks: [towns]}
"""


def shown(part: str) -> list[str]:
    """Return the words of the command of the page that has a part."""
    lines = re.findall(r"^```text\n(karat .*)\n```", PAGE.read_text("utf-8"), re.M)
    (line,) = (line for line in lines if part in line)
    return line.split()[1:]


def install(files: dict[str, str], site: Path) -> None:
    """Write a package and its metadata into a folder of packages, as an installer does."""
    project = tomllib.loads(files["pyproject.toml"])["project"]
    for name, text in files.items():
        if name.endswith(".py"):
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_text(text)
    about = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (about / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def karat(tmp_path_factory):
    """Return a function that runs a command where the package of the page is installed."""
    folder = tmp_path_factory.mktemp("extending")
    (folder / "site").mkdir()
    install(dict(FILE.findall(PAGE.read_text("utf-8"))), folder / "site")
    paths = [str(folder / "site"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    towns = [f"town{i}" for i in range(20)]
    (folder / "towns.sem").write_text("".join(f"{n};{i % 2};{i}\n" for i, n in enumerate(towns)))
    rows = "".join(f"{n}\t{'ab'[i % 2]}\n" for i, n in enumerate(towns))
    (folder / "towns.tsv").write_text("name\tlabel\n" + rows)
    (folder / "towns.yaml").write_text(TOWNS)

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "karat", *words]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run.folder = folder
    yield run


@pytest.fixture(scope="module")
def scores(karat):
    """Return the leaderboard of the encoder and of a constant, by the metric."""
    return json.loads(karat(*shown("--metric"), "-w", "0", "-o", "results", "--format", "json"))


def test_the_page_has_all_files():
    names = [name for name, _ in FILE.findall(PAGE.read_text("utf-8"))]
    parts = ("extension", "encoder", "vectors", "metrics", "checks", "page", "commands")
    assert names == ["pyproject.toml", *(f"karat_letters/{name}.py" for name in parts)]


def test_the_encoder_passes_the_contract_checks_and_is_scored_by_the_metric(karat, scores):
    assert "letter-counts" in karat("list", "models")
    karat(*shown("karat check"))
    assert [row["model"] for row in scores] == ["letter-counts", "dummy"]
    assert scores[0]["breast-cancer"] > scores[1]["breast-cancer"] == 0.0  # of the worst class
    (plan, *_) = karat.folder.glob("results/*/run.json")
    assert json.loads(plan.read_text())["tasks"][0]["metrics"] == ["worst_class", "acc"]


@pytest.mark.slow
def test_the_vector_file_is_read_by_its_ending(karat):
    table = karat(*shown("towns.sem"), "-w", "0", "-o", "towns", "--format", "csv")
    assert "towns" in table and "1.0" in table


@pytest.mark.slow
def test_the_check_is_listed_explained_found_and_silenced(karat, scores):
    assert "LET001  note     a task has few rows" in karat("check", "--list")
    assert "wide intervals" in karat("check", "--explain", "LET001")
    assert "breast-cancer has 569 rows." in karat("check", "results")
    assert "breast-cancer has 569 rows." not in karat("check", "results", "--ignore", "LET001")


@pytest.mark.slow
def test_the_section_is_on_the_page(karat, scores):
    karat("report", "results", "-o", "report.html")
    page = (karat.folder / "report.html").read_text("utf-8")
    assert "<h2>Letters</h2><p>letter-counts has most.</p>" in page
    assert '"added":[{"title":"Letters"' in page


def test_the_command_is_listed_and_run(karat, scores):
    assert "letters      Count letters." in karat("--help")
    assert karat("letters", "results").splitlines() == ["dummy 5", "letter-counts 12"]
