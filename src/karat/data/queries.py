"""The questions that a query generator makes of a dataset."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from karat.core.dataset import Dataset
from karat.core.registry import build, query_generators
from karat.errors import ContractError


def generate_queries(data: Dataset, how: Mapping[str, Any], seed: int) -> Dataset:
    """Return the questions that a query generator makes of a dataset, reproducible by the seed.

    The name of the query generator is appended to that of the dataset.
    """
    name = how["use"]
    params = {key: value for key, value in how.items() if key != "use"}
    rng = np.random.default_rng([seed, zlib.crc32(f"ask {name} {data.draw_key}".encode())])
    generated = build(
        f'ask "{name}"', query_generators.get(name), params, {"data": data, "rng": rng}
    )
    if not isinstance(generated, Dataset):
        raise ContractError(
            f'ask "{name}" must return a karat.Dataset, got {type(generated).__name__}.'
        )
    return dataclasses.replace(generated, name=f"{data.name} {name}", drawn_by=data.drawn_by)
