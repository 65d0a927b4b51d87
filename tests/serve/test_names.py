"""Names of models, tasks and labels are data, never markup, however strange they are."""

import json
import re
from html.parser import HTMLParser

import pytest

API = "/api/v1"
STRANGE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"'><b>`${7*7}`",
    "javascript:alert(1)",
    "a\u202eb\u2066c\u200f",
    "line\u2028para\u2029graph\nnew\ttab",
    "nul\0and\x1bescape",
    "../../etc/passwd",
    "{{7*7}} {% raw %} %s %(x)s {0}",
    "=HYPERLINK(1)",
    "x" * 10_000,
    "–ü😀",
    "<!-- --><!--<script>",
    "&lt;b&gt;&amp;",
]


class Tags(HTMLParser):
    """Counts tags; a page has as many as it would have with plain names."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.handlers = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def write(folder, tools, names):
    for i, name in enumerate(names):
        scores = {name: [0.5, 0.25 + i / 100], f"{name} again": [0.5, 1.0], "plain": [1.0, 0.5]}
        tools.write_run(folder, name, scores)
    return folder


@pytest.fixture(scope="module")
def strange(tmp_path_factory, tools):
    """A client of a folder of strange names."""
    folder = write(tmp_path_factory.mktemp("strange"), tools, STRANGE)
    with tools.opened(folder) as client:
        yield client


def test_the_api_gives_names_back_as_they_are(strange):
    told = strange.get(f"{API}/runs").json()
    assert told["left_out"] == []
    assert {each["model"] for each in told["items"]} == set(STRANGE)
    board = strange.get(f"{API}/board").json()
    assert {row["model"] for row in board["items"]} == set(STRANGE)
    for name in STRANGE:
        found = strange.get(f"{API}/scores", params={"model": name, "task": name}).json()
        assert found["items"][0]["value"] == 0.5
    for path in ("board?format=csv", "board?format=markdown", "scores?format=csv"):
        assert strange.get(f"{API}/{path}").status_code == 200


@pytest.mark.parametrize("path", ["/", "/report.html"])
def test_a_page_of_strange_names_is_a_page_like_any_other(strange, looker, path):
    answer = strange.get(path)
    assert answer.status_code == 200
    ours, theirs = Tags(answer.text), Tags(looker.get(path).text)
    assert ours.tags.count("script") == theirs.tags.count("script") > 0
    assert set(ours.tags) <= set(theirs.tags)
    assert ours.handlers == []


def test_the_bundle_in_the_page_cannot_be_left(strange):
    page = strange.get("/").text
    found = re.search(r'<script type="application/json" id="bundle">(.*?)</script>', page, re.S)
    assert found
    assert "<" not in found[1]
    assert {model["model"] for model in json.loads(found[1])["models"]} == set(STRANGE)


def test_half_a_character_is_no_name(written, tools):
    path = sorted(written.glob("*/run.json"))[0]
    path.write_text(json.dumps({**json.loads(path.read_text()), "model": "\ud800"}))
    with tools.opened(written) as client:
        told = client.get(f"{API}/runs").json()
        assert [each["run"] for each in told["left_out"]] == [path.parent.name]


def test_a_name_in_an_error_is_data_too(looker):
    answer = looker.get(f"{API}/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/json"
    answer = looker.get(f"{API}/runs/{'x' * 10_000}")
    assert answer.status_code == 404
    assert len(answer.content) < 1000
