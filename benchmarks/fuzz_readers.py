"""Read mutated files of every format: only KaratErrors, no hang, little memory.

``python benchmarks/fuzz_readers.py`` reads 10,000 files. Each is a small valid file with a few
random changes; case and seed determine it. A case fails with any other exception, with more than
10 CPU seconds, or with more memory than ten times the file plus 200 MB. The cases run in a child
process, which is started again after a crash.
"""

from __future__ import annotations

import argparse
import base64
import bz2
import gzip
import io
import json
import random
import re
import resource
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.config.loading import Definitions
from karat.core import registry
from karat.data.archives import extract, unpack
from karat.data.load_dataset import DataSpec
from karat.errors import KaratError
from karat.ext.compat.geval.gold import from_xml
from karat.ext.compat.tabeb.readers import read_metadata
from karat.models.vector_files import VectorFile
from karat.models.vectors.vector_formats import read_vectors

CASES, SECONDS = 10_000, 10
#: memory beyond ten times the file
FREE = 200 * 1024**2
#: address space beyond what the process has, so that a failing case cannot fill the machine
MOST = 8 * 1024**3
MAX_SIZE = 500_000
FRAME = pd.DataFrame(
    {
        "id": [f"r{i}" for i in range(12)],
        "x": np.linspace(-1.5, 7, 12),
        "n": range(12),
        "text": ["NA", "", "a b", 'q"uote', "ä", None] * 2,
        "y": ["yes", "no", "no"] * 4,
    }
)
NAMES = [f"http://example.org/e{i}" for i in range(6)]
VECTORS = np.linspace(-2, 2, 24, dtype="f4").reshape(6, 4)
ARFF = """% comment
@relation 'a b'
@attribute x numeric
@attribute "it's" {small, 'very large'}
@attribute note string
@attribute y {yes,no}
@data
1.5,small,'a, b',yes
?,'very large',"it\\"s",no
-2e3,small,?,yes
4,small,x y ,no
"""
DOCUMENTS = [
    {"annotations": [{"entity": f"{name}{i}", "weight": 0.5 + i} for i in range(2)]}
    for name in NAMES[:3]
]
XML = """<?xml version="1.0" encoding="UTF-8"?>
<parameters><vector_filename>v.txt</vector_filename><vector_size>200</vector_size>
<similarity_function>cosine</similarity_function><tasks><task>Class</task></tasks></parameters>
"""
PO = """msgid ""
msgstr "Language: de\\n"

#, c-format
msgid "open the file"
msgstr "die Datei "
"öffnen"

#, fuzzy
msgid "x"
msgstr "y"

msgid "one file"
msgid_plural "%d files"
msgstr[0] "eine Datei"
msgstr[1] "%d Dateien"

msgid "no"
msgstr "nein"
"""
YAML = """models:
  "m-{n}":
    for_each: {n: [1, 2]}
    use: "sklearn.neighbors:KNeighborsClassifier"
    params: &p {n_neighbors: "{n}", weights: uniform}
  base: {abstract: true, use: random, params: *p}
tasks:
  t:
    extends: classification
    dataset: {path: x.csv, target: y, kind: classification}
    metrics: [acc, auc]   # comment
suites:
  s: {tasks: [t], models: [m-1]}
"""
NUMBERS = (
    b"-1",
    b"0",
    b"1e400",
    b"-1e-400",
    b"nan",
    b"inf",
    b"0x10",
    b"1_000",
    b"00",
    b"-0",
    b"99999999999",
    b"9223372036854775808",
    b"1" * 400,
    b"1" * 5000,
    b"300000000",
    b"true",
)
TOKENS = (
    b"'",
    b'"',
    b"\\",
    b",",
    b"\n",
    b"\r",
    b"\t",
    b" ",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"#",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"null",
    b"?",
    b"&a ",
    b"*a",
    b"<",
    b">",
    b"&lt;",
    b"<!DOCTYPE x>",
    b"@data",
    b"@attribute a {",
    b"%",
    b"msgid ",
    b"- ",
    b"? ",
    b"!!",
    b"encoding='klingon'",
    b"\x1f\x8b",
    b"PK\x01\x02",
    b"{}",
    b"[]",
    b'""',
    b"../",
    b"/etc/",
)
EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63)


def _same(content: bytes) -> bytes:
    return content


@dataclass(frozen=True)
class Format:
    """A valid file: ``content`` is mutated, then packed; ``beside`` are other files."""

    file: str
    content: bytes
    read: Callable[[Path], Any]
    pack: Callable[[bytes], bytes] = _same
    beside: dict[str, bytes] = field(default_factory=dict)


# -- valid files ------------------------------------------------------------------------------


def table(path: Path, **how: Any) -> Any:
    settings = {"target": "y", "kind": "classification", **how}
    reader = settings.pop("reader", "table")
    return registry.readers.get(reader)(path, DataSpec("fuzz", **settings))


def vectors(path: Path) -> Any:
    VectorFile(str(path)).transform([*NAMES, "none"])
    return read_vectors(path)


def packed(frame: pd.DataFrame, how: str, **options: Any) -> bytes:
    file = io.BytesIO()
    getattr(frame, how)(file, **options)
    return file.getvalue()


def array(values: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def npz(content: bytes, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("ids.npy", array(np.array(NAMES)))
        archive.writestr("vectors.npy", content)
    return file.getvalue()


def archived(content: bytes, mode: str = "zip") -> bytes:
    file = io.BytesIO()
    if mode == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("d/x.csv", content)
            archive.writestr("d/e/y.csv", b"a\n1\n")
        return file.getvalue()
    with tarfile.open(fileobj=file, mode=mode, format=tarfile.PAX_FORMAT) as tar:
        for name in ("d/x.csv", f"d/{'long' * 40}/ü.csv"):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


def hdf5(**options: Any) -> bytes:
    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w") as opened:
        group = opened.create_group("Vectors")
        for name, vector in zip(NAMES, VECTORS, strict=True):
            key = base64.b32encode(name.encode()).decode()
            group.create_dataset(key, data=vector, **options)
    return file.getvalue()


def safetensors() -> bytes:
    tensor = {"dtype": "F32", "shape": [6, 4], "data_offsets": [0, VECTORS.nbytes]}
    header = {"__metadata__": {"names": json.dumps(NAMES)}, "vectors": tensor}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + VECTORS.tobytes()


def unpacked(path: Path) -> None:
    for member in ("d/x.csv", "d/", "*.csv", "none"):
        try:
            extract(path, member, path.parent / "out" / "file")
        except KaratError:
            continue
    unpack(path, path.parent / "all", (".csv",))


def tables() -> Iterator[Format]:
    csv = FRAME.to_csv(index=False).encode()
    yield Format("t.csv", csv, table)
    yield Format("t.tsv", FRAME.to_csv(index=False, sep="\t").encode(), table)
    yield Format("n.csv", csv, partial(table, target="x", kind="regression"))
    yield Format("i.csv", csv, partial(table, target="n", kind=None))
    yield Format("t.csv.gz", csv, table, gzip.compress)
    yield Format("raw.csv.gz", gzip.compress(csv), table)
    yield Format("t.csv.bz2", bz2.compress(csv), table)
    yield Format("t.arff", ARFF.encode(), table)
    records = FRAME.to_json(orient="records").encode()
    yield Format("t.json", records, table)
    yield Format("n.json", records, partial(table, target="n", kind="regression"))
    yield Format("l.json", json.dumps(FRAME.to_dict("list")).encode(), table)
    yield Format("t.jsonl", FRAME.to_json(orient="records", lines=True).encode(), table)
    columns = partial(table, reader="columns", fields=("id",), modality="text")
    yield Format("columns.csv", csv, columns)
    yield Format("s.csv", csv, partial(table, reader="senteval", fields=("id",), target="y"))
    linkage = partial(table, reader="linkage", target="y", kind=None)
    yield Format("linkage.csv", csv, linkage)
    for compression in ("snappy", "zstd", None):
        content = packed(FRAME, "to_parquet", compression=compression)
        yield Format(f"{compression}.parquet", content, table)
    yield Format("t.feather", packed(FRAME, "to_feather"), table)


def words() -> Iterator[Format]:
    triples = "".join(f"<{a}>\tr{i}\t<{b}>\n" for i, a in enumerate(NAMES) for b in NAMES if a < b)
    yield Format("triples.txt", triples.encode(), partial(table, reader="triples", kind=None))
    quadruples = ": family\nking queen man woman\n: city\nParis France Rome Italy\n"
    yield Format("a.txt", quadruples.encode(), partial(table, reader="analogies"))
    related = "Apple\n\tSteve_Jobs\n\tiPhone\nIBM\n\tWatson\n"
    yield Format("r.txt", related.encode(), partial(table, reader="relatedness"))
    pairs = "# comment\ncat dog 7.5\nnew york\tbig apple\t3\n"
    yield Format("w.txt", pairs.encode(), partial(table, reader="word-pairs"))
    options = {"options": {"pairs": "p.csv"}, "target": "average", "kind": None}
    beside = {"p.csv": b"doc1,doc2,average\n1,2,0.5\n2,3,0.1\n1,3,0.9\n"}
    documents = json.dumps(DOCUMENTS).encode()
    read = partial(table, reader="documents", **options)
    yield Format("d.json", documents, read, beside=beside)
    read = partial(table, reader="document-texts", **options)
    yield Format("d.txt", b"one text\nand another\nthird\n", read, beside=beside)
    yield Format("t.po", PO.encode(), partial(table, reader="translations", kind=None))
    yield Format("p.xml", XML.encode(), from_xml)
    yield Format("d.yaml", YAML.encode(), lambda path: Definitions.load([path]))
    metadata = {"name": "t", "task": "classification", "target_name": "y", "dtype": {"x": "float"}}
    parquet = packed(FRAME, "to_parquet")
    yield Format(
        "t_metadata.json",
        json.dumps(metadata).encode(),
        read_metadata,
        beside={"t.parquet": parquet},
    )


def vector_files() -> Iterator[Format]:
    rows = [f"{n} {' '.join(map(str, v))}\n" for n, v in zip(NAMES, VECTORS.tolist(), strict=True)]
    text = ("6 4\n" + "".join(rows)).encode()
    yield Format("v.txt", text, vectors)
    yield Format("v.vec", "".join(rows).encode(), vectors)
    yield Format("v.csv", "".join(rows).replace(" ", ",").encode(), vectors)
    yield Format("v.txt.gz", text, vectors, gzip.compress)
    yield Format("raw.txt.gz", gzip.compress(text), vectors)
    binary = b"6 4\n" + b"".join(
        f"{n} ".encode() + v.tobytes() for n, v in zip(NAMES, VECTORS, strict=True)
    )
    yield Format("v.bin", binary, vectors)
    yield Format("v.npz", npz(array(VECTORS)), vectors)
    yield Format("i.npz", array(VECTORS), vectors, npz)
    yield Format("v.h5", hdf5(), vectors)
    yield Format("c.h5", hdf5(compression="gzip", chunks=(2,), maxshape=(None,)), vectors)
    yield Format("v.safetensors", safetensors(), vectors)
    frame = pd.DataFrame(VECTORS, columns=list("abcd")).assign(id=NAMES)
    lists = pd.DataFrame({"id": NAMES, "v": VECTORS.tolist()})
    yield Format("v.parquet", packed(frame, "to_parquet"), vectors)
    yield Format("l.parquet", packed(lists, "to_parquet"), vectors)
    yield Format("v.feather", packed(frame, "to_feather"), vectors)
    try:
        import zstandard
    except ImportError:
        return
    yield Format("v.txt.zst", zstandard.compress(text), vectors)


def others() -> Iterator[Format]:
    def tabred(path: Path) -> Any:
        return registry.readers.get("tabred")(path.parent, DataSpec("t", options={"split": "d"}))

    folder = {
        "info.json": b'{"task_type": "binclass"}',
        "Y.npy": array(np.array([0, 1, 1, 0])),
        "X_num.npy": array(np.arange(8.0).reshape(4, 2)),
        "X_cat.npy": array(np.array([["a"], ["b"], ["a"], ["c"]])),
        "split-d/train_idx.npy": array(np.array([0, 1])),
        "split-d/val_idx.npy": array(np.array([2])),
        "split-d/test_idx.npy": array(np.array([3])),
    }
    for name in ("info.json", "Y.npy", "X_num.npy", "X_cat.npy"):
        yield Format(name, folder[name], tabred, beside=folder)
    csv = FRAME.to_csv().encode()
    for name, mode in (("x.zip", "zip"), ("x.tar", "w"), ("x.tar.gz", "w:gz")):
        yield Format(name, archived(csv, mode), unpacked)
    yield Format("inner.tar.gz", archived(csv, "w"), unpacked, gzip.compress)


def formats() -> list[Format]:
    return [*tables(), *words(), *vector_files(), *others()]


# -- mutations --------------------------------------------------------------------------------


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Return the content with one to five random changes."""
    for _ in range(rng.randint(1, 5)):
        content = rng.choice(MUTATIONS)(content, rng)[:MAX_SIZE]
    return content


def _span(content: bytes, rng: random.Random) -> tuple[int, int]:
    first = rng.randint(0, len(content))
    return first, min(len(content), first + int(rng.expovariate(1 / 8)) + 1)


def _flip(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return b"\0"
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


def _delete(content: bytes, rng: random.Random) -> bytes:
    first, last = _span(content, rng)
    return content[:first] + content[last:]


def _truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randint(0, len(content))]


def _insert(content: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(content))
    token = rng.choice(TOKENS) * (1 if rng.random() < 0.9 else rng.choice((50, 3_000, 100_000)))
    return content[:at] + token + content[at:]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    first, last = _span(content, rng)
    times = rng.choice((2, 3, 10, 1_000))
    return content[:first] + content[first:last] * times + content[last:]


def _move(content: bytes, rng: random.Random) -> bytes:
    first, last = _span(content, rng)
    at = rng.randint(0, len(content))
    return content[:at] + content[first:last] + content[at + last - first :]


def _number(content: bytes, rng: random.Random) -> bytes:
    matches = list(re.finditer(rb"-?\d+(\.\d+)?", content))
    if not matches:
        return _insert(content, rng)
    match = rng.choice(matches)
    return content[: match.start()] + rng.choice(NUMBERS) + content[match.end() :]


def _integer(content: bytes, rng: random.Random) -> bytes:
    size = rng.choice((1, 2, 4, 8))
    at = rng.randint(0, max(0, len(content) - size))
    value = rng.choice(EDGES) % 256**size
    return content[:at] + value.to_bytes(size, "little") + content[at + size :]


MUTATIONS = (_flip, _flip, _delete, _truncate, _insert, _repeat, _move, _number, _integer)


# -- the child process ------------------------------------------------------------------------


def status(name: str) -> int:
    """Return a number of bytes from the status of this process, 0 if there is none."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    match = re.search(rf"{name}:\s+(\d+) kB", text)
    return 1024 * int(match[1]) if match else 0


def reset_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def prepare(
    number: int, seed: int, known_formats: list[Format], folder: Path
) -> tuple[Format, Path]:
    """Write the file of a case and return its format and path."""
    rng = random.Random(f"{seed}-{number}")
    form = known_formats[number % len(known_formats)]
    # the valid files themselves are read first
    content = form.content if number < len(known_formats) else mutate(form.content, rng)
    for name, other in form.beside.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(other)
    path = folder / form.file
    path.write_bytes(form.pack(content))
    return form, path


def attempt(number: int, seed: int, known_formats: list[Format]) -> dict[str, Any] | None:
    """Read the file of one case; return what is wrong, or None."""
    with tempfile.TemporaryDirectory() as folder:
        form, path = prepare(number, seed, known_formats, Path(folder))
        reset_peak()
        before, begin = status("VmRSS"), time.process_time()
        soft = int(begin) + SECONDS + 1
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
        wrong = ""
        try:
            form.read(path)
        except KaratError as error:
            if number < len(known_formats):
                wrong = f"a valid file is refused: {error}"
        except BaseException as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            origin = next(
                (f"{Path(f.filename).name}:{f.lineno}" for f in _own(error)), frame.filename
            )
            wrong = f"{type(error).__name__} at {origin}: {error}"[:300]
        seconds, memory = time.process_time() - begin, status("VmHWM") - before
        size = path.stat().st_size
    if not wrong and seconds > SECONDS:
        wrong = f"{seconds:.0f} CPU seconds"
    if not wrong and memory > 10 * size + FREE:
        wrong = f"{memory / 1e6:.0f} MB for {size} bytes"
    return {"case": number, "file": form.file, "wrong": wrong} if wrong else None


def _own(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames in Karat, the innermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in reversed(frames) if "/karat/" in frame.filename]


def child(first: int, last: int, seed: int) -> None:
    """Read cases; print the number of each, and what is wrong as JSON."""
    warnings.simplefilter("ignore")
    known_formats = formats()
    limit = status("VmSize") + MOST
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    for number in range(first, last):
        print(number, flush=True)
        if wrong := attempt(number, seed, known_formats):
            print(json.dumps(wrong), flush=True)


# -- the parent process -----------------------------------------------------------------------


def run(cases: int = CASES, seed: int = 0, first: int = 0) -> list[dict[str, Any]]:
    """Return what is wrong with each failed case."""
    failures: list[dict[str, Any]] = []
    last = first + cases
    while first < last:
        command = [sys.executable, __file__, "--child", str(first), str(last), "--seed", str(seed)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("{"):
                    failures.append(json.loads(line))
                    print(" ", failures[-1], flush=True)
                else:
                    first = int(line)
        if process.returncode == 0:
            return failures
        if process.returncode > 0:
            raise RuntimeError(f"the child process failed before or in case {first}")
        name = signal.Signals(-process.returncode).name
        failures.append({"case": first, "file": "", "wrong": name})
        print(" ", failures[-1], flush=True)
        first += 1
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="read one case and show its traceback")
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child, arguments.seed)
        return 0
    if arguments.case is not None:
        folder = Path(tempfile.mkdtemp())
        form, path = prepare(arguments.case, arguments.seed, formats(), folder)
        print(path, path.read_bytes()[:500])
        form.read(path)
        return 0
    failures = run(arguments.cases, arguments.seed)
    print(f"{arguments.cases} cases, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
