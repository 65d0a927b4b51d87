"""Runs written by hand."""

import functools

import pytest

from ..score_data import write_run


@pytest.fixture
def make_run(tmp_path):
    """Write a run into the folder of the test; see ``write_run``."""
    return functools.partial(write_run, tmp_path, task={"metrics": ["acc", "logloss"]})
