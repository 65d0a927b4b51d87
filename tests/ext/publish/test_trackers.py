"""Trackers by their name, as the command line finds them."""

import pytest

from karat.core.registry import trackers
from karat.ext.publish import tracking


@pytest.mark.parametrize("name", ["mlflow", "trackio", "wandb"])
def test_a_tracker_is_checked_and_gets_the_runs(monkeypatch, name):
    calls = []
    monkeypatch.setattr(tracking, "check_tracker", calls.append)
    monkeypatch.setattr(tracking, "track", lambda runs, tracker: [f"{tracker} {len(runs)}"])
    tracker = trackers.get(name)
    tracker.check()
    assert calls == [name] and tracker.send([]) == [f"{name} 0"]


def test_every_tracker_that_can_be_sent_to_has_a_name():
    assert {*trackers} == {*tracking._CLIENTS}
