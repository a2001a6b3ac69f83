"""Real processes with state: each is restarted in turn under load, and no key is lost."""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from typing import Any

from tenure import KeyRange, Lookup
from tests.integration.processes import manager, run
from tests.patience import DEADLINE_SECONDS

POOL = "carts"
USERS = tuple(f"user-{i}" for i in range(500))

PROGRAM = """
import asyncio, json, signal, sys
from aiohttp import web
from tenure import KeyedState, Owner

async def main(manager):
    carts, told = KeyedState(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)

    async def put(request):
        user, value = request.match_info["user"], int(await request.text())
        lease = owner.check(user)
        if lease is None:
            raise web.HTTPMisdirectedRequest
        carts[user] = carts.get(user, 0) + value
        if not owner.holds(lease):
            raise web.HTTPServiceUnavailable(headers={"Tenure-Outcome": "unknown"})
        return web.json_response(carts[user])

    app = web.Application()
    app.router.add_put("/{user}", put)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    name = sys.argv[2] if len(sys.argv) > 2 else None
    async with Owner(
        manager, pool="carts", address=address, name=name, hand_off=carts
    ) as owner:
        print(json.dumps(address), flush=True)
        await owner.ready()
        print(json.dumps("holds something"), flush=True)
        await told.wait()
        await owner.close()
    await runner.cleanup()
    print(json.dumps(len(carts)), flush=True)

asyncio.run(main(sys.argv[1]))
"""


class OwnerProcess:
    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, text=True
        )

    def hear(self) -> Any:  # noqa: ANN401  # JSON
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def begin(self) -> None:
        assert self.hear().startswith("http://")
        assert self.hear() == "holds something"


@contextmanager
def owner(*arguments: str) -> Iterator[OwnerProcess]:
    started = OwnerProcess(*arguments)
    with started.process:
        try:
            yield started
        finally:
            started.process.kill()


class Load:
    """Adds one to each key in turn; what was answered is what the owner must have."""

    def __init__(self, manager_url: str) -> None:
        self.lost: list[KeyRange] = []
        self.lookup = Lookup(manager_url, pool=POOL, on_loss=self.lost.extend)
        self.answered: dict[str, int] = {}

    def add(self, user: str) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            address = self.lookup.find(user)
            if address is not None and (count := put(address, user)) is not None:
                assert count > self.answered.get(user, 0), f"{user} went back to {count}"
                self.answered[user] = count
                return
        raise AssertionError(f"{user} was not served for {DEADLINE_SECONDS} s")

    def add_all(self) -> None:
        for user in USERS:
            self.add(user)


def put(address: str, user: str) -> int | None:
    """Return the owner's answer to one more; None if it refuses."""
    connection = http.client.HTTPConnection(
        address.removeprefix("http://"), timeout=DEADLINE_SECONDS
    )
    try:
        connection.request("PUT", f"/{user}", "1")
        response = connection.getresponse()
        body = response.read()
    except (ConnectionError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return int(body) if response.status == 200 else None


@contextmanager
def served() -> Iterator[tuple[str, Load, OwnerProcess]]:
    """Yield a manager's URL, and its owner "ann", who has served every user once."""
    with ExitStack() as stack:
        running = stack.enter_context(manager("--first-start", preset="default"))
        url = running.wait_for("listening")["url"]
        ann = stack.enter_context(owner(url, "ann"))
        ann.begin()
        load = Load(url)
        stack.enter_context(load.lookup)
        load.add_all()
        yield url, load, ann


def test_owners_that_are_restarted_in_turn_under_load_lose_no_key() -> None:
    with served() as (url, load, ann), ExitStack() as stack:
        leaver = ann
        for _ in range(2):
            successor = stack.enter_context(owner(url))
            successor.begin()
            leaver.process.terminate()
            for user in cycle(USERS):
                if leaver.process.poll() is not None:
                    break
                load.add(user)
            assert leaver.hear() == 0
            leaver = successor
        load.add_all()
        assert load.lost == []
        assert min(load.answered.values()) > 1


def test_an_owner_that_is_drained_by_an_operator_gives_its_state_and_runs_on() -> None:
    with served() as (url, load, ann), owner(url, "bob") as bob:
        bob.begin()
        drained = run("drain", POOL, "ann", "--manager", url)
        assert drained.returncode == 0, drained.stderr
        assert "ann has nothing left, after" in drained.stdout
        load.add_all()
        assert set(load.answered.values()) == {2}
        assert load.lost == []
        assert ann.process.poll() is None
        told = run("owners", POOL, "--json", "--manager", url)
        (ranges,) = (x["ranges"] for x in json.loads(told.stdout)["owners"] if x["name"] == "ann")
        assert ranges == 0
        assert run("uncordon", POOL, "ann", "--manager", url).returncode == 0
        ann.process.terminate()
        assert ann.hear() == 0
