"""The five tables of the TACO benchmark as CSV files, and synthetic replacements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.registry import reader
from karat.data.load_dataset import DataSpec, Files, check_integer
from karat.data.readers.table_files import OPTIONS, ask_rows, one_file, read_frame, without_target
from karat.errors import DataError, DefinitionError, did_you_mean

#: minimum number of synthetic rows, so that the rarer class occurs
LEAST = 100
#: the two classes; the last one is the positive class
ANSWERS = ("no", "yes")


@reader("taco")
def read_taco(files: Files, spec: DataSpec) -> Dataset:
    """Return a table whose target is in one of several columns and must be converted.

    Options: ``targets`` are the possible target columns. The first existing one is used; the
    others are not features. For classes, ``positive`` is a text that a "yes" contains; a column of
    0 and 1 is used as it is. For numbers, ``above`` drops rows whose target is not a number above
    this value, and ``log`` uses log(1 + number). Columns in ``drop`` and ``group`` may be absent;
    ``group`` is not a feature.
    """
    spec.check_options("targets", "positive", "above", "log", *OPTIONS)
    path = one_file(files, spec)
    frame = read_frame(path, without_target(spec))
    targets = [str(name) for name in spec.options.get("targets") or [spec.target]]
    target = next((name for name in targets if name in frame.columns), None)
    if target is None:
        near = did_you_mean(targets[0], [str(column) for column in frame.columns])
        raise DataError(f"{path} has no column {' or '.join(map(repr, targets))}.{near}")
    convert = _numbers if spec.kind == "regression" else _yes
    frame = convert(frame, target, spec, path)
    group = spec.group if spec.group in frame.columns else None
    unused = {*spec.drop, *targets, group} - {target}
    drop = tuple(name for name in frame.columns if name in unused)
    data = ask_rows(frame, replace(spec, target=target, group=group, drop=drop, options={}))
    if spec.kind == "regression":
        return data
    return replace(data, classes=tuple(name for name in ANSWERS if name in data.classes))


def _yes(frame: pd.DataFrame, target: str, spec: DataSpec, path: Path) -> pd.DataFrame:
    frame = frame[frame[target].notna()]
    answers = frame[target]
    positive = str(spec.options.get("positive", "1"))
    if pd.api.types.is_numeric_dtype(answers):
        found, valid = answers == 1, answers.isin([0, 1]).all()
        expected = "only 0 and 1, and some 1"
    else:
        found, valid = answers.astype(str).str.contains(positive, regex=False), True
        expected = f'some "{positive}"'
    if not valid or not found.any():
        shown = ", ".join(map(str, answers.unique()[:5])) or "nothing"
        raise DataError(f'{path}: the column "{target}" must have {expected}, got {shown}.')
    return frame.assign(**{target: np.where(found, ANSWERS[1], ANSWERS[0])})


def _numbers(frame: pd.DataFrame, target: str, spec: DataSpec, path: Path) -> pd.DataFrame:
    written = frame[target]
    if not pd.api.types.is_numeric_dtype(written):
        # New York's files have commas in thousands and a dash for missing values
        written = pd.to_numeric(written.astype(str).str.replace(",", "").str.strip(), "coerce")
    numbers = written.astype(float)
    least = float(spec.options.get("above", -np.inf))
    valid = np.isfinite(numbers) & (numbers > least)
    if not valid.any():
        shown = ", ".join(map(str, frame[target].unique()[:5]))
        raise DataError(
            f'{path}: the column "{target}" must have numbers above {least:g}, got {shown}.'
        )
    numbers = numbers[valid]
    return frame[valid].assign(
        **{target: np.log1p(numbers) if spec.options.get("log") else numbers}
    )


def synthetic(name: str, like: str, rows: int = 5000, seed: int = 0) -> Dataset:
    """Return synthetic rows with the columns of one of TACO's tables, for use without the file.

    No value is real: use it to test a pipeline, not to compare models. The name of the dataset
    must contain "synthetic".
    """
    if like not in _SCHEMAS:
        known = ", ".join(_SCHEMAS)
        raise DefinitionError(f'{name}: unknown synthetic table "{like}": expected one of {known}.')
    if "synthetic" not in name:
        raise DefinitionError(f'{name}: the name of synthetic data must contain "synthetic".')
    check_integer(name, "rows", rows, LEAST)
    rng = np.random.default_rng([seed, list(_SCHEMAS).index(like)])
    table, score = _SCHEMAS[like](rows, rng)
    noisy = score + rng.normal(0.0, 0.7 * score.std(), rows)
    if like == "nyc":
        target: np.ndarray = 12.0 + noisy
    else:
        target = np.where(noisy > np.quantile(noisy, _NEGATIVE[like]), ANSWERS[1], ANSWERS[0])
    data = Dataset.from_table(
        table.assign(answer=target),
        "answer",
        name=name,
        kind="regression" if like == "nyc" else "classification",
        about={"source": "synthetic: made up by Karat, no real row"},
    )
    return data if like == "nyc" else replace(data, classes=ANSWERS)


#: the share of "no" in the real tables
_NEGATIVE = {"diabetes": 0.89, "porto": 0.96, "ieee": 0.965}
Made = tuple[pd.DataFrame, np.ndarray]


def _diabetes(rows: int, rng: np.random.Generator) -> Made:
    age = rng.integers(0, 10, rows)
    inpatient, days = rng.poisson(0.6, rows), rng.integers(1, 15, rows)
    table = pd.DataFrame(
        {
            "race": rng.choice(["Caucasian", "AfricanAmerican", "Hispanic", "Other"], rows),
            "gender": rng.choice(["Female", "Male"], rows),
            "age": [f"[{10 * decade}-{10 * decade + 10})" for decade in age],
            "time_in_hospital": days,
            "num_lab_procedures": rng.integers(1, 130, rows),
            "num_medications": rng.poisson(16, rows),
            "number_inpatient": inpatient,
            "diag_1": rng.choice([f"{code}" for code in range(250, 290)], rows),
            "insulin": rng.choice(["No", "Steady", "Up", "Down"], rows),
            "diabetesMed": rng.choice(["Yes", "No"], rows, p=[0.77, 0.23]),
        }
    )
    return table, inpatient + 0.05 * days + 0.1 * age


def _porto(rows: int, rng: np.random.Generator) -> Made:
    numbers = rng.normal(size=(rows, 4))
    codes = rng.integers(0, 5, size=(rows, 3))
    flags = rng.integers(0, 2, size=(rows, 3))
    table = pd.DataFrame(
        {
            **{f"ps_reg_{i:02d}": np.abs(numbers[:, i]).round(2) for i in range(2)},
            **{f"ps_car_{i + 12}": np.abs(numbers[:, i]).round(4) for i in range(2, 4)},
            **{f"ps_ind_{i:02d}_cat": codes[:, i].astype(str) for i in range(3)},
            **{f"ps_ind_{i:02d}_bin": flags[:, i - 6] for i in range(6, 9)},
        }
    )
    return table, np.abs(numbers[:, 0]) + 0.5 * codes[:, 1] - 0.5 * flags[:, 0]


def _ieee(rows: int, rng: np.random.Generator) -> Made:
    amount = rng.lognormal(4.0, 1.2, rows)
    product = rng.integers(0, 5, rows)
    hidden = rng.normal(size=(rows, 3))
    table = pd.DataFrame(
        {
            "TransactionAmt": amount.round(2),
            "ProductCD": np.array(list("WHCSR"))[product],
            "card4": rng.choice(["visa", "mastercard", "discover", "american express"], rows),
            "card6": rng.choice(["debit", "credit"], rows, p=[0.75, 0.25]),
            "P_emaildomain": rng.choice(["gmail.com", "yahoo.com", "hotmail.com", "aol.com"], rows),
            **{f"C{i + 1}": np.rint(np.exp(hidden[:, i])) for i in range(2)},
            "D1": np.where(rng.random(rows) < 0.2, np.nan, np.rint(50 * np.abs(hidden[:, 2]))),
        }
    )
    return table, np.log(amount) + 0.8 * (product == 2) + 0.5 * hidden[:, 0]


def _nyc(rows: int, rng: np.random.Generator) -> Made:
    borough, units = rng.integers(1, 6, rows), rng.poisson(1.5, rows) + 1
    area = 10 * borough + rng.integers(9, size=rows)
    size = rng.lognormal(7.2, 0.6, rows)
    table = pd.DataFrame(
        {
            "BOROUGH": borough.astype(str),
            "NEIGHBORHOOD": [f"AREA {number}" for number in area],
            "BUILDING CLASS CATEGORY": rng.choice(["01 ONE FAMILY", "10 COOPS", "13 CONDOS"], rows),
            "TOTAL UNITS": units,
            "GROSS SQUARE FEET": np.where(rng.random(rows) < 0.3, np.nan, size.round()),
            "YEAR BUILT": rng.integers(1890, 2018, rows),
        }
    )
    return table, np.log(size) - 7.2 + 0.4 * (borough == 1) + 0.1 * units


_SCHEMAS: dict[str, Callable[[int, np.random.Generator], Made]] = {
    "diabetes": _diabetes,
    "porto": _porto,
    "ieee": _ieee,
    "nyc": _nyc,
}
