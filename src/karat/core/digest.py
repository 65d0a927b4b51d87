"""Hashes of contents and files: names of caches, fingerprints, checksums.

Hashes are stored in run folders and name what is in caches: they must stay as they are. Code that
hashes a large content part by part uses ``hashlib``.
"""

import hashlib
from pathlib import Path

#: hexadecimal digits of a whole SHA-256
WHOLE = 64


def sha256_of(*contents: str | bytes | memoryview, length: int = WHOLE) -> str:
    """Return the first hexadecimal digits of the SHA-256 of contents, one after the other.

    >>> sha256_of("a", b"b", length=8) == sha256_of("ab")[:8] == "fb8e20fc"
    True
    """
    digest = hashlib.sha256()
    for content in contents:
        digest.update(_as_bytes(content))
    return digest.hexdigest()[:length]


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a file, which is read in parts."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def blake2_of(*contents: str | bytes, size: int) -> str:
    """Return the BLAKE2 hash with ``size`` bytes of contents, one after the other.

    >>> blake2_of("a", b"b", size=4) == blake2_of("ab", size=4)
    True
    """
    digest = hashlib.blake2b(digest_size=size)
    for content in contents:
        digest.update(_as_bytes(content))
    return digest.hexdigest()


def _as_bytes(content: str | bytes | memoryview) -> bytes | memoryview:
    """Return UTF-8; half of a surrogate pair, which JSON may hold, is no error."""
    return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
