"""Plots of ``karat export``: scores over severity."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from karat.errors import DataError, DefinitionError, MissingExtra
from karat.ext.compat.taco.taco_plots import plot_runs
from karat.ext.plots.figures import COLORS, Plot

matplotlib = pytest.importorskip("matplotlib")

KEYS = dict(repeat=0, epoch=-1)
#: (corruption, severity): how much of the clean score is lost
VIEWS = {("", 0.0): 0.0, ("noise", 0.1): 0.1, ("noise", 0.4): 0.3, ("gaps", 0.2): 0.2}
VIEWS |= {("gaps+noise", 0.2): 0.4, ("a+b", 0.1): 0.1, ("a+b", 0.2): 0.2}


def scores(*models: str, task: str = "t", metric: str = "auc", only: str = "") -> pd.DataFrame:
    """Return the scores of some models, two draws of each view, or of those of one corruption."""
    return pd.DataFrame(
        [
            {
                **dict(task=task, model=model, fold=0, draw=draw, metric=metric, **KEYS),
                **dict(corruption=c, severity=s, value=0.9 - lost - 0.05 * draw * bool(c)),
            }
            for model in models
            for (c, s), lost in VIEWS.items()
            for draw in range(2 if c else 1)
            if not only or c in ("", only)
        ]
    )


def texts(path: Path) -> set[str]:
    """Return what is written in an SVG picture."""
    found = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return {"".join(each.itertext()).strip() for each in found}


def test_one_plot_per_corruption_and_one_of_clean_scores(tmp_path):
    written = plot_runs(scores("ada", "ben"), tmp_path / "new" / "folder")
    names = {path.name for path in written}
    assert names == {
        "t_clean_AUC_bar.png",
        "t_gaps_AUC_curve.png",
        "t_noise_AUC_curve.png",
        "t_gaps_plus_noise_AUC_curve.png",
        "t_a_plus_b_AUC_curve.png",
    }
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == names
    for path in written:
        assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


def test_every_task_has_its_plots(tmp_path):
    numbers = scores("ada", task="u", metric="rmse", only="noise")
    several = pd.concat([scores("ada", only="noise"), numbers])
    names = {path.name for path in plot_runs(several, tmp_path, shape="svg")}
    assert {"t_noise_AUC_curve.svg", "u_noise_RMSE_curve.svg", "u_clean_RMSE_bar.svg"} <= names
    assert "u   RMSE ↓" in texts(tmp_path / "u_noise_RMSE_curve.svg")
    assert {"t   AUC ↑", "ada", "0.900", "clean"} <= texts(tmp_path / "t_clean_AUC_bar.svg")
    assert {"ada", "severity of noise"} <= texts(tmp_path / "t_noise_AUC_curve.svg")


def test_lines_go_through_the_means_and_bands_show_the_spread(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(Plot, "save", lambda self, path: drawn.append((path.name, self.figure)))
    plot_runs(scores("ada"), tmp_path)
    axes = dict(drawn)["t_noise_AUC_curve.png"].axes[0]
    (line,) = axes.get_lines()
    # the two draws are 0.05 apart
    assert line.get_xdata() == pytest.approx([0, 0.1, 0.4])
    assert line.get_ydata() == pytest.approx([0.9, 0.775, 0.575])
    corners = axes.collections[0].get_paths()[0].vertices
    assert corners[:, 1].max() == pytest.approx(0.9)
    assert corners[:, 1].min() == pytest.approx(0.575 - 0.05 / 2**0.5)


def test_a_model_has_the_same_color_in_all_plots(monkeypatch, tmp_path):
    drawn = {}
    monkeypatch.setattr(Plot, "save", lambda self, path: drawn.setdefault(path.name, self.figure))
    lacking = scores("ada", "ben")
    lacking = lacking[(lacking["model"] != "ada") | (lacking["corruption"] != "gaps")]
    plot_runs(lacking[lacking["corruption"] != "a+b"], tmp_path)
    ben = {
        name: dict(zip(*reversed(figure.axes[0].get_legend_handles_labels()), strict=True))["ben"]
        for name, figure in drawn.items()
        if "curve" in name
    }
    colors = {(line[0] if isinstance(line, tuple) else line).get_color() for line in ben.values()}
    assert len(ben) == 3 and colors == {COLORS[1]}


def test_a_pair_has_a_point_for_each_combination_of_severities(monkeypatch, tmp_path):
    drawn = {}
    monkeypatch.setattr(Plot, "save", lambda self, path: drawn.setdefault(path.name, self.figure))
    table = scores("ada", only="a+b")
    changes = {"corruption": "a@0.2+b@0.1", "severity": 1.0, "value": 0.4}
    mixed = table[table["severity"] == 0.2].assign(**changes)
    plot_runs(pd.concat([table, mixed]), tmp_path)
    assert set(drawn) == {"t_clean_AUC_bar.png", "t_a_plus_b_AUC_curve.png"}
    axes = drawn["t_a_plus_b_AUC_curve.png"].axes[0]
    labels = [each.get_text() for each in axes.get_xticklabels()]
    assert labels == ["clean", "0.1+0.1", "0.2+0.1", "0.2+0.2"]
    points = dict(zip(*axes.get_lines()[0].get_data(), strict=True))
    # of two draws that are 0.05 apart
    assert [points[i] for i in range(4)] == pytest.approx([0.9, 0.775, 0.4, 0.675])


def test_more_models_than_colours_differ_in_their_dashes(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(Plot, "save", lambda self, path: drawn.append(self.figure))
    plot_runs(scores(*(f"model {i:02}" for i in range(30))), tmp_path)
    lines = drawn[1].axes[0].get_lines()
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 30


@pytest.mark.parametrize("name", ["_under", "a $ b $ c", "$5", "<script>", "50 % & more", "ünï 模"])
@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_are_not_interpreted(tmp_path, name):
    frame = scores(name, "plain", task=name, only="noise").replace({"noise": name})
    written = plot_runs(frame, tmp_path, shape="svg")
    assert all(path.parent == tmp_path for path in written)
    assert not any(set(path.name) & set("$<> &%") for path in written)
    (curve,) = [p for p in written if texts(p) & {f"severity of {name}", f"severity of  {name}"}]
    assert name in {text.strip() for text in texts(curve)}, "in the legend"
    bars = next(path for path in written if "bar" in path.name)
    assert name in texts(bars)


def test_similar_names_have_different_files(tmp_path):
    several = pd.concat([scores("ada", task=task, only="noise") for task in ("a b", "a/b")])
    written = plot_runs(several, tmp_path)
    assert len(set(written)) == len(written) == 4


def test_errors_before_anything_is_written(tmp_path):
    with pytest.raises(DefinitionError, match='"gif"'):
        plot_runs(scores("ada"), tmp_path / "no", shape="gif")
    with pytest.raises(DataError, match='"acc"'):
        plot_runs(scores("ada"), tmp_path / "no", metric="acc")
    with pytest.raises(DataError, match="corrupt"):
        plot_runs(scores("ada").query("corruption == ''"), tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r'pip install "karat\[plots'):
        plot_runs(scores("ada"), tmp_path / "no")
    assert not (tmp_path / "no").exists()
