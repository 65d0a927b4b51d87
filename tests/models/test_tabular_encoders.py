"""What holds for every encoder of table rows, and the place where users import them from."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from karat.models import tabular_encoders
from karat.models.out_of_fold import OutOfFold
from karat.models.tables.forest_encoders import ForestLeaves, ForestScores
from karat.models.tables.hashed_table import HashedTable
from karat.models.tables.min_hash_table import MinHashTable
from karat.models.tables.one_hot_pca import OneHotPca
from karat.models.tables.one_hot_table import OneHotTable
from karat.models.tables.ordinal_table import OrdinalTable
from karat.models.tables.row_sentences import RowSentences
from karat.models.tables.string_table import StringTable
from karat.models.tables.target_table import TargetTable

ENCODERS = [
    OneHotTable(),
    OrdinalTable(),
    TargetTable(kind="classification", random_state=1),
    HashedTable(),
    MinHashTable(),
    StringTable(random_state=1),
    OneHotPca(),
    ForestLeaves(trees=3, kind="classification", random_state=1),
    ForestScores(trees=3, kind="classification", random_state=1),
    OutOfFold(options={"trees": 3}, folds=2, kind="classification", random_state=1),
    RowSentences("karat.models.text_encoders:TfIdf"),
]


@pytest.fixture(params=ENCODERS, ids=lambda encoder: type(encoder).__name__)
def encoder(request):
    if isinstance(request.param, StringTable):
        pytest.importorskip("skrub")
    return clone(request.param)


def odd_table(rows=40):
    rng, i = np.random.default_rng(2), np.arange(rows)
    some = i % 5 == 0
    mixed = np.array(["x", 1, 2.5, True, None, (1, 2)] * rows, dtype=object)[:rows]
    return pd.DataFrame(
        {
            "number": np.where(some, np.nan, rng.normal(size=rows)),
            "huge": np.where(some, np.inf, 1e300) * np.where(i % 2 == 0, 1, -1),
            "constant": 1,
            "same": "same",
            "nothing": np.nan,
            "none": pd.Series([None] * rows, dtype=object),
            "blank": np.where(some, "", " "),
            "mixed": mixed,
            "whole": pd.array(np.where(some, pd.NA, i), dtype="Int64"),
            "truth": pd.array(np.where(some, pd.NA, i % 2 == 0), dtype="boolean"),
            "text": pd.array(np.where(some, pd.NA, i.astype(str)), dtype="string"),
            "bool": i % 2 == 0,
            "category": pd.Categorical(np.where(some, None, i % 3), categories=[0, 1, 2, 9]),
            "when": pd.to_datetime(pd.Series(np.where(some, None, "2024-05-06 07:08"))),
            "never": pd.Series([pd.NaT] * rows),
            "zone": pd.date_range("2024-01-01", periods=rows, tz="Europe/Berlin"),
            "month": pd.period_range("2024-01", periods=rows, freq="M"),
            7: i,
            "7": "seven",
        }
    )


@pytest.mark.filterwarnings("error")
def test_odd_tables_are_encoded(encoder):
    table, y = odd_table(), np.array(["a", "b"] * 20)
    before = np.random.get_state()[1].tolist()
    made = [encoder, clone(encoder)]
    one, same = (dense(each.fit_transform(table, y)) for each in made)
    np.testing.assert_array_equal(one, same)
    later = odd_table(60).iloc[40:].assign(same="other", text="new", nothing="now", number="12")
    for rows in (later, table.iloc[:1], later.mask(later.notna()), later[list(later)[::-1]]):
        found = dense(made[0].transform(rows))
        assert found.shape == (len(rows), one.shape[1])
        assert np.isfinite(found).all() and np.isfinite(one).all()
    alone = [dense(made[0].transform(later.iloc[[row]]))[0] for row in range(3)]
    np.testing.assert_allclose(alone, dense(made[0].transform(later))[:3], atol=1e-9)
    assert np.random.get_state()[1].tolist() == before


def dense(values):
    return values.toarray() if hasattr(values, "toarray") else values


def test_small_tables_are_encoded(encoder):
    for table in (
        pd.DataFrame({"n": [1.0, 2.0, 3.0]}),
        pd.DataFrame({"word": ["one", "two", "three"]}),
        pd.DataFrame({0: [1, 2, 3], 1: ["a", "b", "c"]}),
        pd.DataFrame({"d": pd.to_datetime(["2020-01-01", None, "2021-01-01"])}),
    ):
        y = np.array(["a", "b", "a"])
        found = dense(clone(encoder).fit_transform(table, y))
        assert found.shape[0] == 3 and found.shape[1] > 0
        assert np.isfinite(found).all()


def test_many_different_words_make_few_dimensions(encoder):
    rows = 20_000
    table = pd.DataFrame({"id": [f"word {i:x}" for i in range(rows)], "n": np.arange(rows) % 7})
    found = clone(encoder).fit_transform(table, np.arange(rows) % 2)
    assert found.shape[0] == rows and found.shape[1] <= 3000


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: type(encoder).__name__)
def test_users_import_them_from_one_place(encoder):
    assert getattr(tabular_encoders, type(encoder).__name__) is type(encoder)
