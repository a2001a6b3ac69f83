"""Owners of owned state without a network: their leases are published by hand, by one clock."""

from collections.abc import Callable, Sequence
from typing import Any

from tenure import KeyRange, OwnedState
from tenure.base.keys import PoolKind, UserKey
from tenure.client.guard import Guards
from tenure.client.holdings import Board
from tenure.protocol.lease.messages import Leased
from tenure.protocol.lease.owner.events import Holdings
from tenure.testing.clock import TurnedClock

WHOLE = KeyRange(b"", None)
TERM = 1_000.0
JOURNAL = 7


class Holder:
    """One owner, and its state."""

    def __init__(self, name: str, clock: TurnedClock, state: OwnedState[Any]) -> None:
        self.name = name
        self.clock = clock
        self.state = state
        self.has_ended = False
        self.leases: dict[KeyRange, tuple[int, int]] = {}
        """The number of each range, and since when its state is unbroken."""
        self._begin("hashed")

    def _begin(self, kind: PoolKind) -> None:
        self.board = Board(kind, self.clock)
        self.guards = Guards(self.board, self.clock, self.name, lambda _: None)
        self.state.belong_to(self.name, kind, lambda: self.has_ended)
        self.state.guard_with(self.guards)
        self.board.open()

    def hold(self, key_range: KeyRange, number: int, since: int | None = None) -> None:
        """Hold this too from here on."""
        self.leases[key_range] = number, since or number
        self._publish()

    def lose(self, key_range: KeyRange) -> None:
        """Hold this no longer, from here on."""
        self.leases.pop(key_range, None)
        self._publish()
        self.guards.keep((key_range,), ())

    def holds(self, key_range: KeyRange) -> bool:
        """Whether it does at this moment."""
        return key_range in self.leases and key_range in self.board.ranges()

    def drop(self, key_range: KeyRange) -> None:
        """Its term has run out: it has noticed, and its state of this is dropped."""
        del self.leases[key_range]
        self.state.discard_range(key_range)
        self.guards.keep((key_range,), ())

    def renew(self) -> None:
        """Go on holding what it holds."""
        self.board._lapse.is_seen = False
        self._publish()

    def _publish(self) -> None:
        leases = tuple(
            Leased(start=each.start, end=each.end, number=number, since=since, mark="renewed")
            for each, (number, since) in sorted(self.leases.items(), key=lambda it: it[0].start)
        )
        assert self.board.publish(Holdings(JOURNAL, 1, leases, self.clock.after(TERM)))


def holder(
    state: OwnedState[Any] | None = None, clock: TurnedClock | None = None, number: int = 1
) -> Holder:
    """One that holds everything."""
    held = Holder("an owner", clock or TurnedClock(), OwnedState() if state is None else state)
    held.hold(WHOLE, number)
    return held


def copied(
    source: OwnedState[Any],
    key_range: KeyRange,
    since: Any = None,  # noqa: ANN401  # a mark
) -> tuple[Any, Sequence[bytes]]:
    """A mark, and what is to be taken in."""
    exported = source.export_range(key_range, since)
    assert isinstance(exported, tuple)
    mark, chunks = exported
    assert not hasattr(chunks, "__aiter__")
    return mark, list(chunks)


def stored(state: OwnedState[Any], key: UserKey) -> Any:  # noqa: ANN401  # whatever it is
    with state.at(key) as it:
        return it.value


def put(
    state: OwnedState[Any],
    key: UserKey,
    value: Any,  # noqa: ANN401  # whatever is to be stored
    then: Callable[[], object] = lambda: None,
) -> None:
    """Store a value; `then` is done at the end of the body."""
    with state.at(key) as it:
        it.value = value
        then()
