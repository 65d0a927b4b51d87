"""Lines: connections that are ended when their client sends or takes nothing for too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karat.serve.settings import Patience

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as Base
else:
    Base = object


class Patient(Base):
    """Added to the protocol of uvicorn: looks at its connection now and then.

    ``heading`` is since when a header is being sent, ``moved`` when bytes last moved.
    """

    patience = Patience()
    heading: float | None

    def connection_made(self, transport: Any) -> None:
        """Begin to look."""
        super().connection_made(transport)
        self.heading = self.moved = self.loop.time()
        self.taken, self.seen = 0, (0, 0)
        self._look_later()

    def data_received(self, data: bytes) -> None:
        """Note whether a header has begun that is not yet a request."""
        self.taken += len(data)
        super().data_received(data)
        if self._busy():
            self.heading = None
        elif self.heading is None:
            self.heading = self.loop.time()

    def on_response_complete(self) -> None:
        """Wait for another request, which nobody needs to send."""
        self.heading = None
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        self.timer.cancel()
        super().connection_lost(exc)

    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _look_later(self) -> None:
        every = min(self.patience.header, self.patience.idle) / 4
        self.timer = self.loop.call_later(every, self._look)

    def _look(self) -> None:
        now, waiting = self.loop.time(), self.transport.get_write_buffer_size()
        if (self.taken, waiting) != self.seen:
            self.seen, self.moved = (self.taken, waiting), now
        late = self.heading is not None and now - self.heading > self.patience.header
        sending = self._busy() and self.cycle.more_body and not self.flow.read_paused
        stuck = (waiting > 0 or sending) and now - self.moved > self.patience.idle
        if late or stuck:
            self.transport.abort()
        else:
            self._look_later()


def make_protocol(patience: Patience) -> type[Any]:
    """Return the protocol of uvicorn, with patience that ends."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    return type("PatientProtocol", (Patient, H11Protocol), {"patience": patience})
