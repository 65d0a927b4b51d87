from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from karat.data.load_dataset import load_dataset
from karat.errors import DataError, DefinitionError, MissingExtra
from karat.ext.compat.tabeb.readers import Metadata, load_tabeb, read_metadata

pytestmark = pytest.mark.usefixtures("download_settings")


pytest.importorskip("pyarrow")

TABLE = pd.DataFrame(
    {
        "wine": ["a", "b", "a", "c"],
        "price": [1.5, 2.5, 1.75, 3.0],
        "year": ["1990", None, "1991", "1992"],
    }
)
SAID = {
    "name": "wines",
    "task": "regression",
    "target_name": "price",
    "entity_name": "wine",
    "repeated": False,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "wines").mkdir()
    TABLE.to_parquet(tmp_path / "wines" / "wines.parquet")
    write(tmp_path)
    return tmp_path


def write(folder: Path, **changes: object) -> Path:
    path = folder / "wines" / "wines_metadata.json"
    word = {key: value for key, value in {**SAID, **changes}.items() if value != "left out"}
    path.write_text(json.dumps(word, indent=2))
    return path


def test_record(folder):
    assert read_metadata(write(folder, dtype={"price": "float64"})) == Metadata(
        "wines", "regression", "price", "wine", False, {"price": "float64"}, ()
    )


def test_optional_metadata(folder):
    path = write(folder, name="left out", entity_name="left out", repeated="left out")
    assert read_metadata(path) == Metadata("wines", "regression", "price")


def test_wrong_types_are_warnings_unless_strict(folder):
    path = write(
        folder,
        dtype={
            "wine": "object",
            "years": "int64",
            "year": "int64",
            "price": "str",
            "ph": "float65",
        },
    )
    warnings = read_metadata(path).warnings
    words = [('"years"', '"year"'), ('"year"', "int64"), ('"price"', "str"), ('"ph"',)]
    for warning, expected in zip(warnings, words, strict=True):
        assert all(word in warning for word in expected)
    with pytest.raises(DataError) as caught:
        read_metadata(path, strict=True)
    assert str(caught.value) == "\n".join(f"{path}: {warning}" for warning in warnings)
    (warning,) = read_metadata(write(folder, dtype={"wine": "float65"})).warnings
    assert '"float65"' in warning and '"wine"' in warning


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"target_name": "prize"}, '"price"'),
        ({"target_name": None}, '"target_name"'),
        ({"entity_name": "whine"}, '"wine"'),
        ({"task": "regresion"}, '"regression"'),
        ({"task": ["regression"]}, '"regression"'),
        ({"repeated": "no"}, '"repeated"'),
        ({"dtype": ["wine"]}, '"dtype"'),
        ({"target": "price"}, '"target_name"'),
    ],
)
def test_wrong_metadata(folder, changes, word):
    path = write(folder, **changes)
    with pytest.raises(DataError, match=word):
        read_metadata(path)


def test_all_mistakes_are_listed(folder):
    path = write(folder, target_name="prize", entity_name="whine", colour=1)
    with pytest.raises(DataError) as caught:
        read_metadata(path)
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("content", "word"),
    [(b'{"name": "wines",\n  task}', "line 2"), (b"[1, 2]", "metadata"), (b"\xff\xfe\xfa", "text")],
)
def test_broken_metadata_file(folder, content, word):
    path = write(folder)
    path.write_bytes(content)
    with pytest.raises(DataError, match=word):
        read_metadata(path)


def test_files_that_are_not_there(folder):
    path = write(folder)
    (folder / "wines" / "wines.parquet").unlink()
    with pytest.raises(DataError, match=r"wines\.parquet"):
        read_metadata(path)
    with pytest.raises(DataError, match=r"nothing_metadata\.json"):
        read_metadata(folder / "nothing_metadata.json")


def test_table_of_a_folder(folder):
    data = load_tabeb(folder, "wines")
    assert data.target.tolist() == [1.5, 2.5, 1.75, 3.0]
    assert (data.name, data.kind, data.group) == ("wines", "regression", None)
    assert list(data.items.columns) == ["wine", "year"]
    assert set(data.about) == {"source", "sha256"}
    assert str(folder) not in data.about["source"]


def test_rows_of_one_entity_are_a_group_if_declared(folder):
    assert load_tabeb(folder, "wines", by_entity=True).group.tolist() == ["a", "b", "a", "c"]
    write(folder, repeated=True)
    assert load_tabeb(folder, "wines").group.tolist() == ["a", "b", "a", "c"]
    assert load_tabeb(folder, "wines", by_entity=False).group is None
    write(folder, entity_name=None)
    with pytest.raises(DataError, match='"entity_name"'):
        load_tabeb(folder, "wines", by_entity=True)


def test_first_rows(folder):
    assert load_tabeb(folder, "wines", max_rows=3).target.tolist() == [1.5, 2.5, 1.75]
    assert len(load_tabeb(folder, "wines", max_rows=100)) == 4
    with pytest.raises(DefinitionError, match="max_rows"):
        load_tabeb(folder, "wines", max_rows=0)


def test_flat_folder_and_a_definition(folder):
    use = {
        "use": "karat.ext.compat.tabeb.readers:load_tabeb",
        "folder": str(folder / "wines"),
        "max_rows": 2,
    }
    data = load_dataset("wines", {"load": use, "title": "Wines"})
    assert len(data) == 2 and data.about["title"] == "Wines"


def test_table_that_is_not_there(folder):
    with pytest.raises(DataError, match=r"wine\.parquet"):
        load_tabeb(folder, "wine")
    with pytest.raises(DataError, match=r"wine\.parquet"):
        load_tabeb(folder / "nowhere", "wine")


def test_parquet_needs_a_library(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="installed"):
        load_tabeb(folder, "wines")


REAL = {"wine_pl": (2247, 15), "wine_vivino_price": (13834, 7), "spotify": (41099, 18)}


@pytest.mark.parametrize("name", REAL)
def test_real_tables(shared: Path, tmp_path, name):
    flat = load_tabeb(shared / "tabeb", name)
    assert flat.items.shape == REAL[name]
    assert flat.group is None  # all three say that nothing is repeated
    inner = tmp_path / name
    inner.mkdir()
    for ending in (".parquet", "_metadata.json"):
        shutil.copy(shared / "tabeb" / f"{name}{ending}", inner)
    assert load_tabeb(tmp_path, name).fingerprint == flat.fingerprint


def test_real_metadata_with_wrong_repeated_flag(shared: Path):
    groups = {n: set(load_tabeb(shared / "tabeb", n, by_entity=True).group) for n in REAL}
    repeated = {name: REAL[name][0] - len(found) for name, found in groups.items()}
    assert repeated == {"wine_pl": 11, "wine_vivino_price": 2900, "spotify": 5246}


def test_real_metadata_of_wine_pl_name_columns_that_do_not_exist(shared: Path):
    path = shared / "tabeb" / "wine_pl_metadata.json"
    metadata = read_metadata(path)
    assert len(metadata.dtype) == 24
    assert len(metadata.warnings) == 20
    assert sum("is not a column" in warning for warning in metadata.warnings) == 18
    assert metadata.warnings[-5] == (
        'dtype: "temperature" is not a column. Did you mean "serving_temperature"?'
    )
    with pytest.raises(DataError, match='"winery"'):
        read_metadata(path, strict=True)
    for name in ("wine_vivino_price", "spotify"):
        path = shared / "tabeb" / f"{name}_metadata.json"
        assert read_metadata(path, strict=True).warnings == ()
