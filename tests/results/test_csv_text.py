"""Columns as CSV: the text that pandas writes, and that the csv module reads again."""

import csv
import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.results.csv_text import csv_text

TEXTS = st.text(st.characters(exclude_characters="\r"), max_size=4)  # pandas does not quote it
CELLS = st.none() | TEXTS | st.sampled_from(["a,b", 'say "x"', "two\nlines", ""])


@given(
    st.lists(CELLS, min_size=1, max_size=5),
    st.lists(st.none() | st.floats(), min_size=1, max_size=5),
    st.lists(st.none() | st.integers(-5, 5), min_size=1, max_size=5),
)
def test_csv_text_is_that_of_pandas(texts, numbers, integers):
    count = max(len(texts), len(numbers), len(integers))
    columns = {
        name: [values[row % len(values)] for row in range(count)]
        for name, values in {"a, b": texts, "n": numbers, "i": integers, "whole": integers}.items()
    }
    table = pd.DataFrame(columns).astype({"a, b": object, "n": float, "whole": "Int64"})
    assert csv_text(columns, ["whole"]) == table.to_csv(index=False)


@pytest.mark.parametrize("cells", [["a\rb", "\r"], ["a\rb", None], ["\r\n", 1.5]])
def test_carriage_returns_can_be_read_again(cells):
    text = csv_text({"a": cells, "b": ["x", "y"]})
    rows = list(csv.reader(io.StringIO(text, newline="")))
    expected = ["" if cell is None else str(cell) for cell in cells]
    assert rows == [["a", "b"], [expected[0], "x"], [expected[1], "y"]]
