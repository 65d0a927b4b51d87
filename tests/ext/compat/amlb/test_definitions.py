"""Files of the AutoML Benchmark given as definitions."""

from __future__ import annotations

import re
import tarfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from karat.config.catalog import Catalog
from karat.config.loading import Definitions
from karat.core.files import cache_folder
from karat.data import archives
from karat.data.load_dataset import load_dataset
from karat.errors import DataError, DefinitionError, Unavailable
from karat.execution.splits import split
from karat.ext.compat.amlb.definitions import MODULES, amlb_table

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
        """Return the mistakes of files, and the reasons why their entries cannot be selected."""
        try:
            definitions = read(**texts)
        except DefinitionError as error:
            return list(error.messages)
        return list(reasons(definitions))

    return made


def reasons(definitions: Definitions) -> Iterator[str]:
    """Yield why models, tasks and constraints cannot be selected."""
    for section, choose in (
        ("models", definitions.chosen),
        ("tasks", definitions.chosen),
        ("constraints", definitions.get),
    ):
        hidden = {*definitions.names(section, abstract=True)} - {*definitions.names(section)}
        for name in sorted(hidden):
            try:
                choose(section, name)
            except DefinitionError as error:
                yield from error.messages


def test_a_framework_replaces_the_built_in_one(read):
    found = read(frameworks=FRAMEWORKS).get("models", "RandomForest")
    assert found["use"] == "karat.ext.models.automl:BudgetForest" and found["role"] == "predictor"
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
        ("{a: {extends: flaml, params: {_n_jobs: 1}}}", "models.a.params._n_jobs: .*_k_folds"),
        ("{a: {extends: nobody}}", 'models.a.extends: .*"nobody"'),
        ("{a: {extends: b}, b: {extends: a}}", "models...extends: .*a -> b|b -> a"),
        ("{random-forest: {version: x}}", '"random-forest" needs'),
        ("{a: {folds: x}}", "constraints.a.folds: .*-1"),
        ("{a: {folds: 0}}", "constraints.a.folds: .*-1"),
        ("{a: {fold: 1, cores: 2}}", 'constraints.a.fold: .*"folds"'),
        ("[{name: a, folds: 2, dataset: 7}]", "tasks.my.a.dataset: .*the number 7"),
        ("[{name: a, datset: x}]", 'tasks.my.a.datset: .*"dataset"'),
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
    assert (ours["max_folds"], ours["max_runtime_seconds"], ours["cores"]) == (2, 600, 4)
    short = definitions.get("constraints", "short")
    assert short["max_runtime_seconds"] == 2
    assert [short[key] for key in ("max_folds", "cores", "max_mem_size_mb")] == [None] * 3
    assert definitions.get("constraints", "1h8c")["cores"] == 8


def test_a_benchmark_is_a_suite_called_like_its_file(read):
    definitions = read(mine=BENCHMARK)
    suite = definitions.get("suites", "mine")
    assert suite["tasks"] == ["mine.shop", "mine.sizes", "mine.iris"]
    expected = {
        "m4": ("mine.yaml:18: ", "time series"),
        "odd": ("mine.yaml:24: ", '"auc"'),
        "nothing": ("mine.yaml:25: ", "openml_task_id"),
    }
    assert suite["left_out"].keys() == expected.keys()
    for name, (place, word) in expected.items():
        assert suite["left_out"][name].startswith(place) and word in suite["left_out"][name]
    # the file excludes it: a reason where it is selected, not a note in every run
    assert "mine.yaml:20: " in definitions.get("tasks", "mine.asleep")["refuse"]


def test_a_task_goes_before_the_defaults(read):
    definitions = read(mine=BENCHMARK)
    shop, sizes = (definitions.get("tasks", f"mine.{name}") for name in ("shop", "sizes"))
    assert (shop["max_folds"], sizes["max_folds"]) == (2, 3)
    assert shop["max_runtime_seconds"] == sizes["max_runtime_seconds"] == 60
    assert shop["cores"] is None
    assert shop["metrics"] == ["auc", "acc"] and shop["called"] == "shop"
    assert sizes["metrics"] is None
    assert sizes["usual"]["regression"] == ["rmse", "r2", "mae"]
    assert sizes["usual"]["multiclass"][0] == "logloss"
    assert definitions.origins("tasks", "mine.shop")["max_folds",] == "mine.yaml:3"
    assert definitions.origins("tasks", "mine.sizes")["max_folds",] == "mine.yaml:11"


def test_selecting_a_skipped_task(read):
    read(mine=BENCHMARK)
    catalog = Catalog("mine.yaml")
    with pytest.raises(DefinitionError, match="time series"):
        catalog.task("mine.m4")
    with pytest.warns(UserWarning, match="mine.yaml") as warned:
        assert [task.name for task in catalog.suite("mine")] == ["shop", "sizes", "iris"]
    assert len(warned) == 3


def test_a_benchmark_without_runnable_tasks(read):
    read(mine="[{name: a}]")
    with pytest.raises(DefinitionError) as caught:
        Catalog("mine.yaml").suite("mine")
    assert '"mine"' in caught.value.messages[0] and "openml_task_id" in caught.value.messages[1]


def test_the_shipped_constraints():
    names = ("test", "1h4c", "1h8c", "4h8c", "8h8c", "1h8c_gp3", "4h8c_gp3")
    definitions = Catalog().definitions
    found = [definitions.get("constraints", name) for name in names]
    assert [each["max_folds"] for each in found] == [2, *[10] * 6]
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


# -- Datasets in the formats of the AutoML Benchmark ----------------------------------------------


pytestmark = pytest.mark.usefixtures("download_settings")


HOW = {"use": "karat.ext.compat.amlb.definitions:amlb_folds", "folds": 4}


def csv(first: int, rows: int, last: str = "y") -> str:
    """Return a table whose x counts from ``first``, with alternating classes a and B."""
    lines = [f"{i},{i % 3},{'aB'[i % 2]}" for i in range(first, first + rows)]
    return "\n".join([f"x,k,{last}", *lines, ""])


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def xs(data, rows) -> list[int]:
    return data.take(rows).frame()["x"].tolist()


def test_single_file_is_cut_into_stratified_folds(here):
    Path("t.csv").write_text(csv(0, 40))
    data = amlb_table("t", "t.csv")
    folds = split(data, HOW, 42)
    assert data.classes == ("B", "a") and len(folds) == 4
    assert sorted(row for fold in folds for row in fold.test) == list(range(40))
    for fold in folds:
        assert sorted(data.target[fold.test].tolist()) == ["B"] * 5 + ["a"] * 5
    assert list(data.items.columns) == ["x", "k"]


@pytest.mark.parametrize(
    ("columns", "facts", "target"),
    [
        ("a,Target,class", {}, "Target"),
        ("CLASS,b,c", {}, "CLASS"),
        ("a,b,c", {}, "c"),
        ("a,b,target", {"target": "b"}, "b"),
        ("a,b,target", {"target": 0}, "a"),
    ],
)
def test_which_column_is_the_target(here, columns, facts, target):
    Path("t.csv").write_text(f"{columns}\nu,v,w\nv,w,u\nu,w,w\n")
    data = amlb_table("t", {"path": "t.csv", **facts})
    assert list(data.items.columns) == [c for c in columns.split(",") if c != target]


def test_labels_are_not_converted(here):
    Path("t.csv").write_text("x,y\n1,NA\n2,None\n3,na\n4,NA\n")
    assert amlb_table("t", "t.csv").target.tolist() == ["NA", "None", "na", "NA"]


def test_type_is_given_or_inferred_with_a_warning(here):
    Path("t.csv").write_text("x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(30)))
    with pytest.warns(UserWarning, match='"y" has integers; assuming regression'):
        assert amlb_table("t", "t.csv").kind == "regression"
    Path("b.csv").write_text("x,y\n1,True\n2,False\n3,True\n4,False\n")
    assert amlb_table("b", "b.csv").kind == "classification"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = amlb_table("t", {"path": "t.csv", "type": "regression"})
        assert data.kind == "regression" and data.target.dtype.kind in "if"
        assert amlb_table("t", {"path": "t.csv", "type": "binary"}).classes == ("0", "1")
        Path("f.csv").write_text("x,y\n1,0.5\n2,1.5\n3,2.25\n")
        assert amlb_table("f", "f.csv").kind == "regression"


def test_arff_parquet_and_features(here):
    pytest.importorskip("pyarrow")
    Path("t.arff").write_text(
        "@relation t\n@attribute x real\n@attribute class {a,B}\n@attribute z real\n@data\n"
        "1,a,3\n2,B,4\n3,a,5\n"
    )
    pd.DataFrame({"x": [1.5, 2, 3], "w": [0, 0, 1], "y": ["a", "b", "a"]}).to_parquet("t.parquet")
    assert amlb_table("t", "t.arff").target.tolist() == ["a", "B", "a"]
    data = amlb_table("t", {"path": "t.parquet", "features": ["x"]})
    assert list(data.items.columns) == ["x"] and data.target.tolist() == ["a", "b", "a"]
    data = amlb_table("t", {"path": "t.parquet", "features": [{"name": "w", "data_type": "int"}]})
    assert list(data.items.columns) == ["w"]


def pairs(count: int = 2) -> list[str]:
    """Write ``count`` pairs: fold i trains on x from 100 i and tests x from 100 i + 50."""
    files = []
    for i in range(count):
        for part, first, rows in (("train", 100 * i, 6), ("test", 100 * i + 50, 3)):
            files.append(f"d_{part}_{i}.csv")
            Path(files[-1]).write_text(csv(first, rows))
    return files


def check_folds(data, count: int = 2) -> None:
    folds = split(data, HOW, 1)
    assert len(folds) == count
    for i, fold in enumerate(folds):
        assert xs(data, fold.train) == list(range(100 * i, 100 * i + 6))
        assert xs(data, fold.test) == list(range(100 * i + 50, 100 * i + 53))


@pytest.mark.parametrize("form", ["list", "both", "path", "folder", "zip", "tar", "nested"])
def test_lists_folders_and_archives_keep_their_folds(here, form):
    files = pairs()
    Path("inside/deep").mkdir(parents=True)
    for file in files:
        Path("inside/deep" if form == "nested" else "inside", file).write_text(
            Path(file).read_text()
        )
    with zipfile.ZipFile("d.zip", "w") as made:
        for file in files:
            made.write(file, f"d/{file}")
        made.writestr("__MACOSX/._d_train_0.csv", "x")
    with tarfile.open("d.tar.gz", "w:gz") as made_tar:
        for file in files:
            made_tar.add(file)
    dataset = {
        "list": files,
        "both": {"train": files[::2], "test": files[1::2]},
        "path": {"path": {"train": files[::2], "test": files[1::2]}, "target": "y"},
        "folder": "inside",
        "nested": "inside",
        "zip": "d.zip",
        "tar": {"path": "d.tar.gz", "type": "binary"},
    }[form]
    check_folds(amlb_table("d", dataset))


def test_one_pair_and_a_label_that_only_the_test_file_has(here):
    Path("train.csv").write_text("x,y\n1,a\n2,B\n")
    Path("test.csv").write_text("x,y\n3,c\n4,a\n")
    data = amlb_table("d", {"train": "train.csv", "test": "test.csv"})
    (fold,) = split(data, HOW, 1)
    assert data.classes == ("B", "a", "c") and data.target[fold.test].tolist() == ["c", "a"]


def test_folds_are_in_numeric_order(here):
    pairs(11)
    check_folds(amlb_table("d", str(here)), 11)


def test_folds_stay_valid_in_a_sample(here):
    data = amlb_table("d", pairs())
    few = data.sample(15, np.random.default_rng(0))
    for i, fold in enumerate(split(few, HOW, 1)):
        assert set(xs(few, fold.train)) <= set(range(100 * i, 100 * i + 6))
        assert set(xs(few, fold.test)) <= set(range(100 * i + 50, 100 * i + 53))


def test_relative_path_is_below_the_yaml_file(here):
    Path("deep").mkdir()
    Path("deep/t.csv").write_text(csv(0, 8))
    load = {"use": "karat.ext.compat.amlb.definitions:amlb_table", "dataset": "t.csv"}
    data = load_dataset("t", {"load": load}, here / "deep")
    assert len(data) == 8


def test_placeholders_refer_to_data_folders(here, monkeypatch):
    Path("store").mkdir()
    Path("store/t.csv").write_text(csv(0, 8))
    with pytest.raises(DataError, match="KARAT_DATA"):
        amlb_table("t", "{input}/t.csv")
    monkeypatch.setenv("KARAT_DATA", str(here / "store"))
    assert len(amlb_table("t", "{input}/t.csv")) == len(amlb_table("t", "{user}/t.csv")) == 8


def test_url_is_downloaded_once(stub, monkeypatch):
    address = stub.put("/d/t.csv", stub.body(csv(0, 8).encode()))
    assert len(amlb_table("t", address)) == len(amlb_table("t", address)) == 8
    assert stub.asked == ["/d/t.csv"]
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    assert len(amlb_table("t", address)) == 8
    with pytest.raises(Unavailable, match="KARAT_OFFLINE"):
        amlb_table("t", stub.address + "/other.csv")


def test_missing_and_unsupported_urls(stub):
    with pytest.raises(Unavailable, match="404"):
        amlb_table("t", stub.address + "/t.csv")
    assert not list((cache_folder() / "amlb").rglob("*.csv"))
    with pytest.raises(DataError, match="s3:"):
        amlb_table("t", "s3://bucket/t.csv")


def test_unsafe_archive(here):
    with zipfile.ZipFile("d.zip", "w") as made:
        made.writestr("a/../../out.csv", "x,y\n1,a\n")
    with pytest.raises(DataError, match="unsafe"):
        amlb_table("d", "d.zip")
    assert not list(cache_folder().rglob("*.csv")) and not Path("../out.csv").exists()


def test_archive_that_is_too_large(here, monkeypatch):
    with zipfile.ZipFile("d.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("d.csv", b"x" * 50_000)
    monkeypatch.setattr(archives, "LIMIT", 10_000)
    with pytest.raises(DataError, match=r"d\.zip"):
        amlb_table("d", "d.zip")
    with zipfile.ZipFile("many.zip", "w") as made:
        for i in range(10_001):
            made.writestr(f"{i}.txt", "")
    with pytest.raises(DataError, match="000"):
        amlb_table("d", "many.zip")
    assert not list(cache_folder().rglob("unpacked-*"))


@pytest.mark.parametrize(
    ("dataset", "kind", "word"),
    [
        (["a.csv"], DefinitionError, "files"),
        ({"train": ["a.csv", "b.csv"], "test": "a.csv"}, DefinitionError, "2 train and 1 test"),
        ({"train": "a.csv"}, DefinitionError, "train"),
        ({"target": "y"}, DefinitionError, "train"),
        ({"path": 3}, DefinitionError, "path"),
        ({"train": "a.csv", "test": "a.csv"}, DataError, "train"),
        ("a.cvs", DataError, r'"a\.csv"'),
        ("a.txt", DataError, r"\.parquet"),
        ({"path": "a.csv", "target": "z"}, DataError, '"z" is not a column'),
        ({"path": "a.csv", "target": 9}, DefinitionError, "there is no column 9"),
        ({"path": "a.csv", "type": "timeseries"}, DefinitionError, '"timeseries"'),
        ({"path": "three.csv", "type": "binary"}, DataError, '"y"'),
        ({"path": "a.csv", "features": [1]}, DefinitionError, "features"),
        ({"path": "a.csv", "features": ["q"]}, DataError, '"q" is not a column'),
        ({"train": "a.csv", "test": "other.csv"}, DataError, '"k"'),
        ("lonely", DataError, r"d_train_1\.csv"),
        ("crowd", DataError, r"X_train\.csv"),
        ("empty", DataError, "tables"),
    ],
)
def test_invalid_definitions(here, dataset, kind, word):
    Path("a.csv").write_text(csv(0, 8))
    Path("a.txt").write_text("x")
    Path("other.csv").write_text("x,y\n1,a\n2,B\n")
    Path("three.csv").write_text("x,y\n1,a\n2,b\n3,c\n")
    for folder, files in {
        "lonely": ("d_train_0.csv", "d_test_0.csv", "d_train_1.csv"),
        "crowd": ("a.csv", "b.csv"),
        "empty": (),
    }.items():
        Path(folder).mkdir()
        for file in files:
            Path(folder, file).write_text(csv(0, 4))
    with pytest.raises(kind, match=word):
        amlb_table("d", dataset)


# -- files with the structure of those that it ships -------------------------------------------

SHIPPED = {
    # a template, a removed one, one with parameters of its wrapper, children of others
    "frameworks.yaml": """\
__template: {version: '', module: , setup_args: '', params: {}, image: {author: me, tag: }}
Grower: {version: stable, refs: ['https://example.org'], params: {_telemetry: "on"}}
Grower_best: {extends: Grower, params: {presets: best, _askl: true}}
old_one: {removed: Use another one.}
RandomForest: {version: stable, params: {n_estimators: 2000}}
TunedRandomForest: {version: stable, params: {n_estimators: 2000, _tuning: {max: 3}}}
constantpredictor: {version: stable}
""",
    # entries of a tag, of which some extend what only the other file has
    "frameworks_stable.yaml": """\
Grower: {version: '1.2', setup_args: ['1.2', mine], setup_cmd: '{pip} install x'}
Orphan: {extends: Nobody}
H2OAutoML_blending: {extends: H2OAutoML}
H2OAutoML_nightly: {module: frameworks.H2OAutoML}
Loop: {extends: Loop, module: frameworks.DecisionTree}
""",
    "test.yaml": """\
- {name: __dummy, enabled: false, openml_task_id: 0, metric: [null, acc], ec2_instance_type: m5}
- {name: __defaults__, max_runtime_seconds: 90, cores: 2, folds: 2}
- {name: kc2, openml_task_id: 3913, description: two}
""",
    "mine.yaml": """\
- {name: later, openml_task_id: -1, openml_data_id: 41147, enabled: false}
- {name: series, dataset: {path: a.csv, type: timeseries, freq: H}, quantile_levels: [0.5]}
- {name: now, openml_task_id: 59}
""",
    "constraints.yaml": """\
1h: {folds: 10, max_runtime_seconds: 3600, cores: 8, min_vol_size_mb: 99, ec2_volume_type: gp3}
30m: {folds: 2, max_runtime_seconds: 1800, cores: 4, ec2_instance_type: c5}
""",
    "config.yaml": """\
project_repository: https://example.org
job_scheduler: {parallel_jobs: 1}
container: &container {force_branch: true}
docker: {<<: *container, run_as: default}
aws: {region: ''}
""",
}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_file_of_its_structure_is_read_whole(tmp_path, name):
    path = tmp_path / name
    path.write_text(SHIPPED[name])
    if name == "config.yaml":  # it has no definitions: that is said, and stops nothing
        with pytest.warns(UserWarning, match="-X config=FILE"):
            ours = Catalog([path]).definitions.names("models")
        assert ours == Catalog().definitions.names("models")
        return
    definitions = Catalog([path]).definitions
    if name == "frameworks.yaml":
        assert Catalog([path]).model("constantpredictor").name == "constantpredictor"
        for refused in ("Grower", "Grower_best", "old_one", "TunedRandomForest"):
            with pytest.raises(DefinitionError, match=f"{name}:[0-9]"):
                Catalog([path]).model(refused)
        assert "__template" not in definitions.names("models", abstract=True)
    if name == "frameworks_stable.yaml":
        assert Catalog([path]).model("Loop").name == "Loop"  # its own parent: ignored
        with pytest.raises(DefinitionError, match="Nobody.*--define"):
            Catalog([path]).model("Orphan")
        with pytest.raises(DefinitionError, match="H2OAutoML") as refused:
            Catalog([path]).model("H2OAutoML_blending")
        assert "Did you mean" not in str(refused.value)
    if path.stem in ("test", "mine"):
        names = [task.name for task in Catalog([path]).suite(path.stem)]
        assert names == {"test": ["kc2"], "mine": ["now"]}[path.stem]
