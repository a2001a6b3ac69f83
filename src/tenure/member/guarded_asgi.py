"""The guard of a member's own listener, around the application that it serves."""

from collections.abc import Awaitable
from typing import Any, Protocol
from urllib.parse import parse_qs

from tenure.client.refusals import NOT_BEGUN, OUTCOME_HEADER, HttpAnswer
from tenure.member.asgi import PROBE, PROOF, App, Receive, Scope, Send, deny, header, respond
from tenure.transport.port_guard import PATH, REFUSAL, PortGuard

CONNECTION = "tenure.connection"
"""The key in the scope of the connection on which a request came, where it may have several."""
MOST_QUERY_BYTES = 1000
MISDIRECTED = 421
"""Nothing was begun: the process that relays may try again, when it has heard of the secret."""
REFUSED = HttpAnswer(MISDIRECTED, {OUTCOME_HEADER: NOT_BEGUN}, REFUSAL)


class RelayConnection(Protocol):
    """A connection, which is kept for further requests."""

    is_proven: bool

    def came_in(self) -> None:
        """It may be here: it gives way to no other."""


def guarded(app: App, guard: PortGuard) -> App:
    """The application as processes of the pool reach it. On each connection one proof is enough.
    The probe needs none: it tells a name that anybody may know.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        connection: RelayConnection | None = scope.pop(CONNECTION, None)
        if scope["type"] == "http" and scope["path"] == PATH:
            await respond(send, challenged(guard, scope["query_string"]))
        elif scope["path"] == PROBE or let_in(guard, scope, connection):
            await app(scope, receive, send)
        else:
            await refuse(scope, send)

    return serve


def challenged(guard: PortGuard, query: bytes) -> HttpAnswer:
    """The answer to a request for a challenge."""
    asked = parse_qs(query[:MOST_QUERY_BYTES].decode("latin-1"))
    at, nonce, ids = (asked.get(each, [""])[0] for each in ("at", "nonce", "ids"))
    said = guard.challenge(at, nonce, ids)
    return HttpAnswer(404, {}, "") if said is None else HttpAnswer(200, {}, said)


def let_in(guard: PortGuard, scope: Scope, connection: Any) -> bool:  # noqa: ANN401
    """Whether a request may come in."""
    if connection is not None and connection.is_proven:
        return True
    shown = header(scope["headers"], PROOF)
    text = None if shown is None else shown.decode("latin-1")
    if guard.refuses(text, scope.get("server"), scope.get("client")):
        return False
    if connection is not None:
        connection.came_in()
        connection.is_proven = guard.secret.is_wanted
    return True


def refuse(scope: Scope, send: Send) -> Awaitable[None]:
    """Turn a request away."""
    return respond(send, REFUSED) if scope["type"] == "http" else deny(scope, send, REFUSED)
