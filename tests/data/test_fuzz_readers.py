"""Mutated files of every format are read or refused; ``benchmarks/fuzz_readers.py`` reads more."""

import importlib.util
import random
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "fuzz_readers.py"


@pytest.fixture(scope="module")
def fuzz():
    for library in ("h5py", "pyarrow"):
        pytest.importorskip(library)
    spec = importlib.util.spec_from_file_location("fuzz_readers", FILE)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in /proc")
def test_mutated_files_raise_only_our_errors(fuzz):
    assert fuzz.run(500, seed=7) == []


def test_case_and_seed_determine_the_file(fuzz):
    content = b"a,b\n1,2\n"
    first, again, other = (fuzz.mutate(content, random.Random(key)) for key in ("x", "x", "y"))
    assert first == again != other
