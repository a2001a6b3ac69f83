"""The example `carts.py`, which the guide shows too."""

import httpx
import pytest

from examples.carts import app, member
from tests.repo.reading import ROOT
from tests.repo.test_prose import python_fences
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio


async def test_carts_are_filled_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as manager:
        monkeypatch.setenv("TENURE_MANAGERS", manager.service.url)
        async with member.serving(app):
            await member.owner.ready()
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
                assert (await client.get("/ready")).status_code == 200
                for count, article in enumerate(["tea", "cake"], 1):
                    got = await client.post("/carts/ann", params={"article": article})
                    assert got.json() == count
                assert (await client.get("/carts/ann")).json() == ["tea", "cake"]
                assert (await client.get("/carts/bob")).json() == []


async def test_the_guide_shows_this_very_program() -> None:
    guide = (ROOT / "docs" / "guides" / "fastapi.md").read_text("utf-8")
    programs = [program for _, program in python_fences(guide)]
    shown = (ROOT / "examples" / "carts.py").read_text("utf-8").split('"""', 2)[2].lstrip()
    assert shown in programs
