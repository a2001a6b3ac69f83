"""A manager keeps only so much of what its clients have begun to say, and not ended."""

from pathlib import Path

import pytest

from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.transport import unfinished_messages
from tenure.wire.versions import SUBPROTOCOLS
from tests.unit.manager.serving import Serving, serving
from tests.unit.manager.test_limits import stream
from tests.unit.manager.test_strangers import Connection, until_cut_off
from tests.unit.transport.test_websocket_frames import sent

pytestmark = pytest.mark.asyncio
BEGUN = sent(bytes(300 << 10))[:-1]


async def begins(manager: Serving, peer: str, token: str) -> Connection:
    """Say most of a message, as an owner."""
    reader, writer = await stream(manager, peer)
    writer.write(
        f"GET /v1/owner HTTP/1.1\r\nHost: {manager.service.url.removeprefix('http://')}\r\n"
        f"Authorization: Bearer {token}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {SUBPROTOCOLS[0]}\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    writer.write(BEGUN)
    return reader, writer


@pytest.mark.parametrize("is_of_one_token", [False, True])
async def test_of_what_one_address_or_one_token_has_begun_the_first_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_of_one_token: bool
) -> None:
    monkeypatch.setattr(unfinished_messages, "KEPT_BYTES", 2 * len(BEGUN))
    monkeypatch.setattr(unfinished_messages, "BYTES_A_SECOND", 0)  # none is let go for being slow
    tokens = [new_token(AccessRole.OWNER, "rooms") for _ in range(3)]
    for each in tokens:
        TokenFile(tmp_path / "tokens").add(each.entry)
    async with serving(tokens=tmp_path / "tokens") as manager:
        first, *others = [
            await begins(manager, f"127.0.0.{9 + at}", tokens[0].text)
            if is_of_one_token
            else await begins(manager, "127.0.0.9", tokens[at].text)
            for at in range(3)
        ]
        await until_cut_off(first)
        for reader, writer in others:
            assert not reader.at_eof()
            writer.close()
