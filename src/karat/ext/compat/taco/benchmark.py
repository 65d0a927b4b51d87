"""TACO's functions: seven corruptions, and five models on one clean and corrupted split.

The reader "taco" reads the five tables of the benchmark from CSV files; ``synthetic`` makes others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from karat.config.catalog import Catalog, change_models
from karat.core.columns import infer_kind, refuse_fractions, target_values
from karat.core.dataset import Dataset
from karat.core.files import safe_name
from karat.core.registry import reader
from karat.core.task import Task
from karat.data.load_dataset import DataSpec, Files, check_integer
from karat.data.readers.table_files import OPTIONS, ask_rows, one_file, read_frame, without_target
from karat.errors import DataError, DefinitionError, KaratWarning, MissingExtra, did_you_mean
from karat.execution.arguments import Output
from karat.execution.evaluation import evaluate
from karat.execution.progress import Progress
from karat.execution.splits import split
from karat.ext.compat.taco.corruption_functions import NAMES, Target
from karat.ext.compat.taco.result_files import (
    MODEL_NAMES,
    taco_tables,
    write_files,
)
from karat.results.run import Run

#: not defined for regression
FOR_CLASSES = ("missingness_mnar", "rare_class_dilution")
SEVERITIES = (0.1, 0.2, 0.4)
SEED = 42
MODELS = {kind: tuple(names) for kind, names in MODEL_NAMES.items()}
#: severities of pairs: both at the middle one, every combination, or no pairs
PAIRS = ("middle", "all", "none")
#: the share below which Karat's models merge levels of a category
MIN_FREQUENCY = 0.005


_SIDES = ("train", "test")
#: the features of rows
Features: TypeAlias = pd.DataFrame | np.ndarray | Sequence[Any]
#: minimum number of synthetic rows, so that the rarer class occurs
LEAST = 100
#: the two classes; the last one is the positive class
ANSWERS = ("no", "yes")
#: the share of "no" in the real tables
_NEGATIVE = {"diabetes": 0.89, "porto": 0.96, "ieee": 0.965}
Made = tuple[pd.DataFrame, np.ndarray]


def given_split(name: str, X: Sequence[Any], y: Sequence[Any], task: str | None) -> Dataset:
    """Return train and test rows as one dataset; the task is inferred if None."""
    if task is not None and task not in MODELS:
        hint = did_you_mean(str(task), MODELS)
        raise DefinitionError(f'task must be "classification" or "regression", got {task!r}.{hint}')
    if not isinstance(name, str) or not name.strip():
        raise DefinitionError(f"dataset_name must be a non-empty string, got {name!r}.")
    tables = [_table(rows, f"{name}: X_{side}") for rows, side in zip(X, _SIDES, strict=True)]
    targets = [_target(values, f"{name}: y_{side}") for values, side in zip(y, _SIDES, strict=True)]
    for table, target, side in zip(tables, targets, _SIDES, strict=True):
        if len(table) != len(target):
            raise DataError(
                f"{name}: X_{side} has {len(table)} rows but y_{side} has {len(target)}."
            )
    _check_columns(name, *tables)
    items = pd.concat([tables[0], tables[1][tables[0].columns]], ignore_index=True)
    target = pd.concat(targets, ignore_index=True)
    kind = _inferred(target, name) if task is None else task
    truth = target_values(target, kind, f"{name}: y")
    if kind == "classification":
        refuse_fractions(truth, f"{name}: y")
    return Dataset(
        name=name,
        items=items,
        questions=pd.DataFrame({"row": items.index}),
        target=truth,
        kind=kind,
        modality="table",
        part=np.repeat(_SIDES, [len(table) for table in tables]),
    )


def _table(X: Features, where: str) -> pd.DataFrame:
    if not isinstance(X, pd.DataFrame):
        values = np.asarray(X)
        if values.ndim != 2:
            raise DataError(f"{where} must have two dimensions, got {values.ndim}.")
        return pd.DataFrame(values).infer_objects().add_prefix("column ")
    if not len(X) or not X.shape[1]:
        raise DataError(f"{where} is empty: {X.shape[0]} rows, {X.shape[1]} columns.")
    return X.rename(columns=str)


def _target(y: Target, where: str) -> pd.Series:
    if isinstance(y, pd.DataFrame) and y.shape[1] == 1:
        y = y.iloc[:, 0]
    if not isinstance(y, pd.Series):
        y = np.asarray(y)
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if np.ndim(y) != 1:
        raise DataError(f"{where} must have one value per row, got {np.ndim(y)} dimensions.")
    target = pd.Series(y)
    missing = int(target.isna().sum())
    if missing:
        raise DataError(f"{where} is missing in {missing} of {len(target)} rows; remove these.")
    return target


def _check_columns(name: str, train: pd.DataFrame, test: pd.DataFrame) -> None:
    for one, other, side in ((train, test, "test"), (test, train, "train")):
        missing = [column for column in one.columns if column not in other.columns]
        if missing:
            hint = did_you_mean(missing[0], other.columns)
            raise DataError(f'{name}: X_{side} has no column "{missing[0]}".{hint}')


def _inferred(target: pd.Series, name: str) -> str:
    values = target_values(target, None, f"{name}: y")
    with warnings.catch_warnings(record=True) as guesses:
        warnings.simplefilter("always")
        kind = infer_kind(values, name)
    distinct = target.nunique()
    if guesses and distinct > 2:
        warnings.warn(
            f"{name}: y has {distinct} distinct integers; assuming {kind}. Pass "
            f'task="classification" or task="regression" to silence this warning.',
            stacklevel=4,
        )
    return kind


def run_benchmark(
    dataset_name: str,
    X_train: Features,
    X_test: Features,
    y_train: Target,
    y_test: Target,
    results_dir: str | Path = "results",
    task: str | None = None,
    severities: Sequence[float] = SEVERITIES,
    *,
    draws: int = 1,
    pairs: str = "middle",
    keep_predictions: str = "clean",
    min_frequency: float | None = MIN_FREQUENCY,
    missing_category: str = "level",
    models: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Fit on the training rows, test on clean and corrupted data, and write TACO's files.

    ``results_dir`` gets ``metrics_<name>_<task>.csv``, ``confusion_<name>_classification.csv``,
    plots of the clean confusion matrices, the curves in ``<name>_plots`` and, in ``runs``, the run
    folders. Models that cannot be evaluated give a warning.

    Parameters
    ----------
    dataset_name, X_train, X_test, y_train, y_test, results_dir, severities
        As in TACO.
    task
        ``"classification"`` or ``"regression"``. Default: inferred from ``y``.
    draws
        Number of random draws of each corruption; the files have means over them.
    pairs
        ``"middle"`` tests each pair of corruptions at the middle severity, ``"all"`` at every
        combination of severities, ``"none"`` tests no pairs.
    keep_predictions
        ``"all"`` stores the predictions on every corrupted view, ``"clean"`` only those on clean
        data.
    min_frequency
        Levels of a category below this share of the training rows are merged. None: as in TACO,
        each level has its own column.
    missing_category
        A missing category is a ``"level"`` of its own or, as in TACO, the ``"most_frequent"`` one.
    models
        Names and models as in ``karat.evaluate``, such as ``TablePredictor("my_module:Forest")``,
        which has these two options itself. Default: TACO's five models.
    """
    data = given_split(dataset_name, (X_train, X_test), (y_train, y_test), task)
    options = (draws, pairs, keep_predictions, min_frequency, missing_category, models)
    _warned(benchmark(data, Setting(Path(results_dir), tuple(severities), SEED, *options)))
    return {
        "dataset_name": dataset_name,
        "task": data.kind,
        "results_dir": results_dir,
        "severities": list(severities),
    }


def run_classification_suite(
    name: str,
    X_train: Features,
    X_test: Features,
    y_train: Target,
    y_test: Target,
    results_dir: str | Path = "results",
    severities: Sequence[float] = SEVERITIES,
    random_state: int = SEED,
    *,
    draws: int = 1,
    pairs: str = "middle",
    keep_predictions: str = "clean",
    min_frequency: float | None = MIN_FREQUENCY,
    missing_category: str = "level",
    models: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Run a classification benchmark and return the table of ``metrics_<name>_classification``.

    The options are those of ``run_benchmark``.
    """
    data = given_split(name, (X_train, X_test), (y_train, y_test), "classification")
    options = (draws, pairs, keep_predictions, min_frequency, missing_category, models)
    setting = Setting(Path(results_dir), tuple(severities), random_state, *options)
    return _warned(benchmark(data, setting))


def run_regression_suite(
    name: str,
    X_train: Features,
    X_test: Features,
    y_train: Target,
    y_test: Target,
    results_dir: str | Path = "results",
    severities: Sequence[float] = SEVERITIES,
    random_state: int = SEED,
    *,
    draws: int = 1,
    pairs: str = "middle",
    keep_predictions: str = "clean",
    min_frequency: float | None = MIN_FREQUENCY,
    missing_category: str = "level",
    models: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Run a regression benchmark and return the table of ``metrics_<name>_regression``.

    The options are those of ``run_benchmark``.
    """
    data = given_split(name, (X_train, X_test), (y_train, y_test), "regression")
    options = (draws, pairs, keep_predictions, min_frequency, missing_category, models)
    setting = Setting(Path(results_dir), tuple(severities), random_state, *options)
    return _warned(benchmark(data, setting))


def with_test_rows(data: Dataset, name: str, seed: int = SEED) -> Dataset:
    """Return the data with 20 % test rows, the same as in the suite ``taco``."""
    (fold,) = split(data, {"use": "holdout", "test": 0.2}, seed)
    part = np.full(len(data), "train", dtype=object)
    part[fold.test] = "test"
    return replace(data, name=name, part=part)


@dataclass(frozen=True)
class Setting:
    """Options of the benchmark, see ``run_benchmark``."""

    results_dir: Path
    severities: tuple[float, ...] = SEVERITIES
    seed: int = SEED
    draws: int = 1
    pairs: str = "middle"
    keep_predictions: str = "clean"
    min_frequency: float | None = MIN_FREQUENCY
    missing_category: str = "level"
    models: Mapping[str, Any] | None = None
    workers: int = 0

    def __post_init__(self) -> None:
        if self.pairs not in PAIRS:
            hint = did_you_mean(str(self.pairs), PAIRS)
            raise DefinitionError(
                f'pairs must be "middle", "all" or "none", got {self.pairs!r}.{hint}'
            )


@dataclass(frozen=True)
class Results:
    """The table of metrics, the files written, and notes for the user."""

    metrics: pd.DataFrame
    files: list[Path]
    notes: list[str]


def benchmark(data: Dataset, setting: Setting, progress: Progress | None = None) -> Results:
    """Evaluate the models on a dataset with train and test rows, and write TACO's files."""
    task = _task(data, setting)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KaratWarning)  # the notes tell of failures
        runs = evaluate(
            _models(task.kind, setting),
            task,
            seed=setting.seed,
            workers=setting.workers,
            output=Output(setting.results_dir / "runs", cache=False),
            progress=progress,
        )
    notes = list(_notes(runs))
    tables = list(taco_tables(runs))
    if not tables:
        raise DataError(f"{data.name}: no model could be evaluated. {' '.join(notes)}")
    files = write_files(tables, setting.results_dir)
    from karat.ext.compat.taco import taco_plots

    try:
        folder = setting.results_dir / f"{safe_name(data.name)}_plots"
        files += taco_plots.plot_confusions(dict(tables), setting.results_dir)
        files += taco_plots.plot_runs(runs, folder) if task.corruptions else []
    except MissingExtra as error:
        notes.append(f"no plots: {error}.")
    return Results(tables[0][1], files, notes)


def _models(kind: str, setting: Setting) -> Any:
    """Return the user's models, or Karat's under TACO's names."""
    if setting.models is not None:
        return setting.models
    named = {name: MODEL_NAMES[kind].get(name, name) for name in MODELS[kind]}
    usual = {"min_frequency": MIN_FREQUENCY, "missing_category": "level"}
    changed = {name: getattr(setting, name) for name in usual}
    return named if changed == usual else change_models(Catalog().models(named), changed)


def _task(data: Dataset, setting: Setting) -> Task:
    """Return a task of the suite ``taco`` with this dataset and these severities."""
    pattern = "multiclass" if len(data.classes) > 2 else data.kind
    definition = Catalog().definitions.get("tasks", f"taco-{pattern}")
    return Task(
        data.name,
        data,
        probe=definition["probe"],
        split="fixed",
        metrics=definition["metrics"],
        corruptions=_corruptions(data.kind, setting.severities, setting.pairs),
        draws=setting.draws,
        kind=data.kind,
        keep_predictions=setting.keep_predictions,
    )


def _corruptions(task: str, severities: Sequence[float], pairs: str) -> dict[str, Sequence[float]]:
    """Return all corruptions at all severities, and the pairs."""
    if not severities:
        return {}
    names = [name for name in NAMES if task == "classification" or name not in FOR_CLASSES]
    chosen: dict[str, Sequence[float]] = {name: severities for name in names}
    for a, b in combinations(names, 2) if pairs != "none" else ():
        chosen[f"{a}+{b}"] = severities if pairs == "all" else [severities[len(severities) // 2]]
        for one, other in permutations(severities, 2) if pairs == "all" else ():
            chosen[f"{a}@{one:g}+{b}@{other:g}"] = [1.0]
    return chosen


def _notes(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the failures and notes of models, and corruptions that do not apply to the data."""
    declined: dict[str, None] = {}
    for run in runs:
        for record in run.records():
            failure = [record["info"]] if record["status"] != "ok" else []
            for text in (*failure, *record["notes"]):
                yield f"{run.model}: {text.rstrip('.')}."
            views = [view for view in record["views"] if view["status"] == "declined"]
            declined |= dict.fromkeys(view["info"].rstrip(".") for view in views)
    yield from (f"left out: {reason}." for reason in declined)


def _warned(results: Results) -> pd.DataFrame:
    if results.notes:
        # show the line that called the public function
        warnings.warn(" ".join(results.notes), stacklevel=3)
    return results.metrics


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
        is_positive, valid = answers == 1, answers.isin([0, 1]).all()
        expected = "only 0 and 1, and some 1"
    else:
        is_positive, valid = answers.astype(str).str.contains(positive, regex=False), True
        expected = f'some "{positive}"'
    if not valid or not is_positive.any():
        examples = ", ".join(map(str, answers.unique()[:5])) or "nothing"
        raise DataError(f'{path}: the column "{target}" must have {expected}, got {examples}.')
    return frame.assign(**{target: np.where(is_positive, ANSWERS[1], ANSWERS[0])})


def _numbers(frame: pd.DataFrame, target: str, spec: DataSpec, path: Path) -> pd.DataFrame:
    written = frame[target]
    if not pd.api.types.is_numeric_dtype(written):
        # New York's files have commas in thousands and a dash for missing values
        written = pd.to_numeric(written.astype(str).str.replace(",", "").str.strip(), "coerce")
    numbers = written.astype(float)
    least = float(spec.options.get("above", -np.inf))
    valid = np.isfinite(numbers) & (numbers > least)
    if not valid.any():
        examples = ", ".join(map(str, frame[target].unique()[:5]))
        raise DataError(
            f'{path}: the column "{target}" must have numbers above {least:g}, got {examples}.'
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
        available = ", ".join(_SCHEMAS)
        raise DefinitionError(
            f'{name}: unknown synthetic table "{like}": expected one of {available}.'
        )
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
    ).with_drawn_by("name")
    return data if like == "nyc" else replace(data, classes=ANSWERS)


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
