"""The border between the core and the extensions, tried in copies from which folders are deleted.

``KARAT_BORDER=full`` (``make border``) runs more of the tests of the core in the copy. The static
part, who may import whom, is in ``tests/test_architecture.py``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import karat.ext

ROOT = Path(karat.__file__).parent
TESTS = Path(__file__).parents[1]
#: modules at the places where users import extensions from
FACADES = ("cluster", "compat", "decide", "plots", "publish", "search", "testing_plugin")

#: imports every module but those that need another library or a deleted folder
IMPORT_ALL = """
import importlib, pathlib, sys
import karat
from karat.core import registry
from karat.core.extension import builtin_extensions

root, without = pathlib.Path(karat.__file__).parent, sys.argv[1:]
names = ["karat." + ".".join(path.relative_to(root).with_suffix("").parts)
         for path in sorted(root.rglob("*.py"))]
skipped = ("__main__", "_numba", ".guest.")
present = {extension.name for extension in builtin_extensions()}
for name in names:
    folder = name.split(".")[2] if name.startswith("karat.ext.") else ""
    if any(part in name for part in skipped) or name in without:
        continue
    if folder in ("", "__init__") or folder in present:
        importlib.import_module(name.removesuffix(".__init__"))
from karat.cli.app import karat as group
from karat.config.catalog import Catalog
group.all_commands()
for parts in registry.ALL:
    for name in parts:
        parts.get(name)
catalog = Catalog()
for suite in catalog.definitions.names("suites"):
    catalog.suite(suite)
print(*sorted(present), *sorted(karat.__all__))
"""
#: the commands of the core, on two models
FLOW = """
import contextlib, io, sys
from karat.cli.app import main
COMMANDS = (
    "run quickstart -m onehot -m dummy -t penguins -t diabetes -o results -w 0 -q",
    "leaderboard results",
    "compare results",
    "check results",
    "rescore results",
    "show results",
    "report results",
    "--help",
)
for command in COMMANDS:
    sys.argv = ["karat", *command.split()]
    try:
        main()
    except SystemExit as ended:
        print(f"{sys.argv[1]}: {ended.code or 0}", file=sys.stderr)
"""


#: folders of tests that need no extension; the first ones are run always
CORE_TESTS = ("metrics", "config", "core", "stats", "results")
ALWAYS = 2
#: tests in them that are about extensions
OF_EXTENSIONS = (
    "core/test_extension.py",
    "core/test_replicates.py",
    "config/test_catalog.py::test_a_header_is_not_taken_for_the_modality",
    "config/test_model_names.py::test_common_names_lead_to_models_of_karat",
    "results/test_run.py::test_heads_in_pickles_of_earlier_versions_are_found",
)


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """Copy the package without some folders, and return the folder that holds the copy."""

    def make(*deleted: str) -> Path:
        folder = tmp_path_factory.mktemp("without")
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT, folder / "karat", ignore=ignored)
        for name in deleted:
            path = folder / "karat" / name
            shutil.rmtree(path) if path.is_dir() else path.with_suffix(".py").unlink()
        return folder

    return make


def run(folder: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


@pytest.mark.slow
def test_the_core_works_without_any_extension(copies):
    there = [name for name in FACADES if list(ROOT.glob(f"{name}*"))]
    folder = copies("ext", *there)
    imported = run(folder, IMPORT_ALL)
    assert imported.returncode == 0, imported.stderr
    assert "gate" not in imported.stdout.split() and "leaderboard" in imported.stdout.split()
    done = run(folder, FLOW)
    codes = [line for line in done.stderr.splitlines() if line.endswith((": 0", ": 1", ": 2"))]
    verbs = ["run", "leaderboard", "compare", "check", "rescore", "show", "report", "--help"]
    assert codes == [f"{verb}: 0" for verb in verbs], done.stderr
    assert (folder / "report.html").stat().st_size > 100_000
    assert "onehot" in done.stdout and "Evaluate:" in done.stdout and "  race " not in done.stdout


def _left_out(name: str) -> tuple[str, str]:
    """Return the words that leave out a file, or a test of a file."""
    return ("--deselect" if "::" in name else "--ignore", name)


@pytest.mark.slow
def test_the_tests_of_the_core_pass_without_any_extension(copies):
    folder = copies("ext", *(name for name in FACADES if list(ROOT.glob(f"{name}*"))))
    ignored = shutil.ignore_patterns("__pycache__", "browser", "faults")
    shutil.copytree(TESTS, folder / "tests", ignore=ignored)
    shutil.copy(TESTS.parent / "pyproject.toml", folder)
    count = len(CORE_TESTS) if os.environ.get("KARAT_BORDER") == "full" else ALWAYS
    words = ["-q", "-p", "no:karat", "-p", "no:cacheprovider", "-m", "not slow and not network"]
    words += [f"tests/{name}" for name in CORE_TESTS[:count]]
    words += [word for name in OF_EXTENSIONS for word in _left_out(f"tests/{name}")]
    done = run(folder, "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))", *words)
    assert done.returncode == 0, done.stdout[-5000:]
    assert "passed" in done.stdout


#: modules that only another extension loads, which is deleted
LOADED_BY = {
    "plots": ("karat.ext.compat.taco.taco_plots", "karat.ext.decide.cheapest_plot"),
    "serve": ("karat.ext.compat.geval.served",),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", karat.ext.FOLDERS)
def test_each_extension_can_be_deleted_alone(copies, name):
    facades = [each for each in FACADES if each != "testing_plugin" or name == "decide"]
    there = [each for each in facades if each in (name, "testing_plugin", "search")]
    there = [each for each in there if list(ROOT.glob(f"{each}*"))]
    done = run(copies(f"ext/{name}", *there), IMPORT_ALL, *LOADED_BY.get(name, ()))
    assert done.returncode == 0, done.stderr
    present = set(done.stdout.split())
    assert name not in present and {"leaderboard", *karat.ext.FOLDERS[:1]} - {name} <= present
