"""Inheritance: merge an entry with the entries it extends."""

from __future__ import annotations

from dataclasses import dataclass

from karat.definitions.entries import Entries, Entry, singular
from karat.definitions.merge import merge_entry
from karat.definitions.places import Mistake, Node, describe, mistake_at
from karat.errors import unknown

LONGEST_CHAIN = 100


@dataclass(frozen=True)
class Resolved:
    """An entry with inherited values; not ``sound`` if a parent is missing."""

    node: Node
    mistakes: tuple[Mistake, ...]
    sound: bool
    depth: int


class Inheritance:
    """Resolve entries on demand and cache them."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._resolved: dict[tuple[str, str], Resolved] = {}

    def resolve(self, section: str, name: str, trail: tuple[str, ...] = ()) -> Resolved:
        """Return an entry merged with its parents; later parents override earlier ones."""
        if (section, name) not in self._resolved:
            entry = self._entries.found[section, name]
            self._resolved[section, name] = self._merged(entry, (*trail, name))
        return self._resolved[section, name]

    def _merged(self, entry: Entry, trail: tuple[str, ...]) -> Resolved:
        names, mistakes = _parents(entry)
        sound = not mistakes
        inherited: Node | None = None
        depth = 0
        for name in names:
            parent, mistake = self._parent(entry, name, trail)
            mistakes += [mistake] if mistake else []
            if parent is None:
                sound = False
                continue
            sound &= parent.sound
            mistakes += parent.mistakes
            depth = max(depth, parent.depth + 1)
            below = parent.node
            inherited = merge_entry(entry.section, inherited, below) if inherited else below
        node = merge_entry(entry.section, inherited, entry.node) if inherited else entry.node
        return Resolved(node, tuple(mistakes), sound, depth)

    def _parent(
        self, entry: Entry, name: Node, trail: tuple[str, ...]
    ) -> tuple[Resolved | None, Mistake | None]:
        section, parent = entry.section, name.value
        path = (section, entry.name, "extends")
        if parent in trail:
            circle = " -> ".join([*trail[trail.index(parent) :], parent])
            return None, mistake_at(name, path, f"circular inheritance: {circle}.")
        if (section, parent) in self._entries.found:
            far = len(trail) > LONGEST_CHAIN
            found = None if far else self.resolve(section, parent, trail)
            if found is None or found.depth >= LONGEST_CHAIN:
                return None, mistake_at(name, path, f"more than {LONGEST_CHAIN} levels of extends.")
            return found, None
        if self._entries.lost:
            return None, None
        names = [other for kind, other in self._entries.found if kind == section]
        text = unknown(singular(section), parent, names).messages[0]
        return None, mistake_at(name, path, text)


def _parents(entry: Entry) -> tuple[list[Node], list[Mistake]]:
    """Return the names in ``extends``, and the mistakes in ``extends`` and ``abstract``."""
    path = (entry.section, entry.name)
    mistakes = []
    abstract = entry.node.child("abstract")
    if abstract is not None and not isinstance(abstract.value, bool):
        text = f"must be true or false, got {describe(abstract.value, abstract.text)}."
        mistakes.append(mistake_at(abstract, (*path, "abstract"), text, key=True))
    extends = entry.node.child("extends")
    if extends is None:
        return [], mistakes
    names = extends.value if isinstance(extends.value, list) else [extends]
    wrong = [name for name in names if not isinstance(name.value, str) or not name.value]
    if wrong or not names:
        what = describe(wrong[0].value, wrong[0].text) if wrong else "an empty list"
        text = f"must be a name or a list of names, got {what}."
        mistakes.append(mistake_at(extends, (*path, "extends"), text, key=True))
    return [name for name in names if name not in wrong], mistakes
