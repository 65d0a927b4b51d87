"""Names of tasks; the data are tested with mteb in test_mteb_tasks.py."""

import pytest

from karat.ext.compat.mteb.task_data import part_name, quiet


@pytest.mark.parametrize(
    ("subset", "split", "name"),
    [
        ("default", "test", "STS17"),
        ("en-en", "test", "STS17 (en-en)"),
        ("default", "dev", "STS17 (dev)"),
        ("en-en", "dev", "STS17 (en-en, dev)"),
    ],
)
def test_names_are_those_of_imported_results(subset, split, name):
    assert part_name("STS17", subset, split) == name


def test_quiet_hides_warnings(recwarn):
    import logging
    import warnings

    with quiet():
        warnings.warn("in beta", stacklevel=1)
        assert logging.getLogger("mteb").level == logging.ERROR
    assert not recwarn.list and logging.getLogger("mteb").level == logging.NOTSET
