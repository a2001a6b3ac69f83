"""The gate of a service of `tenure serve`: it lets in clients that show a token for its pool, if
the service demands tokens, and refuses requests that a page of another site makes in a browser.
"""

from aiohttp import hdrs, web
from msgspec.structs import replace

from tenure.errors import ServiceRefusal
from tenure.manager.access.pages import OwnNames
from tenure.manager.access.tokens import TokenFile
from tenure.manager.http_errors import HttpRefusal
from tenure.transport.bounded_port import log_refused
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.http_listener import LIMITS, HttpListener

ENDS_SECONDS = 1.0
"""The time that open connections get after every request is answered."""


def service_port(
    app: web.Application, limits: ConnectionLimits = LIMITS, *, knows_peers: bool = False
) -> HttpListener:
    """Return a listener for a service, with the same bounds as the manager's, whatever clients
    send.
    """
    limits = replace(limits, knows_peers=knows_peers)
    return HttpListener(app, log_refused, log_refused, limits, ENDS_SECONDS, cancels=True)


class ServiceGate:
    def __init__(self, pool: str, names: OwnNames, tokens: TokenFile | None) -> None:
        self._pool = pool
        self._names = names
        self._tokens = tokens

    @property
    def knows_peers(self) -> bool:
        """Whether it lets in only those that prove who they are."""
        return self._tokens is not None

    def __call__(self, request: web.Request, *, is_read: bool) -> None:
        """Raise ServiceRefusal for who may not ask this."""
        try:
            self._names.check(request.headers, asks_tokens=self._tokens is not None)
        except HttpRefusal as error:
            raise ServiceRefusal(error.status, "page", str(error)) from None
        if self._tokens is None:
            return
        permit = self._tokens.shown(request.headers.get(hdrs.AUTHORIZATION, ""))
        if permit is None:
            raise ServiceRefusal(
                401,
                "token",
                "this service wants a token that counts: send Authorization: Bearer TOKEN, which "
                f"`tenure token new --role lookup --pool {self._pool} --file FILE` makes",
            )
        may_read = is_read and permit.may_read(self._pool)
        if not (may_read or permit.may_use(self._pool)):
            detail = f"the {permit} does not allow {request.method} {request.path}"
            raise ServiceRefusal(403, "role", detail)
