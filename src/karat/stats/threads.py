"""One thread for products of small matrices, where more threads only add overhead."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController


def single_thread() -> AbstractContextManager[Any]:
    """Return a context in which NumPy's products use one thread.

    >>> with single_thread():
    ...     np.eye(2) @ np.eye(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return _controller().limit(limits=1)


@functools.cache
def _controller() -> ThreadpoolController:
    """Return the libraries of the process: to find them takes longer than most products."""
    np.eye(2) @ np.eye(2)  # NumPy's own library is loaded now
    return ThreadpoolController()
