"""Karat's models as encoders of mteb."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.core.embeddings import embed
from karat.errors import DefinitionError
from karat.models.model import encoder_identity, import_extra

SEED = 42


class Encoder:
    """A model of Karat as an encoder for ``mteb.evaluate``.

    mteb's prompt type becomes the role of the texts (``"query"`` or ``"document"``); without one,
    the role is the type of the task, such as ``"STS"``. Encoders with prompts use that of the role.

    Parameters
    ----------
    model
        A model as ``karat.evaluate`` takes it: a name, a file of vectors, an object, a function.
    name
        The name of the model in mteb's results. Default: that of the model.
    fit_on
        Texts on which an encoder that is not pretrained, such as ``"tfidf"``, is fitted.
    """

    def __init__(
        self, model: Any, name: str | None = None, *, fit_on: Sequence[str] | None = None
    ) -> None:
        mteb = import_extra("mteb", "mteb")
        self.model = found = Catalog().model(model)
        if found.role != "encoder" or found.variant is not None:
            what = "a variant" if found.variant is not None else f"a {found.role}"
            raise DefinitionError(f"{found.name}: mteb needs an encoder, this is {what}.")
        if found.unavailable:
            raise DefinitionError(f"{found.name}: {found.unavailable}.")
        if found.takes is not None and "text" not in found.takes:
            raise DefinitionError(f"{found.name}: mteb needs an encoder of texts.")
        self.encoder = found.fresh(SEED, "classification")
        if not found.stateless:
            if fit_on is None:
                raise DefinitionError(
                    f"{found.name} is not pretrained: pass the texts to fit it on, "
                    f"Encoder({found.name!r}, fit_on=texts)."
                )
            self.encoder = self.encoder.fit(pd.Series(list(fit_on), dtype=object))
        self.mteb_model_meta = _metadata(mteb, name or found.name, encoder_identity(found, model))

    def encode(
        self,
        inputs: Any,
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **_: Any,
    ) -> np.ndarray:
        """Return one row per text of a data loader of mteb."""
        texts = pd.Series([text for batch in inputs for text in batch["text"]], dtype=object)
        role = str(getattr(prompt_type, "value", None) or task_metadata.type)
        rows = pd.DataFrame({"text": texts.index})
        data = Dataset(
            "texts", texts, rows, np.zeros(len(texts)), "regression", "text", roles=(role,)
        )
        vectors = embed(self.encoder, data, self.model.name).of(data, "text")
        unknown = np.isnan(vectors[:, 0])
        if unknown.any():
            warnings.warn(
                f"{self.model.name} has no vector for {unknown.sum()} of {len(texts)} texts; mteb "
                f"gets zeros.",
                stacklevel=2,
            )
        return np.nan_to_num(vectors)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosines of all pairs of vectors."""
        cosines = import_extra("mteb.similarity_functions", "mteb").cos_sim
        return cosines(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosines of the vectors in the same rows."""
        cosines = import_extra("mteb.similarity_functions", "mteb").pairwise_cos_sim
        return cosines(embeddings1, embeddings2)


def _metadata(mteb: Any, name: str, identity: str | None) -> Any:
    """Return the metadata of a model for mteb; the revision is a hash of the model."""
    models = import_extra("mteb.models.model_meta", "mteb")
    named = name if "/" in name else f"karat/{name}"  # mteb wants an organization
    return models.ModelMeta.create_empty(
        overwrites={
            "name": named,
            "revision": (identity or "no_revision_available")[:40],
            "modalities": ["text"],
            "similarity_fn_name": models.ScoringFunction.COSINE,
        }
    )
