"""Staging: vectors of stateless encoders, computed once before the jobs run.

A text is encoded once, even if it occurs in several items, datasets and runs.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from karat.cache import MARK, Kept, VectorCache, mark
from karat.dataset import Dataset
from karat.execute import one_thread
from karat.fingerprints import fingerprint
from karat.folders import cache_folder
from karat.job import Broken, Job
from karat.models.base import Model
from karat.models.identity import identity_of
from karat.models.vector_file import VectorFile
from karat.progress import Progress
from karat.shelf import Shelf
from karat.vectors import check_vectors, distinct, encode, spread

log = logging.getLogger("karat.staging")


class Stage:
    """Embeds each dataset at most once per encoder, in this process, which may use a GPU."""

    def __init__(self, shelf: Shelf, progress: Progress, keep: bool, scratch: Path) -> None:
        self.shelf = shelf
        self.progress = progress
        self.folder = str(scratch)
        self.spare = VectorCache(scratch)
        self.cache = VectorCache(cache_folder()) if keep else self.spare
        self._made: dict[tuple[str, str], dict[str, Any]] = {}
        self._identities: dict[str, str] = {}

    def embedded(self, job: Job) -> Job:
        """Return the job with the folder of its vectors, or with the error of the encoder."""
        model: Model = self.shelf.get(job.model)
        if job.broken is not None or not model.stateless:
            return job
        pair = (job.model, job.dataset)
        if pair not in self._made:
            with one_thread():
                self._made[pair] = self._embed(job, model, self.shelf.get(job.dataset))
        return dataclasses.replace(job, **self._made[pair])

    def _embed(self, job: Job, model: Model, data: Dataset) -> dict[str, Any]:
        self.progress.embedding(model.name, data.name, len(data.items))
        begun = time.perf_counter()
        try:
            encoder = model.fresh(job.seed, data.kind)
            identity = self._identity(encoder, f"{job.model} {data.kind}")
            folder = self._vectors(encoder, identity, model, data)
            places: dict[str, Any] = {"vectors": str(folder), "embed_seconds": _cost(folder)}
            if data.kind == "items" and callable(getattr(encoder, "vocabulary", None)):
                places["vocabulary"] = str(self._vocabulary(encoder, identity, model))
            return places
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            broken = Broken.by(error)
            log.warning("%s cannot embed %s: %s", model.name, data.name, broken.info)
            return {"broken": broken}
        finally:
            self.progress.embedded(model.name, data.name, time.perf_counter() - begun)

    def _identity(self, encoder: Any, key: str) -> str:
        # computed before the first use: some encoders change when used, and hashing may be slow
        if key not in self._identities:
            # vectors of a model without an identity are not found by later runs
            self._identities[key] = identity_of(encoder) or os.urandom(16).hex()
        return self._identities[key]

    def _vectors(self, encoder: Any, identity: str, model: Model, data: Dataset) -> Path:
        by_text = data.modality in getattr(encoder, "by_text", ())
        key = VectorCache.key("texts" if by_text else "vectors", identity, fingerprint(data.items))
        if self.cache.get(key) is not None:
            log.info("vectors of %s for %s: taken from the cache", model.name, data.name)
            return self.cache.folder(key)
        log.info("vectors of %s for %s: computing", model.name, data.name)
        begun = time.perf_counter()
        self.convert(encoder, identity, model)
        about = {"model": model.name, "dataset": data.name}
        if by_text:
            return self._texts(key, encoder, data, {**about, "family": identity})
        values = encoder.transform(data.items)
        matrix = check_vectors(values, len(data.items), f"{model.name}.transform")
        # stored, because jobs that take the vectors from the cache report it too
        return self._put(key, matrix, {**about, "seconds": time.perf_counter() - begun})

    def _texts(self, key: str, encoder: Any, data: Dataset, about: Mapping[str, Any]) -> Path:
        """Embed texts of which some may have been encoded before, for other data."""
        codes, texts = distinct(data.items)
        marks = [mark(text) for text in texts]
        name, cached = str(about["model"]), self._encoded_before(str(about["family"]), marks)
        known = [each.places for each in cached]
        left = np.setdiff1d(np.arange(len(texts)), np.concatenate(known) if known else [])
        log.info("%s encodes %d of %d texts, the others are cached", name, len(left), len(texts))
        begun = time.perf_counter()
        progress = self.progress.encoded
        new = [texts[i] for i in left]
        vectors = encode(encoder, new, name, lambda done: progress(done, len(new)))
        seconds = sum(each.seconds for each in cached) + time.perf_counter() - begun
        parts = [*cached, Kept(left, vectors, 0.0)]
        if len({part.vectors.shape[1] for part in parts if len(part.places)}) > 1:
            # the width of its vectors depends on the texts of a call, so it gets all in one call
            parts = [Kept(np.arange(len(texts)), encode(encoder, texts, name), 0.0)]
            seconds = time.perf_counter() - begun
        matrix = _joined(len(texts), parts)
        rows = [marks[code] if code >= 0 else bytes(MARK) for code in codes]
        return self._put(key, spread(matrix, codes), {**about, "seconds": seconds}, rows)

    def _encoded_before(self, family: str, marks: list[bytes]) -> list[Kept]:
        """Return cached vectors of texts, from the run's own folder if the cache is read-only."""
        for cache in dict.fromkeys((self.cache, self.spare)):
            if found := list(cache.find(family, marks)):
                return found
        return []

    def convert(self, encoder: Any, who: str, model: Model) -> None:
        """Read a vector file once and let the encoder look vectors up in the stored matrix.

        ``who`` is the identity of the encoder.
        """
        if not isinstance(encoder, VectorFile) or encoder.reads_rows:
            return
        folder = self._vocabulary(encoder, who, model)
        ids = json.loads((folder / "about.json").read_text())["ids"]
        encoder.use(ids, np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False))

    def _vocabulary(self, encoder: Any, identity: str, model: Model) -> Path:
        key = VectorCache.key("vocabulary", identity)
        if self.cache.get(key) is not None:
            return self.cache.folder(key)
        ids, values = encoder.vocabulary()
        matrix = check_vectors(values, len(ids), f"{model.name}.vocabulary")
        about = {"model": model.name, "dataset": ""}
        whole = [i if isinstance(i, int) else str(i) for i in np.asarray(ids, dtype=object)]
        return self._put(key, matrix, {**about, "ids": whole})

    def _put(
        self, key: str, matrix: np.ndarray, about: Mapping[str, Any], marks: Sequence[bytes] = ()
    ) -> Path:
        about = {**about, "shape": list(matrix.shape)}
        try:
            return self.cache.put(key, matrix, about, marks)
        except OSError:
            if self.cache is self.spare:
                raise
            log.warning("cannot write to the vector cache %s", self.cache.root)
            return self.spare.put(key, matrix, about, marks)


def _joined(texts: int, parts: list[Kept]) -> np.ndarray:
    """Return the vectors of all texts."""
    width = max((part.vectors.shape[1] for part in parts if len(part.places)), default=1)
    matrix = np.empty((texts, width), dtype=np.float32)
    for part in parts:
        if len(part.places):
            matrix[part.places] = part.vectors
    return matrix


def _cost(folder: Path) -> float | None:
    seconds = json.loads((folder / "about.json").read_text()).get("seconds")
    return None if seconds is None else float(seconds)
