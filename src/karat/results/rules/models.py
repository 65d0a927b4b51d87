"""KRT1xx: what is wrong with a model, or with its vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from karat.results.rules.base import CLUELESS, Facts, Hit, Job
from karat.results.rules.paired import bounds

#: what an encoder must beat: the raw features, by what the items are
RAW = {"table": "onehot", "text": "tfidf"}
#: so large a part of the items with the vector of another one is worth a word
COLLAPSED = 0.05
#: below this share of the questions a score is about others than the task asks for
COVERED = 0.9
#: the longest vectors are so many times the shortest
UNLIKE = 1_000


def worse_than_random(facts: Facts) -> Iterator[Hit]:
    """KRT101: a model that knows nothing does better."""
    for task in facts.given.metrics:
        models = facts.scored(task, contenders=True)
        done = set()
        for other in facts.scored(task):
            name = facts.called(other).lower()
            if name not in CLUELESS:
                continue
            for m in models[bounds(facts, task, other)[2][models] < 0]:
                role = _about(facts, m, "role")
                fair = not role or (role == "predictor") == (name != "random")
                if fair and m not in done:
                    done.add(m)
                    yield _beside(facts, task, m, other, "worse than")


def no_better_than_raw(facts: Facts) -> Iterator[Hit]:
    """KRT102: raw features do as well as an encoder's vectors."""
    for task, told in facts.tasks.items():
        raw = RAW.get(str(told.get("modality")))
        if task not in facts.given.metrics or raw is None:
            continue
        others = [m for m in facts.scored(task) if facts.called(m) == raw]
        if not others:
            continue
        mean, low, _ = bounds(facts, task, others[0])
        gain = np.where(np.isnan(low), mean, low)
        for m in facts.scored(task, contenders=True):
            encoder = _about(facts, m, "role") == "encoder"
            if encoder and m not in others and gain[m] <= 0:
                how = "not measurably better than" if mean[m] > 0 else "no better than"
                yield _beside(facts, task, m, others[0], how)


def constant_dimensions(facts: Facts) -> Iterator[Hit]:
    """KRT103: dimensions that are the same for all items, or nearly."""
    for job, seen in _observed(facts):
        still, nearly = int(seen.get("constant", 0)), int(seen.get("nearly_dead", 0))
        if still + nearly:
            kinds = [f"{still:,} constant"] * (still > 0) + [f"{nearly:,} nearly so"] * (nearly > 0)
            yield Hit(
                f"{still + nearly:,} of the {seen['dimensions']:,} dimensions of "
                f"{job.record['model']} on {job.task} say nothing ({', '.join(kinds)}).",
                job.model,
                job.task,
            )


def same_vectors(facts: Facts) -> Iterator[Hit]:
    """KRT104: items that are not the same have the same vector."""
    for job, seen in _observed(facts):
        same, compared = int(seen.get("same", 0)), int(seen.get("compared", 0))
        if same and same >= COLLAPSED * compared:
            yield Hit(
                f"{job.record['model']} gives {same:,} of {compared:,} test items of {job.task} "
                f"the vector of another item.",
                job.model,
                job.task,
            )


def low_coverage(facts: Facts) -> Iterator[Hit]:
    """KRT105: a score that rests on a part of the questions only."""
    told = facts.given.jobs.dropna(subset=["coverage"])
    told = told[told["status"] == "ok"].astype({"coverage": float})
    means = told.groupby(["model", "task"], sort=False)["coverage"].mean()
    for (model, task), share in means.items():
        if share < COVERED:
            name = facts.abouts.get(model, {}).get("model", model)
            yield Hit(f"{name} could answer {share:.0%} of {task}.", model, task)


def unlike_lengths(facts: Facts) -> Iterator[Hit]:
    """KRT106: a few vectors are so long that they outweigh all others."""
    for job, seen in _observed(facts):
        short, _, long = seen.get("lengths") or (0.0, 0.0, 0.0)
        if facts.probe(job.task) == "trained" and 0 < short * UNLIKE <= long:
            yield Hit(
                f"The longest vectors of {job.record['model']} on {job.task} are "
                f"{long / short:,.0f} times the shortest.",
                job.model,
                job.task,
            )


def _beside(facts: Facts, task: str, model: int, other: int, how: str) -> Hit:
    return Hit(
        f"{facts.called(model)} is {how} {facts.called(other)} on {task} "
        f"({facts.score(model, task)} against {facts.score(other, task)}).",
        facts.cells.models[model],
        task,
    )


def _about(facts: Facts, model: int, name: str) -> str:
    return str(facts.abouts.get(facts.cells.models[model], {}).get(name, ""))


def _observed(facts: Facts) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Yield the job of each model and task in which vectors were looked at, and what was seen."""
    done = set()
    for job in facts.jobs:
        seen = job.record.get("observed")
        if seen and (job.model, job.task) not in done:
            done.add((job.model, job.task))
            yield job, seen
