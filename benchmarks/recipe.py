"""What a recipe of ``benchmarks/recipes`` contains: how an original system is installed and run.

A recipe is a module with one name, ``RECIPE``. ``benchmarks/peers.py`` makes a virtual environment
from its requirements, writes the patched source if the system is not on PyPI, and runs the cases:
the command of the original and the command of Karat, in turns, on the same files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """One comparison: two commands that do the same work.

    ``{python}`` in a command is the interpreter of that side, ``{source}`` the patched source.
    The time is the CPU time of the whole process and its children, unless the command prints a
    line ``cpu_seconds=1.23``: then it is that number, for comparisons that exclude the start.
    A line ``scores={"name": 0.5, ...}`` (JSON) of both commands is compared.
    """

    name: str
    original: list[str]
    karat: list[str]
    goal: float
    tolerance: float = 0.0
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Patch:
    """A change of the original's source that it needs to run: replaces ``old`` in ``file`` once."""

    file: str
    old: str
    new: str
    reason: str


@dataclass(frozen=True)
class Recipe:
    """An original system: what it needs, what is changed in it, and the cases to measure.

    ``package`` is the name of the installed package to patch; ``source`` says which repository
    and commit must be given with ``--source NAME=FOLDER`` if the system is not on PyPI.
    ``prepare`` writes the input files of the cases into a folder, once, and returns the cases.
    ``extras`` are the extras of Karat that the cases need. ``python2``: ``fissix``, one of the
    requirements, converts the package to Python 3 before it is patched.
    """

    title: str
    requirements: tuple[str, ...]
    prepare: Callable[[Path], list[Case]]
    package: str | None = None
    source: str | None = None
    patches: tuple[Patch, ...] = ()
    no_deps: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    python2: bool = False
