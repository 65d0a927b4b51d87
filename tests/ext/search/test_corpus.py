"""Corpora: BEIR's files, folders of text files, frames, passages, and what is left out."""

from __future__ import annotations

import gzip
import json
import warnings

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.dataset import Dataset
from karat.data.load_dataset import DataSpec, load_dataset
from karat.errors import DataError, DefinitionError
from karat.ext.search.corpus import corpus_layout, read_corpus

DOCUMENTS = {"a": "how to bake bread", "b": "how to plant trees", "c": "flat tires"}
QUERIES = {"1": "bread", "2": "trees and bread"}
JUDGED = [("1", "a", 1), ("2", "b", 2), ("2", "a", 1), ("2", "c", 0)]


def judgments(rows=JUDGED):
    return pd.DataFrame(rows, columns=["query", "document", "relevance"])


def beir(folder, rows=JUDGED, documents=DOCUMENTS, packed=False):
    (folder / "qrels").mkdir(parents=True)
    lines = [json.dumps({"_id": key, "title": "", "text": t}) for key, t in documents.items()]
    text = "\n".join(lines).encode()
    name = "corpus.jsonl.gz" if packed else "corpus.jsonl"
    (folder / name).write_bytes(gzip.compress(text) if packed else text)
    asked = [json.dumps({"_id": key, "text": text}) for key, text in QUERIES.items()]
    (folder / "queries.jsonl").write_text("\n".join(asked))
    lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in rows)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines))
    return folder


def load(folder, **options):
    definition = {"path": str(folder), "reader": "corpus", "options": options}
    return load_dataset("c", definition)


def noted(make):
    """Return the dataset and the text of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = make()
    return data, " ".join(str(each.message) for each in caught)


@pytest.mark.parametrize("packed", [False, True])
def test_the_files_of_beir(tmp_path, packed):
    data = load(beir(tmp_path / "x", packed=packed))
    assert data.items.to_dict() == {
        "query 1": "bread",
        "query 2": "trees and bread",
        **DOCUMENTS,
    }
    assert data.questions["query"].tolist() == ["query 1", "query 2", "query 2", "query 2"]
    assert data.target.tolist() == ["a", "b", "a", "c"]
    assert data.gain.tolist() == [1, 2, 1, 0]
    assert data.roles == ("query",)
    assert data.about["found"].startswith("3 documents, 2 queries")


def test_frames_and_files_give_the_same_dataset(tmp_path):
    frames = Dataset.from_corpus(DOCUMENTS, QUERIES, judgments(), name="c")
    assert frames.fingerprint == load(beir(tmp_path / "x")).fingerprint


def test_binary_judgments_have_no_gain():
    pairs = pd.DataFrame({"query": ["1"], "document": ["a"]})
    assert Dataset.from_corpus(DOCUMENTS, QUERIES, pairs).gain is None


def test_titles_come_before_texts():
    documents = pd.DataFrame({"id": ["a"], "title": ["Bread"], "text": ["Mix flour."]})
    data = Dataset.from_corpus(documents, QUERIES, judgments([("1", "a", 1)]))
    assert data.items["a"] == "Bread Mix flour."


def test_the_four_columns_of_trec(tmp_path):
    folder = beir(tmp_path / "x")
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels.txt").write_text("1 0 a 1\n2 0 b 3\n")
    assert load(folder).gain.tolist() == [1, 3]


def test_ids_between_tabs_may_contain_blanks(tmp_path):
    documents = {"doc 1": "how to bake bread", "1": "how to plant trees"}
    folder = beir(tmp_path / "x", [("1", "doc 1", 1), ("2", "1", 1)], documents)
    assert load(folder).target.tolist() == ["doc 1", "1"]
    path = folder / "qrels" / "test.tsv"
    path.write_text("1\tdoc 1\t1\n2\t1\t1\n")  # without a header
    assert load(folder).target.tolist() == ["doc 1", "1"]
    path.write_text("1\tQ0\tdoc 1\t1\n")
    assert load(folder).target.tolist() == ["doc 1"]
    path.write_text("query-id corpus-id score\n1 doc 1 1\n")
    with pytest.raises(DataError, match="line 2: 4 columns.*tabs"):
        load(folder)


@pytest.mark.parametrize("grade", ["nan", "inf", "1_0", "true"])
def test_judgments_are_finite_numbers(tmp_path, grade):
    with pytest.raises(DataError, match=f'line 3: "{grade}"'):
        load(beir(tmp_path / "x", [("1", "a", 1), ("2", "b", grade)]))
    with pytest.raises(DataError, match="judgment 1"):
        Dataset.from_corpus(DOCUMENTS, QUERIES, judgments([("1", "a", float("inf"))]))


def test_other_judgments_by_the_option_split(tmp_path):
    folder = beir(tmp_path / "x")
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n1\tc\t1\n")
    assert load(folder).target.tolist() == ["a", "b", "a", "c"]
    assert load(folder, split="dev").target.tolist() == ["c"]
    with pytest.raises(DataError, match="dev, test"):
        load(folder, split="train")


def test_a_folder_of_text_files(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "bread.md").write_text("Bake bread.")
    (tmp_path / "sub" / "trees.txt").write_text("Plant trees.")
    (tmp_path / ".hidden.md").write_text("no")
    rows = "Question,File\nhow to bake?,bread.md\nwhat grows?,sub/trees.txt\nflour,bread\n"
    (tmp_path / "questions.csv").write_text(rows)
    assert corpus_layout(tmp_path) == "files"
    data = load(tmp_path)
    assert data.target.tolist() == ["bread.md", "sub/trees.txt", "bread.md"]
    assert list(data.items.index[3:]) == ["bread.md", "sub/trees.txt"]


def test_what_is_left_out_is_counted():
    documents = {**DOCUMENTS, "d": " ", "e": "x " * 500}
    queries = {**QUERIES, "3": "", "4": "no judgment"}
    rows = [*JUDGED, ("1", "zzz", 1), ("9", "a", 1), ("1", "a", 2)]
    data, text = noted(lambda: Dataset.from_corpus(documents, queries, judgments(rows)))
    for note in (
        '1 empty document left out (first: "d")',
        '1 empty query left out (first: "3")',
        '1 judged document not in the corpus (first: "zzz")',
        '1 judged query not among the queries (first: "9")',
        "1 judgment repeated",
        '1 query without a relevant document, not scored (first: "4")',
        'set passages (first: "e")',
    ):
        assert note in text
    assert data.gain.tolist() == [2, 1, 0, 2]
    assert "query 4" not in data.items.index


@pytest.mark.parametrize(
    ("documents", "queries", "rows", "match"),
    [
        ({}, QUERIES, JUDGED, "no documents"),
        ({"a": ""}, QUERIES, JUDGED, "no documents"),
        (DOCUMENTS, {"1": " "}, JUDGED, "no queries"),
        (DOCUMENTS, QUERIES, [("1", "aa", 1)], "no query has a relevant document"),
        (DOCUMENTS, QUERIES, [("1", "a", 0)], "no query has a relevant document"),
        (DOCUMENTS, QUERIES, [("1", "a", "high")], "relevance must be a number"),
    ],
)
def test_a_corpus_without_content_is_refused(documents, queries, rows, match):
    with warnings.catch_warnings(), pytest.raises(DataError, match=match):
        warnings.simplefilter("ignore")
        Dataset.from_corpus(documents, queries, judgments(rows))


def test_duplicate_ids_are_refused():
    twice = pd.DataFrame({"id": ["a", "a"], "text": ["x", "y"]})
    with pytest.raises(DataError, match='duplicate id "a"'):
        Dataset.from_corpus(twice, QUERIES, judgments())


def test_a_folder_that_is_no_corpus(tmp_path):
    (tmp_path / "a.md").write_text("text")
    assert corpus_layout(tmp_path) == "" == corpus_layout(tmp_path / "none")
    with pytest.raises(DataError, match="corpus.jsonl"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("table", "match"),
    [("a,b\n1,2\n", "question or query"), ("question,file\n,\n", "no question with a file")],
)
def test_tables_without_questions_are_refused(tmp_path, table, match):
    (tmp_path / "a.md").write_text("text")
    (tmp_path / "q.csv").write_text(table)
    with pytest.raises(DataError, match=match):
        load(tmp_path)


def test_judgments_with_a_wrong_number_of_columns(tmp_path):
    folder = beir(tmp_path / "x")
    (folder / "qrels" / "test.tsv").write_text("1\ta\n")
    with pytest.raises(DataError, match="line 1: 2 columns"):
        load(folder)


# -- passages -------------------------------------------------------------------------------


def test_passages_cover_the_text_and_overlap():
    documents = {"a": "one two  three\nfour five", "b": "six"}
    pairs = judgments([("1", "a", 1)])
    data = Dataset.from_corpus(documents, QUERIES, pairs, passages=3, overlap=1)
    assert data.items.iloc[1:].to_dict() == {
        "a": "one two  three",
        "a, passage 2": "three\nfour five",
        "b": "six",
    }
    assert data.passage_of.tolist() == ["query 1", "a", "a", "b"]
    assert data.documents.tolist() == [0, 1, 1, 3]


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (2, 2), (2, -1)])
def test_sizes_of_passages_are_checked(size, overlap):
    with pytest.raises(DefinitionError, match="passages"):
        Dataset.from_corpus(DOCUMENTS, QUERIES, judgments(), passages=size, overlap=overlap)


class Words:
    """The share of each of some words in a text."""

    known = ("bread", "trees", "tires")

    def encode(self, texts):
        return np.array(
            [[text.split().count(word) + 0.01 for word in self.known] for text in texts]
        )


def test_a_document_has_the_score_of_its_best_passage(tmp_path):
    """The mean of a long document is far from the query, its best passage is near."""
    documents = {"long": "trees trees trees trees bread", "short": "bread trees trees"}
    pairs = pd.DataFrame({"query": ["1"], "document": ["long"]})
    found = {}
    for size in (None, 1):
        data = Dataset.from_corpus(documents, {"1": "bread"}, pairs, name="c", passages=size)
        task = karat.Task("c", data, {"use": "nearest", "queries": "apart"}, "all", ["mrr"])
        output = tmp_path / str(size)
        (run,) = karat.evaluate({"words": Words()}, task, output=output)
        found[size] = run.results()["mrr"].item()
        assert run.records()[0]["questions"] == 1
    # whole: "short" is nearer; with passages "bread" of both tie, which counts against the model
    assert found == {None: 0.5, 1: 0.5}
    longer = {**documents, "short": "tires trees trees"}
    data = Dataset.from_corpus(longer, {"1": "bread"}, pairs, name="c", passages=1)
    task = karat.Task("c", data, {"use": "nearest", "queries": "apart"}, "all", ["mrr"])
    (run,) = karat.evaluate({"words": Words()}, task, output=tmp_path / "last")
    assert run.results()["mrr"].item() == 1.0


def test_a_question_without_a_file_is_counted(tmp_path):
    (tmp_path / "bread.md").write_text("flour and water")
    (tmp_path / "questions.csv").write_text("question,file\nbread,bread.md\nwhy,\n,bread.md\n")
    with pytest.warns(UserWarning, match="1 query without a relevant document"):
        data = read_corpus(tmp_path, DataSpec("c"))
    assert data.items.loc["query 1"] == "bread" and len(data) == 1


def test_a_long_document_is_read_whole(tmp_path):
    """Two megabytes: kept as it is, counted as long, and found by its last word."""
    (tmp_path / "long.md").write_text("word " * 420_000 + "end")
    (tmp_path / "short.md").write_text("word")
    (tmp_path / "questions.csv").write_text("question,file\nend,long.md\n")
    with pytest.warns(UserWarning, match="1 document with more than 400 words"):
        data = read_corpus(tmp_path, DataSpec("c"))
    assert len(data.items.loc["long.md"]) > 2_000_000
    parts = read_corpus(tmp_path, DataSpec("c", options={"passages": 10_000}))
    assert len(parts.items) == 1 + 43 + 1 and parts.items.iloc[-2].endswith("end")


def test_the_leaderboard_of_a_corpus_has_all_metrics(tmp_path, cli):
    """A plan states how many queries are needed, before a run and from its differences."""
    folder = beir(tmp_path / "c", documents={**DOCUMENTS, "x": "bread bread", "y": "trees"})
    empty = cli("plan", str(folder), "-m", "tfidf", "--detect", "0.1", "--runs", str(tmp_path))
    # (2.8016 * 0.3 / 0.1) ** 2 + 1.92 = 72.6
    assert "about 73 are needed" in empty.out and "0.3" in empty.out
    runs = karat.evaluate(
        {"words": Words(), "other": Lengths()}, str(folder), output=tmp_path / "r"
    )
    board = karat.leaderboard(runs)
    for run in runs:
        row = run.results().iloc[0]
        for name in ("mrr@10", "recall@1", "recall@10", "recall@100", "map"):
            assert board.loc[run.model, name] == row[name]
        assert board.loc[run.model, "c"] == row["ndcg@10"]
    assert list(board.attrs["further"]) == ["mrr@10", "recall@1", "recall@10", "recall@100", "map"]
    shown = cli("leaderboard", str(tmp_path / "r"))
    assert all(name in shown.out for name in board.attrs["further"])


class Lengths:
    def encode(self, texts):
        return np.array([[len(text), 1.0] for text in texts])


def test_an_empty_folder_is_reported_as_such(tmp_path, cli):
    result = cli("run", f"{tmp_path}/", "-m", "tfidf")
    assert result.code == 2 and "is not a corpus" in result.err
