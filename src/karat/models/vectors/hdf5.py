"""Read HDF5 files: a group ``Vectors`` with one dataset per entity, named in base 32."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from karat.core.files import check_content
from karat.errors import DataError
from karat.models.model import import_extra
from karat.models.vectors.vector_names import NamedVectors, strip_angle_brackets

if TYPE_CHECKING:
    import h5py

GROUP = "Vectors"
#: types of the messages of an object header: none, where the data is, time of the last change
NOTHING, LAYOUT, CHANGED = 0, 8, 18
#: version and class of the layout of data in one piece
CONTIGUOUS = [3, 1]
LONGEST_HEADER = 4096
HARD_LINK = 0
#: number of object headers in memory at a time
HEADERS = 10_000

_BASE32 = re.compile(
    "([A-Z2-7]{8})*(([A-Z2-7]{2}(={6}|[A-Z2-7]{2}(={4}|[A-Z2-7]={3}|[A-Z2-7]{3}=)))?)"
)
_BASE32_DIGITS = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789ABCDEFGHIJKLMNOPQRSTUV", "="
)


def read_hdf5(path: Path) -> NamedVectors:
    """Return all names and vectors."""
    with _group(path) as group:
        links = _links(group)
        names = [strip_angle_brackets(name_from_base32(link.key, path)) for link in links]
        return names, _read_links(group, links, path)


def read_hdf5_rows(path: Path, names: Iterable[str]) -> np.ndarray:
    """Read the vectors of these names only; a name without a vector is a row of NaN."""
    names = list(names)
    with _group(path) as group:
        links: list[_Link] = []

        def take(key: bytes) -> bool:
            links.append(_link(group, key.decode()))
            return True  # ends the iteration

        group.id.links.iterate(take)
        places = []
        for i, name in enumerate(names):
            for key in (name_to_base32(name), name_to_base32(f"<{name}>")):
                if group.id.links.exists(key.encode()):
                    links.append(_link(group, key))
                    places.append(i)
        vectors = _read_links(group, links, path)
        rows = np.full((len(names), vectors.shape[1]), np.nan, dtype=np.float32)
        rows[places] = vectors[1:]
    return rows


class _Link(NamedTuple):
    """A link of a group: its name, and the address of its object if it is a hard link."""

    key: str
    hard: bool
    address: int

    @classmethod
    def of(cls, key: bytes, info: h5py.h5l.LinkInfo) -> _Link:
        """Return a link from what h5py knows of it."""
        return cls(key.decode(), info.type == HARD_LINK, info.u)


def _read_links(group: h5py.Group, links: list[_Link], path: Path) -> np.ndarray:
    """Return the vectors of some links, which must have the size of the first one."""
    first = _row(group, links[0].key, path)
    check_content(path, 4 * len(links) * len(first))
    vectors = np.empty((len(links), len(first)), dtype=np.float32)
    done = _read_like_first(group, links, path, vectors)
    for i in np.flatnonzero(~done):
        vectors[i] = _row(group, links[i].key, path, len(first))
    return vectors


def _link(group: h5py.Group, key: str) -> _Link:
    return _Link.of(key.encode(), group.id.links.get_info(key.encode()))


def _links(group: h5py.Group) -> list[_Link]:
    """Return all links in the order in which h5py lists them."""
    from h5py import h5, h5p

    tracked = group.id.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_TRACKED
    links: list[_Link] = []
    group.id.links.iterate(
        lambda key, info: links.append(_Link.of(key, info)),
        idx_type=h5.INDEX_CRT_ORDER if tracked else h5.INDEX_NAME,
        info=True,
    )
    return links


def _read_like_first(
    group: h5py.Group, links: list[_Link], path: Path, vectors: np.ndarray
) -> np.ndarray:
    """Fill the rows of datasets that are stored like the first one; return which these are.

    HDF5 takes 60 microseconds to open a dataset. A dataset whose object header has the same bytes
    as that of the first one, except for the address of its data, is read from the mapped file.
    """
    done = np.zeros(len(links), dtype=bool)
    first = group[links[0].key]
    begin, size = first.id.get_offset(), first.id.get_storage_size()
    hard = all(link.hard for link in links)
    if begin is None or size != first.size * first.dtype.itemsize or not hard:
        return done
    data = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    if any(link.address >= len(data) for link in links):  # h5py says which
        return done
    values = sliding_window_view(data, size)
    places = np.array([link.address for link in links], dtype=np.int64)
    for start in range(0, len(links), HEADERS):
        part = slice(start, start + HEADERS)
        begins = _data_addresses(data, np.append(places[0], places[part]))
        if begins[0] != begin:  # addresses do not count from the begin of the file
            break
        rows = np.flatnonzero((begins[1:] > 0) & (begins[1:] < len(values)))
        with np.errstate(over="ignore"):
            vectors[start + rows] = values[begins[1 + rows]].view(first.dtype)
        done[start + rows] = np.isfinite(vectors[start + rows]).all(axis=1)
    return done


def _data_addresses(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return where the data of each dataset begins, 0 if it is not stored like the first one.

    In version 1 of the object header, 16 bytes, of which four are the size of all messages, are
    followed by the messages: type and size in two bytes each, four other bytes, and the content.
    """
    unknown = np.zeros(len(places), dtype=np.int64)
    length = 16 + int(data[places[0] + 8 : places[0] + 12].view("<u4")[0])
    if data[places[0]] != 1 or length > LONGEST_HEADER or places.max() + length > len(data):
        return unknown
    headers = sliding_window_view(data, length)[places]
    fixed, address, at = np.ones(length, dtype=bool), None, 16
    while at + 8 <= length:
        kind, size = map(int, headers[0, at : at + 4].view("<u2"))
        if kind == LAYOUT and headers[0, at + 8 : at + 10].tolist() == CONTIGUOUS:
            address = slice(at + 10, at + 18)
            fixed[address] = False
        elif kind in (NOTHING, CHANGED):
            fixed[at + 8 : at + 8 + size] = False
        at += 8 + size
    if address is None:
        return unknown
    same = (headers[:, fixed] == headers[0, fixed]).all(axis=1)
    begins = np.ascontiguousarray(headers[:, address]).view("<i8")[:, 0]
    return np.where(same, begins, 0)


@contextmanager
def _group(path: Path) -> Iterator[Any]:
    h5py = import_extra("h5py", "h5")
    try:
        with h5py.File(path, "r") as file:
            group = _own(file, GROUP, path)
            if not isinstance(group, h5py.Group):
                contents = ", ".join(map(str, list(file)[:5])) or "nothing"
                raise DataError(f'{path} has no group "{GROUP}"; it contains: {contents}.')
            if not len(group):
                raise DataError(f"{path} contains no vectors.")
            yield group
    # h5py raises these for truncated and damaged files, and for names that are not UTF-8
    except (OSError, RuntimeError, ValueError, TypeError, LookupError, SystemError) as error:
        raise DataError(f"cannot read {path}: {error}.") from error


def _own(group: h5py.Group, key: str, path: Path) -> Any:
    """Return an object stored in this file, or None; data in another file is an error."""
    import h5py

    link = group.get(key, getlink=True)
    if link is None:
        return None
    # a soft link may lead through an external one
    if not isinstance(link, h5py.HardLink):
        raise DataError(f'{path}: "{key}" is a link; the vectors must be in the file itself.')
    stored = group[key]
    if isinstance(stored, h5py.Dataset) and (stored.external or stored.is_virtual):
        raise DataError(f'{path}: "{key}" refers to another file, which is not read.')
    return stored


def name_to_base32(name: str) -> str:
    """Return the name of the dataset of an entity."""
    return base64.b32encode(name.encode()).decode()


def name_from_base32(key: str, path: Path) -> str:
    """Return the entity of a dataset; raise a DataError if its name is not in base 32."""
    try:
        if _BASE32.fullmatch(key) and key:  # several times faster than base64
            digits = key.translate(_BASE32_DIGITS)
            count, rest = divmod(5 * len(digits), 8)
            return (int(digits, 32) >> rest).to_bytes(count).decode()
        return base64.b32decode(key).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise DataError(
            f'{path}: dataset "{GROUP}/{key}" is not named by an entity in base 32 ({error}).'
        ) from error


def _row(group: h5py.Group, key: str, path: Path, width: int = 0) -> np.ndarray:
    what = f'{path}: the vector of "{name_from_base32(key, path)}"'
    dataset = _own(group, key, path)
    shape = getattr(dataset, "shape", None)
    if shape is None or dataset.dtype.kind not in "fiu":
        raise DataError(f"{what} is not a dataset of numbers.")
    if not (len(shape) == 1 or (len(shape) == 2 and shape[0] == 1)) or not shape[-1]:
        raise DataError(f"{what} must have shape (d,) or (1, d), got {shape}.")
    if width and shape[-1] != width:
        raise DataError(f"{what} must have {width} numbers like the others, got {shape[-1]}.")
    # a chunk is decompressed as a whole, and may be larger than the dataset
    check_content(path, dataset.dtype.itemsize * max(shape[-1], math.prod(dataset.chunks or ())))
    row = np.asarray(dataset, dtype=np.float32).reshape(-1)
    if not np.isfinite(row).all():
        raise DataError(f"{what} contains NaN or infinity.")
    return row
