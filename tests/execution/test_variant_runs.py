"""Runs of variants: vectors once, compressed on both sides, searched as they are stored."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

import karat
from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.core.embeddings import Variant
from karat.core.task import Task
from karat.errors import KaratWarning
from karat.models.random_encoder import RandomEncoder
from karat.results.load import gather_scores

ALL = {"dimensions": [2, 4], "precision": ["float32", "float16", "int8", "binary"]}
NAMES = ["e", *(f"e@{d}d{p}" for d in (2, 4) for p in ("", "-float16", "-int8", "-binary"))]


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))


class Letters:
    """Counts letters; the vector of a text without one of them is unknown."""

    encoded: Counter[str] = Counter()

    def encode(self, texts):
        Letters.encoded.update(texts)
        rows = np.array([[t.count(c) + len(t) % 3 for c in "abcdef"] for t in texts], np.float32)
        rows[["?" in text for text in texts]] = np.nan
        return rows


@pytest.fixture(autouse=True)
def nothing_encoded():
    Letters.encoded = Counter()


class Table:
    """Looks vectors up."""

    def __init__(self, rows):
        self.rows = rows

    def encode(self, texts):
        return np.array([self.rows[text] for text in texts], dtype=np.float32)


def search(rows: dict, answer: str) -> Task:
    """Return the task to find an answer for the text "q" among the other texts."""
    items = pd.Series({text: text for text in rows})
    questions = pd.DataFrame({"query": ["q"]})
    data = Dataset("search", items, questions, np.array([answer]), "items", "text")
    probe = {"use": "nearest", "queries": "apart"}
    return Task("search", data, probe, "all", ["mrr"], roles=["query"])


def ranks(rows: dict, answer: str, tmp_path: Path, **grid) -> dict[str, float]:
    runs = karat.evaluate(
        karat.Variants({"e": Table(rows)}, **grid), search(rows, answer), output=tmp_path
    )
    return {run.model: 1 / run.results()["mrr"].item() for run in runs}


def files_of(runs) -> dict[str, bytes]:
    """Return the predictions of all runs, by model and file."""
    return {
        f"{run.model}/{path.relative_to(run.folder)}": path.read_bytes()
        for run in runs
        for path in run.folder.glob("predictions/**/predictions.csv")
    }


def test_every_variant_is_a_run_that_states_its_size(tmp_path, words):
    runs = karat.evaluate(karat.Variants({"e": Letters()}, **ALL), words(), output=tmp_path)
    assert [run.model for run in runs] == NAMES
    assert [run.about.get("base") for run in runs] == [None] + ["e"] * 8
    assert [run.about["params"].get("dimensions") for run in runs] == [None] + [2] * 4 + [4] * 4
    assert runs[7].about["params"]["precision"] == "int8"
    table = pd.concat(run.results() for run in runs).drop_duplicates("framework")
    assert table["dimensions"].tolist() == [6] + [2] * 4 + [4] * 4
    precisions = ["float32", "float16", "int8", "binary"]
    assert table["vector_precision"].tolist() == ["float32", *precisions, *precisions]
    assert table["vector_bytes"].tolist() == [24, 8, 4, 2, 1, 16, 8, 4, 1]
    jobs = gather_scores(runs).jobs.drop_duplicates("model")
    assert jobs["vector_bytes"].tolist() == table["vector_bytes"].tolist()
    board = karat.leaderboard(runs)
    assert set(board.index) == set(NAMES) and board.loc["e@2d-binary", "vector_bytes"] == 1


@pytest.mark.parametrize("cache", [True, False])
def test_each_text_is_encoded_once_for_all_variants(tmp_path, words, cache):
    karat.evaluate(
        karat.Variants({"e": Letters()}, **ALL), words(), output=karat.Output(tmp_path, cache=cache)
    )
    assert set(Letters.encoded.values()) == {1} and len(Letters.encoded) == 20


def test_corrupted_texts_are_encoded_once_for_all_variants(tmp_path, words):
    task = words(corruptions={"typos": [0.9]})
    runs = karat.evaluate(karat.Variants({"e": Letters()}, **ALL), task, output=tmp_path)
    # each text once for the data, and each of a corrupted test fold once more
    assert Letters.encoded.total() == 40 and max(Letters.encoded.values()) <= 2
    alone = Catalog().model(Letters(), "e").as_variant(Variant(2, "int8"))
    single = karat.evaluate([alone], task, output=tmp_path / "alone")
    assert files_of(single) == files_of(run for run in runs if run.model == "e@2d-int8")


def test_predictions_do_not_depend_on_workers(tmp_path, words):
    tasks = [words(), words("other", probe={"use": "trained", "head": "knn"})]
    found = []
    for n in (0, 1, 2):
        models = karat.Variants({"e": RandomEncoder()}, **ALL)
        runs = karat.evaluate(models, tasks, output=tmp_path / str(n), workers=n)
        found.append(files_of(runs))
    assert found[0] == found[1] == found[2] and len(found[0]) == 9 * 4
    # variants do not share what others made
    assert len({text for name, text in found[0].items() if "words/0" in name}) == 9


def test_heads_get_the_stored_numbers_in_training_and_in_test(tmp_path, words, clean_registry):
    seen = []

    @karat.head("recorder")
    class Recorder:
        classes_ = np.array(["A", "B"])

        def fit(self, X, y):
            seen.append(np.unique(X))

        def predict(self, X):
            seen.append(np.unique(X))
            return np.array(["A"] * len(X))

    task = words(probe={"use": "trained", "head": "recorder", "scale": "plain"})
    karat.evaluate(
        karat.Variants({"e": Letters()}, precision=["binary"]),
        task,
        output=tmp_path,
        only=karat.Only(folds=0),
    )
    assert [each.tolist() for each in seen[2:]] == [[-1.0, 1.0]] * 2
    assert all(len(each) > 2 for each in seen[:2])


def test_one_bit_is_ranked_by_hamming_distance(tmp_path):
    rows = {
        "q": [1, 2, 3, 4],
        "far": [0.1, -9, 1, 9],  # distance 1, but the cosine is 0.31
        "near": [1, 2, 3, -0.5],  # distance 1, and the cosine is 0.66
        "two": [-0.1, -0.1, 3, 4],  # distance 2, and the cosine is 0.85
    }
    assert ranks(rows, "two", tmp_path, precision="binary") == {"e": 1, "e@binary": 3}
    # ties count against the answer
    assert ranks(rows, "near", tmp_path, precision="binary") == {"e": 2, "e@binary": 2}


def test_the_nearest_are_ranked_again_by_the_vector_of_the_query(tmp_path):
    rows = {
        "q": [1, 2, 3, 4],
        "a": [-1, 1, 1, 1],  # distance 1; the bits and the query: -1 + 2 + 3 + 4 = 8
        "b": [1, 1, 1, -1],  # distance 1; 1 + 2 + 3 - 4 = 2
        "c": [-1, -1, 1, 1],  # distance 2; -1 - 2 + 3 + 4 = 4
    }
    for answer, expected in (("a", 1), ("b", 3), ("c", 2)):
        got = ranks(rows, answer, tmp_path, precision="binary", rescore=3)
        assert got["e@binary-rescore"] == expected
    # only the two nearest are ranked again: c stays behind b
    assert ranks(rows, "c", tmp_path, precision="binary", rescore=2)["e@binary-rescore"] == 3
    assert ranks(rows, "b", tmp_path, precision="binary", rescore=2)["e@binary-rescore"] == 2


def test_an_unknown_item_stays_unknown(tmp_path):
    texts = ["a", "bb", "b?", "ab", "c", "abc", "aa", "cc"]
    frame = pd.DataFrame({"text": texts, "y": ["x", "y"] * 4})
    task = Task("t", Dataset.from_columns(frame, ["text"], "y"), metrics=["acc"], split="all")
    runs = karat.evaluate(karat.Variants({"e": Letters()}, **ALL), task, output=tmp_path)
    assert {run.results()["coverage"].item() for run in runs} == {7 / 8}
    assert {tuple(run.missing("t")) for run in runs} == {tuple(runs[0].missing("t"))}


def test_more_dimensions_than_the_encoder_has_is_a_failed_row(tmp_path, words):
    with pytest.warns(KaratWarning, match="7.*have 6"):
        runs = karat.evaluate(
            karat.Variants({"e": Letters()}, dimensions=[2, 7]), words(), output=tmp_path
        )
    states = [run.results()["status"].unique().tolist() for run in runs]
    assert states == [["ok"], ["ok"], ["failed"]]


def test_resume_runs_only_new_variants(tmp_path, words):
    given = {"output": tmp_path, "resume": True}
    first = karat.evaluate(karat.Variants({"e": Letters()}, precision="int8"), words(), **given)
    before = {run.model: run.records() for run in first}
    again = karat.evaluate(
        karat.Variants({"e": Letters()}, precision=["int8", "binary"]), words(), **given
    )
    assert [run.model for run in again] == ["e", "e@int8", "e@binary"]
    assert {run.model: run.records() for run in again[:2]} == before
    assert len({record["spec"] for run in again for record in run.records()}) == 6


def test_a_fitted_encoder_has_variants(tmp_path, words):
    letters = TfidfVectorizer(analyzer="char")
    runs = karat.evaluate(
        karat.Variants({"e": letters}, dimensions=1, precision="int8"), words(), output=tmp_path
    )
    assert [run.model for run in runs] == ["e", "e@1d-int8"]
    # of the letters a and b, the first decides
    assert [run.results()["acc"].mean() for run in runs] == [1.0, 1.0]


DEFINED = """
models:
  short:
    extends: random
    dimensions: [4, 8]
    precision: [float32, binary]
    rescore: 7
  shorter: {extends: short, dimensions: 2, precision: float16, rescore: null}
"""


def test_a_definition_and_a_name_state_variants(tmp_path, cli):
    file = tmp_path / "models.yaml"
    file.write_text(DEFINED)
    names = [model.name for model in Catalog(file).models(["short", "shorter", "random@16d"])]
    grid = ["short@4d", "short@4d-binary-rescore", "short@8d", "short@8d-binary-rescore"]
    assert names == ["short", *grid, "shorter", "shorter@2d-float16", "random@16d"]
    assert Catalog(file).model("mine=random@16d").name == "mine"
    assert Catalog(file).models("short")[2].params["rescore"] == 7
    out = cli("plan", "quickstart", "-t", "penguins", "--define", file, "-m", "short").out
    assert all(name in out for name in grid)
    out = cli("show", "short@8d", "--define", file).out
    assert "dimensions: 8" in out and "extends" not in out


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("precision: int4", "int8"),
        ("precision: [int8, 3]", "3"),
        ("dimensions: 0", "0"),
        ("dimensions: [64, many]", "many"),
        ("rescore: true", "binary"),
        ("rescore: -1", "-1"),
        (
            "dimensions: 4, use: endpoint, params: {url: 'http://localhost:1/v1', dimensions: 8}",
            "shortens",
        ),
    ],
)
def test_a_wrong_definition_exits_with_2(tmp_path, cli, text, word):
    file = tmp_path / "models.yaml"
    file.write_text(f"models:\n  mine: {{{'' if 'use:' in text else 'extends: random, '}{text}}}\n")
    code, _, err = cli("run", "quickstart", "--define", file, "-m", "mine", "-o", tmp_path)
    assert code == 2 and word in err
    assert not list(tmp_path.glob("mine*"))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["-m", "onehot", "--precision", "int4"], "int4"),
        (["-m", "onehot", "--dimensions", "0,8"], "0"),
        (["-m", "onehot", "--dimensions", "8,x"], "x"),
        (["-m", "onehot", "--rescore", "9"], "binary"),
        (["-m", "dummy", "--dimensions", "8"], "encoder"),
        (["-m", "dummy@8d"], "encoder"),
        (["-m", "onehot@8d", "--precision", "int8"], "variant"),
    ],
)
def test_wrong_options_exit_with_2(tmp_path, cli, options, word):
    code, _, err = cli("run", "quickstart", *options, "-o", tmp_path)
    assert code == 2 and word in err


def test_the_options_of_the_command_line(tmp_path, cli):
    given = ["-m", "onehot", "-m", "dummy", "--dimensions", "2,3", "--precision", "int8,binary"]
    code, out, _ = cli(
        "run", "diabetes", *given, "--only-fold", 0, "-w", 0, "-o", tmp_path, "--format", "json"
    )
    names = {"onehot", "dummy", *(f"onehot@{d}d-{p}" for d in (2, 3) for p in ("int8", "binary"))}
    assert code == 0 and {row["model"] for row in json.loads(out)} == names
