"""Every writing command on a disk that is full, or that fills: one message that says what cannot be
written and what to do, nothing half written, and the same result when there is room.

Small file systems are mounted where that is allowed (root); the limit of the size of files works
everywhere. A short form runs by default; ``KARAT_FAULTS=full`` takes as many sizes as fit.
"""

from __future__ import annotations

import os
import random
import subprocess

import pytest

from .commands import COMMANDS, Nursery, content, emptied
from .disks import PAGE, small_disk
from .long_form import cases

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
#: the advice of commands that continue what is there
RESUMED = ("run", "race")


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    made = Nursery(tmp_path_factory.mktemp("disks"))
    try:
        made.prepare()
        yield made
    finally:
        made.close()


def check_told(name, code, printed):
    assert code == 2 and "Traceback" not in printed, printed
    lines = [line for line in printed.splitlines() if line.startswith("error:")]
    (line,) = [line for line in lines if "free some space" in line]
    assert "cannot write" in line and "[Errno" not in line
    assert ("--resume" in line) == (name in RESUMED), line


def size_of(folder):
    return sum(path.stat().st_size + PAGE for path in folder.rglob("*"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_small_disk(nursery, name, tmp_path):
    output = emptied(tmp_path / "out")
    code, printed = nursery.run(COMMANDS[name], output)
    assert code in (0, 3), printed
    whole, needed = content(output), size_of(output)
    emptied(output)
    draw, stopped = random.Random(name), 0
    for _ in cases(1):
        with small_disk(output, max(PAGE, int(draw.uniform(0.02, 0.6) * needed))):
            ended, printed = nursery.run(COMMANDS[name], output)
            if ended not in (0, 3):
                stopped += 1
                check_told(name, ended, printed)
                if name not in RESUMED:  # what is there is whole
                    assert content(output).items() <= whole.items()
            subprocess.run(["mount", "-o", "remount,size=64m", str(output)], check=True)
            again, printed = nursery.run(COMMANDS[name], output)
            assert again == code, printed
            assert content(output) == whole
    print(f"{name}: {stopped} full disks")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_limit_of_the_size_of_files(nursery, name, tmp_path):
    output = emptied(tmp_path / "out")
    code, printed = nursery.run(COMMANDS[name], output)
    whole = content(output)
    largest = max(path.stat().st_size for path in output.rglob("*") if path.is_file())
    draw, stopped = random.Random(name), 0
    for _ in cases(1):
        emptied(output)
        limit = max(1500, int(draw.uniform(0.2, 0.98) * largest))  # room for what is printed
        ended, printed = nursery.run(COMMANDS[name], output, file_limit=limit)
        if ended not in (0, 1, 3):
            stopped += 1
            check_told(name, ended, printed)
        again, printed = nursery.run(COMMANDS[name], output)
        assert again == code, printed
        assert content(output) == whole
    print(f"{name}: {stopped} limits reached")
