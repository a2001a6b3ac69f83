r"""The shopping carts of `carts.py`, for aiohttp: each cart is in one of several worker processes.

    tenure run -- gunicorn examples.aiohttp_carts:app --workers 4 \
        --worker-class aiohttp.GunicornWebWorker

Ask any worker: the one that has the cart answers. Workers that end hand their carts over.
"""

from aiohttp import web

from tenure import AiohttpRelay, Member, OwnedState, owned

carts: OwnedState[list[str]] = OwnedState(value_type=list[str], ttl=3600, limit=100_000)
member = Member("carts", hand_off=carts)
routes = web.RouteTableDef()


@routes.post("/carts/{user}")
async def post(request: web.Request) -> web.Response:
    """Put an article into a user's cart, and answer how many it has then."""
    async with carts.at(request.match_info["user"]) as cart:
        cart.value = articles = [*(cart.value or []), request.query["article"]]
    return web.json_response(len(articles))


@routes.get("/carts/{user}")
async def get(request: web.Request) -> web.Response:
    """Return what is in a user's cart."""
    async with carts.at(request.match_info["user"]) as cart:
        return web.json_response(cart.value or [])


@routes.get("/carts/{user}/number")
async def number(request: web.Request) -> web.Response:
    """Return the lease number under which this process has the cart."""
    lease = await owned("user")(request)  # 421, unless this process has the cart
    return web.json_response(lease.number)


app = web.Application(
    middlewares=[AiohttpRelay(member=member, key="/carts/{user}", ready="/ready")]
)
app.cleanup_ctx.append(member.cleanup_ctx)
app.add_routes(routes)
