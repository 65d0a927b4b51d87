"""The score file of a task: one row per encoder and setting."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from karat.errors import DataError, MissingExtra

#: columns with the settings of the evaluation and the description of the encoder
CONFIG = "config"
ENCODER = "encoder_params"


def score_file(folder: str | Path, task: str) -> Path:
    """Return the path of a task's score file."""
    return Path(folder).expanduser() / f"scores_{task}.parquet"


def check_file(path: Path) -> None:
    """Create the folder, and raise before an evaluation if nothing can be saved there."""
    _need_pyarrow()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"save_dir: cannot create {path.parent}: {error.strerror}.") from error
    if path.exists():
        read_scores(path)


def as_config(settings: Mapping[str, Any]) -> str:
    """Return settings as one line of JSON with sorted keys."""
    return json.dumps(settings, sort_keys=True, default=str)


def read_scores(path: Path) -> pd.DataFrame:
    """Return the table of a score file; files written by TabEB get empty settings."""
    _need_pyarrow()
    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {str(error).splitlines()[0]}") from error
    if "encoder" not in table.columns:
        raise DataError(f'{path} is not a score file: it has no column "encoder".')
    for column in (CONFIG, ENCODER):
        table[column] = table[column].fillna("") if column in table.columns else ""
    return table


def averaged(cells: pd.DataFrame, task: str) -> pd.DataFrame:
    """Append ``<task>_average``, the mean of a row's scores; NaN if a score is missing."""
    scores = cells.drop(columns="encoder")
    return cells.assign(**{f"{task}_average": scores.mean(axis=1, skipna=False)})


def save_scores(frame: pd.DataFrame, path: Path, config: str, encoders: Mapping[str, str]) -> None:
    """Add the rows of an evaluation to a score file.

    A row with the same encoder and settings is replaced, except that a missing score does not
    replace an earlier one.
    """
    params = [encoders[name] for name in frame["encoder"]]
    table = frame.assign(**{CONFIG: config, ENCODER: params})
    if path.exists():
        table = _merged(read_scores(path), table, path)
    table.attrs = {}
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        table.to_parquet(part)
        os.replace(part, path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error}.") from error
    finally:
        part.unlink(missing_ok=True)


def _merged(old: pd.DataFrame, fresh: pd.DataFrame, path: Path) -> pd.DataFrame:
    config, average = fresh[CONFIG].iloc[0], fresh.columns[-3]
    same = old[CONFIG] == config
    if not same.all():
        warnings.warn(
            f"{path.name} also has {int((~same).sum())} rows with other settings, which are not "
            f"changed. Current settings: {config}",
            stacklevel=4,
        )
    again = same & old["encoder"].isin(fresh["encoder"])
    earlier = old[again].set_index("encoder").to_dict("index")
    rows = [_filled(row, earlier.get(row["encoder"], {}), path) for row in fresh.to_dict("records")]
    new = pd.DataFrame(rows, columns=fresh.columns)
    cells = new.drop(columns=[average, CONFIG, ENCODER])
    new[average] = averaged(cells, "all")["all_average"]
    if again.all():
        return new
    columns = [*dict.fromkeys([*old.columns, *new.columns])]
    columns.sort(key=(CONFIG, ENCODER).__contains__)
    return pd.concat([old[~again], new], ignore_index=True)[columns]


def _filled(row: dict[str, Any], before: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return a row of scores, with missing scores from the earlier row of the same encoder."""
    if before and before[ENCODER] != row[ENCODER]:
        warnings.warn(
            f"{path.name}: the parameters of {row['encoder']} changed; its row is replaced. "
            f"Before: {before[ENCODER] or 'unknown'}",
            stacklevel=5,
        )
        return row
    return {n: before.get(n, v) if isinstance(v, float) and v != v else v for n, v in row.items()}


def _need_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtra("pyarrow", "tables") from None
