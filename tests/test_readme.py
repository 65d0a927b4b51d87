"""The README's commands run with nothing but the core, or name the extra that they need.

An environment of the core alone is a new virtual environment with links to the distributions that
``pip install karat`` brings, and to no others. Its worker processes have no others either.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import re
import shlex
import socket
import subprocess
import sys
import time
import tomllib
import venv
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pandas as pd
import pytest
from packaging.requirements import Requirement

import karat

from .endpoint_server import serving
from .test_docs import MODULE, blocks, reason_not_run

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDS = re.compile(r"needs `?karat\[([\w,-]+)\]")
#: rows of the reader's table: so many that the gate of equal models passes
ROWS = 400
#: extras of which the wheel test installs the lines; the others are large libraries
SMALL_EXTRAS = ("endpoint", "plots", "serve", "text")
#: lines that end with their answer instead of 0
ANSWERS = {"cheapest": (0, 1, 3)}
CAPTURED: dict[str, Any] = {"capture_output": True, "text": True}
#: runs lines of the README one after the other in one process, and prints code and output of each
DRIVER = """
import contextlib, io, json, shlex, sys
from karat.cli.app import main

for line in json.load(open("lines.json")):
    out, err = io.StringIO(), io.StringIO()
    sys.argv = shlex.split(line)
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    print(json.dumps([line, code, out.getvalue(), err.getvalue()]), flush=True)
"""


def readme_lines() -> dict[str, str]:
    """Return the commands of the README and the extras that each names, from blocks and tables."""
    text = README.read_text()
    lines = [line for block in blocks(README, "console") for line in block.splitlines()]
    found = {}
    for line in lines:
        named = NEEDS.search(line)
        found[line.partition(" #")[0].strip()] = named[1] if named else ""
    for row in re.findall(r"^\|.*\| (`karat .*) \|$", text, re.MULTILINE):
        named = NEEDS.search(row)
        found[row[1:].partition("`")[0]] = named[1] if named else ""
    found.pop("pip install karat")
    return found


LINES = readme_lines()


def is_left_out(line: str) -> bool:
    """Return whether a line needs the network, or runs until it is stopped."""
    first = line == next(iter(LINES))
    reasons = ("downloads data", "runs until it is stopped")
    return not first and reason_not_run(line) in reasons


def distributions_of_the_core() -> dict[str, importlib.metadata.Distribution]:
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(PROJECT["dependencies"])
    while waiting:
        needed = Requirement(waiting.pop())
        if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
            continue
        if needed.name not in found:
            found[needed.name] = importlib.metadata.distribution(needed.name)
            waiting += found[needed.name].requires or []
    return found


@pytest.fixture(scope="module")
def core(tmp_path_factory) -> Path:
    """Return the Python of an environment with nothing but the core."""
    folder = tmp_path_factory.mktemp("core")
    venv.create(folder, with_pip=False, symlinks=True)
    (python,) = {*folder.glob("bin/python"), *folder.glob("Scripts/python.exe")}
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(asked, capture_output=True, text=True).stdout.strip())
    for distribution in distributions_of_the_core().values():
        for name in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            place = packages / name
            if not place.exists():
                place.symlink_to(distribution.locate_file(name))
    (packages / "karat").symlink_to(ROOT / "src" / "karat")
    return python


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Path:
    """Return a folder with the files that the README takes for the reader's own."""
    return write_files(tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="module")
def reader_of_wheel(tmp_path_factory) -> Path:
    """Return another folder with these files; its runs are of the installed version only."""
    return write_files(tmp_path_factory.mktemp("reader_of_wheel"))


def write_files(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, ROWS)
    churn = np.where(age + rng.normal(0, 9, ROWS) > 45, "yes", "no")
    table = pd.DataFrame({"age": age, "plan": rng.choice(["a", "b"], ROWS), "churn": churn})
    table.to_csv(folder / "churn.csv", index=False)
    (folder / "my_module.py").write_text(MODULE)
    towns = [f"http://example.org/town{i}" for i in range(40)]
    vectors = rng.normal(size=(40, 3))
    rows = zip(towns, vectors, strict=True)
    text = "".join(f"{name} {' '.join(map(str, row))}\n" for name, row in rows)
    (folder / "vectors.txt").write_text(text)
    gold = pd.DataFrame({"DBpedia_URI15": towns, "label": np.where(vectors[:, 0] > 0, "a", "b")})
    (folder / "data" / "geval" / "Classification").mkdir(parents=True)
    cities = folder / "data" / "geval" / "Classification" / "Cities.tsv"
    gold.to_csv(cities, sep="\t", index=False)
    (folder / "docs-folder").mkdir()
    texts = {
        f"d{i}": f"text about {word}" for i, word in enumerate(("cats", "dogs", "rice", "tea"))
    }
    for name, text in texts.items():
        (folder / "docs-folder" / f"{name}.txt").write_text(text)
    asked = pd.DataFrame({"query": list(texts.values()), "document": [f"{n}.txt" for n in texts]})
    asked.to_csv(folder / "docs-folder" / "queries.csv", index=False)
    (folder / "data" / "adult").mkdir()
    rows = table.rename(columns={"churn": "Income"})
    rows.to_csv(folder / "data" / "adult" / "adult-train.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def answers(core, reader) -> dict[str, tuple[int, str, str]]:
    """Return the exit code and the output of each line, run in order with the core alone."""
    lines = [line for line in LINES if not is_left_out(line)]
    lines += [line for line, extra in LINES.items() if extra and line not in lines]
    return run_lines(core, reader, lines)


def run_lines(python: Path, reader: Path, lines: list[str]) -> dict[str, tuple[int, str, str]]:
    """Run lines one after the other in the reader's folder, without the network."""
    (reader / "lines.json").write_text(json.dumps(lines))
    (reader / "driver.py").write_text(DRIVER)
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(reader),
        "KARAT_CACHE": str(reader / "cache"),
        "KARAT_DATA": str(reader / "data"),
        "KARAT_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [str(python), "driver.py"]
    done = subprocess.run(command, cwd=reader, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert [row[0] for row in rows] == lines
    return {line: (code, out, err) for line, code, out, err in rows}


@pytest.mark.slow
def test_the_environment_has_nothing_but_the_core(core):
    for name in ("skrub", "pyarrow", "matplotlib", "torch", "fastapi", "pytest"):
        done = subprocess.run([core, "-c", f"import {name}"], capture_output=True, text=True)
        assert "ModuleNotFoundError" in done.stderr, name
    done = subprocess.run([core, "-c", "import karat; print(karat.__file__)"], capture_output=True)
    assert done.returncode == 0


@pytest.mark.slow
def test_the_first_command_prints_a_row_for_each_model_as_the_readme_shows(answers):
    first = next(iter(LINES))
    models = re.findall(r"-m (\S+)", first)
    code, out, err = answers[first]
    assert code == 0 and "not installed" not in out + err
    shown = blocks(README, "text")[0]
    for name in models:
        for text in (out, shown):
            (row,) = re.findall(rf"^ {name} +(\d\.\d) ", text, re.MULTILINE)
            assert row


@pytest.mark.slow
@pytest.mark.parametrize("line", [n for n, extra in LINES.items() if not (extra or is_left_out(n))])
def test_a_command_without_an_extra_runs_with_the_core(answers, line):
    code, out, err = answers[line]
    assert code in ANSWERS.get(line.split()[1], (0,)), err
    assert out.strip() or err.strip()


@pytest.mark.slow
@pytest.mark.parametrize("line", [n for n, extra in LINES.items() if extra])
def test_a_command_that_needs_an_extra_names_it(answers, line):
    code, out, err = answers[line]
    assert code != 0
    named = set(re.findall(r"karat\[([\w-]+)\]", out + err))
    assert named and named <= {*LINES[line].split(",")}


def installed(extra: str) -> bool:
    """Return whether all distributions of an extra are installed."""
    for text in PROJECT["optional-dependencies"][extra]:
        needed = Requirement(text)
        if needed.name == "karat":
            if not all(map(installed, needed.extras)):
                return False
        elif needed.marker is None or needed.marker.evaluate({"extra": ""}):
            try:
                importlib.metadata.distribution(needed.name)
            except importlib.metadata.PackageNotFoundError:
                return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("line", [n for n, extra in LINES.items() if extra and not is_left_out(n)])
def test_a_command_runs_with_the_extras_it_names(answers, reader, cli, monkeypatch, line):
    lacking = [extra for extra in LINES[line].split(",") if not installed(extra)]
    if lacking:
        pytest.skip(f"not installed: karat[{','.join(lacking)}]")
    monkeypatch.chdir(reader)
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    done = cli(*line.split()[1:])
    assert done.code in ANSWERS.get(line.split()[1], (0,)), done.err


# -- the wheel ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Return the wheel of this repository."""
    if not find_spec("build") or not find_spec("hatchling"):
        pytest.skip("build or hatchling is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    make = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", folder, ROOT]
    subprocess.run(make, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed_core(wheel, tmp_path_factory) -> Path:
    """Return the programs of an empty environment in which the wheel was installed."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    install(folder / "bin", str(wheel))
    return folder / "bin"


@pytest.fixture(scope="module")
def ran_with_the_wheel(installed_core, reader_of_wheel) -> dict[str, tuple[int, str, str]]:
    """Return exit code and output of lines without extras, before any extra is installed.

    A line of each command, and those whose output folder another line reads.
    """
    lines: dict[str, str] = {}
    for line in (name for name, extra in LINES.items() if not (extra or is_left_out(name))):
        words = line.split()
        output = words[words.index("-o") + 1] if "-o" in words else None
        is_read = any(output in other.split() for other in LINES if other != line)
        if words[1] not in lines.values() or is_read:
            lines[line] = words[1]
    return run_lines(installed_core / "python", reader_of_wheel, list(lines))


@pytest.fixture(scope="module")
def installed_extras(installed_core, ran_with_the_wheel, wheel) -> Path:
    """Return the programs of the same environment, with the small extras of the README."""
    install(installed_core, f"{wheel}[{','.join(SMALL_EXTRAS)}]")
    return installed_core


def install(programs: Path, what: str) -> None:
    """Install something with pip and its cache, or skip if the package index cannot be reached.

    Modules are compiled when they are imported; most of them never are.
    """
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "install"]
    pip += ["--retries", "1", "-q", "--no-compile"]
    done = subprocess.run([*pip, "-c", ROOT / "constraints.txt", what], **CAPTURED)
    if done.returncode and re.search("connection|No matching distribution|index", done.stderr):
        pytest.skip(f"the package index cannot be reached: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr


def typed(programs: Path, line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line as a reader types it, with downloads."""
    words = shlex.split(line)
    return subprocess.run([programs / words[0], *words[1:]], cwd=folder, **CAPTURED)


@pytest.mark.slow
@pytest.mark.network
def test_the_wheel_in_an_empty_environment_runs_the_first_command(installed_core, tmp_path):
    run = typed(installed_core, next(iter(LINES)), tmp_path)
    if "connect to the network" in run.stdout + run.stderr:
        pytest.skip("the data of the first command cannot be downloaded")
    assert run.returncode == 0, run.stderr
    version = typed(installed_core, "karat --version", tmp_path)
    assert version.stdout.strip() == f"karat {karat.__version__}"


@pytest.mark.slow
@pytest.mark.network
def test_the_wheel_alone_runs_every_command_without_an_extra(ran_with_the_wheel):
    wrong = {
        line: err
        for line, (code, _, err) in ran_with_the_wheel.items()
        if code not in ANSWERS.get(line.split()[1], (0,))
    }
    verbs = {line.split()[1] for line, extra in LINES.items() if not (extra or is_left_out(line))}
    assert not wrong and {line.split()[1] for line in ran_with_the_wheel} == verbs


@pytest.mark.slow
@pytest.mark.network
def test_the_extras_that_the_wheel_test_leaves_out_are_large():
    named = {extra for extras in LINES.values() for extra in extras.split(",") if extra}
    assert named - {*SMALL_EXTRAS} == {"minilm", "minilm-int8"}  # torch, and models of 100 MB


@pytest.mark.slow
@pytest.mark.network
def test_the_wheel_with_its_extra_plots(installed_extras, reader_of_wheel):
    (line,) = (line for line, extra in LINES.items() if extra == "plots")
    done = typed(installed_extras, line, reader_of_wheel)
    assert done.returncode == 0, done.stderr
    assert (reader_of_wheel / line.split()[-1]).read_bytes().startswith(b"%PDF")


@pytest.mark.slow
@pytest.mark.network
def test_the_wheel_with_its_extra_serve(installed_extras, reader_of_wheel):
    (line,) = (line for line, extra in LINES.items() if extra == "serve")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [installed_extras / "karat", *shlex.split(line)[1:], "--port", str(port)]
    server = subprocess.Popen(
        words, cwd=reader_of_wheel, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        page = ""
        while not page and server.poll() is None:
            with contextlib.suppress(OSError):
                page = urlopen(f"http://127.0.0.1:{port}/", timeout=60).read().decode()
            time.sleep(0.1)
    finally:
        server.terminate()
        output = server.communicate()[0].decode()
    assert "random-forest" in page, output


@pytest.mark.slow
@pytest.mark.network
def test_the_wheel_with_its_extra_text(installed_extras, reader_of_wheel):
    (line,) = (line for line, extra in LINES.items() if extra == "text")
    done = typed(
        installed_extras, f"{line} -t stsb --max-rows 40", reader_of_wheel
    )  # the smallest task
    if "connect to the network" in done.stdout + done.stderr:
        pytest.skip("the data of the sentences cannot be downloaded")
    assert done.returncode == 0 and "use-multilingual" in done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.network
def test_the_wheel_with_its_extra_endpoint(installed_extras, reader_of_wheel):
    (line,) = (line for line, extra in LINES.items() if extra == "endpoint")
    with serving() as server:
        here = line.replace("http://localhost:8080/v1", f"{server.url}/v1")
        assert here != line
        line = here.replace("bge-small", "words-small") + " -t stsb --max-rows 40"
        done = typed(installed_extras, line, reader_of_wheel)
    if "connect to the network" in done.stdout + done.stderr:
        pytest.skip("the data of the sentences cannot be downloaded")
    assert done.returncode == 0 and server.stats()["requests"], done.stderr
