"""Why earlier runs are not continued: what differs between two plans, and one warning for all."""

import pytest

from karat.errors import KaratWarning
from karat.execution.resuming import NotContinued, differences, reason_outdated
from karat.results.run import Run

BEFORE = {
    "karat": "1",
    "versions": {"numpy": "2.0", "scipy": "1"},
    "tasks": [{"name": "a", "kind": "x"}, {"name": "b", "kind": "x"}],
}


def test_the_differences_of_two_plans_name_values_and_tasks():
    after = {
        "karat": "2",
        "versions": {"numpy": "2.1", "scipy": "1"},
        "tasks": [{"name": "a", "kind": "y"}, {"name": "b", "kind": "y"}, {"name": "new"}],
    }
    version, library, kind = differences(BEFORE, after)
    assert version.endswith("1, now 2")
    assert "numpy 2.0, now 2.1" in library and "scipy" not in library
    assert kind == "kind of a and 1 more"
    assert not list(differences(BEFORE, BEFORE))


def test_without_a_difference_the_code_has_changed():
    assert "code" in reason_outdated(BEFORE, BEFORE, is_known=True)
    assert "pickled" in reason_outdated(BEFORE, BEFORE, is_known=False)


def test_folders_with_one_reason_are_told_once(tmp_path):
    waiting = NotContinued()
    for number in range(5):
        waiting.add_outdated(Run(tmp_path / f"run-{number}"), "code", jobs=2, copied=1)
    with pytest.warns(KaratWarning, match="2 other folders") as caught:
        waiting.tell()
    assert len(caught) == 1 and "run-0" in str(caught[0].message)
    waiting.tell()  # nothing is left to tell
