"""Dataset cards: source, license, citation and fingerprint of the data of the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.report.shown import Shown

#: texts of a card, from the task or its dataset
TEXTS = ("title", "source", "licence", "citation", "homepage", "sha256")
COUNTS = ("items", "questions", "columns")


def make_cards(shown: Shown) -> list[dict[str, Any]]:
    """Return one card per dataset name and fingerprint."""
    cards: dict[tuple[str, str], dict[str, Any]] = {}
    for run in shown.runs:
        for task in run.run.about["tasks"]:
            place = run.tasks.get(task["name"])
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
    facts = {**(about if isinstance(about, Mapping) else {}), **task}
    return {
        "dataset": name,
        **{key: _text(facts.get(key)) for key in TEXTS},
        "fingerprint": _text(task.get("fingerprint")),
        **{key: facts[key] if isinstance(facts.get(key), int) else None for key in COUNTS},
        "kind": _text(task.get("modality")) or _text(task.get("kind")),
        "tasks": [],
    }


def _text(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or None
    return str(value) if value not in (None, "", {}) else None
