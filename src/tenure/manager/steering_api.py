"""The part of the JSON API that steers a pool, and explains it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec
from aiohttp import web

from tenure.base.keys import Key, PoolKind, UserKey, key_function
from tenure.errors import ConfigurationError, KeyTypeError
from tenure.manager.http_errors import HttpRefusal, as_json, check_is_json
from tenure.manager.pool_spec import from_hex
from tenure.manager.steering_answers import explained_answer, plan_answer, steered_answer
from tenure.protocol.lease.leader.events import Answer, Question
from tenure.protocol.lease.steering_events import (
    ChoosePolicy,
    Cordon,
    Drain,
    Evict,
    ExplainKey,
    Freeze,
    KeyExplained,
    PinKey,
    PlanRead,
    ReadPlan,
    Steered,
    SteeringCommand,
    Uncordon,
    Unfreeze,
    UnpinKey,
)

KEY_WAYS = "give one of key=TEXT, hex=BYTES in hexadecimal, or int=NUMBER in a hashed pool"

A = TypeVar("A", bound=Answer)
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every command may be given."""

    dry_run: bool = False


class OwnerBody(Body, frozen=True, kw_only=True):
    """A command about an owner."""

    owner: str


class KeyBody(Body, frozen=True, kw_only=True):
    """A command about a key, given in one way."""

    key: str | None = None
    hex: str | None = None
    number: int | None = msgspec.field(default=None, name="int")


class PinBody(KeyBody, frozen=True, kw_only=True):
    """A key and an owner."""

    owner: str


class EvictBody(Body, frozen=True, kw_only=True):
    """Which incarnation, and whether its process is gone."""

    incarnation: int
    confirmed_dead: bool = False


class PolicyBody(Body, frozen=True, kw_only=True):
    """Which policy."""

    policy: str


BODIES: Mapping[str, type[Body]] = {
    "drain": OwnerBody,
    "cordon": OwnerBody,
    "uncordon": OwnerBody,
    "pin": PinBody,
    "unpin": KeyBody,
    "freeze": Body,
    "unfreeze": Body,
    "evict": EvictBody,
    "policy": PolicyBody,
}


class Asking(Protocol):
    """Who asks the machine."""

    async def ask(self, question: Question, wanted: type[A]) -> A:
        """The answer, of the type that is wanted. Raises HttpRefusal if there is no answer."""
        ...

    def pool_kind(self, pool: str) -> PoolKind:
        """The kind of the pool; hashed where it is not known."""
        ...


class SteeringApi:
    """The handlers."""

    def __init__(self, asking: Asking) -> None:
        self.asking = asking

    def add_routes(self, router: web.UrlDispatcher) -> list[str]:
        """Put the handlers under their paths, which are returned."""
        reading: dict[str, Handler] = {
            "/v1/pools/{pool}/plan": self.plan,
            "/v1/pools/{pool}/why": self.why,
        }
        for path, handler in reading.items():
            router.add_get(path, handler)
        steering = [f"/v1/pools/{{pool}}/{name}" for name in BODIES]
        for path in steering:
            router.add_post(path, self.steer)
        return [*reading, *steering]

    async def plan(self, request: web.Request) -> web.Response:
        """What the policy would do now."""
        pool = request.match_info["pool"]
        answer = await self.asking.ask(ReadPlan(pool), PlanRead)
        return as_json(plan_answer(answer, self.asking.pool_kind(pool)))

    async def why(self, request: web.Request) -> web.Response:
        """Which owner has a key, and how it came there."""
        pool = request.match_info["pool"]
        kind = self.asking.pool_kind(pool)
        key = key_in(request.query, kind)
        answer = await self.asking.ask(ExplainKey(pool, key), KeyExplained)
        return as_json(explained_answer(answer, key, kind))

    async def steer(self, request: web.Request) -> web.Response:
        """Carry out a command, or say what it would do."""
        check_is_json(request)
        pool, name = request.match_info["pool"], request.path.rpartition("/")[2]
        kind = self.asking.pool_kind(pool)
        try:
            body = msgspec.json.decode(await request.read() or b"{}", type=BODIES[name])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            fields = ", ".join(f'"{field}"' for field in BODIES[name].__struct_encode_fields__)
            raise HttpRefusal(400, str(error), f"the body is an object of {fields}") from error
        answer = await self.asking.ask(command(pool, kind, name, body), Steered)
        return as_json(steered_answer(answer, kind))


def command(pool: str, kind: PoolKind, name: str, body: Body) -> SteeringCommand:
    """The command that a body means. Raises HttpRefusal where its key is not one."""
    said: dict[str, Any] = {"pool": pool, "dry_run": body.dry_run}
    match body:
        case OwnerBody(owner=owner):
            kinds: dict[str, type[Drain | Cordon | Uncordon]]
            kinds = {"drain": Drain, "cordon": Cordon, "uncordon": Uncordon}
            return kinds[name](**said, owner=owner)
        case PinBody(owner=owner):
            return PinKey(**said, key=_key(body, kind), owner=owner)
        case KeyBody():
            return UnpinKey(**said, key=_key(body, kind))
        case EvictBody(incarnation=incarnation, confirmed_dead=is_dead):
            return Evict(**said, incarnation=incarnation, confirmed_dead=is_dead)
        case PolicyBody(policy=policy):
            return ChoosePolicy(**said, policy=policy)
        case _:
            return Freeze(**said) if name == "freeze" else Unfreeze(**said)


def _key(body: KeyBody, kind: PoolKind) -> Key:
    given = {"key": body.key, "hex": body.hex, "int": body.number}
    return key_in({k: str(value) for k, value in given.items() if value is not None}, kind)


def key_in(given: Mapping[str, str], kind: PoolKind) -> Key:
    """The key that is given in one way. Raises HttpRefusal where it is missing, or no key."""
    try:
        return key_function(kind)(_user_key(given))
    except (KeyTypeError, ConfigurationError, UnicodeEncodeError) as error:
        raise HttpRefusal(400, str(error), KEY_WAYS) from error


def _user_key(given: Mapping[str, str]) -> UserKey:
    """The key as its user has it: text in `key`, bytes in `hex`, a 64-bit key in `int`."""
    ways = [name for name in ("key", "hex", "int") if name in given]
    if len(ways) != 1:
        raise HttpRefusal(400, f"give a key once; here it is given {len(ways)} times", KEY_WAYS)
    written = given[ways[0]]
    match ways[0]:
        case "key":
            return written
        case "hex":
            return from_hex(written)
    try:
        return int(written)
    except ValueError:
        raise HttpRefusal(
            400, f"int={written} is not a number", "give one from 0 to 2**64 - 1"
        ) from None
