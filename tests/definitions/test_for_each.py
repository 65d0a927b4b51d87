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
    ("changed", "message"),
    [
        (
            {"title": "'{m} {n}'"},
            "my.yaml:7: tasks.few-{n}.title: unknown placeholder {m}. for_each has: {n}",
        ),
        (
            {"name": "few-{m}"},
            "my.yaml:3: tasks.few-{m}: unknown placeholder {m}. for_each has: {n}",
        ),
        (
            {"title": "'a } b {n}'"},
            'my.yaml:7: tasks.few-{n}.title: a lone "}"; write "}}" for it.',
        ),
        (
            {"title": "{n}"},
            'my.yaml:7: tasks.few-{n}.title: put the placeholder in quotes: "{n}".',
        ),
        (
            {"for_each": "{n: [16], m: [1, 2]}"},
            'my.yaml:3: tasks.few-{n}: for_each makes two entries named "few-16". '
            "Put {m} into the name.",
        ),
        (
            {"for_each": "{n: [16, 16]}"},
            'my.yaml:3: tasks.few-{n}: for_each makes two entries named "few-16". '
            "Make them differ.",
        ),
        (
            {"for_each": "{n: [[1, 2]]}"},
            "my.yaml:3: tasks.few-{n}: {n} is a list and cannot stand inside a text.",
        ),
        (
            {"for_each": "{n: 16}"},
            "my.yaml:4: tasks.few-{n}.for_each.n: must be a list, not the number 16.",
        ),
        ({"for_each": "{n: []}"}, "my.yaml:4: tasks.few-{n}.for_each.n: is empty."),
        ({"for_each": "{}"}, "my.yaml:4: tasks.few-{n}.for_each: is empty, so there is no entry."),
        ({"for_each": "[]"}, "my.yaml:4: tasks.few-{n}.for_each: is empty, so there is no entry."),
        (
            {"for_each": "[{n: 1}, 2]"},
            "my.yaml:4: tasks.few-{n}.for_each[1]: must be a mapping, not the number 2.",
        ),
        (
            {"for_each": "16"},
            "my.yaml:4: tasks.few-{n}.for_each: must be a mapping of lists or a list of mappings, "
            "not the number 16.",
        ),
    ],
)
def test_mistakes(mistakes, changed, message):
    assert message in mistakes(task(**changed))


def test_one_mistake_is_told_once_though_it_is_in_every_entry(mistakes):
    assert mistakes(task(title="'{m}'")) == [
        "my.yaml:7: tasks.few-{n}.title: unknown placeholder {m}. for_each has: {n}"
    ]
    assert mistakes(task().replace("title", "titel")) == [
        'my.yaml:7: tasks.few-16.titel: unknown key. Did you mean "title"?'
    ]


def test_an_unknown_placeholder_hides_only_what_follows_from_it(mistakes):
    text = """
tasks:
  "few-{n}":
    for_each: {n: [1]}
    dataset: "{data}"
    metrics: []
"""
    assert mistakes(text) == [
        "my.yaml:5: tasks.few-{n}.dataset: unknown placeholder {data}. for_each has: {n}",
        "my.yaml:6: tasks.few-1.metrics: must not be empty.",
    ]


def test_a_file_cannot_make_millions_of_entries(mistakes):
    many = "{" + ", ".join(f"{c}: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]" for c in "abcdefgh") + "}"
    assert mistakes(task("{a}", many, "t")) == [
        "my.yaml:4: tasks.{a}.for_each: makes more than 10,000 entries."
    ]


def test_braces_in_a_name_without_for_each(mistakes):
    assert mistakes('constraints: {"c{n}": {folds: 1}}') == [
        'my.yaml:1: constraints.c{n}: a name has no "/", "\\", ":" or braces in it '
        'and no "." or "-" in front.'
    ]
