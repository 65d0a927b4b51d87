"""The cache folder: the user's choice first, then the platform's own; and folders of runs."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from karat.core.files import SCRATCH, cache_folder, temporary_folder


@pytest.fixture(autouse=True)
def plain(monkeypatch, tmp_path):
    for name in ("KARAT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_the_users_choice_wins(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    monkeypatch.setenv("KARAT_CACHE", "kept/here")
    assert cache_folder() == tmp_path / "kept/here"
    monkeypatch.setenv("KARAT_CACHE", "~/mine")
    assert cache_folder() == tmp_path / "mine"


@pytest.mark.parametrize(
    ("platform", "place"),
    [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")],
)
def test_each_platform_has_its_place(monkeypatch, tmp_path, platform, place):
    monkeypatch.setattr("sys.platform", platform)
    assert cache_folder() == tmp_path / place / "karat"


def test_the_platforms_own_variables_count(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/karat")
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert cache_folder() == Path("/local/karat")


def test_the_folder_is_not_made_by_asking(monkeypatch, tmp_path):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "new"))
    assert not cache_folder().exists()


def test_a_run_takes_along_what_killed_ones_left_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    names = [f"{SCRATCH}{ended.pid}-dead", f"{SCRATCH}{os.getppid()}-lives", "karat-run-mine"]
    for name in names:
        (tmp_path / name / "shelf").mkdir(parents=True)
    with temporary_folder() as mine:
        assert mine.name.startswith(f"{SCRATCH}{os.getpid()}-")
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {names[1], names[2], mine.name}
    assert not mine.exists()
