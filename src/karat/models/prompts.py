"""The prompts of a model: what it puts before a text in the role of query or document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karat.core.dataset import DOCUMENT, QUERY

#: names of a model's prompts for a role, in the order in which sentence-transformers tries them
ROLE_PROMPTS = {QUERY: (QUERY,), DOCUMENT: (DOCUMENT, "passage", "corpus")}


@dataclass(frozen=True)
class Prompts:
    """The prompts of a model by name, its default prompt, and whether it routes by role.

    >>> e5 = Prompts({"query": "query: ", "passage": "passage: "})
    >>> e5.of("query"), e5.of("document"), e5.of("", "search: ")
    ('query: ', 'passage: ', 'search: ')
    """

    texts: Mapping[str, str]
    default: str | None = None
    routes: bool = False

    @classmethod
    def of_model(cls, model: Any) -> Prompts:
        """Return the prompts of a SentenceTransformer object."""
        kinds = {type(module).__name__ for module in model}
        prompts = getattr(model, "prompts", None) or {}
        return cls(prompts, getattr(model, "default_prompt_name", None), bool(kinds & _ROUTERS))

    @classmethod
    def in_folder(cls, folder: Path) -> Prompts:
        """Return the prompts of a saved SentenceTransformer, without loading it."""
        config = read_saved_json(folder / "config_sentence_transformers.json", {})
        kinds = {
            module["type"].rpartition(".")[2]
            for module in read_saved_json(folder / "modules.json", [])
        }
        named = config.get("prompts") or {}
        return cls(named, config.get("default_prompt_name"), bool(kinds & _ROUTERS))

    @property
    def names(self) -> list[str]:
        """The names of prompts that are not empty."""
        return [name for name, text in self.texts.items() if text]

    def of(self, role: str, prompts: str | Mapping[str, str] | None = None) -> str:
        """Return the prompt of a role; ``given`` is the user's, which comes first."""
        if isinstance(prompts, str):
            return prompts
        if prompts and role in prompts:
            return self.texts.get(prompts[role]) or prompts[role]
        # sentence-transformers uses the default prompt neither for queries nor for documents
        names = ROLE_PROMPTS.get(role, (role, self.default))
        return next((text for name in names if (text := self.texts.get(name or ""))), "")

    def key(self, role: str, prompts: str | Mapping[str, str] | None = None) -> str:
        """Return what distinguishes the vectors of a role: its prompt, and its route if any."""
        routed = self.routes and role in ROLE_PROMPTS
        return self.of(role, prompts) + (f" [{role}]" if routed else "")


#: modules of sentence-transformers that process queries and documents differently
_ROUTERS = {"Router", "Asym"}


def read_saved_json(path: Path, default: object) -> Any:
    """Return the content of a JSON file of a saved model, or a default if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else default
