"""The simulated network: bytes that arrive, late, twice, out of order, or never.

Messages are really encoded, and decoded where they arrive. What was sent to a manager's address is
read by whatever manager is there when it arrives, also by a later life of it; what was sent to a
client's connection reaches that very process or nobody. A pair's messages keep their order, as on a
connection, except those that a fault makes stragglers or reorders.
"""

from typing import TYPE_CHECKING, Any

from tenure.base.instants import MILLISECOND_NS
from tenure.protocol.lease.client_events import ManagerLost, ManagerSaid
from tenure.protocol.lease.leader import events as manager_events
from tenure.protocol.lease.messages import FromManager, ToManager
from tenure.sim.process import ManagerProcess, OwnerProcess, Process
from tenure.wire.codec import decode_to_lookup, decode_to_manager, decode_to_owner, encode
from tenure.wire.versions import NEWEST

if TYPE_CHECKING:
    from tenure.sim.world import World

LATENCY_NS = MILLISECOND_NS // 2
JITTER_NS = MILLISECOND_NS
BREAK_SEEN_NS = 50 * MILLISECOND_NS


class Network:
    """Carries messages between processes."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.cuts: set[tuple[str, str]] = set()
        """Pairs of slots, from and to, between which nothing passes."""
        self.messages = 0
        self._last_arrival: dict[tuple[int, str], int] = {}
        self._encoded: tuple[Any, bytes] = (None, b"")
        self._decoded: tuple[bytes, Any] = (b"", None)

    # --- sending ---

    def to_manager(self, sender: Process, manager: str, message: ToManager) -> None:
        """From a client to whatever manager is at that address when it arrives."""
        self._carry(sender, manager, message, self._reach_manager, (sender, manager))

    def to_client(self, sender: Process, uid: int, message: FromManager) -> None:
        """From a manager over a connection: to that very client process."""
        client = self.world.client(uid)
        if client is not None:
            self._carry(sender, client.slot, message, self._reach_client, (client, sender.slot))

    def _carry(self, sender: Process, to: str, message: Any, reach: Any, route: Any) -> None:
        self.messages += 1
        data = self._encode(message)
        faults = self.world.faults
        for copy in range(faults.copies_of_a_message()):
            extra_ns, in_order = faults.lateness_of_a_message()
            at = self.world.now + LATENCY_NS + self.world.random.randrange(JITTER_NS) + extra_ns
            if in_order and copy == 0:
                pair = (sender.uid, to)
                at = max(at, self._last_arrival.get(pair, 0) + 1)
                self._last_arrival[pair] = at
            self.world.at(at, self._arrive, (sender.slot, to, data, reach, route))

    def _encode(self, message: Any) -> bytes:
        if self._encoded[0] is not message:
            self._encoded = (message, encode(message, NEWEST))
        return self._encoded[1]

    # --- arriving ---

    def _arrive(self, packet: tuple[str, str, bytes, Any, Any]) -> None:
        source, to, data, reach, route = packet
        if (source, to) in self.cuts:
            self.world.faults.count("cut message")
        else:
            reach(data, *route)

    def _reach_manager(self, data: bytes, client: Process, manager: str) -> None:
        process = self.world.slots.get(manager)
        if process is None or not process.alive:
            self._refuse(client, manager)
            return
        message = self._decode(data, decode_to_manager)
        self.world.tell(manager, f"gets {type(message).__name__} of {client.slot}", message)
        process.post(manager_events.ClientSaid(client.uid, message))

    def _reach_client(self, data: bytes, client: Process, manager: str) -> None:
        if not client.alive:
            return
        event: Any
        if isinstance(client, OwnerProcess):
            message = self._decode(data, decode_to_owner)
            event = ManagerSaid(manager, message)
        else:
            message = self._decode(data, decode_to_lookup)
            event = ManagerSaid(manager, message)
        self.world.tell(client.slot, f"gets {type(message).__name__} of {manager}", message)
        client.post(event)

    def _decode(self, data: bytes, decoder: Any) -> Any:
        if self._decoded[0] is not data:
            self._decoded = (data, decoder(data, NEWEST))
        return self._decoded[1]

    # --- breaking ---

    def _refuse(self, client: Process, manager: str) -> None:
        """Nobody listens there."""
        self._break(client, manager)

    def _break(self, client: Process, manager: str) -> None:
        event: Any = ManagerLost(manager)
        if isinstance(client, OwnerProcess):
            event = ManagerLost(manager)
        self.world.at(self.world.now + BREAK_SEEN_NS, client.post, event)

    def on_killed(self, process: Process) -> None:
        """Half of the time the host says so to whoever is connected; else it is gone with it."""
        if self.world.random.random() < 0.5:
            return
        if isinstance(process, ManagerProcess):
            for client in self.world.clients():
                self._break(client, process.slot)
        else:
            self._break_from(process)

    def _break_from(self, client: Process) -> None:
        for manager in self.world.managers():
            event = manager_events.ClientLost(client.uid)
            self.world.at(self.world.now + BREAK_SEEN_NS, manager.post, event)

    def lose_connections(self, client: Process) -> None:
        """Those of a living client break; half of the time it does not hear of it."""
        self.world.tell(client.slot, "loses its connections")
        self._break_from(client)
        if self.world.random.random() < 0.5:
            for manager in self.world.managers():
                self._break(client, manager.slot)

    def cut(self, one: str, other: str, real_ns: int, *, both_ways: bool) -> None:
        """Let nothing pass between two slots for a while."""
        pairs = [(one, other), (other, one)] if both_ways else [(one, other)]
        self.cuts.update(pairs)
        self.world.at(self.world.now + real_ns, self._mend, pairs)

    def _mend(self, pairs: list[tuple[str, str]]) -> None:
        self.cuts.difference_update(pairs)
