"""`owned`: the lease for the key of a request, for FastAPI as a dependency, and for aiohttp."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from tenure.base.keys import UserKey
from tenure.base.names import shown
from tenure.client.lease import Lease
from tenure.errors import ConfigurationError, NotOwner, UsageError
from tenure.member.asgi import KEY, MEMBER, SERVED, Scope
from tenure.member.member import Member


def owned(name: str, *, member: Member | None = None) -> Callable[..., Awaitable[Lease]]:
    """What gives the lease for the path parameter of this name.

    FastAPI calls it, as in `Annotated[Lease, Depends(owned("user"))]`; a handler of aiohttp calls
    it itself, as in `lease = await owned("user")(request)`. It raises NotOwner where this process
    does not hold the key, which Relay answers with 421. `member` need only be given where several
    Relays stand around one application. Raises ConfigurationError for what is no name.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ConfigurationError(
            f'owned names a parameter of the path, not {shown(name)}; write it like owned("user")'
        )

    async def lease(connection: Any) -> Lease:  # noqa: ANN401  # of either framework
        scope: Scope = getattr(connection, "scope", None) or SERVED.get() or {}
        its_member = member or scope.get(MEMBER)
        if its_member is None:
            raise UsageError(
                f"owned({name!r}) needs the member of this application: add the middleware, as in "
                "app.add_middleware(Relay, member=member, key=...), or with aiohttp "
                "web.Application(middlewares=[AiohttpRelay(member=member, key=...)])"
            )
        found = connection.path_params if "path_params" in scope else connection.match_info
        return _lease(its_member, _key(name, found, scope))

    with suppress(ImportError):  # FastAPI looks at the type to know what to pass
        from starlette.requests import HTTPConnection  # noqa: PLC0415  # who asks for it has it

        lease.__annotations__["connection"] = HTTPConnection
    return lease


def _key(name: str, found: Mapping[str, Any], scope: Scope) -> UserKey:
    if name not in found:
        raise UsageError(
            f"owned({name!r}) is on a route without {{{name}}}; it has {', '.join(found) or 'none'}"
        )
    # A route may say "42" where the template of the middleware says `{room:int}`, or the reverse.
    key: UserKey = found[name]
    relayed: UserKey | None = scope.get(KEY)
    return key if relayed is None or str(relayed) != str(key) else relayed


def _lease(member: Member, key: UserKey) -> Lease:
    lease = member.check(key)
    if lease is None:
        elsewhere = member.find(key)
        address = None if elsewhere == member.owner.address else elsewhere
        raise NotOwner(f"{key!r} is not held here", address=address)
    return lease
