"""Users' own services under all faults of the simulator: four broken chat rooms, and one that is
right.
"""

import asyncio
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count

import pytest

from tenure import Member, Relay
from tenure.errors import ConfigurationError, NotSimulated, UsageError
from tenure.member.asgi import App, Receive, Scope, Send
from tenure.sim.app.strikes import FAULTS
from tenure.sim.app.world import AppTrial
from tenure.testing import World, simulated
from tenure.testing.simulation import ONLY_SEED, SeedFailed, run_seed
from tests.repo.reading import ROOT

ROOMS = "tests.unit.testing.rooms"
KEY = "/rooms/{room}"
MOST_SEEDS = 200


async def chats(world: World) -> None:
    """Two talk in a room, and read what was said: nothing is missing or there twice."""
    ann, bob = await world.clients("/rooms/attic?name={}", "ann", "bob")
    async for number in world.until_healed():
        await ann.send(str(number))
        known = {int(line.split()[1]) for line in ann.received}
        try:
            answer = await world.get("/rooms/attic", timeout=5)
        except (ConnectionError, TimeoutError):
            continue
        if answer.status == 200:
            said = [int(line.split()[1]) for line in answer.json()]
            assert len({*said}) == len(said)
            between = [n for n in sorted(known) if said and said[0] < n < said[-1]]
            assert [n for n in between if n not in said] == []
    assert ann.gaps_while_open == []
    assert bob.gaps_while_open == []
    assert bob.repeats == []


def seed_of(number: int, minutes: float = 3, faults: tuple[str, ...] = FAULTS.kinds) -> AppTrial:
    return AppTrial(seed=number, hours=minutes / 60, faults=faults)


def test_the_right_room_is_clean_under_all_faults() -> None:
    judged = sum(run_seed(seed_of(seed), f"{ROOMS}.chat:app", chats) for seed in range(5))
    assert judged > 100


@pytest.mark.parametrize(
    ("room", "why", "found_by"),
    [
        ("no_check", "one owner: .* does not hold 'attic' at this instant", 0),
        ("check_before", "one owner: .* does not hold 'attic' at this instant", 6),
        ("in_a_global", "assert .* == \\[\\]", 0),
        ("answer_before", "answers after they are kept: .* inside of a turn", 0),
    ],
)
def test_a_broken_room_is_caught(room: str, why: str, found_by: int) -> None:
    for seed in range(found_by, MOST_SEEDS):
        try:
            run_seed(seed_of(seed), f"{ROOMS}.{room}:app", chats, KEY)
        except SeedFailed as failed:
            story, is_alone = str(failed), failed.__suppress_context__ and not failed.__cause__
            break
    else:
        pytest.fail(f"{room} is not caught within {MOST_SEEDS} seeds")
    assert re.search(why, story.partition("what led to it")[0]), "the sentence comes first"
    assert is_alone, "pytest would print its cause before the sentence"
    order = [story.index(each) for each in ("fails after", "what led to it", "where it was raised")]
    assert order == sorted(order)
    assert f"repeat it with: pytest --tenure-seed {seed}" in story
    with pytest.raises(SeedFailed) as again:
        run_seed(seed_of(seed), f"{ROOMS}.{room}:app", chats, KEY)
    assert str(again.value) == story  # to the nanosecond


# --- small services, made in the test -------------------------------------------------------------


def service(handler: Callable[[Member, str], Awaitable[str]]) -> Callable[[], App]:
    """Return a plain ASGI application whose GET does this."""

    def make() -> App:
        member = Member("rooms")

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                await receive()
                async with member.serving(relay):
                    await send({"type": "lifespan.startup.complete"})
                    await receive()
                await send({"type": "lifespan.shutdown.complete"})
                return
            said = await handler(member, scope["path"].rpartition("/")[2])
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": said.encode()})

        relay: App = Relay(app, member=member, key=KEY)
        return relay

    return make


async def asks(world: World) -> None:
    """Ask until there is an answer."""
    for _ in range(60):
        if (await world.get("/rooms/attic")).status == 200:
            return
        await asyncio.sleep(1)
    pytest.fail("it was never answered")


def test_plain_asgi_is_served_and_time_is_the_worlds() -> None:
    shown: list[float] = []

    async def sleeps(member: Member, room: str) -> str:
        before = time.monotonic()
        await asyncio.sleep(3)
        shown.append(time.monotonic() - before)
        return await asyncio.to_thread(str.upper, room)

    began = time.monotonic()
    run_seed(seed_of(1, faults=()), service(sleeps), asks)
    assert shown[-1] == pytest.approx(3, rel=1e-3)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("reach", "instead"),
    [
        (socket.socket, "a socket is not there .* fakes of other services"),
        (lambda: threading.Thread(target=print).start(), "a thread .* asyncio.to_thread"),
        (lambda: subprocess.Popen(["true"]), "a program .* a fake"),
        (lambda: time.sleep(1), "time.sleep .* asyncio.sleep"),
    ],
)
def test_what_is_outside_is_refused_also_where_the_code_swallows_it(
    reach: Callable[[], object], instead: str
) -> None:
    async def handler(member: Member, room: str) -> str:
        with suppress(NotSimulated):
            reach()
        return room

    with pytest.raises(NotSimulated, match=instead):
        run_seed(seed_of(1, faults=()), service(handler), asks)
    socket.socket().close()  # out here everything is as it was


def test_a_handler_that_never_ends_is_said_in_simulated_time() -> None:
    async def never(member: Member, room: str) -> str:
        await asyncio.Event().wait()
        return room

    with pytest.raises(SeedFailed, match="was not answered within 30 s of simulated time"):
        run_seed(seed_of(1, faults=()), service(never), asks)


def test_a_handler_that_runs_without_an_end_is_said() -> None:
    async def spins(member: Member, room: str) -> str:
        for _ in count():
            await asyncio.sleep(0)
        return room

    with pytest.raises(UsageError, match=r"code in p\d runs without an end"):
        run_seed(seed_of(1, faults=()), service(spins), asks)


def test_a_test_that_does_not_end_is_said() -> None:
    async def waits(world: World) -> None:
        await asyncio.Event().wait()

    async def handler(member: Member, room: str) -> str:
        return room

    with pytest.raises(UsageError, match=r"the test does not end: .*test_simulated\.py:"):
        run_seed(seed_of(1, 0.5, ()), service(handler), waits)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("nowhere.chat:app", "there is no module 'nowhere'"),
        (f"{ROOMS}.chat:application", "has no application 'application'; it has .*app"),
        (f"{ROOMS}.chat", 'given as "module:name"'),
    ],
)
def test_an_application_that_is_not_there_is_said(source: str, error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        run_seed(seed_of(1, 0.5, ()), source, asks)


def test_a_lifespan_that_raises_is_said() -> None:
    def make() -> App:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "lifespan.startup.failed", "message": "no database"})

        return app

    with pytest.raises(SeedFailed, match=r"the lifespan of .* failed in its startup: no database"):
        run_seed(seed_of(1, 0.5, ()), make, asks, KEY)


def test_an_application_whose_keys_are_not_known_is_said() -> None:
    def make() -> App:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            raise NotImplementedError

        return app

    with pytest.raises(ConfigurationError, match="where do keys stand"):
        run_seed(seed_of(1, 0.5, ()), make, asks)


def test_each_process_imports_the_module_for_itself() -> None:
    seen: set[int] = set()

    async def looks(world: World) -> None:
        await asyncio.sleep(5)
        for process in world._world.programs():
            app = process.loop
            seen.add(id(app))
        assert len(seen) == 3

    run_seed(seed_of(1, 1, ()), f"{ROOMS}.chat:app", looks)


# --- the decorator --------------------------------------------------------------------------------


def test_the_decorated_test_runs_every_seed_or_the_one_that_was_asked_for() -> None:
    seeds: list[int] = []

    @simulated(f"{ROOMS}.chat:app", seeds=2, minutes=0.2, faults="none")
    async def collects(world: World) -> None:
        seeds.append(world.seed)
        await asks(world)

    collects()
    ONLY_SEED["seed"] = 7
    try:
        collects()
    finally:
        ONLY_SEED.clear()
    assert seeds == [0, 1, 7]


def test_a_test_in_which_nothing_is_judged_is_refused() -> None:
    @simulated(f"{ROOMS}.chat:app", seeds=1, minutes=0.2, faults="none")
    async def does_nothing(world: World) -> None:
        await asyncio.sleep(1)

    with pytest.raises(UsageError, match="nothing was judged"):
        does_nothing()


def test_arguments_that_cannot_be_used_are_said_at_once() -> None:
    with pytest.raises(ConfigurationError, match="no fault is called 'rain'"):
        simulated("chat:app", faults="rain")
    with pytest.raises(ConfigurationError, match="seeds is more than 0, not 0"):
        simulated("chat:app", seeds=0)
    with pytest.raises(ConfigurationError, match="a coroutine function of a World"):
        simulated("chat:app")(print)  # type: ignore[arg-type]


def test_the_first_seed_of_a_process_repeats_too() -> None:
    """By then the process has imported what an application imports, whatever that draws
    or reads.
    """
    program = (
        "from tests.unit.testing import test_simulated as it\n"
        "from tenure.testing.simulation import SeedFailed, run_seed\n"
        "for _ in range(2):\n"
        "    try:\n"
        "        run_seed(it.seed_of(0), f'{it.ROOMS}.no_check:app', it.chats, it.KEY)\n"
        "    except SeedFailed as failed:\n"
        "        print(hash(str(failed)))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    first, again = found.stdout.split()
    assert first == again
