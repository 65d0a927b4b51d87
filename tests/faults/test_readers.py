"""Every reader of files, on files that were accepted before they were damaged.

A damaged file is an error of Karat with a message, or it is read; vectors that are read are those
of the library of the format. A short form runs by default; ``KARAT_FAULTS=full`` damages as many
files as fit in its time.
"""

from __future__ import annotations

import json
import random
import shutil
import warnings
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

import karat
from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.errors import KaratError
from karat.ext.compat.convert import read_scores
from karat.ext.compat.geval.gold import from_xml
from karat.models.vectors.hdf5 import name_to_base32
from karat.models.vectors.vector_formats import read_vectors
from karat.results.rescore import rescore
from karat.results.run import Run

from .long_form import cases

SHORT = 25
NAMES = ["ab", "cd", "ef", "gh"]
MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
HUGE = [
    b"9" * 400,
    b"1e999",
    b"NaN",
    b"-1",
    b"\xff\xfe",
    b"\x00",
    b"null",
    b"[" * 2000,
    b"<b>",
    b"",
]


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Return a file with flipped bits, a lost or doubled part, or an odd value."""
    raw = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 3, 10))):
        if not raw:
            break
        at, kind = draw.randrange(len(raw)), draw.randrange(6)
        end = min(len(raw), at + draw.choice((1, 2, 8, 60)))
        if kind == 0:
            raw[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            raw[at] = draw.randrange(256)
        elif kind == 2:
            del raw[at:end]
        elif kind == 3:
            raw[at:at] = raw[at:end]
        elif kind == 4:
            raw[at:end] = draw.choice(HUGE)
        else:
            del raw[at:]
    return bytes(raw)


# -- vector files ---------------------------------------------------------------------------


def write_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        for name, row in zip(NAMES, MATRIX, strict=True):
            file.create_dataset(f"Vectors/{name_to_base32(name)}", data=row)


def write_safetensors(path: Path) -> None:
    pytest.importorskip("safetensors.numpy").save_file({"embeddings": MATRIX}, path)
    path.with_suffix(".txt").write_text("\n".join(NAMES) + "\n")


def write_word2vec(path: Path) -> None:
    rows = (
        name.encode() + b" " + row.tobytes() + b"\n"
        for name, row in zip(NAMES, MATRIX, strict=True)
    )
    path.write_bytes(b"4 3\n" + b"".join(rows))


def table() -> pd.DataFrame:
    return pd.DataFrame(MATRIX, columns=list("xyz")).assign(name=NAMES)[["name", *"xyz"]]


WRITERS = {
    "v.npz": lambda path: np.savez(path, ids=np.array(NAMES), vectors=MATRIX),
    "v.h5": write_hdf5,
    "v.safetensors": write_safetensors,
    "v.bin": write_word2vec,
    "v.txt": lambda path: table().to_csv(path, sep=" ", header=False, index=False),
    "v.csv": lambda path: table().to_csv(path, index=False),
    "v.parquet": lambda path: table().to_parquet(path),
    "v.feather": lambda path: table().to_feather(path),
}


def read_npz_reference(path: Path) -> tuple[list[str], np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        names = [i.decode() if isinstance(i, bytes) else str(i) for i in arrays["ids"].tolist()]
        return names, arrays["vectors"]


def read_frame_reference(frame: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    return frame["name"].tolist(), frame[list("xyz")].to_numpy()


#: readers of the libraries of the formats, for files whose layout is as it was
REFERENCES = {
    "v.npz": read_npz_reference,
    "v.parquet": lambda path: read_frame_reference(pd.read_parquet(path)),
    "v.feather": lambda path: read_frame_reference(pd.read_feather(path)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_damaged_vector_files(name, tmp_path):
    base = tmp_path / name
    WRITERS[name](base)
    content, draw = base.read_bytes(), random.Random(name)
    names, vectors = read_vectors(base)
    order = [names.index(name) for name in NAMES]
    np.testing.assert_allclose(vectors[order], MATRIX, rtol=1e-6)
    files = accepted = 0
    for _ in cases(SHORT):
        files += 1
        base.write_bytes(damaged(content, draw))
        try:
            names, vectors = read_vectors(base)
        except KaratError as error:
            assert str(error) and len(str(error)) < 2000
            continue
        accepted += 1
        assert len(names) == len(vectors) and np.isfinite(vectors).all()
        if name in REFERENCES:
            try:
                known, rows = REFERENCES[name](base)
            except Exception:  # another layout, which Karat reads too
                continue
            assert names == [str(each).strip("<>") for each in known] or names == known
            np.testing.assert_array_equal(vectors, np.asarray(rows, dtype=np.float32))
    print(f"{name}: {files} files, {accepted} accepted")


# -- run folders ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return the folder of a run."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    frame["y"] = np.where(frame["a"] > 0, "yes", "no")
    data = Dataset.from_table(frame, "y", name="signs")
    task = karat.Task("signs", data, metrics=["auc", "acc"], split={"use": "kfold", "folds": 2})
    (run,) = karat.evaluate("onehot", [task], output=tmp_path_factory.mktemp("written"))
    karat.leaderboard([run])
    return run.folder


def read_all(folder: Path) -> None:
    """Do with a run what commands do."""
    run = Run.open(folder)
    karat.leaderboard([run])
    for record in run.records():
        if record["fold"] is not None:
            run.predictions(record["task"], record["fold"])
            run.labels(record["task"], record["fold"])
    run.items("signs")
    rescore(run)


FILES = (
    *("run.json", "jobs/signs.0.json", "predictions/signs/0/predictions.csv"),
    *("predictions/signs/0/metadata.json", "items/*.csv.gz"),
)


@pytest.mark.parametrize("pattern", FILES)
def test_damaged_files_of_a_run(pattern, written, tmp_path):
    folder = shutil.copytree(written, tmp_path / written.name)
    file = next(folder.glob(pattern))
    content, draw, files, accepted = file.read_bytes(), random.Random(pattern), 0, 0
    read_all(folder)
    for _ in cases(SHORT):
        files += 1
        file.write_bytes(damaged(content, draw))
        with warnings.catch_warnings(action="ignore"):
            try:
                read_all(folder)
                accepted += 1
            except KaratError as error:
                assert str(error) and len(str(error)) < 4000
    print(f"{pattern}: {files} files, {accepted} accepted")


# -- files of other systems and definitions -------------------------------------------------

DEFINITIONS = """# definitions of a user, with a comment that says something about them
datasets:
  one: {path: table.csv, target: y, kind: classification}
tasks:
  t:
    extends: classification
    dataset: one
    split: {use: kfold, folds: 2, repeats: 3}
models:
  mine: {extends: onehot}
suites:
  s: {tasks: [t], models: [mine]}
"""
PARAMETERS = """<?xml version="1.0"?>
<parameters><vector_filename>v.txt</vector_filename><vector_size>2</vector_size>
<tasks><task>Classification</task></tasks><parallel>true</parallel></parameters>
"""
RESULTS = """id,task,framework,constraint,fold,type,result,metric,mode,version,\
params,utc,duration,seed,info
t/1,adult,onehot,1h8c,0,binary,0.75,auc,local,1,,2026-01-01T00:00:00,3.5,42,
t/1,adult,onehot,1h8c,1,binary,,auc,local,1,,2026-01-01T00:00:00,3.5,43,ValueError: no
"""
MTEB = {
    **{"dataset_revision": "a", "task_name": "STS", "mteb_version": "2.0", "evaluation_time": 1.5},
    "scores": {
        "test": [
            {
                "main_score": 0.5,
                "cosine_spearman": 0.5,
                "hf_subset": "default",
                "languages": ["eng-Latn"],
            }
        ]
    },
}
ROWS = (f"{i / 7:.3f},{'red' if i % 3 else 'blue'},{i % 2}\n" for i in range(30))
TABLE = "a,b,y\n" + "".join(ROWS)


def read_definitions(path: Path) -> None:
    catalog = Catalog([path])
    for name in catalog.definitions.names("suites"):
        if name == "s":
            catalog.suite(name)
    catalog.model("mine")


OTHERS = {
    "definitions.yaml": (DEFINITIONS, read_definitions),
    "parameters.xml": (PARAMETERS, from_xml),
    "results.csv": (RESULTS, lambda path: read_scores(path, system="amlb")),
    "STS.json": (json.dumps(MTEB), lambda path: read_scores(path, system="mteb")),
    "table.csv": (TABLE, lambda path: Dataset.from_csv(path, "y")),
}


@pytest.mark.parametrize("name", OTHERS)
def test_damaged_files_of_users_and_of_other_systems(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(TABLE)
    Path("v.txt").write_text("a 1 2\nb 3 4\n")
    text, read = OTHERS[name]
    path, draw = tmp_path / name, random.Random(name)
    path.write_text(text)
    read(path)
    files = accepted = 0
    for _ in cases(SHORT):
        files += 1
        path.write_bytes(damaged(text.encode(), draw))
        with warnings.catch_warnings(action="ignore"):
            try:
                read(path)
                accepted += 1
            except KaratError as error:
                assert str(error) and len(str(error)) < 10_000
    print(f"{name}: {files} files, {accepted} accepted")
