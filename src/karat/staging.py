"""Staging: the vectors of encoders that learn nothing, made once before the jobs run.

A text is encoded once, however many items, data sets and runs it stands in.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
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


class Stage:
    """Embeds each data set at most once per encoder, in this process, which may own a GPU."""

    def __init__(self, shelf: Shelf, progress: Progress, keep: bool, scratch: Path) -> None:
        self.shelf = shelf
        self.progress = progress
        self.folder = str(scratch)
        self.spare = VectorCache(scratch)
        self.cache = VectorCache(cache_folder()) if keep else self.spare
        self._made: dict[tuple[str, str], dict[str, Any]] = {}
        self._who: dict[str, str] = {}

    def embedded(self, job: Job) -> Job:
        """Return the job with the place of its vectors, or with why they could not be made."""
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
            who = self._identity(encoder, f"{job.model} {data.kind}")
            folder = self._vectors(encoder, who, model, data)
            places: dict[str, Any] = {"vectors": str(folder), "embed_seconds": _cost(folder)}
            if data.kind == "items" and callable(getattr(encoder, "vocabulary", None)):
                places["vocabulary"] = str(self._vocabulary(encoder, who, model))
            return places
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return {"broken": Broken.by(error)}
        finally:
            self.progress.embedded(model.name, data.name, time.perf_counter() - begun)

    def _identity(self, encoder: Any, key: str) -> str:
        # once: some are others after they were used, and some take long to be told apart
        if key not in self._who:
            # a model that cannot be told apart from its changed self is not kept between runs
            self._who[key] = identity_of(encoder) or os.urandom(16).hex()
        return self._who[key]

    def _vectors(self, encoder: Any, who: str, model: Model, data: Dataset) -> Path:
        by_text = data.modality in getattr(encoder, "by_text", ())
        key = VectorCache.key("texts" if by_text else "vectors", who, fingerprint(data.items))
        if self.cache.get(key) is not None:
            return self.cache.folder(key)
        begun = time.perf_counter()
        self.convert(encoder, who, model)
        about = {"model": model.name, "dataset": data.name}
        if by_text:
            return self._texts(key, encoder, data, {**about, "family": who})
        values = encoder.transform(data.items)
        matrix = check_vectors(values, len(data.items), f"{model.name}.transform")
        # what they cost is told whenever they are used, also when they come from the cache
        return self._keep(key, matrix, {**about, "seconds": time.perf_counter() - begun})

    def _texts(self, key: str, encoder: Any, data: Dataset, about: Mapping[str, Any]) -> Path:
        """Embed texts of which some may have been encoded before, for other data."""
        codes, texts = distinct(data.items)
        marks = [mark(text) for text in texts]
        name, kept = str(about["model"]), self._kept(str(about["family"]), marks)
        new = np.ones(len(texts), dtype=bool)
        for each in kept:
            new[each.places] = False
        left = np.flatnonzero(new)
        begun = time.perf_counter()
        fresh = encode(encoder, [texts[i] for i in left], name, self._tell(len(left)))
        seconds = sum(each.seconds for each in kept) + time.perf_counter() - begun
        kept.append(Kept(left, fresh, 0.0))
        if len({each.vectors.shape[1] for each in kept if len(each.places)}) > 1:
            # its vectors are as wide as the texts it is shown; so it is shown all
            kept = [Kept(np.arange(len(texts)), encode(encoder, texts, name), 0.0)]
            seconds = time.perf_counter() - begun
        matrix = _joined(len(texts), kept)
        rows = [marks[code] if code >= 0 else bytes(MARK) for code in codes]
        return self._keep(key, spread(matrix, codes), {**about, "seconds": seconds}, rows)

    def _kept(self, family: str, marks: list[bytes]) -> list[Kept]:
        """Return what was encoded before; without leave to write, the run's own folder has some."""
        for cache in dict.fromkeys((self.cache, self.spare)):
            if found := list(cache.find(family, marks)):
                return found
        return []

    def _tell(self, total: int) -> Callable[[int], None]:
        return lambda done: self.progress.encoded(done, total)

    def convert(self, encoder: Any, who: str, model: Model) -> None:
        """Have a vector file read once, and everything looked up in the matrix kept of it."""
        if not isinstance(encoder, VectorFile) or encoder.reads_rows:
            return
        folder = self._vocabulary(encoder, who, model)
        ids = json.loads((folder / "about.json").read_text())["ids"]
        encoder.use(ids, np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False))

    def _vocabulary(self, encoder: Any, who: str, model: Model) -> Path:
        key = VectorCache.key("vocabulary", who)
        if self.cache.get(key) is not None:
            return self.cache.folder(key)
        ids, values = encoder.vocabulary()
        matrix = check_vectors(values, len(ids), f"{model.name}.vocabulary")
        about = {"model": model.name, "dataset": ""}
        whole = [i if isinstance(i, int) else str(i) for i in np.asarray(ids, dtype=object)]
        return self._keep(key, matrix, {**about, "ids": whole})

    def _keep(
        self, key: str, matrix: np.ndarray, about: Mapping[str, Any], marks: Sequence[bytes] = ()
    ) -> Path:
        about = {**about, "shape": list(matrix.shape)}
        try:
            return self.cache.put(key, matrix, about, marks)
        except OSError:
            if self.cache is self.spare:
                raise
            # the cache cannot be written: the vectors live as long as the run
            return self.spare.put(key, matrix, about, marks)


def _joined(texts: int, parts: list[Kept]) -> np.ndarray:
    """Return the vectors of all texts, each from the part that has it."""
    width = max((part.vectors.shape[1] for part in parts if len(part.places)), default=1)
    matrix = np.empty((texts, width), dtype=np.float32)
    for part in parts:
        if len(part.places):
            matrix[part.places] = part.vectors
    return matrix


def _cost(folder: Path) -> float | None:
    seconds = json.loads((folder / "about.json").read_text()).get("seconds")
    return None if seconds is None else float(seconds)
