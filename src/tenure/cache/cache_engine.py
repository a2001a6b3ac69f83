"""Carries out the actions of a cache's machine: it sends messages, publishes entries, and answers
readers that wait.

Entries are published before any reader is told of them. A reader that waits has a ticket, and gets
the result in a future, from the library's thread.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from typing import Any, assert_never

from tenure.base.keys import Key
from tenure.base.noted import Noted
from tenure.cache.board import WHAT, CacheBoard
from tenure.client.environment import Environment
from tenure.client.lookup_engine import CachesByRange, CachesFollower
from tenure.client.servers import Servers
from tenure.client.shell import Shell, ShellConfig
from tenure.client.unusable import left
from tenure.errors import (
    Busy,
    LoadFailed,
    NotOwner,
    OutcomeUnknown,
    TenureError,
    Unreachable,
    ValueTypeError,
)
from tenure.protocol.volume.client.events import (
    AskWhetherUsed,
    AuditWanted,
    Believe,
    CacheAction,
    CacheConfig,
    CacheEvent,
    DoubtEntries,
    DropEntries,
    Evicted,
    JudgeHit,
    KeepEntry,
    LeaveAsked,
    ObjectWanted,
    RoutesChanged,
    Saw,
    ServerSaid,
    TellReaders,
    TellServer,
    TellWriter,
    WasUsed,
    WriteWanted,
)
from tenure.protocol.volume.client.machine import CacheMachine
from tenure.protocol.volume.messages import AsOf, ToCache
from tenure.transport.contract import Role
from tenure.wire.volume import decode_to_cache, encode_volume

PATH = "/v1/volume"
WAITING_MESSAGES = 100_000
"""The most messages that wait for one server: one for each object that is asked for while a
connection is made.
"""
CACHE: Role[ToCache] = Role(PATH, decode_to_cache, encode_volume, WAITING_MESSAGES, proves=True)
MOST_RENEWED = 1000
"""Object leases that one renewal of a volume lease brings along."""
ROUNDS_TO_SAY_BYE = 5
"""Turns of the loop until the last message is on its way."""
logger = logging.getLogger("tenure.cache")


class CacheEngine:
    """Runs a cache machine in a shell."""

    def __init__(
        self,
        config: CacheConfig,
        board: CacheBoard,
        decode: Callable[[bytes], Any],
        environment: Environment,
        enter_timeout: float,
        follow: Callable[[CachesFollower], object] | None = None,
    ) -> None:
        self._follow = follow
        """The routes, if a lookup tells who serves what; None for one server."""
        self.name = f"cache of {config.server}" if config.server else "cache"
        remains = "servers forget it by themselves"
        of_shell = ShellConfig(self.name, environment, logger, enter_timeout, remains)
        self._servers = Servers((config.server,) if config.server else ())
        self.shell: Shell[CacheEvent, CacheAction, ToCache] = Shell(
            of_shell, CACHE, self._servers, self
        )
        self.board = board
        self._decode = decode
        self._machine = CacheMachine(config, environment.random())
        self._tickets = count(1)
        self._reading: dict[int, Future[Any]] = {}
        self._writing: dict[int, Future[None]] = {}

    async def prepare(self) -> CacheMachine:
        if self._follow is not None:
            self._follow(self._on_routes)
        asyncio.get_running_loop().call_soon(self._enter)
        return self._machine

    def _on_routes(self, routes: CachesByRange) -> None:
        """Take new routes, in the lookup's thread."""
        self.shell.call(lambda: self._route(routes))

    def _route(self, routes: CachesByRange) -> None:
        places = self.board.keys.places
        routes = tuple((places(key_range), server) for key_range, server in routes)
        self._servers.name(tuple(dict.fromkeys(server for _, server in routes if server)))
        self.shell.driver.post(RoutesChanged(routes))

    def _enter(self) -> None:
        """Ask no server yet: a cache may be entered before its servers run, and asks them when
        somebody reads.
        """
        self.board.open()
        self.shell.have_entered()

    # --- from the application's threads ---

    def want(self, key: Key) -> "Future[Any]":
        """Ask for an object; the future gets its value, or None if there is no such object."""
        future: Future[Any] = Future()

        def begin() -> None:
            ticket = next(self._tickets)
            self._reading[ticket] = future
            self.shell.driver.post(ObjectWanted(ticket, key))

        return self._begun(future, begin)

    def write(self, key: Key, data: bytes) -> "Future[None]":
        """Have the server store it."""
        future: Future[None] = Future()

        def begin() -> None:
            ticket = next(self._tickets)
            self._writing[ticket] = future
            self.shell.driver.post(WriteWanted(ticket, key, data))

        return self._begun(future, begin)

    def saw(self, key: Key, as_of: AsOf) -> "Future[None]":
        """When the future is done, no older value is read any longer (C5)."""
        future: Future[None] = Future()

        def begin() -> None:
            self.shell.driver.post(Saw(key, as_of))
            future.set_result(None)

        return self._begun(future, begin)

    def _begun(self, future: "Future[Any]", begin: Callable[[], None]) -> "Future[Any]":
        if not self.shell.call(begin):
            future.set_exception(left(WHAT))
        return future

    # --- actions ---

    def perform(self, action: CacheAction) -> None:
        match action:
            case TellServer(server=server, message=message):
                self.shell.send(server, message)
            case KeepEntry():
                self._keep(action)
            case Believe() | DropEntries() | DoubtEntries():
                self.board.perform(action)
            case TellReaders():
                self._tell_readers(action)
            case TellWriter():
                self._tell_writer(action)
            case AskWhetherUsed(server=server, ending_before=before):
                if self.board.was_used(server):
                    keys = self.board.ending_soon(server, before, MOST_RENEWED)
                    self.shell.driver.post(WasUsed(server, keys))
                for key in self.board.sampled():
                    self.shell.driver.post(AuditWanted(key))
            case JudgeHit():
                self._judge(action)
            case Noted():
                self.shell.note(action, f"notes: {action.text}")
            case _:
                assert_never(action)

    def _keep(self, action: KeepEntry) -> None:
        try:
            self.board.perform(action)
        except (ValueError, TenureError):  # readers that wait for it get the same
            self.shell.driver.post(Evicted((action.key,)))
            return
        gone = self.board.make_room()
        if gone:
            self.shell.counts["evicted"] += len(gone)
            self.shell.driver.post(Evicted(gone))

    def _judge(self, judged: JudgeHit) -> None:
        name = self.board.keys.name(judged.key)
        found = self.board.there.get(name)
        if found is None:
            return  # the value was evicted in the same step
        try:
            value = self._decode(judged.value) if judged.kind == "value" else None
        except ValueError:
            return  # readers get the error
        self.shell.counts["audited"] += 1
        if found.value != value:
            self.shell.counts["stale_hits"] += 1
            logger.error(
                "%s: an audit found a stale entry: hits of %r get another value than its server "
                "loads. Something changes it without telling the server, or changes the value that "
                "all readers share: write through the volume, or call its `changed`",
                self.name,
                name,
            )

    def _tell_readers(self, told: TellReaders) -> None:
        waiting = [(each, self._reading.pop(each, None)) for each in told.tickets]
        found = None
        if told.outcome in ("hit", "unchanged", "value"):
            found = self.board.there.get(self.board.keys.name(told.key))
        for ticket, future in waiting:
            if future is None or not future.set_running_or_notify_cancel():
                continue
            if found is not None and found.as_of == told.as_of:
                future.set_result(found.value)
            elif told.outcome in ("hit", "unchanged"):  # evicted in the same step
                self._ask_again(ticket, future, told.key)
            else:
                self._tell_reader(future, told)

    def _ask_again(self, ticket: int, future: "Future[Any]", key: Key) -> None:
        again: Future[Any] = Future()
        again.add_done_callback(lambda done: _pass_on(done, future))
        self._reading[ticket] = again
        self.shell.driver.post(ObjectWanted(ticket, key))

    def _tell_reader(self, future: "Future[Any]", told: TellReaders) -> None:
        name = self.board.keys.name(told.key)
        match told.outcome:
            case "value":
                try:
                    future.set_result(self._decode(told.value))
                except ValueError as error:
                    why = f"the value of {name!r} is not of this cache's value_type: {error}"
                    future.set_exception(ValueTypeError(why))
            case "absent":
                future.set_result(None)
            case "failed":
                future.set_exception(LoadFailed(f"{name!r} could not be read: {told.detail}"))
            case _:
                future.set_exception(self._unreachable(f"{name!r} was not read"))

    def _unreachable(self, what: str) -> Unreachable:
        who = str(self._servers) or "no server is known for it"
        return Unreachable(f"{what}, because its server does not answer: {who}")

    def _tell_writer(self, told: TellWriter) -> None:
        future = self._writing.pop(told.ticket, None)
        if future is None or not future.set_running_or_notify_cancel():
            return
        what = f"the write of {self.board.keys.name(told.key)!r}"
        match told.outcome:
            case "written":
                future.set_result(None)
            case "failed" if told.as_of is not None:
                why = f"{what} was begun, and its server's store raised: {told.detail}"
                future.set_exception(OutcomeUnknown(why))
            case "failed":
                future.set_exception(Busy(f"{what} was refused ({told.detail}); it was not begun"))
            case "elsewhere":
                future.set_exception(NotOwner(f"{what} was not begun: nobody serves it now"))
            case "unreachable":
                future.set_exception(self._unreachable(f"{what} was not sent"))
            case "unknown":
                why = f"{what} was sent, and no answer came: it was carried out, or will be, or not"
                future.set_exception(OutcomeUnknown(why))
            case _:
                assert_never(told.outcome)

    # --- messages ---

    def hear(self, server: str, message: ToCache) -> None:
        self._servers.note(server, "it answers")
        self.shell.driver.post(ServerSaid(server, message))

    def on_lost(self, server: str) -> None:
        """See `Engine.on_lost`. Requests are repeated in time; leases go on."""

    def why_not_entered(self) -> TenureError:
        return self._unreachable("this cache was not entered")

    # --- leaving ---

    async def give_back(self) -> None:
        """See `Engine.give_back`. Servers need not wait for a cache that says that it leaves."""
        self.shell.driver.post(LeaveAsked())
        for _ in range(ROUNDS_TO_SAY_BYE):
            await asyncio.sleep(0)
        self.shell.driver.stop()

    def end(self) -> None:
        if not self.board.is_forked:
            self.board.close(lambda: left(WHAT))
        for future in (*self._reading.values(), *self._writing.values()):
            with suppress(Exception):  # another thread was faster
                future.set_exception(left(WHAT))

    def give_up(self) -> None:
        self.end()

    def stats(self) -> dict[str, int]:
        """Its counts beside those of messages. From any thread."""
        board = self.board
        return {
            **self.shell.counts,
            "audited": self.shell.counts["audited"],
            "stale_hits": self.shell.counts["stale_hits"],
            "hits": board.hits,
            "entries": len(board.there),
            "bytes": board.size,
            "live": board.live,
        }


def _pass_on(done: "Future[Any]", to: "Future[Any]") -> None:
    error = done.exception()
    if error is None:
        to.set_result(done.result())
    else:
        to.set_exception(error)
