"""The reader "pieces": texts in several files, with classes derived from their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from karat.columns import need_columns
from karat.data.frames import OPTIONS, read_frame, read_parts, without_target
from karat.data.load import DataSpec, Files
from karat.data.questions import ask, file_in, need_target
from karat.data.related import keep_together
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.registry import reader

OWN = ("train", "test", "file", "answers", "key", "keep", "classes", "one_of", "together")


@reader("pieces")
def read_pieces(files: Files, spec: DataSpec) -> Dataset:
    """Return questions about the texts in the columns ``fields`` of one file or a folder.

    In a folder, the options ``train`` and ``test`` name the files of both parts (a list is
    concatenated), or ``file`` the only one; ``answers`` is a file with the targets, joined by the
    column ``key`` of both.

    The target is the column ``target``. ``keep`` lists the labels to use;
    ``classes: {name: [low, high]}`` bins numbers into classes; ``one_of`` lists columns and uses
    the name of the only one that is 1. Other rows are dropped. Classes are in the order of the
    list; ``{label: class}`` instead of a list renames them. ``together: true`` keeps questions
    that share a text on one side of a split.
    """
    spec.check_options(*OWN, *OPTIONS)
    if not spec.fields:
        raise DefinitionError(f'{spec.name}: the text columns are missing; add "fields: [NAME]".')
    if isinstance(files, Path) and files.is_dir():
        frame, spec = _from_folder(files, spec)
    else:
        for option in ("train", "test", "file", "answers"):
            if option in spec.options:
                raise DefinitionError(f'{spec.name}: "{option}" requires a folder of files.')
        frame, spec = read_parts(files, spec, lambda path: _read(path, spec, spec.fields))
    need_columns(frame, spec.fields, spec.name)
    frame, spec = _derive_target(frame, spec)
    if not len(frame):
        raise DataError(f"{spec.name}: no row has one of the requested targets.")
    frame, spec = keep_together(frame, spec, list(spec.fields))
    return ask(frame, replace(spec, modality="text"), None)


def _from_folder(folder: Path, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows of the files that the options name, and the spec for them."""
    parts = ("file",) if spec.options.get("file") else ("train", "test")
    frames = []
    for part in parts:
        named = spec.options.get(part)
        if not named:
            raise DefinitionError(
                f'{spec.name}: a folder needs the option "file", or the options "train" and "test".'
            )
        for name in named if isinstance(named, list) else [named]:
            read = _read(file_in(folder, name), spec, spec.fields)
            frames.append(read if part == "file" else read.assign(part=part))
    frame = pd.concat(frames, ignore_index=True)
    spec = spec if parts == ("file",) else replace(spec, part="part")
    return (_joined(frame, folder, spec) if spec.options.get("answers") else frame), spec


def _read(path: Path, spec: DataSpec, texts: Sequence[str]) -> pd.DataFrame:
    """Return a table whose texts, keys and class labels are not converted."""
    keys = [str(spec.options["key"])] if spec.options.get("key") else []
    labels = [spec.target] if spec.target and spec.kind != "numbers" else []
    return read_frame(path, without_target(spec), [*texts, *keys, *labels])


def _joined(frame: pd.DataFrame, folder: Path, spec: DataSpec) -> pd.DataFrame:
    """Return the rows joined with the targets in another file."""
    key = spec.options.get("key")
    if not key:
        raise DefinitionError(f'{spec.name}: the option "answers" needs the option "key".')
    path = file_in(folder, spec.options["answers"])
    answers = _read(path, spec, ())
    for where, table in ((str(folder), frame), (str(path), answers)):
        need_columns(table, [key], where)
        duplicates = table[key][table[key].duplicated()]
        if len(duplicates):
            raise DataError(f'{where}: duplicate {key} "{duplicates.iloc[0]}".')
    missing = frame[key][~frame[key].isin(answers[key])]
    if len(missing):
        raise DataError(f'{path} has no row for the {key} "{missing.iloc[0]}".')
    new = [name for name in answers.columns if name not in frame.columns]
    return frame.merge(answers[[key, *new]], on=key, how="left", validate="one_to_one")


# -- targets --------------------------------------------------------------------------------


def _derive_target(frame: pd.DataFrame, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows with a target, and the spec for them."""
    functions = {"keep": _kept, "classes": _cut, "one_of": _chosen}
    given = [option for option in functions if spec.options.get(option)]
    if len(given) > 1:
        raise DefinitionError(f"{spec.name}: {' and '.join(given)} exclude each other.")
    if not given:
        return frame, spec
    return functions[given[0]](frame, spec)


def _kept(frame: pd.DataFrame, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows whose label is listed; a mapping also renames the labels."""
    target, names = need_target(spec), _named(spec, "keep")
    need_columns(frame, [target], spec.name)
    answers = frame[target].map(lambda cell: names.get(str(cell)), na_action="ignore")
    return _classes(frame, answers, list(names.values()), spec)


def _cut(frame: pd.DataFrame, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows whose number lies within the limits (inclusive) of a class."""
    target, limits = need_target(spec), spec.options["classes"]
    if not isinstance(limits, dict):
        raise DefinitionError(f'{spec.name}: "classes" must be a mapping {{name: [low, high]}}.')
    need_columns(frame, [target], spec.name)
    numbers = pd.to_numeric(frame[target], errors="coerce").to_numpy(dtype=float)
    answers = pd.Series([None] * len(frame), index=frame.index, dtype=object)
    for name, pair in limits.items():
        if not isinstance(pair, list) or len(pair) != 2 or not pair[0] <= pair[1]:
            raise DefinitionError(f'{spec.name}: the class "{name}" needs limits: [low, high].')
        within = (numbers >= pair[0]) & (numbers <= pair[1])
        if answers[within].notna().any():
            raise DefinitionError(f'{spec.name}: the limits of "{name}" overlap another class.')
        answers[within] = str(name)
    return _classes(frame, answers, list(map(str, limits)), spec)


def _chosen(frame: pd.DataFrame, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows in which exactly one of the listed columns is 1."""
    names = _named(spec, "one_of")
    need_columns(frame, list(names), spec.name)
    marks = frame[list(names)].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float) == 1
    found = np.array(list(names.values()), dtype=object)[marks.argmax(axis=1)]
    answers = pd.Series(np.where(marks.sum(axis=1) == 1, found, None), index=frame.index)
    spec = replace(spec, target=spec.target or "class")
    return _classes(frame, answers, list(names.values()), spec)


def _named(spec: DataSpec, option: str) -> dict[str, str]:
    """Return an option that is a list, or a mapping to classes, as a mapping."""
    given = spec.options[option]
    if not isinstance(given, list | dict):
        raise DefinitionError(
            f'{spec.name}: "{option}" must be a list or a mapping {{label: class}}, got {given!r}.'
        )
    mapping = given if isinstance(given, dict) else {each: each for each in given}
    return {str(written): str(name) for written, name in mapping.items()}


def _classes(
    frame: pd.DataFrame, answers: pd.Series, names: list[str], spec: DataSpec
) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows that have a class, with the classes in the given order."""
    present = answers.notna()
    labeled = frame[present].assign(**{need_target(spec): answers[present]})
    options = {**spec.options, "labels": {name: name for name in names}}
    return labeled.reset_index(drop=True), replace(spec, kind="classes", options=options)
