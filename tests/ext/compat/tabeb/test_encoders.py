"""TabEB's encoders."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from karat.errors import DefinitionError
from karat.ext.compat.tabeb import TabEBBaseEncoder, get_model
from karat.ext.compat.tabeb.tasks import describe_object

from .test_interface import ROWS, TABLE, Scaled, task


def test_base_class_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        TabEBBaseEncoder()

    class Half(TabEBBaseEncoder):
        def fit(self, X, y=None):
            return self

    with pytest.raises(TypeError, match="transform"):
        Half()


def test_name_and_device():
    class Plain(TabEBBaseEncoder):
        def fit(self, X, y=None):
            return self

        def transform(self, X, y=None):
            return X[["x"]].to_numpy()

    assert (Plain().device, Plain("cpu").device) == (None, "cpu")
    assert task().evaluate([Plain("cpu")])["encoder"].tolist() == ["Plain"]
    named = Plain()
    named.name = "own name"
    assert task().evaluate([named])["encoder"].tolist() == ["own name"]


def test_normalize():
    encoder = Scaled()
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    assert encoder.normalize(rows).tolist() == [[0.6, 0.8], [0, 0], [0, -1]]
    assert encoder.normalize(rows.astype(np.float32)).dtype == np.float32
    assert encoder.normalize([[3, 4]]).tolist() == [[0.6, 0.8]]
    for wrong in (np.ones(3), np.ones((2, 2, 2))):
        with pytest.raises(ValueError, match=str(wrong.ndim)):
            encoder.normalize(wrong)


def test_random_encoder():
    encoder = get_model("random_encoder")
    vectors = encoder.fit_transform(TABLE)
    assert vectors.shape == (ROWS, 128) and encoder.name == "random_encoder"
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)
    assert get_model("random_encoder", embedding_size=3).transform(TABLE).shape == (ROWS, 3)
    same, other = (get_model("random_encoder", random_state=s).transform(TABLE) for s in (0, 1))
    assert (same == vectors).all() and (other != vectors).any()
    # cells that cannot be hashed, arrays, and rows alike in all but their index
    lists = pd.DataFrame({"x": [[1], [2], [1]]})
    assert len(np.unique(encoder.transform(lists), axis=0)) == 3
    assert encoder.transform(TABLE.to_numpy()).shape == (ROWS, 128)


def test_skrub_encoder():
    pytest.importorskip("skrub")
    encoder = get_model("skrub_encoder", cardinality_threshold=1)
    assert encoder.fit(TABLE) is encoder and encoder.name == "skrub_encoder"
    assert encoder.vectorizer_.cardinality_threshold == 1
    holes = pd.DataFrame({"x": [1.0, None, 3.0] * 9})
    filled = get_model("skrub_encoder").fit_transform(holes)
    # skrub's single precision is kept
    assert filled.dtype == np.float32 and filled[:3, 0].tolist() == [1.0, 0.0, 3.0]
    with pytest.raises(DefinitionError, match='"cardinality"'):
        get_model("skrub_encoder", cardinality=1)
    seeded = get_model("skrub_encoder", cardinality_threshold=1, random_state=3)
    assert (
        describe_object(seeded) == "SkrubRows(options={cardinality_threshold: 1}, random_state=3)"
    )


def test_carte_encoder_gets_the_kind_of_target(monkeypatch):
    carte = pytest.importorskip("karat.ext.models.carte")

    class Fake:
        made: list[tuple] = []

        def __init__(self, num_model=1, fasttext=None, kind=None, random_state=None):
            self.made.append((num_model, fasttext, kind, random_state))

        def fit(self, X, y=None):
            return self

        def fit_transform(self, X, y=None):
            return self.transform(X)

        def transform(self, X):
            return X[["x"]].to_numpy()

    monkeypatch.setattr(carte, "CarteEncoder", Fake)
    encoder = get_model("carte_encoder", task="regression", num_models=2, lm_path="vectors.bin")
    for kind in ("regression", "classification"):
        assert task(kind, seed=5).evaluate([encoder])["encoder"].tolist() == ["carte_encoder"]
    kinds = ("regression", "classification")
    assert Fake.made == [(2, "vectors.bin", kind, 5) for kind in kinds]
    assert encoder.fit(TABLE, TABLE["x"]).transform(TABLE).shape == (ROWS, 1)
    assert Fake.made[-1] == (2, "vectors.bin", "regression", None)  # from its parameter task
    with pytest.raises(DefinitionError, match="'regr'"):
        get_model("carte_encoder", task="regr")
    with pytest.raises(DefinitionError, match='"njobs"'):
        get_model("carte_encoder", njobs=2)


def test_carte_encoder_takes_all_parameters_of_tabeb():
    files = {"pretrain_model_path": "weights.pt", "lm_path": "vectors.bin"}
    other = {"num_models": 2, "device": "cpu", "n_jobs": 2, "disable_pbar": True}
    encoder = get_model("carte_encoder", **files, **other, random_state=0, task="classification")
    assert (encoder.task, encoder.random_state) == ("classification", 0)
    assert encoder.options == {
        **{"pretrained": "weights.pt", "fasttext": "vectors.bin"},
        **{"num_model": 2, "device": "cpu"},
    }


def test_carte_encoder_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    encoder = get_model("carte_encoder", task="regression")
    with pytest.warns(UserWarning, match="^carte_encoder on one: .*torch"):
        frame = task().evaluate([encoder, Scaled()])
    assert frame["one"].isna().tolist() == [True, False]
