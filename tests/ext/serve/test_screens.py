"""The pages of the server: forms for those who may write, and the API with examples that work."""

import io
import json
import os
import re
import shutil
import subprocess
import zipfile
from html import unescape
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from fastapi.routing import APIRoute

from karat.ext.serve import routes
from karat.ext.serve.screens import Values, example_values, list_calls, make_api_page, make_form
from karat.ext.serve.server import ServerSettings
from karat.ext.serve.snapshots import FolderWatcher, Snapshot

API = "/api/v1"
PAGES = ("/upload", "/evaluate", "/geval", "/docs")


@pytest.mark.parametrize("path", PAGES)
def test_pages_run_only_their_own_scripts(reader, path):
    page = reader.get(path)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = page.headers["content-security-policy"]
    scripts = re.findall(r"<script>", page.text)
    assert policy.count("'sha256-") == len(scripts) >= 3
    for rule in ("default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"):
        assert rule in policy
    assert not re.search(r"(?:src|href)=\"https?:", page.text)
    assert not re.search(r"\son\w+=", page.text.partition("<script>")[0])
    tag = page.headers["etag"]
    assert reader.get(path, headers={"if-none-match": tag}).status_code == 304


@pytest.mark.parametrize("name", ["upload", "evaluate", "geval"])
def test_forms_are_disabled_on_a_server_that_is_read_only(tmp_path, name):
    closed = make_form(name, ServerSettings(tmp_path)).body
    assert '<fieldset class="all" disabled>' in closed and 'data-writable="false"' in closed
    opened = make_form(name, ServerSettings(tmp_path, token="0123456789abcdef")).body
    assert '<fieldset class="all" >' in opened and 'data-writable="true"' in opened
    assert "0123456789abcdef" not in opened


def test_every_field_has_a_label_and_a_place_for_its_error(tmp_path):
    for name in ("upload", "evaluate", "geval"):
        body = make_form(name, ServerSettings(tmp_path)).body.partition("<script>")[0]
        ids = re.findall(r'<(?:input|select)[^>]* id="(\w+)"', body)
        assert len(ids) >= 3
        for each in ids:
            assert f'<label for="{each}">' in body and f'id="{each}-error"' in body


def test_the_page_states_the_limits_of_the_server(tmp_path):
    settings = ServerSettings(tmp_path, max_upload=3 * 2**20, constraint="<b>&small")
    assert "At most 3 MB" in make_form("upload", settings).body
    assert "&lt;b&gt;&amp;small" in make_form("evaluate", settings).body


# -- the API --------------------------------------------------------------------------------


def shown(page):
    """Return the calls of the page as (method, path)."""
    found = r'<span class="method[^"]*">(\w+)</span><code>([^<]+)</code>'
    return re.findall(found, page)


def test_the_page_has_the_routes_of_the_server(reader):
    page = reader.get("/docs").text
    table = {
        (method, route.path)
        for route in routes.api.routes
        if isinstance(route, APIRoute)
        for method in route.methods
    }
    assert len(shown(page)) == len(table)
    assert set(shown(page)) == table


def test_the_page_has_every_parameter(reader):
    page = reader.get("/docs").text
    for call in list_calls(reader.get(f"{API}/openapi.json").json()):
        part = page.partition(f'<article class="call" id="{call.id}">')[2].partition("</article>")[
            0
        ]
        names = re.findall(r"<dt><code>([^<]+)</code>", part)
        assert set(names) >= {each["name"] for each in call.parameters}
        assert part.count("data-example") == 2


def test_examples_have_the_address_that_was_asked_for(reader):
    page = reader.get("/docs", headers={"host": "localhost:12345"}).text
    assert 'data-base="http://localhost:12345"' in page
    urls = re.findall(r"http://[^/\s]+/api", unescape(page))
    assert set(urls) == {"http://localhost:12345/api"}


def test_examples_without_any_run():
    values = example_values(Snapshot({}, {}, "", {}), [], [])
    assert (values.get("get_run", "run"), values.get("get_log", "fold")) == ("RUN", "0")


def test_strange_names_are_quoted_in_examples(tmp_path, tools, reader):
    name = "a'b <script>alert(1)</script>/$(x)\"`"
    tools.write_run(tmp_path, name, {name: [0.5]})
    values = example_values(FolderWatcher(tmp_path).snapshot(), [], [])
    description = reader.get(f"{API}/openapi.json").json()
    page = make_api_page(description, values, "http://localhost").body.partition("<script>(")[0]
    assert "<script>alert" not in page
    for call in list_calls(description):
        words = Values({}, {**values.general, "id": name, "name": name})
        compile(call.python(words, "http://localhost"), "example", "exec")
        checked = subprocess.run(["bash", "-n", "-c", call.curl(words, "http://localhost")])
        assert checked.returncode == 0
        assert "$(" not in call.curl(words, "http://localhost").replace("$KARAT_TOKEN", "")


@pytest.fixture(scope="module")
def examples(evaluated, tmp_path_factory, tools):
    """Serve a folder; yield the examples of the page, (language, call, text), and where to run."""
    place = tmp_path_factory.mktemp("examples")
    folder = shutil.copytree(evaluated, place / "runs")
    vectors = b"".join(b"%d 1.0 2.0\n" % i for i in range(5))
    (place / "vectors.txt").write_bytes(vectors)
    run = next(folder.glob("dummy.*"))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for path in run.rglob("*.json"):
            packed.write(path, path.relative_to(folder))
    (place / "run.zip").write_bytes(archive.getvalue())
    (place / "gold" / "EntityRelatedness").mkdir(parents=True)
    (place / "gold" / "EntityRelatedness" / "KORE.txt").write_text("0\n\t1\n\t2\n")
    write_geval(folder)
    options = {"token": tools.token, "queue": 10, "geval_gold": place / "gold"}
    with tools.served(folder, **options) as address:
        yield address.rstrip("/"), place


def write_geval(folder):
    """Write what karat geval writes: a log, a result file, and the file of all scores."""
    result = folder / "result_2026-01-01_00-00-00"
    result.mkdir()
    (result / "log.txt").write_text("TESTED CONFIGURATION\nrun id: v_2_cosine_2_1\n\nPROBLEMS\n")
    columns = "test_name task_name gold_standard_file coverage model model_configuration metric"
    row = "v_2_cosine_2_1 EntityRelatedness KORE 1.0 - - kendalltau_correlation 1.0"
    (folder / "comparison.csv").write_text(f"{columns} score_value\n{row}\n")


def read_examples(address):
    with urlopen(f"{address}/docs") as answer:
        page = answer.read().decode()
    pattern = r'<pre tabindex="0" data-example="(\w+)" data-call="(\w+)">([^<]*)</pre>'
    return {(kind, call): unescape(text) for kind, call, text in re.findall(pattern, page)}


#: calls that need something to be there, after those that make it
WRITING = ("add_vectors", "add_run", "add_geval_evaluation", "add_evaluation")
WRITING += ("cancel_evaluation", "resume_evaluation")


@pytest.mark.parametrize("kind", ["curl", "Python"])
def test_examples_work_as_they_are(examples, tools, kind, capsys, monkeypatch):
    address, place = examples
    if kind == "curl" and not (shutil.which("curl") and shutil.which("bash")):
        pytest.skip("needs curl and bash")
    monkeypatch.setenv("KARAT_TOKEN", tools.token)
    monkeypatch.chdir(place)
    found = read_examples(address)
    names = {name for language, name in found if language == kind}
    assert len(names) == len(routes.api.routes)
    shutil.rmtree(place / "runs" / "uploaded-run", ignore_errors=True)
    reading = sorted(names - {*WRITING, "remove_vectors"})
    for name in (*WRITING, *reading, "remove_vectors"):
        if name == "resume_evaluation":
            tools.wait_until(lambda: newest_status(address) == "cancelled")
        text = read_examples(address)[kind, name]
        assert f"{urlsplit(address).netloc}/api/v1" in text
        printed = run_example(kind, text, capsys)
        assert '"error"' not in printed and printed.strip(), (name, text, printed)
        if name in ("list_runs", "get_board", "add_evaluation") and kind == "curl":
            assert json.loads(printed)


def newest_status(address):
    with urlopen(f"{address}/api/v1/evaluations") as answer:
        return json.load(answer)["items"][0]["status"]


def run_example(kind, text, capsys):
    if kind == "Python":
        exec(text, {})  # raises HTTPError if it is refused
        return capsys.readouterr().out
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, env=os.environ)
    assert done.returncode in (0, 28), done.stderr  # 28: the time given for a stream is over
    return done.stdout
