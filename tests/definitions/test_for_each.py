import pytest

TASK = """
tasks:
  "{name}":
    for_each: {for_each}
    dataset: {{path: x.csv}}
    metrics: [acc]
    title: {title}
"""


def task(name="few-{n}", for_each="{n: [16, 32]}", title="'{n} rows'"):
    return TASK.format(name=name, for_each=for_each, title=title)


def titles(definitions):
    return {name: definitions.get("tasks", name)["title"] for name in definitions.names("tasks")}


def test_all_combinations(load):
    text = task("{head}-{n}", "{head: [knn, tree], n: [16, 32]}", "'{head} on {n}'")
    assert titles(load(text)) == {
        "knn-16": "knn on 16",
        "knn-32": "knn on 32",
        "tree-16": "tree on 16",
        "tree-32": "tree on 32",
    }


def test_one_entry_for_each_of_a_list(load):
    text = task("{a}", "[{a: x, b: 1.10}, {a: y, b: true}]", "'b={b}'")
    assert titles(load(text)) == {"x": "b=1.10", "y": "b=true"}


def test_a_whole_placeholder_keeps_its_type(load):
    text = """
models:
  "m-{n}":
    for_each: [{n: 1, deep: [1, {a: b}]}, {n: 2, deep: ~}]
    use: "a:A"
    params: {n: "{n}", text: "{n} ", deep: "{deep}", list: ["{n}", "x{n}"], none: 3}
"""
    definitions = load(text)
    assert definitions.get("models", "m-1")["params"] == {
        "n": 1,
        "text": "1 ",
        "deep": [1, {"a": "b"}],
        "list": [1, "x1"],
        "none": 3,
    }
    assert definitions.get("models", "m-2")["params"]["deep"] is None


def test_double_braces_are_single_ones(load):
    assert titles(load(task("a{n}", "{n: [1]}", "'{{n}} {n} {{{n}}}'"))) == {"a1": "{n} 1 {1}"}


def test_without_for_each_braces_are_left_alone(load):
    definitions = load("constraints: {c: {description: 'BibTeX {x} {{y}} {'}}")
    assert definitions.get("constraints", "c")["description"] == "BibTeX {x} {{y}} {"


def test_generated_entries_can_extend_and_be_extended(load):
    text = """
tasks:
  base-1: {abstract: true, dataset: {path: x.csv}, metrics: [acc]}
  base-2: {abstract: true, dataset: {path: y.csv}, metrics: [acc]}
  "t{n}": {for_each: {n: [1, 2]}, extends: "base-{n}"}
  special: {extends: t2, metrics: [auc]}
"""
    special = load(text).get("tasks", "special")
    assert (special["dataset"]["path"], special["metrics"]) == ("y.csv", ["auc"])


def test_origins_of_filled_values(load):
    text = """
constraints:
  "c{n}":
    for_each:
      - {n: 1}
      - {n: 2}
    folds: "{n}"
    description: "{n} folds"
"""
    assert load(text).origins("constraints", "c2") == {
        ("folds",): "my.yaml:6",
        ("description",): "my.yaml:8",
    }


@pytest.mark.parametrize(
    ("changed", "place", "word"),
    [
        ({"title": "'{m} {n}'"}, "7: tasks.few-{n}.title", "{m}"),
        ({"name": "few-{m}"}, "3: tasks.few-{m}", "{m}"),
        ({"title": "'a } b {n}'"}, "7: tasks.few-{n}.title", '"}}"'),
        ({"title": "{n}"}, "7: tasks.few-{n}.title", 'quotes: "{n}"'),
        ({"for_each": "{n: [16], m: [1, 2]}"}, "3: tasks.few-{n}", "Add {m}"),
        ({"for_each": "{n: [16, 16]}"}, "3: tasks.few-{n}", '"few-16"'),
        ({"for_each": "{n: [[1, 2]]}"}, "3: tasks.few-{n}", "{n} is a list"),
        ({"for_each": "{n: 16}"}, "4: tasks.few-{n}.for_each.n", "the number 16"),
        ({"for_each": "{n: []}"}, "4: tasks.few-{n}.for_each.n", "empty"),
        ({"for_each": "{}"}, "4: tasks.few-{n}.for_each", "empty"),
        ({"for_each": "[]"}, "4: tasks.few-{n}.for_each", "empty"),
        ({"for_each": "[{n: 1}, 2]"}, "4: tasks.few-{n}.for_each[1]", "the number 2"),
        ({"for_each": "16"}, "4: tasks.few-{n}.for_each", "the number 16"),
    ],
)
def test_mistakes(mistakes, changed, place, word):
    messages = mistakes(task(**changed))
    assert any(m.startswith(f"my.yaml:{place}: ") and word in m for m in messages), messages


def test_a_mistake_in_every_entry_is_reported_once(reports):
    reports(task(title="'{m}'"), ("7: tasks.few-{n}.title", "{m}"))
    reports(task().replace("title", "titel"), ("7: tasks.few-16.titel", '"title"'))


def test_an_unknown_placeholder_hides_only_its_consequences(reports):
    text = """
tasks:
  "few-{n}":
    for_each: {n: [1]}
    dataset: "{data}"
    metrics: []
"""
    reports(text, ("5: tasks.few-{n}.dataset", "{data}"), ("6: tasks.few-1.metrics", "empty"))


def test_a_file_cannot_define_millions_of_entries(reports):
    many = "{" + ", ".join(f"{c}: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]" for c in "abcdefgh") + "}"
    reports(task("{a}", many, "t"), ("4: tasks.{a}.for_each", "10,000"))


def test_braces_in_a_name_without_for_each(reports):
    reports('constraints: {"c{n}": {folds: 1}}', ("1: constraints.c{n}", "braces"))
