"""Strict YAML: values with their file and line, mistakes at such places, and YAML output.

Only ``true``, ``false``, ``null`` and decimal numbers are converted: ``no``, ``1:30``, ``010`` and
``2024-01-31`` stay text, ``1e5`` is a number. Tags, deep nesting, alias bombs and files of more
than 1 MB are refused.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat import __version__
from karat.core.digest import sha256_of
from karat.core.files import cache_folder, safe_name
from karat.core.writing import write_atomic
from karat.errors import KaratError

if TYPE_CHECKING:  # imported where a file is parsed
    from ruamel.yaml.error import MarkedYAMLError

Key = str | int
MAX_DEPTH = 50
MAX_REPEATED = 10_000
MAX_VALUES = 100_000
MAX_BYTES = 1_000_000
MAX_DIGITS = 100
_TEXT = "tag:yaml.org,2002:str"
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
_NOT_YAML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
WIDEST = 80
WIDEST_ALIGNED = 60
_SAFE = re.compile(r"[A-Za-z0-9_.+/-]([A-Za-z0-9_.+@/(), '-]*[A-Za-z0-9_.+@/()-])?")
_SAFE_IN_LIST = re.compile(r"[A-Za-z0-9_.+/-][A-Za-z0-9_.+@/-]*")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
Line = tuple[str, str]


@dataclass(frozen=True)
class DefinitionFormat:
    """Definition files of another system, registered in ``definition_formats``.

    ``recognizes`` and ``translate`` take the root of a file; its entries replace supplied ones of
    the same name. ``usual_metrics`` are those of its tasks, by kind.
    """

    recognizes: Callable[[Node], Any]
    translate: Callable[[Node], Any]
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

    def renewed(self, value: object) -> Node:
        """Return a node with another value at the same place."""
        return Node(value, self.file, self.line, self.key_line, self.text)

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
            child = node.child(key)
            if child is None:
                return node, False
            node = child
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
        where = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(text for text in (where, format_path(self.path), self.text) if text)

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
    line = node.key_line if key else node.line
    return Mistake(file=node.file.label, line=line, path=tuple(path), text=text)


def format_path(path: Sequence[Key]) -> str:
    """Return a key path as text.

    >>> format_path(("suites", "small", "tasks", 2))
    'suites.small.tasks[2]'
    """
    parts = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in path]
    return "".join(parts).removeprefix(".")


def describe_value(value: object, text: str = "") -> str:
    """Describe a value for a message.

    >>> describe_value("x"), describe_value(1.1, "1.10"), describe_value(None), describe_value([])
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


# -- reading --------------------------------------------------------------------------------


class _Refused(Exception):
    """The file cannot be read any further: line and message."""


def read_yaml(content: bytes, file: SourceFile) -> tuple[Node | None, list[Mistake]]:
    r"""Return the document as a node, or None if it is empty or unreadable, and all mistakes.

    >>> node, mistakes = read_yaml(b"country: no", SourceFile("my.yaml"))
    >>> node.plain(), mistakes
    ({'country': 'no'}, [])
    >>> print(read_yaml(b"a: 1\na: 2", SourceFile("my.yaml"))[1][0])
    my.yaml:2: a: duplicate key, first defined in line 1.
    """
    from ruamel.yaml.error import MarkedYAMLError

    mistakes: list[Mistake] = []
    try:
        text = _decoded(content)
        try:
            # seven times faster where ruamel.yaml.clib is installed, but it refuses some YAML 1.2,
            # as {use: module:Name}, and explains less
            node = _Builder(file, text, mistakes).document()
        except MarkedYAMLError:
            mistakes.clear()
            node = _Builder(file, text, mistakes, pure=True).document()
    except MarkedYAMLError as error:
        refused = _explained(error, text)
    except _Refused as error:
        refused = error.args
    else:
        return (None if node is None or node.value is None else node), mistakes
    return None, [*mistakes, Mistake(file=file.label, line=refused[0], path=(), text=refused[1])]


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
    if len(content) > MAX_BYTES:
        text = f"the file has {len(content):,} bytes; the limit is {MAX_BYTES:,}; split it."
        raise _Refused(0, text)
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


def _explained(error: MarkedYAMLError, text: str) -> tuple[int, str]:
    mark, context = error.problem_mark, error.context or ""
    if context.endswith(("simple key", "quoted scalar")):
        mark = error.context_mark or mark
    line = mark.line + 1 if mark else 0
    lines = text.splitlines()
    if 0 < line <= len(lines) and "\t" in lines[line - 1][: -len(lines[line - 1].lstrip()) or None]:
        return line, "a tab in the indentation; indent with spaces."
    return line, f"not valid YAML: {error.problem}{f' ({context})' if context else ''}."


class _Builder:
    """Build nodes from the events of a parser and collect the mistakes in them."""

    def __init__(
        self, file: SourceFile, text: str, mistakes: list[Mistake], *, pure: bool = False
    ) -> None:
        from ruamel.yaml import YAML, events

        self.file = file
        self.mistakes = mistakes
        self._kinds = events
        self._events = iter(YAML(typ="safe", pure=pure).parse(text))
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._made = 0
        self._repeated = 0

    def document(self) -> Node | None:
        """Return the only document, or None if there is none."""
        node = None
        for event in self._events:
            if isinstance(event, self._kinds.DocumentStartEvent):
                if node is not None:
                    line = event.start_mark.line + 1
                    raise _Refused(line, "another document starts here; write one per file.")
                node = self._node(next(self._events), ())
        return node

    def _node(self, event: Any, path: tuple[Key, ...], key_line: int = 0, depth: int = 0) -> Node:
        line = event.start_mark.line + 1
        if isinstance(event, self._kinds.AliasEvent):
            return replace(self._alias(event.anchor, line, depth), key_line=key_line or line)
        if event.tag not in (None, "!", _TEXT):
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            raise _Refused(line, f"the tag {tag} is not allowed; write the value without a tag.")
        self._made += 1
        if self._made > MAX_VALUES:
            raise _Refused(line, f"more than {MAX_VALUES:,} values; split the file.")
        before = self._made
        if isinstance(event, self._kinds.ScalarEvent):
            value = resolve_scalar(event.value) if event.implicit[0] else event.value
            node = Node(value, self.file, line, key_line or line, event.value)
        else:
            if depth + 1 >= MAX_DEPTH:
                raise _Refused(line, f"nested more than {MAX_DEPTH} levels deep.")
            self._anchors[event.anchor] = None  # no alias may refer to an unfinished value
            make = self._mapping if isinstance(event, self._kinds.MappingStartEvent) else self._list
            node = Node(make(path, depth + 1), self.file, line, key_line or line)
        if event.anchor:
            self._anchors[event.anchor] = (node, self._made - before)
        return node

    def _alias(self, anchor: str, line: int, depth: int) -> Node:
        anchored = self._anchors.get(anchor)
        if anchored is None:
            raise _Refused(line, f"the alias *{anchor} refers to no value that ends before it.")
        self._made += 1 + anchored[1]
        self._repeated += 1 + anchored[1]
        if self._repeated > MAX_REPEATED:
            raise _Refused(line, f"the aliases repeat more than {MAX_REPEATED:,} values.")
        if depth + _height(anchored[0]) >= MAX_DEPTH:
            raise _Refused(line, f"nested more than {MAX_DEPTH} levels deep.")
        return anchored[0]

    def _list(self, path: tuple[Key, ...], depth: int) -> list[Node]:
        nodes: list[Node] = []
        while not isinstance(event := next(self._events), self._kinds.CollectionEndEvent):
            nodes.append(self._node(event, (*path, len(nodes)), depth=depth))
        return nodes

    def _mapping(self, path: tuple[Key, ...], depth: int) -> dict[Key, Node]:
        nodes: dict[Key, Node] = {}
        while not isinstance(event := next(self._events), self._kinds.CollectionEndEvent):
            key = self._key(self._node(event, (*path, "?"), depth=depth), path)
            line = event.start_mark.line + 1
            node = self._node(next(self._events), (*path, key), line, depth)
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


def _height(node: Node) -> int:
    if not isinstance(node.value, dict | list):
        return 0
    children = node.value.values() if isinstance(node.value, dict) else node.value
    return 1 + max(map(_height, children), default=0)


# -- writing --------------------------------------------------------------------------------


def show_definition(node: Node, defaults: Mapping[str, Any]) -> str:
    r"""Return a definition as YAML that reads back the same, each line with its origin.

    >>> node, _ = read_yaml(b"metrics: [auc, acc]\nmax_rows: 100", SourceFile("my.yaml"))
    >>> print(show_definition(node, {"missing": "ignore"}))
    metrics: [auc, acc]   # my.yaml:1
    max_rows: 100         # my.yaml:2
    missing: ignore       # default
    """
    lines = list(_mapping(node, ""))
    lines += [(f"{scalar(key)}: {scalar(value)}", "default") for key, value in defaults.items()]
    width = max((len(text) for text, _ in lines if len(text) <= WIDEST_ALIGNED), default=0)
    return "\n".join(f"{text:<{width}}   # {origin}" for text, origin in lines)


def scalar(value: object, *, in_list: bool = False) -> str:
    """Return a scalar as YAML, quoted where it would be read as another value.

    >>> scalar("no"), scalar("1e5"), scalar(1e-5), scalar(None), scalar("a: b")
    ('no', '"1e5"', '1e-05', 'null', '"a: b"')
    """
    if isinstance(value, str):
        safe = _SAFE_IN_LIST if in_list else _SAFE
        plain = safe.fullmatch(value) and not value.startswith(("- ", "---", "..."))
        if plain and resolve_scalar(value) == value and value != "-":
            return value
        quoted = json.dumps(value, ensure_ascii=False)
        return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return repr(value)


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
            if isinstance(child.value, dict) and child.value:  # it starts after the dash
                (first, origin), *others = _mapping(child, indent + "  ")
                yield f"{indent}- {first.lstrip()}", origin
                yield from others
            else:
                yield from _pair(f"{indent}-", child, indent + "  ")
    else:
        yield f"{start} {scalar(node.value)}", node.place


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


# -- parsed files ---------------------------------------------------------------------------
#
# Parsing all built-in files takes a third of a second, and importing pydantic a tenth. Parsed files
# and checked definitions are kept with the hash of their text and Karat's version next to the
# compiled modules, or in the cache folder if that place is not writable. What is damaged, outdated
# or cannot be written is no error: it is computed again.


def read_supplied(content: bytes, file: SourceFile) -> tuple[Node | None, list[Mistake]]:
    """Return what ``read_yaml`` returns for a file of the library or of an installed package."""
    key = sha256_of(__version__, "\n", content)
    with suppress(ValueError, TypeError, LookupError, RecursionError):
        if (stored := read_kept(file.label, key)) is not None:
            return _read_node(stored, file), []
    root, mistakes = read_yaml(content, file)
    if root is not None and not mistakes:
        keep(file.label, key, _node_as_json(root))
    return root, mistakes


def read_kept(label: str, key: str) -> Any:
    """Return the JSON value that was kept under this label and key, or None."""
    for file in _places(label):
        with suppress(OSError, ValueError, TypeError, LookupError, RecursionError):
            stored = json.loads(file.read_bytes())
            if stored["key"] == key:
                return stored["value"]
    return None


def keep(label: str, key: str, value: object) -> None:
    """Keep a JSON value under a label, for this key only; where nothing is writable, do nothing."""
    text = json.dumps({"key": key, "value": value}, separators=(",", ":"))
    for file in _places(label)[sys.dont_write_bytecode :]:
        with suppress(OSError, KaratError):
            write_atomic(file, text)
            return


def _places(label: str) -> list[Path]:
    """Return where the value of a label may be, the preferred place first."""
    compiled = Path(cache_from_source(__file__)).parent
    name = f"{safe_name(label)}.json"
    return [compiled / name, cache_folder() / "definitions" / name]


def _node_as_json(node: Node) -> list[Any]:
    """Return a node as JSON: place, text and value; the keys of a mapping are text or numbers."""
    value = node.value
    if isinstance(value, dict):
        value = [[key, _node_as_json(child)] for key, child in value.items()]
        return [node.line, node.key_line, value, {}]
    if isinstance(value, list):
        return [node.line, node.key_line, [_node_as_json(child) for child in value], []]
    return [node.line, node.key_line, value, node.text]


def _read_node(stored: list[Any], file: SourceFile) -> Node:
    line, key_line, value, text = stored
    if isinstance(text, str):
        return Node(value, file, line, key_line, text)
    if isinstance(text, dict):
        return Node({key: _read_node(child, file) for key, child in value}, file, line, key_line)
    return Node([_read_node(child, file) for child in value], file, line, key_line)
