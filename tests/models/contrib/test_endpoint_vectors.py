"""Paid vectors in the database: found by text, kept on write errors, moved from old journals."""

import errno
import os
import sqlite3
import struct
import zlib

import numpy as np
import pytest

from karat.core import files
from karat.models.contrib import endpoint_processes, endpoint_store
from karat.models.contrib.endpoint_account import Account, Claim, Outcome, Request
from karat.models.contrib.endpoint_processes import ProcessName, owner_file
from karat.models.contrib.endpoint_rows import ROW, Answer, intact_pieces
from karat.models.contrib.endpoint_store import EndpointDatabase, Unwritable
from karat.models.contrib.endpoint_vectors import VectorTable, text_mark

FAMILY = "f" * 32


def marks_of(*texts):
    return [text_mark("", text) for text in texts]


def answer_of(*texts, vectors=None, seconds=0.5):
    rows = np.zeros(len(texts), ROW)
    rows["mark"] = np.frombuffer(b"".join(marks_of(*texts)), ROW["mark"])
    rows["tokens"], rows["bytes"] = 2.0, 8
    matrix = [[len(text), i] for i, text in enumerate(texts)] if vectors is None else vectors
    return Answer(rows, np.array(matrix, np.float32), seconds)


def table_in(folder):
    """Return the table as another process has it."""
    table = VectorTable(EndpointDatabase(folder), FAMILY)
    table.refresh()
    return table


def add(table, answer):
    table.database.write(lambda connection: table.insert(connection, answer))
    table.refresh()


def filled(folder):
    table = table_in(folder)
    add(table, answer_of("a", "b", vectors=[[1, 2], [3, 4]]))
    add(table, answer_of("c", vectors=[[5, 6]], seconds=1.5))
    return table


def test_vectors_are_returned_in_the_order_asked_for(tmp_path):
    delivered = filled(tmp_path).read(marks_of("c", "a", "c"))
    assert delivered.vectors.tolist() == [[5, 6], [1, 2], [5, 6]]
    assert delivered.rows["tokens"].tolist() == [2.0, 2.0, 2.0]
    assert sorted(delivered.seconds) == [0.5, 1.5]


def test_another_process_finds_what_was_added(tmp_path):
    reader = table_in(tmp_path)
    assert reader.width is None and list(tmp_path.iterdir()) == []
    writer = filled(tmp_path)
    reader.refresh()
    assert all(mark in reader for mark in marks_of("a", "b", "c")) and reader.width == 2
    add(writer, answer_of("d", vectors=[[7, 8]]))
    assert marks_of("d")[0] not in reader
    assert reader.read(marks_of("d")).vectors.tolist() == [[7, 8]]
    assert (reader.tokens, reader.bytes) == (8.0, 32)
    assert reader.read(marks_of("a", "x")) is None


@pytest.mark.parametrize("width", [1, 4000, 4001, 20_000])
def test_vectors_of_any_width_are_found_in_the_bytes_of_the_file(tmp_path, width):
    matrix = np.random.default_rng(0).standard_normal((3, width)).astype("f4")
    table = table_in(tmp_path)
    add(table, answer_of("a", "b", "c", vectors=matrix))
    again = table_in(tmp_path)
    np.testing.assert_array_equal(again.read(marks_of("a", "b", "c")).vectors, matrix)
    again.database.close()
    table.database.close()
    (path,) = tmp_path.iterdir()
    pieces = list(intact_pieces(path))
    assert len(pieces) == 3 * -(-width // 4000)
    parts = [piece for piece in pieces if piece.mark == marks_of("b")[0]]
    values = b"".join(part.values for part in sorted(parts, key=lambda part: part.number))
    assert values == matrix[1].tobytes()


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


def test_a_prompt_changes_the_mark_of_a_text():
    assert text_mark("query: ", "a") != text_mark("", "a") != text_mark("", "b")
    assert text_mark("", "\ud800")  # a lone surrogate


# -- write errors ---------------------------------------------------------------------------


def failing(monkeypatch, table):
    """Let every transaction that writes fail as on a full disk."""

    def write(action):
        raise Unwritable(f"cannot use {table.database.path}: No space left on device")

    monkeypatch.setattr(table.database, "write", write)


def test_vectors_in_hand_are_used_and_nothing_more_is_requested(tmp_path, monkeypatch):
    account = Account(store=tmp_path)
    table = account.vectors(FAMILY)
    claim = account.claim(table, Request(marks_of("a", "b")), 0.0)
    with monkeypatch.context() as patched:
        failing(patched, table)
        answer = answer_of("a", "b", vectors=[[1, 2], [3, 4]])
        account.finish(claim, table, "m", Outcome(charged=1.0, tokens=4.0, answer=answer))
        assert table.unsaved == 2
        assert table.read(marks_of("b", "a")).vectors.tolist() == [[3, 4], [1, 2]]
        with pytest.raises(Unwritable, match="No space left"):
            account.claim(table, Request(marks_of("c")), 0.0)
    # when there is room again, they are stored and settled before the next request
    assert isinstance(account.claim(table, Request(marks_of("c")), 0.0), Claim)
    assert table.unsaved == 0 and account.sent() == {"m": (1, 4.0, None)}
    assert table_in(tmp_path).read(marks_of("a")).vectors.tolist() == [[1, 2]]
    account.close()


def test_room_is_made_before_a_request(tmp_path, monkeypatch):
    def full(descriptor, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    account = Account(store=tmp_path)
    table = account.vectors(FAMILY)
    with monkeypatch.context() as patched:
        patched.setattr(endpoint_store, "_allocate", full)
        with pytest.raises(Unwritable, match=r"endpoints-1\.sqlite: No space left on device"):
            account.claim(table, Request(marks_of("a"), room=10**6), 0.0)
    claim = account.claim(table, Request(marks_of("a"), room=10**6), 0.0)
    (room,) = tmp_path.glob("room-*")
    assert room.stat().st_size >= 2 * 10**6
    account.finish(claim, table, "m", Outcome())
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


def test_vectors_of_another_width_are_not_stored_next_to_earlier_ones(tmp_path):
    """Two processes get the first vectors at the same time, from a server that changes."""
    account = Account(store=tmp_path)
    tables = [VectorTable(account.database, FAMILY) for _ in range(2)]
    claims = [
        account.claim(table, Request(marks_of(text)), 0.0)
        for table, text in zip(tables, "ab", strict=True)
    ]
    for width, table, claim, text in zip((2, 3), tables, claims, "ab", strict=True):
        answer = answer_of(text, vectors=[[1.0] * width])
        account.finish(claim, table, "m", Outcome(tokens=1.0, answer=answer))
        table.refresh()
    assert [table.width for table in tables] == [2, 2]
    assert marks_of("b")[0] not in tables[1]
    assert account.sent() == {"m": (2, 2.0, None)}  # both were paid
    # the text is not taken for one that another request asks for
    assert isinstance(account.claim(tables[1], Request(marks_of("b")), 0.0), Claim)
    account.close()


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


# -- file systems without locks -------------------------------------------------------------


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


def test_the_lock_of_a_dead_process_is_taken(tmp_path):
    dead = ProcessName(ProcessName.current().machine, 999999999, 1.0)
    lock = tmp_path / "lock"
    lock.write_text(str(vars(dead)).replace("'", '"'))
    with owner_file(lock):
        assert str(os.getpid()) in lock.read_text()
    assert list(tmp_path.iterdir()) == []
    assert dead.is_alive() is False and ProcessName.current().is_alive() is True
    assert ProcessName("another machine", 1, 1.0).is_alive() is None


# -- journals of earlier versions -----------------------------------------------------------


def old_frame(answer):
    """Return an answer as earlier versions wrote it."""
    content = answer.rows.tobytes() + np.ascontiguousarray(answer.vectors, "<f4").tobytes()
    count, width = answer.vectors.shape
    head = struct.pack("<4sIIId", b"KVJ1", count, width, zlib.crc32(content), answer.seconds)
    return head + content


def old_journal(folder, texts=30, in_a_frame=3):
    """Write a journal of an earlier version; return its path and the place of each frame."""
    path, frames = folder / f"{FAMILY}.journal", []
    for begin in range(0, texts, in_a_frame):
        names = [f"text {i}" for i in range(begin, begin + in_a_frame)]
        frames.append(old_frame(answer_of(*names, vectors=[[i, 1] for i in range(in_a_frame)])))
    path.write_bytes(b"".join(frames))
    path.with_suffix(".lock").write_text("[0, 0]")
    return path, len(frames[0])


def test_an_old_journal_is_read_once_and_moved_over(tmp_path):
    old_journal(tmp_path)
    table = table_in(tmp_path)
    assert table.read(marks_of("text 4", "text 29")).vectors.tolist() == [[1, 1], [2, 1]]
    assert [path.suffix for path in tmp_path.iterdir() if "endpoints" not in path.name] == []
    again = table_in(tmp_path)
    assert again.read(marks_of("text 0")).rows["tokens"].tolist() == [2.0]
    assert again.bytes == 30 * 8 and table.database.remarks == []


def test_a_damaged_old_journal_keeps_what_is_intact(tmp_path):
    path, size = old_journal(tmp_path)
    content = bytearray(path.read_bytes())
    content[2 * size + 60] ^= 1  # a value
    content[5 * size + 1] ^= 4  # the mark of a frame
    path.write_bytes(content[:-1])  # the last frame is cut off
    table = table_in(tmp_path)
    gone = {i for frame in (2, 5, 9) for i in range(3 * frame, 3 * frame + 3)}
    for i in range(30):
        assert (marks_of(f"text {i}")[0] in table) == (i not in gone)
    assert "21 intact vectors are kept" in table.database.remarks[0]


def test_an_old_journal_that_cannot_be_moved_is_used_and_stays(tmp_path, monkeypatch):
    path, _ = old_journal(tmp_path)
    table = VectorTable(EndpointDatabase(tmp_path), FAMILY)
    failing(monkeypatch, table)
    table.refresh()
    assert table.read(marks_of("text 4")).vectors.tolist() == [[1, 1]]
    assert path.exists()
