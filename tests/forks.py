"""Run scripts in forks of a process that has loaded the libraries: each is a process of its own.

Loading them takes seconds, a fork takes none. Every line read is an order, every line written the
exit code of the script. What must prove how Python itself starts takes a new process instead.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import sys
import types
from pathlib import Path
from typing import Any

#: what the scripts of the docs import sooner or later; none of it runs anything
LIBRARIES = (
    *(
        "karat.execution.evaluation",
        "karat.execution.runner",
        "karat.ext.compat.tabeb",
        "karat.ext.compat.taco",
    ),
    *("sklearn.compose", "sklearn.ensemble", "sklearn.linear_model", "sklearn.pipeline"),
    *("pyarrow.parquet", "skrub"),
)


def become(order: dict[str, Any]) -> None:
    """Run a script in this process, as Python runs it."""
    for place, (path, mode) in enumerate(
        ((os.devnull, os.O_RDONLY), (order["out"], os.O_WRONLY), (order["err"], os.O_WRONLY))
    ):
        os.dup2(os.open(path, mode), place)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    script, *arguments = order["arguments"]
    if script == "-m":
        sys.argv, sys.path[0] = arguments, order["cwd"]
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = [script, *arguments], os.path.dirname(os.path.abspath(script))
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        main.__file__ = script
        code = compile(Path(script).read_bytes(), script, "exec", dont_inherit=True)
        exec(code, main.__dict__)


def serve() -> None:
    """Fork for every order until there are no more."""
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            answers.close()
            return become(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


if __name__ == "__main__":
    serve()
