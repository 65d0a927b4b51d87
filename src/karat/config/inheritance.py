"""Expand ``for_each``: one entry with placeholders becomes several entries."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace

from karat.definitions.places import Key, Mistake, Node, describe, mistake_at

MOST_ENTRIES = 10_000
Row = dict[Key, Node]

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def expand(section: str, name: str, node: Node) -> tuple[list[tuple[str, Node]], list[Mistake]]:
    """Return the entries that an entry expands to, and its mistakes.

    An entry without ``for_each`` is returned unchanged, braces included.

    >>> from karat.definitions.strict_yaml import SourceFile, read_yaml
    >>> text = b'{for_each: {n: [16, 32]}, max_rows: "{n}"}'
    >>> entries, _ = expand("tasks", "few-{n}", read_yaml(text, SourceFile("my.yaml"))[0])
    >>> [(name, node.plain()) for name, node in entries]
    [('few-16', {'max_rows': 16}), ('few-32', {'max_rows': 32})]
    """
    if "for_each" not in node.value:
        return [(name, node)], []
    filling = _Filling(section, name)
    rows = filling.rows(node.value["for_each"])
    body = node.renewed({key: value for key, value in node.value.items() if key != "for_each"})
    entries: dict[str, Node] = {}
    for row in rows:
        generated = filling.text(name, row, node=node, path=())
        entry = filling.node(body, row, ())
        if generated in entries:
            filling.same_name(generated, row, node)
            break
        entries[generated] = entry
    return list(entries.items()), list(dict.fromkeys(filling.mistakes))


class _Filling:
    """Fill the placeholders of one entry and collect the mistakes."""

    def __init__(self, section: str, name: str) -> None:
        self.mistakes: list[Mistake] = []
        self._path: tuple[Key, ...] = (section, name)

    def rows(self, node: Node) -> list[Row]:
        """Return the values of each entry: all combinations of lists, or a list of mappings."""
        if not isinstance(node.value, dict | list):
            text = f"must be a mapping of lists or a list of mappings, got {_what(node)}."
            self._mistake(node, ("for_each",), text)
            return []
        if not node.value:
            self._mistake(node, ("for_each",), "is empty; it must define at least one entry.")
        if isinstance(node.value, dict):
            return self._combinations(node)
        for i, row in enumerate(node.value):
            if not isinstance(row.value, dict):
                self._mistake(row, ("for_each", i), f"must be a mapping, got {_what(row)}.")
        return [row.value for row in node.value if isinstance(row.value, dict)]

    def _combinations(self, node: Node) -> list[Row]:
        for key, values in node.value.items():
            if not isinstance(values.value, list) or not values.value:
                text = "is empty" if values.value == [] else f"must be a list, got {_what(values)}"
                self._mistake(values, ("for_each", key), f"{text}.")
        if self.mistakes:
            return []
        lists = [values.value for values in node.value.values()]
        if math.prod(map(len, lists)) > MOST_ENTRIES:
            self._mistake(node, ("for_each",), f"expands to more than {MOST_ENTRIES:,} entries.")
            return []
        return [dict(zip(node.value, row, strict=True)) for row in itertools.product(*lists)]

    def node(self, node: Node, row: Row, path: tuple[Key, ...]) -> Node:
        """Return a node with all placeholders filled."""
        if isinstance(node.value, dict):
            self._check_quotes(node, row, path)
            filled = {k: self.node(n, row, (*path, k)) for k, n in node.value.items()}
            return node.renewed(filled)
        if isinstance(node.value, list):
            filled_list = [self.node(n, row, (*path, i)) for i, n in enumerate(node.value)]
            return node.renewed(filled_list)
        if not isinstance(node.value, str) or not _BRACES.search(node.value):
            return node
        whole = _PLACEHOLDER.fullmatch(node.value)
        if whole and whole[1] in row:
            return row[whole[1]]
        text = self.text(node.value, row, node=node, path=path)
        return replace(node, value=text, text=text)

    def text(self, template: str, row: Row, *, node: Node, path: tuple[Key, ...]) -> str:
        """Return a text with its placeholders filled; ``{{`` and ``}}`` become single braces."""

        def filled(match: re.Match[str]) -> str:
            if match[0] in ("{{", "}}"):
                return match[0][0]
            if match[1] is None:
                self._mistake(
                    node,
                    path,
                    f'unmatched "{match[0]}"; write "{match[0] * 2}".',
                )
            elif match[1] not in row:
                known = ", ".join(f"{{{key}}}" for key in row) or "none"
                self._mistake(node, path, f"unknown placeholder {match[0]}. Defined: {known}")
            elif isinstance(row[match[1]].value, dict | list):
                text = f"{match[0]} is {_what(row[match[1]])} and cannot be part of a text."
                self._mistake(node, path, text)
            else:
                return row[match[1]].text
            return match[0]

        return _BRACES.sub(filled, template)

    def same_name(self, generated: str, row: Row, node: Node) -> None:
        """Report two entries with the same name."""
        unused = [f"{{{key}}}" for key in row if f"{{{key}}}" not in str(self._path[1])]
        remedy = f"Add {' and '.join(unused)} to the name." if unused else "Use different values."
        text = f'for_each expands to two entries named "{generated}". {remedy}'
        self.mistakes.append(mistake_at(node, self._path, text, key=True))

    def _check_quotes(self, node: Node, row: Row, path: tuple[Key, ...]) -> None:
        if path and len(node.value) == 1:
            (key, value), *_ = node.value.items()
            if key in row and value.value is None and not value.text:
                self._mistake(node, path, f'put the placeholder in quotes: "{{{key}}}".')

    def _mistake(self, node: Node, path: tuple[Key, ...], text: str) -> None:
        mistake = mistake_at(node, (*self._path, *path), text, key=True)
        self.mistakes.append(replace(mistake, root=True))


def _what(node: Node) -> str:
    return describe(node.value, node.text)
