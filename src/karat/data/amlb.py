"""Data sets as the AutoML Benchmark names them: a table, train and test files, a list per fold.

A path may lead to a file, a folder, an archive or an address. Files that come split keep their
folds: the id of a row says which fold and part it came from, so that it stays true of any rows
that are taken from it.
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

from karat import registry
from karat.columns import infer_kind, need_columns
from karat.data import transfer
from karat.data.archive import unpack
from karat.data.download import offline
from karat.data.frames import read_frame
from karat.data.load import DataSpec
from karat.data.sources import is_safe, sha256_of, without_password
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, Unavailable, did_you_mean
from karat.folders import cache_folder

TABLES = (".csv", ".arff", ".parquet")
ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
KINDS = {
    "binary": "classes",
    "multiclass": "classes",
    "classification": "classes",
    "regression": "numbers",
}
_PART = re.compile(r"(.*[_-])?(train|test)(?:[_-](\d+))?", re.IGNORECASE)
_ID = re.compile(r"fold (\d+) (train|test) \d+")
_PLACEHOLDER = re.compile(r"\{(input|output|user|root)\}/*")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]+://")

Form = str | Mapping[str, Any] | Sequence[str]


def amlb_table(name: str, dataset: Form, folder: Path | None = None) -> Dataset:
    """Return the data set that one of their forms describes.

    A relative path is looked for below ``folder``, then below the current one; what begins with
    ``{input}`` or ``{user}`` in the folders of KARAT_DATA. Without ``target`` it is the column
    called target or class, or else the last one.
    """
    facts = dataset if isinstance(dataset, Mapping) else {"path": dataset}
    pairs = _Places(name, folder).pairs(facts)
    tables = _Tables(name, facts, next(iter(pairs)).train)
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
    data = tables.dataset(_below_each_other(name, frames, files), about)
    if not ids:
        return data
    labels = pd.Index(ids)
    return replace(
        data, items=data.items.set_axis(labels, axis=0), questions=pd.DataFrame({"row": labels})
    )


def amlb_folds(data: Dataset, rng: np.random.Generator, folds: int = 10) -> Iterator[Any]:
    """Return the folds that the files came in; of a single file, so many, classes in their shares.

    A registered splitter cuts the single file: see ``kfold``.
    """
    ids = [_ID.fullmatch(str(row)) for row in data.questions[data.fields[0]]]
    if not all(ids):
        yield from registry.splitters.get("kfold")(data, rng, folds=folds)
        return
    fold = np.array([int(match[1]) for match in ids if match])
    train = np.array([match[2] == "train" for match in ids if match])
    for number in np.unique(fold):
        mine = fold == number
        yield np.flatnonzero(mine & train), np.flatnonzero(mine & ~train)


# -- which files ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """The files of one fold; a single table has no test file."""

    train: Path
    test: Path | None = None

    def parts(self) -> Iterator[tuple[str, Path]]:
        """Yield the parts there are."""
        yield "train", self.train
        if self.test is not None:
            yield "test", self.test


class _Places:
    """Finds the files of one data set."""

    def __init__(self, name: str, folder: Path | None) -> None:
        self.name = name
        self.folder = folder

    def pairs(self, facts: Mapping[str, Any]) -> list[Pair]:
        """Return the files of each fold."""
        path = facts.get("path")
        if isinstance(path, Mapping):
            return self.pairs(path)
        split = facts.get("train") is not None or facts.get("test") is not None
        if (path is None) == (not split):
            raise DefinitionError(f"{self.name}: say path, or train and test.")
        if isinstance(path, list | tuple):
            if not path or len(path) % 2:
                raise DefinitionError(
                    f"{self.name}: a list of files is train, test, train, test …; "
                    f"there are {len(path)}."
                )
            return self._both(path[::2], path[1::2])
        if path is not None:
            found = self._found(path)
            return _of_folder(self.name, found) if found.is_dir() else [Pair(found)]
        return self._both(*(_listed(facts.get(part)) for part in ("train", "test")))

    def _both(self, train: Sequence[str], test: Sequence[str]) -> list[Pair]:
        if len(train) != len(test) or not train:
            raise DefinitionError(
                f"{self.name}: {len(train)} train and {len(test)} test files; "
                f"each fold has one of both."
            )
        pairs = [Pair(self._one(a), self._one(b)) for a, b in zip(train, test, strict=True)]
        for pair in pairs:
            if pair.train == pair.test:
                raise DataError(f"{self.name}: {pair.train} is both train and test file.")
        return pairs

    def _one(self, given: str) -> Path:
        found = self._found(given)
        if found.is_dir():
            (pair,) = pairs if len(pairs := _of_folder(self.name, found)) == 1 else (None,)
            if pair is None or pair.test is not None:
                raise DataError(f"{self.name}: {given} holds several tables; name one file.")
            return pair.train
        return found

    def _found(self, given: Any) -> Path:
        """Return a file or folder on this machine: fetched and unpacked where it must be."""
        if not isinstance(given, str) or not given:
            raise DefinitionError(f"{self.name}: a path is text, not {given!r}.")
        if _ADDRESS.match(given):
            path = _fetched(self.name, given)
        else:
            path = self._local(given)
        if path.is_file() and path.name.lower().endswith(ARCHIVES):
            return _unpacked(path)
        return path

    def _local(self, given: str) -> Path:
        inside = _PLACEHOLDER.sub("", given, count=1)
        if inside != given:
            known = os.environ.get("KARAT_DATA", "").split(os.pathsep)
            below = [Path(each).expanduser() for each in known if each]
            hint = "Set KARAT_DATA (--data-dir) to the folder it is in."
        else:
            below, hint = [self.folder or Path(), Path()], ""
        tried = [(each / Path(inside).expanduser()).absolute() for each in below]
        for path in tried:
            if path.exists():
                return path
        near = [o.name for p in tried[:1] if p.parent.is_dir() for o in p.parent.iterdir()]
        where = tried[0] if tried else given
        said = f"{did_you_mean(Path(given).name, near)} {hint}".rstrip()
        raise DataError(f"{self.name}: there is no file {where}.{said}", given)


def _listed(given: Any) -> list[Any]:
    return [] if given is None else list(given) if isinstance(given, list | tuple) else [given]


def _of_folder(name: str, folder: Path) -> list[Pair]:
    """Return the pairs of a folder by their names: X_train.csv, X_test_0.csv; or its only table."""
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
    whole = {key: pairs for key, parts in found.items() if (pairs := _paired(parts))}
    if len({stem for stem, _ in whole}) != 1:
        raise DataError(
            f"{name}: {folder} holds {len(files)} tables; one data set is X_train.csv and "
            f"X_test.csv, X_train_0.csv, X_test_0.csv, X_train_1.csv …, or a single table."
        )
    return whole[min(whole, key=lambda key: TABLES.index(key[1]))]


def _paired(parts: Mapping[tuple[str, int | None], Path]) -> list[Pair]:
    """Return the pairs of a fold each, those without a number first; a lonely file is told."""
    folds = sorted({fold for _, fold in parts}, key=lambda fold: -1 if fold is None else fold)
    for (part, fold), path in parts.items():
        other = "test" if part == "train" else "train"
        if (other, fold) not in parts:
            raise DataError(f"{path} has no {other} file beside it.")
    if None in folds:
        folds = [None]
    return [Pair(parts["train", fold], parts["test", fold]) for fold in folds]


# -- from elsewhere -------------------------------------------------------------------------


def _fetched(name: str, address: str) -> Path:
    """Return a file of the web, fetched once: nobody has said what its checksum must be."""
    what = without_password(address)
    if urlsplit(address).scheme not in ("http", "https"):
        raise DataError(f"{name}: {what}: only http and https are fetched; download it first.")
    last = PurePosixPath(unquote(urlsplit(address).path)).name
    key = hashlib.sha256(address.encode()).hexdigest()[:16]
    place = cache_folder() / "amlb" / key / (last if last and is_safe(last) else "data")
    if place.is_file():
        return place
    if offline():
        raise Unavailable(f"{name}: {what} is not in the cache; unset KARAT_OFFLINE to fetch it.")
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
        if not place.is_dir():  # another process may have been faster, with the same bytes
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return place


# -- what they hold -------------------------------------------------------------------------


class _Tables:
    """Reads the files of one data set alike: target and kind are settled by the first."""

    def __init__(self, name: str, facts: Mapping[str, Any], first: Path) -> None:
        self.name = name
        frame = self._frame(first, DataSpec(name))
        self.features = _names(name, facts.get("features"))
        self.target = self._target(frame, facts.get("target"))
        kind = facts.get("type")
        if kind is not None and kind not in KINDS:
            raise DefinitionError(
                f'{name}: type "{kind}" is none of {", ".join(KINDS)}.'
                + did_you_mean(str(kind), KINDS)
            )
        self.type = kind
        self.kind = KINDS[kind] if kind else self._kind(first)

    def _frame(self, path: Path, spec: DataSpec) -> pd.DataFrame:
        if not path.name.lower().removesuffix(".gz").endswith(TABLES):
            raise DataError(f"{self.name}: {path.name} is none of {', '.join(TABLES)}.")
        return read_frame(path, spec)

    def _target(self, frame: pd.DataFrame, given: Any) -> str:
        columns = list(frame.columns)
        if isinstance(given, int) and not isinstance(given, bool):
            if not -len(columns) <= given < len(columns):
                raise DefinitionError(f"{self.name}: there is no column {given}.")
            return str(columns[given])
        if given is not None:
            need_columns(frame, [given], self.name)
            return str(given)
        for wanted in ("target", "class"):
            for column in columns:
                if str(column).lower() == wanted:
                    return str(column)
        return str(columns[-1])

    def _kind(self, first: Path) -> str:
        truth = self._frame(first, DataSpec(self.name, target=self.target))[self.target].dropna()
        values = truth.to_numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind = infer_kind(values, self.name)
        if values.dtype.kind in "iuf" and (values == np.round(values)).all():
            taken = "classification" if kind == "classes" else "regression"
            warnings.warn(
                f'{self.name}: its type is not said and "{self.target}" is whole numbers, taken '
                f"as {taken}; write type: binary, multiclass or regression to be sure.",
                stacklevel=2,
            )
        return kind

    def read(self, path: Path) -> pd.DataFrame:
        """Return the table of one file."""
        frame = self._frame(path, DataSpec(self.name, target=self.target, kind=self.kind))
        need_columns(frame, [*self.features, self.target], f"{self.name}: {path.name}")
        return frame[[*self.features, self.target]] if self.features else frame

    def dataset(self, frame: pd.DataFrame, about: Mapping[str, str]) -> Dataset:
        """Return the data set of all rows."""
        data = Dataset.from_table(frame, self.target, name=self.name, kind=self.kind, about=about)
        if self.type == "binary" and len(data.classes) != 2:
            raise DataError(
                f'{self.name}: type is binary, and "{self.target}" has {len(data.classes)} classes.'
            )
        return data


def _names(name: str, given: Any) -> list[str]:
    """Return the columns to keep: names, or mappings with a name."""
    found = [each.get("name") if isinstance(each, Mapping) else each for each in given or ()]
    if not all(isinstance(each, str) for each in found):
        raise DefinitionError(f"{name}: features is a list of names of columns.")
    return [str(each) for each in found]


def _below_each_other(
    name: str, frames: Sequence[pd.DataFrame], files: Sequence[Path]
) -> pd.DataFrame:
    first = frames[0]
    for frame, path in zip(frames, files, strict=True):
        for lost in [column for column in first.columns if column not in frame.columns][:1]:
            raise DataError(f'{name}: {path} has no column "{lost}", which {files[0].name} has.')
        for more in [column for column in frame.columns if column not in first.columns][:1]:
            raise DataError(f'{name}: {files[0]} has no column "{more}", which {path.name} has.')
    return first if len(frames) == 1 else pd.concat(frames, ignore_index=True)
