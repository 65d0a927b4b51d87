import pytest
from pydantic import ValidationError

from karat.ext.serve.answers import EVENT_SCHEMA, Progress, answer, answer_list


def test_an_answer_has_its_fields_and_may_have_more():
    model = answer("Point", {int: "x y", str | None: "label"})
    assert model(x=1, y=2, label=None, color="red").model_dump()["color"] == "red"
    with pytest.raises(ValidationError, match="label"):
        model(x=1, y=2)


def test_a_list_has_a_total_and_items_of_one_model():
    model = answer_list("Points", answer("Point", {int: "x"}))
    assert model(total=9, items=[{"x": 1}]).items[0].x == 1
    with pytest.raises(ValidationError, match="items.0.x"):
        model(total=9, items=[{"x": "far"}])


def test_events_refer_to_the_models_of_answers():
    names = [event["properties"]["event"]["const"] for event in EVENT_SCHEMA["oneOf"]]
    assert names == ["progress", "evaluation", "end"]
    data = EVENT_SCHEMA["oneOf"][0]["properties"]["data"]["properties"]["progress"]
    assert data["$ref"].endswith(f"/{Progress.__name__}")
