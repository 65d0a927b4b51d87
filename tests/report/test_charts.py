import math
import re
from xml.etree import ElementTree

import pytest

from karat.report.charts import Line, bar_chart, line_chart, ticks


def parsed(text):
    return ElementTree.fromstring(text)


def places(text, kind):
    """Return the points of the first shape of a class."""
    found = re.search(rf'class="{kind} c\d" points="([^"]+)"', text)
    return [tuple(map(float, pair.split(","))) for pair in found[1].split()]


def test_a_line_goes_from_the_left_edge_to_the_right_and_up_where_values_rise():
    text = line_chart([Line("m", 0, [0, 0.1, 0.4], [0.5, 0.7, 0.9], [0, 0, 0])], "severity", "a")
    (x0, y0), (x1, y1), (x2, y2) = places(text, "line")
    assert (x0, x2) == (44, 330)
    assert (x1 - x0) / (x2 - x0) == pytest.approx(0.25, abs=1e-3)
    assert y0 == 176 and y2 == 12 and y1 == pytest.approx(94)
    assert "<polygon" not in text
    assert "m at 0.4: 0.9" in "".join(parsed(text).itertext())


def test_a_band_is_as_wide_as_the_spread_on_both_sides():
    text = line_chart([Line("m", 1, [0, 1], [1.0, 3.0], [0.0, 1.0])], "x", "a")
    band, line = places(text, "band"), places(text, "line")
    top, low = band[1], band[2]
    assert top[1] < line[1][1] < low[1]
    assert line[1][1] - top[1] == pytest.approx(low[1] - line[1][1], abs=0.11)


def test_many_points_are_a_line_without_dots_and_many_lines_have_dashes():
    lines = [Line(f"m{n}", n, range(30), [n + i for i in range(30)], [0] * 30) for n in (0, 9)]
    text = line_chart(lines, "epoch", "a")
    assert "<circle" not in text
    assert text.count("stroke-dasharray") == 1
    parsed(text)


def test_bars_begin_at_zero_whichever_way_they_go():
    text = bar_chart([("good", 0, 0.8), ("bad", 1, -0.4), ("none", 2, math.nan)], "a")
    bars = [
        (float(x), float(width))
        for x, width in re.findall(r'x="([\d.]+)" y="\d+" width="([\d.]+)"', text)
    ]
    (zero, long), (start, short) = bars
    assert long == pytest.approx(2 * short, abs=0.2)
    assert start + short == pytest.approx(zero, abs=0.2)
    assert "none" not in text


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", 'a"b', "x & y", "'"])
def test_names_are_never_markup(name):
    for text in (
        line_chart([Line(name, 0, [0, 1], [0, 1], [0, 0])], name, name),
        bar_chart([(name, 0, 1.0)], name),
    ):
        root = parsed(text)
        assert root.get("aria-label") == name
        assert not [each for each in root.iter() if each.tag.lower() == "script"]


def test_nothing_to_show_is_nothing():
    assert line_chart([Line("m", 0, [0, 1], [math.nan] * 2, [0, 0])], "x", "a") == ""
    assert bar_chart([("m", 0, math.nan)], "a") == ""


def test_one_value_alone_is_shown():
    parsed(line_chart([Line("m", 0, [0.2], [0.7], [0.0])], "x", "a"))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0, 0.25, 0.5, 0.75, 1.0]),
        (0.83, 0.91, [0.84, 0.86, 0.88, 0.9]),
        (-3, 17, [0, 5, 10, 15]),
        (2, 2, [2]),
    ],
)
def test_ticks_are_round_and_within(low, high, expected):
    assert ticks(low, high) == expected
