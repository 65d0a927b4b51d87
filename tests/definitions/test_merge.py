import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.definitions.merge import merge, merge_entry
from karat.definitions.places import Node, SourceFile
from karat.definitions.strict_yaml import read_yaml

FILE = SourceFile("my.yaml")


def node(text):
    return read_yaml(text.encode(), FILE)[0]


def as_node(value):
    if isinstance(value, dict):
        value = {key: as_node(child) for key, child in value.items()}
    elif isinstance(value, list):
        value = [as_node(child) for child in value]
    return Node(value, FILE, 1, 1)


def merged(parent, child):
    return merge(as_node(parent), as_node(child)).plain()


leaves = st.none() | st.booleans() | st.integers() | st.text("xy", max_size=3)
leaves |= st.lists(st.integers(), max_size=3)
small, large = st.sampled_from("abc"), st.sampled_from("ABC")
# A small letter always holds a leaf, a large one always a mapping.
trees = st.recursive(
    st.dictionaries(small, leaves, max_size=3),
    lambda inner: st.builds(
        lambda plain, deep: {**plain, **deep},
        st.dictionaries(small, leaves, max_size=3),
        st.dictionaries(large, inner, max_size=3),
    ),
    max_leaves=10,
)


@given(trees, trees, trees)
def test_merging_is_associative(a, b, c):
    assert merged(merged(a, b), c) == merged(a, merged(b, c))


@given(trees)
def test_merging_is_idempotent(tree):
    assert merged(tree, {}) == merged({}, tree) == merged(tree, tree) == tree


def paths(tree, path=()):
    for key, value in tree.items():
        yield (*path, key), value
        if isinstance(value, dict):
            yield from paths(value, (*path, key))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


@given(trees, trees)
def test_the_child_overrides_the_parent(parent, child):
    result = merged(parent, child)
    for path, value in paths(child):
        assert isinstance(value, dict) or at(result, path) == value
    given_paths = dict(paths(child))
    for path, value in paths(parent):
        assert isinstance(value, dict) or path in given_paths or at(result, path) == value


@pytest.mark.parametrize(
    ("parent", "child", "result"),
    [
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"x": 1}}, {"a": "plain"}, {"a": "plain"}),
        ({"a": "plain"}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": None}, {"a": None}),
        ({"s": {"use": "k", "n": 5}}, {"s": {"use": "h"}}, {"s": {"use": "h"}}),
        (
            {"s": {"use": "k", "n": 5}},
            {"s": {"use": "k", "m": 1}},
            {"s": {"use": "k", "n": 5, "m": 1}},
        ),
        ({"s": {"use": "k", "n": 5}}, {"s": {"n": 3}}, {"s": {"use": "k", "n": 3}}),
        ({"s": {"n": 5}}, {"s": {"use": "k"}}, {"s": {"n": 5, "use": "k"}}),
        (
            {"probe": {"use": "trained", "head": {"use": "knn", "k": 3}}},
            {"probe": {"head": {"use": "logistic"}}},
            {"probe": {"use": "trained", "head": {"use": "logistic"}}},
        ),
    ],
)
def test_rules(parent, child, result):
    assert merged(parent, child) == result


def test_values_keep_their_place():
    parent = read_yaml(b"a:\n  x: 1\n  y: 2\n", SourceFile("parent.yaml"))[0]
    child = read_yaml(b"\n\na:\n  y: 3\n", SourceFile("child.yaml"))[0]
    leaves = {path: leaf.place for path, leaf in merge(parent, child).leaves()}
    assert leaves == {("a", "x"): "parent.yaml:2", ("a", "y"): "child.yaml:4"}


def test_neither_side_is_changed():
    parent, child = node("{a: {x: 1}}"), node("{a: {y: 2}}")
    merge(parent, child)
    assert (parent.plain(), child.plain()) == ({"a": {"x": 1}}, {"a": {"y": 2}})


def entry(section, parent, child):
    return merge_entry(section, node(parent), node(child)).plain()


def test_abstract_extends_and_for_each_are_not_inherited():
    parent = "{abstract: true, extends: x, metrics: [auc]}"
    assert entry("tasks", parent, "{dataset: d}") == {"metrics": ["auc"], "dataset": "d"}


def test_the_name_of_a_component_is_its_use():
    parent = "{probe: trained, split: {use: kfold, folds: 5}}"
    assert entry("tasks", parent, "{probe: {head: knn}, split: all}") == {
        "probe": {"use": "trained", "head": "knn"},
        "split": "all",
    }
    assert entry("tasks", "{ask: partial-rows}", "{ask: {keep: 0.2}}") == {
        "ask": {"use": "partial-rows", "keep": 0.2}
    }
    assert entry("tasks", "{ask: {use: partial-rows, keep: 0.2}}", "{ask: {use: other}}") == {
        "ask": {"use": "other"}
    }
    assert entry("datasets", "{load: a}", "{load: {n: 1}}") == {"load": {"use": "a", "n": 1}}
    assert entry("models", "{params: {a: x}}", "{params: {a: {b: 1}}}") == {
        "params": {"a": {"b": 1}}
    }


def test_another_class_keeps_the_metadata_of_a_model():
    parent = "{use: 'a:A', params: {n: 1}, licence: MIT}"
    assert entry("models", parent, "{use: 'b:B'}") == {
        "use": "b:B",
        "params": {"n": 1},
        "licence": "MIT",
    }


def test_another_location_of_the_data_replaces_the_inherited_one():
    assert entry("datasets", "{path: a.csv, target: y}", "{load: 'p:f'}") == {
        "target": "y",
        "load": "p:f",
    }
    parent = "{dataset: {path: a.csv, target: y}}"
    assert entry("tasks", parent, "{dataset: {load: 'p:f'}}") == {
        "dataset": {"target": "y", "load": "p:f"}
    }
    assert entry("tasks", parent, "{dataset: {target: z}}") == {
        "dataset": {"path": "a.csv", "target": "z"}
    }
