"""The database of endpoints: its log, the room it makes, and file systems without locks."""

import errno
import os
import sqlite3

import pytest

from karat.core import files
from karat.ext.endpoints import endpoint_processes, endpoint_store
from karat.ext.endpoints.endpoint_account import Request, Settlement
from karat.ext.endpoints.endpoint_processes import owner_file
from karat.ext.endpoints.endpoint_store import Unwritable

from .accounts import make_account
from .test_endpoint_vectors import FAMILY, add, answer_of, filled, marks_of, table_in


def test_the_log_is_used_where_the_file_system_allows_it(tmp_path, monkeypatch):
    filled(tmp_path / "local").database.close()
    monkeypatch.setattr(endpoint_store, "_on_network", lambda folder: True)
    filled(tmp_path / "network").database.close()
    modes = []
    for name in ("local", "network"):
        connection = sqlite3.connect(tmp_path / name / "endpoints-1.sqlite")
        modes += connection.execute("PRAGMA journal_mode").fetchone()
        connection.close()
    assert modes == ["wal", "delete"]


def test_room_is_made_before_a_request(tmp_path, monkeypatch):
    def full(descriptor, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    account = make_account(store=tmp_path)
    table = account.vectors(FAMILY)
    with monkeypatch.context() as patched:
        patched.setattr(endpoint_store, "_allocate", full)
        with pytest.raises(Unwritable, match=r"endpoints-1\.sqlite: No space left on device"):
            account.claim(table, Request(marks_of("a"), room=10**6), 0.0)
    claim = account.claim(table, Request(marks_of("a"), room=10**6), 0.0)
    (room,) = tmp_path.glob("room-*")
    assert room.stat().st_size >= 2 * 10**6
    account.finish(claim, table, "m", Settlement())
    account.close()
    assert not room.exists()


def test_the_room_of_a_dead_process_is_freed(tmp_path):
    tmp_path.joinpath("room-999999999.tmp").write_bytes(b"x")
    filled(tmp_path)
    assert not list(tmp_path.glob("*.tmp"))


def test_what_cannot_be_written_can_be_read(tmp_path, monkeypatch):
    filled(tmp_path).database.close()
    connect = endpoint_store._connect

    def read_only(path, mode, locks=True):
        if mode.startswith("rw"):
            error = sqlite3.OperationalError("attempt to write a readonly database")
            error.sqlite_errorcode = sqlite3.SQLITE_READONLY
            raise error
        return connect(path, mode, locks)

    monkeypatch.setattr(endpoint_store, "_connect", read_only)
    table = table_in(tmp_path)
    assert table.read(marks_of("a")).vectors.tolist() == [[1, 2]]
    with pytest.raises(Unwritable, match="readonly"):
        add(table, answer_of("d"))


def test_what_was_stored_is_on_the_disk_before_it_is_used(tmp_path, monkeypatch):
    """After a power failure, only what was forced to the disk is there."""
    forced = []
    table = filled(tmp_path)
    fsync = os.fsync

    def recorded(descriptor):
        forced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs the names of open files")
    monkeypatch.setattr(os, "fsync", recorded)
    table.database.flush()
    assert forced == [str(tmp_path / "endpoints-1.sqlite-wal")]
    table.database.close()
    table.database.flush()  # the log is gone: all is in the database


def test_a_file_system_without_locks_is_used_by_one_process_at_a_time(tmp_path, monkeypatch):
    filled(tmp_path).database.close()  # with a log

    def none(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(files.file_locks(), "lockf", none)
    monkeypatch.setattr(files.file_locks(), "flock", none)
    endpoint_processes.locks_in.cache_clear()
    try:
        one, other = table_in(tmp_path), table_in(tmp_path)
        assert one.read(marks_of("a")).vectors.tolist() == [[1, 2]]
        for i in range(10):
            add((one, other)[i % 2], answer_of(f"new {i}"))
        other.refresh()
        one.refresh()
        assert all(mark in one and mark in other for mark in marks_of("new 0", "new 9", "c"))
        with owner_file(tmp_path / "endpoints.lock"):  # held by another: nobody writes
            monkeypatch.setattr(endpoint_processes, "LONGEST_WAIT", 0.05)
            with pytest.raises(Unwritable, match="another process has held"):
                add(one, answer_of("late"))
    finally:
        endpoint_processes.locks_in.cache_clear()
