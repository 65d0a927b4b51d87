"""Engines: the one of this machine, and one that an extension adds."""

import pytest

import karat
from karat.core.registry import engine, engines
from karat.errors import DefinitionError
from karat.execution.engine import WORK, Engine
from karat.execution.workers import execute


def test_an_engine_of_a_user_runs_the_jobs(clean_registry, line, tmp_path, monkeypatch):
    executed = []

    class Counting(Engine):
        def execute(self, jobs, store, workers, report):
            executed.extend(jobs)
            yield from execute(jobs, WORK, store, 0, report)

        def place(self, workers):
            return "counted"

    monkeypatch.setitem(engines._parts, "counting", Counting)
    monkeypatch.setitem(engines._origins, "counting", "tests:Counting")
    (run,) = karat.evaluate(
        "dummy", line(), output=tmp_path, workers=karat.Machines(engine="counting")
    )
    assert len(executed) == len(list(run.records())) == 2
    assert run.about["mode"] == "counting"


def test_an_unknown_engine_names_those_there_are(line, tmp_path):
    with pytest.raises(DefinitionError, match='engine must be "local" or "dask", got \'spark\''):
        karat.evaluate("dummy", line(), output=tmp_path, workers=karat.Machines(engine="spark"))


def test_the_name_of_an_engine_cannot_be_taken(clean_registry):
    with pytest.raises(DefinitionError, match="duplicate engine"):
        engine("local")(type("Mine", (Engine,), {}))
