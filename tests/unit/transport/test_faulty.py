"""A transport with faults: what is done to messages, and that a seed repeats it."""

from collections.abc import Callable
from random import Random

import msgspec
import pytest

from tenure.errors import ConfigurationError
from tenure.protocol.lease.messages import Hello, Poke, ToOwner
from tenure.testing.clock import TurnedClock
from tenure.transport.contract import Lost
from tenure.transport.faulty import Faults, FaultyTransport

URL = "http://manager.test"
MANY = 200


class Recorder:
    """A transport that only remembers; the test delivers."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.closed = 0

    def start(self, deliver: Callable[[str, ToOwner], None], lost: Lost) -> None:
        self.deliver, self.lost = deliver, lost

    def send(self, manager: str, message: msgspec.Struct) -> None:
        assert isinstance(message, Hello)
        self.sent.append(message.token)

    async def close(self) -> None:
        self.closed += 1


class Stage:
    def __init__(self, faults: Faults, seed: int = 1) -> None:
        self.clock = TurnedClock()
        self.inner = Recorder()
        self.delivered = 0
        self.lost: list[str] = []
        self.faulty: FaultyTransport[ToOwner] = FaultyTransport(
            self.inner, faults, Random(seed), self.clock, self.clock.alarm
        )
        self.faulty.start(self.deliver, lambda _, why: self.lost.append(why))

    def deliver(self, manager: str, message: ToOwner) -> None:
        self.delivered += 1

    async def send_many(self) -> list[int]:
        for token in range(MANY):
            self.faulty.send(URL, Hello(pool="rooms", token=token))
        await self.clock.turn(100)
        return self.inner.sent


@pytest.mark.asyncio
async def test_dropped_is_what_share_is_asked_for() -> None:
    assert await Stage(Faults(drop=1)).send_many() == []
    some = await Stage(Faults(drop=0.5)).send_many()
    assert 0.3 * MANY < len(some) < 0.7 * MANY
    assert some == sorted(some)


@pytest.mark.asyncio
async def test_doubled_messages_come_twice() -> None:
    sent = await Stage(Faults(duplicate=1)).send_many()
    assert sorted(sent) == sorted([*range(MANY), *range(MANY)])


@pytest.mark.asyncio
async def test_delayed_messages_keep_their_order() -> None:
    stage = Stage(Faults(delay_seconds=5))
    for token in range(MANY):
        stage.faulty.send(URL, Hello(pool="rooms", token=token))
    await stage.clock.turn(2.5)
    assert 0 < len(stage.inner.sent) < MANY
    await stage.clock.turn(2.5)
    assert stage.inner.sent == list(range(MANY))


@pytest.mark.asyncio
async def test_stragglers_are_overtaken() -> None:
    sent = await Stage(Faults(reorder=0.2, straggle_seconds=3)).send_many()
    assert sent != sorted(sent)
    assert sorted(sent) == list(range(MANY))


@pytest.mark.asyncio
async def test_what_is_delivered_suffers_as_well_and_the_end_of_a_connection_does_not() -> None:
    stage = Stage(Faults(drop=1))
    stage.inner.deliver(URL, Poke())
    stage.inner.lost(URL, "gone")
    assert (stage.delivered, stage.lost) == (0, ["gone"])
    stage = Stage(Faults(duplicate=1, delay_seconds=1))
    stage.inner.deliver(URL, Poke())
    await stage.clock.turn(3)
    assert stage.delivered == 2


@pytest.mark.asyncio
async def test_a_seed_repeats_its_faults() -> None:
    faults = Faults(drop=0.2, duplicate=0.2, reorder=0.2, delay_seconds=0.1)
    one, two, other = Stage(faults, 1), Stage(faults, 1), Stage(faults, 2)
    told = await one.send_many()
    assert told == await two.send_many()
    assert told != await other.send_many()


@pytest.mark.asyncio
async def test_after_close_nothing_comes_late() -> None:
    stage = Stage(Faults(delay_seconds=1))
    stage.faulty.send(URL, Hello(pool="rooms", token=1))
    await stage.faulty.close()
    await stage.clock.turn(3)
    assert (stage.inner.sent, stage.inner.closed) == ([], 1)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Faults(drop=1.5), "drop is a share from 0 to 1, not 1.5"),
        (lambda: Faults(reorder=-1), "reorder is a share from 0 to 1, not -1"),
        (lambda: Faults(delay_seconds=-2), "delay_seconds is 0 or more, not -2"),
    ],
)
def test_faults_that_cannot_be(make: Callable[[], Faults], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        make()
