"""One life of a user's program in a simulated world of leases."""

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeAlias

from tenure.base.keys import Key
from tenure.client.environment import SURROUNDING
from tenure.errors import ConfigurationError, NotSimulated, TenureError, UsageError
from tenure.protocol.lease.messages import Leased
from tenure.sim.app.clients import AppEnvironment, LibraryLookup, LibraryOwner
from tenure.sim.app.site import AppSite, ClientHost
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.hosts import HostProcess
from tenure.sim.kernel.process import SimProcess
from tenure.sim.lease.beliefs import lease_of

Main: TypeAlias = Callable[["AppProcess"], Coroutine[Any, Any, object]]
"""The program of a process, from its beginning to its end."""
MOST_CALLBACKS = 100_000
"""The most callbacks of one process at one instant."""


class AppProcess(ClientHost):
    """Runs `main`. When that returns, the process is gone. If the process is asked to end, `leave`
    is called in its loop.
    """

    def __init__(
        self, site: AppSite, slot: str, clock: SimClock, on_host: HostProcess, main: Main
    ) -> None:
        super().__init__(site, slot, clock, on_host)
        self.clients: list[LibraryOwner | LibraryLookup] = []
        self._owners: list[LibraryOwner] = []
        self.leave: Callable[[], object] = self.kill
        self.is_leaving = False
        self.turns: dict[object, bool] = {}
        """Each turn with owned state that is under way, by task and key: whether its task has
        answered for the key.
        """
        self._ran_at, self._runs = -1, 0
        self.loop.context.run(SURROUNDING.set, lambda: AppEnvironment(self))
        self.loop.unhandled = self._on_unhandled
        self._main = main

    def start(self) -> None:
        """Start `main`."""
        self.running = self.loop.create_task(self._main(self))
        self.running.add_done_callback(self._on_done)
        super().start()

    def _on_done(self, running: Any) -> None:
        error = None if running.cancelled() else running.exception()
        self.site.tell(self.slot, "ends", "" if error is None else f"{error!r}")
        if isinstance(error, Exception) and not _is_of_the_world(error):
            self.site.fail(error)
        if self.alive:
            self.kill()
            self.site.restart_later(self.slot, self.site.timing.renew_ns)

    def _on_unhandled(self, context: dict[str, Any]) -> None:
        self.site.tell(
            self.slot, "nobody awaits", f"{context.get('message')}: {context.get('exception')!r}"
        )

    # --- the process's clients of the library ---

    def begin_client(self, client: SimProcess) -> None:
        assert isinstance(client, LibraryOwner | LibraryLookup)
        self.clients.append(client)
        if isinstance(client, LibraryOwner):
            self._owners.append(client)
        self.site.begin_client(client)

    def owners(self) -> list[LibraryOwner]:
        """The owners of the process that have not ended."""
        return [each for each in self._owners if each.alive]

    def lease_of(self, key: Key) -> Leased | None:
        """The lease under which the process's readers hold a key at this moment."""
        leases = (lease_of(owner, key) for owner in self.owners())
        return next((lease for lease in leases if lease is not None), None)

    def on_ran(self) -> None:
        """A callback has run."""
        self._check_that_time_passes()
        for owner in self._owners:
            try:
                owner.look()
            except Violation as error:
                self.site.fail(error)
        self.site.raise_failure()

    def _check_that_time_passes(self) -> None:
        if self.site.now != self._ran_at:
            self._ran_at, self._runs = self.site.now, 0
        self._runs += 1
        if self._runs > MOST_CALLBACKS:
            self.site.fail(
                UsageError(
                    f"code in {self.slot} runs without an end: it has awaited {MOST_CALLBACKS} "
                    "times while no time passed. Wait for something, or asyncio.sleep for a while"
                )
            )

    def on_escape(self, error: NotSimulated) -> None:
        super().on_escape(error)
        self.site.fail(error)

    # --- ending ---

    def ask_to_leave(self) -> None:
        if self.alive and not self.is_leaving:
            self.is_leaving = True
            self.loop.call_soon(self.leave)

    def on_message(self, sender: SimProcess, message: Any) -> None:
        """Do nothing: messages are for the process's clients."""
        raise AssertionError(f"{self.slot} is sent {message}")

    def on_disconnected(self, peer: tuple[str, int]) -> None:
        """Do nothing: connections belong to the process's clients."""
        raise AssertionError(f"{self.slot} has a connection to {peer}")


class UserProcess(AppProcess):
    """The user of the programs: it is never stopped or killed. The run ends when it has ended."""

    stops_before: ClassVar[tuple[type, ...]] = ()

    def _on_done(self, running: Any) -> None:
        error = None if running.cancelled() else running.exception()
        self.site.fail(error if isinstance(error, Exception) else RunOver())


class RunOver(Exception):
    """The user of the programs has finished."""


def _is_of_the_world(error: Exception) -> bool:
    """Whether a program that ends with this error is correct, and only its surroundings failed:
    then another program begins.
    """
    return isinstance(error, TenureError) and not isinstance(error, ConfigurationError)
