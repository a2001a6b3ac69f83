"""`Lookup`: the library in a process that sends requests to owners."""

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TypeAlias

from tenure.base.keys import Key, PoolKind, UserKey, no_utf8
from tenure.base.ranges import KeyRange
from tenure.base.standing import KeyStanding
from tenure.client.arguments import checked_name, checked_seconds
from tenure.client.callbacks import check_callback
from tenure.client.entering import Enterable
from tenure.client.environment import Environment, environment_here
from tenure.client.lookup_engine import WHAT, CachesFollower, LookupEngine
from tenure.client.managers import find_managers, find_realm
from tenure.client.options import OnRanges
from tenure.client.owner import ENTER_SECONDS
from tenure.client.routes import RouteBoard
from tenure.client.watching import KeyChange, Watch
from tenure.errors import ConfigurationError, UsageError
from tenure.protocol.lease.lookup.events import LookupConfig
from tenure.transport.credentials import Credentials

OnChange: TypeAlias = Callable[[KeyChange], object]
"""A function or a coroutine function of what happened to the key."""

SERVED_AGAIN_SECONDS = 2.0
"""Beyond the hold, until whatever a crashed owner had is served again, when all else is well."""


class Lookup(Enterable[LookupEngine]):
    """A process that follows where the keys of `pool` are served, and what was lost.

    `managers` are URLs, in a sequence or separated by commas; or "@FILE", a file with one on each
    line, which is read again whenever the lookup looks for a leader. Without this argument, the
    environment gives the URLs, in TENURE_MANAGERS, or names the file, in TENURE_MANAGERS_FILE.
    With `realm`, by default that in TENURE_REALM, managers of another realm are not followed.

    `on_loss` is called with ranges whose state is gone, when `find` already says where they are
    served now; see `tenure docs reference/client`.

    Enter it with `async with`, or `with`. Entering waits for the first table, or raises after
    `enter_timeout` seconds: NoManager, which names every manager that was tried, or PoolError.
    Raises ConfigurationError if an argument cannot be used.
    """

    def __init__(
        self,
        managers: str | Sequence[str] | None = None,
        *,
        pool: str,
        on_loss: OnRanges | None = None,
        enter_timeout: float = ENTER_SECONDS,
        credentials: Credentials | None = None,
        realm: str | None = None,
        _environment: Environment | None = None,
    ) -> None:
        environment = _environment or environment_here(credentials)
        check_callback("on_loss", on_loss)
        self.secret = environment.secret
        """What managers tell of the pool's secret. For `Cache`."""
        self._pool = checked_name("pool", pool)
        known = find_managers(managers, environment.managers)
        board = self._board = RouteBoard()
        config = LookupConfig(managers=known.urls, pool=self._pool, realm=find_realm(realm))
        seconds = checked_seconds("enter_timeout", enter_timeout)

        def make() -> LookupEngine:
            return LookupEngine(config, known, board, on_loss, environment, seconds)

        super().__init__(WHAT, board, make)

    @property
    def pool(self) -> str:
        """The pool's name."""
        return self._pool

    def find(self, key: UserKey) -> str | None:
        """The address of the owner of `key`, as far as is known; None if no owner has it.

        You may call it from any thread; it takes no lock and does not wait. The answer may be out
        of date: an owner that does not hold the key refuses, and the caller tries again. Finds
        nothing while out of contact with the managers. Raises KeyTypeError if `key` cannot be a key
        of the pool.
        """
        # RouteBoard.find, written out: a call more would be a fifth of the whole.
        routes = self._board.current
        if type(key) is str:
            try:
                key = key.encode()
            except UnicodeEncodeError:
                raise no_utf8(key) from None
        key = routes.digest(key) if type(key) is bytes else routes.to_key(key)
        return routes.addresses[bisect_right(routes.bounds, key)]

    def watch(self, key: UserKey, callback: OnChange) -> Watch:
        """Have `callback` called with a KeyChange when `key` moves or is lost, until `cancel`."""
        self._check_usable()
        if callback is None:
            raise ConfigurationError("watch needs a callback: a function of a KeyChange")
        check_callback("the callback of watch", callback)
        watch = Watch(self._engine.watches, key, self.key(key), callback)
        self._engine.watch(watch)
        return watch

    def wait(
        self, key: UserKey, *, not_at: str | None = None, timeout: float | None = None
    ) -> Awaitable[None]:
        """Wait until `key` is served, and no longer by the owner that refused it at `not_at`: what
        a client does between a 421 and its next attempt.

        Returns when `find` names another address, or another owner has the key at the same one; and
        in any case after `timeout` seconds, by default the longest time for which a crashed owner's
        keys may be unserved: the hold and two seconds. So look again with `find`. Blocks in the
        blocking form; in the async form, await what it returns. Raises ClosedError if it is left in
        the meantime.
        """
        self._check_usable()
        if not_at is not None and not isinstance(not_at, str):
            raise UsageError(
                f"not_at is the address of the owner that refused, not {not_at!r:.100}; leave it "
                "out if none did"
            )
        seconds = self.hold + SERVED_AGAIN_SECONDS
        if timeout is not None:
            seconds = checked_seconds("timeout", timeout)
        return self._wait(self.moved(key, not_at, seconds))

    def moved(self, key: UserKey, not_at: str | None, timeout: float) -> "Future[None]":
        """What `wait` waits for, as a future that any thread or loop can wait for.

        For code that does not know in which form this Lookup was entered.
        """
        return self._engine.wait_for_move(self.key(key), not_at, timeout)

    def standings(self, keys: Iterable[UserKey]) -> "Future[list[KeyStanding | None]]":
        """The lease that each of `keys` is under, and since when unbroken; None while out of
        contact.

        Keep a standing beside whatever relies on the key, in this process or another: a later one
        says with `has_lost` whether state was lost in between. Returns a future that any thread or
        loop can wait for.
        """
        self._check_usable()
        if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
            raise UsageError(
                f"standings takes several keys, as in standings([key]), not {keys!r:.100}"
            )
        return self._engine.standings([self.key(each) for each in keys])

    @property
    def hold(self) -> float:
        """How many seconds a manager waits for an owner that is gone before others get its keys.
        Base the deadlines of clients on it. The managers announce it; if their version does not, it
        is 65, the longest hold of any preset.
        """
        self._check_usable()
        return self._engine.hold_seconds

    def table(self) -> tuple[tuple[KeyRange, str | None], ...]:
        """Every range with the address that serves it, in order, as far as is known."""
        return self._board.usable().table()

    @property
    def pool_kind(self) -> PoolKind:
        """Whether the pool is hashed or ordered."""
        return self._board.usable().kind

    def follow_caches(self, follower: CachesFollower) -> None:
        """Have `follower` called with where caches read each range, now and at each change, from
        the library's thread. For `Cache`.
        """
        self._check_usable()
        self._engine.follow(follower)

    @property
    def in_contact(self) -> bool:
        """Whether the table is up to date. If not, `find` finds nothing and everything counts as
        lost.
        """
        return self._board.usable().in_contact

    def key(self, key: UserKey) -> Key:
        """The key of the pool's key space for `key`: `lookup.key("room-42") in a_range`."""
        return self._board.usable().to_key(key)

    def __repr__(self) -> str:
        state = self._state
        if state == "entered":
            state = "in contact" if self.in_contact else "out of contact"
        return f"<Lookup of pool {self.pool!r}: {state}>"
