"""What readers of the live events may cost a manager, and each other."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import msgspec
import pytest

from tenure.base.noted import Noted
from tenure.manager import live
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.manager.noted import ServiceKind
from tests.unit.manager.serving import Serving, serving

pytestmark = pytest.mark.asyncio

FOLLOWED = "/v1/live?level=debug"


async def follow(manager: Serving, stack: AsyncExitStack, **shown: str) -> aiohttp.ClientResponse:
    url = manager.service.url + FOLLOWED
    return await stack.enter_async_context(manager.session.get(url, headers=shown))


async def read_until(response: aiohttp.ClientResponse, what: bytes) -> int:
    """Read until that has come, and return in how many pieces it did."""
    told, pieces = b"", 0
    while what not in told:
        piece, _ = await response.content.readchunk()
        assert piece, f"the stream ended before {what!r}"
        told, pieces = told + piece, pieces + 1
    return pieces


async def test_an_event_is_encoded_once_however_many_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[str] = []

    def counting(kind: str, body: msgspec.Struct, event_id: str = "") -> bytes:
        encoded.append(kind)
        return frame(kind, body, event_id)

    frame = live._frame
    async with serving() as manager, AsyncExitStack() as stack:
        readers = [await follow(manager, stack) for _ in range(20)]
        monkeypatch.setattr(live, "_frame", counting)
        await manager.post("/v1/pools", {"name": "a", "kind": "hashed"})
        for reader in readers:
            await read_until(reader, b"pool created")
    assert encoded.count("noted") <= 2, "the pool, and perhaps the request"


async def test_what_comes_together_is_sent_together() -> None:
    """Else each connection of a stranger costs the manager a write for each reader."""
    async with serving() as manager, AsyncExitStack() as stack:
        reader = await follow(manager, stack)
        await read_until(reader, b"event: pulse")
        for _ in range(500):
            manager.service.observer.note(Noted(ServiceKind.CONNECTED, detail="1"))
        await manager.post("/v1/pools", {"name": "a", "kind": "hashed"})
        assert await read_until(reader, b"pool created") < 20


async def test_a_token_with_many_readers_keeps_no_other_token_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_READERS", 4)
    viewer, admin = new_token(AccessRole.VIEWER), new_token(AccessRole.ADMIN)
    for token in (viewer, admin):
        TokenFile(tmp_path / "tokens").add(token.entry)
    viewers, admins = ({"Authorization": f"Bearer {token.text}"} for token in (viewer, admin))
    async with serving(tokens=tmp_path / "tokens") as manager, AsyncExitStack() as stack:
        first, *others = [await follow(manager, stack, **viewers) for _ in range(4)]
        assert (await follow(manager, stack, **viewers)).status == 503
        assert (await follow(manager, stack, **admins)).status == 200
        assert b"event: pulse" in await first.read(), "it was told, and then it gave way"
        assert [each.content.is_eof() for each in others] == [False] * 3
        assert (await follow(manager, stack, **viewers)).status == 503, "it does not come back"


async def test_readers_that_go_before_they_are_answered_leave_no_errors_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def goes_meanwhile(response: object, request: aiohttp.web.BaseRequest) -> None:
        raise ConnectionResetError("Cannot write to closing transport")

    async with serving() as manager:
        with monkeypatch.context() as patched:
            patched.setattr("aiohttp.web.StreamResponse.prepare", goes_meanwhile)
            with pytest.raises(aiohttp.ClientError):
                await manager.session.get(manager.service.url + FOLLOWED)
        await asyncio.sleep(0)
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == []
