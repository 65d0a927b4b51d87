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
    assert {key: value for key, value in found.items() if value is not None} == {
        "folds": 1,
        "max_rows": 2,
        "description": "far",
    }


def test_later_parents_override_earlier_ones(load):
    text = """
constraints:
  a: {folds: 1, max_rows: 1, description: a}
  b: {max_rows: 2, description: b}
  c: {extends: [a, b], description: c}
  d: {extends: [b, a]}
"""
    definitions = load(text)
    found = definitions.get("constraints", "c")
    assert (found["folds"], found["max_rows"], found["description"]) == (1, 2, "c")
    assert definitions.get("constraints", "d")["max_rows"] == 1


def test_abstract_is_not_inherited(load):
    text = TASKS + "  churn: {extends: kind, dataset: {path: x.csv}}\n"
    definitions = load(text)
    assert definitions.names("tasks") == ["churn"]
    assert definitions.names("tasks", abstract=True) == ["churn", "kind"]


def test_another_split_replaces_the_parents(load):
    text = TASKS + "  churn: {extends: kind, dataset: {path: x.csv}, split: {use: all}}\n"
    assert load(text).get("tasks", "churn")["split"] == {"use": "all"}


def test_null_clears_an_inherited_value(load):
    text = """
tasks:
  a: {dataset: {path: x.csv}, metrics: [acc], corruptions: {noise: [0.1]}, max_rows: 3}
  b: {extends: a, corruptions: ~, max_rows: ~}
"""
    b = load(text).get("tasks", "b")
    assert (b["corruptions"], b["max_rows"]) == ({}, None)


def test_a_missing_parent(reports):
    text = TASKS + "  churn:\n    extends: knd\n    metrcs: [acc]\n"
    reports(text, ("5: tasks.churn.extends", '"kind"'), ("6: tasks.churn.metrcs", '"metrics"'))


def test_a_parent_is_of_the_same_section(reports):
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


def test_diamond_inheritance(load):
    text = "constraints: {a: {folds: 1}, b: {extends: a}, c: {extends: a}, d: {extends: [b, c]}}"
    assert load(text).get("constraints", "d")["folds"] == 1


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
