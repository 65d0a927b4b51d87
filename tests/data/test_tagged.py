from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from karat.data.load import DataSpec
from karat.data.tagged import read_tagged
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError

ROWS = [
    {"title": "One", "tag": ["http://x.example/tag/deep_learning", "http://x.example/tag/all"]},
    {"title": "Two", "tag": ["http://x.example/tag/graphs", "http://x.example/tag/deep_learning"]},
    {"title": "Three", "tag": ["http://x.example/tag/all"]},
    {"title": "Four", "tag": ["http://x.example/tag/trees"]},
]
ALL = {"without": ["http://x.example/tag/all"]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(ROWS))
    return path


def read(path: Path, **options) -> Dataset:
    return read_tagged(
        path, DataSpec(name="mine", fields=("title",), target="tag", options={**ALL, **options})
    )


def pairs(data: Dataset) -> list[tuple[str, str]]:
    asked = data.items[data.questions["query"]]
    return list(zip(asked, data.items[data.truth], strict=True))


def test_title_asks_for_its_tags(file):
    data = read(file)
    assert data.kind == "items" and data.modality == "text"
    assert pairs(data) == [
        ("One", "deep learning"),
        ("Two", "graphs"),
        ("Two", "deep learning"),
        ("Four", "trees"),
    ]


def test_tag_in_a_cell(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("title,tag\nOne,red\nTwo,blue\nOne,blue\nOne,red\nThree,\n")
    assert pairs(read(path)) == [("One", "red"), ("Two", "blue"), ("One", "blue")]


def test_lists_hold_all_own_tags_and_some_others(file):
    data = read(file, ask="lists", others=2)
    assert data.classes == ("other", "own") and data.fields == ["query", "tag"]
    assert Counter(data.group) == {"One": 3, "Two": 3, "Four": 3}
    own = data.questions[data.truth == "own"]
    assert len(own) == 4 and not data.questions.duplicated().any()


def test_drawn_tags_are_not_own_tags(file):
    data = read(file, ask="lists", others=50)
    for query in ("One", "Two", "Four"):
        tags = data.items[data.questions["tag"][data.group == query]].tolist()
        assert sorted(tags) == ["deep learning", "graphs", "trees"], "each tag once"


def test_seed_determines_the_drawn_tags(tmp_path):
    rows = [{"title": f"t{i}", "tag": [f"tag {i}"]} for i in range(40)]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    one, again, other = (read(path, ask="lists", others=5, seed=seed) for seed in (0, 0, 1))
    assert one.fingerprint == again.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"ask": "list"}, '"lists"'),
        ({"ask": "lists", "others": 0}, "others"),
        ({"ask": "lists", "seed": -1}, "seed"),
        ({"negatives": 3}, 'no option "negatives"'),
    ],
)
def test_invalid_options(file, options, word):
    with pytest.raises(DefinitionError, match=word):
        read(file, **options)


def test_invalid_rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("title,tag\nOne,http://x.example/tag/all\n")
    with pytest.raises(DataError, match='"tag"'):
        read(path)
    path.write_text("title,tag\nOne,red\n,blue\n")
    with pytest.raises(DataError, match='row 1.*"title"'):
        read(path)
    path.write_text("title,tag\nOne,red\nOne,blue\n")
    with pytest.raises(DataError, match='"One" has every tag'):
        read(path, ask="lists")
    with pytest.raises(DefinitionError, match='"fields"'):
        read_tagged(path, DataSpec(name="mine", target="tag"))
