"""KRT4xx: problems of runs that are compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from karat.errors import FAILURES
from karat.results.rules.base import Facts, Hit, Job, several

#: relative tolerance below which scores are equal
SAME = 1e-6


def changed(facts: Facts) -> Iterator[Hit]:
    """KRT401: an identical job has other scores in another run."""
    first: dict[str, Job] = {}
    reported = set()
    for job in sorted(facts.jobs, key=lambda job: str(job.record["utc"])):
        spec = job.record["spec"]
        if not spec or job.record["status"] != "ok":
            continue
        before = first.setdefault(spec, job)
        where = (job.model, job.task)
        if before is job or where in reported:
            continue
        for name, old, new in _differing(before.record, job.record):
            reported.add(where)
            yield Hit(
                f"{job.record['model']} on {job.task}, fold {job.record['fold']}: {name} was "
                f"{old:.8g} and is {new:.8g} for an identical job"
                f"{_environment(facts, before, job)}.",
                *where,
            )
            break


def _differing(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, float, float]]:
    """Yield the scores of a job that differ: name, old and new value."""
    views = [{_view(view): view["scores"] for view in each["views"]} for each in (before, after)]
    for view, scores in views[0].items():
        for name, old in scores.items():
            new = views[1].get(view, {}).get(name)
            if old is None or new is None:
                continue
            if not math.isclose(old, new, rel_tol=SAME, abs_tol=SAME * SAME):
                yield name, old, new


def _view(view: Mapping[str, Any]) -> tuple[Any, ...]:
    return view["corruption"], view["severity"], view.get("draw", 0)


def _environment(facts: Facts, before: Job, after: Job) -> str:
    """Return which libraries or platforms differ, which are not part of a job's identity."""
    abouts = [facts.abouts[job.model] for job in (before, after)]
    versions = [about.get("versions") or {} for about in abouts]
    other = [
        f"{name} {versions[0].get(name)} → {version}"
        for name, version in versions[1].items()
        if versions[0].get(name) != version
    ]
    other += [
        f"{name} {abouts[0].get(name)} → {abouts[1].get(name)}"
        for name in ("python", "platform")
        if abouts[0].get(name) != abouts[1].get(name)
    ]
    return f" ({', '.join(other)})" if other else ""


def failed(facts: Facts) -> Iterator[Hit]:
    """KRT402: jobs without a score, which the leaderboard fills by its rule."""
    counts: dict[tuple[str, str], list[bool]] = {}
    names = {}
    for job in facts.jobs:
        if job.record["status"] != "declined":
            broken = job.record["status"] in FAILURES
            counts.setdefault((job.model, job.task), []).append(broken)
            names[job.model] = job.record["model"]
    for (model, task), lost in counts.items():
        if any(lost):
            yield Hit(
                f"{names[model]} failed in {sum(lost)} of {several(len(lost), 'fold')} of {task}.",
                model,
                task,
            )


def versions(facts: Facts) -> Iterator[Hit]:
    """KRT403: runs of several versions of Karat are compared."""
    found = _by(facts, "karat")
    if len(found) > 1:
        parts = [f"{version} ({_names(models)})" for version, models in sorted(found.items())]
        yield Hit(f"Runs of {len(found)} versions of Karat are compared: {', '.join(parts)}.")


def seeds(facts: Facts) -> Iterator[Hit]:
    """KRT404: models were run with different seeds, so on different folds."""
    found = _by(facts, "seed")
    own: dict[str, set[str]] = {}
    for seed, models in found.items():
        for model in models:
            own.setdefault(model, set()).add(seed)
    if len({frozenset(each) for each in own.values()}) > 1:
        parts = [f"{seed} ({_names(models)})" for seed, models in sorted(found.items())]
        yield Hit(
            f"Models were run with different seeds, so on different folds: {', '.join(parts)}."
        )


def _by(facts: Facts, name: str) -> dict[str, list[str]]:
    """Return the models by a field of their run.json, where it is recorded."""
    found: dict[str, list[str]] = {}
    for name_shown, about in facts.abouts.items():
        if about.get(name) is not None:
            found.setdefault(str(about[name]), []).append(str(about.get("model", name_shown)))
    return found


def _names(models: list[str]) -> str:
    names = list(dict.fromkeys(models))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def other_data(facts: Facts) -> Iterator[Hit]:
    """KRT405: a task was run on several versions of its data."""
    found: dict[str, dict[str, str]] = {}
    for label, task in facts.tasks.items():
        if task.get("fingerprint"):
            found.setdefault(str(task.get("name")), {})[str(task["fingerprint"])] = label
    for name, labels in found.items():
        if len(labels) > 1:
            yield Hit(
                f"{name} was run on {len(labels)} versions of its data, compared separately: "
                f"{', '.join(labels.values())}.",
                task=next(iter(labels.values())),
            )
