"""Where keys are served, readable from any thread: one table, published by one store.

It has the shape of an owner's snapshot, without a clock: what `find` says may be out of date in any
case, and it is the owner that refuses. A lookup that is out of contact for longer than its bound
publishes a table that finds nothing (rule P17).
"""

from bisect import bisect_right
from collections.abc import Callable

from tenure.base.keys import Key, UserKey, key_function, no_utf8
from tenure.base.ranges import LOWEST, KeyRange
from tenure.client.holdings import digest_of
from tenure.client.unusable import forked, left, not_entered, raising_list
from tenure.errors import TenureError
from tenure.protocol.lease.lookup.events import AnyRoutingTable, RoutingTable

WHAT = "Lookup"
FINDS_NOTHING = RoutingTable((LOWEST,), (None,), "hashed", in_contact=False)


class Routes:
    """Addresses by range. Immutable."""

    __slots__ = ("_made_of", "addresses", "bounds", "digest", "in_contact", "kind", "to_key")
    addresses: list[str | None]
    bounds: list[Key]
    """Both are made when the first of them is read, by `__getattr__`."""

    def __init__(self, table: AnyRoutingTable) -> None:
        self._made_of = table
        self.digest = digest_of(table.kind)
        self.kind = table.kind
        self.to_key = key_function(table.kind)
        self.in_contact = table.in_contact

    def __getattr__(self, name: str) -> object:
        """A table of thousands of ranges may be replaced before anything is looked for in it."""
        table = self._made_of
        assert table.starts[0] == LOWEST, table.starts[0]
        self.bounds, self.addresses = list(table.starts[1:]), list(table.addresses)
        return object.__getattribute__(self, name)

    def table(self) -> tuple[tuple[KeyRange, str | None], ...]:
        """Every range with the address that serves it, in order."""
        ends = [*self.bounds, None]
        ranges = map(KeyRange, [LOWEST, *self.bounds], ends)
        return tuple(zip(ranges, self.addresses, strict=True))

    def find(self, key: Key) -> str | None:
        """The address at which `key`, which is one of the pool's key space, is served."""
        return self.addresses[bisect_right(self.bounds, key)]


def unusable(make: Callable[[], TenureError]) -> Routes:
    """A stand-in that raises whenever it is read."""
    routes = Routes(FINDS_NOTHING)
    routes.bounds, routes.addresses = [], raising_list(make, str)
    return routes


class RouteBoard:
    """The present routes, for readers in any thread, and the one thread that publishes."""

    __slots__ = ("__weakref__", "_is_over", "current", "is_forked")

    def __init__(self) -> None:
        self.current = unusable(lambda: not_entered(WHAT))
        self._is_over = False
        self.is_forked = False

    def find(self, key: UserKey) -> str | None:
        """The address at which `key` is served, as far as is known."""
        routes = self.current
        if type(key) is str:
            try:
                key = key.encode()
            except UnicodeEncodeError:
                raise no_utf8(key) from None
        key = routes.digest(key) if type(key) is bytes else routes.to_key(key)
        return routes.addresses[bisect_right(routes.bounds, key)]

    def usable(self) -> Routes:
        """The present routes. Raises where they cannot be used."""
        routes = self.current
        routes.addresses[0]
        return routes

    def publish(self, routes: Routes) -> None:
        """Publish where keys are served from here on."""
        if not self._is_over:
            self.current = routes

    def find_nothing(self) -> None:
        """Know nothing any longer: `find` still works, and finds nothing."""
        routes = Routes(FINDS_NOTHING)
        routes.digest, routes.to_key = self.current.digest, self.current.to_key
        self.publish(routes)

    def close(self) -> None:
        """Left: reading raises."""
        self._is_over = True
        self.current = unusable(lambda: left(WHAT))

    def on_fork(self) -> None:
        """Let every reading raise, in a forked child."""
        self.is_forked = True
        self._is_over = True
        self.current = unusable(lambda: forked(WHAT))
