"""A result that is a data frame: its forms, and what pandas makes of it."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from karat.output.frame_result import FrameResult
from karat.output.result import Result, show
from karat.output.table import Table, text_column


class Ages(FrameResult):
    @property
    def sentence(self) -> str:
        return f"The oldest is {self['age'].max()}."

    def tables(self) -> list[Table]:
        names = text_column("name", self["name"], right=False)
        return [Table([], names, [text_column("age", self["age"])], [0], "Ages", [])]


@pytest.fixture
def ages() -> Ages:
    frame = Ages({"name": ["Ann", "Bo"], "age": [4, 5]})
    frame.attrs["notes"] = ["Cy is missing."]
    return frame


def test_it_prints_as_a_result(ages, capsys):
    assert isinstance(ages, Result) and isinstance(ages, pd.DataFrame)
    assert repr(ages) == str(ages) == ages.render()
    assert repr(ages).startswith("The oldest is 5.") and "Cy is missing." in repr(ages)
    assert "<strong>The oldest is 5.</strong>" in ages._repr_html_()
    show(ages)
    assert " Ann " in capsys.readouterr().out


def test_every_form(ages):
    assert json.loads(ages.render("json")) == [{"name": "Ann", "age": 4}, {"name": "Bo", "age": 5}]
    assert ages.render("csv") == "name,age\nAnn,4\nBo,5\n" == ages.to_csv(index=False)
    for form, words in {"markdown": "| Ann", "latex": "tabular", "html": "<td"}.items():
        assert words in ages.render(form) and "The oldest" in ages.render(form)


def test_what_pandas_makes_of_it_is_plain(ages):
    assert type(ages.head(1)) is type(ages.frame) is type(ages.assign(x=1)) is pd.DataFrame
    assert ages.frame.attrs == ages.attrs


def test_without_a_column_of_the_table_it_prints_as_a_data_frame(ages):
    del ages["age"]
    assert repr(ages) == repr(ages.frame) and "Ann" in ages._repr_html_()
