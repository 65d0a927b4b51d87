"""Is it still the same encoder? Compare two encoders by vectors, neighbors and tasks."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy

from karat.analysis.items import compare_items, flip_lines, largest_flips
from karat.analysis.pairing import cluster_pairing, pair
from karat.config.catalog import Catalog
from karat.core.digest import sha256_of
from karat.core.embeddings import transformed, uses_roles
from karat.core.files import temporary_folder
from karat.core.formatting import count, interval, percent, rough_percent
from karat.core.services import RunServices, use_services
from karat.core.writing import write_output
from karat.errors import DataError, DefinitionError
from karat.execution.arguments import Output
from karat.execution.evaluation import evaluate
from karat.ext.decide import same_wording
from karat.ext.decide.power import Equivalence, check_margin, equivalence
from karat.ext.decide.vector_differences import (
    ROUNDING,
    NeighborAgreement,
    ProbeItems,
    VectorDifference,
    neighbor_agreement,
    vector_difference,
)
from karat.models.model import Model
from karat.models.vector_files import Lookup
from karat.output.result import Result
from karat.output.table import Table
from karat.results.load import OK
from karat.results.run import Run
from karat.results.run_folders import is_run_folder
from karat.stats.paired_tests import ALPHA

#: exit code of each verdict
EXIT_CODES = {"identical": 0, "equivalent": 0, "different": 1, "undecided": 3}
#: default margin of scores, that of karat compare
MARGIN = 0.01
#: texts per call of an encoder, items encoded again to see what a vector depends on
BATCH, SAMPLE = 64, 48
#: calls per side that show whether a difference exceeds an encoder's own noise
CALLS = 4
#: relative difference of vectors kept with 16 bits
STORED = 2e-3
#: number of ids compared if both sides are vector files
IDS = 1000
#: fewest items on which encoders are compared
FEWEST_ITEMS = 20
FINGERPRINT = "karat fingerprint 1"
_STATED = {
    "identical": "{0} and {1} are identical.",
    "equivalent": "{0} and {1} are equivalent within {2:g}.",
    "different": "{0} and {1} are different.",
    "undecided": "Undecided whether {0} and {1} are equivalent within {2:g}.",
}
#: differences that a rotation of the space can explain
ROTATED = ("rotation", "permutation", "pooling", "model", "noise", "scale")
#: differences that vectors which depend on a call can explain
UNSPECIFIC = ("noise", "pooling", "model", "length")
Settled = tuple[str, str, str, int]


@dataclass(frozen=True)
class Items:
    """The items that two encoders embed, with their facts; ``values`` is a series or a frame.

    ``note`` states which items were left out.
    """

    values: Any
    facts: ProbeItems
    note: str = ""

    @property
    def modalities(self) -> tuple[str, ...]:
        """The modalities of tasks with such items."""
        return ("table",) if isinstance(self.values, pd.DataFrame) else ("text", "entity")

    @property
    def hashes(self) -> list[str]:
        """A short hash of each item and its role."""
        rows = self.values.itertuples() if hasattr(self.values, "itertuples") else self.values
        texts = [f"{role}\0{row}" for role, row in zip(self.facts.roles, rows, strict=True)]
        return [sha256_of(text, length=16) for text in texts]


def probe_texts() -> Items:
    """Return the texts that come with Karat: 500 in 20 languages, of 0 to 3,000 words."""
    file = resources.files("karat.ext.decide") / "probe_texts.json"
    rows = pd.DataFrame(json.loads(file.read_text(encoding="utf-8"))["texts"]).fillna("")
    facts = ProbeItems.of(rows["text"].tolist(), rows["language"], rows["role"])
    return Items(rows["text"].astype(object), facts)


# -- sides ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LiveSide:
    """An encoder that can be called, on items."""

    model: Model
    items: Items

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.model.name

    #: relative error with which its vectors are kept
    rounding = ROUNDING

    @cached_property
    def encoder(self) -> Any:
        """The encoder; one that is not pretrained is fitted on the items."""
        fitted = self.model.fresh(42, "classification")
        if not self.model.stateless and hasattr(fitted, "fit"):
            fitted.fit(self.items.values)
        return fitted

    @property
    def digest(self) -> str:
        """The SHA-256 of its vectors with 32 bits."""
        return sha256_of(self.matrix.astype(np.float32).tobytes())

    @property
    def is_lookup(self) -> bool:
        """Whether it looks vectors up, so that they depend on nothing else."""
        return isinstance(self.model.prototype, Lookup)

    @property
    def sample(self) -> np.ndarray:
        """Places of some items, evenly spaced."""
        count = len(self.items.values)
        return np.unique(np.linspace(0, count - 1, min(SAMPLE, count)).astype(int))

    @cached_property
    def matrix(self) -> np.ndarray:
        """The vectors of all items."""
        return self.embed(np.arange(len(self.items.values)))

    def embed(self, places: np.ndarray, batch: int = BATCH) -> np.ndarray:
        """Return the vectors of some items, in calls with at most ``batch`` items of one role."""
        roles = self.items.facts.roles[places]
        vectors: dict[int, np.ndarray] = {}
        for role in dict.fromkeys(roles):
            positions = np.flatnonzero(roles == role)
            for begin in range(0, len(positions), batch):
                chunk = positions[begin : begin + batch]
                rows = self._call(self.items.values.iloc[places[chunk]], role)
                vectors.update(zip(chunk.tolist(), rows, strict=True))
        return np.stack([vectors[position] for position in range(len(places))])

    @property
    def is_endpoint(self) -> bool:
        """Whether a server computes the vectors, which Karat otherwise keeps."""
        return bool(getattr(self.model.prototype, "keeps_vectors", False))

    def _call(self, values: Any, role: str) -> np.ndarray:
        prompt = role if uses_roles(self.encoder) else ""
        with ExitStack() as stack:
            if self.is_endpoint:  # ask the server again, instead of reading earlier answers
                services = RunServices(store=stack.enter_context(temporary_folder()))
                stack.callback(services.close)
                stack.enter_context(use_services(services))
            return transformed(_Called(self.encoder, values), values, self.name, prompt)


class _Called:
    """An encoder whose ``transform`` passes texts with their role to ``encode``."""

    def __init__(self, encoder: Any, values: Any) -> None:
        texts = isinstance(values, pd.Series) and "text" in getattr(encoder, "by_text", ())
        self.encoder, self.encodes = encoder, texts and not isinstance(encoder, Lookup)

    def transform(self, values: Any, **role: str) -> Any:
        """Return one row per item."""
        if self.encodes:
            return self.encoder.encode([str(text) for text in values], **role)
        return self.encoder.transform(values)


@dataclass(frozen=True)
class StoredSide:
    """Vectors of items that were computed before, of a fingerprint."""

    name: str
    matrix: np.ndarray
    digest: str
    rounding = STORED


Side = LiveSide | StoredSide


@dataclass(frozen=True)
class Fingerprint:
    """The vectors of an encoder on items, kept to compare a later version with it.

    Attributes
    ----------
    model
        The name of the encoder.
    hashes, matrix
        The hash of each item, and its vector as a row.
    exact
        A hash of the vectors with all digits.
    """

    model: str
    hashes: tuple[str, ...]
    matrix: np.ndarray
    exact: str

    def __repr__(self) -> str:
        return f"<Fingerprint of {self.model}: {len(self.hashes)} texts>"

    @classmethod
    def of(
        cls, model: Any, items: Items | None = None, define: Sequence[str | Path] | str | Path = ()
    ) -> Fingerprint:
        """Embed the items with a model."""
        (side,) = _sides([model], items, Catalog(define))
        if not isinstance(side, LiveSide):
            raise DefinitionError(f"{side.name}: a fingerprint is made of a model.")
        hashes = tuple(side.items.hashes)
        return cls(side.name, hashes, side.matrix.astype(np.float32), side.digest)

    def save(self, path: str | Path) -> Path:
        """Write a JSON file with the hashes of the items and the vectors in 16 bits."""
        content = {
            "format": FINGERPRINT,
            "model": self.model,
            "items": list(self.hashes),
            "shape": list(self.matrix.shape),
            "sha256_of_float32": self.exact,
            "float16": base64.b64encode(self.matrix.astype("<f2").tobytes()).decode(),
        }
        write_output(Path(path), json.dumps(content).encode())
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> Fingerprint:
        """Read a file written by ``save``."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content["format"] != FINGERPRINT:
                raise ValueError(f'unknown format "{content["format"]}"')
            raw = np.frombuffer(base64.b64decode(content["float16"]), dtype="<f2")
            matrix = raw.reshape(content["shape"]).astype(np.float32)
            facts = content["model"], tuple(content["items"]), content["sha256_of_float32"]
            if len(facts[1]) != len(matrix):
                raise ValueError(f"{len(facts[1])} items, but {len(matrix)} vectors")
        except OSError as error:
            raise DataError(f"cannot read the fingerprint {path}: {error.strerror}.") from error
        except (KeyError, TypeError, ValueError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise DataError(f"{path} is not a fingerprint of karat same: {reason}.") from error
        return cls(facts[0], facts[1], matrix, facts[2])


def _sides(encoders: Sequence[Any], items: Items | None, catalog: Catalog) -> list[Side]:
    """Return the sides of models, files and fingerprints, all on the same items."""
    loaded = [_loaded(side, catalog) for side in encoders]
    models = [side for side in loaded if isinstance(side, Model)]
    for model in models:
        if model.role != "encoder":
            raise DefinitionError(f"{model.name} is a {model.role}; karat same compares encoders.")
        if model.unavailable:
            raise DefinitionError(f"{model.name}: {model.unavailable}")
    items = items or _default_items(models, catalog)
    return [
        LiveSide(side, items) if isinstance(side, Model) else _stored(side, items)
        for side in loaded
    ]


def _loaded(encoder: Any, catalog: Catalog) -> Model | Fingerprint:
    if isinstance(encoder, Fingerprint):
        return encoder
    if isinstance(encoder, str | Path) and Path(encoder).suffix == ".json":
        return Fingerprint.load(encoder)
    return catalog.model(str(encoder) if isinstance(encoder, Path) else encoder)


def _stored(fingerprint: Fingerprint, items: Items) -> StoredSide:
    if list(fingerprint.hashes) != items.hashes:
        raise DataError(
            f"the fingerprint of {fingerprint.model} was made on other items; pass the same "
            "--items, or make it again with karat same --save."
        )
    return StoredSide(fingerprint.model, fingerprint.matrix, fingerprint.exact)


def _default_items(models: Sequence[Model], catalog: Catalog) -> Items:
    """Return the items that all models take: ids of vector files, texts, or rows of a table."""
    lookups = [m.prototype for m in models if isinstance(m.prototype, Lookup)]
    if lookups:
        return _common_ids(lookups)
    if all(model.takes is None or "text" in model.takes for model in models):
        return probe_texts()
    return table_items(catalog.dataset("penguins")().items)


def read_items(path: Path) -> Items:
    """Return the items of a file: rows of a ``.csv`` table, or one text or id per line."""
    try:
        if path.suffix == ".csv":
            return table_items(pd.read_csv(path))
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the items of {path}: {error}") from error
    if len(lines) < FEWEST_ITEMS:
        raise DataError(f"{path} has {len(lines)} items; at least {FEWEST_ITEMS} are needed.")
    return Items(pd.Series(lines, index=lines, dtype=object), ProbeItems.of(lines))


def _common_ids(lookups: Sequence[Any]) -> Items:
    names = [pd.Index(lookup.vocabulary()[0]) for lookup in lookups]
    common = names[0]
    for further in names[1:]:
        common = common.intersection(further, sort=False)
    if not len(common):
        raise DataError("the vector files have no id in common.")
    rng = np.random.default_rng(42)
    chosen = np.sort(rng.choice(len(common), min(IDS, len(common)), replace=False))
    ids = pd.Series(common[chosen].astype(object), index=common[chosen])
    alone = ", ".join(f"{len(several):,}" for several in names)
    note = f"{len(common):,} ids have a vector in every file; the files have {alone}."
    complete = all(len(several) == len(common) for several in names)
    return Items(ids, ProbeItems.of([""] * len(ids)), "" if complete else note)


def table_items(frame: pd.DataFrame) -> Items:
    """Return the rows of a table as items."""
    return Items(frame, ProbeItems.of([""] * len(frame)))


# -- what a vector depends on ---------------------------------------------------------------


@dataclass(frozen=True)
class Habits:
    """What the vectors of an encoder depend on besides the item.

    Relative changes of the vectors of a sample, 90th percentiles.

    ``repeated``: encoding again; ``alone``: one item per call; ``reversed``: another order.
    """

    repeated: float
    alone: float
    reversed: float

    @classmethod
    def of(cls, side: LiveSide) -> Habits:
        """Embed a sample of the items again."""
        sample = side.sample
        first = side.embed(sample)
        others = side.embed(sample), side.embed(sample, 1), side.embed(sample[::-1])[::-1]
        return cls(*(_change(first, other) for other in others))


def _change(first: np.ndarray, second: np.ndarray) -> float:
    """Return the 90th percentile of the relative changes of vectors."""
    lengths = np.linalg.norm(first.astype(np.float64), axis=1)
    apart = np.linalg.norm(first.astype(np.float64) - second, axis=1)
    comparable = lengths > 0  # neither a missing vector nor one of zeros
    return (
        float(np.quantile(apart[comparable] / lengths[comparable], 0.9))
        if comparable.any()
        else 0.0
    )


def noise_p(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> float:
    """Return p of the test that two encoders differ by no more than their own noise.

    Each has encoded the same items several times. If they are the same encoder, every division of
    all calls into two halves is equally likely; p is the share of divisions whose mean vectors are
    at least as far apart as those of the encoders.
    """
    calls = np.stack([*first, *second]).reshape(len(first) + len(second), -1)
    calls = np.nan_to_num(calls)
    products = calls @ calls.T
    every = range(len(calls))
    observed, apart = 0.0, []
    for chosen in itertools.combinations(every, len(first)):
        signs = np.where(np.isin(every, chosen), 1 / len(first), -1 / len(second))
        apart.append(float(signs @ products @ signs))
        observed = apart[0]
    return float(np.mean(np.array(apart) >= observed * (1 - 1e-9)))


# -- tasks ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tasks:
    """Where the scores on tasks come from.

    Attributes
    ----------
    runs
        Stored runs in which both models are found by name, or None to run tasks.
    suite, only
        What to run: a suite, and which of its tasks. Default: all that both take.
    output
        Folder of new runs. Default: a temporary one.
    workers
        Number of worker processes of new runs.
    cluster
        A column kept with the items that belong together. Default: the declared groups.
    """

    runs: Any = None
    suite: str = "quickstart"
    only: tuple[str, ...] = ()
    output: str | Path | None = None
    workers: int = 0
    cluster: str | None = None

    def compare(
        self, sides: Sequence[LiveSide], names: tuple[str, str], catalog: Catalog, margin: float
    ) -> tuple[Equivalence | None, pd.DataFrame]:
        """Return how the encoders compare on tasks, and the items whose answer flipped.

        A model that does not declare what it takes is run on tasks of the same modality as the
        probe items. None if no task of the suite can be run with both.
        """
        if self.runs is not None:
            both = (sides[0].name, sides[1].name)
            return _on_runs(self.runs, both, names, margin, self.cluster)
        models = [
            replace(side.model, name=name, takes=side.model.takes or side.items.modalities)
            for side, name in zip(sides, names, strict=True)
        ]
        suite = catalog.suite(self.suite)
        with ExitStack() as stack:
            folder = self.output or stack.enter_context(temporary_folder())
            output = Output(folder, cache=not any(side.is_endpoint for side in sides))
            runs = evaluate(models, suite, only=self.only, output=output, workers=self.workers)
            if not all(any(r["status"] == OK for r in run.records()) for run in runs):
                return None, pd.DataFrame()
            return _on_runs(runs, names, names, margin, self.cluster)


def _on_runs(
    runs: Any,
    models: tuple[Any, Any],
    names: tuple[str, str],
    margin: float,
    cluster: str | None,
) -> tuple[Equivalence, pd.DataFrame]:
    """Return how two models of stored runs compare, and the items that flipped, with names."""
    paired = cluster_pairing(pair(runs, *models, None, "folds"), cluster)
    equal = equivalence(paired, margin)
    try:
        compared = compare_items(runs, *models)
    except DataError:  # no stored predictions
        return equal, pd.DataFrame()
    better = np.where(compared.items["better"] == compared.first, *names)
    return equal, compared.items.assign(better=better)


def _is_run(encoder: Any) -> bool:
    if isinstance(encoder, str | Path):
        return is_run_folder(Path(encoder))
    return isinstance(encoder, Run)


# -- the answer -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Same(Result):
    """Whether two encoders are the same, and the evidence.

    Attributes
    ----------
    a, b
        Names of the two encoders.
    verdict
        ``"identical"``, ``"equivalent"``, ``"different"`` or ``"undecided"``.
    cause
        Code of what differs: ``"none"``, ``"noise"``, ``"order"``, ``"scale"``, ...
    sentence
        The answer in words.
    level
        The last level that was needed: 1 vectors, 2 neighbors, 3 tasks.
    margin
        Differences of scores up to this size count as equal.
    facts
        The measured values, by level.
    tasks
        One row per task with the difference of B to A, its interval and the verdict; None without
        level 3.
    flips
        The items whose answer became better or worse; None without level 3.
    notes
        What was left out, or depends on more than the items.
    """

    a: str
    b: str
    verdict: str
    cause: str
    sentence: str
    level: int
    margin: float
    facts: dict[str, dict[str, float]] = field(default_factory=dict)
    tasks: pd.DataFrame | None = None
    flips: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()

    csv_prefix: ClassVar[str] = "same"
    frames: ClassVar[tuple[str, ...]] = ("tasks", "flips")
    computed: ClassVar[tuple[str, ...]] = ("exit_code",)

    @property
    def exit_code(self) -> int:
        """The exit code of ``karat same``."""
        return EXIT_CODES[self.verdict]

    def tables(self) -> list[Table]:
        """Return the measured values by level, and the items with other answers."""
        return [same_wording.same_table(self)]

    def csv_tables(self) -> dict[str, pd.DataFrame]:
        """Return the measured values, the tasks and the items with other answers, by name."""
        measures = pd.DataFrame(self.lines(), columns=["level", "measure", "value"])
        return {"measures": measures, **super().csv_tables()}

    def lines(self) -> list[tuple[str, str, str]]:
        """Return the measured values as text: level, measure, value."""
        return [
            (level, name.replace("_", " "), _number(value))
            for level, values in self.facts.items()
            for name, value in values.items()
        ] + [
            ("tasks", f"{row.task} ({row.metric})", interval(*bounds) + f"  {row.verdict}")
            for row in (() if self.tasks is None else self.tasks.itertuples())
            for bounds in [(row.difference, row.difference_low, row.difference_high)]
        ]

    def flip_lines(self, most: int = 5) -> list[str]:
        """Return the items that one side answers better, at most ``most`` each way."""
        if self.flips is None or not len(self.flips):
            return []
        lines = []
        for name in (self.a, self.b):
            number = int((self.flips["better"] == name).sum())
            lines += [f"Items that {name} answers better: {number:,}."]
            flips = largest_flips(self.flips, name, most)
            lines += [f"  {line}" for line in flip_lines(flips, before="first", after="second")]
        return lines


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def same(
    a: Any,
    b: Any,
    *,
    items: Items | None = None,
    margin: float = MARGIN,
    rotations: bool | None = None,
    every_level: bool = False,
    tasks: Tasks | None = None,
    define: Sequence[str | Path] | str | Path = (),
) -> Same:
    """Return whether two encoders are the same.

    Levels: the vectors of probe items, their nearest neighbors, and the scores on tasks. It stops
    when the answer is settled.

    Parameters
    ----------
    a, b
        Encoders in any form that ``karat.evaluate`` takes, vector files, or fingerprints.
    items
        The items to embed. Default: texts that come with Karat, the ids that vector files have
        in common, or the rows of a table.
    margin
        Differences of scores up to this size count as equal.
    rotations
        Whether vectors that are rotated into each other count as the same. Default: for vector
        files, because two trainings of node vectors have arbitrary coordinates.
    every_level
        Measure all levels, also if the answer is settled before.
    tasks
        What to compare on tasks: stored runs of both, or what to run and where. Default: run the
        tasks of the suite "quickstart" that both take.
    define
        YAML or Python files that define models.
    """
    check_margin(margin)
    if runs := [run for run in (a, b) if _is_run(run)]:
        if len(runs) == 1:
            raise DefinitionError(f"{runs[0]} is a run folder; compare it with another run folder.")
        return _of_runs(a, b, margin, tasks.cluster if tasks else None)
    catalog = Catalog(define)
    levels = _Levels(_sides([a, b], items, catalog), margin, rotations)
    settled, measured = levels.by_vectors(), {"vectors": levels.vector_facts()}
    if settled is None or every_level:
        settled = settled or levels.by_neighbors()
        measured["neighbors"] = levels.neighbor_facts()
    scores: tuple[Any, Any] = (None, None)
    live = levels.live
    if (settled is None or every_level) and len(live) == 2:
        scored, flips = (tasks or Tasks()).compare(live, levels.names, catalog, margin)
        if scored is not None:
            scores = scored.tasks, flips
            settled = settled or _by_tasks(scored, levels.found.code, levels.difference)
    verdict, cause, why, level = settled or levels.unsettled()
    sentence = f"{_STATED[verdict].format(*levels.names, margin)} {why}"
    notes = tuple(dict.fromkeys(side.items.note for side in live if side.items.note))
    answer = Same(*levels.names, verdict, cause, sentence, level, margin, measured, *scores)
    return replace(answer, notes=notes)


def _of_runs(a: Any, b: Any, margin: float, cluster: str | None) -> Same:
    """Compare two run folders by their scores only."""
    runs = [run if isinstance(run, Run) else Run(Path(run)) for run in (a, b)]
    if runs[0].folder.resolve() == runs[1].folder.resolve():
        raise DefinitionError(f"A and B are the same run folder, {runs[0].folder}.")
    names = _numbered(runs[0].model, runs[1].model)
    scored, flips = _on_runs(runs, (runs[0], runs[1]), names, margin, cluster)
    verdict, cause, why, level = _by_tasks(scored, "none", "")
    sentence = f"{_STATED[verdict].format(*names, margin)} {why.strip()}"
    return Same(*names, verdict, cause, sentence, level, margin, {}, scored.tasks, flips)


def _by_tasks(scored: Equivalence, cause: str, difference: str) -> Settled:
    """Return the answer that the scores give, with the cause and the difference of the vectors."""
    low, high = scored.mean.interval()
    mean = interval(scored.mean.mean, low, high)
    on = f"{difference} Mean difference on {count(len(scored.tasks), 'task')}: {mean}."
    different = scored.tasks[scored.tasks["verdict"] == "different"]["task"]
    if len(different):
        on += f" Different by more than the margin: {', '.join(different)}."
    if scored.verdict == "undecided":
        needed = scored.needed_items
        on += f" About {needed:,} more items are needed." if needed else ""
    return scored.verdict, cause, on, 3


@dataclass(frozen=True)
class _Levels:
    """Two sides, what is measured of them, and which answers follow."""

    sides: Sequence[Side]
    margin: float
    rotations: bool | None

    @cached_property
    def names(self) -> tuple[str, str]:
        return _numbered(*(side.name for side in self.sides))

    @property
    def live(self) -> list[LiveSide]:
        """The sides that can be called; tasks need both."""
        return [side for side in self.sides if isinstance(side, LiveSide)]

    @cached_property
    def found(self) -> VectorDifference:
        """The difference of the vectors."""
        a, b = (side.matrix for side in self.sides)
        if (np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1)).all():
            raise DataError(f"{self.names[0]} and {self.names[1]} have no vector of the same item.")
        rounding = max(side.rounding for side in self.sides)
        facts = self.live[0].items.facts if self.live else ProbeItems.of([""] * len(a))
        return vector_difference(a, b, facts, rounding=rounding, names=self.names)

    @cached_property
    def habits(self) -> dict[str, Habits]:
        """What the vectors of each encoder depend on; a vector file has none."""
        return {
            name: Habits.of(side)
            for name, side in zip(self.names, self.sides, strict=True)
            if isinstance(side, LiveSide) and not side.is_lookup
        }

    @cached_property
    def agreement(self) -> NeighborAgreement:
        """The agreement of the nearest neighbors."""
        first, second = self.sides
        return neighbor_agreement(first.matrix, second.matrix)

    def by_vectors(self) -> Settled | None:
        """Return the answer if the vectors settle it."""
        difference = self.found
        if difference.code in ("none", "noise") and self._is_noise():
            return "equivalent", "noise", "They differ by no more than their own noise.", 1
        if difference.code == "none":
            exact = self.sides[0].digest == self.sides[1].digest
            sentence = "The vectors are the same, bit by bit." if exact else difference.sentence
            return "identical", "none", sentence, 1
        if difference.code in UNSPECIFIC and (batch := self._depends_on_calls()):
            return "different", "batch", batch, 1
        if difference.is_structural and not self._is_rotated:
            return "different", difference.code, difference.sentence, 1
        return None

    @property
    def _is_rotated(self) -> bool:
        """Whether the difference is one that rotated vectors may have."""
        lookups = len(self.live) == 2 and all(side.is_lookup for side in self.live)
        allowed = lookups if self.rotations is None else self.rotations
        return allowed and self.found.code in ROTATED

    @property
    def difference(self) -> str:
        """The difference in words; cosines mean nothing if the coordinates are arbitrary."""
        if self._is_rotated and self.found.code in ("pooling", "model"):
            return "The coordinates differ, as those of two trainings do."
        return self.found.sentence

    def _is_noise(self) -> bool:
        """Return whether the sides differ by no more than from call to call."""
        noisy = any(habits.repeated > ROUNDING for habits in self.habits.values())
        if not noisy or len(self.live) < 2:
            return False
        calls = ([side.embed(side.sample) for _ in range(CALLS)] for side in self.live)
        return noise_p(*calls) > ALPHA

    def _depends_on_calls(self) -> str:
        """Return how vectors depend on the other items of a call, if that explains the size."""
        changes = self.found.relative[~np.isnan(self.found.relative)]
        for name, habits in self.habits.items():
            change = max(habits.alone, habits.reversed)
            if change > max(0.01, float(np.median(changes)) / 3):
                return (
                    f"The vectors of {name} depend on the other items of a call: they change by "
                    f"{rough_percent(change)} if each is encoded alone."
                )
        return ""

    def by_neighbors(self) -> Settled | None:
        """Return the answer if the neighbors settle it.

        The precision of the k nearest neighbors, whatever the labels, changes by at most the share
        of neighbors that are not common.
        """
        low, high = _mean_interval(self.agreement.overlap)
        nearest = f"{self.agreement.k} nearest neighbors"
        if low >= 1 - self.margin:
            same = f"At least {percent(low)} of the {nearest} are the same (95 % bound)."
            return "equivalent", self.found.code, f"{self.difference} {same}", 2
        by_chance = self.agreement.k / (len(self.agreement.overlap) - 1)
        if high < 2 * by_chance < 0.5:
            same = f"At most {percent(high)} of the {nearest} are the same, about as by chance."
            return "different", "model", f"{self.difference} {same}", 2
        return None

    def unsettled(self) -> Settled:
        """Return the answer if no tasks can be run."""
        how = (
            "Name tasks that both take with --suite."
            if len(self.live) == 2
            else "Compare the encoders themselves to run tasks."
        )
        why = f"{self.difference} {how}"
        return "undecided", self.found.code, why, 2

    def vector_facts(self) -> dict[str, float]:
        """Return the measured values of the vectors."""
        cosine, relative = self.found.cosine, self.found.relative
        comparable = ~np.isnan(cosine)
        facts: dict[str, float] = {"items": len(cosine)}
        if comparable.any():
            facts["median_cosine"] = float(np.median(cosine[comparable]))
            facts["lowest_cosine"] = float(cosine[comparable].min())
            facts["relative_difference"] = float(np.median(relative[comparable]))
        for name, habits in self.habits.items():
            facts[f"{name}_encoded_again"] = habits.repeated
            facts[f"{name}_one_item_per_call"] = habits.alone
            facts[f"{name}_in_reverse_order"] = habits.reversed
        return facts

    def neighbor_facts(self) -> dict[str, float]:
        """Return the measured values of the neighbors."""
        name, (low, high) = f"overlap@{self.agreement.k}", _mean_interval(self.agreement.overlap)
        return {
            **{
                name: float(self.agreement.overlap.mean()),
                f"{name}_low": low,
                f"{name}_high": high,
            },
            "rank_correlation": float(self.agreement.correlation.mean()),
        }


def _numbered(first: str, second: str) -> tuple[str, str]:
    """Return two names; equal ones are numbered."""
    return (first, second) if first != second else (f"{first} (1)", f"{second} (2)")


def _mean_interval(values: np.ndarray) -> tuple[float, float]:
    half = (
        float(scipy.special.stdtrit(len(values) - 1, 0.975))
        * values.std(ddof=1)
        / np.sqrt(len(values))
    )
    return float(values.mean() - half), float(values.mean() + half)
