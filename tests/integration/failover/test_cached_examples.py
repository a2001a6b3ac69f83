"""Trials that the guides to caching propose, made with real processes.

A frontend is cut off, stopped and woken; the server is killed; a room is read at four frontends
while it moves. The tests judge what is read once somebody was told that a write is done.
"""

import asyncio
import re
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tenure import Cache, Lookup
from tenure.cli.demo.ports import free_ports
from tests.integration.processes import manager
from tests.integration.programs import EXAMPLES, Program, program
from tests.repo.reading import ROOT

GUIDE = ROOT / "docs" / "guides" / "caching-an-owner.md"
ROOM = "kitchen"
FRONTENDS = 4
COUNT = re.compile(rf"{ROOM} (\d+) at ")


def test_a_frontend_that_is_cut_off_or_stopped_shows_nothing_old(tmp_path: Path) -> None:
    """The table of the guide to caching a database, row by row."""
    place, way = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    with ExitStack() as stack:

        def start(*arguments: str) -> Program:
            example = program("product_page.py", *arguments, PAGES=place)
            return stack.enter_context(example)

        def write(text: str) -> None:
            start("write", "tea", text).wait_for("every frontend shows")

        serve = "serve", str(tmp_path / "shop.db")
        server = start(*serve)
        server.wait_for("serving")
        relay = start("relay", way.rpartition(":")[2])
        relay.wait_for("leads to")
        near, far = start("watch", "tea"), start("watch", "tea", way)
        cache = stack.enter_context(Cache(way, value_type=str))
        write("green")
        for each in (near, far):
            each.wait_for("^green$")
        assert cache.get("tea") == "green"

        relay.send(signal.SIGSTOP)
        write("black")
        assert cache.peek("tea") != "green"
        near.wait_for("^black$")
        far.wait_for("^out of reach; last known: LastKnown.value='green'")
        assert "black" not in far.lines
        relay.send(signal.SIGCONT)
        far.wait_for("^black$")
        assert cache.get("tea") == "black"

        near.send(signal.SIGSTOP)
        write("white")
        near.send(signal.SIGCONT)
        near.wait_for("^white$")

        server.kill()
        near.wait_for("^out of reach; last known: LastKnown.value='white'")
        start(*serve).wait_for("serving")
        near.wait_for("^white$")
        write("red")
        for each in (near, far):
            each.wait_for("^red$")


def changed(program: str, diff: str) -> str:
    """A program with the changes that a guide shows."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] != "+")
        new = "".join(line[1:] for line in lines if line[0] != "-")
        assert program.count(old) == 1, old
        program = program.replace(old, new)
    return program


@pytest.mark.asyncio
async def test_a_room_of_the_quick_start_is_read_at_four_frontends_while_it_moves(
    tmp_path: Path,
) -> None:
    """`volume=` is added as the guide says. A reader that was told of a visit reads no
    older count.
    """
    diff = GUIDE.read_text("utf-8").partition("```diff\n")[2].partition("```")[0]
    owner = tmp_path / "owner.py"
    owner.write_text(changed((EXAMPLES / "quickstart" / "owner.py").read_text("utf-8"), diff))
    first, second = map(str, free_ports(2))
    with ExitStack() as stack:
        running = stack.enter_context(manager("--first-start", preset="default"))
        url = running.wait_for("listening")["url"]

        def start(path: str | Path, *arguments: str) -> Program:
            return stack.enter_context(program(path, *arguments, managers=url))

        one = start(owner, first)
        one.wait_for("serving at")
        client = start("quickstart/client.py", ROOM)
        frontends = [start("quickstart/frontend.py", ROOM) for _ in range(FRONTENDS)]
        async with Lookup(url, pool="rooms") as lookup, Cache(lookup, value_type=int) as cache:

            async def visits(at: str) -> int:
                """Read after each visit, until one was counted there."""
                while True:
                    line = await asyncio.to_thread(client.wait_for, rf"^{ROOM} \d+ at ")
                    count = int(line.split()[1])
                    read = await cache.get(ROOM)
                    assert read is not None, line
                    assert read >= count, line
                    if line.endswith(at):
                        return count

            await visits(first)
            for each in frontends:
                await asyncio.to_thread(each.wait_for, rf"^{ROOM} \d+ at http://127.0.0.1:{first}")
            two = start(owner, second)
            await asyncio.to_thread(two.wait_for, "serving at")
            one.send(signal.SIGTERM)
            moved = await visits(second)
            for each in frontends:
                await asyncio.to_thread(each.wait_for, rf"^{ROOM} {moved + 1} at .*:{second}, ")
    for each in frontends:
        counts = [int(found[1]) for line in each.lines if (found := COUNT.match(line))]
        assert counts == sorted(counts), each.lines
