"""The programs in the guides do what the guides say."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientResponseError, ClientSession, web

from tenure import (
    Fenced,
    KeyedState,
    KeyRange,
    Lease,
    LeaseLost,
    NotOwner,
    OwnedState,
    Owner,
    SqliteFence,
)
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.cluster import InProcessCluster
from tests.repo.reading import ROOT
from tests.repo.test_prose import python_fences
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio

GUIDES = ROOT / "docs" / "guides"
OWNER = "writing-an-owner.md"


def programs(*guides: str) -> dict[str, Any]:
    """The names that the programs in these guides define, one after another."""
    names: dict[str, Any] = {"asyncio": asyncio}
    for guide in guides:
        for line, program in python_fences((GUIDES / guide).read_text("utf-8")):
            exec(compile(program, f"{guide}:{line}", "exec"), names)  # noqa: S102
    return names


TESTS = programs(OWNER, "testing-your-service.md")


@pytest.mark.parametrize("name", sorted(name for name in TESTS if name.startswith("test_")))
async def test_the_tests_in_the_guide_pass(name: str) -> None:
    await TESTS[name]()


async def with_owner(act: Callable[[InProcessCluster, TurnedClock, Owner], Any]) -> None:
    clock = TurnedClock()
    async with InProcessCluster(["rooms"], clock=clock) as cluster, cluster.owner() as owner:
        await cluster.turn(1)
        await act(cluster, clock, owner)


async def test_a_guarded_body_that_loses_its_lease_is_cancelled() -> None:
    async def act(cluster: InProcessCluster, clock: TurnedClock, owner: Owner) -> None:
        closing = asyncio.create_task(programs(OWNER)["close_room"](owner, "room-42"))
        await come_to_rest()
        clock.jump(2)
        assert owner.check("room-42") is None
        with pytest.raises(LeaseLost):
            await closing
        with pytest.raises(NotOwner):
            await programs(OWNER)["close_room"](owner, "room-42")
        await cluster.turn(1)

    await with_owner(act)


async def test_what_the_handover_guide_keeps_moves_and_leaving_loses_nothing() -> None:
    names = programs("handing-over-state.md")
    clock = TurnedClock()
    carts, other = names["carts"], KeyedState[list[str]]()
    async with InProcessCluster(["carts"], clock=clock) as cluster:
        first = cluster.owner(hand_off=carts)
        await entered(cluster, first)
        await cluster.turn(1)
        for i in range(100):
            names["add"](first, f"user-{i}", "tea")
            names["add"](first, f"user-{i}", "cake")
        second = cluster.owner(hand_off=other)
        await entered(cluster, second)
        await cluster.turn(1)
        await ended(cluster, first.close())
        assert dict(other) == {f"user-{i}": ["tea", "cake"] for i in range(100)}
        assert not carts
        await ended(cluster, second.close())


async def test_the_guide_to_owned_state_keeps_carts_a_table_and_limits() -> None:
    names = programs("owned-state.md")
    async with InProcessCluster(["carts"], clock=TurnedClock()) as cluster:
        first, other = cluster.owner(hand_off=names["carts"]), OwnedState[list[str]]()
        await entered(cluster, first)
        await cluster.turn(1)
        assert [await names["add"]("ann", each) for each in ("tea", "cake")] == [1, 2]
        second = cluster.owner(hand_off=other)
        await entered(cluster, second)
        await ended(cluster, first.close())
        async with other.at("ann") as cart:
            assert cart.value == ["tea", "cake"]
        refused = SimpleNamespace(match_info={"user": "ann"}, query={"article": "jam"})
        answer = await names["post"](refused)
        assert (answer.status, answer.headers["Tenure-Outcome"]) == (421, "not-begun")
        await ended(cluster, second.close())


async def test_the_guide_to_owned_state_keeps_what_survives_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names, later = programs("owned-state.md"), programs("owned-state.md")
    async with InProcessCluster(["kept carts"], clock=TurnedClock()) as cluster:
        first, second = (cluster.owner(hand_off=each["kept"]) for each in (names, later))
        await entered(cluster, first)
        await cluster.turn(1)
        assert [await names["keep"]("ann", each) for each in ("tea", "cake")] == [1, 2]
        await ended(cluster, first.close(drain=0))
        await entered(cluster, second)
        await cluster.turn(1)
        assert await later["keep"]("ann", "jam") == 3
        await ended(cluster, second.close())


async def test_the_hash_table_of_figure_4_and_the_limiter_in_the_guide() -> None:
    names = programs("owned-state.md")
    table = names["Table"]()
    async with InProcessCluster(["table"], clock=TurnedClock()) as cluster:
        owners = [cluster.owner(hand_off=each) for each in (table.values, names["requests"])]
        await entered(cluster, owners[0])
        await cluster.turn(1)
        await table.put("ann", "here")
        assert (await table.get("ann"), await table.get("bob")) == ("here", None)
        cluster.kill_manager()
        await cluster.turn(2)
        with pytest.raises(NotOwner):
            await table.get("ann")
        cluster.start_manager(cluster.urls[0])
        await cluster.turn(5)
        assert await table.get("ann") is None, "it was lost, and is never shown again"
        await ended(cluster, owners[0].close(drain=0))
        await entered(cluster, owners[1])
        await cluster.turn(5)
        assert [await names["allows"]("ann", 2) for _ in range(4)] == [True, True, False, False]
        await cluster.turn(59)
        assert not await names["allows"]("ann", 2)
        await cluster.turn(1)
        assert await names["allows"]("ann", 2)
        await ended(cluster, owners[1].close(drain=0))


async def test_the_guide_to_fencing_refuses_what_comes_late() -> None:
    names = programs("fencing.md")
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE orders (user TEXT, text TEXT)")
    _ = SqliteFence(database).create_tables()
    sent: list[dict[str, str]] = []

    class Client:
        async def post(self, url: str, *, json: object, headers: dict[str, str]) -> None:
            sent.append(headers)
            names["store"](database, headers, "ann", str(json))

    async with InProcessCluster(["carts"], clock=TurnedClock()) as cluster:
        owner = cluster.owner(hand_off=names["carts"])
        await entered(cluster, owner)
        await cluster.turn(1)
        await names["order"](Client(), "ann")
        await ended(cluster, owner.close(drain=0))
    newer = Lease.of(sent[0])
    newer = Lease(newer.key, newer.number + 1, newer.journal, newer.pool)
    names["store"](database, newer.headers(), "ann", "newer")
    with pytest.raises(Fenced):
        names["store"](database, sent[0], "ann", "late")
    names["after_a_restore"](database)
    with pytest.raises(Fenced, match="was replaced"):
        names["store"](database, newer.headers(), "ann", "late")
    assert database.execute("SELECT text FROM orders").fetchall() == [("None",), ("newer",)]
    database.close()


async def test_state_of_ones_own_moves_too() -> None:
    scores = programs("handing-over-state.md")["Scores"]
    clock = TurnedClock()
    mine, other = scores(), scores()
    for i in range(3_000):
        mine.set(f"player-{i}", i)
    expected = dict(mine.values)
    async with InProcessCluster(["scores"], clock=clock) as cluster:
        first, second = cluster.owner(hand_off=mine), cluster.owner(hand_off=other)
        await entered(cluster, first)
        await cluster.turn(1)
        await entered(cluster, second)
        await cluster.turn(1)
        await ended(cluster, first.close())
        assert mine.values == {}
        assert other.values == expected
        await ended(cluster, second.close())


async def test_a_web_application_is_an_owner_from_its_start_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (begin, lifespan), *_ = python_fences((GUIDES / "web-servers.md").read_text("utf-8"))
    names: dict[str, Any] = {}
    exec(compile(lifespan, f"web-servers.md:{begin}", "exec"), names)  # noqa: S102
    app = SimpleNamespace(state=SimpleNamespace())
    async with serving() as manager:
        monkeypatch.setenv("TENURE_MANAGERS", manager.service.url)
        monkeypatch.setenv("PORT", "8001")
        async with names["lifespan"](app):
            owner = app.state.owner
            await owner.ready()
            assert owner.address == "http://127.0.0.1:8001"
            assert owner.check("room-42")
        assert owner.check("room-42") is None


def in_threads(act: Callable[[InProcessCluster, Owner, Owner], None]) -> None:
    """Two owners in the blocking form, each with some of the keys."""
    clock = TurnedClock()
    with InProcessCluster(["feeds"], clock=clock) as cluster:
        first, second = cluster.owner(), cluster.owner()

        def turn() -> None:
            for _ in range(100):
                cluster.turn_blocking(0.05)

        turning = Thread(target=turn)
        turning.start()
        with first, second:
            turning.join()
            act(cluster, first, second)
            cluster.kill_manager()
            cluster.turn_blocking(2)


async def test_each_feed_is_polled_by_one_process() -> None:
    names = programs("blocking-programs.md")
    polled: dict[str, int] = {}
    names["poll"] = polled.__setitem__

    def act(cluster: InProcessCluster, first: Owner, second: Owner) -> None:
        counts = [names["work_once"](owner) for owner in (first, second)]
        assert min(counts) > 0
        assert sum(counts) == len(names["KEYS"])
        assert polled.keys() == set(names["KEYS"])

    await asyncio.to_thread(in_threads, act)


async def test_a_job_is_run_where_it_is_owned_and_when_it_is_due() -> None:
    names = programs("blocking-programs.md")
    ran: list[int] = []
    jobs = [names["Job"](f"job-{n}", 60.0, ran.append) for n in range(20)]

    def act(cluster: InProcessCluster, first: Owner, second: Owner) -> None:
        run_due = names["run_due"]
        mine, others = (run_due(owner, jobs, now=100.0) for owner in (first, second))
        assert sorted([*mine, *others]) == sorted(job.name for job in jobs)
        assert mine
        assert others
        assert all(ran), "each knows its lease number"
        assert run_due(first, jobs, now=159.0) == []
        assert run_due(first, jobs, now=160.0) == mine

    await asyncio.to_thread(in_threads, act)


async def entered(cluster: InProcessCluster, owner: Owner) -> None:
    await ended(cluster, owner.__aenter__())


async def ended(cluster: InProcessCluster, what: Awaitable[object]) -> None:
    """Turn the clock until it is done."""
    doing = asyncio.ensure_future(what)
    while not doing.done():
        await cluster.turn(0.05)
    await doing


async def test_a_late_write_is_refused_by_its_fence() -> None:
    names = programs(OWNER)

    async def act(cluster: InProcessCluster, clock: TurnedClock, owner: Owner) -> None:
        database = sqlite3.connect(":memory:")
        database.execute(names["TABLE"])
        early = owner.check("room-42")
        assert early is not None
        clock.jump(2)
        await cluster.turn(1)
        assert names["set_topic"](database, owner, "room-42", "new")
        late = {"room": "room-42", "text": "old", "journal": early.journal, "number": early.number}
        assert database.execute(names["WRITE"], late).rowcount == 0
        assert names["set_topic"](database, owner, "room-42", "newer")
        assert database.execute("SELECT text FROM topic").fetchall() == [("newer",)]
        database.close()

    await with_owner(act)


async def test_what_is_revoked_is_dropped() -> None:
    names = programs(OWNER)

    async def act(cluster: InProcessCluster, clock: TurnedClock, owner: Owner) -> None:
        names["rooms"] = rooms = names["Rooms"](owner)
        assert rooms.enter("room-42", "ann")
        ranges = owner.ranges
        names["on_revoke"](())
        assert rooms.members
        names["on_revoke"](ranges)
        assert not rooms.members

    await with_owner(act)


async def test_what_is_lost_while_it_is_published_is_published_again() -> None:
    names = programs("writing-a-client.md")
    done: list[tuple[str, str]] = []
    held: list[KeyRange] = []

    async def publish(key: str, value: str) -> None:
        if not done:
            publisher.on_loss(tuple(held))
        done.append((key, value))

    publisher = names["Publisher"](publish)

    async def act(cluster: InProcessCluster, clock: TurnedClock, owner: Owner) -> None:
        held.extend(owner.ranges)
        async with cluster.lookup() as publisher.lookup:
            running = asyncio.create_task(publisher.run())
            publisher.set("room-42", "ann")
            await come_to_rest()
            assert done == [("room-42", "ann")] * 2
            running.cancel()

    await with_owner(act)


class Moving:
    """A lookup whose answers change with each question."""

    def __init__(self, *addresses: str | None) -> None:
        self.addresses = list(addresses)

    def find(self, key: str) -> str | None:
        return self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]


@asynccontextmanager
async def server(*statuses: int) -> AsyncIterator[str]:
    """Answers one request after the other with these."""
    left = list(statuses)

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=left.pop(0), text=request.path)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
        assert left == []


async def test_a_client_tries_again_until_it_is_answered() -> None:
    put = programs("writing-a-client.md")["put"]
    async with ClientSession() as session, server(421, 200) as address:
        lookup = Moving(None, "http://127.0.0.1:1", address)
        assert await put(lookup, session, "room-42", "/rooms/room-42") == b"/rooms/room-42"


async def test_a_client_does_not_repeat_what_was_answered() -> None:
    put = programs("writing-a-client.md")["put"]
    async with ClientSession() as session, server(500) as address:
        with pytest.raises(ClientResponseError):
            await put(Moving(address), session, "room-42", "/rooms/room-42")
