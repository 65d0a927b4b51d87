"""Vectors of stateless encoders, computed once before the jobs run and cached on disk.

The key of a matrix is a hash of the model's identity (code, parameters, versions, files) and of the
items, so other data or parameters never return old vectors. Vectors of models that may read more
than that are computed once per run (``keeps_vectors``). An entry is written to a temporary
folder and renamed, so several processes can write at the same time. It has a checksum, which is
verified when a process first uses it: a damaged entry is computed again.

Vectors of texts are stored with a hash of each text, and the matrices of one encoder form a family:
a text that occurs in several items, datasets or runs is encoded once.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import logging
import os
import shutil
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.core.dataset import Dataset
from karat.core.digest import sha256_of
from karat.core.embeddings import (
    RoleOrder,
    check_vectors,
    distinct_texts,
    encode,
    item_vectors,
    role_order,
    transformed,
)
from karat.core.files import cache_folder
from karat.core.services import current_services, use_services
from karat.core.usage import combined_usage
from karat.core.writing import draft_folder, remove_drafts
from karat.errors import DiskFull, KaratError
from karat.execution.job import Job, read_stored_vectors, services_of
from karat.execution.job_failure import JobFailure
from karat.execution.object_store import ObjectStore
from karat.execution.resources import restored_process
from karat.execution.workers import one_thread
from karat.models.adapters import keeps_vectors
from karat.models.model import Model
from karat.models.model_identity import encoder_identity
from karat.models.searchers import stage_encoders, stage_model
from karat.models.vector_files import VectorFile

if TYPE_CHECKING:
    from karat.execution.progress import Progress

#: number of bytes of the hash of a text
TEXT_HASH_BYTES = 16
#: the hash of a missing text
_NO_TEXT = bytes(TEXT_HASH_BYTES)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CacheEntry:
    """A cached matrix: its folder, its facts and its size on disk."""

    folder: Path
    facts: Mapping[str, Any]
    bytes: int


@dataclass(frozen=True)
class CachedVectors:
    """Cached vectors of some texts: their positions in the request, and the time they took."""

    places: np.ndarray
    vectors: np.ndarray
    seconds: float


def text_hashes(texts: Iterable[str], prompt: str = "") -> list[bytes]:
    """Return the hashes of texts that are encoded with a prompt."""
    blake, hashes = hashlib.blake2b, []
    key = blake(prompt.encode("utf-8", "surrogatepass")).digest() if prompt else b""
    empty = blake(digest_size=TEXT_HASH_BYTES, key=key)
    for text in texts:  # a copy takes half of the time of a new hash
        one = empty.copy()
        one.update(text.encode("utf-8", "surrogatepass"))
        hashes.append(one.digest())
    return hashes


def _role_parts(order: RoleOrder) -> list[str]:
    """Return what the vectors depend on besides encoder and items: roles and prompts."""
    if not any(order.prompts.values()):
        return []
    return [json.dumps([list(order.prompts.items()), order.roles.tolist(), order.both.tolist()])]


def checksum(folder: Path, entry_facts: Mapping[str, Any]) -> str:
    """Return a CRC-32 of the files of an entry and of its facts, without the stored checksum.

    It finds damage, for which a cryptographic hash is not needed; that takes five times as long.
    """
    facts = {name: value for name, value in entry_facts.items() if name != "checksum"}
    code = zlib.crc32(json.dumps(facts, sort_keys=True).encode())
    for name in ("vectors.npy", "texts.npy"):
        with suppress(FileNotFoundError), (folder / name).open("rb") as file:
            while block := file.read(2**16):  # in the processor cache
                code = zlib.crc32(block, code)
    return f"crc32-{code:08x}"


class VectorCache:
    """A folder of memory-mapped matrices, each with a file of facts."""

    def __init__(self, root: Path) -> None:
        self.root = root / "vectors"
        self._verified: set[str] = set()

    @staticmethod
    def key(*parts: str) -> str:
        """Return the key of a matrix from everything it depends on."""
        return sha256_of(json.dumps(parts))

    def folder(self, key: str) -> Path:
        """Return the folder of a key, whether it exists or not."""
        return self.root / key[:2] / key

    def get(self, key: str) -> np.ndarray | None:
        """Return the matrix of a key, memory-mapped; None if it is missing or damaged."""
        return self._read(key)[1]

    def _read(self, key: str) -> tuple[Mapping[str, Any], np.ndarray | None]:
        """Return the facts and the matrix of an entry, None if it is missing or damaged."""
        folder = self.folder(key)
        try:
            facts, matrix = read_stored_vectors(folder)
            if not isinstance(facts, dict):
                raise ValueError("about.json is no object")
            if "checksum" not in facts:
                raise ValueError("it has no checksum")  # of an earlier version
            if key not in self._verified and facts["checksum"] != checksum(folder, facts):
                raise ValueError("its checksum is wrong")
        except (ValueError, OSError, EOFError, RecursionError) as error:
            if folder.exists():
                log.warning("%s in the vector cache is computed again: %s", folder, error)
            return {}, None
        self._verified.add(key)
        return facts, matrix

    def put(
        self, key: str, matrix: np.ndarray, facts: Mapping[str, Any], marks: Sequence[bytes] = ()
    ) -> Path:
        """Store a matrix and return its folder; an entry of another writer is not replaced.

        With ``marks``, the hash of each row's text, texts are found in the family of ``facts``.
        """
        folder = self.folder(key)
        with draft_folder(folder.parent) as parent:
            draft = parent / folder.name
            draft.mkdir()
            np.save(draft / "vectors.npy", matrix, allow_pickle=False)
            if marks:
                texts = np.frombuffer(b"".join(marks), dtype=f"V{TEXT_HASH_BYTES}")
                np.save(draft / "texts.npy", texts, allow_pickle=False)
            checked_facts = {**facts, "checksum": checksum(draft, facts)}
            (draft / "about.json").write_text(json.dumps(checked_facts, indent=1))
            self._place(draft, key)
        if marks:
            family = self._family(str(facts["family"]))
            family.mkdir(parents=True, exist_ok=True)
            (family / key).touch()
        return folder

    def remove_drafts(self) -> None:
        """Remove the drafts of killed processes."""
        for folder in self.root.glob("??"):
            remove_drafts(folder)

    def find(self, family: str, marks: Sequence[bytes]) -> Iterator[CachedVectors]:
        """Yield the cached vectors of these texts in a family, each text once."""
        folder = self._family(family)
        keys = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        missing = {mark: position for position, mark in enumerate(marks)} if keys else {}
        for key in keys:
            try:
                file = self.folder(key) / "texts.npy"
                texts = np.load(file, allow_pickle=False) if missing else ()
            except (ValueError, OSError, EOFError):
                continue
            rows = [mark.tobytes() for mark in texts]
            wanted = {mark: row for row, mark in reversed(list(enumerate(rows))) if mark in missing}
            # only entries that are used are read and verified
            facts, matrix = self._read(key) if wanted else ({}, None)
            if matrix is None or len(texts) != len(matrix):
                continue
            places = np.array([missing.pop(mark) for mark in wanted])
            seconds = float(facts.get("seconds", 0.0)) * len(wanted) / len(set(rows))
            yield CachedVectors(places, matrix[list(wanted.values())], seconds)

    def _family(self, family: str) -> Path:
        return self.root / "families" / family

    def _place(self, draft: Path, key: str) -> None:
        folder = self.folder(key)
        for last in (False, True):
            try:
                os.rename(draft, folder)
                return
            except OSError:
                if self.get(key) is not None:
                    return
                if last:
                    raise
                # a damaged entry is replaced
                shutil.rmtree(folder, ignore_errors=True)

    def entries(self) -> Iterator[CacheEntry]:
        """Yield the entries in the order of their keys, without drafts of other writers."""
        for folder in sorted(self.root.glob("??/*")):
            if folder.name.startswith("."):
                continue
            try:
                facts = json.loads((folder / "about.json").read_text())
            except (OSError, ValueError, RecursionError):
                continue  # partly removed or damaged
            if isinstance(facts, dict):
                unknown = {"model": "?", "dataset": "?", "shape": []}
                yield CacheEntry(folder, {**unknown, **facts}, _bytes_in(folder))

    def clear(self) -> int:
        """Remove all vectors and return the number of freed bytes."""
        before = _bytes_in(self.root)
        shutil.rmtree(self.root, ignore_errors=True)
        return before - _bytes_in(self.root)


def _bytes_in(folder: Path) -> int:
    size = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # removed by another process
            size += file.stat().st_size if file.is_file() else 0
    return size


def _truncation(encoder: Any, data: Dataset, order: RoleOrder) -> dict[str, int]:
    """Return how many of the texts are over the encoder's limit; empty if it has none."""
    count = getattr(encoder, "count_truncated", None)
    if not callable(count):
        return {}
    counts = {"truncated": 0, "texts": 0}
    for role in dict.fromkeys(order.roles):
        texts = distinct_texts(data.items.iloc[order.places[order.roles == role]])[1]
        counts["truncated"] += count(texts, role)
        counts["texts"] += len(texts)
    return counts


def has_vectors(model: Model) -> bool:
    """Return whether a model's vectors, or those of its stages, are computed before its jobs."""
    return model.stateless or bool(stage_encoders(model.prototype))


class VectorStage:
    """Embeds each dataset at most once per encoder, in this process, which may use a GPU."""

    def __init__(
        self,
        store: ObjectStore,
        progress: Progress,
        keep: bool,
        scratch: Path,
        identities: Mapping[str, str | None] | None = None,
    ) -> None:
        """``identities`` are those of the models by name, if they are known."""
        self.store = store
        self.progress = progress
        self.folder = str(scratch)
        self.spare = VectorCache(scratch)
        self.cache = VectorCache(cache_folder()) if keep else self.spare
        #: the fields of jobs by model, dataset and seed
        self.made: dict[tuple[str, str, int], dict[str, Any]] = {}
        self._planned_identities = identities or {}
        self._identities: dict[str, str] = {}

    def embedded(self, job: Job) -> Job:
        """Return the job with the folder of its vectors, or with the error of the encoder."""
        if job.broken is not None or not has_vectors(self.store.get(job.model)):
            return job
        key = self.key(job)
        if key not in self.made:
            with one_thread(), restored_process(), use_services(services_of(self.store)):
                self.made[key] = self.fields(job)
        return dataclasses.replace(job, **self.made[key])

    def key(self, job: Job) -> tuple[str, str, int]:
        """Return what the vectors of a job depend on: model, dataset and seed."""
        seed = job.vector_seed(self.store.get(job.source).prototype)
        return job.source, job.dataset, seed

    def fields(self, job: Job) -> dict[str, Any]:
        """Embed the dataset of a job; return the fields of jobs that use the vectors."""
        model, data = self.store.get(job.source), self.store.get(job.dataset)
        if model.role == "encoder":
            return self._embed(job, model, data)
        stages: list[dict[str, Any]] = []
        for number, encoder in enumerate(stage_encoders(model.prototype), 1):
            try:
                stage = stage_model(encoder)
            except KaratError as error:
                return {"broken": JobFailure.by(error)}
            stage = dataclasses.replace(stage, name=model.name, depends_on=model.depends_on)
            stages.append(self._embed(job, stage, data, number))
            if "broken" in stages[-1]:
                return stages[-1]
        distinct = {fields["vectors"]: fields for fields in stages}.values()
        usages = [fields["usage"] for fields in distinct if fields["usage"]]
        return {
            "stages": tuple(fields["vectors"] for fields in stages),
            "usage": combined_usage(usages),
            "embed_seconds": sum(fields["embed_seconds"] or 0.0 for fields in distinct),
        }

    def _embed(self, job: Job, model: Model, data: Dataset, stage: int = 0) -> dict[str, Any]:
        """Embed a dataset with a model, or with an encoder that is a stage of a search model."""
        if self.cache is not self.spare and not keeps_vectors(model):
            return self._for_this_run._embed(job, model, data, stage)
        self.progress.embedding(model.name, data.name, len(data.items))
        begun = time.perf_counter()
        try:
            seed = self.key(job)[-1]
            encoder = model.fresh(seed, data.kind)
            key = f"{job.source} {stage} {data.kind} {seed}"
            # computed before the first use: some encoders change when used, and hashing may be slow
            if key not in self._identities:
                planned = None if stage else self._planned_identities.get(model.name)
                self._identities[key] = self._identity(model, encoder, planned)
            identity = self._identities[key]
            order = role_order(encoder, data, np.arange(len(data.items)))
            folder = self._vectors(encoder, identity, model, (data, order))
            facts = read_stored_vectors(folder)[0]
            places: dict[str, Any] = {"vectors": str(folder), "usage": facts.get("usage")}
            places["embed_seconds"] = facts.get("seconds")
            if data.kind == "items" and callable(getattr(encoder, "vocabulary", None)):
                places["vocabulary"] = str(self._vocabulary(encoder, identity, model))
            return places
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            broken = JobFailure.by(error)
            log.warning("%s cannot embed %s: %s", model.name, data.name, broken.info)
            return {"broken": broken}
        finally:
            self.progress.embedded(model.name, data.name, time.perf_counter() - begun)

    @cached_property
    def _for_this_run(self) -> VectorStage:
        """The same stage, which neither reads nor writes the cache between runs."""
        stage = copy.copy(self)
        stage.cache = self.spare
        return stage

    def _identity(self, model: Model, encoder: Any, planned: str | None) -> str:
        whole = encoder is model.prototype and model.variant is None
        # vectors of a model without an identity are not found by later runs
        return (
            (planned if whole else None) or encoder_identity(model, encoder) or os.urandom(16).hex()
        )

    def _vectors(
        self, encoder: Any, identity: str, model: Model, what: tuple[Dataset, RoleOrder]
    ) -> Path:
        data, order = what
        by_text = data.modality in getattr(encoder, "by_text", ())
        parts = ["texts" if by_text else "vectors", identity, data.items_fingerprint]
        key = VectorCache.key(*parts, *_role_parts(order))
        if self.cache.get(key) is not None:
            log.info("vectors of %s for %s: taken from the cache", model.name, data.name)
            if self.cache is not self.spare:
                self.progress.cached(len(data.items), len(data.items))
            return self.cache.folder(key)
        log.info("vectors of %s for %s: computing", model.name, data.name)
        begun = time.perf_counter()
        self.convert(encoder, identity, model)
        entry = {"model": model.name, "dataset": data.name}
        with current_services().counting() as used:
            if by_text:
                entry["family"] = identity
                matrix, seconds, marks = self._texts(encoder, what, entry)
            else:
                marks = []
                matrix = order.matrix(
                    model.name,
                    lambda rows, role: transformed(
                        encoder, data.items.iloc[rows], model.name, role
                    ),
                )
                seconds = time.perf_counter() - begun
        # stored, because jobs that take the vectors from the cache report it too
        usage = used.facts() or _truncation(encoder, *what)
        facts = {**entry, "seconds": seconds, **({"usage": usage} if usage else {})}
        return self._put(key, matrix, facts, marks)

    def _texts(
        self, encoder: Any, what: tuple[Dataset, RoleOrder], entry: Mapping[str, Any]
    ) -> tuple[np.ndarray, float, list[bytes]]:
        """Embed texts of which some may have been encoded before, for other data.

        Returns the vectors of the items, the seconds they took, and the hash of each text.
        """
        data, order = what
        seconds = 0.0
        marks = np.empty(len(order.places), dtype=object)

        def embed(rows: np.ndarray, role: str) -> np.ndarray:
            nonlocal seconds
            codes, texts = distinct_texts(data.items.iloc[rows])
            prompt = order.prompts.get(role, "")
            hashes = text_hashes(texts, prompt)
            # the code of a missing text is -1
            marks[order.roles == role] = np.array([*hashes, _NO_TEXT], dtype=object)[codes]
            matrix, spent = self._encoded(encoder, texts, entry, (role, prompt), hashes)
            seconds += spent
            return item_vectors(matrix, codes)

        matrix = order.matrix(str(entry["model"]), embed)
        return matrix, seconds, marks.tolist()

    def _encoded(
        self,
        encoder: Any,
        texts: list[str],
        entry: Mapping[str, Any],
        role: tuple[str, str],
        marks: list[bytes],
    ) -> tuple[np.ndarray, float]:
        """Return the vectors of texts in a role with its prompt, and the time they took."""
        name, family = str(entry["model"]), str(entry["family"])
        cached: list[CachedVectors] = []
        if not getattr(encoder, "keeps_vectors", False):
            # in the run's own folder if the cache is read-only
            cached = list(self.cache.find(family, marks)) or list(self.spare.find(family, marks))
        missing = np.arange(len(texts))
        if cached:
            missing = np.setdiff1d(missing, np.concatenate([part.places for part in cached]))
        log.info("%s encodes %d of %d texts, the others are cached", name, len(missing), len(texts))
        if cached and self.cache is not self.spare:
            self.progress.cached(len(texts) - len(missing), len(texts))
        begun = time.perf_counter()
        new = [texts[i] for i in missing] if cached else texts

        def report(done: int) -> None:
            self.progress.encoded(done, len(new))

        current_services().progress = report  # a service reports each answer
        vectors = encode(encoder, new, name, report, role=role[0])
        seconds = sum(part.seconds for part in cached) + time.perf_counter() - begun
        parts = [*cached, CachedVectors(missing, vectors, 0.0)]
        if len({part.vectors.shape[1] for part in parts if len(part.places)}) > 1:
            # the width of its vectors depends on the texts of a call, so it gets all in one call
            vectors = encode(encoder, texts, name, role=role[0])
            parts = [CachedVectors(np.arange(len(texts)), vectors, 0.0)]
            seconds = time.perf_counter() - begun
        matrix = parts[-1].vectors
        if len(parts) > 1:
            width = next((part.vectors.shape[1] for part in parts if len(part.places)), 1)
            matrix = np.empty((len(texts), width), dtype=np.float32)
            for part in parts:
                if len(part.places):
                    matrix[part.places] = part.vectors
        return matrix, seconds

    def convert(
        self, encoder: Any, identity: str, model: Model, names: Iterable[str] | None = None
    ) -> None:
        """Read a vector file once and let the encoder look vectors up in the stored matrix.

        With ``names``, only their vectors are read from a text file that has not been stored.
        """
        if isinstance(encoder, VectorFile) and not encoder.reads_rows:
            stored = self.cache.get(VectorCache.key("vocabulary", identity)) is not None
            if names is not None and encoder.is_text and not stored:
                return encoder.read_only(names)
            facts, matrix = read_stored_vectors(self._vocabulary(encoder, identity, model))
            encoder.use(facts["ids"], matrix)

    def _vocabulary(self, encoder: Any, identity: str, model: Model) -> Path:
        key = VectorCache.key("vocabulary", identity)
        if self.cache.get(key) is not None:
            return self.cache.folder(key)
        ids, values = encoder.vocabulary()
        matrix = check_vectors(values, len(ids), f"{model.name}.vocabulary")
        entry = {"model": model.name, "dataset": ""}
        whole = [i if isinstance(i, int) else str(i) for i in np.asarray(ids, dtype=object)]
        return self._put(key, matrix, {**entry, "ids": whole})

    def _put(
        self, key: str, matrix: np.ndarray, entry: Mapping[str, Any], marks: Sequence[bytes] = ()
    ) -> Path:
        facts = {**entry, "shape": list(matrix.shape)}
        try:
            return self.cache.put(key, matrix, facts, marks)
        except (OSError, DiskFull):
            if self.cache is self.spare:
                raise
            log.warning("cannot write to the vector cache %s", self.cache.root)
            return self.spare.put(key, matrix, facts, marks)
