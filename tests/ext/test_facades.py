"""The places where users import extensions from: they only name what is in ``karat.ext``."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import karat

ROOT = Path(karat.__file__).parent
FILES = [
    *(ROOT / f"{name}.py" for name in ("cluster", "decide", "plots", "publish", "search")),
    *sorted((ROOT / "compat").rglob("*.py")),
]
MODULES = [
    "karat." + ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for file in FILES
]


@pytest.mark.parametrize("name", MODULES)
def test_a_facade_has_the_objects_of_its_extension(name):
    facade = importlib.import_module(name)
    names = [each for each in vars(facade) if not each.startswith("_")]
    assert names or name == "karat.compat"
    if name.startswith("karat.compat."):
        whole = importlib.import_module(name.replace("karat.", "karat.ext.", 1))
        wrong = [each for each in names if getattr(whole, each, None) is not getattr(facade, each)]
        folder = ROOT / Path(*name.split(".")[1:])
        assert not [each for each in wrong if not (folder / f"{each}.py").exists()]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_facade_has_no_code_of_its_own(file):
    assert len(file.read_text().splitlines()) <= 20


def test_a_class_of_a_facade_is_that_of_the_extension():
    from karat.compat.geval import FrameworkManager
    from karat.ext.compat.geval.manager import FrameworkManager as same

    assert FrameworkManager is same
    assert karat.decide.gate is karat.gate  # after its module is imported


@pytest.mark.parametrize("name", ["amlb", "taco"])
def test_the_commands_of_other_systems_are_run_from_there(name):
    command = [sys.executable, "-m", f"karat.compat.{name}", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"karat.compat.{name}" in done.stdout
