"""The page: markup, names as texts, the content security policy and plain tables."""

import base64
import hashlib
import json
import re
from html import escape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import karat
from karat.reporting import page as module
from karat.reporting.bundle import make_bundle
from karat.reporting.page import (
    leaderboard_tables,
    make_page,
    page_files,
    plain_sections,
    policy,
    report,
)

from ..score_data import score_table

EVIL = "<script>alert('x')</script> / & \"q\""


class Page(HTMLParser):
    """Collects tags and texts, and that every tag is closed."""

    VOID = {"meta", "br", "link"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.texts, self.scripts = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def bundle(self):
        return json.loads(self.scripts[0])

    @property
    def allowed(self):
        content = next(a["content"] for tag, a in self.tags if tag == "meta" and "http-equiv" in a)
        return dict(part.strip().split(" ", 1) for part in content.split(";"))


def broken(items):
    raise ValueError(EVIL)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    table["y"] = np.where(table["a"] + table["b"] > 0, "yes", "no")
    data = karat.Dataset.from_table(table, target="y", name=EVIL)
    task = karat.Task(
        EVIL,
        data,
        probe={"use": "trained", "head": {"use": "adamw", "n_epochs": 3}},
        split={"use": "kfold", "folds": 2},
        metrics=["acc"],
        corruptions={"noise_gaussian": [0.2, 0.4], "noise_gaussian+noise_uniform": [0.2]},
    )
    models = {EVIL: lambda items: items.to_numpy(), "broken": broken}
    return karat.evaluate(models, task, output=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def text(runs, tmp_path_factory):
    return report(runs, tmp_path_factory.mktemp("page") / "report.html").read_text("utf-8")


def test_the_page_is_whole_and_needs_nothing_else(text):
    page = Page(text)
    assert page.open == []
    for _, attributes in page.tags:
        assert not {"src", "onload", "onclick", "style"} & attributes.keys()
        assert attributes.get("href", "data:").startswith("data:")  # the icon
    assert "url(" not in "".join(page_files(".css"))
    assert "@import" not in "".join(page_files(".css"))
    assert len(text.encode()) < 2_000_000
    assert page_files(".js") and page_files(".css"), "they are part of the package"


def test_names_are_texts_and_never_markup(text):
    page = Page(text)
    assert len(page.scripts) == 1 + len(page_files(".js")), "only those that are our own"
    assert "".join(page.texts).count(EVIL) >= 5
    assert [model["name"] for model in page.bundle["models"]].count(EVIL) == 1
    assert "<" not in page.scripts[0]


def test_only_the_scripts_of_the_page_may_run(text):
    page = Page(text)
    sums = [
        "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"
        for script in page.scripts[1:]
    ]
    assert page.allowed["script-src"].split() == (sums or ["'none'"])
    assert page.allowed["default-src"] == page.allowed["connect-src"] == "'none'"
    assert page.allowed["base-uri"] == page.allowed["form-action"] == "'none'"
    assert not [script for script in page_files(".js") if "</script" in script or "<!--" in script]
    assert not [style for style in page_files(".css") if "</style" in style]


def test_a_live_page_may_only_connect_to_its_server(runs):
    bundle = make_bundle(runs)
    for live, address in ((True, None), ("/api/bundle", "/api/bundle")):
        page = Page(make_page(bundle, live=live))
        assert page.allowed["connect-src"] == "'self'"
        (root,) = (attributes for tag, attributes in page.tags if tag == "html")
        assert (root["data-live"], root.get("data-address")) == ("true", address)
    (root,) = (a for tag, a in Page(make_page(bundle)).tags if tag == "html")
    assert (root["data-live"], root.get("data-address")) == ("false", None)


def test_sections_of_the_page(text):
    titles = re.findall(r"<h2>([^<]+)</h2>", text)
    expected = ["Verdict", "Leaderboard", "Robustness", "Failures: 2", "Datasets", "Provenance"]
    assert [title for title in titles if not title.startswith("Checks")] == expected
    found = Page(text).bundle
    curve, pair = found["curves"]
    assert pair["corruption"] == "noise_gaussian+noise_uniform"
    assert (curve["corruption"], curve["lines"][0]["x"]) == ("noise_gaussian", [0, 0.2, 0.4])
    assert len(found["learning"]) == 3 and len(found["maps"]) == 1
    assert "ValueError" in found["failures"][0]["log"]
    (entry,) = found["details"]["0"]
    assert sum(map(sum, entry["confusion"]["counts"])) == 120, "every row is tested once"


HARD = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    '" onmouseover="alert(1)',
    "\u202eevil\u202c \u2066x\u2069",
    "line\u2028and\u2029paragraph",
    "nul\x00and\x1b[1m",
    "]]>&amp;&lt;",
    "n" * 10_000,
]


#: characters that change the direction of a text, break lines or control a terminal
STEERING = set("\u202e\u2066\u2028\u2029\x00\x1b")


@pytest.mark.parametrize("name", HARD, ids=range(len(HARD)))
def test_hard_names_are_data_everywhere(make_run, tmp_path, name):
    kept = {(name, 1): {"log.txt": name}}
    tasks = {name: {"about": {"source": name, "license": name}, "dataset": name}}
    run = make_run(name, {name: [0.5, name]}, tasks=tasks, files=kept, suite=name, command=name)
    page = Page(report(run, tmp_path / "r.html").read_text("utf-8"))
    assert page.open == []
    assert len(page.scripts) == 1 + len(page_files(".js"))
    assert not [tag for tag, attributes in page.tags if "onmouseover" in attributes]
    assert not STEERING & set("".join(page.texts)), "no sign steers the reader"
    found = page.bundle
    assert found["models"][0]["name"] == found["tasks"][0]["name"] == found["title"] == name
    assert found["cards"][0]["license"] == found["runs"][0]["command"] == name
    assert found["failures"][0]["log"] == name[-4000:]
    assert not {"<", "\u2028", "\u2029"} & set(page.scripts[0])


def test_half_a_sign_never_stops_the_page(make_run, tmp_path):
    run = make_run("m", {"t": [0.5]})
    about = json.loads((run.folder / "run.json").read_text("utf-8"))
    about |= {"suite": "half \ud800", "platform": "\udfff"}
    (run.folder / "run.json").write_text(json.dumps(about))
    page = Page(report(run, tmp_path / "r.html").read_text("utf-8"))
    assert page.bundle["title"] == "half \ufffd"
    assert page.bundle["runs"][0]["platform"] == "\ufffd"


def test_without_scripts_and_styles_there_is_still_a_page(make_run, monkeypatch):
    monkeypatch.setattr(module, "FOLDER", "no_such_folder")
    page = Page(make_page(make_bundle(make_run("m", {"t": [0.5]}))))
    assert page.open == [] and len(page.scripts) == 1
    assert page.allowed["script-src"] == "'none'"
    assert "Leaderboard" in page.texts


def test_the_sum_of_a_known_script():
    # printf 'alert(1)' | openssl dgst -sha256 -binary | base64
    known = "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"
    assert f"script-src {known};" in policy(["alert(1)"])


def test_the_same_runs_give_the_same_bytes(runs, text, tmp_path):
    assert report(runs, tmp_path / "again.html").read_text("utf-8") == text


def test_the_command_writes_the_page_with_its_title(cli, make_run, tmp_path):
    run = make_run("m", {"t": [0.5]})
    result = cli("report", run.folder, "-o", tmp_path / "r.html", "--title", "<b>Mine</b>")
    assert result.code == 0 and result.out.strip() == str(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text("utf-8")
    assert "<h1>&lt;b&gt;Mine&lt;/b&gt;</h1>" in text
    assert cli("report", tmp_path / "nothing").code == 2


def texts(column):
    return [cell.text for cell in column.cells]


def named(table):
    return {column.name: column for column in table.all_columns}


def leaderboard_of(bundle):
    ((_, table),) = leaderboard_tables(bundle)
    return table


def titles(bundle):
    return re.findall(r"<h2>([^<]+)</h2>", "".join(plain_sections(bundle)))


def test_plain_leaderboard(make_run):
    one = make_run("one", {"t": [0.9, 0.7], "u": ["broke"]})
    two = make_run("two", {"t": [0.5, 0.6], "u": [0.5]})
    columns = named(leaderboard_of(make_bundle([one, two])))
    place = texts(columns["model"]).index("one")
    assert texts(columns["t"])[place] == "0.800"
    assert columns["t"].cells[place].best and not columns["t"].cells[1 - place].best
    assert columns["t"].label == "acc ↑"
    assert texts(columns["u"])[place] == "failed" and columns["u"].cells[place].faint
    assert texts(columns["failed"])[place] == "1"


def test_where_less_is_better_the_least_is_marked():
    column = named(leaderboard_of(make_bundle(score_table({"t": {"a": 2, "b": 1}}, "rmse"))))["t"]
    assert [(cell.text, cell.best) for cell in column.cells] == [("1.000", True), ("2.000", False)]


def test_very_many_cells_are_left_to_scripts(monkeypatch):
    monkeypatch.setattr(module, "MAX_CELLS", 3)
    board = leaderboard_of(make_bundle(score_table({t: {"a": 0.1, "b": 0.2} for t in "tu"})))
    assert "t" not in named(board)
    assert "2 tasks" in board.notes[-1]


def test_sections_without_data_are_absent(make_run):
    found = titles(make_bundle(score_table({"t": {"a": 0.5, "b": 0.5}})))
    assert found[:2] == ["Verdict", "Leaderboard"]
    assert not {"Robustness", "Failures: 1", "Datasets", "Provenance"} & set(found)
    run = make_run("m", {"t": [0.5, "broke"]})
    assert {"Failures: 1", "Datasets", "Provenance"} <= set(titles(make_bundle(run)))


def test_of_many_failures_the_first_are_listed_and_the_others_counted(make_run, monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 2)
    page = "".join(plain_sections(make_bundle(make_run("m", {"t": [0.5, *["broke"] * 5]}))))
    failures = page.partition("Failures: 5")[2].partition("</section>")[0]
    assert failures.count("<tr>") == 1 + 2
    assert "3 more" in failures


def test_long_names_are_cut_in_failures(make_run):
    page = "".join(plain_sections(make_bundle(make_run("m" * 10_000, {"t": [0.5, *["x"] * 9]}))))
    assert "m" * 10_000 in page
    assert len(page) < 60_000


def test_the_page_has_an_icon_and_describes_itself_to_links(runs):
    tags = Page(make_page(make_bundle(runs, title=EVIL))).tags
    meta = {a["property"]: a["content"] for tag, a in tags if tag == "meta" and "property" in a}
    assert meta["og:title"] == EVIL
    assert meta["og:type"] == "website" and meta["og:site_name"] == "Karat"
    (about,) = (a["content"] for tag, a in tags if tag == "meta" and a.get("name") == "description")
    assert meta["og:description"] == about and about
    (icon,) = (a["href"] for tag, a in tags if tag == "link" and a["rel"] == "icon")
    assert icon.startswith("data:image/svg+xml,") and "%3Csvg" in icon


def test_groups_have_a_table_each_and_no_common_order():
    tables = {f"t{t}": {"a": 0.9, "b": 0.8, "dummy": 0.1} for t in range(6)}
    texts = {f"u{t}": {"c": 0.9, "d": 0.8, "dummy": 0.1} for t in range(6)}
    bundle = make_bundle(score_table({**tables, **texts}))
    found = list(leaderboard_tables(bundle))
    names = [[cell.text for cell in table.model.cells] for _, table in found]
    assert names == [["a", "b", "dummy"], ["c", "d", "dummy"]]
    heads = [[c.name for c in table.columns if c.part == "task"] for _, table in found]
    assert heads == [list(tables), list(texts)]
    assert [title for title in titles(bundle) if "Leaderboard" in title] == [t for t, _ in found]


def test_links_to_the_page_show_the_answer():
    bundle = make_bundle(score_table({f"t{t}": {"a": 0.9, "b": 0.8, "c": 0.1} for t in range(8)}))
    (answer, *_) = bundle["verdict"][0]["lines"]
    page = make_page(bundle)
    assert f'<meta property="og:description" content="{escape(answer["text"])}">' in page
    assert page.index("<h2>Verdict</h2>") < page.index("<h2>Leaderboard</h2>")


def test_a_bundle_without_groups_and_verdict_makes_a_page():
    bundle = make_bundle(score_table({"t": {"a": 0.9, "b": 0.8}}))
    lists = ("models", "tasks", "scores", "spread", "states", "checks", "runs")
    bare = {**bundle, **{name: [] for name in lists}, "notes": ["There is no run here yet."]}
    del bare["groups"], bare["verdict"], bare["partial"]
    assert "There is no run here yet." in make_page(bare)
