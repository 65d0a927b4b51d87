"""The package: its public names."""

import importlib
import sys

import pytest

import karat


def test_the_public_names_are_sorted_and_there():
    assert list(karat.__all__) == sorted(karat.__all__)
    for name in karat.__all__:
        assert getattr(karat, name) is not None
    assert set(karat.__all__) <= set(dir(karat))


def test_the_names_of_the_first_page_are_public():
    assert {"Dataset", "Task", "Run", "evaluate", "leaderboard", "suite"} <= set(karat.__all__)
    assert {"encoder", "predictor", "metric", "corruption", "head", "splitter", "dataset"} <= set(
        karat.__all__
    )


@pytest.mark.parametrize("name", ["evaluate", "dataset", "leaderboard", "robustness"])
def test_a_module_does_not_take_the_place_of_a_function(name):
    for module in (f"karat.{name}", f"karat.results.{name}"):
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            continue
    assert callable(getattr(karat, name))
    assert not isinstance(getattr(karat, name), type(sys))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="evalute"):
        karat.evalute  # noqa: B018
    with pytest.raises(ImportError):
        from karat import evalute  # noqa: F401


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert karat.__version__ == version("karat")
