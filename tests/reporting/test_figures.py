"""Figures: file formats, notebooks and settings of matplotlib."""

import sys

import pytest

import karat
from karat.errors import DefinitionError, MissingExtra
from karat.reporting.figures import Plot
from karat.reporting.plots import plot

from ..score_data import score_table

matplotlib = pytest.importorskip("matplotlib")

SCORES = score_table({task: {"a": 0.5, "b": 0.75} for task in "tu"})


def test_formats_follow_the_name(tmp_path):
    figure = plot(SCORES, "board")
    starts = {"svg": b"<?xml", "PDF": b"%PDF", "png": b"\x89PNG"}
    for suffix, start in starts.items():
        assert figure.save(tmp_path / "new" / f"a.{suffix}").read_bytes().startswith(start)
    pdf = figure.to_bytes("pdf")
    assert b"/CIDFontType2" in pdf and b"/Type3" not in pdf and b"/CreationDate" not in pdf
    assert b"<dc:date>" not in figure.to_bytes("svg")
    for wrong, word in (("a.gif", '".gif"'), ("a", '"."'), ("a.svgg", '"svg"')):
        with pytest.raises(DefinitionError, match=word):
            figure.save(tmp_path / wrong)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new"]


def test_a_notebook_shows_it():
    figure = plot(SCORES, "board")
    assert figure._repr_svg_().encode() == figure.to_bytes("svg")
    shown = figure._repr_html_()
    assert shown.startswith('<img alt="leaderboard: ')
    assert 'src="data:image/svg+xml;base64,' in shown
    assert isinstance(karat.plot(SCORES, "cd"), Plot)


def test_nothing_of_the_callers_settings_changes():
    before = dict(matplotlib.rcParams)
    plot(SCORES, "heatmap").to_bytes("svg")
    assert dict(matplotlib.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or not matplotlib.pyplot.get_fignums()


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r'pip install "karat\[plots'):
        plot(SCORES, "board")
