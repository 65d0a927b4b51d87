"""Safe file names and atomic writes."""

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.results.files import safe_name, write_atomic


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


def test_unsafe_names_stay_different():
    assert len({safe_name(name) for name in ODD}) == len(ODD)


@given(st.lists(st.text(max_size=8), min_size=2, max_size=2, unique=True))
def test_different_names_stay_different(pair):
    assert safe_name(pair[0]) != safe_name(pair[1])


def test_write_replaces_the_file(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    write_atomic(path, "one\r\ntwo ü\n")
    assert path.read_bytes() == "one\r\ntwo ü\n".encode()
    write_atomic(path, "three", durable=True)
    assert path.read_text() == "three"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


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
