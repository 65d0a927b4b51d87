"""Objects that jobs share: stored once, read by other processes, and dropped when unused."""

from __future__ import annotations

import pytest

from karat.execution.object_store import ObjectStore


def test_objects_are_stored_once_and_read_by_another_store(tmp_path):
    store, numbers, made = ObjectStore(tmp_path / "new"), [1, 2], []
    assert store.put("numbers", numbers) == "numbers"
    assert store.get("numbers") is numbers
    store.put("double", lambda x: 2 * x)  # a function of a script, pickled by value
    store.save()
    other = ObjectStore(tmp_path / "new")
    assert other.get("double")(21) == 42
    assert other.get("numbers") == [1, 2]
    assert other.get("numbers") is other.get("numbers")
    with pytest.raises(FileNotFoundError):
        other.get("nothing")
    for _ in range(3):
        assert store.get_or_make("folds", lambda: made.append(1) or "folds") == "folds"
    assert made == [1]


def test_the_store_keeps_the_objects_of_one_group(tmp_path):
    store, made = ObjectStore(tmp_path), []

    def get(group, name):
        assert store.get_or_make_in_group("other", "one", name, lambda: group) == "a"
        made_of = ("vectors", group, name, lambda: made.append(name) or group + name)
        return store.get_or_make_in_group(*made_of)

    assert [get("a", "x"), get("a", "y"), get("a", "x")] == ["ax", "ay", "ax"]
    assert made == ["x", "y"]
    assert get("b", "x") == "bx"
    assert get("a", "x") == "ax"
    assert made == ["x", "y", "x", "x"]


def test_recent_objects_are_written_for_other_stores_while_there_is_room(tmp_path):
    store, other = ObjectStore(tmp_path), ObjectStore(tmp_path)
    store.room = 5
    for key in ("one", "two", "three"):
        assert store.get_or_make_recent(key, key.upper, len) == key.upper()
    assert store.room == 2  # ONE needs 3 bytes; TWO and THREE do not fit
    assert [path.name for path in tmp_path.iterdir()] == ["one.pickle"]
    assert other.get_or_make_recent("one", "made again".upper, len) == "ONE"
    assert other.get_or_make_recent("two", "made again".upper, len) == "MADE AGAIN"
    assert [path.name for path in tmp_path.iterdir()] == ["one.pickle"]  # a job writes nothing
