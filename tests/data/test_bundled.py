from __future__ import annotations

import pytest

from karat.data.bundled import sklearn_table
from karat.errors import DefinitionError


@pytest.mark.parametrize(
    ("loader", "shape", "classes"),
    [
        ("load_iris", (150, 4), ("setosa", "versicolor", "virginica")),
        ("load_wine", (178, 13), ("class_0", "class_1", "class_2")),
        ("load_breast_cancer", (569, 30), ("benign", "malignant")),
        ("load_digits", (1797, 64), tuple("0123456789")),
        ("load_diabetes", (442, 10), ()),
    ],
)
def test_each_table(loader, shape, classes):
    data = sklearn_table("toy", loader, target="y")
    assert data.items.shape == shape
    assert data.classes == classes
    assert data.kind == ("classes" if classes else "numbers")
    assert "y" not in data.items and data.name == "toy"
    assert data.about["source"] == f"scikit-learn, {loader}"


def test_names_stand_for_the_right_codes():
    cancer = sklearn_table("cancer", "load_breast_cancer")
    assert cancer.truth.tolist().count("malignant") == 212
    assert sklearn_table("digits", "load_digits").truth[:3].tolist() == ["0", "1", "2"]
    assert sklearn_table("diabetes", "load_diabetes").truth[:2].tolist() == [151.0, 75.0]


def test_unknown_table_names_the_nearest():
    with pytest.raises(DefinitionError, match='"load_iris"'):
        sklearn_table("iris", "load_irs")
