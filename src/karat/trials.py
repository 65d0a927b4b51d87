"""Trials: promises tried one after the other on small data, and what became of each."""

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
    """One promise: whether it is kept and, if not, why and what to change."""

    promise: str
    kept: bool
    why: str = ""
    cure: str = ""


class Broken(Exception):
    """A promise is broken; the message says why."""


def need(kept: object, why: str) -> None:
    """Break the promise, with a reason, unless it is kept."""
    if not kept:
        raise Broken(why)


class Trial:
    """The promises tried on one kind of data, one after the other."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.checks: list[Check] = []
        self.ended = self.changed = self.drew = False

    @contextmanager
    def promise(self, text: str, cure: str, *, fatal: bool = False) -> Iterator[None]:
        """Note whether what is done inside keeps a promise; a fatal break ends the trial."""
        why = ""
        try:
            yield
        except Broken as broken:
            why = str(broken)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit, and the panics of libraries written in Rust
            why = f"{type(error).__name__}: {error}"
            cure = str(error).partition(": ")[2] if isinstance(error, MissingExtra) else cure
        self.checks.append(Check(f"{self.where}: {text}", not why, why, cure if why else ""))
        if why and fatal:
            raise Broken

    @contextmanager
    def watched(self, *given: Any) -> Iterator[None]:
        """Note whether the data given or numpy's global generator are changed inside."""
        marks, state = [_mark(each) for each in given], np.random.get_state()
        yield
        self.changed = marks != [_mark(each) for each in given]
        self.drew = repr(state) != repr(np.random.get_state())
        np.random.set_state(state)

    def check_watched(self) -> None:
        """Try the promises about what was watched."""
        with self.promise("leaves what it is given as it is", "Change a copy of it."):
            need(not self.changed, "it was changed in place.")
        with self.promise("leaves np.random alone", "Draw from np.random.default_rng(seed)."):
            need(not self.drew, "its state has moved on.")


def report(
    trials: Mapping[str, Callable[[Trial], None]], good: Callable[[Trial], object]
) -> list[Check]:
    """Return the checks of all good trials, or else of the one that went furthest."""
    tried, state = [Trial(where) for where in trials], np.random.get_state()
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for trial, steps in zip(tried, trials.values(), strict=True):
            with suppress(Broken):
                steps(trial)
                trial.ended = True
    np.random.set_state(state)
    furthest = max(tried, key=lambda trial: sum(check.kept for check in trial.checks))
    return [check for trial in filter(good, tried) for check in trial.checks] or furthest.checks


def _mark(given: Any) -> str:
    return str(given.tolist()) if isinstance(given, np.ndarray) else fingerprint(given)


def same(first: Sequence[np.ndarray], second: Sequence[np.ndarray], close: float = 0.0) -> None:
    """Break the promise unless two lists of arrays hold the same."""
    for a, b in zip(first, second, strict=True):
        need(a.shape == b.shape, f"the shapes are {a.shape} and {b.shape}.")
        floats = a.dtype.kind == b.dtype.kind == "f"
        equal = np.isclose(a, b, close, close, equal_nan=True) if floats else a == b
        need(equal.all(), f"{np.sum(~equal)} of {equal.size} values differ.")
