"""The views of caches and entities in a real browser: what is shown is what the API says."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientWebSocketResponse
from playwright.async_api import Browser, Locator, Page, expect

from tenure import Cache, Entities, Lookup, Owner, Volume
from tenure.cache.cache_engine import PATH
from tenure.cache.object_keys import ObjectKeys
from tenure.cli.demo.ports import free_ports
from tenure.dashboard.pages import add_pages
from tenure.protocol.volume.messages import Fetch, Fetched, Reconnect, Reconnected
from tenure.wire.versions import NEWEST, SUBPROTOCOLS
from tenure.wire.volume import decode_to_cache, encode_volume
from tests import patience
from tests.integration.dashboard.browser import browsing, keep, needs_chromium
from tests.patience import DEADLINE_SECONDS
from tests.unit.cli.test_commands import to
from tests.unit.entities.stage import Counter
from tests.unit.entities.test_exporting import Hall
from tests.unit.entities.test_inspecting import Room
from tests.unit.manager.serving import Serving, serving

pytestmark = [pytest.mark.asyncio(loop_scope="module"), needs_chromium]
PATIENCE_SECONDS = 10 * DEADLINE_SECONDS
"""The limit for a whole test: each of its waits has a deadline of its own."""
KEY = "row <b>7</b>"


@asynccontextmanager
async def page_of(
    browser: Browser, *, dark: bool = False, width: int = 1200
) -> AsyncIterator[tuple[Serving, Page]]:
    async with (
        serving(None, add_pages, patience=PATIENCE_SECONDS, preset="default") as manager,
        browsing(browser, dark=dark, width=width) as page,
    ):
        await page.goto(manager.service.url)
        yield manager, page


async def silent_reader(manager: Serving, url: str, client: int) -> ClientWebSocketResponse:
    """A cache that has read a key, and says nothing any more."""
    socket = await manager.session.ws_connect(url + PATH, protocols=SUBPROTOCOLS)
    reconnect = Reconnect(client=client, sequence=1, history=0)
    await socket.send_bytes(encode_volume(reconnect, NEWEST))
    on_record = decode_to_cache(await socket.receive_bytes(), NEWEST)
    assert isinstance(on_record, Reconnected)
    fetch = Fetch(
        client=client,
        epoch=on_record.epoch,
        reader=on_record.reader,
        sequence=2,
        key=ObjectKeys(str, "hashed").key(KEY),
    )
    await socket.send_bytes(encode_volume(fetch, NEWEST))
    assert isinstance(decode_to_cache(await socket.receive_bytes(), NEWEST), Fetched)
    return socket


async def cells(page: Page, table: str) -> list[list[str]]:
    found: list[list[str]] = await page.locator(f"#{table} tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return found


async def until(page: Page, table: str, as_wanted: Callable[[list[list[str]]], bool]) -> None:
    """Wait until the table shows that. Nobody pushes these figures, so this waits for renewals,
    too.
    """

    async def is_so() -> bool:
        return as_wanted(await cells(page, table))

    await patience.until(is_so, table)


async def test_readers_are_counted_and_a_write_says_for_whom_it_waits(browser: Browser) -> None:
    async with page_of(browser) as (manager, page):
        url = manager.service.url
        (port,) = free_ports(1)
        listen = f"127.0.0.1:{port}"
        volume = Volume({KEY: "old"}.get, durable=True, value_type=str, listen=listen)
        async with Owner(
            url, pool="rows", address="http://127.0.0.1/ann", name="ann", volume=volume
        ) as owner:
            await owner.ready()
            async with Lookup(url, pool="rows") as lookup, Cache(lookup, value_type=str) as cache:
                assert await cache.get(KEY) == "old"
                await page.get_by_role("button", name="Caches").click()
                one = [["1", "1"]]
                await until(page, "volumes", lambda rows: [row[1:3] for row in rows] == one)
                await expect(page.locator("#writes-none")).to_be_visible()
                _, told = await manager.get("/v1/pools/rows/owners")
                assert told["owners"][0]["volume"]["readers"] == 1
                silent: list[str] = []
                writes = waiting(manager, f"http://{listen}", volume, silent)
                writing = asyncio.ensure_future(writes)
                # The reader that answers is waited for, too, and at last nobody but time.
                await until(
                    page,
                    "writes",
                    lambda rows: [row[:2] for row in rows if row[3] in silent] == [[KEY, "ann"]],
                )
                assert await page.locator("#writes b").count() == 0, "keys are text"
                await keep(page, "caches")
                writing.cancel()
                await until(page, "writes", lambda rows: rows == [])
        await expect(page.get_by_role("button", name="Caches")).to_be_hidden()
        await expect(page.locator("#space-words")).to_be_visible()


async def waiting(manager: Serving, url: str, volume: Volume[str], silent: list[str]) -> None:
    """A write waits for a silent reader, for as long as that may hit; then another does. The page
    may be too slow to see the first. Each reader is a new one: no write waits for one that has
    missed three deadlines.
    """
    while True:
        socket = await silent_reader(manager, url, client=1 + len(silent))
        host, port = socket.get_extra_info("sockname")[:2]
        silent.append(f"{host}:{port}")
        async with volume.write(KEY):
            await socket.close()


async def test_entities_are_counted_with_the_turn_that_takes_longest(browser: Browser) -> None:
    async with page_of(browser) as (manager, page):
        async with Entities(Counter, "counters", manager.service.url) as counters:
            await counters["a"].add()
            await counters["b"].add()
            await counters["b"].hold()
            held, waits = (asyncio.ensure_future(counters["b"].add()) for _ in range(2))
            await page.get_by_role("button", name="Entities").click()
            wanted = ["Counter", "2", "1", "1", "0", "0"]
            await until(page, "entities", lambda rows: [row[1:7] for row in rows] == [wanted])
            (row,) = await cells(page, "entities")
            assert row[7].startswith("add of 'b', for ")
            await keep(page, "entities")
            await counters["b"].release()
            await asyncio.gather(held, waits)
            wanted = ["Counter", "2", "0", "0", "0", "0"]
            await until(page, "entities", lambda rows: [row[1:7] for row in rows] == [wanted])
            _, told = await manager.get("/v1/pools/counters/owners")
            assert told["owners"][0]["entities"]["instances"] == 2
        await expect(page.get_by_role("button", name="Entities")).to_be_hidden()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_a_thousand_volumes_fit_on_a_phone(browser: Browser, *, dark: bool) -> None:
    async with page_of(browser, width=360, dark=dark) as (_, page):
        await page.evaluate(
            """async () => {
                const { showCaches, showEntities } = await import("/dashboard/caches.js");
                const write = { keys: "row ".repeat(40), seconds: 9, missing: 9, readers: ["x:1"] };
                const owners = [...Array(1000).keys()].map((index) => ({
                    name: `owner-${index}`,
                    volume: { readers: index, leases: 9, unacknowledged: 1, writes: 1, loads: 0,
                        waiting: Array(16).fill(write) },
                    entities: { kind: "Room", instances: index, turns: 1, waiting: 0, alarms: 3,
                        longest: "say of " + "x".repeat(90), longest_seconds: 9 },
                }));
                document.getElementById("main").hidden = false;
                for (const part of document.querySelectorAll("[data-of]")) part.hidden = false;
                showCaches(owners);
                showEntities(owners);
            }"""
        )
        assert len(await cells(page, "volumes")) == 100
        assert (await cells(page, "volumes"))[0][0] == "owner-999"
        assert len(await cells(page, "writes")) == 100
        await expect(page.locator("#entities-cut")).to_contain_text("100 of 1000")
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(wide) <= 0


async def test_all_entities_are_exported_to_a_file(browser: Browser, tmp_path: Path) -> None:
    async with (
        page_of(browser) as (manager, page),
        Entities(Room, "rooms", manager.service.url) as rooms,
    ):
        await rooms["attic"].say("hello")
        await page.get_by_role("button", name="Entities").click()
        save = page.get_by_role("button", name="Export all")
        async with page.expect_download() as downloading:
            await save.click()
        download, file = await downloading.value, tmp_path / "rooms.jsonl"
        assert download.suggested_filename == file.name
        await download.save_as(file)
        await expect(page.locator("#keys-words")).to_have_text("1 entities exported")
        lines = [json.loads(each) for each in file.read_text().split("\n")[:-1]]
        assert (lines[1]["line"], lines[1]["key"], lines[-1]["line"]) == ("entity", "attic", "end")
        await keep(page, "export")
        path = "**/entities/export"
        cut = '{"line":"cut","why":"an owner has gone","way_out":"ask again"}\n'
        await page.route(path, lambda route: route.fulfill(body=cut))
        await save.click()
        problem = page.locator("#keys-problem")
        await expect(problem).to_have_text("the export was cut: an owner has gone")
        body = '{"error":"this token may not see contents","way_out":"use one of admin"}'
        await page.unroute(path)
        await page.route(path, lambda route: route.fulfill(status=403, body=body))
        await save.click()
        await expect(problem).to_contain_text("use one of admin")
        await expect(page.locator("#keys-words")).to_have_text("")


async def test_an_export_is_imported(browser: Browser, tmp_path: Path) -> None:
    """Of an entity in several parts, too, and one whose key is a number."""
    file = tmp_path / "rooms.jsonl"
    async with page_of(browser) as (manager, page):
        url = manager.service.url
        words, problem = page.locator("#keys-words"), page.locator("#keys-problem")

        async def take(path: Path, wanted: str, where: Locator) -> None:
            await page.get_by_label("An export").set_input_files(path)
            await page.get_by_role("button", name="Import").click()
            await expect(where).to_contain_text(wanted)

        async with Entities(Hall, "rooms", url) as halls:
            await page.get_by_role("button", name="Entities").click()
            await page.get_by_role("button", name="Import").click()
            await expect(problem).to_have_text("choose a file that an export has made")
            await halls["large"].fill(1200)
            await halls[7].fill(3)
            before = await halls["large"].everything()
            await to(manager, "entities", "export", "rooms", str(file))
            await take(file, "0 of 2 entities imported, 2 were there", words)
            await keep(page, "import")
            await halls["large"].fill(1)
            await take(file, "1 were there; left out: large (another is there)", problem)
            await page.get_by_label("Replace what is there").check()
            await take(file, "1 of 2 entities imported, 1 were there", words)
            assert await halls["large"].everything() == before
            await halls["large"].clear()
            await halls[7].clear()
            await take(file, "2 of 2 entities imported, 0 were there", words)
            assert await halls["large"].everything() == before
            changed, other = tmp_path / "changed.jsonl", tmp_path / "other.jsonl"
            changed.write_text(file.read_text().replace("note 2 ", "note 9 "))
            await take(changed, "the file has changed since it was made", problem)
            other.write_text("\n".join(file.read_text().split("\n")[:-2]))
            await take(other, "the file is no whole export", problem)
            other.write_text("no export\n")
            await take(other, "line 1 of the file is damaged", problem)
            path = "**/entities/import"
            body = '{"error":"not for this token","way_out":"use one of admin"}'
            await page.route(path, lambda route: route.fulfill(status=403, body=body))
            await take(file, "then: not for this token (use one of admin)", problem)


async def test_keys_are_listed_and_one_is_shown_with_its_collections(browser: Browser) -> None:
    async with (
        page_of(browser) as (manager, page),
        Entities(Room, "rooms", manager.service.url) as rooms,
    ):
        odd = "<b>attic</b> & co"
        for i in range(120):
            await rooms[f"room-{i}"].say("hello")
        for text in ("first", "<i>second</i>"):
            await rooms[odd].say(text)
        await page.get_by_role("button", name="Entities").click()
        await page.get_by_role("button", name="List keys").click()
        await expect(page.locator("#keys-words")).to_contain_text("100 keys")
        await page.get_by_role("button", name="Next page").click()
        await expect(page.locator("#keys-words")).to_contain_text("21 keys")
        await page.get_by_role("button", name="Previous page").click()
        await expect(page.locator("#keys-words")).to_contain_text("100 keys")
        await page.get_by_label("Beginning with").fill("<b>")
        await page.get_by_role("button", name="List keys").click()
        await until(page, "keys", lambda rows: rows == [[odd, "text"]])
        await page.get_by_role("button", name=f"show key {odd}").click()
        entity = page.locator("#entity")
        await expect(entity).to_contain_text('"about": "<i>second</i>"')
        await page.get_by_role("button", name="show history").click()
        await expect(page.locator("#items")).to_contain_text('"<i>second</i>"')
        assert await entity.locator("b, i").count() == 0, "what is kept is text"
        await keep(page, "keys")
        await page.get_by_label("One key").fill("cellar")
        await page.get_by_role("button", name="Show", exact=True).click()
        await expect(entity).to_contain_text("nothing is kept of it")
