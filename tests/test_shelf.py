"""The shelf: things shared by jobs, also with processes that did not make them."""

import subprocess
import sys

import pytest

from karat.shelf import Shelf


def test_get_returns_the_same_object(tmp_path):
    shelf, thing = Shelf(tmp_path), object()
    assert shelf.put("thing", thing) == "thing"
    assert shelf.get("thing") is thing


def test_another_shelf_reads_what_was_saved(tmp_path):
    shelf = Shelf(tmp_path / "new")
    shelf.put("numbers", [1, 2])
    shelf.put("double", lambda x: 2 * x)  # a function of a script has no name to be found by
    shelf.save()
    other = Shelf(tmp_path / "new")
    assert other.get("double")(21) == 42
    assert other.get("numbers") == [1, 2]
    assert other.get("numbers") is other.get("numbers")


def test_a_class_of_a_script_is_loaded_by_another_process(tmp_path):
    script = (
        "import sys, pathlib\n"
        "from karat.shelf import Shelf\n"
        "class Mine:\n    size = 3\n"
        "shelf = Shelf(pathlib.Path(sys.argv[1]))\n"
        "shelf.put('mine', Mine)\n"
        "shelf.save()\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    assert Shelf(tmp_path).get("mine")().size == 3


def test_a_missing_key_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Shelf(tmp_path).get("nothing")


def test_remember_makes_an_object_once(tmp_path):
    shelf, made = Shelf(tmp_path), []
    for _ in range(3):
        assert shelf.remember("folds", lambda: made.append(1) or "folds") == "folds"
    assert made == [1]
