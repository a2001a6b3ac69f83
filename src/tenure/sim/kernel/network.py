"""The simulated network: bytes that arrive, late, twice, out of order, or never.

Messages are really encoded, and decoded where they arrive. A message to an address is read by the
process that is there when it arrives, perhaps a later life; a message over a connection reaches
that very process or nobody. A pair's messages keep their order, as on a connection, except those
that a fault makes stragglers or reorders.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tenure.base.instants import MILLISECOND_NS
from tenure.sim.kernel.process import SimProcess, Site

LATENCY_NS = MILLISECOND_NS // 2
JITTER_NS = MILLISECOND_NS
JITTER_BITS = JITTER_NS.bit_length()
"""It is drawn as by `randrange`, whose checks would cost more than the draw."""
BREAK_SEEN_NS = 50 * MILLISECOND_NS
CUT_MESSAGE = "cut message"
"""The name under which messages that could not pass are counted."""


class Codec(Protocol):
    """Encodes and decodes messages."""

    def encode(self, message: Any) -> bytes:
        """The bytes of a message."""
        ...

    def decode(self, data: bytes, receiver: SimProcess) -> Any:
        """The message, as its receiver reads it."""
        ...


Reach = Callable[[SimProcess, Any, bytes], None]


class Network:
    """Carries messages between processes."""

    def __init__(self, site: Site, codec: Codec) -> None:
        self.site = site
        self.codec = codec
        self.cuts: dict[tuple[str, str], int] = {}
        """When each cut ends, by the two slots, from and to, between which nothing passes."""
        self.messages = 0
        self._last_arrival: dict[tuple[int, str], int] = {}
        self._encoded: tuple[Any, bytes] = (None, b"")
        self._decoded: tuple[bytes, Any] = (b"", None)

    # --- sending ---

    def to_address(self, sender: SimProcess, slot: str, message: Any) -> None:
        """Send to whatever process has that address when the message arrives."""
        self._carry(sender, slot, message, self._reach_address, slot)

    def to_process(self, sender: SimProcess, receiver: SimProcess, message: Any) -> None:
        """Send over a connection, to this very process."""
        self._carry(sender, receiver.slot, message, self._reach_process, receiver)

    def _carry(
        self, sender: SimProcess, to: str, message: Any, reach: Reach, receiver: Any
    ) -> None:
        self.messages += 1
        data = self._encode(message)
        site = self.site
        for copy in range(site.faults.copies_of_a_message()):
            extra_ns, in_order = site.faults.lateness_of_a_message()
            at = site.now + self.latency_ns(sender, to) + extra_ns
            if in_order and copy == 0:
                pair = (sender.uid, to)
                at = max(at, self._last_arrival.get(pair, 0) + 1)
                self._last_arrival[pair] = at
            site.at(at, self._arrive, (sender, to, data, reach, receiver))

    def latency_ns(self, sender: SimProcess, to: str) -> int:
        """How long a message to the slot takes if nothing goes wrong."""
        draw = self.site.random.getrandbits
        jitter = draw(JITTER_BITS)
        while jitter >= JITTER_NS:
            jitter = draw(JITTER_BITS)
        return LATENCY_NS + jitter

    def _encode(self, message: Any) -> bytes:
        if self._encoded[0] is not message:
            self._encoded = (message, self.codec.encode(message))
        return self._encoded[1]

    # --- arriving ---

    def _arrive(self, packet: tuple[SimProcess, str, bytes, Reach, Any]) -> None:
        sender, to, data, reach, receiver = packet
        if (sender.slot, to) in self.cuts:
            if self.site.faults.is_on:
                self.site.faults.counts[CUT_MESSAGE] += 1
        else:
            reach(sender, receiver, data)

    def _reach_address(self, sender: SimProcess, slot: str, data: bytes) -> None:
        process = self.site.slots.get(slot)
        if process is None or not process.alive:
            self._break(sender, slot)  # nobody listens at that slot
        else:
            self._reach_process(sender, process, data)

    def _reach_process(self, sender: SimProcess, receiver: SimProcess, data: bytes) -> None:
        if not receiver.alive:
            return
        if self._decoded[0] is not data:
            self._decoded = (data, self.codec.decode(data, receiver))
        message = self._decoded[1]
        what = f"gets {type(message).__name__} of {sender.slot}"
        self.site.story.tell(self.site.now, receiver.slot, what, message)
        receiver.on_message(sender, message)

    # --- breaking ---

    def _break(self, process: SimProcess, slot: str, uid: int = 0) -> None:
        """Tell the process that its connection to `slot` broke."""
        self.site.at(self.site.now + BREAK_SEEN_NS, process.on_disconnected, (slot, uid))

    def end_connections(self, process: SimProcess) -> None:
        """Tell the peers of a process that their connections to it are gone."""
        for peer in self.site.peers(process):
            self._break(peer, process.slot, process.uid)

    def on_killed(self, process: SimProcess) -> None:
        """End a killed process's connections. Half of the time the host tells its peers; otherwise
        nobody does.
        """
        if self.site.random.random() >= 0.5:
            self.end_connections(process)

    def lose_connections(self, process: SimProcess) -> None:
        """Break the connections of a living process. Half of the time the process does not hear of
        it.
        """
        self.site.tell(process.slot, "loses its connections")
        self.end_connections(process)
        if self.site.random.random() < 0.5:
            for peer in self.site.peers(process):
                self._break(process, peer.slot, peer.uid)

    def cut(self, one: str, other: str, real_ns: int, *, both_ways: bool) -> None:
        """Let nothing pass between two slots for a while."""
        self.cut_pairs([(one, other), (other, one)] if both_ways else [(one, other)], real_ns)

    def cut_pairs(self, pairs: Sequence[tuple[str, str]], real_ns: int) -> None:
        """Let nothing pass from the first of each pair to the second for a while."""
        until, cuts = self.site.now + real_ns, self.cuts
        for pair in pairs:
            cuts[pair] = max(until, cuts.get(pair, 0))
        self.site.at(until, self._mend, pairs)

    def _mend(self, pairs: Sequence[tuple[str, str]]) -> None:
        for pair in pairs:
            if self.cuts.get(pair, 0) <= self.site.now:  # otherwise it was cut again, for longer
                self.cuts.pop(pair, None)
