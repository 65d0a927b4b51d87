"""Vectors of PyKEEN and gensim models: stubs, and real ones if installed."""

from __future__ import annotations

import csv
import gzip
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import karat
from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.core.task import Task
from karat.errors import ContractError, DataError, MissingExtra
from karat.ext.models import graph_libraries as graph_models
from karat.ext.models.graph_libraries import GensimFile, PyKeenFolder, pykeen_vectors
from karat.models.adapters import adapt
from karat.models.model_identity import object_identity
from karat.models.vector_files import VectorLookup

PLACES = {"<http://x.example/oslo>": 1, "NA": 0, "rome": 2}


class Tensor:
    """As a tensor of torch: an array behind three calls."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        return self.values


class Part:
    """As a representation of PyKEEN; while it trains, its numbers are not to be used."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)
        self.training = True

    def eval(self) -> None:
        self.training = False

    def train(self, mode: bool) -> None:
        self.training = mode

    def __call__(self, indices: None) -> Tensor:
        assert indices is None
        return Tensor(self.values * (np.nan if self.training else 1))


def model(*values: Any) -> SimpleNamespace:
    return SimpleNamespace(entity_representations=[Part(each) for each in values])


FACTORY = SimpleNamespace(entity_to_id=PLACES)
REAL = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
COMPLEX = [[1 + 10j, 2 + 20j], [3 + 30j, 4 + 40j], [5 + 50j, 6 + 60j]]


def test_entities_are_found_by_name():
    trained = model(REAL)
    known = pykeen_vectors(trained, FACTORY)
    items = pd.Series(["", "", ""], index=["NA", "http://x.example/oslo", "nowhere"])
    np.testing.assert_array_equal(known.transform(items), [[1, 2], [3, 4], [np.nan, np.nan]])
    assert trained.entity_representations[0].training  # as it was


def test_complex_vectors_become_real_and_imaginary_parts():
    known = pykeen_vectors(model(COMPLEX), FACTORY)
    np.testing.assert_array_equal(known.transform(["rome"]), [[5, 6, 50, 60]])


def test_several_vectors_per_entity():
    two = model(REAL, [[[7.0], [8.0]], [[9.0], [10.0]], [[11.0], [12.0]]])
    np.testing.assert_array_equal(
        pykeen_vectors(two, FACTORY).transform(["rome"]), [[5, 6, 11, 12]]
    )
    np.testing.assert_array_equal(pykeen_vectors(two, FACTORY, 1).transform(["rome"]), [[11, 12]])
    with pytest.raises(ContractError, match="below 2.*got 2"):
        pykeen_vectors(two, FACTORY, 2)


def test_mismatched_models_raise():
    with pytest.raises(ContractError, match="entity_to_id"):
        pykeen_vectors(model(REAL), SimpleNamespace())
    with pytest.raises(ContractError, match=" 2 entity vectors.* 3 "):
        pykeen_vectors(model(REAL[:2]), FACTORY)
    with pytest.raises(ContractError, match="pykeen_vectors"):
        adapt(model(REAL))


def test_the_result_of_a_pipeline_is_a_model():
    made = adapt(SimpleNamespace(model=model(REAL), training=FACTORY), "mine")
    assert (made.name, made.role, made.takes) == ("mine", "encoder", ("entity", "text"))
    assert isinstance(made.prototype, VectorLookup)
    ids, vectors = made.prototype.vocabulary()
    assert list(ids) == ["http://x.example/oslo", "NA", "rome"]
    np.testing.assert_array_equal(vectors, [[3, 4], [1, 2], [5, 6]])


def test_properties_of_unknown_objects_are_not_read():
    class Careful:
        @property
        def model(self) -> Any:
            raise RuntimeError("not fitted")

        def transform(self, items: Any) -> Any:
            return np.ones((len(items), 1))

    assert adapt(Careful()).role == "encoder"


def write_names(folder: Path, names: list[str]) -> Path:
    place = folder / "training_triples" / "entity_to_id.tsv.gz"
    place.parent.mkdir()
    with gzip.open(place, "wt", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, delimiter="\t", lineterminator="\n")
        rows.writerows([("id", "label"), *enumerate(names)])
    return place


def test_entity_names_are_not_changed(tmp_path):
    names = ["NA", "null", "nan", 'a "b"', "São Paulo", ""]
    places = graph_models._read_entity_ids(write_names(tmp_path, names))
    assert places == {name: place for place, name in enumerate(names)}


def test_a_folder_must_be_one_of_pykeen(tmp_path):
    with pytest.raises(DataError, match="trained_model.pkl"):
        PyKeenFolder(str(tmp_path)).fingerprint()
    (tmp_path / "trained_model.pkl").touch()
    with pytest.raises(DataError, match="training_triples/entity_to_id.tsv.gz"):
        PyKeenFolder(str(tmp_path)).files()


@pytest.mark.parametrize(("made", "library"), [(PyKeenFolder, "pykeen"), (GensimFile, "gensim")])
def test_missing_library_is_reported(monkeypatch, made, library):
    monkeypatch.setattr(graph_models, "find_spec", lambda name: None)
    assert f"karat[{library}]" in made("x").unavailable()
    assert f"karat[{library}]" in adapt(made("x")).unavailable
    with pytest.raises(MissingExtra, match=library):
        made("x").transform(["a"])


@pytest.mark.parametrize(("file", "name"), [("a.kv", "gensim"), ("A.MODEL", "gensim")])
def test_pickle_path_alone_is_refused(tmp_path, file, name):
    (tmp_path / file).write_bytes(pickle.dumps(print))
    with pytest.raises(DataError, match=f"pickle.*extends: {name}.*{file}"):
        adapt(tmp_path / file)
    with pytest.raises(DataError, match="pickle"):
        Catalog().model(str(tmp_path / file))
    trained = tmp_path / "trained_model.pkl"
    trained.touch()
    with pytest.raises(DataError, match=f'extends: pykeen, params: {{path: "{tmp_path}"}}'):
        adapt(trained)


def links(names: list[str]) -> Task:
    """Return a task of one question per name: in which half of the list it is."""
    truth = np.where(np.arange(len(names)) % 2, "odd", "even")
    items = pd.Series(names, index=names)
    asked = pd.DataFrame({"name": names})
    data = Dataset("names", items, asked, truth, "classification", "entity")
    split = {"use": "kfold", "folds": 2}
    return Task(
        "names", data, probe={"use": "trained", "head": "knn"}, split=split, metrics=["acc"]
    )


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "width"), [("TransE", 4), ("ComplEx", 8), ("SimplE", 8)])
def test_a_real_model_and_its_folder(tmp_path, kind, width):
    torch = pytest.importorskip("torch")
    pytest.importorskip("pykeen")
    from pykeen.pipeline import pipeline

    result = pipeline(
        dataset="nations",
        model=kind,
        model_kwargs={"embedding_dim": 4},
        epochs=1,
        random_seed=1,
        device="cpu",
        training_kwargs={"use_tqdm": False},
        evaluation_kwargs={"use_tqdm": False},
    )
    result.save_to_directory(tmp_path / "saved")
    saved = PyKeenFolder(str(tmp_path / "saved"))
    ids, vectors = saved.vocabulary()
    assert vectors.shape == (14, width) and "usa" in ids
    held = adapt(result).prototype
    np.testing.assert_array_equal(held.transform(ids), vectors)
    place = torch.tensor([result.training.entity_to_id["usa"]])
    first = result.model.entity_representations[0](indices=place).detach().numpy()[0]
    parts = [first.real, first.imag] if np.iscomplexobj(first) else [first]
    row = saved.transform(["usa", "nowhere"])
    np.testing.assert_array_equal(row[0][: len(np.hstack(parts))], np.hstack(parts))
    assert np.isnan(row[1]).all()
    assert len(pickle.dumps(saved)) < 500
    yaml = tmp_path / "mine.yaml"
    yaml.write_text(f"models:\n  mine: {{extends: pykeen, params: {{path: '{saved.path}'}}}}\n")
    (run,) = karat.evaluate("mine", links(list(ids)), define=yaml, output=tmp_path / "results")
    assert run.results()["coverage"].tolist() == [1.0, 1.0]


WORDS = ["rome", "oslo", "NA"]
VECTORS = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)


def real_vectors() -> Any:
    pytest.importorskip("gensim")
    from gensim.models import KeyedVectors

    made = KeyedVectors(2)
    made.add_vectors(WORDS, VECTORS)
    return made


def test_real_keyed_vectors():
    known = adapt(real_vectors()).prototype
    items = pd.Series(["a city", "?"], index=["oslo", "paris"])
    np.testing.assert_array_equal(known.transform(items), [[3, 4], [np.nan, np.nan]])
    np.testing.assert_array_equal(known.encode(["Rome, Oslo!"]), [[2, 3]])


def test_a_real_file_of_vectors(tmp_path):
    made, path = real_vectors(), tmp_path / "words.kv"
    made.save(str(path))
    saved = GensimFile(str(path))
    np.testing.assert_array_equal(saved.transform(["NA", "paris"]), [[5, 6], [np.nan, np.nan]])
    np.testing.assert_array_equal(saved.encode(["Rome, Oslo!"]), [[2, 3]])
    assert list(saved.vocabulary()[0]) == WORDS
    assert saved.unavailable() == "" and len(pickle.dumps(saved)) < 500
    before = object_identity(GensimFile(str(path)))
    made.vectors[0] += 1
    made.save(str(path), sep_limit=0)  # arrays in separate files
    assert [file.name for file in saved.files()] == ["words.kv", "words.kv.vectors.npy"]
    np.testing.assert_array_equal(GensimFile(str(path)).transform(["rome"]), [[2, 3]])
    once = object_identity(GensimFile(str(path)))
    np.save(tmp_path / "words.kv.vectors.npy", made.vectors + 1)
    assert len({before, once, object_identity(GensimFile(str(path)))}) == 3


def test_a_real_trained_model(tmp_path):
    pytest.importorskip("gensim")
    from gensim.models import Word2Vec

    texts = [["rome", "italy"], ["oslo", "norway"]] * 20
    made = Word2Vec(texts, vector_size=4, min_count=1, seed=1, workers=1, epochs=1)
    path = tmp_path / "words.model"
    made.save(str(path))
    row = GensimFile(str(path)).transform(["oslo"])
    np.testing.assert_array_equal(row[0], made.wv["oslo"])
    np.testing.assert_array_equal(adapt(made).prototype.transform(["oslo"]), row)


def test_broken_files(tmp_path):
    pytest.importorskip("gensim")
    with pytest.raises(DataError, match="none.kv"):
        GensimFile(str(tmp_path / "none.kv")).transform(["a"])
    broken = tmp_path / "broken.kv"
    broken.write_bytes(b"no pickle")
    with pytest.raises(DataError, match="broken.kv"):
        GensimFile(str(broken)).transform(["a"])
