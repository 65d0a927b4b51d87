"""Definition files: found, loaded, merged and checked, with every mistake at its place."""

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from karat.config import loading
from karat.config.loading import Definitions, builtin_files, installed_files, user_files
from karat.config.yaml_files import SourceFile
from karat.core.registry import Registry
from karat.errors import DefinitionError


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Install a package ``karat_plugin`` with one entry point; call it with another value."""
    package = tmp_path / "site" / "karat_plugin"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "more.yaml").write_text("constraints: {of-plugin: {max_folds: 3}}")
    (package / "deep" / "more.yaml").write_text("constraints: {of-deep: {max_folds: 4}}")
    monkeypatch.syspath_prepend(str(package.parent))

    def install(*values):
        points = [EntryPoint(f"p{i}", value, loading.GROUP) for i, value in enumerate(values)]
        monkeypatch.setattr(loading, "entry_points", lambda group: points)
        return package

    yield install
    sys.modules.pop("karat_plugin", None)


def labels(found):
    return [file.label for file, _ in found[0]]


def test_builtin_files_are_named_after_the_package():
    found, mistakes = builtin_files()
    assert mistakes == []
    places = ("karat/config/builtin/", "karat/ext/")
    assert all(file.label.startswith(places) and file.supplied for file, _ in found)


def test_files_of_installed_packages(plugin):
    package = plugin("karat_plugin:more.yaml", "karat_plugin:deep/more.yaml")
    found, mistakes = installed_files()
    assert mistakes == []
    assert [(file.label, file.folder) for file, _ in found] == [
        ("karat_plugin/more.yaml", package),
        ("karat_plugin/deep/more.yaml", package / "deep"),
    ]
    assert Definitions.load().get("constraints", "of-plugin")["max_folds"] == 3


def test_a_broken_installed_package_is_named(plugin):
    plugin("karat_plugin:less.yaml", "karat_no_such_package:x.yaml")
    with pytest.raises(DefinitionError) as caught:
        Definitions.load()
    first, second = caught.value.messages
    assert first.startswith('karat_plugin/less.yaml: the entry point "p0"')
    assert '"karat_plugin:less.yaml"' in first and "FileNotFoundError" in first
    assert "ModuleNotFoundError" in second


def test_entries_of_installed_packages_are_checked_on_first_use(plugin):
    package = plugin("karat_plugin:more.yaml")
    (package / "more.yaml").write_text("constraints: {of-plugin: {folds: 3}}")
    definitions = Definitions.load()
    for check in (lambda: definitions.get("constraints", "of-plugin"), definitions.validate_all):
        with pytest.raises(DefinitionError, match='of-plugin.folds: .*"max_folds"'):
            check()


def test_files_and_folders_of_users(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "defs"
    (folder / "c.yaml").mkdir(parents=True)
    for name in ("b.yaml", "a.yml", "notes.txt", ".hidden.yaml", "../my.yaml"):
        (folder / name).write_text("")
    assert labels(user_files([folder])) == ["defs/a.yml", "defs/b.yaml"]
    assert labels(user_files(["my.yaml", tmp_path, tmp_path / "my.yaml"])) == ["my.yaml"]  # once
    (tmp_path / "empty").mkdir()
    _, mistakes = user_files(["my.yml", "empty", "no/such/folder.yaml"])
    assert [mistake.file for mistake in mistakes] == ["my.yml", "empty", "no/such/folder.yaml"]
    assert '"my.yaml"' in mistakes[0].text and ".yaml" in mistakes[1].text
    monkeypatch.chdir(tmp_path / "empty")  # paths are relative only below the current folder
    assert labels(user_files([tmp_path / "my.yaml"])) == [str(tmp_path / "my.yaml")]
    assert labels(user_files(["../my.yaml"])) == ["../my.yaml"]


WHOLE = """
datasets:
  churn: {path: data/churn.csv, target: churned}
tasks:
  kind: {abstract: true, probe: trained, split: kfold, metrics: [acc]}
  churn: {extends: kind, dataset: churn}
models:
  letters: {use: "my:Letters"}
suites:
  mine: {tasks: [churn], models: [letters]}
constraints:
  brief: {max_folds: 1}
"""


def test_names_get_and_names_everywhere(load):
    definitions = load(WHOLE)
    assert definitions.names("tasks") == ["churn"]
    assert definitions.names("tasks", abstract=True) == ["churn", "kind"]
    assert definitions.names_everywhere("churn") == ["tasks", "datasets"]
    assert definitions.names_everywhere("nothing") == []
    kind = {"probe": "trained", "split": "kfold", "metrics": ["acc"], "abstract": True}
    for _ in range(2):  # each time a new dictionary
        assert definitions.get("suites", "mine")["tasks"] == ["churn"]
        assert definitions.get("tasks", "kind") == kind
        definitions.get("suites", "mine")["tasks"].append("changed")
        definitions.get("tasks", "kind")["metrics"].append("changed")
    assert "abstract" not in definitions.get("tasks", "churn")
    with pytest.raises(DefinitionError, match='"chrun".*"churn"'):
        definitions.get("tasks", "chrun")
    with pytest.raises(DefinitionError, match='"task".*"tasks"'):
        definitions.names("task")


def test_all_mistakes_of_all_files_at_once(mistakes):
    messages = mistakes(
        a="tasks:\n  a: {dataset: {path: x}, metrics: [acc], metrcs: [auc]}\n",
        b="taks: {}\nmodels:\n  m: {version: 1.10}\n  m: {}\n",
        c="a: [\n",
    )
    assert [message.rpartition(": ")[0] for message in messages[:5]] == [
        "a.yaml:2: tasks.a.metrcs",
        "b.yaml:1: taks",
        "b.yaml:3: models.m.use",
        "b.yaml:3: models.m.version",
        "b.yaml:4: models.m",
    ]
    assert messages[5].startswith("c.yaml:2: ")
    assert len(messages) == 6


def test_lines_of_nested_mistakes(reports):
    text = """
datasets:
  toy:
    sources:
      - folder: toy
      - package: p
        membr: x.csv
      - url: u
        file: x
"""
    reports(
        text,
        ("7: datasets.toy.sources[1].membr", '"member"'),
        ("8: datasets.toy.sources[2].sha256", "missing"),
        ("9: datasets.toy.sources[2].file", "unknown key"),
    )


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ("- a\n", "1", "a list"),
        ("just text\n", "1", '"just text"'),
        ("zzz: {}\n", "1: zzz", "models, tasks"),
        ("tasks: [a]\n", "1: tasks", "a list"),
        ("tasks: {a: b}\n", "1: tasks.a", '"b"'),
        ("tasks:\n  a:\n", "2: tasks.a", "null"),
        ("constraints:\n  31: {}\n", "2: constraints.31", "quotes"),
        ("datasets:\n  a: {}\n", "2: datasets.a", "path, sources, load"),
    ],
)
def test_shapes(reports, text, place, word):
    reports(text, (place, word))


@pytest.mark.parametrize("name", ["../x", "a/b", "a:b", "-m", ".x", "a\\\\b", "a\\n", "a "])
def test_invalid_names(mistakes, name):
    (message,) = mistakes(f'constraints: {{"{name}": {{max_folds: 1}}}}')
    assert "name must not" in message


def test_names_with_dots_and_empty_files_and_sections(load):
    assert load("constraints: {v1.5 small: {max_folds: 1}}").names("constraints") == ["v1.5 small"]
    assert load(a="", b="tasks:\nmodels: {}\n").names("tasks") == []


def test_a_name_is_defined_once(mistakes):
    texts = {
        "a": "constraints:\n  c: {max_folds: 1}\n",
        "b": "\nconstraints:\n\n  c: {max_folds: 2}\n",
    }
    (message,) = mistakes(**texts)
    assert message.startswith("b.yaml:4: constraints.c: ") and "(a.yaml:2)" in message


def test_a_user_cannot_override_a_built_in_entry(mistakes, load, monkeypatch):
    supplied = SourceFile("karat/config/builtin/constraints.yaml", Path("/lib"), supplied=True)
    content = b"constraints:\n  test: {max_folds: 2}\n"
    monkeypatch.setattr(loading, "builtin_files", lambda: ([(supplied, content)], []))
    (message,) = mistakes("constraints: {test: {max_folds: 1}}")
    assert message.startswith("my.yaml:1: constraints.test: ")
    assert "(karat/config/builtin/constraints.yaml:2)" in message
    mine = load("constraints: {mine: {extends: test, max_rows: 5}}")
    assert mine.get("constraints", "mine")["max_folds"] == 2
    assert mine.folder("constraints", "test") == Path("/lib")


def test_origins_of_every_leaf(load):
    definitions = load(
        a="""datasets:
  a:
    path: a.csv
    drop: [x,
      y]
    options: {sep: ";", deep: {}}
""",
        b="datasets:\n  b:\n    extends: a\n    options:\n      sep: ','\n",
    )
    assert definitions.origins("datasets", "b") == {
        ("path",): "a.yaml:3",
        ("drop", 0): "a.yaml:4",
        ("drop", 1): "a.yaml:5",
        ("options", "sep"): "b.yaml:5",
        ("options", "deep"): "a.yaml:6",
    }


def test_folders_for_relative_paths(alone):
    (alone / "base").mkdir()
    (alone / "base" / "a.yaml").write_text("datasets: {a: {path: a.csv}}")
    (alone / "b.yaml").write_text("datasets: {b: {extends: a, target: y}}")
    definitions = Definitions.load(["base", "b.yaml"])
    assert definitions.folder("datasets", "a") == alone / "base"
    assert definitions.folder("datasets", "b") == alone
    assert definitions.folder("datasets", "b", "path") == alone / "base"
    assert definitions.folder("datasets", "b", "target") == alone


def test_unknown_tasks_models_and_datasets(reports):
    text = """
datasets: {churn: {path: x.csv}}
tasks:
  churn: {dataset: chrun, metrics: [acc]}
models: {letters: {use: "my:Letters"}}
suites:
  mine:
    tasks:
      - churn
      - chrn
    models: [letters, lettres]
"""
    reports(
        text,
        ("4: tasks.churn.dataset", '"churn"'),
        ("10: suites.mine.tasks[1]", '"churn"'),
        ("11: suites.mine.models[1]", '"letters"'),
    )


def test_registered_parts_are_known_and_paths_are_not_looked_up(load, monkeypatch):
    models, datasets = Registry("model"), Registry("dataset")
    models.register("mine", "a:A")
    datasets.register("mine", "a:B")
    monkeypatch.setattr(loading, "_REGISTRIES", {"models": models, "datasets": datasets})
    load("""
tasks: {t: {dataset: mine, metrics: [a]}, u: {dataset: {load: "my.data:load"}, metrics: [a]}}
suites:
  s: {tasks: [t, u], models: [mine, "my.mod:Model", vectors.txt, ./folder/file, "data:x"]}
""")


def test_an_abstract_entry_cannot_be_used(reports):
    text = "datasets: {d: {abstract: true}}\ntasks: {t: {dataset: d, metrics: [acc]}}\n"
    reports(text, ("2: tasks.t.dataset", "abstract"))


def test_names_of_an_unreadable_file_are_not_reported_as_unknown(mistakes):
    messages = mistakes(
        a="tasks: {t: {dataset: d, metrics: [acc]}, u: {extends: gone, metrics: [acc]}}",
        b="datasets: {d: {path: 'x}}",
    )
    assert len(messages) == 1
    assert messages[0].startswith("b.yaml:1: ")


def test_built_in_definitions_are_valid_and_can_be_shown():
    definitions = Definitions.load()
    definitions.validate_all()
    for section in ("models", "tasks", "suites", "datasets", "constraints"):
        for name in definitions.names(section, abstract=True):
            definitions.get(section, name)
            assert definitions.show(section, name)


def test_no_scientific_library_is_imported():
    code = (
        "import sys; from karat.config import Definitions; Definitions.load(); "
        "print([m for m in ('numpy', 'pandas', 'sklearn', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- ``extends`` and ``for_each``: merged values, generated entries, and the mistakes in them -----


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
        a="constraints: {c: {extends: b, max_folds: 1}}",
        b="constraints: {b: {extends: z, max_rows: 2}, z: {description: far}}",
    )
    found = definitions.get("constraints", "c")
    assert (found["max_folds"], found["max_rows"], found["description"]) == (1, 2, "far")


def test_later_parents_override_earlier_ones_and_null_clears(load):
    text = """
constraints:
  a: {max_folds: 1, max_rows: 1, description: a}
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
    assert (found["max_folds"], found["max_rows"], found["description"]) == (1, 2, "c")
    assert definitions.get("constraints", "d")["max_rows"] == 1
    assert definitions.get("constraints", "diamond")["description"] == "a"
    cleared = definitions.get("tasks", "b")
    assert (cleared["corruptions"], cleared["max_rows"]) == ({}, None)


def test_a_missing_parent(reports):
    text = TASKS + "  churn:\n    extends: knd\n    metrcs: [acc]\n"
    reports(text, ("5: tasks.churn.extends", '"kind"'), ("6: tasks.churn.metrcs", '"metrics"'))
    text = "constraints: {a: {max_folds: 1}}\nsuites:\n  b: {extends: a}\n"
    reports(text, ("3: suites.b.extends", '"a"'))


def test_circular_inheritance(reports):
    text = """
constraints:
  far: {extends: a}
  a: {extends: b}
  b: {extends: [c]}
  c: {extends: a, folds: 1}
"""
    circle = ("6: constraints.c.extends", "a -> b -> c -> a")
    reports(text, circle, ("6: constraints.c.folds", '"max_folds"'))
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
    folds: 3
  other: {extends: parent}
"""
    reports(text, ("5: constraints.parent.folds", '"max_folds"'))


def chain(numbers):
    entries = [
        f"  c{i}: {{extends: c{i - 1}}}\n" if i else "  c0: {max_folds: 7}\n" for i in numbers
    ]
    return "constraints:\n" + "".join(entries)


def test_long_chains(load, mistakes):
    assert load(chain(range(100))).get("constraints", "c99")["max_folds"] == 7
    assert load(chain(reversed(range(100)))).get("constraints", "c99")["max_folds"] == 7
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
    reports('constraints: {"c{n}": {max_folds: 1}}', ("1: constraints.c{n}", "braces"))


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
    max_folds: "{n}"
    description: "{n} folds"
"""
    origins = load(text).origins("constraints", "c2")
    assert origins == {("max_folds",): "my.yaml:6", ("description",): "my.yaml:8"}


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
