"""A real browser: Debian's Chromium without a screen, driven by Playwright."""

import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright

from tests.patience import DEADLINE_SECONDS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None,
    reason="there is no Chromium here, so the dashboard is not looked at: apt install chromium",
)
TIMEOUT_MS = 1000 * DEADLINE_SECONDS
SCREENSHOTS = os.environ.get("TENURE_SCREENSHOTS")
"""A folder in which pictures of what was tested are kept."""


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser, which keeps nothing from one page to the next."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def browsing(
    browser: Browser, *, dark: bool = False, width: int = 1200
) -> AsyncIterator[Page]:
    """A page. Whatever its scripts or its policy complain of fails the test at the end."""
    complaints: list[str] = []
    async with await browser.new_context(
        color_scheme="dark" if dark else "light", viewport={"width": width, "height": 900}
    ) as context:
        page = await context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: _note(complaints, said.type, said.text))
        yield page
        assert complaints == []


def _note(complaints: list[str], kind: str, text: str) -> None:
    """Chromium itself reports each answer that is an error, and those are asked for here."""
    if kind == "error" and "Failed to load resource" not in text:
        complaints.append(text)


DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Done when Chromium has drawn what has come into sight."""


AXE = find_spec("axe_playwright_python")
needs_axe = pytest.mark.skipif(AXE is None, reason="axe is not installed: run make setup")


@cache
def axe() -> str:
    """The script that looks for errors of accessibility."""
    assert AXE is not None
    assert AXE.origin is not None
    return (Path(AXE.origin).parent / "axe.min.js").read_text("utf-8")


# A page in a folder may fetch nothing, not even its own styles.
AXE_RUN = """axe.run(document, {
    resultTypes: ['violations'], preload: location.protocol !== 'file:',
})"""


async def errors_of_accessibility(page: Page) -> list[str]:
    """What axe finds on the page as it is."""
    await page.evaluate(axe())
    found = await page.evaluate(AXE_RUN)
    return [
        f"{each['id']}: {each['help']}: {json.dumps([at['html'] for at in each['nodes']])}"
        for each in found["violations"]
    ]


async def keep(page: Page, name: str) -> None:
    """Look at the page as people do: nobody is kept out. Keep a picture, where they are wanted."""
    if AXE is not None:
        assert await errors_of_accessibility(page) == []
    await picture(page, name)


async def picture(page: Page, name: str) -> None:
    """A picture, where pictures are wanted."""
    if not SCREENSHOTS:
        return
    before = page.viewport_size
    assert before is not None
    height: int = await page.evaluate("document.documentElement.scrollHeight")
    # Out of sight nothing is drawn, so that all of it has to be in sight.
    await page.set_viewport_size({"width": before["width"], "height": height})
    await page.evaluate(DRAWN)
    await page.screenshot(path=f"{SCREENSHOTS}/{name}.png", full_page=True)  # in a new folder
    await page.set_viewport_size(before)
