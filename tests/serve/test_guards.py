"""Who may ask for what: hosts, sites, forms, tokens; and the headers of every answer."""

import time

import pytest

from karat.serve import app
from karat.serve.guards import HEADERS, check_token
from karat.serve.replies import Refused

API = "/api/v1"
ORDER = {"suite": "quickstart"}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(app, "PAUSE", 0.0)


@pytest.mark.parametrize("path", ["/", "/api", f"{API}/runs", f"{API}/nothing", "/report.html"])
def test_every_answer_has_the_headers_that_protect_it(looker, path):
    answer = looker.get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert "server" not in answer.headers


def test_what_breaks_is_told_without_its_inside(looker, monkeypatch):
    from karat.serve.state import State

    def broken(self):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(State, "look", broken)
    with pytest.raises(ZeroDivisionError):  # the server's own log has it
        looker.get(f"{API}/runs")
    looker._transport.raise_server_exceptions = False
    answer = looker.get(f"{API}/runs")
    looker._transport.raise_server_exceptions = True
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.json()["error"] == "something broke here"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "10.0.0.1", "", "a b"])
def test_a_name_that_was_made_to_lead_here_is_refused(looker, host):
    answer = looker.get(f"{API}/runs", headers={"host": host})
    assert answer.status_code == 421
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "onehot" not in answer.text


def test_another_host_can_be_allowed(folder, tools):
    with tools.opened(folder, allow_hosts=("bench.example",)) as client:
        asked = {"host": "bench.example"}
        assert client.get(f"{API}/runs", headers=asked).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:1234"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_another_site_cannot_make_a_browser_post(owner, headers):
    answer = owner.post(f"{API}/evaluations", json=ORDER, headers=headers)
    assert answer.status_code == 403
    assert owner.get(f"{API}/evaluations").json()["total"] == 0
    assert owner.delete(f"{API}/vectors/x.txt", headers=headers).status_code == 403


def test_the_same_site_can(owner):
    headers = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    answer = owner.post(f"{API}/evaluations", json={"suite": "none"}, headers=headers)
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "kind",
    [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
        "TEXT/Plain",
    ],
)
@pytest.mark.parametrize("path", ["/evaluations", "/vectors?name=a.txt", "/runs?name=a"])
def test_forms_are_not_taken(owner, kind, path):
    answer = owner.post(f"{API}{path}", content=b'{"suite": "x"}', headers={"content-type": kind})
    assert answer.status_code == 415


def test_nobody_is_told_that_other_sites_may_read(looker):
    asked = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    answer = looker.options(f"{API}/evaluations", headers=asked)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


WRITES = [
    ("POST", "/evaluations", {"json": ORDER}),
    ("POST", "/vectors?name=a.txt", {"content": b"a 1 2\n"}),
    ("POST", "/runs?name=a", {"content": b"PK"}),
    ("DELETE", "/vectors/a.txt", {}),
    ("POST", "/evaluations/x/cancel", {}),
    ("POST", "/evaluations/x/resume", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES, ids=lambda v: str(v)[:24])
def test_without_a_token_a_server_only_shows(client, folder, method, path, body, tools):
    headers = {"authorization": f"Bearer {tools.token}"}
    answer = client.request(method, f"{API}{path}", headers=headers, **body)
    assert answer.status_code == 403
    assert not (folder / ".uploads").exists()


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer 0123456789abcdef-toke",
        "Bearer 0123456789abcdef-token1",
        "Bearer 0123456789ABCDEF-token",
        "Basic 0123456789abcdef-token",
        "0123456789abcdef-token",
        "Bearer " + "x" * 10_000,
        "Bearer \xff\xfe",
    ],
)
@pytest.mark.parametrize(("method", "path", "body"), WRITES[:3], ids=lambda v: str(v)[:24])
def test_a_wrong_token_opens_nothing(owner, written, method, path, body, given):
    del owner.headers["authorization"]
    headers = {} if given is None else {"authorization": given.encode("latin-1")}
    answer = owner.request(method, f"{API}{path}", headers=headers, **body)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert not (written / ".uploads" / "vectors").exists()
    assert not list((written / ".uploads").glob("drafts/*"))


def test_guessing_takes_time(owner, monkeypatch):
    monkeypatch.setattr(app, "PAUSE", 0.2)
    begun = time.monotonic()
    headers = {"authorization": "Bearer wrong"}
    owner.post(f"{API}/evaluations", json=ORDER, headers=headers)
    assert time.monotonic() - begun >= 0.2


def test_tokens_are_compared_without_haste(monkeypatch, tools):
    """Digests of equal length go to hmac, whatever was sent."""
    import hmac

    seen = []
    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: seen.append((a, b)) or compare(a, b))
    check_token(tools.token, f"bearer {tools.token}")
    for wrong in ("Bearer a", "", f"Basic {tools.token}"):
        with pytest.raises(Refused, match="token"):
            check_token(tools.token, wrong)
    assert {(len(a), len(b)) for a, b in seen} == {(32, 32)}
    assert len(seen) == 4


# -- paths ----------------------------------------------------------------------------------

CLIMBS = [
    "../outside",
    "/etc/passwd",
    "..%2f..%2foutside",
    "%2e%2e",
    "%2e%2e%2foutside",
    "..%5coutside",
    "....//outside",
    "a%00b",
    "%00",
    ".uploads",
    "C:%5c",
    "~root",
    "%ff",
    "\u202e",
]


@pytest.mark.parametrize("climb", CLIMBS)
@pytest.mark.parametrize(
    "rest", ["", "/jobs", "/log?task=t&fold=0", "/predictions.csv?task=t&fold=0"]
)
def test_no_way_leads_out_by_the_path(looker, evaluated, tools, climb, rest):
    if not (evaluated.parent / "outside").exists():
        tools.write_run(evaluated.parent / "outside", "secret")
    answer = looker.get(f"{API}/runs/{climb}{rest}")
    assert answer.status_code in (404, 400)
    assert "secret" not in answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    "climb", [*CLIMBS, "../../../../secret", "0/../../../../secret", "/secret"]
)
def test_no_way_leads_out_by_a_parameter(looker, evaluated, climb):
    (evaluated / "secret").mkdir(exist_ok=True)
    for name in ("predictions.csv", "metadata.json", "0.txt"):
        (evaluated / "secret" / name).write_text("{}")
    run = next(evaluated.glob("onehot.*")).name
    for asked in (
        {"task": climb, "fold": "0"},
        {"task": "halves", "fold": "0", "view": climb},
        {"task": f"halves/0/{climb}", "fold": "0", "view": "clean"},
    ):
        for what in ("predictions.csv", "predictions"):
            answer = looker.get(f"{API}/runs/{run}/{what}", params=asked)
            assert answer.status_code == 404
    answer = looker.get(f"{API}/runs/{run}/log", params={"task": climb, "fold": "0"})
    assert answer.status_code == 404


@pytest.mark.parametrize(
    "name", ["..", ".hidden.txt", "a/b.txt", "a\\b.txt", "a\0.txt", "a..txt", ""]
)
def test_uploads_have_plain_names(owner, written, name):
    body = {"content": b"a 1 2\n", "headers": {"content-type": "application/octet-stream"}}
    for path in ("/vectors", "/runs"):
        answer = owner.post(f"{API}{path}", params={"name": name}, **body)
        assert answer.status_code in (400, 422)
    assert not list(written.glob(".uploads/vectors/*"))
    assert not list(written.glob(".uploads/drafts/*"))
