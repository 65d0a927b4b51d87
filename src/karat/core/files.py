"""Files and folders: the cache, temporary folders, locks, names, sizes, fingerprints."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import math
import os
import re
import shutil
import stat
import struct
import sys
import tempfile
import time
import tokenize
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from karat.core.digest import sha256_of, sha256_of_file
from karat.errors import DataError, Declined, KaratError

if TYPE_CHECKING:
    import pandas as pd


#: prefix of temporary folders
SCRATCH = "karat-run-"
#: a file in a folder that is locked while the process that uses the folder lives
LOCK = ".lock"
#: days after which a temporary folder without a lock file counts as abandoned
SCRATCH_DAYS = 7.0
_PLAIN = re.compile(r"[A-Za-z0-9_@+=,-][A-Za-z0-9_@+=,.-]{0,59}")
#: the suffix of generated names
_MADE = re.compile(r"-[0-9a-f]{12}$")
PACKAGE_PREFIX = "package:"
#: the content of a file may be this many times as large as the file, plus this many bytes
MAX_RATIO, FREE_BYTES = 1_000, 32 * 1024**2
ARROW = b"ARROW1\0\0"


def cache_folder() -> Path:
    """Return the folder for vectors and downloads: ``$KARAT_CACHE`` or the platform's own."""
    if chosen := os.environ.get("KARAT_CACHE"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "karat"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a temporary folder for one run; remove those of killed runs."""
    remove_abandoned(Path(tempfile.gettempdir()), f"{SCRATCH}*-*", SCRATCH_DAYS)
    with locked_folder(f"{SCRATCH}{os.getpid()}-") as folder:
        yield folder


@contextmanager
def locked_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Create a folder with a lock, and remove it at the end.

    The lock goes last: a process that is killed while it removes the folder leaves one that
    ``remove_abandoned`` knows to be abandoned.
    """
    temporary = tempfile.TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True)
    with temporary as name, locked(Path(name)):
        try:
            yield Path(name)
        finally:
            _remove_all_but_lock(Path(name))


def _remove_all_but_lock(folder: Path) -> None:
    with suppress(OSError):  # removed by another process
        for path in folder.iterdir():
            if path.name == LOCK:
                continue
            if stat.S_ISDIR(path.lstat().st_mode):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()


def file_locks() -> Any:
    """Return the module of file locks; None on Windows, where nothing abandoned is removed."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


def has_locks(folder: Path) -> bool:
    """Return whether the file system of a folder has locks: some have none (``ENOLCK``)."""
    locks = file_locks()
    if locks is None:
        return True  # Windows
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            locks.lockf(file, locks.LOCK_EX | locks.LOCK_NB)
            locks.flock(file, locks.LOCK_EX | locks.LOCK_NB)
        except OSError:
            return False
    return True


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, so that ``remove_abandoned`` of no process removes it.

    The system frees the lock when this process ends, however it ends.
    """
    locks = file_locks()
    if locks is None:
        yield
        return
    draft = folder / f"{LOCK}.new"
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):  # a file system without locks, where nothing is removed
            locks.flock(descriptor, locks.LOCK_EX | locks.LOCK_NB)
        draft.rename(folder / LOCK)  # nobody sees it before it is locked
        yield
    finally:
        os.close(descriptor)


def remove_abandoned(parent: Path, pattern: str, days: float) -> None:
    """Remove this user's folders whose lock no process holds.

    A process id would not do: it may be of another machine or container. Folders without a lock
    file are removed if nothing in them has changed for this many days.
    """
    locks = file_locks()
    for folder in parent.glob(pattern) if locks is not None else ():
        with suppress(OSError):  # locked, or removed by another process
            facts = folder.lstat()
            if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid():
                _remove_if_abandoned(folder, days, locks)


def _remove_if_abandoned(folder: Path, days: float, locks: Any) -> None:
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        newest = max(path.lstat().st_mtime for path in (folder, *folder.iterdir()))
        if time.time() - newest > days * 86400:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        locks.flock(descriptor, locks.LOCK_EX | locks.LOCK_NB)  # raises if it is held
        _remove_all_but_lock(folder)  # a kill during the removal leaves the lock file
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def private_folder(path: Path) -> Path:
    """Create a folder of a known name that only this user can write to, and return it."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    facts = path.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        raise KaratError(
            f"{path} is not a folder that only you can write to; remove it, or set TMPDIR to a "
            f"folder of your own."
        )
    return path


@lru_cache(maxsize=4096)
def safe_name(name: str) -> str:
    """Return a name that is a single path component, different for different names.

    >>> safe_name("penguins"), safe_name("noise@0.1")
    ('penguins', 'noise@0.1')
    >>> safe_name("../etc"), safe_name("a b")
    ('_etc-f7f9121fdb53', 'a_b-c8687a08aa5d')
    """
    if _PLAIN.fullmatch(name) and not _MADE.search(name) and not name.endswith("."):
        return name
    return hashed_name(name)


def hashed_name(name: str) -> str:
    """Return a path component of the letters of a name and its hash."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:40]
    return f"{plain}-{sha256_of(name, length=12)}"


def safe_names(names: Iterable[str]) -> list[str]:
    """Return a path component for each name; they differ also where case is ignored.

    >>> safe_names(["a/b", "Model", "model"])
    ['a_b-c14cddc033f6', 'Model', 'model-9372c470eead']
    """
    unique_names: list[str] = []
    taken: set[str] = set()
    for name in names:
        safe = safe_name(name)
        if safe.lower() in taken:
            safe = hashed_name(name)
        taken.add(safe.lower())
        unique_names.append(safe)
    return unique_names


def read_regular(path: str | Path) -> bytes:
    """Return the content of a file; a pipe or device, which may never end, is an OSError."""
    descriptor = os.open(
        path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    with open(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read()


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file; a file that has not changed is read once per process."""
    facts = path.stat()
    return _hash_of(str(path.absolute()), facts.st_ino, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=256)
def _hash_of(path: str, *_: int) -> str:
    return sha256_of_file(Path(path))


def encodable(text: str) -> str:
    """Return a text with lone surrogates, which UTF-8 cannot encode, written as escapes.

    >>> len(chr(0xDC80)), len(encodable(chr(0xDC80)))
    (1, 6)
    """
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def package_file(name: str) -> Path:
    """Return the path of a file or folder; ``"package:NAME/PATH"`` is in an installed package.

    >>> package_file("package:karat/config/builtin/models.yaml").name
    'models.yaml'
    """
    if not name.startswith(PACKAGE_PREFIX):
        return Path(name).expanduser()
    package, _, inner = name.removeprefix(PACKAGE_PREFIX).partition("/")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / inner
        if path.exists():
            return path
    raise Declined(f"package {package} or its file {inner or 'folder'} not found")


def largest_content(path: Path) -> int:
    """Return the largest plausible size of the content of a compressed file, in bytes."""
    return FREE_BYTES + MAX_RATIO * path.stat().st_size


def check_content(path: Path, size: int) -> None:
    """Raise a DataError if the content of a file is implausibly large for the file."""
    if size > largest_content(path):
        raise DataError(
            f"{path} has {path.stat().st_size:,} bytes, but its content would take {size:,} or "
            f"more, over {MAX_RATIO:,} times as many. If this is correct, store it uncompressed."
        )


def check_array(file: IO[bytes], size: int) -> None:
    """Raise a ValueError unless the header of an ``.npy`` file of this size fits its content."""
    from numpy.lib import format as read

    version = read.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the format is not supported")
    header = read.read_array_header_1_0 if version == (1, 0) else read.read_array_header_2_0
    try:
        shape, _, kind = header(file)
    except (SyntaxError, TypeError, KeyError, RecursionError, tokenize.TokenError) as error:
        raise ValueError(f"invalid header: {error}") from error
    if kind.hasobject:
        raise ValueError("an array of objects is not supported")
    content = math.prod(shape) * kind.itemsize
    # an array without values has no content, whatever its other lengths are
    possible = all(0 <= length <= sys.maxsize for length in shape)
    if not possible or not kind.itemsize or content != size - file.tell():
        raise ValueError(f"shape {shape} and type {kind} do not match {size} bytes")


def check_parquet(path: Path) -> None:
    """Raise a DataError if a Parquet file declares or repeats implausibly many values."""
    import pyarrow
    from pyarrow import compute, parquet

    metadata = parquet.read_metadata(path)
    columns = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    # pyarrow ends the process if the metadata of a chunk are damaged, so that they are read only
    # of lists, which may have more values than the table has rows
    repeated = [i for i, column in enumerate(columns) if column.max_repetition_level]
    chunks = [group.column(i) for group in groups for i in repeated if i < group.num_columns]
    size = sum(group.total_byte_size + 8 * group.num_rows * len(columns) for group in groups)
    size += sum(8 * chunk.num_values for chunk in chunks)
    check_content(path, max(size, 8 * metadata.num_rows))
    # a dictionary may hold one long text, and the pages repeat it
    texts = {column.path for column in columns if column.physical_type == "BYTE_ARRAY"}
    names = [name for name in metadata.schema.to_arrow_schema().names if name in texts]
    for column in parquet.read_table(path, columns=names, read_dictionary=names).columns:
        column.validate(full=True)  # pyarrow does not check that texts are UTF-8
        for part in column.chunks:
            if isinstance(part, pyarrow.DictionaryArray):
                lengths = compute.binary_length(part.dictionary).take(part.indices)
                size += compute.sum(lengths).as_py() or 0
                check_content(path, size)


def read_feather(path: Path) -> Any:
    """Return the Arrow table of a Feather file; raise an error if it is implausible or invalid."""
    from pyarrow import feather, ipc, memory_map

    size = 0
    with memory_map(str(path)) as file:
        # version 1, which begins differently, is not compressed
        for message in ipc.MessageReader.open_stream(file) if file.read(8) == ARROW else ():
            if message.type in ("record batch", "dictionary"):
                size += _batch_size(message)
                check_content(path, size)
    table = feather.read_table(path)
    table.validate(full=True)  # pyarrow trusts the offsets of texts and lists
    return table


def _batch_size(message: object) -> int:
    """Return the decompressed bytes of a batch of rows, from the FlatBuffers of its metadata."""
    try:
        return _declared_size(message)
    except (struct.error, IndexError) as error:
        raise ValueError(f"damaged ({error})") from error


def _declared_size(message: Any) -> int:
    data, body = bytes(message.metadata), memoryview(message.body or b"")

    def place(table: int, field: int) -> int:
        """Return the position of a field of a table, or 0."""
        fields = table - struct.unpack_from("<i", data, table)[0]
        is_set = 4 + 2 * field < struct.unpack_from("<H", data, fields)[0]
        offset = struct.unpack_from("<H", data, fields + 4 + 2 * field)[0] if is_set else 0
        return table + offset if offset else 0

    def follow(position: int) -> int:
        return int(position + struct.unpack_from("<I", data, position)[0])

    batch = follow(place(follow(0), 2))
    if message.type == "dictionary":
        batch = follow(place(batch, 1))
    rows = place(batch, 0)
    size = 8 * struct.unpack_from("<q", data, rows)[0] if rows else 0
    buffers = place(batch, 2)
    if place(batch, 3) and buffers:  # compressed: each buffer begins with its size
        first = follow(buffers)
        for i in range(struct.unpack_from("<I", data, first)[0]):
            begin, length = struct.unpack_from("<qq", data, first + 4 + 16 * i)
            if length >= 8:
                size += max(0, struct.unpack_from("<q", body, begin)[0])
    return size


def fingerprint(values: pd.DataFrame | pd.Series) -> str:
    """Return a hash that changes with any value, type, name or order.

    >>> import pandas as pd
    >>> fingerprint(pd.Series([1, 2])) == fingerprint(pd.Series([1, 2]))
    True
    >>> fingerprint(pd.Series([1, "1"])) == fingerprint(pd.Series([1, 1], dtype=object))
    False
    """
    import pandas as pd

    single = isinstance(values, pd.Series)
    names, columns = (["value"], [values]) if single else (list(values), _columns(values))
    digest = hashlib.sha256(repr(names).encode())
    index = values.index.to_series(index=range(len(values)))
    for column in [index, *columns]:
        digest.update(f"{column.dtype} ".encode())
        if isinstance(column.dtype, pd.CategoricalDtype):
            # unused categories count: an encoder may give them a dimension
            categories = column.cat.categories.to_series(index=range(len(column.cat.categories)))
            digest.update(f"{column.cat.ordered} {fingerprint(categories)}".encode())
        digest.update(_content(column))
    return digest.hexdigest()


def _columns(frame: pd.DataFrame) -> list[pd.Series]:
    """Return the columns; ``iloc`` takes twice as long, which counts for small tables."""
    return [column for _, column in frame.items()]


def _content(column: pd.Series) -> bytes:
    import numpy as np
    import pandas as pd

    if column.dtype != object:
        return _hashes(column)
    cells = column.tolist()
    types = {type(cell) for cell in cells}
    named = repr(sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in types)).encode()
    if types == {str}:
        with suppress(UnicodeEncodeError):  # a lone surrogate cannot be encoded
            return named + _hashes(column)
    # 1 and "1" have the same hash in a mixed column, so the type is included
    texts_of_values: dict[int, str] = {}  # columns of one table share it
    texts = [
        cell_text(cell) + _attrs_text(getattr(cell, "attrs", {}), texts_of_values)
        if isinstance(cell, np.ndarray | pd.Series | pd.DataFrame)
        else f"{type(cell).__qualname__} {repr(cell)}"
        for cell in cells
    ]
    return named + _hashes(pd.Series(texts, dtype=object))


def _attrs_text(attrs: dict[Any, Any], texts_of_values: dict[int, str]) -> str:
    """Return the text of the attributes of a column or table, and remember those of tables."""
    import pandas as pd

    parts = []
    for name, value in attrs.items():
        if isinstance(value, pd.DataFrame):
            text = texts_of_values.get(id(value)) or cell_text(value)
            texts_of_values[id(value)] = text
        else:
            text = repr(value)
        parts.append(f" {name}={text}")
    return "".join(parts)


def cell_text(cell: object) -> str:
    """Return a text that is equal for equal cells: the ``repr``, or a hash of arrays and tables.

    >>> cell_text([1, 2])
    '[1, 2]'
    >>> import pandas as pd
    >>> cell_text(pd.Series([1])) == cell_text(pd.Series([1], name="x"))
    False
    """
    import numpy as np
    import pandas as pd

    if isinstance(cell, np.ndarray):  # numpy and pandas abbreviate long arrays
        return f"ndarray {cell.dtype} {cell.shape} {sha256_of(cell.tobytes())}"
    if isinstance(cell, pd.Series):
        return f"Series {cell.name!r} {_cells_digest(cell)}"
    if not isinstance(cell, pd.DataFrame):
        return repr(cell)
    digests = map(_cells_digest, _columns(cell))
    return f"DataFrame {cell.shape} {list(cell.columns)} {' '.join(digests)}"


def _cells_digest(column: pd.Series) -> str:
    """Return a hash of the cells of a column; texts are not hashed one by one, which is slow."""
    import pandas as pd

    plain = isinstance(column.index, pd.RangeIndex)
    if not plain or column.dtype.kind != "O":
        return fingerprint(column)
    return f"{column.dtype} {sha256_of(repr(column.tolist()))}"


def _hashes(column: pd.Series) -> bytes:
    import numpy as np
    import pandas as pd

    # equal cells have equal hashes either way; a missing cell has another hash if not categorized
    has_missing = column.dtype.kind == "O" and column.hasnans
    hashed = pd.util.hash_pandas_object(column, index=False, categorize=has_missing)
    return np.asarray(hashed, dtype=np.uint64).tobytes()
