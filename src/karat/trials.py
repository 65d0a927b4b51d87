"""Test requirements one after the other and record the outcome of each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.errors import MissingExtra
from karat.execute import one_thread
from karat.fingerprints import fingerprint


@dataclass(frozen=True)
class Check:
    """One requirement: whether it is met and, if not, why and what to change."""

    promise: str
    kept: bool
    why: str = ""
    cure: str = ""


class Broken(Exception):
    """A requirement is not met; the message is the reason."""


def need(kept: object, why: str) -> None:
    """Raise Broken with a reason unless the condition holds."""
    if not kept:
        raise Broken(why)


class Trial:
    """The requirements tested on one kind of data."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.checks: list[Check] = []
        self.ended = self.changed = self.drew = False

    @contextmanager
    def promise(self, text: str, cure: str, *, fatal: bool = False) -> Iterator[None]:
        """Record whether the block meets a requirement; a fatal failure ends the trial."""
        why = ""
        try:
            yield
        except Broken as broken:
            why = str(broken)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # includes sys.exit and panics of Rust libraries
            why = f"{type(error).__name__}: {error}"
            cure = str(error).partition(": ")[2] if isinstance(error, MissingExtra) else cure
        self.checks.append(Check(f"{self.where}: {text}", not why, why, cure if why else ""))
        if why and fatal:
            raise Broken

    @contextmanager
    def watched(self, *given: Any) -> Iterator[None]:
        """Record whether the block changes the data or numpy's global random state."""
        marks, state = [_mark(each) for each in given], np.random.get_state()
        yield
        self.changed = marks != [_mark(each) for each in given]
        self.drew = repr(state) != repr(np.random.get_state())
        np.random.set_state(state)

    def check_watched(self) -> None:
        """Add the checks of what was watched."""
        with self.promise("does not modify its input", "Modify a copy."):
            need(not self.changed, "its input was modified in place.")
        with self.promise("does not use np.random globally", "Use np.random.default_rng(seed)."):
            need(not self.drew, "the state changed.")


def report(
    trials: Mapping[str, Callable[[Trial], None]], good: Callable[[Trial], object]
) -> list[Check]:
    """Return the checks of all good trials, or of the one that passed most if none is good."""
    tried, state = [Trial(where) for where in trials], np.random.get_state()
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for trial, steps in zip(tried, trials.values(), strict=True):
            with suppress(Broken):
                steps(trial)
                trial.ended = True
    np.random.set_state(state)
    best = max(tried, key=lambda trial: sum(check.kept for check in trial.checks))
    return [check for trial in filter(good, tried) for check in trial.checks] or best.checks


def _mark(given: Any) -> str:
    return str(given.tolist()) if isinstance(given, np.ndarray) else fingerprint(given)


def same(first: Sequence[np.ndarray], second: Sequence[np.ndarray], close: float = 0.0) -> None:
    """Raise Broken unless two lists of arrays are equal."""
    for a, b in zip(first, second, strict=True):
        need(a.shape == b.shape, f"the shapes are {a.shape} and {b.shape}.")
        floats = a.dtype.kind == b.dtype.kind == "f"
        equal = np.isclose(a, b, close, close, equal_nan=True) if floats else a == b
        need(equal.all(), f"{np.sum(~equal)} of {equal.size} values differ.")
