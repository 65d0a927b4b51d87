"""Read YAML with ruamel.yaml: every value with its line, nothing executed, few implicit types.

Only ``true``, ``false``, ``null`` and decimal numbers are converted: ``no``, ``1:30``, ``010`` and
``2024-01-31`` stay text, ``1e5`` is a number. Tags, deep nesting and alias bombs are refused.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import MappingNode, ScalarNode
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.tag import Tag

from karat.definitions.places import Key, Mistake, Node, SourceFile, mistake_at

MAX_DEPTH = 50
MAX_REPEATED = 10_000
MAX_DIGITS = 100

_IMPLICIT = Tag(suffix="implicit")
_TEXT = Tag(suffix="tag:yaml.org,2002:str")
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", "+.inf"), float("inf")),
    "-.inf": float("-inf"),
    ".nan": float("nan"),
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_YAML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Refused(Exception):
    """The file cannot be read any further: line and message."""


class _Resolver(VersionedResolver):
    """Mark unquoted scalars; ``resolve_scalar`` gives them their value."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Tag:
        return _TEXT if kind is ScalarNode and not implicit[0] else _IMPLICIT

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass


def read_yaml(content: bytes, file: SourceFile) -> tuple[Node | None, list[Mistake]]:
    r"""Return the document as a node, or None if it is empty or unreadable, and all mistakes.

    >>> node, mistakes = read_yaml(b"country: no", SourceFile("my.yaml"))
    >>> node.plain(), mistakes
    ({'country': 'no'}, [])
    >>> print(read_yaml(b"a: 1\na: 2", SourceFile("my.yaml"))[1][0])
    my.yaml:2: a: duplicate key, first defined in line 1.
    """
    converter = _Converter(file)
    try:
        root = _compose(_decoded(content))
        node = converter.node(root, ()) if root is not None else None
    except _Refused as refused:
        return None, [
            *converter.mistakes,
            Mistake(file.label, refused.args[0], (), refused.args[1]),
        ]
    return (None if node is None or node.value is None else node), converter.mistakes


def resolve_scalar(text: str) -> Any:
    """Return the value of an unquoted scalar.

    >>> [resolve_scalar(word) for word in ("no", "1:30", "010", "1e-3", "true", "12")]
    ['no', '1:30', '010', 0.001, True, 12]
    """
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= MAX_DIGITS:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text


def _decoded(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{content[error.start]:02x}"
        raise _Refused(line, f"not UTF-8 text ({byte}); save the file as UTF-8.") from error
    if character := _NOT_YAML.search(text):
        line = len(text[: character.start() + 1].splitlines())
        code = f"U+{ord(character.group()):04X}"
        raise _Refused(line, f"the character {code} is not allowed in YAML; remove it.")
    return text


def _compose(text: str) -> Any:
    """Return ruamel's tree of nodes; raise _Refused with the line of a syntax error."""
    try:
        if _is_shallow(text):
            return _parser().compose(text)
    except MarkedYAMLError:
        pass  # the C parser refuses some YAML 1.2, as {use: module:Name}, and explains less
    try:
        return _parser(pure=True).compose(text)
    except MaxDepthExceededError as error:
        line = error.problem_mark.line + 1
        raise _Refused(line, f"nested more than {MAX_DEPTH} levels deep.") from error
    except MarkedYAMLError as error:
        raise _Refused(*_explained(error, text)) from error


def _parser(*, pure: bool = False) -> YAML:
    """Return a parser, seven times faster where ``ruamel.yaml.clib`` is installed."""
    parser = YAML(typ="safe", pure=pure)
    parser.Resolver = _Resolver
    parser.max_depth = MAX_DEPTH
    return parser


def _is_shallow(text: str) -> bool:
    # the C composer ignores max_depth: deep nesting would overflow its stack
    depth = 0
    for event in _parser().parse(text):
        if isinstance(event, CollectionStartEvent):
            depth += 1
        elif isinstance(event, CollectionEndEvent):
            depth -= 1
        if depth >= MAX_DEPTH:
            return False
    return True


def _explained(error: MarkedYAMLError, text: str) -> tuple[int, str]:
    """Return the line and the message of a syntax error."""
    mark, context = error.problem_mark, error.context or ""
    if context.endswith(("simple key", "quoted scalar")):
        mark = error.context_mark or mark
    line = mark.line + 1 if mark else 0
    lines = text.splitlines()
    if 0 < line <= len(lines) and "\t" in lines[line - 1][: -len(lines[line - 1].lstrip()) or None]:
        return line, "a tab in the indentation; indent with spaces."
    return line, f"not valid YAML: {error.problem}{f' ({context})' if context else ''}."


class _Converter:
    """Convert ruamel's nodes and collect the mistakes in them."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.mistakes: list[Mistake] = []
        self._collections: dict[int, tuple[Node, int] | None] = {}
        self._made = 0
        self._repeated = 0

    def node(self, raw: Any, path: tuple[Key, ...], key_line: int = 0) -> Node:
        """Return a value with its place; ``key_line`` is the line of its key."""
        line = raw.start_mark.line + 1
        if id(raw) in self._collections:
            return replace(self._alias(raw, line), key_line=key_line or line)
        if raw.ctag is not _IMPLICIT and raw.ctag is not _TEXT and str(raw.ctag) != str(_TEXT):
            tag = str(raw.ctag).replace("tag:yaml.org,2002:", "!!")
            raise _Refused(line, f"the tag {tag} is not allowed; write the value without a tag.")
        self._made += 1
        if isinstance(raw, ScalarNode):
            value = resolve_scalar(raw.value) if raw.ctag is _IMPLICIT else raw.value
            return Node(value, self.file, line, key_line or line, raw.value)
        before = self._made
        self._collections[id(raw)] = None
        node = Node(self._collection(raw, path), self.file, line, key_line or line)
        self._collections[id(raw)] = (node, self._made - before)
        return node

    def _alias(self, raw: Any, line: int) -> Node:
        found = self._collections[id(raw)]
        if found is None:
            raise _Refused(line, "an alias refers to the collection it is in.")
        self._made += found[1]
        self._repeated += found[1]
        if self._repeated > MAX_REPEATED:
            raise _Refused(line, f"the aliases repeat more than {MAX_REPEATED:,} values.")
        return found[0]

    def _collection(self, raw: Any, path: tuple[Key, ...]) -> list[Node] | dict[Key, Node]:
        if not isinstance(raw, MappingNode):
            return [self.node(item, (*path, i)) for i, item in enumerate(raw.value)]
        nodes: dict[Key, Node] = {}
        for raw_key, raw_value in raw.value:
            key = self._key(self.node(raw_key, (*path, "?")), path)
            node = self.node(raw_value, (*path, key), raw_key.start_mark.line + 1)
            if key in nodes:
                text = f"duplicate key, first defined in line {nodes[key].key_line}."
                self.mistakes.append(mistake_at(node, (*path, key), text, key=True))
            else:
                nodes[key] = node
        return nodes

    def _key(self, key: Node, path: tuple[Key, ...]) -> Key:
        if isinstance(key.value, dict | list):
            text = "a key must be text, got a list or a mapping; quote text with { or [."
            raise _Refused(key.line, text)
        if key.value == "<<":
            self.mistakes.append(mistake_at(key, path, '"<<" is not supported; use extends.'))
        elif not isinstance(key.value, str | int):
            text = f"the key {key.text or 'null'} is not text; put it in quotes."
            self.mistakes.append(mistake_at(key, path, text))
            return key.text
        return key.value
