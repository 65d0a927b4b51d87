"""What a definition may hold: one record per section, strict about keys and types."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    Tag,
    model_serializer,
)
from pydantic_core import PydanticCustomError

_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def _use(value: str) -> str:
    if ":" in value and not _PATH.fullmatch(value):
        raise PydanticCustomError("use", 'must be a name or "package.module:Name"')
    return value


def _named_part(value: Any) -> Any:
    if isinstance(value, str):
        return {"use": value}
    if not isinstance(value, dict):
        raise PydanticCustomError("shape", "must be a name or a mapping with use")
    return value


def _shape(value: Any) -> str | None:
    if isinstance(value, str):
        return "<text>"
    return "<mapping>" if isinstance(value, dict | BaseModel) else None


def _once(values: list[str]) -> list[str]:
    for i, value in enumerate(values):
        if value in values[:i]:
            raise PydanticCustomError("twice", "stands twice in the list", {"index": i})
    return values


def _or(default: type) -> BeforeValidator:
    """Return what reads an empty value as the empty default, so that a child can clear it."""
    return BeforeValidator(lambda value: default() if value is None else value)


Name = Annotated[str, Field(min_length=1)]
Use = Annotated[Name, AfterValidator(_use)]
Texts = Annotated[list[Name], AfterValidator(_once), _or(list)]
Options = Annotated[dict[str, Any], _or(dict)]
Count = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0)]
Severity = Annotated[float, Field(ge=0)]
Checksum = Annotated[str, StringConstraints(pattern="^[0-9a-fA-F]{64}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class _Part(BaseModel):
    """An asker, a probe, a splitter or a loader: what to use, and its own options."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)
    use: Use


Part = Annotated[_Part, BeforeValidator(_named_part)]


class Model(_Strict):
    """A model: the class to use, its parameters, and what is known about it."""

    use: Use
    params: Options = {}
    out_of_fold: Annotated[int, Field(ge=2)] | None = None
    role: Literal["encoder", "predictor"] | None = None
    takes: list[Literal["table", "text", "entity"]] | None = None
    requires: Texts = []
    artifacts: Texts = []
    refuse: str | None = None
    extra: str | None = None
    title: str | None = None
    description: str | None = None
    licence: str | None = None
    version: str | None = None
    citation: str | None = None
    homepage: str | None = None


class Paths(_Strict):
    """Data that come split: one file to train on and one to test on."""

    train: Name
    test: Name


class Source(_Strict):
    """One way to get the data: a folder, a package, a file of the package index, or a URL."""

    folder: Name | None = None
    package: Name | None = None
    index: Name | None = None
    url: Name | None = None
    file: Name | None = None
    sha256: Checksum | None = None
    member: Name | None = None

    @model_serializer(mode="wrap")
    def _given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in dump(self).items() if value is not None}


class Dataset(_Strict):
    """A data set: where its data are, how to read them, what is asked, and its licence."""

    path: (
        Annotated[
            Annotated[Name, Tag("<text>")] | Annotated[Paths, Tag("<mapping>")],
            Discriminator(
                _shape,
                custom_error_type="shape",
                custom_error_message="must be a path or a mapping {train: path, test: path}",
            ),
        ]
        | None
    ) = None
    sources: Annotated[list[Source], Field(min_length=1)] | None = None
    load: Part | None = None
    reader: Name = "table"
    target: str | None = None
    kind: Literal["classes", "numbers", "items"] | None = None
    group: str | None = None
    drop: Texts = []
    fields: Texts = []
    modality: Literal["table", "text", "entity"] = "table"
    part: str | None = None
    options: Options = {}
    title: str | None = None
    description: str | None = None
    licence: str | None = None
    citation: str | None = None
    homepage: str | None = None


class Task(_Strict):
    """A task: a data set, a probe, a split, and how answers are graded."""

    dataset: Annotated[
        Annotated[Name, Tag("<text>")] | Annotated[Dataset, Tag("<mapping>")],
        Discriminator(
            _shape,
            custom_error_type="shape",
            custom_error_message="must be the name of a dataset or a mapping",
        ),
    ]
    ask: Part | None = None
    probe: Part | None = None
    split: Part | None = None
    metrics: Annotated[list[Name], Field(min_length=1), AfterValidator(_once)] | None = None
    usual: dict[Literal["binary", "multiclass", "numbers"], Texts] | None = None
    called: Name | None = None
    refuse: str | None = None
    folds: Count | None = None
    missing: Literal["ignore", "penalise"] = "ignore"
    corruptions: Annotated[dict[str, list[Severity]], _or(dict)] = {}
    draws: Count = 1
    kind: str | None = None
    max_rows: Count | None = None
    max_runtime_seconds: Seconds | None = None
    max_mem_size_mb: Count | None = None
    cores: Count | None = None
    gpus: Count | None = None
    ignore: Texts = []
    title: str | None = None
    description: str | None = None


class Suite(_Strict):
    """A suite: tasks that are run together, and the models people usually run on them."""

    tasks: Annotated[list[Name], AfterValidator(_once)]
    left_out: Options = {}
    models: Texts = []
    title: str | None = None
    description: str | None = None


class Constraint(_Strict):
    """A constraint: how much of every task is run, and what each job may take."""

    folds: Count | None = None
    max_rows: Count | None = None
    max_runtime_seconds: Seconds | None = None
    max_mem_size_mb: Count | None = None
    cores: Count | None = None
    gpus: Count | None = None
    min_vol_size_mb: Count | None = None
    description: str | None = None


SCHEMAS: dict[str, type[BaseModel]] = {
    "models": Model,
    "tasks": Task,
    "suites": Suite,
    "datasets": Dataset,
    "constraints": Constraint,
}
NESTED: dict[str, type[BaseModel]] = {"dataset": Dataset, "path": Paths, "sources": Source}
"""The record found under a key, for the nearest valid key of a mistyped one."""

SOURCE_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "folder": ((), ("sha256",)),
    "package": (("member",), ("sha256",)),
    "index": (("file", "sha256"), ("member",)),
    "url": (("sha256",), ("member",)),
}
"""Per kind of source, the keys that must and the keys that may stand beside it."""
