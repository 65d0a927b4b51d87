"""Files of other libraries that are pickles: never opened because of their name alone."""

from __future__ import annotations

from pathlib import Path

from karat.errors import DataError

#: suffixes of gensim's pickles
GENSIM = (".kv", ".model")

#: name of the model file in a folder saved by PyKEEN
TRAINED = "trained_model.pkl"


def refuse_pickle(path: Path) -> None:
    """Raise DataError for the path of a pickle, with the definition that would load it."""
    by_gensim = path.suffix.lower() in GENSIM
    if (by_gensim or path.name == TRAINED) and path.is_file():
        name, folder = ("gensim", path) if by_gensim else ("pykeen", path.parent)
        raise DataError(
            f"{path} is a pickle, and loading it can run code; if you trust it, define a "
            f'model in a YAML file: {{extends: {name}, params: {{path: "{folder}"}}}} (--define).'
        )
