"""Processes that are killed while they request paid vectors, against a server that counts.

A short form runs by default; ``KARAT_FAULTS=full`` kills 1,000 times.
"""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from karat.ext.endpoints.endpoint_encoder import EndpointEncoder
from karat.ext.endpoints.endpoint_vectors import text_mark

from ..endpoint_server import serving
from ..ext.endpoints.accounts import make_account
from .long_form import FULL, share

pytest.importorskip("httpx")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

KILLS = 1_000 if FULL else 16
#: the part of the time of the long form that it may take, whatever it has reached
PART = 0.35
#: what a process has under way: requests, and texts of each
CONCURRENCY, BATCH = 3, 4
#: texts of an encoder; when all are there, another encoder follows
TEXTS = [f"text {i} of {'many ' * (i % 5)}" for i in range(400)]
#: dollars per million tokens, and what a run may spend: about 100 texts
PRICE, BUDGET = 1000.0, 0.6
#: processes at the same time
TOGETHER = 2


class Nursery:
    """The process that starts the others."""

    def __enter__(self):
        script = Path(__file__).with_name("endpoint_nursery.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def _answer(self, order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def start(self, **order):
        return self._answer(order)

    def code(self, pid):
        """Return the exit code of a process, negative if it was killed."""
        return self._answer({"wait": pid})


def order_of(server, account, revision, message, **more):
    encoder = {
        "url": f"{server.url}/v1", "model": "words-small", "revision": str(revision),
        "price_per_million_tokens": PRICE, "batch_texts": BATCH, "concurrency": CONCURRENCY,
    }  # fmt: skip
    sent = pickle.dumps(account.services).hex()
    return {"encoder": encoder, "services": sent, "texts": TEXTS, "message": str(message), **more}


def wait_for_request(server, begun, messages):
    """Wait until a request arrives, or until a process has no budget for one."""
    deadline = time.monotonic() + 5
    while server.requests == begun and time.monotonic() < deadline:
        if any(message.exists() for message in messages):
            break
        time.sleep(0.001)


def test_a_kill_pays_at_most_what_was_in_flight_twice_and_passes_no_budget(tmp_path):
    moments = random.Random(0)
    paid: Counter[tuple[int, str]] = Counter()
    lost: set[tuple[int, str]] = set()
    latest = time.monotonic() + (share(PART) if FULL else 300)
    kills = rounds = runs = revision = lost_in_all = most_lost = 0
    with serving(slow=0.004, width=24) as server, Nursery() as nursery:
        account, before = make_account(store=tmp_path, budget=BUDGET), 0
        while kills < KILLS and time.monotonic() < latest:
            order = order_of(server, account, revision, tmp_path / "message.txt")
            server.texts, begun = Counter(), server.requests
            pids = [nursery.start(**order) for _ in range(TOGETHER)]
            if moments.random() < 0.8:  # during its requests, otherwise also before them
                wait_for_request(server, begun, [Path(f"{order['message']}-{pid}") for pid in pids])
                time.sleep(moments.uniform(0.0, 0.12))
            else:
                time.sleep(moments.uniform(0.0, 0.25))
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            codes = [nursery.code(pid) for pid in pids]
            assert 4 not in codes, "a process failed"
            assert server.wait_for_silence()
            if server.requests > begun:
                kills += sum(code == -signal.SIGKILL for code in codes)
            rounds += 1
            paid.update({(revision, text): n for text, n in server.texts.items()})
            # never more than the budget, by what the server has counted
            assert (server.tokens - before) * PRICE / 1e6 <= BUDGET
            table = account.vectors(EndpointEncoder(**order["encoder"]).family())
            there = {text for text in TEXTS if text_mark("", text) in table}
            gone = {key for key in paid if key[0] == revision and key[1] not in there}
            new = server.texts.total() - len(set(server.texts) & there)
            assert new <= TOGETHER * CONCURRENCY * BATCH
            lost_in_all, most_lost = lost_in_all + new, max(most_lost, new)
            lost |= gone
            if 3 in codes:
                message = Path(f"{order['message']}-{pids[codes.index(3)]}").read_text()
                assert "of the budget of $0.60 are spent" in message
                account.database.close()
                account, before, runs = (
                    make_account(store=tmp_path, budget=BUDGET),
                    server.tokens,
                    runs + 1,
                )
            if len(there) == len(TEXTS):
                revision += 1
        # without a kill, the rest is delivered, and nothing that is there is paid again
        order = order_of(server, make_account(store=tmp_path), revision, tmp_path / "message.txt")
        assert nursery.code(nursery.start(**order)) == 0
    twice = {key: n - 1 for key, n in paid.items() if n > 1}
    print(
        f"{kills} kills during requests in {rounds} rounds, {runs} budgets spent, {revision} "
        f"encoders, {paid.total():,} texts paid, {sum(twice.values())} of them twice, "
        f"{lost_in_all} in flight at a kill, at most {most_lost} at once"
    )
    assert set(twice) <= lost, "a text was paid twice that was not in flight"
    assert sum(twice.values()) <= lost_in_all
    assert account.database.remarks == []
    account.database.close()
    assert not list(tmp_path.glob("room-*"))
