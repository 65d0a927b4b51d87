"""Shards: detection of the part, bundles, balance, and times of earlier runs."""

from __future__ import annotations

import json
import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.core.dataset import Dataset
from karat.core.task import Task
from karat.errors import DefinitionError
from karat.execution.arguments import Machines
from karat.execution.evaluation import evaluate, make_options
from karat.execution.plan import job_spec, make_plan
from karat.ext.cluster.shards import (
    Parts,
    Shard,
    job_seconds,
    make_bundles,
    parse_shard,
    pinned_times,
    split_parts,
)
from karat.models.adapters import adapt
from karat.models.model import StatelessEncoder

SLURM = {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "8"}


class Letters(StatelessEncoder):
    """Counts letters, once per dataset."""

    def transform(self, texts):
        return np.array([[text.count("a"), text.count("b")] for text in texts])


class Fitted:
    """An encoder that is fitted on each fold."""

    def fit(self, texts, y=None):
        return self

    def transform(self, texts):
        return np.array([[len(text)] for text in texts])


@pytest.fixture
def plan():
    """Return a plan: a stateless and a fitted encoder, two tasks on each of two datasets."""
    rng = np.random.default_rng(0)
    tasks = []
    for number in range(2):
        texts = ["".join(rng.choice(list("ab"), 5)) + str(i) for i in range(20)]
        frame = pd.DataFrame({"text": texts, "y": ["A", "B"] * 10})
        data = Dataset.from_columns(frame, ["text"], "y", name=f"data-{number}")
        tasks += [
            Task(f"{head}-{number}", data, probe={"use": "trained", "head": head}, metrics=["acc"])
            for head in ("logistic-regression", "naive-bayes")
        ]
    return make_plan([adapt(Letters(), "letters"), adapt(Fitted(), "fitted")], tasks)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"KARAT_SHARD_INDEX": "2", "KARAT_SHARD_COUNT": "5"}, Shard(3, 5)),
        ({**SLURM, "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "8"}, Shard(3, 8)),
        ({**SLURM, "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "7"}, Shard(4, 8)),
        # some tasks of an array of 64 are run again
        (
            {
                **SLURM,
                "SLURM_ARRAY_TASK_COUNT": "2",
                "SLURM_ARRAY_TASK_MIN": "3",
                "KARAT_SHARD_COUNT": "64",
            },
            Shard(3, 64),
        ),
        ({"JOB_COMPLETION_INDEX": "0", "KARAT_SHARD_COUNT": "4"}, Shard(1, 4)),
        ({"AWS_BATCH_JOB_ARRAY_INDEX": "9", "AWS_BATCH_JOB_ARRAY_SIZE": "10"}, Shard(10, 10)),
        ({"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "3"}, Shard(1, 3)),
        ({"CI_NODE_TOTAL": "1", "CI_NODE_INDEX": "1"}, Shard(1, 1)),
    ],
)
def test_the_shard_is_found_in_the_environment(environment, expected):
    assert parse_shard("auto", environment) == expected


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({}, "SLURM_ARRAY_TASK_ID"),
        ({"JOB_COMPLETION_INDEX": "3"}, "KARAT_SHARD_COUNT"),
        ({"CI_NODE_INDEX": "0", "CI_NODE_TOTAL": "3"}, "CI_NODE_INDEX"),
        ({"AWS_BATCH_JOB_ARRAY_INDEX": "x", "AWS_BATCH_JOB_ARRAY_SIZE": "10"}, '"x"'),
        ({**SLURM, "SLURM_ARRAY_TASK_MIN": "x"}, '"x"'),
        ({"JOB_COMPLETION_INDEX": "0", "KARAT_SHARD_COUNT": "0"}, "at least 1"),
        # tasks 3 to 5 of an earlier array would be taken for three parts
        ({**SLURM, "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_MAX": "10"}, "KARAT_SHARD_COUNT"),
        ({**SLURM, "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "64"}, "KARAT_SHARD_COUNT"),
    ],
)
def test_a_wrong_environment_is_refused(environment, named):
    with pytest.raises(DefinitionError, match="auto") as error:
        parse_shard("auto", environment)
    assert named in str(error.value)


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3", "1/3/5", "1.5/2", ""])
def test_a_wrong_shard_is_refused(text):
    with pytest.raises(DefinitionError, match="I/N"):
        parse_shard(text)


def test_wrong_options_are_refused_together():
    with pytest.raises(DefinitionError) as error:
        make_options({"shard": "9/3", "seed": -1})
    assert len(error.value.messages) == 2


def test_vectors_are_computed_in_one_part_if_their_time_is_unknown(plan):
    bundles = make_bundles(plan, {})
    assert sorted(job for each in bundles for job in each.jobs) == list(range(len(plan.jobs)))
    found = [
        {(plan.jobs[job][0].name, plan.jobs[job][1].data.name) for job in each.jobs}
        for each in bundles
    ]
    assert all(len(pairs) == 1 for pairs in found)
    assert found.count({("letters", "data-0")}) == found.count({("letters", "data-1")}) == 1
    # the heads of a fold stay together: five folds on each of two datasets
    assert sum(pairs <= {("fitted", "data-0"), ("fitted", "data-1")} for pairs in found) == 10


def test_long_jobs_of_an_encoder_are_split_if_vectors_are_cheap(plan):
    tasks = [planned.task.name for planned in plan.tasks]
    cheap = {("letters", task): (10.0, 1.0) for task in tasks}
    dear = {("letters", task): (10.0, 100.0) for task in tasks}
    counts = [
        sum(plan.jobs[each.jobs[0]][0].name == "letters" for each in make_bundles(plan, times))
        for times in (cheap, dear)
    ]
    assert counts[0] > 4
    assert counts[1] == 2
    pieces = [
        each for each in make_bundles(plan, cheap) if plan.jobs[each.jobs[0]][0].name == "letters"
    ]
    assert min(10 * len(piece.jobs) for piece in pieces) >= 4 * 1.0


def test_unknown_times_are_means_of_known_ones(plan):
    first, second, *_ = (planned.task.name for planned in plan.tasks)
    times = {("letters", first): (2.0, 0.0), ("letters", second): (4.0, 0.0)}
    known = dict(
        zip([(m.name, p.task.name) for m, p, _ in plan.jobs], job_seconds(plan, times), strict=True)
    )
    third = plan.tasks[2].task.name
    assert known["letters", first] == 2.0
    assert known["letters", third] == 3.0
    assert known["fitted", first] == 2.0
    assert known["fitted", third] == 3.0
    assert set(job_seconds(plan, {})) == {1.0}


def test_parts_are_balanced_by_time_and_the_same_in_any_order(plan):
    times = {
        (model, planned.task.name): (9.0 if model == "fitted" else 1.0, 0.5)
        for model in ("letters", "fitted")
        for planned in plan.tasks
    }
    parts = Parts.of(plan, times, 4)
    seconds = [parts.seconds(part) for part in range(4)]
    assert max(seconds) <= 1.25 * sum(seconds) / 4
    shuffled = list(times.items())
    random.Random(3).shuffle(shuffled)
    assert Parts.of(plan, dict(shuffled), 4) == parts


@given(st.lists(st.floats(0.001, 1000), max_size=40), st.integers(1, 12))
def test_every_bundle_is_in_one_part_and_no_part_is_long(seconds, count):
    parts = split_parts(seconds, count)
    assert len(parts) == count
    assert sorted(place for part in parts for place in part) == list(range(len(seconds)))
    longest = max(sum(seconds[place] for place in part) for part in parts)
    assert longest <= 1.1001 * (sum(seconds) / count + max(seconds, default=0))


def test_equal_bundles_of_a_model_stay_neighbors():
    parts = split_parts([1.0] * 100, 7)
    assert all(part == list(range(part[0], part[-1] + 1)) for part in parts)
    assert max(map(len, parts)) == 15  # 100 / 7, rounded up


def test_a_part_has_its_jobs_models_and_folds_only(plan):
    part = plan.take([3, 1])
    assert part.jobs == (plan.jobs[1], plan.jobs[3])
    assert {model.name for model in part.models} == {job[0].name for job in part.jobs}
    for model, planned, fold in part.jobs:
        assert fold in part.folds_of(model, planned)
        assert job_spec(part, model, planned, fold) == job_spec(plan, model, planned, fold)
    assert sum(map(len, part.part.values())) == 2


def test_the_first_shard_fixes_the_times_for_all_others(plan, tmp_path):
    assert pinned_times(plan, tmp_path) == {}
    rows = [["letters", planned.task.name, 2.0, 0.5] for planned in plan.tasks]
    (tmp_path / "estimates.json").write_text(json.dumps({"jobs": rows}))
    assert pinned_times(plan, tmp_path) == {("letters", row[1]): (2.0, 0.5) for row in rows}
    (tmp_path / "estimates.json").write_text("[1")
    with pytest.raises(DefinitionError, match=r"estimates\.json"):
        pinned_times(plan, tmp_path)


def test_times_come_from_the_runs_in_the_output_folder(two_classes, tmp_path):
    evaluate("onehot", two_classes(), output=tmp_path)
    evaluate("onehot", two_classes(), output=tmp_path, workers=Machines(shard="1/2"))
    ((model, task, seconds, vectors),) = json.loads((tmp_path / "estimates.json").read_text())[
        "jobs"
    ]
    assert (model, task, vectors) == ("onehot", "halves", 0.0)
    assert seconds > 0
    pinned = (tmp_path / "estimates.json").read_bytes()
    evaluate("onehot", two_classes(), output=tmp_path)  # another run, with other times
    evaluate("onehot", two_classes(), output=tmp_path, workers=Machines(shard="2/2"))
    assert (tmp_path / "estimates.json").read_bytes() == pinned


def test_a_part_without_jobs_writes_the_plan_only(two_classes, tmp_path):
    assert evaluate("dummy", two_classes(), output=tmp_path, workers=Machines(shard="3/3")) == []
    assert [path.name for path in (tmp_path / "shard-3-of-3").iterdir()] == ["plan.json"]
