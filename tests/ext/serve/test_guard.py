"""Requests wait for their turn, and a response is made once for all clients."""

import asyncio
import gzip
import shutil

import pytest

from karat.ext.serve import guard, snapshots
from karat.ext.serve.guard import Recorded, ResponseCache, Turns
from karat.ext.serve.server import ApiError, client_key
from karat.ext.serve.snapshots import BundleCache, FolderWatcher

KEY = ("/api/v1/board", b"", "", False)
API = "/api/v1"


async def rest():
    """Let all other tasks run until they wait."""
    for _ in range(20):
        await asyncio.sleep(0)


# -- turns ----------------------------------------------------------------------------------


def order_of(total, each, clients):
    """Return in which order requests are let in that come while ``total`` others are inside."""
    entered = []

    async def ask(turns, client):
        leave = await turns.enter(client)
        entered.append(client)
        await rest()
        leave()

    async def all_of_them():
        turns = Turns(total, each)
        inside = [await turns.enter(f"before{number}") for number in range(total)]
        tasks = [asyncio.create_task(ask(turns, client)) for client in clients]
        await rest()
        assert entered == []
        for leave in inside:
            leave()
            leave()
        await asyncio.gather(*tasks)
        return turns

    turns = asyncio.run(all_of_them())
    assert not turns._waiting and not turns._inside
    return "".join(entered)


def test_clients_take_turns():
    assert order_of(1, 1, "aaaab") == "abaaa"
    assert order_of(1, 1, "aaabbbc") == "abcabab"
    assert sorted(order_of(3, 1, "aaaabc")[:3]) == ["a", "b", "c"]


def test_one_client_cannot_have_all_turns():
    async def check():
        turns = Turns(3, 2)
        for _ in range(2):
            await turns.enter("a")
        third = asyncio.create_task(turns.enter("a"))
        await rest()
        assert not third.done()
        leave = await turns.enter("b")
        leave()
        await rest()
        assert not third.done()
        third.cancel()

    asyncio.run(check())


def test_a_request_that_is_cancelled_gives_its_turn_to_the_next():
    async def check():
        turns = Turns(1, 1)
        leave = await turns.enter("a")
        first, second = (asyncio.create_task(turns.enter("a")) for _ in range(2))
        await rest()
        leave()  # it is the turn of the first, which has not noticed
        first.cancel()
        (await second)()
        waiting = asyncio.create_task(turns.enter("a"))
        await waiting
        left = asyncio.create_task(turns.enter("a"))
        await rest()
        left.cancel()
        await rest()
        assert not turns._waiting

    asyncio.run(check())


def test_what_counts_as_one_client():
    assert client_key("192.0.2.1") != client_key("192.0.2.2")
    assert client_key("2001:db8:0:1::1") == client_key("2001:db8:0:1:ffff::")
    assert client_key("2001:db8:0:1::1") != client_key("2001:db8:0:2::1")
    assert client_key("fe80::1%eth0") == client_key("fe80::2")
    assert (client_key("::ffff:192.0.2.1"), client_key("x:y")) == ("192.0.2.1", "x:y")


# -- cached responses -----------------------------------------------------------------------


@pytest.fixture
def calm(monkeypatch):
    """Scan the folder only when asked."""
    monkeypatch.setattr(snapshots, "SCAN_INTERVAL", 1e9)


def make_from(count, body=b"x", status=200):
    async def make():
        count.append(1)
        await asyncio.sleep(0)
        return Recorded(status, (), body)

    return make


def test_a_response_is_made_once_for_all_clients(written, calm):
    async def check():
        cache, made = ResponseCache(FolderWatcher(written), BundleCache()), []
        found = await asyncio.gather(*(cache.get(KEY, make_from(made)) for _ in range(50)))
        assert made == [1]
        assert all(each is found[0] for each in found)
        assert await cache.get(KEY, make_from(made)) is found[0]
        cache.watcher.rescan()
        assert await cache.get(KEY, make_from(made)) is found[0]
        assert made == [1]
        shutil.rmtree(next(written.glob("a.*")))
        cache.watcher.rescan()
        assert await cache.get(KEY, make_from(made)) is not found[0]
        assert made == [1, 1]

    asyncio.run(check())


def test_a_page_of_earlier_data_is_kept_until_the_next_scan_only(written, calm):
    async def check():
        cache, made = ResponseCache(FolderWatcher(written), BundleCache()), []
        page = ("/", b"", "", False)
        for expected in (1, 2, 3):
            await cache.get(page, make_from(made))
            await cache.get(page, make_from(made))
            assert len(made) == expected
            cache.watcher.rescan()
        cache.bundles.bundle(cache.watcher.snapshot())
        for _ in range(3):
            cache.watcher.rescan()
            await cache.get(page, make_from(made))
        assert len(made) == 4

    asyncio.run(check())


def test_a_response_is_made_even_if_the_first_client_leaves(written, calm):
    async def check():
        cache, made = ResponseCache(FolderWatcher(written), BundleCache()), []
        first = asyncio.create_task(cache.get(KEY, make_from(made)))
        second = asyncio.create_task(cache.get(KEY, make_from(made)))
        while not made:
            await asyncio.sleep(0)
        first.cancel()
        assert (await second).body == b"x"
        assert made == [1]

    asyncio.run(check())


def test_errors_and_large_responses_are_not_kept(written, calm, monkeypatch):
    monkeypatch.setattr(guard, "MAX_CACHED_BYTES", 10)

    async def check():
        cache, made = ResponseCache(FolderWatcher(written), BundleCache()), []
        for make in (make_from(made, status=404), make_from(made, b"x" * 11)):
            await cache.get(KEY, make)
            await cache.get(KEY, make)
        assert len(made) == 4
        for query in (b"a", b"b"):
            await cache.get(("/", query, "", False), make_from(made, b"x" * 6))
        assert [key[1] for key in cache._known] == [b"a"]

    asyncio.run(check())


def test_a_body_is_compressed_once(written, calm, monkeypatch):
    count = []
    compress = gzip.compress
    monkeypatch.setattr(gzip, "compress", lambda *a, **k: count.append(1) or compress(*a, **k))

    async def check():
        cache = ResponseCache(FolderWatcher(written), BundleCache())
        for number in range(3):
            (next(written.glob("a.*")) / "jobs" / f"halves.{number}.json").unlink()
            cache.watcher.rescan()
            found = await cache.get((*KEY[:3], True), make_from([], b"x" * 5000))
            assert gzip.decompress(found.body) == b"x" * 5000
            headers = dict(found.headers)
            assert headers[b"content-length"] == str(len(found.body)).encode()
            assert headers[b"etag"].startswith(b'W/"')

    asyncio.run(check())
    assert count == [1]


def test_clients_get_their_own_format_and_encoding(reader):
    board = f"{API}/board"
    answers = [
        reader.get(board, headers={"accept": kind, "accept-encoding": encoding})
        for kind in ("application/json", "text/csv")
        for encoding in ("gzip", "identity")
        for _ in range(2)
    ]
    kinds = [answer.headers["content-type"].partition(";")[0] for answer in answers]
    assert kinds == ["application/json"] * 4 + ["text/csv"] * 4
    assert len({answer.content for answer in answers}) == 2
    tag = answers[0].headers["etag"]
    assert reader.get(board, headers={"if-none-match": tag}).status_code == 304
    other = {"if-none-match": tag, "accept": "text/csv"}
    assert reader.get(board, headers=other).status_code == 200


def test_a_range_or_a_token_does_not_change_a_cached_response(reader):
    plain = reader.get(f"{API}/progress")
    for headers in ({"range": "bytes=0-1"}, {"authorization": "Bearer x"}, {"if-range": "x"}):
        answer = reader.get(f"{API}/progress", headers=headers)
        assert (answer.status_code, answer.content) == (200, plain.content)


@pytest.mark.parametrize("path", ["/api/v1/bundle", "/"])
def test_gzip_that_is_not_accepted(reader, path):
    for accepted, packed in {
        "gzip;q=0, *": False,
        "br": False,
        "*": True,
        "GZIP;q=0.1": True,
    }.items():
        answer = reader.get(path, headers={"accept-encoding": accepted})
        assert ("content-encoding" in answer.headers) == packed


def test_many_ranges_are_ignored(reader, evaluated):
    run = next(evaluated.glob("onehot.*")).name
    path = f"{API}/runs/{run}/predictions.csv?task=halves&fold=0"
    few, many = ("bytes=" + ",".join(f"{i}-{i}" for i in range(0, n, 2)) for n in (6, 60))
    assert reader.get(path, headers={"range": few}).status_code == 206
    assert reader.get(path, headers={"range": many}).status_code == 200


def test_head_does_not_read_files(reader, evaluated, monkeypatch):
    run = next(evaluated.glob("onehot.*")).name
    path = f"{API}/runs/{run}/predictions.csv?task=halves&fold=0"
    size = reader.get(path, headers={"accept-encoding": "identity"}).headers["content-length"]
    monkeypatch.setattr("anyio.open_file", None)
    answer = reader.head(path, headers={"accept-encoding": "identity"})
    assert (answer.status_code, answer.headers["content-length"]) == (200, size)


def test_large_bodies_are_sent_in_parts(reader, monkeypatch):
    whole = reader.get("/").content
    monkeypatch.setattr(guard, "CHUNK", 1000)
    assert reader.get("/").content == whole


def test_addresses_and_headers_have_a_limit(reader):
    headers = [(b"host", b"localhost")]
    scope = {"method": "GET", "path": "/", "headers": headers, "query_string": b"x" * 70_000}
    with pytest.raises(ApiError) as error:
        guard.check_request(scope, reader.service.settings)
    assert error.value.status == 414
    assert reader.get(f"{API}/scores", headers={"x": "y" * 70_000}).status_code == 431
    assert reader.get(f"{API}/scores", headers={"x": "y" * 60_000}).status_code == 200


def test_requests_that_wait_are_counted():
    async def count():
        turns = Turns(total=1, per_client=1)
        leave = await turns.enter("")
        others = [asyncio.create_task(turns.enter("")) for _ in range(3)]
        await rest()
        before = turns.waiting
        leave()
        await rest()
        after = turns.waiting
        for task in others:
            task.cancel()
        return before, after

    assert asyncio.run(count()) == (3, 2)
