"""Read the artifacts of a run; pickles only on request."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.artifacts import TAKEN
from karat.errors import DataError, did_you_mean
from karat.results.run import Run

PICKLES = (".pkl", ".pickle", ".joblib")


def load_artifact(
    run: Any, name: str, task: str, fold: int = 0, *, allow_pickle: bool = False
) -> Any:
    """Return an artifact of a run: the content of its file, or a dict by file name if several.

    CSV files give DataFrames, ``.json`` the parsed value, ``.npy`` arrays, text files strings,
    and other files bytes. Loading a pickle executes code: pass ``allow_pickle=True`` only if you
    trust the run.
    """
    opened = run if isinstance(run, Run) else Run.open(run)
    folder = opened.artifact_folder(name, {"task": task, "fold": fold})
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    if not files:
        folders = [path.name for path in opened.folder.iterdir() if path.is_dir()]
        known = sorted(set(folders) - set(TAKEN))
        raise DataError(
            f'{opened.folder} has no artifact "{name}" of {task}, fold {fold}.'
            f"{did_you_mean(name, known)} Available: {', '.join(known) or 'none'}."
        )
    loaded = {p.relative_to(folder).as_posix(): _load(p, allow_pickle) for p in files}
    return next(iter(loaded.values())) if len(loaded) == 1 else loaded


def _load(path: Path, allow_pickle: bool) -> Any:
    raw = path.read_bytes()
    if path.suffix in PICKLES:
        if not allow_pickle:
            raise DataError(
                f"{path} is a pickle, and loading it executes code; pass allow_pickle=True if you "
                f"trust the run."
            )
        import cloudpickle

        return cloudpickle.loads(raw)
    if path.suffix == ".csv":
        return pd.read_csv(io.BytesIO(raw))
    if path.suffix == ".json":
        return json.loads(raw)
    if path.suffix == ".npy":
        return np.load(io.BytesIO(raw), allow_pickle=False)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw
