"""Runs commands of Karat in copies of this process: a line of JSON in, an exit code out.

Everything is imported once, so that hundreds of commands can be started and killed in minutes. A
command can be killed at a writing operation, counted from 1, or after some seconds; a limit of the
size of files stands for a full disk.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import threading
from pathlib import Path

#: audit events of operations that change files
WRITES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate")
LOADED = (
    *("karat.cli.app", "karat.execution.evaluation", "karat.ext.cluster.gather"),
    *("karat.ext.decide.race_session", "karat.ext.compat.convert", "karat.reporting.page"),
    *("karat.ext.publish.site", "karat.reporting.terminal", "karat.results.rescore"),
    *("karat.ext.decide.gate", "karat.ext.decide.same_encoder", "karat.ext.plots.figures"),
    *("karat.models.tabular_encoders", "sklearn.linear_model", "scipy.stats", "psutil"),
)


def count_writes(kill_at: int, counted: str) -> None:
    """Count the operations that change files; kill this process at one of them."""
    number, lock = 0, threading.Lock()

    def heard(event: str, arguments: tuple) -> None:
        nonlocal number
        if event == "open":
            _, mode, flags = arguments
            if not (flags & (os.O_WRONLY | os.O_RDWR)) and not set(mode or "") & set("wax+"):
                return
            if str(arguments[0]) in (counted, os.devnull):
                return
        elif event not in WRITES:
            return
        with lock:
            number += 1
            if number == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(heard)
    signal_count = lambda: Path(counted).write_text(str(number))  # noqa: E731
    globals()["write_count"] = signal_count


def run_command(order: dict) -> int:
    """Run one command and return its exit code."""
    os.chdir(order["folder"])
    os.environ.update(order.get("environment", {}))
    output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if limit := order.get("file_limit"):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    if order.get("seconds"):
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, order["seconds"])
    if "counted" in order:
        count_writes(order.get("kill_at", 0), order["counted"])
    from karat.cli.app import main

    sys.argv = ["karat", *order["command"]]
    try:
        main()
    except SystemExit as error:
        code = int(error.code or 0)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    if "counted" in order:
        globals()["write_count"]()
    return code


def main() -> None:
    for name in LOADED:
        importlib.import_module(name)
    print("ready", flush=True)
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            code = 99
            try:
                code = run_command(json.loads(line))
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
