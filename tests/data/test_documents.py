"""Readers of pairs of documents, on small files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karat.data.documents import read_document_texts, read_documents
from karat.data.load import DataSpec, load_dataset
from karat.data.sources import sha256_of
from karat.errors import DataError, DefinitionError, Unavailable

DBPEDIA = "http://dbpedia.org/resource/"


def document(*pairs: tuple[str, Any]) -> dict[str, Any]:
    return {"text": "…", "annotations": [{"entity": e, "weight": w} for e, w in pairs]}


THREE = [
    document(("NA", 0.2), (f"{DBPEDIA}New_York", 0.5), ("NA", 0.9), ("NA", 0.4)),
    document(("null", 1)),
    document((f"{DBPEDIA}New_York", 0.1), ("null", 0.3)),
]
PAIRS = "doc1,doc2,average\n1,2,1.5\n1,3,4\n2,3,2.5\n"


def write(folder: Path, documents: Any = THREE, pairs: str = PAIRS) -> Path:
    text = documents if isinstance(documents, str) else json.dumps(documents)
    (folder / "documents.json").write_bytes(text.encode())
    (folder / "pairs.csv").write_bytes(pairs.encode())
    return folder / "documents.json"


SPEC = DataSpec("news", options={"pairs": "pairs.csv"})


def test_documents_are_bags_with_the_highest_weight(tmp_path):
    path = write(tmp_path)
    data = read_documents(path, SPEC)
    first = {"NA": 0.9, f"{DBPEDIA}New_York": 0.5}
    third = {f"{DBPEDIA}New_York": 0.1, "null": 0.3}
    assert data.questions["doc1"].tolist() == [first, first, {"null": 1.0}]
    assert data.questions["doc2"].tolist() == [{"null": 1.0}, third, third]
    assert data.truth.tolist() == [1.5, 4.0, 2.5]
    assert (data.kind, data.modality, data.fields) == ("numbers", "entity", ["doc1", "doc2"])
    labels = {"NA": "NA", f"{DBPEDIA}New_York": "New York", "null": "null"}
    assert data.items.to_dict() == labels
    sums = f"documents {sha256_of(path)}, pairs {sha256_of(tmp_path / 'pairs.csv')}"
    assert data.about["sha256"] == sums


def test_byte_order_marks_and_ends_of_windows(tmp_path):
    plain = read_documents(write(tmp_path), SPEC)
    text = "\ufeff" + json.dumps(THREE, indent=2).replace("\n", "\r\n")
    pairs = "\ufeff" + PAIRS.replace("\n", "\r\n")
    assert read_documents(write(tmp_path, text, pairs), SPEC).fingerprint == plain.fingerprint


def test_other_columns(tmp_path):
    path = write(tmp_path, pairs="left;right;score\n3;1;0\n")
    spec = DataSpec("news", fields=("left", "right"), target="score", options=SPEC.options)
    with pytest.raises(DataError, match='"left" is not a column'):
        read_documents(path, spec)
    path = write(tmp_path, pairs="left,right,score\n3,1,0\n1,2,1\n")
    assert read_documents(path, spec).truth.tolist() == [0.0, 1.0]
    with pytest.raises(DataError, match='"doc1" is not a column'):
        read_documents(path, SPEC)


@pytest.mark.parametrize(
    ("documents", "word"),
    [
        ('[{"annotations": [}]', "line 1"),
        ('[\n\n{"annotations" []}]', "line 3"),
        ("{}", "documents"),
        ("[]", "documents"),
        ([{"text": "x"}], 'document 1.*"annotations"'),
        ([document(("a", 1)), "text"], 'document 2.*"annotations"'),
        ([{"annotations": [{"entity": "a"}]}], 'document 1.*"weight"'),
        ([{"annotations": [{"entity": "a", "weigth": 1}]}], '"weigth"'),
        ([{"annotations": ["a"]}], 'annotation 1.*"entity"'),
        ([document(("a", 1), (" ", 1))], "annotation 2"),
        ([document((None, 1))], "entity"),
        ([document(("a", 0))], "weight"),
        ([document(("a", "1"))], "weight"),
        ([document(("a", True))], "weight"),
        ('[{"annotations": [{"entity": "a", "weight": NaN}]}]', "above"),
    ],
)
def test_broken_documents(tmp_path, documents, word):
    with pytest.raises(DataError, match=word):
        read_documents(write(tmp_path, documents), SPEC)


@pytest.mark.parametrize(
    ("pairs", "word"),
    [
        ("doc1,doc2,average\n1,4,1\n", 'row 0.*"doc2"'),
        ("doc1,doc2,average\n1,2,1\n0,2,1\n", 'row 1.*"doc1"'),
        ("doc1,doc2,average\n1.5,2,1\n", 'row 0.*"doc1"'),
        ("doc1,doc2,average\nx,2,1\n", 'row 0.*"doc1"'),
        ("doc1,doc2,average\n,2,1\n1,2,1\n", 'row 0.*"doc1"'),
        ("doc1,doc2,average\n1,2,much\n", '"much"'),
        ("doc1,doc2,average\n1,2,\n1,3,1\n", "missing"),
        ("doc1,doc2\n1,2\n", '"average"'),
        ("doc1,doc2,average\n1,2,3,4\n", "header"),
        ("", "is empty"),
    ],
)
def test_broken_pairs(tmp_path, pairs, word):
    with pytest.raises(DataError, match=word):
        read_documents(write(tmp_path, pairs=pairs), SPEC)


def test_document_without_entities_is_refused(tmp_path):
    documents = [*THREE, document()]
    assert len(read_documents(write(tmp_path, documents), SPEC)) == 3  # nobody asks
    path = write(tmp_path, documents, PAIRS + "4,1,2\n")
    with pytest.raises(DataError, match="row 3"):
        read_documents(path, SPEC)


def test_required_options(tmp_path):
    path = write(tmp_path)
    with pytest.raises(DefinitionError, match='the option "pairs"'):
        read_documents(path, DataSpec("news"))
    with pytest.raises(DataError, match=r'"pairs\.csv"'):
        read_documents(path, DataSpec("news", options={"pairs": "pair.csv"}))
    with pytest.raises(DefinitionError, match='"pairs"'):
        read_documents(path, DataSpec("news", options={"pair": "pairs.csv"}))
    with pytest.raises(DefinitionError, match="fields"):
        read_documents(path, DataSpec("news", fields=("doc1",), options=SPEC.options))
    (tmp_path / "documents.json").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(DataError, match="text"):
        read_documents(path, SPEC)


def test_pairs_can_have_sources(tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    definition = {
        "sources": [{"folder": "documents.json"}],
        "reader": "documents",
        "options": {"pairs": [{"folder": "nowhere.csv"}, {"folder": "pairs.csv"}]},
    }
    data = load_dataset("news", definition)
    assert len(data) == 3
    assert data.about["source"] == "folder documents.json; folder pairs.csv"
    lost = {**definition, "options": {"pairs": [{"folder": "nowhere.csv"}]}}
    with pytest.raises(Unavailable, match="pairs"):
        load_dataset("news", lost)


# -- documents as texts ---------------------------------------------------------------------


def test_one_text_per_line(tmp_path):
    path = write(tmp_path, "\ufeffone text\r\n\r\nNA\nthe third: \u00a33\n")
    data = read_document_texts(path, SPEC)
    assert data.items.tolist() == ["one text", "NA", "the third: £3"]
    asked = [[data.items[i] for i in row] for row in data.questions.to_numpy()]
    assert asked == [["one text", "NA"], ["one text", "the third: £3"], ["NA", "the third: £3"]]
    assert data.truth.tolist() == [1.5, 4.0, 2.5]
    assert (data.kind, data.modality) == ("numbers", "text")


def test_texts_of_another_encoding(tmp_path):
    path = write(tmp_path, "a\nb\nc\n")
    path.write_bytes("a\nb\n£3\n".encode("latin-1"))
    with pytest.raises(DataError, match='"encoding"'):
        read_document_texts(path, SPEC)
    options = {**SPEC.options, "encoding": "latin-1"}
    data = read_document_texts(path, DataSpec("news", options=options))
    assert data.items.tolist() == ["a", "b", "£3"]
    with pytest.raises(DefinitionError, match='"latin-x"'):
        options = {**SPEC.options, "encoding": "latin-x"}
        read_document_texts(path, DataSpec("news", options=options))


def test_text_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match='row 1.*"doc2"'):
        read_document_texts(write(tmp_path, "a\nb\n"), SPEC)
