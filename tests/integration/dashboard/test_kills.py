"""Real processes are killed: the page shows what the API says before, then, and after."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tenure.dashboard.pages import add_pages
from tests.integration.dashboard.browser import browsing, keep, needs_chromium
from tests.integration.dashboard.test_dashboard import until
from tests.integration.dashboard.test_store_view import StoreView
from tests.integration.processes import command
from tests.unit.columns.node.managed import make_cluster
from tests.unit.columns.node.ringed import CLUSTER, SECRET
from tests.unit.manager.serving import Serving, serving

pytestmark = [pytest.mark.asyncio(loop_scope="module"), needs_chromium]
ROOMS = "/v1/pools/rooms"


@asynccontextmanager
async def page_of(browser: Browser) -> AsyncIterator[tuple[Serving, Page]]:
    async with (
        serving(None, add_pages, preset="default") as manager,
        browsing(browser) as page,
    ):
        await page.goto(manager.service.url)
        yield manager, page


@asynccontextmanager
async def started(*arguments: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(*arguments, stdout=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def owner(manager: Serving, name: str) -> AsyncIterator[Process]:
    """One that has entered."""
    module = sys.executable, "-m", "tests.integration.neighbour"
    async with started(*module, manager.service.url, name, "plain") as process:
        assert process.stdout
        assert await process.stdout.readline() == b"0\n"
        yield process


async def test_a_real_owner_is_killed(browser: Browser) -> None:
    async with page_of(browser) as (manager, page), AsyncExitStack() as stack:
        names = ("ann", "bob", "eve")
        processes = [await stack.enter_async_context(owner(manager, each)) for each in names]
        await until(
            manager, page, lambda told: all(each["ranges"] for each in told.values()), ROOMS
        )
        processes[1].kill()
        await until(manager, page, lambda told: set(told) == {"ann", "eve"}, ROOMS)
        dead = page.locator("#events li").filter(has_text="owner attested dead: bob")
        await expect(dead).to_have_count(1)
        await expect(page.locator("#space-words")).to_contain_text("2 owners")
        words = page.locator("#crash-words")
        await expect(words).to_contain_text("bob died at ")
        await expect(words).to_contain_text(
            "others on its host saw its process end. Every key had an owner again "
        )
        await page.get_by_text("What happened since").click()
        story = page.locator("#crash-story li")
        await expect(story.first).to_contain_text("+0.00 s: owner attested dead: bob")
        await expect(story.filter(has_text="granted").first).to_be_visible()
        await keep(page, "owner-killed")
        await stack.enter_async_context(owner(manager, "bob"))
        await until(manager, page, lambda told: "bob" in told and told["bob"]["ranges"] > 0, ROOMS)


async def test_the_only_owner_is_killed_and_keeps_its_ranges_until_its_hold_ends(
    browser: Browser,
) -> None:
    """There is no neighbour to attest its death, so this takes the 13 seconds of a hold."""
    async with page_of(browser) as (manager, page), owner(manager, "ann") as ann:
        await until(manager, page, lambda told: told["ann"]["ranges"] > 0, ROOMS)
        ann.send_signal(signal.SIGKILL)
        gone = "not connected"
        await until(manager, page, lambda told: told["ann"]["state"] == gone, ROOMS)
        assert (await manager.get(f"{ROOMS}/owners"))[1]["owners"][0]["ranges"] > 0
        await keep(page, "owner-silent")
        await until(manager, page, lambda told: told == {}, ROOMS)
        await expect(page.locator("#space-words")).to_contain_text("no owner")
        expired = page.locator("#events li").filter(has_text="owner expired: ann")
        await expect(expired).to_have_count(1)


async def listens(process: Process) -> None:
    assert process.stdout
    assert json.loads(await process.stdout.readline())["event"] == "listening"


async def test_a_real_node_of_the_store_is_killed_and_comes_back(
    browser: Browser, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    async with page_of(browser) as (manager, page), AsyncExitStack() as stack:
        await make_cluster(manager.service.url, 3)

        async def node(name: str) -> Process:
            options = {"cluster": CLUSTER, "data": tmp_path / name, "secret": secret}
            options |= {"manager": manager.service.url, "port": 0, "name": name}
            said = (str(part) for each in options.items() for part in (f"--{each[0]}", each[1]))
            words = command("columns", "node", "--json", *said)
            process = await stack.enter_async_context(started(*words))
            await listens(process)
            return process

        nodes = [await node(name) for name in ("n1", "n2", "n3")]
        view = StoreView(manager, page, [], [], stack)
        up = page.locator("#watching-words")
        await view.until(lambda ring: len(ring["ranges"]) > 1)
        await expect(up).to_have_text("Every node considers every other up.")
        nodes[2].kill()
        await view.until(lambda ring: not all(each["connected"] for each in ring["nodes"]))
        await expect(page.locator("#ring-trouble")).to_contain_text("n3 is not connected")
        await expect(up).to_have_text("Considered down: n3 by 2.")
        _, listed = await manager.get("/v1/clusters")
        assert [(each["nodes"], each["connected"]) for each in listed["clusters"]] == [(3, 2)]
        assert await doubted(manager) == {("n1", "n3"), ("n2", "n3")}
        down = page.locator("#events li").filter(has_text="node taken to be down: n3")
        await expect(down).to_have_count(1)
        await keep(page, "node-killed")
        await node("n3")
        await view.until(lambda ring: all(each["connected"] for each in ring["nodes"]))
        await expect(up).to_have_text("Every node considers every other up.")
        assert await doubted(manager) == set()


async def doubted(manager: Serving) -> set[tuple[str, str]]:
    """Return which nodes consider which others down, as the API says."""
    upkeep: dict[str, Any] = (await manager.get(f"/v1/clusters/{CLUSTER}/upkeep"))[1]
    return {(each["by"], each["node"]) for each in upkeep["seen"] if each["is_convicted"]}
