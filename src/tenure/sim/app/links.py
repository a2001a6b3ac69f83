"""Channels between simulated processes: in order, in time, and broken when a process is gone.

A channel is a TCP connection. Its messages are neither lost nor doubled nor reordered; faults delay
them. If nothing passes between two slots, messages wait to be sent again, until both sides give up.
"""

from collections import deque
from typing import Any, Protocol, cast

from tenure.base.instants import MILLISECOND_NS, SECOND_NS
from tenure.sim.kernel.faults import FaultDice
from tenure.sim.kernel.network import JITTER_NS, LATENCY_NS, Network
from tenure.sim.kernel.scene import Scene
from tenure.transport.in_process_channels import ChannelEnd, MemoryChannelNetwork

SENT_AGAIN_NS = 200 * MILLISECOND_NS
GIVEN_UP_NS = 10 * SECOND_NS
BREAK_SEEN_NS = 50 * MILLISECOND_NS


class LinkSite(Protocol):
    """A world that has channels."""

    faults: FaultDice
    network: Network


class PlaceOfEnd(Protocol):
    """A process that has ends of channels."""

    slot: str
    alive: bool


class ProgramLinks(MemoryChannelNetwork):
    """Every channel of a simulated world."""

    def __init__(self, site: Scene) -> None:
        super().__init__()
        self.site = site
        self._queues: dict[ChannelEnd, deque[bytes | None]] = {}
        """The data on its way to each end; None says that the other side has ended."""

    @property
    def _world(self) -> LinkSite:
        return cast("LinkSite", self.site)

    def carry(self, to: ChannelEnd, data: bytes) -> None:
        self._send(to, data)

    def carry_end(self, to: ChannelEnd) -> None:
        self._send(to, None)

    def _send(self, to: ChannelEnd, what: bytes | None) -> None:
        if not _place(to.other).alive and what is not None:
            return  # code of a dead process
        queue = self._queues.setdefault(to, deque())
        queue.append(what)
        if len(queue) == 1:
            self._set_out(to)

    def _set_out(self, to: ChannelEnd) -> None:
        late_ns = 0
        faults = self._world.faults
        if faults.copies_of_a_message() == 0:
            late_ns += SENT_AGAIN_NS
        late_ns += faults.lateness_of_a_message()[0]
        at = self.site.now + LATENCY_NS + self.site.random.randrange(JITTER_NS) + late_ns
        self.site.at(at, self._arrive, (to, self.site.now))

    def _arrive(self, which: tuple[ChannelEnd, int]) -> None:
        to, since = which
        queue = self._queues.get(to)
        if not queue:
            return
        if (_place(to.other).slot, _place(to).slot) in self._world.network.cuts:
            if self.site.now - since < GIVEN_UP_NS:
                self.site.at(self.site.now + SENT_AGAIN_NS, self._arrive, which)
            else:
                self._give_up(to)
            return
        what = queue.popleft()
        if what is None:
            del self._queues[to]
            to.hear_of_end()
            return
        self.carried += 1
        to.arrive(what)
        if queue:
            self._set_out(to)

    def _give_up(self, to: ChannelEnd) -> None:
        for end in (to, to.other):
            self._queues.pop(end, None)
            end.hear_of_end()

    def break_off(self, place: Any) -> None:  # as the base class has it
        """See `MemoryChannelNetwork`. The others hear of it a little later."""
        for end in [end for end in self._open if end.place is place]:
            self.forget(end)
            self.site.at(self.site.now + BREAK_SEEN_NS, self._seen_broken, end.other)
        for url in [url for url, each in self._listening.items() if each.place is place]:
            self.fall_silent(url)

    def _seen_broken(self, end: ChannelEnd) -> None:
        self._queues.pop(end, None)
        end.hear_of_end()


def _place(end: ChannelEnd) -> PlaceOfEnd:
    return cast("PlaceOfEnd", end.place)
