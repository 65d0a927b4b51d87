"""The long form ends in time: what it has no time for is skipped, what hangs fails. It prints what
its tests have counted."""

from __future__ import annotations

import signal
from collections.abc import Generator

import pytest

from . import long_form

#: what tests have printed, by their name
_COUNTS: dict[str, str] = {}


def pytest_configure() -> None:
    """Start the time of the long form."""
    if long_form.FULL:
        long_form.begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that goes on long after the end."""
    if not long_form.FULL or not hasattr(signal, "setitimer"):
        return (yield)

    def ended(*_: object) -> None:
        pytest.fail(f"{item.name} went on for {long_form.GRACE} s after the end: it hangs")

    before = signal.signal(signal.SIGALRM, ended)
    signal.setitimer(signal.ITIMER_REAL, max(1.0, long_form.seconds_left()) + long_form.GRACE)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def pytest_runtest_setup() -> None:
    """Skip what there is no time for."""
    if long_form.FULL and long_form.seconds_left() < 0:
        pytest.skip("no time left")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember what a test has counted."""
    if long_form.FULL and report.when == "call" and report.passed and report.capstdout:
        _COUNTS[report.nodeid.rpartition("/")[2]] = report.capstdout.strip().splitlines()[-1]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the tests have counted."""
    if not _COUNTS:
        return
    terminalreporter.section("counted")
    for name, line in sorted(_COUNTS.items()):
        terminalreporter.line(f"{name}: {line}")
    terminalreporter.line(f"{60 * long_form.MINUTES - long_form.seconds_left():.0f} s in all")
