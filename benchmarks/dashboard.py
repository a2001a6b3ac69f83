"""The dashboard while every range of a large pool moves, in a real browser: does it stutter?

A manager has 1,000 owners with 64 ranges each. A page is opened on it, in a Chromium without a
screen. Then the owners leave and come back, a hundred at a time, until each range has been with
another owner, and the page follows. A *long task* is one that keeps the page from answering for 50
ms or more, as the browser itself reports it: a person who types or scrolls meanwhile notices it.

The first read, of the whole table, is reported separately: it happens once, when the page opens.
"""

import asyncio
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec.structs import replace
from playwright.async_api import Page, async_playwright, expect

from benchmarks._manager import ManagerProcess, allow_many_files, running_manager
from benchmarks._packed import packed, run_packed
from benchmarks._quick import at_most, sized, soon
from benchmarks._rounds import line
from benchmarks.full_pool import POOL, FullOwner, all_renew, ask, entered
from tenure.protocol.lease.messages import LeaseResponse, Refusal

OWNERS = sized(1_000, 150)
AT_ONCE = OWNERS // 10
BOUND_LONGEST_MS = soon(100)
"""From a tenth of a second on, people notice that a page lags behind them."""
BOUND_PART = at_most(0.02)
"""The part of the time that is in long tasks."""
BOUND_OPENING_MS = soon(500)
"""The longest task while the whole table is read: once."""
PATIENCE_MS = 120_000
WATCHING = """
    window.longTasks = [];
    new PerformanceObserver((list) => {
        for (const task of list.getEntries()) longTasks.push(task.duration);
    }).observe({ type: "longtask", buffered: true });
"""
SCROLLED = "(part) => scrollTo(0, part * document.documentElement.scrollHeight)"


class Stutter(NamedTuple):
    """The browser's report about a period."""

    seconds: float
    tasks: Sequence[float]
    """Milliseconds of each long task."""

    @property
    def longest(self) -> float:
        """The longest task."""
        return max(self.tasks, default=0.0)

    @property
    def part(self) -> float:
        """The share of the time in long tasks."""
        return sum(self.tasks) / 1000 / self.seconds


class LeavingOwner(FullOwner):
    """One that can leave, and come back as another incarnation."""

    async def leave(self) -> None:
        """Give everything back."""
        self.held = ()
        answer = await self._ask(lambda: replace(self._request(), leaving=True))
        assert isinstance(answer, LeaseResponse | Refusal), answer
        self.number += OWNERS


async def taken(page: Page, began: float) -> tuple[Stutter, float]:
    """Return what there was since `began`, on the page's clock, and what that clock says now."""
    tasks, now = await page.evaluate("[longTasks.splice(0), performance.now() / 1000]")
    return Stutter(now - began, tasks), now


async def all_move(page: Page, owners: Sequence[LeavingOwner]) -> None:
    """Every range is with another owner for a while; each time another part of the page is seen."""
    for first in range(0, OWNERS, AT_ONCE):
        some = owners[first : first + AT_ONCE]
        others = [owner for owner in owners if owner not in some]
        await page.evaluate(SCROLLED, first / OWNERS)
        await asyncio.gather(*(owner.leave() for owner in some))
        await settled(others)
        await shows(page, others)
        await asyncio.gather(*(owner.join() for owner in some))
        await settled(owners)
        await shows(page, owners)


async def settled(owners: Sequence[FullOwner]) -> None:
    """Wait until all ranges have an owner, and nothing moves any longer."""
    while True:
        changed = await all_renew(owners)
        if not changed and all(owner.held for owner in owners):
            return
        await asyncio.sleep(0.2)


async def shows(page: Page, owners: Sequence[FullOwner]) -> None:
    """The page says how many owners there are, and that no range is without one; they go on
    renewing, and take what the manager has for them.
    """
    ending = re.compile(rf" ranges, {len(owners)} owners$")
    seen = asyncio.Event()

    async def renew() -> None:
        while not seen.is_set():
            await all_renew(owners)
            await asyncio.sleep(0.5)

    async with asyncio.TaskGroup() as group:
        group.create_task(renew())
        await expect(page.locator("#space-words")).to_have_text(ending, timeout=PATIENCE_MS)
        seen.set()


async def measured(manager: ManagerProcess, chromium: str) -> tuple[Stutter, Stutter, int]:
    """Opening the page; the page while all moves; and how many ranges there are."""
    sockets = await packed(manager.url + "/v1/owner", OWNERS)
    owners = [LeavingOwner(number, socket, POOL) for number, socket in enumerate(sockets)]
    await entered(owners)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        page = await browser.new_page(viewport={"width": 1200, "height": 900})
        await page.add_init_script(WATCHING)
        await page.goto(manager.url)
        await shows(page, owners)
        words: Any = await page.locator("#space-words").text_content()
        opening, at = await taken(page, 0.0)
        await all_move(page, owners)
        moving, _ = await taken(page, at)
        await browser.close()
    return opening, moving, int(words.split()[0])


def report(opening: Stutter, moving: Stutter, ranges: int) -> bool:
    """Print all figures; whether the bounds are kept."""
    kept = [
        moving.longest <= BOUND_LONGEST_MS,
        moving.part <= BOUND_PART,
        opening.longest <= BOUND_OPENING_MS,
    ]
    print(f"{OWNERS:,} owners, {ranges:,} ranges; each moved twice in {moving.seconds:.0f} s")
    print(line(f"longest of {len(moving.tasks)} long tasks meanwhile", f"{moving.longest:.0f} ms",
               f"<= {BOUND_LONGEST_MS:g} ms", is_kept=kept[0]))  # fmt: skip
    print(line("part of the time in long tasks", f"{moving.part:.1%}",
               f"<= {BOUND_PART:.0%}", is_kept=kept[1]))  # fmt: skip
    print(line("longest while the page was opened", f"{opening.longest:.0f} ms",
               f"<= {BOUND_OPENING_MS:g} ms", is_kept=kept[2]))  # fmt: skip
    return all(kept)


def main() -> int:
    """Fill a pool, watch it, let all of it move, and print; return 1 if the page stuttered."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("there is no Chromium here, so the dashboard is not looked at: apt install chromium")
        return 0
    allow_many_files()
    with running_manager("--preset", "paper") as manager, suppress(KeyboardInterrupt):
        ask(manager, "POST", "/v1/pools", {"name": POOL, "kind": "hashed"})
        ask(manager, "POST", f"/v1/pools/{POOL}/policy", {"policy": "ring"})
        return 0 if report(*run_packed(measured(manager, chromium))) else 1
    return 1


if __name__ == "__main__":
    sys.exit(main())
