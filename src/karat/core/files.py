"""Files and folders: the cache, temporary folders, atomic writes, safe names, fingerprints."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd

from karat.errors import Declined

#: prefix of temporary folders, followed by the process id
SCRATCH = "karat-run-"


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
    import psutil

    for left in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*-*"):
        pid = left.name.removeprefix(SCRATCH).partition("-")[0]
        with suppress(OSError):  # another user's, or already removed
            if pid.isdecimal() and not psutil.pid_exists(int(pid)) and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
    prefix = f"{SCRATCH}{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


_PLAIN = re.compile(r"[A-Za-z0-9_@+=,-][A-Za-z0-9_@+=,.-]{0,59}")
#: the suffix of generated names
_MADE = re.compile(r"-[0-9a-f]{12}$")


def safe_name(name: str) -> str:
    """Return a name that is a single path component, different for different names.

    >>> safe_name("penguins"), safe_name("noise@0.1")
    ('penguins', 'noise@0.1')
    >>> safe_name("../etc"), safe_name("a b")
    ('_etc-f7f9121fdb53', 'a_b-c8687a08aa5d')
    """
    if _PLAIN.fullmatch(name) and not _MADE.search(name) and not name.endswith("."):
        return name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:40]
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain}-{digest[:12]}"


def write_atomic(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Write a file atomically; ``durable`` waits until the content has reached the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{threading.get_ident()}.{os.getpid()}.tmp")
    with draft.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    os.replace(draft, path)


PACKAGE_PREFIX = "package:"


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


def fingerprint(values: pd.DataFrame | pd.Series) -> str:
    """Return a hash that changes with any value, type, name or order.

    >>> fingerprint(pd.Series([1, 2])) == fingerprint(pd.Series([1, 2]))
    True
    >>> fingerprint(pd.Series([1, "1"])) == fingerprint(pd.Series([1, 1], dtype=object))
    False
    """
    frame = values.to_frame("value") if isinstance(values, pd.Series) else values
    digest = hashlib.sha256(repr(list(frame.columns)).encode())
    index = frame.index.to_series(index=range(len(frame)))
    for column in [index, *(frame.iloc[:, i] for i in range(frame.shape[1]))]:
        digest.update(f"{column.dtype} ".encode())
        if isinstance(column.dtype, pd.CategoricalDtype):
            # unused categories count: an encoder may give them a dimension
            categories = column.cat.categories.to_series(index=range(len(column.cat.categories)))
            digest.update(f"{column.cat.ordered} {fingerprint(categories)}".encode())
        digest.update(_content(column))
    return digest.hexdigest()


def _content(column: pd.Series) -> bytes:
    if column.dtype != object:
        return _hashes(column)
    cells = column.tolist()
    types = {type(cell) for cell in cells}
    named = repr(sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in types)).encode()
    if types == {str}:
        with suppress(UnicodeEncodeError):  # a lone surrogate cannot be encoded
            return named + _hashes(column)
    # 1 and "1" have the same hash in a mixed column, so the type is included
    texts = [f"{type(cell).__qualname__} {repr(cell)}" for cell in cells]
    for i, cell in enumerate(cells):
        if isinstance(cell, np.ndarray):  # numpy abbreviates long arrays
            digest = hashlib.sha256(cell.tobytes()).hexdigest()
            texts[i] = f"ndarray {cell.dtype} {cell.shape} {digest}"
    return named + _hashes(pd.Series(texts, dtype=object))


def _hashes(column: pd.Series) -> bytes:
    hashed = pd.util.hash_pandas_object(column, index=False)
    return np.asarray(hashed, dtype=np.uint64).tobytes()
