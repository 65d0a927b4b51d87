"""The web application: what can be read, who may write, and what is refused."""

import asyncio
import csv
import hmac
import io
import json
import re
import time
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from karat.analysis.leaderboard import leaderboard
from karat.ext.serve import routes
from karat.ext.serve.guard import HEADERS, Turns
from karat.ext.serve.request_parameters import Paging
from karat.ext.serve.server import ServerSettings
from karat.ext.serve.snapshots import FolderWatcher
from karat.reporting.page import make_bundle
from karat.results.run import open_runs

API = "/api/v1"
ORDER = {"suite": "quickstart"}


@pytest.fixture(autouse=True)
def no_delay(monkeypatch):
    monkeypatch.setattr(routes, "WRONG_TOKEN_DELAY", 0.0)


def named(folder, model):
    return next(run for run in open_runs([folder]) if run.model == model)


def got(client, path, **query):
    answer = client.get(f"{API}{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(client, path, status, **query):
    answer = client.get(f"{API}{path}", params=query)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"error", "hint"}
    return answer.json()


def test_runs(client, folder):
    data = got(client, "/runs")
    assert data["total"] == 2
    assert [each["model"] for each in data["items"]] == ["dummy", "onehot"]
    first = data["items"][0]
    assert first["id"] == named(folder, "dummy").folder.name
    assert (first["planned"], first["ok"], first["left"], first["state"]) == (4, 4, 0, "finished")
    assert got(client, "/runs", offset=1, limit=1)["items"] == data["items"][1:]


def test_a_run_has_its_plan(client, folder):
    run = named(folder, "onehot")
    data = got(client, f"/runs/{run.folder.name}")
    assert data["about"] == run.about
    assert "onehot" in refused(client, "/runs/onehot", 404)["error"]


def test_jobs_are_the_records(client, folder):
    run = named(folder, "onehot")
    data = got(client, f"/runs/{run.folder.name}/jobs")
    assert data["items"] == run.records()
    one = got(client, f"/runs/{run.folder.name}/jobs", task="line", fold=1)
    assert [(r["task"], r["fold"]) for r in one["items"]] == [("line", 1)]
    assert got(client, f"/runs/{run.folder.name}/jobs", status="failed")["total"] == 0


def test_a_log_is_text_and_never_markup(client, folder):
    run = named(folder, "onehot").folder.name
    answer = client.get(f"{API}/runs/{run}/log", params={"task": "halves", "fold": 0})
    assert answer.text == "Traceback <script>alert(1)</script>\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    refused(client, f"/runs/{run}/log", 404, task="halves", fold=1)


def test_scores_are_the_tidy_table(client, folder):
    tables = [run.scores().assign(run=run.folder.name) for run in open_runs([folder])]
    whole = pd.concat(tables, ignore_index=True)
    data = got(client, "/scores")
    assert data["total"] == len(whole)
    assert data["items"][0] == whole.iloc[0].to_dict()
    few = got(client, "/scores", model="onehot", task="line", metric="rmse", fold=0)
    wanted = whole.query("model == 'onehot' and task == 'line' and metric == 'rmse' and fold == 0")
    assert [row["value"] for row in few["items"]] == wanted["value"].tolist()
    clean = got(client, "/scores", corruption="", epoch=-1)
    assert clean["total"] == (whole["corruption"] == "").sum()
    assert got(client, "/scores", corruption="noise_gaussian")["total"] > 0
    both = client.get(f"{API}/scores?metric=acc&metric=rmse").json()
    assert {row["metric"] for row in both["items"]} == {"acc", "rmse"}
    assert got(client, "/scores", offset=5, limit=5)["items"] == data["items"][5:10]
    assert got(client, "/scores", offset=10_000)["items"] == []


def test_scores_as_csv_by_accept_or_by_format(reader):
    whole = got(reader, "/scores")
    answer = reader.get(f"{API}/scores", headers={"accept": "text/csv"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == whole["total"] == int(answer.headers["x-total-count"])
    assert float(rows[3]["value"]) == whole["items"][3]["value"]
    assert reader.get(f"{API}/scores?format=csv").text == answer.text
    nothing = reader.get(f"{API}/scores", headers={"accept": "image/png"})
    assert nothing.status_code == 406
    browser = "text/html,application/xhtml+xml,*/*;q=0.8"
    assert reader.get(f"{API}/scores", headers={"accept": browser}).json()["total"]


def rows_with_keys(file):
    """Return the header and the rows of predictions, with the keys of the items."""
    keys = file.with_name("rows.csv")
    both = zip(csv.reader(file.open()), csv.reader(keys.open()), strict=True)
    return [[*row, *more] for row, more in both]


def test_predictions_are_the_file(client, folder):
    run = named(folder, "onehot")
    params = {"task": "halves", "fold": 1}
    file = run.folder / "predictions" / "halves" / "1" / "predictions.csv"
    rows = rows_with_keys(file)
    data = got(client, f"/runs/{run.folder.name}/predictions", **params)
    assert (data["columns"], data["items"], data["total"]) == (rows[0], rows[1:], 10)
    assert data["classes"] == ["high", "low"]
    part = got(client, f"/runs/{run.folder.name}/predictions", **params, offset=8, limit=5)
    assert part["items"] == rows[9:]
    answer = client.get(f"{API}/runs/{run.folder.name}/predictions.csv", params=params)
    assert answer.content == file.read_bytes()
    params["view"] = "noise_gaussian@0.5"
    data = got(client, f"/runs/{run.folder.name}/predictions", **params)
    file = file.parent / "noise_gaussian@0.5" / "predictions.csv"
    assert data["items"] == rows_with_keys(file)[1:]
    params["view"] = "noise_gaussian@0.7"
    refused(client, f"/runs/{run.folder.name}/predictions", 404, **params)


def test_damaged_predictions(client, folder):
    run = named(folder, "onehot")
    location = run.folder / "predictions" / "halves" / "1"
    (location / "predictions.csv").write_bytes(b"a,b\n\xff,1\n")
    refused(client, f"/runs/{run.folder.name}/predictions", 422, task="halves", fold=1)
    (location / "metadata.json").write_text("{")
    refused(client, f"/runs/{run.folder.name}/predictions", 422, task="halves", fold=1)


def test_the_board_is_the_leaderboard(client, folder):
    board = leaderboard(folder)
    data = got(client, "/board")
    assert [row["model"] for row in data["items"]] == list(board.index)
    assert [row["rank"] for row in data["items"]] == board["rank"].tolist()
    assert data["tasks"] == ["halves", "line"]
    assert data["separation"]["by"] == "these tasks" and data["separation"]["claim"]
    assert data["higher_is_better"] == {"halves": True, "line": False}
    by_task = got(client, "/board", by="task", metric="halves=auc", sort="seconds")
    assert {row["task"] for row in by_task["items"]} == {"halves", "line"}
    assert by_task["metrics"]["halves"] == "auc"
    text = client.get(f"{API}/board", headers={"accept": "text/markdown"})
    assert text.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "| onehot" in text.text
    table = pd.read_csv(io.StringIO(client.get(f"{API}/board?format=csv").text))
    assert table["model"].tolist() == list(board.index)
    run = named(folder, "onehot").folder.name
    assert [row["model"] for row in got(client, "/board", run=run)["items"]] == ["onehot"]
    refused(client, "/board", 404, run="../onehot")


@pytest.mark.parametrize(
    "query",
    [{"sort": "none"}, {"missing": "so"}, {"normalize": "so"}, {"metric": "halves=nothing"}]
    + [{"metric": "nothing"}, {"columns": "nothing"}],
)
def test_wrong_options_of_the_leaderboard(client, folder, query):
    data = refused(client, "/board", 422, **query)
    assert str(folder) not in data["error"]
    assert next(iter(query.values())).rpartition("=")[2] in data["error"]


def test_a_board_is_computed_once(client, monkeypatch):
    import karat.analysis.leaderboard as module

    made = []
    make = module.leaderboard
    monkeypatch.setattr(module, "leaderboard", lambda *a, **k: made.append(1) or make(*a, **k))
    for _ in range(3):
        got(client, "/board")
    assert len(made) == 1


def test_two_models_compared(reader):
    data = got(reader, "/compare", a="onehot", b="dummy")
    assert (data["first"], data["second"]) == ("onehot", "dummy")
    by_task = {row["task"]: row for row in data["tasks"]}
    scores = got(reader, "/scores", task="halves", metric="acc", corruption="")["items"]
    means = pd.DataFrame(scores).groupby("model")["value"].mean()
    assert by_task["halves"]["first"] == pytest.approx(means["onehot"])
    assert by_task["halves"]["second"] == pytest.approx(means["dummy"])
    assert isinstance(data["verdict"], str)
    back = got(reader, "/compare", a="dummy", b="onehot")
    assert back["overall"]["wins"] == data["overall"]["losses"]


def test_model_names_are_not_paths(client, folder, tmp_path, tools):
    outside = tools.write_run(tmp_path / "outside", "secret").folder
    for name in (str(outside), str(outside.parent), "../outside", "."):
        refused(client, "/compare", 404, a=name, b="dummy")
    refused(client, "/compare", 422, a="dummy", b="dummy")


def test_the_bundle_is_what_the_page_shows(client, folder):

    data = got(client, "/bundle")
    progress = data.pop("progress")
    assert progress == {"done": 8, "running": [], "failed": 0, "left": 0}
    assert progress == got(client, "/progress")
    assert data.pop("events") == f"{API}/events"
    assert data.pop("version")
    assert data == json.loads(json.dumps(make_bundle(folder)))
    answer = client.get(f"{API}/bundle")
    again = client.get(f"{API}/bundle", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_pages(reader):
    page = reader.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "/api/v1/bundle" in page.text
    assert "onehot" in page.text
    policy = page.headers["content-security-policy"]
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src 'sha256-" in policy
    assert "'unsafe-eval'" not in policy
    file = reader.get("/report.html")
    assert file.headers["content-disposition"] == 'attachment; filename="report.html"'
    assert "connect-src 'none'" in file.headers["content-security-policy"]
    assert "/api/v1/bundle" not in file.text.partition("<body")[0]
    assert reader.get("/favicon.ico").headers["content-type"] == "image/svg+xml"


def test_an_empty_folder(tmp_path, tools):
    with tools.opened(tmp_path) as client:
        data = got(client, "/bundle")
        assert data["models"] == []
        assert client.get("/").status_code == 200
        assert got(client, "/runs")["total"] == got(client, "/scores")["total"] == 0
        refused(client, "/board", 409)
        tools.write_run(tmp_path, "a")
        client.service.watcher.rescan()
        tools.wait_until(lambda: got(client, "/bundle")["models"])
        assert got(client, "/board")["total"] == 1


@pytest.mark.parametrize(
    "query", "limit=0 limit=99999 limit=ten limit=1&limit=2 offset=-1 offset=١ lmit=5".split()
)
def test_wrong_parameters_are_named(reader, query):
    answer = reader.get(f"{API}/runs?{query}")
    assert answer.status_code == 400
    assert f'"{query.partition("=")[0]}"' in answer.json()["error"]
    assert 'Did you mean "limit"?' in reader.get(f"{API}/runs?lmit=5").json()["hint"]


def test_unknown_paths_and_methods(reader):
    assert reader.get("/nothing").json() == {"error": "not found", "hint": "see /docs"}
    answer = reader.post(f"{API}/board")
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}
    both = reader.put(f"{API}/vectors", headers={"content-type": "application/json"})
    assert set(both.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


# -- protection -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/docs", f"{API}/runs", f"{API}/nothing", "/report.html"])
def test_every_response_has_security_headers(reader, path):
    answer = reader.get(path)
    for name, value in HEADERS.items():
        if name not in ("content-security-policy", "cache-control"):
            assert answer.headers[name] == value
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert "server" not in answer.headers


@pytest.mark.parametrize(("owner", "name"), [(FolderWatcher, "snapshot"), (Paging, "page")])
def test_internal_errors_hide_their_details(reader, monkeypatch, owner, name):

    def broken(self, *rest):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(owner, name, broken)
    reader.service.watcher.rescan()
    with pytest.raises(ZeroDivisionError):  # the server's own log has it
        reader.get(f"{API}/runs?limit=77")
    reader._transport.raise_server_exceptions = False
    answer = reader.get(f"{API}/runs?limit=77")
    reader._transport.raise_server_exceptions = True
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.json()["error"] == "internal error"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "10.0.0.1", "", "a b"])
def test_unknown_hosts_are_refused(reader, host):
    answer = reader.get(f"{API}/runs", headers={"host": host})
    assert answer.status_code == 421
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "onehot" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [{"origin": each} for each in ("https://evil.example", "null", "http://localhost:1234")]
    + [{"sec-fetch-site": each} for each in ("cross-site", "same-site")],
)
def test_another_site_cannot_make_a_browser_post(writer, headers):
    answer = writer.post(f"{API}/evaluations", json=ORDER, headers=headers)
    assert answer.status_code == 403
    assert writer.get(f"{API}/evaluations").json()["total"] == 0
    assert writer.delete(f"{API}/vectors/x.txt", headers=headers).status_code == 403


def test_the_same_site_can_post_and_other_sites_cannot_ask_for_permission(writer):
    headers = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    answer = writer.post(f"{API}/evaluations", json={"suite": "none"}, headers=headers)
    assert answer.status_code == 422
    headers = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    answer = writer.options(f"{API}/evaluations", headers=headers)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "kind",
    ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "TEXT/Plain"],
)
@pytest.mark.parametrize("path", ["/evaluations", "/geval", "/vectors?name=a.txt", "/runs?name=a"])
def test_forms_are_refused(writer, kind, path):
    answer = writer.post(f"{API}{path}", content=b'{"suite": "x"}', headers={"content-type": kind})
    assert answer.status_code == 415


WRITES = [
    ("POST", "/evaluations", {"json": ORDER}),
    ("POST", "/vectors?name=a.txt", {"content": b"a 1 2\n"}),
    ("POST", "/runs?name=a", {"content": b"PK"}),
    ("DELETE", "/vectors/a.txt", {}),
    ("POST", "/evaluations/x/cancel", {}),
    ("POST", "/evaluations/x/resume", {}),
    ("POST", "/geval", {"json": {"vectors": "a.txt"}}),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES, ids=lambda v: str(v)[:24])
def test_a_server_without_a_token_is_read_only(client, folder, method, path, body, tools):
    headers = {"authorization": f"Bearer {tools.token}"}
    answer = client.request(method, f"{API}{path}", headers=headers, **body)
    assert answer.status_code == 403
    assert not (folder / ".uploads").exists()


@pytest.mark.parametrize(
    "given",
    [None, "", "Bearer", "Bearer ", "Bearer " + "x" * 10_000, "Bearer \xff\xfe"]
    + [f"Bearer 0123456789{end}" for end in ("abcdef-toke", "abcdef-token1", "ABCDEF-token")]
    + ["Basic 0123456789abcdef-token", "0123456789abcdef-token"],
)
@pytest.mark.parametrize(("method", "path", "body"), WRITES[:3], ids=lambda v: str(v)[:24])
def test_a_wrong_token_is_refused(writer, written, method, path, body, given):
    del writer.headers["authorization"]
    headers = {} if given is None else {"authorization": given.encode("latin-1")}
    answer = writer.request(method, f"{API}{path}", headers=headers, **body)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert not (written / ".uploads" / "vectors").exists()
    assert not list((written / ".uploads").glob("drafts/*"))


def test_a_wrong_token_is_answered_late(writer, monkeypatch):
    monkeypatch.setattr(routes, "WRONG_TOKEN_DELAY", 0.2)
    begun = time.monotonic()
    headers = {"authorization": "Bearer wrong"}
    writer.post(f"{API}/evaluations", json=ORDER, headers=headers)
    assert time.monotonic() - begun >= 0.2


def test_a_client_cannot_try_many_tokens_at_a_time(monkeypatch, tools):
    inside, pause = [0], asyncio.sleep

    async def sleep(seconds):
        inside[0] += 1
        inside.append(inside[0])
        await pause(0)
        inside[0] -= 1

    async def guess_many():
        service = SimpleNamespace(settings=ServerSettings(Path("x"), token=tools.token))
        service.guesses = Turns(total=1000, per_client=1)
        request = SimpleNamespace(scope={"client": ("192.0.2.1", 1)})
        guesses = (routes.require_token(request, service, None) for _ in range(20))
        return await asyncio.gather(*guesses, return_exceptions=True)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert [error.status for error in asyncio.run(guess_many())] == [401] * 20
    assert inside == [0] + [1] * 20


def test_tokens_are_compared_in_constant_time(writer, monkeypatch, tools):
    """Digests of equal length are compared, whatever was sent."""

    seen = []
    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: seen.append((a, b)) or compare(a, b))
    for given in (f"bearer {tools.token}", "Bearer a", "", f"Basic {tools.token}"):
        writer.post(f"{API}/evaluations", json=ORDER, headers={"authorization": given})
    assert [(len(a), len(b)) for a, b in seen] == [(32, 32)] * 4


# -- paths ----------------------------------------------------------------------------------

PATHS = "../outside /etc/passwd ..%2f..%2foutside %2e%2e %2e%2e%2foutside ..%5coutside".split()
PATHS += "....//outside a%00b %00 .uploads C:%5c ~root %ff \u202e".split()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "rest", ["", "/jobs", "/log?task=t&fold=0", "/predictions.csv?task=t&fold=0"]
)
def test_paths_do_not_leave_the_folder(reader, evaluated, tools, path, rest):
    if not (evaluated.parent / "outside").exists():
        tools.write_run(evaluated.parent / "outside", "secret")
    answer = reader.get(f"{API}/runs/{path}{rest}")
    assert answer.status_code in (404, 400)
    assert "secret" not in answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize("path", [*PATHS, "../../../../secret", "0/../../../../secret", "/secret"])
def test_parameters_do_not_leave_the_folder(reader, evaluated, path):
    (evaluated / "secret").mkdir(exist_ok=True)
    for name in ("predictions.csv", "metadata.json", "0.txt"):
        (evaluated / "secret" / name).write_text("{}")
    run = next(evaluated.glob("onehot.*")).name
    for task, view in ((path, "clean"), ("halves", path), (f"halves/0/{path}", "clean")):
        for name in ("predictions.csv", "predictions"):
            refused(reader, f"/runs/{run}/{name}", 404, task=task, fold=0, view=view)
    refused(reader, f"/runs/{run}/log", 404, task=path, fold=0)


@pytest.mark.parametrize(
    "name", ["..", ".hidden.txt", "a/b.txt", "a\\b.txt", "a\0.txt", "a..txt", ""]
)
def test_uploads_have_plain_names(writer, written, name):
    headers = {"content-type": "application/octet-stream"}
    for path in ("/vectors", "/runs"):
        params = {"name": name}
        answer = writer.post(f"{API}{path}", params=params, content=b"a 1\n", headers=headers)
        assert answer.status_code in (400, 422)
    assert not list(written.glob(".uploads/vectors/*"))
    assert not list(written.glob(".uploads/drafts/*"))


# -- strange names --------------------------------------------------------------------------

STRANGE = ["<script>alert(1)</script>", "</script><script>alert(1)</script>", "javascript:alert(1)"]
STRANGE += ["<img src=x onerror=alert(1)>", "\"'><b>`${7*7}`", "a\u202eb\u2066c\u200f", "–ü😀"]
STRANGE += ["line\u2028para\u2029graph\nnew\ttab", "nul\0and\x1bescape", "../../etc/passwd"]
STRANGE += ["{{7*7}} {% raw %} %s %(x)s {0}", "=HYPERLINK(1)", "x" * 10_000, "&lt;b&gt;&amp;"]
STRANGE += ["<!-- --><!--<script>", "<i>italic</i><b>bold</b>"]


class Tags(HTMLParser):
    """Counts the tags of a page, and the attributes of each."""

    def __init__(self, page):
        super().__init__()
        self.counts = Counter()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag != "span":  # of text that is long when it is shown; no name has this tag
            self.counts.update([tag, *(f"{tag} {name}" for name, _ in attrs)])


def client_of_names(folder, tools, names):
    """A client of runs that differ in the names of models and tasks only."""
    for i, name in enumerate(names):
        scores = {name: [0.5, 0.25 + i / 100], f"{name} again": [0.5, 1.0], "plain": [1.0, 0.5]}
        tools.write_run(folder, name, scores)
    return tools.opened(folder)


@pytest.fixture(scope="module")
def strange(tmp_path_factory, tools):
    """A client of a folder of strange names."""
    with client_of_names(tmp_path_factory.mktemp("strange"), tools, STRANGE) as client:
        yield client


def test_the_api_returns_names_unchanged(strange):
    data = strange.get(f"{API}/runs").json()
    assert data["left_out"] == []
    assert {each["model"] for each in data["items"]} == set(STRANGE)
    board = strange.get(f"{API}/board").json()
    assert {row["model"] for row in board["items"]} == set(STRANGE)
    for name in STRANGE:
        found = strange.get(f"{API}/scores", params={"model": name, "task": name}).json()
        assert found["items"][0]["value"] == 0.5
    for path in ("board?format=csv", "board?format=markdown", "scores?format=csv"):
        assert strange.get(f"{API}/{path}").status_code == 200


@pytest.mark.parametrize("path", ["/", "/report.html"])
def test_names_are_not_markup_in_pages(strange, tmp_path, tools, path):
    answer = strange.get(path)
    assert answer.status_code == 200
    with client_of_names(tmp_path, tools, [f"name-{i}" for i in range(len(STRANGE))]) as plain:
        expected = Tags(plain.get(path).text).counts
    # tasks that a model did not run have a sign in italics
    assert expected["script"] > 0 and expected["i"] > 0
    assert Tags(answer.text).counts == expected
    assert "&lt;i&gt;italic&lt;/i&gt;" in answer.text and "<i>italic" not in answer.text
    pattern = r'<script type="application/json" id="bundle">(.*?)</script>'
    found = re.search(pattern, answer.text, re.S)
    assert "<" not in found[1]
    assert {model["model"] for model in json.loads(found[1])["models"]} == set(STRANGE)


def test_a_lone_surrogate_is_not_a_name(written, tools):
    path = sorted(written.glob("*/run.json"))[0]
    path.write_text(json.dumps({**json.loads(path.read_text()), "model": "\ud800"}))
    with tools.opened(written) as client:
        data = client.get(f"{API}/runs").json()
        assert [each["run"] for each in data["left_out"]] == [path.parent.name]


def test_names_in_errors_are_json(reader):
    answer = reader.get(f"{API}/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/json"
    answer = reader.get(f"{API}/runs/{'x' * 10_000}")
    assert answer.status_code == 404
    assert len(answer.content) < 1000


# -- conditional requests -------------------------------------------------------------------


def test_an_entity_tag_is_answered_by_304(reader):
    whole = reader.get(f"{API}/runs", headers={"accept-encoding": "identity"})
    tag = whole.headers["etag"]
    assert whole.headers["vary"] == "Accept, Accept-Encoding"
    assert whole.headers["cache-control"] == "no-cache"
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = reader.get(f"{API}/runs", headers={"if-none-match": known})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert reader.get(f"{API}/runs", headers={"if-none-match": '"other"'}).status_code == 200


def test_gzip_has_a_weak_entity_tag(reader):
    raw = reader.get("/report.html", headers={"accept-encoding": "identity"})
    packed = reader.get("/report.html", headers={"accept-encoding": "br, gzip"})
    assert "content-encoding" not in raw.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["etag"] == f"W/{raw.headers['etag']}"
    assert packed.content == raw.content
    known = {"if-none-match": packed.headers["etag"], "accept-encoding": "gzip"}
    assert reader.get("/report.html", headers=known).status_code == 304


@pytest.mark.parametrize("path", [f"{API}/runs", "/", "/docs", "/upload", f"{API}/nothing"])
def test_head_has_the_headers_of_get_and_no_body(reader, path):
    whole, head = reader.get(path), reader.head(path)
    assert head.content == b""
    assert (head.status_code, head.headers) == (whole.status_code, whole.headers)


def test_ranges_of_a_file(client, folder):
    run = named(folder, "onehot")
    path = f"{API}/runs/{run.folder.name}/predictions.csv?task=halves&fold=1"
    content = client.get(path).content
    tag = client.get(path, headers={"accept-encoding": "identity"}).headers["etag"]
    for wanted, part in (("0-9", content[:10]), ("5-", content[5:]), ("-4", content[-4:])):
        answer = client.get(path, headers={"range": f"bytes={wanted}"})
        assert (answer.status_code, answer.content) == (206, part)
        assert answer.headers["content-range"].endswith(f"/{len(content)}")
    assert client.get(path, headers={"range": "bytes=99999-"}).status_code == 416
    old = client.get(path, headers={"range": "bytes=0-9", "if-range": '"old"'})
    new = client.get(path, headers={"range": "bytes=0-9", "if-range": tag})
    assert (old.status_code, new.status_code) == (200, 206)
    assert client.get(path, headers={"if-none-match": tag}).status_code == 304


# -- the description of the API -------------------------------------------------------------


def test_the_description_has_every_endpoint(reader):
    described = reader.get(f"{API}/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    operations = {(m, p): o for p, each in described["paths"].items() for m, o in each.items()}
    assert len(operations) == 30
    for (method, _), operation in operations.items():
        assert ("security" in operation) == (method != "get")
    assert len({each["operationId"] for each in operations.values()}) == 30
    references = set(re.findall(r"#/components/schemas/(\w+)", str(described)))
    assert references <= set(described["components"]["schemas"])
    assert not [name for name in references if "Validation" in name]
