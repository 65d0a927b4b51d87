"""Shards: a plan in balanced parts that are the same on every machine, and the run of one part.

Jobs that share work are kept together in bundles: those of an encoder whose vectors are computed
once per dataset, else those on one fold of a dataset. A part is a list of bundles.
"""

from __future__ import annotations

import contextlib
import dataclasses
import heapq
import json
import logging
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karat.core.task import Suite
from karat.core.writing import draft_folder, write_atomic
from karat.errors import DefinitionError
from karat.execution.embedding_cache import has_vectors
from karat.execution.plan import Plan, require_jobs
from karat.execution.progress import Progress
from karat.execution.session import Options, Session
from karat.ext.cluster.gather import write_plan_file
from karat.results.load import earlier_seconds
from karat.results.run import Run

#: number of shards of any system, where the system does not report it or reports another one
COUNT = "KARAT_SHARD_COUNT"
#: variables with the place of a shard and the number of shards, and the place of the first one
SYSTEMS = (
    ("KARAT_SHARD_INDEX", COUNT, 0),
    ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", None),
    ("JOB_COMPLETION_INDEX", COUNT, 0),
    ("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE", 0),
    ("CI_NODE_INDEX", "CI_NODE_TOTAL", 1),
)
#: small bundles of a model are joined, so that a plan has about this number of bundles
MOST_BUNDLES = 1000
#: jobs of an encoder and a dataset are split if they take this many times as long as the vectors
SPLIT_RATIO = 4.0
#: parts keep models together unless that makes the longest part longer by more than this factor
TOLERANCE = 1.1
#: the file of the times that balance the parts, in the output folder
TIMES_FILE = "estimates.json"

log = logging.getLogger(__name__)
Times = Mapping[tuple[str, str], tuple[float, float]]


# -- which shard ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shard:
    """One of ``count`` parts; the first has the index 1."""

    index: int
    count: int

    @property
    def folder(self) -> str:
        """The name of its folder in the output folder."""
        return f"shard-{self.index:0{len(str(self.count))}}-of-{self.count}"


def parse_shard(text: str, environment: Mapping[str, str] | None = None) -> Shard:
    """Return the shard of ``"3/64"``, or the one in the environment for ``"auto"``.

    >>> parse_shard("3/64")
    Shard(index=3, count=64)
    >>> parse_shard("auto", {"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "5"})
    Shard(index=2, count=5)
    """
    if text == "auto":
        return _detected(os.environ if environment is None else environment)
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise DefinitionError(
            f'shard must be I/N with 1 <= I <= N, such as 3/64, or "auto", got "{text}".'
        )
    return Shard(int(match[1]), int(match[2]))


def _detected(environment: Mapping[str, str]) -> Shard:
    for index_name, count_name, first in SYSTEMS:
        if not environment.get(index_name):
            continue
        count_name = COUNT if environment.get(COUNT) else count_name
        if not environment.get(count_name):
            raise DefinitionError(
                f"shard auto: {index_name} is set, but not {count_name}; set it to the number of "
                f"shards."
            )
        index, count = (_number(environment, name) for name in (index_name, count_name))
        if not count:
            raise DefinitionError(f"shard auto: {count_name} must be at least 1, got 0.")
        if first is None:
            first = _first_of_array(environment, count, own_count=count_name == COUNT)
        if not first <= index < first + count:
            raise DefinitionError(
                f"shard auto: {index_name} must be from {first} to {first + count - 1} because "
                f"{count_name} is {count}, got {index}."
            )
        return Shard(index - first + 1, count)
    names = ", ".join(index_name for index_name, _, _ in SYSTEMS)
    raise DefinitionError(f"shard auto requires one of these variables: {names}; or use I/N.")


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment[name]
    if not text.isdecimal():
        raise DefinitionError(f'shard auto: {name} must be an integer, got "{text}".')
    return int(text)


def _first_of_array(environment: Mapping[str, str], count: int, *, own_count: bool) -> int:
    """Return the first index of a Slurm array; refuse one that is a part of an earlier array."""
    limits = {"MIN": 1 if own_count else 0, "MAX": -1, "STEP": 1}
    for name in limits:
        if environment.get(f"SLURM_ARRAY_TASK_{name}"):
            limits[name] = _number(environment, f"SLURM_ARRAY_TASK_{name}")
    first = limits["MIN"]
    gaps = limits["STEP"] != 1 or limits["MAX"] not in (-1, first + count - 1)
    if not own_count and (gaps or first not in (0, 1)):
        raise DefinitionError(
            f"shard auto requires a Slurm array from 0 or 1 without gaps; to run some parts again, "
            f'set {COUNT} to the number of all parts, or use --shard "$SLURM_ARRAY_TASK_ID/64".'
        )
    return 1 if own_count else first


# -- bundles and parts ----------------------------------------------------------------------------


@dataclass(frozen=True)
class JobBundle:
    """Jobs that one shard runs, by their places in the plan, and their estimated seconds."""

    jobs: tuple[int, ...]
    seconds: float


def make_bundles(plan: Plan, times: Times, count: int = 1) -> list[JobBundle]:
    """Return all jobs in bundles, those of one encoder one after the other.

    ``times`` are the seconds of a job and of its vectors by model and task. ``count`` is the number
    of shards.
    """
    seconds = job_seconds(plan, times)
    grain = sum(seconds) / max(MOST_BUNDLES, 16 * count)
    bundles: list[JobBundle] = []
    open_encoder: str | None = None
    held: list[int] = []
    spent = 0.0
    for encoder, jobs, vectors in _units(plan, times):
        for piece in _pieces(jobs, seconds, vectors, grain):
            if held and (encoder != open_encoder or spent >= grain):
                bundles.append(JobBundle(tuple(held), spent))
                held, spent = [], 0.0
            open_encoder = encoder
            held += piece
            spent += sum(seconds[job] for job in piece) + (vectors or 0.0) * len(piece) / len(jobs)
    return [*bundles, JobBundle(tuple(held), spent)] if held else bundles


def job_seconds(plan: Plan, times: Times) -> list[float]:
    """Return the estimated seconds of each job.

    Those of a job that never ran are the mean of the model's, else of the task's, else of all.
    """
    pairs = [(model.name, planned.task.name) for model, planned, _ in plan.jobs]
    estimates = {pair: times[pair][0] for pair in dict.fromkeys(pairs) if pair in times}
    means: dict[Any, list[float]] = defaultdict(list)
    for (model, task), value in estimates.items():
        for key in ((model, None), (None, task), None):
            means[key].append(value)
    mean = {key: sum(values) / len(values) for key, values in means.items()}
    for model, task in dict.fromkeys(pairs):
        keys = ((model, None), (None, task), None)
        estimate = next((mean[key] for key in keys if key in mean), 1.0)
        estimates.setdefault((model, task), estimate)
    return [estimates[pair] for pair in pairs]


def _units(plan: Plan, times: Times) -> Iterator[tuple[str, list[int], float | None]]:
    """Yield the encoder, the jobs that share work, and the seconds of their vectors (or None)."""
    first: dict[int, str] = {}
    for model in plan.models:
        first.setdefault(id(model.prototype), model.name)
    places = {name: number for number, name in enumerate(first.values())}
    shared = {model.name: has_vectors(model) for model in plan.models}
    units: dict[tuple[Any, ...], list[int]] = {}
    order: dict[tuple[str, str], int] = {}
    for number, (model, planned, fold) in enumerate(plan.jobs):
        encoder, data = first[id(model.prototype)], planned.data
        assert data is not None
        dataset = order.setdefault((data.fingerprint, "/".join([data.name, *data.roles])), number)
        key = (places[encoder], dataset, -1 if shared[model.name] else fold, encoder)
        units.setdefault(key, []).append(number)
    for key in sorted(units):
        jobs = units[key]
        pairs = {(plan.jobs[job][0].name, plan.jobs[job][1].task.name) for job in jobs}
        spent = [times[pair][1] for pair in pairs if pair in times]
        vectors = max(spent, default=None) if key[2] == -1 else None
        yield key[3], jobs, vectors


def _pieces(
    jobs: list[int], seconds: Sequence[float], vectors: float | None, grain: float
) -> list[list[int]]:
    """Return jobs in pieces that are long compared to their vectors; all if that is unknown."""
    if vectors is None:
        return [jobs]
    least = max(SPLIT_RATIO * vectors, grain)
    pieces: list[list[int]] = [[]]
    spent = 0.0
    remaining = sum(seconds[job] for job in jobs)
    for job in jobs:
        if spent >= least and remaining >= least:
            pieces.append([])
            spent = 0.0
        pieces[-1].append(job)
        spent += seconds[job]
        remaining -= seconds[job]
    return pieces


def split_parts(seconds: Sequence[float], count: int) -> list[list[int]]:
    """Return the places of bundles in ``count`` parts, balanced by their seconds.

    Neighbors, which are of one model, stay together unless that is clearly slower.

    >>> split_parts([1.0, 1.0, 4.0, 1.0, 1.0], 2)
    [[2], [0, 1, 3, 4]]
    """
    together, apart = _in_order(seconds, count), _longest_first(seconds, count)

    def longest(parts: list[list[int]]) -> float:
        return max(sum(seconds[bundle] for bundle in part) for part in parts)

    return together if longest(together) <= TOLERANCE * longest(apart) else apart


def _in_order(seconds: Sequence[float], count: int) -> list[list[int]]:
    """Return consecutive parts whose longest one is as short as possible."""
    total, most = sum(seconds), max(seconds, default=0.0)
    low, high = max(total / count, most), total / count + most
    best = _fill(seconds, high)
    for _ in range(40):
        middle = (low + high) / 2
        parts = _fill(seconds, middle)
        if len(parts) <= count:
            best, high = parts, middle
        else:
            low = middle
    return [*best, *([] for _ in range(count - len(best)))]


def _fill(seconds: Sequence[float], most: float) -> list[list[int]]:
    parts: list[list[int]] = []
    spent = 0.0
    for bundle, duration in enumerate(seconds):
        if not parts or spent + duration > most * (1 + 1e-9):
            parts.append([])
            spent = 0.0
        parts[-1].append(bundle)
        spent += duration
    return parts


def _longest_first(seconds: Sequence[float], count: int) -> list[list[int]]:
    """Give the longest bundles first, each to the part that has the least to do."""
    parts: list[list[int]] = [[] for _ in range(count)]
    loads = [(0.0, part) for part in range(count)]
    for bundle in sorted(range(len(seconds)), key=lambda bundle: (-seconds[bundle], bundle)):
        spent, part = heapq.heappop(loads)
        parts[part].append(bundle)
        heapq.heappush(loads, (spent + seconds[bundle], part))
    return [sorted(part) for part in parts]


# -- times of earlier runs ------------------------------------------------------------------------


def read_times(plan: Plan, output: Path) -> Times:
    """Return the seconds in the ``estimates.json`` of an output folder, else those of its runs."""
    file = output / TIMES_FILE
    if not file.is_file():
        return earlier_seconds({model.name for model in plan.models}, output)
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))["jobs"]
        return {(model, task): (float(job), float(vectors)) for model, task, job, vectors in rows}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DefinitionError(
            f"cannot read the estimates in {file}: {type(error).__name__}: {error}; "
            f"delete the file to balance the parts anew."
        ) from error


def pinned_times(plan: Plan, output: Path) -> Times:
    """Return the times that all shards of an output folder use; the first shard writes them."""
    file = output / TIMES_FILE
    if not file.is_file():
        times = read_times(plan, output)
        rows = [
            [*pair, *(float(f"{seconds:.6g}") for seconds in times[pair])] for pair in sorted(times)
        ]
        text = json.dumps({"jobs": rows}, ensure_ascii=False, indent=0)
        with draft_folder(output) as draft:
            write_atomic(draft / file.name, text)
            with contextlib.suppress(FileExistsError):  # another shard was faster
                _link(draft / file.name, file)
    return read_times(plan, output)


def _link(source: Path, target: Path) -> None:
    """Give a file a second name; raise FileExistsError if that is taken."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        with target.open("x", encoding="utf-8") as file:
            try:
                file.write(source.read_text(encoding="utf-8"))
                file.flush()
            except OSError:  # nothing is half written
                target.unlink()
                raise


# -- running --------------------------------------------------------------------------------------


class ShardParts:
    """The parts of a plan that several calls run, as ``karat.execution.engine`` wants them."""

    def mistakes(self, options: Options) -> Iterator[str]:
        """Yield what is wrong with the number of the shard."""
        try:
            _shard_of(options)
        except DefinitionError as error:
            yield from error.messages

    def run(self, plan: Plan, suite: Suite, options: Options, progress: Progress) -> list[Run]:
        """Run the part of this call and return its runs."""
        return run_part(plan, suite, options, progress)


@dataclass(frozen=True)
class Parts:
    """The bundles of a plan, and for each part those that belong to it."""

    bundles: list[JobBundle]
    parts: list[list[int]]

    @classmethod
    def of(cls, plan: Plan, times: Times, count: int) -> Parts:
        """Split a plan."""
        bundles = make_bundles(plan, times, count)
        return cls(bundles, split_parts([bundle.seconds for bundle in bundles], count))

    def jobs(self, part: int) -> list[int]:
        """Return the jobs of a part, counted from 0, by their places in the plan."""
        return sorted(job for bundle in self.parts[part] for job in self.bundles[bundle].jobs)

    def seconds(self, part: int) -> float:
        """Return the estimated seconds of a part."""
        return sum(self.bundles[bundle].seconds for bundle in self.parts[part])


def run_part(plan: Plan, suite: Suite, options: Options, progress: Progress) -> list[Run]:
    """Run one part of a plan and return its runs."""
    require_jobs(plan)
    shard = _shard_of(options)
    options.output.mkdir(parents=True, exist_ok=True)
    parts = Parts.of(plan, pinned_times(plan, options.output), shard.count)
    numbers = {job: part for part in range(shard.count) for job in parts.jobs(part)}
    folder = options.output / shard.folder
    write_plan_file(folder, Session(plan, suite, options, progress), numbers, replace=True)
    jobs = parts.jobs(shard.index - 1)
    log.info("part %d of %d: %d jobs", shard.index, shard.count, len(jobs))
    if not jobs:
        return []
    own_options = dataclasses.replace(options, output=folder)
    return Session(plan.take(jobs), suite, own_options, progress).run()


def _shard_of(options: Options) -> Shard:
    """Return the shard that options name."""
    assert options.shard is not None
    return parse_shard(options.shard)
