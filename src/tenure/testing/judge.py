"""The judge of a simulated service: nothing leaves a process for a key that it does not hold.

An answer with a status below 400, and a frame of a WebSocket, says that this process owns the key
of the path. The judge looks at it when it leaves, and compares it with what the process's owners
believe at that instant. An answer that a member has relayed is judged in the process that gave it.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tenure.base.keys import UserKey, key_function
from tenure.errors import ConfigurationError, LeaseLost
from tenure.member.asgi import Message, Scope, raw_path, routed_path
from tenure.member.relay import Relay
from tenure.owned_state.turn import Turn
from tenure.routing.template import PathKey, Templates
from tenure.sim.app.clients import LibraryOwner
from tenure.sim.app.processes import AppProcess
from tenure.sim.kernel.checkers import Violation
from tenure.testing.asgi_channel import Watch
from tenure.testing.fakes import simulated_process
from tenure.testing.relays import RELAYED_HERE

REFUSED = 400
PROMISE = "one owner"


class Judge:
    """Watches every process of a service."""

    def __init__(self, key: PathKey | None) -> None:
        self._templates = Templates(key) if key else None
        self._find = _key_in
        self._is_on = key != ""
        self.judged = 0
        """How many answers and frames."""

    def know(self, app: object) -> None:
        """See in an application where keys stand in paths, unless that was told."""
        self._find = _key_in_segments if hasattr(app, "middlewares") else _key_in
        if self._templates is None and self._is_on:
            found = _relay_key(app)
            if found is None:
                raise ConfigurationError(
                    "where do keys stand in the paths of this application? It has no Relay, which "
                    'says so: pass it, for example key="/rooms/{room}"; or key="" where a process '
                    "may answer for a key that another has, as with Entities"
                )
            self._templates = Templates(found)

    def watch(self, process: AppProcess) -> Watch:
        """The watch for what leaves this process."""
        return lambda scope: JudgedExchange(self, process, scope)

    def judge(self, process: AppProcess, scope: Scope, what: str) -> None:
        """Something leaves."""
        if self._templates is None:
            return
        user_key = self._find(self._templates, scope)
        if user_key is None or not process.alive:
            return
        self.judged += 1
        inside = (asyncio.current_task(), user_key)
        if inside in process.turns:
            process.turns[inside] = True
        for owner in process.owners():
            owner.look()
            key = key_function(owner.engine.config.kind or "hashed")(user_key)
            if process.lease_of(key) is not None:
                return
        process.site.fail(
            Violation(
                PROMISE,
                f"{process.slot} sends {what} of {scope['path']}, and does not hold {user_key!r} "
                f"at this instant{_who_does(process, user_key)}",
            )
        )


class JudgedExchange:
    """One request or WebSocket."""

    def __init__(self, judge: Judge, process: AppProcess, scope: Scope) -> None:
        self._judge = judge
        self._process = process
        self._scope = scope
        self._is_relayed = False
        self._status = 0
        RELAYED_HERE.set(self._on_relayed)

    def _on_relayed(self) -> None:
        self._is_relayed = True

    def failed(self, error: Exception) -> None:
        self._process.site.tell(self._process.slot, "a handler failed", repr(error))
        self._process.site.count_note("handlers failed")

    def leaves(self, message: Message) -> None:
        match message["type"]:
            case "http.response.start":
                self._status = message["status"]
            case "websocket.send":
                self._ask("a frame")
            case "http.response.body" if self._status < REFUSED:
                self._ask(f"an answer with status {self._status}")
            case _:
                pass

    def _ask(self, what: str) -> None:
        if not self._is_relayed:
            self._judge.judge(self._process, self._scope, what)


@contextmanager
def turns_judged() -> Iterator[None]:
    """A context in which a turn that lost its lease must have sent no answer, since its change was
    not kept.
    """
    enter, leave = Turn.__aenter__, Turn.__aexit__

    async def entered(turn: Turn[Any]) -> Turn[Any]:
        await enter(turn)
        process = simulated_process()
        if process is not None:
            process.turns[asyncio.current_task(), turn.key] = False
        return turn

    async def left(turn: Turn[Any], *error: Any) -> None:  # noqa: ANN401
        process = simulated_process()
        inside = (asyncio.current_task(), turn.key)
        has_answered = process is not None and process.turns.pop(inside, False)
        try:
            await leave(turn, *error)
        except LeaseLost:
            if process is not None and has_answered:
                process.site.fail(
                    Violation(
                        "answers after they are kept",
                        f"{process.slot} has answered for {turn.key!r} inside of a turn, whose "
                        "lease was then lost: what was answered is not kept. Answer when the "
                        "turn is over",
                    )
                )
            raise

    Turn.__aenter__, Turn.__aexit__ = entered, left  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        Turn.__aenter__, Turn.__aexit__ = enter, leave  # type: ignore[method-assign]


def _who_does(process: AppProcess, user_key: object) -> str:
    for owner in process.site.owners():
        assert isinstance(owner, LibraryOwner)
        key = key_function(owner.engine.config.kind or "hashed")(user_key)  # type: ignore[arg-type]
        if any(key in lease.range for lease in owner.holdings.leases) and owner.alive:
            return f"; {owner.slot} was the last to be seen with it"
    return ""


def _key_in(templates: Templates, scope: Scope) -> UserKey | None:
    return templates.find(routed_path(scope))


def _key_in_segments(templates: Templates, scope: Scope) -> UserKey | None:
    """As aiohttp's routers divide a path: before it is decoded."""
    return templates.find_raw(raw_path(scope))


def _relay_key(app: object) -> PathKey | None:
    """The key of the first Relay around an application, or among its middlewares."""
    if isinstance(app, Relay):
        return app.key
    middlewares: Sequence[object] = getattr(app, "user_middleware", ())
    for each in middlewares:
        if getattr(each, "cls", None) is Relay:
            return each.kwargs.get("key")  # type: ignore[attr-defined,no-any-return]
    of_aiohttp: Sequence[object] = getattr(app, "middlewares", ())
    if not of_aiohttp:
        return None
    from tenure.member.aiohttp.relay import AiohttpRelay  # noqa: PLC0415  # loads a server

    return next((each.key for each in of_aiohttp if isinstance(each, AiohttpRelay)), None)
