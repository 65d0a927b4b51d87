import math
import time

import pytest
import yaml

from karat.definitions import strict_yaml
from karat.definitions.places import SourceFile
from karat.definitions.strict_yaml import read_yaml


@pytest.fixture(params=["CSafeLoader", "SafeLoader"], autouse=True)
def both_parsers(request, monkeypatch):
    monkeypatch.setattr(strict_yaml, "_LOADER", getattr(yaml, request.param))


def read(text):
    content = text if isinstance(text, bytes) else text.encode()
    return read_yaml(content, SourceFile("my.yaml"))


def value(text):
    node, mistakes = read(f"key: {text}\n")
    assert mistakes == []
    return node.plain()["key"]


def messages(text):
    return [str(mistake) for mistake in read(text)[1]]


@pytest.mark.parametrize("word", ["no", "No", "yes", "on", "off", "OFF", "y", "n"])
def test_yes_and_no_are_text(word):
    assert value(word) == word


@pytest.mark.parametrize(
    "word", ["1:30", "1:30:00", "010", "0o10", "0x1f", "0b1", "1_000", "2024-01-31", "1.2.3", "-"]
)
def test_what_only_looks_like_a_number_is_text(word):
    assert value(f"[{word}]" if word != "-" else '["-"]') == [word]


def test_a_key_named_no_is_text():
    assert read("no: 1")[0].plain() == {"no": 1}


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("1e5", 1e5),
        ("1e-3", 0.001),
        ("1E+3", 1000.0),
        ("-1.5e2", -150.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("12", 12),
        ("-3", -3),
        ("+3", 3),
        ("0", 0),
        (".inf", math.inf),
        ("-.inf", -math.inf),
    ],
)
def test_numbers(word, number):
    assert value(word) == number
    assert type(value(word)) is type(number)


def test_not_a_number():
    assert math.isnan(value(".nan"))


def test_a_number_too_long_to_be_one_stays_text():
    assert value("9" * 5000) == "9" * 5000


@pytest.mark.parametrize(
    ("word", "meaning"),
    [("true", True), ("True", True), ("false", False), ("~", None), ("null", None), ("", None)],
)
def test_words_with_a_meaning(word, meaning):
    assert value(word) is meaning


@pytest.mark.parametrize("word", ["'12'", '"true"', "!!str 12", "! 12", "'~'"])
def test_quoted_is_text(word):
    assert isinstance(value(word), str)


def test_the_text_as_written_is_kept():
    assert read("version: 1.10")[0].value["version"].text == "1.10"


def test_lines_of_keys_and_values():
    node, _ = read("# comment\na: 1\nb:\n  c:\n    - x\n    - y\n")
    b = node.value["b"]
    assert (node.value["a"].key_line, node.value["a"].line) == (2, 2)
    assert (b.key_line, b.line) == (3, 4)
    assert (b.value["c"].key_line, b.value["c"].line) == (4, 5)
    assert [item.line for item in b.value["c"].value] == [5, 6]
    assert b.value["c"].value[1].place == "my.yaml:6"


def test_all_duplicate_keys_with_both_lines():
    assert messages("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\na: 2\n") == [
        "my.yaml:5: b.c: stands twice, first in line 3.",
        "my.yaml:6: a: stands twice, first in line 1.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb:\n\tc: 1\n",
        "a: 1\nb: 1\n\tc: 1\n",
        "a:\n  b: 1\n\tc: 2\n",
        "a:\n  - x\n\t- y\n",
        "a:\n  b:\n  \tc: 1\n",
    ],
)
def test_tabs(text):
    assert messages(text) == ["my.yaml:3: a tab; indent with spaces."]


@pytest.mark.parametrize(
    ("tag", "shown"),
    [
        ("!!python/object/apply:os.system ['x']", "!!python/object/apply:os.system"),
        ("!!python/name:os.system", "!!python/name:os.system"),
        ("!function utils.f", "!function"),
        ("!!set {a}", "!!set"),
        ("!!timestamp 2024-01-31", "!!timestamp"),
    ],
)
def test_tags_are_refused(tag, shown):
    assert messages(f"a: 1\nb: {tag}\n") == [
        f"my.yaml:2: the tag {shown} is not allowed; write the value without a tag."
    ]


def test_anchors_and_aliases():
    node, mistakes = read("a: &x {p: [1, 2]}\nb: *x\nc: [*x]\n")
    assert mistakes == []
    assert node.plain() == {"a": {"p": [1, 2]}, "b": {"p": [1, 2]}, "c": [{"p": [1, 2]}]}
    assert (node.value["b"].key_line, node.value["b"].line) == (2, 1)


def test_a_billion_laughs_are_refused_quickly():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for i in range(1, 30):
        lines.append(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]")
    start = time.process_time()
    assert messages("\n".join(lines)) == ["my.yaml:4: the aliases repeat more than 10,000 values."]
    assert time.process_time() - start < 1


@pytest.mark.parametrize("text", ["a: &x [*x]\n", "a: *x\n"])
def test_an_alias_needs_a_finished_anchor(text):
    assert messages(text) == ["my.yaml:1: the alias *x has no finished anchor before it."]


@pytest.mark.parametrize("start", ["[", "{", "- ", "? ", "{a: ", "[{"])
def test_deep_nesting_is_refused(start):
    assert messages(start * 20_000)[0].startswith("my.yaml:1: nested more than 50 levels deep")


def test_one_document_only():
    assert messages("---\na: 1\n---\nb: 2\n") == [
        "my.yaml:3: a second document; one file holds one, without a ---."
    ]


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_fine(text):
    assert read(text) == (None, [])


def test_a_byte_order_mark_is_skipped():
    assert read(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")[0].plain() == {"a": 1, "b": 2}


def test_not_utf8():
    assert messages(b"a: 1\nb: caf\xe9\n") == [
        "my.yaml:2: not UTF-8 text (byte 0xe9); save it as UTF-8."
    ]


def test_control_characters():
    assert messages("a: é\nb: \x01\n") == [
        "my.yaml:2: the character U+0001 is not allowed; remove it."
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: x: y\n", 2),
        ("a: 1\nb: 'never closed\nc: 1\n", 2),
        ("a: 1\nb: [1, 2\nc: 3\n", 3),
        ("a: 1\nb: @x\n", 2),
        ("a: 1\nb\nc: 1\n", 2),
    ],
)
def test_what_is_not_yaml_is_said_with_its_line(text, line):
    (message,) = messages(text)
    assert message.startswith(f"my.yaml:{line}: not valid YAML: ")


def test_duplicates_are_told_though_the_file_breaks_later():
    told = messages("a: 1\na: 2\nb: *nothing\n")
    assert told[0] == "my.yaml:2: a: stands twice, first in line 1."
    assert len(told) == 2


def test_keys_are_text_or_whole_numbers():
    assert read("{0: a, 1: b, x: c}")[0].plain() == {0: "a", 1: "b", "x": "c"}
    assert messages("a:\n  0.5: x\n") == [
        "my.yaml:2: a: the key 0.5 is not text; put it in quotes."
    ]
    assert messages("a:\n  ~: x\n") == ["my.yaml:2: a: the key ~ is not text; put it in quotes."]
    assert messages("[1]: x\n") == [
        'my.yaml:1: a key cannot be a list or a mapping; put quotes around a text with "{" or "[".'
    ]


def test_merge_keys_are_not_read():
    assert messages("a: &x {p: 1}\nb:\n  <<: *x\n") == [
        'my.yaml:3: b: "<<" is not read; use extends.'
    ]
