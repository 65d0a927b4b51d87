"""Helpers that frameworks of the AutoML Benchmark import from ``amlb.utils``."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

log = logging.getLogger(__name__)

#: bytes in a megabyte
MEGABYTE = 2**20
#: seconds between the signals of an interruption
PATIENCE = 10


def _same(value: Any) -> Any:
    return value


class Namespace:
    """Nested values by attribute or key; one that is missing is None as a key.

    >>> space = Namespace(a=1, b=Namespace(c=[2]))
    >>> space.b.c, space["x"], "a" in space, Namespace.dict(space)
    ([2], None, True, {'a': 1, 'b': {'c': [2]}})
    """

    def __init__(self, *values: Any, **named: Any) -> None:
        for value in values:
            if isinstance(value, (Namespace, Mapping)):
                self.__dict__.update(dict(value))
        self.__dict__.update(named)

    @staticmethod
    def dict(space: Any, deep: bool = True) -> dict[str, Any]:
        """Return a namespace as a dictionary."""
        plain = dict(space)
        if not deep:
            return plain
        return {key: Namespace._plain(value) for key, value in plain.items()}

    @staticmethod
    def _plain(value: Any) -> Any:
        if isinstance(value, Namespace):
            return Namespace.dict(value)
        return [Namespace._plain(item) for item in value] if isinstance(value, list) else value

    @staticmethod
    def from_dict(values: Any, deep: bool = True) -> Any:
        """Return a mapping as a namespace, also the mappings in it."""
        if isinstance(values, (Namespace, Mapping)):
            inner: Callable[[Any], Any] = Namespace.from_dict if deep else (lambda item: item)
            return Namespace(**{str(key): inner(value) for key, value in dict(values).items()})
        return (
            [Namespace.from_dict(item) for item in values] if isinstance(values, list) else values
        )

    @staticmethod
    def walk(space: Any, change: Callable[..., tuple[str, Any]], parents: Any = ()) -> Any:
        """Return a namespace with every value passed through ``change(key, value, parents)``."""
        walked = Namespace()
        for key, value in dict(space).items():
            if isinstance(value, (Namespace, Mapping)):
                walked[key] = Namespace.walk(value, change, (*parents, key))
            else:
                name, changed = change(key, value, parents=list(parents))
                walked[name] = changed
        return walked

    @staticmethod
    def get(space: Any, key: str, default: Any = None) -> Any:
        """Return the value of a dotted key."""
        for part in key.split("."):
            if not isinstance(space, (Namespace, Mapping)) or part not in space:
                return default
            space = space[part]
        return space

    def __getitem__(self, key: str) -> Any:
        return self.__dict__.get(key)

    def __setitem__(self, key: str, value: Any) -> None:
        self.__dict__[key] = value

    def __delitem__(self, key: str) -> None:
        del self.__dict__[key]

    def __contains__(self, key: object) -> bool:
        return key in self.__dict__

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(list(self.__dict__.items()))

    def __len__(self) -> int:
        return len(self.__dict__)

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if isinstance(other, Namespace) else NotImplemented

    def __add__(self, other: Any) -> Namespace:
        return Namespace(self, other)

    def __or__(self, other: Any) -> Namespace:
        return Namespace(other, self)

    def __repr__(self) -> str:
        return f"Namespace({self.__dict__})"

    __hash__ = None  # type: ignore[assignment]


class Timer:
    """Measure the seconds of a block; ``duration`` is that so far inside of it."""

    def __init__(self, clock: Callable[[], float] = time.time, enabled: bool = True) -> None:
        self._clock = clock if enabled else (lambda: 0.0)
        self.start = self.stop = self._last = 0.0

    def __enter__(self) -> Timer:
        self.start = self._last = self._clock()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop = self._clock()

    @property
    def tick(self) -> float:
        """Seconds since the last tick; -1 after the block."""
        if self.stop:
            return -1
        before, self._last = self._last, self._clock()
        return self._last - before

    @property
    def duration(self) -> float:
        """Seconds of the block."""
        return (self.stop or self._clock()) - self.start


class InterruptTimeout:
    """Interrupt the main thread after a time: first by an exception, then by signals."""

    def __init__(
        self,
        timeout_secs: float | None,
        interruptions: Any = None,
        wait_retry_secs: float = PATIENCE,
        **_: Any,
    ) -> None:
        listed = interruptions if isinstance(interruptions, list) else [interruptions or {}]
        self.seconds = timeout_secs
        self.signals = [interruption.get("sig", TimeoutError) for interruption in listed]
        self.wait = wait_retry_secs
        self.timed_out = False
        self._ended = threading.Event()
        self._before: Any = None

    def __enter__(self) -> InterruptTimeout:
        if self.seconds is not None and self.seconds >= 0:
            self._before = signal.signal(signal.SIGUSR1, self._ring)
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._before is not None:
            signal.signal(signal.SIGUSR1, self._before)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"the framework exceeded its time of {self.seconds:g} s")

    def _watch(self) -> None:
        pause = float(self.seconds or 0)
        for sent in self.signals:
            if self._ended.wait(pause):
                return
            self.timed_out, pause = True, self.wait
            is_signal = isinstance(sent, int)
            os.kill(os.getpid(), int(sent) if is_signal else signal.SIGUSR1)


def as_list(*values: Any) -> list[Any]:
    """Return values as a list; a single list or tuple is unpacked.

    >>> as_list(1), as_list([1, 2]), as_list()
    ([1], [1, 2], [])
    """
    if len(values) == 1 and isinstance(values[0], Iterable) and not isinstance(values[0], str):
        return list(values[0])
    return list(values)


def str2bool(text: str) -> bool:
    """Return the meaning of a word such as yes or off.

    >>> str2bool("Yes"), str2bool("off")
    (True, False)
    """
    words = dict.fromkeys("1 on t true y yes".split(), True)
    words |= dict.fromkeys("0 f false n no off".split(), False)
    if text.lower() not in words:
        raise ValueError(f"{text!r} means neither yes nor no")
    return words[text.lower()]


def noop(*_: Any, **__: Any) -> None:
    """Do nothing."""


def profile(*_: Any, **__: Any) -> Callable[[Any], Any]:
    """Return a decorator that changes nothing: Karat measures time and memory of each job."""
    return lambda function: function


def repr_def(value: Any, attributes: str = "public") -> str:
    """Return the class of an object with its attributes."""
    listed = {k: v for k, v in vars(value).items() if attributes == "all" or not k.startswith("_")}
    return f"{type(value).__name__}({', '.join(f'{k}={v!r}' for k, v in listed.items())})"


# -- files ------------------------------------------------------------------------------------


def dir_of(caller_file: str, rel_to_project_root: bool = False) -> str:
    """Return the folder of a file."""
    folder = os.path.dirname(os.path.realpath(caller_file))
    return os.path.relpath(folder) if rel_to_project_root else folder


def touch(path: str, as_dir: bool = False) -> str:
    """Create a file or folder with its parents."""
    Path(path if as_dir else os.path.dirname(path) or ".").mkdir(parents=True, exist_ok=True)
    if not as_dir:
        Path(path).touch()
    return path


def split_path(path: str) -> Namespace:
    """Return the parts of a path: folder, stem and extension."""
    folder, name = os.path.split(path)
    stem, extension = os.path.splitext(name)
    return Namespace(dirname=folder, filename=name, basename=stem, extension=extension)


def path_from_split(split: Any, real_path: bool = True) -> str:
    """Return the path of the parts."""
    path = os.path.join(split.dirname, f"{split.basename}{split.extension}")
    return os.path.realpath(path) if real_path else path


def list_all_files(paths: Any, filter_: Callable[[str], bool] | None = None) -> list[str]:
    """Return all files of files and folders."""
    files: list[str] = []
    for path in map(Path, as_list(paths)):
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        files += [str(file) for file in inside if file.is_file()]
    return [file for file in files if filter_ is None or filter_(file)]


def walk_apply(
    dir_path: str,
    apply: Callable[..., None],
    topdown: bool = True,
    max_depth: int = -1,
    filter_: Callable[[str], bool] | None = None,
) -> None:
    """Call ``apply(path, isdir=…)`` for everything in a folder."""
    depth_of = len(Path(dir_path).parts)
    for folder, folders, files in os.walk(dir_path, topdown=topdown):
        if 0 <= max_depth < len(Path(folder).parts) - depth_of:
            continue
        for name, is_dir in [*((f, False) for f in files), *((d, True) for d in folders)]:
            path = os.path.join(folder, name)
            if (filter_ or bool)(path):  # any path counts without a filter
                apply(path, isdir=is_dir)


def clean_dir(dir_path: str, filter_: Callable[[str], bool] | None = None) -> None:
    """Delete what a folder contains."""
    for path in list(Path(dir_path).iterdir()) if Path(dir_path).is_dir() else []:
        if filter_ is None or filter_(str(path)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def zip_path(
    path: str, dest_archive: str, compression: int = zipfile.ZIP_DEFLATED, **options: Any
) -> None:
    """Write a file or folder into an archive."""
    wanted = options.get("filter_")
    base = path if os.path.isdir(path) else os.path.dirname(path)
    with zipfile.ZipFile(dest_archive, "w", compression) as archive:
        for file in list_all_files(path, wanted):
            if os.path.realpath(file) != os.path.realpath(dest_archive):
                archive.write(file, os.path.relpath(file, base))


def json_load(file: Any, as_namespace: bool = False) -> Any:
    """Return the content of a JSON file."""
    if hasattr(file, "read"):
        return json_loads(file.read(), as_namespace)
    return json_loads(Path(file).read_text(encoding="utf-8"), as_namespace)


def json_loads(text: str, as_namespace: bool = False) -> Any:
    """Return the value of a JSON text."""
    value = json.loads(text)
    return Namespace.from_dict(value) if as_namespace else value


def json_dump(value: Any, file: Any, style: str = "default") -> None:
    """Write a value as JSON."""
    Path(file).write_text(json_dumps(value, style), encoding="utf-8")


def json_dumps(value: Any, style: str = "default") -> str:
    """Return a value as JSON; objects are written by their attributes."""

    def plain(thing: Any) -> Any:
        if isinstance(thing, Namespace):
            return Namespace.dict(thing)
        if hasattr(thing, "tolist"):
            return thing.tolist()
        return vars(thing) if hasattr(thing, "__dict__") else str(thing)

    indent = 4 if style == "pretty" else None
    separators = (",", ":") if style == "compact" else None
    return json.dumps(value, indent=indent, separators=separators, default=plain)


# -- processes --------------------------------------------------------------------------------


def run_cmd(cmd: str, *args: Any, **options: Any) -> tuple[str, str]:
    """Run a shell command, show its output, and return it with the errors.

    Options are called ``_name_``: input_str, env, timeout, shell and executable have an effect.
    Others are arguments of the command.
    """
    settings = {key.strip("_"): value for key, value in options.items() if _is_option(key)}
    named = [f"--{key}={value}" for key, value in options.items() if not _is_option(key)]
    full = " ".join([cmd, *map(str, args), *named])
    log.info("Running cmd `%s`", full)
    environment = settings.get("env")
    done = subprocess.run(
        full if settings.get("shell", True) else shlex.split(full),
        shell=settings.get("shell", True),
        executable=settings.get("executable"),
        input=settings.get("input_str"),
        env=None if environment is None else {**os.environ, **dict(environment)},
        timeout=settings.get("timeout"),
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, full, done.stdout, done.stderr)
    return done.stdout, done.stderr


def _is_option(key: str) -> bool:
    return key.startswith("_") and key.endswith("_")


def run_script(script_path: str, *args: Any, **options: Any) -> tuple[str, str]:
    """Run an executable script."""
    Path(script_path).chmod(0o755)
    return run_cmd(shlex.quote(script_path), *args, **options)


def call_script_in_same_dir(
    caller_file: str, script_file: str, *args: Any, **options: Any
) -> tuple[str, str]:
    """Run a script of the caller's folder."""
    return run_script(os.path.join(dir_of(caller_file), script_file), *args, **options)


def kill_proc_tree(
    pid: int | None = None, include_parent: bool = True, timeout: float | None = None, **_: Any
) -> None:
    """End the processes that a process has started."""
    try:
        import psutil
    except ImportError:  # an environment without it: its parent ends the whole group
        return
    parent = psutil.Process(pid or os.getpid())
    waiting = [*parent.children(recursive=True), *([parent] if include_parent else [])]
    for process in waiting:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    for process in psutil.wait_procs(waiting, timeout=timeout or PATIENCE)[1]:
        with contextlib.suppress(psutil.Error):
            process.kill()


def system_cores() -> int:
    """Return the number of cores of the machine."""
    return os.cpu_count() or 1


def system_memory_mb() -> Namespace:
    """Return total, available and used memory in megabytes."""
    import psutil

    facts = psutil.virtual_memory()
    share = {"used_percentage": facts.percent}
    sizes = {name: getattr(facts, name) / MEGABYTE for name in ("total", "available")}
    return Namespace(**sizes, **share)


def system_volume_mb(root: str = "/") -> Namespace:
    """Return total, free and used space of a volume in megabytes."""
    facts = shutil.disk_usage(root)
    return Namespace(
        total=facts.total / MEGABYTE,
        free=facts.free / MEGABYTE,
        used=facts.used / MEGABYTE,
        used_percentage=100 * facts.used / facts.total,
    )


# -- data -------------------------------------------------------------------------------------


def is_serializable_data(data: Any) -> bool:
    """Return whether a value is an array, a matrix or a table."""
    return hasattr(data, "shape") and hasattr(data, "dtype") | hasattr(data, "columns")


def is_sparse(data: Any) -> bool:
    """Return whether a matrix or a table is sparse."""
    if type(data).__module__.startswith("scipy.sparse"):
        return True
    kinds: Any = getattr(data, "dtypes", None)
    listed = kinds.tolist() if hasattr(kinds, "tolist") else [kinds]
    return any(str(kind).startswith("Sparse") for kind in listed)


def unsparsify(*data: Any, fmt: str | None = "dense") -> Any:
    """Return data as it is, or dense if it is sparse; ``fmt`` "array" gives arrays."""
    dense = tuple(_dense(table, fmt) for table in data)
    return dense[0] if len(dense) == 1 else dense


def _dense(data: Any, fmt: str | None) -> Any:
    if is_sparse(data):
        data = data.sparse.to_dense() if hasattr(data, "sparse") else data.toarray()
    return data.to_numpy() if fmt == "array" and hasattr(data, "to_numpy") else data


def serialize_data(data: Any, path: str, config: Any = None) -> str:
    """Write an array or a table to a file and return its path.

    A table is written as Parquet, which other versions of pandas read.
    """
    import numpy as np

    if type(data).__module__.startswith("scipy.sparse"):
        import scipy.sparse as sp

        sp.save_npz(f"{path}.npz", data)
        return f"{path}.npz"
    if hasattr(data, "columns") or hasattr(data, "to_frame"):
        series = hasattr(data, "to_frame")
        table = data.to_frame(data.name or "0") if series else data
        table = table.set_axis([str(name) for name in table.columns], axis=1)
        target = f"{path}.{'series' if series else 'table'}.parquet"
        table.to_parquet(target)
        return target
    with open(f"{path}.npy", "wb") as file:
        np.save(file, np.asarray(data), allow_pickle=True)
    return f"{path}.npy"


def deserialize_data(path: str, config: Any = None) -> Any:
    """Return the data of a file that ``serialize_data`` has written."""
    if path.endswith(".npz"):
        import scipy.sparse as sp

        return sp.load_npz(path)
    if path.endswith(".parquet"):
        import pandas as pd

        table = pd.read_parquet(path)
        return table.iloc[:, 0] if path.endswith(".series.parquet") else table
    import numpy as np

    return np.load(path, allow_pickle=True)
