"""``python -m karat.compat.taco``: TACO's command line."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from karat.config.catalog import Catalog, load_user_table
from karat.core.dataset import Dataset
from karat.core.task import KEPT
from karat.data.download_display import shown_downloads
from karat.errors import DefinitionError, KaratError
from karat.execution.progress import choose_progress
from karat.execution.resources import restore_environment
from karat.execution.session import Stopped
from karat.execution.workers import Template, available_cores
from karat.ext.compat.taco.benchmark import (
    MIN_FREQUENCY,
    MODELS,
    PAIRS,
    SEVERITIES,
    Setting,
    benchmark,
    with_test_rows,
)

#: TACO's datasets and the task of each
DATASETS = dict.fromkeys(("adult", "diabetes", "porto", "ieee"), "classification")
DATASETS["nyc"] = "regression"
QUICK = (0.2,)
#: dataset names and loaders
Loaders = list[tuple[str, Callable[[], Dataset]]]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--data_dir", default="data", show_default=True, metavar="DIR")
@click.option("--results_dir", default="results", show_default=True, metavar="DIR")
@click.option("--only", default="all", type=click.Choice(["all", *DATASETS]), show_default=True)
@click.option("--quick", is_flag=True, help="Severity 0.2 only.")
@click.option("--csv", metavar="PATH", help="Your own table.")
@click.option("--target_col", metavar="COL", help="With --csv: the target column.")
@click.option(
    "--task",
    type=click.Choice([*MODELS, "both"]),
    help="Task of --csv (default: inferred); without --csv: only datasets of this task.",
)
@click.option("--draws", default=1, show_default=True, help="Random draws of each corruption.")
@click.option(
    "--pairs",
    type=click.Choice(PAIRS),
    default="middle",
    show_default=True,
    help="Severities of pairs of corruptions.",
)
@click.option(
    "--keep_predictions",
    type=click.Choice(KEPT),
    default="clean",
    show_default=True,
    help="Predictions to store: all, or only those on clean data.",
)
@click.option(
    "--min_frequency",
    type=click.FloatRange(0, 1),
    default=MIN_FREQUENCY,
    show_default=True,
    help="Merge levels of a category below this share of the rows; 0: merge none, as TACO.",
)
@click.option(
    "--missing_category",
    type=click.Choice(["level", "most_frequent"]),
    default="level",
    show_default=True,
    help="A missing category is a level of its own, or the most frequent one, as in TACO.",
)
def taco(
    data_dir: str,
    results_dir: str,
    only: str,
    quick: bool,
    csv: str | None,
    target_col: str | None,
    task: str | None,
    **options: Any,
) -> int:
    """Run TACO's models on its datasets or on your own table, and write TACO's files.

    Datasets whose file is missing are skipped. Exit code: 0 if any dataset was run, else 2.
    """
    atexit.register(gc.freeze)  # the memory is freed at once, without a search for cycles
    if sys.platform == "linux":
        Template.copy_this_process()  # it loads its libraries while this process reads the data
    severities = QUICK if quick else SEVERITIES
    setting = Setting(Path(results_dir), severities, workers=available_cores(), **options)
    if csv is None and target_col is None:
        wanted = [
            name
            for name, its_task in DATASETS.items()
            if only in ("all", name) and task in (None, "both", its_task)
        ]
        with _data_folder(data_dir):
            loaders_by_name = [(name, Catalog().dataset(f"taco_{name}")) for name in wanted]
            return _run_all(loaders_by_name, setting)
    if csv is None or target_col is None:
        raise DefinitionError("--csv and --target_col are needed, one with the other.")
    if only != "all":
        raise DefinitionError("--only selects TACO datasets and cannot be used with --csv.")
    kinds = list(MODELS) if task == "both" else [task]
    loaders = [partial(load_user_table, Path(csv), target_col, {"kind": k}) for k in kinds]
    return _run_all([(Path(csv).stem, load) for load in loaders], setting)


@shown_downloads()
def _run_all(loaders: Loaders, setting: Setting) -> int:
    """Run all datasets that can be loaded; print each note once."""
    printed: set[str] = set()
    done = 0
    for name, load in loaders:
        try:
            data = with_test_rows(load(), name)
            click.echo(f"{name}: {data.kind}, {len(data)} rows")
            results = benchmark(data, setting, choose_progress())
        except Stopped:
            raise
        except KaratError as error:
            click.echo(f"{name}: skipped: {error}", err=True)
            continue
        done += 1
        for note in (note for note in results.notes if note not in printed):
            printed.add(note)
            click.echo(f"{name}: {note}", err=True)
        for path in results.files:
            click.echo(f"  {path}")
    return 0 if done else 2


@contextmanager
def _data_folder(folder: str) -> Iterator[None]:
    """Search data files in a folder first."""
    before = os.environ.get("KARAT_DATA")
    places = [str(Path(folder).absolute()), *([before] if before else [])]
    os.environ["KARAT_DATA"] = os.pathsep.join(places)
    try:
        yield
    finally:
        restore_environment({"KARAT_DATA": before})


def main() -> None:
    """Run the command line; an error is a message on standard error and exit code 2."""
    warnings.formatwarning = lambda message, *_, **__: f"note: {message}\n"
    try:
        sys.exit(taco.main(prog_name="python -m karat.compat.taco", standalone_mode=False) or 0)
    except (click.exceptions.Abort, KeyboardInterrupt, Stopped):
        click.echo("stopped.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (KaratError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
