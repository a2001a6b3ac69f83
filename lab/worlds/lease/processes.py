"""Simulated owners and lookups, which perform what their machines want, and their needs of the
world.
"""

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from lab.worlds.lease.store import Store
from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.base.noted import Noted
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.client_events import ManagerLost, ManagerSaid, TellManager
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.lookup import events as lookup_events
from tenure.protocol.lease.lookup.events import AnyRoutingTable
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.messages import (
    HandOff,
    Leased,
    LeaseRequest,
    ShortRequest,
    Sync,
    SyncResponse,
)
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.owner.lapse import Lapse
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.owner.meter import R
from tenure.protocol.lease.owner.transfer import Offer
from tenure.protocol.log.journal import Seat
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.hosts import HostProcess
from tenure.sim.kernel.process import SimProcess
from tenure.sim.lease.processes import LeaseProcess, LeaseSite, ManagerProcess, OwnerParty, Watcher

# --- what they need of their world ----------------------------------------------------------------


class LossWatcher(Watcher, Protocol):
    """Judges the actions of lookups, too."""

    def on_loss(self, lookup: "LookupProcess", ranges: Sequence[KeyRange], why: str) -> None:
        """A lookup signals loss."""
        ...

    def on_clock_changed(self, owner: "OwnerProcess") -> None:
        """An owner's broken clock has jumped."""
        ...


class Users(Protocol):
    """The users of the pools: clients of lookups, and the applications in owners."""

    def on_loss(self, lookup: "LookupProcess", ranges: Sequence[KeyRange]) -> None:
        """A client is told of a loss."""
        ...

    def on_revoke(self, owner: "OwnerProcess", revocation: int, ranges: Sequence[KeyRange]) -> None:
        """An owner's application is to let go."""
        ...


class StateMoves(Protocol):
    """Carries state from owner to owner."""

    def hand_over(self, owner: "OwnerProcess", order: HandOff) -> None:
        """Begin a hand-off by copying ahead."""
        ...

    def send_last(
        self, owner: "OwnerProcess", order: HandOff, writes: tuple[bytes, ...] = ()
    ) -> None:
        """Send the last difference, and what is known of writes."""
        ...

    def stop(self, owner: "OwnerProcess", order: HandOff) -> None:
        """Stop a hand-off at its source."""
        ...

    def decide(
        self,
        owner: "OwnerProcess",
        said: owner_events.Admit | owner_events.TurnAway | owner_events.Keep,
    ) -> None:
        """The owner's machine has decided about an offer."""
        ...

    def on_gone(self, owner: "OwnerProcess") -> None:
        """The owner's process has ended."""
        ...

    def withdrawn(self, owner: "OwnerProcess", order: HandOff) -> None:
        """Report that no cache can still hit what the owner is handing over."""
        ...

    def stop_arriving(self, owner: "OwnerProcess", key_range: KeyRange, number: int) -> None:
        """The taker no longer wants the range."""
        ...

    def write(self, owner: "OwnerProcess", key: Key, number: int) -> None:
        """A client writes a key."""
        ...

    def check(self, owner: "OwnerProcess", lease: Leased) -> None:
        """Check the state that belongs to a new lease of the owner."""
        ...

    def take_out(self, owner: "OwnerProcess", ranges: Sequence[KeyRange]) -> None:
        """Let the owner's application drop its state in these ranges."""
        ...


class Counter(Protocol):
    """Counts the load of one owner."""

    def add_load(self, request: R, now: Instant, renew_ns: int) -> R:
        """Return the request, with a report of the load if one is due."""
        ...


class OwnerSite(LeaseSite):
    """A world with simulated owners and lookups, as everything in it sees it."""

    checkers: LossWatcher
    workload: Users
    states: StateMoves
    slow_callbacks: bool
    """Whether applications sometimes take longer to let go than managers wait for it."""
    is_old_copy = False
    """Whether the journal is an old copy under its own identity. Until that is noticed and mended,
    only this is promised: that it is noticed.
    """

    @property
    @abstractmethod
    def loss_bound_ns(self) -> int:
        """How soon a loss must be signalled, counted from the last takeover."""

    @abstractmethod
    def put_back(self, copy: tuple[int, Seat, LeaseHistory]) -> None:
        """Put an old copy in the journal's place, under the very same identity."""

    @abstractmethod
    def look(self, owner: "OwnerProcess", look: owner_events.Look) -> None:
        """An owner looks at a neighbour, and says later what it saw."""

    @abstractmethod
    def start_twin(self, slot: str, of: "OwnerProcess") -> None:
        """Start an owner under another's name, in the same pool."""

    def on_routes(self, lookup: "LookupProcess") -> None:
        """A lookup has found out who serves what."""

    def owners(self) -> "list[OwnerProcess]":
        return [p for p in self.slots.values() if isinstance(p, OwnerProcess)]

    def lookups(self) -> "list[LookupProcess]":
        return [p for p in self.slots.values() if isinstance(p, LookupProcess)]

    def clients(self) -> list[SimProcess]:
        """Owners and lookups."""
        return [p for p in self.slots.values() if not isinstance(p, ManagerProcess)]

    def groups(self) -> Sequence[Sequence[SimProcess]]:
        """Managers, owners, and lookups."""
        return self.managers(), self.owners(), self.lookups()

    def owner_at(self, address: str) -> "OwnerProcess | None":
        """The owner that serves at an address, if that very process is still there."""
        process = self.slots.get(address.partition("/")[0])
        if isinstance(process, OwnerProcess) and process.machine.view().config.address == address:
            return process
        return None


# --- owners and lookups ---------------------------------------------------------------------------


class OwnerProcess(OwnerParty):
    """An owner, carried out by the world."""

    site: OwnerSite
    stops_before: ClassVar[tuple[type, ...]] = (
        TellManager,
        owner_events.Hold,
        owner_events.SendLast,
    )

    def __init__(
        self,
        site: OwnerSite,
        slot: str,
        clock: SimClock,
        machine: OwnerMachine,
        on_host: HostProcess,
    ) -> None:
        super().__init__(site, slot, clock, machine, on_host)
        self.store = Store()
        self.counting: Counter | None = None
        """Counts the load, if owners tell theirs."""
        self._lapse = Lapse()

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        match action:
            case TellManager(manager=manager, message=message):
                if self.counting is not None and isinstance(message, LeaseRequest | ShortRequest):
                    renew_ns = self.machine.view().renew_ns
                    message = self.counting.add_load(message, self.now(), renew_ns)
                self.site.network.to_address(self, manager, message)
            case owner_events.Hold(holdings=holdings):
                self._publish(holdings)
            case owner_events.Revoke(revocation=revocation, leases=leases):
                self.site.workload.on_revoke(self, revocation, [each.range for each in leases])
            case Noted():
                self.note(action)
            case owner_events.Closed():
                self.site.tell(self.slot, "closed")
                self.kill()
            case owner_events.Look():
                self.site.look(self, action)
            case owner_events.Grant():
                pass
            case owner_events.HandOver(order=order):
                self.site.tell(self.slot, "hands over", order)
                self.site.states.hand_over(self, order)
            case owner_events.SendLast(order=order):
                self.send_last(order)
            case owner_events.StopHandOver(order=order):
                self.site.tell(self.slot, "hands over no more", order)
                self.site.states.stop(self, order)
            case owner_events.Admit() | owner_events.TurnAway() | owner_events.Keep():
                self.site.states.decide(self, action)
            case owner_events.Forget(revocation=revocation, range=key_range, number=number):
                self.site.states.stop_arriving(self, key_range, number)
                self.site.workload.on_revoke(self, revocation, [key_range])

    def send_last(self, order: HandOff) -> None:
        """The owner no longer serves the range: send what is left."""
        self.site.states.send_last(self, order)

    def take_writes(self, offer: Offer, data: bytes) -> None:
        """Take what is known of the writes of a range that arrives."""
        raise AssertionError(data)  # only of owners that give read leases

    def withdraw(self, order: HandOff) -> None:
        """Take back every read lease of the range that is being handed over: nobody has one."""
        self.site.states.withdrawn(self, order)

    def keep_serving(self, order: HandOff) -> None:
        """The hand-off failed: serve the range, if it is still held."""

    def _publish(self, holdings: Holdings) -> None:
        """Let readers see new holdings, unless a reader has seen the old ones expire meanwhile:
        what was interrupted must not go on (S3).
        """
        if self._lapse.admits(holdings):
            self.site.checkers.on_hold(self, holdings)
        else:
            self.interrupt(owner_events.Lapsed())

    def on_thawed(self) -> None:
        """Let a reader's thread look, perhaps, before the machine's thread publishes what it had
        decided.
        """
        late = self.site.now >= self.believes_until
        if late and self.holdings.leases and self.site.random.random() < 0.5:
            self._lapse.is_seen = True
            self.interrupt(owner_events.Lapsed())

    def on_clock_changed(self) -> None:
        """A broken clock jumped: the owner believes for longer than it should."""
        self.site.checkers.on_clock_changed(self)

    def on_message(self, sender: SimProcess, message: Any) -> None:
        """A manager's message has arrived."""
        self.post(ManagerSaid(sender.slot, message))

    def on_disconnected(self, peer: tuple[str, int]) -> None:
        """A manager's connection is broken."""
        self.post(ManagerLost(peer[0]))


class LookupProcess(LeaseProcess):
    """A lookup, and what its readers find."""

    site: OwnerSite
    machine: LookupMachine
    stops_before = (TellManager,)

    def __init__(
        self, site: OwnerSite, slot: str, clock: SimClock, machine: LookupMachine, pool: str
    ) -> None:
        super().__init__(site, slot, clock, machine)
        self.pool = pool
        self.routes: AnyRoutingTable | None = None
        """The table that the lookup published last."""
        self.asked_at = Instant(0)
        """When the lookup sent the question that was answered last, by its own clock."""
        self._sent = (0, Instant(0))

    def find(self, key: Key) -> str | None:
        """The owner that serves a key, as the lookup's readers find it."""
        routes = self.routes
        return routes.addresses[bisect_right(routes.starts, key) - 1] if routes else None

    def found_in(self, start: Key, end: Key | None) -> tuple[str | None, ...]:
        """All that the lookup's readers find between two keys."""
        if self.routes is None:
            return (None,)
        starts = self.routes.starts
        last = len(starts) if end is None else bisect_left(starts, end)
        return self.routes.addresses[bisect_right(starts, start) - 1 : last]

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        match action:
            case TellManager(manager=manager, message=message):
                if isinstance(message, Sync) and message.sequence != self._sent[0]:
                    self._sent = (message.sequence, self.now())
                self.site.network.to_address(self, manager, message)
            case lookup_events.SignalLoss(ranges=ranges, why=why):
                self.site.tell(self.slot, "signals loss", why)
                self.site.checkers.on_loss(self, ranges, why)
                self.site.workload.on_loss(self, ranges)
            case lookup_events.Route(table=table):
                self.routes = table
                self.site.on_routes(self)
            case Noted():
                self.note(action)

    def on_message(self, sender: SimProcess, message: Any) -> None:
        """A manager's message has arrived. A lookup that is stopped takes it when it goes on."""
        if isinstance(message, SyncResponse) and message.sequence == self._sent[0]:
            self.asked_at = self._sent[1]
        self.post(ManagerSaid(sender.slot, message))

    def on_disconnected(self, peer: tuple[str, int]) -> None:
        """A manager's connection is broken."""
        self.post(ManagerLost(peer[0]))
