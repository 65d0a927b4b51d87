"""What belongs together in the arguments of ``evaluate``: machines, output, variants, parts.

Each is one object, and ``run_settings`` makes the options of a run from them. An argument of an
earlier spelling is an error that has the new one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from karat.errors import DefinitionError
from karat.execution.resuming import RETRY_FAILED
from karat.execution.workers import available_cores

#: the values of ``on_failure``
ON_FAILURE = ("warn", "raise", "stop")
#: how arguments of earlier spellings are written
RESPELLED = {
    "n_jobs": "workers=-1, or a number of processes",
    "constraint": 'workers=karat.Machines(constraint="1h8c")',
    "engine": 'workers=karat.Machines(engine="dask")',
    "scheduler": 'workers=karat.Machines(engine="dask", scheduler="tcp://HOST:PORT")',
    "shard": 'workers=karat.Machines(shard="3/64")',
    "budget": "workers=karat.Machines(budget=2.0)",
    "cache": "output=karat.Output(cache=False)",
    "items": "output=karat.Output(items=False)",
    "inference": "output=karat.Output(inference=[1, 100])",
    "only_folds": "only=karat.Only(folds=[0])",
    "max_rows": "only=karat.Only(max_rows=1000)",
    "dimensions": "models=karat.Variants(MODELS, dimensions=[64])",
    "precision": 'models=karat.Variants(MODELS, precision="int8")',
    "rescore": 'models=karat.Variants(MODELS, precision="binary", rescore=True)',
    "seeds": "models=karat.Variants(MODELS, seeds=3)",
    "folds": "cv=5",
    "retry_failed": f'resume="{RETRY_FAILED}"',
    "exit_on_error": 'on_failure="stop"',
    "raise_on_failure": 'on_failure="raise"',
}
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Machines:
    """Where jobs run, and what they may use.

    Parameters
    ----------
    workers : int, default=0
        Number of worker processes, at most one per core; -1 is one per core. A worker process
        runs jobs of one model only. With 0, jobs without limits run in this process, and models
        share its global state.
    engine : {"local", "dask"}, default="local"
        Where jobs run.
    scheduler : str, optional
        Address or scheduler file of a Dask cluster. Default with ``engine="dask"``: start a
        cluster on this machine.
    shard : str, optional
        Run one part of the plan only: ``"3/64"`` is the third of 64 parts, ``"auto"`` reads the
        variables of Slurm, Kubernetes, AWS Batch, GitLab and others. Its runs are in a folder of
        their own in the output folder; ``karat.gather`` merges those of all shards.
    constraint : str, default="default"
        Name of the constraint that limits time, memory, cores, folds and rows.
    budget : float, optional
        The most that this call may spend on endpoints, in dollars. Jobs whose vectors would cost
        more are not run; ``resume=True`` runs them.

    Examples
    --------
    >>> import karat
    >>> karat.Machines(4, constraint="1h8c")
    Machines(workers=4, engine='local', scheduler=None, shard=None, constraint='1h8c', budget=None)
    """

    workers: int = 0
    engine: str = "local"
    scheduler: str | None = None
    shard: str | None = None
    constraint: str = "default"
    budget: float | None = None


@dataclass(frozen=True)
class Output:
    """What a run writes, and where.

    Parameters
    ----------
    folder : str or Path, default="results"
        Folder in which one run folder per model is written.
    items : bool, default=True
        Keep the texts or cells of the test items in the run folder, where the license of the data
        allows it. They are shown by reports and ``compare_items``.
    cache : bool, default=True
        Keep vectors of stateless encoders between runs.
    inference : sequence of int, default=()
        Batch sizes for which inference is timed.
    """

    folder: str | Path = "results"
    items: bool = True
    cache: bool = True
    inference: Sequence[int] = ()


@dataclass(frozen=True)
class Only:
    """The part of the tasks that is run.

    Parameters
    ----------
    tasks : str or sequence of str, default=()
        Names or patterns (``adult*``) of the tasks to run. Empty: all tasks.
    folds : int or sequence of int, optional
        Numbers of the folds to run, counted from 0. Default: all folds.
    max_rows : int, optional
        Maximum number of rows per dataset.
    """

    tasks: str | Sequence[str] = ()
    folds: int | Sequence[int] | None = None
    max_rows: int | None = None


@dataclass(frozen=True)
class Variants:
    """Models, to be evaluated also with fewer dimensions, fewer bits or other seeds.

    Parameters
    ----------
    models : as in ``evaluate``
        The models.
    dimensions : int or sequence of int, default=()
        Also evaluate every encoder with the first dimensions of its vectors only, such as
        ``[64, 128]``. The variants have the names ``NAME@64d`` and ``NAME@128d``.
    precision : str or sequence of str, default=()
        Also evaluate every encoder, and each of ``dimensions``, with vectors of this precision:
        ``"float32"``, ``"float16"``, ``"int8"`` or ``"binary"``; ``NAME@int8``, ``NAME@64d-int8``.
    rescore : bool or int, default=False
        Retrieval with ``"binary"`` ranks this many documents again (True: 40), by the query's
        32-bit vector.
    seeds : int, default=1
        Number of fits of each fold by models that use a seed, on the same rows. Leaderboards show
        the mean over them; a model without a seed is fitted once.
    """

    models: Any
    dimensions: int | Sequence[int] = ()
    precision: str | Sequence[str] = ()
    rescore: bool | int = False
    seeds: int = 1


def run_settings(
    workers: int | Machines,
    output: str | Path | Output,
    only: str | Sequence[str] | Only,
    resume: bool | str = False,
) -> dict[str, Any]:
    """Return the options of a run, by name, that these arguments state.

    >>> settings = run_settings(2, "results", "adult*")
    >>> settings["workers"], settings["only"], settings["constraint"]
    (2, 'adult*', 'default')
    """
    machines = workers if isinstance(workers, Machines) else Machines(workers)
    written = output if isinstance(output, Output) else Output(output)
    part = only if isinstance(only, Only) else Only(only)
    if not isinstance(resume, bool) and resume != RETRY_FAILED:
        raise DefinitionError(f'resume must be False, True or "{RETRY_FAILED}", got {resume!r}.')
    return {
        **{field.name: getattr(machines, field.name) for field in fields(machines)},
        "workers": _worker_count(machines.workers),
        "output": written.folder,
        "items": written.items,
        "cache": written.cache,
        "inference": written.inference,
        "only": part.tasks,
        "only_folds": part.folds,
        "max_rows": part.max_rows,
        "resume": resume,
    }


def check_on_failure(on_failure: str) -> None:
    """Raise a DefinitionError if this is no value of ``on_failure``."""
    if on_failure not in ON_FAILURE:
        names = ", ".join(f'"{name}"' for name in ON_FAILURE)
        raise DefinitionError(f"on_failure must be one of {names}, got {on_failure!r}.")


def explain_respelled(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that names the new spelling of arguments of an earlier one."""
    respelled = {*RESPELLED} - {*inspect.signature(function).parameters}

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        messages = [f"{name} is now {RESPELLED[name]}." for name in named if name in respelled]
        if messages:
            raise DefinitionError(*messages)
        return function(*arguments, **named)

    return call


def _worker_count(workers: int) -> int:
    """Return the number of workers; negative numbers count from that of cores, as ``n_jobs``."""
    if isinstance(workers, Integral) and not isinstance(workers, bool) and workers < 0:
        return max(1, available_cores() + 1 + int(workers))
    return workers
