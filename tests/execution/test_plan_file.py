"""plan.json: the jobs of a plan and their hashes."""

import json

import pytest
from sklearn.dummy import DummyClassifier

from karat.core.task import Suite
from karat.errors import DataError, DefinitionError
from karat.execution.plan import job_spec, make_plan
from karat.execution.plan_file import FILE, PlanFile, write_plan_file
from karat.execution.progress import Progress
from karat.execution.runner import Options, Session
from karat.models.adapters import adapt
from karat.models.tabular_encoders import OneHotTable


@pytest.fixture
def plan(two_classes, line, words):
    models = [adapt(OneHotTable(), "one hot"), adapt(DummyClassifier(), 'a "fold": null')]
    return make_plan(models, [two_classes(), line(name='line "fold": null'), words()])


def session(plan, output):
    suite = Suite("tested", tuple(planned.task for planned in plan.tasks))
    return Session(plan, suite, Options(output=output), Progress())


def test_it_has_the_jobs_of_the_plan_with_their_hashes(plan, tmp_path):
    parts = {job: job % 3 for job in range(len(plan.jobs))}
    write_plan_file(tmp_path, session(plan, tmp_path), parts)
    found = PlanFile.read(tmp_path / FILE)
    expected = {
        (model.name, planned.task.name, fold): job_spec(plan, model, planned, fold)
        for model, planned, fold in plan.jobs
    }
    specs = {
        (model["about"]["model"], *job): spec
        for model in found.models
        for job, spec in found.specs(model).items()
    }
    assert specs == expected
    assert set(found.jobs()) == expected.keys()
    numbers = {
        (model.name, planned.task.name, fold): parts[job] + 1
        for job, (model, planned, fold) in enumerate(plan.jobs)
    }
    assert dict(zip(found.jobs(), found.parts(), strict=True)) == numbers
    assert found.count == 3
    declined = [record["task"] for model in found.models for record, _, _ in found.not_run(model)]
    assert declined == [each.task for each in plan.declined]


def test_the_same_plan_is_written_once_another_one_is_refused(plan, two_classes, tmp_path):
    write_plan_file(tmp_path, session(plan, tmp_path), {})
    before = (tmp_path / FILE).stat().st_mtime_ns
    write_plan_file(tmp_path, session(plan, tmp_path), {})
    assert (tmp_path / FILE).stat().st_mtime_ns == before
    other = make_plan(list(plan.models), [two_classes()], seed=1)
    with pytest.raises(DefinitionError, match="seed"):
        write_plan_file(tmp_path, session(other, tmp_path), {})
    write_plan_file(tmp_path, session(other, tmp_path), {}, replace=True)
    assert PlanFile.read(tmp_path / FILE).content["seed"] == 1


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda c: c.update(karat="9.9"), "9.9"),
        (lambda c: c["models"][0].update(identity="x"), "one hot"),
        (lambda c: c["tasks"][0]["facts"].update(folds=[0]), "halves"),
        (lambda c: c["models"].pop(), "only"),
    ],
)
def test_differences_are_named(plan, tmp_path, change, named):
    write_plan_file(tmp_path, session(plan, tmp_path), {})
    first = PlanFile.read(tmp_path / FILE)
    content = json.loads((tmp_path / FILE).read_text())
    change(content)
    other = PlanFile(tmp_path / "other.json", content)
    assert named in first.difference(other)
    assert first.digest != other.digest
    assert first.difference(first) == ""


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', '{"schema": 1, "models": 3}'])
def test_a_damaged_file_is_named(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(DataError, match=FILE):
        PlanFile.read(tmp_path / FILE)


def test_wrong_parts(plan, tmp_path):
    write_plan_file(tmp_path, session(plan, tmp_path), dict.fromkeys(range(len(plan.jobs)), 0))
    content = json.loads((tmp_path / FILE).read_text())
    content["parts"] = [[1, 1]]
    (tmp_path / FILE).write_text(json.dumps(content))
    with pytest.raises(DataError, match="parts"):
        PlanFile.read(tmp_path / FILE)
