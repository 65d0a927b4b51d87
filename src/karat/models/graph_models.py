"""Vectors inside other libraries' models: PyKEEN's knowledge graphs and gensim's words.

Both save their models as pickles, which run code when they are opened: a file is opened only where
a definition names it, and its place should be trusted as a program is.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from glob import escape
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from karat.errors import ContractError, DataError, MissingExtra
from karat.models.vector_file import KnownVectors, VectorFile
from karat.models.vector_text import unbracketed
from karat.models.words import averaged

#: the ends of the files that gensim saves, which are pickles
GENSIM = (".kv", ".model")
#: how PyKEEN calls a model in the folder it saves
TRAINED = "trained_model.pkl"


def pykeen_vectors(model: Any, factory: Any, representation: int | None = None) -> KnownVectors:
    """Return the vectors of a trained PyKEEN model by the names its triples factory knows.

    A model with several vectors per entity gives them side by side, or the one at the place
    ``representation``. Of complex numbers, the real parts stand before the imaginary ones.
    """
    places = getattr(factory, "entity_to_id", None)
    if not places:
        raise ContractError(
            f"a {type(factory).__name__} does not know the names of the entities; give the "
            f"TriplesFactory the model was trained with."
        )
    parts = list(model.entity_representations)
    if representation is not None:
        if not 0 <= representation < len(parts):
            raise ContractError(
                f"{type(model).__name__} has {len(parts)} representations of an entity; "
                f"there is none at {representation}."
            )
        parts = [parts[representation]]
    matrix = np.hstack([_rows(part) for part in parts])
    if len(matrix) <= max(places.values()):
        raise ContractError(
            f"{type(model).__name__} has vectors of {len(matrix)} entities, the triples factory "
            f"names {len(places)}; give the one the model was trained with."
        )
    names = [unbracketed(str(name)) for name in places]
    return KnownVectors(names, matrix[list(places.values())])


def _rows(part: Any) -> np.ndarray:
    """Return one row of real numbers per entity; what drops numbers to train must not do so."""
    training = part.training
    part.eval()
    values = part(indices=None).detach().cpu().numpy()
    part.train(training)
    flat = values.reshape(len(values), -1)
    return np.hstack([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat


def pykeen_result(thing: Any) -> KnownVectors | None:
    """Return the vectors of what PyKEEN's pipeline returns; of anything else, nothing."""
    # what it holds, not what it may compute: a stranger's property may raise anything
    held = getattr(thing, "__dict__", {})
    if hasattr(held.get("model"), "entity_representations") and "training" in held:
        return pykeen_vectors(held["model"], held["training"])
    if hasattr(thing, "entity_representations"):
        raise ContractError(
            f"{type(thing).__name__} does not know the names of its entities; give the result of "
            f"PyKEEN's pipeline, or karat.models.graph_models.pykeen_vectors(model, factory)."
        )
    return None


class PickledVectors(VectorFile):
    """A base for vectors in a pickle of another library; it is opened once and then kept."""

    library: ClassVar[str] = ""
    size: int | None = None
    format: str | None = None

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def reads_rows(self) -> bool:
        """Whether some vectors can be read without all others: never."""
        return False

    def unavailable(self) -> str:
        """Return which library is missing to open it, or nothing."""
        missing = find_spec(self.library) is None
        return str(MissingExtra(self.library, self.library)) if missing else ""

    def fingerprint(self) -> str:
        """Return a hash of all files that take part."""
        digest = hashlib.sha256(repr(sorted(self.get_params().items())).encode())
        for file in self.files():
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
        return digest.hexdigest()

    def files(self) -> list[Path]:
        """Return the files that the vectors depend on."""
        raise ContractError(f"{type(self).__name__} has no files method.")

    def load(self) -> KnownVectors:
        """Open the files."""
        raise ContractError(f"{type(self).__name__} has no load method.")

    def _known(self) -> KnownVectors:
        if not hasattr(self, "known_"):
            if find_spec(self.library) is None:
                raise MissingExtra(self.library, self.library)
            files = self.files()
            try:
                self.known_ = self.load()
            except (ContractError, DataError):
                raise
            except Exception as error:  # a pickle may raise anything
                raise DataError(
                    f"{files[0]} cannot be opened by {self.library}: "
                    f"{type(error).__name__}: {error}."
                ) from error
        return self.known_

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.get_params(deep=False))


class PyKeenFolder(PickledVectors):
    """The entity vectors of a folder that PyKEEN's ``save_to_directory`` wrote.

    Opening it runs code of the file ``trained_model.pkl``.
    """

    library = "pykeen"

    def __init__(self, path: str, representation: int | None = None) -> None:
        self.path = path
        self.representation = representation

    def files(self) -> list[Path]:
        """Return the model and the names of its entities."""
        folder = Path(self.path).expanduser()
        names = (TRAINED, "training_triples/entity_to_id.tsv.gz")
        for name in names:
            if not (folder / name).is_file():
                raise DataError(
                    f"{self.path} has no {name}; it must be a folder written by the method "
                    f"save_to_directory of a PyKEEN result."
                )
        return [folder / name for name in names]

    def load(self) -> KnownVectors:
        """Open the model."""
        import torch

        model, names = self.files()
        trained = torch.load(model, map_location="cpu", weights_only=False)
        return pykeen_vectors(
            trained, SimpleNamespace(entity_to_id=_names(names)), self.representation
        )


def _names(path: Path) -> dict[str, int]:
    """Return the places of the entities by name; PyKEEN's own reader loses one called NA."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return {row["label"]: int(row["id"]) for row in rows}


class GensimFile(PickledVectors):
    """The vectors of a file that gensim's ``save`` wrote: an entity is looked up, a text averaged.

    Opening it runs code of the file.
    """

    library = "gensim"

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the mean of the vectors of each text's known words."""
        ids, vectors = self.vocabulary()
        return averaged(texts, ids, vectors)

    def files(self) -> list[Path]:
        """Return the file and the arrays that gensim puts beside a large one."""
        file = Path(self.path).expanduser()
        if not file.is_file():
            raise DataError(f"there is no file {self.path}.")
        return [file, *sorted(file.parent.glob(f"{escape(file.name)}.*.npy"))]

    def load(self) -> KnownVectors:
        """Open the file."""
        from gensim.utils import SaveLoad

        path = self.files()[0]
        known = keyed_vectors(SaveLoad.load(str(path)))
        if known is None:
            raise DataError(f"{path} holds neither KeyedVectors of gensim nor a model with them.")
        return KnownVectors([unbracketed(str(name)) for name in known[0]], known[1])


def keyed_vectors(thing: Any) -> tuple[list[Any], np.ndarray] | None:
    """Return the names and vectors of gensim's KeyedVectors, or of a model that has them."""
    keyed = getattr(thing, "wv", thing)  # of a whole Word2Vec, its vectors
    if not (hasattr(keyed, "key_to_index") and hasattr(keyed, "vectors")):
        return None
    # the order of the keys is not promised to be that of the rows
    ids, rows = list(keyed.key_to_index), list(keyed.key_to_index.values())
    return ids, np.asarray(keyed.vectors)[rows]


def refuse_pickle(path: Path) -> None:
    """Refuse to take a pickle for a file of numbers, and say how it is opened."""
    by_gensim = path.suffix.lower() in GENSIM
    if (by_gensim or path.name == TRAINED) and path.is_file():
        name, place = ("gensim", path) if by_gensim else ("pykeen", path.parent)
        raise DataError(
            f"{path} is a pickle, which runs code when it is opened; if you trust it, define a "
            f'model in a YAML file: {{extends: {name}, params: {{path: "{place}"}}}} (--define).'
        )
