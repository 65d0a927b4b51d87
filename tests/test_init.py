"""The package: its public names."""

import importlib
import inspect
import re
import typing
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest

import karat

ROOT = Path(karat.__file__).parent
NAMES = karat.importable_names()
#: those that are listed
LISTED = [name for name in karat.__all__ if name != "__version__"]
#: modules from which users import the names that are not listed
PACKAGES = ("analysis", "cluster", "compat", "decide", "errors", "extend", "plots", "publish")


def test_public_names_are_sorted_and_listed():
    assert list(karat.__all__) == sorted(karat.__all__)
    assert set(karat.__all__) <= set(dir(karat))
    assert {"Dataset", "Run", "Task", "evaluate", "leaderboard"} <= set(LISTED) <= set(NAMES)
    assert len(LISTED) <= 32


def test_names_that_are_not_listed_are_in_a_package():
    modules = [importlib.import_module(f"karat.{name}") for name in (*PACKAGES, "results")]
    modules.append(importlib.import_module("karat.reporting"))
    for name in {*NAMES} - {*LISTED}:
        assert any(getattr(module, name, None) is getattr(karat, name) for module in modules), name


def test_evaluate_has_at_most_15_parameters():
    assert len(inspect.signature(karat.evaluate).parameters) <= 15


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_resolves_and_is_documented(name):
    value = getattr(karat, name)
    assert callable(value) and inspect.getdoc(value)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_of_a_public_name_is_typed_and_documented(name):
    value = getattr(karat, name)
    if inspect.isclass(value) and issubclass(value, Exception | pd.DataFrame):
        return  # the constructors of Python and pandas
    documented = set()
    for line in inspect.getdoc(value).splitlines():
        if re.fullmatch(r"\w+(, \w+)*( : .+)?", line):
            documented.update(re.findall(r"\w+", line.partition(" : ")[0]))
    parameters = inspect.signature(value).parameters
    assert set(parameters) - documented == set()
    assert [name for name, each in parameters.items() if each.annotation is each.empty] == []
    assert "VAR_KEYWORD" not in {each.kind.name for each in parameters.values()}


def test_no_public_name_is_that_of_a_subpackage_or_module():
    modules = {path.stem for path in ROOT.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert modules & set(NAMES) == set()


@pytest.mark.parametrize("name", [n for n in NAMES if inspect.isfunction(getattr(karat, n))])
def test_types_that_public_functions_return_are_public(name):
    """Of unions and lists, all parts."""

    def parts(hint):
        return [hint, *(p for each in typing.get_args(hint) for p in parts(each))]

    hint = inspect.signature(getattr(karat, name)).return_annotation
    if isinstance(hint, str):
        hint = eval(hint, vars(inspect.getmodule(inspect.unwrap(getattr(karat, name)))))
    classes = [each for each in parts(hint) if inspect.isclass(each)]
    own = [each for each in classes if each.__module__.startswith("karat.")]
    assert [each.__name__ for each in own if each.__name__ not in NAMES] == []


@pytest.mark.parametrize(
    "package",
    ["analysis", "compat", "config", "corruptions", "models", "reporting", "stats"],
)
def test_public_names_of_packages_are_found(package):
    module = importlib.import_module(f"karat.{package}")
    for name in " ".join(module._MODULES.values()).split():
        assert inspect.getdoc(getattr(module, name))
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="evalute"):
        karat.evalute  # noqa: B018
    with pytest.raises(ImportError):
        from karat import evalute  # noqa: F401


def test_the_version_is_that_of_the_distribution():
    assert karat.__version__ == version("karat")
