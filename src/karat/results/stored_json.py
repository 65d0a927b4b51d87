"""JSON of run folders: values that can be written, and objects that can be read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from karat.core.files import read_regular
from karat.errors import DataError


def parse_stored_json(content: str | bytes) -> Any:
    """Return the value of JSON; NaN and infinity, which are not JSON, are null."""
    return json.loads(content, parse_constant=lambda _: None)


def json_value(value: object) -> Any:
    """Return a value as JSON types; other objects become their repr.

    >>> json_value({"limit": float("nan"), "sizes": (1, 2)})
    {'limit': 'nan', 'sizes': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    try:
        content = parse_stored_json(read_regular(path))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"cannot read {path}: {error}.") from error
    if not isinstance(content, dict):
        raise DataError(f"cannot read {path}: it is no JSON object.")
    return content
