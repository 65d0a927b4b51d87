"""The reader "word-pairs": two words per line and their similarity score."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from karat.data.gold import lines, lowered
from karat.data.load import DataSpec, Files
from karat.data.questions import ask, one_file
from karat.dataset import Dataset
from karat.errors import DataError
from karat.registry import reader

COLUMNS = ("word1", "word2", "score")


@reader("word-pairs")
def read_word_pairs(files: Files, spec: DataSpec) -> Dataset:
    """Return a question about the similarity of the two words of each line.

    A line is split at tabs if it has any (a term may then contain spaces), else at whitespace;
    lines that begin with ``#`` are comments. Words are entities: vector files look up the word,
    text encoders encode it. ``lower: true`` converts to lower case, as most vector files need.
    """
    spec.check_options("lower")
    path = one_file(files, spec)
    rows = []
    for number, line in lines(path):
        if line.startswith("#"):
            continue
        cells = line.split("\t") if "\t" in line else line.split()
        cells = [cell.strip() for cell in cells if cell.strip()]
        if len(cells) != 3:
            raise DataError(
                f"{path}, line {number}: expected two words and a number, got {len(cells)} cells."
            )
        rows.append([*lowered(cells[:2], spec), _number(cells[2], f"{path}, line {number}")])
    if not rows:
        raise DataError(f"{path} has no words, only comments.")
    asked = replace(spec, fields=COLUMNS[:2], target="score", kind="numbers", modality="entity")
    return ask(pd.DataFrame(rows, columns=list(COLUMNS)), asked, None)


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f'{where}: "{text}" is not a number.') from None
