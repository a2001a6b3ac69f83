"""Feeds are read in processes of their own: what takes one too long costs nobody anything."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tenure.errors import ConfigurationError, ServiceRefusal
from tenure.services.feeds import parser_processes
from tenure.services.feeds.parser_child import MEMORY_BYTES
from tenure.services.feeds.parser_processes import PARSERS, ParserProcesses
from tenure.services.feeds.parsing import items_in
from tenure.services.feeds.service import Feeds
from tests.unit.services.feed_bodies import ENDLESS
from tests.unit.services.stage import on_service_stage
from tests.unit.services.test_feed_items import ATOM, BOMB, RSS

pytestmark = pytest.mark.asyncio
CPU_SECONDS_TO_BEGIN = 60
"""More than a parser needs before its first body."""


@asynccontextmanager
async def parsing(cpu_seconds: int = 1) -> AsyncIterator[ParserProcesses]:
    parsers = ParserProcesses(cpu_seconds)
    try:
        yield parsers
    finally:
        await parsers.close()


async def test_a_parser_finds_what_is_found_here_and_refuses_what_is_refused_here() -> None:
    async with parsing() as parsers:
        for body in (RSS, ATOM):
            assert await parsers.items_in(body) == items_in(body)
        for body in (BOMB, b"", b"nothing", b"<a/>"):
            with pytest.raises(ServiceRefusal) as there:
                await parsers.items_in(body)
            with pytest.raises(ServiceRefusal) as here:
                items_in(body)
            assert there.value.args == here.value.args
        assert len(parsers._idle) == 1, "one process has read all of it"


async def test_a_body_that_takes_too_long_is_refused_and_others_are_read_meanwhile() -> None:
    async with parsing() as parsers:
        endless = asyncio.create_task(parsers.items_in(ENDLESS))
        await asyncio.sleep(0)
        assert len(await parsers.items_in(RSS)) == 2
        assert not endless.done(), "it is being read"
        with pytest.raises(ServiceRefusal, match="takes more than 1 s") as refused:
            await endless
        assert (refused.value.status, refused.value.limit) == (413, "reading_seconds")


async def test_parsers_that_were_ended_are_replaced() -> None:
    async with parsing() as parsers:
        endless = [parsers.items_in(ENDLESS) for _ in range(PARSERS)]
        for each in await asyncio.gather(*endless, return_exceptions=True):
            assert isinstance(each, ServiceRefusal)
        assert parsers._idle == []
        assert len(await parsers.items_in(RSS)) == 2


async def test_a_body_that_takes_too_much_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As if feedparser took a gigabyte for it."""
    (tmp_path / "feedparser").mkdir()
    (tmp_path / "feedparser" / "__init__.py").write_text(
        "def parse(*_, **__): return bytearray(1 << 30)"
    )
    (tmp_path / "feedparser" / "sanitizer.py").write_text(
        "class _HTMLSanitizer: acceptable_attributes = set()"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with parsing() as parsers:
        with pytest.raises(ServiceRefusal, match=r"MemoryError|too much memory"):
            await parsers.items_in(RSS)


def limits_of(pid: int) -> dict[str, str]:
    """The limits of a process that the system keeps to, by their names."""
    lines = Path(f"/proc/{pid}/limits").read_text("ascii").splitlines()[1:]
    return {line[:25].strip(): line[25:].split()[0] for line in lines}


@pytest.mark.skipif(sys.platform != "linux", reason="its limits are read in /proc")
async def test_the_system_bounds_what_a_parser_may_use() -> None:
    async with parsing(cpu_seconds=7) as parsers:
        await parsers.items_in(RSS)
        (parser,) = parsers._idle
        soft = limits_of(parser.pid)
    assert soft["Max address space"] == str(MEMORY_BYTES)
    assert (soft["Max file size"], soft["Max core file size"]) == ("0", "0")
    assert 7 < int(soft["Max cpu time"]) < 7 + CPU_SECONDS_TO_BEGIN


async def test_a_parser_that_was_killed_costs_nobody_a_body() -> None:
    async with parsing() as parsers:
        await parsers.items_in(RSS)
        (parser,) = parsers._idle
        parser.send_signal(signal.SIGKILL)
        await parser.wait()
        assert len(await parsers.items_in(RSS)) == 2


async def test_who_gives_up_ends_the_parser_and_frees_its_place() -> None:
    async with parsing(cpu_seconds=600) as parsers:
        for _ in range(PARSERS + 1):
            await parsers.items_in(RSS)
            (parser,) = parsers._idle
            endless = asyncio.create_task(parsers.items_in(ENDLESS))
            await asyncio.sleep(0)
            endless.cancel()
            with pytest.raises(asyncio.CancelledError):
                await endless
            assert parser.returncode == -signal.SIGKILL


async def test_a_body_for_which_no_parser_comes_free_is_refused_for_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parser_processes, "WAIT_SECONDS", 0.0)
    async with parsing() as parsers:
        for _ in range(PARSERS):
            await parsers._free.acquire()
        with pytest.raises(ServiceRefusal) as refused:
            await parsers.items_in(RSS)
        assert refused.value.status == 503


async def test_a_parser_has_no_token_and_no_directory_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TENURE_TOKEN", "tenure_secret")
    (tmp_path / "feedparser.py").write_text("raise RuntimeError('not that one')")
    monkeypatch.chdir(tmp_path)
    async with parsing() as parsers:
        assert len(await parsers.items_in(RSS)) == 2
        (parser,) = parsers._idle
        if sys.platform == "linux":
            assert b"TENURE" not in environment_of(parser.pid)


def environment_of(process: int) -> bytes:
    return Path(f"/proc/{process}/environ").read_bytes()


async def test_without_feedparser_the_service_does_not_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parser_processes, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'tenure\[feeds\]'"):
        ParserProcesses()


async def test_a_service_answers_and_its_owner_renews_while_a_body_is_read_for_long() -> None:
    """It is another process that is busy."""
    async with on_service_stage("feeds") as stage:
        assert isinstance(stage.service, Feeds)
        stage.service.parsers._cpu_seconds = 1
        xml = {"Content-Type": "application/xml"}
        endless = asyncio.create_task(stage.ask("POST", "/feeds/a/bodies", ENDLESS, **xml))
        async with asyncio.timeout(60):
            while not endless.done():
                taken = await stage.ask("POST", "/feeds/a/bodies", RSS, **xml)
                assert taken.status == 200
        assert ((await endless).status, (await endless).body["limit"]) == (413, "reading_seconds")
