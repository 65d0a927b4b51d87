"""Compiled loops over the bytes of a vector file (``pip install "karat[fast]"``).

A number becomes what ``float32(float(text))`` is, to the bit. Up to 2⁵³ and ten to the ±22nd, one
product or quotient is exact. Beyond, it is a few units of the last place off, which matters only
where the numbers just below and above round to different ones: such a line, like any other that is
not plain, is marked and left to Python.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

F = np.float32
#: powers of ten, and the place of the zeroth among them
ZEROTH = 300
POWERS = np.array([float(f"1e{power}") for power in range(-ZEROTH, ZEROTH + 1)])
#: a tenth, a hundredth …, from one on
SHARES = np.array([float(f"1e-{power}") for power in range(ZEROTH + 1)])
#: further digits do not change a number by more than the margin
DIGITS = 18
MARGIN = 2.0**-50
ONE = np.uint64(1)
LAST = np.uint64(ZEROTH)


class Kernels(NamedTuple):
    """Compiled loops: where names and lines end; plain numbers; digits of others; their values."""

    lines: Callable[..., None]
    plain: Callable[..., None]
    digits: Callable[..., None]
    values: Callable[..., None]


@cache
def kernels() -> Kernels | None:
    """Return the compiled loops, or nothing without numba."""
    if find_spec("numba") is None:
        return None
    from numba import njit

    options: dict[str, Any] = {"error_model": "numpy", "nogil": True}
    loops = (_lines, _plain, _digits, _values)
    try:
        return Kernels(*(njit(cache=True, **options)(loop) for loop in loops))
    except RuntimeError:  # there is no place to keep what was compiled
        return Kernels(*(njit(**options)(loop) for loop in loops))


def _lines(data, ends, tabs, spans):
    """Find where each line's name begins and ends and where its numbers end.

    A name ends at the first tab, or without one at the first blank.
    """
    at = 0
    for line in range(len(ends)):
        end = ends[line]
        while data[at] == 32 or data[at] == 9 or data[at] == 13:
            at += 1
        while end > at and (data[end - 1] == 32 or data[end - 1] == 9 or data[end - 1] == 13):
            end -= 1
        name = at
        while tabs and name < end and data[name] != 9:
            name += 1
        if not tabs or name == end:
            name = at
            while name < end and data[name] != 32:
                name += 1
        spans[line, 0], spans[line, 1], spans[line, 2] = at, name, end
        at = ends[line] + 1


def _plain(data, spans, shares, matrix, odd):
    """Read numbers of few digits and no exponent, and mark the lines with any other."""
    # A place that cannot be negative is looked up faster. Of a byte, ^ 48 is below ten for digits
    # alone, and the newline after the last number stops every loop.
    for row in range(len(spans)):
        at, end = np.uint64(spans[row, 1]), np.uint64(spans[row, 2])
        for column in range(matrix.shape[1]):
            while data[at] == 32 or data[at] == 9:
                at += ONE
            negative = data[at] == 45
            at += np.uint64(negative | (data[at] == 43))  # without a branch, signs being random
            mantissa, begin = 0, at
            while (data[at] ^ 48) < 10:
                mantissa = 10 * mantissa + (data[at] ^ 48)
                at += ONE
            point, held = at, at - begin
            if data[at] == 46:
                at = point = at + ONE
                while data[at] == 48 and mantissa == 0:
                    at += ONE
                held -= at
                while (data[at] ^ 48) < 10:
                    mantissa = 10 * mantissa + (data[at] ^ 48)
                    at += ONE
                held += at
            near = mantissa * shares[min(at - point, LAST)]
            low, high = F(near * (1 - MARGIN)), F(near * (1 + MARGIN))
            matrix[row, column] = -low if negative else low
            whole = at > begin and (at == end or data[at] == 32 or data[at] == 9)
            if not whole or (data[at - ONE] ^ 48) > 9 or held > DIGITS or low != high:
                odd[row] = True
                break
        odd[row] |= at != end


def _digits(data, spans, mantissas, scales, odd):
    """Take apart the numbers of each line, ``mantissa × 10^scale``; a negative one is inverted.

    Lines in which one is no number, or with too many or too few, are marked.
    """
    for row in range(len(spans)):
        at, end = spans[row, 1], spans[row, 2]
        for column in range(mantissas.shape[1]):
            while at < end and (data[at] == 32 or data[at] == 9):
                at += 1
            negative = at < end and data[at] == 45
            at += at < end and (data[at] == 45 or data[at] == 43)
            mantissa, held, scale, point, begin = 0, 0, 0, 0, at
            while at < end and (48 <= data[at] <= 57 or (data[at] == 46 and not point)):
                if data[at] == 46:
                    point = 1
                elif held < DIGITS:
                    mantissa, scale = 10 * mantissa + (data[at] - 48), scale - point
                    held += mantissa > 0
                else:
                    scale += 1 - point
                at += 1
            odd[row] |= at - begin == point
            if at < end and (data[at] | 32) == 101:
                sign = -1 if at + 1 < end and data[at + 1] == 45 else 1
                at += 2 if at + 1 < end and (data[at + 1] == 45 or data[at + 1] == 43) else 1
                power, begin = 0, at
                while at < end and 48 <= data[at] <= 57:
                    power = min(10 * power + (data[at] - 48), 9999)
                    at += 1
                odd[row] |= at == begin
                scale += sign * power
            odd[row] |= at < end and data[at] != 32 and data[at] != 9
            mantissas[row, column], scales[row, column] = ~mantissa if negative else mantissa, scale
        odd[row] |= at < end


def _values(mantissas, scales, powers, matrix, odd):
    """Write the numbers, and mark the lines with one that is too large or cannot be rounded."""
    for row in range(len(matrix)):
        for column in range(matrix.shape[1]):
            mantissa, scale = mantissas[row, column], scales[row, column]
            negative = mantissa < 0
            if negative:
                mantissa = ~mantissa
            if mantissa < 2**53 and -22 <= scale <= 0:
                low = high = F(mantissa / powers[ZEROTH - scale])
            elif mantissa < 2**53 and 0 < scale <= 22:
                low = high = F(mantissa * powers[ZEROTH + scale])
            elif -290 <= scale <= 270:
                near = mantissa * powers[ZEROTH + scale]
                low, high = F(near * (1 - MARGIN)), F(near * (1 + MARGIN))
            else:
                low, high = F(0), F(1)
            odd[row] |= low != high or not low < np.inf
            matrix[row, column] = -low if negative else low
