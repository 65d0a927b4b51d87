"""Results in every form of output."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from karat.errors import DefinitionError
from karat.output.result import MAX_ROWS, Result, plain_value, show
from karat.output.table import Table, text_column


@dataclass(frozen=True, eq=False, repr=False)
class Ages(Result):
    frame: pd.DataFrame
    mean: float
    secret: object = None
    notes: list[str] = field(default_factory=list)

    csv_prefix: ClassVar[str] = "ages"
    frames: ClassVar[tuple[str, ...]] = ("frame",)
    hidden: ClassVar[tuple[str, ...]] = ("secret",)
    computed: ClassVar[tuple[str, ...]] = ("exit_code",)

    @property
    def sentence(self) -> str:
        return f"The mean age of {len(self.frame)} <people> is {self.mean:g}."

    @property
    def details(self) -> list[str]:
        return ["They are young."]

    @property
    def exit_code(self) -> int:
        return 3

    def tables(self) -> list[Table]:
        names = text_column("name", self.frame["name"], right=False)
        ages = text_column("age", self.frame["age"])
        return [Table([], names, [ages], [0], "People by age", ["age: in years."])]


@pytest.fixture
def ages() -> Ages:
    frame = pd.DataFrame({"name": ["Ann", "Bo"], "age": [4.0, np.nan]})
    return Ages(frame, 4.0, object(), ["Bo has no age."])


def test_the_text_begins_with_the_sentence(ages):
    assert repr(ages).splitlines() == [
        "The mean age of 2 <people> is 4.",
        "",
        " People by age",
        " name  age",
        " Ann   4.0",
        " Bo    nan",
        "",
        " They are young.",
        "",
        " age: in years.",
        " Bo has no age.",
    ]
    assert str(ages) == ages.render() == repr(ages)


def test_a_terminal_has_the_table_first(ages, capsys):
    assert show(ages) == 3
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0].strip() == "People by age" and lines[-1].strip() == "Bo has no age."
    assert lines.index(" The mean age of 2 <people> is 4.") > lines.index(" Bo    nan")


def test_a_notebook_shows_escaped_html(ages):
    html = ages._repr_html_()
    assert html.startswith("<p><strong>The mean age of 2 &lt;people&gt; is 4.</strong></p>")
    assert "<td" in html and html.endswith("Bo has no age.</small></p>")


def test_json_is_strict(ages):
    assert json.loads(ages.render("json"), parse_constant=pytest.fail) == {
        "sentence": ages.sentence,
        "frame": [{"name": "Ann", "age": 4.0}, {"name": "Bo", "age": None}],
        "mean": 4.0,
        "notes": ["Bo has no age."],
        "exit_code": 3,
    }


def test_csv_has_numbers(ages, tmp_path):
    assert ages.render("csv") == "name,age\nAnn,4.0\nBo,\n"
    (path,) = ages.to_csv(tmp_path)
    assert path.name == "ages_frame.csv" and path.read_text() == ages.render("csv")


@pytest.mark.parametrize("form", ["markdown", "latex", "html"])
def test_documents_have_the_sentence_below_the_table(ages, form):
    text = ages.render(form)
    assert text.index("Ann") < text.index("The mean age") < text.index("Bo has no age.")
    assert "<people>" not in text


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html"])
def test_a_result_without_tables_has_its_lines(form):
    @dataclass(frozen=True, eq=False, repr=False)
    class Plain(Result):
        notes: tuple[str, ...] = ("A note.",)

        @property
        def sentence(self) -> str:
            return "Done."

    assert "Done." in Plain().render(form) and "A note." in Plain().render(form)


def test_long_tables_are_cut_in_texts_and_notebooks_only():
    frame = pd.DataFrame({"name": [f"p{i}" for i in range(MAX_ROWS + 5)], "age": 1.0})
    found = Ages(frame, 1.0)
    assert "Not shown: 5 more rows." in repr(found) and "5 more rows" in found._repr_html_()
    assert f"p{MAX_ROWS}" not in repr(found)
    for form in ("markdown", "json", "csv"):
        assert f"p{MAX_ROWS + 4}" in found.render(form)


def test_lines_fit_into_80_columns():
    frame = pd.DataFrame({"name": ["x" * 200], "age": ["y" * 200]})
    found = Ages(frame, 1.0, notes=["word " * 50])
    assert max(map(len, repr(found).splitlines())) <= 80


def test_an_unknown_format_is_named(ages):
    with pytest.raises(DefinitionError, match="invalid format 'jsn'.*Did you mean \"json\""):
        ages.render("jsn")


def test_plain_values():
    value = {"a": np.float32("nan"), 1: np.array([1, 2]), "s": ("x", None), "inf": float("inf")}
    assert plain_value(value) == {"a": None, "1": [1, 2], "s": ["x", None], "inf": None}
