"""The small tables bundled with scikit-learn."""

from __future__ import annotations

from karat.dataset import Dataset
from karat.errors import DefinitionError, did_you_mean

KINDS = {
    "load_iris": "classes",
    "load_wine": "classes",
    "load_breast_cancer": "classes",
    "load_digits": "classes",
    "load_diabetes": "numbers",
}


def sklearn_table(
    name: str, loader: str, *, target: str = "target", kind: str | None = None
) -> Dataset:
    """Return one of scikit-learn's bundled tables, with class names as labels.

    >>> sklearn_table("iris", "load_iris", target="species")
    <Dataset iris: 150 questions about 150 table items, 3 classes>
    """
    from sklearn import datasets

    if loader not in KINDS:
        raise DefinitionError(
            f'{name}: "{loader}" is not a bundled table.{did_you_mean(loader, KINDS)} '
            f"Available: {', '.join(KINDS)}."
        )
    kind = kind or KINDS[loader]
    bunch = getattr(datasets, loader)(as_frame=True)
    table = bunch.frame.rename(columns={"target": target})
    if kind == "classes" and "target_names" in bunch:
        table[target] = [str(bunch.target_names[code]) for code in table[target]]
    about = {"source": f"scikit-learn, {loader}", "licence": "BSD-3-Clause"}
    return Dataset.from_table(table, target, name=name, kind=kind, about=about)
