"""Models that misbehave, in a module that only this process can import, and what runs wrote."""

from __future__ import annotations

import importlib
import json
import sys
import time

import pytest

MODELS = """
import os, shutil, sys, threading, time
import numpy as np
from sklearn.base import BaseEstimator
from karat.models.model import StatelessEncoder

class Plain(BaseEstimator):
    def fit(self, items, y=None):
        return self
    def transform(self, items):
        return items.to_numpy(dtype=float)

class Noisy(Plain):
    '''Adds noise from its seed.'''
    def __init__(self, random_state=None):
        self.random_state = random_state
    def fit(self, items, y=None):
        print("fitting", len(items))
        return self
    def transform(self, items):
        rng = np.random.default_rng(self.random_state)
        return items.to_numpy(dtype=float) + rng.normal(size=items.shape) * 5

class Slow(Noisy):
    def fit(self, items, y=None):
        time.sleep(0.2)
        return self

class Dies(Plain):
    '''Ends its process if row 0 is tested.'''
    def fit(self, items, y=None):
        if 0 not in items.index:
            os.write(2, b"goodbye")
            os._exit(3)
        return self

class Exits(Plain):
    def fit(self, items, y=None):
        sys.exit(4)

class Broken(StatelessEncoder):
    def transform(self, items):
        raise ValueError("no such thing")

class Wipes(Plain):
    def __init__(self, folder):
        self.folder = folder
    def transform(self, items):
        shutil.rmtree(self.folder, ignore_errors=True)
        return super().transform(items)

class Locked(Plain):
    '''Cannot be pickled.'''
    def __init__(self):
        self.lock = threading.Lock()
    def __deepcopy__(self, memo):
        return Locked()

class Patches(Plain):
    '''Makes every logistic regression wrong, and moves to another folder.'''
    def fit(self, items, y=None):
        from sklearn.linear_model import LogisticRegression

        LogisticRegression.decision_function = lambda self, X: np.full(len(X), -9.0)
        LogisticRegression.predict = lambda self, X: np.repeat(self.classes_[:1], len(X))
        os.chdir("/")
        sys.path.clear()
        return self

class Forever(Plain):
    '''Loops until it is ended, or allocates until it is.'''
    def __init__(self, hungry=False):
        self.hungry = hungry
    def fit(self, items, y=None):
        held = []
        while True:
            held.append(np.ones(2**22)) if self.hungry else time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return the module of the models above, which workers get by path or by value."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "models_of_tests.py").write_text(MODELS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.delitem(sys.modules, "models_of_tests", raising=False)
        yield importlib.import_module("models_of_tests")


@pytest.fixture(scope="session")
def contents():
    """Return all that runs wrote by model and path, without times."""

    def read(runs, dropped=()):
        found = {}
        for run in runs:
            skipped = ("scores", run.folder.name)
            for path in sorted(p for p in run.folder.rglob("*") if p.is_file()):
                place = run.model, str(path.relative_to(run.folder))
                if path.parent.name == "jobs":
                    record = json.loads(path.read_text())
                    times = {key for key in record if key.endswith("seconds")}
                    times |= {"utc", "peak_memory_mb", *dropped}
                    found[place] = {k: v for k, v in record.items() if k not in times}
                elif path.name == "scores.csv" or path.parent.name not in skipped:
                    found[place] = path.read_bytes()
        return found

    return read


@pytest.fixture(scope="session")
def until():
    """Wait until a condition is true, without a limit: the machine may have much to do."""

    def wait(condition):
        while not condition():
            time.sleep(0.05)

    return wait
