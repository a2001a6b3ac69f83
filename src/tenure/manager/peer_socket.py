"""Clients' WebSockets at a manager: who may connect, what each may say, and how much.

A peer that sends something malformed is told why, in the reason with which its connection is
closed, and is the only one to suffer.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from sys import intern
from typing import Any, NamedTuple

from aiohttp import WSCloseCode, hdrs, web

from tenure.base.instants import seconds
from tenure.base.noted import Noted
from tenure.errors import RemoteProtocolError
from tenure.manager.access.gate import Gate
from tenure.manager.access.roles import ANYBODY, Permit
from tenure.manager.engine import ManagerEngine
from tenure.manager.http_errors import HttpRefusal
from tenure.manager.inspections import Inspections
from tenure.manager.limits import ManagerLimits
from tenure.manager.noted import ServiceKind
from tenure.protocol.lease.answers import Connection
from tenure.protocol.lease.inspecting import Inspected
from tenure.protocol.lease.leader.events import ClientLost, ClientSaid, NodeSaid
from tenure.protocol.lease.messages import Attested
from tenure.protocol.topology.limits import TOPOLOGY_BYTES
from tenure.transport.fair_turns import FairTurns
from tenure.transport.handshakes import NoHandshake, answer_handshake
from tenure.transport.http_listener import HttpListener
from tenure.transport.large_messages import LargeMessages, PatientSocket
from tenure.transport.peers import LAG_BYTES, Peers
from tenure.transport.unfinished_messages import UnfinishedMessages
from tenure.transport.unread_answers import UnreadAnswers
from tenure.transport.websocket_frames import FrameError
from tenure.wire.lease import decode_from_lookup, decode_from_owner
from tenure.wire.limits import LOOKUP_BYTES, REQUEST_BYTES
from tenure.wire.topology import decode_node_request
from tenure.wire.versions import OLDEST, agreed, subprotocol

SILENT_NS = seconds(45)
"""After so long without a word a peer is asked whether it is there, and after half as long again
forgotten: its host may have died without closing anything. Nothing but memory depends on it. It is
longer than any preset leaves an owner or a lookup silent (30 s): asking 1,000 lookups at rest each
time, and hearing them, cost as much as answering them."""
TOKEN_SECONDS = 1.0
"""How often the file of tokens is looked at for those that were taken away."""


class PeerKind(NamedTuple):
    """A kind of peers: how their messages are read, and no others, and how long these are."""

    decode: Callable[[bytes, int], Any]
    most_bytes: int


OWNERS = PeerKind(decode_from_owner, REQUEST_BYTES)
LOOKUPS = PeerKind(decode_from_lookup, LOOKUP_BYTES)
NODES = PeerKind(decode_node_request, TOPOLOGY_BYTES)


class PeerSocket(PatientSocket):
    __slots__ = ("_among", "_kind", "_names", "connection", "peer", "permit")

    def __init__(
        self,
        among: "PeerSockets",
        transport: asyncio.Transport,
        version: int,
        permit: Permit,
        kind: PeerKind,
    ) -> None:
        self.peer = intern(str((transport.get_extra_info("peername") or ("",))[0]))
        rate = among.listener.rate_of(self.peer, *among.most_messages(kind))
        super().__init__(
            transport,
            version,
            most_bytes=kind.most_bytes,
            lag_bytes=LAG_BYTES,
            turns=among.turns,
            rate=rate,
        )
        self._names = (self.peer,) if permit is ANYBODY else (self.peer, permit)
        self.bound_unfinished(among.unfinished, *self._names)
        self.bound_large(among.large, self._names[-1])
        self.permit = permit
        self.connection: Connection = among.peers.add(self)
        self._among = among
        self._kind = kind

    def on_message(self, data: bytes) -> None:
        if self.must_wait(data):
            return
        engine, permit = self._among.engine, self.permit
        try:
            message = self._kind.decode(data, self.version)
        except RemoteProtocolError as error:
            self._hang_up(WSCloseCode.PROTOCOL_ERROR, str(error))
            return
        if self._kind is NODES:
            token = "" if permit is ANYBODY else permit.who
            engine.post(NodeSaid(self.connection, message, token))
        elif isinstance(message, Inspected):
            self._among.inspections.answered(self.connection, message)
        elif permit.may_say(message):
            engine.metrics.received(self.connection, message)
            engine.post(ClientSaid(self.connection, message))
        elif not isinstance(message, Attested):  # another pool's owner may be asked to attest
            why = f"its {permit} is not for {message.pool!r}"
            self._hang_up(WSCloseCode.POLICY_VIOLATION, why)

    def send_frame(self, data: bytes) -> bool:
        """Send a frame. A client that reads nothing may be told of whole tables all the same."""
        if not super().send_frame(data):
            return False
        self._among.unread.sent(self, self._names)
        return not self.transport.is_closing()

    @property
    def unread_bytes(self) -> int:
        """The bytes that the client has not read, which the kernel does not have."""
        return self.transport.get_write_buffer_size()

    def cut_off(self) -> None:
        """End the connection at once: too much waits for its client."""
        self.transport.abort()

    def on_refused(self, error: FrameError) -> None:
        is_large = error.code == WSCloseCode.MESSAGE_TOO_BIG
        self._note(ServiceKind.OVERSIZED if is_large else ServiceKind.MALFORMED, str(error))

    def on_flood(self) -> None:
        """See `FrameSocket.on_flood`. What is still to come of it is not read."""
        self._among.listener.flooded(self.peer)
        limits = self._among.limits
        why = f"more than {limits.messages_a_second} messages a second"
        asyncio.get_running_loop().call_later(
            limits.flood_seconds,
            self._hang_up,
            WSCloseCode.POLICY_VIOLATION,
            why,
            ServiceKind.FLOOD,
        )

    def _hang_up(self, code: int, why: str, kind: ServiceKind = ServiceKind.MALFORMED) -> None:
        self._note(kind, why)
        self.end(code, why)

    def _note(self, kind: ServiceKind, why: str) -> None:
        what = Noted(kind, detail=f"from {self.connection}: {why}")
        self._among.gate.notes.note(what, self.peer)

    def on_ending(self) -> None:
        self._among.peers.remove(self.connection)

    def on_lost(self) -> None:
        self._among.forget(self)


class PeerSockets:
    """All peer sockets of a manager. Set `listener` before the first one comes."""

    listener: HttpListener

    def __init__(
        self,
        engine: ManagerEngine,
        peers: Peers,
        gate: Gate,
        limits: ManagerLimits,
        turns: FairTurns,
        inspections: Inspections,
    ) -> None:
        self.engine = engine
        self.inspections = inspections
        self.peers = peers
        self.gate = gate
        self.limits = limits
        self.turns = turns
        self.unfinished = UnfinishedMessages()
        self.large = LargeMessages()
        self.unread = UnreadAnswers()
        self._open: set[PeerSocket] = set()

    def most_messages(self, kind: PeerKind) -> tuple[float, int]:
        """How many a second, and how many at once."""
        limits = self.limits
        at_once = limits.syncs_at_once if kind is LOOKUPS else limits.messages_at_once
        return limits.messages_a_second, at_once

    async def accept(self, request: web.Request, kind: PeerKind) -> web.StreamResponse:
        """Let a client in, if its request begins a WebSocket."""
        permit = self.gate.let_in(request)
        offered = request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "").split(",")
        try:
            version = agreed(each.strip() for each in offered)
        except RemoteProtocolError as error:
            return self._refuse_version(request, permit, str(error))
        transport = _accepted(request, subprotocol(version))
        socket = PeerSocket(self, transport, version, permit, kind)
        self._open.add(socket)
        where = f"from {request.remote}, protocol version {version}"
        note = Noted(ServiceKind.CONNECTED, detail=f"{socket.connection} {where}")
        self.engine.observer.note(note)
        return self.listener.hand_over(request, socket)

    def _refuse_version(self, request: web.Request, permit: Permit, why: str) -> web.StreamResponse:
        """Accept the connection, to close it: the answer to a handshake has no room for reasons."""
        peer = request.remote or ""
        note = Noted(ServiceKind.NO_COMMON_VERSION, detail=f"with {peer}: {why}")
        self.gate.notes.note(note, peer)
        socket = PeerSocket(self, _accepted(request), OLDEST, permit, LOOKUPS)
        answer = self.listener.hand_over(request, socket)
        socket.end(WSCloseCode.PROTOCOL_ERROR, why)
        return answer

    def forget(self, socket: PeerSocket) -> None:
        """Forget a socket that has closed."""
        self._open.discard(socket)
        self.unread.ended(socket)
        connection = socket.connection
        self.peers.remove(connection)
        self.engine.metrics.gone(connection)
        self.engine.observer.note(Noted(ServiceKind.DISCONNECTED, detail=str(connection)))
        self.engine.post(ClientLost(connection))

    async def close(self) -> None:
        """Tell all that this manager stops, and wait until they are gone."""
        leaving = list(self._open)
        for socket in leaving:
            socket.end(WSCloseCode.GOING_AWAY, "this manager stops")
        await asyncio.gather(*(socket.gone() for socket in leaving))

    # --- tokens ---

    async def watching_tokens(self, app: web.Application) -> AsyncIterator[None]:
        """Watch the tokens for as long as the application runs."""
        if self.gate.tokens is None:
            yield
            return
        watching = asyncio.create_task(self._watch_tokens())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def _watch_tokens(self) -> None:
        """A peer whose token was revoked must go, and not only stay out."""
        while True:
            await asyncio.sleep(TOKEN_SECONDS)
            if self.gate.changed():
                for socket in list(self._open):
                    if not socket.is_ending and not self.gate.still_takes(socket.permit):
                        note = Noted(ServiceKind.TOKEN_GONE, detail=str(socket.permit))
                        self.engine.observer.note(note)
                        socket.end(WSCloseCode.POLICY_VIOLATION, "its token is no longer valid")


def _accepted(request: web.Request, *protocols: str) -> asyncio.Transport:
    try:
        return answer_handshake(request, *protocols)
    except NoHandshake as error:
        raise HttpRefusal(
            400,
            f"{request.method} {request.path} does not begin a WebSocket",
            "open a WebSocket here, as Owner and Lookup do",
        ) from error
    except ConnectionError as error:  # nobody reads this; but aiohttp logs what it does not expect
        raise HttpRefusal(400, "the client has gone", "connect again") from error
