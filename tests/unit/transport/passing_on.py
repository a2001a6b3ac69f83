"""A gateway as one of the listeners that are tried: it passes everything on to one server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tenure.gateway.gateway import HttpGateway
from tenure.gateway.passed_headers import TrustedProxies
from tenure.gateway.routes import GatewayRoutes
from tenure.gateway.targets import TargetSettings
from tenure.member.listener import bound, url_of
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.credentials import NOTHING, Credentials


@asynccontextmanager
async def passing_on(
    behind: str, credentials: Credentials, limits: ConnectionLimits
) -> AsyncIterator[str]:
    settings = TargetSettings(None, NOTHING, TrustedProxies(()), 10.0, 60.0)
    routes = GatewayRoutes.read([("here", f"/={behind}")])
    gateway = HttpGateway(routes, settings, drain=0.1, limits=limits)
    listening = bound("127.0.0.1:0")
    try:
        async with gateway.listening(listening, credentials.for_listening()):
            yield url_of(listening, credentials.scheme)
    finally:
        await gateway.close()
