"""The fixture ``karat_gate``, in a pytest of its own."""

from __future__ import annotations

import subprocess
import sys

from .score_data import write_run

TESTS = """
def test_same(karat_gate):
    assert karat_gate.not_worse("new", than="base").outcome == "passed"

def test_worse(karat_gate):
    karat_gate.not_worse("worse", than="base")

def test_open(karat_gate):
    karat_gate.not_worse("noisy", than="base", cannot_tell="skip")

def test_open_fails(karat_gate):
    karat_gate.not_worse("noisy", than="base")
"""


def test_the_fixture_in_a_test(tmp_path):
    base = [0.80, 0.82, 0.81, 0.79, 0.78]
    changes = {
        "base": [0.0] * 5,
        "new": [0.001, 0.0, -0.001, 0.001, 0.0],
        "worse": [-0.1, -0.11, -0.1, -0.09, -0.1],
        "noisy": [-0.1, 0.1, 0.0, -0.05, 0.05],
    }
    sizes = {"questions": 2000, "train_questions": 8000}
    for folder, change in changes.items():
        scores = [a + b for a, b in zip(base, change, strict=True)]
        write_run(tmp_path / folder, "m", {"t": scores}, record=sizes)
    (tmp_path / "test_it.py").write_text(TESTS)
    plugins = ["no:cacheprovider", "no:karat", "karat.testing_plugin", "no:xdist"]
    options = [word for name in plugins for word in ("-p", name)]
    command = [sys.executable, "-m", "pytest", "-rA", "-q", *options, "test_it.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 failed, 1 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "0.800  0.700  -0.100 [" in done.stdout
    assert "def not_worse" not in done.stdout, "no traceback"


def test_the_plugin_loads_nothing_heavy():
    code = "import sys, karat.testing_plugin; print('numpy' in sys.modules, 'click' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
