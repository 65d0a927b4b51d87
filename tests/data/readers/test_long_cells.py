"""Cells that are too long are refused, whether they are one line or many; long lines are not."""

import pytest

from karat.core.dataset import Dataset
from karat.data.readers import long_cells, table_files
from karat.errors import DataError

LONGEST = 1000
ROWS = [f"{i},word {i},{'ab'[i % 2]}\n" for i in range(100)]


@pytest.fixture
def read(tmp_path, monkeypatch):
    for module in (long_cells, table_files):
        monkeypatch.setattr(module, "LONGEST_CELL", LONGEST)

    def go(*lines, head="n,text,y\n"):
        (tmp_path / "t.csv").write_text(head + "".join(lines))
        return Dataset.from_csv(tmp_path / "t.csv", "y")

    return go


@pytest.mark.parametrize(
    "cell", ["x" * LONGEST, '"' + "a, b " * 300 + '"', '"' + 'a ""b"", ' * 200 + '"']
)
def test_a_cell_that_is_too_long_is_named_by_its_line(read, cell):
    with pytest.raises(DataError, match=r"t\.csv, line 102: a cell has more than"):
        read(*ROWS, f"1,{cell},a\n", *ROWS)


def test_a_quotation_mark_that_is_closed_far_away(read):
    with pytest.raises(DataError, match=r't\.csv, row 101: the cell of "text" has more than'):
        read(*ROWS, '1,"never, closed\n', *ROWS, '1,here",a\n')


def test_long_files_and_long_lines_are_read(read):
    assert len(read(*ROWS, *ROWS).items) == 200
    columns = [f"c{i}" for i in range(400)]
    cells = ['"a, b"', *("some" for _ in columns[1:])]
    lines = [f"{','.join(cells)},{label}\n" for label in "abab"]
    assert len(read(*lines, head=f"{','.join(columns)},y\n").items) == 4
