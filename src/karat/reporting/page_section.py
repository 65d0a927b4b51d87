"""Sections that extensions add to the page: their data in the bundle, and their text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import pandas as pd

from karat.core.registry import page_sections
from karat.results.load import Gathered

#: the key in the bundle of the sections that the page has no JavaScript for
ADDED = "added"


@dataclass(frozen=True)
class PageData:
    """What a section is made of.

    ``all_runs`` also has the runs of models that were eliminated, ``runs`` has not; ``groups`` are
    the leaderboards of models that can be compared.
    """

    all_runs: Any
    runs: Any
    scores: Gathered
    groups: Sequence[pd.DataFrame]


@dataclass(frozen=True)
class PlainSection:
    """A section as sentences, a table, and sentences below it."""

    title: str
    sentences: Sequence[str]
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    notes: Sequence[str] = field(default_factory=list)


class PageSection(Protocol):
    """A section of the page; its name in the registry is its key in the bundle."""

    def data(self, page: PageData) -> Any:
        """Return the section's part of the bundle, as JSON values; None if it has none."""

    def plain(self, data: Any) -> Sequence[PlainSection]:
        """Return the section as text: for pages without JavaScript, and of other packages."""


def section_data(page: PageData) -> dict[str, Any]:
    """Return the parts of the bundle that extensions add, by key.

    The page has JavaScript for the sections of Karat's own extensions; it shows the text of others.
    """
    own = [key for key in page_sections if page_sections.origin(key).startswith("karat.")]
    sections = {key: _section(key).data(page) for key in own}
    texts = [asdict(text) for key in page_sections if key not in own for text in _text(key, page)]
    sections[ADDED] = texts or None
    return {key: data for key, data in sections.items() if data is not None}


def plain_added(bundle: Mapping[str, Any]) -> list[PlainSection]:
    """Return the sections of extensions without JavaScript."""
    keys = [key for key in page_sections if key in bundle]
    sections = [section for key in keys for section in _section(key).plain(bundle[key])]
    return sections + [PlainSection(**text) for text in bundle.get(ADDED, ())]


def _text(key: str, page: PageData) -> Sequence[PlainSection]:
    """Return the section of another package as text; it may raise anything, which is told."""
    try:
        section = _section(key)
        data = section.data(page)
        return [] if data is None else section.plain(data)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return [PlainSection(key, [f"This section of an extension failed: {reason}."])]


def _section(key: str) -> PageSection:
    section: PageSection = page_sections.get(key)()
    return section
