"""``extends`` and ``for_each``: merged values, generated entries, and the mistakes in them."""

import pytest

TASKS = """
tasks:
  kind: {abstract: true, probe: trained, split: {use: kfold, folds: 5}, metrics: [auc]}
"""


def test_values_are_inherited_and_merged(load):
    text = TASKS + "  churn: {extends: kind, dataset: {path: x.csv}, split: {folds: 3}}\n"
    churn = load(text).get("tasks", "churn")
    assert churn["split"] == {"use": "kfold", "folds": 3}
    assert churn["probe"] == {"use": "trained"}
    assert churn["metrics"] == ["auc"]


def test_a_parent_may_be_in_another_file_and_further_down(load):
    definitions = load(
        a="constraints: {c: {extends: b, folds: 1}}",
        b="constraints: {b: {extends: z, max_rows: 2}, z: {description: far}}",
    )
    found = definitions.get("constraints", "c")
    assert (found["folds"], found["max_rows"], found["description"]) == (1, 2, "far")


def test_later_parents_override_earlier_ones_and_null_clears(load):
    text = """
constraints:
  a: {folds: 1, max_rows: 1, description: a}
  b: {max_rows: 2, description: b}
  c: {extends: [a, b], description: c}
  d: {extends: [b, a]}
  diamond: {extends: [c, d]}
tasks:
  a: {dataset: {path: x.csv}, metrics: [acc], corruptions: {noise: [0.1]}, max_rows: 3}
  b: {extends: a, corruptions: ~, max_rows: ~}
"""
    definitions = load(text)
    found = definitions.get("constraints", "c")
    assert (found["folds"], found["max_rows"], found["description"]) == (1, 2, "c")
    assert definitions.get("constraints", "d")["max_rows"] == 1
    assert definitions.get("constraints", "diamond")["description"] == "a"
    cleared = definitions.get("tasks", "b")
    assert (cleared["corruptions"], cleared["max_rows"]) == ({}, None)


def test_a_missing_parent(reports):
    text = TASKS + "  churn:\n    extends: knd\n    metrcs: [acc]\n"
    reports(text, ("5: tasks.churn.extends", '"kind"'), ("6: tasks.churn.metrcs", '"metrics"'))
    text = "constraints: {a: {folds: 1}}\nsuites:\n  b: {extends: a}\n"
    reports(text, ("3: suites.b.extends", '"a"'))


def test_circular_inheritance(reports):
    text = """
constraints:
  far: {extends: a}
  a: {extends: b}
  b: {extends: [c]}
  c: {extends: a, fold: 1}
"""
    circle = ("6: constraints.c.extends", "a -> b -> c -> a")
    reports(text, circle, ("6: constraints.c.fold", '"folds"'))
    reports("constraints: {a: {extends: a}}", ("1: constraints.a.extends", "a -> a"))


def test_types_of_extends_and_abstract(reports):
    text = """
constraints:
  a: {extends: 3}
  b: {extends: []}
  c: {extends: [a, ~]}
  d: {abstract: yes}
"""
    reports(
        text,
        ("3: constraints.a.extends", "the number 3"),
        ("4: constraints.b.extends", "empty list"),
        ("5: constraints.c.extends", "null"),
        ("6: constraints.d.abstract", '"yes"'),
    )


def test_an_inherited_mistake_is_reported_once(reports):
    text = """
constraints:
  child: {extends: parent}
  parent:
    fold: 3
  other: {extends: parent}
"""
    reports(text, ("5: constraints.parent.fold", '"folds"'))


def chain(numbers):
    entries = [f"  c{i}: {{extends: c{i - 1}}}\n" if i else "  c0: {folds: 7}\n" for i in numbers]
    return "constraints:\n" + "".join(entries)


def test_long_chains(load, mistakes):
    assert load(chain(range(100))).get("constraints", "c99")["folds"] == 7
    assert load(chain(reversed(range(100)))).get("constraints", "c99")["folds"] == 7
    for numbers in (range(3000), reversed(range(3000))):
        assert "more than 100" in mistakes(chain(numbers))[0]


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


def test_all_combinations_or_each_of_a_list(load):
    text = task("{head}-{n}", "{head: [knn, tree], n: [16, 32]}", "'{head} on {n}'")
    expected = {f"{head}-{n}": f"{head} on {n}" for head in ("knn", "tree") for n in (16, 32)}
    assert titles(load(text)) == expected
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


def test_braces(load, reports):
    assert titles(load(task("a{n}", "{n: [1]}", "'{{n}} {n} {{{n}}}'"))) == {"a1": "{n} 1 {1}"}
    definitions = load("constraints: {c: {description: 'BibTeX {x} {{y}} {'}}")
    assert definitions.get("constraints", "c")["description"] == "BibTeX {x} {{y}} {"
    reports('constraints: {"c{n}": {folds: 1}}', ("1: constraints.c{n}", "braces"))


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
    origins = load(text).origins("constraints", "c2")
    assert origins == {("folds",): "my.yaml:6", ("description",): "my.yaml:8"}


#: 900 entries, each with a list of 900 values
TOO_MANY = "{n: [" + "1, " * 900 + "], m: [[" + "1, " * 900 + "]]}"


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
        ({"for_each": TOO_MANY}, "4: tasks.few-{n}.for_each", "2,000,000"),
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
