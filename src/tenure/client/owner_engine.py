"""Carries out the owner machine's actions: it publishes leases for readers, and calls callbacks.

Order is what counts here. A snapshot without a range is published before `on_revoke` for the range
is put in the queue, and the range is returned when `on_revoke` is done. A granted range is
published before `on_grant`.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Self, TypeAlias, assert_never

import msgspec

from tenure.base.instants import in_seconds
from tenure.base.keys import UserKey
from tenure.base.noted import Noted
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.client import draining
from tenure.client.callbacks import Callback, Job, shown_ranges
from tenure.client.environment import Environment
from tenure.client.guard import Guards
from tenure.client.hand_off.application import Application
from tenure.client.hand_off.handler import Granted, HandOffHandler, OwnersState
from tenure.client.hand_off.transfers import OwnerPort, Transfers
from tenure.client.holdings import Board
from tenure.client.managers import KnownManagers, Managers
from tenure.client.read_leases import GivesReads, GivesReadsOf, ReadsOwner
from tenure.client.shell import Shell, ShellConfig
from tenure.client.unusable import left
from tenure.client.watchdog import Watchdog
from tenure.errors import NameHeld, PoolError, TenureError
from tenure.protocol.lease.client_events import ManagerLost, ManagerSaid, TellManager
from tenure.protocol.lease.inspecting import Inspect, Inspected
from tenure.protocol.lease.limits import STATE_BYTES
from tenure.protocol.lease.messages import (
    Attest,
    Introduction,
    Leased,
    LeaseRequest,
    LeaseResponse,
    Poke,
    Refusal,
    ShortRequest,
    ShortResponse,
    Standby,
)
from tenure.protocol.lease.owner.belief import NO_NUMBER
from tenure.protocol.lease.owner.events import (
    Admit,
    Alive,
    Closed,
    CloseRequested,
    Forget,
    Grant,
    HandOver,
    Hold,
    Holdings,
    Keep,
    Lapsed,
    Look,
    Looked,
    Overtaken,
    OwnerAction,
    OwnerConfig,
    Revoke,
    Revoked,
    SendLast,
    StopHandOver,
    TurnAway,
)
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.owner.meter import Meter
from tenure.protocol.lease.reports import EntityReport, TierReport
from tenure.transport.contract import OWNER
from tenure.wire.lease import HeardByOwner

WHAT = "Owner"
logger = logging.getLogger("tenure.owner")
RenewalRequest: TypeAlias = LeaseRequest | ShortRequest
Answers: TypeAlias = Callable[[Inspected], None]
"""Sends an answer, from any thread."""
Takes: TypeAlias = tuple[HandOffHandler, str, str | None, int]
"""The handler of the state that moves, where more is taken, the URL of that, and how much."""


class OwnerEngine:
    """Runs an owner machine in a shell."""

    def __init__(
        self,
        config: OwnerConfig,
        managers: Managers,
        board: Board,
        on_grant: Callback | None,
        on_revoke: Callback | None,
        find: Callable[[UserKey], str | None],
        environment: Environment,
        enter_timeout: float,
    ) -> None:
        name = f"owner {config.name!r} of pool {config.pool!r}"
        remains = "what it held comes free when its hold runs out"
        of_shell = ShellConfig(name, environment, logger, enter_timeout, remains)
        self._managers = KnownManagers(managers, name, logger)
        self.shell = Shell(of_shell, OWNER, self._managers.servers, self)
        self.watchdog = Watchdog(self.shell, config.watchdog_ns, logger)
        self._enter_timeout = enter_timeout
        self.config = config
        self.board = board
        self.on_grant = on_grant
        self.on_revoke = on_revoke
        self.guards = Guards(board, environment.clock, name, find)
        self.ready: Future[None] = Future()
        """Done when the owner holds something for the first time."""
        self._environment = environment
        self._clock = environment.clock
        self.machine: OwnerMachine
        self._random = environment.random()
        self._held_up: Refusal | None = None
        self._held_up_at = 0
        self.transfers: Transfers | None = None
        """The transfers of state; None if the application offers none."""
        self._hand_off_address: str | None = None
        self._state: OwnersState | None = None
        """The state that may be kept in a store."""
        self.reads: GivesReads | None = None
        """The read leases of caches; None if the owner takes no caches."""
        self.entities: EntityReport | None = None
        """How entities are, set by the thread that runs them and sent with each renewal."""
        self.told = TierReport()
        """The last report."""
        self.inspected: Callable[[Inspect, Answers], None] | None = None
        """Answers what an operator asks about the entities; it returns at once."""
        self._closed = asyncio.Event()
        """Everything is returned, or cannot be."""
        self._alone_seconds = 0.0
        """For how long it has already waited for a manager, and none has answered."""
        board.on_lapsed = self.on_reader_lapsed
        board.open()
        is_ordered = self.config.kind == "ordered"
        self._meter = Meter(self._random, self._clock(), is_ordered=is_ordered)
        board.sample(self._meter.sampler)

    async def prepare(self) -> OwnerMachine:
        """See `Engine.prepare`. An owner that takes state says where it does when it joins."""
        config = self.config
        if self._state is not None:
            self.shell.cleanup.push_async_callback(self._state.close_store)
            await self._state.open_store(config.pool)
        if self.transfers is not None:
            url = await asyncio.wrap_future(self.transfers.start(self._environment.runner))
            self.shell.cleanup.push_async_callback(self.transfers.stop)
            config = msgspec.structs.replace(config, hand_off=self._hand_off_address or url)
        if self.reads is not None:
            url = await self.reads.open()
            self.shell.cleanup.push_async_callback(self.reads.close)
            config = msgspec.structs.replace(config, reads_ns=self.reads.reads_ns, cache=url)
        self.machine = OwnerMachine(config, self._random)
        return self.machine

    def serving(self, volume: GivesReadsOf | None, takes: Takes | None) -> Self:
        """Let caches read what it owns, and hand over its state. Before it starts."""
        if volume is not None:
            kind, address = self.config.kind or "hashed", self.config.address
            self.reads = volume.reads_of(
                ReadsOwner(self.shell, self.guards, self._environment, kind, address)
            )
        if takes is not None:
            self.hand_off_with(*takes)
        return self

    # --- actions ---

    def perform(self, action: OwnerAction) -> None:
        match action:
            case TellManager(manager, message):
                if isinstance(message, RenewalRequest):
                    message = self._with_report(message)
                    message = self._meter.add_to(
                        message,
                        self._clock(),
                        self.board.tallies(),
                        named=self.board.names,
                        levels=self.board.told_levels if self.board.has_levels else None,
                    )
                self.shell.send(manager, message)
                if self._managers.file is not None and self.machine.view().is_searching:
                    self._managers.read_again(self.shell, self._managers.file)
            case Hold(holdings):
                self._hold(holdings)
            case Grant(leases):
                self._grant(leases)
            case Revoke():
                self._revoke(action)
            case Overtaken(_, overtaken):
                self._overtaken(overtaken)
            case Look():
                self._look(action)
            case HandOver() | SendLast() | StopHandOver() | Forget():
                self._move(action)
            case Admit() | TurnAway() | Keep():
                assert self.transfers is not None
                self.transfers.decide(action)
            case Closed():
                self._closed.set()
            case Noted():
                self.shell.note(action)
            case _:
                assert_never(action)
        if self.reads is not None:
            self.reads.perform(action)

    def _with_report(self, message: RenewalRequest) -> RenewalRequest:
        volume = None if self.reads is None else self.reads.report()
        if volume is None and self.entities is None:
            return message
        self.told = TierReport(volume=volume, entities=self.entities)
        return msgspec.structs.replace(message, report=self.told)

    def _hold(self, holdings: Holdings) -> None:
        before, self.guards.expires_at = self.board.current, holdings.expires_at
        is_up = self.board.publish(holdings)
        if self.transfers is not None:
            self.transfers.know(holdings)
        if before.leases and before.leases != holdings.leases:
            same = holdings.leases if holdings.journal == before.journal else ()
            numbers = RangeMap.of(((each.range, each.number) for each in same), NO_NUMBER)
            self.guards.tell_losers(
                piece
                for each in before.leases
                for piece, number in numbers.within(each.range)
                if number != each.number
            )
        if holdings.incarnation != NO_NUMBER and not self.shell.entered.done():
            self.shell.have_entered()
        if is_up and holdings.leases and not self.ready.done():
            self.ready.set_result(None)

    def _revoke(self, revoke: Revoke) -> None:
        done = Revoked(revoke.revocation)
        revoked = ranges(revoke.leases)
        self.shell.counts["ranges revoked"] += len(revoke.leases)
        job = Job(
            "on_revoke",
            self.on_revoke,
            revoked,
            shown_ranges(revoked),
            then=lambda: self.shell.post(done),
            deadline=revoke.deadline,
        )
        self.guards.keep(revoked, revoke.kept)
        self.guards.when_finished(
            revoked, lambda: self.shell.call(lambda: self._call_on_revoke(job))
        )

    def _call_on_revoke(self, job: Job) -> None:
        """Let go of what was revoked when `on_revoke` is done and the state is discarded."""
        if self.transfers is None:
            self.shell.callbacks.put(job)
        else:
            self.shell.callbacks.put(job._replace(then=None))
            self.transfers.application.discard(job.argument, (), job.then or _nothing)

    def _overtaken(self, overtaken: tuple[KeyRange, ...]) -> None:
        self.shell.counts["revocations overtaken"] += 1
        self.guards.overtake(overtaken)
        logger.warning(
            "%s has not let go of %s in time: on_revoke, or a callback before it, still runs, and "
            "another owner may serve that from now on",
            self.shell.name,
            shown_ranges(overtaken),
        )

    def _grant(self, leases: tuple[Leased, ...]) -> None:
        self.shell.counts["ranges granted"] += len(leases)
        with_state = tuple(lease for lease in leases if lease.handed)
        if self.transfers is not None:
            self.transfers.granted(leases)
            self.shell.counts["ranges granted with state"] += len(with_state)
        if self.on_grant is not None:
            granted = Granted(ranges(leases), ranges(with_state))
            self.shell.callbacks.put(Job("on_grant", self.on_grant, granted, shown_ranges(granted)))

    # --- state that moves with its range ---

    def _move(self, action: HandOver | SendLast | StopHandOver | Forget) -> None:
        transfers = self.transfers
        assert transfers is not None, "nothing is handed over where nobody offered it"
        match action:
            case HandOver(order):
                transfers.begin(order)
            case SendLast(order):
                self.guards.overtake((order.range,))
                transfers.send_last(order)
            case StopHandOver(order):
                transfers.stop_giving(order)
            case Forget(revocation, key_range, number):
                served = transfers.served_here(key_range, number)
                if served:
                    self.shell.counts["ranges revoked"] += len(served)
                    self.shell.callbacks.put(
                        Job("on_revoke", self.on_revoke, served, shown_ranges(served))
                    )
                done = Revoked(revocation)
                transfers.forget(key_range, number, lambda: self.shell.post(done))
            case _:
                assert_never(action)

    def hand_off_with(
        self,
        handler: HandOffHandler,
        listen: str,
        address: str | None,
        most_bytes: int = STATE_BYTES,
    ) -> None:
        """Hand over the state that `handler` has. Before it starts."""
        if isinstance(handler, OwnersState):
            handler.guard_with(self.guards)
            self._state = handler
        shell = self.shell
        application = Application(
            handler, shell.callbacks, shell.counts, shell.name, logger, self.guards
        )
        environment, pool = self._environment, self.config.pool
        port = OwnerPort(
            *(shell.name, pool, environment, shell.counts, logger, shell.post, self.reads),
            most_bytes,
        )
        self.transfers = Transfers(port, application, listen, address)
        self._hand_off_address = address

    # --- neighbours ---

    def _look(self, look: Look) -> None:
        """Look in a thread of its own: files that come from the kernel may keep their reader
        waiting.
        """

        def body() -> None:
            sight = self._environment.look(look.question.process)
            self.shell.post(Looked(look.manager, look.question, sight))

        with suppress(RuntimeError):  # without threads it cannot look
            Thread(target=body, name=f"{self.shell.name} looks", daemon=True).start()

    # --- readers that saw the end of the term ---

    def on_reader_lapsed(self) -> None:
        """Let the machine drop everything before anything else is published. Runs in the reader's
        thread.
        """
        self.shell.call(self._on_reader_lapsed)

    def _on_reader_lapsed(self) -> None:
        self.shell.counts["lapsed before a reader"] += 1
        self.shell.driver.post(Lapsed())  # handled when this returns
        self.guards.tell_losers()

    # --- messages ---

    def hear(self, server: str, message: HeardByOwner) -> None:
        if isinstance(message, Inspect):
            self._inspect(server, message)
            return
        match message:
            case Standby(leader=leader):
                self._managers.stands_by(server, leader)
            case Introduction(realm=realm):
                if self._managers.check_realm(server, realm, self.config.realm):
                    self.shell.servers.note(server, "leads, but has not numbered this owner yet")
            case LeaseResponse(renew_ns=renew_ns):
                self._meter.every_ns = renew_ns
                self._environment.secret.told(message.proof)
                if self.reads is not None and not self.shell.entered.done():
                    self.reads.check_term(message)
            case ShortResponse() | Refusal() | Poke() | Attest():
                pass
            case _:
                assert_never(message)
        self.shell.driver.post(ManagerSaid(server, message))
        if isinstance(message, Refusal) and not self.shell.entered.done():
            self._on_refused(server, message)

    def _inspect(self, server: str, asked: Inspect) -> None:
        """Answer the leader that this owner follows. Another manager may be anybody."""

        def answer(said: Inspected) -> None:
            self.shell.call(lambda: self.shell.send(server, said))

        is_ours = server == self.machine.manager and asked.pool == self.config.pool
        if is_ours and self.inspected is not None:
            self.inspected(asked, answer)

    def _on_refused(self, manager: str, refusal: Refusal) -> None:
        """The manager refused it while it enters. A wrong pool stays wrong; a name comes free in a
        while.
        """
        if refusal is not self.machine.view().refusal:
            return  # this answers an older question
        self.shell.servers.note(manager, f"refused: {refusal.detail}")
        match refusal.reason:
            case "no_pool" | "pool_kind":
                self.shell.fail_entering(PoolError(refusal.detail))
            case "name_held":
                self._held_up, self._held_up_at = refusal, self._clock()
            case "past":
                pass  # the machine joins again automatically

    def why_not_entered(self) -> TenureError:
        if self._held_up is None:
            return self._managers.none_helped(self._enter_timeout)
        until = self._held_up_at + self._held_up.retry_after_ns
        wait = max(in_seconds(until - self._clock()), 0.0)
        return NameHeld(
            f"{self.shell.name} was not taken within {self._enter_timeout:g} s: "
            f"{self._held_up.detail}. Enter again in {wait:.1f} s if its process is gone, or leave "
            "out name= so that each process draws its own",
            wait_seconds=wait,
        )

    def on_lost(self, server: str) -> None:
        self.shell.driver.post(ManagerLost(server))

    # --- leaving ---

    async def drain(self, seconds: float) -> None:
        """Let everything finish, and then hand everything over, as far as `seconds` suffice."""
        view, closed = self.machine.view, self._closed
        succeeded = self._environment.has_successor
        drain = draining.OwnerDrain(
            self.shell, self.guards, self.transfers, view, closed, logger, succeeded
        )
        await drain.run(seconds)
        self._alone_seconds = drain.alone_seconds

    async def give_back(self) -> None:
        """See `Engine.give_back`. An owner that leaves is not hung."""
        if self.transfers is not None:
            self.transfers.application.is_leaving = True
        if self._closed.is_set():
            return
        self.guards.overtake()
        view = self.machine.view()
        if view.is_searching and not view.listed:
            self.shell.driver.stop()  # nothing to return, and nobody to tell
            return
        self.shell.driver.post(Alive())
        self.shell.driver.post(CloseRequested())
        if view.is_searching:
            await self._closed_alone()
        else:
            await self._closed.wait()

    async def _closed_alone(self) -> None:
        """No manager answers. If one is about to, it frees the ranges at once; otherwise they come
        free when the hold has run out, whether this process waits or not.
        """
        try:
            async with asyncio.timeout(0 if self._alone_seconds else draining.ALONE_SECONDS):
                await self._closed.wait()
        except TimeoutError:
            logger.warning(
                "%s leaves without telling a manager, because none has answered for %g s; its "
                "ranges come free when its hold has run out",
                self.shell.name,
                self._alone_seconds or draining.ALONE_SECONDS,
            )
            self.shell.driver.stop()

    def end(self) -> None:
        self.board.close()
        if not self.ready.done():
            self.ready.set_exception(left(WHAT))

    def give_up(self) -> None:
        self.board.close()
        self.guards.overtake()
        self.guards.tell_losers()
        self._closed.set()


def _nothing() -> None:
    """Do nothing afterwards."""


def ranges(leases: tuple[Leased, ...]) -> tuple[KeyRange, ...]:
    """The ranges, as callbacks get them."""
    return tuple(lease.range for lease in leases)
