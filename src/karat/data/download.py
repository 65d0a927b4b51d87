"""Have a file: find it on this machine, or fetch it once into the cache, checked by its sha256."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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


def fetch(source: Mapping[str, Any], about: Mapping[str, str] | None = None) -> Path:
    """Return the path of what one source describes, downloaded unless it is on this machine."""
    parsed = parse_source(source)
    try:
        return at_hand(parsed)
    except DataError:
        if not parsed.remote:
            raise
    return bring(parsed, about or {})


def fetch_first(
    name: str, sources: Iterable[Mapping[str, Any]], about: Mapping[str, str] | None = None
) -> tuple[Path, Source]:
    """Return the path of a file and the source it came from: the first of the list that works.

    What is on this machine already goes before any download. ``about`` (licence, citation, …) is
    kept beside a fetched file.
    """
    parsed = [parse_source(source) for source in sources]
    reasons: dict[Source, str] = {}
    for source in parsed:
        try:
            return at_hand(source), source
        except DataError as error:
            reasons[source] = str(error)
    for source in parsed:
        if source.remote:
            try:
                return bring(source, {"name": name, **(about or {})}), source
            except DataError as error:
                reasons[source] = str(error)
    raise Unavailable(_unavailable(name, reasons))


def _unavailable(name: str, reasons: Mapping[Source, str]) -> str:
    """Say in one line what to do, and below it what was tried."""
    ways = [f"put it at $KARAT_DATA/{s.place}" for s in reasons if s.kind == "folder"][:1]
    if any(source.remote for source in reasons):
        again = "unset KARAT_OFFLINE" if offline() else "connect"
        ways.append(f"{again} and run again")
    elif not ways:
        ways = [f"install the package {s.place}" for s in reasons] or ["give it a source"]
    tried = [f"  {source}: {reason}" for source, reason in reasons.items()]
    return "\n".join(
        [f'the file of "{name}" could not be had; {", or ".join(ways)}. Tried:', *tried]
    )


def at_hand(source: Source) -> Path:
    """Return where a source's file already is on this machine; else a DataError says why not."""
    if source.kind == "folder":
        return find_in_folders(source)
    if source.kind == "package":
        return find_in_package(source)
    place = _place(source)
    if not place.exists():
        raise DataError("not in the cache")
    return place


def bring(source: Source, about: Mapping[str, str]) -> Path:
    """Download what an index or url source describes into the cache and return its path."""
    if offline():
        raise DataError("not in the cache, and KARAT_OFFLINE is set")
    place = _place(source)
    try:
        if source.member:
            archive = _archive(source)
            if not (archive.exists() and sha256_of(archive) == source.sha256):
                _download(source, archive)
            _unpack(source, archive, about)
        else:
            _download(source, place)
            _write_about(place.parent, source, about)
    except OSError as error:
        raise DataError(
            f"cannot write to the cache folder {cache_folder()} ({error.strerror or error}); "
            f"set KARAT_CACHE to another one"
        ) from error
    return place


def _archive(source: Source) -> Path:
    return cache_folder() / "data" / source.sha256[:16] / _not_about(source.file)


def _place(source: Source) -> Path:
    """Return where in the cache a file is: one folder per member, so that each has its about."""
    archive = _archive(source)
    if not source.member:
        return archive
    last = _not_about(PurePosixPath(source.member).name.replace("*", "data"))
    key = hashlib.sha256(source.member.encode()).hexdigest()[:8]
    return archive.parent / f"{last}-{key}" / last


def _not_about(name: str) -> str:
    return "data.json" if name == "about.json" else name


def _download(source: Source, target: Path) -> None:
    from karat.data.index import find_address, pip_settings
    from karat.data.transfer import download

    settings = pip_settings()
    address = find_address(source, settings) if source.kind == "index" else source.place
    download(address, target, source.sha256, certificate=settings.certificate)


def _unpack(source: Source, archive: Path, about: Mapping[str, str]) -> None:
    place = _place(source)
    with _scratch_folder(archive.parent) as scratch:
        extract(archive, source.member, scratch / place.name)
        _write_about(scratch, source, about)
        try:
            scratch.rename(place.parent)
        except OSError:
            # Another process was faster, with the same bytes.
            if not place.exists():
                raise


@contextmanager
def _scratch_folder(parent: Path) -> Iterator[Path]:
    scratch = parent / f".{os.getpid()}.{secrets.token_hex(4)}.tmp"
    scratch.mkdir(parents=True)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_about(folder: Path, source: Source, about: Mapping[str, str]) -> None:
    keys = ("name", "title", "licence", "citation", "homepage")
    record = {key: about[key] for key in keys if about.get(key)}
    record |= {"source": str(source), "sha256": source.sha256}
    record["fetched"] = datetime.now(UTC).isoformat(timespec="seconds")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    scratch = folder / f".about.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    scratch.write_text(text, encoding="utf-8")
    os.replace(scratch, folder / "about.json")
