"""KRT1xx: problems of a model or of its vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from karat.results.rules.base import UNINFORMED, Facts, Hit, Job
from karat.results.rules.paired import bounds

#: the encoder of raw features, by modality, which others should beat
RAW = {"table": "onehot", "text": "tfidf"}
#: share of items with the vector of another item, from which it is reported
COLLAPSED = 0.05
#: coverage below which a score is not about the task as a whole
COVERED = 0.9
#: ratio of the largest to the smallest norm from which it is reported
UNLIKE = 1_000


def worse_than_random(facts: Facts) -> Iterator[Hit]:
    """KRT101: an uninformed model does better."""
    for task in facts.given.metrics:
        models = facts.scored(task, contenders=True)
        done = set()
        for other in facts.scored(task):
            name = facts.called(other).lower()
            if name not in UNINFORMED:
                continue
            for m in models[bounds(facts, task, other)[2][models] < 0]:
                role = _about(facts, m, "role")
                fair = not role or (role == "predictor") == (name != "random")
                if fair and m not in done:
                    done.add(m)
                    yield _against(facts, task, m, other, "worse than")


def no_better_than_raw(facts: Facts) -> Iterator[Hit]:
    """KRT102: an encoder is no better than raw features."""
    for task, about in facts.tasks.items():
        raw = RAW.get(str(about.get("modality")))
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
                how = "not significantly better than" if mean[m] > 0 else "no better than"
                yield _against(facts, task, m, others[0], how)


def constant_dimensions(facts: Facts) -> Iterator[Hit]:
    """KRT103: dimensions that are constant over all items, or nearly."""
    for job, seen in _observed(facts):
        constant, nearly = int(seen.get("constant", 0)), int(seen.get("nearly_dead", 0))
        if constant + nearly:
            yield Hit(
                f"{job.record['model']} on {job.task}: {constant:,} of {seen['dimensions']:,} "
                f"dimensions are constant, {nearly:,} nearly constant.",
                job.model,
                job.task,
            )


def same_vectors(facts: Facts) -> Iterator[Hit]:
    """KRT104: different items have the same vector."""
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
    """KRT105: a score covers only some of the questions."""
    jobs = facts.given.jobs.dropna(subset=["coverage"])
    jobs = jobs[jobs["status"] == "ok"].astype({"coverage": float})
    means = jobs.groupby(["model", "task"], sort=False)["coverage"].mean()
    for (model, task), share in means.items():
        if share < COVERED:
            name = facts.abouts.get(model, {}).get("model", model)
            yield Hit(f"{name} covers {share:.0%} of the questions of {task}.", model, task)


def unlike_lengths(facts: Facts) -> Iterator[Hit]:
    """KRT106: a few vectors are so long that they dominate all others."""
    for job, seen in _observed(facts):
        short, _, long = seen.get("lengths") or (0.0, 0.0, 0.0)
        if facts.probe(job.task) == "trained" and 0 < short * UNLIKE <= long:
            yield Hit(
                f"{job.record['model']} on {job.task}: the largest norms are "
                f"{long / short:,.0f} times the smallest.",
                job.model,
                job.task,
            )


def _against(facts: Facts, task: str, model: int, other: int, how: str) -> Hit:
    return Hit(
        f"{facts.called(model)} is {how} {facts.called(other)} on {task} "
        f"({facts.score(model, task)} against {facts.score(other, task)}).",
        facts.cells.models[model],
        task,
    )


def _about(facts: Facts, model: int, name: str) -> str:
    return str(facts.abouts.get(facts.cells.models[model], {}).get(name, ""))


def _observed(facts: Facts) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Yield one job of each model and task with statistics of its vectors, and these."""
    done = set()
    for job in facts.jobs:
        seen = job.record.get("observed")
        if seen and (job.model, job.task) not in done:
            done.add((job.model, job.task))
            yield job, seen
