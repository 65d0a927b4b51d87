"""``verify`` accepts honest runs and refuses forged ones, by the check that should find them."""

from __future__ import annotations

import dataclasses
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import karat
from karat.config.catalog import Catalog
from karat.core.predictions import Predictions
from karat.errors import DataError, DefinitionError
from karat.ext.publish.verification import (
    CHECKS,
    EQUAL,
    PHASES,
    _Reference,
    _Work,
    copy_distance,
    distance,
    verify,
)
from karat.results.rescore import rescore
from karat.results.run import Run

TASKS = ["breast-cancer", "diabetes"]


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    output = tmp_path_factory.mktemp("honest")
    options = {"only": karat.Only(TASKS, folds=[0, 1]), "output": karat.Output(output, items=False)}
    karat.evaluate(["onehot", "ordinal", "dummy"], "quickstart", **options)
    return output


@pytest.fixture
def copied(honest, tmp_path):
    """Return a copy of a run that may be changed."""

    def copy(model="onehot"):
        (source,) = honest.glob(f"{model}.*")
        shutil.copytree(source, tmp_path / source.name)
        return Run.open(tmp_path / source.name)

    return copy


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def edit_rows(run, task, fold, change):
    """Change the rows of a predictions file: cells before the prediction, prediction, target."""
    path = run.folder / "predictions" / task / str(fold) / "predictions.csv"
    header, *lines = path.read_text().splitlines()
    at = header.split(",").index("predictions")
    rows = [line.split(",") for line in lines]
    change(rows, at, header.split(","))
    path.write_text("\n".join([header, *map(",".join, rows)]) + "\n")


def score_again(run):
    for record in rescore(run).records:
        run._record(record).write_text(json.dumps(record))
    Run(run.folder).finish()


def refused(run, **options):
    found = verify(run, seed=0, **options)
    assert found.refused
    return {reason.check for reason in found.reasons}


def test_honest_runs_are_verified(honest):
    for run in karat.open_runs(honest):
        found = verify(run, against=[honest], seed=0, jobs=2)
        assert not found.refused, [*map(str, found.reasons)]
        assert set(found.checks["outcome"]) == {"passed"}
        assert found.checks["check"].tolist() == list(CHECKS)


def test_equal_predictions_of_equal_encoders_are_explained_by_a_new_run(honest):
    # breast-cancer and diabetes have numbers only: onehot and ordinal are the same there
    (run,) = (run for run in karat.open_runs(honest) if run.model == "onehot")
    assert refused(run, against=[honest], jobs=0) == {"copies"}
    found = verify(run, against=[honest], seed=0, jobs=4)
    assert not found.refused and any("ordinal" in note for note in found.notes)


def test_edited_scores(copied):
    run = copied()
    path = run.folder / "jobs" / "diabetes.0.json"
    record = json.loads(path.read_text())
    record["views"][0]["scores"]["rmse"] -= 1e-3
    edit(path, views=record["views"])
    found = verify(run, jobs=0)
    assert {(r.check, r.task, r.fold) for r in found.reasons if r.task} == {
        ("scores", "diabetes", 0)
    }
    Run(run.folder).finish()  # also the tables
    assert refused(run, jobs=0) == {"scores"}


def test_an_edited_table_of_scores(copied):
    run = copied()
    path = run.folder / "scores" / "scores.csv"
    path.write_text(path.read_text().replace(",0.", ",1."))
    assert refused(run, jobs=0) == {"scores"}


def test_predictions_that_the_model_does_not_give(copied):
    run = copied()

    def correct(rows, at, header):
        for row in rows:
            row[: at + 1] = [str(float(name == row[at + 1])) for name in header[:at]] + [
                row[at + 1]
            ]

    for fold in (0, 1):
        edit_rows(run, "breast-cancer", fold, correct)
    score_again(run)
    assert not verify(run, jobs=0).refused  # all fits, but the model
    assert refused(run, jobs=4) == {"rerun"}


def test_predictions_within_the_noise_of_seeds_are_accepted(tmp_path):
    """Another library may draw other random numbers: a forest of another seed is honest."""
    forest = RandomForestRegressor(20)
    suite = {
        "only": karat.Only("diabetes", folds=[0]),
        "output": karat.Output(tmp_path, items=False),
    }
    (run,) = karat.evaluate({"forest": forest}, "quickstart", **suite)
    reference = _Reference(run, forest, None, Catalog())
    other = reference.run_again("diabetes", 0, seed=777).clean
    same = reference.run_again("diabetes", 0).clean
    assert distance(same, run.predictions("diabetes")) == 0 < distance(same, other)
    path = run.folder / "predictions" / "diabetes" / "0" / "predictions.csv"
    keys = np.array([line.rpartition(",")[2] for line in path.read_text().splitlines()[1:]])
    stored = Predictions(other.predictions, other.target, key=keys)
    path.write_text(stored.to_csv())
    score_again(run)
    assert refused(run, model=forest) == {"rerun"}  # the best of some seeds
    versions = {**run.about["versions"], "scikit-learn": "1.5.0"}
    edit(run.folder / "run.json", versions=versions)
    found = verify(run.folder, seed=0, model=forest)
    assert not found.refused and any("scikit-learn 1.5.0" in note for note in found.notes)

    def closer(rows, at, header):
        for row in rows:
            row[at] = repr((float(row[at]) + float(row[at + 1])) / 2)

    def exact(rows, at, header):
        for row in rows[:5]:
            row[at] = row[at + 1]

    made = shutil.copytree(run.folder, tmp_path / "exact" / run.folder.name)
    path = made / "predictions" / "diabetes" / "0" / "predictions.csv"
    path.write_text(Predictions(same.predictions, same.target, key=keys).to_csv())
    edit_rows(Run(made), "diabetes", 0, exact)
    score_again(Run(made))
    assert refused(made, model=forest) == {"rerun"}  # the others can be repeated
    edit_rows(run, "diabetes", 0, closer)
    score_again(run)
    assert refused(run, model=forest) == {"rerun"}


def test_other_data_and_targets(copied):
    run = copied()
    plan = json.loads((run.folder / "run.json").read_text())
    plan["tasks"][1]["fingerprint"] = "0" * 64
    edit(run.folder / "run.json", tasks=plan["tasks"])
    assert refused(Run(run.folder), jobs=0) == {"data"}

    run = Run.open(shutil.move(run.folder, run.folder.with_name("first")))
    run = copied()
    edit_rows(run, "diabetes", 0, lambda rows, at, header: rows[0].__setitem__(at + 1, "1.0"))
    score_again(run)
    found = verify(run, jobs=0)
    assert [(r.check, r.fold) for r in found.reasons] == [("data", 0)]


def test_a_copy_under_another_name(copied, honest):
    run = copied("ordinal")
    edit(run.folder / "run.json", model="mine")
    for path in (run.folder / "jobs").glob("*.json"):
        edit(path, model="mine")
    Run(run.folder).finish()
    run = Run(run.folder)
    assert not verify(run).refused and "rerun" in verify(run).notes[-1]
    assert refused(run, against=[honest]) == {"copies"}
    assert not verify(run, against=[honest], model="ordinal", jobs=4).refused
    assert "rerun" in refused(run, model="dummy")
    edit(run.folder / "run.json", base="ordinal")  # variants of an encoder are not compared
    assert "schema" in refused(Run(run.folder), against=[honest])


def test_equal_predictions_in_one_task_are_a_note_without_the_model(honest, tmp_path):
    options = {
        "only": karat.Only("diabetes", folds=[0, 1]),
        "output": karat.Output(tmp_path, items=False),
    }
    (run,) = karat.evaluate("ordinal", "quickstart", **options)
    edit(run.folder / "run.json", model="mine")
    for path in (run.folder / "jobs").glob("*.json"):
        edit(path, model="mine")
    Run(run.folder).finish()
    found = verify(Run(run.folder), against=[honest])
    assert not found.refused
    assert [note for note in found.notes if "onehot" in note and "-m" in note]
    assert refused(Run(run.folder), against=[honest], model="dummy") >= {"copies", "rerun"}


def test_a_possible_copy_is_run_again_first(tmp_path, monkeypatch):
    # onehot and ordinal are the same on diabetes, and differ on penguins
    only = karat.Only(["diabetes", "penguins"], folds=[0, 1])
    output = karat.Output(tmp_path, items=False)
    runs = karat.evaluate(["onehot", "ordinal"], "quickstart", only=only, output=output)
    monkeypatch.setattr(_Work, "_most_surprising", lambda self, records: ("penguins", 0))
    found = verify(runs[0], against=[tmp_path], seed=0, jobs=1)
    assert not found.refused and any("ordinal" in note for note in found.notes)


def test_removed_jobs_and_damaged_records(copied):
    run = copied()
    (run.folder / "jobs" / "diabetes.0.json").unlink()
    assert "schema" in refused(run, jobs=0)
    (run.folder / "jobs" / "diabetes.1.json").write_text("{")
    assert "schema" in refused(run, jobs=0)
    (run.folder / "run.json").write_text("{")
    assert refused(Run(run.folder)) == {"schema"}


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": 0.0},
        {"seconds": -1.0},
        {"seconds": 1e6},
        {"fit_seconds": 500.0},
        {"utc": "2999-01-01T00:00:00"},
    ],
)
def test_impossible_times(copied, change):
    run = copied("dummy")
    edit(run.folder / "jobs" / "diabetes.0.json", **change)
    assert refused(run, jobs=0) == {"timing"}


def test_times_that_repeat_or_precede_the_run(copied):
    run = copied("dummy")
    for path in (run.folder / "jobs").glob("*.json"):
        edit(path, seconds=0.25, **dict.fromkeys(PHASES, 0.01))
    assert refused(run, jobs=0) == {"timing"}
    run = Run.open(shutil.move(run.folder, run.folder.with_name("first")))
    run = copied("dummy")
    for path in (run.folder / "jobs").glob("*.json"):
        edit(path, utc="2020-01-01T00:00:00")
    assert refused(run, jobs=0) == {"timing"}


def test_cpu_times_that_no_processor_has(tmp_path, monkeypatch):
    monkeypatch.setattr("karat.ext.publish.verification.FEWEST_SECONDS", 0.0)
    monkeypatch.setattr("karat.ext.publish.verification.GPU", ())
    suite = {
        "only": karat.Only("diabetes", folds=[0, 1]),
        "output": karat.Output(tmp_path, items=False),
    }
    (run,) = karat.evaluate("ridge", "quickstart", **suite)
    assert not verify(run, seed=0).refused
    for path in (run.folder / "jobs").glob("*.json"):
        record = json.loads(path.read_text())
        times = [n for n, v in record.items() if n.endswith("seconds") and isinstance(v, float)]
        edit(path, **{name: record[name] / 1000 for name in times})
    assert not verify(run.folder, jobs=0).refused  # all times fit each other
    assert refused(run.folder) == {"timing"}


@pytest.fixture
def corrupted(tmp_path):
    """Return a run with corrupted views, and its suite."""
    (task,) = (task for task in karat.suite("quickstart") if task.name == "diabetes")
    task = dataclasses.replace(task, corruptions={"noise_gaussian": (0.5, 1.0)})
    suite = karat.Suite("quickstart", (task,))
    (run,) = karat.evaluate(
        "ridge", suite, only=karat.Only(folds=[0, 1, 2]), output=karat.Output(tmp_path, items=False)
    )
    return run, suite


def test_predictions_on_corrupted_data(corrupted):
    run, suite = corrupted
    assert not verify(run, suite=suite, seed=0).refused
    for clean in run.folder.glob("predictions/diabetes/*/predictions.csv"):
        for view in clean.parent.glob("*/predictions.csv"):
            shutil.copy(clean, view)
    score_again(run)
    assert refused(run, suite=suite) == {"rerun"}


def test_predictions_that_are_declared_as_not_stored(corrupted):
    run, suite = corrupted
    path = run.folder / "jobs" / "diabetes.1.json"
    views = json.loads(path.read_text())["views"]
    for view in views:
        view["scores"]["rmse"], view["stored"] = 1.0, False
    edit(path, views=views)
    Run(run.folder).finish()
    assert "schema" in refused(run, suite=suite, jobs=0)
    # the task keeps predictions on clean data only: the score on corrupted data is compared
    (task,) = (dataclasses.replace(task, keep_predictions="clean") for task in suite)
    own = karat.Suite("quickstart", (task,))
    (run,) = karat.evaluate(
        "ridge",
        own,
        only=karat.Only(folds=[0]),
        output=karat.Output(run.folder.parent / "b", items=False),
    )
    assert not verify(run, suite=own, seed=0).refused
    path = run.folder / "jobs" / "diabetes.0.json"
    views = json.loads(path.read_text())["views"]
    for view in views[1:]:
        view["scores"]["rmse"] -= 1.0
    edit(path, views=views)
    Run(run.folder).finish()
    assert refused(run, suite=own) == {"rerun"}


def test_the_best_fold_is_run_again(tmp_path):
    options = {"only": "diabetes", "output": karat.Output(tmp_path, items=False)}
    (run,) = karat.evaluate("ridge", "quickstart", **options)

    def exact(rows, at, header):
        for row in rows:
            row[at] = row[at + 1]

    edit_rows(run, "diabetes", 3, exact)
    score_again(run)
    for seed in range(5):
        (reason,) = verify(run, seed=seed, jobs=1).reasons
        assert (reason.check, reason.fold) == ("rerun", 3)


def test_a_job_that_is_declared_as_failed(copied):
    run = copied("dummy")
    edit(run.folder / "jobs" / "diabetes.1.json", status="failed", info="timeout", views=[])
    Run(run.folder).finish()
    found = verify(run, seed=0, jobs=1)
    assert any("a new run finished" in note for note in found.notes)


def test_names_in_a_run_import_nothing(copied, tmp_path, monkeypatch):
    (tmp_path / "evil_module.py").write_text("open('imported', 'w').close()\nModel = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    run = copied()
    edit(run.folder / "run.json", model="evil_module:Model", suite="evil_module:Suite")
    for path in (run.folder / "jobs").glob("*.json"):
        edit(path, model="evil_module:Model")
    Run(run.folder).finish()
    found = verify(Run(run.folder))
    outcomes = found.checks.set_index("check")["outcome"]
    assert outcomes["data"] == outcomes["rerun"] == "skipped"
    assert not (tmp_path / "imported").exists()


def test_bad_input(tmp_path, honest):
    with pytest.raises(DataError, match="run.json"):
        verify(tmp_path)
    (run, *_) = karat.open_runs(honest)
    with pytest.raises(DefinitionError, match="jobs"):
        verify(run, jobs=-1)
    with pytest.raises(DefinitionError, match="quickstar"):
        verify(run, suite="quickstar")


def test_distance_of_predictions():
    target = [0.0, 2.0]  # the standard deviation is 1
    one = Predictions([0.0, 1.0], target)
    assert distance(one, one) == 0
    assert distance(one, Predictions([0.5, 9.0], target)) == pytest.approx((0.5 + 1) / 2)
    kinds = {"answers": "classes", "truths": "classes", "classes": ("a", "b")}
    sure = Predictions(["a", "b"], ["a", "b"], probabilities=[[1, 0], [0, 1]], **kinds)
    less = Predictions(["a", "b"], ["a", "b"], probabilities=[[0.6, 0.4], [0, 1]], **kinds)
    other = Predictions(["b", "b"], ["a", "b"], probabilities=[[0.4, 0.6], [0, 1]], **kinds)
    assert distance(sure, less) == pytest.approx(0.2)
    assert distance(sure, other) == pytest.approx(0.5)
    assert distance(one, Predictions([0.0], [0.0])) == 1


def are_copies(one, other):
    return copy_distance(one, other) <= EQUAL


def test_copies_need_real_numbers():
    rng = np.random.default_rng(0)
    values, target = rng.normal(size=50), rng.normal(size=50)
    one = Predictions(values, target)
    assert are_copies(one, Predictions(values + rng.normal(0, 1e-6, 50), target))
    assert not are_copies(one, Predictions(values + rng.normal(0, 1e-2, 50), target))
    constant = Predictions(np.full(50, 0.5), target)
    assert not are_copies(constant, constant)
    labels = {"answers": "classes", "truths": "classes", "classes": ("a", "b")}
    sure = np.repeat([[1.0, 0.0], [0.0, 1.0]], [60, 40], axis=0)
    sets = [sure.copy(), sure.copy()]
    for values in sets:  # most rows are sure, in both models
        values[:20, 0] = rng.random(20)
        values[:20, 1] = 1 - values[:20, 0]
    target = ["a"] * 100
    one, other = (Predictions(target, target, probabilities=p, **labels) for p in sets)
    assert are_copies(one, one) and not are_copies(one, other)
    same = Predictions(["a"] * 50, ["a"] * 50, **labels)
    assert not are_copies(same, same)


def test_a_scaled_copy_is_a_copy():
    rng = np.random.default_rng(0)
    values, target = rng.normal(size=50), rng.normal(size=50)
    one = Predictions(values, target)
    assert are_copies(Predictions(1.1 * values + 3, target), one)
    assert not are_copies(Predictions(values**3, target), one)
    labels = {"answers": "classes", "truths": "classes", "classes": ("a", "b", "c")}
    shares = rng.dirichlet([2, 2, 2], 60)
    names = ["a"] * 60
    sets = [shares, shares**1.3 / (shares**1.3).sum(axis=1, keepdims=True)]
    sets.append(rng.dirichlet([2, 2, 2], 60))
    one, scaled, other = (Predictions(names, names, probabilities=p, **labels) for p in sets)
    assert are_copies(scaled, one) and not are_copies(other, one)


# -- what could not be checked, costs, and folds -----------------------------------------------


def test_a_run_is_verified_only_if_all_checks_were_made(honest, copied):
    run = copied("dummy")
    found = verify(run, against=[honest], jobs=1, seed=0)
    assert found.verified and found.sentence == "Verified." and found.skipped == {}
    found = verify(run, jobs=0)
    assert not found.verified and not found.refused
    assert [*found.skipped] == ["copies", "rerun"] and all(found.skipped.values())
    assert found.sentence.startswith("Not refused, but 2 of 6 checks could not be made: copies (")
    made = found.to_dict()
    assert (made["verified"], made["refused"]) == (False, False)


@pytest.mark.parametrize("change", [{"dimensions": 4}, {"vector_bytes": 16}, {"precision": "int8"}])
def test_sizes_of_vectors_must_be_those_of_a_new_run(copied, change):
    run = copied("onehot")
    for path in (run.folder / "jobs").glob("*.json"):
        edit(path, **change)
    Run(run.folder).finish()
    assert refused(run, jobs=1) == {"rerun"}


def test_memory_and_time_within_a_factor(copied, monkeypatch):
    run = copied("dummy")
    again = {"dimensions": None, "peak_memory_mb": 900.0}
    work = _Work(run, [], 1, 0, _Reference(run, None, None, Catalog()))
    record = {**work.done[0], "peak_memory_mb": 290.0, "seconds": 2.0, "cpu_seconds": 2.0}
    fresh = SimpleNamespace(record={"peak_memory_mb": 880.0})
    monkeypatch.setattr(work.reference, "run_again", lambda *_, **__: fresh)
    work._compare_costs(record, again, 39.0)
    assert [reason.check for reason in work.reasons] == ["rerun"]  # 880 > 3 × 290
    fresh.record["peak_memory_mb"] = 860.0  # this process is larger than a worker
    work._compare_costs(record, again, 39.0)
    assert len(work.reasons) == 1
    work._compare_costs({**record, "seconds": 1.9}, again, 39.0)  # 39 > 20 × 1.9
    assert [reason.check for reason in work.reasons[1:]] == ["timing"]


def test_costs_of_the_compact_file_must_be_those_of_the_records(copied):
    run = copied("onehot")
    for path in (run.folder / "jobs").glob("*.json"):
        original = path.read_text()
        edit(path, peak_memory_mb=1.0)
        Run(run.folder).finish()
        path.write_text(original)
    found = verify(run, jobs=0)
    if (run.folder / "scores" / "jobs.columns").is_file():
        assert any("costs" in reason.message for reason in found.reasons)


def test_folds_that_the_suite_has_more_are_noted(copied):
    found = verify(copied("dummy"), jobs=0)
    assert "data: diabetes: the run has 2 of the 5 folds." in found.notes
