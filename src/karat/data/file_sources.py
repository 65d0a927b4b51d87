"""Sources of a file: a local folder, an installed package, a package index, or a URL."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from karat.core.digest import sha256_of_file
from karat.errors import DataError, DefinitionError, did_you_mean

KEYS = {
    "folder": ({"folder"}, {"sha256"}),
    "package": ({"package", "member"}, {"sha256"}),
    "index": ({"index", "file", "sha256"}, {"member"}),
    "url": ({"url", "sha256"}, {"member"}),
}


@dataclass(frozen=True)
class Source:
    """One source of a file.

    ``place`` is a path below KARAT_DATA, the name of a package or project, or a URL. ``file`` is
    the archive (or plain file) to download and ``member`` the path to extract from it: a member
    that ends with ``/`` is a whole folder, ``*.csv`` the only CSV file, and ``data/**.csv`` a
    folder of all CSV files below ``data``. ``sha256`` is that of the downloaded file, or of the
    local file (optional).
    """

    kind: str
    place: str
    file: str = ""
    member: str = ""
    sha256: str = ""

    @property
    def remote(self) -> bool:
        """Whether the file is downloaded."""
        return self.kind in ("index", "url")

    def __str__(self) -> str:
        start = {"index": f"package index, {self.file}", "url": without_password(self.place)}.get(
            self.kind, f"{self.kind} {self.place}"
        )
        return f"{start}, {self.member}" if self.member else start


def parse_source(definition: Mapping[str, Any]) -> Source:
    """Return the source that a definition describes, or raise a DefinitionError.

    >>> print(parse_source({"package": "palmerpenguins", "member": "data/penguins.csv"}))
    package palmerpenguins, data/penguins.csv
    """
    kinds = [kind for kind in KEYS if kind in definition]
    if len(kinds) != 1:
        raise DefinitionError(
            f"the source {dict(definition)} needs exactly one of the keys {', '.join(KEYS)}."
        )
    kind = kinds[0]
    needed, optional = KEYS[kind]
    for key in definition:
        if key not in needed | optional:
            hint = did_you_mean(str(key), needed | optional)
            raise DefinitionError(f'a {kind} source has no key "{key}".{hint}')
    for key in sorted(needed - set(definition)):
        raise DefinitionError(f'the {kind} source "{definition[kind]}" needs the key "{key}".')
    values = {key: str(value) for key, value in definition.items() if value is not None}
    file = values.get("file", "")
    if kind == "url":
        file = PurePosixPath(unquote(urlsplit(values["url"]).path)).name
        file = file if is_safe(file) else "data"
    sha256 = values.get("sha256", "").lower()
    return _checked(
        Source(
            kind=kind, place=values[kind], file=file, member=values.get("member", ""), sha256=sha256
        )
    )


def _checked(source: Source) -> Source:
    if source.sha256 and not re.fullmatch("[0-9a-f]{64}", source.sha256):
        raise DefinitionError(f"{source}: sha256 must be 64 hexadecimal digits.")
    if source.file and (not is_safe(source.file) or "/" in source.file):
        raise DefinitionError(f'{source}: "{source.file}" is not a plain file name.')
    inner = source.place if source.kind == "folder" else source.member
    if inner and not is_safe(inner):
        raise DefinitionError(f'{source}: "{inner}" must be a relative path without "..".')
    return source


def is_safe(path: str) -> bool:
    """Return whether a path with forward slashes stays below its parent folder.

    >>> is_safe("data/penguins.csv"), is_safe("../secret"), is_safe("/etc/hosts"), is_safe("C:x")
    (True, False, False, False)
    """
    parts = PurePosixPath(path).parts
    outside = path.startswith("/") or ".." in parts or "\\" in path or "\0" in path
    return bool(parts) and not outside and not re.match("[A-Za-z]:", path)


def without_password(address: str) -> str:
    """Return a URL without the user name and password it may contain.

    >>> without_password("https://me:secret@host.example/simple")
    'https://host.example/simple'
    """
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def data_folders() -> list[Path]:
    """Return the folders of KARAT_DATA."""
    folders = os.environ.get("KARAT_DATA", "").split(os.pathsep)
    return [Path(folder).expanduser() for folder in folders if folder]


def find_in_folders(source: Source) -> Path:
    """Return a folder source's path in the first KARAT_DATA folder that contains it."""
    folders = data_folders()
    if not folders:
        raise DataError("KARAT_DATA is not set")
    for folder in folders:
        path = folder / source.place
        if path.exists():
            return _check_sha256(path, source)
    raise DataError(f"not in {', '.join(map(str, folders))}")


def find_in_package(source: Source) -> Path:
    """Return a package source's path in the installed package, which is not imported."""
    # find_spec would import the parents of a dotted name.
    top, *below = source.place.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise DataError("not installed")
    for location in spec.submodule_search_locations:
        path = Path(location, *below) / source.member
        if path.exists():
            return _check_sha256(path, source)
    raise DataError("the installed version has no such file")


def _check_sha256(path: Path, source: Source) -> Path:
    if source.sha256 and path.is_file() and sha256_of_file(path) != source.sha256:
        raise DataError(f"{path} is another version: expected sha256 {source.sha256[:16]}…")
    return path
