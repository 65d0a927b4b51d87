"""What run.json tells of a run: the machine, the prompts of its model, and its tasks."""

import sys

import pytest

from karat.config.catalog import Catalog
from karat.execution.plan import make_plan
from karat.execution.run_facts import machine_facts, prompt_facts, task_entry


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["/usr/bin/karat", "run", "a b"], "karat run 'a b'"),
        (["/home/me/study.py", "--fast"], "python study.py"),
        (["/usr/bin/pytest"], ""),
    ],
)
def test_the_command_is_that_of_karat_or_the_script(monkeypatch, arguments, command):
    monkeypatch.setattr(sys, "argv", arguments)
    facts = machine_facts()
    assert facts["command"] == command and "numpy" in facts["versions"]


def test_a_task_has_its_definition_and_facts_about_its_data(words):
    plan = make_plan(Catalog().models("random"), [words()])
    entry = task_entry(plan.tasks[0])
    assert entry["name"] == words().name and entry["items"] == entry["questions"]
    assert set(entry["higher_is_better"]) == set(entry["metrics"])
    assert prompt_facts(plan.models[0], plan.tasks) == {}
