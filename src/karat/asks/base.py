"""Functions that query generators share."""

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
    """Return the questions that a query generator makes of a dataset, reproducible by the seed.

    The name of the query generator is appended to that of the dataset.
    """
    name = how["use"]
    params = {key: value for key, value in how.items() if key != "use"}
    rng = np.random.default_rng([seed, zlib.crc32(f"ask {name} {data.name}".encode())])
    generated = build(f'ask "{name}"', askers.get(name), params, {"data": data, "rng": rng})
    if not isinstance(generated, Dataset):
        raise ContractError(
            f'ask "{name}" must return a karat.Dataset, got {type(generated).__name__}.'
        )
    return dataclasses.replace(generated, name=f"{data.name} {name}")


def rows_of(data: Dataset, generator: str) -> pd.DataFrame:
    """Return the distinct rows of a table that the questions refer to."""
    if not isinstance(data.items, pd.DataFrame):
        raise DefinitionError(
            f"ask: {generator} needs the rows of a table; {data.name} has {data.modality} items."
        )
    return data.items.iloc[data.mentioned()]


def check_count(generator: str, parameter: str, value: Any) -> None:
    """Raise a DefinitionError unless the value is an integer >= 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise DefinitionError(
            f"ask: {generator}: {parameter} must be an integer >= 1, got {value!r}."
        )


def check_share(generator: str, parameter: str, value: Any) -> None:
    """Raise a DefinitionError unless the value is above 0 and at most 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise DefinitionError(
            f"ask: {generator}: {parameter} must be above 0 and at most 1, got {value!r}."
        )


def searched(
    data: Dataset,
    items: pd.DataFrame | pd.Series,
    queries: Sequence[str],
    answers: Sequence[np.ndarray],
) -> Dataset:
    """Return questions whose target is an item: each query once for each of its answers.

    ``items`` has the candidates first, at the positions in ``answers``, then the queries.
    """
    if not len(queries):
        raise DataError(f"{data.name}: no query could be generated from its rows.")
    sizes = [len(found) for found in answers]
    repeated = np.repeat(np.asarray(queries, dtype=object), sizes)
    return Dataset(
        name=data.name,
        items=items,
        questions=pd.DataFrame({"query": repeated}),
        truth=items.index.to_numpy()[np.concatenate(answers)],
        kind="items",
        modality="table" if isinstance(items, pd.DataFrame) else "text",
        group=repeated,
        about=data.about,
    )
