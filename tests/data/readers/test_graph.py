"""Readers of documents, analogies, relatedness, entities, triples and word pairs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from karat.core.dataset import Dataset
from karat.core.digest import sha256_of_file
from karat.data.load_dataset import DataSpec, load_dataset
from karat.data.readers.graph import (
    entity_label,
    read_analogies,
    read_document_texts,
    read_documents,
    read_entities,
    read_relatedness,
    read_triples,
    read_word_pairs,
)
from karat.errors import DataError, DefinitionError, Unavailable
from karat.execution.splits import split

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
    assert data.target.tolist() == [1.5, 4.0, 2.5]
    assert (data.kind, data.modality, data.fields) == ("regression", "entity", ["doc1", "doc2"])
    labels = {"NA": "NA", f"{DBPEDIA}New_York": "New York", "null": "null"}
    assert data.items.to_dict() == labels
    sums = f"documents {sha256_of_file(path)}, pairs {sha256_of_file(tmp_path / 'pairs.csv')}"
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
    assert read_documents(path, spec).target.tolist() == [0.0, 1.0]
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
        ([document(("a", 10**400))], "weight"),
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
    assert len(read_documents(write(tmp_path, documents), SPEC)) == 3  # no pair refers to it
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


def test_one_text_per_line(tmp_path):
    path = write(tmp_path, "\ufeffone text\r\n\r\nNA\nthe third: \u00a33\n")
    data = read_document_texts(path, SPEC)
    assert data.items.tolist() == ["one text", "NA", "the third: £3"]
    asked = [[data.items[i] for i in row] for row in data.questions.to_numpy()]
    assert asked == [["one text", "NA"], ["one text", "the third: £3"], ["NA", "the third: £3"]]
    assert data.target.tolist() == [1.5, 4.0, 2.5]
    assert (data.kind, data.modality) == ("regression", "text")


def test_texts_of_another_encoding_and_missing_texts(tmp_path):
    path = write(tmp_path, "a\nb\n")
    with pytest.raises(DataError, match='row 1.*"doc2"'):
        read_document_texts(path, SPEC)
    path.write_bytes("a\nb\n£3\n".encode("latin-1"))
    with pytest.raises(DataError, match='"encoding: cp1252"'):
        read_document_texts(path, SPEC)
    spec = replace(SPEC, options={**SPEC.options, "encoding": "latin-1"})
    assert read_document_texts(path, spec).items.tolist() == ["a", "b", "£3"]
    with pytest.raises(DefinitionError, match='"latin-x"'):
        read_document_texts(path, replace(SPEC, options={**SPEC.options, "encoding": "latin-x"}))


def iris(*names: str) -> list[str]:
    return [DBPEDIA + name for name in names]


def write_gold(folder: Path, text: str, name: str = "gold.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("iri", "words"),
    [
        (DBPEDIA + "New_York_City", "New York City"),
        (DBPEDIA + "AC/DC", "AC/DC"),
        (DBPEDIA + "Z%C3%BCrich", "Zürich"),
        (DBPEDIA + "Zürich", "Zürich"),
        (f"<{DBPEDIA}Deus_Ex>", "Deus Ex"),
        ("http://www.wikidata.org/entity/Q72", "Q72"),
        ("http://x.example/onto#Big_City", "Big City"),
        ("http://x.example/Rome/", "Rome"),
        ("New_York", "New York"),
        ("AC/DC", "AC/DC"),
        ("_", "_"),
    ],
)
def test_labels(iri, words):
    assert entity_label(iri) == words


def test_analogy_asks_b_minus_a_plus_c(tmp_path):
    line = " ".join(iris("Athens", "Baghdad", "Greece", "Iraq"))
    data = read_analogies(write_gold(tmp_path, line + "\n\n"), DataSpec("capitals"))
    assert data.fields == ["a", "b", "c"]
    assert data.questions.iloc[0].tolist() == iris("Athens", "Greece", "Baghdad")
    assert data.target.tolist() == iris("Iraq")
    assert (data.kind, data.modality) == ("items", "entity")
    assert data.items[DBPEDIA + "Greece"] == "Greece"
    assert len(data.items) == 4


def test_entities_between_tabs_may_contain_blanks(tmp_path):
    path = write_gold(tmp_path, "New York\tUSA\tRome\tItaly\n")
    data = read_analogies(path, DataSpec("capitals"))
    assert [*data.questions.iloc[0], data.target[0]] == ["New York", "Rome", "USA", "Italy"]
    with pytest.raises(DataError, match="line 1: .*got 3"):
        read_analogies(write_gold(tmp_path, "New York\tUSA\tRome\n"), DataSpec("capitals"))


WORDS = """: capitals
Athens Greece Baghdad Iraq
Athens Greece Oslo Norway
: gram2-family
He She His Hers
"""


def test_sections_and_the_order_can_be_selected(tmp_path):
    path = write_gold(tmp_path, WORDS)
    order = {"order": ["a", "b", "c", "answer"]}
    assert len(read_analogies(path, DataSpec("words", options=order))) == 3
    chosen = {**order, "sections": ["gram2-family"], "lower": True}
    data = read_analogies(path, DataSpec("words", options=chosen))
    assert [*data.questions.iloc[0], data.target[0]] == ["he", "she", "his", "hers"]
    assert data.items.to_dict() == {word: word for word in ("he", "she", "his", "hers")}


def test_analogies_need_one_text_file(tmp_path):
    with pytest.raises(DataError, match="folder"):
        read_analogies(tmp_path, DataSpec("x"))
    with pytest.raises(DefinitionError, match="takes one file"):
        read_analogies({"train": tmp_path, "test": tmp_path}, DataSpec("x"))
    (tmp_path / "gold.txt").write_bytes(b"\xff\xff\xff")
    with pytest.raises(DataError, match="text"):
        read_analogies(tmp_path / "gold.txt", DataSpec("x"))


def test_relatedness_counts_down(tmp_path):
    apple, jobs, wozniak, google, page = iris("Apple", "Jobs", "Wozniak", "Google", "Page")
    text = f"{apple}\n\t{jobs}\n\t{wozniak}\n\t{google}\n{google}\n\t{page}\n\t{apple}\n"
    data = read_relatedness(write_gold(tmp_path, text), DataSpec("kore"))
    assert data.questions["main"].tolist() == [apple] * 3 + [google] * 2
    assert data.questions["related"].tolist() == [jobs, wozniak, google, page, apple]
    assert data.target.tolist() == [3.0, 2.0, 1.0, 2.0, 1.0]
    assert data.group.tolist() == [apple] * 3 + [google] * 2
    assert (data.kind, data.modality, len(data.items)) == ("regression", "entity", 5)


TSV = f"\ufeffuri\tother\tlabel\n{DBPEDIA}Z%C3%BCrich\t1\tNA\n{DBPEDIA}Oslo\t2\thigh\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_entities_with_labels(tmp_path, end):
    path = write_gold(tmp_path, TSV.replace("\n", end), "cities.tsv")
    spec = DataSpec("cities", target="label", kind="classification", options={"key": "uri"})
    data = read_entities(path, spec)
    assert data.fields == ["uri"]
    assert data.items.to_dict() == {DBPEDIA + "Z%C3%BCrich": "Zürich", DBPEDIA + "Oslo": "Oslo"}
    assert data.target.tolist() == ["NA", "high"]
    assert data.modality == "entity"
    by_field = DataSpec("cities", target="other", kind="regression", fields=("uri",))
    assert read_entities(path, by_field).target.tolist() == [1, 2]


EDGES = """from,to,kind,strength,name of from,name of to
NA,b,cites,0.5,North Africa,Bee
b,null,cites,0.25,Bee,Nothing
null,NA,knows,1,Nothing,North Africa
"""


def edges(folder: Path, target: str = "kind", **options: Any) -> Dataset:
    kind = "regression" if target == "strength" else "classification"
    spec = DataSpec("edges", target=target, kind=kind, options=options)
    return read_entities(write_gold(folder, EDGES, "edges.csv"), spec)


def test_edges_have_a_field_for_either_end(tmp_path):
    data = edges(tmp_path, key=["from", "to"])
    assert data.fields == ["from", "to"]
    assert data.questions.to_numpy().tolist() == [["NA", "b"], ["b", "null"], ["null", "NA"]]
    assert data.target.tolist() == ["cites", "cites", "knows"]
    assert list(data.items.index) == ["NA", "b", "null"]
    assert edges(tmp_path, "strength", key=["from", "to"]).target.tolist() == [0.5, 0.25, 1.0]


def test_labels_from_another_column(tmp_path):
    data = edges(tmp_path, key=["from", "to"], label=["name of from", "name of to"])
    assert data.items.to_dict() == {"NA": "North Africa", "b": "Bee", "null": "Nothing"}
    assert edges(tmp_path, key="from", label="name of from").items["NA"] == "North Africa"


def test_rows_without_an_entity_are_counted(tmp_path):
    path = write_gold(tmp_path, "uri\tto\tlabel\na\tx\tp\n\ty\tq\nc\t \tp\nd\tz\tq\n", "gap.tsv")
    spec = DataSpec("gaps", target="label", options={"key": "uri"})
    with pytest.raises(DataError, match='"uri".* 1 of 4 .*row 1.*"empty: drop"') as caught:
        read_entities(path, spec)
    assert caught.value.value == "uri"
    data = read_entities(path, replace(spec, options={"key": "uri", "empty": "drop"}))
    assert data.target.tolist() == ["p", "p", "q"]
    assert "1 of 4" in data.about["note"]
    edges = replace(spec, options={"key": ["uri", "to"], "empty": "drop"})
    data = read_entities(path, edges)
    assert data.questions.to_numpy().tolist() == [["a", "x"], ["d", "z"]]
    assert "uri or to" in data.about["note"] and "2 of 4" in data.about["note"]

    nothing = write_gold(tmp_path, "uri\tlabel\n \tp\n \tq\n", "none.tsv")
    with pytest.raises(DataError, match="missing"):
        read_entities(nothing, replace(spec, options={"key": "uri", "empty": "drop"}))


GRAPH = DataSpec("graph")


def write_triples(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        write_gold(folder, text, f"{name}.txt")
    return folder


def small(folder: Path) -> Path:
    return write_triples(
        folder,
        train="oslo\tcapital_of\tnorway\nNA\tin\tnull\n",
        valid="rome\tcapital_of\titaly\n",
        test="new_york\tin\tusa\n",
    )


def rows(data) -> list[tuple[str, ...]]:
    part = data.part.tolist() if data.part is not None else [""] * len(data)
    return list(zip(data.questions["head"], data.group, data.target, part, strict=True))


def test_triples_are_asked_from_both_ends(tmp_path):
    data = read_triples(small(tmp_path), GRAPH)
    assert rows(data) == [
        ("oslo", "capital_of", "norway", "train"),
        ("NA", "in", "null", "train"),
        ("rome", "capital_of", "italy", "train"),
        ("new_york", "in", "usa", "test"),
        ("norway", "capital_of⁻¹", "oslo", "train"),
        ("null", "in⁻¹", "NA", "train"),
        ("italy", "capital_of⁻¹", "rome", "train"),
        ("usa", "in⁻¹", "new_york", "test"),
    ]
    assert (data.kind, data.modality, data.fields) == ("items", "entity", ["head"])
    assert len(data.items) == 8 and data.items["new_york"] == "new york"
    (fold,) = split(data, {"use": "fixed"}, 0)
    assert fold.test.tolist() == [3, 7] and len(fold.train) == 6


def test_other_names_of_files_and_columns(tmp_path):
    write_triples(tmp_path, a="oslo\tnorway\tin\n", b="rome\titaly\tin\n", c="usa\tearth\tin\n")
    options = {
        "train": ["a.txt", "b.txt"],
        "test": "c.txt",
        "order": ["head", "tail", "relation"],
        "inverse": False,
    }
    data = read_triples(tmp_path, DataSpec("graph", options=options))
    assert rows(data) == [
        ("oslo", "in", "norway", "train"),
        ("rome", "in", "italy", "train"),
        ("usa", "in", "earth", "test"),
    ]


def test_two_files_or_one(tmp_path):
    small(tmp_path)
    both = {"train": tmp_path / "train.txt", "test": tmp_path / "test.txt"}
    assert read_triples(both, GRAPH).part.tolist() == ["train", "train", "test"] * 2
    one = read_triples(tmp_path / "train.txt", GRAPH)
    assert one.part is None and len(one) == 4
    with pytest.raises(DefinitionError, match='"test"'):
        read_triples(both, DataSpec("graph", options={"test": "test.txt"}))


def test_triple_counts_once_and_in_one_part(tmp_path):
    assert "note" not in read_triples(small(tmp_path), GRAPH).about
    write_triples(tmp_path, valid="oslo\tcapital_of\tnorway\nrome\tcapital_of\titaly\n")
    data = read_triples(tmp_path, GRAPH)
    assert len(data) == 8
    assert data.about["note"].startswith("1 ")
    with pytest.raises(DataError, match=r'"test\.txt"'):
        read_triples(tmp_path, DataSpec("graph", options={"test": "tset.txt"}))
    write_triples(tmp_path, test="new_york\tin\tusa\noslo\tcapital_of\tnorway\n")
    with pytest.raises(DataError, match="oslo capital_of norway"):
        read_triples(tmp_path, GRAPH)


def test_two_words_and_a_number(tmp_path):
    text = "# word1\tword2\tscore\nFBI\tPolice\t8.5\nchord\t\tbig smile\t\t0.02\n"
    data = read_word_pairs(write_gold(tmp_path, text), DataSpec("pairs"))
    assert data.fields == ["word1", "word2"]
    assert data.questions.to_numpy().tolist() == [["FBI", "Police"], ["chord", "big smile"]]
    assert data.target.tolist() == [8.5, 0.02]
    assert (data.kind, data.modality) == ("regression", "entity")
    assert data.items.to_dict() == {w: w for w in ("FBI", "chord", "Police", "big smile")}


def test_lower_case_merges_words(tmp_path):
    path = write_gold(tmp_path, "FBI fbi 10\nfbi Police 5\n")
    assert len(read_word_pairs(path, DataSpec("pairs")).items) == 3
    data = read_word_pairs(path, DataSpec("pairs", options={"lower": True}))
    assert data.questions.to_numpy().tolist() == [["fbi", "fbi"], ["fbi", "police"]]
    assert len(data.items) == 2


@pytest.mark.parametrize(
    ("read", "text", "word"),
    [
        (read_analogies, "a b c d\na b c\n", "line 2"),
        (read_analogies, "\n", "gold.txt is empty"),
        (read_analogies, ": capitals\n", "entities"),
        (read_relatedness, "\ta\n", "line 1"),
        (read_relatedness, "a\n\tx\nb\n", "indented"),
        (read_triples, "a\tr\tb\na\tr\n", "line 2"),
        (read_triples, "a\tr\tb\tc\n", "line 1"),
        (read_triples, "a\t\tb\n", "line 1"),
        (read_triples, "a r b\n", "line 1"),
        (read_triples, "\n", "is empty"),
        (read_word_pairs, "a b 1\na b\n", "line 2"),
        (read_word_pairs, "a b 1\na b 1_0\n", 'line 2: "1_0"'),
        (read_word_pairs, "a b inf\n", 'line 1: "inf"'),
        (read_word_pairs, "a\tb\tc\t1\n", "line 1"),
        (read_word_pairs, "a\tb\tmuch\n", 'line 1.*"much"'),
        (read_word_pairs, "# nothing\n", "comments"),
        (read_word_pairs, "", "is empty"),
        (read_word_pairs, "a b nan\na c 1\n", 'line 1: "nan"'),
    ],
)
def test_broken_files(tmp_path, read, text, word):
    with pytest.raises(DataError, match=word):
        read(write_gold(tmp_path, text), DataSpec("x"))


@pytest.mark.parametrize(
    ("read", "options", "error", "word"),
    [
        (read_analogies, {"order": ["a", "b"]}, DefinitionError, '"order"'),
        (read_analogies, {"sections": ["capital"]}, DataError, '"capitals"'),
        (read_analogies, {"sections": ["zzz"]}, DataError, '"zzz"'),
        (read_analogies, {"sections": "capitals"}, DefinitionError, '"sections"'),
        (read_entities, {}, DefinitionError, 'the option "key"'),
        (read_entities, {"key": "form"}, DataError, '"from"'),
        (read_entities, {"key": "from", "empty": "skip"}, DefinitionError, '"empty"'),
        (read_entities, {"key": ["from", "to"], "label": "kind"}, DefinitionError, '"label"'),
        (read_entities, {"key": "to", "label": "nam"}, DataError, '"nam" is not a column'),
        (read_triples, {"order": ["head", "tail"]}, DefinitionError, '"order"'),
        (read_triples, {"invers": True}, DefinitionError, '"inverse"'),
        (read_word_pairs, {"lowr": True}, DefinitionError, '"lower"'),
    ],
)
def test_invalid_options(tmp_path, read, options, error, word):
    text = {read_analogies: WORDS, read_entities: EDGES}.get(read, "a\tb\t1\n")
    with pytest.raises(error, match=word):
        read(write_gold(tmp_path, text, "x.csv"), DataSpec("x", target="kind", options=options))


#: per reader: files with the names NA, null, nan and None, and the questions with their targets
ODD = {
    read_analogies: (
        ["NA null nan None\n", "NA\tnull\tnan\tNone", "  NA  null   nan None  \n \n"],
        [["NA", "nan", "null", "None"]],
    ),
    read_relatedness: (
        ["NA\n\tnull\n\tnan\n", "NA\n    null  \n \t nan\n\n"],
        [["NA", "null", 2.0], ["NA", "nan", 1.0]],
    ),
    read_triples: (["NA\tin\tnull\n", " NA \tin\t null"], [["NA", "null"], ["null", "NA"]]),
    read_word_pairs: (
        ["NA\tnull\t1\nnan\tNone\t2\n", "NA null 1\n\n  nan   None 2"],
        [["NA", "null", 1.0], ["nan", "None", 2.0]],
    ),
}


@pytest.mark.parametrize(
    "change", [str, "\ufeff{}".format, lambda text: text.replace("\n", "\r\n")]
)
@pytest.mark.parametrize("read", ODD)
def test_names_like_missing_values_byte_order_marks_and_line_ends(tmp_path, read, change):
    for text in ODD[read][0]:
        data = read(write_gold(tmp_path, change(text)), DataSpec("x"))
        questions = data.questions.assign(target=data.target).to_numpy().tolist()
        assert questions == ODD[read][1]
