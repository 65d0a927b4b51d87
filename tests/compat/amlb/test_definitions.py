"""Files of the AutoML Benchmark given as definitions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from karat.compat.amlb.definitions import MODULES
from karat.config.catalog import Catalog
from karat.config.loading import Definitions
from karat.errors import DefinitionError

FRAMEWORKS = """---
__dummy_framework_with_defaults:
  version: ''
  module:
  params: {}
  image: {author: them, image: , tag: }

constantpredictor:
  version: '0.24.1'
  project: https://example.org/dummy
RandomForest:
  version: stable
  setup_args: [stable]
  params:
    n_estimators: 400
    options: {criterion: entropy}
RandomForest_small:
  extends: randomforest
  description: few trees
  params:
    n_estimators: 30
    _save_artifacts: [info]
    _step_size: 5
autosklearn:
  version: latest
  setup_cmd: pip install it
autosklearn_debug:
  extends: autosklearn
  params: {_save_artifacts: [models]}
autosklearn_as_tree:
  extends: autosklearn
  module: frameworks.decisiontree
autoxgboost:
  removed: not maintained any more.
pattern:
  abstract: true
  module: frameworks.RandomForest
mine:
  module: karat.models.tabular_encoders:RandomEncoder
"""
CONSTRAINTS = """
test: {folds: 2, max_runtime_seconds: 600, cores: 4}
short: {max_runtime_seconds: 2, cores: -1, max_mem_size_mb: -1, ec2_volume_type: gp3}
"""
BENCHMARK = """---
- name: __defaults__
  folds: 2
  max_runtime_seconds: 60
  cores: -1

- name: shop
  dataset: shop.csv
  metric: [auc, acc]
- name: sizes
  folds: 3
  dataset: {path: sizes.csv, type: regression, target: y}
  min_vol_size_mb: -1
- name: iris
  openml_task_id: 59
  metric: logloss
- name: m4
  dataset: {path: m4.csv, type: timeseries, freq: H}
- name: asleep
  enabled: false
  dataset: x.csv
- name: odd
  dataset: shop.csv
  metric: [acc, aucc]
- name: nothing
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Load texts as files, with all that comes with the library."""
    monkeypatch.chdir(tmp_path)

    def made(**texts: str) -> Definitions:
        for name, text in texts.items():
            Path(f"{name}.yaml").write_text(text)
        return Definitions.load([f"{name}.yaml" for name in texts])

    return made


@pytest.fixture
def wrong(read):
    def made(**texts: str) -> list[str]:
        with pytest.raises(DefinitionError) as caught:
            read(**texts)
        return list(caught.value.messages)

    return made


def test_a_framework_replaces_the_built_in_one(read):
    found = read(frameworks=FRAMEWORKS).get("models", "RandomForest")
    assert found["use"] == "karat.models.automl:BudgetForest" and found["role"] == "predictor"
    assert found["params"] == {"n_estimators": 400, "options": {"criterion": "entropy"}}
    # results.csv records the installed version, not the one in the file
    assert found["version"] is None


def test_extends_in_any_case_with_params_merged_and_artifacts_apart(read):
    definitions = read(frameworks=FRAMEWORKS)
    found = definitions.get("models", "RandomForest_small")
    assert found["params"] == {
        "n_estimators": 30,
        "options": {"criterion": "entropy"},
        "step_size": 5,
    }
    assert found["artifacts"] == ["info"] and found["description"] == "few trees"
    places = definitions.origins("models", "RandomForest_small")
    assert places["params", "n_estimators"] == "frameworks.yaml:21"
    assert places["params", "options", "criterion"] == "frameworks.yaml:16"


def test_an_unavailable_framework_is_refused_only_when_selected(read):
    definitions = read(frameworks=FRAMEWORKS)
    for name in ("autosklearn", "autosklearn_debug"):
        with pytest.raises(DefinitionError, match=r"^frameworks\.yaml:25: .*constantpredictor"):
            definitions.chosen("models", name)
    with pytest.raises(DefinitionError, match=r"^frameworks\.yaml:34: .*not maintained"):
        definitions.chosen("models", "autoxgboost")
    named = definitions.names("models")
    assert not {"autosklearn", "autosklearn_debug", "__dummy_framework_with_defaults"} & {*named}
    assert "pattern" not in named and "RandomForest_small" in named


@pytest.mark.parametrize(
    ("name", "use"), [("autosklearn_as_tree", "automl:OneTree"), ("mine", ":RandomEncoder")]
)
def test_module_of_a_child_and_a_class_as_module(read, name, use):
    assert read(frameworks=FRAMEWORKS).chosen("models", name)["use"].endswith(use)


def test_every_module_has_its_pattern_and_its_framework(read):
    definitions = read()
    for module, pattern in MODULES.items():
        assert module == pattern.lower()
        assert definitions.get("models", pattern)["abstract"]
        assert definitions.get("models", pattern.partition(".")[2])["role"] == "predictor"


def test_params_given_to_a_defined_model_go_on_top(read):
    read(frameworks=FRAMEWORKS)
    model = Catalog("frameworks.yaml").model(
        "RandomForest", params={"options": {"max_leaf_nodes": 9}}
    )
    assert model.params == {
        "n_estimators": 400,
        "options": {"criterion": "entropy", "max_leaf_nodes": 9},
    }
    assert model.version and model.version[0].isdigit()  # scikit-learn's


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("{a: {module: frameworks.RandomForest, parms: {}}}", 'models.a.parms: .*"params"'),
        ("{a: {version: x, params: 3}}", "models.a.params: .*the number 3"),
        (
            "{a: {version: x, params: {_save_artifacts: [1]}}}",
            "models.a.params._save_artifacts: .*list",
        ),
        ("{a: {version: x, params: {_n_jobs: 1}}}", "models.a.params._n_jobs: .*_k_folds"),
        ("{a: {extends: nobody}}", 'models.a.extends: .*"nobody"'),
        ("{a: {extends: b}, b: {extends: a}}", "models...extends: .*a -> b|b -> a"),
        ("{random-forest: {version: x}}", 'models.random-forest: .*"random-forest"'),
        ("{a: {folds: x}}", "constraints.a.folds: .*-1"),
        ("{a: {folds: 0}}", "constraints.a.folds: .*-1"),
        ("{a: {fold: 1, cores: 2}}", 'constraints.a.fold: .*"folds"'),
        ("[{name: a, folds: 2, dataset: 7}]", "tasks.my.a.dataset: .*the number 7"),
        ("[{name: a, datset: x}]", 'tasks.a.datset: .*"dataset"'),
        ("[{name: a, dataset: x}, {name: A, dataset: y}]", "tasks.A.name: .*unique"),
        ("[{name: a, dataset: {path: x, type: odd}}]", "tasks.my.a.dataset.type: .*multiclass"),
        ("[{name: a, dataset: {pth: x}}]", 'dataset.pth: .*"path"'),
        ("[{name: a, openml_task_id: x}]", "tasks.my.a.openml_task_id: .*OpenML"),
        ("[{name: a, dataset: x, metric: [1]}]", "tasks.my.a.metric: .*list"),
        ("[{name: a, openml_task_id: 59}, {openml_task_id: 61}]", "tasks: task 2 "),
        ("[1, 2]", "models, tasks"),
        ("{modles: {a: {use: b}}}", 'modles: .*"models"'),
        ("{constrants: {folds: {folds: 1}}}", "constrants: .*section"),
    ],
)
def test_mistakes_with_file_line_and_key(wrong, text, pattern):
    assert any(re.search(f"^my.yaml:1: .*{pattern}", message) for message in wrong(my=text))


def test_keys_of_tasks_that_have_no_effect_are_accepted(read):
    keys = "min_vol_size_mb: 9, quantile_levels: [0.5], ec2_instance_type: m5, ec2_volume_type: gp3"
    definitions = read(mine=f"- {{name: a, dataset: x.csv, {keys}}}\n- {{name: b, dataset: x.csv}}")
    assert definitions.get("suites", "mine")["tasks"] == ["mine.a", "mine.b"]
    one, other = (dict(definitions.get("tasks", f"mine.{name}")) for name in "ab")
    assert {**one, "called": ""} == {**other, "called": ""}


def test_constraints_have_all_keys_optional_and_minus_one_is_no_limit(read):
    definitions = read(constraints=CONSTRAINTS)
    ours = definitions.get("constraints", "test")
    assert (ours["folds"], ours["max_runtime_seconds"], ours["cores"]) == (2, 600, 4)
    short = definitions.get("constraints", "short")
    assert short["max_runtime_seconds"] == 2
    assert [short[key] for key in ("folds", "cores", "max_mem_size_mb")] == [None] * 3
    assert definitions.get("constraints", "1h8c")["cores"] == 8


def test_a_benchmark_is_a_suite_called_like_its_file(read):
    definitions = read(mine=BENCHMARK)
    suite = definitions.get("suites", "mine")
    assert suite["tasks"] == ["mine.shop", "mine.sizes", "mine.iris"]
    expected = {
        "m4": ("mine.yaml:18: ", "time series"),
        "asleep": ("mine.yaml:20: ", "not enabled"),
        "odd": ("mine.yaml:24: ", '"auc"'),
        "nothing": ("mine.yaml:25: ", "openml_task_id"),
    }
    assert suite["left_out"].keys() == expected.keys()
    for name, (place, word) in expected.items():
        assert suite["left_out"][name].startswith(place) and word in suite["left_out"][name]


def test_a_task_goes_before_the_defaults(read):
    definitions = read(mine=BENCHMARK)
    shop, sizes = (definitions.get("tasks", f"mine.{name}") for name in ("shop", "sizes"))
    assert (shop["folds"], sizes["folds"]) == (2, 3)
    assert shop["max_runtime_seconds"] == sizes["max_runtime_seconds"] == 60
    assert shop["cores"] is None
    assert shop["metrics"] == ["auc", "acc"] and shop["called"] == "shop"
    assert sizes["metrics"] is None
    assert sizes["usual"]["regression"] == ["rmse", "r2", "mae"]
    assert sizes["usual"]["multiclass"][0] == "logloss"
    assert definitions.origins("tasks", "mine.shop")["folds",] == "mine.yaml:3"
    assert definitions.origins("tasks", "mine.sizes")["folds",] == "mine.yaml:11"


def test_selecting_a_skipped_task(read):
    read(mine=BENCHMARK)
    catalog = Catalog("mine.yaml")
    with pytest.raises(DefinitionError, match="time series"):
        catalog.task("mine.m4")
    with pytest.warns(UserWarning, match="mine.yaml") as warned:
        assert [task.name for task in catalog.suite("mine")] == ["shop", "sizes", "iris"]
    assert len(warned) == 4


def test_a_benchmark_without_runnable_tasks(read):
    read(mine="[{name: a}]")
    with pytest.raises(DefinitionError) as caught:
        Catalog("mine.yaml").suite("mine")
    assert '"mine"' in caught.value.messages[0] and "openml_task_id" in caught.value.messages[1]


def test_the_shipped_constraints():
    names = ("test", "1h4c", "1h8c", "4h8c", "8h8c", "1h8c_gp3", "4h8c_gp3")
    definitions = Catalog().definitions
    found = [definitions.get("constraints", name) for name in names]
    assert [each["folds"] for each in found] == [2, *[10] * 6]
    assert [each["max_runtime_seconds"] for each in found[1:]] == [
        3600,
        3600,
        14400,
        28800,
        3600,
        14400,
    ]
    assert [each["cores"] for each in found[1:]] == [4, *[8] * 5]
    assert [each["min_vol_size_mb"] for each in found[2:]] == [16384, 65536, 131072, 100000, 100000]
