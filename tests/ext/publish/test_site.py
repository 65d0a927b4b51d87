"""The static site: its files, links, numbers, and names that are no file names."""

from __future__ import annotations

import json
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import karat
from karat.core.files import safe_names
from karat.errors import DataError
from karat.ext.publish.site import POLICY, site
from karat.reporting.page import make_bundle

from ...score_data import write_run

EVIL = "<script>alert('x')</script> / & \"q\" ü"


class Links(HTMLParser):
    """Collects links, tags and the texts of table cells."""

    def __init__(self, path):
        super().__init__()
        self.links, self.tags, self.cells, self.inside = [], set(), [], False
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]
        if tag == "td":
            self.cells.append("")
        self.inside = self.inside or tag == "td"

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "td"

    def handle_data(self, data):
        if self.inside:
            self.cells[-1] += data


@pytest.fixture
def made(tmp_path):
    runs = tmp_path / "runs"
    write_run(runs, EVIL, {"t": [0.5, 0.7], "rmse/x": [2.0, 4.0]})
    write_run(runs, "Good", {"t": [0.8, 0.8], "rmse/x": [1.0, 1.0]})
    write_run(runs, "good", {"t": [0.8, 0.8], "rmse/x": "declined"})
    site(runs, tmp_path / "site", title=EVIL)
    return tmp_path / "site"


def test_every_link_leads_to_a_file(made):
    pages = sorted(made.rglob("*.html"))
    assert len(pages) == 2 + 3 + 2
    for page in pages:
        found = Links(page)
        local = [link for link in found.links if not urlsplit(link).scheme]
        assert local or page.name == "report.html"
        for link in local:
            assert (page.parent / unquote(link)).is_file(), (page, link)
        assert page.with_suffix(".json").is_file()
        if page.name != "report.html":
            assert "script" not in found.tags
            assert escape(POLICY) in page.read_text("utf-8")


def test_names_that_differ_in_case_have_two_pages(made):
    names = [path.name.lower() for path in (made / "models").glob("*.html")]
    assert len(set(names)) == 3
    one, other = safe_names(["a", "A"])
    assert one == "a" and other.startswith("A-")


def test_the_pages_have_the_numbers_of_the_report(made, tmp_path):
    bundle = make_bundle(tmp_path / "runs", title=EVIL)
    assert json.loads((made / "report.json").read_text("utf-8")) == json.loads(json.dumps(bundle))
    index = json.loads((made / "index.json").read_text("utf-8"))
    assert [m["name"] for m in index["models"]] == [m["name"] for m in bundle["models"]]
    by_name = {model["name"]: model["page"] for model in index["models"]}
    data = json.loads((made / unquote(by_name[EVIL])).with_suffix(".json").read_text("utf-8"))
    found = {task["task"]: task for task in data["tasks"]}
    assert found["t"]["scores"]["acc"] == pytest.approx(0.6) and found["t"]["place"] == 3
    assert found["rmse/x"]["scores"]["rmse"] == 3.0 and found["rmse/x"]["place"] == 2
    cells = Links(made / unquote(by_name[EVIL])).cells
    assert "0.600" in cells and "3 of 3" in cells and "2 of 2" in cells
    declined = Links(made / unquote(by_name["good"])).cells
    assert "not applicable" in declined


def test_a_model_has_its_rank_among_the_models_of_each_of_its_groups(tmp_path):
    tables, texts = [f"table{i}" for i in range(4)], [f"text{i}" for i in range(3)]
    for place, name in enumerate(("rows", "trees", "forest")):
        write_run(tmp_path / "runs", name, {task: [0.9 - place / 10] for task in tables})
    for place, name in enumerate(("words", "sentences")):
        write_run(tmp_path / "runs", name, {task: [0.9 - place / 10] for task in texts})
    write_run(tmp_path / "runs", "random", {task: [0.1] for task in (*tables, *texts)})
    site(tmp_path / "runs", tmp_path / "site")
    page = (tmp_path / "site" / "models" / "trees.html").read_text("utf-8")
    assert "2.0 of 4 models" in page
    page = (tmp_path / "site" / "models" / "random.html").read_text("utf-8")
    assert "4.0 of 4 models" in page and "3.0 of 3 models" in page


def test_a_page_of_a_task_lists_models_by_score(made):
    index = json.loads((made / "index.json").read_text("utf-8"))
    page = next(task["page"] for task in index["tasks"] if task["name"] == "rmse/x")
    cells = Links(made / unquote(page)).cells
    assert cells.index("Good") < cells.index(EVIL) < cells.index("good")
    data = json.loads((made / unquote(page)).with_suffix(".json").read_text("utf-8"))
    assert data["data"][0]["fingerprint"] == "abcdef12"


def test_a_site_is_replaced_and_other_folders_are_not(made, tmp_path):
    kept = made / "models" / "CNAME"
    kept.write_text("x")
    write_run(tmp_path / "few", "new", {"t": [0.5, 0.7]})
    karat.site(tmp_path / "few", made)
    assert [path.name for path in (made / "models").glob("*.html")] == ["new.html"]
    assert kept.is_file()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("x")
    with pytest.raises(DataError, match="other files"):
        site(tmp_path / "few", tmp_path / "home")
    with pytest.raises(DataError, match="is a file"):
        site(tmp_path / "few", tmp_path / "home" / "thesis.tex")
    assert [path.name for path in Path(tmp_path / "home").iterdir()] == ["thesis.tex"]


def test_the_same_runs_give_the_same_bytes(made, tmp_path):
    other = tmp_path / "again"
    site(tmp_path / "runs", other, title=EVIL)
    for path in made.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (other / path.relative_to(made)).read_bytes()
