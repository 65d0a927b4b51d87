"""Which runs are of one model, and which of their tasks ask the same question.

Runs of one name with the same constraint, version and parameters are one model; runs of one name
that differ in these are variants with a label. A task is a question: data, split, probe, missing
rule, positive class and metric. Questions of one name that differ get a label each. A fact that a
run does not record is equal to any.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from karat.core.formatting import cut_text
from karat.core.replicates import fit_seed, replicate_of
from karat.errors import DefinitionError, did_you_mean
from karat.results.run import Run, newest_first
from karat.results.tables import ELIMINATED, FINAL_EPOCH, SCORE_COLUMNS

#: a row per variant of a model, per model name, or per run folder
POOLS = ("variant", "model", "none")
#: between a name and its label
DOT = " · "
#: constraint of an import that does not record it
UNKNOWN_CONSTRAINT = "unknown"
#: characters of a value in a label
LONGEST = 40

Facts = dict[str, Any]
#: more than the repeats of any split
MOST_REPEATS = 1_000_000
JOB = ["model", "task", "repeat", "fold"]
#: columns of jobs that are averaged over replicates
COSTS = ("seconds", "tokens", "price")


def check_pool(pool: object) -> str:
    """Return a name of POOLS, or raise ``DefinitionError``."""
    if pool not in POOLS:
        hint = did_you_mean(str(pool), POOLS)
        raise DefinitionError(f"pool must be one of {', '.join(POOLS)}, got {pool!r}.{hint}")
    return str(pool)


@dataclass(frozen=True)
class PooledRun:
    """A run under the names of the leaderboard.

    ``model`` is the name of its row, ``labels`` the column of each of its tasks. ``shifts`` is, by
    column, what is added to its repeats, so that folds of several seeds stay apart; ``dropped``
    are columns in which not all models have its seed, and ``alone`` those of its seed only.
    """

    run: Run
    model: str
    labels: dict[str, str]
    shifts: dict[str, int] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()

    @property
    def apart(self) -> frozenset[str]:
        """Columns in which not all models have its seed."""
        return self.dropped | self.alone


def pool_runs(runs: Sequence[Run], pool: str = "variant") -> list[PooledRun]:
    """Return the runs, in this order, with the names of their rows and columns."""
    return place_seeds(runs, name_models(runs, check_pool(pool)), name_questions(runs))


def name_runs(runs: Sequence[Run]) -> list[PooledRun]:
    """Return the runs, each with a name of its own; all seeds have one name."""
    named = zip(runs, name_models(runs, "none"), name_questions(runs), strict=True)
    return [
        PooledRun(run, model, {task: question.label for task, question in questions.items()})
        for run, model, questions in named
    ]


# -- models ---------------------------------------------------------------------------------


def name_models(runs: Sequence[Run], pool: str = "variant") -> list[str]:
    """Return the name of the row of each run."""
    if pool == "none":
        return _folder_names(runs)
    models = [run.model for run in runs]
    if pool == "model":
        return models
    places: dict[str, list[int]] = {}
    for position, model in enumerate(models):
        places.setdefault(model, []).append(position)
    names, taken = list(models), set(models)
    for model, positions in places.items():
        groups = _grouped([_model_facts(runs[position].about) for position in positions])
        for label, members in zip(groups.labels(_variant_texts), groups.members, strict=True):
            called = _unused(f"{model}{label}", taken) if label else model
            taken.add(called)
            for member in members:
                names[positions[member]] = called
    return names


def _model_facts(run_facts: Mapping[str, Any]) -> Facts:
    """Return what makes a model, with None for facts that an import does not know.

    Parameters that start with an underscore configure the benchmark, not the model.
    """
    parameters = run_facts.get("params") or {}
    params = {key: value for key, value in parameters.items() if not key.startswith("_")}
    imported = "imported" in run_facts
    return {
        "constraint": str(run_facts.get("constraint") or ""),
        "version": None
        if imported and not run_facts.get("version")
        else str(run_facts.get("version")),
        "params": None if imported and not params else params,
    }


def _variant_texts(facts: Facts, differing: Mapping[str, Sequence[Any]]) -> list[str]:
    texts = []
    if "constraint" in differing:
        is_known = facts["constraint"] not in ("", UNKNOWN_CONSTRAINT)
        texts.append(facts["constraint"] if is_known else "unknown constraint")
    if "version" in differing:
        version = facts["version"] or "unknown"
        texts.append(f"v{version}" if version[0].isdigit() else f"version {version}")
    if "params" in differing:
        texts += _differing_items(facts["params"], differing["params"])
    return texts


def _folder_names(runs: Sequence[Run]) -> list[str]:
    """Return model names, with the time stamps of their folders if a model has several runs."""
    models = [run.model for run in runs]
    counts = Counter(models)
    stamps = [run.folder.name.rpartition(".")[2] for run in runs]
    # runs on two suites may have the same time stamp, runs of two folders the same name
    for marks in (stamps, [run.folder.name for run in runs], [str(run.folder) for run in runs]):
        pairs = zip(models, marks, strict=True)
        names = [f"{model} ({mark})" if counts[model] > 1 else model for model, mark in pairs]
        if len(set(names)) == len(names):
            break
    return names


# -- questions ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """A column: its ``label``, and whether its folds have the same rows whatever the seed."""

    label: str
    fixed: bool


def name_questions(runs: Sequence[Run], by_count: bool = True) -> list[dict[str, Question]]:
    """Return, for each run, the question of each of its tasks by the task's name.

    Two targets of one table file are two tasks: their names end in the target. ``by_count`` tells
    apart splits that are not recorded by their number of folds.
    """
    entries: dict[tuple[str, str], list[tuple[int, Facts]]] = {}
    facts_by_task: dict[tuple[int, Any], Facts] = {}  # runs of one plan share their tasks
    for position, run in enumerate(runs):
        seed = str(run.about.get("seed"))
        for task in run.about["tasks"]:
            facts = facts_by_task.get((id(task), seed))
            if facts is None:
                facts = facts_by_task[id(task), seed] = _task_facts(run, task)
                facts["count"] = facts["count"] if by_count else None
            entries.setdefault((task["name"], table_target(task)), []).append((position, facts))
    tasks = Counter(name for name, _ in entries)
    taken = set(tasks)
    questions: list[dict[str, Question]] = [{} for _ in runs]
    for (name, target), members_facts in entries.items():
        groups = _grouped([facts for _, facts in members_facts])
        suffix = f"-{target}" if target and tasks[name] > 1 else ""
        for label, members in zip(groups.labels(_question_texts), groups.members, strict=True):
            called = _unused(f"{name}{suffix}{label}", taken) if suffix or label else name
            taken.add(called)
            rows = [members_facts[member][1]["rows"] for member in members]
            fixed = None not in rows and len({d for digests in rows for d in digests.values()}) == 1
            question = Question(called, fixed)
            for member in members:
                questions[members_facts[member][0]][name] = question
    return questions


def table_target(task: Mapping[str, Any]) -> str:
    """Return the target column of a task on a table file; empty for other tasks.

    >>> table_target({"about": {"table": {"target": "churn"}}}), table_target({"name": "adult"})
    ('churn', '')
    """
    facts = task.get("about")
    table = facts.get("table") if isinstance(facts, Mapping) else None
    return str(table.get("target") or "") if isinstance(table, Mapping) else ""


def question_difference(one: Run, other: Run, tasks: tuple[str, str]) -> str:
    """Return the first fact in which a task of each of two runs differs; empty if none does."""
    entries = [
        _task_facts(run, next(entry for entry in run.about["tasks"] if entry["name"] == task))
        for run, task in zip((one, other), tasks, strict=True)
    ]
    return next((key for key in entries[0] if not _agree(key, entries[0], entries[1])), "")


def _task_facts(run: Run, task: Mapping[str, Any]) -> Facts:
    """Return what makes a question, with None for facts that the run does not record."""
    split, data = task.get("split"), task.get("fingerprint") or None
    count = split.get("count") if split else len(task.get("folds") or ()) if data else None
    rows = split.get("rows") if split else None
    metrics = [name for name in task["metrics"] if name != "?"]
    return {
        "data": data,
        "split": _split_params(split) if split else None,
        "count": count or None,
        "rows": None if rows is None else {str(run.about.get("seed")): rows},
        "probe": task.get("probe"),
        "missing": task.get("missing"),
        "positive": task.get("positive"),
        "metric": metrics or None,
    }


def _split_params(split: Mapping[str, Any]) -> Facts:
    return {key: value for key, value in split.items() if key not in ("rows", "count")}


def _question_texts(facts: Facts, differing: Mapping[str, Sequence[Any]]) -> list[str]:
    texts = []
    if "split" in differing or "count" in differing:
        texts.append(_split_text(facts, differing))
    elif "rows" in differing and facts["rows"] is not None:
        texts.append(f"rows {next(iter(facts['rows'].values()))[:6]}")
    if "probe" in differing:
        texts += _differing_items(_as_mapping(facts["probe"]), map(_as_mapping, differing["probe"]))
    texts += [f"{key} {facts[key]}" for key in ("missing", "positive") if key in differing]
    if "metric" in differing and facts["metric"]:
        texts.append(facts["metric"][0])
    return texts


def _as_mapping(probe: object) -> Facts:
    if not isinstance(probe, dict):
        return {"probe": probe}
    return {"probe" if key == "use" else key: value for key, value in probe.items()}


def _split_text(facts: Facts, differing: Mapping[str, Sequence[Any]]) -> str:
    split = facts["split"]
    if split is None:
        return f"{facts['count']} fold{'' if facts['count'] == 1 else 's'}"
    text = _short_split(split)
    others = [other for other in differing.get("split", ()) if other and other != split]
    if any(_short_split(other) == text for other in others):
        short_keys = {"use", "folds", "repeats", "test"}
        parts = _differing_items(split, [split, *others])
        text = ", ".join([text, *(p for p in parts if p.partition("=")[0] not in short_keys)])
    return text


def _short_split(split: Mapping[str, Any]) -> str:
    """Return a split in a few characters.

    >>> _short_split({"use": "kfold", "folds": 5, "repeats": 10})
    '10 × 5-fold'
    >>> _short_split({"use": "holdout", "test": 0.3, "repeats": 1})
    'holdout 0.3'
    """
    use, folds, repeats = split.get("use"), split.get("folds"), split.get("repeats") or 1
    if use == "kfold":
        text = f"{folds}-fold"
    elif use == "holdout":
        sizes = [f"{key}={split[key]}" for key in ("train_rows", "test_rows") if split.get(key)]
        text = " ".join(["holdout", *(sizes or [str(split.get("test") or 0.2)])])
    else:
        text = str(use) + (f" {folds}" if isinstance(folds, int) else "")
    return f"{repeats} × {text}" if isinstance(repeats, int) and repeats > 1 else text


# -- seeds ----------------------------------------------------------------------------------


def place_seeds(
    runs: Sequence[Run], models: Sequence[str], questions: Sequence[Mapping[str, Question]]
) -> list[PooledRun]:
    """Return the runs under these names, with the place of each seed.

    Where the rows of the folds depend on the seed, folds of the seeds that all models have are
    further repeats, and other seeds are dropped; if the models have no seed in common, each seed
    is a column.
    """
    held: dict[str, dict[str, set[Any]]] = {}
    for run, model, own_questions in zip(runs, models, questions, strict=True):
        for question in own_questions.values():
            if not question.fixed and run.about.get("seed") is not None:
                held.setdefault(question.label, {}).setdefault(model, set()).add(run.about["seed"])
    mixed = {label for label, seeds in held.items() if len(set().union(*seeds.values())) > 1}
    shared = {label: _shared_seeds(label, runs, models, questions) for label in mixed}
    placed_runs = []
    for run, model, own_questions in zip(runs, models, questions, strict=True):
        labels = {task: question.label for task, question in own_questions.items()}
        shifts: dict[str, int] = {}
        dropped, alone = set(), set()
        seed = run.about.get("seed")
        for task, label in labels.items() if seed is not None else ():
            if label in mixed and not shared[label]:
                labels[task] = f"{label}{DOT}seed {seed}"
                alone.add(labels[task])
            elif label in mixed and seed in shared[label]:
                shifts[label] = shared[label].index(seed) * MOST_REPEATS
            elif label in mixed:
                dropped.add(label)
        apart = frozenset(dropped), frozenset(alone)
        placed_runs.append(PooledRun(run, model, labels, shifts, *apart))
    return placed_runs


def _shared_seeds(
    label: str,
    runs: Sequence[Run],
    models: Sequence[str],
    questions: Sequence[Mapping[str, Question]],
) -> list[int]:
    """Return the seeds that all models have in a column, without models that decline it."""
    held: dict[str, set[int]] = {}
    for run, model, own_questions in zip(runs, models, questions, strict=True):
        task = next(
            (task for task, question in own_questions.items() if question.label == label), None
        )
        seed = run.about.get("seed")
        if task is None or seed is None or run.has({"task": task, "fold": None}):
            continue
        held.setdefault(model, set()).add(seed)
    return sorted(set.intersection(*held.values())) if held else []


# -- jobs that count ------------------------------------------------------------------------


@dataclass(frozen=True)
class CountedJobs:
    """The scores and jobs that count, those that were repeated, and mean scores by seed."""

    scores: pd.DataFrame
    jobs: pd.DataFrame
    repeated: pd.DataFrame
    by_seed: pd.DataFrame


def count_jobs(
    pooled: Sequence[PooledRun], scores: pd.DataFrame, jobs: pd.DataFrame
) -> CountedJobs:
    """Return what counts of tables of scores and jobs, whose column ``run`` is the run's place.

    Of several jobs of one model, question, fold and seed the newest counts that was not declined.
    Scores of several seeds on the same rows are averaged. The first job of several replicates has
    their mean costs, and the others have none.
    """
    nothing = jobs.iloc[:0]
    by_seed = pd.DataFrame(columns=["model", "task", "metric", "seed", "value"])
    held = Counter(named.model for named in pooled)
    if max(held.values()) > 1:
        scores, jobs = _shifted(pooled, scores), _shifted(pooled, jobs)
        late = superseded(pooled, jobs)
        nothing, jobs = jobs[late], jobs[~late]
        scores = scores[~_of_jobs(scores, nothing)]
        by_seed = _means_by_seed(pooled, scores)
    dropped = any(named.dropped for named in pooled)
    if dropped:
        scores, jobs = scores[~_is_dropped(pooled, scores)], jobs[~_is_dropped(pooled, jobs)]
    jobs = _average_costs(pooled, jobs)
    scores, jobs = scores.drop(columns="run"), jobs.drop(columns="run")
    if len(by_seed):
        scores = _averaged(scores, set(by_seed["model"]))
    return CountedJobs(scores, jobs, nothing, by_seed)


def _average_costs(pooled: Sequence[PooledRun], jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs with the mean time and price of the replicates of each fold."""
    if not any(replicate_of(named.run.about) for named in pooled):
        return jobs
    names = [name for name in COSTS if name in jobs]
    seed = pd.Series([str(named.run.about.get("seed")) for named in pooled])
    keys = [*(jobs[name] for name in JOB), jobs["run"].map(seed)]
    costs = jobs[names].astype(float)
    means = costs.groupby(keys, dropna=False, sort=False).transform("mean")
    replicate = jobs["run"].map(pd.Series([replicate_of(named.run.about) for named in pooled]))
    first = replicate.groupby(keys, dropna=False, sort=False).transform("min") == replicate
    return jobs.assign(**means.where(first, np.nan))


def _shifted(pooled: Sequence[PooledRun], table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which the repeats of different seeds have different numbers."""
    if not any(shift for named in pooled for shift in named.shifts.values()):
        return table
    shift = pd.Series(0, index=table.index)
    for position, named in enumerate(pooled):
        if any(named.shifts.values()):
            rows = table["run"] == position
            shift[rows] = table.loc[rows, "task"].map(named.shifts).fillna(0).astype(int)
    return table.assign(repeat=table["repeat"] + shift)


def superseded(pooled: Sequence[PooledRun], jobs: pd.DataFrame) -> np.ndarray:
    """Return which jobs are older than another of the same model, question, fold and seed."""
    places = {id(run): position for position, run in enumerate(n.run for n in pooled)}
    oldest_first = [places[id(run)] for run in reversed(newest_first(n.run for n in pooled))]
    age = np.argsort(oldest_first)
    seed = pd.factorize(pd.Series([str(fit_seed(named.run.about)) for named in pooled]))[0]
    ran = (~jobs["status"].isin(["declined", ELIMINATED])).to_numpy()
    run = jobs["run"].to_numpy()
    key = jobs[JOB].assign(seed=seed[run])
    newest = pd.Series(age[run] + len(pooled) * ran, index=jobs.index)
    best = newest.groupby([key[name] for name in key], dropna=False, sort=False).transform("max")
    return np.asarray(newest < best)


def _of_jobs(scores: pd.DataFrame, jobs: pd.DataFrame) -> np.ndarray:
    """Return which scores are of these jobs."""
    is_of_jobs = np.zeros(len(scores), dtype=bool)
    if len(jobs):
        names = ["run", *JOB]
        rows = np.flatnonzero(scores["run"].isin(jobs["run"].unique()))
        keys = pd.MultiIndex.from_frame(scores.iloc[rows][names].astype({"repeat": float}))
        wanted = pd.MultiIndex.from_frame(jobs[names].astype({"repeat": float, "fold": float}))
        is_of_jobs[rows] = keys.isin(wanted)
    return is_of_jobs


def _is_dropped(pooled: Sequence[PooledRun], table: pd.DataFrame) -> np.ndarray:
    is_dropped = np.zeros(len(table), dtype=bool)
    for position, named in enumerate(pooled):
        if named.dropped:
            is_dropped |= (
                (table["run"] == position) & table["task"].isin(list(named.dropped))
            ).to_numpy()
    return is_dropped


def _means_by_seed(pooled: Sequence[PooledRun], scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean scores of models with several seeds on a task, by seed."""
    seeds: dict[str, set[Any]] = {}
    for named in pooled:
        seeds.setdefault(named.model, set()).add(fit_seed(named.run.about))
    several = [model for model, model_seeds in seeds.items() if len(model_seeds - {None}) > 1]
    clean = scores[scores["model"].isin(several) & (scores["corruption"] == "")]
    clean = clean[clean["epoch"] == FINAL_EPOCH]
    seed = np.array([fit_seed(named.run.about) for named in pooled], dtype=object)
    keys = ["model", "task", "metric", "seed"]
    clean = clean.assign(seed=seed[clean["run"].to_numpy()])
    means = clean.groupby(keys, sort=False)["value"].agg(["mean", "std", "count"]).reset_index()
    return means[means.groupby(keys[:3], sort=False)["seed"].transform("count") > 1]


def _averaged(scores: pd.DataFrame, models: Container[str]) -> pd.DataFrame:
    """Return the scores with the mean over the seeds that were tested on the same rows."""
    several = scores["model"].isin(list(models))  # type: ignore[call-overload]
    keys = [name for name in SCORE_COLUMNS if name != "value"]
    part = scores[several].groupby(keys, sort=False, dropna=False, as_index=False)["value"].mean()
    return pd.concat([scores[~several], part], ignore_index=True)


# -- groups of facts that agree -------------------------------------------------------------


@dataclass
class _Groups:
    """Facts that agree: of each group the merged facts, and the places of its members."""

    facts: list[Facts]
    members: list[list[int]]

    def labels(self, texts: Callable[[Facts, Mapping[str, Sequence[Any]]], list[str]]) -> list[str]:
        """Return a label for each group, of the facts in which the groups differ."""
        differing: dict[str, list[Any]] = {
            key: [facts[key] for facts in self.facts]
            for key in self.facts[0]
            if any(not _agree(key, *both) for both in combinations(self.facts, 2))
        }
        labels: list[str] = []
        for facts in self.facts:
            # the first data that appear keep the plain name
            data = differing.get("data", [facts.get("data")])
            mark = "" if facts.get("data") in (None, data[0]) else f" [{facts['data'][:6]}]"
            label = mark + "".join(f"{DOT}{text}" for text in texts(facts, differing))
            labels.append(_unused(label, labels) if len(self.facts) > 1 else "")
        return labels


def _unused(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken, with a number if needed."""
    numbered = (f"{name} ({number})" for number in itertools.count(2))
    return next(
        candidate for candidate in itertools.chain([name], numbered) if candidate not in taken
    )


def _grouped(entries: Sequence[Facts]) -> _Groups:
    """Group facts that agree, in the order in which they first appear.

    Entries with all facts come first; one that lacks facts joins the first group it agrees with.
    """
    same: dict[int, list[int]] = {}
    for position, facts in enumerate(entries):
        same.setdefault(id(facts), []).append(position)
    kinds: dict[str, list[int]] = {}
    for places in same.values():
        text = json.dumps(entries[places[0]], sort_keys=True, default=str)
        kinds.setdefault(text, []).extend(places)
    groups: list[tuple[Facts, list[int]]] = []
    for places in sorted(kinds.values(), key=lambda p: list(entries[p[0]].values()).count(None)):
        facts = entries[places[0]]
        group = next((g for g in groups if all(_agree(key, g[0], facts) for key in facts)), None)
        if group is None:
            groups.append((dict(facts), list(places)))
        else:
            group[1].extend(places)
            _merge(group[0], facts)
    groups.sort(key=lambda group: min(group[1]))
    return _Groups([facts for facts, _ in groups], [sorted(members) for _, members in groups])


def _agree(key: str, one: Facts, other: Facts) -> bool:
    a, b = one[key], other[key]
    if a is None or b is None:
        return True
    if key == "metric":  # a run answers a question if it measures its first metric
        return a[0] in b or b[0] in a
    if key == "rows":  # of another seed they may differ
        return all(b.get(seed, digest) == digest for seed, digest in a.items())
    if key == "count" and one["split"] is not None and other["split"] is not None:
        return True
    return bool(a == b)


def _merge(group_facts: Facts, facts: Facts) -> None:
    """Add the facts that a group lacks, and the rows of another seed."""
    for key, value in facts.items():
        if group_facts[key] is None:
            group_facts[key] = value
        elif key == "rows" and value is not None:
            group_facts[key] = {**group_facts[key], **value}


def _differing_items(entry: Facts | None, several: Iterable[Facts | None]) -> list[str]:
    """Return the items of a mapping in which several differ, as ``key=value``.

    >>> _differing_items({"trees": 9, "depth": 3}, [{"trees": 9, "depth": 3}, {"trees": 5}])
    ['trees=9', 'depth=3']
    >>> _differing_items({"trees": 5}, [{"trees": 9, "depth": 3}, {"trees": 5}])
    ['trees=5', 'default depth']
    """
    flat = [_flat(items or {}) for items in several]
    keys = dict.fromkeys(key for items in flat for key in items)
    mine = _flat(entry or {})
    texts = []
    for key in keys:
        if len({items.get(key) for items in flat}) > 1:
            text = mine.get(key)
            texts.append(f"default {key}" if text is None else f"{key}={cut_text(text, LONGEST)}")
    return texts


def _flat(nested: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested mappings as one, with dots in its keys and texts as values."""
    flat: dict[str, str] = {}
    for key, value in nested.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value if isinstance(value, str) else json.dumps(value)
    return flat
