"""`owned`: a dependency for FastAPI, which is the lease for the key of a request."""

from collections.abc import Awaitable, Callable
from typing import Any

from tenure.client.lease import Lease
from tenure.errors import ConfigurationError, NotOwner, UsageError
from tenure.member.member import Member
from tenure.member.relay import MEMBER


def owned(name: str, *, member: Member | None = None) -> Callable[..., Awaitable[Lease]]:
    """`Annotated[Lease, Depends(owned("user"))]`: the lease for the path parameter of this name.

    Raises NotOwner where this process does not hold the key, which Relay answers with 421. `member`
    need only be given where several Relays stand around one application. Raises ConfigurationError
    where FastAPI is not installed.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ConfigurationError(
            f'owned names a parameter of the path, not {name!r}; write it like owned("user")'
        )
    try:
        from starlette.requests import HTTPConnection  # noqa: PLC0415  # who asks for it has it
    except ImportError:
        raise ConfigurationError(
            "owned is for FastAPI, which is not installed: pip install 'tenure[asgi]' fastapi"
        ) from None

    async def lease(connection: HTTPConnection) -> Lease:
        its_member = member or connection.scope.get(MEMBER)
        if its_member is None:
            raise UsageError(
                f"owned({name!r}) needs the member of this application: add the middleware, as in "
                "app.add_middleware(Relay, member=member, key=...)"
            )
        return _lease(its_member, name, connection.path_params)

    return lease


def _lease(member: Member, name: str, found: dict[str, Any]) -> Lease:
    if name not in found:
        raise UsageError(
            f"owned({name!r}) is on a route without {{{name}}}; it has {', '.join(found) or 'none'}"
        )
    key = found[name]
    lease = member.check(key)
    if lease is None:
        elsewhere = member.find(key)
        address = None if elsewhere == member.owner.address else elsewhere
        raise NotOwner(f"{key!r} is not held here", address=address)
    return lease
