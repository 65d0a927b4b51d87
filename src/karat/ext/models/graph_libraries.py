"""Vectors from PyKEEN models (knowledge graphs) and gensim models (words).

Both libraries save models as pickles, and loading a pickle can run arbitrary code. A file is
therefore loaded only if a definition names it.
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from glob import escape
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from karat.core.digest import sha256_of, sha256_of_file
from karat.errors import ContractError, DataError, MissingExtra
from karat.models.pickled_files import TRAINED
from karat.models.text_encoders import average_words
from karat.models.vector_files import VectorFile, VectorLookup
from karat.models.vectors.vector_names import strip_angle_brackets

if TYPE_CHECKING:
    from pykeen.models import Model
    from pykeen.nn import Representation
    from pykeen.triples import TriplesFactory


def pykeen_vectors(
    model: Model, factory: TriplesFactory, representation: int | None = None
) -> VectorLookup:
    """Return the vectors of a trained PyKEEN model by the entity names of its triples factory.

    Several representations per entity are concatenated, unless ``representation`` selects one by
    index. A complex vector becomes its real parts followed by its imaginary parts.
    """
    indices = getattr(factory, "entity_to_id", None)
    if not indices:
        raise ContractError(
            f"{type(factory).__name__} has no entity names (entity_to_id); pass the "
            f"TriplesFactory the model was trained with."
        )
    representations = list(model.entity_representations)
    if representation is not None:
        if not 0 <= representation < len(representations):
            raise ContractError(
                f"representation must be below {len(representations)} for "
                f"{type(model).__name__}, got {representation}."
            )
        representations = [representations[representation]]
    matrix = np.hstack([_entity_matrix(part) for part in representations])
    if len(matrix) <= max(indices.values()):
        raise ContractError(
            f"{type(model).__name__} has {len(matrix)} entity vectors, but the triples factory has "
            f"{len(indices)} entities; pass the factory the model was trained with."
        )
    names = [strip_angle_brackets(str(name)) for name in indices]
    return VectorLookup(names, matrix[list(indices.values())])


def _entity_matrix(representation: Representation) -> np.ndarray:
    """Return one row of real numbers per entity, computed without dropout."""
    training = representation.training
    representation.eval()
    values = representation(indices=None).detach().cpu().numpy()
    representation.train(training)
    flat = values.reshape(len(values), -1)
    return np.hstack([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat


def pykeen_result(thing: object) -> VectorLookup | None:
    """Return the vectors of a PyKEEN pipeline result, or None for any other object."""
    # only stored attributes: a property of an unknown object may raise anything
    attributes = getattr(thing, "__dict__", {})
    if hasattr(attributes.get("model"), "entity_representations") and "training" in attributes:
        return pykeen_vectors(attributes["model"], attributes["training"])
    if hasattr(thing, "entity_representations"):
        raise ContractError(
            f"{type(thing).__name__} has no entity names; pass the result of PyKEEN's pipeline, "
            f"or karat.ext.models.graph_libraries.pykeen_vectors(model, factory)."
        )
    return None


@dataclass(eq=False, repr=False)
class PickledVectors(VectorFile):
    """Base of encoders that look vectors up in another library's pickle, loaded once."""

    library: ClassVar[str] = ""
    size = None
    format = None

    path: str

    @property
    def reads_rows(self) -> bool:
        """Always false: a pickle is loaded as a whole."""
        return False

    def unavailable(self) -> str:
        """Return the missing library, or an empty string."""
        missing = find_spec(self.library) is None
        return str(MissingExtra(self.library, self.library)) if missing else ""

    def fingerprint(self) -> str:
        """Return a hash of the parameters and the files."""
        contents = [bytes.fromhex(sha256_of_file(file)) for file in self.files()]
        return sha256_of(repr(sorted(self.get_params().items())), *contents)

    def files(self) -> list[Path]:
        """Return the files that the vectors depend on."""
        raise ContractError(f"{type(self).__name__} has no files method.")

    def load(self) -> VectorLookup:
        """Load the files."""
        raise ContractError(f"{type(self).__name__} has no load method.")

    def _known(self) -> VectorLookup:
        if not hasattr(self, "known_"):
            if find_spec(self.library) is None:
                raise MissingExtra(self.library, self.library)
            files = self.files()
            try:
                self.known_ = self.load()
            except (ContractError, DataError):
                raise
            except Exception as error:  # loading a pickle may raise anything
                raise DataError(
                    f"{self.library} cannot load {files[0]}: {type(error).__name__}: {error}."
                ) from error
        return self.known_

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.get_params(deep=False))


class PyKeenFolder(PickledVectors):
    """Entity vectors of a folder written by PyKEEN's ``save_to_directory``.

    Loading its pickle ``trained_model.pkl`` can run code.
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
                    f"{self.path} has no {name}; expected a folder written by "
                    f"save_to_directory of a PyKEEN result."
                )
        return [folder / name for name in names]

    def load(self) -> VectorLookup:
        """Load the model."""
        import torch

        model, names = self.files()
        trained = torch.load(model, map_location="cpu", weights_only=False)
        return pykeen_vectors(
            trained, SimpleNamespace(entity_to_id=_read_entity_ids(names)), self.representation
        )


def _read_entity_ids(path: Path) -> dict[str, int]:
    """Return entity indices by name; PyKEEN's own reader drops an entity called NA."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return {row["label"]: int(row["id"]) for row in rows}


class GensimFile(PickledVectors):
    """Vectors of a file written by gensim's ``save``; loading it can run code.

    An entity is looked up; a text is the mean of its words.
    """

    library = "gensim"

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the mean vector of each text's words."""
        ids, vectors = self.vocabulary()
        return average_words(texts, ids, vectors)

    def files(self) -> list[Path]:
        """Return the file and the separate array files of a large model."""
        file = Path(self.path).expanduser()
        if not file.is_file():
            raise DataError(f"file not found: {self.path}.")
        return [file, *sorted(file.parent.glob(f"{escape(file.name)}.*.npy"))]

    def load(self) -> VectorLookup:
        """Load the file."""
        from gensim.utils import SaveLoad

        path = self.files()[0]
        vectors = keyed_vectors(SaveLoad.load(str(path)))
        if vectors is None:
            raise DataError(f"{path} contains neither gensim KeyedVectors nor a model with them.")
        return VectorLookup([strip_angle_brackets(str(name)) for name in vectors[0]], vectors[1])


def keyed_vectors(thing: object) -> tuple[list[Any], np.ndarray] | None:
    """Return names and vectors of gensim KeyedVectors or of a model that has them, or None."""
    keyed = getattr(thing, "wv", thing)  # Word2Vec has KeyedVectors in wv
    if not (hasattr(keyed, "key_to_index") and hasattr(keyed, "vectors")):
        return None
    # keys need not be in row order
    ids, rows = list(keyed.key_to_index), list(keyed.key_to_index.values())
    return ids, np.asarray(keyed.vectors)[rows]
