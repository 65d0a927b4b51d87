"""Archives that tests write."""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any


def make_zip(path: Any, files: dict[str, bytes], links: tuple[str, ...] = ()) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
        for name in links:
            info = zipfile.ZipInfo(name)
            info.create_system = 3
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            opened.writestr(info, "/etc/passwd")
    return path


def zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    make_zip(packed, files)
    return packed.getvalue()


def make_tar(path: Path, files: dict[str, bytes], links: tuple[str, ...] = ()) -> Path:
    mode = {".gz": "w:gz", ".bz2": "w:bz2", ".tar": "w"}[path.suffix]
    with tarfile.open(path, mode) as opened:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            opened.addfile(info, io.BytesIO(content))
        for name in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            opened.addfile(info)
    return path


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
