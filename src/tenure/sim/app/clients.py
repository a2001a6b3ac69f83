"""Owners and lookups of the library in a simulated process: their environment there, and what the
world's checkers see of them.

A client of the library is not a process of its own. But to the network, the managers and the
checkers it looks like one: like an owner whose readers see what the library's readers see, at the
end of every callback.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Generic, TypeVar

import msgspec

from tenure.base.instants import SECOND_NS, Instant
from tenure.client.lookup_engine import LookupEngine
from tenure.client.owner_engine import OwnerEngine
from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.messages import Process
from tenure.protocol.lease.owner.events import CloseRequested, Holdings
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.runtime.clock import Clock, Timers
from tenure.runtime.loops import Runner, SharedLoop
from tenure.sim.app.doors import LinkDoor, LinkTransport
from tenure.sim.app.site import ClientHost
from tenure.sim.kernel.process import SimProcess
from tenure.sim.kernel.scene import random_for
from tenure.sim.lease.processes import LeaseProcess, OwnerParty
from tenure.transport.channels import Channels
from tenure.transport.contract import Lost, Role, Transport
from tenure.transport.credentials import NOTHING
from tenure.transport.doors import Door
from tenure.transport.pool_secret import PoolSecret

M = TypeVar("M")
Deliver = Callable[[str, Any], None]


class LibraryTransport(Generic[M]):
    """A library client's end of its connections to the managers: a `Transport`."""

    def __init__(self, process: ClientHost, party: SimProcess) -> None:
        self._process = process
        self._party = party
        self._told: tuple[Deliver, Lost] | None = None

    def start(self, deliver: Callable[[str, M], None], lost: Lost) -> None:
        self._told = deliver, lost

    def send(self, manager: str, message: msgspec.Struct) -> None:
        if self._told is not None and self._process.alive:
            self._process.site.network.to_address(self._party, manager, message)

    async def close(self) -> None:
        """See `Transport.close`. The managers see the connections end."""
        if self._told is not None and self._process.alive:
            self._told = None
            self._party.alive = False
            self._process.site.network.end_connections(self._party)

    def hear(self, manager: str, message: object) -> None:
        """A message of a manager has arrived."""
        self._process.loop.call_soon(self._hear, manager, message)

    def _hear(self, manager: str, message: object) -> None:
        if self._told is not None:
            self._told[0](manager, message)

    def hear_lost(self, manager: str) -> None:
        """The connection to a manager is broken."""
        self._process.loop.call_soon(self._hear_lost, manager)

    def _hear_lost(self, manager: str) -> None:
        if self._told is not None:
            self._told[1](manager, "connection lost")


class LibraryParty(LeaseProcess):
    """A client of the library, as managers and the network see it."""

    contact: LibraryTransport[Any]

    def perform(self, action: Any) -> None:
        """Do nothing: the library performs what its machines want."""
        raise AssertionError(action)

    def on_message(self, sender: SimProcess, message: Any) -> None:
        """A manager's message has arrived."""
        self.contact.hear(sender.slot, message)

    def on_disconnected(self, peer: tuple[str, int]) -> None:
        """The connection to a manager broke."""
        self.contact.hear_lost(peer[0])


class LibraryOwner(LibraryParty, OwnerParty):
    """An `Owner` in a process, as the world sees it."""

    def __init__(self, process: ClientHost, engine: OwnerEngine) -> None:
        super().__init__(
            process.site, process.slot, process.clock, _first_machine(engine), process.on_host
        )
        self.process = process
        self.engine = engine
        self.contact = LibraryTransport(process, self)
        self._seen: object = engine.board.current

    def look(self) -> None:
        """Check what the owner's readers see."""
        current = self.engine.board.current
        if current is self._seen or not self.alive:
            return
        self._seen = current
        self.machine = self.engine.machine
        self.decided_at = self.site.now
        held = Holdings(
            journal=current.journal,
            incarnation=self.machine.view().incarnation,
            leases=current.leases,
            expires_at=Instant(current.expires_at),
        )
        self.site.checkers.on_hold(self, held)

    def post(self, event: Any) -> None:
        """The world asks it to leave, which its program does. All else the library does itself."""
        assert isinstance(event, CloseRequested), event
        self.process.ask_to_leave()

    def freeze(self, real_ns: int, *, suspended: bool = False) -> None:
        """Stop the whole process, not only this owner."""
        self.process.freeze(real_ns, suspended=suspended)

    def kill(self) -> None:
        """Kill the whole process, not only this owner."""
        self.process.kill()


class LibraryLookup(LibraryParty):
    """A `Lookup` in a process, as the network sees it."""

    def __init__(self, process: ClientHost, engine: LookupEngine) -> None:
        super().__init__(process.site, process.slot, process.clock, engine.machine)
        self.process = process
        self.engine = engine
        self.contact = LibraryTransport(process, self)


class AppEnvironment:
    """The `Environment` of one client of the library in a simulated process."""

    def __init__(self, process: ClientHost) -> None:
        self._process = process
        self._party: LibraryOwner | LibraryLookup | None = None
        self._random = random_for(process.random)
        self.clock: Clock = process.now
        self.runner: Runner = SharedLoop(process.loop)
        self.managers = process.site.manager_slots
        self.credentials = NOTHING
        self.secret = PoolSecret()

    def begins(self, engine: object) -> None:
        if not isinstance(engine, OwnerEngine | LookupEngine):
            return  # a cache: managers do not know it
        make = LibraryOwner if isinstance(engine, OwnerEngine) else LibraryLookup
        self._party = make(self._process, engine)  # type: ignore[arg-type]
        self._process.begin_client(self._party)

    def timers(self) -> Timers:
        return self._process.loop.alarm

    def random(self) -> Random:
        return self._random

    def transport(self, role: Role[M]) -> Transport[M]:
        if role.proves:  # to other processes of the pool, not to managers
            return LinkTransport(self._process, role)
        assert self._party is not None
        return self._party.contact

    def has_successor(self, waited: float) -> bool:
        """See `Environment`. Nobody can be seen here."""
        return False

    def own_process(self) -> Process | None:
        """See `Environment`. Nobody is asked to look: that is done in a thread."""
        return None

    def look(self, suspect: Process) -> Sight:
        return Sight(seen_from=None)

    def wall(self) -> float:
        """See `Environment`. It may be set back."""
        return self._process.clock.wall(self._process.site.now) / SECOND_NS

    def channels(self) -> Channels:
        return self._process.site.links.channels(self._process)

    def door(self, path: str) -> Door:
        """See `Environment`. Each is found at an address of its own."""
        return LinkDoor(self._process)


def _first_machine(engine: OwnerEngine) -> OwnerMachine:
    """A machine that is never run: the engine makes its own when it knows where it
    accepts state.
    """
    return OwnerMachine(engine.config, Random(0))
