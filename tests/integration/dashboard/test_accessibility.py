"""The dashboard keeps nobody out: axe finds no error, wherever these tests look at it (`keep`)."""

import pytest
from playwright.async_api import Browser, expect

from tenure.dashboard.pages import add_pages
from tests.integration.dashboard.browser import (
    browsing,
    errors_of_accessibility,
    needs_axe,
    needs_chromium,
)
from tests.integration.dashboard.test_dashboard import dashboard
from tests.unit.manager.serving import serving

pytestmark = [pytest.mark.asyncio(loop_scope="module"), needs_chromium, needs_axe]


@pytest.mark.parametrize(
    ("dark", "width"), [(False, 1200), (True, 1200), (False, 390), (True, 390)]
)
async def test_who_reads_by_screen_reader_or_sees_badly_is_kept_out_of_nothing(
    browser: Browser, *, dark: bool, width: int
) -> None:
    async with dashboard(browser, dark=dark, width=width) as (_, page, _):
        await expect(page.locator("#owners tbody tr")).to_have_count(3)
        assert await errors_of_accessibility(page) == []


async def test_a_manager_at_rest_keeps_nobody_out(browser: Browser) -> None:
    async with serving(None, add_pages) as manager, browsing(browser) as page:
        await page.goto(manager.service.url)
        await expect(page.locator("[data-status=Role]")).to_have_text("leading")
        assert await errors_of_accessibility(page) == []


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ("<img src='data:,'>", "image-alt"),
        ("<button></button>", "button-name"),
        ("<p style='color: #bbb; background: #fff'>hardly to be seen</p>", "color-contrast"),
    ],
)
async def test_an_error_of_accessibility_is_found(browser: Browser, bad: str, rule: str) -> None:
    async with browsing(browser) as page:
        await page.set_content(f"<html lang=en><title>t</title><main><h1>t</h1>{bad}</main>")
        found = await errors_of_accessibility(page)
        assert [each.partition(":")[0] for each in found] == [rule]
