"""``-X key=value``: models, tasks and options changed from the command line."""

import pytest

from karat.config.catalog import Catalog
from karat.config.components import change_models, change_tasks, parse
from karat.core.task import Suite, Task
from karat.errors import DefinitionError


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
