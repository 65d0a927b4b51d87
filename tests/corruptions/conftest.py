"""A table with a column of every type, and a generator, for the tests of corruptions."""

import functools

import numpy as np
import pandas as pd
import pytest


def every_type(rows=4000):
    """Return a table with a column of every type, none of them with a missing cell."""
    return _made(rows).copy()


@functools.lru_cache(maxsize=16)
def _made(rows):
    rng = np.random.default_rng(9)
    whole, words = rng.integers(1, 9, rows), rng.choice(["red", "green", "blue"], rows)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.permutation(rows), unit="h")
    numbers = [
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    ]
    floats = ["float16", "float32", "float64", "Float32", "Float64"]
    return pd.DataFrame(
        {
            **{name: pd.Series(whole).astype(name) for name in numbers},
            **{name: pd.Series(rng.normal(5, 5, rows)).astype(name) for name in floats},
            "bool": rng.random(rows) < 0.5,
            "boolean": pd.array(rng.random(rows) < 0.5, dtype="boolean"),
            "category": pd.Categorical(words),
            "ordered": pd.Categorical(words, ["red", "green", "blue"], ordered=True),
            "codes": pd.Categorical(whole),
            "object": pd.Series(words, dtype=object),
            "string": pd.Series(words, dtype="string"),
            "text": pd.Series([f"{word} Été {n}" for n, word in enumerate(words)], dtype=object),
            "date": days,
            "day": days.astype("datetime64[s]"),
            "zone": days.tz_localize("UTC").tz_convert("Europe/Berlin"),
            "duration": pd.to_timedelta(whole, unit="h"),
        }
    )


@pytest.fixture(scope="session")
def table():
    return every_type


@pytest.fixture(scope="session")
def word_lists(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "misspellings" / "spelling_en.txt"
    path.parent.mkdir()
    path.write_text("red rad\ngreen grean gren\nblue bleu\n")
    return path.parents[1]


@pytest.fixture(autouse=True)
def local_words(word_lists, monkeypatch):
    """Use a short list of misspellings instead of a download."""
    monkeypatch.setenv("KARAT_DATA", str(word_lists))


@pytest.fixture
def rng():
    return lambda seed=3: np.random.default_rng(seed)
