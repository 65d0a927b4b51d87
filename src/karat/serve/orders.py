"""Orders: what may be evaluated over the web. Names that are defined here, and nothing else."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from karat.errors import DefinitionError, KaratError, did_you_mean
from karat.serve.replies import Refused
from karat.serve.settings import Settings

if TYPE_CHECKING:
    from karat.serve.uploads import Uploads

#: a model that begins so is an uploaded vector file
UPLOAD = "upload:"
Name = Annotated[str, Field(min_length=1, max_length=200)]


@dataclass(frozen=True)
class Order:
    """What is to be evaluated; without models the suite's own, without tasks all of them."""

    suite: str
    models: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    folds: list[int] = field(default_factory=list)
    seed: int = 42


class OrderShape(BaseModel):
    """An order as it is sent."""

    model_config = ConfigDict(extra="forbid", strict=True)

    suite: Name
    models: Annotated[list[Name], Field(max_length=50)] = []
    tasks: Annotated[list[Name], Field(max_length=500)] = []
    folds: Annotated[list[Annotated[int, Field(ge=0, le=10_000)]], Field(max_length=1000)] = []
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 42


def parse_order(body: Any) -> Order:
    """Return a checked order; whether its names are known is looked at later."""
    try:
        shape = OrderShape.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))[:100] or "the body"
        hint = '{"suite": "quickstart", "models": ["onehot"]}'
        raise Refused(400, f"{place}: {first['msg'][:200]}", hint) from error
    return Order(**shape.model_dump())


class Names:
    """The names that are defined on this server, read once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.Lock()

    @cached_property
    def _catalog(self) -> Any:
        from karat.config.catalog import Catalog

        return Catalog([str(path) for path in self.settings.define])

    def of(self, kind: str) -> list[str]:
        """Return the names of a kind: "models", "suites", "tasks" or "constraints"."""
        with self._lock:
            return sorted(self._catalog.definitions.names(kind))

    def check(self, order: Order, uploads: Uploads) -> None:
        """Refuse an order that names what is not defined here."""
        known = self.of("models")
        for model in order.models:
            if model.startswith(UPLOAD):
                uploads.find_vectors(model.removeprefix(UPLOAD))
            elif model not in known or "=" in model:
                raise _unknown("model", model, known)
        if len(set(order.models)) < len(order.models):
            raise Refused(422, "a model stands there twice", "name each once")
        suites = [*self.of("suites"), *self.of("tasks")]
        if order.suite not in suites:
            raise _unknown("suite", order.suite, suites)
        tasks = self._tasks(order.suite)
        for task in order.tasks:
            if task not in tasks:
                raise _unknown("task", task, tasks)

    def _tasks(self, suite: str) -> list[str]:
        try:
            with self._lock:
                return [task.name for task in self._catalog.suite(suite)]
        except KaratError as error:
            raise Refused(422, str(error)[:500], "karat list suites") from error

    def check_constraint(self) -> None:
        """Refuse a constraint under which strangers' evaluations could take all they like."""
        name = self.settings.constraint
        limits = self._catalog.definitions.get("constraints", name)
        lacking = [k for k in ("max_runtime_seconds", "max_mem_size_mb") if limits.get(k) is None]
        if lacking:
            raise DefinitionError(
                f'the constraint "{name}" has no {" and no ".join(lacking)}: what is started over '
                f"the web needs both; karat list constraints, or define one of your own."
            )


def _unknown(kind: str, name: str, known: list[str]) -> Refused:
    hint = did_you_mean(name, known).strip() or "/api/v1/names lists what is defined here"
    return Refused(422, f'there is no {kind} "{name}"', hint)


def command(order: Order, settings: Settings, uploads: Uploads) -> list[str]:
    """Return the words of ``karat run`` for an order; each value is one word with its option."""
    models = []
    for model in order.models:
        if model.startswith(UPLOAD):
            name = model.removeprefix(UPLOAD)
            model = f"{name}={uploads.find_vectors(name).absolute()}"
        models.append(f"--model={model}")
    return [
        "run",
        f"--output={settings.folder.absolute()}",
        f"--constraint={settings.constraint}",
        f"--workers={settings.workers}",
        f"--seed={order.seed}",
        *("--resume", "--retry-failed", "--quiet"),
        *(f"--define={path.absolute()}" for path in settings.define),
        *models,
        *(f"--task={task}" for task in order.tasks),
        *(f"--fold={fold}" for fold in order.folds),
        *("--", order.suite),
    ]
