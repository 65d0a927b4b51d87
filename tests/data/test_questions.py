from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from karat.data.load import DataSpec
from karat.data.questions import ask, ask_rows, one_file
from karat.errors import DataError, DefinitionError

FRAME = pd.DataFrame({"id": [1, 2, 3], "text": ["a", "b", "a"], "y": ["odd", "usual", "usual"]})


def spec(**changes: object) -> DataSpec:
    return DataSpec("toy", **{"target": "y", "kind": "classes", **changes})


def test_classes_have_the_order_of_the_option_labels():
    assert ask_rows(FRAME, spec()).classes == ("odd", "usual")
    labels = {"u": "usual", "v": "usual", "w": "never", "o": "odd"}
    data = ask_rows(FRAME, spec(options={"labels": labels}))
    assert data.classes == ("usual", "odd")
    assert data.truth.tolist() == ["odd", "usual", "usual"]
    asked = ask(FRAME, spec(fields=("text",), options={"labels": labels}), None)
    assert asked.classes == ("usual", "odd")


def test_column_can_be_the_group_and_no_feature():
    data = ask_rows(FRAME, spec(group="id", drop=("id",)))
    assert list(data.items.columns) == ["text"]
    assert data.group.tolist() == [1, 2, 3]


def test_fields_are_the_columns_to_keep():
    assert list(ask_rows(FRAME, spec(fields=("id",))).items.columns) == ["id"]
    with pytest.raises(DataError, match='"text"'):
        ask_rows(FRAME, spec(fields=("texd",)))


def test_one_file():
    assert one_file(Path("a"), spec()) == Path("a")
    with pytest.raises(DefinitionError, match="reader"):
        one_file({"train": Path("a"), "test": Path("b")}, spec())


GAPS = pd.DataFrame({"id": [1, 2, 3, 4], "text": list("abca"), "y": ["odd", None, "usual", None]})


@pytest.mark.parametrize("rows", [True, False])
def test_rows_without_an_answer_can_be_dropped(rows):
    given = spec(options={"unanswered": "drop"}, **({} if rows else {"fields": ("text",)}))
    data = ask_rows(GAPS, given) if rows else ask(GAPS, given, None)
    assert data.truth.tolist() == ["odd", "usual"]
    texts_left = data.frame()["text"].tolist() if rows else data.frame().tolist()
    assert texts_left == ["a", "c"]


def test_rows_without_a_target_are_refused_by_default():
    for options in ({}, {"unanswered": "refuse"}):
        with pytest.raises(DataError, match="missing"):
            ask_rows(GAPS, spec(options=options))
    with pytest.raises(DefinitionError, match='"unanswered"'):
        ask_rows(GAPS, spec(options={"unanswered": "keep"}))
    with pytest.raises(DataError, match="toy is empty: 0 rows"):
        ask_rows(GAPS.assign(y=None), spec(options={"unanswered": "drop"}))


def test_groups_and_parts_stay_with_their_rows():
    frame = GAPS.assign(g=list("pqrs"), p=["train", "test", "test", "train"])
    data = ask_rows(frame, spec(options={"unanswered": "drop"}, group="g", part="p"))
    assert data.group.tolist() == ["p", "r"] and data.part.tolist() == ["train", "test"]
