"""The stored form of paid vectors: found in the bytes of any file, proved by checksums."""

import numpy as np
import pytest

from karat.ext.endpoints.endpoint_rows import (
    PIECE_BYTES,
    intact_pieces,
    piece_at,
    pieces_of,
    stored_bytes,
    whole_vectors,
)

from .test_endpoint_vectors import add, answer_of, marks_of, table_in

NAME = bytes(15) + b"x"


def pieces(*texts, width=3):
    matrix = np.random.default_rng(0).standard_normal((len(texts), width))
    return list(answer_of(*texts, vectors=matrix).pieces(NAME))


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


def test_every_flipped_bit_of_a_piece_is_noticed():
    (piece,) = pieces("a")
    packed = piece.packed()
    assert piece_at(packed) == piece
    for bit in range(8 * len(packed)):
        damaged = bytearray(packed)
        damaged[bit // 8] ^= 1 << bit % 8
        assert piece_at(bytes(damaged)) is None
    assert all(piece_at(packed[:size]) is None for size in range(len(packed)))


def test_pieces_are_found_between_other_bytes(tmp_path):
    random = np.random.default_rng(1)
    parts = [piece.packed() for piece in pieces("a", "b", "c")]
    noise = [random.bytes(int(size)) for size in random.integers(1, 5000, 4)]
    file = tmp_path / "any"
    file.write_bytes(noise[0] + b"".join(p + n for p, n in zip(parts, noise[1:], strict=True)))
    assert [piece.packed() for piece in intact_pieces(file)] == parts


def test_a_vector_is_whole_if_all_its_pieces_of_one_answer_are_there():
    one, other = pieces("a", width=9000), pieces("a", width=9000)
    assert len(one) == pieces_of(9000) == 3
    assert list(whole_vectors(one[::-1])) == [one]
    assert list(whole_vectors([*one[:2], other[2]])) == []  # of two answers
    assert list(whole_vectors([*one, *other])) == [one]


@pytest.mark.parametrize("width", [1, 384, 1536, 4000, 4001])
def test_room_is_at_least_what_a_vector_takes(width):
    assert stored_bytes(width) >= sum(len(piece.packed()) for piece in pieces("a", width=width))
    assert max(len(piece.values) for piece in pieces("a", width=width)) <= PIECE_BYTES
