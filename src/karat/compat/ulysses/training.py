"""What may be said in ``kwargs_train``, checked before anything is embedded."""

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

#: the hidden layers that a task's own definition has
OF_THE_TASK = "of the task"
#: the seeds that a run may have
SEEDS = 2**31 - 1


class WrongArgument(DefinitionError, ValueError):
    """An argument that cannot be taken; scripts may catch it as a ValueError."""


@dataclass(frozen=True)
class Training:
    """How heads are trained; the defaults are those that published results were made with.

    ``mode: exact`` replays the original's splits, weights and shuffles; ``fast`` its splits alone.
    Heads are trained on the processor, whatever ``device`` says.
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
        """Return what was given, checked; ``alone`` says that there is one process only."""
        given = {} if given is None else dict(given)
        if alone and "n_processes" in given:
            raise WrongArgument(
                "kwargs_train has n_processes, but disable_multiprocessing=True means one process; "
                "leave one of them out."
            )
        try:
            made = build("kwargs_train", cls, {"n_processes": 1} | given if alone else given, {})
            made.check()
        except DefinitionError as error:
            raise WrongArgument(*error.messages) from error
        if str(made.device) not in ("auto", "cpu"):
            warnings.warn(
                f"device {str(made.device)!r} is not used: heads are trained on the processor. "
                f"The sentence model stays where it is.",
                stacklevel=3,
            )
        return made

    def check(self) -> None:
        """Refuse what no head could be trained with."""
        whole = {"batch_size": 1, "n_repeats": 1, "k_fold": 2, "n_epochs": 1, "tenacity": 0}
        for name, least in {**whole, "random_state": 0, "n_processes": None}.items():
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool):
                raise DefinitionError(f"kwargs_train: {name} is a whole number, not {value!r}.")
            if least is not None and int(value) < least:
                raise DefinitionError(f"kwargs_train: {name} is {least} or more, not {value}.")
        if self.random_state >= 2**32:
            raise DefinitionError("kwargs_train: random_state has 32 bits; it is below 2**32.")
        for name in ("eval_frac", "early_stopping_rel_improv"):
            value = getattr(self, name)
            if not isinstance(value, Real):
                raise DefinitionError(f"kwargs_train: {name} is a number, not {value!r}.")
        dims = () if self.hidden_dims is None else self.hidden_dims
        if isinstance(dims, str):
            fine = dims == OF_THE_TASK
        else:
            fine = isinstance(dims, Sequence) and all(isinstance(size, Integral) for size in dims)
        if not fine:
            raise DefinitionError(f"kwargs_train: hidden_dims is a list of sizes, not {dims!r}.")
        AdamW(**self.head([]))

    @property
    def seed(self) -> int:
        """The seed of the run, which models get plus their fold."""
        return int(self.random_state) % SEEDS

    @property
    def workers(self) -> int:
        """How many processes run; fewer than one means one."""
        return max(1, int(self.n_processes))

    def split(self) -> dict[str, Any]:
        """Return the split that replays the original's."""
        counts = {"folds": int(self.k_fold), "repeats": int(self.n_repeats)}
        return {"use": "senteval", **counts, "seed": int(self.random_state)}

    def head(self, of_the_task: Sequence[int] | None) -> dict[str, Any]:
        """Return the parameters of the head, with the task's hidden layers unless others are given.

        Nothing of one task stays for the next.
        """
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
