"""The four steps: what is served, what is refused, and what of it is in the record."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure import KeyedState, Lease
from tenure.base.instants import Instant
from tenure.base.keys import hashed_key
from tenure.cli.demo.presence import Answered, NoChecks, NotServed, Presence, Status
from tenure.cli.demo.record import RecordReader, RecordWriter, Served

ANN = "ann"
ONLINE, BUSY = Status("online", 1), Status("busy", 2)

pytestmark = pytest.mark.asyncio


class Leases:
    """Leases that the test gives and takes."""

    def __init__(self) -> None:
        self.number: int | None = 1

    def check(self, key: str, /) -> Lease | None:
        return None if self.number is None else Lease(hashed_key(key), self.number, 1)

    def holds(self, lease: Lease, /) -> bool:
        return lease.number == self.number


class Bench:
    """A presence whose clock ticks at every look, and whose work the test decides."""

    def __init__(self, directory: Path) -> None:
        self.leases = Leases()
        self.after_work: int | None = 1
        """The lease number that applies when an operation's work is done."""
        self.writer = RecordWriter(directory, "owner-1")
        self.reader = RecordReader(directory)
        self.now = 0
        self.state = KeyedState(value_type=Status)
        self.presence = Presence(self.leases, self.state, self.writer, self.clock, self.work)

    def clock(self) -> Instant:
        self.now += 1
        return Instant(self.now)

    async def work(self) -> None:
        self.now += 10
        if self.leases.number is not None:
            self.leases.number = self.after_work

    def record(self) -> list[Served]:
        return list(self.reader.new())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.writer.close()


async def test_what_was_published_is_read(bench: Bench) -> None:
    assert await bench.presence.read(ANN) == Answered(None)
    assert await bench.presence.publish(ANN, ONLINE) == Answered(ONLINE)
    assert await bench.presence.read(ANN) == Answered(ONLINE)
    assert bench.presence.served == 3


async def test_the_record_has_the_time_within_the_checks(bench: Bench) -> None:
    await bench.presence.read(ANN)
    assert bench.record() == [Served("owner-1", hashed_key(ANN), 1, Instant(1), Instant(12))]


async def test_without_a_lease_nothing_is_served(bench: Bench) -> None:
    bench.leases.number = None
    assert await bench.presence.publish(ANN, ONLINE) == NotServed(was_voided=False)
    assert (bench.presence.refused, bench.record()) == (1, [])


@pytest.mark.parametrize("afterwards", [None, 2])
async def test_an_operation_whose_lease_ends_in_the_middle_is_not_served(
    bench: Bench, afterwards: int | None
) -> None:
    """Also where a new lease has come in the place of the old."""
    bench.after_work = afterwards
    assert await bench.presence.publish(ANN, ONLINE) == NotServed(was_voided=True)
    assert (bench.presence.voided, bench.presence.served, bench.record()) == (1, 0, [])
    assert not bench.state


async def test_what_came_from_another_owner_is_served(bench: Bench) -> None:
    bench.state[ANN] = BUSY
    assert await bench.presence.read(ANN) == Answered(BUSY)
    assert await bench.presence.publish(ANN, ONLINE) == Answered(BUSY)


async def test_a_publication_that_was_overtaken_changes_nothing(bench: Bench) -> None:
    await bench.presence.publish(ANN, BUSY)
    assert await bench.presence.publish(ANN, ONLINE) == Answered(BUSY)
    assert await bench.presence.read(ANN) == Answered(BUSY)


async def test_the_broken_owner_goes_on_with_what_it_had(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    checks = NoChecks(bench.leases)
    presence = Presence(checks, bench.state, bench.writer, bench.clock, bench.work)
    await presence.publish(ANN, ONLINE)
    bench.leases.number = None
    assert await presence.read(ANN) == Answered(ONLINE)
    assert await presence.read("bob") == NotServed(was_voided=False)
    assert [each.number for each in bench.record()] == [1, 1]
    bench.writer.close()
