"""Code of users that ends the process, as an error that names what it called."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from karat.errors import ContractError


class ProcessExit(SystemExit):
    """Raised in the place of ``os._exit``, which would end the process without a word."""


@contextmanager
def exit_refused() -> Iterator[None]:
    """Turn ``os._exit`` and ``sys.exit`` of a model or another definition into a ContractError.

    Child processes that users' code forks end as they would anyway.
    """
    ends, owner = os._exit, os.getpid()

    def refuse(code: int) -> NoReturn:
        if os.getpid() != owner:
            ends(code)
        raise ProcessExit(f"os._exit({code})")

    os._exit = refuse  # type: ignore[assignment]
    try:
        yield
    except SystemExit as error:
        called = str(error) if isinstance(error, ProcessExit) else f"sys.exit({error.code!r})"
        raise ContractError(
            f"a model or another definition called {called}, which would end Karat; it must raise "
            f"an error instead."
        ) from error
    finally:
        os._exit = ends
