"""The dashboard in a real browser: what it shows is what the API says, whatever happens."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tenure import Lookup, Owner
from tenure.base.noted import Noted
from tenure.dashboard.pages import add_pages
from tenure.manager import last_hour
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.protocol.lease.leader.noted import LeaderKind
from tests import patience
from tests.integration.dashboard.browser import browsing, keep, needs_chromium
from tests.unit.manager.serving import Serving, serving

pytestmark = [pytest.mark.asyncio(loop_scope="module"), needs_chromium]
POOL = "rooms & <b>halls</b>"
CHANGES = 6_400
"""These changes come at once: a hundred owners of a thousand go, each had 64 ranges, and half of
those then have no owner.
"""
MOVES = 10
"""How often the mouse moves, or an arrow key is pressed, while a table is copied, at least.
A busy machine does both more slowly."""
PATH = "/v1/pools/rooms%20%26%20%3Cb%3Ehalls%3C%2Fb%3E"


@asynccontextmanager
async def dashboard(
    browser: Browser, *, dark: bool = False, width: int = 1200, owners: int = 3, **said: object
) -> AsyncIterator[tuple[Serving, Page, list[Owner]]]:
    async with (
        serving(None, add_pages, **said) as manager,
        browsing(browser, dark=dark, width=width) as page,
    ):
        made = [owner(manager, name) for name in ("ann", "bob", "<i>eve</i>")[:owners]]
        for each in made:
            await each.__aenter__()
        try:
            await page.goto(manager.service.url)
            yield manager, page, made
        finally:
            for each in made:
                await each.close(drain=0)


def owner(manager: Serving, name: str) -> Owner:
    return Owner(
        manager.service.url,
        pool=POOL,
        address=f"http://127.0.0.1/{name}",
        name=name,
        labels={"zone": "a"},
    )


async def shown(page: Page) -> dict[str, dict[str, Any]]:
    """The table of owners, as the page has it."""
    rows: list[list[str]] = await page.locator("#owners tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return {
        row[0]: {"state": row[1], "ranges": int(row[2]), "share": row[3], "address": row[6]}
        for row in rows
    }


async def said(manager: Serving, path: str = PATH) -> dict[str, dict[str, Any]]:
    """The same, as the API has it."""
    _, answer = await manager.get(f"{path}/owners")
    return {
        each["name"]: {
            "state": each["steering"] or ("serving" if each["connected"] else "not connected"),
            "ranges": each["ranges"],
            "share": f"{each['share'] * 100:.1f} %",
            "address": each["address"],
        }
        for each in answer["owners"]
    }


async def until(
    manager: Serving,
    page: Page,
    as_wanted: Callable[[dict[str, Any]], bool],
    path: str = PATH,
) -> None:
    """Wait until the page shows what the API says, and that is as wanted."""

    async def is_so() -> bool:
        there, told = await shown(page), await said(manager, path)
        return there == told and as_wanted(told)

    try:
        await patience.until(is_so)
    except AssertionError:
        pytest.fail(f"the page shows {await shown(page)}, the API says {await said(manager, path)}")


async def test_before_during_and_after_an_owner_goes_the_page_shows_what_the_api_says(
    browser: Browser,
) -> None:
    async with dashboard(browser) as (manager, page, owners):
        await until(manager, page, lambda told: all(each["ranges"] for each in told.values()))
        await expect(page.locator("#manager")).to_contain_text("leading, leadership 1")
        await expect(page.locator("#space-words")).to_contain_text("3 owners")
        await expect(page.locator("#legend")).to_contain_text("<i>eve</i>")
        await expect(page.locator("#pool")).to_have_value(POOL)
        await keep(page, "dashboard")
        await owners[1].close(drain=0)
        await until(manager, page, lambda told: set(told) == {"ann", "<i>eve</i>"})
        await expect(page.locator("#events li").filter(has_text="owner left")).to_have_count(1)
        async with owner(manager, "bob"):
            await until(manager, page, lambda told: len(told) == 3 and told["bob"]["ranges"] > 0)
        _, status = await manager.get("/v1/status")
        await expect(page.locator("[data-status=Role]")).to_have_text(status["role"])


async def test_names_are_in_the_order_of_their_numbers_and_counts_in_that_of_counts(
    browser: Browser,
) -> None:
    async with dashboard(browser, owners=0) as (manager, page, owners):
        for name in ("node-10", "node-2", "node-1"):
            owners.append(owner(manager, name))
            await owners[-1].__aenter__()
        names = page.locator("#owners tbody tr th")
        await expect(names).to_have_text(["node-1", "node-2", "node-10"])
        await page.locator("#owners button[data-by=name]").click()
        await expect(names).to_have_text(["node-10", "node-2", "node-1"])
        await page.locator("#owners button[data-by=ranges]").click()
        table = await shown(page)
        ranges = [each["ranges"] for each in table.values()]
        assert ranges == sorted(ranges, reverse=True)


async def test_a_hole_is_seen_and_every_range_can_be_walked_to_by_keyboard(
    browser: Browser,
) -> None:
    async with dashboard(browser, owners=1) as (manager, page, owners):
        await until(manager, page, lambda told: told["ann"]["ranges"] > 0)
        hues = await page.evaluate(
            """async names => {
                const { colour } = await import("/dashboard/space.js");
                return names.map(name => parseInt(colour(name, 1).slice(4)));
            }""",
            [f"another-{number}" for number in range(500)],
        )
        assert all(24 < hue < 336 for hue in hues), "red is for holes"
        await page.locator("#space").focus()
        await page.keyboard.press("End")
        await expect(page.locator("#space-at")).to_contain_text("to the last: ann, lease number")
        await page.keyboard.press("Home")
        await expect(page.locator("#space-at")).to_contain_text("the first key to")
        await owners[0].close(drain=0)
        await expect(page.locator("#space-words")).to_contain_text("no owner")
        await expect(page.locator("#space-words")).to_have_class("error")
        await keep(page, "hole")


async def test_a_name_has_its_colour_whenever_the_page_is_opened(browser: Browser) -> None:
    """In whichever order names are told. Those that would be alike are apart."""
    fleet = [f"owner-{number}" for number in range(8)]
    alike = ["web-a", "web-b", "web-c"]
    found = []
    async with dashboard(browser, owners=0) as (manager, page, _):
        for names in (fleet + alike, [*reversed(fleet + alike)]):
            await page.goto(manager.service.url)
            made = await page.evaluate(
                """async names => {
                    const { colour, spread } = await import("/dashboard/space.js");
                    const alone = names.map(name => colour(name, 1));
                    spread(names);
                    return names.map((name, at) => [name, [alone[at], colour(name, 1)]]);
                }""",
                names,
            )
            found.append(dict(made))
    assert found[0] == found[1]
    hues = {name: int(after[4:].split()[0]) for name, (_, after) in found[0].items()}
    assert all(found[0][name][0] == found[0][name][1] for name in fleet), "a fleet is apart already"
    assert any(found[0][name][0] != found[0][name][1] for name in alike)
    across = sorted(hues.values())
    assert min(b - a for a, b in pairwise(across)) >= 12, hues


async def test_a_command_is_previewed_and_done_only_when_it_is_confirmed(browser: Browser) -> None:
    async with dashboard(browser) as (manager, page, _):
        await until(manager, page, lambda told: all(each["ranges"] for each in told.values()))
        await page.get_by_role("button", name="drain bob").click()
        flows = page.locator("#preview-flows tr")
        await expect(flows.first).to_contain_text("bob")
        await keep(page, "preview")
        await page.get_by_role("button", name="Cancel").click()
        _, plan = await manager.get(f"{PATH}/plan")
        assert plan["steering"]["drained"] == []
        await page.get_by_role("button", name="drain bob").click()
        await page.get_by_role("button", name="Do it").click()
        await until(manager, page, lambda told: told["bob"]["ranges"] == 0)
        await page.get_by_role("button", name="uncordon bob").click()
        await page.get_by_role("button", name="Do it").click()
        await until(manager, page, lambda told: told["bob"]["state"] == "serving")
        await page.get_by_role("button", name="Freeze", exact=True).click()
        await page.get_by_role("button", name="Do it").click()
        await expect(page.locator("#pool-words")).to_contain_text("; frozen")


async def test_a_keys_story_is_told_and_it_can_be_pinned(browser: Browser) -> None:
    async with dashboard(browser) as (manager, page, _):
        await until(manager, page, lambda told: all(each["ranges"] for each in told.values()))
        await page.locator("#why-key").fill("room-42")
        await page.keyboard.press("Enter")
        _, told = await manager.get(f"{PATH}/why?key=room-42")
        first = page.locator("#story-owner")
        await expect(first).to_contain_text(f"room-42 belongs to {told['owner']['name']} at")
        other = next(name for name in ("ann", "bob") if name != told["owner"]["name"])
        await page.locator("#pin-owner").fill(other)
        await page.get_by_role("button", name="Pin there").click()
        await page.get_by_role("button", name="Do it").click()
        await expect(page.locator("#story")).to_contain_text(f"It is pinned to {other}.")


async def test_events_are_pushed_and_can_be_followed_by_their_cause(browser: Browser) -> None:
    async with (
        dashboard(browser, owners=1) as (manager, page, _),
        owner(manager, "bob"),
        Lookup(manager.service.url, pool=POOL),
    ):
        joined = page.locator("#events li").filter(has_text="owner joined: bob")
        await expect(joined).to_have_count(1)
        await expect(page.locator("#latest")).to_contain_text("Latest, at ")
        await expect(page.locator("[data-status=Lookups]")).to_have_text("1")
        cause = joined.get_by_role("button")
        which = (await cause.text_content() or "").split()[-1].rstrip(")")
        await cause.click()
        await expect(page.locator("#events-filter")).to_have_value(which)
        assert await page.locator("#events li").count() >= 1


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_on_a_phone_nothing_is_wider_than_the_screen(browser: Browser, *, dark: bool) -> None:
    async with dashboard(browser, width=360, dark=dark) as (manager, page, _):
        await until(manager, page, lambda told: len(told) == 3)
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(wide) <= 0
        ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
        await keep(page, f"phone-{'dark' if dark else 'light'}")


async def test_without_a_token_there_is_only_a_place_to_show_one(
    browser: Browser, tmp_path: Path
) -> None:
    tokens = TokenFile(tmp_path / "tokens")
    viewer, admin = new_token(AccessRole.VIEWER), new_token(AccessRole.ADMIN)
    tokens.add(viewer.entry)
    tokens.add(admin.entry)
    async with dashboard(browser, owners=0, tokens=tokens.path) as (manager, page, _):
        await expect(page.locator("#main")).to_be_hidden()
        await page.locator("#token").fill("tenure_no_such")
        await page.keyboard.press("Enter")
        await expect(page.locator("#sign-in-problem")).to_contain_text("not a token that counts")
        await page.locator("#token").fill(viewer.text)
        await page.keyboard.press("Enter")
        await expect(page.locator("#manager")).to_contain_text("leading")
        await expect(page.get_by_role("button", name="Freeze", exact=True)).to_be_hidden()
        cookies = await page.context.cookies()
        assert [(each["httpOnly"], each["sameSite"]) for each in cookies] == [(True, "Strict")]
        second = await page.context.new_page()
        await second.goto(f"{manager.service.url}/dashboard/")
        await expect(second.locator("#manager")).to_contain_text("leading")
        await second.close()
        tokens.remove(viewer.entry.id)
        await expect(page.locator("#sign-in")).to_be_visible()
        assert manager.counted("request not allowed") > 0


async def test_changes_are_laid_over_a_table_as_if_one_looked_at_every_range(
    browser: Browser,
) -> None:
    async with dashboard(browser, owners=0) as (_, page, _owners):
        await page.evaluate(
            """async () => {
                const { laid } = await import("/dashboard/table.js");
                let seed = 1;
                const drawn = (below) => (seed = (seed * 48271) % 2147483647) % below;
                const hex = (at) => (at ? at.toString(16).padStart(2, "0") : "");
                const naive = (owners, { start, end, owner }) => owners.map((before, at) =>
                    hex(at) >= start && (end === null || hex(at) < end) ? owner : before);
                for (let round = 0; round < 300; round++) {
                    let entries = [{ start: "", end: null, owner: 0 }];
                    let owners = Array(64).fill(0);
                    for (let step = 0; step < 12; step++) {
                        const [low, high] = [drawn(64), drawn(65)].sort((a, b) => a - b);
                        if (low === high) continue;
                        const end = high === 64 ? null : hex(high);
                        const change = { start: hex(low), end, owner: drawn(9) };
                        entries = laid(entries, [change]);
                        owners = naive(owners, change);
                    }
                    const found = owners.map((_, at) => entries.find((each) => hex(at) >= each.start
                        && (each.end === null || hex(at) < each.end)).owner);
                    if (found.join() !== owners.join()) throw new Error(JSON.stringify(entries));
                    entries.forEach((each, at) => {
                        const next = at + 1 < entries.length ? entries[at + 1].start : null;
                        if (each.end !== next) throw new Error(JSON.stringify(entries));
                    });
                }
            }"""
        )


async def test_a_thousand_owners_and_64_000_ranges_are_drawn_without_stutter(
    browser: Browser,
) -> None:
    async with dashboard(browser, owners=0) as (_, page, _owners):
        await page.wait_for_function("document.getElementById('manager').textContent !== ''")
        names = [f"owner-{number}" for number in range(1000)]
        drawn, moved, copied = await page.evaluate(
            """async ([names, many]) => {
                const { Space } = await import("/dashboard/space.js");
                const { OwnersTable } = await import("/dashboard/owners.js");
                const { Ranges } = await import("/dashboard/ranges.js");
                const { Table, laid } = await import("/dashboard/table.js");
                const table = new Table("many"), ranges = new Ranges("many"), count = 64000;
                names.forEach((name, index) => table.names.set(index + 1, name));
                const hex = (index) => Math.floor(index / count * 2 ** 32)
                    .toString(16).padStart(8, "0") + "00000000";
                table.entries = [...Array(count).keys()].map((index) => ({
                    start: index ? hex(index) : "", end: index + 1 < count ? hex(index + 1) : null,
                    owner: index % 1000 + 1, number: index, since: index }));
                const owners = names.map((name, index) => ({ name, incarnation: index + 1,
                    address: "http://a", ranges: 64, share: 0.001, load: index, hold_seconds: 9,
                    labels: {}, steering: "", connected: true, recalled_ranges: 0, protocol: 2,
                    same_address: "" }));
                document.getElementById("main").hidden = false;
                const space = new Space(document.getElementById("space"));
                const list = new OwnersTable(() => {});
                list.show(owners);
                document.getElementById("more-owners").click(); // all
                const times = [], copies = [];
                // The quickest is told. On a busy machine many are needed until one is undisturbed.
                const took = (work) => {
                    const began = performance.now();
                    work();
                    return performance.now() - began;
                };
                const bar = document.getElementById("space"), moves = [];
                for (let round = 0; round < 12; round++) {
                    copies.push(took(() => JSON.parse(JSON.stringify(table.entries))));
                    const changes = [...Array(many).keys()].map((each) => {
                        const at = round * 5 + each * 9 + 1, owner = each % 2 ? null : 1;
                        return { start: hex(at), end: hex(at + 1), owner, number: 1, since: 1 };
                    });
                    table.entries = laid(table.entries, changes);
                    ranges.take(table.shape());
                    owners.forEach((owner) => owner.hold_seconds += 1);
                    times.push(took(() => {
                        space.show(ranges, owners);
                        list.show(owners);
                        document.querySelector("#owners tr:last-child").getBoundingClientRect();
                    }));
                    await new Promise(requestAnimationFrame);
                    for (const key of ["ArrowRight", "PageDown", "End", "Home"])
                        moves.push(took(() =>
                            bar.dispatchEvent(new KeyboardEvent("keydown", { key }))));
                }
                if (ranges.count !== count || !ranges.holes) throw new Error(ranges.count);
                const rows = document.querySelectorAll("#owners tbody tr").length;
                if (rows !== 1000) throw new Error(rows);
                const busiest = document.getElementById("busiest").textContent;
                if (busiest !== "Busiest: owner-999 with 999.0/s, 0 % of 499500.0/s.")
                    throw new Error(busiest);
                const legend = document.getElementById("legend").textContent;
                if (!legend.startsWith("owner-976owner-977")) throw new Error(legend);
                return [Math.min(...times), Math.min(...moves), Math.min(...copies)];
            }""",
            [names, CHANGES],
        )
        said = f"{drawn} ms to draw, {moved} ms to move, {copied} ms for a copy of the table"
        assert drawn < copied, said
        assert moved * MOVES < copied, said


async def test_what_is_said_of_the_range_that_is_pointed_at_follows_its_moves(
    browser: Browser,
) -> None:
    async with dashboard(browser, owners=1) as (manager, page, owners):
        await until(manager, page, lambda told: told["ann"]["ranges"] > 0)
        at = page.locator("#space-at")
        await page.locator("#space").focus()
        await page.keyboard.press("Home")
        await expect(at).to_contain_text(": ann, lease number")
        await owners[0].close(drain=0)
        await expect(at).to_contain_text(": nobody, lease number")


async def test_ranges_too_narrow_to_be_told_apart_are_walked_through_one_by_one(
    browser: Browser,
) -> None:
    async with dashboard(browser, owners=0) as (_, page, _owners):
        walked = await page.evaluate(
            """async () => {
                const { Space } = await import("/dashboard/space.js");
                const ranges = { count: 4, edges: [0, 0.5, 0.5, 0.75], owners: [1, 2, 1, 2],
                    holes: 0, nameOf: String, entry: async () => null };
                const space = new Space(document.getElementById("space")), walked = [];
                for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft",
                    "ArrowLeft", "ArrowLeft"]) {
                    space.show(ranges, []);
                    space.onKey(new KeyboardEvent("keydown", { key }));
                    walked.push(space.at);
                }
                return walked;
            }"""
        )
        assert walked == [0, 1, 2, 3, 2, 1, 0]


async def test_it_shows_the_last_hour_in_lines_and_in_words(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_hour, "EVERY_SECONDS", 0.05)
    async with dashboard(browser) as (manager, page, _):
        for _ in range(14):
            manager.service.observer.note(Noted(LeaderKind.HANDED_OVER, POOL))
        hour = page.locator("#hour")
        await expect(hour.get_by_text("14, the last")).to_be_visible()
        await expect(hour.get_by_text("busiest of 3 owners")).to_be_visible()
        assert await hour.locator("path.moved").get_attribute("d") != "M0,0"
        assert await hour.locator("path.died").get_attribute("d") == "M0,0"
        await expect(hour.locator("figure", has_text="Owners that died")).to_contain_text("None.")
        await keep(page, "last-hour")


async def test_it_looks_back_over_the_last_hour(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_hour, "EVERY_SECONDS", 0.2)
    async with dashboard(browser) as (manager, page, _):
        note = manager.service.observer.note
        slider, moved = (
            page.get_by_label("Look back"),
            page.locator("figure", has_text="handed over"),
        )
        events, latest = page.locator("#events"), page.locator("#latest")
        note(Noted(LeaderKind.HANDED_OVER, POOL, "the first"))
        await expect(moved).to_contain_text("1, the last")
        then = await slider.get_attribute("max")
        note(Noted(LeaderKind.HANDED_OVER, POOL, "the second"))
        await expect(moved).to_contain_text("2, the last")
        await expect(events).to_contain_text("the second")
        await slider.fill(then or "")
        await expect(page.locator("#hour-time")).to_contain_text("ago")
        await expect(moved).to_contain_text("of 2 in all")
        await expect(events).to_contain_text("the first")
        await expect(events).not_to_contain_text("the second")
        await expect(latest).to_contain_text("Latest until then")
        assert await page.locator("#hour .mark").count() == 4
        await keep(page, "looking-back")
        await slider.press("End")
        await expect(page.locator("#hour-time")).to_have_text("now")
        await expect(events).to_contain_text("the second")
        assert await page.locator("#hour .mark").count() == 0


async def test_events_that_are_alike_are_one_line_until_each_is_asked_for(browser: Browser) -> None:
    async with dashboard(browser, owners=0) as (manager, page, _):
        note = manager.service.observer.note
        note(Noted(LeaderKind.EXPIRED, POOL, "ann"))
        for number in range(14):
            note(Noted(LeaderKind.HANDED_OVER, POOL, f"range {number}"))
        events = page.locator("#events")
        await expect(events.get_by_text("range 3")).to_have_count(0)
        await events.get_by_role("button", name="(14 of them)").click()
        await expect(events.get_by_text("range 3")).to_be_visible()
        await expect(events.get_by_text("owner expired: ann")).to_be_visible()
        for number in range(5):
            note(Noted(LeaderKind.GRANTED, POOL, f"{number + 2} ranges to bob"))
        await expect(events.get_by_text("granted: 20 ranges to bob (5 of them)")).to_be_visible()


async def test_it_names_the_hottest_keys(browser: Browser) -> None:
    async with dashboard(browser) as (_, page, owners):
        for each in owners:
            await each.ready()
        while not await page.locator("#hottest").get_by_text("<b>attic</b>").count():
            for each in owners:
                for _ in range(100):
                    each.check("<b>attic</b>")
            await page.wait_for_timeout(100)
        row = page.locator("#hottest tr", has_text="<b>attic</b>")
        assert await row.locator("td").nth(1).inner_text() in {"ann", "bob", "<i>eve</i>"}
        await keep(page, "hottest-keys")
