from __future__ import annotations

from pathlib import Path

import pytest

from karat.data.load import DataSpec
from karat.data.texts import read_columns, read_folders
from karat.errors import DataError, DefinitionError

STS = (
    "news\t5.0\tNone\tNA\n"
    'news\t2.5\tHe word "hi\tNA\textra\n'
    "news\t0.0\tnull\tNone\n"
)  # fmt: skip
STS_OPTIONS = {
    "separator": "\t",
    "quoting": "none",
    "names": ["genre", "score", "s1", "s2", "licence"],
}


def test_pairs_of_sentences(tmp_path: Path):
    path = tmp_path / "sts.csv"
    path.write_text(STS)
    spec = DataSpec("sts", target="score", kind="numbers", fields=("s1", "s2"), options=STS_OPTIONS)
    data = read_columns(path, spec)
    assert data.items.tolist() == ["None", 'He word "hi', "null", "NA"]
    assert data.questions.to_dict("list") == {"s1": [0, 1, 2], "s2": [3, 3, 0]}
    assert data.truth.tolist() == [5.0, 2.5, 0.0]
    assert (data.kind, data.modality) == ("numbers", "text")


def test_default_modality_of_a_definition_means_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("text,y\n007,a\n1.50,b\n")
    data = read_columns(path, DataSpec("t", target="y", fields=("text",), modality="table"))
    assert data.modality == "text"
    assert data.items.tolist() == ["007", "1.50"]


def test_entities_have_readable_labels(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"e": "http://x.example/New_York", "y": 1.5}\n{"e": 7, "y": 2.5}\n')
    data = read_columns(path, DataSpec("t", target="y", fields=("e",), modality="entity"))
    assert data.items.to_dict() == {"http://x.example/New_York": "New York", "7": "7"}


def test_empty_text_is_missing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("text,y\nhi,a\n,b\n")
    with pytest.raises(DataError, match='"text".*row 1'):
        read_columns(path, DataSpec("t", target="y", fields=("text",)))


def test_required_options(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("text,y\nhi,a\nho,b\n")
    with pytest.raises(DefinitionError, match=r'"fields: \[NAME\]"'):
        read_columns(path, DataSpec("t", target="y"))
    with pytest.raises(DefinitionError, match='"target: NAME"'):
        read_columns(path, DataSpec("t", fields=("text",)))
    with pytest.raises(DataError, match='"text"'):
        read_columns(path, DataSpec("t", target="y", fields=("txt",)))


# -- folders --------------------------------------------------------------------------------


@pytest.fixture
def news(tmp_path: Path) -> Path:
    texts = {
        "tech/002.txt": "caf\u00e9".encode("latin-1"),
        "tech/001.txt": "\ufeffchips".encode(),
        "sport/001.txt": "match \u20ac 5".encode(),
        "sport/readme.md": b"not this",
        "sport/.hidden.txt": b"nor this",
        "top.txt": b"nor this",
    }
    for name, content in texts.items():
        path = tmp_path / "news" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "news"


def test_folder_of_a_text_is_its_class(news):
    data = read_folders(news, DataSpec("news", options={"glob": "*.txt"}))
    assert data.items.tolist() == ["match \u20ac 5", "chips", "caf\u00e9"]
    assert data.truth.tolist() == ["sport", "tech", "tech"]
    assert (data.kind, data.modality, data.fields) == ("classes", "text", ["text"])


def test_all_files_are_read_without_a_pattern(news):
    assert len(read_folders(news, DataSpec("news"))) == 4


def test_columns_can_be_named_and_the_parts_given(news):
    spec = DataSpec("news", target="topic", fields=("article",), options={"glob": "*.txt"})
    data = read_folders({"train": news, "test": news}, spec)
    assert data.fields == ["article"]
    assert data.part.tolist() == ["train"] * 3 + ["test"] * 3


def test_folders_that_cannot_be_read(news, tmp_path):
    with pytest.raises(DataError, match="folders"):
        read_folders(news / "top.txt", DataSpec("news"))
    with pytest.raises(DataError, match=r"\.html"):
        read_folders(news, DataSpec("news", options={"glob": "*.html"}))
    (news / "tech" / "003.txt").write_text(" \n")
    with pytest.raises(DataError, match="003.txt is empty"):
        read_folders(news, DataSpec("news"))


def test_folders_can_keep_the_first_line_only(tmp_path):
    for topic, text in {"sport": "\n Cup final \nlong text", "tech": "New chip\n\nmore"}.items():
        (tmp_path / topic).mkdir()
        (tmp_path / topic / "1.txt").write_text(text)
    spec = DataSpec(name="heads", options={"first_line": True}, modality="text")
    data = read_folders(tmp_path, spec)
    assert data.items.tolist() == ["Cup final", "New chip"]
    assert data.truth.tolist() == ["sport", "tech"]
