"""The services that the models of a run use, such as endpoints: settings, accounts and counts.

A run has plain settings, which its processes share. What a service spends, and the answers that it
has given, are the subject of its account: an extension registers the class of it by the name of the
service, and it is loaded when a model first uses the service in a process. Other runs load nothing.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from karat.core.files import cache_folder
from karat.core.registry import accounts
from karat.core.usage import Counted, combined_usage

#: an empty file of this name in the folder of a run tells that a service was used
USED = "{}.used"

Usage = TypeVar("Usage", bound=Counted)


class ServiceAccount(Protocol):
    """What one process knows of a run's use of a service; it is made from ``RunServices``."""

    def sent(self) -> Mapping[str, tuple[int, float, float | None]]:
        """Return the requests that all processes sent, their tokens and their price, by model."""

    def close(self) -> None:
        """Close what is open, at the end of the run."""


class UsageCounter:
    """What services counted while something ran."""

    def __init__(self) -> None:
        self._usages: dict[str, Counted] = {}

    def of(self, service: str, make: Callable[[], Usage]) -> Usage:
        """Return the usage of a service, made on first use."""
        usage: Any = self._usages.setdefault(service, make())
        return usage

    def facts(self) -> dict[str, Any]:
        """Return it as JSON values; empty if no service was used."""
        return combined_usage(
            [facts for usage in self._usages.values() if (facts := usage.facts())]
        )


class RunServices:
    """The services of a run, in one process; another one gets the settings only.

    Parameters
    ----------
    folder
        A folder that the processes of the run share; None: one process.
    store
        Where answers are kept; None: in the cache, below the name of the service.
    budget
        The most that may be spent; None: no limit.
    run
        The name of the run in the accounts; default: a new one.
    """

    def __init__(
        self,
        folder: Path | None = None,
        store: Path | None = None,
        budget: float | None = None,
        run: str | None = None,
    ) -> None:
        self.folder, self.store, self.budget = folder, store, budget
        self.run = run or secrets.token_hex(16)
        self._accounts: dict[str, ServiceAccount] = {}
        #: the services that this process has used
        self._used: set[str] = set()
        #: those that count now what they are used for
        self.counters: list[UsageCounter] = []
        #: called with the number of texts of a call that have arrived
        self.progress: Callable[[int], None] = lambda done: None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("folder", "store", "budget", "run")}

    def __setstate__(self, settings: Mapping[str, Any]) -> None:
        RunServices.__init__(self, **settings)

    def account(self, service: str) -> Any:
        """Return the account of a service, made on first use."""
        if service not in self._accounts:
            self._accounts[service] = accounts.get(service)(self)
        return self._accounts[service]

    def answers(self, service: str) -> Path:
        """Return the folder where the answers of a service are kept."""
        return self.store or cache_folder() / "vectors" / service

    def mark_used(self, service: str) -> None:
        """Leave a sign for the other processes of the run that a service is used."""
        if service not in self._used:
            self._used.add(service)
            if self.folder is not None:
                with suppress(OSError):
                    (self.folder / USED.format(service)).touch()

    def is_used(self, service: str) -> bool:
        """Return whether a process of the run has used a service."""
        if service in self._used:
            return True
        return self.folder is not None and (self.folder / USED.format(service)).exists()

    @contextlib.contextmanager
    def counting(self) -> Iterator[UsageCounter]:
        """Count what services are used for inside."""
        counter = UsageCounter()
        self.counters.append(counter)
        try:
            yield counter
        finally:
            self.counters.remove(counter)

    def sent(self) -> Iterator[tuple[str, int, float, float | None]]:
        """Yield each model with the requests that were sent for it, their tokens and price."""
        names = set(self._used)
        if self.folder is not None:
            names |= {file.stem for file in self.folder.glob(USED.format("*"))}
        for service in sorted(names):
            for model, figures in self.account(service).sent().items():
                yield model, *figures

    def close(self) -> None:
        """Close the accounts that this process has opened."""
        for account in self._accounts.values():
            account.close()


#: the services of the runs that this process works for, the current one last
_of_process: list[RunServices] = [RunServices()]


def service_of(encoder: object) -> str:
    """Return the name of the service that an encoder sends texts to, or an empty string."""
    name = getattr(encoder, "sends_texts_to", "")
    return name if isinstance(name, str) and name and name in accounts else ""


def current_services() -> RunServices:
    """Return the services of the run that this process works for."""
    return _of_process[-1]


@contextlib.contextmanager
def use_services(services: RunServices) -> Iterator[RunServices]:
    """Let models use the services of a run inside."""
    _of_process.append(services)
    try:
        yield services
    finally:
        _of_process.remove(services)
