"""Two journals with living leaders, as the page shows them until an operator has decided."""

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tenure.dashboard.pages import add_pages
from tests.integration.dashboard.browser import browsing, keep, needs_chromium
from tests.unit.manager.serving import Events, Serving, serving

pytestmark = [pytest.mark.asyncio(loop_scope="module"), needs_chromium]
ROW = "[data-status='Two journals']"


async def journal_of(manager: Serving) -> str:
    _, status = await manager.get("/v1/status")
    return str(status["journal_id"])


async def resolve(at: Serving, over: str) -> None:
    """Decide; a manager refuses until it has seen that the other does not lead any longer."""
    while (answer := await at.post("/v1/resolve", {"over": over}))[0] != 200:
        assert "still leads" in answer[1]["error"], answer


async def test_a_rival_is_shown_with_the_way_out_until_an_operator_has_decided(
    browser: Browser,
) -> None:
    async with (
        serving(None, add_pages) as first,
        serving(None, add_pages, others=(first.service.url,)) as second,
        browsing(browser, width=390) as page,
        browsing(browser) as of_first,
    ):
        await Events(second.service.observer).wait_for("another journal has a living leader")
        await second.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        over = await journal_of(first)
        await page.goto(second.service.url)
        row = page.locator(ROW)
        await expect(row).to_have_text(
            f"{first.service.url} leads another, {over}: nothing is granted here until you decide "
            "with tenure resolve --keep URL"
        )
        assert await page.locator("body").evaluate("body => body.scrollWidth") <= 390
        await keep(page, "rivals")
        await of_first.goto(first.service.url)
        await expect(of_first.locator("[data-status=Role]")).to_have_text("leading")
        await expect(of_first.locator(ROW)).to_have_count(0)
        await resolve(first, over)
        await expect(of_first.locator(ROW)).to_have_text(
            "this one is over: the manager answers nobody"
        )
        await resolve(second, over)
        await expect(row).to_have_count(0)


async def test_what_an_owner_says_stops_its_pool_and_is_shown_as_text(browser: Browser) -> None:
    said = [
        {"journal": "1f", "manager": "http://<b>liar</b>/" + "x" * 500, "pool": "<i>rooms</i>"},
        {"journal": "2f", "manager": "http://other", "pool": "halls", "granted": False},
    ]

    async def lie(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, json={**await answer.json(), "rivals": said})

    async with serving(None, add_pages) as manager, browsing(browser, width=390) as page:
        await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        await page.route("**/v1/status", lie)
        await page.goto(manager.service.url)
        await shows_both(page)


async def shows_both(page: Page) -> None:
    row = page.locator(ROW)
    await expect(row).to_contain_text("granted in the pool <i>rooms</i>, as an owner of it says,")
    await expect(row).to_contain_text("http://<b>liar</b>/")
    await expect(row).to_contain_text("; http://other leads another, 2f: nothing is granted in the")
    assert await page.locator("body").evaluate("body => body.scrollWidth") <= 390, "on a phone, too"
