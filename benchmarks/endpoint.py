"""Queries and passages embedded by a server that misbehaves: rate, bill, and CPU time of Karat.

The server of the tests answers 10 % of the requests with 429 and Retry-After, 1 % with 500, drops
1 % of the connections and shuffles its answers. It counts every text, so that the counts and the
price of Karat can be compared with its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

TESTS = Path(__file__).resolve().parents[1] / "tests"
FAULTS = ["--busy", "0.1", "--broken", "0.01", "--dropped", "0.01", "--retry-after", "1"]
#: dollars per million tokens
PRICE = 0.02
WORDS = 20_000


def make_task(queries: int, passages: int):
    """Return a search task: query i asks for passage i, with which it shares some words."""
    import dataclasses

    import numpy as np
    import pandas as pd

    from karat import Dataset, Task

    rng = np.random.default_rng(0)
    drawn = rng.integers(0, WORDS, (passages, 40))
    texts = [" ".join(f"word{w}" for w in row) + f" passage {i}" for i, row in enumerate(drawn)]
    asked = [" ".join(f"word{w}" for w in row[:8]) + " ?" for row in drawn[:queries]]
    frame = pd.DataFrame({"query": asked, "passage": texts[:queries]})
    data = Dataset.from_columns(frame, ["query"], "passage", name="passages", kind="items")
    more = pd.Series(texts[queries:], index=[f"p{i}" for i in range(queries, passages)])
    items = pd.concat([data.items, more.astype(data.items.dtype)])
    data = dataclasses.replace(data, items=items)
    return Task(
        "passages", data, metrics=["recall@10", "mrr@10"], probe={"use": "nearest"}, split="all"
    )


def client(address: str, queries: int, passages: int, rate: float) -> None:
    """Evaluate once in this process; print the CPU seconds and the record as JSON."""
    import karat
    from karat.models.contrib.endpoints import EndpointEncoder

    task = make_task(queries, passages)
    made = EndpointEncoder(
        address,
        "words-small",
        batch_texts=50,
        concurrency=32,
        requests_per_minute=rate,
        price_per_million_tokens=PRICE,
    )
    before, begun = _cpu(), time.perf_counter()
    run = karat.evaluate({"endpoint": made}, [task], output=tempfile.mkdtemp())[0]
    (record,) = run.records()
    cpu, wall = _cpu() - before, time.perf_counter() - begun
    print(json.dumps({"cpu": cpu, "wall": wall, "record": record}))


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def run_client(url: str, given: argparse.Namespace, cache: str) -> dict:
    command = [sys.executable, __file__, "--client", f"{url}/v1"]
    sizes = {"--queries": given.queries, "--passages": given.passages, "--rate": given.rate}
    command += [str(part) for pair in sizes.items() for part in pair]
    environment = {**os.environ, "KARAT_CACHE": cache, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def stats(url: str) -> dict:
    with urlopen(f"{url}/stats") as answer:
        return json.load(answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--passages", type=int, default=50_000)
    parser.add_argument("--rate", type=float, default=600.0, help="allowed requests per minute")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client:
        return client(given.client, given.queries, given.passages, given.rate)
    script = [sys.executable, str(TESTS / "endpoint_server.py"), "--width", "64", *FAULTS]
    server = subprocess.Popen([*script, "--answer", "shuffled"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    try:
        with tempfile.TemporaryDirectory() as cache:
            first = run_client(url, given, cache)
            counted = stats(url)
            second = run_client(url, given, cache)
            show(given, first, counted)
            sent = stats(url)["requests"] - counted["requests"]
            print(f"second run: {sent} requests, {second['cpu']:.1f} CPU s")
    finally:
        server.terminate()
        server.wait()


def show(given: argparse.Namespace, first: dict, counted: dict) -> None:
    record, texts = first["record"], given.queries + given.passages
    rate = (counted["requests"] - 1) / (counted["last"] - counted["first"]) * 60
    price = counted["tokens"] * PRICE / 1e6
    median, high = (record[f"request_seconds_{name}"] * 1e3 for name in ("median", "p95"))
    speed, cpu = record["texts_per_second"], first["cpu"]
    lines = [
        f"texts: {texts:,}; answered {counted['texts']:,}, {counted['distinct']:,} distinct",
        f"requests: {counted['requests']:,}, by status {counted['statuses']} (0: dropped)",
        f"rate: {rate:,.0f} of {given.rate:,.0f} requests per minute, {rate / given.rate:.1%}",
        f"tokens: {record['tokens']:,}, the server's count {counted['tokens']:,}",
        f"price: ${record['price']:.8f}, by the server's count ${price:.8f}",
        f"latency: median {median:.1f} ms, 95 % {high:.1f} ms, {speed:,.0f} texts per second",
        f"CPU: {cpu:.1f} s, {cpu / texts * 1e3:.3f} ms per text (wall {first['wall']:.0f} s)",
        f"status {record['status']}, {record['views'][0]['scores']}",
    ]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
