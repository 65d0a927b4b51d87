"""Strict YAML: what is read, what is refused, and what is written."""

import json
import math
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from karat.config import yaml_files
from karat.config.yaml_files import Node, SourceFile, read_supplied, read_yaml, show_definition
from karat.core.files import cache_folder

FILE = SourceFile("my.yaml")


def as_node(value):
    if isinstance(value, dict):
        value = {key: as_node(child) for key, child in value.items()}
    elif isinstance(value, list):
        value = [as_node(child) for child in value]
    return Node(value, FILE, 1, 1)


def same(a, b):
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


printable = st.text(st.characters(codec="utf-8"), max_size=100)
words = st.sampled_from(
    ["no", "1e5", "010", "true", "~", "-", "- a", "a: b", "a #b", "<<", "---", "@x", "1:30", "..."]
)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | printable | words
keys = st.text("abc", min_size=1, max_size=3) | st.integers(0, 9) | st.sampled_from(["no", "1"])
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(keys, values, min_size=1, max_size=4))
def test_output_reads_back_the_same(tree):
    node, mistakes = read_yaml(show_definition(as_node(tree), {}).encode(), FILE)
    assert mistakes == []
    assert same(node.plain(), tree)


def test_resolved_with_the_origin_of_every_line(load):
    definitions = load(
        kinds="""tasks:
  kind:
    abstract: true
    probe: trained
    split: {use: kfold, folds: 5}
    metrics: [auc, acc]
""",
        my="""tasks:
  churn:
    extends: kind
    dataset: {path: churn.csv, target: churned}
    split: {folds: 3}
    corruptions:
      noise:
        - 0.1
        - 0.4
    title: "no"
""",
    )
    assert definitions.show("tasks", "churn").splitlines() == [
        "probe: trained          # kinds.yaml:4",
        "split:                  # my.yaml:5",
        "  use: kfold            # kinds.yaml:5",
        "  folds: 3              # my.yaml:5",
        "metrics: [auc, acc]     # kinds.yaml:6",
        "dataset:                # my.yaml:4",
        "  path: churn.csv       # my.yaml:4",
        "  target: churned       # my.yaml:4",
        "corruptions:            # my.yaml:6",
        "  noise:                # my.yaml:7",
        "    - 0.1               # my.yaml:8",
        "    - 0.4               # my.yaml:9",
        "title: no               # my.yaml:10",
        "missing: ignore         # default",
        "draws: 1                # default",
        "keep_predictions: all   # default",
    ]
    assert (
        definitions.show("tasks", "kind").splitlines()[0] == "abstract: true        # kinds.yaml:3"
    )


def test_lists_of_mappings_and_long_lines(load):
    definitions = load("""datasets:
  toy:
    sources:
      - folder: toy
      - {package: p, member: x.csv}
""")
    assert definitions.show("datasets", "toy").splitlines() == [
        "sources:            # my.yaml:3",
        "  - folder: toy     # my.yaml:4",
        "  - package: p      # my.yaml:5",
        "    member: x.csv   # my.yaml:5",
        "reader: table       # default",
        "modality: table     # default",
    ]
    definitions = load(f"constraints: {{c: {{max_folds: 3, description: {'long ' * 20}}}}}")
    first, second = definitions.show("constraints", "c").splitlines()
    assert first == "max_folds: 3   # my.yaml:1"
    assert second.endswith("long   # my.yaml:1")


def read(text):
    content = text if isinstance(text, bytes) else text.encode()
    return read_yaml(content, SourceFile("my.yaml"))


def value(text):
    node, mistakes = read(f"key: {text}\n")
    assert mistakes == []
    return node.plain()["key"]


def lines(text):
    """Return the line and the message of every mistake."""
    return [(mistake.line, mistake.text) for mistake in read(text)[1]]


def refused(text, line, word):
    """The file is refused with one mistake at a line that mentions a word."""
    node, (mistake,) = read(text)
    assert node is None
    assert (mistake.file, mistake.line) == ("my.yaml", line)
    assert word in mistake.text


@pytest.mark.parametrize(
    "word",
    [
        *("no", "No", "yes", "on", "off", "OFF", "y", "n", "1:30", "1:30:00", "010", "0o10"),
        *("0x1f", "0b1", "1_000", "2024-01-31", "1.2.3", "9" * 5000),
    ],
)
def test_lookalikes_of_booleans_and_numbers_stay_text(word):
    assert value(f"[{word}]") == [word]
    assert read("no: 1")[0].plain() == {"no": 1}


@pytest.mark.parametrize(
    ("word", "meaning"),
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
        (".nan", math.nan),
        *(("true", True), ("True", True), ("false", False)),
        *(("~", None), ("null", None), ("", None)),
        *(("'12'", "12"), ('"true"', "true"), ("!!str 12", "12"), ("'~'", "~"), ('"-"', "-")),
    ],
)
def test_numbers_booleans_null_and_quoted_text(word, meaning):
    assert same(value(word), meaning)


def test_the_text_of_a_number_is_recorded():
    assert read("version: 1.10")[0].value["version"].text == "1.10"


def test_lines_of_keys_and_values():
    node, _ = read("# comment\na: 1\nb:\n  c:\n    - x\n    - y\n")
    b = node.value["b"]
    assert (node.value["a"].key_line, node.value["a"].line) == (2, 2)
    assert (b.key_line, b.line) == (3, 4)
    assert (b.value["c"].key_line, b.value["c"].line) == (4, 5)
    assert [item.line for item in b.value["c"].value] == [5, 6]
    assert b.value["c"].value[1].place == "my.yaml:6"


def test_all_duplicate_keys_are_reported():
    _, mistakes = read("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\na: 2\n")
    assert [(m.line, m.path) for m in mistakes] == [(5, ("b", "c")), (6, ("a",))]
    assert "line 3" in mistakes[0].text and "line 1" in mistakes[1].text


@pytest.mark.parametrize(
    "text",
    [
        *("a: 1\nb:\n\tc: 1\n", "a: 1\nb: 1\n\tc: 1\n", "a:\n  b: 1\n\tc: 2\n"),
        *("a:\n  - x\n\t- y\n", "a:\n  b:\n  \tc: 1\n"),
    ],
)
def test_tabs(text):
    refused(text, 3, "tab")


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
    refused(f"a: 1\nb: {tag}\n", 2, shown)


def test_anchors_and_aliases():
    node, mistakes = read("a: &x {p: [1, 2]}\nb: *x\nc: [*x]\n")
    assert mistakes == []
    assert node.plain() == {"a": {"p": [1, 2]}, "b": {"p": [1, 2]}, "c": [{"p": [1, 2]}]}
    assert (node.value["b"].key_line, node.value["b"].line) == (2, 1)


def test_aliases_that_are_refused():
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for i in range(1, 30):
        rows.append(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]")
    refused("\n".join(rows), 4, "10,000")
    for text in ("a: &x [*x]\n", "a: *x\n"):
        refused(text, 1, "alias")


def test_aliases_that_nest_too_deeply():
    rows = ["a0: &a0 " + "[" * 40 + "x" + "]" * 40]
    for i in range(1, 20):
        rows.append(f"a{i}: &a{i} [[[*a{i - 1}]]]")
    refused("\n".join(rows), 4, "50 levels")
    rows[1:] = ["b: [[[[[[[*a0]]]]]]]"]
    assert read("\n".join(rows))[1] == []
    refused("a: &a x\nb: [" + "*a, " * 10_001 + "]", 2, "10,000")


def test_too_many_values_or_bytes_are_refused():
    assert read("[" + "x, " * 1_000 + "]")[1] == []
    refused("[\n" + "x, " * 100_001 + "]", 2, "100,000")
    refused("# a long comment\n" * 60_000, 0, "1,000,000")


@pytest.mark.parametrize("start", ["[", "{", "- ", "? ", "{a: ", "[{"])
def test_deep_nesting_is_refused(start):
    refused(start * 20_000, 1, "50 levels")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", b"\xef\xbb\xbf"])
def test_an_empty_file(text):
    assert read(text) == (None, [])


def test_bytes_and_documents():
    assert read(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")[0].plain() == {"a": 1, "b": 2}
    refused(b"a: 1\nb: caf\xe9\n", 2, "0xe9")
    refused("a: é\nb: \x01\n", 2, "U+0001")
    refused("---\na: 1\n---\nb: 2\n", 3, "another document")


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
def test_syntax_errors(text, line):
    refused(text, line, "not valid YAML")


def test_keys_are_text_or_integers():
    assert read("{0: a, 1: b, x: c}")[0].plain() == {0: "a", 1: "b", "x": "c"}
    assert value("{use: my.module:Name}") == {"use": "my.module:Name"}
    for key in ("0.5", "~"):
        ((line, text),) = lines(f"a:\n  {key}: x\n")
        assert line == 2 and f"key {key} " in text
    refused("[1]: x\n", 1, "key")
    ((line, text),) = lines("a: &x {p: 1}\nb:\n  <<: *x\n")
    assert line == 3 and "extends" in text


def test_both_parsers_read_the_same(monkeypatch):
    files = sorted((Path(yaml_files.__file__).parent / "builtin").rglob("models*.yaml"))
    fast = [read(file.read_bytes()) for file in files]
    monkeypatch.setattr("ruamel.yaml.YAML", lambda typ, pure: YAML(typ=typ, pure=True))
    assert files and fast == [read(file.read_bytes()) for file in files]


# -- parsed files ---------------------------------------------------------------------------

SUPPLIED = SourceFile("karat/config/builtin/some.yaml", supplied=True)
DEFINITIONS = b"""
datasets:
  one: {target: "1.10", folds: 1.10, none: null, far: .inf, list: [], 3: [a, {b: no}]}
  two: &two {empty: {}}
  three: *two
"""


@pytest.fixture
def parsed(monkeypatch, tmp_path):
    """Keep parsed files in the cache folder; return the calls of the parser."""
    calls = []
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(
        yaml_files, "read_yaml", lambda *given: calls.append(given) or read_yaml(*given)
    )
    return calls


def kept():
    return list((cache_folder() / "definitions").glob("*"))


def test_the_second_time_nothing_is_parsed(parsed):
    known = read_yaml(DEFINITIONS, SUPPLIED)
    assert read_supplied(DEFINITIONS, SUPPLIED) == known
    assert read_supplied(DEFINITIONS, SUPPLIED) == known
    assert len(parsed) == 1 and len(kept()) == 1
    root, _ = read_supplied(DEFINITIONS, SUPPLIED)
    node = root.value["datasets"].value["one"].value["folds"]
    assert (node.value, node.text, node.line, node.file) == (1.1, "1.10", 3, SUPPLIED)


def test_another_text_or_version_is_parsed(parsed, monkeypatch):
    read_supplied(DEFINITIONS, SUPPLIED)
    assert read_supplied(b"a: 2", SUPPLIED)[0].plain() == {"a": 2}
    assert len(parsed) == 2
    monkeypatch.setattr(yaml_files, "__version__", "other")
    read_supplied(b"a: 2", SUPPLIED)
    assert len(parsed) == 3 and len(kept()) == 1


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100_000, "root"])
def test_a_damaged_file_is_parsed_again(parsed, damage):
    read_supplied(DEFINITIONS, SUPPLIED)
    (file,) = kept()
    if damage == "root":
        damage = json.dumps({**json.loads(file.read_bytes()), "value": [1, 2, 3]}).encode()
    file.write_bytes(damage)
    assert read_supplied(DEFINITIONS, SUPPLIED) == read_yaml(DEFINITIONS, SUPPLIED)
    assert len(parsed) == 2


def test_a_place_that_is_not_writable(parsed, tmp_path):
    (tmp_path / "definitions").write_text("")
    assert read_supplied(DEFINITIONS, SUPPLIED) == read_yaml(DEFINITIONS, SUPPLIED)


def test_a_file_with_mistakes_is_not_kept(parsed):
    _, mistakes = read_supplied(b"a: 1\na: 2", SUPPLIED)
    assert [mistake.line for mistake in mistakes] == [2] and kept() == []


def test_the_preferred_place_is_next_to_the_compiled_modules(parsed, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    read_supplied(DEFINITIONS, SUPPLIED)
    assert kept() == []
    assert len(list((tmp_path / "compiled").rglob("*.json"))) == 1
    read_supplied(DEFINITIONS, SUPPLIED)
    assert len(parsed) == 1
