"""Queries and passages embedded by a server that misbehaves: rate, bill, and CPU time of Karat.

The server of the tests answers 10 % of the requests with 429 and Retry-After, 1 % with 500, drops
1 % of the connections and shuffles its answers. It counts every text, so that the counts and the
price of Karat can be compared with its own.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

TESTS = Path(__file__).resolve().parents[1] / "tests"
FAULTS = ["--busy", "0.1", "--broken", "0.01", "--dropped", "0.01", "--retry-after", "1"]
FAULTS += ["--answer", "shuffled", "--width", "64"]
QUERIES, PASSAGES = 1_000, 50_000
#: requests per minute
RATE = 600.0
#: dollars per million tokens
PRICE = 0.02
WORDS = 20_000
#: vectors that are read from the database, and their dimensions
STORED, STORED_WIDTH = 100_000, 384


def make_task(queries: int = QUERIES, passages: int = PASSAGES):
    """Return a search task: query i asks for passage i, with which it shares some words."""
    import dataclasses

    import numpy as np
    import pandas as pd

    from karat import Dataset, Task

    rng = np.random.default_rng(0)
    drawn = rng.integers(0, WORDS, (passages, 40))
    texts = [" ".join(f"word{w}" for w in row) + f" passage {i}" for i, row in enumerate(drawn)]
    queries_of_passages = [" ".join(f"word{w}" for w in row[:8]) + " ?" for row in drawn[:queries]]
    frame = pd.DataFrame({"query": queries_of_passages, "passage": texts[:queries]})
    data = Dataset.from_columns(frame, ["query"], "passage", name="passages", kind="items")
    more = pd.Series(texts[queries:], index=[f"p{i}" for i in range(queries, passages)])
    items = pd.concat([data.items, more.astype(data.items.dtype)])
    data = dataclasses.replace(data, items=items)
    return Task(
        "passages", data, metrics=["recall@10", "mrr@10"], probe={"use": "nearest"}, split="all"
    )


def client(address: str) -> None:
    """Evaluate once in this process; print the CPU seconds and the record as JSON."""
    import karat
    from karat.ext.endpoints.endpoint_encoder import EndpointEncoder

    encoder = EndpointEncoder(
        address,
        "words-small",
        batch_texts=50,
        concurrency=32,
        requests_per_minute=RATE,
        price_per_million_tokens=PRICE,
    )
    task, before = make_task(), _cpu()
    with tempfile.TemporaryDirectory() as output:
        (record,) = karat.evaluate({"endpoint": encoder}, [task], output=output)[0].records()
    print(json.dumps({"cpu": _cpu() - before, "record": record}))


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def run_client(url: str, cache: str) -> dict:
    command = [sys.executable, __file__, f"{url}/v1"]
    environment = {**os.environ, "KARAT_CACHE": cache, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def read_stored() -> float:
    """Return the CPU seconds in which a new database reads and checks all of its vectors."""
    import numpy as np

    from karat.core.services import RunServices, use_services
    from karat.ext.endpoints.endpoint_account import Account
    from karat.ext.endpoints.endpoint_encoder import EndpointEncoder
    from karat.ext.endpoints.endpoint_rows import ROW, ReceivedVectors
    from karat.ext.endpoints.endpoint_store import EndpointDatabase
    from karat.ext.endpoints.endpoint_vectors import text_mark

    encoder = EndpointEncoder("http://127.0.0.1:9/v1", "none")
    texts = [f"text {i}" for i in range(STORED)]
    rows = np.zeros(STORED, ROW)
    rows["mark"] = np.frombuffer(b"".join(text_mark("", text) for text in texts), ROW["mark"])
    vectors = np.random.default_rng(0).standard_normal((STORED, STORED_WIDTH), np.float32)
    with tempfile.TemporaryDirectory() as folder:
        database = EndpointDatabase(Path(folder))
        table = Account(RunServices(store=Path(folder))).vectors(encoder.family())
        answer = ReceivedVectors(rows, vectors, 0.1)
        database.write(lambda connection: table.insert(connection, answer))
        database.close()
        before = time.process_time()
        with use_services(RunServices(store=Path(folder))) as services:
            read = encoder.encode(texts)
            seconds = time.process_time() - before
            assert (read == vectors).all()
        services.close()
    return seconds


def stats(url: str) -> dict:
    with urlopen(f"{url}/stats") as answer:
        return json.load(answer)


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    server = subprocess.Popen(
        [sys.executable, str(TESTS / "endpoint_server.py"), *FAULTS],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    try:
        with tempfile.TemporaryDirectory() as cache:
            first, counted = run_client(url, cache), stats(url)
            run_client(url, cache)
            again = stats(url)["requests"] - counted["requests"]
    finally:
        server.terminate()
        server.wait()
    record, texts = first["record"], QUERIES + PASSAGES
    assert record["status"] == "ok" and counted["distinct"] == texts, record
    what = f"endpoint, {texts:,} texts, sent twice"
    yield what, counted["texts"] - texts, 0, "", f"by status {counted['statuses']}"
    yield "the same in a second run, requests", again, 0, "", ""
    rate = (counted["requests"] - 1) / (counted["last"] - counted["first"]) * 60
    yield "rate below or above the allowed", 100 * abs(rate / RATE - 1), 10, "%", f"{rate:.0f}/min"
    price = counted["tokens"] * PRICE / 1e6
    yield "price against the server's count", abs(record["price"] - price), 1e-9, "$", f"{price}"
    latency = [f"{record[f'request_seconds_{n}'] * 1e3:.0f}" for n in ("median", "p95")]
    speed = f"{record['texts_per_second']:.0f} texts/s, latency {', '.join(latency)} ms"
    reading = read_stored() / STORED * 1e3
    yield "CPU per stored vector", reading, 0.1, "ms", f"{STORED:,} of {STORED_WIDTH} dimensions"
    yield "CPU per text", first["cpu"] / texts * 1e3, 1, "ms", speed


if __name__ == "__main__":
    client(sys.argv[1])
