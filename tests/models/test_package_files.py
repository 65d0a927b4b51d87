"""Files of installed packages are found without running a line of theirs."""

import sys

import pytest

from karat.errors import Declined
from karat.models.package_files import package_file


def test_a_file_of_a_package_is_found_and_its_code_not_run(tmp_path, monkeypatch):
    folder = tmp_path / "weighty"
    (folder / "data").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise SystemExit('it was imported')")
    (folder / "data" / "model.onnx").write_text("x")
    monkeypatch.syspath_prepend(tmp_path)
    assert package_file("package:weighty/data/model.onnx") == folder / "data" / "model.onnx"
    assert package_file("package:weighty/data").is_dir()
    assert "weighty" not in sys.modules
    with pytest.raises(Declined, match="weighty.*other.onnx"):
        package_file("package:weighty/other.onnx")


@pytest.mark.parametrize("name", ["package:nowhere_at_all/x", "package:a.b/x", "package:/x"])
def test_a_package_that_is_not_there_declines(name):
    with pytest.raises(Declined, match="not found"):
        package_file(name)


def test_a_plain_path_stays_what_it_is(tmp_path):
    assert package_file(str(tmp_path / "a")) == tmp_path / "a"
