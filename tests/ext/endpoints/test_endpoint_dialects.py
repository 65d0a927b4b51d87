"""Dialects: each kind of server is asked in its own way, and answers the same vectors."""

import numpy as np
import pytest

from karat.core.services import current_services
from karat.ext.endpoints.endpoint_encoder import EndpointEncoder

from ...endpoint_server import count_tokens, serving
from .served_encoders import ROUTES, TEXTS, encoder_of, expected

pytest.importorskip("httpx")


@pytest.mark.parametrize("dialect", ROUTES)
def test_every_dialect_returns_the_vectors_of_the_server(dialect):
    with serving() as server:
        made = encoder_of(server, dialect, batch_texts=7)
        np.testing.assert_allclose(made.encode(TEXTS), expected(TEXTS), atol=1e-6)
        again = encoder_of(server, dialect, batch_texts=3, price_per_million_tokens=5.0)
        with current_services().counting() as used:
            np.testing.assert_array_equal(again.encode(TEXTS[::-1]), made.encode(TEXTS)[::-1])
    assert server.requests == 6 and server.texts.total() == len(TEXTS)
    assert used.facts()["tokens"] == 2 * sum(map(count_tokens, TEXTS)) == 2 * server.tokens


@pytest.mark.parametrize("dialect", ROUTES)
def test_dimensions_are_requested(dialect):
    with serving() as server:
        assert encoder_of(server, dialect, dimensions=8).encode(["a", "b"]).shape == (2, 8)


def test_packed_vectors_are_requested_and_plain_ones_accepted():
    with serving() as server:
        encoder_of(server).encode(TEXTS)
        assert server.bodies[0]["encoding_format"] == "base64"
    with serving(packs=False) as server:
        made = encoder_of(server, batch_texts=10)
        np.testing.assert_allclose(made.encode(TEXTS), expected(TEXTS), atol=1e-6)
        assert server.requests == 5 and "encoding_format" not in server.bodies[-1]


@pytest.mark.parametrize(
    ("dialect", "types"),
    [
        ("cohere", ["search_query", "search_document", "classification"]),
        ("voyage", ["query", "document", None]),
        ("openai", [None, None, None]),
    ],
)
def test_a_role_is_the_input_type_of_a_dialect(dialect, types):
    roles = ["query", "document", None]
    with serving() as server:
        made = encoder_of(server, dialect)
        for role in roles:
            made.encode(["same text"], role=role)
        assert [body.get("input_type") for body in server.bodies] == list(dict.fromkeys(types))
    assert [made.prompt_for(role) for role in roles] == [each or "" for each in types]


def test_a_prompt_is_a_prefix_by_role():
    prompt = {"query": "query: ", "document": "passage: "}
    with serving() as server:
        made = encoder_of(server, prompt=prompt)
        for role in ("query", "document", None, "query"):
            made.encode(["word"], role=role)
        assert sorted(server.texts.elements()) == ["passage: word", "query: word", "word"]
    assert made.prompt_for("query") == "query: "
    assert encoder_of(server, prompt="as: ").prompt_for(None) == "as: "


def test_the_dialect_follows_the_address():
    names = {
        "http://localhost:8080/v1": ("openai", "http://localhost:8080/v1/embeddings"),
        "http://localhost:8080/embed": ("tei", "http://localhost:8080/embed"),
        "http://localhost:11434": ("ollama", "http://localhost:11434/api/embed"),
        "http://localhost:11434/v1/": ("openai", "http://localhost:11434/v1/embeddings"),
        "https://api.cohere.com/v2": ("cohere", "https://api.cohere.com/v2/embed"),
        "https://api.voyageai.com/v1": ("voyage", "https://api.voyageai.com/v1/embeddings"),
    }
    for url, (dialect, address) in names.items():
        made = EndpointEncoder(url, "m")
        assert (made.spoken, made.address) == (dialect, address)
    assert made.key_variable() == "VOYAGE_API_KEY"
    assert EndpointEncoder("http://localhost:1/v1").key_variable() == ""
