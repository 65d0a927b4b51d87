"""Flipped bits in what endpoints delivered: every intact vector is kept, and the damage is said.

A short form runs by default; ``KARAT_FAULTS=full`` flips 200 bits one at a time, and more.
"""

import logging
import os
import shutil

import numpy as np
import pytest

from karat.ext.endpoints.endpoint_account import Request, Settlement
from karat.ext.endpoints.endpoint_rows import MARK_BYTES, ROW, SIGNATURE, ReceivedVectors, piece_at
from karat.ext.endpoints.endpoint_store import PAGE, EndpointDatabase
from karat.ext.endpoints.endpoint_vectors import VectorTable, text_mark

from ..ext.endpoints.accounts import make_account
from .long_form import FULL

#: flips of one bit in a copy of the database
FLIPS = 200 if FULL else 12
FAMILIES = ("0" * 31 + "1", "a" * 32)
#: dimensions by encoder: some vectors share a page, others take two pieces
WIDTHS = (96, 4500)
TEXTS = (600, 40)


def marks_of(count):
    return [text_mark("", f"text {i}") for i in range(count)]


def answer_of(marks, width, seconds=0.5):
    rows = np.zeros(len(marks), ROW)
    rows["mark"] = np.frombuffer(b"".join(marks), f"V{MARK_BYTES}")
    rows["tokens"], rows["bytes"] = 2.0, 8
    random = np.random.default_rng(len(marks) + width)
    return ReceivedVectors(rows, random.standard_normal((len(marks), width)).astype("f4"), seconds)


def filled(folder):
    """Write vectors of two encoders in answers of 20 texts; return them by encoder and text."""
    account, expected = make_account(store=folder), {}
    for family, width, count in zip(FAMILIES, WIDTHS, TEXTS, strict=True):
        table, marks = account.vectors(family), marks_of(count)
        for begin in range(0, count, 20):
            answer = answer_of(marks[begin : begin + 20], width, 0.5 + begin)
            claim = account.claim(table, Request(marks[begin : begin + 20]), 0.0)
            account.finish(claim, table, "model", Settlement(tokens=40.0, answer=answer))
            for mark, vector in zip(marks[begin : begin + 20], answer.vectors, strict=True):
                expected[family, mark] = vector
    return account, expected


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    account, expected = filled(folder)
    account.database.close()
    assert [path.name for path in folder.iterdir()] == ["endpoints-1.sqlite"]
    return folder / "endpoints-1.sqlite", expected


def hit_texts(content, positions):
    """Return the encoders and texts whose pieces have a byte at one of some positions."""
    hit, begin = set(), content.find(SIGNATURE)
    while begin >= 0:
        piece = piece_at(content, begin)
        size = len(piece.packed()) if piece else 0
        if any(begin <= position < begin + size for position in positions):
            hit.add((piece.family.hex(), piece.mark))
        begin = content.find(SIGNATURE, begin + 1)
    return hit


def check(folder, expected, hit):
    """Read all vectors as a new process would; return what was said about damage."""
    database = EndpointDatabase(folder)
    tables = {family: VectorTable(database, family) for family in FAMILIES}
    for table in tables.values():
        table.refresh()
    # the encoder that was read first is read again: the second may have met the damage
    for table in tables.values():
        table.refresh()
    for family, table in tables.items():
        intact = [mark for name, mark in expected if name == family and (name, mark) not in hit]
        delivered = table.read(intact)
        assert delivered is not None, "an intact vector is gone"
        wanted = np.array([expected[family, mark] for mark in intact])
        np.testing.assert_array_equal(delivered.vectors, wanted)
        for name, mark in hit:
            if name == family and mark in table:  # another copy of it was intact
                np.testing.assert_array_equal(table.read([mark]).vectors[0], expected[name, mark])
    gone = [key for key in hit if key[1] not in tables[key[0]]]
    remarks = " ".join(database.remarks)
    assert not gone or "damaged" in remarks
    # and the database goes on
    account = make_account(store=folder)
    table = tables[FAMILIES[0]]
    new = [text_mark("", f"new {os.urandom(4).hex()}")]
    again = VectorTable(database, FAMILIES[0])
    database.write(lambda connection: again.insert(connection, answer_of(new, WIDTHS[0])))
    table.refresh()
    assert new[0] in table
    database.close()
    account.database.close()
    return remarks


def flipped(content, positions):
    damaged = bytearray(content)
    for bit in positions:
        damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def places_of(content, count, seed):
    """Return random bits, and bits of the header and of the heads and tables of pages."""
    random = np.random.default_rng(seed)
    bits = random.integers(0, 8 * len(content), count // 2).tolist()
    bits += random.integers(0, 8 * 100, count // 6).tolist()
    while len(bits) < count:  # the first bytes of a page: its kind, its cells, their places
        page = int(random.integers(0, len(content) // PAGE))
        bits.append(8 * (page * PAGE + (100 if page == 0 else 0)) + int(random.integers(0, 8 * 40)))
    return bits


@pytest.mark.parametrize("number", range(FLIPS))
def test_a_flipped_bit_costs_the_vector_that_it_hits_and_no_other(stored, tmp_path, number):
    path, expected = stored
    content = path.read_bytes()
    bit = places_of(content, FLIPS, 0)[number]
    (tmp_path / path.name).write_bytes(flipped(content, [bit]))
    hit = hit_texts(content, [bit // 8])
    assert len(hit) <= 1
    check(tmp_path, expected, hit)


@pytest.mark.parametrize("seed", range(5 if FULL else 1))
def test_200_flipped_bits_in_one_database(stored, tmp_path, seed, caplog):
    path, expected = stored
    content = path.read_bytes()
    bits = places_of(content, 200, seed)
    (tmp_path / path.name).write_bytes(flipped(content, bits))
    with caplog.at_level(logging.WARNING):
        remarks = check(tmp_path, expected, hit_texts(content, [bit // 8 for bit in bits]))
    assert "intact vectors are kept in endpoints-2.sqlite" in remarks
    assert str(tmp_path / path.name) in caplog.text
    assert not (tmp_path / path.name).exists()


@pytest.mark.parametrize("seed", range(40 if FULL else 3))
def test_a_flipped_bit_in_the_log_of_a_killed_process(tmp_path, seed):
    """SQLite ignores what follows a damaged page of its log."""
    account, expected = filled(tmp_path / "alive")
    copy = tmp_path / "killed"
    copy.mkdir()
    for file in (tmp_path / "alive").glob("endpoints-1.sqlite*"):
        if not file.name.endswith("-shm"):
            shutil.copy(file, copy / file.name)
    account.database.close()
    log = copy / "endpoints-1.sqlite-wal"
    content = log.read_bytes()
    assert len(content) > PAGE
    bit = int(np.random.default_rng(seed).integers(0, 8 * len(content)))
    log.write_bytes(flipped(content, [bit]))
    check(copy, expected, hit_texts(content, [bit // 8]))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_database_that_was_cut_off(stored, tmp_path, share):
    path, expected = stored
    content = path.read_bytes()
    size = int(share * len(content))
    (tmp_path / path.name).write_bytes(content[:size])
    database = EndpointDatabase(tmp_path)
    table = VectorTable(database, FAMILIES[0])
    table.refresh()
    begin, whole = 0, 0
    while (begin := content.find(SIGNATURE, begin + 1)) >= 0:
        piece = piece_at(content[:size], begin)
        if piece is not None and piece.family.hex() == FAMILIES[0]:
            whole += 1
            assert piece.mark in table
    assert whole or share == 0.0
    assert bool(database.remarks) == (share > 0)
    database.close()


def test_zeros_instead_of_a_database(stored, tmp_path):
    path, _ = stored
    (tmp_path / path.name).write_bytes(bytes(4 * PAGE))
    database = EndpointDatabase(tmp_path)
    table = VectorTable(database, FAMILIES[0])
    table.refresh()
    assert table.width is None and "0 intact vectors" in database.remarks[0]
    database.close()
