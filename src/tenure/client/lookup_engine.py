"""Carries out the lookup machine's actions: it publishes routes for readers, and reports losses.

Routes are published before anybody is told what changed, so an application that republishes in
`on_loss` reaches the new owner. The watch of a key is called once for what one message did to the
key: it moved, or was lost, or both.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeAlias, assert_never

from tenure.base.instants import in_seconds
from tenure.base.keys import Key
from tenure.base.noted import Noted
from tenure.base.ranges import WHOLE, KeyRange
from tenure.base.standing import KeyStanding
from tenure.client.callbacks import Callback, Job, shown_ranges
from tenure.client.environment import Environment
from tenure.client.interests import Interests
from tenure.client.managers import KnownManagers, Managers
from tenure.client.routes import RouteBoard, Routes
from tenure.client.shell import Shell, ShellConfig
from tenure.client.unusable import left
from tenure.client.watching import AwaitedMove, KeyChange, Watch
from tenure.errors import PoolError, TenureError
from tenure.protocol.lease.client_events import ManagerLost, ManagerSaid, TellManager
from tenure.protocol.lease.lookup.events import (
    AnyRoutingTable,
    LookupAction,
    LookupConfig,
    Route,
    SignalLoss,
)
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.messages import Standby, SyncRefusal, SyncResponse, ToLookup
from tenure.transport.contract import LOOKUP

WHAT = "Lookup"
CachesByRange: TypeAlias = tuple[tuple[KeyRange, str | None], ...]
CachesFollower: TypeAlias = Callable[[CachesByRange], object]
logger = logging.getLogger("tenure.lookup")


class LookupEngine:
    """Runs a lookup machine in a shell."""

    def __init__(
        self,
        config: LookupConfig,
        managers: Managers,
        board: RouteBoard,
        on_loss: Callback | None,
        environment: Environment,
        enter_timeout: float,
    ) -> None:
        name = f"lookup of pool {config.pool!r}"
        remains = "they may not be called any more"
        of_shell = ShellConfig(name, environment, logger, enter_timeout, remains)
        self.config = config
        self._managers = KnownManagers(managers, name, logger)
        self.shell = Shell(of_shell, LOOKUP, self._managers.servers, self)
        self._enter_timeout = enter_timeout
        self.board = board
        self.on_loss = on_loss
        self.watches: Interests[Watch] = Interests()
        self._moves: Interests[AwaitedMove] = Interests()
        self.machine = LookupMachine(config, environment.random())
        self._no_pool: str | None = None
        self._secret = environment.secret
        self._followers: list[CachesFollower] = []
        self._table: AnyRoutingTable | None = None
        """The last state that followers were told, or would have been told."""
        self._changed: dict[Watch, bool] = {}
        """Watches to call when the step is over, and whether their keys were lost."""

    async def prepare(self) -> LookupMachine:
        return self.machine

    # --- actions ---

    def perform(self, action: LookupAction) -> None:
        match action:
            case TellManager(manager, message):
                self.shell.send(manager, message)
                if self._managers.file is not None and self.machine.view().is_searching:
                    self._managers.read_again(self.shell, self._managers.file)
            case Route(changed, table):
                self._route(changed, table)
            case SignalLoss(ranges, why):
                self._signal_loss(ranges, why)
            case Noted():
                self.shell.note(action)
            case _:
                assert_never(action)

    def _route(self, changed: tuple[KeyRange, ...], table: AnyRoutingTable) -> None:
        self.board.publish(Routes(table))
        self._tell_followers(table)
        if table.in_contact:
            self.shell.have_entered()
        for watch in self.watches.within(changed):
            self._compare(watch)
        for move in self._moves.within(changed):
            # Another owner, or another lease, at the same address is worth another attempt, too.
            if self.board.current.find(move.key) is not None:
                self._end_move(move)

    def _signal_loss(self, ranges: tuple[KeyRange, ...], why: str) -> None:
        self.shell.counts["ranges lost"] += len(ranges)
        about = shown_ranges(ranges)
        logger.info("%s: %s (%s)", self.shell.name, about, why)
        if self.on_loss is not None:
            self.shell.callbacks.put(Job("on_loss", self.on_loss, ranges, about))
        for watch in self.watches.within(ranges):
            self._tell_soon(watch, lost=True)

    # --- caches ---

    def follow(self, follower: CachesFollower) -> None:
        """Tell `follower` where caches read, now and whenever that changes. From any thread."""

        def begin() -> None:
            self._followers.append(follower)
            if self._table is not None:
                follower(_caches_of(self._table))

        self.shell.call(begin)

    def _tell_followers(self, table: AnyRoutingTable) -> None:
        """Followers are told nothing out of contact: caches have leases of owners, which go on."""
        if not table.in_contact:
            return
        before, self._table = self._table, table
        if not self._followers:
            return
        if before and (before.starts, before.caches) == (table.starts, table.caches):
            return
        for follower in self._followers:
            follower(_caches_of(table))

    def standings(self, keys: list[Key]) -> "Future[list[KeyStanding | None]]":
        """See `Lookup.standings`. From any thread."""
        found: Future[list[KeyStanding | None]] = Future()

        def look() -> None:
            if found.set_running_or_notify_cancel():  # else whoever asked has gone
                found.set_result([*map(self.machine.standing, keys)])

        if not self.shell.call(look):
            found.set_exception(left(WHAT))
        return found

    # --- watches ---

    def watch(self, watch: Watch) -> None:
        """Follow a key from here on. In the application's thread.

        A change between the look at the table and the addition would be missed, so it is looked for
        once more in the engine's thread.
        """
        watch.address = self.board.usable().find(watch.key)
        self.watches.add(watch.key, watch)
        self.shell.call(lambda: self._compare(watch))

    def _compare(self, watch: Watch) -> None:
        if watch.address != self.board.current.find(watch.key):
            self._tell_soon(watch, lost=False)

    def _tell_soon(self, watch: Watch, *, lost: bool) -> None:
        """Call the watch when the machine's step is over, because the step may change more about
        the key.
        """
        if not self._changed:
            asyncio.get_running_loop().call_soon(self._tell)
        self._changed[watch] = lost or self._changed.get(watch, False)

    def _tell(self) -> None:
        changed, self._changed = self._changed, {}
        for watch, lost in changed.items():
            watch.address = self.board.current.find(watch.key)
            change = KeyChange(watch.given, watch.address, lost)

            def call(change: KeyChange, watch: Watch = watch) -> object:
                return None if watch.is_cancelled else watch.callback(change)

            self.shell.callbacks.put(Job("the callback of watch", call, change, repr(watch.given)))

    # --- moves that are waited for ---

    def wait_for_move(self, key: Key, not_at: str | None, timeout: float) -> "Future[None]":
        """A future that is done when `key` is served, and no longer at `not_at`. In the
        application's thread.
        """
        move = AwaitedMove(key, not_at)
        if not self.shell.call(lambda: self._begin_move(move, timeout)):
            move.over.set_exception(left(WHAT))
        return move.over

    def _begin_move(self, move: AwaitedMove, timeout: float) -> None:
        if self.board.current.find(move.key) not in (None, move.not_at):
            move.end()
            return
        self._moves.add(move.key, move)
        alarm = asyncio.get_running_loop().call_later(timeout, self._end_move, move)
        move.over.add_done_callback(lambda _: alarm.cancel())

    def _end_move(self, move: AwaitedMove) -> None:
        self._moves.remove(move.key, move)
        move.end()

    @property
    def hold_seconds(self) -> float:
        """How long the manager waits for an owner that is gone."""
        return in_seconds(self.machine.view().hold_ns)

    # --- messages ---

    def hear(self, server: str, message: ToLookup) -> None:
        match message:
            case Standby(leader=leader):
                self._managers.stands_by(server, leader)
            case SyncRefusal(detail=detail):
                self._no_pool = detail
                self.shell.servers.note(server, detail)
            case SyncResponse(proof=proof, realm=realm):
                self._secret.told(proof)
                self._managers.check_realm(server, realm, self.config.realm)
            case _:
                pass
        self.shell.driver.post(ManagerSaid(server, message))

    def on_lost(self, server: str) -> None:
        self.shell.driver.post(ManagerLost(server))

    def why_not_entered(self) -> TenureError:
        """See `Engine.why_not_entered`. It waits for the pool, which may yet be created."""
        if self._no_pool is not None:
            return PoolError(f"{self._no_pool} (waited {self._enter_timeout:g} s for it)")
        return self._managers.none_helped(self._enter_timeout)

    # --- leaving ---

    async def give_back(self) -> None:
        """See `Engine.give_back`. A lookup has nothing to return."""
        self.shell.driver.stop()

    def end(self) -> None:
        self.board.close()
        for move in self._moves.within((WHOLE,)):
            if not move.over.done():
                move.over.set_exception(left(WHAT))

    def give_up(self) -> None:
        self.board.find_nothing()
        self._signal_loss((WHOLE,), "nothing is known any longer")


def _caches_of(table: AnyRoutingTable) -> CachesByRange:
    places = table.caches or (None,) * len(table.starts)
    ends = (*table.starts[1:], None)
    return tuple(zip(map(KeyRange, table.starts, ends), places, strict=True))
