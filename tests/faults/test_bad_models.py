"""Models that misbehave in every way we know: each is a row, and the others have their scores."""

from __future__ import annotations

import os

import pytest

import karat
from karat.errors import ContractError, KaratWarning
from karat.results.run import open_runs

from .commands import Nursery
from .long_form import FULL

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

#: what a model does in transform, by name; ``X`` are the rows, ``good`` a matrix that is right
TRANSFORMS = {
    "raises": "raise ValueError('no')",
    "exits": "sys.exit(0)",
    "ends": "os._exit(0)",
    "kills": "os.kill(os.getpid(), 9)",
    "segfaults": "ctypes.string_at(0)",
    "recurses": "return self.transform(X)",
    "interrupts": "raise KeyboardInterrupt",
    "ends generators": "raise StopIteration",
    "nothing": "return None",
    "too few": "return good[1:]",
    "too many": "return np.vstack([good, good])",
    "no columns": "return good[:, :0]",
    "cube": "return good[:, :, None]",
    "numbers": "return 3",
    "texts": "return np.array([['a', 'b']] * len(X))",
    "objects": "return np.array([[object(), object()]] * len(X))",
    "ragged": "return [[1.0], *([[1.0, 2.0]] * (len(X) - 1))]",
    "infinite": "return good + np.inf",
    "partly nan": "good[0, 0] = np.nan; return good",
    "complex": "return good + 1j",
    "escapes": "raise ValueError('\\x1b[2J\\x1b]0;title\\x07')",
    "surrogates": "raise ValueError(chr(0xDC80))",
    "long message": "raise ValueError('x' * 10_000_000)",
    "odd message": "raise Odd()",
    "allocates": "raise MemoryError",
    "leaves": "os.chdir('/'); return good",
    "closes": "os.closerange(1, 3); return good",
    "forgets": "os.environ.clear(); sys.path.clear(); return good",
    "prints": "os.write(1, b'\\xff' * 100_000); return good",
    "changes": "X.iloc[:, 0] = 0; return good",
    "removes": "shutil.rmtree(OUT, ignore_errors=True); return good",
    "threads": "threading.Thread(target=time.sleep, args=(600,)).start(); return good",
    "children": "subprocess.Popen(['sleep', '600']); return good",
}
#: those whose jobs have a score all the same
GOOD = ("leaves", "closes", "forgets", "prints", "changes", "threads", "children", "removes")
SHORT = ("raises", "ends", "kills", "too few", "ragged", "escapes", "surrogates", "removes")
HEAD = """
import ctypes, os, shutil, subprocess, sys, threading, time
import numpy as np
OUT = {out!r}
class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no text")
class Plain:
    takes = ("table",)
    def fit(self, X, y=None):
        return self
    def transform(self, X):
        return np.ones((len(X), 2))
"""
MODEL = """
class {name}(Plain):
    def transform(self, X):
        good = np.ones((len(X), 2))
        {does}
"""


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    made = Nursery(tmp_path_factory.mktemp("models"))
    try:
        made.prepare()
        yield made
    finally:
        made.close()


def class_name(text):
    return "".join(word.capitalize() for word in text.split())


def test_every_bad_model_is_a_row_and_the_others_are_scored(nursery):
    chosen = [name for name in TRANSFORMS if FULL or name in SHORT]
    text = HEAD.format(out=str(nursery.folder / "out"))
    for name in chosen:
        text += MODEL.format(name=class_name(name), does=TRANSFORMS[name])
    (nursery.folder / "bad_models.py").write_text(text)
    # the one that removes the folder comes first: it takes nothing from the others
    chosen.sort(key=lambda name: name != "removes")
    models = " ".join(f"-m bad_models:{class_name(name)}" for name in chosen)
    command = f"run table.csv --target y --folds 2 {models} -m onehot -w 1 -q -o out"
    code, printed = nursery.run(command)
    assert code == 1 and "Traceback" not in printed and "\x1b" not in printed, printed
    runs = {run.model: run for run in open_runs(nursery.folder / "out")}
    assert len(runs) == len(chosen) + 1
    for name in chosen:
        if name == "removes":
            continue
        statuses = {record["status"] for record in runs[class_name(name)].records()}
        wanted = {"ok"} if name in GOOD else {"failed", "memory"}
        assert statuses and statuses <= wanted, (name, statuses)
    assert [record["status"] for record in runs["onehot"].records()] == ["ok", "ok"]
    print(f"{len(chosen)} models")


@pytest.mark.parametrize("method", ["__init__", "__reduce__", "__deepcopy__", "import"])
def test_code_that_ends_the_process_before_any_job_is_a_message(nursery, method):
    ends = "import os\nos._exit(0)\n"
    if method != "import":
        ends = f"import os\nclass M:\n    def {method}(self, *_):\n        os._exit(0)\n"
        ends += "    def fit(self, X, y=None):\n        return self\n"
        ends += "    def transform(self, X):\n        return X\n"
    (nursery.folder / f"ends_{method.strip('_')}.py").write_text(ends)
    model = f"ends_{method.strip('_')}:M"
    code, printed = nursery.run(f"run table.csv --target y --folds 2 -m {model} -w 1 -o ends")
    if method == "__deepcopy__":  # called in a worker: a failed row
        assert code == 1 and "M · table · fold 0   the worker ended with exit code 0" in printed
    else:
        # a model that cannot be pickled is a failed row; one that cannot be made, an error
        assert code in (1, 2) and "os._exit(0)" in printed, printed
    assert "Traceback" not in printed


def test_a_model_that_ends_this_process_is_a_row(tmp_path, two_classes):
    class Ends:
        def fit(self, X, y=None):
            os._exit(3)

        transform = fit

    with pytest.warns(KaratWarning, match=r"os\._exit\(3\)"):
        (run,) = karat.evaluate(Ends(), two_classes(), output=tmp_path)
    assert {record["status"] for record in run.records()} == {"failed"}


def test_children_of_the_users_end_as_they_would():
    from karat.core.exits import exit_refused

    with exit_refused():
        if (pid := os.fork()) == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    with pytest.raises(ContractError, match=r"called sys\.exit\(0\), which would end Karat"):
        with exit_refused():
            raise SystemExit(0)
