"""The API described as OpenAPI 3.1, and as a page for people, both from its table."""

from __future__ import annotations

import re
from html import escape
from http import HTTPStatus
from typing import Any

from karat import __version__
from karat.serve.asking import Endpoint
from karat.serve.endpoints import BASE, ENDPOINTS
from karat.serve.replies import POLICY
from karat.serve.schemas import SCHEMAS, named

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}code,pre{font:14px/1.5 ui-monospace,monospace}"
    "h2{margin:2rem 0 .2rem;font-size:1.1rem}dt{font-family:ui-monospace,monospace}"
    "dd{margin:0 0 .3rem 1.5rem}.token{border:1px solid;border-radius:.3rem;padding:0 .4rem}"
)
#: the page has a style of its own and nothing else
PAGE_POLICY = POLICY.replace("default-src 'none'", "default-src 'none'; style-src 'unsafe-inline'")
ABOUT = (
    "Runs, scores, predictions, boards and comparisons of one folder. Everything that is read is "
    "open to whoever reaches the server; what changes something needs a token. Errors are JSON: "
    "what was wrong, and a hint."
)


def describe() -> dict[str, Any]:
    """Return the description of the API."""
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(BASE + endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Karat",
            "version": __version__,
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": endpoint.answer.__name__,
        "summary": endpoint.summary,
        "parameters": [*_in_path(endpoint), *_in_query(endpoint)],
        "responses": _responses(endpoint),
    }
    if endpoint.takes:
        made["requestBody"] = {"required": True, "content": _taken(endpoint)}
    if endpoint.token:
        made["security"] = [{"token": []}]
    return made


def _in_path(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]


def _in_query(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "in": "query",
            "required": each.needed,
            "description": each.says,
            "schema": each.schema(),
        }
        for each in endpoint.parameters
    ]


def _taken(endpoint: Endpoint) -> dict[str, Any]:
    if endpoint.takes == "bytes":
        return {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return {"application/json": {"schema": named(endpoint.takes)}}


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    kinds = endpoint.returns
    if not any("/" in str(key) for key in kinds):
        kinds = {"application/json": kinds}
    content = {kind: {"schema": schema} for kind, schema in kinds.items()}
    made: dict[str, Any] = {str(endpoint.status): {"description": "Done", "content": content}}
    if endpoint.method == "GET":
        made |= {"304": {"description": "Nothing has changed"}}
        made |= {"206": {"description": "A part", "content": content}}
        made |= {"416": {"description": "There is no such part"}}
    refused = {400, 403, 405, 421, 503, *endpoint.refuses}
    refused |= {401} if endpoint.token else set()
    refused |= {413, 415} if endpoint.method != "GET" else set()
    error = {"application/json": {"schema": named("Error")}}
    for status in sorted(refused):
        made[str(status)] = {"description": HTTPStatus(status).phrase, "content": error}
    return made


def page() -> str:
    """Return the description as a page."""
    parts = [_section(endpoint) for endpoint in ENDPOINTS]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Karat: the API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head>\n<body><h1>Karat: the API</h1><p>{escape(ABOUT)}</p>"
        f'<p><a href="/">The page</a> · <a href="/report.html">as one file</a> · '
        f'<a href="{BASE}/openapi.json">OpenAPI 3.1</a></p>'
        "<pre>curl -s http://localhost:8765/api/v1/board</pre>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _section(endpoint: Endpoint) -> str:
    mark = ' <span class="token">token</span>' if endpoint.token else ""
    names = [each.name + (" (needed)" if each.needed else "") for each in endpoint.parameters]
    items = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(each.says)}</dd>"
        for name, each in zip(names, endpoint.parameters, strict=True)
    )
    head = f"<code>{endpoint.method} {escape(BASE + endpoint.path)}</code>{mark}"
    return f"<section><h2>{head}</h2><p>{escape(endpoint.summary)}.</p><dl>{items}</dl></section>"
