"""Checks of single values in run.json and in records: whether a text, a count, a list of these."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from karat.core.files import encodable

Check = Callable[[Any], bool]


def is_any_text(value: object) -> bool:
    """Return whether a value is a text."""
    return isinstance(value, str)


def is_text(value: object) -> bool:
    """Return whether a value is a text without lone surrogates, which cannot be encoded."""
    return isinstance(value, str) and (value.isascii() or encodable(value) == value)


def is_name(value: object) -> bool:
    """Return whether a value is a text that is not empty."""
    return is_text(value) and value != ""


def is_integer(value: object) -> bool:
    """Return whether a value is an integer of 64 bits."""
    return type(value) is int and abs(value) < 2**63


def is_count(value: object) -> bool:
    """Return whether a value is an integer of 0 or more."""
    return type(value) is int and 0 <= value < 2**31


def is_counted_pair(value: object) -> bool:
    """Return whether a value is a true class, a predicted class and a count."""
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(map(is_text, value[:2]))
        and is_count(value[2])
    )


def is_number(value: object) -> bool:
    """Return whether a value is a finite number."""
    return math.isfinite(value) if type(value) is float else is_integer(value)


def is_object(value: object) -> bool:
    """Return whether a value is a JSON object."""
    return isinstance(value, dict)


def none_or(check: Check) -> Check:
    """Return a check that None passes, too."""
    return lambda value: value is None or check(value)


def list_of(check: Check, *lengths: int) -> Check:
    """Return a check of lists; without lengths, of any length."""

    def is_list(value: object) -> bool:
        if not isinstance(value, list) or (lengths and len(value) not in lengths):
            return False
        return all(map(check, value))

    return is_list


def object_of(check: Check) -> Check:
    """Return a check of objects by their values."""
    return lambda value: (
        isinstance(value, dict) and all(map(is_text, value)) and all(map(check, value.values()))
    )


def is_timing(value: object) -> bool:
    """Return whether a value is seconds by the size of a batch."""
    if not isinstance(value, dict):
        return False
    sizes = all(size.isdecimal() and len(size) < 10 for size in value)
    return sizes and all(map(none_or(is_number), value.values()))


def is_shared(value: object) -> bool:
    """Return whether a value is [shared, tested, what], or empty."""
    return isinstance(value, list) and (
        not value or (len(value) == 3 and all(map(is_count, value[:2])) and is_text(value[2]))
    )


def is_give_away(value: object) -> bool:
    """Return whether a value is [column, score], or empty."""
    return isinstance(value, list) and (not value or (len(value) == 2 and is_number(value[1])))


def is_observed(value: object) -> bool:
    """Return whether a value is statistics of vectors: counts, and three norms."""
    return isinstance(value, dict) and all(
        list_of(is_number, 0, 3)(fact) if name == "lengths" else is_count(fact)
        for name, fact in value.items()
    )


def is_probe(value: object) -> bool:
    """Return whether a value is a probe: its name, its parameters, or none."""
    return value is None or isinstance(value, str | dict)


def is_split(value: object) -> bool:
    """Return whether a value is a split: its parameters, number of folds, and hash of its rows."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("use"), str)
        and is_count(value.get("count", 0))
        and is_any_text(value.get("rows", ""))
    )
