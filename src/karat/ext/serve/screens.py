"""Pages of the server besides the report: upload, evaluation, and the documentation of the API.

They have the look of the report and its content security policy. The page of the API is made from
the description that FastAPI makes from the routes, so that the two cannot differ.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from itertools import islice
from string import Template
from typing import Any
from urllib.parse import quote, urlencode

from karat import __version__
from karat.errors import KaratError
from karat.ext.serve.server import MEGABYTE, ApiError, ServerSettings
from karat.ext.serve.snapshots import POLICY, ServedRun, Snapshot
from karat.models.vectors.vector_formats import VECTOR_FILE_SUFFIXES
from karat.reporting.page import ICON, page_files, policy

#: pages in the order of the navigation
SCREENS = {
    "/": "Leaderboard",
    "/upload": "Upload",
    "/evaluate": "Evaluate",
    "/geval": "GEval",
    "/docs": "API",
}
#: scripts of the report that these pages use too
TOOLS = ("10_tools.js", "12_state.js")
#: number of jobs in which an example for the API is searched
MAX_SEARCHED = 200
READ_ONLY = """
<section class="notice">
  <h2>This server is read-only</h2>
  <p>
    To allow uploads and evaluations, start it with a token:
    <code>karat serve DIR --token-file token.txt</code>
  </p>
</section>
"""
#: bodies of the examples by call: evaluations and files
ORDERS = {
    "add_evaluation": '{"suite": "quickstart", "models": ["onehot"], "tasks": ["penguins"]}',
    "add_geval_evaluation": '{"vectors": "vectors.txt", "tasks": ["EntRel"]}',
}
PACKED = "geval.zip"
FILES = {"add_vectors": "vectors.txt", "add_run": "run.zip"}


@dataclass(frozen=True)
class Screen:
    """A page: its HTML, and its headers."""

    body: str
    headers: dict[str, str]


def make_form(name: str, settings: ServerSettings) -> Screen:
    """Return the page "upload", "evaluate" or "geval"."""
    writable = settings.token is not None
    suffixes = ", ".join(VECTOR_FILE_SUFFIXES)
    body = Template(_asset(f"{name}.html")).substitute(
        disabled="" if writable else "disabled",
        token=_asset("token.html"),
        suffixes=escape(suffixes),
        megabytes=f"{settings.max_upload / MEGABYTE:,.0f}",
        constraint=escape(settings.constraint),
    )
    facts = {"writable": str(writable).lower(), "limit": settings.max_upload}
    notice = "" if writable else READ_ONLY
    return _screen(f"/{name}", notice + body, facts, _asset(f"{name}.js"))


@cache
def _asset(name: str) -> str:
    return files("karat.ext.serve").joinpath("html", name).read_text(encoding="utf-8")


def _screen(path: str, body: str, facts: Mapping[str, object], script: str = "") -> Screen:
    """Return a page with the frame that all of them have."""
    folder = files("karat.reporting").joinpath("html")
    scripts = [folder.joinpath(name).read_text(encoding="utf-8") for name in TOOLS]
    scripts += [source for source in (_asset("screens.js"), script) if source]
    rules = policy(scripts, live=True)
    title, style = SCREENS[path], "".join([*page_files(".css"), _asset("screens.css")])
    links = "".join(
        f'<li><a href="{address}"{" aria-current=page" if address == path else ""}>{name}</a></li>'
        for address, name in SCREENS.items()
    )
    data = " ".join(f'data-{key}="{escape(str(value))}"' for key, value in facts.items())
    text = (
        f'<!doctype html>\n<html lang="en" {data}><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title} – Karat</title><link rel="icon" href="data:image/svg+xml,{quote(ICON)}">'
        f'<style>{style}</style></head>\n<body><a class="skip" href="#main">Skip to the content</a>'
        '<header class="top"><div class="crown"><p class="brand">Karat</p></div>'
        f'<h1>{title}</h1></header><nav class="ways" aria-label="Pages"><ul>{links}</ul></nav>\n'
        "<noscript><main><section><p>This page needs JavaScript. The same can be done with curl: "
        'see <a href="/docs">the API</a>.</p></section></main></noscript>\n'
        f'<main id="main">{body}</main>\n<footer class="foot"><p>Karat {__version__}</p></footer>\n'
        + "".join(f"<script>{source}</script>\n" for source in scripts)
        + "</body></html>\n"
    )
    server_rules = [
        directive for directive in POLICY.split("; ") if directive.split()[0] not in rules
    ]
    return Screen(text, {"content-security-policy": "; ".join([rules, *server_rules])})


# -- the documentation of the API -----------------------------------------------------------


def make_api_page(description: Mapping[str, Any], values: Values, base: str) -> Screen:
    """Return the documentation of the API at the address ``base``, as ``http://localhost:8765``."""
    calls = list(list_calls(description))
    items = "".join(
        f'<li><a href="#{call.id}"><code>{call.method} {escape(call.path)}</code></a></li>'
        for call in calls
    )
    parts = [
        f'<section><h2>Calls</h2><p class="lead">{escape(description["info"]["description"])} '
        'The same as a file: <a href="/api/v1/openapi.json">OpenAPI 3.1</a>.</p>'
        f'<ul class="calls">{items}</ul></section>'
    ]
    for title, lead, writes in (
        ("Read", "Open to everyone who can reach the server.", False),
        ("Write", "Requires the token; the examples read it from KARAT_TOKEN.", True),
    ):
        chosen = (call for call in calls if call.writes == writes)
        text = "".join(call.to_html(description, values, base) for call in chosen)
        parts.append(f'<section><h2>{title}</h2><p class="lead">{lead}</p>{text}</section>')
    return _screen("/docs", "".join(parts), {"base": base})


@dataclass(frozen=True)
class Values:
    """Values for examples: what there is on this server, by call and parameter."""

    by_call: Mapping[str, Mapping[str, str]]
    general: Mapping[str, str]

    def get(self, call: str, name: str) -> str:
        """Return the value of a parameter; its name in capitals if there is none."""
        value = self.by_call.get(call, {}).get(name)
        return value or self.general.get(name) or name.upper()

    def with_geval(self, server: Any) -> Values:
        """Return the same values with a result and a run of GEval, if there are some."""
        results, runs = server.results(), []
        with suppress(ApiError):  # damaged scores
            runs = server.runs()
        general = {"result": results[0]["name"]} if results else {}
        compared = {"run": runs[0]["id"]} if runs else {}
        by_call = {**self.by_call, "get_geval_comparison": compared}
        return Values(by_call, {**self.general, **general})


def example_values(snapshot: Snapshot, evaluations: list[str], vectors: list[str]) -> Values:
    """Return values for examples that work on this server."""
    runs = list(snapshot.runs.values())
    counts = Counter(run.model for run in runs)
    models = [run.model if counts[run.model] == 1 else run.id for run in runs]
    general = {"suite": "quickstart", "name": "vectors.txt", "fold": "0"}
    general |= {"run": runs[0].id, "task": runs[0].about["tasks"][0]["name"]} if runs else {}
    general |= dict(zip(("a", "b"), models, strict=False))
    general |= {"id": evaluations[0]} if evaluations else {}
    jobs = [(run, record) for run in runs for record in run.records()[:MAX_SEARCHED]]
    jobs = [job for job in jobs if isinstance(job[1]["fold"], int)][:MAX_SEARCHED]
    predicted = next((_job(*job) for job in jobs if _has_predictions(*job)), {})
    logged = next((_job(*job) for job in jobs if job[0].log(job[1]).is_file()), {})
    stored = {"name": vectors[0]} if vectors else {}
    by_call = {"get_log": logged, "remove_vectors": stored, "add_run": {"name": "uploaded-run"}}
    by_call |= dict.fromkeys(("get_predictions", "get_predictions_file"), predicted)
    return Values(by_call, general)


def _job(run: ServedRun, record: Mapping[str, Any]) -> dict[str, str]:
    return {"run": run.id, "task": str(record["task"]), "fold": str(record["fold"])}


def _has_predictions(run: ServedRun, record: Mapping[str, Any]) -> bool:
    try:
        folder = run._view_folder(str(record["task"]), record["fold"], "clean")
    except (OSError, KaratError):
        return False
    return (folder / "predictions.csv").is_file() and (folder / "metadata.json").is_file()


@dataclass(frozen=True)
class Call:
    """A method and a path of the API, as OpenAPI describes it."""

    method: str
    path: str
    operation: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The name of the function."""
        return str(self.operation["operationId"])

    @property
    def writes(self) -> bool:
        """Whether the token is required."""
        return "security" in self.operation

    @property
    def parameters(self) -> list[Mapping[str, Any]]:
        """The parameters in the path, the query and the header."""
        return list(self.operation.get("parameters", ()))

    def to_html(self, description: Mapping[str, Any], values: Values, base: str) -> str:
        """Return the part of the page about this call."""
        shade = "method writes" if self.writes else "method"
        examples = {"curl": self.curl(values, base), "Python": self.python(values, base)}
        example_parts = "".join(
            f"<details{' open' if name == 'curl' else ''}><summary>{name}</summary>"
            f'<pre tabindex="0" data-example="{name}" data-call="{self.id}">{escape(text)}</pre>'
            "</details>"
            for name, text in examples.items()
        )
        return (
            f'<article class="call" id="{self.id}"><h3><span class="{shade}">{self.method}</span>'
            f"<code>{escape(self.path)}</code></h3><p>{escape(self.operation['summary'])}.</p>"
            f"{self._facts(description)}{example_parts}</article>"
        )

    def _facts(self, description: Mapping[str, Any]) -> str:
        """Return the parameters, and the fields and media types of the response."""
        rows = [(f"<code>{escape(name)}</code>", text) for name, text in self._inputs(description)]
        code = next(code for code in self.operation["responses"] if code.startswith("2"))
        content = self.operation["responses"][code].get("content", {})
        schema = _resolved(content.get("application/json", {}).get("schema", {}), description)
        rows.append(("response", f"{code}, {' or '.join(content)}"))
        fields = ", ".join(schema.get("properties", ()))
        rows += [("fields", fields)] if fields else []
        return "<dl>" + "".join(f"<dt>{k}</dt><dd>{escape(v)}</dd>" for k, v in rows) + "</dl>"

    def _inputs(self, description: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield every parameter and key of the body with its type and what it is."""
        for parameter in self.parameters:
            kind = _type_of(parameter["schema"])
            kind = kind[0].upper() + kind[1:] + (", required" if parameter["required"] else "")
            yield parameter["name"], f"{parameter.get('description', '')} {kind}."
        body = self.operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        schema = _resolved(body.get("schema", {}), description)
        for name, entry in schema.get("properties", {}).items():
            needed = ", required" if name in schema.get("required", ()) else ""
            yield name, f"{entry.get('description', '')} {_type_of(entry)}{needed}.".strip()

    # -- examples -------------------------------------------------------------------------------

    def url(self, values: Values, base: str) -> str:
        """Return an address with values for everything that is required."""
        path, query = self.path, {}
        for parameter in self.parameters:
            value = values.get(self.id, parameter["name"])
            if parameter["in"] == "path":
                path = path.replace(f"{{{parameter['name']}}}", quote(value, safe=""))
            elif parameter["in"] == "query" and parameter["required"]:
                query[parameter["name"]] = value
        return f"{base}{path}" + (f"?{urlencode(query)}" if query else "")

    def curl(self, values: Values, base: str) -> str:
        """Return the call as a command."""
        words = ["curl", "-s"]
        if self.id == "follow_events":
            words += ["-N", "--max-time", "5"]
        if self.writes:
            words += [] if self._content else ["-X", self.method]
            words += ["-H", '"Authorization: Bearer $KARAT_TOKEN"']
        if self._content:
            words += ["-H", shlex.quote(f"Content-Type: {self._content}")]
            order = ["-d", shlex.quote(ORDERS.get(self.id, ""))]
            words += order if self._is_json else ["--data-binary", f"@{FILES[self.id]}"]
        if self._is_zip:
            words += ["-o", PACKED, "-w", "'%{size_download} bytes\\n'"]
        return " ".join([*words, shlex.quote(self.url(values, base))])

    def python(self, values: Values, base: str) -> str:
        """Return the call as a script that needs the standard library only."""
        url = json.dumps(self.url(values, base))
        lines = ["import json", "from urllib.request import urlopen", ""]
        opened = f"urlopen({url})"
        if self.writes:
            body = f"json.dumps({ORDERS[self.id]}).encode()" if self._is_json else ""
            body = body or (f'open("{FILES[self.id]}", "rb").read()' if self._content else "None")
            kind = f', "Content-Type": "{self._content}"' if self._content else ""
            lines = ["import json, os", "from urllib.request import Request, urlopen", ""]
            lines += ["token = os.environ['KARAT_TOKEN']", f"data = {body}"]
            lines += [f'headers = {{"Authorization": f"Bearer {{token}}"{kind}}}']
            lines += [f'request = Request({url}, data, headers, method="{self.method}")']
            opened = "urlopen(request)"
        lines += [f"with {opened} as response:", *(f"    {line}" for line in self._print())]
        return "\n".join(lines)

    def _print(self) -> Iterator[str]:
        answer = next(iter(self.operation["responses"].values())).get("content", {})
        if self.id == "follow_events":
            yield from ("for line in response:", "    print(line.decode(), end='')")
            yield from ("    if line.startswith(b'data:'):", "        break")
        elif self._is_zip:
            yield f'print(open("{PACKED}", "wb").write(response.read()), "bytes")'
        else:
            read = "json.load(response)" if "application/json" in answer else ""
            yield f"print({read or 'response.read().decode()'})"

    @property
    def _content(self) -> str:
        return next(iter(self.operation.get("requestBody", {}).get("content", {})), "")

    @property
    def _is_zip(self) -> bool:
        answer = next(iter(self.operation["responses"].values()))
        return "application/zip" in answer.get("content", {})

    @property
    def _is_json(self) -> bool:
        return self._content == "application/json"


def list_calls(description: Mapping[str, Any]) -> Iterator[Call]:
    """Yield the calls of an OpenAPI description."""
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            yield Call(method.upper(), path, operation)


def _resolved(schema: Mapping[str, Any], description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema, or the one it refers to."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    resolved: Mapping[str, Any] = description["components"]["schemas"][name] if name else schema
    return resolved


def _type_of(schema: Mapping[str, Any]) -> str:
    """Return a type in words: its values, or its name and its default.

    >>> _type_of({"enum": ["task", "kind"]}), _type_of({"type": "integer", "default": 0})
    ('task or kind', 'integer (default 0)')
    >>> _type_of({"type": "array", "items": {"type": "string"}, "default": []})
    'list of string'
    """
    if "enum" in schema:
        words = " or ".join(map(str, schema["enum"]))
    elif schema.get("type") == "array":
        words = f"list of {_type_of(schema['items'])}"
    else:
        options = islice(schema.get("anyOf", ()), 3)
        words = str(
            schema.get("type") or schema.get("const") or " or ".join(map(_type_of, options))
        )
    default = schema.get("default")
    return words if default in (None, [], "") else f"{words} (default {default})"
