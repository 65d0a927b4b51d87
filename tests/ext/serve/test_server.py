"""A real server: requests over a socket, slow clients, many clients, signals and options."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from karat.errors import DataError, DefinitionError
from karat.ext.serve import server
from karat.ext.serve.server import ServerLimits, ServerSettings, is_readable_by_others, read_token
from karat.ext.serve.submissions import Evaluations
from karat.results.run import Run

API = "/api/v1"


@pytest.fixture
def location(written, tools):
    with tools.served(written, token=tools.token, max_upload=3_000_000) as address:
        yield urlsplit(address)


@pytest.fixture
def hasty(written, tools, clock, monkeypatch):
    """A server with short limits, and the clock that decides when they are over."""
    limits = ServerLimits(header=1, idle=1, request=1e6)
    clock.opened = server.Connections(limits)
    monkeypatch.setattr(server, "Connections", lambda limits: clock.opened)
    with tools.served(written, clock, token=tools.token, limits=limits) as address:
        yield urlsplit(address), clock


def ask(location, method, path, body=None, **headers):
    line = http.client.HTTPConnection(location.hostname, location.port)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    line.request(method, path, body, named)
    answer = line.getresponse()
    content = answer.read()
    line.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content


def connect(location):
    return socket.create_connection((location.hostname, location.port))


def rest(line):
    """Return what is received until the server closes the connection."""
    found = b""
    try:
        while part := line.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def upload_head(length, token):
    """Return the header of an upload whose body is sent later."""
    lines = [f"POST {API}/vectors?name=a.txt HTTP/1.1", "Host: localhost"]
    lines += [f"Content-Length: {length}", "Content-Type: application/octet-stream"]
    return "\r\n".join([*lines, f"Authorization: Bearer {token}", "", ""]).encode()


def answered(line):
    """Return a JSON response on a connection that stays open."""
    found = b""
    while not found.endswith(b"}") and (part := line.recv(65536)):
        found += part
    return found


def test_conditions_over_the_wire(location):
    path = f"{API}/bundle"
    status, headers, body = ask(location, "GET", path, accept_encoding="gzip")
    assert (status, headers["content-encoding"]) == (200, "gzip")
    assert len(json.loads(gzip.decompress(body))["models"]) == 2
    assert int(headers["content-length"]) == len(body)
    assert "server" not in headers
    status, same, nothing = ask(
        location, "GET", path, accept_encoding="gzip", if_none_match=headers["etag"]
    )
    assert (status, nothing) == (304, b"")
    status, head, nothing = ask(location, "HEAD", path, accept_encoding="gzip")
    assert (status, nothing, head["content-length"]) == (200, b"", headers["content-length"])


@pytest.mark.parametrize(
    "target",
    [f"{API}/runs/../../../../etc/passwd", f"{API}/runs/..%2f..%2fetc%2fpasswd/log?task=x&fold=0"]
    + "/../../etc/passwd //etc/passwd /%00 /report.html/../../../etc/passwd http://x.y/ *".split(),
)
def test_raw_paths(location, target):
    with connect(location) as line:
        request = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        line.sendall(request.encode())
        answer = rest(line)
    assert answer.split()[1] in (b"404", b"400")
    assert b"root:" not in answer


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        b"NONSENSE\r\n\r\n",
    ],
    ids=["tls", "no host", "two hosts", "two lengths", "nul", "large header", "nonsense"],
)
def test_malformed_requests(location, raw):
    with connect(location) as line:
        try:
            line.sendall(raw)
            answer = rest(line)
        except (BrokenPipeError, ConnectionResetError):
            answer = b""
    assert answer == b"" or answer.split()[1] in (b"400", b"421")
    assert ask(location, "GET", f"{API}/progress")[0] == 200


def post_head(path, *lines):
    lines = (f"POST {API}/{path} HTTP/1.1", "Host: localhost", *lines)
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


BYTES, JSON = "Content-Type: application/octet-stream", "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"
HOSTILE = {
    "two framings": (post_head("vectors?name=a.txt", BYTES, CHUNKED, "Content-Length: 4"), 400),
    "nested chunks": (post_head("vectors?name=a.txt", BYTES, f"{CHUNKED}, chunked"), 400),
    "unknown framing": (post_head("vectors?name=a.txt", BYTES, "Transfer-Encoding: xchunked"), 400),
    "space before colon": (post_head("vectors?name=a.txt", "Transfer-Encoding : chunked"), 400),
    "signed length": (post_head("vectors?name=a.txt", BYTES, "Content-Length: +5"), 400),
    "endless length": (post_head("vectors?name=a.txt", f"Content-Length: {'9' * 400}"), 400),
    "broken origin": (post_head("evaluations", JSON, "Origin: http://[::1"), 403),
    "packed body": (post_head("vectors?name=a.txt", BYTES, "Content-Encoding: gzip"), 415),
    "latin token": (post_head("evaluations/x/cancel", "Authorization: Bearer \xff\xfe"), 401),
    "many lines": (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"x: y\r\n" * 300 + b"\r\n", 431),
    "http 2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "http 9.9": (b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", 505),
    "user in host": (b"GET / HTTP/1.1\r\nHost: localhost@evil.example\r\n\r\n", 421),
    "trace": (b"TRACE /api/v1/runs HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    "connect": (b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    "long method": (b"X" * 5000 + b" /docs HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    "overlong dots": (b"GET /api/v1/runs/%c0%ae%c0%ae HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
}


def test_hostile_headers(location):
    for name, (raw, status) in HOSTILE.items():
        with connect(location) as line:
            line.sendall(raw)
            assert (name, int(line.recv(65536).split()[1])) == (name, status)
    assert ask(location, "GET", f"{API}/progress")[0] == 200


def test_a_body_after_its_refusal_is_not_read_forever(location):
    for path in ("vectors?name=a.txt", "board"):
        with connect(location) as line:
            line.sendall(post_head(path, BYTES, CHUNKED))
            chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
            with pytest.raises(OSError):
                for _ in range(2000):
                    line.sendall(chunk)


def test_a_body_without_end(location, written, tools):
    with connect(location) as line:
        token = f"Authorization: Bearer {tools.token}"
        line.sendall(post_head("vectors?name=a.txt", BYTES, CHUNKED, token))
        with pytest.raises(OSError):
            for _ in range(2000):
                line.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
    tools.wait_until(lambda: not list((written / ".uploads" / "drafts").glob("*")))
    assert not list((written / ".uploads" / "vectors").glob("*"))


def test_a_malformed_body_after_its_refusal(location, caplog):
    with connect(location) as line:
        line.sendall(post_head("vectors?name=a.txt", BYTES, CHUNKED))
        assert line.recv(65536).split()[1] == b"401"
        line.sendall(b"-1\r\nx\r\n")
        rest(line)
    assert not [record for record in caplog.records if record.exc_info]


def test_a_slow_json_body(written, tools):
    limits = ServerLimits(header=100, idle=100, request=0.3)
    with tools.served(written, token=tools.token, limits=limits) as address:
        with connect(urlsplit(address)) as line:
            line.sendall(post_head("evaluations", JSON, "Content-Length: 1000") + b'{"suite"')
            assert line.recv(65536).split()[1] == b"503"


def test_pipelined_requests_are_answered_in_turn(location):
    once = f"GET {API}/progress HTTP/1.1\r\nHost: localhost\r\n"
    with connect(location) as line:
        line.sendall(f"{once}\r\n".encode() * 50 + f"{once}Connection: close\r\n\r\n".encode())
        assert rest(line).count(b"HTTP/1.1 200") == 51


# -- slow clients ---------------------------------------------------------------------------


def received(location):
    """Wait until the server has read what was sent before."""
    assert ask(location, "GET", f"{API}/progress")[0] == 200


@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\nHost: loc"], ids=["silent", "half"])
def test_connections_without_a_header_are_closed(hasty, begin):
    location, clock = hasty
    with connect(location) as line:
        line.sendall(begin)
        received(location)
        clock.advance(1.5)
        assert rest(line) == b""


def test_a_slow_header_closes_the_connection(hasty):
    location, clock = hasty
    with connect(location) as line:
        with pytest.raises(OSError):
            for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 1000:
                line.sendall(bytes([byte]))
                clock.advance(0.03)


def test_a_second_header_has_its_own_time_and_no_more(hasty):
    location, clock = hasty
    with connect(location) as line:
        whole = f"GET {API}/progress HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        line.sendall(whole)
        assert b"200 OK" in answered(line)
        clock.advance(1.5)  # longer than a header may take: nobody has begun one
        line.sendall(whole)
        assert b"200 OK" in answered(line)
        line.sendall(b"GET / HT")
        received(location)
        clock.advance(1.5)
        assert rest(line) == b""


def closed_in_time(clock):
    """Let time pass until the server has closed all connections."""
    while len(clock.opened):
        clock.advance(0.3)


def test_an_upload_that_stalls(hasty, written, tools):
    location, clock = hasty
    with connect(location) as line:
        line.sendall(upload_head(1000, tools.token) + b"some")
        received(location)
        closed_in_time(clock)
    tools.wait_until(lambda: not list((written / ".uploads" / "drafts").glob("*")))
    assert not list((written / ".uploads" / "vectors").glob("*"))


def test_clients_that_do_not_read_are_disconnected(hasty, written):
    location, clock = hasty
    big = next(written.glob("a.*")) / "logs" / "halves" / "0.txt"
    big.parent.mkdir(parents=True)
    big.write_bytes(b"x" * 30_000_000)
    path = f"{API}/runs/{big.parents[2].name}/log?task=halves&fold=0"
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect((location.hostname, location.port))
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        line.recv(1)
        closed_in_time(clock)
        assert len(rest(line)) < 30_000_000
    status, _, whole = ask(location, "GET", path)
    assert (status, len(whole)) == (200, 30_000_000)


def test_idle_connections_make_room(written, tools):
    limits = ServerLimits(header=1000, idle=1000, connections=4, connections_per_client=3)
    with tools.served(written, limits=limits) as address:
        location = urlsplit(address)
        lines = [connect(location) for _ in range(9)]
        for _ in range(4):
            assert ask(location, "GET", f"{API}/progress")[0] == 200
        assert [rest(line) for line in lines[:7]] == [b""] * 7
        for line in lines:
            line.close()


class Line:
    """A connection for tests: whose it is, since when it is idle, and whether it was closed."""

    def __init__(self, opened, owner, idle_since=None):
        self.opened, self.owner, self.idle_since = opened, owner, idle_since
        self.open = opened.add(self)

    def is_idle(self):
        return self.idle_since is not None

    def drop(self):
        self.opened.remove(self)
        self.open = False


def test_the_oldest_idle_connection_of_the_largest_client_is_closed():
    opened = server.Connections(ServerLimits(connections=5, connections_per_client=3))
    old = Line(opened, "small", 1)
    many = [Line(opened, "large", since) for since in (4, 2, None)]
    other = Line(opened, "small", 3)
    new = Line(opened, "new")
    assert [line.open for line in (old, *many, other, new)] == [True, True, False, True, True, True]
    assert len(opened) == 5
    assert Line(opened, "new").open
    assert not old.open  # all clients with idle connections have two


def test_a_client_makes_room_among_its_own_connections():
    opened = server.Connections(ServerLimits(connections=100, connections_per_client=2))
    idle, busy, own = Line(opened, "b", 0), Line(opened, "a"), Line(opened, "a", 7)
    assert Line(opened, "a").open
    assert [line.open for line in (idle, busy, own)] == [True, True, False]
    assert not Line(opened, "a").open
    assert Line(opened, "c").open
    opened.remove(busy)
    assert Line(opened, "a").open


def test_a_refused_connection_gets_503(written, tools, monkeypatch):
    monkeypatch.setattr(server.Connections, "add", lambda self, connection: False)
    with tools.served(written) as address:
        with connect(urlsplit(address)) as line:
            answer = rest(line)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split()[1] == b"503"
    assert json.loads(body)["error"] == "too many connections"


class Transport:
    """A transport for tests that has this many bytes left to send."""

    unsent = 0
    aborted = False

    def get_write_buffer_size(self):
        return self.unsent

    def abort(self):
        self.aborted = True


def checked(levels, more_body=False):
    """Return whether a connection is aborted, which has these bytes left, one check per second."""
    line, now = server.LimitedConnection(), [0.0]
    line.limits = ServerLimits(header=20, idle=20)
    line.loop = SimpleNamespace(time=lambda: now[0], call_later=lambda *_: None)
    line.transport, line.header_start = Transport(), None
    line.cycle = SimpleNamespace(response_complete=False, more_body=more_body)
    line.flow = SimpleNamespace(read_paused=False)
    line.moved = line.received = line.seen = line.level = 0
    for level in levels:
        now[0] += 1
        line.transport.unsent = level
        line._check()
    return line.transport.aborted


def test_clients_that_take_a_few_bytes_at_a_time_are_disconnected():
    assert checked([60_000 - second for second in range(30)])
    assert not checked([60_000 - second for second in range(15)])
    assert not checked([60_000 - 1000 * second for second in range(60)])
    assert not checked([60_000 - 2000 * (second % 20) for second in range(100)])
    assert not checked([0] * 30)
    assert checked([0] * 30, more_body=True)


def test_as_many_connections_as_files(monkeypatch):
    resource = pytest.importorskip("resource")
    given = []
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: given.append(limits))
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, 5000))
    assert server.fitting_limits(ServerLimits(connections=1000)).connections == 1000
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, 600))
    assert server.fitting_limits(ServerLimits(connections=1000)).connections == 400
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1024, 1024))
    assert server.fitting_limits(ServerLimits(connections=200)).connections == 200
    assert given == [(1200, 5000), (600, 600)]


def test_a_slow_response_is_503(written, tools, clock, monkeypatch):
    import karat.analysis.leaderboard as module

    begun, end = threading.Event(), threading.Event()
    monkeypatch.setattr(module, "leaderboard", lambda *a, **k: begun.set() or end.wait())
    with tools.served(written, clock, limits=ServerLimits(request=10)) as address:
        location = urlsplit(address)
        with connect(location) as line:
            close = "Host: localhost\r\nConnection: close\r\n\r\n"
            line.sendall(f"GET {API}/board HTTP/1.1\r\n{close}".encode())
            begun.wait()
            clock.advance(11)
            head, _, body = rest(line).partition(b"\r\n\r\n")
        assert head.split()[1] == b"503" and b"retry-after: 10" in head
        assert json.loads(body)["error"] == "this took too long"
        assert ask(location, "GET", f"{API}/progress")[0] == 200
        end.set()


# -- uploads over the wire ------------------------------------------------------------------


@pytest.mark.parametrize(("length", "right", "status"), [(2e6, False, b"401"), (9e6, True, b"413")])
def test_uploads_are_refused_before_their_body_is_read(location, tools, length, right, status):
    with connect(location) as line:
        line.sendall(upload_head(int(length), tools.token if right else "wrong"))
        assert status in line.recv(65536).split(b"\r\n")[0]


def test_an_upload_arrives_whole(location, written, tools):
    body = bytes(range(256)) * 10_000
    token = f"Bearer {tools.token}"
    sent = {"content_type": "application/octet-stream", "authorization": token}
    status, _, data = ask(location, "POST", f"{API}/vectors?name=a.bin", body, **sent)
    assert (status, json.loads(data)["bytes"]) == (201, len(body))
    assert (written / ".uploads" / "vectors" / "a.bin").read_bytes() == body


# -- live -----------------------------------------------------------------------------------


def test_the_live_page_follows_a_run(location, written, tools):
    """What the page does every two seconds: ask with the tag, and get news when there are some."""
    _, headers, body = ask(location, "GET", f"{API}/bundle")
    before = json.loads(body)
    assert ask(location, "GET", f"{API}/bundle", if_none_match=headers["etag"])[0] == 304
    run = Run(next(written.glob("a.*")))
    run.write(tools.record("a", "halves", 3, 0.0), {})

    def news():
        status, _, body = ask(location, "GET", f"{API}/bundle", if_none_match=headers["etag"])
        data = json.loads(body) if status == 200 else None
        return data if data and data["scores"] != before["scores"] else None

    after = tools.wait_until(news)
    model = [each["name"] for each in after["models"]].index("a")
    task = [each["name"] for each in after["tasks"]].index("halves")
    assert after["scores"][task][0][model] == pytest.approx(2.25 / 4)
    assert after["progress"]["done"] == 13


def stream(location, query="", **headers):
    """Open an event stream; return its connection and its response."""
    line = http.client.HTTPConnection(location.hostname, location.port)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    line.request("GET", f"{API}/events{query}", headers=named)
    return line, line.getresponse()


def next_event(answer):
    """Return the fields of the next event of a stream; comments and the retry time are skipped."""
    fields = {}
    while line := answer.readline().decode():
        name, _, value = line.rstrip("\n").partition(": ")
        if name and name != "retry":
            fields[name] = value
        elif "event" in fields:
            return {**fields, "data": json.loads(fields["data"])}
    return None


def test_events_follow_a_run(location, written, tools):
    line, answer = stream(location, accept_encoding="gzip", accept="text/event-stream")
    headers = {name.lower(): value for name, value in answer.getheaders()}
    assert (answer.status, headers["content-type"]) == (
        200,
        "text/event-stream; charset=utf-8",
    )
    assert headers["cache-control"] == "no-store"
    assert "content-encoding" not in headers and "etag" not in headers
    assert "default-src 'none'" in headers["content-security-policy"]
    event = next_event(answer)
    assert (event["event"], event["data"]["progress"]["done"]) == ("progress", 12)
    Run(next(written.glob("a.*"))).write(tools.record("a", "halves", 3, 0.0), {})
    while event["data"]["progress"]["done"] < 13 or not event["data"]["version"]:
        event = next_event(answer)
    line.close()
    bundle = json.loads(ask(location, "GET", f"{API}/bundle")[2])
    assert bundle["progress"]["done"] == 13
    # HEAD has no body, and other methods are not allowed
    assert ask(location, "HEAD", f"{API}/events")[::2] == (200, b"")
    assert ask(location, "GET", f"{API}/events?nothing=1")[0] == 400
    assert ask(location, "GET", f"{API}/events?evaluation=nothing")[0] == 404
    assert ask(location, "GET", f"{API}/events", host="evil.example")[0] == 421


def test_an_open_stream_outlives_the_limits_of_requests(written, tools):
    """A client that only listens is neither idle nor slow; others are served meanwhile."""
    limits = ServerLimits(header=1e6, idle=0.2, request=0.5, requests=1, requests_per_client=1)
    with tools.served(written, limits=limits) as address:
        location = urlsplit(address)
        line, answer = stream(location)
        assert next_event(answer)["data"]["progress"]["done"] == 12
        time.sleep(1)
        Run(next(written.glob("a.*"))).write(tools.record("a", "halves", 3, 0.0), {})
        assert next_event(answer)["data"]["progress"]["done"] == 13
        line.close()


def test_many_streams_need_no_threads_and_end_with_their_clients(written, tools, monkeypatch):
    from karat.ext.serve import routes

    apps, make_app = [], routes.make_app
    monkeypatch.setattr(routes, "make_app", lambda given: apps.append(make_app(given)) or apps[0])
    limits = ServerLimits(streams=100, streams_per_client=60)
    with tools.served(written, limits=limits) as address:
        location, events = urlsplit(address), apps[0].service.events
        lines = []
        for _ in range(60):
            lines.append(stream(location))
            assert next_event(lines[-1][1])["event"] == "progress"
        assert threading.active_count() < 50
        status, headers, body = ask(location, "GET", f"{API}/events")
        assert (status, set(json.loads(body))) == (503, {"error", "hint"})
        assert headers["retry-after"] == "30"
        for line, answer in lines[:30]:
            answer.close()
            line.close()
        tools.wait_until(lambda: events.clients.total() == 30)
        for line, answer in lines[30:]:
            answer.close()
            line.close()
        tools.wait_until(lambda: not events.topics)


def test_a_server_with_open_streams_stops_at_once(written, tools, monkeypatch):
    monkeypatch.setattr(server, "SHUTDOWN_GRACE", 1000)
    with tools.served(written) as address:
        line, answer = stream(urlsplit(address))
        assert next_event(answer)
    assert answer.read() == b""
    line.close()


# -- the command ----------------------------------------------------------------------------


def started(folder, *options, **environment):
    command = [sys.executable, "-m", "karat", "serve", str(folder), "--port", "0", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env={**os.environ, **environment}, **pipes)
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/", line)
    assert found, process.communicate()
    return process, urlsplit(found[0])


def test_ctrl_c(written):
    process, location = started(written)
    assert json.loads(ask(location, "GET", f"{API}/progress")[2])["done"] == 12
    with connect(location):
        process.send_signal(signal.SIGINT)
        assert process.communicate() == ("", "")
    assert process.returncode == 130


def test_a_running_evaluation_is_stopped_and_resumed_by_the_next_server(defined, tools):
    options = ("--define", "my.yaml", "-c", "small")
    process, server = started(defined / "runs", *options, KARAT_TOKEN=tools.token)
    headers = {"authorization": f"Bearer {tools.token}", "content_type": "application/json"}
    try:
        order = json.dumps({"suite": "halves", "models": ["gate"]})
        location = ask(server, "POST", f"{API}/evaluations", order, **headers)[1]["location"]
        tools.wait_until(lambda: list(defined.glob("waiting-*")))
    finally:
        process.send_signal(signal.SIGTERM)
        output = process.communicate()
    assert process.returncode == 0, output
    (run,) = (Run(path.parent) for path in (defined / "runs").glob("*/run.json"))
    assert [(r["task"], r["fold"]) for r in run.records()] == [("halves", 0)]
    assert run.running_jobs() == []
    (defined / "open").touch()
    given = {"token": tools.token, "constraint": "small", "define": (defined / "my.yaml",)}
    with tools.opened(defined / "runs", **given) as client:
        assert client.get(location).json()["status"] == "stopped"
        token = {"authorization": f"Bearer {tools.token}"}
        assert client.post(f"{location}/resume", headers=token).status_code == 202
        tools.wait_until(lambda: client.get(location).json()["status"] == "finished")
    assert [r["fold"] for r in run.records()] == [0, 1]


def test_a_port_in_use(written, cli):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = cli("serve", written, "--port", port)
    assert result.code == 2
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert f"port {port} of 127.0.0.1 is already in use" in result.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "no.such.host.invalid"], '"no.such.host.invalid"'),
        (["--host", "192.0.2.1"], "192.0.2.1"),
        (["--token-file", "none"], "token file none"),
        *(([option, "99999999"], option) for option in ("--port", "--max-upload", "--queue")),
    ],
)
def test_wrong_options(written, cli, options, message):
    result = cli("serve", written, *options)
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err


def test_wrong_folder_constraint_or_token(tmp_path, cli, tools, monkeypatch):
    assert "there is no folder" in cli("serve", tmp_path / "none").err
    monkeypatch.setenv("KARAT_TOKEN", tools.token)
    result = cli("serve", tmp_path, "-c", "default")
    assert (result.code, "has no max_runtime_seconds" in result.err) == (2, True)
    result = cli("serve", tmp_path, "-c", "servd")
    assert (result.code, 'Did you mean "served"' in result.err) == (2, True)
    monkeypatch.setenv("KARAT_TOKEN", "short")
    assert "at least 16 characters" in cli("serve", tmp_path).err


def test_missing_libraries(written, cli, monkeypatch):

    find = server.find_spec
    monkeypatch.setattr(server, "find_spec", lambda name: None if name == "uvicorn" else find(name))
    result = cli("serve", written)
    assert result.code == 2
    assert 'uvicorn is not installed: pip install "karat[serve]"' in result.err


def test_notes_about_what_is_open(written, cli, monkeypatch, tmp_path):
    """They are printed before an error, here of a port in use."""
    file = tmp_path / "token"
    file.write_text("a" * 32)
    file.chmod(0o644)
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        result = cli("serve", written, "--host", "0.0.0.0", "--port", port, "--token-file", file)
    assert f"chmod 600 {file}" in result.err
    assert "everyone who reaches this machine" in result.err


def test_a_second_ctrl_c_stops_the_evaluation(written, monkeypatch):
    """It skips the clean shutdown of uvicorn."""

    class Hasty:
        async def serve(self, sockets):
            raise KeyboardInterrupt

    stopped = []
    monkeypatch.setattr(server, "make_server", lambda app: Hasty())
    monkeypatch.setattr(Evaluations, "stop", lambda self: stopped.append(1))
    with pytest.raises(KeyboardInterrupt):
        server.serve(ServerSettings(written, port=0), print)
    assert stopped == [1]


ALLOWED = "localhost localhost:8765 LOCALHOST:1 127.0.0.1:8765 [::1]:8765".split()
REFUSED = "evil.example localhost.evil.example 127.0.0.1.evil.example 192.168.0.7".split()
REFUSED += ["", "localhost:port", "localhost/x", "user@localhost", "local host"]


@pytest.mark.parametrize("host", [*ALLOWED, *REFUSED])
def test_hosts_of_loopback(host):
    assert ServerSettings(Path("runs")).allows_host(host) is (host in ALLOWED)


def test_a_host_can_be_allowed_and_all_addresses_are_where_all_are_listened_to():
    assert ServerSettings(Path("runs"), allow_hosts=("Bench.example",)).allows_host(
        "bench.example:443"
    )
    everywhere = ServerSettings(Path("runs"), host="0.0.0.0")
    assert everywhere.allows_host("192.168.0.7:8765")
    assert everywhere.allows_host("[2001:db8::1]")
    assert not everywhere.allows_host("evil.example")


def test_a_token_comes_from_a_file_or_from_the_environment(tmp_path):
    (tmp_path / "token").write_text("  abcdefghijklmnop\n")
    given = {"KARAT_TOKEN": "ponmlkjihgfedcba"}
    assert read_token(tmp_path / "token", given) == "abcdefghijklmnop"
    assert read_token(None, given) == "ponmlkjihgfedcba"
    assert read_token(None, {}) is None


@pytest.mark.parametrize("token", ["", "short", "a" * 15, "abcdefgh ijklmnop", "ä" * 20])
def test_a_token_that_could_be_guessed_or_not_be_sent_is_refused(token):
    with pytest.raises(DefinitionError, match="at least 16 characters"):
        read_token(None, {"KARAT_TOKEN": token})


def test_a_token_file_must_be_there_and_be_text(tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        read_token(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff" * 20)
    with pytest.raises(DataError, match="cannot read"):
        read_token(tmp_path / "bytes")


def test_who_can_read_a_file(tmp_path):
    file = tmp_path / "token"
    file.touch(mode=0o600)
    assert not is_readable_by_others(file)
    file.chmod(0o644)
    assert is_readable_by_others(file)
