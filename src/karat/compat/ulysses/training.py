"""The parameters in ``kwargs_train``, checked before anything is embedded."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from karat.errors import DefinitionError
from karat.heads.adamw import AdamW
from karat.registry import build
from karat.replay import MASTER

#: default of ``hidden_dims``: the hidden layers of the task definition
OF_THE_TASK = "of the task"
#: the number of seeds of a run
SEEDS = 2**31 - 1


class WrongArgument(DefinitionError, ValueError):
    """An invalid argument; also a ValueError, as in the original."""


@dataclass(frozen=True)
class Training:
    """How heads are trained; the defaults are those of the published results.

    ``mode: exact`` replays the original's splits, weights and shuffles; ``fast`` its splits only.
    Heads are always trained on the CPU; ``device`` is ignored.
    """

    n_processes: int = 5
    batch_size: int = 128
    hidden_dims: Sequence[int] | str | None = OF_THE_TASK
    eval_frac: float = 0.20
    device: Any = "auto"
    show_progress_bar: bool = True
    n_repeats: int = 10
    k_fold: int = 5
    n_epochs: int = 100
    tenacity: int = 5
    early_stopping_rel_improv: float = 0.0025
    random_state: int = MASTER
    mode: str = "exact"

    @classmethod
    def of(cls, given: Mapping[str, Any] | None, alone: bool) -> Training:
        """Return checked parameters; with ``alone``, there is one process only."""
        given = {} if given is None else dict(given)
        if alone and "n_processes" in given:
            raise WrongArgument(
                "kwargs_train: n_processes conflicts with disable_multiprocessing=True; omit one."
            )
        try:
            made = build("kwargs_train", cls, {"n_processes": 1} | given if alone else given, {})
            made.check()
        except DefinitionError as error:
            raise WrongArgument(*error.messages) from error
        if str(made.device) not in ("auto", "cpu"):
            warnings.warn(
                f"device {str(made.device)!r} is ignored: heads are trained on the CPU. The "
                f"device of the sentence model does not change.",
                stacklevel=3,
            )
        return made

    def check(self) -> None:
        """Raise if a value is invalid."""
        minimum = {"batch_size": 1, "n_repeats": 1, "k_fold": 2, "n_epochs": 1, "tenacity": 0}
        for name, least in {**minimum, "random_state": 0, "n_processes": None}.items():
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool):
                raise DefinitionError(f"kwargs_train: {name} must be an integer, got {value!r}.")
            if least is not None and int(value) < least:
                raise DefinitionError(f"kwargs_train: {name} must be >= {least}, got {value}.")
        if self.random_state >= 2**32:
            raise DefinitionError("kwargs_train: random_state must be below 2**32.")
        for name in ("eval_frac", "early_stopping_rel_improv"):
            value = getattr(self, name)
            if not isinstance(value, Real):
                raise DefinitionError(f"kwargs_train: {name} must be a number, got {value!r}.")
        dims = [] if self.hidden_dims in (None, OF_THE_TASK) else self.hidden_dims
        listed = isinstance(dims, Sequence) and not isinstance(dims, str)
        if not listed or not all(isinstance(size, Integral) for size in dims):
            raise DefinitionError(f"kwargs_train: hidden_dims must be a list, got {dims!r}.")
        AdamW(**self.head([]))

    @property
    def seed(self) -> int:
        """The seed of the run; models get this seed plus their fold."""
        return int(self.random_state) % SEEDS

    @property
    def workers(self) -> int:
        """The number of processes, at least one."""
        return max(1, int(self.n_processes))

    def split(self) -> dict[str, Any]:
        """Return the split that replays the original's folds."""
        counts = {"folds": int(self.k_fold), "repeats": int(self.n_repeats)}
        return {"use": "senteval", **counts, "seed": int(self.random_state)}

    def head(self, of_the_task: Sequence[int] | None) -> dict[str, Any]:
        """Return the parameters of the head; the task's hidden layers are the default."""
        dims = of_the_task if isinstance(self.hidden_dims, str) else self.hidden_dims
        return {
            "mode": self.mode,
            "hidden_dims": list(dims or ()),
            "batch_size": int(self.batch_size),
            "eval_frac": self.eval_frac,
            "n_epochs": int(self.n_epochs),
            "tenacity": int(self.tenacity),
            "early_stopping_rel_improv": self.early_stopping_rel_improv,
            "seed": int(self.random_state),
            "folds": int(self.k_fold),
        }
