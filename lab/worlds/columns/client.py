"""Simulated clients of the store: a handle, with the clock of its writes."""

from collections.abc import Callable
from typing import Any

from lab.worlds.columns.processes import StoreProcess, StoreSite
from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.machine import Output
from tenure.protocol.replication.clock import WriteClock
from tenure.sim.kernel.clocks import SimClock


class Relaying:
    """A machine that passes events on, so that a frozen client receives nothing."""

    def handle(self, now: Instant, event: Any) -> Output[Any]:
        """Pass the event on."""
        return Output([event], FAR_FUTURE)

    def advance(self, now: Instant) -> Output[Any]:
        """Do nothing: nothing is ever due."""
        return Output([], FAR_FUTURE)

    def invariants(self) -> None:
        """Assert nothing."""


class ClientProcess(StoreProcess):
    """A client, with the answers that it waits for."""

    def __init__(self, site: StoreSite, slot: str, clock: SimClock) -> None:
        super().__init__(site, slot, clock, Relaying())
        self.clock_of_writes = WriteClock()
        self.waits: dict[int, Callable[[Any], None]] = {}
        """Called with the answer, by request."""
        self._requests = site.random.getrandbits(40)

    def draw(self) -> int:
        """Draw a time for a write from this host's clock."""
        return self.clock_of_writes.draw(self.wall_us())

    def wall_us(self) -> int:
        """The time that this host's clock shows."""
        return self.site.wall_us(self.slot)

    def request(self) -> int:
        """A number for a new request."""
        self._requests += 1
        return self._requests

    def ask(self, node: str, request: Any, then: Callable[[Any], None], patience_ns: int) -> None:
        """Ask a node. `then` is called with the answer, or with None if none comes in time."""
        self.waits[request.request] = then
        self.site.network.to_address(self, node, request)
        self.site.at(self.site.now + patience_ns, self._give_up, request.request)

    def _give_up(self, request: int) -> None:
        then = self.waits.pop(request, None)
        if then is not None and self.alive:
            then(None)

    def on_message(self, sender: Any, message: Any) -> None:
        """An answer has arrived."""
        self.post(message)

    def perform(self, action: Any) -> None:
        """Pass the answer on, if anybody still waits for it."""
        then = self.waits.pop(action.request, None)
        if then is not None:
            then(action)
