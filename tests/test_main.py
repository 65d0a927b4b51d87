"""``python -m karat`` is the same as ``karat``."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).parent / "karat"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["run", "--help"], ["run", "--nonsense"]]
)
def test_the_module_is_the_command(arguments):
    if not SCRIPT.exists():
        pytest.skip("karat is not installed as a command")
    by_name, by_module = (
        subprocess.run([*start, *arguments], capture_output=True, text=True)
        for start in ([SCRIPT], [sys.executable, "-m", "karat"])
    )
    assert by_name.returncode == by_module.returncode
    assert (by_name.stdout, by_name.stderr) == (by_module.stdout, by_module.stderr)
    assert "karat" in by_name.stdout + by_name.stderr
