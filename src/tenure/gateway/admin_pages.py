"""The pages of a gateway for its operators, at a port of their own."""

from collections.abc import Iterable

from tenure.client.refusals import HttpAnswer
from tenure.gateway.client_request import ClientRequest
from tenure.gateway.gateway import HttpGateway
from tenure.member.asgi import header, respond
from tenure.observe.metrics import MetricFamily
from tenure.observe.prometheus import exposition

NOT_FOUND = HttpAnswer(404, {}, "there are /healthz, /readyz and /metrics\n")


class AdminPages:
    """Serves them."""

    def __init__(self, gateway: HttpGateway) -> None:
        self._gateway = gateway

    async def serve(self, request: ClientRequest) -> None:
        """Answer a request."""
        path = request.scope["path"]
        if path == "/healthz":
            await respond(request.send, HttpAnswer(200, {}, "ok\n"))
        elif path == "/readyz":
            await respond(request.send, self._readiness())
        elif path == "/metrics":
            await self._metrics(request)
        else:
            await respond(request.send, NOT_FOUND)

    def _readiness(self) -> HttpAnswer:
        missing = self._gateway.waits_for
        if missing:
            return HttpAnswer(503, {}, f"no owners are known yet of {', '.join(missing)}\n")
        return HttpAnswer(200, {}, "ready\n")

    async def _metrics(self, request: ClientRequest) -> None:
        accept = (header(request.scope["headers"], b"accept") or b"").decode("latin-1")
        families: Iterable[MetricFamily] = self._gateway.counts.families(self._gateway.connections)
        body, kind = exposition(families, accept)
        headers = [(b"content-type", kind.encode())]
        await request.send({"type": "http.response.start", "status": 200, "headers": headers})
        await request.send({"type": "http.response.body", "body": body})
