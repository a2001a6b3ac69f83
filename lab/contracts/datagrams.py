"""What every transport of datagrams must do, as tests: see `tenure.transport.datagram`.

Subclass `DatagramContract`, give it fixtures `make`, which makes the transport of a node with a
seal, and `throw`, which sends bytes as anybody could, and mark it for the plugin that runs your
coroutines.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tenure.errors import LocalProtocolError
from tenure.protocol.gossip.limits import MESSAGE_BYTES
from tenure.transport.datagram import OLDER_VERSION, Datagrams, DatagramSeal, Sealed

SECRET = b"a secret of sixteen bytes or more"
CLUSTER = "mail of the house"
WALL_US = 1_700_000_000_000_000
PATIENCE_SECONDS = 10.0
HERE = "127.0.0.1:0"
Make = Callable[[DatagramSeal], Datagrams]
Throw = Callable[[str, bytes], Awaitable[None]]
"""Sends bytes to an address, from nobody that is known there."""


def seal_of(
    node: int,
    *,
    secret: bytes = SECRET,
    cluster: str = CLUSTER,
    life: int = 1,
    wall_us: int = WALL_US,
) -> DatagramSeal:
    """The seal of a node."""
    return DatagramSeal(secret, cluster, node, life, lambda: wall_us)


class Hearing:
    """A listener, and what it has heard."""

    def __init__(self, datagrams: Datagrams) -> None:
        self.datagrams = datagrams
        self.address = ""
        self._heard: asyncio.Queue[tuple[str, Sealed]] = asyncio.Queue()

    async def listen(self) -> "Hearing":
        """Begin."""
        self.address = await self.datagrams.listen(HERE, self._on_heard)
        return self

    def _on_heard(self, sender: str, sealed: Sealed) -> None:
        self._heard.put_nowait((sender, sealed))

    async def next(self) -> tuple[str, Sealed]:
        """The next datagram."""
        return await asyncio.wait_for(self._heard.get(), PATIENCE_SECONDS)

    async def dropped(self, why: str, count: int = 1) -> None:
        """Wait until so many were dropped for that reason."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.datagrams.dropped[why] < count:  # noqa: ASYNC110 - nothing is told of it
                await asyncio.sleep(0.001)


class DatagramContract:
    """The tests."""

    async def two(self, make: Make) -> tuple[Hearing, Hearing]:
        """Two nodes that know each other's addresses."""
        one, other = Hearing(make(seal_of(1))), Hearing(make(seal_of(2, wall_us=WALL_US + 500)))
        return await one.listen(), await other.listen()

    async def heard(self, one: Hearing, other: Hearing, data: bytes) -> tuple[str, Sealed]:
        """Send until it arrives: nobody promises the first."""
        for _ in range(100):
            other.datagrams.send(one.address, data)
            try:
                return await asyncio.wait_for(one.next(), 0.2)
            except TimeoutError:
                continue
        raise AssertionError("nothing arrived")

    async def test_what_is_sent_arrives_with_who_sent_it_and_its_clock(self, make: Make) -> None:
        one, other = await self.two(make)
        data = bytes(range(256)) * 4
        assert await self.heard(one, other, data) == (other.address, Sealed(data, 500))
        assert await self.heard(other, one, b"") == (one.address, Sealed(b"", -500))

    async def test_the_longest_arrives_and_a_longer_one_is_refused(self, make: Make) -> None:
        one, other = await self.two(make)
        longest = bytes(MESSAGE_BYTES)
        assert (await self.heard(one, other, longest))[1].data == longest
        with pytest.raises(LocalProtocolError, match="are allowed"):
            other.datagrams.send(one.address, longest + b"x")

    async def test_another_secret_or_cluster_is_dropped_and_counted(
        self, make: Make, throw: Throw
    ) -> None:
        one, _ = await self.two(make)
        for strange in (seal_of(2, secret=bytes(16)), seal_of(2, cluster="mail of the cat")):
            await throw(one.address, strange.seal(b"believe me"))
        await one.dropped("seal", 2)

    async def test_another_seal_is_told_if_it_comes_from_where_this_node_sends(
        self, make: Make, throw: Throw
    ) -> None:
        one, other = Hearing(make(seal_of(1))), Hearing(make(seal_of(2, secret=bytes(16))))
        await one.listen()
        await other.listen()
        told: list[str] = []
        one.datagrams.on_other_seal = told.append
        await throw(one.address, b"\1" * 200)
        other.datagrams.send(one.address, b"before it sends there")
        await one.dropped("seal", 1)
        assert not told
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not told:
                one.datagrams.send(other.address, b"who are you?")
                other.datagrams.send(one.address, b"believe me")
                await asyncio.sleep(0.01)
        assert set(told) == {other.address}

    async def test_noise_is_dropped_and_counted(self, make: Make, throw: Throw) -> None:
        one, other = await self.two(make)
        good = seal_of(3).seal(b"good")
        for noise in (b"", b"\1", bytes(40), bytes(1_400)):
            await throw(one.address, noise)
        await one.dropped("length", 4)
        await throw(one.address, b"\x09" + good[1:])
        await one.dropped("version")
        for place in range(1, len(good), 7):
            await throw(one.address, good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        await one.dropped("seal", len(range(1, len(good), 7)))
        assert (await self.heard(one, other, b"still there"))[1].data == b"still there"

    async def test_a_datagram_counts_once(self, make: Make, throw: Throw) -> None:
        one, _ = await self.two(make)
        seal = seal_of(3)
        first, second = seal.seal(b"first"), seal.seal(b"second")
        for datagram in (second, first, first, second):
            await throw(one.address, datagram)
        assert {(await one.next())[1].data, (await one.next())[1].data} == {b"first", b"second"}
        await one.dropped("replay", 2)

    async def test_one_that_many_have_overtaken_is_dropped(self, make: Make, throw: Throw) -> None:
        one, _ = await self.two(make)
        seal = seal_of(3)
        first = seal.seal(b"first")
        for _ in range(2_000):
            seal.seal(b"lost")
        await throw(one.address, seal.seal(b"last"))
        assert (await one.next())[1].data == b"last"
        await throw(one.address, first)
        await one.dropped("replay")

    async def test_a_replay_of_an_earlier_life_is_dropped(self, make: Make, throw: Throw) -> None:
        one, _ = await self.two(make)
        earlier, later = seal_of(3, life=5), seal_of(3, life=6)
        await throw(one.address, earlier.seal(b"earlier"))
        assert (await one.next())[1].data == b"earlier"
        await throw(one.address, later.seal(b"later"))
        assert (await one.next())[1].data == b"later"
        await throw(one.address, earlier.seal(b"earlier again"))
        await one.dropped("earlier life")

    async def test_the_older_seal_is_heard_of_a_member_that_has_no_other(
        self, make: Make, throw: Throw
    ) -> None:
        one, _ = await self.two(make)
        seal = seal_of(3)
        await throw(one.address, seal.seal(b"of no member", OLDER_VERSION))
        await one.dropped("older seal", 1)
        one.datagrams.follow((1, 3))
        await throw(one.address, seal.seal(b"of a member", OLDER_VERSION))
        assert (await one.next())[1].data == b"of a member"
        await throw(one.address, seal.seal(b"upgraded"))
        assert (await one.next())[1].data == b"upgraded"
        await throw(one.address, seal.seal(b"older", OLDER_VERSION))
        await one.dropped("older seal", 2)
        again = seal_of(3, life=2)
        await throw(one.address, again.seal(b"an older release again", OLDER_VERSION))
        assert (await one.next())[1].data == b"an older release again"

    async def test_with_both_seals_is_sent_while_a_member_may_know_the_older_only(
        self, make: Make
    ) -> None:
        one, other = await self.two(make)
        one.datagrams.follow((1, 2))
        await self.heard(other, one, b"nobody knows the older seal of me")
        await other.dropped("older seal")
        await self.heard(one, other, b"I know the newer")
        dropped = other.datagrams.dropped["older seal"]
        for _ in range(20):
            await self.heard(other, one, b"then you get it alone")
        assert other.datagrams.dropped["older seal"] == dropped

    async def test_what_a_node_sent_itself_is_dropped(self, make: Make, throw: Throw) -> None:
        one, _ = await self.two(make)
        await throw(one.address, seal_of(1, life=9).seal(b"I am you"))
        await one.dropped("own")

    async def test_sending_to_nobody_and_after_closing_does_nothing(self, make: Make) -> None:
        one, other = await self.two(make)
        await one.datagrams.close()
        other.datagrams.send(one.address, b"into the void")
        other.datagrams.send("nowhere.invalid:9", b"into the void")
        await other.datagrams.close()
        other.datagrams.send(one.address, b"too late")
        await other.datagrams.close()
