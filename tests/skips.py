"""Files of other projects for tests, and a line that counts the tests skipped without them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from karat.config.catalog import Catalog
from karat.data.load_dataset import fetch_file
from karat.errors import Unavailable

#: files of other projects that are no datasets of Karat, with source, checksum and license
FILES = YAML(typ="safe").load(Path(__file__).with_name("original_files.yaml"))
#: data files next to the repository, used instead of downloads if they exist
NEIGHBOR = Path(__file__).resolve().parents[2] / "shared" / "data"


@contextmanager
def original_data() -> Iterator[None]:
    """Load data from Karat's sources and its usual cache, or skip if they are unavailable."""
    folders = [os.environ.get("KARAT_DATA", ""), str(NEIGHBOR)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KARAT_DATA", os.pathsep.join(filter(None, folders)))
        patch.delenv("KARAT_CACHE", raising=False)
        try:
            yield
        except Unavailable as error:
            pytest.skip(f"missing data: {str(error).splitlines()[0]}")


def original_file(name: str) -> Path:
    """Return a file of ``original_files.yaml`` or of a built-in dataset, or skip."""
    definition = FILES.get(name) or Catalog().definitions.get("datasets", name)
    with original_data():
        return fetch_file(name, definition)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests were skipped because data are missing."""
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    lost = [reason for reason in reasons if re.search(r"missing data|shared/data|offline", reason)]
    if lost:
        terminalreporter.write_line(f"tests skipped because data are missing: {len(lost)}")
