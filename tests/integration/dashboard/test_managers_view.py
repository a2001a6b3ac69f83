"""The managers, as the page of each of them shows them: who leads, who stands by, who is gone."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import pytest
from playwright.async_api import Browser, Page, expect

from tenure.cli.demo.ports import free_ports
from tenure.dashboard.pages import add_pages
from tenure.journals import MemoryJournal
from tenure.wire.lease_records import LEASE_RECORDS
from tests.integration.dashboard.browser import browsing, keep, needs_chromium
from tests.unit.manager.serving import Events, Serving, serving
from tests.unit.manager.test_api import ready

pytestmark = [pytest.mark.asyncio(loop_scope="module"), needs_chromium]


class Pair(NamedTuple):
    leader: Serving
    standby: Serving
    page: Page
    stack: AsyncExitStack
    """It holds the leader, which goes when the stack is closed."""

    def row(self, manager: Serving) -> str:
        return f"#managers tr[data-manager='{manager.service.url}']"


@asynccontextmanager
async def pair(browser: Browser, width: int = 1200) -> AsyncIterator[Pair]:
    journal = MemoryJournal(LEASE_RECORDS)
    ports = free_ports(2)
    others = tuple(f"http://127.0.0.1:{port}" for port in ports)
    async with AsyncExitStack() as leading, AsyncExitStack() as standing:
        first = serving(journal, add_pages, port=ports[0], others=others)
        leader = await leading.enter_async_context(first)
        await Events(leader.service.observer).wait_for("leading")
        second = serving(journal, add_pages, port=ports[1], others=others)
        standby = await standing.enter_async_context(second)
        await ready(standby)
        page = await standing.enter_async_context(browsing(browser, width=width))
        yield Pair(leader, standby, page, leading)


async def test_a_leader_shows_who_stands_by_and_who_does_not_answer(browser: Browser) -> None:
    async with pair(browser) as of:
        await of.leader.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        await of.page.goto(of.leader.service.url)
        await expect(of.page.locator(of.row(of.leader))).to_contain_text("(this one)")
        await expect(of.page.locator(of.row(of.leader))).to_contain_text("leading")
        await expect(of.page.locator(of.row(of.standby))).to_contain_text("standing by")
        await expect(of.page.locator("#standby")).to_be_hidden()
        await expect(of.page.locator("#space")).to_be_visible()
        await keep(of.page, "managers")
        await of.standby.service.stop()
        gone = of.page.locator(of.row(of.standby))
        await expect(gone).to_contain_text("it does not answer: Connection refused")


async def test_a_standbys_page_sends_to_the_leader_and_shows_all_when_it_leads(
    browser: Browser,
) -> None:
    async with pair(browser, width=390) as of:
        await of.leader.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        await of.page.goto(of.standby.service.url)
        words = of.page.locator("#standby")
        await expect(words).to_contain_text("This manager is standing by")
        await expect(of.page.locator("#space")).to_be_hidden()
        await expect(of.page.locator("#owners")).to_be_hidden()
        await expect(of.page.locator(of.row(of.leader))).to_contain_text("leading")
        wide = await of.page.locator("body").evaluate("body => body.scrollWidth")
        assert wide <= 390, "on a phone, too"
        await keep(of.page, "standby")
        await words.get_by_role("link").click()
        await expect(of.page.locator("#space")).to_be_visible()
        assert of.page.url.startswith(of.leader.service.url)
        await of.page.go_back()
        await expect(of.page.locator("#space")).to_be_hidden()
        await of.stack.aclose()
        await expect(of.page.locator("#manager")).to_contain_text("leading, leadership 2")
        await expect(words).to_be_hidden()
        await expect(of.page.locator("#space")).to_be_visible()
        await expect(of.page.locator("#pool")).to_have_value("rooms")
