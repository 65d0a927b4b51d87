"""Merge a definition into its parent: mappings merge deeply, everything else replaces.

Alternatives are never mixed: a component with another ``use`` replaces the parent's component, and
a dataset with its own location of the data replaces the parent's location.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.definitions.places import Key, Node

NOT_INHERITED = ("abstract", "extends", "for_each")
COMPONENTS = {"tasks": ("ask", "probe", "split"), "datasets": ("load",)}
"""Keys whose value is a component: the text ``knn`` means ``{use: knn}``."""

PLACES_OF_DATA = ("path", "sources", "load")
"""Keys of a dataset of which exactly one is given."""


def merge(parent: Node, child: Node, *, component: bool = False) -> Node:
    """Return the child merged over the parent; each value keeps its place.

    A mapping whose ``use`` differs from the parent's replaces it. In a ``component``, the parent's
    text is read as ``{use: text}`` if the child is a mapping.

    >>> from karat.definitions.strict_yaml import SourceFile, read_yaml
    >>> def node(text): return read_yaml(text.encode(), SourceFile("my.yaml"))[0]
    >>> merge(node("{a: {x: 1, y: [1, 2]}}"), node("{a: {y: [3]}, b: 2}")).plain()
    {'a': {'x': 1, 'y': [3]}, 'b': 2}
    >>> merge(node("{use: kfold, folds: 5}"), node("{use: holdout}")).plain()
    {'use': 'holdout'}
    """
    if not isinstance(child.value, dict):
        return child
    if component and isinstance(parent.value, str):
        parent = parent.renewed({"use": parent})
    if not isinstance(parent.value, dict) or _another_use(parent.value, child.value):
        return child
    merged = dict(parent.value)
    for key, node in child.value.items():
        merged[key] = merge(merged[key], node, component=component) if key in merged else node
    return child.renewed(merged)


def on_top(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain values merged over others.

    >>> on_top({"a": 1, "b": {"x": 1, "y": 2}}, {"b": {"y": 3}})
    {'a': 1, 'b': {'x': 1, 'y': 3}}
    """
    both = [k for k in above if isinstance(below.get(k), Mapping) and isinstance(above[k], Mapping)]
    return {**below, **above, **{key: on_top(below[key], above[key]) for key in both}}


def merge_entry(section: str, parent: Node, child: Node) -> Node:
    """Return an entry merged over the one it extends.

    ``abstract``, ``extends`` and ``for_each`` are not inherited. An entry's own ``use`` (a model's
    class) replaces only that key: title, license and parameters stay.
    """
    merged = {key: node for key, node in parent.value.items() if key not in NOT_INHERITED}
    if section == "datasets":
        _drop_other_places(merged, child)
    for key, node in child.value.items():
        old = merged.get(key)
        if old is None:
            merged[key] = node
            continue
        if section == "tasks" and key == "dataset" and isinstance(old.value, dict):
            inherited = dict(old.value)
            _drop_other_places(inherited, node)
            old = old.renewed(inherited)
        merged[key] = merge(old, node, component=key in COMPONENTS.get(section, ()))
    return child.renewed(merged)


def _another_use(parent: dict[Key, Node], child: dict[Key, Node]) -> bool:
    return "use" in child and "use" in parent and child["use"].plain() != parent["use"].plain()


def _drop_other_places(parent: dict[Key, Node], child: Node) -> None:
    """Drop the parent's location of the data if the child gives another."""
    given = [key for key in PLACES_OF_DATA if child.child(key) is not None]
    for key in PLACES_OF_DATA:
        if given and key not in given:
            parent.pop(key, None)
