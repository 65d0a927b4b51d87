"""Commands of extensions: listed without being imported, imported when they are called."""

import importlib.metadata
import subprocess
import sys
import types

import click
import pytest

from karat.cli.app import karat as group
from karat.core.extension import (
    Command,
    Extension,
    builtin_extensions,
    commands,
    installed_extensions,
)


@pytest.fixture
def greeting(monkeypatch):
    """Install an extension with the command ``greet``."""

    @click.command("greet")
    def greet():
        click.echo("good morning")

    module = types.ModuleType("karat_greeting")
    module.greet = greet
    command = Command("karat_greeting:greet", "Say good morning.")
    module.extension = Extension("greeting", {"command": {"greet": command}})
    monkeypatch.setitem(sys.modules, "karat_greeting", module)
    point = importlib.metadata.EntryPoint(
        "greeting", "karat_greeting:extension", "karat.extensions"
    )
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda *, group: [point] if group == "karat.extensions" else [],
    )
    installed_extensions.cache_clear()
    yield
    installed_extensions.cache_clear()


def test_the_help_tells_what_each_command_tells_of_itself():
    every = group.all_commands()
    for name, part in commands(builtin_extensions()):
        assert part.help == every[name].get_short_help_str(100), name


def listed(help_text):
    """Return the commands of a help text by group."""
    groups = {}
    for line in help_text.splitlines():
        if line.endswith(":") and not line.startswith((" ", "Usage", "Options")):
            members = groups.setdefault(line[:-1], [])
        elif groups and line.startswith("  ") and line[2:3].strip() and not line[2:3].isupper():
            members.append(line.split()[0])
    return groups


def test_the_help_lists_every_command_once_in_five_groups(cli):
    groups = listed(cli("--help").out)
    assert list(groups) == ["Evaluate", "Understand", "Decide", "Share", "Scale"]
    names = [name for members in groups.values() for name in members]
    assert len(names) == len(set(names)) <= 22
    hidden = {"cache", "geval", "inspect", "lint", "site", "status"}
    assert {*names} == {*group.all_commands()} - hidden
    assert "race" in groups["Evaluate"] and "gather" in groups["Scale"]


def test_a_command_of_another_package_is_listed_and_run(cli, greeting):
    assert listed(cli("--help").out)["More"] == ["greet"]
    assert "Say good morning." in cli("--help").out
    assert cli("greet").out == "good morning\n"


def test_the_help_imports_no_command_of_an_extension():
    code = "import sys; from karat.cli.app import main\ntry: main()\nexcept SystemExit: pass\n"
    code += (
        "print([m for m in sys.modules if m.startswith('karat.ext') and m.endswith('commands')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
