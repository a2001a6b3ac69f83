"""`Owner`: the library in a process that serves keys."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any, Self, Unpack
from weakref import ref

import msgspec

from tenure.base.instants import seconds
from tenure.base.keys import Key, PoolKind, UserKey
from tenure.base.names import shown
from tenure.base.ranges import KeyRange, in_words
from tenure.client.arguments import (
    KeyFinder,
    checked_address,
    checked_capacity,
    checked_count,
    checked_drain,
    checked_flag,
    checked_kind,
    checked_labels,
    checked_listening,
    checked_lookup,
    checked_name,
    checked_seconds,
    checked_told_address,
    drawn_name,
    with_capacities,
)
from tenure.client.callbacks import check_arity, check_callback
from tenure.client.entering import Enterable, Form
from tenure.client.environment import Environment, environment_here
from tenure.client.guard import Guard
from tenure.client.hand_off.handler import HandOffHandler, OwnersState
from tenure.client.hand_off.several_states import one_handler
from tenure.client.holdings import Board
from tenure.client.lease import Lease
from tenure.client.leave_on import LeaveOn, LeftAtSignal, checked_signals
from tenure.client.managers import find_managers, find_realm
from tenure.client.options import (
    HandingOver,
    OnGrant,
    OnRanges,
    OwnerOptions,
    Probe,
    Ranges,
    check_known,
)
from tenure.client.owner_engine import WHAT, Answers, OwnerEngine
from tenure.client.read_leases import GivesReadsOf
from tenure.errors import ConfigurationError, TenureError
from tenure.protocol.lease.inspecting import Inspect
from tenure.protocol.lease.limits import REQUESTS, STATE_BYTES
from tenure.protocol.lease.owner.events import OwnerConfig
from tenure.protocol.lease.reports import EntityReport, TierReport
from tenure.runtime.loops import call_in
from tenure.transport.credentials import Credentials

ENTER_SECONDS = 15.0
"""Longer than the default preset's hold, so that a restart under a fixed name waits out its
predecessor; short enough for a deployment to notice that no manager is there."""
DRAIN_SECONDS = 20.0
"""Most supervisors give a process 30 seconds between asking it to end and ending it."""


class Owner(Enterable[OwnerEngine]):
    """A process of `pool`, which serves the keys that it holds at `address`.

    `managers` are URLs, in a sequence or separated by commas; or "@FILE", a file with one on each
    line, which is read again whenever the owner looks for a leader. Without this argument, the
    environment gives the URLs, in TENURE_MANAGERS, or names the file, in TENURE_MANAGERS_FILE.
    With `realm`, by default that in TENURE_REALM, managers of another realm are not followed.

    `kind` is the kind that the pool has, or is created with if this is its first owner. `name` is
    drawn for each process unless you give one; only one process has a name at a time. `capacity` is
    how much load it can take compared with others; most owners have 1. With several metrics it is a
    dict, `{"requests": 2_000, "memory": 8e9}`, each in its own unit. `labels` are other facts about
    it; if two owners are equally good, state stays in the same `zone`. With `watchdog`,
    renewals stop when the application has not shown a sign of life for that many seconds: in the
    async form its event loop shows it automatically; in the blocking form call `alive`. With
    `probe`, a function or a coroutine function that raises if the application does not serve, the
    only sign of life is a probe that returns; the blocking form calls it in a thread.

    With `hand_off`, a HandOffHandler such as KeyedState, or several of them by name
    (`hand_off={"carts": carts, "users": users}`), state moves with its ranges, straight from owner
    to owner. This owner accepts state at `hand_off_listen` ("HOST:PORT"), by default a free port on
    the host that `address` names, or on loopback if it names no host. `hand_off_address` is the URL
    under which others reach that port, if it is a different one. If other machines can reach it,
    the process must have a certificate, or `hand_off_insecure` must say that you trust everybody
    there. It takes `hand_off_bytes` of state with a range, 4 GiB if you do not say. `credentials`
    are what it presents and trusts; by default those of the environment. See
    `tenure docs guides/handing-over-state`.

    With `volume`, a Volume, caches can read the keys that it owns: every `Cache` with a Lookup of
    the pool. See `tenure docs guides/caching-an-owner`.

    With `lookup`, a Lookup of the same pool, the NotOwner that `guard` raises says where the key's
    owner is believed to be.

    `on_grant` and `on_revoke` are called with ranges, one call at a time and in order; see `tenure
    docs reference/client` for what you may rely on in them.

    With `leave_on`, signals such as SIGTERM and SIGINT, the blocking form leaves on the first of
    them: it hands over and finishes as `close` does while its body keeps running; then the body
    ends and the program continues after the `with` block.

    Enter it with `async with`, or `with`. Entering waits until a manager has registered it, or
    raises after `enter_timeout` seconds: NoManager, which names every manager that was tried;
    NameHeld; or PoolError. Raises ConfigurationError if an argument cannot be used.
    """

    def __init__(
        self,
        managers: str | Sequence[str] | None = None,
        *,
        pool: str,
        address: str,
        _environment: Environment | None = None,
        **options: Unpack[OwnerOptions],
    ) -> None:
        check_known(options, OwnerOptions, "Owner")
        environment = _environment or environment_here(options.get("credentials"))
        watchdog, name = options.get("watchdog"), options.get("name")
        on_grant, on_revoke = options.get("on_grant"), options.get("on_revoke")
        volume, kind = options.get("volume"), options.get("kind", "hashed")
        self._probe = _checked_probe(options.get("probe"), watchdog)
        _check_called(on_grant, on_revoke, volume)
        where = checked_address(address)
        known = find_managers(managers, environment.managers)
        capacities = checked_capacity(options.get("capacity", 1.0))
        config = self._config = OwnerConfig(
            managers=known.urls,
            pool=checked_name("pool", pool),
            name=_named(name, where, environment),
            address=where,
            kind=checked_kind(kind),
            capacity=capacities[REQUESTS],
            labels=with_capacities(checked_labels(options.get("labels")), capacities),
            watchdog_ns=_checked_watchdog(watchdog),
            realm=find_realm(options.get("realm")),
        )
        metrics = [each for each in capacities if each != REQUESTS]
        ours: PoolKind = config.kind or "hashed"
        board = self._board = Board(ours, environment.clock, config.pool, metrics)
        find = _find_elsewhere(checked_lookup(options.get("lookup"), config.pool), where)
        longest = checked_seconds("enter_timeout", options.get("enter_timeout", ENTER_SECONDS))
        handler = one_handler(options.get("hand_off"))
        takes = _takes(handler, options, where, environment.credentials)
        if isinstance(handler, OwnersState):
            handler.belong_to(config.name, checked_kind(kind), _ended(ref(self)))
        made_in = os.getpid()

        def make() -> OwnerEngine:
            changed: dict[str, Any] = {"process": environment.own_process()}
            if name is None and os.getpid() != made_in:  # a copy in each child has one of its own
                changed["name"] = drawn_name(where, environment.random())
            return OwnerEngine(
                msgspec.structs.replace(config, **changed),
                known,
                board,
                on_grant,
                on_revoke,
                find,
                environment,
                longest,
            ).serving(volume, takes)

        super().__init__(WHAT, board, make)
        self._life: asyncio.Task[None] | None = None
        self._leave_on = LeaveOn(checked_signals(options.get("leave_on", ())))

    @property
    def name(self) -> str:
        """The owner's name: the one given, or the one drawn."""
        return self._config.name if self._made is None else self._made.config.name

    @property
    def pool(self) -> str:
        """The pool's name."""
        return self._config.pool

    @property
    def address(self) -> str:
        """The address at which the owner serves."""
        return self._config.address

    def __repr__(self) -> str:
        held = "" if self._state != "entered" else f", holds {in_words(len(self._board.ranges()))}"
        who = f"Owner {self.name!r} of pool {self.pool!r} at {self.address}"
        return f"<{who}: {self._state}{held}>"

    # --- what is held: from any thread, without waiting ---

    def check(self, key: UserKey) -> Lease | None:
        """The lease for `key` if this process holds it at this moment, otherwise None.

        Takes no lock and does not wait. Raises KeyTypeError if `key` cannot be a key of the pool.
        """
        return self._board.check(key)

    def holds(self, lease: Lease) -> bool:
        """Whether the lease has been held without interruption from its check to this moment.

        Once False it is never True again for the same lease.
        """
        return self._board.holds(lease)

    def record_load(self, key: UserKey, amount: float, metric: str = REQUESTS) -> None:
        """Count `amount` of load for `key`, instead of its checks.

        Use this if requests cost different amounts: `amount` is what this one cost, in a unit in
        which a usual request costs 1 or more. From the first call on, checks no longer count as
        load; all owners of a pool must use the same unit. You may call it from any thread; it does
        nothing if `key` is not held.

        With a `metric` that `capacity` names, such as memory, `amount` is not counted: it is what
        the key takes up from now on, until you record another amount or the key is lost. Raises
        UsageError for an amount that is negative or not finite, and for an unknown metric.
        """
        self._board.record_load(key, amount, metric)

    def guard(self, key: UserKey, *, finish: bool = False) -> Guard:
        """`async with owner.guard(key) as lease:`, or `with`: a body that runs while `key` is held.

        Raises NotOwner on entering if it is not. If the lease is lost while the body runs, the
        async form cancels the body and raises LeaseLost; the blocking form raises LeaseLost on
        leaving.

        With `finish`, the body finishes before the key moves: when the range is recalled, nothing
        new begins on the key, and the owner gives it back when the body is done, or at the recall's
        deadline. Leaving waits for the body for as long as `close(drain=...)` may take.
        """
        self._check_entered()
        return Guard(self._engine.guards, key, finish=finish and not self._is_left)

    @property
    def ranges(self) -> Ranges:
        """The ranges held at this moment, in order."""
        return self._board.ranges()

    def loads(self) -> tuple[tuple[KeyRange, int], ...]:
        """How often keys of each held range were checked since it was granted."""
        return self._board.loads()

    def key(self, key: UserKey) -> Key:
        """The key of the pool's key space for `key`: `owner.key("room-42") in a_range`."""
        return self._board.key(key)

    # --- living ---

    def ready(self) -> Awaitable[None]:
        """Wait until it holds something for the first time.

        Blocks in the blocking form; in the async form, await what it returns. In a pool with very
        many owners, one may hold nothing for a long time. Raises ClosedError if it is left in the
        meantime.
        """
        self._check_usable()
        return self._wait(self._engine.ready)

    def close(self, drain: float | None = None) -> Awaitable[None]:
        """Leave: what the end of the `with` block does. A second time does nothing.

        Bodies guarded with `finish` end first. With `hand_off` the owner hands over everything, and
        serves each range until then; ranges that it cannot hand over within `drain` seconds (by
        default 20; 0 for none) are returned without their state. Begins at once. Blocks in the
        blocking form; in the async form, await what it returns.
        """
        seconds = DRAIN_SECONDS if drain is None else checked_drain(drain)
        return self._leave((lambda: self._engine.drain(seconds)) if seconds else None)

    def alive(self) -> None:
        """Show the watchdog that the application does not hang. Does nothing without a watchdog."""
        self._check_entered()
        self._engine.watchdog.alive()

    def tell_entities(self, report: EntityReport) -> None:
        """`Entities` tells how it is; the managers show it."""
        self._engine.entities = report

    def answer_inspections(self, answer: Callable[[Inspect, Answers], None]) -> None:
        """Have `Entities` answer what operators ask. Called in a thread of the owner's."""
        self._engine.inspected = answer

    def tiers(self) -> TierReport:
        """The report of the owner's volume and its entities that it told the managers last."""
        return TierReport() if self._made is None else self._made.told

    def _begin(self, form: Form) -> None:
        self._check_new()
        self._leave_on.begin(self.close, is_async=form == "async")
        super()._begin(form)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        if self._config.watchdog_ns is not None:
            self._life = asyncio.get_running_loop().create_task(self._keep_alive())
        return self

    def __enter__(self) -> Self:
        try:
            super().__enter__()
        except BaseException:
            self._leave_on.end()
            raise
        self._leave_on.is_inside = True
        if self._probe is not None:  # the program has no event loop to run it in
            Thread(target=self._probe_here, name=f"{self.name} probing", daemon=True).start()
        return self

    async def _keep_alive(self) -> None:
        loop, task, gone = asyncio.get_running_loop(), asyncio.current_task(), self._gone
        assert task is not None
        assert gone is not None
        gone.add_done_callback(lambda _: call_in(loop, task.cancel))
        await self._engine.watchdog.keep_alive(self._probe)

    def _probe_here(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._keep_alive())

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self._leave_on.is_inside = False
        try:
            super().__exit__(kind, error, trace)
        finally:
            self._leave_on.end()
        return isinstance(error, LeftAtSignal)


def _takes(
    handler: HandOffHandler | None, options: HandingOver, where: str, credentials: Credentials
) -> tuple[HandOffHandler, str, str | None, int] | None:
    """The handler of the state that moves, the address that takes more of it, its URL, and how much
    it takes.
    """
    most_bytes = checked_count("hand_off_bytes", options.get("hand_off_bytes", STATE_BYTES))
    listen, told = options.get("hand_off_listen"), options.get("hand_off_address")
    insecure = checked_flag("hand_off_insecure", options.get("hand_off_insecure", False))
    if handler is not None:
        told = checked_told_address(told)
        is_safe = insecure or credentials.listens_with_tls
        listening = checked_listening(listen, where, told, insecure=is_safe)
        return handler, listening, told, most_bytes
    if listen is not None or told is not None or insecure or "hand_off_bytes" in options:
        raise ConfigurationError(
            "hand_off_listen, hand_off_address, hand_off_insecure and hand_off_bytes say where an "
            "owner accepts state, and how much, and without hand_off it accepts none: also pass "
            "hand_off=KeyedState(), or another handler"
        )
    return None


def _check_called(
    on_grant: OnGrant | None, on_revoke: OnRanges | None, volume: GivesReadsOf | None
) -> None:
    check_callback("on_grant", on_grant)
    check_callback("on_revoke", on_revoke)
    if volume is None:
        return
    if isinstance(volume, type) or not callable(getattr(volume, "reads_of", None)):
        raise ConfigurationError(
            f"volume is a Volume, not {shown(volume)}; write it like volume=Volume(load)"
        )


def _named(name: str | None, where: str, environment: Environment) -> str:
    if name is None:
        return drawn_name(where, environment.random())
    return checked_name("name", name)


def _checked_watchdog(watchdog: object) -> int | None:
    return None if watchdog is None else seconds(checked_seconds("watchdog", watchdog))


def _checked_probe(probe: object, watchdog: object) -> Probe | None:
    if probe is not None and (watchdog is None or not callable(probe)):
        raise ConfigurationError(
            "probe is a function, or a coroutine function, by which the watchdog finds out whether "
            f"the application serves: pass watchdog=10.0 with it, or leave it out, not "
            f"{shown(probe)}"
        )
    if probe is not None:
        check_arity("probe", probe, 0)
    return probe


def _find_elsewhere(lookup: KeyFinder | None, here: str) -> Callable[[UserKey], str | None]:
    """A function that tells where `lookup` finds a key, or None if that is `here`."""

    def find(key: UserKey) -> str | None:
        with suppress(TenureError):  # it is not entered, or was left
            address = lookup.find(key) if lookup is not None else None
            return None if address == here else address
        return None

    return find


def _ended(owner: "ref[Owner]") -> Callable[[], bool]:
    """Whether it has left, or was never entered and nobody has it any more."""

    def has_ended() -> bool:
        there = owner()
        gone = None if there is None else there._gone  # noqa: SLF001  # of its own class
        return there is None or (gone is not None and gone.done())

    return has_ended
