"""Validate a merged definition: every mistake with its key path and a message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from karat.definitions.merge import NOT_INHERITED, PLACES_OF_DATA
from karat.definitions.places import Key, Node, describe
from karat.definitions.schema import NESTED, SCHEMAS
from karat.errors import did_you_mean

_INCOMPLETE = ("missing", "too_short")
_EXPECTED = {
    "string_type": "text",
    "int_type": "an integer",
    "int_from_float": "an integer",
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
    """A mistake at a key path of one entry.

    ``incomplete``: a value is missing, which abstract entries may do; ``meant`` is the path of the
    key that a mistyped one probably means.
    """

    path: tuple[Key, ...]
    text: str
    incomplete: bool = False
    meant: tuple[Key, ...] | None = None


def check(
    section: str, node: Node, *, complete: bool = True
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the definition with its defaults, and all mistakes in it.

    One that is not ``complete`` (abstract) may lack keys, and is returned without defaults.

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
    reported = [p for p in problems if not (p.incomplete and (not complete or p.path in meant))]
    return values, reported


def _problem(section: str, details: Any, node: Node) -> Problem:
    """Return one error of pydantic with its key path in the file and a message."""
    kind, location, context = details["type"], details["loc"], details.get("ctx", {})
    path = tuple(key for key in location if str(key)[:1] not in ("<", "["))
    if kind == "extra_forbidden":
        nested = [NESTED[key] for key in location[:-1] if key in NESTED]
        record = nested[-1] if nested else SCHEMAS[section]
        return _unknown_key(path, [*record.model_fields, *(() if nested else NOT_INHERITED)])
    if location[-1] == "[key]":
        return Problem(path, "the key must be text; put it in quotes.")
    if "index" in context:
        path = (*path, context["index"])
    written, found = node.nearest(path)
    got = describe(written.value, written.text) if found else describe(details["input"])
    return Problem(path, _message(details, got), incomplete=kind in _INCOMPLETE)


def _message(details: Any, got: str) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind in _FIXED:
        return _FIXED[kind]
    if kind in _EXPECTED:
        quote = " Put it in quotes." if _EXPECTED[kind] == "text" and _quotable(got) else ""
        return f"must be {_EXPECTED[kind]}, got {got}.{quote}"
    if kind == "literal_error":
        allowed = context["expected"].replace("'", '"')
        near = did_you_mean(
            str(details["input"]), allowed.replace('"', "").replace(",", " ").split()
        )
        return f"must be {allowed}, got {got}.{near}"
    if kind == "greater_than":
        return f"must be > {context['gt']}, got {got}."
    if kind == "greater_than_equal":
        return f"must be >= {context['ge']:g}, got {got}."
    return f"{details['msg']}, got {got}." if kind in ("use", "shape") else f"{details['msg']}."


def _quotable(got: str) -> bool:
    return got.startswith("the number") or got.lower() in ("true", "false")


def _unknown_key(path: tuple[Key, ...], known: list[str]) -> Problem:
    near = did_you_mean(str(path[-1]), known)
    if not near:
        return Problem(path, f"unknown key. Allowed: {', '.join(sorted(known))}.")
    return Problem(path, f"unknown key.{near}", meant=(*path[:-1], near.split('"')[1]))


# -- rules about several keys: pydantic would skip these where a single key is wrong ---------


def _data_problems(section: str, data: dict[str, Any]) -> Iterator[Problem]:
    if section == "datasets":
        yield from _one_place(data, ())
    elif section == "tasks":
        if isinstance(data.get("dataset"), dict):
            yield from _one_place(data["dataset"], ("dataset",))
        if data.get("metrics") is None and not data.get("usual"):
            yield Problem(("metrics",), _FIXED["missing"], incomplete=True)
    elif section == "suites" and data.get("tasks") == [] and not data.get("left_out"):
        yield Problem(("tasks",), _FIXED["too_short"], incomplete=True)


def _one_place(data: dict[str, Any], path: tuple[Key, ...]) -> Iterator[Problem]:
    given = [key for key in data if key in PLACES_OF_DATA and data[key] is not None]
    if not given:
        yield Problem(path, f"needs one of {', '.join(PLACES_OF_DATA)}.", incomplete=True)
    if len(given) > 1:
        text = f"{' and '.join(given)} are mutually exclusive; keep one."
        yield Problem((*path, given[1]), text)
