"""Files that are whole or not there, full disks, and drafts of killed processes."""

import errno
import itertools
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from karat.core.files import encodable, locked
from karat.core.writing import (
    DRAFT,
    FULL,
    draft_file,
    draft_folder,
    full_disk_explained,
    remove_drafts,
    remove_partial_files,
    write_atomic,
    write_together,
)
from karat.errors import DiskFull


def test_write_replaces_the_file(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    write_atomic(path, "one\r\ntwo ü\n")
    assert path.read_bytes() == "one\r\ntwo ü\n".encode()
    write_atomic(path, "three", durable=True)
    assert path.read_text() == "three"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("text", ["\udc80", "é \ud83d x"])
def test_lone_surrogates_are_written_as_escapes(tmp_path, text):
    write_atomic(tmp_path / "file.txt", text)
    read = (tmp_path / "file.txt").read_text(encoding="utf-8")
    assert read == encodable(text) and "\\u" in read and encodable("é ☃") == "é ☃"


@pytest.mark.parametrize("number", FULL)
def test_a_full_disk_names_the_file_and_what_to_do(tmp_path, monkeypatch, number):
    def fail(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(
        DiskFull, match=r"cannot write .*/t\.0\.json: .*; free some space there, then repeat"
    ):
        write_atomic(tmp_path / "t.0.json", "{}", durable=True)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(os, "fsync", lambda descriptor: os.fsync)
    with pytest.raises(OSError):
        write_atomic(tmp_path, "x")


def test_a_disk_that_fills_up_while_a_folder_is_copied(tmp_path, monkeypatch):
    for name in "ab":
        write_atomic(tmp_path / "from" / name, "x")

    def fail(source, target, **_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfile", fail)
    with pytest.raises(DiskFull, match=r"to/[ab]: No space left on device; free some space"):
        with full_disk_explained(tmp_path):
            shutil.copytree(tmp_path / "from", tmp_path / "to")


def test_partial_files_of_killed_processes_are_removed(tmp_path, monkeypatch):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    kill = "import os, sys; from pathlib import Path; from karat.core import writing; "
    kill += "os.replace = lambda *_: os._exit(9); writing.write_atomic(Path(sys.argv[1]), 'x')"
    subprocess.run([sys.executable, "-c", kill, str(tmp_path / "a" / "file")], check=False)
    (left,) = (tmp_path / "a").iterdir()
    with monkeypatch.context() as patch:
        patch.setattr("platform.node", lambda: "another machine")
        remove_partial_files(tmp_path)
    assert left.exists()
    elsewhere = [f".{age}.1.00000000.7.tmp" for age in ("old", "new")]
    names = [f".x.1.{ended.pid}.tmp", ".old.tmp", "x.tmp", f".x.1.{'9' * 30}.tmp", *elsewhere]
    for name in names:
        (tmp_path / name).touch()
    for name in (".old.tmp", elsewhere[0]):  # the first is of another program
        os.utime(tmp_path / name, (0, 0))
    remove_partial_files(tmp_path)
    assert not left.exists()
    kept = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert kept == {*names} - {elsewhere[0]}


def test_readers_see_complete_files_only(tmp_path):
    path = tmp_path / "file.txt"
    texts = {letter * 200_000 for letter in "ab"}
    write_atomic(path, "a" * 200_000)
    seen, done = set(), threading.Event()

    def read():
        while not done.is_set():
            seen.add(path.read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for text in [*texts] * 10:
        write_atomic(path, text)
    done.set()
    reader.join()
    assert seen <= texts


def test_the_error_of_a_full_disk_survives_another_process():
    full = DiskFull("results/x", "No space left on device", "wait")
    assert str(pickle.loads(pickle.dumps(full))) == str(full)
    with pytest.raises(DiskFull, match="cannot write b: File too large"):
        with full_disk_explained(Path("folder")):
            raise OSError(errno.EFBIG, "File too large", "a", None, "b")
    with pytest.raises(PermissionError), full_disk_explained(Path("folder")):
        raise PermissionError(errno.EACCES, "Permission denied")


def test_a_draft_replaces_the_file_only_if_all_went_well(tmp_path):
    path = tmp_path / ("long name " * 20)
    path.write_text("before")
    with pytest.raises(ValueError), draft_file(path) as draft:
        draft.write_text("half")
        raise ValueError
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]
    with draft_file(path) as draft:
        draft.write_text("after")
    assert path.read_text() == "after" and list(tmp_path.iterdir()) == [path]


def test_draft_folders_of_killed_processes_are_removed_and_no_others(tmp_path):
    code = "import os, sys; from pathlib import Path; from karat.core import writing\n"
    code += "with writing.draft_folder(Path(sys.argv[1])) as draft:\n"
    code += "    (draft / 'file').write_text('x'); print(draft, flush=True); sys.stdin.read()\n"
    call = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        theirs = Path(other.stdout.readline().strip())
        with draft_folder(tmp_path) as mine:
            remove_drafts(tmp_path)
            assert (theirs / "file").exists() and mine.exists()  # both processes are alive
        other.kill()
    assert (theirs / "file").exists()
    with draft_folder(tmp_path):
        assert not theirs.exists()
    assert not list(tmp_path.iterdir())
    # one that was made but not yet locked counts after a day
    (tmp_path / f"{DRAFT}new").mkdir()
    remove_drafts(tmp_path)
    assert (tmp_path / f"{DRAFT}new").exists()
    os.utime(tmp_path / f"{DRAFT}new", (time.time() - 90_000,) * 2)
    remove_drafts(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_draft_whose_removal_is_killed_is_removed_later(tmp_path):
    for kill_at in range(1, 8):
        if (child := os.fork()) == 0:
            try:
                with draft_folder(tmp_path) as draft:
                    for folder in ("a", "b", "z"):
                        (draft / folder).mkdir()
                        (draft / folder / "file").write_text("x")
                    _kill_at_removal(kill_at)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == -9
        assert any(path.is_file() for path in tmp_path.rglob("*"))
        with draft_folder(tmp_path):
            pass
        assert not list(tmp_path.iterdir()), kill_at


def _kill_at_removal(number):
    """Kill this process when it removes its n-th file or folder."""
    removed = itertools.count(1)

    def heard(event, _):
        if event in ("os.remove", "os.rmdir") and next(removed) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(heard)


def test_drafts_in_a_file_system_without_locks_stay(tmp_path, monkeypatch):
    import fcntl

    folder = tmp_path / f"{DRAFT}theirs"
    folder.mkdir()
    with locked(folder):
        pass

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        remove_drafts(tmp_path)
    assert folder.exists()


def test_files_are_written_together_or_not_at_all(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    write_together(folder, {"a/1.html": "one", "b.html": "two"})
    assert (folder / "a" / "1.html").read_text() == "one"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    real, written = write_atomic, []

    def full(path, text):
        written.append(path)
        if len(written) > 1:
            raise DiskFull(str(path), "No space left on device")
        real(path, text)

    monkeypatch.setattr("karat.core.writing.write_atomic", full)
    for target in (folder, tmp_path / "new"):
        written.clear()
        with pytest.raises(DiskFull, match=f"cannot write {target}: No space"):
            write_together(target, {"a/1.html": "changed", "b.html": "changed"})
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "new").exists()
