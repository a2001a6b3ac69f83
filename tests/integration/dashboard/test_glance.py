"""What the first lines of the dashboard answer: is anything wrong, what is hot, what changed."""

from copy import deepcopy
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tenure.dashboard.pages import add_pages
from tests.integration.dashboard.browser import browsing, keep, needs_chromium
from tests.integration.dashboard.test_dashboard import POOL, dashboard
from tests.unit.manager.serving import serving

pytestmark = [pytest.mark.asyncio(loop_scope="module"), needs_chromium]
GATEWAY = "http://10.0.0.9:4000"
FIRST_PAINT_MS = 1000.0


def owner(name: str, **said: Any) -> dict[str, Any]:  # noqa: ANN401  # as JSON has it
    alone = {
        "name": name,
        "address": f"http://{name}",
        "labels": {"version": "41"},
        "load": 1.0,
        "connected": True,
        "steering": "",
        "same_address": "",
    }
    return {**alone, **said}


def entities(**said: Any) -> dict[str, Any]:  # noqa: ANN401  # as JSON has it
    alone = {"kind": "Room", "instances": 2, "turns": 1, "waiting": 0, "kept_in": "columns"}
    return {**alone, "sockets": 0, "edges": [], **said}


WELL: dict[str, Any] = {
    "pool": "rooms",
    "pulse": {
        "proven": True,
        "waits": False,
        "pools": [{"name": "rooms", "free_ranges": 0}],
        "clusters": [{"name": "mail", "nodes": 3, "connected": 3, "trouble": "", "change": ""}],
    },
    "status": {"journal_health": {"error": "", "alarms": []}, "rivals": [], "troubles": {}},
    "owners": [owner("ann", load=40.0), owner("bob")],
    "hottest": [{"name": "lobby", "key": None, "owner": "ann", "rate": 39.0}],
    "hour": {
        "every_seconds": 10.0,
        "until": 5000.0,
        "moved": [7, 2, 3],
        "died": [0, 0, 0],
        "at": [4000.0, 4990.0, 5000.0],
    },
    "unsampled": 0,
}


async def told(page: Page, seen: dict[str, Any]) -> dict[str, str]:
    """Each line that is shown."""
    found: dict[str, str] = await page.evaluate(
        """async (seen) => {
            const { Glance } = await import("/dashboard/glance.js");
            document.getElementById("glance").replaceChildren();
            new Glance().show(seen);
            const told = [...document.querySelectorAll("#glance dd:not([hidden])")];
            return Object.fromEntries(told.map((each) => [each.dataset.glance, each.textContent]));
        }""",
        seen,
    )
    return found


async def test_what_is_well_is_said_to_be_well(browser: Browser) -> None:
    async with serving(None, add_pages) as manager, browsing(browser) as page:
        await page.goto(manager.service.url)
        assert await told(page, WELL) == {
            "Now": "Nothing is wrong: every key has an owner, and all 2 owners are connected.",
            "Load": "41 requests a second. The busiest owner is ann, with 40; "
            "the hottest key is lobby, with 39, at ann.",
            "Versions": "All owners run version 41: no deploy is under way.",
            "Last 10 minutes": "5 ranges moved to another owner with their state "
            "(watched for 20 s)",
            "Lost": "Nothing: no owner died in the last 30 s.",
            "Store": "mail: 3 nodes, all connected, no trouble",
        }


async def test_each_thing_that_is_wrong_is_named(browser: Browser) -> None:
    async with serving(None, add_pages) as manager, browsing(browser) as page:
        await page.goto(manager.service.url)
        ill = deepcopy(WELL)
        ill["pulse"]["pools"][0]["free_ranges"] = 3
        ill["pulse"]["proven"] = False
        ill["pulse"]["clusters"][0]["connected"] = 2
        ill["status"]["journal_health"] = {"error": "disk full", "alarms": ["NOSPACE"]}
        ill["status"]["troubles"] = {"rooms": "policy hangs", "halls": "of another pool"}
        ill["owners"] += [owner("cleo", connected=False), owner("dan", steering="stuck")]
        assert (await told(page, ill))["Now"].split("; ") == [
            "3 ranges without an owner",
            "not connected: cleo",
            "stuck: dan",
            "the manager cannot reach its journal",
            "journal: disk full",
            "journal: NOSPACE",
            "policy hangs",
            "store mail: only 2 of 3 nodes are connected",
        ]
        assert await page.locator("[data-glance=Now]").get_attribute("class") == "error"
        ill["owners"] = []
        assert "the pool has no owners" in (await told(page, ill))["Now"]


async def test_a_deploy_is_seen_by_its_versions(browser: Browser) -> None:
    async with serving(None, add_pages) as manager, browsing(browser) as page:
        await page.goto(manager.service.url)
        seen = deepcopy(WELL)
        seen["owners"] += [owner("cleo", labels={"version": "9"}), owner("dan", labels={})]
        assert (await told(page, seen))["Versions"] == (
            "A deploy is under way: version 41 on ann, bob, version 9 on cleo, no version on dan."
        )
        seen["owners"] = [owner("dan", labels={})]
        assert "Versions" not in await told(page, seen)


async def test_what_a_death_has_lost_depends_on_where_state_is_kept(browser: Browser) -> None:
    async with serving(None, add_pages) as manager, browsing(browser) as page:
        await page.goto(manager.service.url)
        seen = deepcopy(WELL)
        seen["unsampled"] = 1
        assert (await told(page, seen))["Lost"].startswith("1 owner died in the last 30 s. ")
        seen["hour"]["died"], seen["unsampled"] = [0, 1, 0], 0
        lost = "1 owner died in the last 30 s. "
        in_memory = lost + "What they had only in memory is lost, and every lookup is told."
        assert (await told(page, seen))["Lost"] == in_memory
        for each in seen["owners"]:
            each["entities"] = entities()
        kept = "Nothing that was acknowledged is lost: the entities are kept in columns."
        assert (await told(page, seen))["Lost"] == lost + kept
        seen["owners"].append(
            owner("cleo", labels={"tenure.class": "Room"})
        )  # reports when it renews
        assert (await told(page, seen))["Lost"] == lost + kept
        seen["owners"][1]["entities"] = entities(kept_in="")
        assert (await told(page, seen))["Lost"] == in_memory


async def test_sockets_are_counted_where_they_end(browser: Browser) -> None:
    async with serving(None, add_pages) as manager, browsing(browser) as page:
        await page.goto(manager.service.url)
        seen = deepcopy(WELL)
        at = [{"edge": GATEWAY, "sockets": 30}, {"edge": "http://bob", "sockets": 2}]
        for each in seen["owners"]:
            each["entities"] = entities(sockets=32, edges=at)
        lines = await told(page, seen)
        assert lines["Sockets"] == (
            f"64 open: 60 at the gateway that owners reach at {GATEWAY}, 4 at the owners themselves"
        )
        assert lines["Entities"] == "4 instances, 2 turns running, 0 calls waiting"


async def test_the_page_says_it_of_its_pool(browser: Browser) -> None:
    async with dashboard(browser) as (_, page, owners):
        now = page.locator("[data-glance=Now]")
        await expect(now).to_contain_text("all 3 owners are connected")
        await keep(page, "at-a-glance")
        for each in owners:
            await each.close(drain=0)
        await expect(now).to_contain_text("the pool has no owners")
        await expect(page.locator("#pool")).to_have_value(POOL)


async def test_it_is_painted_within_a_second(browser: Browser) -> None:
    """The quickest of several counts: the machine may have other work to do."""
    async with serving(None, add_pages) as manager:
        painted = []
        for _ in range(5):
            async with browsing(browser) as page:
                await page.goto(manager.service.url)
                await expect(page.locator("#main")).to_be_visible()
                painted.append(
                    await page.evaluate(
                        "performance.getEntriesByName('first-contentful-paint')[0].startTime"
                    )
                )
        assert min(painted) < FIRST_PAINT_MS


async def test_a_lookup_that_joins_after_a_crash_was_told_of_it(browser: Browser) -> None:
    async with serving(None, add_pages) as manager, browsing(browser) as page:
        await page.goto(manager.service.url)
        lags = [{"lsn": 70, "lookup_lag": 3}, {"lsn": 72, "lookup_lag": 2}]
        words: list[str] = await page.evaluate(
            """async (lags) => {
                const { Crash } = await import("/dashboard/crash.js");
                const crash = new Crash(), at = Date.now() / 1000;
                crash.note({ pool: "rooms", kind: "owner expired", detail: "ann (1)", at });
                return lags.map((each) => {
                    crash.show({ name: "rooms", free_ranges: 0 }, each);
                    return document.getElementById("crash-words").textContent;
                });
            }""",
            [*lags, {"lsn": 90, "lookup_lag": 90}],
        )
        not_yet = "the slowest lookup has not been told yet: it is 3 records behind."
        assert not_yet in words[0]
        assert all("every lookup has been told." in each for each in words[1:])
