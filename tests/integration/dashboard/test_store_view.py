"""The store's view in a real browser, over real nodes: it shows what the API says, and changes the
ring when somebody has seen what the change would do.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from playwright.async_api import Browser, Page, expect

from tenure.columns.node.node_service import NodeService, NodeSettings
from tenure.dashboard.pages import add_pages
from tests import patience
from tests.integration.dashboard.browser import browsing, keep, needs_chromium
from tests.unit.columns.node.managed import make_cluster
from tests.unit.columns.node.ringed import CLUSTER, settings_of
from tests.unit.manager.serving import Serving, serving

pytestmark = [pytest.mark.asyncio(loop_scope="module"), needs_chromium]
NAMES = ("n1", "n2", "<i>n3</i>", "n4")
RING = f"/v1/clusters/{CLUSTER}/ring"


class StoreView(NamedTuple):
    manager: Serving
    page: Page
    settings: list[NodeSettings]
    nodes: list[NodeService]
    stack: AsyncExitStack

    async def ring(self) -> dict[str, Any]:
        """Return the ring from the API as soon as the manager answers: it may be stalled for a
        moment.
        """

        async def answered() -> Any:  # noqa: ANN401 - JSON
            status, ring = await self.manager.get(RING)
            return status == HTTPStatus.OK and ring

        return dict(await patience.until(answered))

    async def until(self, as_wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until the page shows the nodes that the API has, and the ring is as wanted."""

        async def is_so() -> bool:
            there, ring = await shown(self.page), await self.ring()
            return as_wanted(ring) and there == said(ring)

        try:
            await patience.until(is_so)
        except AssertionError:
            pytest.fail(
                f"the page shows {await shown(self.page)}, the API says {await self.ring()}"
            )

    async def join(self, number: int) -> None:
        """Start another node."""
        service = NodeService(self.settings[number])
        self.nodes.append(await self.stack.enter_async_context(service))


async def shown(page: Page) -> dict[str, tuple[str, ...]]:
    rows: list[list[str]] = await page.locator("#nodes tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return {row[0]: tuple(row[1:5]) for row in rows}


def said(ring: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {
        node["name"]: (
            node["standing"] + ("" if node["connected"] else ", not connected"),
            f"{node['datacentre']}/{node['rack']}",
            node["token"],
            str(node["ranges"]),
        )
        for node in ring["nodes"]
    }


@asynccontextmanager
async def store_view(
    browser: Browser, place: Path, *, dark: bool = False, width: int = 1200
) -> AsyncIterator[StoreView]:
    """Three nodes on a ring, each in a rack of its own, and a page that shows them."""
    async with (
        AsyncExitStack() as stack,
        serving(None, add_pages) as manager,
        browsing(browser, dark=dark, width=width) as page,
    ):
        url = manager.service.url
        await make_cluster(url, 3)
        settings = [
            msgspec.structs.replace(
                each, managers=(url,), port=0, seeds=(), name=name, rack=f"r{number % 3}"
            )
            for number, (each, name) in enumerate(zip(settings_of(place, 4), NAMES, strict=True))
        ]
        view = StoreView(manager, page, settings, [], stack)
        async with stack:
            for number in range(3):
                await view.join(number)
            await page.goto(url)
            await view.until(lambda ring: len(ring["ranges"]) > 1)
            yield view


async def test_a_node_is_added_and_removed_in_the_browser_once_that_is_confirmed(
    browser: Browser, tmp_path: Path
) -> None:
    async with store_view(browser, tmp_path) as view:
        page = view.page
        await expect(page.locator("#ring-words")).to_contain_text("3 nodes; placement 3")
        await expect(page.locator("#ring-racks")).to_contain_text("datacentre/r2")
        await keep(page, "store")
        await view.join(3)
        await view.until(lambda ring: len(ring["nodes"]) == 4)
        await page.get_by_role("button", name="add n4").click()
        await expect(page.locator("#preview-flows tr").first).to_contain_text("n4")
        await keep(page, "store-preview")
        await page.get_by_role("button", name="Cancel").click()
        assert (await view.ring())["change"] == ""
        await page.get_by_role("button", name="add n4").click()
        await page.get_by_role("button", name="Do it").click()
        await view.until(lambda ring: said(ring)["n4"][0] == "member")
        await page.get_by_role("button", name="remove n2").click()
        await page.get_by_role("button", name="Do it").click()
        await view.until(lambda ring: "n2" in ring["removed"])
        await expect(page.locator("#ring-words")).to_contain_text("removed: n2")


async def test_before_during_and_after_a_node_goes_the_page_shows_what_the_api_says(
    browser: Browser, tmp_path: Path
) -> None:
    async with store_view(browser, tmp_path) as view:
        await view.nodes[2].__aexit__()
        await view.until(lambda ring: not all(node["connected"] for node in ring["nodes"]))
        await expect(view.page.locator("#ring-trouble")).to_contain_text(
            "<i>n3</i> is not connected"
        )
        _, upkeep = await view.manager.get(f"/v1/clusters/{CLUSTER}/upkeep")
        names = sorted({each["node"] for each in upkeep["seen"]})
        heads = await view.page.locator("#watching thead th").all_inner_texts()
        assert heads[1:] == names == sorted(NAMES[:3])
        await keep(view.page, "store-node-gone")
        await view.join(2)
        await view.until(lambda ring: all(node["connected"] for node in ring["nodes"]))
        await expect(view.page.locator("#ring-trouble")).to_be_empty()
        assert await view.page.locator("#nodes i").count() == 0, "names are text"


async def test_what_nodes_do_by_themselves_is_shown(browser: Browser) -> None:
    c = "<b>c</b>"
    seen = [
        {"by": by, "node": node, "phi": 7.5 if node == c else 0.4, "is_convicted": node == c}
        for by in ("a", "b")
        for node in ("a", "b", c)
        if by != node
    ]
    ranges = [
        {"start": "", "end": "0x80", "by": "a", "compared_seconds": 12, "differing": 3}
        | {"sealed_seconds": 7200, "held_back_by": ["<b>c</b>"]},
        {"start": "0x80", "end": None, "by": None, "compared_seconds": None, "differing": 0}
        | {"sealed_seconds": None, "held_back_by": []},
    ]
    hints = [{"at": "a", "target": "<b>c</b>", "count": 41, "bytes": 12_300}]
    upkeep = {"seen": seen, "ranges": ranges, "hints": hints, "hints_dropped": 0}
    async with serving(None, add_pages) as manager, browsing(browser) as page:
        await page.goto(manager.service.url)
        await page.evaluate(
            """async (upkeep) => {
                const { showUpkeep } = await import("/dashboard/upkeep.js");
                document.getElementById("main").hidden = false;
                for (const part of document.querySelectorAll("[data-of]"))
                    part.hidden = part.dataset.of !== "store";
                showUpkeep(upkeep);
            }""",
            upkeep,
        )
        words = page.locator("#watching-words")
        await expect(words).to_have_text("Considered down: <b>c</b> by 2.")
        row = page.locator("#watching tbody tr").nth(1)
        await expect(row.locator("th")).to_have_text("a")
        await expect(row.locator("td").first).to_have_text("7.5, down")
        cells = await page.locator("#tended tbody").locator("th, td").all_text_contents()
        first, second = cells[: len(cells) // 2], cells[len(cells) // 2 :]
        assert first[2:] == ["a", "12 s ago", "3", "2.0 h ago", "<b>c</b>"]
        assert second[2:] == ["nobody yet", "not yet", "0", "not yet", ""]
        await expect(page.locator("#hints tbody tr")).to_contain_text("<b>c</b>")
        assert await page.locator("#main td b, #main th b").count() == 0, "names are text"
        await keep(page, "store-upkeep")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_on_a_phone_the_ring_is_walked_by_keyboard_and_nothing_is_too_wide(
    browser: Browser, tmp_path: Path, *, dark: bool
) -> None:
    async with store_view(browser, tmp_path, width=360, dark=dark) as view:
        page = view.page
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(wide) <= 0
        ranges = (await view.ring())["ranges"]
        await page.locator("#ring").focus()
        await page.keyboard.press("Home")
        for each in (*ranges, ranges[0]):  # and around
            kept = f"kept by {', '.join(each['replicas'])}"
            from_ = each["start"] or "the first key"
            await expect(page.locator("#ring-at")).to_have_text(
                f"{from_} to {each['end'] or 'the last'}: {kept}"
            )
            await page.keyboard.press("ArrowRight")
        await keep(page, f"store-phone-{'dark' if dark else 'light'}")


async def preview(page: Page, words: str) -> None:
    """Return what the dialog says that the change would do."""
    await expect(page.locator("#preview-words")).to_contain_text(words)


async def confirm(page: Page) -> None:
    await page.get_by_role("button", name="Do it").click()
    await expect(page.locator("#preview")).to_be_hidden()


async def test_a_node_is_replaced_moved_and_compared_once_that_is_confirmed(
    browser: Browser, tmp_path: Path
) -> None:
    async with store_view(browser, tmp_path) as view:
        page = view.page
        await view.join(3)
        await view.until(lambda ring: len(ring["nodes"]) == 4)
        await page.locator("#replace-old").select_option("n2")
        await page.locator("#replace-new").select_option("n4")
        await page.get_by_role("button", name="Replace ...").click()
        await preview(page, "n4")
        await expect(page.locator("#preview-flows tr").first).to_contain_text("n4")
        await page.get_by_role("button", name="Cancel").click()
        assert (await view.ring())["change"] == ""
        await page.get_by_role("button", name="Replace ...").click()
        await confirm(page)
        await view.until(lambda ring: said(ring)["n4"][0] == "member" and "n2" not in said(ring))
        before = said(await view.ring())["n1"][2]
        await page.locator("#move-which").select_option("n1")
        await page.locator("#move-token").fill("0x" + "5a" * 16)
        await page.get_by_role("button", name="Move ...").click()
        await preview(page, "n1")
        await page.get_by_role("button", name="Cancel").click()
        assert said(await view.ring())["n1"][2] == before
        await page.get_by_role("button", name="Move ...").click()
        await confirm(page)
        await view.until(lambda ring: ring["change"] == "" and said(ring)["n1"][2] != before)
        assert "Z" * 16 in said(await view.ring())["n1"][2], "the bytes 0x5a"
        await page.get_by_role("button", name="Compare now ...").click()
        await preview(page, "compare")
        await confirm(page)


async def test_a_change_that_runs_is_taken_back_once_that_is_confirmed(
    browser: Browser, tmp_path: Path
) -> None:
    async with store_view(browser, tmp_path) as view:
        page = view.page
        await view.join(3)
        await view.until(lambda ring: len(ring["nodes"]) == 4)
        await view.nodes[3].__aexit__()  # so that the change waits for it
        await view.until(lambda ring: not all(node["connected"] for node in ring["nodes"]))
        await page.get_by_role("button", name="add n4").click()
        await confirm(page)
        await view.until(lambda ring: ring["change"] != "")
        await expect(page.locator("#change-waits")).to_contain_text("waits for n4")
        await page.get_by_role("button", name="Take the change back").click()
        await preview(page, "n4")
        await keep(page, "store-take-back")
        await page.get_by_role("button", name="Cancel").click()
        assert (await view.ring())["change"] != ""
        await page.get_by_role("button", name="Take the change back").click()
        await confirm(page)
        await view.until(lambda ring: ring["change"] == "" and said(ring)["n4"][0] == NOT_THERE)
        await expect(page.locator("#change")).to_be_hidden()


NOT_THERE = "waiting, not connected"
