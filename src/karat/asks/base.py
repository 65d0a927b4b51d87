"""What askers share: the rows they start from, their checks, and the questions they make."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.errors import ContractError, DataError, DefinitionError
from karat.registry import askers, build


def ask(data: Dataset, how: Mapping[str, Any], seed: int) -> Dataset:
    """Return the questions that an asker makes of a data set; the same seed, the same questions.

    They are told apart from the data set's own by their name.
    """
    name = how["use"]
    params = {key: value for key, value in how.items() if key != "use"}
    rng = np.random.default_rng([seed, zlib.crc32(f"ask {name} {data.name}".encode())])
    made = build(f'ask "{name}"', askers.get(name), params, {"data": data, "rng": rng})
    if not isinstance(made, Dataset):
        raise ContractError(f'ask "{name}" returned {type(made).__name__}, not a karat.Dataset.')
    return dataclasses.replace(made, name=f"{data.name} {name}")


def rows_of(data: Dataset, asker: str) -> pd.DataFrame:
    """Return the rows of a table that a data set asks about, each once."""
    if not isinstance(data.items, pd.DataFrame):
        raise DefinitionError(
            f"ask: {asker} takes the rows of a table; {data.name} has {data.modality} items."
        )
    return data.items.iloc[data.mentioned()]


def check_count(asker: str, what: str, value: Any) -> None:
    """Refuse what is not a whole number of 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise DefinitionError(
            f"ask: {asker}: {what} is a whole number of 1 or more, not {value!r}."
        )


def check_share(asker: str, what: str, value: Any) -> None:
    """Refuse what is not a share above 0 and at most 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise DefinitionError(f"ask: {asker}: {what} is above 0 and at most 1, not {value!r}.")


def searched(
    data: Dataset,
    items: pd.DataFrame | pd.Series,
    queries: Sequence[str],
    answers: Sequence[np.ndarray],
) -> Dataset:
    """Return questions whose truth is an item: each query once for each of its answers.

    ``items`` holds the candidates first, at the positions that ``answers`` means, then the queries.
    """
    if not len(queries):
        raise DataError(f"{data.name}: no query could be made of its rows.")
    sizes = [len(found) for found in answers]
    asked = np.repeat(np.asarray(queries, dtype=object), sizes)
    return Dataset(
        name=data.name,
        items=items,
        questions=pd.DataFrame({"query": asked}),
        truth=items.index.to_numpy()[np.concatenate(answers)],
        kind="items",
        modality="table" if isinstance(items, pd.DataFrame) else "text",
        group=asked,
        about=data.about,
    )
