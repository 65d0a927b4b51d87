from __future__ import annotations

from pathlib import Path

import pytest

from karat.data.gold import entity_label, read_analogies, read_entities, read_relatedness
from karat.data.load import DataSpec
from karat.errors import DataError, DefinitionError

DBPEDIA = "http://dbpedia.org/resource/"


def iris(*names: str) -> list[str]:
    return [DBPEDIA + name for name in names]


def write(folder: Path, text: str, name: str = "gold.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
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


def test_an_analogy_asks_b_minus_a_plus_c(tmp_path):
    line = " ".join(iris("Athens", "Baghdad", "Greece", "Iraq"))
    data = read_analogies(write(tmp_path, line + "\n\n"), DataSpec("capitals"))
    assert data.fields == ["a", "b", "c"]
    assert data.questions.iloc[0].tolist() == iris("Athens", "Greece", "Baghdad")
    assert data.truth.tolist() == iris("Iraq")
    assert (data.kind, data.modality) == ("items", "entity")
    assert data.items[DBPEDIA + "Greece"] == "Greece"
    assert len(data.items) == 4


def test_pairs_one_after_the_other(tmp_path):
    path = write(tmp_path, "Athens Greece Baghdad Iraq\n")
    spec = DataSpec("capitals", options={"order": ["a", "b", "c", "answer"]})
    data = read_analogies(path, spec)
    assert data.questions.iloc[0].tolist() == ["Athens", "Greece", "Baghdad"]
    assert data.truth.tolist() == ["Iraq"]


def test_broken_analogies(tmp_path):
    with pytest.raises(DataError, match=r"gold.txt, line 2: 3 entities; there must be four"):
        read_analogies(write(tmp_path, "a b c d\na b c\n"), DataSpec("x"))
    with pytest.raises(DataError, match="gold.txt is empty"):
        read_analogies(write(tmp_path, "\n"), DataSpec("x"))
    with pytest.raises(DefinitionError, match='"order" must hold a, b, c, answer'):
        read_analogies(tmp_path, DataSpec("x", options={"order": ["a", "b"]}))
    with pytest.raises(DefinitionError, match="takes one file"):
        read_analogies({"train": tmp_path, "test": tmp_path}, DataSpec("x"))
    (tmp_path / "gold.txt").write_bytes(b"\xff\xff\xff")
    with pytest.raises(DataError, match="is not a UTF-8 text file"):
        read_analogies(tmp_path / "gold.txt", DataSpec("x"))


def test_relatedness_counts_down(tmp_path):
    apple, jobs, wozniak, google, page = iris("Apple", "Jobs", "Wozniak", "Google", "Page")
    text = f"{apple}\n\t{jobs}\n\t{wozniak}\n\t{google}\n{google}\n\t{page}\n\t{apple}\n"
    data = read_relatedness(write(tmp_path, text), DataSpec("kore"))
    assert data.questions["main"].tolist() == [apple] * 3 + [google] * 2
    assert data.questions["related"].tolist() == [jobs, wozniak, google, page, apple]
    assert data.truth.tolist() == [3.0, 2.0, 1.0, 2.0, 1.0]
    assert data.group.tolist() == [apple] * 3 + [google] * 2
    assert (data.kind, data.modality, len(data.items)) == ("numbers", "entity", 5)


def test_broken_relatedness(tmp_path):
    with pytest.raises(DataError, match="line 1: indented, but no main entity"):
        read_relatedness(write(tmp_path, "\ta\n"), DataSpec("kore"))
    with pytest.raises(DataError, match="nothing is indented below b"):
        read_relatedness(write(tmp_path, "a\n\tx\nb\n"), DataSpec("kore"))


TSV = f"\ufeffuri\tother\tlabel\n{DBPEDIA}Z%C3%BCrich\t1\tNA\n{DBPEDIA}Oslo\t2\thigh\n"


def test_entities_with_labels(tmp_path):
    path = write(tmp_path, TSV, "cities.tsv")
    spec = DataSpec("cities", target="label", kind="classes", options={"key": "uri"})
    data = read_entities(path, spec)
    assert data.fields == ["uri"]
    assert data.items.to_dict() == {DBPEDIA + "Z%C3%BCrich": "Zürich", DBPEDIA + "Oslo": "Oslo"}
    assert data.truth.tolist() == ["NA", "high"]
    assert data.modality == "entity"


def test_the_key_can_be_the_field(tmp_path):
    path = write(tmp_path, TSV, "cities.tsv")
    spec = DataSpec("cities", target="other", kind="numbers", fields=("uri",))
    assert read_entities(path, spec).truth.tolist() == [1, 2]


def test_entities_need_a_key(tmp_path):
    path = write(tmp_path, TSV, "cities.tsv")
    with pytest.raises(DefinitionError, match='the option "key"'):
        read_entities(path, DataSpec("cities", target="label"))
    with pytest.raises(DataError, match='"urj" is not a column. Did you mean "uri"'):
        read_entities(path, DataSpec("cities", target="label", options={"key": "urj"}))
    empty = write(tmp_path, "uri\tlabel\na\tx\n\ty\n", "gap.tsv")
    with pytest.raises(DataError, match='column "uri" is missing'):
        read_entities(empty, DataSpec("cities", target="label", options={"key": "uri"}))
