"""Corruptions of texts: typing and copying errors.

They apply to a series of texts and to the text columns of a table; other cells do not change.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.corruptions.affected_cells import (
    count_affected,
)
from karat.corruptions.needs import (
    MISSPELLINGS,
    Corrupted,
    Items,
    corrupts,
    needed_file,
)
from karat.corruptions.table_columns import (
    TEXT,
    places,
    with_columns,
)

#: returns the number of places of a text that can change
Count = Callable[[str], int]
#: takes a text and the places to change, returns the changed text
WordChange = Callable[[str, tuple[int, ...]], str]
_WITH_TEXT = ("table", "text", "entity")
_WORD = re.compile(r"\S+")
_MARK = re.compile("[\u0300-\u036f]")
_LETTERS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


@corrupts("typos", takes=_WITH_TEXT, needs=("text",))
def typos(X: Items, y: pd.Series | None, severity: float, rng: np.random.Generator) -> Corrupted:
    """Swap each pair of neighboring letters with a probability of ``severity``."""

    def slipped(text: str, pairs: tuple[int, ...]) -> str:
        letters = list(text)
        for pair in pairs:
            i = 2 * pair
            letters[i], letters[i + 1] = letters[i + 1], letters[i]
        return "".join(letters)

    return _by_place(X, severity, rng, lambda text: len(text) // 2, slipped), y


@corrupts("case", takes=_WITH_TEXT, needs=("text",))
def case(X: Items, y: pd.Series | None, severity: float, rng: np.random.Generator) -> Corrupted:
    """Change each word to upper case, or back, with a probability of ``severity``."""

    def cased(text: str) -> list[re.Match[str]]:
        return [word for word in _WORD.finditer(text) if word[0].upper() != word[0].lower()]

    def other(word: str) -> str:
        return word.lower() if word == word.upper() else word.upper()

    def turned(text: str, words: tuple[int, ...]) -> str:
        changeable = cased(text)
        return _replaced(text, [(changeable[i].span(), other(changeable[i][0])) for i in words])

    return _by_place(X, severity, rng, lambda text: len(cased(text)), turned), y


@corrupts("accents", takes=_WITH_TEXT, needs=("text",))
def accents(X: Items, y: pd.Series | None, severity: float, rng: np.random.Generator) -> Corrupted:
    """Remove the accent of each accented letter with a probability of ``severity``.

    Letters such as ø or ß have no accent.
    """

    def bare(letter: str) -> str:
        return unicodedata.normalize("NFC", _MARK.sub("", unicodedata.normalize("NFD", letter)))

    def accented(text: str) -> list[int]:
        if text.isascii():
            return []
        return [
            i
            for i, letter in enumerate(text)
            if not letter.isascii() and _MARK.search(unicodedata.normalize("NFD", letter))
        ]

    def stripped(text: str, letters: tuple[int, ...]) -> str:
        chosen = [accented(text)[i] for i in letters]
        return _replaced(text, [((i, i + 1), bare(text[i])) for i in chosen])

    return _by_place(X, severity, rng, lambda text: len(accented(text)), stripped), y


@corrupts("whitespace", takes=_WITH_TEXT, needs=("text",))
def whitespace(
    X: Items, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Add a space before, between and after words, each with a probability of ``severity``."""

    def spaced(text: str, gaps: tuple[int, ...]) -> str:
        ends = [0, *(word.end() for word in _WORD.finditer(text))]
        return _replaced(text, [((ends[i], ends[i]), " ") for i in gaps])

    return _by_place(X, severity, rng, lambda text: _words(text) + 1, spaced), y


@corrupts("word_drop", takes=_WITH_TEXT, needs=("text",))
def word_drop(
    X: Items, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Drop each word with a probability of ``severity``; at least one word of a text remains."""

    def shortened(text: str, words: tuple[int, ...]) -> str:
        starts = [*(word.start() for word in _WORD.finditer(text)), len(text)]
        return _replaced(text, [((starts[i], starts[i + 1]), "") for i in words])

    return _by_place(X, severity, rng, _words, shortened, spare=True), y


@corrupts("word_swap", takes=_WITH_TEXT, needs=("text",))
def word_swap(
    X: Items, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Swap each pair of neighboring words with a probability of ``severity``."""

    def swapped(text: str, pairs: tuple[int, ...]) -> str:
        words = list(_WORD.finditer(text))
        turned = [(words[2 * i], words[2 * i + 1]) for i in pairs]
        both = [edit for a, b in turned for edit in ((a.span(), b[0]), (b.span(), a[0]))]
        return _replaced(text, both)

    return _by_place(X, severity, rng, lambda text: _words(text) // 2, swapped), y


@corrupts("misspellings", takes=_WITH_TEXT, needs=("text", "misspellings"))
def misspellings(
    X: Items, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Misspell each word of an English list, as people did, with a probability of ``severity``.

    All misspellings of a word are equally likely.
    """
    path = needed_file(MISSPELLINGS)
    listed = _misspelled(str(path), path.stat().st_mtime_ns)

    def places_of(text: object) -> list[tuple[re.Match[str], list[str]]]:
        words = _LETTERS.finditer(text) if isinstance(text, str) else ()
        candidates = [(word, listed.get(word[0]) or listed.get(word[0].lower())) for word in words]
        return [(word, others) for word, others in candidates if others]

    def wrong(texts: pd.Series) -> list[Any]:
        cells = texts.tolist()
        candidates = [places_of(cell) for cell in cells]
        draws = iter(rng.random((sum(map(len, candidates)), 2)).tolist())
        for i, words in enumerate(candidates):
            drawn = [(word, others, next(draws)) for word, others in words]
            edits = [
                (word.span(), _cased_like(word[0], others[int(which * len(others))]))
                for word, others, (hit, which) in drawn
                if hit < severity
            ]
            cells[i] = _replaced(cells[i], edits) if edits else cells[i]
        return cells

    return _on_texts(X, wrong), y


@functools.lru_cache(maxsize=4)
def _misspelled(path: str, _: int) -> dict[str, list[str]]:
    """Return the misspellings of each word of a file, in its order.

    Those that differ from the word in case only, or have other characters than letters,
    apostrophes and hyphens, are left out.
    """
    listed: dict[str, dict[str, None]] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        word, *others = line.split() or [""]
        good = [o for o in others if _LETTERS.fullmatch(o) and o.casefold() != word.casefold()]
        listed.setdefault(word, {}).update(dict.fromkeys(good))
    return {word: list(others) for word, others in listed.items() if others}


def _cased_like(word: str, other: str) -> str:
    """Return the other word in upper case or with a capital, if the word is not in lower case.

    >>> _cased_like("THEIR", "thier"), _cased_like("Their", "thier"), _cased_like("I", "i'm")
    ('THIER', 'Thier', "I'm")
    """
    if len(word) > 1 and word.isupper():
        return other.upper()
    return other[0].upper() + other[1:] if word[0].isupper() else other


@corrupts("truncation", takes=_WITH_TEXT, needs=("text",))
def truncation(
    X: Items, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Remove this share of the letters at the end of every text; the first one remains."""
    length_left = _Memo(lambda size: max(1, size - count_affected(size, severity)))

    def cut(texts: pd.Series) -> list[Any]:
        return [
            text[: length_left[len(text)]] if isinstance(text, str) else text
            for text in texts.tolist()
        ]

    return _on_texts(X, cut), y


def _words(text: str) -> int:
    return len(text.split())


def _replaced(text: str, edits: list[tuple[tuple[int, int], str]]) -> str:
    """Return a text with replaced spans, which are in order and do not overlap."""
    parts, done = [], 0
    for (start, end), new in edits:
        parts += [text[done:start], new]
        done = end
    return "".join([*parts, text[done:]])


def _on_texts(X: Items, change: Callable[[pd.Series], list[Any]]) -> Any:
    if isinstance(X, pd.DataFrame):
        return with_columns(X, {i: _on_texts(X.iloc[:, i], change) for i in places(X, TEXT)})
    dtype = "category" if isinstance(X.dtype, pd.CategoricalDtype) else X.dtype
    return pd.Series(change(X), index=X.index, dtype=dtype, name=X.name)


def _by_place(
    X: Items,
    severity: float,
    rng: np.random.Generator,
    counted: Count,
    change: WordChange,
    spare: bool = False,
) -> Any:
    """Return the texts changed at random places, drawn for all texts at once.

    ``spare`` excludes the place with the highest draw of every text.
    """
    sizes_of, done = _Memo(counted), _Memo(lambda key: change(*key))

    def changed(texts: pd.Series) -> list[Any]:
        cells = texts.tolist()
        sizes = np.array([sizes_of[c] if isinstance(c, str) else 0 for c in cells], dtype=np.intp)
        draws = rng.random(int(sizes.sum()))
        if spare:
            draws[_highest(draws, sizes)] = 1.0
        ends = np.cumsum(sizes)
        hits = np.flatnonzero(draws < severity)
        owners = np.searchsorted(ends, hits, side="right")
        local = (hits - (ends - sizes)[owners]).tolist()
        texts_hit, first = np.unique(owners, return_index=True)
        bounds = [*first.tolist(), len(local)]
        for k, i in enumerate(texts_hit.tolist()):
            cells[i] = done[cells[i], tuple(local[bounds[k] : bounds[k + 1]])]
        return cells

    return _on_texts(X, changed)


def _highest(draws: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return which draws are the highest of their text."""
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return np.zeros(0, dtype=bool)
    return draws == np.repeat(np.maximum.reduceat(draws, np.cumsum(sizes) - sizes), sizes)


class _Memo(dict[Any, Any]):
    """A cache of function results: the same words are in many cells."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def __missing__(self, key: object) -> Any:
        self[key] = self.function(key)
        return self[key]
