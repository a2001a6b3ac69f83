"""The part of the JSON API that steers pools and rings, by the operator's verbs."""

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeAlias, TypeVar
from urllib.parse import unquote_to_bytes

from aiohttp import web
from msgspec.structs import replace

from tenure.base.keys import Key, PoolKind
from tenure.manager.access.roles import Permit
from tenure.manager.command_bodies import KEY_FORMS, KEY_WAYS, check_once, key_in, read_command
from tenure.manager.http_errors import HttpRefusal, as_json, check_is_json
from tenure.manager.operator_verbs import PATHS, Verb
from tenure.protocol.lease.answers import Answer, KeyExplained, PlanRead
from tenure.protocol.lease.leader.events import Question
from tenure.protocol.lease.steering_events import ExplainKey, ReadPlan
from tenure.protocol.topology.questions import MakeTable

A = TypeVar("A", bound=Answer)
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


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

    def __init__(self, asking: Asking, permit_of: Callable[[web.Request], Permit]) -> None:
        self.asking = asking
        self._permit_of = permit_of

    def add_routes(self, router: web.UrlDispatcher) -> list[str]:
        """Put the handlers under their paths, which are returned."""
        reading: dict[str, Handler] = {
            "/v1/pools/{pool}/plan": self.plan,
            "/v1/pools/{pool}/why": self.why,
        }
        for path, handler in reading.items():
            router.add_get(with_any_name(path), handler)
        for path, verb in PATHS.items():
            router.add_post(with_any_name(path), partial(self.steer, verb))
        return [*reading, *PATHS]

    async def plan(self, request: web.Request) -> web.Response:
        """Answer what the policy would do now."""
        pool = request.match_info["pool"]
        return as_json(await self.asking.ask(ReadPlan(pool), PlanRead))

    async def why(self, request: web.Request) -> web.Response:
        """Answer which owner has a key, and how the key came there."""
        pool = request.match_info["pool"]
        key = asked_key(request, self.asking.pool_kind(pool))
        return as_json(await self.asking.ask(ExplainKey(pool, key), KeyExplained))

    async def steer(self, verb: Verb, request: web.Request) -> web.Response:
        """Carry out a command, or say what it would do."""
        check_is_json(request)
        said = await request.read() or b"{}"
        name = request.match_info[verb.place]
        command = read_command(verb, name, said, self.asking.pool_kind)
        if isinstance(command, MakeTable):
            command = replace(command, by_operator=self._permit_of(request).may_change)
        return as_json(await self.asking.ask(command, verb.answer))


def with_any_name(path: str) -> str:
    """The path for the router, which by itself takes no braces in a name."""
    return re.sub(r"{(\w+)}", r"{\1:[^/]+}", path)


def asked_key(request: web.Request, kind: PoolKind) -> Key:
    """The key that the parameters of a request name. Raises HttpRefusal as `key_in` does."""
    try:
        unquote_to_bytes(request.rel_url.raw_query_string).decode()
    except UnicodeDecodeError as error:  # and would be read as another key
        raise HttpRefusal(400, f"the parameters are not UTF-8: {error}", KEY_WAYS) from error
    check_once(sum(len(request.query.getall(form, ())) for form in KEY_FORMS))
    return key_in(request.query, kind)
