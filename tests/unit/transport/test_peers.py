"""Sending without waiting: frames are made once, and a peer that lags is cut off."""

import asyncio
from collections.abc import Iterable

from tenure.protocol.lease.answers import Connection
from tenure.transport.peers import LAG_BYTES, ConnectedPeer, Peers
from tenure.transport.websocket_frames import frame


class StuckTransport(asyncio.WriteTransport):
    """A transport whose socket takes nothing until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[bytes] = []
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.waiting.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.waiting))

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


def send(peers: Peers, connections: Iterable[Connection], payload: bytes) -> int:
    """Send to peers that all speak version 1; return how many were cut off."""
    return peers.send(connections, {1: payload}.__getitem__)


def test_numbers_are_never_used_twice_and_the_gone_get_nothing() -> None:
    peers, transport = Peers(), StuckTransport()
    first = peers.add(ConnectedPeer(transport, 1))
    peers.remove(first)
    second = peers.add(ConnectedPeer(transport, 1))
    assert first != second
    assert send(peers, (first,), b"a") == 0
    assert transport.waiting == []
    assert len(peers) == 1


def test_peers_are_told_apart_by_what_they_speak() -> None:
    peers, transport = Peers(), StuckTransport()
    old, new, newer = (peers.add(ConnectedPeer(transport, version)) for version in (1, 2, 2))
    gone = peers.add(ConnectedPeer(transport, 2))
    peers.remove(gone)
    asked: list[int] = []

    def encoded(version: int) -> bytes | None:
        asked.append(version)
        return b"two" if version == 2 else None

    assert peers.send((new, old, gone, newer), encoded) == 0
    assert sorted(asked) == [1, 2], "once for each version"
    assert transport.waiting == [frame(b"two")] * 2, "who cannot be told is told nothing"
    assert peers.versions() == {1: 1, 2: 2}
    assert [peers.version(each) for each in (old, new, gone, None)] == [1, 2, None, None]


def test_all_get_the_very_same_bytes() -> None:
    peers, transports = Peers(), [StuckTransport(), StuckTransport()]
    assert send(peers, [peers.add(ConnectedPeer(each, 1)) for each in transports], b"a") == 0
    assert [each.waiting for each in transports] == [[frame(b"a")]] * 2


def test_a_peer_that_lags_is_cut_off_and_the_others_are_not() -> None:
    peers, slow, fast = Peers(), StuckTransport(), StuckTransport()
    both = (peers.add(ConnectedPeer(slow, 1)), peers.add(ConnectedPeer(fast, 1)))
    message, cut_off = b"x" * 1000, 0
    for _ in range(2 * LAG_BYTES // len(message)):
        cut_off += send(peers, both, message)
        fast.waiting.clear()
    assert (slow.aborted, fast.aborted, cut_off) == (True, False, 1)
    assert slow.get_write_buffer_size() <= LAG_BYTES + 3 * len(frame(message))


def test_a_table_that_takes_long_to_cross_is_not_cut_off_by_the_changes_after_it() -> None:
    peers, transport = Peers(), StuckTransport()
    connection = peers.add(ConnectedPeer(transport, 1))
    table = b"t" * (5 * LAG_BYTES)
    assert send(peers, (connection,), table) == 0
    for _ in range(1000):
        assert send(peers, (connection,), b"change") == 0
    transport.waiting.clear()  # it has arrived; from here on the bound is the usual one
    send(peers, (connection,), b"change")
    assert send(peers, (connection,), b"x" * LAG_BYTES) == 0
    send(peers, (connection,), b"change")
    assert not transport.aborted
    send(peers, (connection,), b"x" * LAG_BYTES)
    assert send(peers, (connection,), b"change") == 1
