"""Schema of the definitions: one pydantic model per section, strict about keys and types."""

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


def _component(value: Any) -> Any:
    if isinstance(value, str):
        return {"use": value}
    if not isinstance(value, dict):
        raise PydanticCustomError("shape", "must be a name or a mapping with the key use")
    return value


def _shape(value: Any) -> str | None:
    if isinstance(value, str):
        return "<text>"
    return "<mapping>" if isinstance(value, dict | BaseModel) else None


def _once(values: list[str]) -> list[str]:
    for i, value in enumerate(values):
        if value in values[:i]:
            raise PydanticCustomError("duplicate", "duplicate value", {"index": i})
    return values


def _or(default: type) -> BeforeValidator:
    """Read null as the empty default, so that a child can clear an inherited value."""
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


class _Component(BaseModel):
    """A query generator, probe, splitter or loader: what to use, and its own options."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)
    use: Use


Component = Annotated[_Component, BeforeValidator(_component)]


class Model(_Strict):
    """A model: the class to use, its parameters and its metadata."""

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
    """Data in two files, one for training and one for testing."""

    train: Name
    test: Name


class _Source(_Strict):
    @model_serializer(mode="wrap")
    def _given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in dump(self).items() if value is not None}


class FolderSource(_Source):
    """A folder on this machine."""

    folder: Name
    sha256: Checksum | None = None


class PackageSource(_Source):
    """A file of an installed package."""

    package: Name
    member: Name
    sha256: Checksum | None = None


class IndexSource(_Source):
    """A file of the Python package index."""

    index: Name
    file: Name
    sha256: Checksum
    member: Name | None = None


class UrlSource(_Source):
    """A file to download."""

    url: Name
    sha256: Checksum
    member: Name | None = None


SOURCES: dict[str, type[BaseModel]] = {
    "folder": FolderSource,
    "package": PackageSource,
    "index": IndexSource,
    "url": UrlSource,
}


def _source_kind(value: Any) -> str | None:
    """Return the tag of a source: the one key of SOURCES that it has."""
    if isinstance(value, _Source):
        return f"<{type(value).__name__}>"
    given = value if isinstance(value, dict) else {}
    kinds = [key for key in SOURCES if given.get(key) is not None]
    return f"<{SOURCES[kinds[0]].__name__}>" if len(kinds) == 1 else None


Source = Annotated[
    Annotated[FolderSource, Tag("<FolderSource>")]
    | Annotated[PackageSource, Tag("<PackageSource>")]
    | Annotated[IndexSource, Tag("<IndexSource>")]
    | Annotated[UrlSource, Tag("<UrlSource>")],
    Discriminator(
        _source_kind,
        custom_error_type="source",
        custom_error_message=f"must be a mapping with exactly one of {', '.join(SOURCES)}",
    ),
]


class Dataset(_Strict):
    """A dataset: where its data are, how to read them, its target and its license."""

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
    load: Component | None = None
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
    """A task: a dataset, a probe, a split and metrics."""

    dataset: Annotated[
        Annotated[Name, Tag("<text>")] | Annotated[Dataset, Tag("<mapping>")],
        Discriminator(
            _shape,
            custom_error_type="shape",
            custom_error_message="must be the name of a dataset or a mapping",
        ),
    ]
    ask: Component | None = None
    probe: Component | None = None
    split: Component | None = None
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
    """A suite: tasks that are run together, and the default models for them."""

    tasks: Annotated[list[Name], AfterValidator(_once)]
    left_out: Options = {}
    models: Texts = []
    title: str | None = None
    description: str | None = None


class Constraint(_Strict):
    """A constraint: how much of every task is run, and the limits of each job."""

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
NESTED: dict[str, type[BaseModel]] = {
    "dataset": Dataset,
    "path": Paths,
    **{f"<{source.__name__}>": source for source in SOURCES.values()},
}
"""The model of a nested mapping, by its key or tag: the keys allowed in it."""
