"""Objects of other libraries that are recognized as models, and names with a prefix."""

from __future__ import annotations

from pathlib import Path

from karat.ext.models.graph_libraries import keyed_vectors
from karat.ext.models.sentence_models import (
    SentenceTransformerEncoder,
    SentenceTransformerObject,
    is_sentence_transformer,
)
from karat.models.text_encoders import WordVectors


def sentence_transformer(thing: object) -> SentenceTransformerObject | None:
    """Return the encoder of a SentenceTransformer, or None for any other object."""
    return SentenceTransformerObject(thing) if is_sentence_transformer(thing) else None


def gensim_vectors(thing: object) -> WordVectors | None:
    """Return the encoder of vectors of gensim, or None for any other object."""
    keyed = keyed_vectors(thing)
    return None if keyed is None else WordVectors(*keyed)


def named_transformer(name: str) -> tuple[str, SentenceTransformerEncoder]:
    """Return the name and the encoder of ``"sentence-transformers:NAME"``."""
    encoder = SentenceTransformerEncoder(name.partition(":")[2])
    return Path(encoder.name).name, encoder
