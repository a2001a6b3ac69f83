"""What the owner machine's actions mean: its leases put up for readers, its callbacks called.

Order is what counts here. A snapshot without a range is up before `on_revoke` for the range is put
in the queue, and the range is returned when that is done. What was granted is up before `on_grant`.
"""

import asyncio
import logging
from concurrent.futures import Future
from contextlib import suppress
from random import Random
from threading import Thread
from typing import assert_never

from leasehold.base.instants import SECOND_NS, in_seconds
from leasehold.base.ranges import KeyRange
from leasehold.client.callbacks import Callback, Job
from leasehold.client.engine import Engine
from leasehold.client.guard import Guards
from leasehold.client.holdings import Board
from leasehold.client.surroundings import Surroundings
from leasehold.client.unusable import left
from leasehold.errors import LeaseholdError, NameHeld, PoolError
from leasehold.protocol.lease.belief import NO_NUMBER
from leasehold.protocol.lease.messages import (
    Attest,
    Introduction,
    Leased,
    LeaseResponse,
    Poke,
    Refusal,
    Standby,
    ToOwner,
)
from leasehold.protocol.lease.owner import OwnerMachine
from leasehold.protocol.lease.owner_events import (
    Alive,
    Closed,
    CloseRequested,
    Disconnected,
    Grant,
    Hold,
    Holdings,
    Lapsed,
    Look,
    Looked,
    ManagersNamed,
    Note,
    OwnerAction,
    OwnerConfig,
    OwnerEvent,
    Received,
    Revoke,
    Revoked,
    Send,
)
from leasehold.transport.contract import OWNER

SHOWN_RANGES = 3
"""In a line of the log; the number of all is said."""


class OwnerEngine(Engine[OwnerEvent, OwnerAction, ToOwner]):
    """Runs an owner machine."""

    what = "Owner"
    logger = logging.getLogger("leasehold.owner")

    def __init__(
        self,
        config: OwnerConfig,
        board: Board,
        on_grant: Callback | None,
        on_revoke: Callback | None,
        surroundings: Surroundings,
        random: Random,
        enter_timeout: float,
    ) -> None:
        name = f"owner {config.name!r} of pool {config.pool!r}"
        super().__init__(name, OWNER, config.managers, surroundings, enter_timeout)
        self.config = config
        self.board = board
        self.on_grant = on_grant
        self.on_revoke = on_revoke
        self.guards = Guards(board, name, config.pool)
        self.ready: Future[None] = Future()
        """Done when it holds something for the first time."""
        self._machine = OwnerMachine(config, random)
        self._held_up: Refusal | None = None
        self._held_up_at = 0
        board.on_lapsed = self.on_reader_lapsed

    def machine(self) -> OwnerMachine:
        """See `Engine.machine`."""
        return self._machine

    def is_searching(self) -> bool:
        """See `Engine.is_searching`."""
        return self._machine.search.is_on

    def on_managers_named(self, managers: tuple[str, ...]) -> None:
        """See `Engine.on_managers_named`."""
        self.driver.post(ManagersNamed(managers))

    # --- actions ---

    def perform(self, action: OwnerAction) -> None:
        """See `Engine.perform`."""
        match action:
            case Send(manager, message):
                self.transmit(manager, message)
            case Hold(holdings):
                self._hold(holdings)
            case Grant(leases):
                self._call("on_grant", self.on_grant, leases)
            case Revoke():
                self._revoke(action)
            case Look():
                self._look(action)
            case Closed():
                self.have_left()
            case Note(what, detail):
                self.note(what, detail)
            case _:
                assert_never(action)

    def _hold(self, holdings: Holdings) -> None:
        before = self.board.current.leases
        is_up = self.board.publish(holdings)
        if before and before != holdings.leases:
            self.guards.tell_losers()
        if holdings.incarnation != NO_NUMBER:
            self.have_entered()
        if is_up and holdings.leases and not self.ready.done():
            self.ready.set_result(None)

    def _revoke(self, revoke: Revoke) -> None:
        done = Revoked(revoke.revocation)
        self.counts["ranges revoked"] += len(revoke.leases)
        self.callbacks.put(
            Job(
                "on_revoke",
                self.on_revoke,
                ranges(revoke.leases),
                shown(revoke.leases),
                then=lambda: self.post(done),
                deadline=revoke.deadline,
            )
        )

    def _call(self, name: str, callback: Callback | None, leases: tuple[Leased, ...]) -> None:
        self.counts["ranges granted"] += len(leases)
        if callback is not None:
            self.callbacks.put(Job(name, callback, ranges(leases), shown(leases)))

    # --- neighbours ---

    def _look(self, look: Look) -> None:
        """In a thread of its own: files that come from the kernel may keep their reader waiting."""

        def body() -> None:
            sight = self.surroundings.look(look.question.process)
            self.post(Looked(look.manager, look.question, sight))

        with suppress(RuntimeError):  # no thread any more: who does not look says nothing
            Thread(target=body, name=f"{self.name} looks", daemon=True).start()

    # --- readers that saw the end of the term ---

    def on_reader_lapsed(self) -> None:
        """In the reader's thread: the machine must drop everything before anything is put up."""
        self.call(self._on_reader_lapsed)

    def _on_reader_lapsed(self) -> None:
        self.counts["lapsed before a reader"] += 1
        self.driver.post(Lapsed())  # handled when this returns: nothing is nested in the loop
        self.board.lapse_noticed()
        self.guards.tell_losers()

    # --- messages ---

    def on_message(self, manager: str, message: ToOwner) -> None:
        """See `Engine.on_message`."""
        refusal = None
        match message:
            case Standby(leader=leader):
                self.attempts.stands_by(manager, leader)
            case Introduction():
                self.attempts.note(manager, "leads, but has not numbered this owner yet")
            case Refusal() if self._machine.is_answer_to_newest(message):
                refusal = message
                self.attempts.note(manager, f"refused: {message.detail}")
            case Refusal() | LeaseResponse() | Poke() | Attest():
                pass
            case _:
                assert_never(message)
        self.driver.post(Received(manager, message))
        if refusal is not None and not self.entered.done():
            self._on_refused(refusal)

    def _on_refused(self, refusal: Refusal) -> None:
        """While entering. A pool does not change its mind; a name comes free in a while."""
        match refusal.reason:
            case "no_pool" | "pool_kind":
                self.fail_entering(PoolError(refusal.detail))
            case "name_held":
                self._held_up, self._held_up_at = refusal, self.clock()
            case "past":
                pass  # it joins anew by itself

    def entering_error(self) -> LeaseholdError:
        """See `Engine.entering_error`."""
        if self._held_up is None:
            return super().entering_error()
        until = self._held_up_at + self._held_up.retry_after_ns
        wait = max(in_seconds(until - self.clock()), 0.0)
        return NameHeld(
            f"{self.name} was not taken within {self.enter_timeout:g} s: {self._held_up.detail}. "
            f"Enter again in {wait:.1f} s if its process is gone, or leave out name= so that each "
            "process draws its own",
            wait_seconds=wait,
        )

    def on_lost(self, manager: str) -> None:
        """See `Engine.on_lost`."""
        self.driver.post(Disconnected(manager))

    # --- living and leaving ---

    def alive(self) -> None:
        """The application shows that it is not hung. From any thread."""
        self.counts["alive"] += 1
        self.post(Alive())

    async def keep_alive(self) -> None:
        """Show it for the application, from within its event loop."""
        watchdog_ns = self.config.watchdog_ns
        assert watchdog_ns is not None
        while True:
            self.alive()
            await asyncio.sleep(watchdog_ns / SECOND_NS / 4)

    def begin_leaving(self) -> None:
        """See `Engine.begin_leaving`. Who leaves is not hung."""
        machine = self._machine
        if not machine.belief.held() and machine.search.is_on:
            self.driver.stop()  # nothing to return, and nobody to tell
            self.have_left()
            return
        self.driver.post(Alive())
        self.driver.post(CloseRequested())

    def end(self) -> None:
        """See `Engine.end`."""
        self.board.close()
        if not self.ready.done():
            self.ready.set_exception(left(self.what))

    def give_up(self) -> None:
        """See `Engine.give_up`."""
        self.board.drop_for_good()
        self.guards.tell_losers()


def ranges(leases: tuple[Leased, ...]) -> tuple[KeyRange, ...]:
    """As callbacks get them."""
    return tuple(lease.range for lease in leases)


def shown(leases: tuple[Leased, ...]) -> str:
    """As the log has them."""
    first = ", ".join(str(lease.range) for lease in leases[:SHOWN_RANGES])
    more = len(leases) - SHOWN_RANGES
    return f"{first} and {more} more" if more > 0 else first
