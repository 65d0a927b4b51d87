"""Compiled loops compute the same as they do uncompiled."""

import numpy as np
import pytest

pytest.importorskip("numba")

from karat.probes.compiled_numba import as_numpy, compiled  # noqa: E402


def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


@pytest.mark.parametrize("compile_loop", [as_numpy, compiled])
def test_a_compiled_sum_is_that_of_python(compile_loop):
    values = np.arange(10, dtype=np.float64)
    assert compile_loop(total)(values) == total(values) == 45.0
