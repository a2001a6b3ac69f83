"""Connections between members: to whom they lead, and how much waits there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tenure.base.keys import KEY_BYTES
from tenure.errors import LeaseLost, ValueTypeError
from tenure.protocol.entity.key_line import MOST_BYTES, EntityCall
from tenure.protocol.entity.messages import EntityAsk, EntityReply
from tenure.testing.clock import come_to_rest
from tenure.transport.channels import Channel, ChannelLost
from tenure.transport.in_process_channels import (
    MESSAGES_UNDER_WAY,
    ChannelEnd,
    MemoryChannelNetwork,
)
from tenure.transport.link import GatedAnswer, Serve, Unconnected, always
from tenure.transport.link_bounds import LINK_LIMITS, LinkLimits
from tenure.transport.links import HELLO, Links
from tenure.wire.entity import decode, encode

pytestmark = pytest.mark.asyncio
CALL = EntityCall("key", b"", "name", b"")
SECONDS = 10
LARGE = b"x" * 100_000


class Members:
    """Members at one network, each of which answers with its name."""

    def __init__(self) -> None:
        self.network = MemoryChannelNetwork()
        self.links: list[Links] = []

    async def enter(self, name: bytes, serve: Serve | None = None, **limits: float) -> Links:
        async def say_name(call: EntityCall) -> GatedAnswer:
            del call
            return name, always

        made = Links(
            self.network.channels(),
            serve or say_name,
            lambda _: None,
            LinkLimits(**limits),  # type: ignore[arg-type]  # ints and floats
        )
        await made.listen("127.0.0.1:0")
        self.links.append(made)
        return made

    async def stranger(self, at: Links, says: str) -> Channel:
        """A channel whose other end says this URL of itself, and has been answered."""
        channel = await self.network.connect(at.url)
        await channel.send(encode(EntityAsk(1, EntityCall("", b"", HELLO, says.encode()))))
        assert decode(await channel.receive()) == EntityReply(1, b"")
        return channel


@asynccontextmanager
async def members() -> AsyncIterator[Members]:
    made = Members()
    try:
        async with asyncio.timeout(SECONDS):
            yield made
    finally:
        for each in made.links:
            await each.close()


async def test_who_says_a_members_url_of_itself_gets_no_call_to_that_member() -> None:
    async with members() as all_of_them:
        one, two = await all_of_them.enter(b"one"), await all_of_them.enter(b"two")
        for url in (one.url, two.url):
            await all_of_them.stranger(one, url)
        assert await (await one.link(one.url)).ask(CALL) == b"one"
        assert await (await one.link(two.url)).ask(CALL) == b"two"


async def test_who_says_a_url_at_which_nobody_listens_gets_no_calls_for_it() -> None:
    async with members() as all_of_them:
        one = await all_of_them.enter(b"one")
        await all_of_them.stranger(one, "http://gone.test")
        with pytest.raises(Unconnected, match="nothing listens"):
            await one.link("http://gone.test")


async def test_from_a_peer_that_reads_no_answers_no_more_calls_are_read() -> None:
    served = 0

    async def serve(call: EntityCall) -> GatedAnswer:
        nonlocal served
        served += 1
        return LARGE, always

    async with members() as all_of_them:
        one = await all_of_them.enter(b"one", serve, read_bytes=20 * len(LARGE))
        channel = await all_of_them.network.connect(one.url)
        with pytest.raises(TimeoutError):
            await _ask_for_ever(channel)
        before = served
        assert before < 20 + 2 * MESSAGES_UNDER_WAY
        for number in range(before):
            assert decode(await channel.receive()) == EntityReply(number, LARGE)
        assert decode(await channel.receive()) == EntityReply(before, LARGE), "there is room again"


async def test_of_one_connection_only_so_many_calls_are_answered_at_once() -> None:
    begun, go_on = 0, asyncio.Event()

    async def serve(call: EntityCall) -> GatedAnswer:
        nonlocal begun
        begun += 1
        await go_on.wait()
        return b"", always

    async with members() as all_of_them:
        one = await all_of_them.enter(b"one", serve, asks=5, asks_of_an_address=8)
        mine, others = [await all_of_them.network.connect(one.url) for _ in range(2)]
        for channel, most in ((mine, 5), (others, 8)):  # they come from one address
            with pytest.raises(TimeoutError):
                await _ask_for_ever(channel)
            assert begun == most
        go_on.set()
        for channel in mine, others:
            assert decode(await channel.receive()) == EntityReply(0, b"")


async def test_a_peer_that_reads_nothing_for_too_long_is_disconnected() -> None:
    async def serve(call: EntityCall) -> GatedAnswer:
        del call
        return LARGE, always

    async with members() as all_of_them:
        one = await all_of_them.enter(b"one", serve, stuck_seconds=0.02)
        channel = await all_of_them.network.connect(one.url)
        with pytest.raises(ChannelLost):
            await _ask_for_ever(channel, seconds=SECONDS)


async def test_answers_to_calls_already_begun_end_a_connection_that_reads_none_of_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    go_on = asyncio.Event()

    async def serve(call: EntityCall) -> GatedAnswer:
        if call.method == "name":
            return b"one", always
        await go_on.wait()
        return LARGE, always

    sizes = {"most_bytes": 20 * len(LARGE), "most_bytes_of_an_address": 30 * len(LARGE)}
    async with members() as all_of_them:
        one = await all_of_them.enter(b"one", serve, **sizes)
        two = await all_of_them.enter(b"two")
        link = await two.link(one.url)
        channel = await all_of_them.network.connect(one.url)
        for number in range(40):
            call = EntityCall("key", b"", "wait", b"")
            await channel.send(encode(EntityAsk(number, call)))
        assert await link.ask(CALL) == b"one"
        go_on.set()
        with pytest.raises(ChannelLost):
            await _ask_for_ever(channel, seconds=SECONDS)
        assert "bytes wait" in caplog.text
        assert await link.ask(CALL) == b"one", "others from its address are served"


async def test_calls_to_a_member_that_reads_nothing_are_not_kept_without_bound() -> None:
    async with members() as all_of_them:
        one = await all_of_them.enter(b"one", read_bytes=20 * len(LARGE), stuck_seconds=SECONDS)
        deaf = asyncio.Event()

        async def serve(channel: Channel) -> None:
            del channel
            await deaf.wait()

        url = all_of_them.network.listen(serve)
        link = await one.link(url)
        calls = [link.ask(EntityCall("key", b"", "name", LARGE)) for _ in range(40)]
        refused = [each for each in calls if each.done()]
        assert 20 <= len(refused) < 40
        for each in refused:
            with pytest.raises(Unconnected, match="not read"):
                await each
        for each in calls:
            each.cancel()
        deaf.set()


async def _ask_for_ever(channel: Channel, seconds: float = 0.2) -> None:
    async with asyncio.timeout(seconds):
        number = 0
        while True:
            await channel.send(encode(EntityAsk(number, EntityCall("key", b"", "ask", b""))))
            number += 1


async def test_what_is_asked_in_one_turn_is_handed_over_together_and_each_by_its_gate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A lease that is lost meanwhile holds back what depends on it, and nothing else."""
    async with members() as all_of_them:
        one, two = await all_of_them.enter(b"one"), await all_of_them.enter(b"two")
        link = await one.link(two.url)
        assert await link.ask(CALL) == b"two"
        await come_to_rest()
        together: list[int] = []
        send = ChannelEnd.send

        async def counted(end: ChannelEnd, *messages: bytes) -> None:
            together.append(len(messages))
            await send(end, *messages)

        monkeypatch.setattr(ChannelEnd, "send", counted)
        is_held = True
        answers = [link.ask(CALL, always if n % 2 else lambda: is_held) for n in range(10)]
        is_held = False
        found = await asyncio.gather(*answers, return_exceptions=True)
        assert found[1::2] == 5 * [b"two"]
        assert all(isinstance(each, LeaseLost) for each in found[::2])
        assert together[0] == 5


async def test_a_peer_that_reads_slowly_is_not_one_that_reads_nothing() -> None:
    """Its patience begins anew with what is sent next."""
    async with members() as all_of_them:
        one, two = await all_of_them.enter(b"one"), await all_of_them.enter(b"two")
        link = await one.link(two.url)
        assert await link.ask(CALL) == b"two"
        assert link._watches is not None
        before = link._watches.when()
        link._sends_since = one_second_ago = asyncio.get_running_loop().time() - 1
        link._look()
        assert not link.is_lost
        assert link._watches.when() == one_second_ago + LINK_LIMITS.stuck_seconds
        assert link._watches.when() != before
        link._sends_since = one_second_ago - LINK_LIMITS.stuck_seconds
        link._look()
        await come_to_rest()
        assert link.is_lost


async def test_a_link_that_led_nowhere_is_ended_and_costs_nothing_more() -> None:
    async with members() as all_of_them:
        one, two = await all_of_them.enter(b"one"), await all_of_them.enter(b"two")
        link = await one.link(two.url)
        assert await link.ask(CALL) == b"two"
        await come_to_rest()  # its hello is answered
        one.let_go(two.url)
        assert one.to(two.url) is None
        assert one._links == {}
        await come_to_rest()
        assert link.is_lost
        assert await (await one.link(two.url)).ask(CALL) == b"two", "and is made again when needed"


async def test_a_link_on_which_something_is_asked_stays() -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def slow(call: EntityCall) -> GatedAnswer:
        del call
        asked.set()
        await may_answer.wait()
        return b"late", always

    async with members() as all_of_them:
        one, two = await all_of_them.enter(b"one"), await all_of_them.enter(b"two", slow)
        answer = (await one.link(two.url)).ask(CALL)
        await asked.wait()
        one.let_go(two.url)
        may_answer.set()
        assert await answer == b"late"


LONG = [
    EntityCall("x" * (KEY_BYTES + 1), b"", "name", b""),
    EntityCall("x", b"", "name", b"", (("rooms", "x" * (KEY_BYTES + 1)),)),
    EntityCall("x", b"", "name", bytes(MOST_BYTES)),
]


@pytest.mark.parametrize("call", LONG, ids=["its key", "a key of its chain", "its bytes"])
async def test_what_the_other_side_cannot_read_is_not_sent_and_other_calls_go_on(
    call: EntityCall,
) -> None:
    """Keys of entities are often what users of an application have typed."""
    answers: asyncio.Queue[bytes] = asyncio.Queue()

    async def answer_later(_: EntityCall) -> GatedAnswer:
        return await answers.get(), always

    async with members() as all_of_them:
        one = await all_of_them.enter(b"one")
        two = await all_of_them.enter(b"two", answer_later)
        link = await one.link(two.url)
        under_way = asyncio.ensure_future(link.ask(CALL))
        with pytest.raises(ValueTypeError, match="cannot be sent"):
            await link.ask(call)
        answers.put_nowait(b"two")
        assert await under_way == b"two"
