"""JSON of run folders: values that can be written, and objects that can be read."""

import json

import numpy as np
import pytest

from karat.errors import DataError
from karat.results.stored_json import json_value, parse_stored_json, read_json_object


def test_values_become_json():
    value = {1: (np.int64(2), float("inf")), "model": object, "none": None}
    stored = json.loads(json.dumps(json_value(value), allow_nan=False))
    assert stored == {"1": [2, "inf"], "model": repr(object), "none": None}


def test_what_is_no_json_becomes_null():
    assert parse_stored_json('{"a": NaN, "b": -Infinity, "c": 1}') == {"a": None, "b": None, "c": 1}


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000])
def test_a_file_without_an_object_is_named(tmp_path, text):
    file = tmp_path / "run.json"
    file.write_text(text)
    with pytest.raises(DataError, match=r"cannot read .*run\.json"):
        read_json_object(file)
    with pytest.raises(DataError, match=r"cannot read .*none\.json"):
        read_json_object(tmp_path / "none.json")
