"""The plot of the cheapest model is a kind that its extension adds."""

import pytest

pytest.importorskip("matplotlib")

from karat.errors import DefinitionError  # noqa: E402
from karat.ext.plots.figures import plot, plot_kinds  # noqa: E402

from ...score_data import write_run  # noqa: E402


def test_the_reference_is_at_zero_and_the_margin_is_a_band(tmp_path):
    for name, score, width in (("a", 0.8, 8), ("b", 0.9, 16)):
        scores = {task: [score, score + 0.01, score] for task in "tuv"}
        write_run(tmp_path, name, scores, record={"dimensions": width, "questions": 50})
    assert "cheapest" in plot_kinds()
    drawn = plot(tmp_path, "cheapest", value="dimensions")
    assert drawn.title == "difference to b against dimensions"
    with pytest.raises(DefinitionError, match="leave out the tasks"):
        plot(tmp_path, "cheapest", tasks=["t"])
