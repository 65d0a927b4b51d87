"""Package indexes, and the settings of pip."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pypi_simple
import pytest

from karat.data import package_index
from karat.data.file_sources import Source
from karat.data.package_index import Settings, find_address, pip_settings
from karat.errors import DataError

SOURCE = Source("index", "toy-data", file="toy_data-1.0-py3-none-any.whl", sha256="a" * 64)


@pytest.fixture
def no_pip_settings(monkeypatch):
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(
        package_index, "_pip_configuration", package_index._pip_configuration.__wrapped__
    )


def test_environment_of_pip_takes_precedence(monkeypatch, no_pip_settings):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/no/such/python")  # pip cannot be run
        assert pip_settings() == Settings((pypi_simple.PYPI_SIMPLE_ENDPOINT,), None)
    monkeypatch.setattr(package_index, "_pip_configuration", lambda: pytest.fail("not needed"))
    monkeypatch.setenv("PIP_INDEX_URL", "https://a.example/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://b.example/s file:///c https://d.example/s")
    monkeypatch.setenv("PIP_CERT", "bundle.pem")
    indexes = ("https://a.example/simple", "https://b.example/s", "https://d.example/s")
    assert pip_settings() == Settings(indexes, "bundle.pem")


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="pip is not installed")
def test_configuration_file_of_pip_is_read(monkeypatch, no_pip_settings, tmp_path: Path):
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://a.example/it's/simple\ncert = my.pem\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    settings = pip_settings()
    assert settings.indexes[0] == "https://a.example/it's/simple"
    assert settings.certificate == "my.pem"


def test_file_is_found_by_its_exact_name_also_after_a_server_error(stub):
    address = stub.index("toy-data", "toy_data-1.0.tar.gz", SOURCE.file, "toy_data-2.0.tar.gz")
    stub.answers["/simple/toy-data/"].insert(0, stub.status(503))
    found = find_address(SOURCE, Settings((address,), None))
    assert found.partition("#")[0] == f"{stub.address}/files/{SOURCE.file}"
    assert len(stub.asked) == 2


def test_next_index_is_searched_if_the_first_lacks_the_file(stub):
    indexes = (f"{stub.address}/empty/", stub.index("toy-data", SOURCE.file))
    assert find_address(SOURCE, Settings(indexes, None)).endswith(SOURCE.file)


def test_error_lists_the_reason_of_each_index(stub):
    stub.put("/no/toy-data/", stub.body(b"{}", kind="image/png"))
    other = stub.index("toy-data", "toy_data-0.9.tar.gz")
    indexes = (f"{stub.address}/empty", other, f"{stub.address}/no/")
    with pytest.raises(DataError) as error:
        find_address(SOURCE, Settings(indexes, None))
    project, file, kind = str(error.value).split("; ")
    assert indexes[0] in project and "toy-data" in project
    assert other in file and SOURCE.file in file
    assert indexes[2] in kind and "image/png" in kind
