"""The service: what all endpoints share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from karat.serve.bundles import Bundles
from karat.serve.evaluations import Evaluations
from karat.serve.orders import Names
from karat.serve.settings import Settings
from karat.serve.state import State
from karat.serve.uploads import Uploads

#: how many boards and comparisons are kept
KEPT = 32


class Service:
    """The folder, the bundles made of it, uploads and evaluations."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state = State(settings.folder)
        self.bundles = Bundles()
        self.names = Names(settings)
        self.uploads = Uploads(settings)
        self.evaluations = Evaluations(settings, self.uploads)
        self._computing = threading.Lock()
        self._computed: OrderedDict[Any, Any] = OrderedDict()

    def computed(self, key: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """Return what was computed for a key, or compute it: one thing at a time, and once."""
        with self._computing:
            if key not in self._computed:
                self._computed[key] = compute()
                while len(self._computed) > KEPT:
                    self._computed.popitem(last=False)
            self._computed.move_to_end(key)
            return self._computed[key]
