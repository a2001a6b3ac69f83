"""`Lookup`, whole, in a cluster whose clock is turned: finding, losses, watches, contact."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tenure import (
    ClosedError,
    ConfigurationError,
    KeyChange,
    KeyRange,
    KeyTypeError,
    Lookup,
    NoManager,
    PoolError,
    UsageError,
)
from tenure.base.instants import seconds
from tenure.protocol.lease.leader.events import CreatePool
from tenure.protocol.lease.timing import TEST
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.cluster import InProcessCluster

SOON = 0.2
PAST_HOLD = 1.6
PAST_CONTACT = 1.2
WHOLE = KeyRange(b"", None)

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[InProcessCluster]:
    async with InProcessCluster(["rooms"], clock=TurnedClock()) as cluster:
        yield cluster


# --- entering -------------------------------------------------------------------------------------


async def test_it_is_entered_with_its_first_table_though_nobody_serves(
    cluster: InProcessCluster,
) -> None:
    async with cluster.lookup() as lookup:
        assert lookup.find("room-42") is None
        assert lookup.table() == ((WHOLE, None),)
        assert lookup.in_contact
        assert lookup.key("room-42") in WHOLE


async def test_a_pool_that_does_not_come_into_being_is_named(cluster: InProcessCluster) -> None:
    said = r"there is no pool 'other' .*Create it .*waited 1 s"
    with pytest.raises(PoolError, match=said):
        async with cluster.lookup(pool="other", enter_timeout=1.0):
            pass


async def test_a_pool_that_its_first_owner_creates_is_waited_for(cluster: InProcessCluster) -> None:
    lookup = cluster.lookup(pool="other")
    entering = asyncio.create_task(lookup.__aenter__())
    await cluster.turn(SOON)
    assert not entering.done()
    async with cluster.owner("http://a", pool="other"):
        await cluster.turn(3)
        await entering
        assert lookup.find("x") == "http://a"
    await lookup.close()


async def test_no_manager_is_said_of_each() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        here = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(NoManager, match=f"{here}: connection refused: nothing listens there"):
            async with Lookup(here, pool="rooms", enter_timeout=1.0):
                pass


async def test_entering_that_takes_long_says_whom_it_asks(
    cluster: InProcessCluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.client.shell.SAYS_AFTER_SECONDS", 0.01)
    url = cluster.kill_manager()
    with pytest.raises(NoManager):
        async with cluster.lookup(enter_timeout=1.0):
            pass
    waits = "lookup of pool 'rooms' is not entered yet, and waits up to 1 s: it asks"
    assert f"{waits} {url}: connection refused" in caplog.text


async def test_the_blocking_form_does_not_block_an_event_loop(cluster: InProcessCluster) -> None:
    with (
        pytest.raises(UsageError, match=r"would block the event loop .* `async with Lookup"),
        cluster.lookup(),
    ):
        pass


# --- finding --------------------------------------------------------------------------------------


async def test_it_finds_whoever_holds_the_key(cluster: InProcessCluster) -> None:
    async with (
        cluster.owner("http://a") as a,
        cluster.owner("http://b") as b,
        cluster.lookup() as lookup,
    ):
        await cluster.turn(1)
        keys = [f"room-{i}" for i in range(100)]
        found = [lookup.find(key) for key in keys]
        assert set(found) == {"http://a", "http://b"}
        assert found == ["http://a" if a.check(key) else "http://b" for key in keys]
        assert all(bool(a.check(key)) != bool(b.check(key)) for key in keys)
        assert [lookup.find(key.encode()) for key in keys] == found
        assert {address for _, address in lookup.table()} == {"http://a", "http://b"}


async def test_keys_of_an_ordered_pool_are_the_users_bytes() -> None:
    pool = CreatePool("names", "ordered", (b"m",))
    async with (
        InProcessCluster([pool], clock=TurnedClock()) as cluster,
        cluster.owner("http://a") as a,
        cluster.owner("http://b") as b,
        cluster.lookup() as lookup,
    ):
        await cluster.turn(1)
        assert {a.ranges, b.ranges} == {(KeyRange(b"", b"m"),), (KeyRange(b"m", None),)}
        assert lookup.find("ann") == lookup.find(b"lzz") != lookup.find("m")
        assert lookup.find("ann") == ("http://a" if a.check("ann") else "http://b")
        with pytest.raises(KeyTypeError, match=r"'.ud800' is not a key: .* pass bytes"):
            lookup.find("\ud800")
        with pytest.raises(KeyTypeError, match="a key of an ordered pool is a str or bytes, not 5"):
            lookup.find(5)


async def test_what_is_no_key(cluster: InProcessCluster) -> None:
    async with cluster.lookup() as lookup:
        with pytest.raises(KeyTypeError, match="a key of a hashed pool is a str, bytes, or an int"):
            lookup.find(None)  # type: ignore[arg-type]
        with pytest.raises(KeyTypeError):
            lookup.watch(-1, print)


# --- losses ---------------------------------------------------------------------------------------


async def test_a_crash_is_signalled_when_find_knows_it_and_a_clean_move_is_not(
    cluster: InProcessCluster,
) -> None:
    told: list[tuple[tuple[KeyRange, ...], str | None]] = []

    async def on_loss(ranges: tuple[KeyRange, ...]) -> None:
        told.append((ranges, lookup.find(key)))

    lookup = cluster.lookup(on_loss=on_loss)
    async with cluster.owner("http://a") as a, lookup:
        await cluster.turn(SOON)
        b = cluster.owner("http://b")
        async with b:
            await cluster.turn(3 * SOON)
            key = next(key for key in (f"room-{i}" for i in range(100)) if b.check(key))
            assert lookup.find(key) == "http://b"
            assert told == []
            cluster.crash(b)
            await cluster.turn(PAST_HOLD)
        assert lookup.find(key) == "http://a"
        assert a.check(key)
        assert any(lookup.key(key) in each for ranges, _ in told for each in ranges)
        assert {where for _, where in told} <= {None, "http://a"}


def in_contact(lookup: Lookup) -> bool:
    return lookup.in_contact


async def test_out_of_contact_it_finds_nothing_and_all_counts_as_lost(
    cluster: InProcessCluster,
) -> None:
    told: list[KeyRange] = []
    async with cluster.owner("http://a"), cluster.lookup(on_loss=told.extend) as lookup:
        await cluster.turn(SOON)
        assert lookup.find("x") == "http://a"
        url = cluster.kill_manager()
        await cluster.turn(0.4)
        assert lookup.find("x") == "http://a"
        await cluster.turn(PAST_CONTACT)
        assert lookup.find("x") is None
        assert in_contact(lookup) is False
        assert told == [WHOLE]
        cluster.start_manager(url)
        await cluster.turn(4)
        assert in_contact(lookup) is True
        assert lookup.find("x") == "http://a"
        assert lookup.stats()["out of contact"] == 1


async def test_in_a_quiet_pool_it_routes_again_when_it_was_stopped() -> None:
    """It was stopped for longer than its contact lasts. Nothing had changed when it went on: the
    answer that renews its contact must put its table up again all the same.
    """
    timing = msgspec.structs.replace(TEST, contact_ns=seconds(0.6), leadership_ns=seconds(2))
    clock = TurnedClock()
    told: list[KeyChange] = []
    async with (
        InProcessCluster(["rooms"], clock=clock, timing=timing) as cluster,
        cluster.owner("http://a") as owner,
        cluster.lookup() as lookup,
    ):
        await cluster.turn(SOON)
        lookup.watch("x", told.append)
        clock.jump(0.7)
        await cluster.turn(SOON)
        assert (lookup.stats()["out of contact"], owner.stats().get("lapsed")) == (1, None)
        assert (lookup.find("x"), in_contact(lookup)) == ("http://a", True)
        gone, back = KeyChange("x", None, lost=True), KeyChange("x", "http://a", lost=False)
        assert told == [gone, back]


async def test_a_machine_that_breaks_takes_everything_with_it(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[KeyRange] = []
    async with cluster.owner("http://a"), cluster.lookup(on_loss=told.extend) as lookup:
        await cluster.turn(SOON)

        def broken(now: int) -> None:
            raise AssertionError("a contradiction")

        monkeypatch.setattr(lookup._engine.machine, "_advance", broken)
        await cluster.turn(1)
        assert lookup.find("x") is None
        assert told == [WHOLE]
        assert "stops because of a bug, and holds nothing" in caplog.text


async def test_a_refusal_is_said_loudly_once(
    cluster: InProcessCluster, caplog: pytest.LogCaptureFixture
) -> None:
    lookup = cluster.lookup(pool="other")
    entering = asyncio.create_task(lookup.__aenter__())
    await cluster.turn(5)
    refusals = [
        each for each in caplog.records if "is refused: there is no pool" in each.getMessage()
    ]
    assert [each.levelname for each in refusals if each.levelname != "DEBUG"] == ["WARNING"]
    assert lookup.stats()["refused: no_pool"] > 2
    entering.cancel()
    await asyncio.wait([entering])


async def test_a_loss_callback_that_raises_is_logged(
    cluster: InProcessCluster, caplog: pytest.LogCaptureFixture
) -> None:
    def on_loss(ranges: tuple[KeyRange, ...]) -> None:
        raise OSError("no route")

    async with cluster.lookup(on_loss=on_loss) as lookup:
        cluster.kill_manager()
        await cluster.turn(PAST_CONTACT)
        assert not lookup.in_contact
    assert "lookup of pool 'rooms': on_loss failed for [-, -)" in caplog.text


# --- watches --------------------------------------------------------------------------------------


async def test_a_watched_key_tells_of_moves_and_losses_until_it_is_cancelled(
    cluster: InProcessCluster,
) -> None:
    told: list[KeyChange] = []
    async with cluster.lookup() as lookup:
        watch = lookup.watch("room-42", told.append)
        other: list[KeyChange] = []
        lookup.watch("room-42", other.append)
        async with cluster.owner("http://a") as a:
            await cluster.turn(SOON)
            assert told == [KeyChange("room-42", "http://a", lost=False)]
            assert a.check("room-42")
            cluster.crash(a)
            await cluster.turn(PAST_HOLD)
        assert told[1:] == [KeyChange("room-42", None, lost=True)]
        watch.cancel()
        watch.cancel()
        async with cluster.owner("http://b"):
            await cluster.turn(SOON)
        assert len(told) == 2
        assert other[2] == KeyChange("room-42", "http://b", lost=False)


async def test_a_watch_may_be_a_coroutine_function_and_must_be_callable(
    cluster: InProcessCluster,
) -> None:
    told: list[KeyChange] = []

    async def on_change(change: KeyChange) -> None:
        await asyncio.sleep(0)
        told.append(change)

    async with cluster.lookup() as lookup:
        with pytest.raises(ConfigurationError, match="the callback of watch is called, so"):
            lookup.watch("a", 5)  # type: ignore[arg-type]
        lookup.watch(b"a", on_change)
        cluster.kill_manager()
        await cluster.turn(PAST_CONTACT)
    assert told == [KeyChange(b"a", None, lost=True)]


async def test_only_the_watches_of_what_changed_are_told(cluster: InProcessCluster) -> None:
    moved: list[str] = []
    keys = [f"room-{i}" for i in range(100)]
    async with cluster.owner("http://a") as a, cluster.lookup() as lookup:
        await cluster.turn(SOON)
        for key in keys:
            lookup.watch(key, lambda change: moved.append(str(change.key)))
        async with cluster.owner("http://b"):
            await cluster.turn(3 * SOON)
            gone = [key for key in keys if not a.check(key)]
            assert sorted(set(moved)) == sorted(gone)
            assert 0 < len(gone) < 100


# --- leaving --------------------------------------------------------------------------------------


async def test_after_it_was_left_it_cannot_be_used(cluster: InProcessCluster) -> None:
    lookup = cluster.lookup()
    early: list[Callable[[], object]] = [lambda: lookup.find("a"), lookup.table]
    for use in early:
        with pytest.raises(ClosedError, match="this Lookup is not entered yet"):
            use()
    async with lookup:
        pass
    await lookup.close()
    uses: list[Callable[[], object]] = [
        lambda: lookup.find("a"),
        lookup.table,
        lambda: lookup.watch("a", print),
        lambda: lookup.in_contact,
        lambda: lookup.key("a"),
    ]
    for use in uses:
        with pytest.raises(ClosedError, match="this Lookup was left; make another"):
            use()


async def test_the_blocking_form_does_the_same() -> None:
    losses: list[str] = []
    lost = threading.Event()

    def on_loss(ranges: tuple[KeyRange, ...]) -> None:
        losses.append(threading.current_thread().name)
        lost.set()

    def body() -> None:
        with (
            InProcessCluster(["rooms"], clock=TurnedClock()) as cluster,
            cluster.lookup(on_loss=on_loss) as lookup,
        ):
            assert lookup.find("a") is None
            cluster.kill_manager()
            cluster.turn_blocking(PAST_CONTACT)
            assert not lookup.in_contact
            assert lost.wait(10)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    await come_to_rest()
    assert losses == ["lookup of pool 'rooms' calls"]


# --- waiting for a move ---------------------------------------------------------------------------


async def test_wait_returns_when_the_key_is_served_elsewhere(cluster: InProcessCluster) -> None:
    async with cluster.lookup() as lookup, cluster.owner("http://a") as first:
        await cluster.turn(SOON)
        assert lookup.find("room-42") == "http://a"
        waiting = asyncio.ensure_future(lookup.wait("room-42", not_at="http://a"))
        await cluster.turn(SOON)
        assert not waiting.done()
        async with cluster.owner("http://b"):
            await first.close()
            await cluster.turn(1)
            await waiting
            assert lookup.find("room-42") == "http://b"
            await lookup.wait("room-42", not_at="http://a")  # it is there already


async def test_what_wait_and_standings_cannot_use_is_refused_by_name(
    cluster: InProcessCluster,
) -> None:
    async with cluster.owner(address="http://a"), cluster.lookup() as lookup:
        wrong: Any
        for wrong in (5, b"http://a", ["http://a"]):
            with pytest.raises(UsageError, match="not_at is the address of the owner that refused"):
                await lookup.wait("room-42", not_at=wrong)
        for wrong in ("room-42", b"room-42", 5, None):  # a text would be as many keys as letters
            with pytest.raises(UsageError, match=r"several keys, as in standings\(\[key\]\), not"):
                lookup.standings(wrong)


async def test_whoever_no_longer_waits_for_a_standing_is_told_none(
    cluster: InProcessCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """As a request whose client has gone: that was an error in the log of the process."""
    async with cluster.owner(address="http://a"), cluster.lookup() as lookup:
        await cluster.turn(SOON)
        others_wait = threading.Event()
        lookup._engine.shell.call(others_wait.wait)
        gone, asked = lookup.standings(["room-42"]), lookup.standings(["room-42"])
        assert gone.cancel()
        others_wait.set()
        (found,) = await asyncio.wrap_future(asked)
        assert found is not None
        assert not [each for each in caplog.records if each.levelname == "ERROR"]


async def test_wait_goes_on_while_nobody_serves_the_key(cluster: InProcessCluster) -> None:
    async with cluster.lookup() as lookup:
        waiting = asyncio.ensure_future(lookup.wait("room-42"))
        await cluster.turn(SOON)
        assert not waiting.done()
        async with cluster.owner("http://a"):
            await cluster.turn(1)
            await waiting


async def test_wait_returns_when_another_owner_serves_the_key_at_the_same_address(
    cluster: InProcessCluster,
) -> None:
    async with cluster.lookup() as lookup:
        async with cluster.owner("http://a"):
            await cluster.turn(SOON)
            waiting = asyncio.ensure_future(lookup.wait("room-42", not_at="http://a"))
        await cluster.turn(SOON)
        assert lookup.find("room-42") is None
        assert not waiting.done()
        async with cluster.owner("http://a"):
            await cluster.turn(1)
            await waiting


async def test_wait_ends_after_its_timeout_or_with_the_lookup(cluster: InProcessCluster) -> None:
    async with cluster.lookup() as lookup:
        await lookup.wait("room-42", timeout=0.01)
        assert lookup.find("room-42") is None
        with pytest.raises(ConfigurationError, match="timeout"):
            await lookup.wait("room-42", timeout=-1)
        waiting = asyncio.ensure_future(lookup.wait("room-42"))
        await cluster.turn(SOON)
    with pytest.raises(ClosedError, match="was left"):
        await waiting
    with pytest.raises(ClosedError, match="was left"):
        await lookup.wait("room-42")


async def test_it_tells_the_hold_of_its_managers(cluster: InProcessCluster) -> None:
    async with cluster.lookup() as lookup:
        assert lookup.hold == TEST.hold_ns / seconds(1)
    with pytest.raises(ClosedError):
        _ = cluster.lookup().hold
