"""Registry: components by name, path and entry point; duplicate and unknown names."""

import functools
import importlib.metadata
import sys
import types

import pytest

from karat.core import registry
from karat.core.registry import Registry, accepts, build, load_object
from karat.errors import DefinitionError


def part(severity=1):
    return severity


def other():
    return 0


@pytest.fixture
def module(monkeypatch):
    """A module of a user's that can be imported as ``karat_plugin``."""
    made = types.ModuleType("karat_plugin")
    exec("class Thing:\n    class Inner:\n        pass\n", made.__dict__)
    made.Thing.__module__ = made.Thing.Inner.__module__ = "karat_plugin"
    monkeypatch.setitem(sys.modules, "karat_plugin", made)
    return made


def points(monkeypatch, **found):
    """Let the entry points of the group ``karat.toys`` be these."""
    given = [importlib.metadata.EntryPoint(n, v, "karat.toys") for n, v in found.items()]
    asked = []

    def entry_points(*, group):
        asked.append(group)
        return [point for point in given if point.group == group]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    return asked


def test_a_name_is_unique_and_the_same_component_may_be_registered_again():
    def again():
        return 2

    again.__module__, again.__qualname__ = part.__module__, part.__qualname__
    toys = Registry("toy")
    assert toys.register("one", part) is part  # so that it can decorate
    assert "one" in toys and toys.origin("one").endswith("test_registry:part")
    with pytest.raises(DefinitionError) as caught:
        toys.register("one", other)
    assert '"one"' in str(caught.value) and ":part" in str(caught.value)
    assert toys.get("one") is part
    toys.register("one", again)
    assert toys.get("one") is again
    toys.register("two", functools.partial(part, 1))
    with pytest.raises(DefinitionError, match="toy"):
        toys.register("two", functools.partial(other))


@pytest.mark.parametrize("name", ["", " ", "a:b", None, 3])
def test_invalid_names_are_refused(name):
    with pytest.raises(DefinitionError, match="name of a toy"):
        Registry("toy").register(name, part)


def test_a_conflict_with_a_built_in_name_is_found_on_registration():
    with pytest.raises(DefinitionError, match='"ridge"'):
        registry.heads.register("ridge", part)
    with pytest.raises(DefinitionError, match='"concat"'):
        registry.composer("concat")(part)


def test_names_come_sorted_and_a_miss_names_the_nearest():
    toys = Registry("toy")
    for name in ("zebra", "ape"):
        toys.register(name, part)
    assert list(toys) == ["ape", "zebra"]
    with pytest.raises(DefinitionError) as caught:
        toys.get("zebr")
    assert '"zebra"' in str(caught.value) and "karat list toys" in str(caught.value)
    assert "zebr" not in toys


def test_a_module_may_ask_for_parts_while_it_is_imported(tmp_path, monkeypatch):
    box = types.ModuleType("karat_toybox")
    box.toys = toys = Registry("toy", ["karat_toys_first", "karat_toys_second"])
    monkeypatch.setitem(sys.modules, "karat_toybox", box)
    monkeypatch.syspath_prepend(tmp_path)
    points(monkeypatch)
    for name in ("first", "second"):
        (tmp_path / f"karat_toys_{name}.py").write_text(
            "from karat_toybox import toys\n"
            "found = list(toys)\n"
            f"toys.register({name!r}, 'karat.toys:{name}')\n"
        )
    assert list(toys) == ["first", "second"]
    assert sys.modules["karat_toys_first"].found == ["second"]


def test_what_users_registered_reaches_another_process(monkeypatch):
    here, there = Registry("toy"), Registry("toy")
    here.register("ours", "karat.probes.estimators:ridge")
    here.register("mine", part)
    monkeypatch.setattr(registry, "ALL", (here,))
    components = registry.user_components()
    assert components == {"toy": {"mine": part}}
    monkeypatch.setattr(registry, "ALL", (there,))
    registry.register_user_components(components)
    registry.register_user_components(components)
    assert there.get("mine") is part


def test_a_path_needs_no_registration(module):
    assert Registry("toy").get("karat_plugin:Thing") is module.Thing
    assert load_object("karat_plugin:Thing.Inner") is module.Thing.Inner


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("no_such_module_here:Thing", "No module named"),
        ("math:no_such_name", "no_such_name"),
        ("math:", "cannot load"),
        (":Thing", "cannot load"),
        ("..relative:Thing", "cannot load"),
    ],
)
def test_a_path_that_leads_nowhere_is_one_clear_message(path, word):
    with pytest.raises(DefinitionError, match=word) as caught:
        load_object(path)
    assert "package.module:Name" in str(caught.value)


def test_no_module_of_tests_registers_anything():
    """It would reach every worker process of every other test, which would import that module."""
    assert not any(registry.user_components().values()), (
        "register within a test, with clean_registry"
    )


def test_entry_points_are_read_only_for_unknown_names(monkeypatch, module):
    asked = points(monkeypatch, thing="karat_plugin:Thing")
    toys = Registry("toy")
    toys.register("ours", part)
    assert toys.get("ours") is part
    assert asked == []
    assert toys.get("thing") is module.Thing
    assert "thing" in toys
    assert list(toys) == ["ours", "thing"]
    assert [group for group in asked if group != "karat.extensions"] == ["karat.toys"]
    assert toys.own()["thing"] == "karat_plugin:Thing"


def test_an_entry_point_cannot_take_an_existing_name(monkeypatch):
    points(monkeypatch, ours="karat_plugin:Thing")
    toys = Registry("toy")
    toys.register("ours", part)
    for _ in range(2):  # each time, not only the first
        with pytest.raises(DefinitionError, match="karat_plugin:Thing"):
            list(toys)


def test_accepts_tells_names_and_whether_any_name_will_do():
    assert accepts(lambda a, *, b=1: 0) == ({"a", "b"}, False)
    assert accepts(lambda a, /, *more, **rest: 0) == (set(), True)
    assert accepts(dict) == (set(), True)  # it has no signature


def test_build_fills_the_places_a_part_has_and_the_user_decides():
    def made(k, seed=0, kind=""):
        return k, seed, kind

    offers = {"seed": 7, "other": 1}
    assert build("head", made, {"k": 3}, offers) == (3, 7, "")
    assert build("head", made, {"k": 3, "seed": 8}, offers) == (3, 8, "")
    assert build("head", lambda **rest: rest, {"x": 1}, offers) == {"x": 1}


def test_unknown_and_missing_parameters_are_mistakes_of_the_definition():
    def broken():
        raise TypeError("int() argument must be a string")

    with pytest.raises(DefinitionError) as caught:
        build('head "knn"', lambda n_neighbors, kind: 0, {"n_neighbours": 3}, {"kind": ""})
    assert 'Did you mean "n_neighbors"?' in str(caught.value) and "kind" not in str(caught.value)
    with pytest.raises(DefinitionError, match="'k'"):
        build("head", lambda k: k, {}, {})
    with pytest.raises(TypeError):  # what a part itself raises is none
        build("head", broken, {}, {})
