"""Files that are whole or not there, under names that stay where they are."""

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.results.files import safe_name, write_atomic


@pytest.mark.parametrize("name", ["penguins", "a-b_c", "noise@0.1", "v1.2", "UPPER", "a+b=c,d"])
def test_plain_names_stay(name):
    assert safe_name(name) == name


ODD = ["", " ", ".", "..", "../..", "/etc/passwd", "a/b", "a\\b", 'a"b', "<script>", "a\0b", "é"]
ODD += ["a b", "a  b", ".hidden", "end.", "\ud800", "x" * 300, "x" * 301, "con:", "a\nb", "a\tb"]
ODD += [safe_name("a b"), safe_name(safe_name("a b"))]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_become_one_plain_component(name):
    made = safe_name(name)
    assert os.path.basename(made) == made
    assert made not in ("", ".", "..")
    assert not made.startswith(".")
    assert len(made.encode()) <= 60
    assert made.isascii()
    assert made == safe_name(name)


def test_odd_names_stay_apart():
    assert len({safe_name(name) for name in ODD}) == len(ODD)


@given(st.lists(st.text(max_size=8), min_size=2, max_size=2, unique=True))
def test_two_names_are_two_names(pair):
    assert safe_name(pair[0]) != safe_name(pair[1])


def test_a_made_name_is_not_taken_for_a_plain_one():
    made = safe_name("a b")
    assert safe_name(made) != made


def test_a_file_is_replaced_whole_and_no_draft_stays(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    write_atomic(path, "one\r\ntwo ü\n")
    assert path.read_bytes() == "one\r\ntwo ü\n".encode()
    write_atomic(path, "three", durable=True)
    assert path.read_text() == "three"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


def test_readers_never_see_a_part(tmp_path):
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
