"""The file of a task's scores: one row per encoder and setting, merged and never mixed."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from karat.errors import DataError, MissingExtra

#: how an evaluation was done, and what the encoder was, as text beside each row of scores
CONFIG = "config"
ENCODER = "encoder_params"


def score_file(folder: str | Path, task: str) -> Path:
    """Return where a task's scores stand."""
    return Path(folder).expanduser() / f"scores_{task}.parquet"


def check_file(path: Path) -> None:
    """Make the folder; say before a run, and not after it, that nothing can be saved there."""
    _need_pyarrow()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"save_dir: {path.parent} is no folder: {error.strerror}.") from error
    if path.exists():
        read_scores(path)


def as_config(settings: Mapping[str, Any]) -> str:
    """Return settings as one line of text, the same for the same settings."""
    return json.dumps(settings, sort_keys=True, default=str)


def read_scores(path: Path) -> pd.DataFrame:
    """Return the table of a score file; one that TabEB itself wrote has no settings."""
    _need_pyarrow()
    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error
    if "encoder" not in table.columns:
        raise DataError(f'{path} holds no scores: it has no column "encoder".')
    for column in (CONFIG, ENCODER):
        table[column] = table[column].fillna("") if column in table.columns else ""
    return table


def averaged(cells: pd.DataFrame, task: str) -> pd.DataFrame:
    """Return encoders and their scores with ``<task>_average``, the plain mean, as last column.

    A row without all of its scores has no mean: a mean over fewer data sets is another number.
    """
    scores = cells.drop(columns="encoder")
    return cells.assign(**{f"{task}_average": scores.mean(axis=1, skipna=False)})


def save_scores(frame: pd.DataFrame, path: Path, config: str, encoders: Mapping[str, str]) -> None:
    """Add the rows of an evaluation to a score file; rows of another setting stay as they are.

    A row of the same encoder and setting is replaced, but a score that is missing now does not
    erase one that was there.
    """
    told = {CONFIG: config, ENCODER: [encoders[name] for name in frame["encoder"]]}
    table = frame.assign(**told)
    if path.exists():
        table = _merged(read_scores(path), table, path)
    table.attrs = {}
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        table.to_parquet(part)
        os.replace(part, path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error}.") from error
    finally:
        part.unlink(missing_ok=True)


def _merged(old: pd.DataFrame, fresh: pd.DataFrame, path: Path) -> pd.DataFrame:
    config, average = fresh[CONFIG].iloc[0], fresh.columns[-3]
    same = old[CONFIG] == config
    if not same.all():
        warnings.warn(
            f"{path.name} also holds {int((~same).sum())} rows of other settings; they stay there "
            f"as rows of their own. Now: {config}",
            stacklevel=4,
        )
    again = same & old["encoder"].isin(fresh["encoder"])
    known = old[again].set_index("encoder").to_dict("index")
    rows = [_kept(known.get(row["encoder"], {}), row, path) for row in fresh.to_dict("records")]
    new = pd.DataFrame(rows, columns=fresh.columns)
    cells = new.drop(columns=[average, CONFIG, ENCODER])
    new[average] = averaged(cells, "all")["all_average"]
    if again.all():
        return new
    columns = [*dict.fromkeys([*old.columns, *new.columns])]
    columns.sort(key=(CONFIG, ENCODER).__contains__)
    return pd.concat([old[~again], new], ignore_index=True)[columns]


def _kept(before: Mapping[str, Any], row: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a row of scores; where one is missing, that of the same encoder before."""
    if before and before[ENCODER] != row[ENCODER]:
        warnings.warn(
            f"{path.name}: {row['encoder']} has other parameters than before; its row is "
            f"replaced. Before: {before[ENCODER] or 'unknown'}",
            stacklevel=5,
        )
        return row
    return {n: before.get(n, v) if isinstance(v, float) and v != v else v for n, v in row.items()}


def _need_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtra("pyarrow", "tables") from None
