"""The shell that runs the machine of any client: a loop, a driver, contact with servers, the way in
and out.

A shell knows no protocol. It gets an *engine*, which says which machine to run, and what its
actions and the servers' messages mean. Owners and lookups each have an engine, and so does a client
of any other protocol.

Everything happens in the shell's loop, except for `start`, `call`, `post` and `leave`, which come
from the application's threads.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AsyncExitStack
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from tenure.base.instants import Instant
from tenure.base.machine import Machine
from tenure.base.noted import NOTED, Level, Noted, NotedKind
from tenure.client.callbacks import STUCK_SECONDS, Callbacks, Job
from tenure.client.environment import Environment
from tenure.client.servers import Servers
from tenure.errors import TenureError
from tenure.runtime.driver import Driver
from tenure.runtime.loops import LoopCalls
from tenure.transport.contract import Role

E = TypeVar("E")
E_contra = TypeVar("E_contra", contravariant=True)
A = TypeVar("A")
M = TypeVar("M")
M_contra = TypeVar("M_contra", contravariant=True)

LEAVE_SECONDS = 10.0
"""How long leaving waits for callbacks and for servers to answer. This is most of a hold of the
default preset: after that the ranges come free anyway, and waiting gains nothing.
"""

SAYS_AFTER_SECONDS = 1.0
"""When entering takes this long, the log says so: longer than it takes normally, and short for a
person at a terminal in which nothing happens.
"""


class Engine(Protocol[E_contra, A, M_contra]):
    """The methods that a shell calls to act for its client, all in its loop, except for `end`."""

    async def prepare(self) -> Machine[E_contra, A]:
        """Return the machine to run, made when all its arguments are known; `shell.cleanup` gets
        what must be undone. Raises TenureError if the client cannot be entered.
        """
        ...

    def perform(self, action: A) -> None:
        """Carry out an action, perhaps with `shell.send`."""
        ...

    def hear(self, server: str, message: M_contra) -> None:
        """A server's message came: hand it to the machine."""
        ...

    def on_lost(self, server: str) -> None:
        """The connection to a server is gone: tell the machine."""
        ...

    def why_not_entered(self) -> TenureError:
        """The reason why `shell.have_entered` has not been called in time."""
        ...

    async def give_back(self) -> None:
        """Return everything, on the way out; it may be cancelled."""
        ...

    def end(self) -> None:
        """Let every use of the client raise from here on. From any thread, and perhaps twice."""
        ...

    def give_up(self) -> None:
        """The machine cannot run any longer: believe nothing, and wait for nothing."""
        ...


class ShellConfig(NamedTuple):
    """Which client a shell runs, and where."""

    name: str
    """The client's name in the log."""
    environment: Environment
    logger: logging.Logger
    enter_timeout: float
    remains: str
    """The fate of ranges that could not be returned in time, for the log."""


class Shell(Generic[E, A, M]):
    """Runs one client."""

    def __init__(
        self, config: ShellConfig, role: Role[M] | None, servers: Servers, engine: Engine[E, A, M]
    ) -> None:
        self.name, self.environment, self._log = config.name, config.environment, config.logger
        self._config = config
        self._role = role
        """The role; None for a client that speaks to no servers, because it is one."""
        self._engine = engine
        self.servers = servers
        self.clock = self.environment.clock
        self.counts: Counter[str] = Counter()
        self.entered: Future[None] = Future()
        """Done when `have_entered` is called, or fails with the reason why entering failed."""
        self.gone: Future[None] | None = None
        """Done when nothing is left of it."""
        self.callbacks = Callbacks(self.name, self._log, self.clock)
        self.callbacks.watch = self._say_when_stuck
        self.cleanup = AsyncExitStack()
        """The steps to undo at the end, the last first."""
        self.driver: Driver[E, A]
        self._transmit: Callable[[str, msgspec.Struct], None]
        self._calls = LoopCalls()
        self._leaving = asyncio.Event()
        self._first: Callable[[], Awaitable[None]] | None = None
        self.in_loop = False
        """Whether the application lives in an event loop."""
        self.is_draining = False
        """Whether it is leaving, and can still be used."""
        self._failed = False
        self._repeated: dict[NotedKind, str] = {}
        """The last detail of repeated events, by kind."""

    # --- from the application's threads ---

    def start(self, *, in_loop: bool) -> None:
        """Begin; callbacks come in the running event loop, or in a thread of ours."""
        self.in_loop = in_loop
        if in_loop:
            self.callbacks.start_here()
        else:
            self.callbacks.start_thread()
        self.environment.begins(self._engine)
        self.gone = self.environment.runner.run(self._main(), self.name)
        self.gone.add_done_callback(self._on_gone)

    def _on_gone(self, gone: "Future[None]") -> None:
        """The client has ended, in whatever way: no caller may wait for its beginning for ever."""
        self._engine.end()
        self.callbacks.stop()
        error = None if gone.cancelled() else gone.exception()
        if error is not None:
            self._log.critical("%s has ended", self.name, exc_info=error)
        if not self.entered.done():
            self.entered.set_exception(error or TenureError(f"{self.name} was left"))

    def call(self, call: Callable[[], object]) -> bool:
        """Make `call` in the shell's loop; False where that has ended."""
        return self._calls.call(call)

    def post(self, event: E) -> None:
        """Hand the machine an event."""
        self.call(lambda: self.driver.post(event))

    def leave(self, first: Callable[[], Awaitable[None]] | None = None) -> "Future[None]":
        """Do `first` while the client is still in use, and then return everything and leave. The
        future is done when nothing is left.
        """
        assert self.gone is not None
        if not self._leaving.is_set() and first is not None:
            self._first, self.is_draining = first, True
        self.call(self._leaving.set)
        return self.gone

    # --- from beginning to end, in the shell's loop ---

    async def _main(self) -> None:
        loop = asyncio.get_running_loop()
        async with self.cleanup:
            self.cleanup.callback(self._engine.end)
            if self._role is not None:
                transport = self.environment.transport(self._role)
                self._transmit = transport.send
                self.cleanup.push_async_callback(transport.close)
                transport.start(self._on_message, self._on_lost)
            self.cleanup.callback(self._calls.shut)
            # These are the application's patience: they go by the loop's clock, not the machine's.
            for seconds, call in (
                (SAYS_AFTER_SECONDS, self._say_whom_it_asks),
                (self._config.enter_timeout, self._on_enter_timeout),
            ):
                self.cleanup.callback(loop.call_later(seconds, call).cancel)
            try:
                machine = await self._engine.prepare()
            except TenureError as error:
                self.fail_entering(error)
                return
            await self._run(machine)

    async def _run(self, machine: Machine[E, A]) -> None:
        timers = self.environment.timers()
        self.driver = Driver(
            machine, self.clock, self._engine.perform, timers=timers, fail=self.on_failure
        )
        self.cleanup.callback(self.driver.stop)
        self.driver.start()
        self._calls.open()
        try:
            await self._leaving.wait()
            if self._first is not None and not self._failed:
                await self._first()
        finally:
            self.is_draining = False
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                if not self._failed:
                    await self._engine.give_back()
                await self._callbacks_made()
        except TimeoutError:
            self._log.warning(
                "%s leaves after %g s without an answer, or with callbacks still running: %s",
                self.name,
                LEAVE_SECONDS,
                self._config.remains,
            )

    async def _callbacks_made(self) -> None:
        made = asyncio.Event()

        def tell() -> None:
            self.call(made.set)

        self.callbacks.put(Job("", None, None, "", then=tell))
        await made.wait()

    async def happens(self, event: asyncio.Event, by: Instant) -> bool:
        """Wait for `event`, at most until `by` on the machine's clock; return whether it has
        happened.
        """
        over = asyncio.Event()
        waits = [asyncio.ensure_future(each.wait()) for each in (event, over)]
        alarm = self.driver.timers(by, over.set)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
            for each in waits:
                each.cancel()
        return event.is_set()

    def have_entered(self) -> None:
        """The client can be used from here on."""
        if not self.entered.done():
            self.entered.set_result(None)

    def fail_entering(self, error: Exception) -> None:
        """Entering has failed."""
        if not self.entered.done():
            self.entered.set_exception(error)

    def _say_when_stuck(self, say: Callable[[], None]) -> None:
        def wait() -> None:
            asyncio.get_running_loop().call_later(STUCK_SECONDS, say)

        self.call(wait)

    def _say_whom_it_asks(self) -> None:
        if not self.entered.done():
            self._log.warning(
                "%s is not entered yet, and waits up to %g s: it asks %s",
                self.name,
                self._config.enter_timeout,
                self.servers,
            )

    def _on_enter_timeout(self) -> None:
        if not self.entered.done():
            self.fail_entering(self._engine.why_not_entered())

    def on_failure(self, error: Exception) -> None:
        """A bug: nothing that this machine says can be believed any longer."""
        self._log.critical(
            "%s stops because of a bug, and holds nothing", self.name, exc_info=error
        )
        self.counts["failed"] += 1
        self._failed = True
        self._engine.give_up()
        self.fail_entering(error)

    # --- contact with servers ---

    def send(self, server: str, message: msgspec.Struct) -> None:
        """Send a message, and count it."""
        self.counts["sent"] += 1
        self._transmit(server, message)

    def _on_message(self, server: str, message: M) -> None:
        self.counts["received"] += 1
        self._engine.hear(server, message)

    def _on_lost(self, server: str, why: str) -> None:
        self.counts["connections lost"] += 1
        self.servers.note(server, why)
        self._log.debug("%s: lost %s: %s", self.name, server, why)
        self._engine.on_lost(server)

    def note(self, noted: Noted, said: str = "") -> None:
        """Count what a machine reports, and write a line to the log: `said`, if the detail alone is
        no sentence.
        """
        kind, detail = noted.kind, noted.detail
        self.counts[kind.phrase] += 1
        level = kind.level
        if kind.repeats:
            level = Level.DEBUG if detail == self._repeated.get(kind) else level
            self._repeated[kind] = detail
        said = said or detail or f"notes: {kind.phrase}"
        self._log.log(level, "%s %s%s", self.name, said, noted.because, extra={NOTED: noted})

    def complain(self, text: str, about: object) -> None:
        """Write a line to the log about what somebody else has done wrong."""
        self._log.warning("%s " + text, self.name, about)
