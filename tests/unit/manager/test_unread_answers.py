"""Clients that read nothing: what waits for one token or one address is bounded."""

from contextlib import AsyncExitStack

import pytest

from tenure.manager.peer_socket import PeerSocket
from tenure.transport import unread_answers
from tenure.transport.peers import Peers
from tests.patience import until
from tests.unit.manager.serving import RawSocket, serving

pytestmark = pytest.mark.asyncio
MIB = 1 << 20
LOOKUPS = 20


async def test_of_many_connections_that_read_nothing_those_with_most_are_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A lookup is told a whole table, of many megabytes, for a question of some bytes."""
    monkeypatch.setattr(unread_answers, "UNREAD_BYTES", 64 * MIB)
    async with serving() as manager, AsyncExitStack() as stack:
        for _ in range(LOOKUPS):
            url = manager.service.url
            await stack.enter_async_context(RawSocket.connect(url, "/v1/lookup"))
        engine = manager.service._engine
        assert engine is not None
        assert isinstance(engine.clients, Peers)
        sockets = list(engine.clients._peers.values())
        assert len(sockets) == LOOKUPS
        for each in sockets:
            each.send_frame(bytes(16 * MIB))
        there = [each for each in sockets if not each.transport.is_closing()]
        assert 0 < sum(each.transport.get_write_buffer_size() for each in there) <= 64 * MIB
        assert all(isinstance(each, PeerSocket) for each in there)
        peers = engine.clients._peers
        await until(lambda: len(peers) == len(there))
