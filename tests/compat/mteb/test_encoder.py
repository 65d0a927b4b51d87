"""Karat's models as encoders of mteb; skipped where it is not installed."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from karat.compat.mteb import Encoder
from karat.errors import DefinitionError, MissingExtra

from .mock_tasks import Hashed, noisy, sentences, table, task_of, theirs


@pytest.fixture
def mteb(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return pytest.importorskip("mteb")


class Prompted(Hashed):
    """Records the role of every text; the vectors depend on it."""

    uses_roles = True

    def __init__(self):
        self.seen = {}

    def prompt_for(self, role):
        return f"{role}: "

    def encode(self, texts, role=""):
        self.seen.setdefault(role, []).extend(texts)
        return super().encode([f"{role} {text}" for text in texts])

    def transform(self, items, role=""):
        return self.encode(list(items), role)


def test_mteb_runs_a_model_on_its_mock_tasks(mteb):
    mocks = pytest.importorskip("mteb.mocks")
    for name in ("MockSTSTask", "MockRetrievalTask", "MockClassificationTask"):
        scores = theirs(mocks.MOCK_TASK_REGISTRY[name](), Encoder(Hashed()))
        assert scores and all(-1 <= value <= 1 for value in scores.values())


def test_prompt_types_are_roles(mteb):
    mocks = pytest.importorskip("mteb.mocks")
    model = Prompted()
    encoder = Encoder(model)
    encoder.encoder = model  # the copy that mteb calls
    theirs(mocks.MOCK_TASK_REGISTRY["MockRetrievalTask"](), encoder)
    assert set(model.seen) == {"query", "document"}
    theirs(mocks.MOCK_TASK_REGISTRY["MockSTSTask"](), encoder)
    assert set(model.seen) == {"query", "document", "STS"}


def test_the_metadata(mteb):
    meta = Encoder(Hashed(), "mine").mteb_model_meta
    assert meta.name == "karat/mine" and len(meta.revision) == 40
    assert Encoder(Hashed(), "org/mine").mteb_model_meta.name == "org/mine"
    assert Encoder("random").mteb_model_meta.name == "karat/random"
    assert isinstance(Encoder(Hashed()), mteb.EncoderProtocol)


def test_an_encoder_that_is_fitted_needs_texts(mteb):
    from mteb.abstasks import AbsTaskSTS

    with pytest.raises(DefinitionError, match="fit_on"):
        Encoder("tfidf")
    one = sentences(30)
    other, scores = noisy(one, 1, 6), [float(i % 5) for i in range(30)]
    kind = task_of(
        *(AbsTaskSTS, "STS", "cosine_spearman"),
        lambda: {"test": table(sentence1=one, sentence2=other, score=scores)},
    )
    assert set(theirs(kind(), Encoder("tfidf", fit_on=[*one, *other]))) == {"OwnSTS"}


def test_other_models_are_refused(mteb):
    for model, reason in (("dummy", "predictor"), ("random@8d", "variant"), ("onehot", "text")):
        with pytest.raises(DefinitionError, match=reason):
            Encoder(model)


def test_texts_without_a_vector_are_zeros(mteb, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("loka 1 0\nmino 0 1\n")
    encoder = Encoder(path)
    meta = type("Metadata", (), {"type": "STS"})
    batches = [{"text": ["loka", "mino"]}, {"text": ["unknown"]}]
    with pytest.warns(UserWarning, match="1 of 3"):
        found = encoder.encode(batches, task_metadata=meta, hf_split="test", hf_subset="default")
    assert found.tolist() == [[1, 0], [0, 1], [0, 0]]
    cosines = np.asarray(encoder.similarity(found[:2], found[:2]))
    assert np.allclose(cosines, np.eye(2))
    assert np.allclose(np.asarray(encoder.similarity_pairwise(found[:2], found[:2])), 1)


def test_without_mteb_the_error_has_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(MissingExtra, match=r'pip install "karat\[mteb\]"'):
        Encoder(lambda items: pd.DataFrame(index=items.index))
