from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import karat
from karat.data.gold import entity_label, read_analogies, read_entities, read_relatedness
from karat.data.load import DataSpec
from karat.errors import DataError, DefinitionError
from karat.task import Task

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


def test_analogy_asks_b_minus_a_plus_c(tmp_path):
    line = " ".join(iris("Athens", "Baghdad", "Greece", "Iraq"))
    data = read_analogies(write(tmp_path, line + "\n\n"), DataSpec("capitals"))
    assert data.fields == ["a", "b", "c"]
    assert data.questions.iloc[0].tolist() == iris("Athens", "Greece", "Baghdad")
    assert data.truth.tolist() == iris("Iraq")
    assert (data.kind, data.modality) == ("items", "entity")
    assert data.items[DBPEDIA + "Greece"] == "Greece"
    assert len(data.items) == 4


WORDS = """: capitals
Athens Greece Baghdad Iraq
Athens Greece Oslo Norway
: gram2-family
He She His Hers
"""


def test_sections_can_be_selected(tmp_path):
    path = write(tmp_path, WORDS)
    order = {"order": ["a", "b", "c", "answer"]}
    assert len(read_analogies(path, DataSpec("words", options=order))) == 3
    chosen = {**order, "sections": ["gram2-family"], "lower": True}
    data = read_analogies(path, DataSpec("words", options=chosen))
    assert [*data.questions.iloc[0], data.truth[0]] == ["he", "she", "his", "hers"]
    assert data.items.to_dict() == {word: word for word in ("he", "she", "his", "hers")}
    with pytest.raises(DataError, match='"capitals"'):
        read_analogies(path, DataSpec("words", options={"sections": ["capital"]}))
    with pytest.raises(DataError, match='"zzz"'):
        read_analogies(path, DataSpec("words", options={"sections": ["zzz"]}))
    with pytest.raises(DefinitionError, match='"sections"'):
        read_analogies(path, DataSpec("words", options={"sections": "capitals"}))
    with pytest.raises(DataError, match="entities"):
        read_analogies(write(tmp_path, ": capitals\n"), DataSpec("words"))


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffNA null nan None\n",
        "NA null nan None\r\n\r\n",
        "NA\tnull\tnan\tNone",
        "  NA  null   nan None  \n \n",
    ],
    ids=["byte order mark", "ends of Windows", "tabs", "blanks around"],
)
def test_names_that_look_like_missing_values(tmp_path, text):
    data = read_analogies(write(tmp_path, text), DataSpec("x", options={"lower": False}))
    assert data.questions.iloc[0].tolist() == ["NA", "nan", "null"]
    assert data.truth.tolist() == ["None"]
    assert list(data.items.index) == ["NA", "nan", "null", "None"]


def test_order_option(tmp_path):
    path = write(tmp_path, "Athens Greece Baghdad Iraq\n")
    spec = DataSpec("capitals", options={"order": ["a", "b", "c", "answer"]})
    data = read_analogies(path, spec)
    assert data.questions.iloc[0].tolist() == ["Athens", "Greece", "Baghdad"]
    assert data.truth.tolist() == ["Iraq"]


def test_broken_analogies(tmp_path):
    with pytest.raises(DataError, match="line 2"):
        read_analogies(write(tmp_path, "a b c d\na b c\n"), DataSpec("x"))
    with pytest.raises(DataError, match="gold.txt is empty"):
        read_analogies(write(tmp_path, "\n"), DataSpec("x"))
    with pytest.raises(DefinitionError, match='"order"'):
        read_analogies(tmp_path, DataSpec("x", options={"order": ["a", "b"]}))
    with pytest.raises(DefinitionError, match="takes one file"):
        read_analogies({"train": tmp_path, "test": tmp_path}, DataSpec("x"))
    (tmp_path / "gold.txt").write_bytes(b"\xff\xff\xff")
    with pytest.raises(DataError, match="text"):
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


@pytest.mark.parametrize(
    "text",
    ["\ufeffNA\n\tnull\n\tnan\n", "NA\r\n\tnull\r\n\tnan\r\n", "NA\n    null  \n \t nan\n\n"],
    ids=["byte order mark", "ends of Windows", "blanks and tabs"],
)
def test_any_indentation(tmp_path, text):
    data = read_relatedness(write(tmp_path, text), DataSpec("kore"))
    assert data.questions.to_numpy().tolist() == [["NA", "null"], ["NA", "nan"]]
    assert data.truth.tolist() == [2.0, 1.0]


def test_broken_relatedness(tmp_path):
    with pytest.raises(DataError, match="line 1"):
        read_relatedness(write(tmp_path, "\ta\n"), DataSpec("kore"))
    with pytest.raises(DataError, match="indented"):
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


def test_key_can_be_the_field(tmp_path):
    path = write(tmp_path, TSV, "cities.tsv")
    spec = DataSpec("cities", target="other", kind="numbers", fields=("uri",))
    assert read_entities(path, spec).truth.tolist() == [1, 2]


def test_entities_need_a_key(tmp_path):
    path = write(tmp_path, TSV, "cities.tsv")
    with pytest.raises(DefinitionError, match='the option "key"'):
        read_entities(path, DataSpec("cities", target="label"))
    with pytest.raises(DataError, match='"uri"'):
        read_entities(path, DataSpec("cities", target="label", options={"key": "urj"}))
    with pytest.raises(DataError, match="folder"):
        read_analogies(tmp_path, DataSpec("x"))


# -- edges, gaps and words ------------------------------------------------------------------

EDGES = """from,to,kind,strength,name of from,name of to
NA,b,cites,0.5,North Africa,Bee
b,null,cites,0.25,Bee,Nothing
null,NA,knows,1,Nothing,North Africa
"""


def test_edges_have_a_field_for_either_end(tmp_path):
    path = write(tmp_path, EDGES, "edges.csv")
    key = {"key": ["from", "to"]}
    data = read_entities(path, DataSpec("edges", target="kind", kind="classes", options=key))
    assert data.fields == ["from", "to"]
    assert data.questions.to_numpy().tolist() == [["NA", "b"], ["b", "null"], ["null", "NA"]]
    assert data.truth.tolist() == ["cites", "cites", "knows"]
    assert list(data.items.index) == ["NA", "b", "null"]
    data = read_entities(path, DataSpec("edges", target="strength", kind="numbers", options=key))
    assert data.truth.tolist() == [0.5, 0.25, 1.0]


def test_edges_with_a_head(tmp_path):
    """An edge is answered by a head on the composed vectors of its ends."""
    rng = np.random.default_rng(0)
    side = {f"e{i}": rng.normal(size=4) + (6 if i % 2 else -6) for i in range(40)}
    ends = [(f"e{i}", f"e{j}") for i in range(40) for j in (i // 2, (i * 7 + 3) % 40) if i != j]
    rows = [f"{a},{b},{'same' if (int(a[1:]) + int(b[1:])) % 2 == 0 else 'other'}" for a, b in ends]
    path = write(tmp_path, "a,b,side\n" + "\n".join(rows) + "\n", "edges.csv")
    spec = DataSpec("edges", target="side", kind="classes", options={"key": ["a", "b"]})
    task = Task(
        "edges",
        read_entities(path, spec),
        probe={"use": "trained", "head": "logistic", "compose": "interaction"},
        split={"use": "kfold", "folds": 4},
        metrics=["acc"],
    )
    (run,) = karat.evaluate({"known": side}, task, output=tmp_path / "results")
    assert run.results()["acc"].min() > 0.9


def test_labels_from_another_column(tmp_path):
    path = write(tmp_path, EDGES, "edges.csv")
    options = {"key": ["from", "to"], "label": ["name of from", "name of to"]}
    data = read_entities(path, DataSpec("edges", target="kind", kind="classes", options=options))
    assert data.items.to_dict() == {"NA": "North Africa", "b": "Bee", "null": "Nothing"}
    options = {"key": "from", "label": "name of from"}
    data = read_entities(path, DataSpec("edges", target="kind", kind="classes", options=options))
    assert data.items["NA"] == "North Africa"
    with pytest.raises(DefinitionError, match='"label"'):
        options = {"key": ["from", "to"], "label": "name of from"}
        read_entities(path, DataSpec("edges", target="kind", options=options))
    with pytest.raises(DataError, match='"nam" is not a column'):
        read_entities(path, DataSpec("edges", target="kind", options={"key": "to", "label": "nam"}))


def test_rows_without_an_entity_are_counted(tmp_path):
    path = write(tmp_path, "uri\tto\tlabel\na\tx\tp\n\ty\tq\nc\t \tp\nd\tz\tq\n", "gap.tsv")
    spec = DataSpec("gaps", target="label", options={"key": "uri"})
    with pytest.raises(DataError, match='"uri".* 1 of 4 .*row 1.*"empty: drop"') as caught:
        read_entities(path, spec)
    assert caught.value.value == "uri"
    data = read_entities(path, replace(spec, options={"key": "uri", "empty": "drop"}))
    assert data.truth.tolist() == ["p", "p", "q"]
    assert "1 of 4" in data.about["note"]
    edges = replace(spec, options={"key": ["uri", "to"], "empty": "drop"})
    data = read_entities(path, edges)
    assert data.questions.to_numpy().tolist() == [["a", "x"], ["d", "z"]]
    assert "uri or to" in data.about["note"] and "2 of 4" in data.about["note"]
    with pytest.raises(DefinitionError, match='"empty"'):
        read_entities(path, replace(spec, options={"key": "uri", "empty": "skip"}))
    nothing = write(tmp_path, "uri\tlabel\n \tp\n \tq\n", "none.tsv")
    with pytest.raises(DataError, match="missing"):
        read_entities(nothing, replace(spec, options={"key": "uri", "empty": "drop"}))


def test_ends_of_windows_in_a_table(tmp_path):
    path = tmp_path / "cities.tsv"
    path.write_bytes(TSV.replace("\n", "\r\n").encode())
    spec = DataSpec("cities", target="label", kind="classes", options={"key": "uri"})
    assert read_entities(path, spec).truth.tolist() == ["NA", "high"]
