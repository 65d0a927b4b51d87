"""The docs: code runs, links resolve, commands parse and run in a fresh folder."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from karat.analysis.checks import RULES
from karat.cli.app import karat
from karat.core.dataset import Dataset
from karat.core.task import Suite, Task
from karat.execution.evaluation import evaluate

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_of_a_page_runs(page, script, tmp_path):
    (tmp_path / "page.py").write_text("\n\n".join(blocks(page, "python")))
    done = script(tmp_path / "page.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.name)
def test_example_runs_and_keeps_its_asserts(example, script, tmp_path):
    done = script(example, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "an example shows something"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    checks = {ROOT / "docs" / "checks" / f"{rule.code}.md" for rule in RULES}  # made by make docs
    text = re.sub(r"`[^`\n]+`", "", page.read_text())  # code may look like a link
    for target in re.findall(r"\]\(([^)#\s]+)(?: \"[^\"]*\")?\)", text):
        if "://" not in target:
            assert page.parent / target in checks or (page.parent / target).exists(), target


def test_docs_import_public_modules_only():
    """Karat, its packages, and compat, whose modules are those of the original systems."""
    found = [
        f"{file.name}: karat.{name}"
        for file in [*PAGES, *EXAMPLES]
        for name in re.findall(r"^ *(?:from|import) karat\.([\w.]+)", file.read_text("utf-8"), re.M)
        if "." in name and not name.startswith("compat.")
    ]
    assert found == []


def test_the_reference_is_made_from_the_docstrings():
    made = runpy.run_path(str(ROOT / "scripts" / "reference.py"))
    assert (ROOT / "docs" / "reference.md").read_text() == made["main"]()


def commands() -> list[str]:
    found = []
    for page in PAGES:
        for block in blocks(page, "console"):
            found += [line.partition(" #")[0].strip() for line in block.splitlines()]
    return sorted({line for line in found if line.startswith("karat ")})


@pytest.mark.parametrize("line", commands())
def test_commands_of_the_docs_parse(line):
    words = shlex.split(line.partition(" > ")[0])  # without the file of its output
    context = karat.make_context("karat", words[1:])
    words = vars(context).get("_protected_args") or vars(context)["protected_args"]  # click 8.1
    verb, command, rest = karat.resolve_command(context, [*words, *context.args])
    assert command is not None, verb
    command.make_context(verb, rest, parent=context)


# -- commands that run ----------------------------------------------------------------------

#: why commands of the docs are not run here, by pattern, and how many these are: a new one is
#: either run, or the number is changed with it
NOT_RUN: dict[str, tuple[int, tuple[str, ...]]] = {
    "is run by test_site.py": (6, ("karat * landing/*",)),
    "installs, builds or sets something": (
        48,
        (
            *("pip install*", "make *", ".venv/bin/python *", "python benchmarks/*", "curl *"),
            *("gunzip *", "export *", "hf download *", "git clone *"),
        ),
    ),
    "runs until it is stopped": (4, ("karat serve *",)),
    "needs an optional library": (
        20,
        (
            *(
                "karat same minilm *",
                "karat run * --engine dask*",
                "karat run * --track *",
                "karat run wine-pl *carte*",
                "karat run foundation *",
            ),
            *("karat run diabetes -m *tab*", "python -m karat.compat.amlb flaml *"),
            *("karat report * --umap", "karat run stsb *", "karat run *mteb:*"),
        ),
    ),
    "downloads data": (
        40,
        (
            *("karat run nodes *", "karat run geval *", "karat geval *", "karat run sentences*"),
            *(
                "karat run tables*",
                "karat run tabeb*",
                "karat run ulysses*",
                "karat run taco",
                "karat run taco -*",
            ),
            *("karat run taco-encoders*", "karat run quickstart -m * -t adult*"),
            *("karat run bitext *", "karat run shift *"),
            "karat run quickstart -m random-forest -t penguins *",
        ),
    ),
    "reads a run of another example or of earlier": (
        34,
        (
            *(
                "karat same old.txt *",
                "karat robustness adult *",
                "karat export adult *",
                "karat robustness encoders *",
            ),
            *("karat export results --as ulysses *", "karat report results/*.taco.* *"),
            *("karat compare imported *", "karat leaderboard imported *", "karat import *"),
            *("karat leaderboard links *", "karat leaderboard text-search *"),
            "karat leaderboard *mteb-results*",
            *("karat compare -a results/*", "karat gate *", "karat compare *--history *"),
            "karat shrink *",
            "karat leaderboard results --next*",
            "karat race *",
        ),
    ),
}
MODULE = """
import numpy as np


class MyEncoder:
    def fit(self, items, y=None):
        return self

    def transform(self, items):
        return np.array([[len(str(row))] for row in np.asarray(items, dtype=object)])


class MyPredictor:
    def fit(self, X, y):
        self.first_ = y[0]
        return self

    def predict(self, X):
        return np.repeat(self.first_, len(X))
"""


def console_lines(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [command for line in lines if (command := line.partition(" #")[0].strip())]


def reason_not_run(command: str) -> str | None:
    for reason, (_, patterns) in NOT_RUN.items():
        if any(fnmatchcase(command, pattern) for pattern in patterns):
            return reason
    return None


@pytest.fixture(scope="module")
def files_of_readers(tmp_path_factory) -> Path:
    """Make the files that the docs take for the reader's own, and some runs."""
    folder = tmp_path_factory.mktemp("reader")
    rng = np.random.default_rng(0)
    age, towns = rng.integers(18, 80, 400), [f"town{i}" for i in range(40)]
    churn = np.where(age + rng.normal(0, 9, 400) > 45, "yes", "no")
    table = pd.DataFrame({"id": range(400), "age": age, "plan": ["a", "b"] * 200, "churn": churn})
    table.to_csv(folder / "churn.csv", index=False)
    more = table.assign(w=1.0, customer=table["id"] // 2)
    more[:300].to_csv(folder / "train.csv", index=False)
    more[300:].to_csv(folder / "test.csv", index=False)
    sales = "".join(f"{i % 28 + 1:02}/01/2024;{i},5;{2 * i},25\n" for i in range(60))
    (folder / "sales.csv").write_text("day;price;amount\n" + sales)
    vectors = rng.normal(size=(40, 4))
    rows = zip(towns, vectors, strict=True)
    text = "".join(f"{name} {' '.join(map(str, row))}\n" for name, row in rows)
    (folder / "vectors.txt").write_text(text)
    gold = pd.DataFrame({"uri": towns, "from": towns, "to": towns[::-1]})
    gold["label"] = np.where(vectors[:, 0] > 0, "big", "small")
    for name in ("towns", "edges"):
        gold.to_csv(folder / f"{name}.tsv", sep="\t", index=False)
    make_lake(folder)
    for name in ("my_module", "my_encoder"):
        (folder / f"{name}.py").write_text(MODULE)
    evaluate(
        ["onehot", "skrub", "random", "dummy", "random-forest", "logistic-regression"],
        Suite("quickstart", tuple(map(_stand_in, ("adult", "penguins", "wine-pl")))),
        output=folder / "results",
    )
    return folder


def make_lake(folder: Path) -> None:
    """Write the tables of docs/tables.md and the definitions that it shows."""
    (folder / "lake").mkdir()
    types = []
    for number in range(6):
        rows = {
            "town": [f"town{number + i}" for i in range(5)],
            "people": range(number, number + 5),
        }
        pd.DataFrame(rows).to_csv(folder / "lake" / f"t{number}.csv", index=False)
        types += [(f"t{number}", name, name) for name in rows]
    columns = pd.DataFrame(types, columns=["table", "column", "type"])
    columns.to_csv(folder / "lake" / "columns.csv", index=False)
    shown = blocks(ROOT / "docs" / "tables.md", "yaml")
    (folder / "lake.yaml").write_text(next(text for text in shown if "suites:" in text))


def _stand_in(name: str) -> Task:
    """Return a small task under the name of one whose data are downloaded."""
    table = load_breast_cancer(as_frame=True).frame.iloc[::4, -6:]
    data = Dataset.from_table(table, "target", name=name, kind="classification")
    noise = {"noise_gaussian": [0.1, 0.4]} if name == "adult" else {}
    return Task(name, data, metrics=["acc", "auc"], kind="classification", corruptions=noise)


def runnable(page: Path) -> list[str]:
    starts = ("karat ", "python -m karat.")
    lines = [line for line in console_lines(page) if reason_not_run(line) is None]
    assert all(line.startswith(starts) for line in lines), lines
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if runnable(p)], ids=lambda p: p.name)
def test_commands_of_a_page_run(
    page, files_of_readers, tmp_path, monkeypatch, cli, script, clean_registry
):
    folder = tmp_path / "fresh"
    shutil.copytree(files_of_readers, folder)
    for text in blocks(page, "yaml"):
        if name := re.match(r"# (\S+\.yaml)\n", text):
            (folder / name[1]).write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    for name in ("my_module", "my_encoder"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    if made := [text for text in blocks(page, "python") if "to_csv(" in text and len(text) < 200]:
        (tmp_path / "made.py").write_text("\n".join(made))
        assert script(tmp_path / "made.py", cwd=folder).returncode == 0
    for command in runnable(page):
        program, *arguments = shlex.split(command.partition(" > ")[0])
        if program == "python":
            done = script(*arguments, cwd=folder)
            assert done.returncode == 0, (command, done.stderr)
        else:
            result = cli(*arguments)
            # the exit code of karat cheapest is its answer
            codes = (0, 1, 3) if arguments[0] == "cheapest" else (0,)
            assert result.code in codes, (command, result.err)


def test_commands_that_are_not_run_are_counted():
    commands = [line for page in PAGES for line in console_lines(page)]
    found = Counter(reason_not_run(command) for command in commands)
    assert {reason: found[reason] for reason in NOT_RUN} == {r: n for r, (n, _) in NOT_RUN.items()}
    used = {p for _, patterns in NOT_RUN.values() for p in patterns}
    assert not [p for p in used if not any(fnmatchcase(c, p) for c in commands)], "out of date"


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text()
    assert "pip install karat\n" in text and blocks(ROOT / "README.md", "text")
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert pictures and all(each.startswith("https://") for each in pictures)  # also for PyPI
    assert len(re.findall(r"\]\(", text)) <= 11
