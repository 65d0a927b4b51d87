"""The sections about the cheapest model and races, on tables of scores."""

from karat.ext.decide.page_sections import CheapestSection, RaceSection
from karat.reporting.page import make_bundle

from ...score_data import score_table


def test_a_table_of_scores_has_no_costs_and_no_race():
    bundle = make_bundle(score_table({"t": {"a": [0.5, 0.6], "b": [0.6, 0.7]}}))
    assert bundle["cheapest"] == [[]] and "races" not in bundle


def test_the_text_of_a_section_is_its_answers():
    answers = [[{"cost": "bytes", "sentence": "b is enough."}]]
    (section,) = CheapestSection().plain(answers)
    assert section.sentences == ["By bytes: b is enough."]
    assert CheapestSection().plain([[]]) == []
    race = {"sentence": "a wins.", "columns": ["model"], "rows": [["a"]], "notes": ["n"]}
    (section,) = RaceSection().plain([race])
    assert (section.title, section.sentences, section.notes) == ("Race", ["a wins."], ["n"])
