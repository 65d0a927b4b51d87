"""Sections of a page that extensions add: in the bundle by their key, and as text."""

import pytest

from karat.core.registry import page_sections
from karat.reporting.page import make_bundle, make_page
from karat.reporting.page_section import PlainSection, plain_added

from ..score_data import score_table


class Greeting:
    """A section with the number of models, unless there is only one."""

    def data(self, page):
        number = len(page.scores.models)
        return {"models": number} if number > 1 else None

    def plain(self, data):
        rows = [["models", data["models"]]]
        return [PlainSection("Greeting", ["Good morning."], ["what", "number"], rows, ["bye"])]


@pytest.fixture
def greeting(monkeypatch):
    list(page_sections)  # those of extensions are there
    monkeypatch.setitem(page_sections._parts, "greeting", Greeting)
    monkeypatch.setitem(page_sections._origins, "greeting", "mine:Greeting")


def test_a_section_is_in_the_bundle_and_in_the_text(greeting):
    bundle = make_bundle(score_table({"t": {"a": 0.5, "b": 0.6}}))
    (text,) = bundle["added"]
    assert text["title"] == "Greeting" and text["rows"] == [["models", 2]]
    assert [section.title for section in plain_added(bundle)][-1] == "Greeting"
    page = make_page(bundle)
    assert "<h2>Greeting</h2><p>Good morning.</p>" in page and "<p>bye</p>" in page


def test_a_section_without_data_is_left_out(greeting):
    bundle = make_bundle(score_table({"t": {"a": 0.5}}))
    assert "added" not in bundle
    assert "Greeting" not in make_page(bundle)


class Broken(Greeting):
    """A section whose code is wrong."""

    def data(self, page):
        raise KeyError("models")


def test_a_section_that_fails_is_told_on_the_page(monkeypatch):
    list(page_sections)
    monkeypatch.setitem(page_sections._parts, "broken", Broken)
    monkeypatch.setitem(page_sections._origins, "broken", "mine:Broken")
    bundle = make_bundle(score_table({"t": {"a": 0.5, "b": 0.6}}))
    (section,) = [section for section in plain_added(bundle) if section.title == "broken"]
    assert "KeyError" in section.sentences[0]
