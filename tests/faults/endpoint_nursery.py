"""Starts processes that request vectors: one line of JSON in, its process id or its end out.

Everything is imported once, and every process is a copy of this one, so that a thousand of them
can be started and killed in minutes.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

#: the exit codes of a process that has all vectors, and of one that stopped for now
DONE, POSTPONED, FAILED = 0, 3, 4


def request_vectors(order: dict) -> int:
    """Request the vectors of some texts in the account of an order; return an exit code."""
    from karat.core.services import use_services
    from karat.errors import Postponed
    from karat.ext.endpoints.endpoint_account import current_account
    from karat.ext.endpoints.endpoint_encoder import EndpointEncoder

    if limit := order.get("file_limit"):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    encoder = EndpointEncoder(**order["encoder"])
    with use_services(pickle.loads(bytes.fromhex(order["services"]))):
        try:
            encoder.encode(order["texts"])
        except Postponed as error:
            Path(f"{order['message']}-{os.getpid()}").write_text(str(error))
            return POSTPONED
        finally:
            current_account().database.close()
    return DONE


def warm_up() -> None:
    """Load all that a request needs, by one to a port where nobody listens."""
    from karat.core.services import RunServices, use_services
    from karat.errors import ContractError
    from karat.ext.endpoints.endpoint_account import current_account
    from karat.ext.endpoints.endpoint_encoder import EndpointEncoder

    with tempfile.TemporaryDirectory() as folder, suppress(ContractError):
        with use_services(RunServices(store=Path(folder))):
            try:
                EndpointEncoder("http://127.0.0.1:9/v1").encode(["text"])
            finally:
                current_account().database.close()


def main() -> None:
    warm_up()
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        if (pid := os.fork()) == 0:
            code = FAILED
            try:
                code = request_vectors(order)
            finally:
                os._exit(code)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
