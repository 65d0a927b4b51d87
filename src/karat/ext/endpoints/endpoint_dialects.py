"""Dialects: how a kind of server is asked for vectors, and how it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from karat.ext.endpoints.endpoint_answers import (
    billed_tokens,
    header_tokens,
    indexed_vectors,
    reported_tokens,
)

if TYPE_CHECKING:
    from karat.ext.endpoints.endpoint_encoder import EndpointEncoder

ROLES = ("query", "document", None)


@dataclass(frozen=True)
class Dialect:
    """How a kind of server is asked and answers; the defaults are those of OpenAI.

    ``path`` follows the URL. ``hosts`` are those of the provider, whose key is in the environment
    variable ``key``. ``texts`` is the maximum number of texts of a request by default, ``input``
    and ``length`` are the keys of the texts and of the length of vectors. ``truncation`` holds the
    key and its values for texts that are refused or truncated if they are too long, ``packing``
    the key of packed vectors, ``types`` the input types of queries, documents and other texts.
    ``vectors`` and ``tokens`` read an answer; tokens may be in its headers.
    """

    path: str = "/embeddings"
    hosts: tuple[str, ...] = ()
    key: str = ""
    texts: int = 256
    input: str = "input"
    length: str = "dimensions"
    packing: str = ""
    truncation: tuple[str, Any, Any] | None = None
    types: tuple[str, str, str] = ("", "", "")
    more: Mapping[str, Any] = field(default_factory=dict)
    vectors: Callable[[Any], Any] = indexed_vectors
    tokens: Callable[[Any, Mapping[str, str]], Any] = reported_tokens

    def input_type(self, role: str | None) -> str:
        """Return the name of a role in this dialect, or an empty string."""
        return self.types[ROLES.index(role if role in ROLES else None)]

    def request(
        self,
        encoder: EndpointEncoder,
        texts: Sequence[str],
        *,
        role: str | None,
        truncate: bool,
        packed: bool,
    ) -> dict[str, Any]:
        """Return the body of a request."""
        body: dict[str, Any] = {self.input: list(texts), **self.more}
        if encoder.model:
            body["model"] = encoder.model
        if encoder.dimensions:
            body[self.length] = encoder.dimensions
        if self.packing and packed:
            body[self.packing] = "base64"
        if named := self.input_type(role):
            body["input_type"] = named
        if self.truncation is not None:
            key, *values = self.truncation
            body[key] = values[truncate]
        return body


DIALECTS = {
    "openai": Dialect(hosts=("api.openai.com",), key="OPENAI_API_KEY", packing="encoding_format"),
    "voyage": Dialect(
        hosts=("api.voyageai.com",),
        key="VOYAGE_API_KEY",
        texts=128,
        length="output_dimension",
        packing="encoding_format",
        truncation=("truncation", False, True),
        types=("query", "document", ""),
    ),
    "cohere": Dialect(
        path="/embed",
        hosts=("api.cohere.com", "api.cohere.ai"),
        key="COHERE_API_KEY",
        texts=96,
        input="texts",
        length="output_dimension",
        truncation=("truncate", "NONE", "END"),
        types=("search_query", "search_document", "classification"),
        more={"embedding_types": ["float"]},
        vectors=lambda answer: answer["embeddings"]["float"],
        tokens=billed_tokens,
    ),
    # tokens are in a header, and errors about the number of texts are handled
    "tei": Dialect(
        path="/embed",
        texts=32,
        input="inputs",
        truncation=("truncate", False, True),
        vectors=list,
        tokens=header_tokens,
    ),
    "ollama": Dialect(
        path="/api/embed",
        texts=64,
        truncation=("truncate", False, True),
        vectors=lambda answer: answer["embeddings"],
        tokens=lambda answer, headers: answer.get("prompt_eval_count"),
    ),
}
