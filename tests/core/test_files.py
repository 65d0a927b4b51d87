"""The cache, temporary folders, package files, safe names, atomic writes, fingerprints."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.core.files import (
    LOCK,
    SCRATCH,
    _hashes,
    cache_folder,
    file_hash,
    fingerprint,
    package_file,
    private_folder,
    safe_name,
    temporary_folder,
)
from karat.errors import Declined, KaratError


@pytest.fixture
def home(monkeypatch, tmp_path):
    for name in ("KARAT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_users_choice_wins(monkeypatch, home):
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    monkeypatch.setenv("KARAT_CACHE", "kept/here")
    assert cache_folder() == home / "kept/here"
    monkeypatch.setenv("KARAT_CACHE", "~/mine")
    assert cache_folder() == home / "mine" and not cache_folder().exists()


@pytest.mark.parametrize(
    ("platform", "place", "variable"),
    [
        ("linux", ".cache", "XDG_CACHE_HOME"),
        ("darwin", "Library/Caches", ""),
        ("win32", "AppData/Local", "LOCALAPPDATA"),
    ],
)
def test_each_platform_has_its_place_and_variable(monkeypatch, home, platform, place, variable):
    monkeypatch.setattr("sys.platform", platform)
    assert cache_folder() == home / place / "karat"
    if variable:
        monkeypatch.setenv(variable, "/somewhere")
        assert cache_folder() == Path("/somewhere/karat")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


HOLD = """
import os, sys
from karat.core.files import temporary_folder
with temporary_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
    os._exit(9)
"""


def test_a_temporary_folder_is_removed_once_its_process_has_ended_without_it(temporary):
    command = [sys.executable, "-c", HOLD]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        theirs = Path(process.stdout.readline().strip())
        # its process id says nothing: here it is as in another container or on another machine
        renamed = theirs.rename(temporary / f"{SCRATCH}999999999-other")
        with temporary_folder() as mine:
            assert renamed.is_dir() and mine.is_dir()
        process.communicate("")
    with temporary_folder():
        assert not renamed.exists()
    assert not mine.exists() and not list(temporary.iterdir())


def test_temporary_folders_without_a_lock_are_removed_after_days(temporary):
    elsewhere = temporary / "elsewhere"
    names = [f"{SCRATCH}999999999-{name}" for name in ("new", "old", "used", "link")]
    for name in [*names[:3], elsewhere]:
        (temporary / name / "store").mkdir(parents=True)
    (temporary / names[3]).symlink_to(elsewhere)
    long_ago = time.time() - 30 * 86400
    for path in (names[1], f"{names[1]}/store", names[2], "elsewhere", "elsewhere/store"):
        os.utime(temporary / path, (long_ago, long_ago))
    with temporary_folder() as mine:
        left = {path.name for path in temporary.iterdir()}
    assert left == {names[0], names[2], names[3], "elsewhere", mine.name}
    assert (elsewhere / "store").is_dir()


def test_nothing_is_removed_without_locks(temporary, monkeypatch):
    (temporary / f"{SCRATCH}1-a").mkdir()
    (temporary / f"{SCRATCH}1-a" / LOCK).touch()
    monkeypatch.setattr("karat.core.files.file_locks", lambda: None)
    with temporary_folder() as mine:
        assert len(list(temporary.iterdir())) == 2
    assert not mine.exists()


def test_a_folder_of_a_known_name_must_be_private(tmp_path):
    made = private_folder(tmp_path / "mine")
    assert made.stat().st_mode & 0o777 == 0o700
    assert private_folder(made) == made
    (tmp_path / "link").symlink_to(made)
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for name in ("link", "file", "open"):
        with pytest.raises(KaratError, match=name):
            private_folder(tmp_path / name)


def test_a_file_of_a_package_is_found_and_its_code_not_run(tmp_path, monkeypatch):
    folder = tmp_path / "weighty"
    (folder / "data").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise SystemExit('it was imported')")
    (folder / "data" / "model.onnx").write_text("x")
    monkeypatch.syspath_prepend(tmp_path)
    assert package_file("package:weighty/data/model.onnx") == folder / "data" / "model.onnx"
    assert package_file("package:weighty/data").is_dir()
    assert "weighty" not in sys.modules
    with pytest.raises(Declined, match="weighty.*other.onnx"):
        package_file("package:weighty/other.onnx")


@pytest.mark.parametrize("name", ["package:nowhere_at_all/x", "package:a.b/x", "package:/x"])
def test_a_package_that_is_not_there_declines_and_a_path_stays(name, tmp_path):
    with pytest.raises(Declined, match="not found"):
        package_file(name)
    assert package_file(str(tmp_path / "a")) == tmp_path / "a"


@pytest.mark.parametrize("name", ["penguins", "a-b_c", "noise@0.1", "v1.2", "UPPER", "a+b=c,d"])
def test_plain_names_are_unchanged(name):
    assert safe_name(name) == name


ODD = ["", " ", ".", "..", "../..", "/etc/passwd", "a/b", "a\\b", 'a"b', "<script>", "a\0b", "é"]
ODD += ["a b", "a  b", ".hidden", "end.", "\ud800", "x" * 300, "x" * 301, "con:", "a\nb", "a\tb"]
ODD += [safe_name("a b"), safe_name(safe_name("a b"))]


@pytest.mark.parametrize("name", ODD)
def test_unsafe_names_become_one_component(name):
    made = safe_name(name)
    assert os.path.basename(made) == made
    assert made not in ("", ".", "..")
    assert not made.startswith(".")
    assert len(made.encode()) <= 60
    assert made.isascii()
    assert made == safe_name(name)


@given(st.lists(st.text(max_size=8), min_size=2, max_size=2, unique=True))
def test_different_names_stay_different(pair):
    assert safe_name(pair[0]) != safe_name(pair[1])
    assert len({safe_name(name) for name in ODD}) == len(ODD)


steady = settings(deadline=None, derandomize=True, max_examples=60)

LONG = np.arange(5000)
DIFFERENT = {
    "ints": pd.Series([1, 2]),
    "other ints": pd.Series([1, 3]),
    "order": pd.Series([2, 1]),
    "floats": pd.Series([1.0, 2.0]),
    "small ints": pd.Series([1, 2], dtype="int8"),
    "nullable": pd.Series([1, 2], dtype="Int64"),
    "text": pd.Series(["1", "2"]),
    "mixed": pd.Series([1, "2"], dtype=object),
    "mixed the other way": pd.Series(["1", 2], dtype=object),
    "objects": pd.Series([1, 2], dtype=object),
    "truth values": pd.Series([True, False]),
    "true as object": pd.Series([True, 2], dtype=object),
    "none": pd.Series([1, None], dtype=object),
    "nan": pd.Series([1, np.nan], dtype=object),
    "index": pd.Series([1, 2], index=[5, 6]),
    "index of text": pd.Series([1, 2], index=["0", "1"]),
    "index of floats": pd.Series([1, 2], index=[0.0, 1.0]),
    "category": pd.Series(["1", "2"], dtype="category"),
    "category with a spare": pd.Series(pd.Categorical(["1", "2"], ["1", "2", "3"])),
    "category in order": pd.Series(pd.Categorical(["1", "2"], ["1", "2"], ordered=True)),
    "category turned": pd.Series(pd.Categorical(["1", "2"], ["2", "1"])),
    "frame": pd.DataFrame({"a": [1, 2]}),
    "other name": pd.DataFrame({"b": [1, 2]}),
    "name of a number": pd.DataFrame({0: [1, 2]}),
    "name of that digit": pd.DataFrame({"0": [1, 2]}),
    "two columns": pd.DataFrame({"a": [1, 2], "b": [1, 2]}),
    "columns turned": pd.DataFrame({"b": [1, 2], "a": [1, 2]}),
    "dates": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"])),
    "zone": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"], utc=True)),
    "arrays": pd.Series([LONG, LONG]),
    "other arrays": pd.Series([LONG, np.where(LONG == 2500, 0, LONG)]),
    "lists": pd.Series([[1], [2]]),
    "tuples": pd.Series([(1,), (2,)]),
    "half a letter": pd.Series(["\ud83d", "x"], dtype=object),
    "another half": pd.Series(["\ud83e", "x"], dtype=object),
    "empty": pd.Series([], dtype=float),
}


def test_different_things_never_share_a_fingerprint_and_equal_things_do():
    marks = {name: fingerprint(values) for name, values in DIFFERENT.items()}
    alike = [(a, b) for a, b in combinations(marks, 2) if marks[a] == marks[b]]
    assert alike == []
    for name, values in DIFFERENT.items():
        assert marks[name] == fingerprint(values.copy(deep=True)), name


def test_it_is_the_same_in_another_process():
    code = (
        "import pandas as pd; from karat.core.files import fingerprint;"
        "print(fingerprint(pd.DataFrame({'a': ['x', None, 3], 'b': [1.5, 2, 3]})))"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = fingerprint(pd.DataFrame({"a": ["x", None, 3], "b": [1.5, 2, 3]}))
    assert there.stdout.strip() == here


cells = st.one_of(st.text(), st.integers(), st.floats(allow_nan=False), st.booleans(), st.none())


@steady
@given(st.lists(cells, min_size=1, max_size=4), st.lists(cells, min_size=1, max_size=4))
def test_cells_of_any_type_have_different_fingerprints(one, other):
    def written(values):
        return [(type(value).__name__, repr(value)) for value in values]

    same = written(one) == written(other)
    marks = [fingerprint(pd.Series(values, dtype=object)) for values in (one, other)]
    assert (marks[0] == marks[1]) == same


def test_the_hash_of_a_file_follows_its_content(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"a 1\n")
    before = file_hash(path)
    assert before == hashlib.sha256(b"a 1\n").hexdigest()
    path.write_bytes(b"a 22\n")
    assert file_hash(path) == hashlib.sha256(b"a 22\n").hexdigest()


@pytest.mark.parametrize("dtype", [object, "str"])
@pytest.mark.parametrize("cells", [["a", "b", "a"], ["a", None, "é"], [None, None, None]])
def test_texts_are_hashed_as_pandas_does(cells, dtype):
    column = pd.Series(cells, dtype=dtype)
    expected = np.asarray(pd.util.hash_pandas_object(column, index=False), dtype=np.uint64)
    assert _hashes(column) == expected.tobytes()
