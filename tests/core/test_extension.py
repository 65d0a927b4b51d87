"""Extensions: found by the table of folders and by entry points; a missing one adds nothing."""

import importlib.metadata
import sys
import types

import pytest

from karat.core import extension
from karat.core.extension import (
    Command,
    Extension,
    builtin_extensions,
    builtin_parts,
    commands,
    installed_extensions,
)
from karat.core.registry import Registry
from karat.errors import DefinitionError


@pytest.fixture(autouse=True)
def read_anew():
    caches = (builtin_extensions, installed_extensions)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def folder(monkeypatch, name, **module):
    """Add a folder of extensions of Karat, with this ``extension.py``."""
    for path in (f"karat.ext.{name}", f"karat.ext.{name}.extension"):
        made = types.ModuleType(path)
        made.__path__ = []
        monkeypatch.setitem(sys.modules, path, made)
    vars(sys.modules[f"karat.ext.{name}.extension"]).update(module)


def install(monkeypatch, value, name="mine"):
    point = importlib.metadata.EntryPoint(name, value, "karat.extensions")

    def entry_points(*, group):
        return [point] if group == point.group else []

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)


def test_a_folder_adds_its_parts_and_a_missing_one_nothing(monkeypatch):
    monkeypatch.setattr("karat.ext.FOLDERS", ("first", "missing"))
    toys = {"toy": {"ball": "math:pi"}, "command": {"play": Command("math:floor", "Play.")}}
    folder(monkeypatch, "first", extension=Extension("first", toys))
    assert builtin_parts("toy") == {"ball": "math:pi"}
    assert builtin_parts("car") == {}
    assert [name for name, _ in commands(builtin_extensions())] == ["play"]
    assert Registry("toy").get("ball") == pytest.approx(3.14159, abs=1e-5)
    assert list(Registry("toy")) == ["ball"]


def test_an_extension_without_what_it_requires_adds_nothing(monkeypatch):
    monkeypatch.setattr("karat.ext.FOLDERS", ("first", "second"))
    for name, requires in (("first", ("absent",)), ("second", ())):
        added = {"toy": {name: "math:pi"}}
        folder(monkeypatch, name, extension=Extension(name, added, requires=requires))
    assert builtin_parts("toy") == {"second": "math:pi"}


def test_an_error_inside_an_extension_is_no_missing_folder(monkeypatch, tmp_path):
    monkeypatch.setattr("karat.ext.FOLDERS", ("broken",))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "__init__.py").touch()
    (tmp_path / "broken" / "extension.py").write_text("import no_such_module_here\n")
    monkeypatch.setattr("karat.ext.__path__", [str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="no_such_module_here"):
        builtin_extensions()
    for name in ("karat.ext.broken", "karat.ext.broken.extension"):
        sys.modules.pop(name, None)


def test_without_the_package_of_extensions_there_are_none(monkeypatch):
    monkeypatch.setattr(extension, "BUILTIN", "karat.no_such_package")
    assert builtin_extensions() == ()


def test_installed_packages_add_parts_and_commands(monkeypatch):
    module = types.ModuleType("karat_toys")
    module.extension = Extension("toys", {"toy": {"ball": "math:pi"}})
    monkeypatch.setitem(sys.modules, "karat_toys", module)
    install(monkeypatch, "karat_toys:extension")
    toys = Registry("toy")
    assert "ball" in toys and toys.own() == {"ball": "math:pi"}


@pytest.mark.parametrize("value", ["no_such_module_here:extension", "math:pi"])
def test_an_installed_extension_that_cannot_be_used_is_one_clear_message(monkeypatch, value):
    install(monkeypatch, value)
    with pytest.raises(DefinitionError, match='"mine"') as caught:
        list(Registry("toy"))
    assert "fix or uninstall" in str(caught.value)
