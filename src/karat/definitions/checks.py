"""Is a merged definition right? Every mistake in it, in words, with its key path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from karat.definitions.merge import NOT_INHERITED, PLACES_OF_DATA
from karat.definitions.places import Key, Node, described
from karat.definitions.schema import NESTED, SCHEMAS, SOURCE_KEYS
from karat.errors import did_you_mean

_INCOMPLETE = ("missing", "too_short")
_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_FIXED = {
    "missing": "is missing.",
    "too_short": "must not be empty.",
    "string_too_short": "must not be empty.",
    "string_pattern_mismatch": "must be 64 hexadecimal digits.",
}


@dataclass(frozen=True)
class Problem:
    """What is wrong under a key path of one entry.

    It is ``unfinished`` if only something lacks; ``meant`` is the key a mistyped one stands for.
    """

    path: tuple[Key, ...]
    text: str
    unfinished: bool = False
    meant: tuple[Key, ...] | None = None


def check(
    section: str, node: Node, *, complete: bool = True
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the definition with its defaults, and all that is wrong with it.

    What is not ``complete`` (abstract) may lack keys, and comes back without defaults.

    >>> from karat.definitions.strict_yaml import SourceFile, read_yaml
    >>> node, _ = read_yaml(b"{tasks: [churn], modles: [random]}", SourceFile("my.yaml"))
    >>> check("suites", node)[1]  # doctest: +ELLIPSIS
    [Problem(path=('modles',), text='unknown key. Did you mean "models"?', ...)]
    """
    data = {key: value for key, value in node.plain().items() if key not in NOT_INHERITED}
    values = data
    problems: list[Problem] = []
    try:
        checked = SCHEMAS[section].model_validate(data)
        values = checked.model_dump() if complete else data
    except ValidationError as error:
        problems = [_problem(section, details, node) for details in error.errors()]
    problems += _data_problems(section, data)
    meant = {problem.meant for problem in problems}
    told = [p for p in problems if not (p.unfinished and (not complete or p.path in meant))]
    return values, told


def valid_keys(section: str, path: tuple[Key, ...] = ()) -> list[str]:
    """Return the keys that may stand in a mapping of an entry."""
    named = [key for key in path if isinstance(key, str)]
    record: type[BaseModel] = NESTED[named[-1]] if named else SCHEMAS[section]
    return [*record.model_fields, *(NOT_INHERITED if not path else ())]


def _problem(section: str, details: Any, node: Node) -> Problem:
    kind, context = details["type"], details.get("ctx", {})
    path = tuple(key for key in details["loc"] if key not in ("<text>", "<mapping>", "[key]"))
    if kind == "extra_forbidden":
        return _unknown_key(path, valid_keys(section, path[:-1]))
    if details["loc"][-1] == "[key]":
        return Problem(path, "the key must be text; put it in quotes.")
    if "index" in context:
        path = (*path, context["index"])
    written, found = node.nearest(path)
    got = described(written.value, written.text) if found else described(details["input"])
    return Problem(path, _words(details, got), unfinished=kind in _INCOMPLETE)


def _words(details: Any, got: str) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind in _FIXED:
        return _FIXED[kind]
    if kind in _EXPECTED:
        quote = " Put it in quotes." if _EXPECTED[kind] == "text" and _quotable(got) else ""
        return f"must be {_EXPECTED[kind]}, not {got}.{quote}"
    if kind == "literal_error":
        allowed = context["expected"].replace("'", '"')
        near = did_you_mean(
            str(details["input"]), allowed.replace('"', "").replace(",", " ").split()
        )
        return f"must be {allowed}, not {got}.{near}"
    if kind == "greater_than":
        return f"must be above {context['gt']}, not {got}."
    if kind == "greater_than_equal":
        return f"must be {context['ge']:g} or more, not {got}."
    return f"{details['msg']}, not {got}." if kind in ("use", "shape") else f"{details['msg']}."


def _quotable(got: str) -> bool:
    return got.startswith("the number") or got.lower() in ("true", "false")


def _unknown_key(path: tuple[Key, ...], known: list[str]) -> Problem:
    near = did_you_mean(str(path[-1]), known)
    if not near:
        return Problem(path, f"unknown key. Known: {', '.join(sorted(known))}.")
    return Problem(path, f"unknown key.{near}", meant=(*path[:-1], near.split('"')[1]))


# -- exactly one of several keys: counted here, so that it is reported with all other mistakes ----


def _data_problems(section: str, data: dict[str, Any]) -> list[Problem]:
    if section == "datasets":
        return list(_dataset_problems(data, ()))
    if section == "suites" and data.get("tasks") == [] and not data.get("left_out"):
        return [Problem(("tasks",), _FIXED["too_short"], unfinished=True)]
    inline = data.get("dataset") if section == "tasks" else None
    found = list(_dataset_problems(inline, ("dataset",))) if isinstance(inline, dict) else []
    if section == "tasks" and data.get("metrics") is None and not data.get("usual"):
        found.append(Problem(("metrics",), _FIXED["missing"], unfinished=True))
    return found


def _dataset_problems(data: dict[str, Any], path: tuple[Key, ...]) -> Iterator[Problem]:
    yield from _one_of(data, PLACES_OF_DATA, path)
    sources = data.get("sources")
    for i, source in enumerate(sources if isinstance(sources, list) else []):
        if isinstance(source, dict):
            yield from _source_problems(source, (*path, "sources", i))


def _source_problems(source: dict[str, Any], path: tuple[Key, ...]) -> Iterator[Problem]:
    yield from _one_of(source, tuple(SOURCE_KEYS), path)
    kinds = [kind for kind in SOURCE_KEYS if source.get(kind) is not None]
    if len(kinds) == 1:
        needed, optional = SOURCE_KEYS[kinds[0]]
        for key in needed:
            if source.get(key) is None:
                text = f"is missing; a source with {kinds[0]} needs it."
                yield Problem((*path, key), text, unfinished=True)
        for key in source:
            if key in NESTED["sources"].model_fields and key not in (*kinds, *needed, *optional):
                yield Problem((*path, key), f"does not go with {kinds[0]}.")


def _one_of(
    data: dict[str, Any], keys: tuple[str, ...], path: tuple[Key, ...]
) -> Iterator[Problem]:
    given = [key for key in data if key in keys and data[key] is not None]
    if not given:
        yield Problem(path, f"needs one of {', '.join(keys)}.", unfinished=True)
    if len(given) > 1:
        yield Problem((*path, given[1]), f"{' and '.join(given)} exclude each other; keep one.")
