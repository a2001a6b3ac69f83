"""The example `aiohttp_carts.py`, which the guide shows too."""

import pytest
from aiohttp import ClientSession, web

from examples.aiohttp_carts import app, member
from tests.repo.reading import ROOT
from tests.repo.test_prose import python_fences
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio


async def test_carts_are_filled_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as manager:
        monkeypatch.setenv("TENURE_MANAGERS", manager.service.url)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        await member.owner.ready()
        async with ClientSession("http://{}:{}".format(*runner.addresses[0][:2])) as client:
            for count, article in enumerate(["tea", "cake"], 1):
                async with client.post("/carts/ann", params={"article": article}) as got:
                    assert await got.json() == count
            for path, expected in (("/carts/ann", ["tea", "cake"]), ("/carts/bob", [])):
                async with client.get(path) as got:
                    assert await got.json() == expected
            async with client.get("/carts/ann/number") as got:
                assert await got.json() > 0
            async with client.get("/ready") as got:
                assert got.status == 200
        await runner.cleanup()


async def test_the_guide_shows_this_very_program() -> None:
    guide = (ROOT / "docs" / "guides" / "aiohttp.md").read_text("utf-8")
    programs = [program for _, program in python_fences(guide)]
    shown = (ROOT / "examples" / "aiohttp_carts.py").read_text("utf-8").split('"""', 2)[2].lstrip()
    assert shown in programs
