import sys
from importlib.metadata import EntryPoint

import pytest

from karat.definitions import Definitions, files
from karat.definitions.files import builtin_files, installed_files, user_files
from karat.errors import DefinitionError


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Install a package ``karat_plugin`` with one entry point; call it with another value."""
    package = tmp_path / "site" / "karat_plugin"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "more.yaml").write_text("constraints: {of-plugin: {folds: 3}}")
    (package / "deep" / "more.yaml").write_text("constraints: {of-deep: {folds: 4}}")
    monkeypatch.syspath_prepend(str(package.parent))

    def install(*values):
        points = [EntryPoint(f"p{i}", value, files.GROUP) for i, value in enumerate(values)]
        monkeypatch.setattr(files, "entry_points", lambda group: points)
        return package

    yield install
    sys.modules.pop("karat_plugin", None)


def labels(found):
    return [file.label for file, _ in found[0]]


def test_builtin_files_are_named_after_the_package():
    found, mistakes = builtin_files()
    assert mistakes == []
    assert all(file.label.startswith("karat/definitions/") and file.supplied for file, _ in found)


def test_files_of_installed_packages(plugin):
    package = plugin("karat_plugin:more.yaml", "karat_plugin:deep/more.yaml")
    found, mistakes = installed_files()
    assert mistakes == []
    assert [(file.label, file.folder) for file, _ in found] == [
        ("karat_plugin/more.yaml", package),
        ("karat_plugin/deep/more.yaml", package / "deep"),
    ]
    assert Definitions.load().get("constraints", "of-plugin")["folds"] == 3


def test_a_broken_installed_package_is_named(plugin):
    plugin("karat_plugin:less.yaml", "karat_no_such_package:x.yaml")
    with pytest.raises(DefinitionError) as caught:
        Definitions.load()
    first, second = caught.value.messages
    assert first.startswith('karat_plugin/less.yaml: the entry point "p0"')
    assert '"karat_plugin:less.yaml"' in first and "FileNotFoundError" in first
    assert "ModuleNotFoundError" in second


def test_entries_of_installed_packages_are_checked_on_first_use(plugin):
    package = plugin("karat_plugin:more.yaml")
    (package / "more.yaml").write_text("constraints: {of-plugin: {fold: 3}}")
    definitions = Definitions.load()
    for check in (lambda: definitions.get("constraints", "of-plugin"), definitions.validate_all):
        with pytest.raises(DefinitionError, match='of-plugin.fold: .*"folds"'):
            check()


def test_a_folder_means_its_yaml_files_sorted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "defs"
    folder.mkdir()
    for name in ("b.yaml", "a.yml", "notes.txt", ".hidden.yaml"):
        (folder / name).write_text("")
    (folder / "c.yaml").mkdir()
    assert labels(user_files([folder])) == ["defs/a.yml", "defs/b.yaml"]


def test_a_file_named_twice_is_read_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("constraints: {x: {folds: 1}}")
    assert labels(user_files(["a.yaml", tmp_path, tmp_path / "a.yaml"])) == ["a.yaml"]


def test_paths_are_relative_only_below_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "a.yaml").write_text("")
    assert labels(user_files([tmp_path / "a.yaml"])) == [str(tmp_path / "a.yaml")]
    assert labels(user_files(["../a.yaml"])) == ["../a.yaml"]


def test_what_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text("")
    (tmp_path / "empty").mkdir()
    _, mistakes = user_files(["my.yml", "empty", "no/such/folder.yaml"])
    assert [mistake.file for mistake in mistakes] == ["my.yml", "empty", "no/such/folder.yaml"]
    assert '"my.yaml"' in mistakes[0].text and ".yaml" in mistakes[1].text
