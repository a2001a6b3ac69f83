"""The part of the JSON API that steers a pool, and explains it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from aiohttp import web

from tenure.base.keys import Key, PoolKind, UserKey, key_function
from tenure.errors import MALFORMED, ConfigurationError, KeyTypeError
from tenure.manager.http_errors import HttpRefusal, as_json, check_is_json, cut
from tenure.manager.pool_spec import from_hex
from tenure.manager.steering_verbs import VERBS
from tenure.protocol.lease.answers import Answer, KeyExplained, PlanRead, Steered
from tenure.protocol.lease.leader.events import Question
from tenure.protocol.lease.steering_events import ExplainKey, ReadPlan, SteeringCommand

KEY_FORMS = ("key", "hex", "int")
KEY_WAYS = "give one of key=TEXT, hex=BYTES in hexadecimal, or int=NUMBER in a hashed pool"

A = TypeVar("A", bound=Answer)
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No more fields."""


class GivenKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key as a body has it, in one of three ways."""

    key: str | None = None
    hex: str | None = None
    number: int | None = msgspec.field(default=None, name="int")


class Asking(Protocol):
    """The way to ask the machine."""

    async def ask(self, question: Question, wanted: type[A]) -> A:
        """The answer, of the type that is wanted. Raises HttpRefusal if there is no answer."""
        ...

    def pool_kind(self, pool: str) -> PoolKind:
        """The kind of the pool; hashed if it is not known."""
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
            router.add_get(with_any_pool(path), handler)
        steering = [f"/v1/pools/{{pool}}/{verb}" for verb in VERBS]
        for path in steering:
            router.add_post(with_any_pool(path), self.steer)
        return [*reading, *steering]

    async def plan(self, request: web.Request) -> web.Response:
        """Answer what the policy would do now."""
        pool = request.match_info["pool"]
        return as_json(await self.asking.ask(ReadPlan(pool), PlanRead))

    async def why(self, request: web.Request) -> web.Response:
        """Answer which owner has a key, and how the key came there."""
        pool = request.match_info["pool"]
        key = asked_key(request, self.asking.pool_kind(pool))
        return as_json(await self.asking.ask(ExplainKey(pool, key), KeyExplained))

    async def steer(self, request: web.Request) -> web.Response:
        """Carry out a command, or say what it would do."""
        check_is_json(request)
        pool, verb = request.match_info["pool"], request.path.rpartition("/")[2]
        said = await request.read() or b"{}"
        command = read_command(VERBS[verb].command, pool, self.asking.pool_kind(pool), said)
        return as_json(await self.asking.ask(command, Steered))


def read_command(
    wanted: type[SteeringCommand], pool: str, kind: PoolKind, body: bytes
) -> SteeringCommand:
    """The command that a body means: its fields but the pool, which is in the path, and a key in
    one of its forms. Raises HttpRefusal where it is not such a body.
    """
    fields = [field for field in wanted.__struct_fields__ if field not in ("pool", "key")]
    has_key = "key" in wanted.__struct_fields__
    try:
        given = msgspec.json.decode(body, type=dict[str, object])
        said = {field: given.pop(field) for field in fields if field in given}
        key = msgspec.convert(given, GivenKey if has_key else Nothing)
        if isinstance(key, GivenKey):
            said["key"] = _key(key, kind)
        return msgspec.convert({**said, "pool": pool}, wanted)
    except MALFORMED as error:
        names = ", ".join(f'"{name}"' for name in (*fields, *(KEY_FORMS if has_key else ())))
        raise HttpRefusal(400, str(error), f"the body is an object of {names}") from error


def _key(given: GivenKey, kind: PoolKind) -> Key:
    forms = dict(zip(KEY_FORMS, (given.key, given.hex, given.number), strict=True))
    return key_in({form: str(value) for form, value in forms.items() if value is not None}, kind)


def with_any_pool(path: str) -> str:
    """The path for the router, which by itself takes no braces in the name of a pool."""
    return path.replace("{pool}", "{pool:[^/]+}")


def asked_key(request: web.Request, kind: PoolKind) -> Key:
    """The key that the parameters of a request name. Raises HttpRefusal as `key_in` does."""
    try:
        unquote_to_bytes(request.rel_url.raw_query_string).decode()
    except UnicodeDecodeError as error:  # and would be read as another key
        raise HttpRefusal(400, f"the parameters are not UTF-8: {error}", KEY_WAYS) from error
    _check_once(sum(len(request.query.getall(form, ())) for form in KEY_FORMS))
    return key_in(request.query, kind)


def _check_once(times: int) -> None:
    if times != 1:
        raise HttpRefusal(400, f"give a key once; here it is given {times} times", KEY_WAYS)


def key_in(given: Mapping[str, str], kind: PoolKind) -> Key:
    """The key that is given in one way. Raises HttpRefusal where it is missing, or no key."""
    try:
        return key_function(kind)(_user_key(given))
    except (KeyTypeError, ConfigurationError, UnicodeEncodeError) as error:
        raise HttpRefusal(400, str(error), KEY_WAYS) from error


def _user_key(given: Mapping[str, str]) -> UserKey:
    """The key as its user has it: text in `key`, bytes in `hex`, a 64-bit key in `int`."""
    ways = [name for name in KEY_FORMS if name in given]
    _check_once(len(ways))
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
            400, f"int={cut(written)} is not a number", "give one from 0 to 2**64 - 1"
        ) from None
