import subprocess
import sys
import time
from pathlib import Path

import pytest

from karat import registry
from karat.definitions import Definitions, loader
from karat.definitions.places import SourceFile
from karat.errors import DefinitionError
from karat.registry import Registry

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
  brief: {folds: 1}
"""


def test_names_get_and_names_everywhere(load):
    definitions = load(WHOLE)
    assert definitions.names("tasks") == ["churn"]
    assert definitions.names("tasks", abstract=True) == ["churn", "kind"]
    assert definitions.names_everywhere("churn") == ["tasks", "datasets"]
    assert definitions.names_everywhere("nothing") == []
    assert definitions.get("suites", "mine")["tasks"] == ["churn"]
    assert definitions.get("tasks", "kind") == {
        "probe": "trained",
        "split": "kfold",
        "metrics": ["acc"],
        "abstract": True,
    }
    assert "abstract" not in definitions.get("tasks", "churn")


def test_what_is_got_is_a_new_dictionary(load):
    definitions = load(WHOLE)
    definitions.get("suites", "mine")["tasks"].append("changed")
    definitions.get("tasks", "kind")["metrics"].append("changed")
    assert definitions.get("suites", "mine")["tasks"] == ["churn"]
    assert definitions.get("tasks", "kind")["metrics"] == ["acc"]


def test_unknown_names_and_sections(load):
    definitions = load(WHOLE)
    with pytest.raises(DefinitionError) as caught:
        definitions.get("tasks", "chrun")
    assert caught.value.messages == (
        'there is no task "chrun". Did you mean "churn"?   (karat list tasks)',
    )
    with pytest.raises(DefinitionError) as caught:
        definitions.names("task")
    assert caught.value.messages == ('there is no section "task". Did you mean "tasks"?',)


def test_all_mistakes_of_all_files_at_once(mistakes):
    told = mistakes(
        a="tasks:\n  a: {dataset: {path: x}, metrics: [acc], metrcs: [auc]}\n",
        b="taks: {}\nmodels:\n  m: {version: 1.10}\n  m: {}\n",
        c="a: [\n",
    )
    assert told[:5] == [
        'a.yaml:2: tasks.a.metrcs: unknown key. Did you mean "metrics"?',
        'b.yaml:1: taks: unknown section. Did you mean "tasks"?',
        "b.yaml:3: models.m.use: is missing.",
        "b.yaml:3: models.m.version: must be text, not the number 1.10. Put it in quotes.",
        "b.yaml:4: models.m: stands twice, first in line 3.",
    ]
    assert told[5].startswith("c.yaml:2: not valid YAML: ")
    assert len(told) == 6


def test_lines_of_mistakes_deep_inside(mistakes):
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
    assert mistakes(text) == [
        'my.yaml:7: datasets.toy.sources[1].membr: unknown key. Did you mean "member"?',
        "my.yaml:8: datasets.toy.sources[2].sha256: is missing; a source with url needs it.",
        "my.yaml:9: datasets.toy.sources[2].file: does not go with url.",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "- a\n",
            "my.yaml:1: must be a mapping with the sections models, tasks, suites, datasets, "
            "constraints, not a list.",
        ),
        (
            "just text\n",
            "my.yaml:1: must be a mapping with the sections models, tasks, suites, datasets, "
            'constraints, not the text "just text".',
        ),
        (
            "zzz: {}\n",
            "my.yaml:1: zzz: unknown section. There are: models, tasks, suites, datasets, "
            "constraints.",
        ),
        (
            "tasks: [a]\n",
            "my.yaml:1: tasks: must be a mapping of names to definitions, not a list.",
        ),
        ("tasks: {a: b}\n", 'my.yaml:1: tasks.a: must be a mapping, not the text "b".'),
        ("tasks:\n  a:\n", "my.yaml:2: tasks.a: must be a mapping, not nothing."),
        (
            "constraints:\n  31: {}\n",
            "my.yaml:2: constraints.31: a name must be text; put it in quotes.",
        ),
        ("datasets:\n  a: {}\n", "my.yaml:2: datasets.a: needs one of path, sources, load."),
    ],
)
def test_shapes(mistakes, text, message):
    assert mistakes(text) == [message]


@pytest.mark.parametrize("name", ["../x", "a/b", "a:b", "-m", ".x", "a\\\\b", "a\\n", "a "])
def test_names_that_are_no_names(mistakes, name):
    (message,) = mistakes(f'constraints: {{"{name}": {{folds: 1}}}}')
    assert 'a name has no "/"' in message


def test_names_may_have_dots_and_spaces(load):
    assert load("constraints: {v1.5 small: {folds: 1}}").names("constraints") == ["v1.5 small"]


def test_empty_files_and_sections_are_fine(load):
    assert load(a="", b="tasks:\nmodels: {}\n").names("tasks") == []


def test_a_name_is_defined_once(mistakes):
    told = mistakes(a="constraints:\n  c: {folds: 1}\n", b="\nconstraints:\n\n  c: {folds: 2}\n")
    assert told == [
        'b.yaml:4: constraints.c: there is already a constraint "c" (a.yaml:2). '
        "Give this one another name; to build on that one, extends: c."
    ]


def test_a_user_overrides_nothing_silently(mistakes, load, monkeypatch):
    supplied = SourceFile("karat/definitions/constraints.yaml", Path("/lib"), supplied=True)
    content = b"constraints:\n  test: {folds: 2}\n"
    monkeypatch.setattr(loader, "builtin_files", lambda: ([(supplied, content)], []))
    assert mistakes("constraints: {test: {folds: 1}}") == [
        'my.yaml:1: constraints.test: there is already a constraint "test" '
        "(karat/definitions/constraints.yaml:2). "
        "Give this one another name; to build on that one, extends: test."
    ]
    mine = load("constraints: {mine: {extends: test, max_rows: 5}}")
    assert mine.get("constraints", "mine")["folds"] == 2
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


# -- names of other entries -----------------------------------------------------------------------


def test_unknown_tasks_models_and_datasets(mistakes):
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
    assert mistakes(text) == [
        'my.yaml:4: tasks.churn.dataset: there is no dataset "chrun". Did you mean "churn"?   '
        "(karat list datasets)",
        'my.yaml:10: suites.mine.tasks[1]: there is no task "chrn". Did you mean "churn"?   '
        "(karat list tasks)",
        'my.yaml:11: suites.mine.models[1]: there is no model "lettres". '
        'Did you mean "letters"?   (karat list models)',
    ]


def test_registered_models_and_datasets_are_known(load, monkeypatch):
    models, datasets = Registry("model"), Registry("dataset")
    models.register("mine", "a:A")
    datasets.register("mine", "a:B")
    monkeypatch.setattr(loader, "_REGISTRIES", {"models": models, "datasets": datasets})
    load("tasks: {t: {dataset: mine, metrics: [a]}}\nsuites: {s: {tasks: [t], models: [mine]}}")


def test_the_real_registries_are_asked():
    assert loader._REGISTRIES == {"models": registry.models, "datasets": registry.datasets}


def test_models_that_are_paths_are_not_looked_up(load):
    load("""
tasks: {t: {dataset: {load: "my.data:load"}, metrics: [a]}}
suites: {s: {tasks: [t], models: ["my.mod:Model", vectors.txt, ./folder/file, "data:x"]}}
""")


def test_what_is_abstract_cannot_be_named(mistakes):
    text = """
datasets: {d: {abstract: true}}
tasks: {t: {dataset: d, metrics: [acc]}}
"""
    assert mistakes(text) == [
        'my.yaml:3: tasks.t.dataset: the dataset "d" is abstract: extend it, and name that.'
    ]


def test_names_that_a_broken_file_may_define_are_not_called_unknown(mistakes):
    told = mistakes(
        a="tasks: {t: {dataset: d, metrics: [acc]}, u: {extends: gone, metrics: [acc]}}",
        b="datasets: {d: {path: 'x}}",
    )
    assert len(told) == 1
    assert told[0].startswith("b.yaml:1: not valid YAML")


# -- what comes with the library -------------------------------------------------------------------


def test_everything_that_comes_with_the_library_is_right():
    Definitions.load().validate_all()


def test_every_shipped_entry_can_be_got_and_shown():
    definitions = Definitions.load()
    for section in ("models", "tasks", "suites", "datasets", "constraints"):
        for name in definitions.names(section, abstract=True):
            definitions.get(section, name)
            assert definitions.show(section, name)


def test_hundreds_of_entries_load_quickly(alone):
    lines = ["tasks:", "  kind: {abstract: true, probe: trained, split: kfold, metrics: [acc]}"]
    for i in range(400):
        lines += [
            f"  task-{i}:",
            "    extends: kind",
            "    dataset:",
            f"      path: data/{i}.csv",
            "      target: y",
            f"    title: The task number {i}",
            "    corruptions: {noise: [0.1, 0.2, 0.3]}",
        ]
    (alone / "many.yaml").write_text("\n".join(lines))
    start = time.process_time()
    Definitions.load(["many.yaml"])
    assert time.process_time() - start < 1


def test_no_scientific_library_is_imported():
    code = (
        "import sys; from karat.definitions import Definitions; Definitions.load(); "
        "print([m for m in ('numpy', 'pandas', 'sklearn', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
