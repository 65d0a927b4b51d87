"""Disks that fill up while vectors are paid for: none is paid twice, and the message says why.

A short form runs by default; ``KARAT_FAULTS=full`` takes 20 sizes of each kind. Small file systems
are mounted where that is allowed (root); the limit of the size of files works everywhere.
"""

import os
import pickle
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from karat.core.services import RunServices
from karat.errors import Postponed
from karat.ext.endpoints.endpoint_encoder import EndpointEncoder
from karat.ext.endpoints.endpoint_store import EndpointDatabase
from karat.ext.endpoints.endpoint_vectors import VectorTable

from ..endpoint_server import serving, text_vector
from ..ext.endpoints.accounts import make_account, use_account
from .disks import small_disk
from .long_form import FULL
from .test_endpoint_kills import Nursery
from .test_endpoint_locks import SUITE

pytest.importorskip("httpx")

WIDTH = 512
TEXTS = [f"text {i} of {'many ' * (i % 7)}" for i in range(600)]
#: bytes that the vectors take
WHOLE = 4 * WIDTH * len(TEXTS)
#: sizes of a disk, from none of the vectors to almost all of them
SIZES = np.linspace(0.25, 4.5, 20 if FULL else 3) * 2**20


def encoder_of(server):
    return EndpointEncoder(
        f"{server.url}/v1", "words-small", batch_texts=10, concurrency=4, dimensions=WIDTH
    )


def encode(server, folder):
    """Encode all texts as a new process would; return the vectors."""
    with use_account(make_account(store=folder)) as account:
        database = account.database
        try:
            return encoder_of(server).encode(TEXTS)
        finally:
            database.close()
            database._tables.clear()  # what is only in memory is gone


def check_message(message, folder):
    assert re.search(rf"{folder}/endpoints-1\.sqlite: (No space left|File too large)", message)
    assert "--resume" in message
    pattern = r"the ([\d,]+) vectors that are missing need ([\d.]+) MB of free space"
    missing, megabytes = re.search(pattern, message).groups()
    assert 0 < int(missing) <= len(TEXTS)
    return int(float(megabytes) * 1e6)


@pytest.mark.parametrize("size", SIZES)
def test_a_full_disk_stops_the_run_before_it_pays_for_what_it_cannot_store(tmp_path, size):
    folder = tmp_path / "disk"
    with small_disk(folder, size), serving() as server:
        try:
            encode(server, folder)
        except Postponed as error:
            stopped, needed = True, check_message(str(error), folder)
        else:
            stopped, needed = False, 0
        assert stopped == (server.texts.total() < len(TEXTS))
        paid = server.texts.total()
        table = VectorTable(EndpointDatabase(folder), encoder_of(server).family())
        table.refresh()
        assert len(table._places) + table.unsaved == paid, "a paid vector is gone"
        table.database.close()
        # the space that the message names is enough
        used = shutil.disk_usage(folder).used
        options = f"remount,size={used + needed}"
        subprocess.run(["mount", "-o", options, str(folder)], check=True)
        vectors = encode(server, folder)
        assert set(server.texts.values()) == {1} and server.texts.total() == len(TEXTS)
        print(f"{size / 2**20:.2f} MB: {paid} paid, then {needed / 1e6:.1f} MB were asked for")
    np.testing.assert_allclose(vectors, [text_vector(text, WIDTH) for text in TEXTS], atol=1e-6)


def test_a_run_of_three_models_on_a_full_disk_pays_each_text_once(tmp_path):
    """The disk of the cache is full before the first model is done; then there is room again."""
    folder = tmp_path / "disk"
    texts = [f"{'apple pear' if i % 2 else 'iron zinc'} number {i}" for i in range(300)]
    rows = [f"{text},{'ab'[i % 2]}" for i, text in enumerate(texts)]
    (tmp_path / "topics.csv").write_text("\n".join(["text,y", *rows]) + "\n")
    (tmp_path / "suite.yaml").write_text(SUITE)
    with small_disk(folder, 1.75 * 2**20), serving(width=WIDTH) as server:
        models = "".join(
            f"  model-{i}: {{use: endpoint, params: {{url: '{server.url}/v1', revision: '{i}',\n"
            f"    model: words-small, batch_texts: 10, dimensions: {WIDTH}}}}}\n"
            for i in range(3)
        )
        (tmp_path / "models.yaml").write_text(f"models:\n{models}")
        call = [sys.executable, "-m", "karat", "run", "mine", "-o", "out", "--define", "suite.yaml"]
        call += ["--define", "models.yaml", *(f"-mmodel-{i}" for i in range(3))]

        def run(*more):
            return subprocess.run(
                [*call, *more], cwd=tmp_path, capture_output=True, text=True, check=False,
                env={**os.environ, "KARAT_CACHE": str(folder)},
            )  # fmt: skip

        first = run()
        assert first.returncode == 1, first.stderr
        message = " ".join(first.stderr.split())
        assert "No space left on device" in message and "endpoints-1.sqlite" in message
        assert "of free space" in message and "--resume" in message
        assert server.texts.total() < len(texts)
        options = f"remount,size={64 * 2**20}"
        subprocess.run(["mount", "-o", options, str(folder)], check=True)
        second = run("--resume")
        assert second.returncode == 0, second.stderr
        assert sorted(server.texts) == sorted(texts) and set(server.texts.values()) == {3}
        assert not list(folder.rglob("*.tmp"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_limit_of_the_size_of_files_is_a_full_disk_too(tmp_path):
    with Nursery() as nursery:
        for number, size in enumerate(SIZES):
            folder = tmp_path / f"disk {number}"
            folder.mkdir()
            with serving() as server:
                encoder = {
                    "url": f"{server.url}/v1", "model": "words-small", "batch_texts": 10,
                    "concurrency": 4, "dimensions": WIDTH,
                }  # fmt: skip
                message = tmp_path / "message.txt"
                order = {
                    "encoder": encoder, "texts": TEXTS, "message": str(message),
                    "services": pickle.dumps(RunServices(store=folder)).hex(),
                }  # fmt: skip
                pid = nursery.start(**order, file_limit=int(size))
                code = nursery.code(pid)
                assert code == (3 if server.texts.total() < len(TEXTS) else 0)
                if code:
                    check_message(Path(f"{message}-{pid}").read_text(), folder)
                assert nursery.code(nursery.start(**order)) == 0
                assert set(server.texts.values()) == {1} and server.texts.total() == len(TEXTS)


def test_a_disk_that_others_fill_while_an_answer_is_on_its_way(tmp_path):
    """The room was made before; a disk that takes it away costs no vector of this process."""
    folder = tmp_path / "disk"
    with small_disk(folder, 6 * 2**20), serving(slow=0.01) as server:
        account = make_account(store=folder)
        account.services.progress = lambda done: filling(folder, done)

        def filling(folder, done):
            if done >= 100:
                with suppress_full(), Path(folder, "others").open("ab") as file:
                    os.posix_fallocate(file.fileno(), 0, 64 * 2**20)
                with suppress_full(), Path(folder, "others").open("ab") as file:
                    for _ in range(2000):
                        file.write(bytes(4096))
                        file.flush()

        with use_account(account):
            with pytest.raises(Postponed, match="No space left on device"):
                encoder_of(server).encode(TEXTS)
            table = account.vectors(encoder_of(server).family())
            paid = [text for text in TEXTS if server.texts[text]]
            assert 100 <= len(paid) < len(TEXTS)
            sent = server.requests
            vectors = encoder_of(server).encode(paid)  # all are there, in the file or in memory
            assert server.requests == sent
        np.testing.assert_allclose(vectors, [text_vector(t, WIDTH) for t in paid], atol=1e-6)
        # with room again, those in memory are stored before the next request
        (folder / "others").unlink()
        account.services.progress = lambda done: None
        with use_account(account):
            encoder_of(server).encode(TEXTS)
        assert table.unsaved == 0 and set(server.texts.values()) == {1}
        account.database.close()
        encode(server, folder)
        assert server.texts.total() == len(TEXTS)


@contextmanager
def suppress_full():
    try:
        yield
    except OSError:
        pass


def test_a_cache_that_is_read_only_is_read_and_pays_nothing(tmp_path):
    folder = tmp_path / "disk"
    with small_disk(folder, 32 * 2**20), serving() as server:
        encode(server, folder)
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        encode(server, folder)
        with use_account(make_account(store=folder)) as account:
            with pytest.raises(Postponed, match="endpoints-1.sqlite"):
                encoder_of(server).encode(["another text"])
            account.database.close()
        assert server.texts.total() == len(TEXTS)
