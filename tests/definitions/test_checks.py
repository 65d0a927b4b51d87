"""Every key of every section: what it takes, what it is without it, what is said of a wrong one."""

import pytest

from karat.definitions.checks import check
from karat.definitions.places import SourceFile
from karat.definitions.strict_yaml import read_yaml

SHA = "a" * 64


def checked(section, text, **options):
    return check(section, read_yaml(text.encode(), SourceFile("my.yaml"))[0], **options)


def values(section, text):
    found, problems = checked(section, text)
    assert problems == []
    return found


def problems(section, text, **options):
    return [(problem.path, problem.text) for problem in checked(section, text, **options)[1]]


def test_a_model_and_its_defaults():
    assert values("models", "use: skrub") == {
        "use": "skrub",
        "params": {},
        "out_of_fold": None,
        "role": None,
        "takes": None,
        "requires": [],
        "artifacts": [],
        "refuse": None,
        "extra": None,
        "title": None,
        "description": None,
        "licence": None,
        "version": None,
        "citation": None,
        "homepage": None,
    }


@pytest.mark.parametrize("folds", ["1", "0", "2.5", "true", "five"])
def test_out_of_fold_is_a_number_of_folds(folds):
    assert values("models", "{use: a, out_of_fold: 2}")["out_of_fold"] == 2
    ((path, _),) = problems("models", f"{{use: a, out_of_fold: {folds}}}")
    assert path == ("out_of_fold",)


def test_a_whole_model():
    text = """{use: "a.b:C", params: {n: 1, deep: {x: ~}}, role: encoder, takes: [table, text],
               requires: [torch], extra: text, title: T, description: D, licence: MIT,
               version: "1.10", citation: C, homepage: "https://example.org"}"""
    found = values("models", text)
    assert found["params"] == {"n": 1, "deep": {"x": None}}
    assert (found["takes"], found["version"]) == (["table", "text"], "1.10")


def test_a_task_and_its_defaults():
    assert values("tasks", "{dataset: d, metrics: [acc]}") == {
        "dataset": "d",
        "ask": None,
        "probe": None,
        "split": None,
        "metrics": ["acc"],
        **dict.fromkeys(("usual", "called", "refuse", "folds")),
        **dict.fromkeys(("max_runtime_seconds", "max_mem_size_mb", "cores", "gpus")),
        "missing": "ignore",
        "corruptions": {},
        "draws": 1,
        "kind": None,
        "max_rows": None,
        "ignore": [],
        "title": None,
        "description": None,
    }


def test_a_whole_task():
    text = """{dataset: {path: x.csv, target: y}, probe: {use: trained, head: {use: knn, k: 3}},
               split: all, metrics: [acc, auc], missing: penalise, kind: classification,
               ask: text-queries,
               corruptions: {noise: [0, 0.5]}, max_rows: 100, title: T, description: D}"""
    found = values("tasks", text)
    assert found["probe"] == {"use": "trained", "head": {"use": "knn", "k": 3}}
    assert found["split"] == {"use": "all"} and found["ask"] == {"use": "text-queries"}
    assert found["corruptions"] == {"noise": [0, 0.5]}
    assert found["dataset"]["path"] == "x.csv"
    assert found["dataset"]["reader"] == "table"


def test_suites_and_constraints():
    assert values("suites", "tasks: [a, b]") == {
        "tasks": ["a", "b"],
        "left_out": {},
        "models": [],
        "title": None,
        "description": None,
    }
    limits = ("max_runtime_seconds", "max_mem_size_mb", "cores", "gpus", "min_vol_size_mb")
    keys = ("folds", "max_rows", *limits, "description")
    assert values("constraints", "{}") == dict.fromkeys(keys)


def test_a_dataset_and_its_defaults():
    assert values("datasets", "path: x.csv") == {
        "path": "x.csv",
        "sources": None,
        "load": None,
        "reader": "table",
        "target": None,
        "kind": None,
        "group": None,
        "drop": [],
        "fields": [],
        "modality": "table",
        "part": None,
        "options": {},
        "title": None,
        "description": None,
        "licence": None,
        "citation": None,
        "homepage": None,
    }


def test_places_of_data():
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


@pytest.mark.parametrize(
    ("section", "text", "path", "words"),
    [
        # -- keys
        ("models", "{use: a, parms: {}}", ("parms",), 'unknown key. Did you mean "params"?'),
        (
            "models",
            "{use: a, abstrct: true}",
            ("abstrct",),
            'unknown key. Did you mean "abstract"?',
        ),
        (
            "constraints",
            "{zzz: 1}",
            ("zzz",),
            "unknown key. Known: abstract, cores, description, extends, folds, for_each, gpus, "
            "max_mem_size_mb, max_rows, max_runtime_seconds, min_vol_size_mb.",
        ),
        ("models", "{}", ("use",), "is missing."),
        ("tasks", "{metrics: [a]}", ("dataset",), "is missing."),
        ("tasks", "{dataset: a}", ("metrics",), "is missing."),
        ("suites", "{}", ("tasks",), "is missing."),
        ("tasks", "{dataset: a, metrics: []}", ("metrics",), "must not be empty."),
        ("suites", "{tasks: []}", ("tasks",), "must not be empty."),
        ("models", "{use: ''}", ("use",), "must not be empty."),
        ("tasks", "{dataset: a, metrics: [b], probe: {k: 1}}", ("probe", "use"), "is missing."),
        (
            "tasks",
            "{dataset: {path: x, tagret: y}, metrics: [b]}",
            ("dataset", "tagret"),
            'unknown key. Did you mean "target"?',
        ),
        (
            "datasets",
            "path: {train: a, tset: b}",
            ("path", "tset"),
            'unknown key. Did you mean "test"?',
        ),
        # -- types
        (
            "models",
            "{use: a, version: 1.10}",
            ("version",),
            "must be text, not the number 1.10. Put it in quotes.",
        ),
        (
            "models",
            "{use: a, title: true}",
            ("title",),
            "must be text, not true. Put it in quotes.",
        ),
        ("models", "{use: a, title: [x]}", ("title",), "must be text, not a list."),
        ("models", "{use: a, params: [x]}", ("params",), "must be a mapping, not a list."),
        (
            "models",
            "{use: a, params: {1: x}}",
            ("params", 1),
            "the key must be text; put it in quotes.",
        ),
        (
            "models",
            "{use: a, requires: torch}",
            ("requires",),
            'must be a list, not the text "torch".',
        ),
        (
            "models",
            "{use: a, role: encodr}",
            ("role",),
            'must be "encoder" or "predictor", not the text "encodr". Did you mean "encoder"?',
        ),
        (
            "models",
            "{use: a, takes: [table, image]}",
            ("takes", 1),
            'must be "table", "text" or "entity", not the text "image".',
        ),
        (
            "models",
            "{use: 'a b:'}",
            ("use",),
            'must be a name or "package.module:Name", not the text "a b:".',
        ),
        (
            "tasks",
            "{dataset: a, metrics: [b], probe: 3}",
            ("probe",),
            "must be a name or a mapping with use, not the number 3.",
        ),
        (
            "tasks",
            "{dataset: [a], metrics: [b]}",
            ("dataset",),
            "must be the name of a dataset or a mapping, not a list.",
        ),
        (
            "tasks",
            "{dataset: a, metrics: acc}",
            ("metrics",),
            'must be a list, not the text "acc".',
        ),
        (
            "tasks",
            "{dataset: a, metrics: [b, 1]}",
            ("metrics", 1),
            "must be text, not the number 1. Put it in quotes.",
        ),
        ("tasks", "{dataset: a, metrics: [b, c, b]}", ("metrics", 2), "stands twice in the list."),
        ("suites", "{tasks: [b, c, c]}", ("tasks", 2), "stands twice in the list."),
        (
            "tasks",
            "{dataset: a, metrics: [b], max_rows: 0}",
            ("max_rows",),
            "must be above 0, not the number 0.",
        ),
        ("constraints", "{folds: 1.0}", ("folds",), "must be a whole number, not the number 1.0."),
        ("constraints", "{folds: true}", ("folds",), "must be a whole number, not true."),
        ("constraints", "{folds: '2'}", ("folds",), 'must be a whole number, not the text "2".'),
        (
            "tasks",
            "{dataset: a, metrics: [b], corruptions: {noise: [0.1, -0.1]}}",
            ("corruptions", "noise", 1),
            "must be 0 or more, not the number -0.1.",
        ),
        (
            "tasks",
            "{dataset: a, metrics: [b], corruptions: {noise: [.nan]}}",
            ("corruptions", "noise", 0),
            "must be a finite number, not the number .nan.",
        ),
        (
            "tasks",
            "{dataset: a, metrics: [b], corruptions: {noise: 0.1}}",
            ("corruptions", "noise"),
            "must be a list, not the number 0.1.",
        ),
        (
            "tasks",
            "{dataset: a, metrics: [b], missing: penalize}",
            ("missing",),
            'must be "ignore" or "penalise", not the text "penalize". Did you mean "penalise"?',
        ),
        (
            "datasets",
            "path: 3",
            ("path",),
            "must be a path or a mapping {train: path, test: path}, not the number 3.",
        ),
        # -- one of several
        ("datasets", "{target: y}", (), "needs one of path, sources, load."),
        (
            "datasets",
            "{path: x, load: y}",
            ("load",),
            "path and load exclude each other; keep one.",
        ),
        (
            "tasks",
            "{dataset: {target: y}, metrics: [b]}",
            ("dataset",),
            "needs one of path, sources, load.",
        ),
        ("datasets", "sources: []", ("sources",), "must not be empty."),
        (
            "datasets",
            "sources: [{member: x}]",
            ("sources", 0),
            "needs one of folder, package, index, url.",
        ),
        (
            "datasets",
            "sources: [{folder: x, url: y}]",
            ("sources", 0, "url"),
            "folder and url exclude each other; keep one.",
        ),
        (
            "datasets",
            "sources: [{folder: x}, {package: x}]",
            ("sources", 1, "member"),
            "is missing; a source with package needs it.",
        ),
        (
            "datasets",
            "sources: [{url: x}]",
            ("sources", 0, "sha256"),
            "is missing; a source with url needs it.",
        ),
        (
            "datasets",
            f"sources: [{{index: x, sha256: {SHA}}}]",
            ("sources", 0, "file"),
            "is missing; a source with index needs it.",
        ),
        (
            "datasets",
            "sources: [{folder: x, member: y}]",
            ("sources", 0, "member"),
            "does not go with folder.",
        ),
        (
            "datasets",
            "sources: [{folder: x, membr: y}]",
            ("sources", 0, "membr"),
            'unknown key. Did you mean "member"?',
        ),
        (
            "datasets",
            "sources: [{url: x, sha256: abc}]",
            ("sources", 0, "sha256"),
            "must be 64 hexadecimal digits.",
        ),
        ("datasets", "sources: [x]", ("sources", 0), 'must be a mapping, not the text "x".'),
    ],
)
def test_mistakes(section, text, path, words):
    assert problems(section, text) == [(path, words)]


def test_a_mistyped_key_is_not_also_missing():
    assert problems("tasks", "{dataset: a, metrcs: [b]}") == [
        (("metrcs",), 'unknown key. Did you mean "metrics"?')
    ]


def test_all_mistakes_of_an_entry_at_once():
    text = "{targt: y, kind: colours, drop: x, sources: [{package: p, sha256: 1}], path: a}"
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
def test_what_is_abstract_need_not_be_complete(section, text):
    found, told = checked(section, text, complete=False)
    assert told == []
    assert found == read_yaml(text.encode(), SourceFile("my.yaml"))[0].plain()


def test_what_is_abstract_has_keys_and_types_all_the_same():
    text = "{metrcs: [a], max_rows: many}"
    assert {path for path, _ in problems("tasks", text, complete=False)} == {
        ("metrcs",),
        ("max_rows",),
    }


def test_nothing_means_the_empty_default():
    found = values("models", "{use: a, params: ~, requires: ~}")
    assert (found["params"], found["requires"]) == ({}, [])
