"""The promises of the six systems: every row of their ``promises.yaml`` is run and checked.

A row has ``section``, ``promise``, ``call``, ``expect`` and ``test``, and optionally ``setup`` and
``differs``. ``call`` is Python or one command per line (``karat ...``, ``python -m karat...``). The
setups of a system are Python; each runs once in the folder that the rows of the system share.
``expect`` has one or more Python expressions about the names of the setup and the call, ``result``
(the value of the last expression of the call) or ``code`` and ``output`` of the last command.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "promises.py"))
SYSTEMS = [name for name in SCRIPT["SYSTEMS"] if SCRIPT["has_promises"](name)]
PROMISES = {name: SCRIPT["read_promises"](name) for name in SYSTEMS}
COMMAND = re.compile(r"(karat|python) ")
KEYS = {"section", "promise", "call", "expect", "test", "setup", "differs"}
MIGRATIONS = [name for name in SYSTEMS if "migration" in PROMISES[name]]
ROWS = [(name, row) for name in SYSTEMS for row in PROMISES[name]["rows"]]


def row_id(value: Any) -> str:
    return value if isinstance(value, str) else re.sub(r"\W+", "-", value["promise"])[:60]


@pytest.mark.parametrize(("system", "row"), ROWS, ids=row_id)
def test_a_row_names_its_call_its_check_and_its_test(system, row):
    assert set(row) <= KEYS, f"unknown keys: {set(row) - KEYS}"
    for key in ("section", "promise", "call", "expect", "test"):
        assert row.get(key), f"the row has no {key}"
    path, _, name = row["test"].partition("::")
    assert f"def {name}(" in (ROOT / path).read_text(), row["test"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_page_of_a_system_is_made_from_its_promises(system):
    page = SCRIPT["page_of"](system).read_text()
    assert page == SCRIPT["rendered"](page, PROMISES[system]), "run python scripts/promises.py"


class Sandbox:
    """The folder of a system in which its rows run, and the names that its setups define."""

    def __init__(self, system: str, folder: Path) -> None:
        self.folder = folder
        self.setups: dict[str, str] = PROMISES[system].get("setups", {})
        self.made: dict[str, dict[str, Any]] = {}

    def names(self, setups: str | list[str] | None) -> dict[str, Any]:
        """Return the names of some setups, which run in the order given, each once."""
        names: dict[str, Any] = {"Path": Path, "folder": self.folder}
        for setup in [setups] if isinstance(setups, str) else setups or []:
            if setup not in self.made:
                made = dict(names)
                exec(compile(self.setups[setup], f"setup {setup}", "exec"), made)
                self.made[setup] = made  # a setup that needs a missing library is tried again
            names |= self.made[setup]
        return names


@pytest.fixture(scope="module")
def sandboxes(tmp_path_factory) -> dict[str, Sandbox]:
    return {name: Sandbox(name, tmp_path_factory.mktemp(name)) for name in SYSTEMS}


def run_python(code: str, names: dict[str, Any]) -> None:
    """Run statements; ``result`` is the value of the last expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "call", "exec"), names)
    if isinstance(last, ast.Expr):
        names["result"] = eval(compile(ast.Expression(last.value), "call", "eval"), names)


@contextlib.contextmanager
def arguments(words: list[str]) -> Iterator[None]:
    before = sys.argv
    sys.argv = words
    try:
        yield
    finally:
        sys.argv = before


def run_command(line: str, cli: Any) -> tuple[int, str]:
    """Run a command in this process; return its exit code and its output."""
    words = shlex.split(line)
    if words[0] == "karat":
        done = cli(*words[1:])
        return done.code, done.out + done.err
    printed, code = io.StringIO(), 0
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            if words[1] == "-m":
                # a path: the loader by which pytest imports packages with plugins has no code
                (folder,) = importlib.util.find_spec(words[2]).submodule_search_locations
                with arguments(words[2:]):
                    runpy.run_path(f"{folder}/__main__.py", run_name="__main__")
            else:
                with arguments(words[1:]):
                    runpy.run_path(words[1], run_name="__main__")
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, printed.getvalue()


@pytest.mark.parametrize(("system", "row"), ROWS, ids=row_id)
def test_a_promise_is_kept(system, row, sandboxes, cli, monkeypatch):
    sandbox = sandboxes[system]
    monkeypatch.chdir(sandbox.folder)
    monkeypatch.setattr(sys, "path", [str(sandbox.folder), *sys.path])
    # --data-dir of a command must not be seen by later rows
    monkeypatch.setenv("KARAT_DATA", "")
    monkeypatch.delenv("KARAT_DATA")
    names = sandbox.names(row.get("setup"))
    if COMMAND.match(row["call"]):
        for line in filter(None, map(str.strip, row["call"].splitlines())):
            names["code"], names["output"] = run_command(line, cli)
    else:
        run_python(row["call"], names)
    checks = [row["expect"]] if isinstance(row["expect"], str) else row["expect"]
    for check in checks:
        assert eval(check, names), f"{check}\n{names.get('output', names.get('result'))}"


def original_example(migration: dict[str, Any]) -> str:
    """Return the example as it is written for the original: with its imports."""
    example = migration["example"]
    for original, ours in migration["replace"].items():
        assert ours in example, ours
        example = example.replace(ours, original)
    return example


@pytest.mark.parametrize("system", MIGRATIONS)
@pytest.mark.parametrize("side", ["original", "karat"])
def test_the_migration_example_runs(system, side, script, cli, tmp_path, monkeypatch):
    """With the original's imports it runs on small modules of their names that import Karat's."""
    migration = PROMISES[system]["migration"]
    sandbox = Sandbox(system, tmp_path)
    monkeypatch.chdir(tmp_path)
    sandbox.names(migration.get("setup"))
    for name, value in migration.get("environment", {}).items():
        monkeypatch.setenv(name, value)
    example = migration["example"] if side == "karat" else original_example(migration)
    if side == "original":
        for name, content in migration["shims"].items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
    if migration.get("language", "py") == "py":
        (tmp_path / "example.py").write_text(example)
        done = script(tmp_path / "example.py", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    else:
        for line in example.strip().splitlines():
            code, output = run_command(line, cli)
            assert code == 0, output
    for check in migration["expect"]:
        assert eval(check, {"Path": Path, "folder": tmp_path}), check
