"""Staging: the vectors of encoders that learn nothing, made once before the jobs run."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from karat.cache import VectorCache
from karat.dataset import Dataset
from karat.execute import one_thread
from karat.fingerprints import fingerprint
from karat.folders import cache_folder
from karat.job import Broken, Job
from karat.models.base import Model
from karat.models.identity import identity_of
from karat.progress import Progress
from karat.shelf import Shelf
from karat.vectors import check_vectors


class Stage:
    """Embeds each data set at most once per encoder, in this process, which may own a GPU."""

    def __init__(self, shelf: Shelf, progress: Progress, keep: bool, scratch: Path) -> None:
        self.shelf = shelf
        self.progress = progress
        self.spare = VectorCache(scratch)
        self.cache = VectorCache(cache_folder()) if keep else self.spare
        self._made: dict[tuple[str, str], dict[str, Any]] = {}

    def embedded(self, job: Job) -> Job:
        """Return the job with the place of its vectors, or with why they could not be made."""
        model: Model = self.shelf.get(job.model)
        if job.broken is not None or not model.stateless:
            return job
        pair = (job.model, job.dataset)
        if pair not in self._made:
            with one_thread():
                self._made[pair] = self._embed(model, self.shelf.get(job.dataset), job.seed)
        return dataclasses.replace(job, **self._made[pair])

    def _embed(self, model: Model, data: Dataset, seed: int) -> dict[str, Any]:
        self.progress.embedding(model.name, data.name, len(data.items))
        begun = time.perf_counter()
        try:
            encoder = model.fresh(seed, data.kind)
            # a model that cannot be told apart from its changed self is not kept between runs
            who = identity_of(encoder) or os.urandom(16).hex()
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

    def _vectors(self, encoder: Any, who: str, model: Model, data: Dataset) -> Path:
        key = VectorCache.key("vectors", who, fingerprint(data.items))
        if self.cache.get(key) is not None:
            return self.cache.folder(key)
        begun = time.perf_counter()
        values = encoder.transform(data.items)
        matrix = check_vectors(values, len(data.items), f"{model.name}.transform")
        about = {"model": model.name, "dataset": data.name, "shape": list(matrix.shape)}
        # what they cost is told whenever they are used, also when they come from the cache
        return self._keep(key, matrix, {**about, "seconds": time.perf_counter() - begun})

    def _vocabulary(self, encoder: Any, who: str, model: Model) -> Path:
        key = VectorCache.key("vocabulary", who)
        if self.cache.get(key) is not None:
            return self.cache.folder(key)
        ids, values = encoder.vocabulary()
        matrix = check_vectors(values, len(ids), f"{model.name}.vocabulary")
        about = {"model": model.name, "dataset": "", "shape": list(matrix.shape)}
        whole = [i if isinstance(i, int) else str(i) for i in np.asarray(ids, dtype=object)]
        return self._keep(key, matrix, {**about, "ids": whole})

    def _keep(self, key: str, matrix: np.ndarray, about: Mapping[str, Any]) -> Path:
        try:
            return self.cache.put(key, matrix, about)
        except OSError:
            if self.cache is self.spare:
                raise
            # the cache cannot be written: the vectors live as long as the run
            return self.spare.put(key, matrix, about)


def _cost(folder: Path) -> float | None:
    seconds = json.loads((folder / "about.json").read_text()).get("seconds")
    return None if seconds is None else float(seconds)
