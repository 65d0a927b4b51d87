"""Uploads: vector files and run folders that strangers send, taken whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import re
import secrets
import shutil
import tarfile
import time
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karat.data.download import unpack
from karat.errors import DataError, KaratError
from karat.models.vector_files import VECTOR_FILE_SUFFIXES
from karat.results.run import Run
from karat.serve.kept import KeptRun
from karat.serve.replies import Refused
from karat.serve.settings import MEGABYTE, Settings

#: what an uploaded file may be called: one plain name that hides nothing
NAME = r"[A-Za-z0-9][A-Za-z0-9_@+,-]*(\.[A-Za-z0-9_@+,-]+)*"
LONGEST = 150
PACKED = (".gz", ".zst")
#: of a run folder, its tables, records and logs are taken; no code, no pickle
KINDS = (".json", ".csv", ".txt")
#: files in an uploaded run folder, and how many times its size it may be when it is unpacked
MOST_FILES, SWELLING = 100_000, 8
#: all uploads together may be so many times as large as one
TOGETHER = 20
#: seconds before the speed of an upload counts, and after which a forgotten draft is removed
GRACE, FORGOTTEN = 5.0, 86_400.0


class Uploads:
    """The folder of uploaded vector files, and the way uploaded run folders take."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.vectors = settings.uploads / "vectors"
        self.drafts = settings.uploads / "drafts"

    # -- receiving --------------------------------------------------------------------------

    async def receive(self, chunks: AsyncIterator[bytes], announced: str | None) -> Path:
        """Write a body to a draft as it comes in; too large or too slow a one is refused."""
        self._check_size(int(announced) if announced and announced.isdecimal() else 0)
        self._check_room()
        self.drafts.mkdir(parents=True, exist_ok=True)
        draft = self.drafts / f"{os.getpid()}-{secrets.token_hex(8)}"
        begun, size = time.monotonic(), 0
        try:
            with draft.open("xb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    self._check_size(size)
                    self._check_speed(size, time.monotonic() - begun)
                    file.write(chunk)
            if not size:
                raise Refused(400, "the body is empty", "send the file as the body")
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        return draft

    def _check_size(self, size: int) -> None:
        most = self.settings.max_upload
        if size > most:
            hint = f"at most {most // MEGABYTE:,} MB; the server's --max-upload raises that"
            raise Refused(413, "the body is too large", hint, {"connection": "close"})

    def _check_speed(self, size: int, seconds: float) -> None:
        if seconds > GRACE and size / seconds < self.settings.patience.rate:
            raise Refused(408, "the body came too slowly", "", {"connection": "close"})

    def _check_room(self) -> None:
        held = sum(size for _, size, _ in self._files())
        if held > TOGETHER * self.settings.max_upload:
            hint = "DELETE /api/v1/vectors/{name} makes room"
            raise Refused(507, "there is no room for more uploads", hint)

    def sweep(self) -> None:
        """Remove drafts that nobody works on any more."""
        with contextlib.suppress(OSError):
            for draft in self.drafts.iterdir():
                if time.time() - draft.stat().st_mtime > FORGOTTEN:
                    _remove(draft)

    # -- vector files -----------------------------------------------------------------------

    def add_vectors(self, draft: Path, name: str) -> dict[str, Any]:
        """Keep a vector file under its name."""
        _check_name(name)
        stem = next((name.removesuffix(end) for end in PACKED if name.endswith(end)), name)
        if not stem.lower().endswith(VECTOR_FILE_SUFFIXES):
            hint = f"one of {', '.join(VECTOR_FILE_SUFFIXES)}, also packed: {', '.join(PACKED)}"
            raise Refused(400, "that is no name of a vector file", hint)
        self.vectors.mkdir(parents=True, exist_ok=True)
        with draft.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = draft.stat().st_size
        try:
            os.link(draft, self.vectors / name)  # unlike a move, it never takes another's place
        except FileExistsError as error:
            hint = f"DELETE /api/v1/vectors/{name} first, or choose another name"
            raise Refused(409, f'there is a vector file "{name}" already', hint) from error
        return {"name": name, "bytes": size, "sha256": digest, "model": f"upload:{name}"}

    def find_vectors(self, name: str) -> Path:
        """Return where an uploaded vector file stands."""
        known = re.fullmatch(NAME, name) and len(name) <= LONGEST
        path = self.vectors / name if known else None
        if path is None or path.is_symlink() or not path.is_file():
            hint = "/api/v1/vectors lists those there are"
            raise Refused(404, f'there is no vector file "{name[:200]}"', hint)
        return path

    def remove_vectors(self, name: str) -> None:
        """Forget a vector file."""
        self.find_vectors(name).unlink(missing_ok=True)

    def list_vectors(self) -> list[dict[str, Any]]:
        """Return the uploaded vector files."""
        return [
            {"name": name, "bytes": size, "utc": _utc(when), "model": f"upload:{name}"}
            for name, size, when in self._files()
        ]

    def _files(self) -> Iterator[tuple[str, int, float]]:
        if not self.vectors.is_dir():
            return
        for path in sorted(self.vectors.iterdir()):
            with contextlib.suppress(OSError):
                if path.is_file() and not path.is_symlink():
                    facts = path.stat()
                    yield path.name, facts.st_size, facts.st_mtime

    # -- run folders ------------------------------------------------------------------------

    def add_run(self, draft: Path, name: str) -> str:
        """Unpack a run folder, look whether it is one, and put it beside the others."""
        _check_name(name)
        limit = min(SWELLING * self.settings.max_upload, 2**31)
        scratch = draft.with_name(f"{draft.name}.folder")
        try:
            _check_swelling(draft, limit)
            unpack(draft, scratch, KINDS, MOST_FILES, limit)
            found = _inside(scratch)
            _check_run(KeptRun(found, scratch.resolve()))
            shutil.rmtree(found / "scores", ignore_errors=True)  # the records are the truth
            Run(found).finish()
            target = self.settings.folder / name
            try:
                target.mkdir()  # whoever makes it has the name; an empty folder can be replaced
            except FileExistsError as error:
                raise Refused(409, f'there is a "{name}" already', "choose another") from error
            os.replace(found, target)
        except (KaratError, UnicodeError, RecursionError) as error:
            hint = "send the zip, tar or tar.gz of one run folder"
            raise Refused(422, f"not taken: {_plainly(error, draft)}", hint) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return name


def _plainly(error: Exception, draft: Path) -> str:
    return str(error).replace(str(draft.parent), "").replace(draft.name, "the archive")[:500]


def _check_name(name: str) -> None:
    if not re.fullmatch(NAME, name) or len(name) > LONGEST:
        hint = f"letters, digits and _@+,-. up to {LONGEST}; it begins with a letter or digit"
        raise Refused(400, "that is no name", hint)


def _check_swelling(path: Path, limit: int) -> None:
    """Refuse what is no archive, and a packed tar that would be larger than the limit."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if packed:
        left = limit + 512 * MOST_FILES
        try:
            with gzip.open(path) as stream:
                while left >= 0 and (chunk := stream.read(MEGABYTE)):
                    left -= len(chunk)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"it cannot be unpacked: {error}") from error
        if left < 0:
            raise DataError(f"it is larger than {limit:,} bytes when it is unpacked")
    elif not zipfile.is_zipfile(path) and not _is_plain_tar(path):
        raise DataError("it is neither a zip nor a tar nor a tar.gz archive")


def _is_plain_tar(path: Path) -> bool:
    try:
        with tarfile.open(path, "r:"):
            return True
    except (tarfile.TarError, OSError):
        return False


def _inside(scratch: Path) -> Path:
    """Return the run folder in what was unpacked: at the top, or the only folder there."""
    if (scratch / "run.json").is_file():
        return scratch
    found = sorted(scratch.glob("*/run.json")) if scratch.is_dir() else []
    if len(found) != 1:
        raise DataError(f"it holds {len(found)} run folders; one is to be sent at a time")
    return found[0].parent


def _check_run(run: KeptRun) -> None:
    """Make of a run what pages and boards make of it, before others have to see it."""
    from karat.analysis.leaderboard import leaderboard

    if not run.records():
        raise DataError("it has no finished job")
    try:
        leaderboard([run])
        run.results()
    except KaratError:
        raise
    except Exception as error:
        # a stranger wrote it: whatever it breaks here it would break for everyone
        raise DataError(f"it cannot be shown: {type(error).__name__}") from error


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
