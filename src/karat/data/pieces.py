"""The reader "pieces": texts that lie in several files, and answers made of what stands there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.columns import need_columns
from karat.data.frames import OPTIONS, read_frame, read_parts
from karat.data.load import DataSpec, Files
from karat.data.questions import ask, need_target
from karat.data.related import related
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.registry import reader

OWN = ("train", "test", "file", "answers", "key", "keep", "classes", "one_of", "together")
TOGETHER = "related texts"


@reader("pieces")
def read_pieces(files: Files, spec: DataSpec) -> Dataset:
    """Return questions about the texts in the columns ``fields``, from one file or from a folder.

    Of a folder, the options ``train`` and ``test`` name the files of both parts (several in a list
    are put together), or ``file`` the only one; ``answers`` is a file that has the answers to its
    rows, joined by the column ``key`` of both.

    The answer is the column ``target``. Of it, ``keep`` lists the answers that stay and
    ``classes: {name: [low, high]}`` makes classes of numbers; ``one_of`` lists columns and takes
    the one that alone holds 1. Rows without such an answer are left out. Classes are in the order
    of the list, and ``{written: class}`` in place of a list names them anew. ``together: true``
    keeps questions that share a text on one side of a split.
    """
    spec.check_options(*OWN, *OPTIONS)
    if not spec.fields:
        raise DefinitionError(f'{spec.name}: say which columns are asked about: "fields: [NAME]".')
    if isinstance(files, Path) and files.is_dir():
        frame, spec = _from_folder(files, spec)
    else:
        _refuse(spec, ("train", "test", "file", "answers"))
        frame, spec = read_parts(files, spec, lambda path: _read(path, spec, spec.fields))
    need_columns(frame, spec.fields, spec.name)
    frame, spec = _answered(frame, spec)
    if not len(frame):
        raise DataError(f"{spec.name}: no row is left; none has an answer that is wanted.")
    if spec.options.get("together"):
        frame = frame.assign(**{TOGETHER: related(frame[list(spec.fields)])})
        spec = replace(spec, group=TOGETHER)
    return ask(frame, replace(spec, modality="text"), None)


def _from_folder(folder: Path, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows of the files that the options name; with two parts, the spec knows both."""
    parts = ("file",) if spec.options.get("file") else ("train", "test")
    frames = []
    for part in parts:
        named = spec.options.get(part)
        if not named:
            raise DefinitionError(
                f'{spec.name}: name the files of the folder by the options "train" and "test", or '
                f'the only one by "file".'
            )
        for name in named if isinstance(named, list) else [named]:
            read = _read(_inside(folder, name), spec, spec.fields)
            frames.append(read if part == "file" else read.assign(part=part))
    frame = pd.concat(frames, ignore_index=True)
    spec = spec if parts == ("file",) else replace(spec, part="part")
    return (_joined(frame, folder, spec) if spec.options.get("answers") else frame), spec


def _refuse(spec: DataSpec, options: tuple[str, ...]) -> None:
    for option in options:
        if option in spec.options:
            raise DefinitionError(f'{spec.name}: "{option}" is for a folder of several files.')


def _inside(folder: Path, name: Any) -> Path:
    path = folder / str(name)
    if not path.is_file():
        near = did_you_mean(str(name), [other.name for other in folder.iterdir()])
        raise DataError(f'{folder} has no file "{name}".{near}')
    return path


def _read(path: Path, spec: DataSpec, texts: Sequence[str]) -> pd.DataFrame:
    options = {name: value for name, value in spec.options.items() if name in OPTIONS}
    plain = replace(spec, target=None, kind=None, options=options)
    return read_frame(path, plain, [*texts, *_told(spec)])


def _told(spec: DataSpec) -> list[str]:
    """Return the columns whose cells are compared as they are written."""
    keys = [str(spec.options["key"])] if spec.options.get("key") else []
    return [*keys, *([spec.target] if spec.target and spec.kind != "numbers" else [])]


def _joined(frame: pd.DataFrame, folder: Path, spec: DataSpec) -> pd.DataFrame:
    """Return each row with the answers that stand under its key in another file."""
    key = spec.options.get("key")
    if not key:
        raise DefinitionError(f'{spec.name}: with "answers" say by which column: the option "key".')
    path = _inside(folder, spec.options["answers"])
    answers = _read(path, spec, ())
    for where, table in ((str(folder), frame), (str(path), answers)):
        need_columns(table, [key], where)
        twice = table[key][table[key].duplicated()]
        if len(twice):
            raise DataError(f'{where}: the {key} "{twice.iloc[0]}" stands twice.')
    lost = frame[key][~frame[key].isin(answers[key])]
    if len(lost):
        raise DataError(f'{path} has no row for the {key} "{lost.iloc[0]}".')
    new = [name for name in answers.columns if name not in frame.columns]
    return frame.merge(answers[[key, *new]], on=key, how="left", validate="one_to_one")


# -- answers --------------------------------------------------------------------------------


def _answered(frame: pd.DataFrame, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows whose answer is wanted, with it, and the spec that says what it is."""
    ways = {"keep": _kept, "classes": _cut, "one_of": _chosen}
    given = [option for option in ways if spec.options.get(option)]
    if len(given) > 1:
        raise DefinitionError(f"{spec.name}: {' and '.join(given)} exclude each other.")
    if not given:
        return frame, spec
    return ways[given[0]](frame, spec)


def _kept(frame: pd.DataFrame, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows whose answer is listed; a mapping also names the answers anew."""
    target, names = need_target(spec), _named(spec, "keep")
    need_columns(frame, [target], spec.name)
    answers = frame[target].map(lambda cell: names.get(str(cell)), na_action="ignore")
    return _classes(frame, answers, list(names.values()), spec)


def _cut(frame: pd.DataFrame, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows whose number lies in the limits of a class, both limits included."""
    target, limits = need_target(spec), spec.options["classes"]
    if not isinstance(limits, dict):
        raise DefinitionError(f'{spec.name}: "classes" is a mapping {{name: [low, high]}}.')
    need_columns(frame, [target], spec.name)
    numbers = pd.to_numeric(frame[target], errors="coerce").to_numpy(dtype=float)
    answers = pd.Series([None] * len(frame), index=frame.index, dtype=object)
    for name, pair in limits.items():
        if not isinstance(pair, list) or len(pair) != 2 or not pair[0] <= pair[1]:
            raise DefinitionError(f'{spec.name}: the class "{name}" needs limits: [low, high].')
        within = (numbers >= pair[0]) & (numbers <= pair[1])
        if answers[within].notna().any():
            raise DefinitionError(f'{spec.name}: the limits of "{name}" meet those of another.')
        answers[within] = str(name)
    return _classes(frame, answers, list(map(str, limits)), spec)


def _chosen(frame: pd.DataFrame, spec: DataSpec) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows in which just one of some columns holds 1."""
    names = _named(spec, "one_of")
    need_columns(frame, list(names), spec.name)
    marks = frame[list(names)].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float) == 1
    found = np.array(list(names.values()), dtype=object)[marks.argmax(axis=1)]
    answers = pd.Series(np.where(marks.sum(axis=1) == 1, found, None), index=frame.index)
    asked = replace(spec, target=spec.target or "class")
    return _classes(frame, answers, list(names.values()), asked)


def _named(spec: DataSpec, option: str) -> dict[str, str]:
    """Return what an option lists, each with the class it stands for."""
    given = spec.options[option]
    if not isinstance(given, list | dict):
        raise DefinitionError(
            f'{spec.name}: "{option}" is a list, or a mapping {{written: class}}, not {given!r}.'
        )
    named = given if isinstance(given, dict) else {each: each for each in given}
    return {str(written): str(name) for written, name in named.items()}


def _classes(
    frame: pd.DataFrame, answers: pd.Series, names: list[str], spec: DataSpec
) -> tuple[pd.DataFrame, DataSpec]:
    """Return the rows that have an answer; their classes keep the order they were named in."""
    there = answers.notna()
    kept = frame[there].assign(**{need_target(spec): answers[there]})
    options = {**spec.options, "labels": {name: name for name in names}}
    return kept.reset_index(drop=True), replace(spec, kind="classes", options=options)
