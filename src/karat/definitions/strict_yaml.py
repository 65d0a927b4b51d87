"""YAML without its traps: text stays text, every value keeps its line, nothing is ever executed.

The file is read as a stream of events, so a hostile one is refused before it grows: no tags, no
deep nesting, few repetitions through aliases. Only ``true``, ``false``, ``null`` and decimal
numbers are more than text: ``no``, ``1:30``, ``010`` and ``2024-01-31`` are text, ``1e5`` is a
number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import yaml

from karat.definitions.places import Key, Mistake, Node, SourceFile, mistake_at

DEEPEST = 50
MOST_REPEATED = 10_000
LONGEST_NUMBER = 100

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", "+.inf"), float("inf")),
    "-.inf": float("-inf"),
    ".nan": float("nan"),
}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_INDENT = re.compile(r"\s*")
_TEXT_TAGS = ("!", "tag:yaml.org,2002:str")


class _Refused(Exception):
    """The file cannot be read any further."""

    def __init__(self, line: int, text: str) -> None:
        self.line = line
        self.text = text


def read_yaml(content: bytes, file: SourceFile) -> tuple[Node | None, list[Mistake]]:
    r"""Return the file's one document as a node, or nothing, and all mistakes found.

    An empty file gives nothing and no mistake.

    >>> node, mistakes = read_yaml(b"country: no", SourceFile("my.yaml"))
    >>> node.plain(), mistakes
    ({'country': 'no'}, [])
    >>> print(read_yaml(b"a: 1\na: 2", SourceFile("my.yaml"))[1][0])
    my.yaml:2: a: stands twice, first in line 1.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{content[error.start]:02x}"
        return None, [Mistake(file.label, line, (), f"not UTF-8 text ({byte}); save it as UTF-8.")]
    tree = _Tree(text, file)
    try:
        return tree.document(), tree.mistakes
    except _Refused as refused:
        mistake = Mistake(file.label, refused.line, (), refused.text)
    except yaml.YAMLError as error:
        mistake = Mistake(file.label, *_explained(error, text))
    return None, [*tree.mistakes, mistake]


def resolve_scalar(text: str) -> Any:
    """Return the value of an unquoted word.

    >>> [resolve_scalar(word) for word in ("no", "1:30", "010", "1e-3", "true", "12")]
    ['no', '1:30', '010', 0.001, True, 12]
    """
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= LONGEST_NUMBER:
        if _WHOLE.fullmatch(text):
            return int(text)
        if _NUMBER.fullmatch(text):
            return float(text)
    return text


class _Tree:
    """Builds nodes from the events of one file."""

    def __init__(self, text: str, file: SourceFile) -> None:
        self.file = file
        self.mistakes: list[Mistake] = []
        self._events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._made = 0
        self._repeated = 0

    def document(self) -> Node | None:
        """Return the only document, or nothing if there is none."""
        root = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    line = _line(event)
                    raise _Refused(line, "a second document; one file holds one, without a ---.")
                root = self._node(next(self._events), ())
        return None if root is not None and root.value is None else root

    def _node(self, event: Any, path: tuple[Key, ...], key_line: int = 0) -> Node:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            return replace(self._alias(event, line), key_line=key_line or line)
        if len(path) > DEEPEST:
            raise _Refused(line, f"nested more than {DEEPEST} levels deep.")
        if event.tag is not None and event.tag not in _TEXT_TAGS:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            raise _Refused(line, f"the tag {tag} is not allowed; write the value without a tag.")
        before = self._made
        self._made += 1
        value, text = self._value(event, path)
        node = Node(value, self.file, line, key_line or line, text)
        if event.anchor:
            self._anchors[event.anchor] = (node, self._made - before)
        return node

    def _alias(self, event: Any, line: int) -> Node:
        if event.anchor not in self._anchors:
            raise _Refused(line, f"the alias *{event.anchor} has no finished anchor before it.")
        node, size = self._anchors[event.anchor]
        self._made += size
        self._repeated += size
        if self._repeated > MOST_REPEATED:
            raise _Refused(line, f"the aliases repeat more than {MOST_REPEATED:,} values.")
        return node

    def _value(self, event: Any, path: tuple[Key, ...]) -> tuple[Any, str]:
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path), ""
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path), ""
        plain = event.tag is None and event.implicit[0]
        return (resolve_scalar(event.value) if plain else event.value), event.value

    def _sequence(self, path: tuple[Key, ...]) -> list[Node]:
        nodes: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            nodes.append(self._node(event, (*path, len(nodes))))
        return nodes

    def _mapping(self, path: tuple[Key, ...]) -> dict[Key, Node]:
        nodes: dict[Key, Node] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, (*path, "?"))
            name = self._key(key, path)
            node = self._node(next(self._events), (*path, name), _line(event))
            if name in nodes:
                text = f"stands twice, first in line {nodes[name].key_line}."
                self.mistakes.append(mistake_at(node, (*path, name), text, key=True))
            else:
                nodes[name] = node
        return nodes

    def _key(self, key: Node, path: tuple[Key, ...]) -> Key:
        if isinstance(key.value, dict | list):
            text = 'a key cannot be a list or a mapping; put quotes around a text with "{" or "[".'
            raise _Refused(key.line, text)
        if key.value == "<<":
            self.mistakes.append(mistake_at(key, path, '"<<" is not read; use extends.'))
        elif not isinstance(key.value, str | int):
            text = f"the key {key.text or 'null'} is not text; put it in quotes."
            self.mistakes.append(mistake_at(key, path, text))
            return key.text
        return key.value


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _explained(error: yaml.YAMLError, text: str) -> tuple[int, tuple[Key, ...], str]:
    """Return line, path and words for what the parser refused."""
    odd = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if odd:
        line = len(_LINE_END.findall(text, 0, odd.start())) + 1
        return line, (), f"the character U+{ord(odd.group()):04X} is not allowed; remove it."
    mark = getattr(error, "problem_mark", None)
    context = getattr(error, "context", None) or ""
    if context.endswith(("simple key", "quoted scalar")):
        mark = getattr(error, "context_mark", None) or mark
    line = mark.line + 1 if mark else 0
    lines = _LINE_END.split(text)
    if 0 < line <= len(lines) and "\t" in _INDENT.match(lines[line - 1])[0]:  # type: ignore[index]
        return line, (), "a tab; indent with spaces."
    problem = getattr(error, "problem", None) or str(error)
    return line, (), f"not valid YAML: {problem}{f' ({context})' if context else ''}."
