"""What is sent with a job to a Dask worker: files by content hash, and the user's own code."""

from __future__ import annotations

import contextlib
import os
import site
import sys
import sysconfig
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from karat.engines.depot import Order, Parcel, file_hash, versions
from karat.job import Job
from karat.shelf import Shelf

#: files of a vector folder that jobs read
VECTORS = ("vectors.npy", "about.json")


@contextlib.contextmanager
def code_goes_along() -> Iterator[None]:
    """Pickle the user's modules that are not installed by value."""
    import cloudpickle

    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages(), str(Path(__file__).parents[1])]
    installed = tuple({os.path.realpath(folder) + os.sep for folder in folders})
    already = cloudpickle.list_registry_pickle_by_value()
    found = [m for name, m in list(sys.modules.items()) if _is_own(name, m, installed)]
    own = [module for module in found if module.__name__ not in already]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


def _is_own(name: str, module: Any, installed: tuple[str, ...]) -> bool:
    file = getattr(module, "__file__", None)
    if name == "__main__" or not file or getattr(module, "__name__", "") != name:
        return False
    return not os.path.realpath(file).startswith(installed)


class Cargo:
    """Adds the files of jobs to them; each file is hashed once."""

    def __init__(self, shelf: Shelf, work: str) -> None:
        self.shelf = shelf
        self.work = work
        self.session = uuid.uuid4().hex
        self._parcels: dict[Path, Parcel] = {}

    def order(self, job: Job) -> Order:
        """Return a job with its files and their paths on the worker."""
        keys = ("parts", job.model, job.task, job.dataset)
        parcels = {f"shelf/{key}.pickle": self._parcel(self.shelf.file(key)) for key in keys}
        folders = {}
        for name in ("vectors", "vocabulary"):
            folder = getattr(job, name)
            if folder is not None:
                files = {each: self._parcel(Path(folder) / each) for each in VECTORS}
                at = "-".join(["vectors", *(parcel.sha256 for parcel in files.values())])
                folders[name] = at
                parcels |= {f"{at}/{each}": parcel for each, parcel in files.items()}
        return Order(job, self.work, self.session, parcels, folders, versions())

    def _parcel(self, path: Path) -> Parcel:
        if path not in self._parcels:
            file = path.absolute()
            self._parcels[path] = Parcel(file_hash(file), file.stat().st_size, str(file))
        return self._parcels[path]
