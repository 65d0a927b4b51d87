"""Views: the clean test questions, or the test questions corrupted with a severity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from karat.core import numbers
from karat.core.dataset import Dataset
from karat.core.registry import corruptions
from karat.corruptions.needs import check_severity, unmet_reason
from karat.errors import DefinitionError

#: the ``takes`` of corruptions of vectors
VECTORS = "vectors"


@dataclass(frozen=True)
class View:
    """A corruption, its severity and the number of the draw; the clean view has no corruption.

    Corruptions can be composed, ``a+b`` or ``a@0.2+b@0.1``: they are applied in this order, each
    with its dose times the severity.
    """

    corruption: str = ""
    severity: float = 0.0
    draw: int = 0

    @property
    def name(self) -> str:
        """The name in results: ``clean``, ``noise@0.2``, or ``noise@0.2#1`` for the second draw."""
        if not self.corruption:
            return "clean"
        draw = f"#{self.draw}" if self.draw else ""
        if self.severity == 1 and "@" in self.corruption:
            return f"{self.corruption}{draw}"
        short = f"{self.severity:g}"
        severity = short if float(short) == self.severity else repr(self.severity)
        return f"{self.corruption}@{severity}{draw}"

    def parts(self) -> list[tuple[str, float]]:
        """Return the composed corruptions, each with its severity."""
        return [(name, dose * self.severity) for name, dose in parse_composition(self.corruption)]


CLEAN = View()


def parse_composition(corruption: str) -> list[tuple[str, float]]:
    """Return the corruptions in a name and the dose of each.

    >>> parse_composition("missingness_mcar@0.2+noise_gaussian")
    [('missingness_mcar', 0.2), ('noise_gaussian', 1.0)]
    """
    if not corruption or corruption in corruptions:
        return [(corruption, 1.0)] if corruption else []
    parts = []
    for part in corruption.split("+"):
        name, at, written = part.strip().partition("@")
        valid = numbers.NUMBER.fullmatch(written.strip())
        dose = float(written) if valid else -1.0 if at else 1.0
        if not name or not 0 <= dose < np.inf:
            raise DefinitionError(
                f'corruption "{corruption}" is not valid; write "a+b" or "a@0.2+b@0.1".'
            )
        parts.append((name, dose))
    return parts


def views(chosen: Mapping[str, Sequence[float]], draws: int = 1) -> Iterator[View]:
    """Yield the clean view and then every corruption at each of its severities, in each draw.

    >>> [view.name for view in views({"noise": [0.1, 0.4]})]
    ['clean', 'noise@0.1', 'noise@0.4']
    """
    yield CLEAN
    for corruption, severities in chosen.items():
        for severity in severities:
            for draw in range(draws if severity else 1):
                yield View(corruption, float(severity), draw)


def check_view(view: View) -> None:
    """Refuse unknown corruptions and severities outside of their range."""
    for name, severity in view.parts():
        check_severity(name, severity)


def reason_not_applicable(view: View, data: Dataset, role: str) -> str:
    """Return why a view cannot be applied to the data for a model of this role, or ""."""
    for name, _ in view.parts():
        if VECTORS not in getattr(corruptions.get(name), "takes", ()):
            why = unmet_reason(name, data)
        else:
            why = "" if role == "encoder" else f"it changes vectors, but a {role} has none"
        if why:
            return f"{name}: {why}"
    return ""


def changes_items(view: View) -> bool:
    """Return whether a view differs from the clean one in items or targets, not only in vectors."""
    return any(part_changes_items(name, severity) for name, severity in view.parts())


def part_changes_items(name: str, severity: float) -> bool:
    """Return whether one corruption of a view changes items or targets."""
    return bool(severity) and VECTORS not in getattr(corruptions.get(name), "takes", ())
