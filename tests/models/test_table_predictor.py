"""Table predictors: their rows, and those that earlier versions have stored."""

import io

import numpy as np
import pytest

from karat.core.registry import load_object
from karat.models import table_predictor
from karat.models.table_predictor import ConstantPredictor, PreparedRows, distinct_rows
from karat.results.run import _Unpickler


def test_rows_of_several_views_are_kept_once_up_to_a_size(monkeypatch):
    views = [("clean", np.eye(3)), ("typos", np.eye(3)[[2, 0]])]
    matrix, indices = distinct_rows(views)
    assert matrix.shape == (3, 3) and indices["typos"].tolist() == [2, 0]
    monkeypatch.setattr(table_predictor, "MAX_SHARED", 1)
    assert distinct_rows(views)[1] == {}


def test_prepared_rows_cannot_be_changed():
    rows = PreparedRows(np.eye(3), np.array([1]))
    assert np.asarray(rows).tolist() == [[0, 1, 0]]
    with pytest.raises(ValueError, match="read-only"):
        rows.matrix[0, 0] = 2


def test_a_predictor_is_found_where_earlier_versions_had_it():
    unpickler = _Unpickler(io.BytesIO())
    assert unpickler.find_class("karat.models.automl", "ConstantPredictor") is ConstantPredictor
    assert load_object("karat.models.automl:ConstantPredictor") is ConstantPredictor
    old, new = "karat.models.contrib.carte", "karat.ext.models.carte"
    assert unpickler.find_class(old, "CarteEncoder").__module__ == new
    assert load_object(f"{old}:CarteEncoder").__module__ == new
