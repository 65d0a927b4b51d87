"""The source distribution and the wheel contain what an installed Karat needs."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import BytesParser
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import karat

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCE = ROOT / "src" / "karat"

pytest.importorskip("build")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the folder with both archives; offline where hatchling is installed."""
    folder = tmp_path_factory.mktemp("dist")
    options = ["--no-isolation"] if find_spec("hatchling") else []
    run("build", *options, "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


@pytest.fixture(scope="module")
def sdist(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.fixture(scope="module")
def metadata(wheel):
    return BytesParser().parsebytes(wheel.read(f"karat-{karat.__version__}.dist-info/METADATA"))


def run(module, *arguments):
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def data_files(folder, *suffixes):
    return {
        path.relative_to(SOURCE.parent).as_posix()
        for path in (SOURCE / folder).rglob("*")
        if path.suffix in suffixes
    }


def test_archives_pass_the_checks_of_the_package_index(built):
    pytest.importorskip("twine")
    run("twine", "check", "--strict", *sorted(built.iterdir()))


@pytest.mark.parametrize(
    "folder, suffixes",
    [
        ("config/builtin", [".yaml"]),
        ("reporting/html", [".js", ".css"]),
        ("analysis/check_pages", [".md"]),
        (".", [".py", ".typed"]),
    ],
)
def test_the_wheel_contains(wheel, sdist, folder, suffixes):
    wanted = data_files(folder, *suffixes)
    assert wanted
    assert wanted <= set(wheel.namelist())
    assert {f"src/{name}" for name in wanted} <= sdist


def test_the_wheel_contains_nothing_else(wheel):
    outside = {name.partition("/")[0] for name in wheel.namelist()}
    assert outside == {"karat", f"karat-{karat.__version__}.dist-info"}
    assert not [name for name in wheel.namelist() if "__pycache__" in name]
    assert "karat/py.typed" in wheel.namelist()


def test_the_source_distribution_can_be_tested(sdist):
    needed = {"pyproject.toml", "README.md", "LICENSE", "Makefile", "constraints.txt"}
    assert needed | {"constraints-lowest.txt", "tests/conftest.py", "docs/index.md"} <= sdist


def test_the_version_is_that_of_the_module(built, metadata):
    assert metadata["Version"] == karat.__version__
    names = {path.name for path in built.iterdir()}
    version = karat.__version__
    assert names == {f"karat-{version}-py3-none-any.whl", f"karat-{version}.tar.gz"}


def test_metadata_are_those_of_the_project(metadata):
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL"))
    assert urls == PROJECT["urls"]
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    assert metadata["License-Expression"] == PROJECT["license"]
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])


def test_the_console_script_is_the_main_function(wheel):
    text = wheel.read(f"karat-{karat.__version__}.dist-info/entry_points.txt").decode()
    assert f"karat = {PROJECT['scripts']['karat']}" in text.splitlines()


def test_the_lowest_versions_are_the_lower_bounds_of_the_project():
    extras = PROJECT["optional-dependencies"]
    bounds = {r.name: r.specifier for r in map(Requirement, sum(extras.values(), []))}
    needed = {r.name for r in map(Requirement, PROJECT["dependencies"] + extras["test"])}
    bounds |= {r.name: r.specifier for r in map(Requirement, PROJECT["dependencies"])}
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert needed <= set(pinned)
    for name, version in pinned.items():
        (lowest,) = [Version(s.version) for s in bounds[name] if s.operator == ">="]
        assert Version(version) == lowest, name
