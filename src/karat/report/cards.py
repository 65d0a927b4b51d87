"""Cards: where the data of the tasks come from, whose they are, and by what they are recognised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.report.shown import Shown

#: what is told of data, in the task itself or in what its data set says about itself
TOLD = ("title", "source", "licence", "citation", "homepage", "sha256")
COUNTS = ("items", "questions", "columns")


def make_cards(shown: Shown) -> list[dict[str, Any]]:
    """Return a card per data set: other data of the same name have a card of their own."""
    cards: dict[tuple[str, str], dict[str, Any]] = {}
    for told in shown.runs:
        for task in told.run.about["tasks"]:
            place = told.tasks.get(task["name"])
            name = str(task.get("dataset") or "")
            if place is None or not name:
                continue
            card = cards.setdefault((name, str(task.get("fingerprint") or "")), _card(task, name))
            if place not in card["tasks"]:
                card["tasks"].append(place)
    found = sorted(cards.values(), key=lambda card: min(card["tasks"]))
    return [{**card, "tasks": sorted(card["tasks"])} for card in found]


def _card(task: Mapping[str, Any], name: str) -> dict[str, Any]:
    about = task.get("about")
    told = {**(about if isinstance(about, Mapping) else {}), **task}
    texts = {key: _text(told.get(key)) for key in TOLD}
    counts = {key: told[key] if isinstance(told.get(key), int) else None for key in COUNTS}
    kind = _text(task.get("modality")) or _text(task.get("kind"))
    fingerprint = _text(task.get("fingerprint"))
    return {
        "dataset": name,
        **texts,
        "fingerprint": fingerprint,
        **counts,
        "kind": kind,
        "tasks": [],
    }


def _text(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or None
    return str(value) if value not in (None, "", {}) else None
