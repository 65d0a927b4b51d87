"""Every key of every section: its values, its default, and the mistakes reported."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.config.loading import merge, merge_entry
from karat.config.schema import Modality, check_definition
from karat.config.yaml_files import Node, SourceFile, read_yaml
from karat.core.dataset import MODALITIES

SHA = "a" * 64


def checked(section, text, **options):
    return check_definition(section, read_yaml(text.encode(), SourceFile("my.yaml"))[0], **options)


def values(section, text):
    found, problems = checked(section, text)
    assert problems == []
    return found


def problems(section, text, **options):
    return [(problem.path, problem.text) for problem in checked(section, text, **options)[1]]


def test_a_model_and_its_defaults():
    facts = ("title", "description", "license", "version", "citation", "homepage")
    assert values("models", "use: skrub") == {
        "use": "skrub",
        "params": {},
        "requires": [],
        "artifacts": [],
        "depends_on": [],
        **{"dimensions": [], "precision": [], "rescore": False},
        **dict.fromkeys(("out_of_fold", "role", "takes", "refuse", "extra", *facts)),
    }
    text = """{use: "a.b:C", params: {n: 1, deep: {x: ~}}, role: encoder, takes: [table, text],
               requires: [torch], extra: text, title: T, description: D, license: MIT,
               version: "1.10", citation: C, homepage: "https://example.org", out_of_fold: 2}"""
    found = values("models", text)
    assert found["params"] == {"n": 1, "deep": {"x": None}}
    assert (found["takes"], found["version"]) == (["table", "text"], "1.10")
    found = values("models", "{use: a, params: ~, requires: ~}")  # null is the empty default
    assert (found["params"], found["requires"]) == ({}, [])


def test_a_task_and_its_defaults():
    assert values("tasks", "{dataset: d, metrics: [acc]}") == {
        "dataset": "d",
        "metrics": ["acc"],
        **dict.fromkeys(("ask", "probe", "split", "kind", "max_rows", "title", "description")),
        **dict.fromkeys(("usual", "called", "refuse", "folds", "max_folds", "positive")),
        **dict.fromkeys(("max_runtime_seconds", "max_mem_size_mb", "cores", "gpus")),
        "missing": "ignore",
        "corruptions": {},
        "draws": 1,
        "keep_predictions": "all",
        "roles": [],
        "ignore": [],
    }
    text = """{dataset: {path: x.csv, target: y}, probe: {use: trained, head: {use: knn, k: 3}},
               split: all, metrics: [acc, auc], missing: penalize, kind: classification,
               ask: text-queries,
               corruptions: {noise: [0, 0.5]}, max_rows: 100, title: T, description: D}"""
    found = values("tasks", text)
    assert found["probe"] == {"use": "trained", "head": {"use": "knn", "k": 3}}
    assert found["split"] == {"use": "all"} and found["ask"] == {"use": "text-queries"}
    assert found["corruptions"] == {"noise": [0, 0.5]}
    assert found["dataset"]["path"] == "x.csv" and found["dataset"]["reader"] == "table"


def test_suites_and_constraints():
    empty = {"left_out": {}, "models": [], "title": None, "description": None}
    assert values("suites", "tasks: [a, b]") == {"tasks": ["a", "b"], **empty}
    limits = ("max_runtime_seconds", "max_mem_size_mb", "cores", "gpus", "min_vol_size_mb")
    keys = ("max_folds", "max_rows", *limits, "description")
    assert values("constraints", "{}") == dict.fromkeys(keys)


def test_a_dataset_and_its_defaults():
    facts = ("title", "description", "license", "citation", "homepage")
    assert values("datasets", "path: x.csv") == {
        "path": "x.csv",
        "reader": "table",
        "drop": [],
        "fields": [],
        "modality": "table",
        "options": {},
        **dict.fromkeys(("sources", "load", "target", "kind", "group", "part", *facts)),
        **dict.fromkeys(("positive", "weight", "group_feature", "language")),
    }
    assert values("datasets", "path: {train: a, test: b}")["path"] == {"train": "a", "test": "b"}
    assert values("datasets", "load: a.b:c")["load"] == {"use": "a.b:c"}
    assert values("datasets", "load: {use: openml, id: 31}")["load"] == {"use": "openml", "id": 31}
    sources = f"""
sources:
  - {{folder: toy}}
  - {{folder: toy, sha256: {SHA}}}
  - {{package: palmerpenguins, member: data/penguins.csv}}
  - {{index: skrub, file: x.whl, sha256: {SHA}, member: a/b.csv}}
  - {{index: skrub, file: x.csv, sha256: {SHA}}}
  - {{url: "https://example.org/x.csv", sha256: {SHA}}}
  - {{url: "https://example.org/x.zip", sha256: {SHA}, member: x.csv}}
"""
    found = values("datasets", sources)["sources"]
    assert found[0] == {"folder": "toy"}
    assert found[2] == {"package": "palmerpenguins", "member": "data/penguins.csv"}


TASK = "dataset: a, metrics: [b]"
NOISE = f"{{{{{TASK}, corruptions: {{{{noise: {{}}}}}}}}}}"


@pytest.mark.parametrize(
    ("section", "text", "path", "word"),
    [
        # -- keys
        ("models", "{use: a, parms: {}}", ("parms",), '"params"'),
        ("models", "{use: a, abstrct: true}", ("abstrct",), '"abstract"'),
        ("tasks", "{dataset: a, metrcs: [b]}", ("metrcs",), '"metrics"'),  # and not missing
        *(
            ("models", f"{{use: a, out_of_fold: {folds}}}", ("out_of_fold",), "")
            for folds in ("1", "0", "2.5", "true", "five")
        ),
        ("constraints", "{zzz: 1}", ("zzz",), "max_runtime_seconds, min_vol_size_mb"),
        ("models", "{}", ("use",), "missing"),
        ("tasks", "{metrics: [a]}", ("dataset",), "missing"),
        ("tasks", "{dataset: a}", ("metrics",), "missing"),
        ("suites", "{}", ("tasks",), "missing"),
        ("tasks", "{dataset: a, metrics: []}", ("metrics",), "empty"),
        ("suites", "{tasks: []}", ("tasks",), "empty"),
        ("models", "{use: ''}", ("use",), "empty"),
        ("tasks", f"{{{TASK}, probe: {{k: 1}}}}", ("probe", "use"), "missing"),
        ("tasks", "{dataset: {path: x, tagret: y}, metrics: [b]}", ("dataset", "tagret"), "target"),
        ("datasets", "path: {train: a, tset: b}", ("path", "tset"), '"test"'),
        # -- types
        ("models", "{use: a, version: 1.10}", ("version",), "1.10. Put it in quotes"),
        ("models", "{use: a, title: true}", ("title",), "quotes"),
        ("models", "{use: a, title: [x]}", ("title",), "list"),
        ("models", "{use: a, params: [x]}", ("params",), "mapping"),
        ("models", "{use: a, params: {1: x}}", ("params", 1), "quotes"),
        ("models", "{use: a, requires: torch}", ("requires",), "list"),
        ("models", "{use: a, role: encodr}", ("role",), 'Did you mean "encoder"?'),
        ("models", "{use: a, takes: [table, image]}", ("takes", 1), '"column" or "frame"'),
        ("models", "{use: 'a b:'}", ("use",), "package.module:Name"),
        ("tasks", f"{{{TASK}, probe: 3}}", ("probe",), "the number 3"),
        ("tasks", "{dataset: [a], metrics: [b]}", ("dataset",), "a list"),
        ("tasks", "{dataset: a, metrics: acc}", ("metrics",), '"acc"'),
        ("tasks", "{dataset: a, metrics: [b, 1]}", ("metrics", 1), "quotes"),
        ("tasks", "{dataset: a, metrics: [b, c, b]}", ("metrics", 2), "duplicate"),
        ("suites", "{tasks: [b, c, c]}", ("tasks", 2), "duplicate"),
        ("tasks", f"{{{TASK}, max_rows: 0}}", ("max_rows",), "> 0"),
        ("constraints", "{max_folds: 1.0}", ("max_folds",), "integer"),
        ("constraints", "{max_folds: true}", ("max_folds",), "integer"),
        ("constraints", "{max_folds: '2'}", ("max_folds",), '"2"'),
        ("tasks", NOISE.format("[0.1, -0.1]"), ("corruptions", "noise", 1), ">= 0"),
        ("tasks", NOISE.format("[.nan]"), ("corruptions", "noise", 0), "finite"),
        ("tasks", NOISE.format("0.1"), ("corruptions", "noise"), "list"),
        ("tasks", f"{{{TASK}, missing: penalise}}", ("missing",), 'Did you mean "penalize"?'),
        ("datasets", "path: 3", ("path",), "{train: path, test: path}"),
        # -- one of several
        ("datasets", "{target: y}", (), "path, sources, load"),
        ("datasets", "{path: x, load: y}", ("load",), "path and load"),
        ("tasks", "{dataset: {target: y}, metrics: [b]}", ("dataset",), "path, sources, load"),
        ("datasets", "sources: []", ("sources",), "empty"),
        ("datasets", "sources: [{member: x}]", ("sources", 0), "folder, package, index, url"),
        ("datasets", "sources: [{folder: x, url: y}]", ("sources", 0), "exactly one"),
        ("datasets", "sources: [x]", ("sources", 0), "mapping"),
        ("datasets", "sources: [{folder: x}, {package: x}]", ("sources", 1, "member"), "missing"),
        ("datasets", "sources: [{url: x}]", ("sources", 0, "sha256"), "missing"),
        ("datasets", f"sources: [{{index: x, sha256: {SHA}}}]", ("sources", 0, "file"), "missing"),
        ("datasets", "sources: [{folder: x, member: y}]", ("sources", 0, "member"), "unknown key"),
        ("datasets", "sources: [{package: x, membr: y}]", ("sources", 0, "membr"), '"member"'),
        ("datasets", "sources: [{url: x, sha256: abc}]", ("sources", 0, "sha256"), "hexadecimal"),
    ],
)
def test_mistakes(section, text, path, word):
    ((found, message),) = problems(section, text)
    assert found == path
    assert word in message


def test_all_mistakes_of_an_entry_at_once():
    text = "{targt: y, kind: colors, drop: x, sources: [{package: p, sha256: 1}], path: a}"
    assert {path for path, _ in problems("datasets", text)} == {
        ("targt",),
        ("kind",),
        ("drop",),
        ("sources", 0, "sha256"),
        ("sources", 0, "member"),
        ("path",),
    }


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("models", "{role: encoder}"),
        ("tasks", "{probe: {head: knn}, metrics: [], dataset: {target: y}}"),
        ("suites", "{models: [a]}"),
        ("datasets", "{target: y}"),
        ("datasets", "{sources: [{package: x}]}"),
    ],
)
def test_abstract_entries_may_be_incomplete(section, text):
    found, mistakes = checked(section, text, complete=False)
    assert mistakes == []
    assert found == read_yaml(text.encode(), SourceFile("my.yaml"))[0].plain()


def test_abstract_entries_have_valid_keys_and_types():
    text = "{metrcs: [a], max_rows: many}"
    paths = {path for path, _ in problems("tasks", text, complete=False)}
    assert paths == {("metrcs",), ("max_rows",)}


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
            {"probe": {"head": {"use": "logistic-regression"}}},
            {"probe": {"use": "trained", "head": {"use": "logistic-regression"}}},
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
    # neither side is changed
    assert (parent.plain(), child.plain()) == ({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}})


def inherits(section, parent, child, expected):
    assert merge_entry(section, node(parent), node(child)).plain() == node(expected).plain()


def test_some_keys_are_not_inherited_and_the_name_of_a_component_is_its_use():
    parent = "{abstract: true, extends: x, metrics: [auc]}"
    inherits("tasks", parent, "{dataset: d}", "{metrics: [auc], dataset: d}")
    parent = "{probe: trained, split: {use: kfold, folds: 5}}"
    expected = "{probe: {use: trained, head: knn}, split: all}"
    inherits("tasks", parent, "{probe: {head: knn}, split: all}", expected)
    partial = "{ask: {use: partial-rows, keep: 0.2}}"
    inherits("tasks", "{ask: partial-rows}", "{ask: {keep: 0.2}}", partial)
    inherits("tasks", partial, "{ask: {use: other}}", "{ask: {use: other}}")
    inherits("datasets", "{load: a}", "{load: {n: 1}}", "{load: {use: a, n: 1}}")
    inherits("models", "{params: {a: x}}", "{params: {a: {b: 1}}}", "{params: {a: {b: 1}}}")
    parent = "{use: 'a:A', params: {n: 1}, license: MIT}"
    inherits("models", parent, "{use: 'b:B'}", "{use: 'b:B', params: {n: 1}, license: MIT}")


def test_another_location_of_the_data_replaces_the_inherited_one():
    expected = "{target: y, load: 'p:f'}"
    inherits("datasets", "{path: a.csv, target: y}", "{load: 'p:f'}", expected)
    parent = "{dataset: {path: a.csv, target: y}}"
    inherits("tasks", parent, "{dataset: {load: 'p:f'}}", f"{{dataset: {expected}}}")
    inherits("tasks", parent, "{dataset: {target: z}}", "{dataset: {path: a.csv, target: z}}")


def test_definitions_name_every_modality():
    assert get_args(Modality) == MODALITIES
