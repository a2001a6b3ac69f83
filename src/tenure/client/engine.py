"""What runs a library's machine: a loop, a driver, a transport, and the way in and out.

Everything here happens in the engine's loop, except for `start`, `post` and `leave`, which come
from the application's threads. The two engines, of owners and of lookups, say what their machines'
actions mean.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import ClassVar, Generic, TypeVar

from tenure.base.machine import Machine
from tenure.base.noted import Level, Noted
from tenure.client.callbacks import STUCK_SECONDS, Callbacks, Job
from tenure.client.environment import Environment
from tenure.client.managers_file import ManagersFile
from tenure.client.reachability import Reachability
from tenure.errors import ConfigurationError, TenureError
from tenure.protocol.lease.messages import ToManager
from tenure.runtime.driver import Driver
from tenure.runtime.loops import LoopCalls
from tenure.transport.contract import M, Role

E = TypeVar("E")
A = TypeVar("A")

LEAVE_SECONDS = 10.0
"""How long leaving waits for callbacks and for the manager's word. Most of a hold of the default
preset: after that the ranges come free by themselves, and waiting gains nothing."""

SAYS_AFTER_SECONDS = 1.0
"""When entering takes this long, it is told: longer than when all is well, and short for whoever
watches a terminal in which nothing happens."""


class Engine(Generic[E, A, M]):
    """One Owner's or Lookup's active self."""

    what: ClassVar[str]
    logger: ClassVar[logging.Logger]

    def __init__(
        self,
        name: str,
        role: Role[M],
        managers: tuple[str, ...],
        environment: Environment,
        enter_timeout: float,
    ) -> None:
        self.name = name
        self.role = role
        self.environment = environment
        self.clock = environment.clock
        self.enter_timeout = enter_timeout
        self.reachability = Reachability(managers)
        self.managers_file: ManagersFile | None = None
        """Where the managers are named, if it is a file."""
        self.counts: Counter[str] = Counter()
        self.entered: Future[None] = Future()
        """Done when it is registered, or has its first table; or with why that failed."""
        self.gone: Future[None] | None = None
        """Done when nothing is left of it."""
        self.callbacks = Callbacks(name, self.logger, self.clock)
        self.callbacks.watch = self._say_when_stuck
        self.driver: Driver[E, A]
        self._calls = LoopCalls()
        self._leaving: asyncio.Event = asyncio.Event()
        self._left: asyncio.Event = asyncio.Event()
        self.drain_seconds = 0.0
        """How long leaving may hand over, before it returns what is left."""
        self.is_draining = False
        self._failed = False
        self._last_repeated = ""

    # --- what the two engines say for themselves ---

    def machine(self) -> Machine[E, A]:
        """The machine to run."""
        raise NotImplementedError

    def perform(self, action: A) -> None:
        """Carry out an action."""
        raise NotImplementedError

    def on_message(self, manager: str, message: M) -> None:
        """A manager's message came: hand it to the machine."""
        raise NotImplementedError

    def on_lost(self, manager: str) -> None:
        """A connection is gone: tell the machine."""
        raise NotImplementedError

    def on_managers_named(self, managers: tuple[str, ...]) -> None:
        """The list of managers was read again: tell the machine."""
        raise NotImplementedError

    def is_searching(self) -> bool:
        """Whether a leader is being looked for."""
        raise NotImplementedError

    async def prepare(self) -> None:
        """What is to be done before anything is said to a manager."""

    async def clean_up(self) -> None:
        """What is to be done when everything is returned."""

    async def drain(self) -> None:
        """Hand over what can be handed over, going on serving it."""

    def begin_leaving(self) -> None:
        """Have everything returned, and then call `have_left`."""
        raise NotImplementedError

    def end(self) -> None:
        """From here on every use of it raises."""
        raise NotImplementedError

    def give_up(self) -> None:
        """The machine can not be run any more: believe nothing."""
        raise NotImplementedError

    # --- from the application's threads ---

    def start(self, *, in_loop: bool) -> None:
        """Begin; callbacks come in the running event loop, or in a thread of ours."""
        if in_loop:
            self.callbacks.start_here()
        else:
            self.callbacks.start_thread()
        self.gone = self.environment.runner.run(self._main(), self.name)
        self.gone.add_done_callback(self._on_gone)

    def _on_gone(self, gone: "Future[None]") -> None:
        """However it ended: nobody may wait for ever for its beginning."""
        self.end()
        self.callbacks.stop()
        error = None if gone.cancelled() else gone.exception()
        if error is not None:
            self.logger.critical("%s has ended", self.name, exc_info=error)
        if not self.entered.done():
            self.entered.set_exception(error or TenureError(f"{self.name} was left"))

    def call(self, call: Callable[[], None]) -> bool:
        """Make `call` in the engine's loop; False where that has ended."""
        return self._calls.call(call)

    def post(self, event: E) -> None:
        """Hand the machine an event."""
        self.call(lambda: self.driver.post(event))

    def leave(self, drain_seconds: float = 0.0) -> "Future[None]":
        """Hand over what can be within so many seconds, return the rest, and go; the future is done
        when nothing is left.
        """
        assert self.gone is not None
        if not self._leaving.is_set() and drain_seconds:
            self.drain_seconds, self.is_draining = drain_seconds, True
        self.call(self._leaving.set)
        return self.gone

    # --- from beginning to end, in the engine's loop ---

    async def _main(self) -> None:
        transport = self.environment.transport(self.role)
        self.send: Callable[[str, ToManager], None] = transport.send
        self.driver = Driver(
            self.machine(),
            self.clock,
            self.perform,
            timers=self.environment.timers(),
            fail=self._on_failure,
        )
        transport.start(self._on_message, self._on_lost)
        # These two are the application's patience: they go by the loop's clock, not the protocol's.
        loop = asyncio.get_running_loop()
        waits = loop.call_later(SAYS_AFTER_SECONDS, self._say_whom_it_asks)
        enter_by = loop.call_later(self.enter_timeout, self._on_enter_timeout)
        leave_by: asyncio.TimerHandle | None = None
        try:
            await self.prepare()
            self.driver.start()
            self._calls.open()
            await self._leaving.wait()
            if self.is_draining and not self._failed:
                await self.drain()
            self.is_draining = False
            leave_by = loop.call_later(LEAVE_SECONDS, self._on_leave_timeout)
            if self._failed:
                self.have_left()
            else:
                self.begin_leaving()
            await self._left.wait()
        finally:
            waits.cancel()
            enter_by.cancel()
            if leave_by is not None:
                leave_by.cancel()
            self.is_draining = False
            await self.clean_up()
            self._calls.shut()
            self.driver.stop()
            await transport.close()
            self.end()

    def have_entered(self) -> None:
        """It is registered, or has its first table."""
        if not self.entered.done():
            self.entered.set_result(None)

    def fail_entering(self, error: TenureError) -> None:
        """It can not be entered."""
        if not self.entered.done():
            self.entered.set_exception(error)

    def _say_when_stuck(self, say: Callable[[], None]) -> None:
        def wait() -> None:
            asyncio.get_running_loop().call_later(STUCK_SECONDS, say)

        self.call(wait)

    def _say_whom_it_asks(self) -> None:
        if not self.entered.done():
            self.logger.warning(
                "%s is not entered yet, and waits up to %g s: it asks %s",
                self.name,
                self.enter_timeout,
                self.reachability,
            )

    def _on_enter_timeout(self) -> None:
        self.fail_entering(self.entering_error())

    def entering_error(self) -> TenureError:
        """Why it has not entered in time."""
        return self.reachability.error(f"{self.name} found no manager", self.enter_timeout)

    def have_left(self) -> None:
        """Everything is returned: go when the calls that were put are made."""
        self.callbacks.put(Job("", None, None, "", then=self._when_called))

    def _when_called(self) -> None:
        self.call(self._left.set)

    def _on_leave_timeout(self) -> None:
        self.logger.warning(
            "%s leaves after %g s without the manager's word, or with callbacks still running: "
            "what it held comes free when its hold runs out",
            self.name,
            LEAVE_SECONDS,
        )
        self._left.set()

    def _on_failure(self, error: Exception) -> None:
        """A bug: nothing can be believed any more that this machine says."""
        self.logger.critical(
            "%s stops because of a bug, and holds nothing", self.name, exc_info=error
        )
        self.counts["failed"] += 1
        self.give_up()
        if not self.entered.done():
            self.entered.set_exception(error)
        self._failed = True
        if self._leaving.is_set():
            self.have_left()

    # --- the network ---

    def _on_message(self, manager: str, message: M) -> None:
        self.counts["received"] += 1
        self.on_message(manager, message)

    def _on_lost(self, manager: str, why: str) -> None:
        self.counts["connections lost"] += 1
        self.reachability.note(manager, why)
        self.logger.debug("%s: lost %s: %s", self.name, manager, why)
        self.on_lost(manager)

    def transmit(self, manager: str, message: ToManager) -> None:
        """Send a message, and count it."""
        self.counts["sent"] += 1
        self.send(manager, message)
        if self.managers_file is not None and self.is_searching():
            self._read_managers(self.managers_file)

    def _read_managers(self, file: ManagersFile) -> None:
        try:
            managers = file.news()
        except ConfigurationError as error:
            self.logger.warning("%s keeps to the managers that it knows: %s", self.name, error)
            return
        if managers is not None:
            self.logger.info("%s: the managers are now %s", self.name, ", ".join(managers))
            self.counts["managers read"] += 1
            self.reachability.name(managers)
            self.on_managers_named(managers)

    def note(self, noted: Noted) -> None:
        """Count what a machine found worth it, and write a line to the log."""
        kind, detail = noted.kind, noted.detail
        self.counts[kind.phrase] += 1
        level = kind.level
        if kind.repeats:
            level = Level.DEBUG if detail == self._last_repeated else level
            self._last_repeated = detail
        said = detail or f"notes: {kind.phrase}"
        self.logger.log(level, "%s %s%s", self.name, said, noted.because)
