"""Values with the file and line they come from, and mistakes at such places.

Read YAML with ruamel.yaml: every value with its line, nothing executed, few implicit types.

Only ``true``, ``false``, ``null`` and decimal numbers are converted: ``no``, ``1:30``, ``010`` and
``2024-01-31`` stay text, ``1e5`` is a number. Tags, deep nesting and alias bombs are refused.
Print a resolved definition as YAML with the origin of every line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import MappingNode, ScalarNode
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.tag import Tag

Key = str | int


@dataclass(frozen=True)
class DefinitionFormat:
    """Definition files of another system, registered in ``definition_formats``.

    ``recognizes`` and ``translate`` take the root of a file; its entries may replace built-in ones
    of the files named in ``replaces``. ``usual_metrics`` are those of its tasks, by kind.
    """

    recognizes: Callable[[Node], Any]
    translate: Callable[[Node], Any]
    replaces: tuple[str, ...]
    usual_metrics: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class SourceFile:
    """A file of definitions: its label in messages and its folder.

    ``supplied`` files belong to the library or an installed package, not to the user.
    """

    label: str
    folder: Path | None = None
    supplied: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place: a scalar, a list of nodes or a mapping of nodes.

    ``line`` is the line of the value, ``key_line`` that of its key, ``text`` the scalar as written
    (``1.10`` for the value 1.1).
    """

    value: Any
    file: SourceFile
    line: int
    key_line: int
    text: str = ""

    @property
    def place(self) -> str:
        """File and line of the value, ``tasks.yaml:14``."""
        return f"{self.file.label}:{self.line}"

    def renewed(self, value: Any) -> Node:
        """Return a node with another value at the same place."""
        return replace(self, value=value)

    def child(self, key: Key) -> Node | None:
        """Return the node at a key or index, or None."""
        if isinstance(self.value, dict):
            return self.value.get(key)
        if isinstance(self.value, list) and isinstance(key, int) and key < len(self.value):
            return self.value[key]
        return None

    def nearest(self, path: Sequence[Key]) -> tuple[Node, bool]:
        """Return the node at a path and True, or its nearest existing parent and False."""
        node = self
        for key in path:
            found = node.child(key)
            if found is None:
                return node, False
            node = found
        return node, True

    def plain(self) -> Any:
        """Return the value without places, as new lists and dictionaries."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def leaves(self, path: tuple[Key, ...] = ()) -> Iterator[tuple[tuple[Key, ...], Node]]:
        """Yield every scalar and empty collection with its key path."""
        if isinstance(self.value, dict | list) and self.value:
            pairs = self.value.items() if isinstance(self.value, dict) else enumerate(self.value)
            for key, node in pairs:
                yield from node.leaves((*path, key))
        else:
            yield path, self


@dataclass(frozen=True)
class Mistake:
    """A mistake: its file, line (0 for the whole file), key path and message.

    Other mistakes at the place of a ``root`` mistake are consequences and are not reported.

    >>> print(Mistake("my.yaml", 14, ("tasks", "churn", "metrcs"), "unknown key."))
    my.yaml:14: tasks.churn.metrcs: unknown key.
    """

    file: str
    line: int
    path: tuple[Key, ...]
    text: str
    root: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(text for text in (place, format_path(self.path), self.text) if text)

    @property
    def place(self) -> tuple[Any, ...]:
        """The place in the file: the same for all entries that inherit the mistake."""
        return (self.file, self.line, self.path[2:])


def format_mistakes(mistakes: Iterable[Mistake], files: Sequence[str] = ()) -> list[str]:
    """Return the messages of the mistakes, without duplicates, sorted by file and line."""
    mistakes = list(mistakes)
    roots = {mistake.place for mistake in mistakes if mistake.root}
    unique: dict[Any, Mistake] = {}
    for mistake in mistakes:
        if mistake.root or mistake.place not in roots:
            unique.setdefault((mistake.place, mistake.text), mistake)
    order = {file: i for i, file in enumerate(files)}
    ordered = sorted(unique.values(), key=lambda m: (order.get(m.file, len(order)), m.line))
    return [str(mistake) for mistake in ordered]


def mistake_at(node: Node, path: Sequence[Key], text: str, *, key: bool = False) -> Mistake:
    """Return a mistake at the line of a node's value or of its key."""
    return Mistake(node.file.label, node.key_line if key else node.line, tuple(path), text)


def format_path(path: Sequence[Key]) -> str:
    """Return a key path as text.

    >>> format_path(("suites", "small", "tasks", 2))
    'suites.small.tasks[2]'
    """
    parts = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in path]
    return "".join(parts).removeprefix(".")


def describe(value: Any, text: str = "") -> str:
    """Describe a value for a message.

    >>> describe("x"), describe(1.1, "1.10"), describe(None), describe([])
    ('the text "x"', 'the number 1.10', 'null', 'a list')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return text or str(value).lower()
    if isinstance(value, int | float):
        return f"the number {text or value}"
    if isinstance(value, str):
        return f'the text "{value}"' if len(value) <= 60 else f'the text "{value[:57]}…"'
    return "a list" if isinstance(value, list | tuple) else "a mapping"


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


WIDEST = 80
WIDEST_ALIGNED = 60

_SAFE = re.compile(r"[A-Za-z0-9_.+/-]([A-Za-z0-9_.+@/(), '-]*[A-Za-z0-9_.+@/()-])?")
_SAFE_IN_LIST = re.compile(r"[A-Za-z0-9_.+/-][A-Za-z0-9_.+@/-]*")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

Line = tuple[str, str]


def show(node: Node, defaults: Mapping[str, Any]) -> str:
    r"""Return a definition as YAML that reads back the same, each line with its origin.

    >>> from karat.config.yaml_files import SourceFile, read_yaml
    >>> node, _ = read_yaml(b"metrics: [auc, acc]\nmax_rows: 100", SourceFile("my.yaml"))
    >>> print(show(node, {"missing": "ignore"}))
    metrics: [auc, acc]   # my.yaml:1
    max_rows: 100         # my.yaml:2
    missing: ignore       # default
    """
    lines = list(_mapping(node, ""))
    lines += [(f"{scalar(key)}: {scalar(value)}", "default") for key, value in defaults.items()]
    width = max((len(text) for text, _ in lines if len(text) <= WIDEST_ALIGNED), default=0)
    return "\n".join(f"{text:<{width}}   # {origin}" for text, origin in lines)


def scalar(value: Any, *, in_list: bool = False) -> str:
    """Return a scalar as YAML, quoted where it would be read as another value.

    >>> scalar("no"), scalar("1e5"), scalar(1e-5), scalar(None), scalar("a: b")
    ('no', '"1e5"', '1e-05', 'null', '"a: b"')
    """
    if isinstance(value, str):
        safe = _SAFE_IN_LIST if in_list else _SAFE
        plain = safe.fullmatch(value) and not value.startswith(("- ", "---", "..."))
        return (
            value if plain and resolve_scalar(value) == value and value != "-" else _quoted(value)
        )
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return repr(value)


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _mapping(node: Node, indent: str) -> Iterator[Line]:
    for key, child in node.value.items():
        yield from _pair(f"{indent}{scalar(key)}:", child, indent + "  ")


def _pair(start: str, node: Node, indent: str) -> Iterator[Line]:
    """Yield the lines of a value after its key or dash."""
    inline = _inline(node)
    if inline is not None and (len(start) + len(inline) < WIDEST or not node.value):
        yield f"{start} {inline}", node.place
    elif isinstance(node.value, dict):
        yield start, f"{node.file.label}:{node.key_line}"
        yield from _mapping(node, indent)
    elif isinstance(node.value, list):
        yield start, f"{node.file.label}:{node.key_line}"
        for child in node.value:
            yield from _item(child, indent)
    else:
        yield f"{start} {scalar(node.value)}", node.place


def _item(node: Node, indent: str) -> Iterator[Line]:
    """Yield the lines of a list item; a mapping starts after the dash."""
    if isinstance(node.value, dict) and node.value:
        (first, origin), *others = _mapping(node, indent + "  ")
        yield f"{indent}- {first.lstrip()}", origin
        yield from others
    else:
        yield from _pair(f"{indent}-", node, indent + "  ")


def _inline(node: Node) -> str | None:
    """Return a value as one line, or None if it was written on several."""
    if isinstance(node.value, dict):
        return None if node.value else "{}"
    if not isinstance(node.value, list):
        return scalar(node.value)
    simple = all(not isinstance(child.value, dict | list) for child in node.value)
    if not simple or len({child.place for child in node.value}) > 1:
        return None
    return f"[{', '.join(scalar(child.value, in_list=True) for child in node.value)}]"
