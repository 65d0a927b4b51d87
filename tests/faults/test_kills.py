"""Every writing command, killed at random points: what is there is readable, and repeating the
command gives what it would have given, without anything left over.

A short form runs by default; ``KARAT_FAULTS=full`` kills as often as fits in its time.
"""

from __future__ import annotations

import os
import random

import pytest

from .commands import COMMANDS, Nursery, content, emptied
from .long_form import cases

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    made = Nursery(tmp_path_factory.mktemp("kills"))
    try:
        made.prepare()
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_can_be_repeated(nursery, name, tmp_path, record_property):
    counted = tmp_path / "counted"
    output = emptied(tmp_path / "out")
    code, printed = nursery.run(COMMANDS[name], output, counted=str(counted))
    assert code in (0, 3), printed
    whole, writes = content(output), int(counted.read_text())
    assert whole or name == "fingerprint"
    draw, killed = random.Random(name), 0
    for number in cases(2):
        emptied(output)
        for _ in range(1 + number % 2):  # a command that is repeated is killed again
            at = draw.randint(1, writes)
            how = {"counted": str(counted), "kill_at": at}
            if number % 3 == 2:  # between operations too
                how = {"seconds": draw.uniform(0.01, 0.6)}
            ended, printed = nursery.run(COMMANDS[name], output, **how)
            assert ended in (-9, code), printed
            killed += ended == -9
            if name in ("run", "race", "gather", "rescore", "import"):
                read, printed = nursery.run("leaderboard OUT", output)
                nothing = "no run folder" in printed or "none of the" in printed
                assert read == 0 or (read == 2 and nothing), (at, printed)
                assert "Traceback" not in printed
        again, printed = nursery.run(COMMANDS[name], output)
        assert again == code, printed
        assert content(output) == whole, at
    record_property("killed", killed)
    print(f"{name}: {killed} kills at {writes} points")
