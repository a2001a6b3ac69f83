"""A volume of an owner: caches read what the owner owns, under the owner's term.

The owner tells its volume's server what it does: until when it may rely on its leases (V11), what
it is granted, with which quiet (V13), and what it gives up, which the server first withdraws from
caches (V12).
"""

from collections.abc import Callable
from typing import Any, assert_never

from tenure.base.instants import in_seconds
from tenure.base.noted import Noted
from tenure.base.ranges import KeyRange
from tenure.cache.cache_engine import PATH
from tenure.cache.object_keys import ObjectKeys
from tenure.cache.volume_engine import VolumeEngine
from tenure.client.read_leases import ReadsOwner
from tenure.errors import ConfigurationError
from tenure.protocol.lease.messages import HandOff, LeaseResponse
from tenure.protocol.lease.owner.events import (
    Forget,
    Grant,
    Hold,
    Holdings,
    OwnerAction,
    ReadsEnded,
    Revoke,
    StopHandOver,
)
from tenure.protocol.lease.reports import VolumeReport
from tenure.protocol.volume.server.carried_writes import CarriedWrites
from tenure.protocol.volume.server.events import (
    DrainAsked,
    Drained,
    FailWrite,
    LoadObject,
    PersistMemory,
    RaiseFence,
    RangeGranted,
    RunBody,
    ServerAction,
    ServerConfig,
    ServerEvent,
    TellCache,
    TermEnded,
    TermMoved,
    VolumeClosed,
)
from tenure.protocol.volume.server.machine import VolumeServer
from tenure.runtime.driver import Driver
from tenure.wire.volume import decode_known, encode_known


class OwnersVolume:
    def __init__(self, volume: Any, owner: ReadsOwner) -> None:  # noqa: ANN401  # of any values
        self._volume = volume
        self._shell = owner.shell
        self._clock = owner.environment.clock
        self._timers = owner.environment.timers
        self._door = owner.environment.door(PATH)
        self._listen = volume.listens(owner.address, is_reachable=self._door.is_reachable)
        self._address = volume.address
        self.reads_ns = volume.terms.term_ns
        self._board = owner.guards.board
        self.engine = VolumeEngine(volume, owner.shell, self._post, owner.guards)
        config = ServerConfig(
            terms=volume.terms, alone=False, durable=volume.durable, remembers="nothing"
        )
        self._machine = VolumeServer(config, owner.environment.random())
        self._driver: Driver[ServerEvent, ServerAction]
        self._holdings: Holdings
        self._revoked: dict[int, list[KeyRange]] = {}
        """The ranges of each revocation that caches may still hit."""
        self._withdrawing: dict[KeyRange, Callable[[], None]] = {}
        self._handing: dict[KeyRange, tuple[HandOff, Callable[[tuple[bytes, ...]], None]]] = {}
        """The ranges that are handed over, and no longer served."""
        self._carried = CarriedWrites()
        self._places: Callable[[KeyRange], KeyRange] = ObjectKeys(str, owner.kind).places
        """The server's ranges are of objects, and the owner's of keys."""

    def _post(self, event: ServerEvent) -> None:
        self._driver.post(event)

    async def open(self) -> str:
        self._driver = Driver(
            self._machine,
            self._clock,
            self._perform,
            timers=self._timers(),
            fail=self._shell.on_failure,
        )
        self._driver.start()
        try:
            url = await self._door.open(self._listen, self.engine, self._address)
        except OSError as error:
            raise ConfigurationError(
                f"no caches can be taken at {self._listen}: {error.strerror or error}. Pass "
                'Volume(listen="HOST:PORT") with an address of this host, port 0 for a free one'
            ) from error
        return self._address or url

    async def close(self) -> None:
        self.engine.stop()
        self._driver.stop()
        await self._door.close("this owner leaves")

    def check_term(self, answer: LeaseResponse) -> None:
        terms = self._volume.terms
        longest_ns = terms.told_ns(answer.term_ns)
        if terms.term_ns > longest_ns:
            why = (
                f"this Volume has term={in_seconds(terms.term_ns):g}, and owners of this pool may "
                f"count on their leases for {in_seconds(answer.term_ns):g} s: caches can have "
                f"{in_seconds(longest_ns):g} s at most. Pass a shorter term to Volume, or give the "
                "managers a preset with a longer one"
            )
            self._shell.fail_entering(ConfigurationError(why))

    # --- what the owner does ---

    def perform(self, action: OwnerAction) -> None:
        match action:
            case Hold(holdings=holdings):
                self._holdings = holdings
                self._post(TermMoved(holdings.expires_at, holdings.reads_ns))
            case Grant(leases=leases):
                for lease in leases:
                    key_range = self._places(lease.range)
                    known = self._carried.take(key_range, lease.handed)
                    granted = RangeGranted(
                        range=key_range,
                        number=lease.number,
                        history=self._holdings.journal,
                        quiet_ns=lease.quiet_ns,
                        known=known,
                    )
                    self._post(granted)
            case Revoke(revocation=revocation, leases=leases):
                ranges = [self._places(lease.range) for lease in leases]
                self._revoked[revocation] = [*ranges]
                for each in ranges:
                    self._post(DrainAsked(each, served=False))
                self._end_reads()
            case Forget(range=key_range, number=number):
                self._carried.forget(self._places(key_range), number)
            case StopHandOver(order=order):
                self._keep_serving(order)
            case _:
                pass  # it concerns no cache

    def withdraw(self, order: HandOff, then: Callable[[], None]) -> None:
        key_range = self._places(order.range)

        def begin() -> None:
            self._withdrawing[key_range] = then
            self._post(DrainAsked(key_range, served=True))

        self._shell.call(begin)

    def hand_over(self, order: HandOff, then: Callable[[tuple[bytes, ...]], None]) -> None:
        key_range = self._places(order.range)
        self._handing[key_range] = order, then
        self._post(DrainAsked(key_range, served=False))

    def take_writes(self, key_range: KeyRange, number: int, data: bytes) -> None:
        known = decode_known(data)
        places = self._places(key_range)
        self._shell.call(lambda: self._carried.add(places, number, known))

    def keep_serving(self, order: HandOff) -> None:
        self._shell.call(lambda: self._keep_serving(order))

    def _keep_serving(self, order: HandOff) -> None:
        """Caches may have leases again, where it is still held."""
        key_range = self._places(order.range)
        self._withdrawing.pop(key_range, None)
        context = self._machine.context
        for piece, serving in context.served.within(key_range):
            again = RangeGranted(range=piece, number=serving.number, history=context.history)
            self._post(again)

    def report(self) -> VolumeReport:
        return self.engine.report(self._clock(), self._machine.context)

    # --- what its server does ---

    def _perform(self, action: ServerAction) -> None:
        match action:
            case TellCache() | LoadObject() | RunBody() | FailWrite() | Noted():
                self.engine.perform(action)
            case Drained():
                self._on_drained(action)
            case TermEnded():
                self._board.lapse()
            case PersistMemory() | RaiseFence() | VolumeClosed():
                raise AssertionError(action)  # only of servers that stand alone
            case _:
                assert_never(action)

    def _on_drained(self, drained: Drained) -> None:
        key_range = drained.range
        then = self._withdrawing.pop(key_range, None)
        if then is not None:
            then()
        if drained.served:
            return
        if key_range in self._handing:
            order, tell = self._handing.pop(key_range)
            if drained.known is not None:  # it may come back
                self._carried.add(key_range, order.number, drained.known)
            tell(() if drained.known is None else encode_known(drained.known))
        for ranges in self._revoked.values():
            if key_range in ranges:
                ranges.remove(key_range)
        self._end_reads()

    def _end_reads(self) -> None:
        ended = [revocation for revocation, left in self._revoked.items() if not left]
        for revocation in ended:  # collect all before the first call, which may come back here
            del self._revoked[revocation]
        for revocation in ended:
            self._shell.driver.post(ReadsEnded(revocation))
