"""The guard of a port at which aiohttp serves."""

from aiohttp import hdrs, web

from tenure.transport.port_guard import HEADER, PATH, REFUSAL, PortGuard


def guard_app(app: web.Application, guard: PortGuard) -> None:
    """Answer processes that ask for a challenge. Browsers have no business there."""

    async def on_challenge(request: web.Request) -> web.Response:
        return challenged(guard, request)

    app.router.add_get(PATH, on_challenge)


def challenged(guard: PortGuard, request: web.BaseRequest) -> web.Response:
    """The answer to a request for a challenge."""
    said = None
    if hdrs.ORIGIN not in request.headers:
        at, nonce, ids = (request.query.get(each, "") for each in ("at", "nonce", "ids"))
        said = guard.challenge(at, nonce, ids)
    return web.Response(status=404) if said is None else web.Response(text=said)


def check_proof(guard: PortGuard, request: web.BaseRequest) -> None:
    """Raise HTTPPreconditionRequired unless the request may come in."""
    near, far = (request.get_extra_info(each) for each in ("sockname", "peername"))
    if guard.refuses(request.headers.get(HEADER), near, far):
        raise web.HTTPPreconditionRequired(text=REFUSAL)
