"""Asking: what an endpoint takes, told once, for the checks and for the documentation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from karat.errors import did_you_mean
from karat.serve.replies import Refused, Reply

if TYPE_CHECKING:
    from karat.serve.service import Service

#: no number of ours is larger, no text is longer, and nothing is given more often
MOST, LONGEST, TIMES = 2**31 - 1, 20_000, 1000


@dataclass(frozen=True)
class Parameter:
    """A parameter of the query. ``kind`` is "text" or "number"; ``many`` may be given again."""

    name: str
    says: str
    kind: str = "text"
    choices: tuple[str, ...] = ()
    default: Any = None
    least: int = 0
    most: int = MOST
    needed: bool = False
    many: bool = False

    def schema(self) -> dict[str, Any]:
        """Return its JSON schema."""
        if self.kind == "number":
            one: dict[str, Any] = {"type": "integer", "minimum": self.least, "maximum": self.most}
        else:
            one = {"type": "string", "maxLength": LONGEST}
        if self.choices:
            one = {"type": "string", "enum": list(self.choices)}
        if self.default is not None:
            one["default"] = self.default
        return {"type": "array", "items": one, "maxItems": TIMES} if self.many else one

    def read(self, given: Sequence[str]) -> Any:
        """Return the checked value of what was given."""
        if not given:
            if self.needed:
                raise Refused(400, f'the parameter "{self.name}" is missing', self.says)
            return [] if self.many else self.default
        if len(given) > 1 and not self.many:
            raise Refused(400, f'the parameter "{self.name}" stands there twice', self.says)
        if len(given) > TIMES or any(len(text) > LONGEST for text in given):
            raise Refused(400, f'the parameter "{self.name}" is too long', self.says)
        values = [self._one(text) for text in given]
        return values if self.many else values[0]

    def _one(self, text: str) -> Any:
        if self.choices and text not in self.choices:
            hint = f"one of {', '.join(self.choices)}.{did_you_mean(text, self.choices)}"
            raise Refused(400, f'"{self.name}" is none of what it can be', hint)
        if self.kind != "number":
            return text
        number = int(text) if re.fullmatch(r"-?\d{1,12}", text, re.ASCII) else None
        if number is None or not self.least <= number <= self.most:
            hint = f"a whole number from {self.least} to {self.most}"
            raise Refused(400, f'"{self.name}" is no such number', hint)
        return number


@dataclass(frozen=True)
class Asked:
    """A checked request: parts of the path, parameters, what is accepted, and the body."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    accept: str = ""
    body: Any = None

    def wants(self, *shapes: str) -> str:
        """Return the shape wanted: by ``format``, or by Accept; the first if it is all the same.

        >>> Asked(accept="text/csv;q=0.9, */*;q=0.1").wants("json", "csv")
        'csv'
        """
        told = self.query.get("format")
        if told:
            return str(told)
        liked = {shape: _quality(self.accept, KINDS[shape]) for shape in shapes}
        best = max(shapes, key=lambda shape: liked[shape])
        if self.accept and not liked[best]:
            raise Refused(406, "nothing of that kind is here", f"Accept: {', '.join(liked)}")
        return best


KINDS = {"json": "application/json", "csv": "text/csv", "markdown": "text/markdown"}


def _quality(accept: str, kind: str) -> float:
    """Return how much a kind is wanted; the most exact of the ranges that fit counts."""
    found = (0, 0.0)
    for each in accept.lower().split(","):
        name, *rest = (part.strip() for part in each.split(";"))
        exact = {kind: 3, f"{kind.partition('/')[0]}/*": 2, "*/*": 1}.get(name, 0)
        given = next((part[2:] for part in rest if part.startswith("q=")), "1")
        quality = float(given) if re.fullmatch(r"[01](\.\d{0,3})?", given) else 1.0
        if exact > found[0]:
            found = exact, quality
    return found[1]


@dataclass(frozen=True)
class Endpoint:
    """A method and a path, what answers it, and what the documentation says of it.

    ``takes`` is the schema of a JSON body, or "bytes" for a file; ``returns`` the schema of the
    answer, or other content types by their schema; ``token`` tells who may ask.
    """

    method: str
    path: str
    answer: Callable[[Service, Asked], Reply]
    summary: str
    returns: Any
    parameters: tuple[Parameter, ...] = ()
    takes: str = ""
    token: bool = False
    status: int = 200
    refuses: tuple[int, ...] = ()

    def read(self, given: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Return the checked parameters of a query."""
        known = {each.name for each in self.parameters}
        for name, _ in given:
            if name not in known:
                hint = did_you_mean(name[:100], known) or f" It takes: {', '.join(sorted(known))}."
                raise Refused(400, f'there is no parameter "{name[:100]}"', hint.strip())
        by_name: dict[str, list[str]] = {}
        for name, value in given:
            by_name.setdefault(name, []).append(value)
        return {each.name: each.read(by_name.get(each.name, [])) for each in self.parameters}


def paging(usual: int = 1000) -> tuple[Parameter, Parameter]:
    """Return the two parameters that lists have."""
    return (
        Parameter("offset", "How many to pass over.", "number", default=0),
        Parameter(
            "limit", f"How many to send; {usual} without it.", "number", least=1, most=10_000
        ),
    )
