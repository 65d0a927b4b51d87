"""File datasets of the AutoML Benchmark: a table, train and test files, or lists per fold.

A path may be a file, a folder, an archive or a URL. Split files keep their folds: the id of a row
contains its fold and part, so that it stays valid in any subset of the rows.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pandas as pd

from karat.core import registry
from karat.core.columns import infer_kind, require_columns
from karat.core.dataset import Dataset
from karat.core.files import cache_folder
from karat.data import download as transfer
from karat.data.download import is_safe, offline, sha256_of, unpack, without_password
from karat.data.load_dataset import DataSpec
from karat.data.readers.table_files import read_frame
from karat.errors import DataError, DefinitionError, Unavailable, did_you_mean

TABLES = (".csv", ".arff", ".parquet")
ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
KINDS = {
    **dict.fromkeys(("binary", "multiclass", "classification"), "classification"),
    "regression": "regression",
}
_PART = re.compile(r"(.*[_-])?(train|test)(?:[_-](\d+))?", re.IGNORECASE)
_ID = re.compile(r"fold (\d+) (train|test) \d+")
_PLACEHOLDER = re.compile(r"\{(input|output|user|root)\}/*")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]+://")

Form = str | Mapping[str, Any] | Sequence[str]


def amlb_table(name: str, dataset: Form, folder: Path | None = None) -> Dataset:
    """Return the dataset that a definition of the AutoML Benchmark describes.

    A relative path is searched below ``folder``, then below the current one; a path that begins
    with ``{input}`` or ``{user}`` in the folders of KARAT_DATA. The default ``target`` is the
    column called target or class, or else the last one.
    """
    definition = dataset if isinstance(dataset, Mapping) else {"path": dataset}
    pairs = _Places(name, folder).pairs(definition)
    tables = _Tables(name, definition, next(iter(pairs)).train)
    frames, ids, files = [], [], []
    for fold, pair in enumerate(pairs):
        for part, path in pair.parts():
            frame = tables.read(path)
            frames.append(frame)
            files.append(path)
            if pair.test is not None:
                ids += [f"fold {fold} {part} {row}" for row in range(len(frame))]
    about = {"source": ", ".join(path.name for path in files[:4]) + " …" * (len(files) > 4)}
    about["sha256"] = ", ".join(sha256_of(path) for path in files[:20])
    data = tables.dataset(_concatenated(name, frames, files), about)
    if not ids:
        return data
    labels = pd.Index(ids)
    return replace(
        data, items=data.items.set_axis(labels, axis=0), questions=pd.DataFrame({"row": labels})
    )


def amlb_folds(data: Dataset, rng: np.random.Generator, folds: int = 10) -> Iterator[Any]:
    """Yield the folds of split files, or stratified k-fold cross-validation of a single file."""
    ids = [_ID.fullmatch(str(row)) for row in data.questions[data.fields[0]]]
    if not all(ids):
        yield from registry.splitters.get("kfold")(data, rng, folds=folds)
        return
    fold = np.array([int(match[1]) for match in ids if match])
    train = np.array([match[2] == "train" for match in ids if match])
    for number in np.unique(fold):
        rows = fold == number
        yield np.flatnonzero(rows & train), np.flatnonzero(rows & ~train)


@dataclass(frozen=True)
class Pair:
    """The files of one fold; a single table has no test file."""

    train: Path
    test: Path | None = None

    def parts(self) -> list[tuple[str, Path]]:
        """Return the name and path of each part."""
        return [("train", self.train), *([("test", self.test)] if self.test else [])]


@dataclass(frozen=True)
class _Places:
    """Finds the files of one dataset."""

    name: str
    folder: Path | None

    def pairs(self, definition: Mapping[str, Any]) -> list[Pair]:
        """Return the files of each fold."""
        path = definition.get("path")
        if isinstance(path, Mapping):
            return self.pairs(path)
        split = definition.get("train") is not None or definition.get("test") is not None
        if (path is None) == (not split):
            raise DefinitionError(f"{self.name}: give either path, or train and test.")
        if isinstance(path, list | tuple):
            if not path or len(path) % 2:
                raise DefinitionError(
                    f"{self.name}: a list of files must be train, test, train, test …; "
                    f"got {len(path)} files."
                )
            return self._both(path[::2], path[1::2])
        if path is not None:
            found = self._found(path)
            return _of_folder(self.name, found) if found.is_dir() else [Pair(found)]
        files = [definition.get(part) or [] for part in ("train", "test")]
        return self._both(*([each] if isinstance(each, str) else list(each) for each in files))

    def _both(self, train: Sequence[str], test: Sequence[str]) -> list[Pair]:
        if len(train) != len(test) or not train:
            raise DefinitionError(
                f"{self.name}: each fold needs a train and a test file, "
                f"got {len(train)} train and {len(test)} test files."
            )
        pairs = [Pair(self._one(a), self._one(b)) for a, b in zip(train, test, strict=True)]
        for pair in pairs:
            if pair.train == pair.test:
                raise DataError(f"{self.name}: {pair.train} is both the train and the test file.")
        return pairs

    def _one(self, given: str) -> Path:
        found = self._found(given)
        if found.is_dir():
            pairs = _of_folder(self.name, found)
            if len(pairs) > 1 or pairs[0].test is not None:
                raise DataError(f"{self.name}: {given} has several tables; give one file.")
            return pairs[0].train
        return found

    def _found(self, given: Any) -> Path:
        """Return a local file or folder, downloaded and unpacked if necessary."""
        if not isinstance(given, str) or not given:
            raise DefinitionError(f"{self.name}: a path must be a string, got {given!r}.")
        path = _downloaded(self.name, given) if _ADDRESS.match(given) else self._local(given)
        if path.is_file() and path.name.lower().endswith(ARCHIVES):
            return _unpacked(path)
        return path

    def _local(self, given: str) -> Path:
        inside = _PLACEHOLDER.sub("", given, count=1)
        if inside != given:
            data_folders = os.environ.get("KARAT_DATA", "").split(os.pathsep)
            folders = [Path(folder).expanduser() for folder in data_folders if folder]
            hint = " Set KARAT_DATA (--data-dir) to its folder."
        else:
            folders, hint = [self.folder or Path(), Path()], ""
        tried = [(folder / Path(inside).expanduser()).absolute() for folder in folders]
        for path in tried:
            if path.exists():
                return path
        near = [o.name for p in tried[:1] if p.parent.is_dir() for o in p.parent.iterdir()]
        where = tried[0] if tried else given
        hint = did_you_mean(Path(given).name, near) + hint
        raise DataError(f"{self.name}: there is no file {where}.{hint}", given)


def _of_folder(name: str, folder: Path) -> list[Pair]:
    """Return the pairs of a folder by name (X_train.csv, X_test_0.csv), or its only table."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not path.is_symlink()
        and path.suffix.lower() in TABLES
        and not any(p.startswith((".", "__MACOSX")) for p in path.relative_to(folder).parts)
    )
    if len(files) == 1:
        return [Pair(files[0])]
    found: dict[tuple[str, str], dict[tuple[str, int | None], Path]] = {}
    for path in files:
        match = _PART.fullmatch(path.stem)
        if match:
            fold = None if match[3] is None else int(match[3])
            stem = str(path.parent / (match[1] or "").rstrip("_-"))
            found.setdefault((stem, path.suffix.lower()), {})[match[2].lower(), fold] = path
    complete = {key: pairs for key, parts in found.items() if (pairs := _paired(parts))}
    if len({stem for stem, _ in complete}) != 1:
        raise DataError(
            f"{name}: {folder} has {len(files)} tables; expected X_train.csv and X_test.csv, or "
            f"X_train_0.csv, X_test_0.csv, X_train_1.csv …, or a single table."
        )
    return complete[min(complete, key=lambda key: TABLES.index(key[1]))]


def _paired(parts: Mapping[tuple[str, int | None], Path]) -> list[Pair]:
    """Return one pair per fold; files without a fold number take precedence."""
    folds = sorted({fold for _, fold in parts}, key=lambda fold: -1 if fold is None else fold)
    for (part, fold), path in parts.items():
        other = "test" if part == "train" else "train"
        if (other, fold) not in parts:
            raise DataError(f"{path} has no {other} file next to it.")
    if None in folds:
        folds = [None]
    return [Pair(parts["train", fold], parts["test", fold]) for fold in folds]


def _downloaded(name: str, address: str) -> Path:
    """Return the file of a URL, downloaded once; its checksum is unknown."""
    what = without_password(address)
    if urlsplit(address).scheme not in ("http", "https"):
        raise DataError(f"{name}: {what}: only http and https are supported; download it first.")
    last = PurePosixPath(unquote(urlsplit(address).path)).name
    key = hashlib.sha256(address.encode()).hexdigest()[:16]
    place = cache_folder() / "amlb" / key / (last if last and is_safe(last) else "data")
    if place.is_file():
        return place
    if offline():
        raise Unavailable(f"{name}: {what} is not in the cache; unset KARAT_OFFLINE to get it.")
    try:
        transfer.download(address, place)
    except DataError as error:
        raise Unavailable(f"{name}: {error}.") from error
    return place


def _unpacked(path: Path) -> Path:
    """Return the folder with the tables of an archive, unpacked once into the cache."""
    place = cache_folder() / "amlb" / f"unpacked-{sha256_of(path)[:32]}"
    if place.is_dir():
        return place
    scratch = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    scratch.mkdir(parents=True)
    try:
        unpack(path, scratch, TABLES)
        scratch.rename(place)
    except OSError:
        if not place.is_dir():  # else another process unpacked the same file first
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return place


class _Tables:
    """Reads the files of one dataset; the first one determines target and kind."""

    def __init__(self, name: str, definition: Mapping[str, Any], first: Path) -> None:
        self.name = name
        frame = self._frame(first, DataSpec(name))
        features = definition.get("features") or ()
        self.features = [
            each.get("name") if isinstance(each, Mapping) else each for each in features
        ]
        if not all(isinstance(each, str) for each in self.features):
            raise DefinitionError(f"{name}: features must be a list of column names.")
        self.target = self._target(frame, definition.get("target"))
        kind = definition.get("type")
        if kind is not None and kind not in KINDS:
            raise DefinitionError(
                f'{name}: invalid type "{kind}": expected one of {", ".join(KINDS)}.'
                + did_you_mean(str(kind), KINDS)
            )
        self.type = kind
        self.kind = KINDS[kind] if kind else self._kind(first)

    def _frame(self, path: Path, spec: DataSpec) -> pd.DataFrame:
        if not path.name.lower().removesuffix(".gz").endswith(TABLES):
            raise DataError(f"{self.name}: {path.name} must be one of {', '.join(TABLES)}.")
        return read_frame(path, spec)

    def _target(self, frame: pd.DataFrame, given: Any) -> str:
        columns = list(frame.columns)
        if isinstance(given, int) and not isinstance(given, bool):
            if not -len(columns) <= given < len(columns):
                raise DefinitionError(f"{self.name}: there is no column {given}.")
            return str(columns[given])
        if given is not None:
            require_columns(frame, [given], self.name)
            return str(given)
        lower = {str(column).lower(): str(column) for column in reversed(columns)}
        return lower.get("target") or lower.get("class") or str(columns[-1])

    def _kind(self, first: Path) -> str:
        frame = self._frame(first, DataSpec(self.name, target=self.target))
        values = frame[self.target].dropna().to_numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind = infer_kind(values, self.name)
        if values.dtype.kind in "iuf" and (values == np.round(values)).all():
            warnings.warn(
                f'{self.name}: the type is not given and "{self.target}" has integers; assuming '
                f"{kind}. Set type: binary, multiclass or regression.",
                stacklevel=2,
            )
        return kind

    def read(self, path: Path) -> pd.DataFrame:
        """Return the table of one file."""
        frame = self._frame(path, DataSpec(self.name, target=self.target, kind=self.kind))
        require_columns(frame, [*self.features, self.target], f"{self.name}: {path.name}")
        return frame[[*self.features, self.target]] if self.features else frame

    def dataset(self, frame: pd.DataFrame, about: Mapping[str, str]) -> Dataset:
        """Return the dataset of all rows."""
        data = Dataset.from_table(frame, self.target, name=self.name, kind=self.kind, about=about)
        if self.type == "binary" and len(data.classes) != 2:
            raise DataError(
                f'{self.name}: type is binary, but "{self.target}" has {len(data.classes)} classes.'
            )
        return data


def _concatenated(name: str, frames: Sequence[pd.DataFrame], files: Sequence[Path]) -> pd.DataFrame:
    first = frames[0]
    for frame, path in zip(frames, files, strict=True):
        for one, other, lacking in ((first, frame, path), (frame, first, files[0])):
            for column in [column for column in one.columns if column not in other.columns][:1]:
                raise DataError(
                    f'{name}: {lacking} has no column "{column}"; all files must have the same.'
                )
    return first if len(frames) == 1 else pd.concat(frames, ignore_index=True)
