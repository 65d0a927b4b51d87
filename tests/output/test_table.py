"""Tables of texts."""

from __future__ import annotations

import pandas as pd

from karat.output.table import Cell, Column, Table, best_of, first_rows, shown_cells, text_column


def table(rows: int) -> Table:
    names = text_column("model", [f"m{i}" for i in range(rows)], right=False)
    groups = [text_column("task", ["a"] * 2 + ["b"] * (rows - 2), right=False)]
    return Table(groups, names, [text_column("n", range(rows))], [0, 2], "Caption.", ["A note."])


def test_the_name_of_a_group_is_shown_once():
    assert [cell.text for cell in shown_cells(table(4))[0]] == ["a", "", "b", ""]


def test_the_first_rows_of_a_table_and_how_many_more_there_are():
    whole = table(5)
    assert first_rows(whole, 5) is whole
    cut = first_rows(whole, 2)
    assert len(cut) == 2 and cut.starts == [0]
    assert [len(column.cells) for column in cut.all_columns] == [2, 2, 2]
    assert cut.notes == ["Not shown: 3 more rows.", "A note."]
    assert len(whole) == 5


def test_the_best_of_each_group():
    values = pd.Series([0.1, 0.3, 0.2, 0.2])
    assert best_of(values, [0, 2]).tolist() == [False, True, True, True]


def test_letters_keep_their_spaces_other_texts_do_not():
    assert text_column("tie", ["a  b"]).cells == [Cell("a  b")]
    assert text_column("name", ["a\n b"]) == Column("name", [Cell("a b")])
