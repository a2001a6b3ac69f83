"""A WebSocket of an entity that may leave this gateway, with all that another one needs of it."""

from tenure.entities.edge import Edge
from tenure.entities.edge_socket import EdgeSocket
from tenure.gateway.client_request import ClientRequest, Continuation
from tenure.gateway.held_socket import HeldSocket
from tenure.gateway.passed_connection import PassedConnection, PassedSocket
from tenure.member.asgi import header


class LeavingSocket:
    """One of them. See `Leaves`."""

    def __init__(
        self, pool: str, edge: Edge, socket: EdgeSocket, held: HeldSocket, request: ClientRequest
    ) -> None:
        self._pool = pool
        self._edge = edge
        self._socket = socket
        self._held = held
        self._request = request

    @property
    def is_settled(self) -> bool:
        return self._socket.is_settled

    async def give_up(self, seconds: float) -> Continuation | None:
        given = await self._socket.give_up()
        if given is None:
            return None
        passed = PassedSocket(
            self._pool,
            self._socket.key,
            self._socket.id,
            given.end,
            self._held.unsent(given.unwritten),
            self._request.head.target,
            header(self._request.head.headers, b"authorization") or b"",
        )
        unread = self._held.unread(given.unanswered)
        return Continuation(PassedConnection(True, unread, passed))  # noqa: FBT003  # it has asked

    def gone(self) -> None:
        self._edge.gone(self._socket)
