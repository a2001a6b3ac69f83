"""A range has no owner while its last difference is on its way, so that goes before
what is copied.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tenure import KeyRange
from tenure.client.callbacks import Callbacks
from tenure.client.environment import RealEnvironment
from tenure.client.hand_off.application import Application
from tenure.client.hand_off.giving import GivingLine
from tenure.client.hand_off.handler import Exported
from tenure.client.hand_off.taking import TakingLine
from tenure.protocol.lease.messages import HandOff
from tenure.protocol.lease.owner.giving import (
    SMALL_BYTES,
    EndServing,
    FailGiving,
    Giving,
    HaveGiven,
    ServingEnded,
    Withdraw,
)
from tenure.protocol.lease.owner.taking import Admitted, AskToAdmit, AskToKeep, EndTaking, Kept
from tenure.protocol.lease.owner.transfer import Chunk, Last, Offer, Whole
from tenure.runtime.clock import boot_clock
from tenure.testing.clock import come_to_rest
from tenure.transport.channels import Channel
from tenure.transport.in_process_channels import MemoryChannelNetwork
from tenure.wire.hand_off import decode_to_source, encode
from tests.unit.client.hand_off.stage import guards

pytestmark = pytest.mark.asyncio
FEW, MANY = 3, 24
"""Other ranges that arrive at the same owner."""
LAST = [b"%d" % i + bytes(SMALL_BYTES) for i in range(10)]
"""A last difference, in large chunks."""
BULK = b"bulk" + bytes(SMALL_BYTES)
WITHOUT_END = 10_000
TURNS = 10_000
"""After this many turns of the loop, the tests assume that something never comes."""


class State:
    """Exports `all` of it, and then what is said to be `changed`."""

    def __init__(self, *, all_of_it: list[bytes]) -> None:
        self.all = all_of_it
        self.changed: list[bytes] = []
        self.taken: list[bytes] = []

    def export_range(self, key_range: KeyRange, since: object) -> Exported:
        del key_range
        return "now", self.all if since is None else self.changed

    def import_chunk(self, key_range: KeyRange, chunk: bytes) -> None:
        del key_range
        self.taken.append(chunk)

    def discard_range(self, key_range: KeyRange) -> None:
        """Drop nothing."""


def offer_of(number: int) -> Offer:
    start, end = b"%04d" % number, b"%04d\0" % number
    return Offer(pool="rooms", journal=1, start=start, end=end, number=number, source=2, taker=1)


class Scene:
    """One owner that takes, others that give, and all in this event loop."""

    def __init__(self) -> None:
        self.network = MemoryChannelNetwork()
        self.taker = State(all_of_it=[])
        self.url = ""
        self.callbacks: list[Callbacks] = []
        self.givings: dict[GivingLine, asyncio.Task[None]] = {}
        self.copied_ahead: list[GivingLine] = []

    def application(self, state: State) -> Application:
        logger = logging.getLogger("test")
        callbacks = Callbacks("an owner", logger, boot_clock)
        callbacks.start_here()
        self.callbacks.append(callbacks)
        return Application(state, callbacks, Counter(), "an owner", logger, guards())

    async def listen(self) -> None:
        application = self.application(self.taker)

        def decide(line: TakingLine, said: AskToAdmit | AskToKeep | EndTaking) -> None:
            match said:
                case AskToAdmit():
                    line.post(Admitted())
                case AskToKeep():
                    line.post(Kept())

        async def serve(channel: Channel) -> None:
            await TakingLine(1, channel.peer, RealEnvironment(), application, decide).run(channel)

        self.url = await self.network.channels().listen("", serve)

    def give(self, number: int, state: State) -> GivingLine:
        offer = offer_of(number)
        order = HandOff(start=offer.start, end=offer.end, number=number, taker=1, address=self.url)

        def hear(line: GivingLine, said: EndServing | HaveGiven | FailGiving | Withdraw) -> None:
            if isinstance(said, EndServing):
                self.copied_ahead.append(line)

        channels, application = self.network.channels(), self.application(state)
        line = GivingLine(Giving(order, offer), RealEnvironment(), channels, application, hear)
        self.givings[line] = asyncio.create_task(line.run())
        return line


@asynccontextmanager
async def on_scene() -> AsyncIterator[Scene]:
    scene = Scene()
    await scene.listen()
    try:
        yield scene
    finally:
        tasks = list(scene.givings.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for callbacks in scene.callbacks:
            callbacks.stop()
        await come_to_rest()


def copy(scene: Scene, ranges: int) -> None:
    for number in range(ranges):
        _ = scene.give(number, State(all_of_it=WITHOUT_END * [BULK]))


async def turns_until(condition: Callable[[], bool]) -> int:
    for turn in range(TURNS):
        if condition():
            return turn
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


async def turns_of_a_pause(scene: Scene, others: int) -> int:
    """Return for how many turns of the loop nobody serves a range while others are copied."""
    copy(scene, others)
    state = State(all_of_it=[])
    giving = scene.give(others, state)
    _ = await turns_until(lambda: giving in scene.copied_ahead)
    _ = await turns_until(lambda: len(scene.taker.taken) >= others)
    state.changed = LAST
    giving.post(ServingEnded())
    return await turns_until(scene.givings[giving].done)


async def test_the_pause_of_a_range_does_not_grow_with_what_else_is_copied() -> None:
    found = {}
    for others in FEW, MANY:
        async with on_scene() as scene:
            found[others] = await turns_of_a_pause(scene, others)
            assert [chunk for chunk in scene.taker.taken if chunk != BULK] == LAST
    assert found[MANY] == found[FEW]


async def test_what_is_urgent_does_not_overtake_what_came_before_it_of_its_range() -> None:
    async with on_scene() as scene:
        copy(scene, MANY)
        channel = await scene.network.channels().connect(scene.url)
        for message in (
            offer_of(MANY),
            Chunk(data=LAST[0]),
            Chunk(data=LAST[1], is_urgent=True),
            Last(),
        ):
            await channel.send(encode(message))
        while not isinstance(decode_to_source(await channel.receive()), Whole):
            pass
        assert [chunk for chunk in scene.taker.taken if chunk != BULK] == LAST[:2]
