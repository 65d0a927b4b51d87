"""Encoders of the server of the tests, and the vectors that it sends."""

import numpy as np

from karat.ext.endpoints.endpoint_encoder import EndpointEncoder

from ...endpoint_server import text_vector

TEXTS = [f"text number {i} of {'many ' * (i % 7)}" for i in range(40)]
#: the routes of all dialects
ROUTES = {
    "openai": "/v1",
    "voyage": "/v1",
    "cohere": "/v2",
    "tei": "/embed",
    "ollama": "/api/embed",
}
KEY = "sk-Zq83-secret-key-0451"


def encoder_of(server, dialect="openai", **params):
    params = {"model": "words-small", "concurrency": 4, **params}
    return EndpointEncoder(server.url + ROUTES[dialect], dialect=dialect, **params)


def expected(texts, width=32):
    return np.array([text_vector(text, width) for text in texts])
