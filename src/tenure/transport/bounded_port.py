"""A port that takes a limited number of connections, and only those on which something happens.

asyncio's own server takes every connection, hundreds at a time, and tells nobody before TLS is
agreed on. A peer that opens connections and says nothing would then use up the files that this
process may open, until nobody else can connect, nor this process to others; and then no owner is
renewed. So connections are taken here one by one, with the other work of the process in between,
and are counted before anything is said on them. `newcomers` has those that say nothing.

The port does not know what is said on them. The listener makes the protocol of each connection, and
says when a whole request was read and when the connection has ended.
"""

import asyncio
import errno
import logging
import socket as sockets
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from sys import intern
from typing import Generic, TypeAlias, TypeVar

from tenure.runtime.clock import boot_clock
from tenure.runtime.read_size import read_small_blocks
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.newcomers import STRANGER_SECONDS, Newcomers
from tenure.transport.port_unread import PortUnread
from tenure.transport.rate_bound import RateBound, RecentFloods

ACCEPT_AGAIN_SECONDS = 1.0
"""How long to wait before taking another connection if this process has no file left."""
TOLD_SECONDS = 1.0
"""How long a refused connection has to read why it was refused."""
MOST_TOLD = 64
"""The most refused connections at one time: each takes one of our files while it reads."""
RECEIVED_BYTES = 65_536
LEAST_BYTES = 1024
"""The least bytes of an incomplete request: a peer that sends fewer of them in `stuck_seconds` only
occupies a connection.
"""
BACKLOG = 1024
"""The connections that the kernel keeps until they are taken. After a failover all clients come at
once.
"""
_log = logging.getLogger("tenure.transport")
_NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
Refused: TypeAlias = Callable[[str, str], object]
"""Called with the peer that was refused, and the reason."""
Unfinished: TypeAlias = tuple[object, int] | None
"""A request that is not complete yet, and how many of its bytes have arrived; None if there is no
such request.
"""
P = TypeVar("P", bound=asyncio.Protocol)


def log_refused(peer: str, why: str) -> None:
    """Log a refusal at debug level, for listeners that nobody watches."""
    _log.debug("%s: %s", peer, why)


class TakenConnection:
    """A connection that was taken."""

    __slots__ = (
        "has_spoken",
        "is_proven",
        "is_socket",
        "peer",
        "rate",
        "task",
        "transport",
        "unfinished",
        "unread",
    )

    def __init__(self, peer: str, rate: RateBound | None) -> None:
        self.peer = peer
        self.rate = rate
        self.task: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.is_socket = False
        """Whether it is a WebSocket, which has a heartbeat and a bound on what may wait for its
        peer.
        """
        self.has_spoken = False
        self.is_proven = False
        self.unread = 0
        """The bytes that the peer had not read at the last look."""
        self.unfinished: Unfinished = None
        """The request that the peer had not finished at the last look."""

    def end(self) -> bool:
        """Cut it off. Returns False if it has ended already."""
        if self.transport is None:  # TLS is not agreed on yet
            return self.task is not None and self.task.cancel()
        if self.transport.is_closing():
            return False
        self.transport.abort()
        return True

    def unread_bytes(self) -> int:
        """How many bytes of answers wait for the peer."""
        if self.transport is None or self.is_socket:
            return 0
        return self.transport.get_write_buffer_size()

    def stuck(self, transport: asyncio.Transport, unfinished: Unfinished) -> str:
        """The failure of the peer since the last look; empty if all is well."""
        unread, self.unread = self.unread, transport.get_write_buffer_size()
        if self.unread and self.unread == unread:
            return "read nothing of its answer"
        before, self.unfinished = self.unfinished, unfinished
        if before is None or unfinished is None or not transport.is_reading():
            return ""
        goes_on = unfinished[0] is not before[0] or unfinished[1] - before[1] >= LEAST_BYTES
        return "" if goes_on else f"sent less than {LEAST_BYTES} bytes of a request"


class BoundedPort(Generic[P]):
    """Takes connections, and gives each the protocol that `make` makes.

    `unfinished` says which request of a protocol is incomplete. `refused` is told of each refused
    peer, and why; `silent` is told of each peer that said nothing.
    """

    def __init__(
        self,
        make: Callable[[], P],
        unfinished: Callable[[P], Unfinished],
        refused: Refused,
        silent: Refused,
        limits: ConnectionLimits,
    ) -> None:
        self.limits = limits
        self._make = make
        self._unfinished = unfinished
        self._refused = refused
        self._most, self._most_of_a_peer = limits.most, limits.most_of_a_peer
        self._newcomers = Newcomers[TakenConnection](
            silent, limits.silent_seconds, limits.most_silent
        )
        self._strangers = Newcomers[TakenConnection](
            silent, STRANGER_SECONDS, limits.most_strangers
        )
        """Those that have asked for something, and proven nothing, where others have."""
        self._all_unread = PortUnread[TakenConnection](limits.unread_bytes)
        self._taken: dict[P, TakenConnection] = {}
        self._of_peer: Counter[str] = Counter()
        self._floods = RecentFloods()
        self._told: set[sockets.socket] = set()
        self._listening: sockets.socket | None = None
        self._again: asyncio.TimerHandle | None = None
        self._watching: asyncio.Task[None] | None = None
        self._tls: ssl.SSLContext | None = None

    def __len__(self) -> int:
        return len(self._taken)

    def protocols(self) -> list[P]:
        """The protocols of all connections."""
        return list(self._taken)

    def open(self, listening: sockets.socket, tls: ssl.SSLContext | None) -> None:
        """Take connections from a socket that is already bound. The port closes the socket when it
        closes.
        """
        listening.settimeout(0)
        if self.limits.buffer_bytes is not None:
            listening.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, self.limits.buffer_bytes)
        self._tls = tls
        self._listening = listening
        self._watching = asyncio.get_running_loop().create_task(self._watch())
        self._listen()

    def take_no_more(self) -> None:
        """Take no more connections; existing ones continue."""
        listening, self._listening = self._listening, None
        if listening is None or self._watching is None:
            return
        self._watching.cancel()
        if self._again is not None:
            self._again.cancel()
        asyncio.get_running_loop().remove_reader(listening)
        listening.close()

    async def close(self) -> None:
        """Stop taking connections, and close those that have not agreed on TLS yet. Whoever made
        the protocols of the others must end them.
        """
        self.take_no_more()
        self._newcomers.close()
        self._strangers.close()
        beginning = [each.task for each in self._taken.values() if each.task is not None]
        if self._tls is not None:  # without it, they have a protocol in a moment
            for task in beginning:
                task.cancel()
        if beginning:
            await asyncio.wait(beginning)
        for told in list(self._told):
            self._hang_up(told)

    # --- connections ---

    def _listen(self) -> None:
        # No task waits in `sock_accept`: if it is cancelled as a connection comes, that is lost.
        if self._listening is not None:
            asyncio.get_running_loop().add_reader(self._listening, self._accept, self._listening)

    def _accept(self, listening: sockets.socket) -> None:
        """Take one connection. If many come at once, others get a turn in between."""
        try:
            accepted, address = listening.accept()
        except OSError as error:
            if error.errno in _NO_FILES:
                loop = asyncio.get_running_loop()
                loop.remove_reader(listening)
                self._again = loop.call_later(ACCEPT_AGAIN_SECONDS, self._listen)
                self._refused("", f"no connection can be taken: {error.strerror}")
            return  # for any other error, the peer has already gone
        accepted.setblocking(False)  # noqa: FBT003  # as the standard library has it
        self._arrived(accepted, intern(str(address[0])))  # a peer may have thousands

    def _arrived(self, accepted: sockets.socket, peer: str) -> None:
        if len(self._newcomers) + len(self._strangers) >= self.limits.most_strangers:
            _ = self._strangers.give_way() or self._newcomers.give_way()
        if len(self._taken) >= self._most and not self._strangers.give_way():
            self._turn_away(accepted, peer, f"there are {self._most} connections already")
            return
        if self._of_peer[peer] >= self._most_of_a_peer and not self._strangers.give_way(peer):
            why = f"there are {self._most_of_a_peer} connections from {peer} already"
            self._turn_away(accepted, peer, why)
            return
        self._take_in(self._make(), accepted, peer)

    def adopt(self, protocol: P, accepted: sockets.socket) -> None:
        """Take a connection that another process has taken before, and counted. Raises OSError if
        it has ended.
        """
        self._take_in(protocol, accepted, intern(str(accepted.getpeername()[0])))

    def _take_in(self, protocol: P, accepted: sockets.socket, peer: str) -> None:
        limits = self.limits
        rate = None
        if limits.requests_a_second is not None:
            rate = self.rate_of(peer, limits.requests_a_second, limits.requests_at_once)
        taken = self._taken[protocol] = TakenConnection(peer, rate)
        self._of_peer[peer] += 1
        self._newcomers.arrived(taken)
        beginning = self._begin(protocol, taken, accepted)
        taken.task = asyncio.get_running_loop().create_task(beginning)

    async def _begin(self, protocol: P, taken: TakenConnection, accepted: sockets.socket) -> None:
        try:
            taken.transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol, accepted, ssl=self._tls
            )
            read_small_blocks(taken.transport)
        except BaseException as error:
            accepted.close()
            self.gone(protocol)
            if not isinstance(error, OSError):  # which a peer without TLS causes, too
                raise
        finally:
            taken.task = None

    def gone(self, protocol: P) -> None:
        """A protocol's connection has ended."""
        taken = self._taken.pop(protocol, None)
        if taken is None:
            return
        self._newcomers.spoke(taken)
        self._strangers.spoke(taken)
        self._of_peer[taken.peer] -= 1
        if not self._of_peer[taken.peer]:
            del self._of_peer[taken.peer]

    def spoke(self, protocol: P, *, is_socket: bool = False) -> None:
        """A whole request was read. With `is_socket`, messages follow on its connection."""
        taken = self._taken.get(protocol)
        if taken is not None:
            taken.is_socket = is_socket
            self._end_unread()
            if not taken.has_spoken:
                taken.has_spoken = True
                self._newcomers.spoke(taken)
            if self.limits.knows_peers and not taken.is_proven:
                self._strangers.spoke(taken)
                self._strangers.arrived(taken)  # it has some time again

    def proven(self, protocol: P) -> None:
        """The peer has shown that it may be here."""
        taken = self._taken.get(protocol)
        if taken is not None:
            taken.is_proven = True
            self._strangers.spoke(taken)

    def hand_over(self, protocol: P, to: P) -> None:
        """The connection is a WebSocket from now on, and has the protocol `to`."""
        self.proven(protocol)
        self.spoke(protocol, is_socket=True)
        taken = self._taken.pop(protocol, None)
        if taken is not None:
            taken.rate = None
            self._taken[to] = taken

    def allows(self, protocol: P) -> bool:
        """Count a request, and return whether its connection may make it. Call this once for each
        request.
        """
        taken = self._taken.get(protocol)
        return taken is None or taken.rate is None or taken.rate.allows(boot_clock())

    def rate_of(self, peer: str, a_second: float, at_once: int) -> RateBound:
        """The bound of a new connection, which is tighter if a flood recently came from its
        address.
        """
        return RateBound(a_second, self._floods.at_once(peer, at_once, boot_clock()))

    def flooded(self, peer: str) -> None:
        """A peer sent more than it may."""
        self._floods.add(peer, boot_clock())

    # --- refused connections ---

    def _turn_away(self, accepted: sockets.socket, peer: str, why: str) -> None:
        self._refused(peer, why)
        if self._tls is not None or len(self._told) >= MOST_TOLD:
            accepted.close()
            return
        text = f"{why}; try again later\n".encode()
        head = (
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 5\r\n"
            f"Connection: close\r\nContent-Length: {len(text)}\r\n\r\n"
        )
        with suppress(OSError):
            accepted.settimeout(0)
            accepted.send(head.encode() + text)
            accepted.shutdown(sockets.SHUT_WR)
        self._told.add(accepted)
        asyncio.get_running_loop().call_later(TOLD_SECONDS, self._hang_up, accepted)

    def _hang_up(self, told: sockets.socket) -> None:
        with suppress(OSError):  # closing with unread bytes would discard what was sent
            told.recv(RECEIVED_BYTES)
        told.close()
        self._told.discard(told)

    # --- peers that do not read, or do not continue ---

    def _end_unread(self) -> None:
        """End connections where too much waits to be read, before more answers are made."""
        if not self._all_unread.is_due(boot_clock(), len(self._taken)):
            return
        for each in self._all_unread.too_many(self._taken.values()):
            if each.end():
                why = f"read too little of its answers, while {self.limits.unread_bytes} bytes wait"
                self._refused(each.peer, why)

    async def _watch(self) -> None:
        seconds = self.limits.stuck_seconds
        while True:
            await asyncio.sleep(seconds)
            self._end_unread()
            for protocol, taken in list(self._taken.items()):
                transport = taken.transport
                if transport is None or taken.is_socket:
                    continue
                why = taken.stuck(transport, self._unfinished(protocol))
                if why and taken.end():
                    self._refused(taken.peer, f"{why} for {seconds:g} s")
