"""Owners with a volume: the machine of an owner and that of a server, in one process.

The owner's belief bounds the leases that the server may give (V11). Ranges that the owner gives up
are withdrawn first (V12), and ranges that it is granted come with a quiet if their last owner is
dead (V13).
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, get_args

from lab.worlds.lease.processes import OwnerProcess, OwnerSite
from lab.worlds.volume.processes import SERVERS_STOP_BEFORE, AnyServer, VolumeSite
from lab.worlds.volume.store import Fence
from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.base.machine import Output
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.messages import HandOff, Leased
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner.events import Holdings, OwnerView
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.owner.transfer import Offer
from tenure.protocol.volume.messages import VolumeMessage
from tenure.protocol.volume.server import events as server_events
from tenure.protocol.volume.server.carried_writes import CarriedWrites
from tenure.protocol.volume.server.machine import VolumeServer
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.hosts import HostProcess
from tenure.sim.kernel.process import SimProcess
from tenure.wire.volume import decode_known, encode_known

OF_SERVERS = get_args(server_events.ServerEvent)
BY_SERVERS = (
    server_events.TellCache,
    server_events.LoadObject,
    server_events.RunBody,
    server_events.FailWrite,
)


class OwnerAndServer:
    """The machines of an owner and of its server, as one machine."""

    def __init__(self, owner: OwnerMachine, server: VolumeServer) -> None:
        self.owner = owner
        self.server = server
        self._owner_wakes_at = self._server_wakes_at = FAR_FUTURE

    def handle(self, now: Instant, event: Any) -> Output[Any]:
        """Give the event to the machine that it is meant for; first the other does what is due."""
        if isinstance(event, OF_SERVERS):
            due: Sequence[Any] = self._advance_owner(now) if now >= self._owner_wakes_at else ()
            actions: Sequence[Any]
            actions, self._server_wakes_at = self.server.handle(now, event)
        else:
            due = self._advance_server(now) if now >= self._server_wakes_at else ()
            actions, self._owner_wakes_at = self.owner.handle(now, event)
        return Output([*due, *actions], min(self._owner_wakes_at, self._server_wakes_at))

    def advance(self, now: Instant) -> Output[Any]:
        """Let both machines look at the time."""
        actions = [*self._advance_owner(now), *self._advance_server(now)]
        return Output(actions, min(self._owner_wakes_at, self._server_wakes_at))

    def _advance_owner(self, now: Instant) -> Sequence[Any]:
        actions, self._owner_wakes_at = self.owner.advance(now)
        return actions

    def _advance_server(self, now: Instant) -> Sequence[Any]:
        actions, self._server_wakes_at = self.server.advance(now)
        return actions

    def view(self) -> OwnerView:
        """The view of the owner."""
        return self.owner.view()

    def invariants(self) -> None:
        """Check the invariants of both machines."""
        self.owner.invariants()
        self.server.invariants()


class OwnedSite(OwnerSite, VolumeSite):
    """A world of caches with owners, as everything in it sees it."""

    @abstractmethod
    def rank(self, history: int) -> int:
        """The rank of a history, in the order in which histories began."""


class VolumeOwner(OwnerProcess, AnyServer):
    """An owner that takes caches."""

    site: OwnedSite
    stops_before = (*OwnerProcess.stops_before, *SERVERS_STOP_BEFORE)

    def __init__(
        self,
        site: OwnedSite,
        slot: str,
        clock: SimClock,
        machine: OwnerAndServer,
        on_host: HostProcess,
    ) -> None:
        super().__init__(site, slot, clock, machine, on_host)  # type: ignore[arg-type]
        self.volume = machine.server
        self._revoked: dict[int, list[KeyRange]] = {}
        """The ranges of each revocation that caches may still hit."""
        self._withdrawing: dict[KeyRange, HandOff] = {}
        self._handing: dict[KeyRange, HandOff] = {}
        """The ranges that are being handed over, and are no longer served."""
        self._carried = CarriedWrites()
        self._lost: RangeMap[int] = RangeMap(0)
        """The number of the lease under which the state of a key was lost; 0 if it is there."""

    def fence(self, number: int) -> Fence:
        """The fence under a number of this owner's history."""
        return self.site.rank(self.volume.context.history), number

    def writable(self, keys: list[Key]) -> list[Key]:
        """The keys that are served here."""
        return [key for key in keys if self.volume.context.served[key] is not None]

    def before_load(self, key: Key, fence: Fence) -> None:
        """Lose the state of a key that died with its owner, before it is read."""
        store = self.site.store
        if not self._lost[key] or fence[1] != self._lost[key] or not store.takes(fence, key):
            return
        self.before_store(key)
        store.write(fence, key, self.site.applications.lose(key))
        self.site.judge.on_stored(key)

    def before_store(self, key: Key) -> None:
        """Keep what is written from being lost before a later read."""
        self._lost.assign(KeyRange(key, key + b"\0"), 0)

    def on_message(self, sender: SimProcess, message: Any) -> None:
        """A message of a cache or of a manager has arrived."""
        if isinstance(message, VolumeMessage):
            self.hear(message)
        else:
            super().on_message(sender, message)

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        if isinstance(action, BY_SERVERS):
            self.serve(action)
            return
        if isinstance(action, server_events.Drained):
            self._on_drained(action)
            return
        if isinstance(action, server_events.TermEnded):
            if self.holdings.leases:
                self._lapse.is_seen = True
                self.interrupt(owner_events.Lapsed())
            return
        super().perform(action)
        match action:
            case owner_events.Hold(holdings=holdings):
                self.post(server_events.TermMoved(holdings.expires_at, holdings.reads_ns))
            case owner_events.Grant(leases=leases):
                for lease in leases:
                    self._begin(self.holdings, lease)
            case owner_events.Revoke(revocation=revocation, leases=leases):
                self._revoked[revocation] = [lease.range for lease in leases]
                for lease in leases:
                    self.post(server_events.DrainAsked(lease.range, served=False))
            case owner_events.Forget(range=key_range, number=number):
                self._carried.forget(key_range, number)
            case owner_events.StopHandOver(order=order):
                self.keep_serving(order)

    def _begin(self, holdings: Holdings, lease: Leased) -> None:
        known = self._carried.take(lease.range, lease.handed)
        self.site.judge.on_granted(self, lease, known)
        is_lost = known is None and not self.volume.config.durable
        self._lost.assign(lease.range, lease.number if is_lost else 0)
        granted = server_events.RangeGranted(
            range=lease.range,
            number=lease.number,
            history=holdings.journal,
            quiet_ns=lease.quiet_ns,
            known=known,
        )
        self.post(granted)

    # --- what goes ---

    def send_last(self, order: HandOff) -> None:
        """Stop serving the range; what is known of its writes goes along."""
        self._handing[order.range] = order
        self.post(server_events.DrainAsked(order.range, served=False))

    def take_writes(self, offer: Offer, data: bytes) -> None:
        """The knowledge of the writes of a range has arrived."""
        self._carried.add(offer.range, offer.number, decode_known(data))

    def withdraw(self, order: HandOff) -> None:
        """Take back every read lease on the range that is to be handed over."""
        self._withdrawing[order.range] = order
        self.post(server_events.DrainAsked(order.range, served=True))

    def keep_serving(self, order: HandOff) -> None:
        """The hand-over has stopped: caches may have leases again, if the range is still held."""
        self._withdrawing.pop(order.range, None)
        context = self.volume.context
        for piece, serving in context.served.within(order.range):
            granted = server_events.RangeGranted(
                range=piece, number=serving.number, history=context.history
            )
            self.post(granted)

    def _on_drained(self, drained: server_events.Drained) -> None:
        if drained.served:
            order = self._withdrawing.pop(drained.range, None)
            if order is not None:
                self.site.states.withdrawn(self, order)
            return
        handing = self._handing.pop(drained.range, None)
        if handing is not None:
            writes: tuple[bytes, ...] = ()
            if drained.known is not None:
                self._carried.add(handing.range, handing.number, drained.known)
                writes = encode_known(drained.known)
            self.site.states.send_last(self, handing, writes)
        for ranges in self._revoked.values():
            if drained.range in ranges:
                ranges.remove(drained.range)
        ended = [revocation for revocation, left in self._revoked.items() if not left]
        for revocation in ended:  # all before the first is told: telling may come back here
            del self._revoked[revocation]
        for revocation in ended:
            self.post(owner_events.ReadsEnded(revocation))
