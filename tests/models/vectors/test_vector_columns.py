"""Vectors in the columns of Parquet and Feather files."""

import numpy as np
import pandas as pd
import pytest

from karat.core import files

from .vector_data import (
    NAMES,
    VECTORS,
    assert_cut_short_is_invalid,
    assert_invalid,
    assert_read,
)


def test_columns_that_repeat_too_much(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setattr(files, "FREE_BYTES", 1_000_000)
    path = tmp_path / "v.parquet"
    one = pyarrow.array(["a" * 100_000])
    indices = pyarrow.array(np.zeros(1_000, "i4"))
    names = pyarrow.DictionaryArray.from_arrays(indices, one)
    numbers = pyarrow.array(np.zeros(1_000, "f4"))
    parquet.write_table(pyarrow.table({"id": names, "x": numbers}), path, compression="zstd")
    assert_invalid(path, "bytes")
    numbers = pyarrow.array(np.zeros(1_000_000, "f4"))
    parquet.write_table(pyarrow.table({"x": numbers}), path, compression="zstd")
    assert_invalid(path, "bytes")


@pytest.fixture(params=["parquet", "feather"])
def write_columns(request, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    def written(columns, **types):
        table = pa.table({n: pa.array(v, types.get(n)) for n, v in columns.items()})
        path = tmp_path / f"v.{request.param}"
        (parquet.write_table if request.param == "parquet" else feather.write_feather)(table, path)
        return path

    return written


def test_columns_of_numbers_or_of_lists(write_columns):
    pa = pytest.importorskip("pyarrow")
    lists = VECTORS.tolist()
    assert_read(write_columns({"id": NAMES, "d0": VECTORS[:, 0], "d1": VECTORS[:, 1]}))
    assert_read(write_columns({"v": lists, "name": NAMES}))
    assert_read(write_columns({"v": lists, "name": NAMES}, v=pa.list_(pa.float32(), 2)))
    assert_read(
        write_columns(
            {"id": NAMES, "v": lists}, id=pa.large_string(), v=pa.large_list(pa.float64())
        )
    )
    assert_read(write_columns({"id": pa.array(NAMES).dictionary_encode(), "v": lists}))
    assert_read(write_columns({"id": NAMES, "d": [1, 2, 3]}), NAMES, [[1], [2], [3]])


def test_a_frame_with_the_names_as_its_index(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame(VECTORS, NAMES, ["x", "y"]).to_parquet(tmp_path / "v.parquet")
    assert_read(tmp_path / "v.parquet")


@pytest.mark.parametrize(
    "columns, match",
    [
        ({"id": [1, 2], "v": [1.0, 2.0]}, "string column.*got 0"),
        ({"a": ["x"], "b": ["y"], "v": [1.0]}, "got 2: a, b"),
        ({"a": ["x", "y"], "v": [[1.0], [1.0, 2.0]]}, "row 2: .* 1 .* 2"),
        ({"a": ["x", "y"], "v": [1.0, None]}, 'row 2: .*"v"'),
        ({"a": ["x", None], "v": [1.0, 2.0]}, 'row 2: .*"a"'),
        ({"a": ["x"], "v": [[None]]}, 'lists in "v"'),
        ({"a": ["x"], "v": [[True]]}, 'lists in "v"'),
        ({"a": ["x"], "v": [True]}, 'column "v"'),
        ({"a": ["x"], "v": [np.nan]}, '"x".*NaN'),
        ({"a": ["x", "x"], "v": [1.0, 2.0]}, 'duplicate.*"x"'),
        ({"a": ["x"]}, "1 ids"),
    ],
)
def test_broken_columns(write_columns, columns, match):
    assert_invalid(write_columns(columns), match)


def test_columns_that_are_cut_short(write_columns):
    path = write_columns({"id": NAMES, "v": VECTORS.tolist()})
    assert_cut_short_is_invalid(path, "cannot read", 0, 0.5, 0.95)
