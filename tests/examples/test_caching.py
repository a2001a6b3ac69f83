"""The guides to caching a database and an owner, and their examples, do what they say."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from examples import hot_room
from examples.product_page import Pages
from tenure import MISSING, Cache, CacheServer, Fenced
from tests.examples.test_guides import GUIDES
from tests.patience import DEADLINE_SECONDS, until
from tests.repo.test_prose import python_fences
from tests.unit.fencing.databases import postgres_programs, postgres_server
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio
GUIDE = (GUIDES / "caching-a-database.md").read_text("utf-8")
URL = "http://127.0.0.1:7500"


def programs(listening: str = URL) -> dict[str, Any]:
    """Return the names that the programs in the guide define."""
    names: dict[str, Any] = {}
    for line, program in python_fences(GUIDE):
        here = program.replace("127.0.0.1:7500", listening.removeprefix("http://"))
        exec(compile(here, f"guide:{line}", "exec"), names)  # noqa: S102
    return names


async def test_the_servers_program_has_less_than_thirty_lines() -> None:
    _, server = next(iter(python_fences(GUIDE)))
    assert len(server.splitlines()) < 30


async def test_a_table_behind_the_guides_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"http://127.0.0.1:{unused_tcp_port}"
    names = programs(url)
    serving = asyncio.ensure_future(names["serve"]())
    async with Cache(url, value_type=str, patience=DEADLINE_SECONDS) as cache:
        # Nobody is told of its quiet, and on a busy machine a lease may end before it is looked at.
        while (shown := cache.peek("tea")) is MISSING:
            assert not serving.done()
            assert await names["show"](cache, "tea") in (None, "Green tea, 100 g")
            await asyncio.sleep(0.05)
        assert shown == "Green tea, 100 g"
        await names["frontend"]()
        assert await names["show"](cache, "tea") == "Green tea, 50 g"
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    row = names["db"].execute("SELECT text FROM page").fetchone()
    assert row == ("Green tea, 50 g",)
    names["db"].close()


def owner_programs(manager: str) -> dict[str, Any]:
    """Return the names that both programs of the guide to caching an owner define."""
    names: dict[str, Any] = {}
    for line, program in python_fences((GUIDES / "caching-an-owner.md").read_text("utf-8")):
        here = program.replace("http://127.0.0.1:7400", manager)
        exec(compile(here, f"caching-an-owner:{line}", "exec"), names)  # noqa: S102
    return names


async def test_a_room_is_read_and_renamed_as_the_guide_to_owners_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with serving(preset="default") as manager:
        names = owner_programs(manager.service.url)
        owning = asyncio.ensure_future(names["serve"]())
        await until(lambda: owning.done() or "Lobby" in dict(names["rooms"]).values())
        assert not owning.done()
        await names["frontend"]()
        assert capsys.readouterr().out == "Lobby\n"
        await names["rename"]("room-42", "Garden")
        await names["frontend"]()
        assert capsys.readouterr().out == "Garden\n"
        owning.cancel()
        await asyncio.gather(owning, return_exceptions=True)


async def test_in_sqlite_a_past_server_writes_nothing(tmp_path: Path) -> None:
    old, new = (Pages(str(tmp_path / "shop.db")) for _ in range(2))
    assert [old.fence(1), new.fence(2), old.fence(1)] == [0, 1, 2]
    new.store("tea", "new", 2)
    with pytest.raises(Fenced, match="server 1 is past: 2 writes here"):
        old.store("tea", "late", 1)
    assert (old.load("tea"), old.load("coffee")) == ("new", None)
    for each in (old, new):
        each._db.close()


async def test_in_postgresql_a_past_server_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if postgres_programs() is None:
        pytest.skip("there is no PostgreSQL here")
    asyncpg = pytest.importorskip("asyncpg")
    monkeypatch.chdir(tmp_path)  # the guide's first program opens its file when it is imported
    names = programs()
    with postgres_server() as url:
        host = url.partition("host=")[2].split()[0]
        async with asyncpg.create_pool(host=host, user="tenure", database="postgres") as pool:
            await pool.execute(names["TABLES"])
            volume = names["postgres_volume"](pool)
            fence = names["raise_fence"]
            async with (
                CacheServer(
                    volume, listen="127.0.0.1:0", fence=lambda number: fence(pool, number)
                ) as server,
                Cache(server.url, value_type=str) as cache,
            ):
                assert await cache.get("tea") is None
                await cache.write("tea", "new")
                assert await cache.get("tea") == "new"
                assert await fence(pool, 2) == 1  # another server has begun
                with pytest.raises(Fenced, match="server 1 is past: 2 writes here"):
                    await volume.store("tea", "late", 1)
                assert await volume.load("tea", 2) == "new"


async def test_a_hot_room_is_asked_for_once_by_each_frontend(
    capsys: pytest.CaptureFixture[str],
) -> None:
    await hot_room.main()
    assert capsys.readouterr().out.splitlines() == [
        "4000 reads, 4 asked the owner: {'Lobby'}",
        "renamed: {'Garden'}",
        "moved: {'Garden'}",
        "renamed by the next owner: {'Terrace'}",
    ]
