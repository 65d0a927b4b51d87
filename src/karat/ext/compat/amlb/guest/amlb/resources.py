"""The configuration that frameworks of the AutoML Benchmark read from ``amlb.resources``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from amlb.utils import Namespace

#: the parent's values, as JSON
VARIABLE = "KARAT_AMLB_CONFIG"


def config() -> Any:
    """Return the configuration of the run."""
    root = str(Path(__file__).parents[1])
    values = {
        "root_dir": root,
        "test_mode": False,
        "token_separator": ".",
        "monitoring": {"interval_seconds": 0, "verbosity": 0, "statistics": []},
        "inference_time_measurements": {"enabled": False},
        **json.loads(os.environ.get(VARIABLE, "{}")),
    }
    return Namespace.from_dict(values)
