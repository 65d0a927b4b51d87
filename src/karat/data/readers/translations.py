"""Read translations: gettext files in which each translation asks for its original."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from karat.core.dataset import Dataset
from karat.core.registry import reader
from karat.data.load_dataset import DataSpec, Files
from karat.data.readers.table_files import (
    one_file,
    read_text,
)
from karat.errors import DataError

_KEYWORD = r"(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)?"
_LINE = re.compile(_KEYWORD + r'\s*("(?:[^"\\]|\\.)*")')
_MARKUP = re.compile(r"[%<{]")


@reader("translations")
def read_translations(files: Files, spec: DataSpec) -> Dataset:
    """Return each translation of a ``.po`` file as a query whose target is the original.

    The files of a folder and its subfolders are read in the order of their paths. Options:
    ``words`` is the minimum number of words of an original (1), and ``plain: true`` skips messages
    with markup or placeholders, which both sides share. Of plural forms the singular is used.
    Untranslated and fuzzy messages, and translations equal to any original, are skipped. With
    ``unique: true`` each query has one right answer: texts that differ only in case, spaces and
    final punctuation are the same; of several translations of an original the first counts, and
    translations of several originals are skipped.
    """
    spec.check_options("words", "plain", "unique")
    least = spec.integer("words", 1, 1)
    path = one_file(files, spec)
    plain = bool(spec.options.get("plain"))
    messages = []
    for texts in _messages(path):
        original = texts.get("msgid", "").strip()
        translation = texts.get("msgstr", texts.get("msgstr[0]", "")).strip()
        marked = plain and _MARKUP.search(original + translation)
        if original and translation and len(original.split()) >= least and not marked:
            messages.append((original, translation))
    pairs = pd.DataFrame(messages, columns=["original", "translation"]).drop_duplicates()
    pairs = pairs[~pairs["translation"].isin(pairs["original"])]
    pairs = _one_to_one(pairs) if spec.options.get("unique") else pairs
    if len(pairs) < 2:
        raise DataError(f"{path}: at least two translated messages are needed, got {len(pairs)}.")
    return Dataset.from_columns(
        pairs, ["translation"], "original", name=spec.name, kind="items", about=spec.about
    )


def _one_to_one(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of which neither text occurs in another one; see the option ``unique``."""
    keys = pairs.map(lambda text: " ".join(text.casefold().split()).rstrip(" .:!?…。"))
    pairs = pairs[(keys["translation"] != keys["original"]) & ~keys["original"].duplicated()]
    return pairs[~keys["translation"].loc[pairs.index].duplicated(keep=False)]


def _messages(path: Path) -> Iterator[dict[str, str]]:
    """Yield the texts of each message of a file, or of all ``.po`` files of a folder."""
    files = sorted(path.rglob("*.po")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"{path} has no gettext file (.po).")
    for file in files:
        for block in re.split(r"\n\s*\n", read_text(file)):
            yield _message(block, file)


def _message(block: str, path: Path) -> dict[str, str]:
    """Return the texts of one message by keyword; none if it is fuzzy."""
    texts: dict[str, str] = {}
    keyword = ""
    for line in map(str.strip, block.splitlines()):
        if line.startswith("#"):
            if line.startswith("#,") and "fuzzy" in line:
                return {}
            continue
        match = _LINE.fullmatch(line)
        if match is None or not (match[1] or keyword):
            if not line:
                continue
            raise DataError(f"{path} is not a gettext file (.po): unexpected line {line[:60]!r}.")
        keyword = match[1] or keyword
        try:
            texts[keyword] = texts.get(keyword, "") + str(ast.literal_eval(match[2]))
        except (SyntaxError, ValueError) as error:
            raise DataError(f"{path} has an invalid string: {match[2][:60]}.") from error
    return texts
