import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import karat
from karat.errors import KaratError
from karat.report.page import report
from karat.results.epochs import learning_curves

EVIL = "<script>alert('x')</script> / & \"q\""


class Page(HTMLParser):
    """Collects tags and texts, and that every tag is closed."""

    VOID = {"meta", "br", "rect", "line", "polyline", "polygon", "circle"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


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
        assert not {"src", "href", "onload", "onclick"} & attributes.keys()
    assert "url(" not in text and "@import" not in text


def test_names_are_texts_and_never_markup(text):
    page = Page(text)
    assert not [tag for tag, _ in page.tags if tag == "script"]
    assert "".join(page.texts).count(EVIL) >= 5


def test_it_has_the_board_the_curves_and_the_failures(text):
    titles = re.findall(r"<h2>([^<]+)</h2>", text)
    assert titles == [
        "Leaderboard",
        "What corruption costs",
        "How heads learned",
        "Failures: 2",
        "How this was made",
    ]
    assert text.count("<svg") == 1 + 1 + 3  # clean bars, a corruption, three curves of the head
    assert "noise_gaussian+noise_uniform</figcaption>" not in text, "one severity is no curve"


def test_learning_curves_are_means_over_folds(runs):
    found = learning_curves(runs)
    scores = runs[0].scores()
    part = scores[(scores["epoch"] == 2) & (scores["metric"] == "loss_per_epoch_eval")]
    row = found[(found["epoch"] == 2) & (found["metric"] == "loss_per_epoch_eval")].iloc[0]
    assert (row["count"], row["mean"]) == (2, pytest.approx(part["value"].mean()))
    assert row["std"] == pytest.approx(part["value"].std())


def test_runs_without_curves_have_no_such_sections(tmp_path):
    data = karat.Dataset.from_table(
        pd.DataFrame({"a": range(20), "y": [0, 1] * 10}), target="y", name="plain", kind="classes"
    )
    runs = karat.evaluate("dummy", karat.Task("plain", data), output=tmp_path)
    text = karat.report(runs, tmp_path / "report.html").read_text("utf-8")
    assert re.findall(r"<h2>([^<]+)</h2>", text) == ["Leaderboard", "How this was made"]


def test_the_same_runs_give_the_same_bytes(runs, text, tmp_path):
    assert report(runs, tmp_path / "again.html").read_text("utf-8") == text


def test_no_run_is_a_clear_mistake(tmp_path):
    with pytest.raises(KaratError):
        report([tmp_path], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
