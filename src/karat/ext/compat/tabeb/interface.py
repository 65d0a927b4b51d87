"""TabEB's ``interface``: models by name, score files, the leaderboard and ``display``.

Score files (``scores_<task>.parquet``) have one row per encoder and setting; the import of results
reads the same files.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.config.catalog import Catalog
from karat.core import registry
from karat.core.writing import draft_file
from karat.errors import DataError, DefinitionError, KaratError, MissingExtra, did_you_mean, unknown
from karat.ext.compat.tabeb.encoders import (
    AbsentRows,
    TabEBBaseEncoder,
    carte_encoder,
    check_params,
    copy_of,
    random_encoder,
    skrub_encoder,
)
from karat.results.importing import ImportLog, ModelResults, Sample, direction, number, read_parquet
from karat.stats.paired_tests import mean_of
from karat.stats.ranking import rank_each

__all__ = ["TabEBBaseEncoder", "display", "get_leaderboard", "get_model"]

#: columns with the settings of the evaluation and the description of the encoder
CONFIG = "config"
ENCODER = "encoder_params"
AVERAGE = "_average"
LOOKS = 'a Parquet file with the columns "encoder" and "<task>_average"'
#: the metrics of TabEB's own files, which do not name them; its AUROC is computed from labels
OWN = {"regression": "rmse", "classification": "balacc"}
ENCODERS: dict[str, Callable[..., TabEBBaseEncoder]] = {
    "random_encoder": random_encoder,
    "skrub_encoder": skrub_encoder,
    "carte_encoder": carte_encoder,
}


def score_file(folder: str | Path, task: str) -> Path:
    """Return the path of a task's score file."""
    return Path(folder).expanduser() / f"scores_{task}.parquet"


def check_file(path: Path) -> None:
    """Create the folder, and raise before an evaluation if nothing can be saved there."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtra("pyarrow", "tables") from None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"save_dir: cannot create {path.parent}: {error.strerror}.") from error
    if path.exists():
        read_tabeb_scores(path)


def as_config(settings: Mapping[str, Any]) -> str:
    """Return settings as one line of JSON with sorted keys."""
    return json.dumps(settings, sort_keys=True, default=str)


def read_tabeb_scores(path: Path) -> pd.DataFrame:
    """Return the table of a score file; files written by TabEB get empty settings."""
    table: pd.DataFrame = read_parquet(path)
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
        table = _merged(read_tabeb_scores(path), table, path)
    table.attrs = {}
    try:
        with draft_file(path) as draft:
            table.to_parquet(draft)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error}.") from error


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


def _settings_of_tabeb(task: str) -> dict[str, Any]:
    """Return the metric of a task of TabEB, whose files do not name it."""
    if task not in OWN:
        return {}
    return {"metric": OWN[task], "higher_is_better": direction(OWN[task])}


class Scores:
    """The scores of one task with the most recently saved settings."""

    def __init__(self, task: str, folder: str | Path) -> None:
        self.task = task
        path = score_file(folder, task)
        if not path.is_file():
            saved = sorted(p.stem.removeprefix("scores_") for p in path.parent.glob("scores_*"))
            raise DataError(
                f"file not found: {path}; evaluate the task with save_dir first."
                f"{did_you_mean(task, saved)} Saved tasks: {', '.join(saved) or 'none'}."
            )
        table = read_tabeb_scores(path)
        config = table[CONFIG].iloc[-1] if len(table) else ""
        latest = table[table[CONFIG] == config].reset_index(drop=True)
        if len(latest) < len(table):
            warnings.warn(
                f"scores_{task}.parquet has scores with several settings; only the most recently "
                f"saved are shown: {config or 'unknown'}",
                stacklevel=4,
            )
        self.settings: dict[str, Any] = json.loads(config) if config else _settings_of_tabeb(task)
        self.average = f"{task}_average"
        columns = [n for n in table.columns if n not in ("encoder", self.average, CONFIG, ENCODER)]
        self.datasets = list(self.settings.get("datasets", columns))
        self.frame = latest[["encoder", *self.datasets, self.average]]

    def ranked(self, encoders: list[str]) -> list[np.ndarray]:
        """Return one column per dataset with any score, higher is better; NaN if missing."""
        up = self.settings.get("higher_is_better")
        if up is None:
            warnings.warn(
                f"{self.task}: cannot rank by {self.settings.get('metric', 'score')}: direction "
                f"unknown. Set higher_is_better in the task's class.",
                stacklevel=4,
            )
            return []
        cells = self.frame.set_index("encoder").reindex(encoders)
        scored = [name for name in self.datasets if cells[name].notna().any()]
        return [(1 if up else -1) * cells[[name]].to_numpy(dtype=float) for name in scored]


def get_leaderboard(tasks: object, result_dir: str | Path = "") -> pd.DataFrame:
    """Return the encoders of some tasks, best first.

    One task gives its table of scores, several give ``<task>_average`` of each. ``<task>_rank`` is
    the mean rank of an encoder over the task's datasets (1 is best, in the direction of the
    metric) and ``mean_rank`` the mean over all datasets of all tasks. A failure ranks last.
    Encoders that lack some task are listed below those that have all.
    """
    scores = [Scores(task, result_dir) for task in _named(tasks)]
    encoders = list(dict.fromkeys(name for one in scores for name in one.frame["encoder"]))
    board = pd.DataFrame({"encoder": encoders})
    for one in scores:
        columns_of_task = one.frame if len(scores) == 1 else one.frame[["encoder", one.average]]
        board = board.merge(columns_of_task, on="encoder", how="left")
    evaluated = np.array([np.isin(encoders, one.frame["encoder"].tolist()) for one in scores])
    values = [one.ranked(encoders) for one in scores]
    for one, columns, takes in zip(scores, values, evaluated, strict=True):
        board[f"{one.task}_rank"] = _mean_rank(columns, [takes] * len(columns), len(encoders))
    if len(scores) > 1:
        takes_all = [row for row, columns in zip(evaluated, values, strict=True) for _ in columns]
        board["mean_rank"] = _mean_rank(sum(values, []), takes_all, len(encoders))
    order = np.lexsort((board.iloc[:, -1].fillna(np.inf), (~evaluated).sum(axis=0)))
    board = board.iloc[order].reset_index(drop=True)
    board.attrs["configs"] = {one.task: one.settings for one in scores}
    return board


def _mean_rank(values: list[np.ndarray], takes: list[np.ndarray], encoders: int) -> np.ndarray:
    if not values:
        return np.full(encoders, np.nan)
    return mean_of(rank_each(values, np.column_stack(takes)))


def _named(tasks: Any) -> list[str]:
    several = isinstance(tasks, Iterable) and not isinstance(tasks, str)
    listed = list(tasks) if several else [tasks]
    names = [task if isinstance(task, str) else getattr(task, "task", task) for task in listed]
    if not names:
        raise DefinitionError(
            'no task given; pass task names, for example get_leaderboard(["regression"], folder).'
        )
    for name in names:
        if not isinstance(name, str):
            raise DefinitionError(f"a task must be a name or a task object, got {name!r}.")
    return list(dict.fromkeys(names))


def get_model(model_name: str, revision: str | None = None, **kwargs: Any) -> Any:
    """Return an encoder by name: TabEB's three, or any Karat encoder.

    ``kwargs`` are the encoder's parameters. A missing library or file is not an error here: the
    evaluation then reports the reason instead of scores. ``revision`` is accepted for models with
    a parameter of this name only.

    >>> get_model("random_encoder", embedding_size=4).transform([[1], [2]]).shape
    (2, 4)
    """
    if model_name in ENCODERS:
        _check_revision(model_name, revision, ())
        return ENCODERS[model_name](**kwargs)
    catalog = Catalog()
    defined = [*catalog.definitions.names("models"), *registry.models]
    if not isinstance(model_name, str) or not (model_name in defined or ":" in model_name):
        raise unknown("model", str(model_name), [*ENCODERS, *defined])
    model = catalog.model(model_name)
    if model.role != "encoder":
        raise DefinitionError(f"{model_name} is a predictor; TabEB tasks need an encoder.")
    if model.unavailable:
        return AbsentRows(model_name, model.unavailable)
    encoder = copy_of(model.prototype)
    params = encoder.get_params() if hasattr(encoder, "get_params") else {}
    _check_revision(model_name, revision, params)
    options = kwargs if revision is None else {**kwargs, "revision": revision}
    check_params(model_name, options, params)
    encoder = encoder.set_params(**options) if options else encoder
    with contextlib.suppress(AttributeError):  # a read-only name
        encoder.name = model_name
    return encoder


def display(*things: object) -> None:
    """Display objects: in a notebook with IPython, elsewhere as text on standard output."""
    shell = sys.modules.get("IPython")
    if shell is not None and shell.get_ipython() is not None:
        from IPython.display import display as show

        show(*things)
        return
    for thing in things:
        text = thing.to_string() if hasattr(thing, "to_string") else str(thing)
        sys.stdout.write(f"{text}\n")


def _check_revision(name: str, revision: str | None, params: Collection[str]) -> None:
    if revision is not None and "revision" not in params:
        raise DefinitionError(
            f'model "{name}" has no revisions, got revision={revision!r}; omit it.'
        )


def recognizes(sample: Sample) -> bool:
    """Return whether a file is one of these."""
    return sample.shape == "parquet" and sample.has("encoder") and _task(sample) is not None


def read(samples: Sequence[Sample], log: ImportLog) -> Iterator[ModelResults]:
    """Yield a run per encoder with all its tasks; other settings are separate runs."""
    runs: dict[tuple[str, int], ModelResults] = {}
    for sample in samples:
        try:
            table = read_parquet(sample.path)
        except KaratError as error:
            log.problems.append(str(error))
            continue
        times: dict[str, int] = {}
        for row in table.to_dict("records"):
            name = log.model or str(row["encoder"])
            times[name] = times.get(name, 0) + 1
            suite = "tabeb" if times[name] == 1 else f"tabeb-{times[name]}"
            run = runs.setdefault((name, times[name]), ModelResults("tabeb", name, suite, []))
            try:
                _row(run, row, sample, log)
            except KaratError as error:
                log.problems.append(str(error))
    yield from runs.values()


def _row(results: ModelResults, row: Mapping[str, Any], sample: Sample, log: ImportLog) -> None:
    task = str(_task(sample))
    other = {"encoder", f"{task}{AVERAGE}", CONFIG, ENCODER}
    settings = _settings(row.get("config"))
    metric = str(settings.get("metric") or OWN.get(task, ""))
    higher = settings.get("higher_is_better")
    higher = direction(metric) if higher is None else bool(higher)
    if not metric or higher is None:
        log.note(f"{sample.path.name}: skipped {row['encoder']}: unknown metric.")
        return
    results.files = [*results.files, sample.path]
    results.about = {"params": _settings(row.get("encoder_params"))}
    results.higher[metric] = higher
    for data in settings.get("datasets") or [name for name in row if name not in other]:
        name = f"{data}-{task}"
        results.tasks[name] = {"dataset": str(data), "metric": metric, "kind": task}
        try:
            results.put(results.job(name), metric, number(row.get(data)))
        except ValueError as error:
            cell = f"{data} of {results.model}"
            raise DataError(
                f"{sample.path}: {cell} must be a number, got {row.get(data)!r}."
            ) from error


def _task(sample: Sample) -> str | None:
    names = [name.removesuffix(AVERAGE) for name in sample.names if name.endswith(AVERAGE)]
    return names[0] if len(names) == 1 else None


def _settings(text: object) -> dict[str, Any]:
    try:
        settings = json.loads(text) if isinstance(text, str) and text else {}
    except ValueError:
        return {}
    return dict(settings) if isinstance(settings, Mapping) else {}
