"""The recording in the documents, played in a real browser."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page

from lab.recording.story import Recording, recorded
from tests.integration.dashboard.browser import browsing, keep, needs_chromium
from tools.site.live import player

pytestmark = [pytest.mark.asyncio(loop_scope="module"), needs_chromium]
DOCS = Path(__file__).resolve().parents[3] / "docs"


def site(into: Path, recording: Recording, *, dark: bool = False) -> str:
    """A folder with the page of the recording alone, as the site has it; its URL."""
    (into / "start").mkdir()
    (into / "live").symlink_to(DOCS / "live")
    scheme = "slate" if dark else "default"
    colours = "color-scheme: dark; background: #14171b; color: #e7eaee" if dark else ""
    (into / "start" / "live.html").write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Live</title>'
        f'<body data-md-color-scheme="{scheme}" style="{colours}">'
        f"<main><h1>Watch it</h1>{player(recording)}</main></body>",
        "utf-8",
    )
    return (into / "start" / "live.html").as_uri()


async def shows(page: Page, at: float) -> None:
    """Move the slider."""
    slider = page.get_by_role("slider", name="Time")
    await slider.evaluate(
        "(it, at) => { it.value = at; it.dispatchEvent(new Event('input')); }", str(at)
    )


@pytest.mark.parametrize("dark", [False, True])
async def test_it_shows_the_instant_that_the_slider_says(
    browser: Browser, tmp_path: Path, *, dark: bool
) -> None:
    recording = recorded()
    async with browsing(browser, dark=dark, width=390 if dark else 1200) as page:
        await page.goto(site(tmp_path, recording, dark=dark))
        for told in recording.told:
            await shows(page, told.at)
            lines = page.get_by_role("list", name="What has happened").get_by_role("listitem")
            assert (await lines.last.inner_text()).endswith(told.text)
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(wide) == 0, "nothing has to be scrolled sideways"
        killed = next(each.at for each in recording.told if each.text.startswith("bob is killed"))
        await shows(page, killed + 0.1)
        assert await page.get_by_text("bob: killed, 0 %").is_visible()
        await keep(page, f"recording{'-dark' if dark else ''}")


async def test_it_plays_to_its_end_and_again(browser: Browser, tmp_path: Path) -> None:
    recording = recorded()
    async with browsing(browser) as page:
        await page.goto(site(tmp_path, recording))
        await page.get_by_role("combobox", name="Speed").select_option("10")
        await shows(page, recording.seconds - 1.0)
        await page.get_by_role("button", name="Play").click()
        await page.get_by_text(f"{recording.seconds:.1f} s", exact=True).wait_for()
        await page.get_by_role("button", name="Play").click()
        await page.get_by_role("button", name="Pause").click()
        first = page.get_by_role("list", name="What has happened").get_by_role("listitem").first
        assert (await first.inner_text()).endswith(recording.told[0].text)
