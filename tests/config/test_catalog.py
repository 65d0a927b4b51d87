"""The catalog: models, tasks, suites and datasets by name, and mistakes with their place."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import karat
from karat.config.catalog import Catalog, change_models, change_tasks, load_user_table, parse
from karat.core.dataset import Dataset
from karat.core.task import Suite, Task
from karat.errors import DataError, DefinitionError
from karat.models.out_of_fold import OutOfFold
from karat.models.tables.one_hot_table import OneHotTable


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [n for n in sys.modules if n.startswith("mine")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


@pytest.fixture
def defined(here):
    """Return a catalog with a YAML file."""

    def load(text):
        Path("my.yaml").write_text(text)
        return Catalog(["my.yaml"])

    return load


def test_models_by_name_path_class_and_object(here):
    Path("known.txt").write_text("a 1 2\n")
    Path("mine_a.py").write_text("class Mine:\n    def transform(self, items): return items\n")
    models = Catalog().models(["onehot", "known.txt", "mine_a:Mine", Ridge, OneHotTable()])
    assert [m.name for m in models] == ["onehot", "known", "Mine", "Ridge", "OneHotTable"]
    assert [m.role for m in models] == ["encoder"] * 3 + ["predictor", "encoder"]
    assert [m.name for m in Catalog().models("onehot")] == ["onehot"]
    assert [m.name for m in Catalog().models(Ridge())] == ["Ridge"]
    named = Catalog().models({"plain": Ridge(), "strong": Ridge(9.0), "one": "onehot"})
    assert [m.name for m in named] == ["plain", "strong", "one"]
    assert named[1].params["alpha"] == 9.0


def test_all_mistakes_are_reported_at_once(here):
    wanted = ["onehott", "nofile.txt", "no_module:Thing", 5, "onehot", "onehot"]
    with pytest.raises(DefinitionError) as caught:
        Catalog().models(wanted)
    first, second, third, fourth, fifth = caught.value.messages
    assert '"onehot"' in first and "nofile.txt" in second and '"no_module:Thing"' in third
    assert fourth.startswith("int ") and "two models" in fifth


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("code.py", '"code:Name".*--define code.py'),
        ("x" * 5000, "model"),
        ("a\0b", "model"),
        ("", "model"),
    ],
)
def test_names_that_cannot_be_vector_files(here, name, word):
    Path("code.py").write_text("")
    with pytest.raises(DefinitionError, match=word):
        Catalog().model(name)


def test_a_registered_model_is_found(here, clean_registry):
    @karat.encoder("mine-registered")
    class Mine(karat.StatelessEncoder):
        def transform(self, items):
            return np.ones((len(items), 1))

    model = Catalog().model("mine-registered")
    assert (model.name, type(model.prototype)) == ("mine-registered", Mine)


def test_a_defined_model_gets_its_parameters_and_facts(defined):
    catalog = defined("""
models:
  sparse: {extends: onehot, params: {min_frequency: 0.5}, version: "7", takes: [table]}
  wrong: {extends: onehot, params: {min_freq: 0.5}}
""")
    model = catalog.model("sparse")
    assert model.prototype.min_frequency == 0.5
    assert (model.params, model.version, model.takes) == ({"min_frequency": 0.5}, "7", ("table",))
    with pytest.raises(DefinitionError, match='"min_freq".*"min_freque'):
        catalog.model("wrong")


def test_an_encoder_out_of_fold(defined):
    catalog = defined("""
models:
  plain: {use: "karat.models.tabular_encoders:ForestScores", params: {trees: 20}}
  held: {extends: plain, out_of_fold: 3}
""")
    held = catalog.model("held")
    assert isinstance(held.prototype, OutOfFold) and held.prototype.folds == 3
    assert held.params == {"trees": 20, "out_of_fold": 3} and held.takes == ("table",)
    assert held.role == "encoder" and not held.stateless
    # a forest knows the rows it was fitted on, and out of fold it does not
    rng = np.random.default_rng(0)
    table, truth = pd.DataFrame({"x": rng.normal(size=200)}), rng.choice(["a", "b"], size=200)
    right = {}
    for name in ("plain", "held"):
        encoder = catalog.model(name).fresh(0, "classification")
        scores = np.asarray(encoder.fit_transform(table, truth))
        right[name] = np.mean((scores[:, 1] > scores[:, 0]) == (truth == "b"))
    assert right["plain"] > 0.9 and 0.35 < right["held"] < 0.65


@pytest.mark.parametrize(
    ("use", "word"),
    [
        ("karat.models.tabular_encoders:RandomEncoder", "stateless"),
        ("sklearn.linear_model:LogisticRegression", "predictor"),
        ("karat.models.tabular_encoders:OneHotPca", "dimensions"),
    ],
)
def test_models_that_do_not_support_out_of_fold(defined, use, word):
    catalog = defined(f'models: {{held: {{use: "{use}", out_of_fold: 3}}}}')
    with pytest.raises(DefinitionError, match=f'"held": out_of_fold .*{word}'):
        catalog.model("held")


def test_what_is_not_installed_is_not_imported_but_declined(defined):
    Path("mine_b.py").write_text("import surely_not_installed\n")
    catalog = defined("""
models:
  one: {use: "mine_b:Encoder", requires: [surely_not_installed], out_of_fold: 3}
  two: {use: "mine_b:Encoder", requires: [surely.not_installed], extra: tables}
  three: {use: "mine_b:Encoder"}
""")
    assert catalog.model("one").unavailable == (
        "surely_not_installed is not installed: pip install surely_not_installed"
    )
    assert catalog.model("two").unavailable == (
        'surely.not_installed is not installed: pip install "karat[tables]"'
    )
    with pytest.raises(DefinitionError, match="surely_not_installed"):
        catalog.model("three")


def test_use_may_name_a_class_a_factory_a_function_or_an_object(defined):
    Path("mine_c.py").write_text(
        "class Encoder:\n"
        "    def __init__(self, size=1): self.size = size\n"
        "    def transform(self, items): return [[self.size] for _ in items]\n"
        "def factory(size=2): return Encoder(size)\n"
        "def function(items, size=3): return [[size] for _ in items]\n"
        "ready = Encoder(4)\n"
    )
    catalog = defined("""
models:
  a: {use: "mine_c:Encoder"}
  b: {use: "mine_c:factory"}
  c: {use: "mine_c:function"}
  d: {use: "mine_c:ready"}
  e: {use: "mine_c:Encoder", params: {size: 5}}
  f: {use: "mine_c:factory", params: {size: 6}}
  g: {use: "mine_c:function", params: {size: 7}}
  h: {use: "mine_c:ready", params: {size: 8}}
""")
    models = catalog.models(list("abcdefg"))
    assert [m.prototype.transform(["x"]) for m in models] == [[[i]] for i in range(1, 8)]
    with pytest.raises(DefinitionError, match="no params"):
        catalog.model("h")


def test_a_file_of_a_dataset_can_be_a_parameter(defined):
    Path("v.txt").write_text("a 1 2\n")
    catalog = defined("""
datasets: {mine: {path: v.txt}}
models: {known: {extends: vectors, params: {path: "data:mine"}}}
""")
    model = catalog.model("known")
    assert model.prototype.transform(pd.Series(["A"], index=["a"])).tolist() == [[1, 2]]
    assert model.params == {"path": "data:mine"}


def test_an_unavailable_file_declines_the_model(here, monkeypatch):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    monkeypatch.setenv("KARAT_CACHE", str(here / "empty"))
    monkeypatch.delenv("KARAT_DATA", raising=False)
    model = Catalog().model("rdf2vec")
    assert model.unavailable
    assert model.prototype is None


def parts(folder, name):
    """Write a Python file that registers an encoder, and return its path."""
    Path(folder).mkdir()
    code = f"import karat\n@karat.encoder('{name}')\ndef f(items): return items\n"
    Path(folder, "parts.py").write_text(code)
    return f"{folder}/parts.py"


def test_a_python_file_registers_its_parts(here, clean_registry):
    catalog = Catalog([parts("one", "from-one"), parts("two", "from-two")])
    assert catalog.model("from-one").prototype.function is not None
    assert catalog.model("from-two").name == "from-two"


def test_two_files_do_not_override_each_other(here, clean_registry):
    one, two = parts("one", "twice"), parts("two", "twice")
    for _ in range(2):  # the same file again is no conflict
        Catalog([one]).model("twice")
    with pytest.raises(DefinitionError, match='"twice"'):
        Catalog([one, two]).model("twice")


@pytest.mark.parametrize(
    "text, word",
    [
        ("import nothing_of_that_name", "parts.py: ModuleNotFoundError"),
        ("def broken(:", "parts.py: SyntaxError"),
        ("raise SystemExit(3)", "parts.py: SystemExit: 3"),
        ("import karat\nkarat.metric('x', needs=('clases',))(len)", '"clases"'),
    ],
)
def test_a_python_file_that_fails_is_reported(here, text, word):
    Path("parts.py").write_text(text)
    with pytest.raises(DefinitionError, match=word):
        Catalog(["parts.py"]).definitions.names("models")
    with pytest.raises(DefinitionError, match="nowhere.py"):
        Catalog("nowhere.py").definitions.names("models")


def test_a_suite_has_tasks_and_models_and_a_task_is_a_suite_of_one(here):
    suite = Catalog().suite("quickstart")
    assert (suite.name, len(suite)) == ("quickstart", len(suite.tasks))
    assert "onehot" in suite.models
    assert {task.kind for task in suite} >= {"classification", "regression", "clustering"}
    suite = Catalog().suite("diabetes")
    assert [task.name for task in suite] == ["diabetes"]
    assert suite.tasks[0].metrics[0] == "rmse" and suite.tasks[0].ask is None
    with pytest.raises(DefinitionError, match='"diabetis".*"diabetes"'):
        Catalog().suite("diabetis")
    task = Catalog().task("wine-text-search-mixed")
    assert task.ask == {"use": "text-queries", "queries": 200, "conditions": ["mixed"]}
    assert task.probe == {"use": "nearest", "queries": "apart"}


#: suites of tables, links, searches and learning curves
TABEB = ("tabeb", "tabeb-links", "tabeb-text-search", "tabeb-curves")


@pytest.mark.parametrize("name", TABEB)
def test_the_tasks_of_tables_are_split_more_than_once(here, name):
    for task in Catalog().suite(name):
        folds = task.split.get("folds", 5 if task.split["use"] == "auto" else 1)
        assert folds * task.split.get("repeats", 1) >= 5, task.name


def test_a_learning_curve_differs_in_its_train_rows_alone(here):
    sizes = (16, 32, 64, 128, 256, 512, 1024)
    tasks = [Catalog().task(f"wine-pl-{size}") for size in sizes]
    assert [task.split["train_rows"] for task in tasks] == list(sizes)
    others = [{**task.split, "train_rows": None} for task in tasks]
    assert all(each == others[0] for each in others) and others[0]["test_rows"] == 1000


def test_an_abstract_model_or_task_cannot_be_used(here):
    with pytest.raises(DefinitionError, match='"vectors"'):
        Catalog().model("vectors")
    with pytest.raises(DefinitionError, match='"classification"'):
        Catalog().task("classification")


def own(answers, name="mine.csv"):
    """Write a table with these answers in the column y, and return its name."""
    rows = [f"{i % 9},{'ab'[i % 2]},{answer}" for i, answer in enumerate(answers)]
    Path(name).write_text("\n".join(["x,z,y", *rows, ""]))
    return name


YES = ["yes", "no"] * 20
THREE = ["a", "b", "c"] * 14
NUMBERS = [i / 7 for i in range(40)]


@pytest.mark.parametrize(
    ("answers", "plain", "taco"),
    [
        (YES, "binary-classification", "taco-classification"),
        (THREE, "classification", "taco-multiclass"),
        (NUMBERS, "regression", "taco-regression"),
    ],
)
def test_the_target_of_a_table_selects_its_task(here, answers, plain, taco):
    catalog = Catalog()
    for like, pattern in ((None, plain), ("taco", taco), (taco, taco)):
        (task,) = catalog.table_suite(own(answers), "y", like)
        definition = catalog.definitions.get("tasks", pattern)
        assert task.name == task.dataset.name == "mine"
        assert task.metrics == tuple(definition["metrics"])
        assert task.kind == definition["kind"]
        assert list(task.corruptions) == list(definition.get("corruptions") or {})


def test_a_table_like_a_task_with_the_models_of_the_suite(here):
    catalog = Catalog()
    (task,) = catalog.table_suite(own(YES), "y", "taco-adult")
    assert task.dataset.name == "mine" and len(task.dataset) == 40
    assert task.split == {"use": "holdout", "test": 0.2}
    assert (task.draws, task.keep_predictions) == (1, "clean")
    assert catalog.table_suite(own(YES), "y", "taco").models == catalog.suite("taco").models
    assert catalog.table_suite(own(YES), "y").models == ()


def test_own_patterns_of_tasks(defined):
    catalog = defined("""
tasks:
  mine-classification: {extends: classification, abstract: true, metrics: [acc]}
""")
    assert catalog.table_suite(own(THREE), "y", "mine").tasks[0].metrics == ("acc",)
    with pytest.raises(DefinitionError, match='"mine-regression"'):
        catalog.table_suite(own(NUMBERS), "y", "mine")


def test_whole_numbers_follow_the_task(here):
    grades = [i % 5 for i in range(60)]
    kinds = {}
    for like in ("taco-classification", "taco-regression"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kinds[like] = Catalog().table_suite(own(grades), "y", like).tasks[0].dataset.kind
    assert kinds == {"taco-classification": "classification", "taco-regression": "regression"}
    with pytest.warns(UserWarning, match='mine: "y".*--kind classification'):
        Catalog().table_suite(own(grades), "y", "taco")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # 0 and 1 leave no doubt
        Catalog().table_suite(own([0, 1] * 20), "y", "taco")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (("mine.csv", "why"), '"why".*x, z, y'),
        (("mime.csv", "y"), 'mime.csv.*"mine.csv"'),
        (("mine.csv", "y", "tacco"), '"tacco".*"taco"'),
        (("mine.csv", "y", "taco-regresion"), '"taco-regression"'),
        (("mine.csv", "y", "taco-regression"), '"yes"'),
        (("folder", "y"), "folder"),
        (("empty.csv", "y"), "empty"),
        (("mine.xyz", "y"), '".xyz"'),
    ],
)
def test_what_is_wrong_with_a_table_is_reported(here, given, word):
    own(YES)
    own(YES, "mine.xyz")
    Path("folder").mkdir()
    Path("empty.csv").touch()
    with pytest.raises((DataError, DefinitionError), match=word):
        Catalog().table_suite(*given)


def test_a_registered_dataset_can_be_named(defined, clean_registry):
    @karat.dataset("mine-data")
    def load():
        return Dataset.from_table(pd.DataFrame({"x": [1, 2], "y": ["a", "b"]}), "y")

    task = defined("tasks: {t: {extends: classification, dataset: mine-data}}").task("t")
    assert len(task.dataset()) == 2
    with pytest.raises(DefinitionError, match='"mine-dta".*"mine-data"'):
        Catalog().dataset("mine-dta")


DATA = """
tasks:
  churn:
    extends: classification
    dataset:
      path: churn.csv
      target: {target}
      kind: classification
"""


def test_a_dataset_is_loaded_on_first_use(defined):
    task = defined(DATA.format(target="churn")).task("churn")
    Path("churn.csv").write_text("age,churn\n1,yes\n2,no\n")
    assert task.dataset().classes == ("no", "yes")


@pytest.mark.parametrize(
    ("target", "content", "message"),
    [
        (
            "churned",
            "id,age,churn\n1,3,x\n2,4,y\n",
            '^my.yaml:7: tasks.churn.dataset.target: "churned" is not a column. '
            'Did you mean "churn"[?] It has: id, age, churn$',
        ),
        ("churn", "age,churn\n1,x\n2,x\n", r"^my.yaml:\d: tasks.churn.dataset.*only one class"),
        ("churn", None, "^my.yaml:6: tasks.churn.dataset"),
    ],
)
def test_mistakes_in_the_data_name_the_definition(defined, target, content, message):
    if content is not None:
        Path("churn.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        defined(DATA.format(target=target)).task("churn").dataset()


def test_an_error_of_a_table_names_its_file_once(tmp_path):
    file = tmp_path / "broken.csv"
    file.write_text('a,b\n1,2\n3,"4')
    with pytest.raises(DataError) as caught:
        load_user_table(file, "b", {})
    assert str(caught.value).count(str(file)) == 1


def test_a_header_is_not_taken_for_the_modality(tmp_path):
    """The error about the file names the dataset, not its key ``modality: column``."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "shop.csv").write_text("city\nRome\n")
    (tmp_path / "lake" / "columns.csv").write_text("table,columns,type\nshop,city,place\n")
    place = tmp_path / "lake.yaml"
    place.write_text(
        "datasets:\n  lake:\n    path: lake\n    reader: tables\n"
        "    modality: column\n    kind: classification\n"
    )
    with pytest.raises(DataError, match=r"lake\.yaml:\d+: datasets\.lake: "):
        Catalog(place).dataset("lake")()


def test_parsing_of_values():
    found = parse(
        ["f.a=3", "m.b=0.5", "f.c=[1, 2]", "f.d=words", "f.e=true", "f.g=null", "verbose"]
    )
    assert found.models == {"a": 3, "b": 0.5, "c": [1, 2], "d": "words", "e": True, "g": None}
    assert found.options == {"verbose": True}
    assert parse(["f.code=__import__('os').getcwd()"]).models["code"] == "__import__('os').getcwd()"


@pytest.mark.parametrize("text", ["=3", "f=3", "t", "f.=1", ""])
def test_invalid_overrides(text):
    with pytest.raises(DefinitionError, match="key=value"):
        parse([text])


def test_a_parameter_that_no_model_has():
    models = Catalog().models(["ridge", "dummy"])
    with pytest.raises(DefinitionError, match='"alhpa"'):
        change_models(models, {"alhpa": 1})


def test_a_parameter_reaches_the_models_that_have_it(tmp_path):
    from sklearn.linear_model import LinearRegression, Ridge

    models = Catalog().models({"ridge": Ridge(), "line": LinearRegression()})
    ridge, line = change_models(models, {"alpha": 7.5})
    assert ridge.prototype.alpha == 7.5
    assert ridge.params["alpha"] == 7.5
    assert models[0].prototype.alpha == 1.0  # the given one is not touched
    assert line is models[1]


def test_values_and_nested_values_of_tasks():
    suite = Suite("s", (Task("a", "iris"), Task("b", "wine", split={"use": "kfold", "folds": 9})))
    given = parse(["t.max_runtime_seconds=60", "t.split.folds=3", "t.probe.head.use=knn"]).tasks
    changed = change_tasks(suite, given)
    assert [task.max_runtime_seconds for task in changed] == [60, 60]
    uses = [task.split.pop("use") for task in changed]
    assert uses == ["auto", "kfold"] and [task.split for task in changed] == [{"folds": 3}] * 2
    assert changed.tasks[0].probe == {"use": "trained", "head": {"use": "knn"}}
    with pytest.raises(DefinitionError, match='"split"'):
        change_tasks(suite, {"splt": "all"})
    with pytest.raises(DefinitionError, match='"name"'):
        change_tasks(suite, {"name": "x"})
