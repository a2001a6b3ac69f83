"""The lease numbers that a client may name: those that managers have given (R36).

A row remembers the highest number that it was ever shown, for ever. Were any number taken, a client
could show the highest that there is, and no owner would ever write the row again. So managers tell
each node which number a pool's next lease will have, and a node takes only those below it.

A lease may be younger than what the node was told last. So the node asks the managers, and waits
until one has answered what it was asked since. If none answers, leases must not wait for them: then
numbers count that a pool may have come to meanwhile.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tenure.base.instants import Instant

UNHEARD = 1 << 32
"""How many numbers a pool may have given while this node has heard nothing: a thousand a second,
for seven weeks. `tenure restore --above` goes on above them.
"""
HIGHEST = 8 * 10**15
"""The highest number of a pool that the managers do not have, which may be that of other managers:
as much as `tenure restore` can go on above.
"""


class GivenNumbers:
    """The numbers of each pool, as far as this node has heard. `are_told` says whether it has
    managers that tell them.
    """

    def __init__(self, *, are_told: bool) -> None:
        self._are_told = are_told
        self._next: dict[str, int] = {}
        self._asked_at: Instant | None = None
        """When the question was sent that managers answered last."""
        self._waiting: dict[Callable[[], None], None] = {}

    def on_told(self, next_numbers: Mapping[str, int], asked_at: Instant) -> None:
        """Managers have told the next numbers of the pools that they have, and that fence a table,
        in answer to a question that was sent at `asked_at`.
        """
        for pool, number in next_numbers.items():
            self._next[pool] = max(number, self._next.get(pool, 0))
        self._asked_at = max(asked_at, self._asked_at or asked_at)
        for look in list(self._waiting):
            look()

    @contextmanager
    def told_to(self, look: Callable[[], None]) -> Iterator[None]:
        self._waiting[look] = None
        try:
            yield
        finally:
            self._waiting.pop(look, None)

    def is_given(self, pool: str, number: int) -> bool:
        """Whether the number was given, as far as is known here."""
        following = self._next.get(pool)
        if following is not None:
            return number < following
        return number <= HIGHEST and (self._asked_at is not None or not self._are_told)

    def may_be_given(self, pool: str, number: int) -> bool:
        """Whether the number may have been given since managers were last heard."""
        following = self._next.get(pool)
        return number <= HIGHEST if following is None else number < following + UNHEARD

    def is_true_since(self, since: Instant) -> bool:
        """Whether managers have answered a question that was sent since then."""
        return self._asked_at is not None and self._asked_at > since
