"""Load the dataset that a definition describes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd
import pytest

from karat.core import registry
from karat.core.dataset import Dataset
from karat.data.load_dataset import DataSpec, fetch_file, load_dataset
from karat.errors import ContractError, DataError, DefinitionError

CSV = "age,churn\n31,yes\n45,no\n"


@pytest.fixture
def churn(tmp_path: Path) -> Path:
    path = tmp_path / "churn.csv"
    path.write_text(CSV)
    return path


def make_toy(name: str, rows: int = 2) -> Dataset:
    table = pd.DataFrame({"x": range(rows), "y": ["a", "b"] * (rows // 2)})
    return Dataset.from_table(table, "y", name=name, about={"source": "made", "title": "mine"})


def make_nothing(name: str) -> None:
    return None


def test_local_path_is_below_the_folder_of_the_definition(churn):
    definition = {"path": "churn.csv", "target": "churn", "license": "CC0-1.0", "title": None}
    data = load_dataset("churn", definition, churn.parent)
    assert data.name == "churn"
    assert data.items["age"].tolist() == [31, 45]
    assert data.target.tolist() == ["yes", "no"]
    assert data.about == {
        "license": "CC0-1.0",
        "source": "churn.csv",
        "sha256": hashlib.sha256(CSV.encode()).hexdigest(),
    }
    assert len(load_dataset("churn", {"path": churn, "target": "churn"})) == 2
    assert len(load_dataset("churn", {"path": str(churn), "target": "churn"})) == 2


def test_train_and_test_files(churn, tmp_path):
    (tmp_path / "b.csv").write_text("churn,age\nyes,5\n")
    paths = {"train": "churn.csv", "test": "b.csv"}
    data = load_dataset("churn", {"path": paths, "target": "churn"}, tmp_path)
    assert data.part.tolist() == ["train", "train", "test"]
    assert data.items.to_dict("list") == {"age": [31, 45, 5]}
    assert data.about["source"] == "churn.csv, b.csv"
    assert data.about["sha256"].startswith("train ")


def test_sources_are_fetched(churn, monkeypatch):
    monkeypatch.setenv("KARAT_DATA", str(churn.parent))
    data = load_dataset("churn", {"sources": [{"folder": "churn.csv"}], "target": "churn"})
    assert data.about["source"] == "folder churn.csv"
    assert data.about["sha256"] == hashlib.sha256(CSV.encode()).hexdigest()


def test_function_that_loads_the_dataset():
    use = f"{__name__}:make_toy"
    data = load_dataset("toy", {"load": {"use": use, "rows": 4}, "title": "Toy", "path": None})
    assert len(data) == 4 and data.name == "toy"
    assert data.about == {"source": "made", "title": "Toy"}
    assert len(load_dataset("toy", {"load": use})) == 2
    with pytest.raises(ContractError, match=r"karat\.Dataset"):
        load_dataset("toy", {"load": f"{__name__}:make_nothing"})


def test_reader_receives_all_settings(churn, monkeypatch):
    seen: list[tuple[Path, DataSpec]] = []

    def read(path: Path, spec: DataSpec) -> Dataset:
        seen.append((path, spec))
        return make_toy(spec.name)

    monkeypatch.setattr(registry, "readers", registry.Registry("reader"))
    registry.readers.register("mine", read)
    plain = {"target": "churn", "kind": "classification", "group": "g", "modality": "text"}
    plain |= {"positive": "yes", "weight": "w", "group_feature": True}
    plain |= {"part": "p", "options": {"glob": "*"}}
    lists = {"drop": ["d"], "fields": ["f"]}
    load_dataset("churn", {"path": churn, "reader": "mine", **plain, **lists})
    ((path, spec),) = seen
    expected = DataSpec("churn", **plain, drop=("d",), fields=("f",), about=spec.about, infer=True)
    assert (path, spec) == (churn, expected)
    with pytest.raises(DefinitionError, match='"min"'):
        load_dataset("churn", {"path": churn, "reader": "min"})


@pytest.mark.parametrize(
    ("definition", "word"),
    [
        ({}, "exactly"),
        ({"path": "a", "load": "b:c"}, "given"),
        ({"load": {"loader": "x"}}, r'"package\.module:function"'),
        ({"path": {"train": "a"}}, "train"),
    ],
)
def test_wrong_definition_is_refused(definition, word):
    with pytest.raises(DefinitionError, match=word):
        load_dataset("toy", definition)


def test_missing_file_names_the_nearest(churn):
    with pytest.raises(DataError, match=r'"churn\.csv"'):
        load_dataset("churn", {"path": "chorn.csv", "target": "churn"}, churn.parent)
    with pytest.raises(DataError, match="no file"):
        load_dataset("churn", {"path": "no/such/place.csv"}, churn.parent)


def test_plain_file_is_given_by_its_path(churn, monkeypatch):
    assert fetch_file("vectors", {"path": "churn.csv"}, churn.parent) == churn
    monkeypatch.setenv("KARAT_DATA", str(churn.parent))
    assert fetch_file("vectors", {"sources": [{"folder": "churn.csv"}]}) == churn
    with pytest.raises(DefinitionError, match="file"):
        fetch_file("vectors", {"path": {"train": churn, "test": churn}})
    with pytest.raises(DefinitionError, match="sources"):
        fetch_file("vectors", {"load": "a:b"})
