"""What a recipe of ``benchmarks/recipes`` contains: how an original system is installed and run.

A recipe is a module with one name, ``RECIPE``. ``benchmarks/peers.py`` makes a virtual environment
from its requirements and runs the cases: the command of the original and the command of Karat, in
turns, on the same files. What an original needs to run with current libraries is changed while it
runs, by the driver that starts it; its files stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """One comparison: two commands that do the same work.

    ``{python}`` in a command is the interpreter of that side, ``{source}`` the folder
    of the original's source.
    The time is the CPU time of the whole process and its children, unless the command prints a
    line ``cpu_seconds=1.23``: then it is that number, for comparisons that exclude the start.
    A line ``scores={"name": 0.5, ...}`` (JSON) of both commands is compared. ``quick`` says that
    the case takes a few seconds.
    """

    name: str
    original: list[str]
    karat: list[str]
    goal: float
    tolerance: float = 0.0
    environment: dict[str, str] = field(default_factory=dict)
    quick: bool = False


@dataclass(frozen=True)
class Recipe:
    """An original system: what it needs, and the cases to measure.

    ``source`` is the repository, ``HOST/OWNER/NAME at commit HASH``, if the system is not on PyPI.
    ``prepare`` writes the input files of the cases into a folder, once, and
    returns the cases. ``extras`` are the extras of Karat that the cases need. ``python2_package``
    is an installed package that ``fissix``, one of the requirements, converts to Python 3.
    ``quick`` says that some of its cases are.
    """

    title: str
    requirements: tuple[str, ...]
    prepare: Callable[[Path], list[Case]]
    source: str | None = None
    no_deps: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    python2_package: str | None = None
    quick: bool = False
