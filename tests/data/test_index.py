from __future__ import annotations

import importlib.util
from pathlib import Path

import pypi_simple
import pytest

from karat.data import index
from karat.data.index import Settings, find_address, pip_settings
from karat.data.sources import Source
from karat.errors import DataError

SOURCE = Source("index", "toy-data", file="toy_data-1.0-py3-none-any.whl", sha256="a" * 64)
PIP = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT", "REQUESTS_CA_BUNDLE")
ask_pip = index._pip_configuration


@pytest.fixture(autouse=True)
def no_pip_settings(monkeypatch):
    monkeypatch.setattr(index, "_pip_configuration", ask_pip)
    for name in PIP:
        monkeypatch.delenv(name, raising=False)


def test_the_environment_of_pip_decides(monkeypatch):
    monkeypatch.setattr(index, "_pip_configuration", lambda: pytest.fail("not needed"))
    monkeypatch.setenv("PIP_INDEX_URL", "https://a.example/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://b.example/s file:///c https://d.example/s")
    monkeypatch.setenv("PIP_CERT", "bundle.pem")
    found = pip_settings()
    assert found.indexes == (
        "https://a.example/simple",
        "https://b.example/s",
        "https://d.example/s",
    )
    assert found.certificate == "bundle.pem"


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="pip is not installed")
def test_the_configuration_file_of_pip_is_read(monkeypatch, tmp_path: Path):
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://a.example/it's/simple\ncert = my.pem\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    found = pip_settings()
    assert found.indexes[0] == "https://a.example/it's/simple"
    assert found.certificate == "my.pem"


def test_without_pip_the_default_index_is_asked(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert pip_settings() == Settings((pypi_simple.PYPI_SIMPLE_ENDPOINT,), None)


def test_a_pip_that_fails_is_no_obstacle(monkeypatch):
    monkeypatch.setattr(index.sys, "executable", "/no/such/python")
    assert pip_settings() == Settings((pypi_simple.PYPI_SIMPLE_ENDPOINT,), None)


def test_the_file_is_found_by_its_exact_name(stub):
    address = stub.index("toy-data", "toy_data-1.0.tar.gz", SOURCE.file, "toy_data-2.0.tar.gz")
    found = find_address(SOURCE, Settings((address,), None))
    assert found.partition("#")[0] == f"{stub.address}/files/{SOURCE.file}"


def test_the_second_index_is_asked_when_the_first_has_nothing(stub):
    full = stub.index("toy-data", SOURCE.file)
    empty = f"{stub.address}/empty/"
    assert find_address(SOURCE, Settings((empty, full), None)).endswith(SOURCE.file)


def test_what_no_index_has_is_told_for_each(stub):
    other = stub.index("toy-data", "toy_data-0.9.tar.gz")
    with pytest.raises(DataError) as error:
        find_address(SOURCE, Settings((f"{stub.address}/empty", other), None))
    assert str(error.value) == (
        f'{stub.address}/empty has no project "toy-data"; {other} has no file {SOURCE.file} (of 1)'
    )


def test_a_busy_index_is_asked_again(stub):
    address = stub.index("toy-data", SOURCE.file)
    stub.answers["/simple/toy-data/"].insert(0, stub.status(503))
    assert find_address(SOURCE, Settings((address,), None)).endswith(SOURCE.file)
    assert len(stub.asked) == 2


def test_something_else_than_an_index_is_told(stub):
    stub.put("/simple/toy-data/", stub.body(b"{}", kind="image/png"))
    with pytest.raises(DataError, match="is no package index"):
        find_address(SOURCE, Settings((f"{stub.address}/simple/",), None))
