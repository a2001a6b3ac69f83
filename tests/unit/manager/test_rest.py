"""A manager at rest is woken only when it has something to do."""

from collections.abc import Callable, Iterable
from random import Random

import pytest

from tenure.base.instants import Instant, in_seconds, seconds
from tenure.journals.memory import MemoryJournal
from tenure.manager.engine import ManagerEngine
from tenure.observe.events import Observer
from tenure.protocol.lease.inspecting import Inspect
from tenure.protocol.lease.leader.events import ClientSaid
from tenure.protocol.lease.leader.manager import ManagerConfig
from tenure.protocol.lease.messages import (
    Held,
    Hello,
    Introduction,
    Join,
    LeaseRequest,
    LeaseResponse,
    Poke,
    Sync,
    SyncResponse,
    ToLookup,
    ToManager,
    ToOwner,
)
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.lease.timing import DEFAULT
from tenure.runtime.clock import Timer
from tenure.testing.clock import TurnedClock
from tenure.wire.lease import decode_to_lookup, decode_to_owner
from tenure.wire.lease_records import LEASE_RECORDS
from tenure.wire.versions import NEWEST

pytestmark = pytest.mark.asyncio
OWNER, LOOKUP = 1, 2
HOUR = seconds(3_600)
BEATS = HOUR // DEFAULT.beat_ns
NONCE = 7
FEW = 5


class Heard:
    """The last messages that the manager's clients heard."""

    owner: ToOwner | None = None
    lookup: ToLookup | None = None

    def send(self, connections: Iterable[int], encoded: Callable[[int], bytes | None]) -> int:
        for connection in connections:
            data = encoded(NEWEST)
            assert data is not None
            if connection == OWNER:
                told = decode_to_owner(data, NEWEST)
                self.owner = self.owner if isinstance(told, Poke | Inspect) else told
            else:
                self.lookup = decode_to_lookup(data, NEWEST)
        return 0


class Stage:
    """A manager that leads, by a clock that is turned."""

    def __init__(self) -> None:
        self.clock = TurnedClock()
        self.heard = Heard()
        self.wakes = 0
        """How often an alarm of its driver rang,"""
        self.set = 0
        """and how often one was set."""
        journal: MemoryJournal[AnyRecord, State] = MemoryJournal(LEASE_RECORDS)
        self.engine = ManagerEngine(
            ManagerConfig(url="http://m", timing=DEFAULT, first_start=True),
            journal,
            Observer("test"),
            self.heard,
            clock=self.clock,
            timers=self.alarm,
            random=Random(1),
            plans_beside=False,
        )

    def alarm(self, at: Instant, callback: Callable[[], None]) -> Timer:
        def ring() -> None:
            self.wakes += 1
            callback()

        self.set += 1
        return self.clock.alarm(at, ring)

    def say(self, connection: int, message: ToManager) -> None:
        self.engine.post(ClientSaid(connection, message))

    async def turn(self, duration_ns: int) -> None:
        await self.clock.turn(in_seconds(duration_ns))

    def begin_to_count(self) -> None:
        self.wakes = self.set = 0


class Owner:
    """Has the whole pool, and asks for it again and again."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.sequence = 0
        self.leases: LeaseResponse | None = None

    async def join(self) -> None:
        self.stage.say(OWNER, Hello(pool="rooms", token=1))
        introduction = self.stage.heard.owner
        assert isinstance(introduction, Introduction)
        self.seal = introduction
        self.stage.say(
            OWNER,
            Join(
                pool="rooms",
                kind="hashed",
                name="ann",
                address="http://ann",
                owner_nonce=NONCE,
                manager_nonce=introduction.manager_nonce,
                sequence=self._next(),
            ),
        )
        await self.hear()
        for _ in range(FEW):  # it is given all when it has shown that it lives
            await self.stage.turn(DEFAULT.renew_ns)
            await self.renew()
        assert self.leases is not None
        assert self.leases.leases

    async def renew(self) -> None:
        assert self.leases is not None
        held = tuple(
            Held(start=each.start, end=each.end, number=each.number) for each in self.leases.leases
        )
        self.stage.say(
            OWNER,
            LeaseRequest(
                pool="rooms",
                incarnation=self.leases.incarnation,
                owner_nonce=NONCE,
                manager_nonce=self.seal.manager_nonce,
                sequence=self._next(),
                journal=self.seal.journal,
                leadership=self.seal.leadership,
                held=held,
            ),
        )
        await self.hear()

    async def hear(self) -> None:
        """The answer, which may wait for the journal."""
        await self.stage.turn(0)
        found = self.stage.heard.owner
        assert isinstance(found, LeaseResponse)
        assert found.sequence == self.sequence
        self.leases = found

    def _next(self) -> int:
        self.sequence += 1
        return self.sequence


async def leading() -> Stage:
    stage = Stage()
    stage.engine.start()
    await stage.turn(DEFAULT.hold_ns)
    assert stage.engine.view.is_proven
    return stage


async def test_a_manager_without_clients_is_woken_to_beat_and_for_nothing_else() -> None:
    stage = await leading()
    stage.begin_to_count()
    await stage.turn(HOUR)
    assert BEATS - 1 <= stage.wakes <= BEATS + 1
    await stage.engine.stop()


async def test_clients_at_rest_wake_a_manager_by_their_messages_and_once_in_a_term() -> None:
    """In an hour in which nothing changes, the manager looks once in each hold which owners expire;
    a renewal or a sync sets no alarm.
    """
    stage = await leading()
    owner = Owner(stage)
    await owner.join()
    stage.begin_to_count()
    said = 0
    for number in range(HOUR // DEFAULT.renew_ns):
        before = stage.set
        await owner.renew()
        stage.say(LOOKUP, sync(owner, number + 1))
        assert isinstance(stage.heard.lookup, SyncResponse)
        assert stage.set == before
        said += 1
        await stage.turn(DEFAULT.renew_ns)
    assert said > 100
    assert stage.wakes <= BEATS + HOUR // (DEFAULT.hold_ns - DEFAULT.renew_ns) + 2
    await stage.engine.stop()


def sync(owner: Owner, number: int) -> Sync:
    return Sync(
        pool="rooms",
        sequence=number,
        journal=owner.seal.journal,
        leadership=owner.seal.leadership,
        lsn=0,
        nonce=NONCE,
    )
