"""A real server on a real port: the wire, slow clients, crowds, and an evaluation that goes on."""

import gzip
import http.client
import json
import socket
import time
from urllib.parse import urlsplit

import pytest

from karat.results.run import Run
from karat.serve.settings import Patience

API = "/api/v1"


@pytest.fixture
def place(written, tools):
    with tools.served(written, token=tools.token, max_upload=3_000_000) as address:
        yield urlsplit(address)


def ask(place, method, path, body=None, **headers):
    line = http.client.HTTPConnection(place.hostname, place.port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    line.request(method, path, body, named)
    answer = line.getresponse()
    content = answer.read()
    line.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content


def connect(place):
    return socket.create_connection((place.hostname, place.port), timeout=10)


def rest(line):
    """Return what still comes before the other side ends the line."""
    found = b""
    try:
        while part := line.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def answered(line):
    """Return an answer that ends with the end of a JSON object, on a line that stays open."""
    found = b""
    while not found.endswith(b"}"):
        found += line.recv(65536)
    return found


def test_conditions_over_the_wire(place):
    path = f"{API}/bundle"
    status, headers, body = ask(place, "GET", path, accept_encoding="gzip")
    assert (status, headers["content-encoding"]) == (200, "gzip")
    assert len(json.loads(gzip.decompress(body))["models"]) == 2
    assert int(headers["content-length"]) == len(body)
    assert "server" not in headers
    status, same, nothing = ask(
        place, "GET", path, accept_encoding="gzip", if_none_match=headers["etag"]
    )
    assert (status, nothing) == (304, b"")
    status, head, nothing = ask(place, "HEAD", path, accept_encoding="gzip")
    assert (status, nothing, head["content-length"]) == (200, b"", headers["content-length"])
    status, part, body = ask(place, "GET", "/report.html", range="bytes=0-8")
    assert (status, body) == (206, b"<!doctype")
    assert part["content-range"].startswith("bytes 0-8/")


def test_many_requests_go_over_one_line(place):
    line = http.client.HTTPConnection(place.hostname, place.port, timeout=10)
    for _ in range(20):
        line.request("GET", f"{API}/progress")
        assert json.loads(line.getresponse().read())["done"] == 12
    line.close()


@pytest.mark.parametrize(
    "target",
    [
        f"{API}/runs/../../../../etc/passwd",
        f"{API}/runs/..%2f..%2fetc%2fpasswd/log?task=x&fold=0",
        "/../../etc/passwd",
        "//etc/passwd",
        "/%00",
        "/report.html/../../../etc/passwd",
        "http://evil.example/",
        "*",
    ],
)
def test_paths_that_no_client_mends(place, target):
    with connect(place) as line:
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
def test_what_is_no_proper_request_is_refused_and_the_server_goes_on(place, raw):
    with connect(place) as line:
        try:
            line.sendall(raw)
            answer = rest(line)
        except (BrokenPipeError, ConnectionResetError):
            answer = b""
    assert answer == b"" or answer.split()[1] in (b"400", b"421")
    assert ask(place, "GET", f"{API}/progress")[0] == 200


# -- slow clients ---------------------------------------------------------------------------


@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\nHost: loc"], ids=["silent", "half"])
def test_who_sends_no_header_is_sent_away(place, begin):
    with connect(place) as line:
        begun = time.monotonic()
        line.sendall(begin)
        assert rest(line) == b""
        assert 0.4 < time.monotonic() - begun < 15


def test_who_sends_a_header_byte_by_byte_is_sent_away(place):
    with connect(place) as line:
        begun = time.monotonic()
        with pytest.raises(OSError):
            for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 1000:
                line.sendall(bytes([byte]))
                time.sleep(0.02)
        assert time.monotonic() - begun < 15


def test_a_second_header_has_its_own_time_and_no_more(place):
    with connect(place) as line:
        whole = f"GET {API}/progress HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        line.sendall(whole)
        assert b"200 OK" in answered(line)
        time.sleep(1.0)  # longer than a header may take: nobody has begun one
        line.sendall(whole)
        assert b"200 OK" in answered(line)
        line.sendall(b"GET / HT")
        begun = time.monotonic()
        assert rest(line) == b""
        assert time.monotonic() - begun < 15


def test_a_body_that_stops_coming_is_given_up(place, written, tools):
    with connect(place) as line:
        head = (
            f"POST {API}/vectors?name=a.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
            f"Content-Type: application/octet-stream\r\nAuthorization: Bearer {tools.token}\r\n\r\n"
        )
        line.sendall(head.encode() + b"some")
        begun = time.monotonic()
        rest(line)
        assert 0.5 < time.monotonic() - begun < 15
    tools.wait_until(lambda: not list((written / ".uploads" / "drafts").glob("*")), 5)
    assert not list((written / ".uploads" / "vectors").glob("*"))


def test_who_takes_nothing_of_the_answer_is_sent_away(written, tools):
    big = next(written.glob("a.*")) / "logs" / "halves" / "0.txt"
    big.parent.mkdir(parents=True)
    big.write_bytes(b"x" * 30_000_000)
    with tools.served(written) as address:
        place = urlsplit(address)
        with socket.socket() as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.connect((place.hostname, place.port))
            path = f"{API}/runs/{big.parents[2].name}/log?task=halves&fold=0"
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            time.sleep(3)
            taken = len(rest(line))
        assert taken < 30_000_000
        status, _, whole = ask(place, "GET", path)
        assert (status, len(whole)) == (200, 30_000_000)


def test_a_crowd_is_told_to_come_back(written, tools):
    patience = Patience(header=5, idle=5, clients=4)
    with tools.served(written, patience=patience) as address:
        place = urlsplit(address)
        lines = [connect(place) for _ in range(4)]
        time.sleep(0.2)
        assert ask(place, "GET", f"{API}/progress")[0] == 503
        for line in lines:
            line.close()
        tools.wait_until(lambda: ask(place, "GET", f"{API}/progress")[0] == 200, 5)


def test_an_answer_that_takes_too_long_is_given_up(written, tools, monkeypatch):
    import karat.analysis.leaderboard as module

    monkeypatch.setattr(module, "leaderboard", lambda *a, **k: time.sleep(2))
    with tools.served(written, patience=Patience(request=0.3)) as address:
        place = urlsplit(address)
        status, headers, body = ask(place, "GET", f"{API}/board")
        assert (status, headers["retry-after"]) == (503, "10")
        assert json.loads(body)["error"] == "that took too long"
        assert ask(place, "GET", f"{API}/progress")[0] == 200
        time.sleep(2)


# -- uploads over the wire ------------------------------------------------------------------


def test_a_wrong_token_is_refused_before_the_body_is_read(place):
    with connect(place) as line:
        head = f"POST {API}/vectors?name=a.txt HTTP/1.1\r\nHost: localhost\r\n"
        head += "Content-Length: 2000000\r\n"
        more = "Content-Type: application/octet-stream\r\nAuthorization: Bearer wrong\r\n\r\n"
        line.sendall((head + more).encode())
        assert b"401" in line.recv(65536).split(b"\r\n")[0]


def test_a_large_upload_is_refused_by_its_announcement(place, tools):
    with connect(place) as line:
        head = f"POST {API}/vectors?name=a.txt HTTP/1.1\r\nHost: localhost\r\n"
        head += "Content-Length: 9000000\r\n"
        more = f"Content-Type: application/x\r\nAuthorization: Bearer {tools.token}\r\n\r\n"
        line.sendall((head + more).encode())
        assert b"413" in line.recv(65536).split(b"\r\n")[0]


def test_an_upload_arrives_whole(place, written, tools):
    body = bytes(range(256)) * 10_000
    token = f"Bearer {tools.token}"
    sent = {"content_type": "application/octet-stream", "authorization": token}
    status, _, told = ask(place, "POST", f"{API}/vectors?name=a.bin", body, **sent)
    assert (status, json.loads(told)["bytes"]) == (201, len(body))
    assert (written / ".uploads" / "vectors" / "a.bin").read_bytes() == body


# -- live -----------------------------------------------------------------------------------


def test_the_live_page_follows_a_run(place, written, tools):
    """What the page does every two seconds: ask with the tag, and get news when there are some."""
    _, headers, body = ask(place, "GET", f"{API}/bundle")
    before = json.loads(body)
    assert ask(place, "GET", f"{API}/bundle", if_none_match=headers["etag"])[0] == 304
    run = Run(next(written.glob("a.*")))
    run.write(tools.record("a", "halves", 3, 0.0), {})

    def news():
        status, _, body = ask(place, "GET", f"{API}/bundle", if_none_match=headers["etag"])
        told = json.loads(body) if status == 200 else None
        return told if told and told["scores"] != before["scores"] else None

    after = tools.wait_until(news, 10)
    model = [each["name"] for each in after["models"]].index("a")
    task = [each["name"] for each in after["tasks"]].index("halves")
    assert after["scores"][task][0][model] == pytest.approx(2.25 / 4)
    assert after["progress"]["done"] == 13


def test_polling_costs_little(place):
    _, headers, _ = ask(place, "GET", f"{API}/bundle")
    line = http.client.HTTPConnection(place.hostname, place.port, timeout=10)
    begun = time.process_time()  # the server is in this process
    for _ in range(100):
        line.request("GET", f"{API}/bundle", headers={"if-none-match": headers["etag"]})
        answer = line.getresponse()
        answer.read()
        assert answer.status == 304
    assert time.process_time() - begun < 3
    line.close()
