"""Task: a data set, how it is asked, how it is split and what is measured. Data only, no code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from karat.dataset import Dataset
from karat.errors import DefinitionError, did_you_mean

MISSING = ("ignore", "penalise")


@dataclass(frozen=True)
class Task:
    """What is asked of a model. Everything but name and data set has a default.

    Attributes
    ----------
    dataset
        A Dataset, the name of a defined one, or a function that loads it when it is needed.
    probe
        ``"trained"``, ``"similarity"``, ``"analogy"`` or a mapping ``{"use": …}`` with parameters.
    split
        ``"kfold"``, ``"holdout"``, ``"all"``, ``"fixed"`` or a mapping ``{"use": …}``.
    metrics
        The first one is the result people compare; empty: those usual for the data.
    missing
        What becomes of questions about items a model does not know: ``"ignore"`` leaves them out
        and records the coverage, ``"penalise"`` counts them as answered without looking.
    corruptions
        Severities by the name of a corruption; the test fold is also seen through each.
    kind
        The task kind it belongs to on a leaderboard, such as ``"classification"``.

    >>> Task("churn", "churn", split={"use": "kfold", "folds": 10}).probe
    {'use': 'trained'}
    """

    name: str
    dataset: Dataset | str | Callable[[], Dataset]
    probe: Mapping[str, Any] | str = "trained"
    split: Mapping[str, Any] | str = "kfold"
    metrics: Sequence[str] = ()
    missing: str = "ignore"
    corruptions: Mapping[str, Sequence[float]] = field(default_factory=dict)
    kind: str = ""
    max_rows: int | None = None
    description: str = ""

    def __post_init__(self) -> None:
        if not str(self.name).strip():
            raise DefinitionError("a task needs a name.")
        if not isinstance(self.dataset, Dataset | str) and not callable(self.dataset):
            raise DefinitionError(
                f'task "{self.name}": dataset is a Dataset or a name, not '
                f"{type(self.dataset).__name__}; make one with karat.Dataset.from_table."
            )
        if isinstance(self.metrics, str):
            object.__setattr__(self, "metrics", (self.metrics,))
        object.__setattr__(self, "metrics", tuple(self.metrics))
        for name in ("probe", "split"):
            object.__setattr__(
                self, name, _used(f'task "{self.name}": {name}', getattr(self, name))
            )
        if self.missing not in MISSING:
            raise DefinitionError(
                f'task "{self.name}": missing is "ignore" or "penalise", not "{self.missing}".'
                + did_you_mean(self.missing, MISSING)
            )
        self._check_corruptions()

    def _check_corruptions(self) -> None:
        chosen = {}
        for name, severities in dict(self.corruptions).items():
            values = [severities] if isinstance(severities, int | float) else list(severities)
            if any(value < 0 for value in values):
                raise DefinitionError(f'task "{self.name}": {name}: a severity is 0 or more.')
            chosen[name] = tuple(float(value) for value in values)
        object.__setattr__(self, "corruptions", chosen)


def _used(where: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"use": value}
    if not isinstance(value, Mapping) or not isinstance(value.get("use"), str):
        raise DefinitionError(f'{where}: write a name, or a mapping with "use" and parameters.')
    return dict(value)


@dataclass(frozen=True)
class Suite:
    """A named list of tasks; iterate over it to get them."""

    name: str
    tasks: tuple[Task, ...]
    models: tuple[str, ...] = ()
    description: str = ""

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)
