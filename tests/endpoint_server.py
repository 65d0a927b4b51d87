"""A small embedding server that can misbehave on purpose, for tests, docs and benchmarks.

It speaks all dialects of ``karat.ext.endpoints``. The vector of a text is the sum of
random vectors of its words, so texts that share words are similar. ``GET /stats`` returns what the
server counted itself. Run it: ``python tests/endpoint_server.py --port 8080``.
"""

from __future__ import annotations

import argparse
import base64
import functools
import hashlib
import json
import socket
import threading
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

MODELS = ["words-small", "words-large"]


@functools.lru_cache(maxsize=200_000)
def word_vector(word: str, width: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).standard_normal(width).astype(np.float32)


def text_vector(text: str, width: int) -> np.ndarray:
    rows = [word_vector(word, width) for word in text.lower().split()] or [np.ones(width)]
    whole = np.sum(rows, axis=0, dtype=np.float32)
    return whole / np.linalg.norm(whole)


def count_tokens(text: str) -> int:
    return len(text.split()) + 2


class EndpointServer(ThreadingHTTPServer):
    """The server; its attributes are how it behaves and what it has counted.

    ``busy``, ``broken`` and ``dropped`` are shares of requests: answered with 429, with 500, or not
    at all. ``answer`` changes an answer on purpose, ``key`` is the only accepted key, ``limit``
    the maximum number of tokens of a text, ``most`` that of texts of a request.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0, **how) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.width = how.pop("width", 32)
        self.busy, self.broken, self.dropped = (
            how.pop(name, 0.0) for name in ("busy", "broken", "dropped")
        )
        self.retry_after = how.pop("retry_after", "0")
        self.slow = how.pop("slow", 0.0)
        self.answer = how.pop("answer", "")
        self.key = how.pop("key", "")
        self.limit = how.pop("limit", None)
        self.most = how.pop("most", None)
        self.packs = how.pop("packs", True)
        self.script = list(how.pop("script", ()))
        assert not how, how
        self.random = np.random.default_rng(0)
        self.lock = threading.Lock()
        self.texts: Counter[str] = Counter()
        self.requests = self.tokens = self.refused = self.connections = 0
        self.times: list[float] = []
        self.bodies: list[dict] = []
        self.statuses: Counter[int] = Counter()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def fault(self) -> int:
        """Return the status of a request that fails on purpose, 0 for a lost one, else 200."""
        if self.script:
            return self.script.pop(0)
        draw = self.random.random()
        for share, status in ((self.busy, 429), (self.broken, 500), (self.dropped, 0)):
            if draw < share:
                return status
            draw -= share
        return 200

    def stats(self) -> dict:
        return {
            "requests": self.requests,
            "texts": self.texts.total(),
            "distinct": len(self.texts),
            "tokens": self.tokens,
            "statuses": {str(key): value for key, value in sorted(self.statuses.items())},
            "first": min(self.times, default=None),
            "last": max(self.times, default=None),
        }

    def process_request(self, request, client_address) -> None:
        with self.lock:
            self.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request) -> None:
        super().shutdown_request(request)
        with self.lock:
            self.connections -= 1

    def wait_for_silence(self, seconds: float = 60.0) -> bool:
        """Wait until all that clients have sent before they ended is read and counted.

        Connections are accepted in their order: when a new one is answered, those before it are.
        """
        with urllib.request.urlopen(f"{self.url}/v1/models") as answer:
            answer.read()
        deadline = time.monotonic() + seconds
        while self.connections and time.monotonic() < deadline:
            time.sleep(0.001)
        return not self.connections

    def handle_error(self, request, client_address) -> None:
        """Stay silent about connections that clients close."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: EndpointServer

    def log_message(self, *_: object) -> None:
        """Stay silent."""

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:
        if self.path == "/stats":
            self.send(200, self.server.stats())
        elif self.path == "/v1/models":
            self.send(200, {"data": [{"id": name} for name in MODELS]})
        else:
            self.send(404, {"error": {"message": f"no route {self.path}"}})

    def do_POST(self) -> None:
        served = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with served.lock:
            served.requests += 1
            served.times.append(time.time())
            served.bodies.append({**body, "path": self.path})
            status = served.fault()
            served.statuses[status] += 1
        if served.slow:
            time.sleep(served.slow)
        if status == 0:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif status == 429:
            content = {"error": {"message": "too many requests"}}
            self.send(429, content, {"retry-after": served.retry_after})
        elif status != 200:
            self.send(status, {"error": {"message": f"failed on purpose: {status}"}})
        else:
            self.embed(body)

    def embed(self, body: dict) -> None:
        served = self.server
        given = self.headers.get("authorization", "").removeprefix("Bearer ")
        if served.key and given != served.key:
            return self.send(401, {"error": {"message": f"Incorrect API key provided: {given}"}})
        if served.answer == "html":
            return self.send(200, "<!doctype html><html><body>Hello</body></html>")
        texts = next(body[name] for name in ("input", "inputs", "texts") if name in body)
        if "model" in body and body["model"] not in MODELS:
            name = body["model"]
            return self.send(404, {"error": {"message": f"The model `{name}` does not exist"}})
        if served.most and len(texts) > served.most:
            text = f"batch size {len(texts)} > maximum allowed batch size {served.most}"
            return self.send(413, {"error": text, "error_type": "validation"})
        if body.get("encoding_format") == "base64" and not served.packs:
            return self.send(422, {"detail": "encoding_format: must be float"})
        truncates = body.get("truncate") in (True, "END") or body.get("truncation") is True
        longest = max(map(count_tokens, texts))
        if served.limit and longest > served.limit and not truncates:
            text = f"This model's maximum context length is {served.limit} tokens, however you "
            text += f"requested {longest} tokens"
            return self.send(400, {"error": {"message": text}})
        width = body.get("dimensions") or body.get("output_dimension") or served.width
        tokens = sum(min(count_tokens(text), served.limit or 10**9) for text in texts)
        with served.lock:
            served.texts.update(texts)
            served.tokens += tokens
        self.reply(body, [text_vector(text, width) for text in texts], tokens)

    def reply(self, body: dict, vectors: list[np.ndarray], tokens: int) -> None:
        answer = self.server.answer
        if answer == "count":
            vectors = vectors[1:] or [*vectors, *vectors]
        if answer == "width":
            vectors = [vector[: len(vector) - (i % 2)] for i, vector in enumerate(vectors)]
        if answer == "zero":
            vectors = [np.zeros_like(vector) for vector in vectors]
        if answer == "nan":
            vectors[-1] = np.full_like(vectors[-1], np.nan)
        rows = [vector.tolist() for vector in vectors]
        if body.get("encoding_format") == "base64":
            rows = [base64.b64encode(v.astype("<f4").tobytes()).decode() for v in vectors]
        if self.path == "/v1/embeddings":
            data = [{"index": i, "embedding": row} for i, row in enumerate(rows)]
            if answer == "shuffled":
                with self.server.lock:
                    self.server.random.shuffle(data)
            if answer == "index":
                data[-1]["index"] = 0
            usage = {} if answer == "no usage" else {"usage": {"total_tokens": tokens}}
            self.send(200, {"data": data, **usage})
        elif self.path == "/embed":
            self.send(200, rows, {"x-compute-tokens": str(tokens)})
        elif self.path == "/api/embed":
            self.send(200, {"embeddings": rows, "prompt_eval_count": tokens})
        else:
            billed = {"billed_units": {"input_tokens": tokens}}
            self.send(200, {"embeddings": {"float": rows}, "meta": billed})

    def send(self, status: int, content: object, headers: dict[str, str] | None = None) -> None:
        raw = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(status)
        kind = "text/html" if isinstance(content, str) else "application/json"
        for name, value in {"content-type": kind, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


@contextmanager
def serving(**how):
    """Serve in a thread of this process."""
    server = EndpointServer(**how)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    for name in ("busy", "broken", "dropped", "slow"):
        parser.add_argument(f"--{name}", type=float, default=0.0)
    for name in ("retry-after", "answer", "key"):
        parser.add_argument(f"--{name}", default="0" if name == "retry-after" else "")
    parser.add_argument("--width", type=int, default=32)
    server = EndpointServer(**vars(parser.parse_args()))
    print(server.url, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
