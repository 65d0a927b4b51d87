"""The services of a run: settings, accounts on first use, and what is counted."""

import pickle

import pytest

from karat.core.registry import accounts
from karat.core.services import (
    RunServices,
    UsageCounter,
    current_services,
    service_of,
    use_services,
)


class Minutes:
    """The account of a service that counts minutes."""

    closed = 0

    def __init__(self, services):
        self.services = services

    def sent(self):
        return {"speaker": (2, 30.0, None)}

    def close(self):
        type(self).closed += 1


class Minute:
    def __init__(self):
        self.count = 0

    def facts(self):
        return {"tokens": self.count} if self.count else {}


@pytest.fixture
def minutes(monkeypatch):
    monkeypatch.setitem(accounts._parts, "minutes", Minutes)
    return Minutes


def test_an_account_is_made_on_first_use(minutes):
    services = RunServices(budget=2.0)
    account = services.account("minutes")
    assert account is services.account("minutes") and account.services.budget == 2.0


def test_another_process_gets_the_settings_only(tmp_path, minutes):
    services = RunServices(tmp_path, tmp_path / "answers", 2.0)
    services.account("minutes")
    other = pickle.loads(pickle.dumps(services))
    assert other.run == services.run != RunServices().run
    assert (other.folder, other.store, other.budget) == (tmp_path, tmp_path / "answers", 2.0)
    assert other.account("minutes") is not services.account("minutes")


def test_answers_are_kept_in_the_cache_or_where_the_run_says(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path))
    assert RunServices().answers("minutes") == tmp_path / "vectors" / "minutes"
    assert RunServices(store=tmp_path / "own").answers("minutes") == tmp_path / "own"


def test_the_bill_is_asked_for_only_if_a_process_used_the_service(tmp_path, minutes):
    services, worker = RunServices(tmp_path), RunServices(tmp_path)
    assert list(services.sent()) == [] and not services.is_used("minutes")
    worker.mark_used("minutes")
    assert services.is_used("minutes")
    assert list(services.sent()) == [("speaker", 2, 30.0, None)]
    before = minutes.closed
    services.close()
    assert minutes.closed == before + 1


def test_every_open_counter_counts():
    services = RunServices()
    with services.counting() as outer, services.counting() as inner:
        for counter in services.counters:
            counter.of("minutes", Minute).count += 3
    assert outer.facts() == inner.facts() == {"tokens": 3}
    assert services.counters == [] and UsageCounter().facts() == {}


def test_models_use_the_services_of_their_run():
    before, services = current_services(), RunServices()
    with use_services(services):
        assert current_services() is services
    assert current_services() is before


def test_an_encoder_names_a_service_that_is_registered(minutes):
    class Speaker:
        sends_texts_to = "minutes"

    class Other:
        sends_texts_to = "nobody"

    assert service_of(Speaker()) == "minutes"
    assert service_of(Other()) == service_of(object()) == ""
