"""Paid vectors in the database: found by text, kept on write errors, moved from old journals."""

import struct
import zlib

import numpy as np
import pytest

from karat.ext.endpoints.endpoint_account import Request, Reservation, Settlement
from karat.ext.endpoints.endpoint_rows import ROW, ReceivedVectors
from karat.ext.endpoints.endpoint_store import EndpointDatabase, Unwritable
from karat.ext.endpoints.endpoint_vectors import VectorTable, text_mark

from .accounts import make_account

FAMILY = "f" * 32


def marks_of(*texts):
    return [text_mark("", text) for text in texts]


def answer_of(*texts, vectors=None, seconds=0.5):
    rows = np.zeros(len(texts), ROW)
    rows["mark"] = np.frombuffer(b"".join(marks_of(*texts)), ROW["mark"])
    rows["tokens"], rows["bytes"] = 2.0, 8
    matrix = [[len(text), i] for i, text in enumerate(texts)] if vectors is None else vectors
    return ReceivedVectors(rows, np.array(matrix, np.float32), seconds)


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
    account = make_account(store=tmp_path)
    table = account.vectors(FAMILY)
    claim = account.claim(table, Request(marks_of("a", "b")), 0.0)
    with monkeypatch.context() as patched:
        failing(patched, table)
        answer = answer_of("a", "b", vectors=[[1, 2], [3, 4]])
        account.finish(claim, table, "m", Settlement(charged=1.0, tokens=4.0, answer=answer))
        assert table.unsaved == 2
        assert table.read(marks_of("b", "a")).vectors.tolist() == [[3, 4], [1, 2]]
        with pytest.raises(Unwritable, match="No space left"):
            account.claim(table, Request(marks_of("c")), 0.0)
    # when there is room again, they are stored and settled before the next request
    assert isinstance(account.claim(table, Request(marks_of("c")), 0.0), Reservation)
    assert table.unsaved == 0 and account.sent() == {"m": (1, 4.0, None)}
    assert table_in(tmp_path).read(marks_of("a")).vectors.tolist() == [[1, 2]]
    account.close()


def test_vectors_of_another_width_are_not_stored_next_to_earlier_ones(tmp_path):
    """Two processes get the first vectors at the same time, from a server that changes."""
    account = make_account(store=tmp_path)
    tables = [VectorTable(account.database, FAMILY) for _ in range(2)]
    claims = [
        account.claim(table, Request(marks_of(text)), 0.0)
        for table, text in zip(tables, "ab", strict=True)
    ]
    for width, table, claim, text in zip((2, 3), tables, claims, "ab", strict=True):
        answer = answer_of(text, vectors=[[1.0] * width])
        account.finish(claim, table, "m", Settlement(tokens=1.0, answer=answer))
        table.refresh()
    assert [table.width for table in tables] == [2, 2]
    assert marks_of("b")[0] not in tables[1]
    assert account.sent() == {"m": (2, 2.0, None)}  # both were paid
    # the text is not taken for one that another request asks for
    assert isinstance(account.claim(tables[1], Request(marks_of("b")), 0.0), Reservation)
    account.close()


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
