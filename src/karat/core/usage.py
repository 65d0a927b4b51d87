"""What jobs used of services that count tokens, as the fields of their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Counted(Protocol):
    """What was counted while something ran."""

    def facts(self) -> dict[str, Any]:
        """Return it as JSON values; empty if nothing was used."""


def job_usage(embedded: Mapping[str, Any] | None, used: Counted) -> dict[str, Any]:
    """Return the fields of a job's record: the usage of its data's vectors and of its own calls.

    ``embed_tokens`` are those of the vectors, which the jobs on a dataset share.
    """
    facts = combined_usage([usage for usage in (embedded, used.facts()) if usage])
    return {**facts, "embed_tokens": (embedded or {}).get("tokens", 0)} if facts else {}


def combined_usage(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the facts of several usages: counts are added, others are those of the first.

    >>> combined_usage([{"tokens": 3, "texts": 1}, {"tokens": 4, "price": 0.5}])
    {'tokens': 7, 'price': 0.5, 'texts': 1}
    """
    facts: dict[str, Any] = {}
    for part in reversed(parts):
        facts |= part
    for name in ("tokens", "price", "truncated", "texts", "requests"):
        values = [part[name] for part in parts if part.get(name) is not None]
        if name in facts:
            facts[name] = sum(values) if values else None
    if any(part.get("tokens_estimated") for part in parts):
        facts["tokens_estimated"] = True
    if remarks := [remark for part in parts for remark in part.get("remarks", ())]:
        facts["remarks"] = list(dict.fromkeys(remarks))
    return facts
