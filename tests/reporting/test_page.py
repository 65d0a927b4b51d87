"""The page: markup, names as texts, the content security policy and plain tables."""

import base64
import hashlib
import itertools
import json
import math
import re
from html import escape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.analysis.all_pairs import compare_all
from karat.analysis.comparison import compare
from karat.analysis.leaderboard import leaderboard
from karat.errors import DataError
from karat.ext.plots import figures as plots
from karat.reporting import page as module
from karat.reporting.details import size
from karat.reporting.page import (
    leaderboard_tables,
    make_bundle,
    make_page,
    page_files,
    plain_sections,
    policy,
    report,
)
from karat.stats import ranking as ranks

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


# -- The data of a page: shape, scores, tests, curves, failures and limits ------------------------


KEYS = {
    *("schema", "title", "karat", "made", "confidence", "rule", "notes", "models", "tasks"),
    "groups",
    *("scores", "spread", "folds", "states", "tests", "curves", "robustness", "learning"),
    *("details", "failures", "maps", "cards", "checks", "runs", "cut"),
    *("groups", "verdict", "partial", "cheapest"),
    "where",  # the folder of the runs, as commands on the page name it
}
#: ``differences`` is what each task shows about each pair, for a selection of a few tasks
TESTS = {"procedure", "friedman", "why", "cliques", "pairs", "by_task", "differences", "groups"}
MODEL = {
    *("name", "model", "run", "suite", "constraint", "stamp", "seed", "rank", "low", "high", "tie"),
    *("few", "seconds", "memory_mb", "dimensions", "failed", "declined", "elo", "borda", "wins"),
    *("command", "pareto", "top"),
    "place",  # orders models of equal rank as a leaderboard of the selected tasks does
}
TASK = {
    "name",
    "kind",
    "dataset",
    "language",
    "metrics",
    "higher",
    "folds",
    "questions",
    "duplicate_rows",
}


def tidy(models, tasks, folds=1, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    names = [f"m{m}" for m in range(models)]
    table = score_table(
        {f"t{t}": {name: rng.random(folds) for name in names} for t in range(tasks)}
    )
    return table[rng.random(len(table)) >= missing]


def check_differences(found):
    """Check the tests of single tasks: one row for each pair of models that both take the task."""
    assert set(found["tests"]) == TESTS
    assert len(found["tests"]["differences"]) == len(found["tasks"])
    takers = [[m for m, sign in enumerate(states) if sign in ".f"] for states in found["states"]]
    whole = sum(math.comb(len(taking), 2) for taking in takers) <= module.MAX_DIFFERENCES
    for taking, test in zip(takers, found["tests"]["differences"], strict=True):
        if len(taking) < 2 or not whole:
            assert test is None
            continue
        assert set(test) == {"test", "why", "claim", "step", "pairs"}
        assert bool(test["test"]) != bool(test["why"])
        assert [row[:2] for row in test["pairs"]] == [
            [a, b] for a, b in itertools.combinations(taking, 2)
        ]
        for _, _, _gain, error, freedom, p in test["pairs"]:
            assert p is None or (0 <= p <= 1 and test["test"])
            assert error is None or error >= 0
            assert freedom is None or freedom >= 0


def check_shape(found):
    """Check what the scripts rely on: keys, lengths of lists, no NaN."""
    assert set(found) == KEYS
    models, tasks = len(found["models"]), len(found["tasks"])
    assert all(set(model) == MODEL for model in found["models"])
    assert all(set(task) == TASK for task in found["tasks"])
    assert len(found["scores"]) == len(found["spread"]) == len(found["states"]) == tasks
    for t, task in enumerate(found["tasks"]):
        assert len(found["scores"][t]) == len(task["metrics"]) == len(task["higher"])
        assert {len(means) for means in found["scores"][t]} == {models}
        assert len(found["spread"][t]) == len(found["states"][t]) == models
        assert set(found["states"][t]) <= set(".fdn")
        scored = [sign == "." for sign in found["states"][t]]
        assert scored == [value is not None for value in found["scores"][t][0]]
    for group, verdict in zip(found["groups"], found["verdict"], strict=True):
        assert set(group["models"]) <= set(range(models)) and len(group["rows"]) == len(
            group["models"]
        )
        assert set(group["tasks"]) <= set(range(tasks))
        assert {verdict["winner"], verdict["next"]} <= {None, *group["models"]}
    check_differences(found)
    assert sorted(model["place"] for model in found["models"]) == list(range(models))
    assert isinstance(found["where"], str)
    places = [each["model"] for part in ("failures", "maps", "runs") for each in found[part]]
    assert all(0 <= place < models for place in places)
    assert all(0 <= int(task) < tasks for task in found["details"])
    json.dumps(found, allow_nan=False)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.floats(0, 0.8), st.integers(0, 9)
)
def test_tables_of_any_shape_have_the_promised_one(models, tasks, folds, missing, seed):
    table = tidy(models, tasks, folds, seed, missing)
    if not len(table):
        return
    found = make_bundle(table)
    check_shape(found)
    board = leaderboard(table).reset_index()
    assert [model["name"] for model in found["models"]] == list(board["model"].unique())
    named = [found["models"][m]["name"] for group in found["groups"] for m in group["models"]]
    assert named == list(board["model"])
    means = table.groupby(["task", "model"])["value"].mean()
    for t, task in enumerate(found["tasks"]):
        for m, model in enumerate(found["models"]):
            known = means.get((task["name"], model["name"]), math.nan)
            value = found["scores"][t][0][m]
            assert math.isnan(known) if value is None else value == pytest.approx(known, rel=1e-5)


def test_ranks_and_ties_equal_the_leaderboard():
    table = tidy(4, 8, 2)
    board, found = leaderboard(table), make_bundle(table)
    for model, (name, row) in zip(found["models"], board.iterrows(), strict=True):
        assert (model["name"], model["tie"]) == (name, row["tie"])
        numbers = row[["rank", "rank_low", "rank_high"]].tolist()
        assert [model[key] for key in ("rank", "low", "high")] == pytest.approx(numbers, rel=1e-5)
    assert found["rule"] == "worst" and found["confidence"] == 0.95


def test_model_entries_have_their_run(make_run):
    run = make_run("m", {"t": [0.5, 0.7]}, command="karat run s")
    found = make_bundle(run)
    check_shape(found)
    entry = {"name": "m", "model": "m", "run": run.folder.name, "suite": "s", "seed": 42}
    entry |= {"stamp": "20260101T000000", "command": "karat run s"}
    assert found["models"][0].items() >= entry.items()
    assert (found["title"], found["made"]) == ("s", "2026-01-02T03:04:01")
    assert make_bundle(run, title="Mine")["title"] == "Mine"


def test_questions_are_the_maximum_over_models(make_run):
    run = make_run("m", {"t": [0.5, 0.7]})
    for record, asked in zip(run.records(), (40, 60), strict=True):
        run.write({**record, "questions": asked}, {})
    (task,) = make_bundle([run, make_run("n", {"t": [0.5, 0.7]})])["tasks"]
    assert (task["questions"], task["folds"]) == (100, 2)


def test_the_order_of_runs_changes_nothing(make_run):
    scores = {"a": [0.9, 0.8], "b": [0.5, 0.6], "c": [0.2, 0.1]}
    runs = [make_run(name, {"t": own, "u": own[:1]}) for name, own in scores.items()]
    assert make_bundle(runs) == make_bundle(runs[::-1]) == make_bundle(runs)
    equal = [make_run(name, {"t": [0.5, 0.6], "u": [0.4]}) for name in "xyz"]
    assert make_bundle(equal) == make_bundle(equal[::-1])


AMLB = """\
id,task,framework,constraint,fold,result,metric,mode,version,params,utc,duration,seed,info,auc
openml.org/t/1,credit,forest,1h8c,0,0.75,auc,aws,0.1,,2019-04-14T17:50:15,60.0,1,,0.75
openml.org/t/1,credit,forest,1h8c,1,0.85,auc,aws,0.1,,2019-04-14T17:51:15,60.0,2,,0.85
openml.org/t/1,credit,boost,1h8c,0,0.95,auc,aws,0.2,,2019-04-14T17:52:15,30.0,1,,0.95
openml.org/t/1,credit,boost,1h8c,1,,auc,aws,0.2,,2019-04-14T17:53:15,,2,Error: out of memory,
"""


def test_results_of_the_automl_benchmark_make_a_page_too(cli, tmp_path):
    (tmp_path / "results.csv").write_text(AMLB)
    assert cli("import", tmp_path / "results.csv", "-o", tmp_path / "imported").code == 0
    found = make_bundle(tmp_path / "imported")
    check_shape(found)
    places = {model["name"]: place for place, model in enumerate(found["models"])}
    ((means,),) = found["scores"]
    assert means[places["forest"]] == 0.8 and means[places["boost"]] == 0.95
    assert found["folds"][0][places["boost"]] == [0.95, None]
    (failure,) = found["failures"]
    assert (failure["model"], failure["fold"]) == (places["boost"], 1)
    assert "out of memory" in failure["info"]
    assert found["made"] == "2019-04-14T17:53:15"
    assert found["details"] == {} and found["runs"][0]["command"] is None


def test_many_suites_make_a_short_title(make_run):
    runs = [make_run(f"m{i}", {"t": [0.5]}, suite=f"suite {i}") for i in range(5)]
    assert make_bundle(runs)["title"] == "suite 0 · suite 1 · suite 2 · 2 more"


def test_no_results(tmp_path):
    with pytest.raises(DataError, match=str(tmp_path)):
        make_bundle(tmp_path)
    with pytest.raises(DataError, match="score"):
        make_bundle(tidy(1, 1).iloc[:0])


def test_a_very_large_table_stays_small(monkeypatch):
    monkeypatch.setattr(ranks, "PATTERNS", 20)
    found = make_bundle(tidy(500, 200, 2))
    check_shape(found)
    assert size(found) < 6_000_000
    assert found["folds"] is not None


ABOUT = {
    **{"source": "package index, x.whl", "license": "CC0-1.0", "citation": "Fisher (1936)"},
    **{"title": "Iris", "homepage": "https://example.org", "sha256": "ab12"},
}


def test_a_card_per_data_set_with_the_places_of_its_tasks(make_run):
    same = {"dataset": "iris", "fingerprint": "f1", "about": ABOUT, "modality": "table"}
    facts = {"t": same, "u": {"dataset": "wine", "fingerprint": "f2"}, "v": same}
    iris, wine = make_bundle(make_run("m", dict.fromkeys("tuv", [0.5]), tasks=facts))["cards"]
    counts = {"items": None, "questions": None, "columns": None}
    known = {"dataset": "iris", "fingerprint": "f1", "kind": "table", "tasks": [0, 2]}
    assert iris == {**ABOUT, **known, **counts}
    assert (wine["dataset"], wine["tasks"], wine["license"]) == ("wine", [1], None)
    assert wine["kind"] == "classification"


@pytest.mark.parametrize(
    ("facts", "card"),
    [
        # facts of the task override those of its dataset
        (
            {"license": "MIT", "items": 150, "questions": 140, "columns": 4, "about": ABOUT},
            {"license": "MIT", "source": "package index, x.whl", "items": 150, "questions": 140}
            | {"columns": 4},
        ),
        # odd facts do not prevent the page
        (
            {"about": ["no", "mapping"], "items": "many", "fingerprint": None},
            {"items": None, "fingerprint": None, "source": None},
        ),
    ],
)
def test_facts_of_cards(make_run, facts, card):
    (found,) = make_bundle(make_run("m", {"t": [0.5]}, tasks={"t": facts}))["cards"]
    assert found.items() >= card.items()


def test_other_data_of_one_name_have_their_own_card(make_run):
    facts = [{"t": {"dataset": "iris", "fingerprint": name}} for name in ("one", "two")]
    cards = make_bundle([make_run("m", {"t": [0.5]}, tasks=each) for each in facts])["cards"]
    assert [(each["fingerprint"], each["tasks"]) for each in cards] == [("one", [0]), ("two", [1])]


def compared(scores):
    """Return the bundle of the scores of models, one number per task."""
    tasks = len(next(iter(scores.values())))
    return make_bundle(
        score_table({f"t{t}": {m: v[t] for m, v in scores.items()} for t in range(tasks)})
    )


def test_three_models_in_one_order_on_all_tasks():
    scores = {"a": [0.9] * 6, "b": [0.5, 0.6, 0.7, 0.5, 0.6, 0.7], "c": [0.1] * 6}
    found = compared(scores)["tests"]
    # of k models in one order on n tasks, Friedman's statistic is n (k - 1): 12
    assert found["friedman"]["statistic"] == pytest.approx(12)
    assert found["friedman"]["p"] == pytest.approx(np.exp(-6), rel=1e-5)  # two degrees of freedom
    assert found["friedman"]["tasks"] == 6
    # each pair: 2 of 2⁶ sign patterns; a less b are 0.5, 0.375 and 0.25, each twice
    assert found["pairs"]["p"][0][1] == pytest.approx(2 / 64)
    assert (found["procedure"], found["why"]) == ("max-T over tasks", "")
    expected = [[0, 0.375, 1], [-0.375, 0, 0.625], [-1, -0.625, 0]]
    assert np.array(found["pairs"]["diff"]) == pytest.approx(np.array(expected))
    assert found["cliques"] == []


def test_tests_use_the_order_of_the_leaderboard():
    rng = np.random.default_rng(0)
    scores = {"worst": rng.random(30) * 0.1, "best": 0.9 + rng.random(30) * 0.1}
    scores["middle"] = 0.4 + rng.random(30) * 0.1
    found = compared(scores)
    assert [model["name"] for model in found["models"]] == ["best", "middle", "worst"]
    assert np.sign(found["tests"]["pairs"]["diff"]).tolist() == [[0, 1, 1], [-1, 0, 1], [-1, -1, 0]]
    assert found["tests"]["cliques"] == []


def test_very_many_models_have_no_p_of_each_pair(monkeypatch):
    monkeypatch.setattr(module, "MAX_MODELS", 3)
    scores = {f"m{i}": [0.9 - i / 10] * 4 for i in range(5)}
    found = compared(scores)["tests"]
    assert found["pairs"] is None
    assert found["friedman"]["statistic"] == pytest.approx(16)  # of all five: 4 tasks times 4
    assert (found["why"], found["cliques"]) == ("one fold", [])


def test_very_many_tasks_have_p_of_the_best_models(monkeypatch):
    monkeypatch.setattr(module, "MAX_TASK_TESTS", 2 * 3 * 3)
    found = make_bundle(tidy(5, 2, folds=3))["tests"]["by_task"]
    assert [np.shape(each["p"]) for each in found] == [(3, 3), (3, 3)]


def test_one_model_has_nothing_to_test():
    found = compared({"a": [0.5, 0.6]})["tests"]
    assert found["friedman"] is None and found["pairs"] is None and found["cliques"] == []


# -- the same numbers on the page, in the terminal, in JSON and in plots ----------------------


def of_pair(bundle, a, b):
    names = [model["name"] for model in bundle["models"]]
    return names.index(a), names.index(b)


def check_pairs(given, bundle):
    """Check p of all pairs against ``compare_all`` and ``compare``, whatever they tested."""
    every = compare_all(given)
    assert bundle["tests"]["procedure"] == every.to_dict()["procedure"]
    assert bundle["tests"]["why"] == every.why
    letters = {model["name"]: model["tie"] for model in bundle["models"]}
    for row in every.to_dict()["pairs"]:
        i, j = of_pair(bundle, row["first"], row["second"])
        p = bundle["tests"]["pairs"]["p"][i][j]
        assert p == pytest.approx(row["p"], rel=1e-5) if row["p"] is not None else p is None
        difference = bundle["tests"]["pairs"]["diff"][i][j]
        assert difference == pytest.approx(row["difference"], rel=1e-5)
        if p is not None:
            share = bool(set(letters[row["first"]]) & set(letters[row["second"]]))
            assert share == (p >= 0.05)
        two = compare(given, row["first"], row["second"]).to_dict()["tasks"]
        for each in two:
            t = [task["name"] for task in bundle["tasks"]].index(each["task"])
            test = bundle["tests"]["by_task"][t]
            p = test["p"] and test["p"][i][j]
            assert p == pytest.approx(each["p"], rel=1e-5) if each["p"] else not p
            assert (test["test"], test["why"]) == (each["test"], each["why"])


@pytest.mark.parametrize("repeats", [1, 2])
def test_many_tasks_have_the_same_tests_everywhere(repeats):
    rng = np.random.default_rng(0)
    models = {"a": 0.8, "b": 0.78, "c": 0.6, "d": 0.59}
    scores = {
        f"t{t}": {m: v + rng.normal(0, 0.02, 5 * repeats) for m, v in models.items()}
        for t in range(8)
    }
    table = score_table(scores)
    table = table.assign(repeat=table["fold"] // 5, fold=table["fold"] % 5)
    found = make_bundle(table)
    assert found["tests"]["procedure"] == "max-T over tasks"
    check_pairs(table, found)
    drawn = plots.tested(plots.PlotData(table, None, "worst"))
    expected = np.array(found["tests"]["pairs"]["p"], dtype=float)
    names = [model["name"] for model in found["models"]]
    places = [names.index(name) for name in drawn.models]
    assert drawn.tests.pairs == pytest.approx(expected[np.ix_(places, places)], rel=1e-5)
    board = leaderboard(table)
    assert [model["tie"] for model in found["models"]] == board["tie"].tolist()


SPLITS = {
    "kfold": ({"use": "kfold", "folds": 3}, "t over folds and items"),
    "repeated": ({"use": "kfold", "folds": 3, "repeats": 2}, "t over folds and items"),
    "holdout": ({"use": "holdout"}, "McNemar"),
}


@pytest.mark.parametrize("split", SPLITS)
def test_one_task_has_the_same_tests_everywhere(split, tmp_path):
    how, test = SPLITS[split]
    names = [f"q{i}" for i in range(90)]
    frame = pd.DataFrame({"item": names, "y": ["a", "b"] * 45})
    data = karat.Dataset.from_columns(frame, ["item"], "y", name="ninety", modality="entity")
    task = karat.Task("ninety", data, split=how, metrics=["acc"])
    rng = np.random.default_rng(0)
    models = {}
    for name, wrong in {"good": 5, "fair": 8, "guess": 45}.items():
        signs = [(-1) ** i * (-1 if i % 45 < wrong // 2 else 1) for i in range(90)]
        models[name] = {q: [s, rng.normal(0, 0.01)] for q, s in zip(names, signs, strict=True)}
    runs = karat.evaluate(models, task, output=tmp_path)
    found = make_bundle(runs)
    family = "max-T over items" if test == "McNemar" else f"max-{test.title()[0]}{test[1:]}"
    assert found["tests"]["procedure"] == family
    assert found["tests"]["by_task"][0]["test"] == test
    check_pairs(runs, found)
    i, j = of_pair(found, "good", "guess")
    assert found["tests"]["pairs"]["p"][i][j] < 0.05


def test_one_task_that_is_scored_as_a_whole_is_tested_on_its_pairs(tmp_path):
    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in range(40)]
    frame = pd.DataFrame({"one": words[:-1], "other": words[1:], "score": rng.random(39)})
    data = karat.Dataset.from_columns(
        frame, ["one", "other"], "score", name="pairs", modality="entity"
    )
    task = karat.Task("pairs", data, probe="similarity", metrics=["spearman"], split="all")
    models = {name: {w: rng.random(3).tolist() for w in words} for name in ("x", "y")}
    runs = karat.evaluate(models, task, output=tmp_path)
    found = make_bundle(runs)
    assert found["tests"]["procedure"] == "paired bootstrap"
    check_pairs(runs, found)


def test_one_fold_without_predictions_is_not_tested():
    found = make_bundle(score_table({"t": {"logreg": 0.896, "dummy": 0.5}}))["tests"]
    assert (found["procedure"], found["why"]) == ("", "one fold")
    assert found["pairs"]["p"][0][1] is None and found["by_task"][0]["why"] == "one fold"


def test_findings_point_at_models_and_tasks(make_run):
    good = make_run("good", {task: [0.9, 0.9] for task in "tuv"})
    bad = make_run("bad", {task: ["broke", "broke"] for task in "tuv"})
    found = make_bundle([good, bad])
    assert found["checks"], "a model that fails everywhere"
    for each in found["checks"]:
        assert set(each) == {"code", "title", "level", "model", "task", "message", "advice"}
        assert each["code"].startswith("KRT") and each["level"] in ("error", "warning", "note")
        assert each["model"] in (None, 0, 1) and each["task"] in (None, 0, 1, 2)


def test_findings_are_limited(make_run, monkeypatch):
    runs = [make_run("good", {task: [0.9] for task in "tuv"})]
    runs.append(make_run("b" * 5000, {task: ["broke"] for task in "tuv"}))
    whole = make_bundle(runs)
    assert max(len(each["message"]) for each in whole["checks"]) <= module.MESSAGE
    monkeypatch.setattr(module, "MAX_FINDINGS", 1)
    found = make_bundle(runs)
    assert found["checks"] == whole["checks"][:1]
    rest = len(whole["checks"]) - 1
    assert found["cut"][-1].startswith(f"{rest} finding")


def row(model, value, corruption="", severity=0.0, **more):
    made = score_table({"t": {model: value}}, corruption=corruption, severity=severity)
    return made.assign(**more)


CORRUPTED = pd.concat(
    [
        row("a", [0.9, 0.8]),
        row("a", [0.7, 0.5], "typos", 0.1),
        row("a", 0.4, "typos", 0.2),
        row("b", 0.6),
        row("b", 0.5, "typos", 0.1),
        row("b", 0.5, "typos+swaps", 0.1),
    ]
)


def test_curves_start_clean_with_bands_of_one_standard_deviation():
    found = make_bundle(CORRUPTED)
    curve, pair = found["curves"]
    assert (pair["corruption"], pair["lines"][0]["x"]) == ("typos+swaps", [0, 0.1])
    fields = {name: curve[name] for name in ("task", "metric", "higher", "corruption")}
    assert fields == {"task": 0, "metric": "acc", "higher": True, "corruption": "typos"}
    a, b = curve["lines"]
    assert (a["model"], b["model"]) == (0, 1)
    assert (a["x"], a["mean"]) == ([0, 0.1, 0.2], [0.85, 0.6, 0.4])
    # the standard deviation of two numbers is their distance over the root of two
    low, high, alone = a["low"]
    assert (low, high) == pytest.approx((0.85 - 0.1 / 2**0.5, 0.6 - 0.2 / 2**0.5), abs=1e-5)
    assert a["high"][0] == pytest.approx(0.85 + 0.1 / 2**0.5, abs=1e-5)
    assert alone is None, "one number has no spread"
    assert (b["x"], b["low"]) == ([0, 0.1], [None, None])


def test_the_table_of_robustness_has_the_cells_of_the_command():
    found = make_bundle(CORRUPTED)["robustness"]
    assert found["columns"][:5] == ["task", "metric", "model", "clean", "corrupted"]
    assert [each[2] for each in found["rows"]] == ["a", "b"]
    assert found["rows"][1][3].startswith("0.600")
    assert make_bundle(score_table({"t": {"a": 0.9, "b": 0.6}}))["robustness"] is None


def test_learning_is_the_mean_over_folds_and_long_lines_are_thinned():
    table = [row("a", 0.9), row("b", 0.5)]
    table += [row("a", epoch / 100, epoch=epoch, metric="loss") for epoch in range(1, 201)]
    table += [row("a", epoch / 50, epoch=epoch, metric="loss", fold=1) for epoch in (1, 2)]
    found = make_bundle(pd.concat(table))
    (chart,) = found["learning"]
    assert (chart["task"], chart["metric"]) == (0, "loss")
    (line,) = chart["lines"]
    assert line["mean"][0] == pytest.approx(0.015)  # 0.01 and 0.02
    assert (line["x"][0], line["x"][-1], len(line["x"])) == (1, 200, module.MAX_POINTS)
    assert line["std"][-1] is None
    assert any("60" in note for note in found["cut"])


def test_where_room_is_short_the_best_models_keep_their_lines(monkeypatch):
    names = "abcdef"
    table = [row(name, 0.9 - i / 10) for i, name in enumerate(names)]
    table += [row(name, 0.3, "typos", s) for name in names for s in (0.1, 0.2)]
    whole = make_bundle(pd.concat(table))["curves"][0]["lines"]
    assert [line["model"] for line in whole] == [0, 1, 2, 3, 4, 5]
    one = size(whole[0])
    monkeypatch.setattr(module, "LINES", 3 * one + one // 2)
    found = make_bundle(pd.concat(table))
    assert [line["model"] for line in found["curves"][0]["lines"]] == [0, 1, 2]
    assert any("best 3 models" in note for note in found["cut"])


def test_provenance_and_job_counts_of_a_run(make_run):
    about = {"command": ["karat", "run", "my suite"], "python": "3.11.7", "platform": "Linux"}
    run = make_run("m", {"t": [0.5, "broke"]}, **about, versions={"numpy": "2.0"})
    (found,) = make_bundle(run)["runs"]
    versions = {"karat": "0.1.0", "python": "3.11.7", "model": "1.0", "numpy": "2.0"}
    facts = {"model": 0, "folder": run.folder.name, "command": "karat run 'my suite'", "seed": 42}
    counts = {"platform": "Linux", "jobs": 2, "ok": 1, "failed": 1}
    assert found == {**facts, "versions": versions, **counts}
    run = make_run("n", {"t": [0.5]}, versions="unknown")
    (found,) = make_bundle(run)["runs"]
    assert (found["command"], found["platform"]) == (None, None)
    assert found["versions"] == {"karat": "0.1.0", "model": "1.0"}
    assert make_bundle(run)["models"][0]["command"] is None


def test_a_failure_comes_with_the_end_of_its_log(make_run):
    log = "start\n" + "x" * 5000 + "\nKeyError: 'ü'\n"
    kept = {("t", 1): {"log.txt": log}}
    run = make_run("m", {"t": [0.5, "KeyError: 'ü'"]}, files=kept)
    (found,) = make_bundle(run)["failures"]
    assert found.pop("log") == log[-4000:]
    assert found == {
        **{"model": 0, "task": 0, "fold": 1, "status": "failed", "info": "KeyError: 'ü'"}
    }


def test_unreadable_logs_do_not_prevent_the_page(make_run):
    run = make_run("m", {"t": [0.5, "a", "b", "c"]})
    logs = run.folder / "logs" / "t"
    logs.mkdir(parents=True)
    (logs / "1.txt").write_bytes(b"\xff\x00ok")
    (logs / "2.txt").mkdir()
    found = make_bundle(run)
    assert [each["log"] for each in found["failures"]] == ["\ufffd\x00ok", "", ""]
    (note,) = found["cut"]
    assert note.startswith("m on t, fold 2")


def test_many_logs_share_the_room_and_many_failures_are_counted(make_run, monkeypatch):
    kept = {("t", fold): {"log.txt": "l" * 500} for fold in range(1, 6)}
    run = make_run("m", {"t": [0.5, *["broke"] * 5]}, files=kept)
    monkeypatch.setattr(module, "LOGS", 400)
    monkeypatch.setattr(module, "MAX_FAILURES", 4)
    found = make_bundle(run)
    assert [len(each["log"]) for each in found["failures"]] == [100] * 4
    more, logs = found["cut"]
    assert "1 failed job" in more and "100" in logs
    assert found["runs"][0]["failed"] == 5


def test_folder_names_have_no_path(make_run, tmp_path, monkeypatch):
    run = make_run("m", {"t": [0.5]})
    monkeypatch.chdir(run.folder)
    found = make_bundle(".")
    assert found == make_bundle(run)
    assert str(tmp_path) not in str(found)


TWO = pd.concat(
    [
        score_table({"t": {"a": [0.9, 0.7, 0.8], "b": [0.5, 0.6]}}),
        score_table({"t": ("logloss", {"a": [0.25, 1.25, 2.25]}), "u": ("rmse", {"a": 3, "b": 2})}),
    ]
)


def test_means_spread_and_folds_are_those_of_the_table():
    found = make_bundle(TWO)
    a, b = (next(i for i, m in enumerate(found["models"]) if m["name"] == name) for name in "ab")
    assert [task["name"] for task in found["tasks"]] == ["t", "u"]
    assert found["tasks"][0]["metrics"] == ["acc", "logloss"]
    assert found["tasks"][0]["higher"] == [True, False]
    assert found["tasks"][1]["higher"] == [False]
    (acc, logloss), (rmse,) = found["scores"]
    assert (acc[a], acc[b]) == (0.8, 0.55)
    assert (logloss[a], logloss[b]) == (1.25, None)
    assert (rmse[a], rmse[b]) == (3, 2)
    assert found["spread"][0][a] == pytest.approx(0.1)  # of 0.9, 0.7 and 0.8
    assert found["spread"][0][b] == pytest.approx(np.sqrt(0.005), rel=1e-5)  # of 0.5 and 0.6
    assert found["spread"][1] == [None, None], "one fold has no spread"
    assert found["folds"][0][a] == [0.9, 0.7, 0.8]
    assert found["folds"][0][b] == [0.5, 0.6, None], "a fold keeps its place"
    assert found["folds"][1][a] == [3], "as it was measured, whichever way is better"
    assert [task["folds"] for task in found["tasks"]] == [3, 1]


def test_too_many_folds_are_left_out():
    found = make_bundle(TWO, fold_budget=7)
    assert found["folds"] is None
    assert any("single folds" in note for note in found["cut"])
    assert make_bundle(TWO, fold_budget=8)["folds"] is not None


def test_a_metric_of_unknown_direction_is_left_out():
    found = make_bundle(pd.concat([TWO, score_table({"t": {"a": 1.0}}, "homemade")]))
    assert found["tasks"][0]["metrics"] == ["acc", "logloss"]
    assert any("homemade of t" in note for note in found["cut"])


def test_further_metrics_of_very_many_cells_are_left_out(monkeypatch):
    monkeypatch.setattr(module, "MAX_NUMBERS", 7)
    rows = [score_table({"t": dict.fromkeys("abcd", 0.5)}, m) for m in ("acc", "auc", "balacc")]
    found = make_bundle(pd.concat(rows))
    assert found["tasks"][0]["metrics"] == ["acc", "auc"]
    assert any("2 metrics" in note for note in found["cut"])


def test_states_of_missing_scores(make_run):
    one = make_run("one", {"t": [0.9, 0.8], "u": ["broke"]}, tasks={"v": {}})
    two = make_run("two", {"t": [0.5, 0.4], "u": [0.5], "v": [0.5]})
    three = make_run("three", {"u": [0.7], "v": [0.2], "t": "declined"})
    found = make_bundle([one, two, three])
    order = [[model["name"] for model in found["models"]].index(m) for m in ("one", "two", "three")]
    signs = ["".join(states[m] for m in order) for states in found["states"]]
    assert signs == ["..d", "f..", "n.."]


def test_groups_have_their_models_ranks_and_verdicts():
    tables = {f"t{t}": {"a": 0.9, "b": 0.8, "dummy": 0.1} for t in range(6)}
    texts = {f"u{t}": {"c": 0.9, "d": 0.8, "dummy": 0.1} for t in range(6)}
    found = make_bundle(score_table({**tables, **texts}))
    check_shape(found)
    names = [model["name"] for model in found["models"]]
    expected = [(["a", "b", "dummy"], list(tables)), (["c", "d", "dummy"], list(texts))]
    for group, (models, tasks) in zip(found["groups"], expected, strict=True):
        assert [names[m] for m in group["models"]] == models
        assert [found["tasks"][t]["name"] for t in group["tasks"]] == tasks
        assert [row["rank"] for row in group["rows"]] == [1, 2, 3]
    assert [names[each["winner"]] for each in found["verdict"]] == ["a", "c"]
    assert len(found["notes"]) > len(found["groups"])  # a caption for each group


def test_scores_over_fewer_folds_than_planned_are_marked(monkeypatch):
    table = score_table({f"t{t}": {"a": [0.9, 0.8], "b": [0.5, 0.4]} for t in range(3)})

    def marked(*given, **options):
        board = leaderboard(*given, **options)
        board.attrs["partial"] = {"b": {"t1": (2, 5), "unknown": (1, 5)}}
        return board

    monkeypatch.setattr(module, "leaderboard", marked)
    found = make_bundle(table)
    assert found["partial"] == [[[model["name"] for model in found["models"]].index("b"), 1, 2, 5]]
