"""Accounts of endpoints for tests: made from the settings of a run, as the core makes them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from karat.core.services import RunServices, use_services
from karat.ext.endpoints.endpoint_account import Account, current_account


def make_account(
    folder: Path | None = None, store: Path | None = None, budget: float | None = None
) -> Account:
    """Return the account of a new run."""
    account: Account = RunServices(folder, store, budget).account("endpoints")
    return account


def as_in_another_process(account: Account) -> Account:
    """Return the account that another process makes from the same settings."""
    services = account.services
    settings = services.folder, services.store, services.budget, services.run
    other: Account = RunServices(*settings).account("endpoints")
    return other


@contextmanager
def use_account(account: Account) -> Iterator[Account]:
    """Let encoders use an account inside."""
    with use_services(account.services):
        assert current_account() is account
        yield account
