"""Whatever a client, a store or an application does wrong: a clear error, and nothing stale."""

import asyncio
from typing import Any

import msgspec
import pytest

from tenure import (
    MISSING,
    Cache,
    CacheServer,
    ConfigurationError,
    KeyTypeError,
    LoadFailed,
    OutcomeUnknown,
    Unreachable,
    UsageError,
    ValueTypeError,
    Volume,
)
from tenure.protocol.volume.limits import FETCHES_OF_A_READER, LISTED
from tenure.protocol.volume.messages import (
    Fetch,
    Invalidate,
    Listed,
    Reconnect,
    Reconnected,
    RequestRefused,
    ToVolumeServer,
    Write,
    WriteDone,
)
from tenure.wire.versions import NEWEST
from tenure.wire.volume import decode_to_cache, encode_volume
from tests.unit.cache.stage import URL, Stage, stage

pytestmark = pytest.mark.asyncio


class RawClient:
    """A client that says whatever a test wants said."""

    def __init__(self, it: Stage, newest: int = NEWEST) -> None:
        self.loop = it.cluster._loop
        self.newest = newest
        self.heard: list[Any] = []
        self.closed = ""
        self.reader: dict[str, Any] = {}
        self._connection = it.cluster._now(self._connect(it))

    async def _connect(self, it: Stage) -> Any:  # noqa: ANN401
        connection = it.network.connect(URL, self)
        assert connection is not None
        return connection

    def arrived(self, connection: object, data: bytes) -> None:
        del connection
        self.heard.append(decode_to_cache(data, NEWEST))

    def ended(self, connection: object, why: str) -> None:
        del connection
        self.closed = why

    def send(self, data: bytes) -> None:
        self._connection.send_to_manager(data)

    def say(self, message: ToVolumeServer) -> None:
        self.send(encode_volume(message, NEWEST))

    async def come_on_record(self, it: Stage, client: int = 7) -> None:
        self.say(Reconnect(client=client, sequence=1, history=0))
        await it.turn(0)
        answer = self.heard.pop()
        assert isinstance(answer, Reconnected)
        self.reader = {"client": client, "epoch": answer.epoch, "reader": answer.reader}

    def fetch(self, sequence: int, key: bytes = b"a") -> Fetch:
        return Fetch(**self.reader, sequence=sequence, key=key)


# --- clients ---


async def test_a_client_is_answered_where_it_spoke_last() -> None:
    """Its earlier connection ends later than the next one begins."""
    async with stage() as it:
        volume = await it.serve()
        earlier, later = RawClient(it), RawClient(it)
        await earlier.come_on_record(it)
        later.say(earlier.fetch(2))
        await it.turn(0)
        earlier.send(b"")
        await it.turn(0)
        assert "empty" in earlier.closed
        assert len(later.heard) == 1
        writing = asyncio.ensure_future(volume.changed("a"))
        await it.turn(0)
        assert isinstance(later.heard[-1], Invalidate)
        await it.after(4, writing)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "an empty message"),
        (bytes([NEWEST]) + b"\xc1", "malformed"),
        (bytes([NEWEST]) + b"\x91\xa3Bye", "malformed"),
        (bytes([99]) + b"\x91\xa3Bye", "protocol version 99"),
    ],
)
async def test_who_says_what_cannot_be_read_is_told_why(data: bytes, why: str) -> None:
    async with stage() as it:
        await it.serve()
        client = RawClient(it)
        client.send(data)
        await it.turn(0)
        assert why in client.closed
        assert await (await it.enter()).get("a") == "old"


async def test_a_client_of_before_there_were_caches_is_told_so() -> None:
    async with stage() as it:
        await it.serve()
        client = RawClient(it, newest=1)
        await it.turn(0)
        assert "caches are of protocol version 2" in client.closed


async def test_a_client_that_lists_a_million_entries_is_told_why() -> None:
    async with stage() as it:
        await it.serve()
        client = RawClient(it)
        listed = (Listed(key=b"a", number=1, count=1),) * 1_000_000
        client.say(Reconnect(client=1, sequence=1, history=2, listed=listed))
        await it.turn(0)
        assert f"`array` of length <= {LISTED}" in client.closed


async def test_one_connection_speaks_for_one_client() -> None:
    async with stage() as it:
        await it.serve()
        client = RawClient(it)
        await client.come_on_record(it)
        client.say(Reconnect(client=8, sequence=1, history=0))
        await it.turn(0)
        assert "another's message" in client.closed


async def test_what_comes_twice_or_late_is_ignored_and_counted() -> None:
    async with stage() as it:
        volume = it.volume()
        server = it.server(volume)
        await it._within.enter_async_context(server)
        await it.turn(3.5)
        client = RawClient(it)
        await client.come_on_record(it)
        write = Write(**client.reader, sequence=2, key=b"a", value=msgspec.msgpack.encode("x"))
        for _ in range(3):
            client.say(write)
        client.say(Reconnect(client=7, sequence=1, history=0))
        await it.turn(0)
        assert it.fences == [1]
        assert [type(each) for each in client.heard] == [WriteDone]
        assert server.stats()["old request"] == 3


async def test_a_client_that_never_acknowledges_holds_a_write_up_for_its_lease_only() -> None:
    """C3."""
    async with stage() as it:
        volume = await it.serve()
        client = RawClient(it)
        await client.come_on_record(it)
        client.say(client.fetch(2))
        await it.turn(0)
        assert client.heard.pop().lease_ns > 0
        changing = asyncio.ensure_future(volume.changed("a"))
        await it.turn(3.2)
        assert not changing.done()
        await it.turn(0.1)
        assert changing.done()
        await changing


async def test_a_client_that_floods_is_refused_and_others_are_served() -> None:
    async with stage() as it:
        gate = asyncio.Event()

        async def load(key: str) -> str:
            if key.startswith("slow"):
                await gate.wait()
            return key

        await it.serve(it.volume(load=load))
        client = RawClient(it)
        await client.come_on_record(it)
        for i in range(FETCHES_OF_A_READER + 500):
            client.say(client.fetch(2 + i, b"slow%d" % i))
        await it.turn(0)
        refused = [each for each in client.heard if isinstance(each, RequestRefused)]
        assert len(refused) == 500
        assert {each.why for each in refused} == {"too many"}
        assert await (await it.enter()).get("a") == "a"
        gate.set()


# --- load and store ---


async def test_a_load_that_raises_is_told_and_the_next_may_succeed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with stage() as it:
        await it.serve(it.volume(load=it.rows.__getitem__))
        cache = await it.enter()
        with pytest.raises(LoadFailed, match="'zz' could not be read: KeyError: 'zz'"):
            await cache.get("zz")
        assert cache.peek("zz") is MISSING
        assert await cache.get("a") == "old"
    assert any(each.endswith(" notes: load failed: KeyError: 'zz'") for each in caplog.messages)


async def test_a_load_that_returns_what_cannot_be_sent() -> None:
    async with stage() as it:
        it.rows = {"a": object(), "large": "x" * 5_000_000, "number": 7}
        await it.serve()
        cache = await it.enter()
        with pytest.raises(LoadFailed, match=r"ValueTypeError.*type object"):
            await cache.get("a")
        with pytest.raises(LoadFailed, match=r"5000.* bytes"):
            await cache.get("large")
        with pytest.raises(LoadFailed, match="Expected `str`, got `int`"):
            await cache.get("number")


async def test_a_load_that_never_returns_blocks_its_readers_only() -> None:
    async with stage() as it:
        gate = asyncio.Event()

        async def load(key: str) -> str:
            if key == "stuck":
                await gate.wait()
            return key

        await it.serve(it.volume(load=load))
        cache = await it.enter()
        reading = asyncio.ensure_future(cache.get("stuck"))
        await it.turn(1)
        assert await cache.get("b") == "b"
        await it.turn(5)
        with pytest.raises(Unreachable, match="'stuck' was not read"):
            await reading
        gate.set()


async def test_a_store_that_raises_leaves_the_outcome_unknown() -> None:
    def store(key: str, value: str, fence: int) -> None:
        raise OSError("disk full")

    async with stage() as it:
        await it.serve(it.volume(store=store))
        cache = await it.enter()
        await cache.get("a")
        with pytest.raises(OutcomeUnknown, match=r"'a' was begun, .*OSError: disk full"):
            await cache.write("a", "x")
        assert cache.peek("a") is MISSING
        assert await cache.get("a") == "old"


async def test_a_volume_without_store_takes_no_writes_of_caches() -> None:
    async with stage() as it:
        await it.serve(it.volume(store=None))
        cache = await it.enter()
        with pytest.raises(OutcomeUnknown, match="has no store"):
            await cache.write("a", "x")


async def test_who_gives_up_waiting_for_an_answer_holds_up_nobody_else() -> None:
    async with stage() as it:
        gate = asyncio.Event()

        async def load(key: str) -> str:
            await gate.wait()
            return key

        async def store(key: str, value: str, fence: int) -> None:
            await gate.wait()

        await it.serve(it.volume(load=load, store=store))
        cache = await it.enter()
        given_up = [asyncio.ensure_future(each) for each in (cache.get("a"), cache.write("b", "x"))]
        reading = asyncio.ensure_future(cache.get("a"))
        await it.turn(0.1)
        for each in given_up:
            each.cancel()
        await it.turn(0.1)
        gate.set()
        assert await reading == "a"
        await cache.write("b", "y")
        assert await cache.get("b") == "y"
        assert all(each.cancelled() for each in given_up)


# --- bodies ---


async def test_a_body_that_raises_may_have_written() -> None:
    """The count goes up all the same (V5): a cache with the old value asks again."""
    async with stage() as it:
        volume = await it.serve()
        cache = await it.enter()
        await cache.get("a")

        async def body() -> None:
            async with volume.write("a"):
                it.rows["a"] = "half"
                raise OSError

        with pytest.raises(OSError):  # noqa: PT011  # it is the body's own
            await body()
        assert cache.peek("a") is MISSING
        assert await cache.get("a") == "half"


async def test_a_body_that_is_cancelled_holds_nobody_up() -> None:
    async with stage() as it:
        volume = await it.serve()

        async def body() -> None:
            async with volume.write("a"):
                await asyncio.sleep(1000)

        running = asyncio.ensure_future(body())
        await it.turn(0)
        running.cancel()
        await it.turn(0)
        assert running.cancelled()
        await volume.changed("a")


async def test_who_gives_up_waiting_for_a_write_holds_nobody_up() -> None:
    async with stage() as it:
        volume = await it.serve()
        async with volume.write("a"):
            waiting = asyncio.ensure_future(volume.changed("a"))
            await it.turn(0)
            waiting.cancel()
            await it.turn(0)
            assert waiting.cancelled()
        async with volume.write("a"):
            pass


async def test_a_write_is_entered_once() -> None:
    async with stage() as it:
        volume = await it.serve()
        write = volume.write("a")
        with pytest.raises(UsageError, match="has not been entered"):
            _ = write.fence
        async with write:
            with pytest.raises(UsageError, match="was entered already"):
                await write.__aenter__()
        with pytest.raises(UsageError, match="names the keys"):
            volume.write()


# --- what is passed ---


async def test_keys_of_another_type() -> None:
    async with stage() as it:
        volume = await it.serve()
        cache = await it.enter()
        other: Any
        for other in (7, b"a", None, "\ud800", True, "x" * 2000, ["a"], {"a": 1}):
            with pytest.raises(KeyTypeError):
                await cache.get(other)
            for read in (cache.peek, cache.proof, cache.last_known):
                with pytest.raises(KeyTypeError):
                    read(other)
            with pytest.raises(KeyTypeError):
                volume.write(other)


async def test_a_cache_and_its_volume_call_objects_by_the_same_type() -> None:
    async with stage() as it:
        await it.serve()
        cache = await it.enter(key_type=int)
        with pytest.raises(LoadFailed, match="is not of the type str: say the same key_type"):
            await cache.get(7)


async def test_values_that_would_not_arrive() -> None:
    async with stage() as it:
        await it.serve()
        cache = await it.enter()
        other: Any
        for other in (7, object(), None, "x" * 5_000_000):
            with pytest.raises(ValueTypeError):
                await cache.write("a", other)
        assert await cache.get("a") == "old"
        assert it.fences == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"term": 0}, "term is a number of seconds above 0"),
        ({"keep": -1}, "keep is a number of seconds, 0 or more"),
        ({"mode": "weak"}, 'mode is "strong" or "best effort"'),
        ({"load": 7}, "load is a function"),
        ({"load": lambda: None}, "load is called with 1 argument"),
        ({"store": lambda _, value: value}, "store is called with 3 arguments"),
        ({"key_type": float}, "key_type is str, bytes or int"),
        ({"value_type": "str"}, "value_type cannot be"),
        ({"durable": "no"}, "durable is True or False, not 'no'"),
    ],
)
async def test_volumes_that_cannot_be(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        Volume(**{"load": dict[str, str]().get, **options})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"listen": "7500"}, 'listen is "HOST:PORT"'),
        ({"listen": "127.0.0.1:70000"}, 'listen is "HOST:PORT"'),
        ({"listen": "0.0.0.0:7500"}, "reached from other machines"),
        ({"fence": lambda: 0}, "fence is called with 1 argument"),
        ({"fence": 7}, "fence is called, so it must be a function"),
        ({"memory": 7}, "memory is the path of a file"),
        ({"memory": ""}, "memory is the path of a file"),
        ({"memory": "a\0b"}, "memory is the path of a file"),
        ({"credentials": "secret"}, "credentials are Credentials.*, not str"),
        ({"remembers": "all"}, 'remembers is "longest" or "latest end"'),
        ({"longest": 0}, "longest is a number of seconds above 0"),
    ],
)
async def test_servers_that_cannot_be(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        CacheServer(Volume(dict[str, str]().get), **options)


@pytest.mark.parametrize(
    ("server", "options", "why"),
    [
        ("127.0.0.1:7500", {}, "is not the URL of a CacheServer"),
        (None, {}, "is not the URL of a CacheServer"),
        (URL, {"limit": 0}, "limit is a number from 1 on"),
        (URL, {"patience": 0}, "patience is a number of seconds above 0"),
        (URL, {"credentials": "secret"}, "credentials are Credentials.*, not str"),
    ],
)
async def test_caches_that_cannot_be(server: Any, options: dict[str, Any], why: str) -> None:  # noqa: ANN401
    with pytest.raises(ConfigurationError, match=why):
        Cache(server, **options)


@pytest.mark.parametrize("part", ["1", None, 1.0, True])
async def test_what_somebody_saw_has_numbers(part: Any) -> None:  # noqa: ANN401
    """A user may have put an as-of together; one that cannot be compared ends no cache."""
    async with stage() as it:
        await it.serve()
        cache = await it.enter()
        assert await cache.get("a") == "old"
        proof = cache.proof("a")
        assert proof is not None
        for name in ("history", "number", "count"):
            wrong = msgspec.structs.replace(proof.as_of, **{name: part})
            with pytest.raises(ConfigurationError, match="as_of is what"):
                await cache.saw("a", wrong)
        assert cache.peek("a") == "old"


async def test_an_error_of_a_key_advises_only_what_can_be_done() -> None:
    async with stage() as it:
        await it.serve()
        cache = await it.enter()
        with pytest.raises(KeyTypeError, match=r"say key_type=bytes at the Volume"):
            cache.peek(b"a")
        with pytest.raises(KeyTypeError, match=r"None is of NoneType; pass another key$"):
            cache.peek(None)  # type: ignore[arg-type]


async def test_a_volume_has_one_server() -> None:
    async with stage() as it:
        volume = await it.serve()
        with pytest.raises(ConfigurationError, match="is served already"):
            await it.server(volume, listen="127.0.0.1:7501").__aenter__()
        with pytest.raises(UsageError, match="is not served yet"):
            it.volume().write("a")


async def test_a_port_that_is_taken() -> None:
    async with CacheServer(Volume(dict[str, str]().get), listen="127.0.0.1:0") as server:
        taken = server.url.removeprefix("http://")
        with pytest.raises(ConfigurationError, match=f"cannot listen at {taken}: .*in use"):
            await CacheServer(Volume(dict[str, str]().get), listen=taken).__aenter__()
