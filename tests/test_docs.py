"""The docs: code runs, links resolve, commands parse and run in a fresh folder."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import sys
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

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
#: its code is that of the examples
GALLERY = ROOT / "docs" / "gallery.md"


#: why a block of commands or code is not run, as the comment above it says
REASONS = {
    "needs a cluster",
    "needs a large file of vectors",
    "needs a running server",  # tests/serve sends these requests
    "needs a server of embeddings",
    "needs an optional library",
    "needs files of another system",
    "needs files of the reader",
    "the output of a command",
}
BLOCK = re.compile(r"^(?:<!-- not run: ([^\n]*) -->\n)? *```(\w*)[^\n]*\n(.*?)^ *```", re.M | re.S)
#: what code prints, in the block below it
PRINTED = re.compile(
    r"^```python\n(?:(?!```)[^\n]*\n)*?[^\n]*print\((?:(?!```)[^\n]*\n)*```\n\n"
    r"```text\n(.*?)^```",
    re.M | re.S,
)
#: the beginning of a line that is a command
COMMAND = re.compile(
    r" *(?:\$ )?(?:karat [a-z]|python[0-9.]* \S|pip |make [a-z]|git clone|curl |docker |dask |uv )"
)


class Block(NamedTuple):
    """A fenced block of a page: the reason why it is not run, its language and its text."""

    reason: str
    language: str
    text: str


def all_blocks(page: Path) -> list[Block]:
    return [Block(*match.groups(default="")) for match in BLOCK.finditer(page.read_text("utf-8"))]


def blocks(page: Path, language: str) -> list[str]:
    """Return the blocks of a language that are not marked as not run."""
    every = all_blocks(page)
    return [block.text for block in every if block.language == language and not block.reason]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_what_is_not_run_says_why(page):
    """Commands in blocks of another language than console, and code other than python."""
    for block in all_blocks(page):
        assert not block.reason or block.reason in REASONS, block
        is_run = block.language in ("console", "python", "pycon", "yaml", "toml", "json")
        has_command = any(map(COMMAND.match, block.text.splitlines()))
        is_code = block.language in ("bash", "sh", "py")
        if is_code or (has_command and not is_run):
            assert block.reason or is_listing(block), block.text


def is_listing(block: Block) -> bool:
    """Whether a text is the output of a command that names another: its first line is none."""
    lines = block.text.splitlines()
    return block.language == "text" and not COMMAND.match(lines[0])


def test_every_reason_is_used():
    assert {block.reason for page in PAGES for block in all_blocks(page)} - {""} == REASONS


WITH_PYTHON = [page for page in PAGES if page != GALLERY and blocks(page, "python")]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda p: p.name)
def test_python_of_a_page_runs(page, script, tmp_path):
    (tmp_path / "page.py").write_text("\n\n".join(blocks(page, "python")))
    done = script(tmp_path / "page.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    for shown in PRINTED.findall(page.read_text("utf-8")):
        assert shown.strip("\n") in printed


def test_the_gallery_shows_the_examples():
    code = [example.read_text("utf-8").strip() for example in EXAMPLES]
    assert [text.strip() for text in blocks(GALLERY, "python")] == code


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
        57,
        (
            "pip install*",
            "make *",
            ".venv/bin/*",
            "python benchmarks/*",
            "curl *",
            "gunzip *",
            "export *",
            "hf download *",
            "git clone *",
        ),
    ),
    "runs until it is stopped": (4, ("karat serve *",)),
    "needs an optional library": (
        20,
        (
            "karat same minilm *",
            "karat run * --engine dask*",
            "karat run * --track *",
            "karat run wine-pl *carte*",
            "karat run foundation *",
            "karat run diabetes -m *tab*",
            "python -m karat.compat.amlb flaml *",
            "karat report * --umap",
            "karat run stsb *",
            "karat run *mteb:*",
        ),
    ),
    "downloads data": (
        41,
        (
            "karat run nodes *",
            "karat run geval *",
            "python -m karat.compat.geval *",
            "karat run sentences*",
            "karat run tables*",
            "karat run tabeb*",
            "karat run ulysses*",
            "karat run taco",
            "karat run taco -*",
            "karat run taco-encoders*",
            "karat run quickstart -m * -t adult*",
            "karat run bitext *",
            "karat run shift *",
            "karat run quickstart -m random-forest -t penguins *",
            "karat run quickstart -m onehot -m random-forest -m dummy",
        ),
    ),
    "reads a run of another example or of earlier": (
        34,
        (
            "karat same old.txt *",
            "karat robustness adult *",
            "karat export adult *",
            "karat robustness encoders *",
            "karat export results --as ulysses *",
            "karat report results/*.taco.* *",
            "karat compare imported *",
            "karat leaderboard imported *",
            "karat import *",
            "karat leaderboard links *",
            "karat leaderboard text-search *",
            "karat leaderboard *mteb-results*",
            "karat compare -a results/*",
            "karat gate *",
            "karat compare *--history *",
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


#: test_readme.py runs those of the README, with nothing but the core
SHOWN = [page for page in PAGES if page.name != "README.md"]


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in SHOWN if runnable(p)], ids=lambda p: p.name)
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


# -- the site -------------------------------------------------------------------------------

#: the parts of the site, in their order
PARTS = (
    *("Start", "Evaluate", "Understand", "Decide", "Share", "Scale", "Extend", "Coming from"),
    "Reference",
)
#: most entries of a part of the navigation
MOST_ENTRIES = 8


def entries(nav: list) -> list[tuple[str, object]]:
    """Return the titles of a part of the navigation with their pages or parts."""
    return [item for entry in nav for item in entry.items()]


def pages_below(nav: list) -> list[str]:
    """Return the pages of a part of the navigation; no part has many entries."""
    assert len(entries(nav)) <= MOST_ENTRIES
    pages: list[str] = []
    for _, inner in entries(nav):
        pages += [inner] if isinstance(inner, str) else pages_below(inner)
    return pages


def test_the_navigation_has_nine_parts_and_every_page_once():
    project = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
    parts = dict(entries(project["nav"]))
    assert tuple(parts) == PARTS
    pages = [page for part in parts.values() for page in pages_below(part)]
    written = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    written = [page for page in written if not page.startswith("checks/")]  # made by make docs
    assert sorted(pages) == sorted(written)


FILES = re.compile(r"`([a-z][\w/]*(?:\.\w+|/))`")


def test_the_files_to_change_exist():
    """Those of the table of docs/architecture.md, where FOLDER and SYSTEM are any folder."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    section = page.partition("## I want to change")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 20
    for row in rows:
        files = FILES.findall(row)
        assert files, row
        for file in files:
            pattern = file.rstrip("/").replace("FOLDER", "*").replace("SYSTEM", "*")
            assert list((ROOT / "src" / "karat").glob(pattern)), file
