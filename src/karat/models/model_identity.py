"""The identity of a model: a hash of its code, parameters, weights, files and versions.

Models with the same name but different weights, parameters or source code have different
identities, so cached vectors are never mixed up. Of Karat's own code, an identity has every module
that the encoder reaches, in whatever folder it is.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import cloudpickle

from karat.core.digest import sha256_of
from karat.core.embeddings import Variant
from karat.core.files import file_hash
from karat.errors import DefinitionError, KaratError
from karat.models.model import Model

_BY_VALUE = ("__main__", "__mp_main__")
#: modules of Karat that look up or hold things and compute no vectors; only their version counts
_NOT_FOLLOWED = ("karat", "karat.core.registry", "karat.core.dataset")
_FROM_IMPORT = re.compile(r"^([ \t]*)from (karat[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
#: "import karat.core.files", and names such as "karat.models.text_encoders:TfIdf"
_MODULE_NAME = re.compile(r"""^([ \t]*)(?:import |.*?["'])(karat(?:\.\w+)+)""", re.MULTILINE)


def model_identity(model: Model) -> str | None:
    """Return a hash of everything a model's vectors depend on, or None if it cannot be pickled.

    Equal models may have different hashes (a cache miss), but not the reverse.
    """
    return variant_identity(encoder_identity(model, model.prototype), model.variant)


def variant_identity(identity: str | None, variant: Variant | None) -> str | None:
    """Return the identity of a variant of an encoder."""
    if identity is None or variant is None:
        return identity
    return sha256_of(f"{identity}\0{variant}")


def encoder_identity(model: Model, encoder: object) -> str | None:
    """Return the identity of a copy of a model's prototype, with what the model depends on."""
    identity = object_identity(encoder)
    if identity is None or not model.depends_on:
        return identity
    parts = [identity, *(_dependency(model.name, dependency) for dependency in model.depends_on)]
    return sha256_of("\0".join(parts))


def _dependency(model: str, declared: str) -> str:
    """Return the current content of what a model depends on."""
    kind, _, name = declared.partition(":")
    if kind == "version":
        return declared
    if kind == "env":
        value = os.environ.get(name)
        return declared if value is None else f"{declared}={value}"
    content = _file(Path(declared))
    if not content and not Path(declared).is_dir():
        raise DefinitionError(
            f'{model}: depends_on names "{declared}", which is no readable file or folder; '
            f'write "env:NAME" for an environment variable.'
        )
    return f"file {content}"


def object_identity(thing: Any) -> str | None:
    """Return a hash of an object or function with its code, or None if it cannot be pickled.

    >>> object_identity(sorted) == object_identity(sorted) != object_identity(sum)
    True
    """
    has_fingerprint = callable(getattr(thing, "fingerprint", None)) and not isinstance(thing, type)
    described = _Description()
    try:
        # an object with a fingerprint is not pickled, only its class is
        described.dump(type(thing) if has_fingerprint else thing)
        described.digest.update(str(thing.fingerprint()).encode() if has_fingerprint else b"")
    except KaratError:
        raise
    except Exception:  # pickling may raise anything
        return None
    for part in [*_code(described.modules), *map(_file, _values(thing))]:
        described.digest.update(part.encode() + b"\0")
    return described.digest.hexdigest()


class _Description(cloudpickle.Pickler):
    """Pickle into a hash that is stable across processes, and collect all modules involved."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.modules: set[str] = set()
        super().__init__(_Sink(self.digest), protocol=5)  # which hashes arrays without a copy

    def reducer_override(self, thing: object) -> Any:
        if isinstance(thing, CodeType):
            return str, (_instructions(thing),)
        if isinstance(thing, ModuleType):
            self.modules.add(thing.__name__)
        if isinstance(thing, type):
            self.modules |= {base.__module__ for base in thing.__mro__}
        elif isinstance(thing, FunctionType):
            self.modules.add(thing.__module__ or "")
        reduced = super().reducer_override(thing)
        if isinstance(thing, type) and isinstance(reduced, tuple):
            # cloudpickle gives the classes of a script a random id in every process
            return reduced[0], tuple(map(_unnumbered, reduced[1])), *reduced[2:]
        return reduced


@dataclass(eq=False, repr=False)
class _Sink(io.RawIOBase):
    digest: Any

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return memoryview(data).nbytes


def _unnumbered(argument: Any) -> Any:
    hexadecimal = isinstance(argument, str) and set(argument) <= set("0123456789abcdef")
    return "" if hexadecimal and len(argument) == 32 else argument


def _instructions(code: CodeType) -> str:
    """Return the code of a function, independent of the order of sets in this process."""
    constants = [
        _instructions(constant)
        if isinstance(constant, CodeType)
        else repr(sorted(map(repr, constant)))
        if isinstance(constant, frozenset)
        else repr(constant)
        for constant in code.co_consts
    ]
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants))


def _code(names: Iterable[str]) -> list[str]:
    """Return the versions of installed packages and source hashes of other modules, sorted."""
    # models of Karat import scikit-learn where they use it
    waiting, seen, parts = {*names, "sklearn"}, set[str](), set[str]()
    of_karat = set[str]()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        root = name.partition(".")[0]
        if name == "sklearn":
            parts.add(f"{name} {_version(name)}")
            continue
        module = sys.modules.get(name)
        if module is None or root in sys.stdlib_module_names or name in _BY_VALUE:
            continue
        if root == "karat":
            of_karat.add(name)
            continue
        file = Path(getattr(module, "__file__", None) or "")
        if {"site-packages", "dist-packages"} & set(file.parts):
            parts.add(f"{root} {_version(root)}")
            continue
        files = [f for f in _sources(root, file) if f.is_file()]
        stamps = tuple((f, f.stat().st_mtime_ns, f.stat().st_size) for f in files)
        # file and memory may differ if a module was edited after import
        parts |= {f"{root} {_hash_files(stamps)}", f"{name} {_loaded(module)}"}
        values = list(vars(module).values())
        named = {value.__name__ for value in values if isinstance(value, ModuleType)}
        waiting |= (named | set(filter(None, map(_module_of, values)))) - seen
    return sorted(parts | _karat_code(of_karat))


@dataclass(frozen=True)
class _KaratSource:
    """The hash of a module's file, what it imports with itself, and what its functions import."""

    digest: str
    imports: frozenset[str] = frozenset()
    later_imports: frozenset[str] = frozenset()


def _karat_code(names: set[str]) -> set[str]:
    """Return the hashes of modules of Karat and of all others that they can import."""
    parts = {f"{module} {_karat_source(module).digest}" for module in _reached(names, later=True)}
    # file and memory may differ if a module was edited after import
    for module in _reached(names, later=False) - set(_NOT_FOLLOWED):
        if module in sys.modules:
            parts.add(f"{module} {_loaded(sys.modules[module])}")
    return parts


def _reached(names: set[str], later: bool) -> set[str]:
    """Return the modules of Karat that these import; with ``later``, also in their functions."""
    waiting, reached = set(names), set[str]()
    while waiting:
        module = waiting.pop()
        reached.add(module)
        source = _karat_source(module)
        waiting |= source.imports - reached
        if later:
            waiting |= source.later_imports - reached
    return reached


def _karat_source(name: str) -> _KaratSource:
    if name in _NOT_FOLLOWED:
        return _KaratSource(_version("karat"))
    file = _karat_file(name)
    if file is None:  # made while running
        return _KaratSource("")
    stat = file.stat()
    return _read_source(file, stat.st_mtime_ns, stat.st_size)


def _karat_file(name: str) -> Path | None:
    """Return the file of a module of Karat, or None if there is none of this name."""
    return _module_file(os.path.dirname(sys.modules["karat"].__file__ or ""), name)


@lru_cache(maxsize=4096)
def _module_file(package: str, name: str) -> Path | None:
    path = Path(package, *name.split(".")[1:])
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


@lru_cache(maxsize=1024)
def _read_source(file: Path, changed: int, size: int) -> _KaratSource:
    content = file.read_bytes()
    imports: dict[bool, set[str]] = {False: set(), True: set()}
    for indent, name in _imported_names(content.decode()):
        while name.count(".") and _karat_file(name) is None:
            name = name.rpartition(".")[0]
        imports[bool(indent)].add(name)
    return _KaratSource(sha256_of(content), frozenset(imports[False]), frozenset(imports[True]))


def _imported_names(source: str) -> Iterator[tuple[str, str]]:
    """Yield the names that a source imports, or has as strings, each with its indentation."""
    for indent, module, names in _FROM_IMPORT.findall(source):
        for name in re.findall(r"\w+", re.sub(r"#.*| as \w+", "", names)):
            yield indent, f"{module}.{name}"
    yield from _MODULE_NAME.findall(source)


def _sources(root: str, file: Path) -> list[Path]:
    """Return the files of the module's package, or the module's own file."""
    first = Path(getattr(sys.modules.get(root), "__file__", None) or file)
    return sorted(first.parent.rglob("*.py")) if first.name == "__init__.py" else [file]


@lru_cache(maxsize=256)
def _hash_files(files: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for file, _, _ in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _module_of(value: object) -> str:
    try:
        name = value.__module__
    except Exception:  # __getattr__ may raise anything
        return ""
    return name if isinstance(name, str) else ""


def _loaded(module: ModuleType) -> str:
    digest = hashlib.sha256()
    for value in vars(module).values():
        if _module_of(value) != module.__name__:
            continue
        for part in vars(value).values() if isinstance(value, type) else [value]:
            code = getattr(getattr(part, "__func__", part), "__code__", None)
            if isinstance(code, CodeType):
                digest.update(_instructions(code).encode())
    return digest.hexdigest()


@lru_cache(maxsize=256)
def _version(root: str) -> str:
    try:
        return metadata.version({"sklearn": "scikit-learn"}.get(root, root))
    except (metadata.PackageNotFoundError, ValueError):  # distribution and module names differ
        names = _distributions().get(root, [])
        return " ".join(f"{name} {metadata.version(name)}" for name in sorted(set(names)))


@lru_cache(maxsize=1)
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


def _values(thing: object) -> Iterable[Any]:
    if hasattr(thing, "get_params") and not isinstance(thing, type):
        return dict(thing.get_params(deep=True)).values()
    return dict(getattr(thing, "__dict__", {})).values()


def _file(value: object) -> str:
    """Return the content hash of a file, or the sizes and times of a folder's files."""
    if not isinstance(value, str | Path) or not 0 < len(str(value)) <= 4096:
        return ""
    try:
        path = Path(value)
        if path.is_file():
            return file_hash(path)
        # a single word is not taken for a folder
        if path.is_dir() and (isinstance(value, Path) or len(path.parts) > 1):
            stats = [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in path.rglob("*")]
            return repr(sorted(stats))
    except (OSError, ValueError):
        return ""
    return ""
