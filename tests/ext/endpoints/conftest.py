"""An empty cache for every test, and a clock that does not wait."""

import pytest


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock: waiting takes no time, and the waits are recorded."""
    from karat.ext.endpoints import endpoint_delivery

    waits = []
    monkeypatch.setattr(endpoint_delivery, "_now", lambda: 1000.0 + sum(waits))
    monkeypatch.setattr(endpoint_delivery, "_wait", lambda stop, seconds: waits.append(seconds))
    return waits
