"""Code that ends the process is an error that names what it called."""

import os
import sys

import pytest

from karat.core.exits import exit_refused
from karat.errors import ContractError


@pytest.mark.parametrize(
    ("end", "named"), [(lambda: os._exit(3), "os._exit(3)"), (lambda: sys.exit("x"), "sys.exit")]
)
def test_the_end_of_the_process_is_an_error(end, named):
    before = os._exit
    with pytest.raises(ContractError) as error, exit_refused():
        end()
    assert named in str(error.value)
    assert os._exit is before


def test_other_errors_pass():
    with pytest.raises(KeyError), exit_refused():
        raise KeyError("a")
