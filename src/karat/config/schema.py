"""Schema of the definitions: each section has a pydantic model, strict about keys and types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
    ValidationError,
    model_serializer,
)
from pydantic_core import PydanticCustomError

from karat.config.loading import NOT_INHERITED, PLACES_OF_DATA, Problem
from karat.config.yaml_files import Key, Node, describe_value
from karat.errors import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
Name = Annotated[str, Field(min_length=1)]
#: the types of items: MODALITIES of core/dataset.py
Modality = Literal["table", "text", "entity", "column", "frame"]
Count = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0)]
#: the keys of BITS of core/embeddings.py
Precision = Literal["float32", "float16", "int8", "binary"]
Severity = Annotated[float, Field(ge=0)]
Checksum = Annotated[str, StringConstraints(pattern="^[0-9a-fA-F]{64}$")]
_INCOMPLETE = ("missing", "too_short")
_EXPECTED = {
    "string_type": "text",
    **dict.fromkeys(("int_type", "int_from_float"), "an integer"),
    "float_type": "a number",
    "finite_number": "a finite number",
    "list_type": "a list",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "a mapping"),
}
_FIXED = {
    "missing": "is missing.",
    "too_short": "must not be empty.",
    "string_too_short": "must not be empty.",
    "string_pattern_mismatch": "must be 64 hexadecimal digits.",
}


def _use(value: str) -> str:
    if ":" in value and not _PATH.fullmatch(value):
        raise PydanticCustomError("use", 'must be a name or "package.module:Name"')
    return value


def _component(value: object) -> Any:
    if isinstance(value, str):
        return {"use": value}
    if not isinstance(value, dict):
        raise PydanticCustomError("shape", "must be a name or a mapping with the key use")
    return value


def _label(value: object) -> Any:
    if value is not None and not isinstance(value, str | int | float):
        raise PydanticCustomError("shape", "must be a class label")
    return value


def _shape(value: object) -> str | None:
    if isinstance(value, str):
        return "<text>"
    return "<mapping>" if isinstance(value, dict | BaseModel) else None


def _once(values: list[str]) -> list[str]:
    seen: set[str] = set()
    for i, value in enumerate(values):
        if value in seen:
            raise PydanticCustomError("duplicate", "duplicate value", {"index": i})
        seen.add(value)
    return values


def _or(default: type) -> BeforeValidator:
    """Read null as the empty default, so that a child can clear an inherited value."""
    return BeforeValidator(lambda value: default() if value is None else value)


def _listed(value: object) -> Any:
    """Read a single value as a list of it, and null as an empty list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _rescore(value: object) -> Any:
    if value is not None and not isinstance(value, bool) and not (type(value) is int and value > 0):
        raise PydanticCustomError("shape", "must be true, false or an integer >= 1")
    return value or False


_LISTED = BeforeValidator(_listed)
Use = Annotated[Name, AfterValidator(_use)]
Texts = Annotated[list[Name], AfterValidator(_once), _or(list)]
Options = Annotated[dict[str, Any], _or(dict)]
Label = Annotated[Any, AfterValidator(_label)]


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
    dimensions: Annotated[list[Count], _LISTED] = []
    precision: Annotated[list[Precision], _LISTED] = []
    rescore: Annotated[Any, AfterValidator(_rescore)] = False
    role: Literal["encoder", "predictor", "searcher"] | None = None
    takes: list[Modality] | None = None
    requires: Texts = []
    artifacts: Texts = []
    depends_on: Texts = []
    refuse: str | None = None
    extra: str | None = None
    title: str | None = None
    description: str | None = None
    license: str | None = None
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


def _source_kind(value: object) -> str | None:
    """Return the tag of a source: the one key of SOURCES that it has."""
    if isinstance(value, _Source):
        return f"<{type(value).__name__}>"
    source = value if isinstance(value, dict) else {}
    kinds = [key for key in SOURCES if source.get(key) is not None]
    return f"<{SOURCES[kinds[0]].__name__}>" if len(kinds) == 1 else None


Source = Annotated[
    Annotated[FolderSource, Tag("<FolderSource>")]
    | Annotated[PackageSource, Tag("<PackageSource>")]
    | Annotated[IndexSource, Tag("<IndexSource>")]
    | Annotated[UrlSource, Tag("<UrlSource>")],
    Discriminator(
        _source_kind, "source", f"must be a mapping with exactly one of {', '.join(SOURCES)}"
    ),
]


class Dataset(_Strict):
    """A dataset: where its data are, how to read them, its target and its license."""

    path: (
        Annotated[
            Annotated[Name, Tag("<text>")] | Annotated[Paths, Tag("<mapping>")],
            Discriminator(_shape, "shape", "must be a path or a mapping {train: path, test: path}"),
        ]
        | None
    ) = None
    sources: Annotated[list[Source], Field(min_length=1)] | None = None
    load: Component | None = None
    reader: Name = "table"
    target: str | None = None
    kind: Literal["classification", "regression", "items"] | None = None
    positive: Label = None
    group: str | None = None
    group_feature: bool | None = None
    weight: str | None = None
    drop: Texts = []
    fields: Texts = []
    modality: Modality = "table"
    part: str | None = None
    options: Options = {}
    title: str | None = None
    description: str | None = None
    language: str | None = None
    license: str | None = None
    citation: str | None = None
    homepage: str | None = None


class _Limited(_Strict):
    max_folds: Count | None = None
    max_rows: Count | None = None
    max_runtime_seconds: Seconds | None = None
    max_mem_size_mb: Count | None = None
    cores: Count | None = None
    gpus: Count | None = None


class Task(_Limited):
    """A task: a dataset, a probe, a split and metrics."""

    dataset: Annotated[
        Annotated[Name, Tag("<text>")] | Annotated[Dataset, Tag("<mapping>")],
        Discriminator(_shape, "shape", "must be the name of a dataset or a mapping"),
    ]
    ask: Component | None = None
    probe: Component | None = None
    split: Component | None = None
    folds: Annotated[int, Field(ge=2)] | None = None
    metrics: Annotated[list[Name], Field(min_length=1), AfterValidator(_once)] | None = None
    usual: dict[Literal["binary", "multiclass", "regression"], Texts] | None = None
    called: Name | None = None
    refuse: str | None = None
    positive: Label = None
    missing: Literal["ignore", "penalize"] = "ignore"
    corruptions: Annotated[dict[str, list[Severity]], _or(dict)] = {}
    draws: Count = 1
    keep_predictions: Literal["all", "clean"] = "all"
    roles: Texts = []
    kind: str | None = None
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


class Constraint(_Limited):
    """A constraint: how much of every task is run, and the limits of each job."""

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


def check_definition(
    section: str, node: Node, *, complete: bool = True
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the definition with its defaults, and all mistakes in it.

    One that is not ``complete`` (abstract) may lack keys, and is returned without defaults.

    >>> from karat.config.yaml_files import SourceFile, read_yaml
    >>> node, _ = read_yaml(b"{tasks: [churn], modles: [random]}", SourceFile("my.yaml"))
    >>> check_definition("suites", node)[1]  # doctest: +ELLIPSIS
    [Problem(path=('modles',), text='unknown key. Did you mean "models"?', ...)]
    """
    data = {key: value for key, value in node.plain().items() if key not in NOT_INHERITED}
    values = data
    problems: list[Problem] = []
    try:
        checked = SCHEMAS[section].model_validate(data)
        values = checked.model_dump() if complete else data
    except ValidationError as error:
        problems = [_problem(section, details, node) for details in error.errors()]
    problems += _data_problems(section, data)
    meant = {problem.meant for problem in problems}
    reported = [p for p in problems if not (p.incomplete and (not complete or p.path in meant))]
    return values, reported


def _problem(section: str, details: ErrorDetails, node: Node) -> Problem:
    """Return one error of pydantic with its key path in the file and a message."""
    kind, location, context = details["type"], details["loc"], details.get("ctx", {})
    # names of types in the location are no keys; the last of an unknown key is one
    last = location[-1:] if kind == "extra_forbidden" else ()
    inner = location[: len(location) - len(last)]
    path = (*(key for key in inner if str(key)[:1] not in ("<", "[")), *last)
    if kind == "extra_forbidden":
        nested = [NESTED[key] for key in location[:-1] if key in NESTED]
        record = nested[-1] if nested else SCHEMAS[section]
        allowed = [*record.model_fields, *(() if nested else NOT_INHERITED)]
        near = did_you_mean(str(path[-1]), allowed)
        if not near:
            return Problem(path, f"unknown key. Allowed: {', '.join(sorted(allowed))}.")
        return Problem(path, f"unknown key.{near}", meant=(*path[:-1], near.split('"')[1]))
    if location[-1] == "[key]":
        return Problem(path, "the key must be text; put it in quotes.")
    if "index" in context:
        path = (*path, context["index"])
    written, is_written = node.nearest(path)
    got = (
        describe_value(written.value, written.text)
        if is_written
        else describe_value(details["input"])
    )
    return Problem(path, _message(details, got), incomplete=kind in _INCOMPLETE)


def _message(details: ErrorDetails, got: str) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind in _FIXED:
        return _FIXED[kind]
    if kind in _EXPECTED:
        scalar = got.startswith("the number") or got.lower() in ("true", "false")
        quote = " Put it in quotes." if _EXPECTED[kind] == "text" and scalar else ""
        return f"must be {_EXPECTED[kind]}, got {got}.{quote}"
    if kind == "literal_error":
        allowed = context["expected"].replace("'", '"')
        near = did_you_mean(str(details["input"]), re.findall(r'[^", ]+', allowed))
        return f"must be {allowed}, got {got}.{near}"
    if kind == "greater_than":
        return f"must be > {context['gt']}, got {got}."
    if kind == "greater_than_equal":
        return f"must be >= {context['ge']:g}, got {got}."
    return f"{details['msg']}, got {got}." if kind in ("use", "shape") else f"{details['msg']}."


# -- rules about several keys: pydantic would skip these where a single key is wrong ---------


def _data_problems(section: str, data: dict[str, Any]) -> Iterator[Problem]:
    if section == "datasets":
        yield from _one_place(data, ())
    elif section == "tasks":
        if isinstance(data.get("dataset"), dict):
            yield from _one_place(data["dataset"], ("dataset",))
        if data.get("metrics") is None and not data.get("usual"):
            yield Problem(("metrics",), _FIXED["missing"], incomplete=True)
    elif section == "suites" and data.get("tasks") == [] and not data.get("left_out"):
        yield Problem(("tasks",), _FIXED["too_short"], incomplete=True)


def _one_place(data: dict[str, Any], path: tuple[Key, ...]) -> Iterator[Problem]:
    places = [key for key in data if key in PLACES_OF_DATA and data[key] is not None]
    if not places:
        yield Problem(path, f"needs one of {', '.join(PLACES_OF_DATA)}.", incomplete=True)
    if len(places) > 1:
        text = f"{' and '.join(places)} are mutually exclusive; keep one."
        yield Problem((*path, places[1]), text)
