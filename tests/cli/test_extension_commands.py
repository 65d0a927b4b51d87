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


def test_a_command_of_another_package_is_listed_and_run(cli, greeting):
    assert "greet" in cli("--help").out and "Say good morning." in cli("--help").out
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
