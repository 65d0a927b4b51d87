"""KRT0xx: problems of a task's data, whatever the model.

KRT2xx: training that did not converge, or depends on the seed.
KRT1xx: problems of a model or of its vectors.
KRT4xx: problems of runs that are compared.
KRT3xx: what the scores of a task cannot distinguish.
The table of rules, and the findings of all rules in some runs.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.analysis.check_facts import (
    LEVELS,
    UNINFORMED,
    Facts,
    Finding,
    Findings,
    Hit,
    Job,
    Rule,
    best_value,
    bounds,
    count_noun,
    detectable,
    plain_metric,
)
from karat.errors import FAILURES, DefinitionError, did_you_mean
from karat.results.run import Run

#: share of test rows that also occur in training, from which it is reported
LEAKED = 0.01
#: score of a single column from which it predicts the target
GIVEN_AWAY = 0.95
#: share of the largest class from which a constant prediction looks good
LOPSIDED = 0.8
#: metrics that weight all rows equally, whatever their class
HIDING = {"acc", "f1_micro", "f1_weighted"}
#: probes that do not train on the training rows
UNTRAINED = {"similarity", "analogy", "nearest", "same-class", "duplicates"}


def duplicates(facts: Facts) -> Iterator[Hit]:
    """KRT001: test rows that also occur in their training rows."""
    for task, leaked, tested, _ in facts.counted("twins"):
        if leaked >= LEAKED * tested:
            yield Hit(
                f"{leaked / tested:.0%} of the test rows of {task} also occur in the training rows "
                f"({leaked:,} of {tested:,}).",
                task=task,
            )


def entities(facts: Facts) -> Iterator[Hit]:
    """KRT002: test questions about an entity that was seen in training."""
    for task, shared, tested, what in facts.counted("entities"):
        if shared >= LEAKED * tested and facts.probe(task) not in UNTRAINED:
            yield Hit(
                f"{shared / tested:.0%} of the test questions of {task} share their {what} with a "
                f"training question ({shared:,} of {tested:,}).",
                task=task,
            )


def give_away(facts: Facts) -> Iterator[Hit]:
    """KRT003: one column alone predicts the target."""
    for task, about in facts.tasks.items():
        column, score = about.get("give_away") or ("", 0.0)
        if score >= GIVEN_AWAY:
            yield Hit(
                f'Column "{column}" alone predicts the target of {task} ({score:.0%}).', task=task
            )


def imbalance(facts: Facts) -> Iterator[Hit]:
    """KRT004: one class is most of the rows, and the metric does not correct for it."""
    for task, about in facts.tasks.items():
        classes = about.get("classes") or {}
        metric = facts.given.metrics.get(task, "")
        total = sum(classes.values())
        largest = max(classes, key=lambda label: classes[label], default="")
        if total and plain_metric(metric) in HIDING and classes[largest] >= LOPSIDED * total:
            share = classes[largest] / total
            # a constant prediction has the class's share as precision and a recall of 1
            gained = 2 * share**2 / (1 + share) if "weighted" in metric else share
            yield Hit(
                f'{share:.0%} of {task} is the class "{largest}": always predicting it has '
                f"{metric} {gained:.2f}.",
                task=task,
            )


def unconverged(facts: Facts) -> Iterator[Hit]:
    """KRT201: heads or models that stopped at their iteration limit."""
    counts: dict[tuple[str, str], list[bool]] = {}
    names = {}
    for job in facts.jobs:
        if job.record["status"] == "ok":
            stopped = bool(job.record.get("unconverged"))
            counts.setdefault((job.model, job.task), []).append(stopped)
            names[job.model] = job.record["model"]
    for (model, task), folds in counts.items():
        if any(folds):
            yield Hit(
                f"{names[model]} on {task}: did not converge in {sum(folds)} of "
                f"{count_noun(len(folds), 'fold')}.",
                model,
                task,
            )


def unstable(facts: Facts) -> Iterator[Hit]:
    """KRT202: the mean varies more over seeds than the score over folds."""
    for task in facts.given.metrics:
        for runs in _same_but_for_seed(facts, task):
            folds = facts.cells.folds[facts.place[task]][list(runs.values())]
            within = [row[~np.isnan(row)] for row in folds]
            if min(map(len, within)) < 2:
                continue
            means = np.array([row.mean() for row in within])
            between = float(means.std(ddof=1))
            inside = float(np.sqrt(np.mean([row.var(ddof=1) for row in within])))
            if between > inside and between > 1e-9 * np.abs(means).max():
                first = next(iter(runs.values()))
                ends = means if facts.given.higher(facts.given.metrics[task]) else -means
                yield Hit(
                    f"{facts.called(first)} on {task}: {min(ends):.4g} to {max(ends):.4g} with "
                    f"{len(runs)} seeds, a standard deviation of {between:.2g}; over folds it is "
                    f"{inside:.2g}.",
                    facts.cells.models[first],
                    task,
                )


def _same_but_for_seed(facts: Facts, task: str) -> Iterator[dict[int, int]]:
    """Yield the runs of a model with several seeds: the index of each by its seed."""
    found: dict[str, dict[int, int]] = {}
    for m in facts.scored(task):
        about = facts.abouts.get(facts.cells.models[m], {})
        seed = about.get("seed")
        if isinstance(seed, int):
            key = json.dumps([about.get(k) for k in ("model", "version", "params")], default=str)
            found.setdefault(key, {}).setdefault(seed, int(m))
    yield from (runs for runs in found.values() if len(runs) > 1)


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
                f"{names[model]} failed in {sum(lost)} of {count_noun(len(lost), 'fold')} of {task}.",
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


#: distance to the best possible value, relative to the metric's range, that counts as there
CEILING = 0.02
#: number and share of models there from which a task is saturated
FEWEST_THERE, PART_THERE = 3, 0.5
#: relative tolerance below which scores are equal
TIE = 1e-6


def saturated(facts: Facts) -> Iterator[Hit]:
    """KRT301: half of the models or more have nearly the best possible score."""
    for task, metric in facts.given.metrics.items():
        best = best_value(metric)
        models = facts.rivals(task)
        if best is None or not len(models):
            continue
        means = facts.cells.means[models, facts.place[task]]
        there = int((np.abs(best[0] - means) <= (CEILING + TIE) * best[1]).sum())
        if there >= FEWEST_THERE and there >= PART_THERE * len(models):
            yield Hit(
                f"{there} of {count_noun(len(models), 'model')} are within {CEILING * best[1]:g} of "
                f"the best possible {metric} on {task}.",
                task=task,
            )


def too_few_rows(facts: Facts) -> Iterator[Hit]:
    """KRT302: the difference of first and second is below the detectable one."""
    for task in facts.given.metrics:
        models = facts.rivals(task)
        if len(models) < 2:
            continue
        first, second = models[:2]
        means = facts.cells.means[[first, second], facts.place[task]]
        gap = abs(float(means[0] - means[1]))
        least, basis = detectable(facts, task, first, second) or (0.0, "")
        if TIE * float(np.abs(means).max()) < gap < least:
            yield Hit(
                f"On {task}, {facts.called(first)} leads {facts.called(second)} by {gap:.2g}; "
                f"{basis} can detect differences from {least:.2g}.",
                task=task,
            )


RULES = (
    Rule(
        "KRT001",
        "Test rows duplicated in the training rows",
        "warning",
        "Drop duplicates, or give the dataset a group so that equal rows stay together.",
        duplicates,
    ),
    Rule(
        "KRT002",
        "The same entity in train and test",
        "warning",
        "Set the dataset's group to the entity's column, so that it stays in one fold.",
        entities,
    ),
    Rule(
        "KRT003",
        "One column predicts the target",
        "warning",
        "Find out how the column was made; drop it if it was derived from the target.",
        give_away,
    ),
    Rule(
        "KRT004",
        "One class is most of the rows",
        "warning",
        "Compare by balacc, auc or pr_auc: --metric TASK=balacc.",
        imbalance,
    ),
    Rule(
        "KRT101",
        "Worse than chance",
        "warning",
        "Look for a bug: rows in another order, a lost column, items without a vector.",
        worse_than_random,
    ),
    Rule(
        "KRT102",
        "No better than raw features",
        "note",
        "Report it with the model; more folds may detect a small difference.",
        no_better_than_raw,
    ),
    Rule(
        "KRT103",
        "Constant dimensions",
        "note",
        "Drop them; many of them suggest dead units or a column that is not read.",
        constant_dimensions,
    ),
    Rule(
        "KRT104",
        "Different items with the same vector",
        "warning",
        "Inspect the items: out of vocabulary, truncated to the same prefix, or not read at all?",
        same_vectors,
    ),
    Rule(
        "KRT105",
        "Low coverage",
        "warning",
        "Compare on the common questions (--on common), or set missing: penalize in the task.",
        low_coverage,
    ),
    Rule(
        "KRT106",
        "Vectors of very different norms",
        "note",
        "Scale the vectors to norm 1, or inspect the items with the largest norms.",
        unlike_lengths,
    ),
    Rule(
        "KRT201",
        "Did not converge",
        "warning",
        "Allow more iterations (max_iter of the head), or scale the vectors.",
        unconverged,
    ),
    Rule(
        "KRT202",
        "Unstable with the seed",
        "warning",
        "Report the mean over several seeds, or make the training more stable.",
        unstable,
    ),
    Rule(
        "KRT301",
        "Saturated task",
        "note",
        "Do not choose between models by this task; use a harder one.",
        saturated,
    ),
    Rule(
        "KRT302",
        "First and second too close to call",
        "note",
        "Call it a tie, or test on more rows or folds.",
        too_few_rows,
    ),
    Rule(
        "KRT401",
        "Scores changed for an identical job",
        "error",
        "Find what is not seeded, or depends on the machine or its libraries.",
        changed,
    ),
    Rule(
        "KRT402",
        "Failed jobs",
        "warning",
        "The leaderboard fills them by its missing rule; karat run … --resume --retry-failed.",
        failed,
    ),
    Rule(
        "KRT403",
        "Several versions of Karat",
        "warning",
        "Run all models again with one version.",
        versions,
    ),
    Rule(
        "KRT404",
        "Several seeds",
        "warning",
        "Run all models with the same seeds; different seeds make different folds.",
        seeds,
    ),
    Rule(
        "KRT405",
        "Several versions of a task's data",
        "note",
        "Run all models again on one version of the data.",
        other_data,
    ),
)


def check_runs(
    runs: pd.DataFrame | Run | str | Path | Iterable[Run | str | Path],
    ignore: str | Iterable[str] = (),
) -> Findings:
    """Check runs for problems with their data, models, training and statistics.

    Parameters
    ----------
    runs
        A table of scores, runs, run folders or folders of runs.
    ignore
        Codes of checks to silence, or prefixes of them: ``"KRT1"`` silences all checks of models.
        A task can silence checks with ``ignore`` in its definition.

    Returns
    -------
    Findings
        A list of findings, the most severe first, under the leaderboard's names of models and
        tasks; ``silenced`` counts the silenced ones by code.

    Raises
    ------
    DefinitionError
        If a code in ``ignore`` is unknown.

    Examples
    --------
    >>> for finding in karat.check_runs("results"):  # doctest: +SKIP
    ...     print(finding.code, finding.message)
    """
    quiet = check_codes(ignore)
    facts = Facts.of(runs)
    found, silenced = [], Counter[str]()
    for rule in RULES:
        for hit in rule.look(facts):
            own = facts.tasks.get(hit.task or "", {}).get("ignore") or ()
            if rule.code.startswith((*quiet, *own)):
                silenced[rule.code] += 1
            else:
                where = (hit.model, hit.task)
                found.append(Finding(rule.code, rule.level, *where, hit.message, rule.advice))
    found.sort(key=lambda each: (LEVELS.index(each.level), each.code))
    return Findings(found, silenced)


def check_codes(codes: str | Iterable[str]) -> tuple[str, ...]:
    """Return codes, or prefixes of codes, in upper case; raise if no check has one.

    >>> check_codes(["krt004", "KRT3"])
    ('KRT004', 'KRT3')
    """
    upper = [code.upper() for code in ([codes] if isinstance(codes, str) else codes)]
    for code in upper:
        if len(code) <= 3 or not any(rule.code.startswith(code) for rule in RULES):
            raise _unknown(code)
    return tuple(upper)


def rule_of(code: str) -> Rule:
    """Return the rule with this code."""
    for rule in RULES:
        if rule.code == code.upper():
            return rule
    raise _unknown(code)


def _unknown(code: str) -> DefinitionError:
    hint = did_you_mean(code, [rule.code for rule in RULES])
    return DefinitionError(f'there is no check "{code}".{hint}   (karat checks --list)')


def render_page(rule: Rule) -> str:
    """Return the page of a check as Markdown: what it means, how it is computed, what to do."""
    body = resources.files("karat.analysis") / "check_pages" / f"{rule.code}.md"
    return (
        f"# {rule.code}: {rule.title}\n\nLevel: {rule.level}.\n\n"
        f"{body.read_text(encoding='utf-8')}\n"
        f"To silence it, use `--ignore {rule.code}`, or `ignore: [{rule.code}]` in the task.\n"
    )


def explain(code: str) -> str:
    """Return the page of the check with this code as Markdown; see ``render_page``."""
    return render_page(rule_of(code))


def index_table(folder: str = "checks") -> str:
    """Return a Markdown table of all checks with links to their pages."""
    rows = [
        f"| [{rule.code}]({folder}/{rule.code}.md) | {rule.level} | {rule.title} |"
        for rule in RULES
    ]
    return "\n".join(["| code | level | what |", "|---|---|---|", *rows]) + "\n"
